/* The Sinkhorn-balanced update (paper.md 7.2) with row and column scales instead of a rewritten
 * matrix: U = diag(r) u diag(c), so that each step of the balancing reads u and writes a vector.
 *
 * Momentum decays lazily. Row i holds it as of step row_steps[i]; since then it only decayed, so
 * its norm now is beta^(steps since) times the stored one, and a row that nobody touches costs
 * eight bytes read a step. Rows above the threshold are listed as `live`: a touched row's u
 * (momentum and gradient mixed) lies in a buffer, another's is its stored momentum times a power of
 * beta, which its scale takes in.
 *
 * A row step and the column step after it share one pass: a row's new scale is known as soon as the
 * row was read, and its part of the column sums is added while it is in the cache. Sums over rows
 * are made by parts and in blocks, so that they depend neither on the number of threads nor on how
 * many rows there are.
 */
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/optimizers.h"

#include "base/mem.h"

#include <math.h>
#include <omp.h>

#define BLOCK_ROWS 256  /* of f32 column sums before they enter a double */
#define AHEAD      4    /* rows asked for early */
#define POWERS     4096 /* beta^k beyond is taken as 0 */

typedef struct Live {
    const float *u;
    int64_t row;
    float r;
} Live;

typedef struct State {
    float *ahead;    /* [max_touched, row_dims]: u of touched rows */
    float *norms;    /* [max_touched]: their norms */
    Live *live;      /* [rows] */
    int64_t *counts; /* [ENG_PARTS + 1]: live rows of each part */
    double *sums;    /* [ENG_PARTS, row_dims]: of columns; first of each: of row norms */
    float *blocks;   /* [ENG_PARTS, row_dims]: column sums of a block of rows */
    float *c;        /* [row_dims]: column scales */
    float *powers;   /* [POWERS]: beta^k */
} State;

/* The rows of one group and what of `touched` lies in it. */
typedef struct Group {
    int64_t from, to;     /* rows */
    int64_t t_from, t_to; /* touched */
    int64_t n_live;
} Group;

static void destroy(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_free(state->ahead);
    eng_free(state->norms);
    eng_free(state->live);
    eng_free(state->counts);
    eng_free(state->sums);
    eng_free(state->blocks);
    eng_free(state->c);
    eng_free(state->powers);
    eng_free(state);
}

static EngStatus supports(const EngProblem *problem, EngErr *why)
{
    const EngSinkhornProblem *p = &problem->u.sinkhorn;
    if (p->balance < 1 || p->balance % 2 == 0)
        return ENG_FAIL(why, ENG_UNSUPPORTED,
                        "balance = %d: must be odd, to begin and end with rows", p->balance);
    if (p->max_touched < 0 || p->max_touched > p->rows)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "at most %lld rows touched, of %lld",
                        (long long)p->max_touched, (long long)p->rows);
    for (int g = 0; p->bounds && g < p->n_groups; g++)
        if (p->bounds[g] > p->bounds[g + 1] || p->bounds[0] != 0 ||
            p->bounds[p->n_groups] != p->rows)
            return ENG_FAIL(why, ENG_UNSUPPORTED, "group %d: bounds do not ascend from 0 to rows",
                            g);
    return eng_cpu_optimizer_supports(problem, p->rows, p->row_dims, why);
}

/* Of all rows live and touched: momentum and gradient read, u written; a pass for every two steps
 * of the balancing, and one that updates the weights. */
static void cost_of(const EngProblem *problem, EngCost *cost)
{
    const EngSinkhornProblem *p = &problem->u.sinkhorn;
    double n = (double)p->rows * p->row_dims, passes = p->balance / 2;
    cost->flops = n * (6 + 2 + 6 * passes + 6);
    cost->read_bytes = 4 * n * (2 + passes + 2) + 8 * (double)p->rows;
    cost->write_bytes = 4 * n * (2 + 1) + 8 * (double)p->rows;
}

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    const EngSinkhornProblem *p = &problem->u.sinkhorn;
    size_t dims = (size_t)p->row_dims, touched = (size_t)p->max_touched;
    State *state = NULL;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "Sinkhorn", err);
    *out = state;
    if (status) return status;
    struct {
        void **at;
        size_t n, size;
    } wanted[] = {{(void **)&state->ahead, touched, dims * sizeof(float)},
                  {(void **)&state->norms, touched, sizeof(float)},
                  {(void **)&state->live, (size_t)p->rows, sizeof(Live)},
                  {(void **)&state->counts, ENG_PARTS + 1, sizeof(int64_t)},
                  {(void **)&state->sums, ENG_PARTS, dims * sizeof(double)},
                  {(void **)&state->blocks, ENG_PARTS, dims * sizeof(float)},
                  {(void **)&state->c, dims, sizeof(float)},
                  {(void **)&state->powers, POWERS, sizeof(float)}};
    for (size_t i = 0; !status && i < sizeof wanted / sizeof *wanted; i++)
        status = eng_alloc_or(wanted[i].at, wanted[i].n, wanted[i].size, "Sinkhorn", err);
    if (status) {
        destroy(state);
        *out = NULL;
        return status;
    }
    for (int k = 0; k < POWERS; k++) state->powers[k] = (float)pow(p->beta, k);
    return ENG_OK;
}

/* ---- momentum ---------------------------------------------------------------------------------
 */

static float power_of(const State *state, int64_t k)
{
    return k < POWERS ? state->powers[k] : 0.0f;
}

/* m = decayed * m + rest * g, u = beta * m + rest * g; sums of squares of both. */
ENG_CLONES static void mix_row(float decayed, float beta, const float *g, float *m, float *u,
                               size_t n, float squares[2])
{
    EngLanesF32 mm = {0}, uu = {0};
    float rest = 1.0f - beta, last_m = 0, last_u = 0;
    size_t i = 0;
    for (; i + ENG_LANES <= n; i += ENG_LANES) {
        EngLanesF32 fresh = rest * *(const EngLanesF32 *)(g + i);
        EngLanesF32 new_m = decayed * *(const EngLanesF32 *)(m + i) + fresh;
        EngLanesF32 new_u = beta * new_m + fresh;
        *(EngLanesF32 *)(m + i) = new_m;
        *(EngLanesF32 *)(u + i) = new_u;
        mm += new_m * new_m;
        uu += new_u * new_u;
    }
    for (; i < n; i++) {
        float fresh = rest * g[i];
        m[i] = decayed * m[i] + fresh;
        u[i] = beta * m[i] + fresh;
        last_m += m[i] * m[i];
        last_u += u[i] * u[i];
    }
    squares[0] = eng_lanes_sum(&mm) + last_m;
    squares[1] = eng_lanes_sum(&uu) + last_u;
}

static int64_t touched_row(const EngSinkhornArgs *a, int64_t i)
{
    return a->touched ? a->touched[i] : i;
}

static void mix_touched(const EngSinkhornProblem *p, const EngSinkhornArgs *a, State *state)
{
    size_t dims = (size_t)p->row_dims;
#pragma omp for schedule(static)
    for (int64_t i = 0; i < a->n_touched; i++) {
        int64_t row = touched_row(a, i);
        float *m = a->momentum + (size_t)row * dims, squares[2];
        mix_row(power_of(state, a->step - a->row_steps[row]), p->beta, a->grad + (size_t)i * dims,
                m, state->ahead + (size_t)i * dims, dims, squares);
        a->row_norms[row] = sqrtf(squares[0]);
        a->row_steps[row] = (int32_t)a->step;
        state->norms[i] = sqrtf(squares[1]);
    }
}

/* ---- the live rows of a group -----------------------------------------------------------------
 */

/* Part `part` of a group's rows, and the first touched one at or behind its beginning. */
static void part_of(const EngSinkhornArgs *a, const Group *group, int part, int64_t *from,
                    int64_t *to, int64_t *touched)
{
    eng_cpu_share(group->to - group->from, ENG_PARTS, part, from, to);
    *from += group->from;
    *to += group->from;
    int64_t low = group->t_from, high = group->t_to;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (touched_row(a, middle) < *from)
            low = middle + 1;
        else
            high = middle;
    }
    *touched = low;
}

/* u of the next row and its norm: of a touched one the buffer's, else the momentum times `factor`.
 */
static Live row_of(const EngSinkhornProblem *p, const EngSinkhornArgs *a, const State *state,
                   const Group *group, int64_t row, int64_t *touched, float *norm)
{
    size_t dims = (size_t)p->row_dims;
    if (*touched < group->t_to && touched_row(a, *touched) == row) {
        int64_t i = (*touched)++;
        *norm = state->norms[i];
        return (Live){state->ahead + (size_t)i * dims, row, 1.0f};
    }
    float factor = p->beta * power_of(state, a->step - a->row_steps[row]);
    *norm = factor * a->row_norms[row];
    return (Live){a->momentum + (size_t)row * dims, row, factor};
}

static double mean_norm(const EngSinkhornProblem *p, const EngSinkhornArgs *a, State *state,
                        const Group *group)
{
    double sum = 0;
#pragma omp for schedule(static)
    for (int part = 0; part < ENG_PARTS; part++) {
        int64_t from, to, touched;
        double norms = 0;
        part_of(a, group, part, &from, &to, &touched);
        for (int64_t row = from; row < to; row++) {
            float norm;
            row_of(p, a, state, group, row, &touched, &norm);
            norms += norm;
        }
        state->sums[(size_t)part * (size_t)p->row_dims] = norms;
    }
    for (int part = 0; part < ENG_PARTS; part++)
        sum += state->sums[(size_t)part * (size_t)p->row_dims];
    return group->to > group->from ? sum / (double)(group->to - group->from) : 0;
}

/* Lists the rows above the threshold at their part's own beginning, then moves the lists together.
 */
static void list_live(const EngSinkhornProblem *p, const EngSinkhornArgs *a, State *state,
                      Group *group, double mean)
{
    double threshold = p->tau * mean;
#pragma omp for schedule(static)
    for (int part = 0; part < ENG_PARTS; part++) {
        int64_t from, to, touched, n = 0;
        part_of(a, group, part, &from, &to, &touched);
        for (int64_t row = from; row < to; row++) {
            float norm;
            Live live = row_of(p, a, state, group, row, &touched, &norm);
            if (norm > threshold) state->live[from + n++] = live;
        }
        state->counts[part] = n;
    }
#pragma omp single
    {
        int64_t n = 0;
        for (int part = 0; part < ENG_PARTS; part++) {
            int64_t from, to, touched;
            part_of(a, group, part, &from, &to, &touched);
            memmove(state->live + group->from + n, state->live + from,
                    (size_t)state->counts[part] * sizeof *state->live);
            n += state->counts[part];
        }
        group->n_live = n;
    }
}

/* ---- balancing --------------------------------------------------------------------------------
 */

/* Norm of u * c. */
ENG_CLONES static void scaled_norm(const float *u, const float *c, size_t n, float *norm)
{
    EngLanesF32 lanes = {0};
    float rest = 0;
    size_t i = 0;
    for (; i + ENG_LANES <= n; i += ENG_LANES) {
        EngLanesF32 x = *(const EngLanesF32 *)(u + i) * *(const EngLanesF32 *)(c + i);
        lanes += x * x;
    }
    for (; i < n; i++) rest += u[i] * c[i] * (u[i] * c[i]);
    *norm = sqrtf(eng_lanes_sum(&lanes) + rest);
}

ENG_CLONES static void add_squares(const float *restrict u, float r, size_t n, float *restrict sums)
{
    for (size_t i = 0; i < n; i++) {
        float x = r * u[i];
        sums[i] += x * x;
    }
}

static void close_block(float *restrict block, size_t n, double *restrict sums)
{
    for (size_t i = 0; i < n; i++) sums[i] += block[i];
    memset(block, 0, n * sizeof *block);
}

/* The row step: r / (norm of r * u * c + eps). */
static float balanced(const EngSinkhornProblem *p, const Live *live, const float *c)
{
    float norm;
    scaled_norm(live->u, c, (size_t)p->row_dims, &norm);
    return live->r / (live->r * norm + p->eps);
}

static void fetch_row(const float *row, size_t dims)
{
    for (size_t j = 0; j < dims; j += 16) __builtin_prefetch(row + j);
}

/* A row step and the sums of the column step that follows. */
static void balance_rows(const EngSinkhornProblem *p, State *state, const Group *group)
{
    size_t dims = (size_t)p->row_dims;
#pragma omp for schedule(static)
    for (int part = 0; part < ENG_PARTS; part++) {
        double *sums = state->sums + (size_t)part * dims;
        float *block = state->blocks + (size_t)part * dims;
        int64_t from, to;
        memset(sums, 0, dims * sizeof *sums);
        memset(block, 0, dims * sizeof *block);
        eng_cpu_share(group->n_live, ENG_PARTS, part, &from, &to);
        for (int64_t i = from; i < to; i++) {
            Live *live = &state->live[group->from + i];
            if (i + AHEAD < to) fetch_row(live[AHEAD].u, dims);
            live->r = balanced(p, live, state->c);
            add_squares(live->u, live->r, dims, block);
            if ((i - from) % BLOCK_ROWS == BLOCK_ROWS - 1) close_block(block, dims, sums);
        }
        close_block(block, dims, sums);
    }
}

/* The column step. A column of zeros keeps its scale: dividing it by eps would overflow. */
static void balance_columns(const EngSinkhornProblem *p, State *state)
{
    size_t dims = (size_t)p->row_dims;
#pragma omp single
    for (size_t j = 0; j < dims; j++) {
        double sum = 0;
        for (int part = 0; part < ENG_PARTS; part++) sum += state->sums[(size_t)part * dims + j];
        double norm = state->c[j] * sqrt(sum);
        if (norm > 0) state->c[j] = (float)(state->c[j] / (norm + p->eps));
    }
}

ENG_CLONES static void update_row(const float *restrict u, const float *restrict c, float step,
                                  size_t n, float *restrict w)
{
    for (size_t i = 0; i < n; i++) w[i] -= step * (u[i] * c[i]);
}

static void update_group(const EngSinkhornProblem *p, const EngSinkhornArgs *a, State *state,
                         Group *group)
{
    size_t dims = (size_t)p->row_dims;
    float scale = (float)((double)p->gamma * a->rate * sqrt(p->row_dims));
    list_live(p, a, state, group, mean_norm(p, a, state, group));
#pragma omp single
    for (size_t j = 0; j < dims; j++) state->c[j] = 1.0f;
    for (int q = 1; q < p->balance; q += 2) {
        balance_rows(p, state, group);
        balance_columns(p, state);
    }
#pragma omp for schedule(static)
    for (int64_t i = 0; i < group->n_live; i++) {
        const Live *live = &state->live[group->from + i];
        float r = balanced(p, live, state->c);
        update_row(live->u, state->c, scale * r, dims, a->w + (size_t)live->row * dims);
    }
}

static EngStatus run(void *opaque, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngSinkhornProblem *p = &problem->u.sinkhorn;
    const EngSinkhornArgs *a = &args->u.sinkhorn;
    State *state = opaque;
    const int64_t whole[] = {0, p->rows};
    const int64_t *bounds = p->bounds ? p->bounds : whole;
    int groups = p->bounds ? p->n_groups : 1, threads = problem->threads;
    Group group = {0};
    if (a->n_touched > p->max_touched)
        return ENG_FAIL(err, ENG_USAGE, "%lld rows touched, room for %lld", (long long)a->n_touched,
                        (long long)p->max_touched);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        mix_touched(p, a, state);
        for (int g = 0; g < groups; g++) {
#pragma omp single
            {
                int64_t end = group.t_to;
                while (end < a->n_touched && touched_row(a, end) < bounds[g + 1]) end++;
                group = (Group){bounds[g], bounds[g + 1], group.t_to, end, 0};
            }
            update_group(p, a, state, &group);
        }
    }
    return ENG_OK;
}

const EngKernel eng_cpu_sinkhorn_portable = {
    .op = ENG_OP_SINKHORN,
    .name = "portable",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "row and column scales, lazy decay, rows above the threshold only",
    .supports = supports,
    .cost = cost_of,
    .create = create,
    .run = run,
    .destroy = destroy,
};
