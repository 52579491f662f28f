/* Muon with the Newton-Schulz products through oneDNN's sgemm. The iteration runs on the shorter
 * side: a tall matrix is transposed first, since X X^T of the shorter side is smaller and the
 * result is the same.
 */
#include "kernels/cpu/common.h"
#include "kernels/cpu/onednn_weights.h"
#include "kernels/cpu/optimizers.h"

#include "base/mem.h"

#include <math.h>
#include <omp.h>

typedef struct State {
    float *x, *next;   /* [shorter, longer] */
    float *gram, *mix; /* [shorter, shorter] */
} State;

static void destroy(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_free(state->x);
    eng_free(state->next);
    eng_free(state->gram);
    eng_free(state->mix);
    eng_free(state);
}

static int shorter_of(const EngMuonProblem *p)
{
    return p->rows < p->cols ? p->rows : p->cols;
}

static int longer_of(const EngMuonProblem *p)
{
    return p->rows < p->cols ? p->cols : p->rows;
}

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    const EngMuonProblem *p = &problem->u.muon;
    size_t m = (size_t)shorter_of(p), n = (size_t)longer_of(p);
    State *state = NULL;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "Muon", err);
    *out = state;
    if (status) return status;
    struct {
        float **at;
        size_t columns;
    } wanted[] = {{&state->x, n}, {&state->next, n}, {&state->gram, m}, {&state->mix, m}};
    for (size_t i = 0; !status && i < sizeof wanted / sizeof *wanted; i++)
        status =
            eng_alloc_or((void **)wanted[i].at, m, wanted[i].columns * sizeof(float), "Muon", err);
    if (!status) return ENG_OK;
    destroy(state);
    *out = NULL;
    return status;
}

static EngStatus supports(const EngProblem *problem, EngErr *why)
{
    const EngMuonProblem *p = &problem->u.muon;
    if (p->rows < 1 || p->cols < 1 || p->ns_steps < 0 || p->ns_steps > 100)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "rows %d, cols %d, steps %d: out of range", p->rows,
                        p->cols, p->ns_steps);
    return eng_cpu_optimizer_supports(problem, p->count, (int64_t)p->rows * p->cols, why);
}

static void cost_of(const EngProblem *problem, EngCost *cost)
{
    const EngMuonProblem *p = &problem->u.muon;
    double m = shorter_of(p), n = longer_of(p), count = (double)p->count;
    cost->flops = count * p->ns_steps * (2 * m * m * n + 2 * m * m * m + 2 * m * m * n);
    cost->read_bytes = 3 * 4 * count * m * n;
    cost->write_bytes = 2 * 4 * count * m * n;
}

/* ---- pieces ----
 */

/* Momentum in place, and what is to be orthogonalised. */
ENG_CLONES static void look_ahead(float momentum, const float *restrict grad,
                                  float *restrict buffer, size_t n, float *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        float b = momentum * buffer[i] + grad[i];
        buffer[i] = b;
        out[i] = momentum * b + grad[i];
    }
}

ENG_CLONES static void sum_of_squares(const float *v, size_t n, double *out)
{
    enum { BLOCK = 4096 }; /* of f32 sums */
    double sum = 0;
    for (size_t from = 0; from < n; from += BLOCK) {
        EngLanesF32 lanes = {0};
        size_t i = from, to = n - from < BLOCK ? n : from + BLOCK;
        for (; i + ENG_LANES <= to; i += ENG_LANES) {
            EngLanesF32 x = *(const EngLanesF32 *)(v + i);
            lanes += x * x;
        }
        for (int j = 0; j < ENG_LANES; j++) sum += lanes[j];
        for (; i < to; i++) sum += (double)v[i] * v[i];
    }
    *out = sum;
}

ENG_CLONES static void scale(float *v, size_t n, float factor)
{
    for (size_t i = 0; i < n; i++) v[i] *= factor;
}

/* mix = c mix + b gram. */
ENG_CLONES static void blend(const float *restrict gram, size_t n, float *restrict mix)
{
    for (size_t i = 0; i < n; i++) mix[i] = 2.0315f * mix[i] - 4.7750f * gram[i];
}

ENG_CLONES static void update(float keep, float step, const float *restrict o, size_t n,
                              float *restrict w)
{
    for (size_t i = 0; i < n; i++) w[i] = keep * w[i] - step * o[i];
}

/* from [rows, cols] to [cols, rows]. */
static void transpose(const float *from, int rows, int cols, float *to)
{
    enum { TILE = 32 };
    for (int r0 = 0; r0 < rows; r0 += TILE)
        for (int c0 = 0; c0 < cols; c0 += TILE)
            for (int c = c0; c < c0 + TILE && c < cols; c++)
                for (int r = r0; r < r0 + TILE && r < rows; r++)
                    to[(size_t)c * (size_t)rows + (size_t)r] =
                        from[(size_t)r * (size_t)cols + (size_t)c];
}

/* Newton-Schulz on state->x; the result is in state->x again. */
static dnnl_status_t orthogonalise(const EngMuonProblem *p, State *state)
{
    int64_t m = shorter_of(p), n = longer_of(p);
    size_t values = (size_t)m * (size_t)n;
    double squares;
    dnnl_status_t status = dnnl_success;
    sum_of_squares(state->x, values, &squares);
    scale(state->x, values, (float)(1 / (sqrt(squares) + 1e-7)));
    for (int i = 0; i < p->ns_steps && !status; i++) {
        float *x = state->x;
        status = dnnl_sgemm('N', 'T', m, m, n, 1, x, n, x, n, 0, state->gram, m);
        if (!status)
            status =
                dnnl_sgemm('N', 'N', m, m, m, 1, state->gram, m, state->gram, m, 0, state->mix, m);
        if (status) break;
        blend(state->gram, (size_t)m * (size_t)m, state->mix);
        memcpy(state->next, x, values * sizeof *x);
        status = dnnl_sgemm('N', 'N', m, n, m, 1, state->mix, m, x, n, 3.4445f, state->next, n);
        state->x = state->next;
        state->next = x;
    }
    return status;
}

static EngStatus run(void *opaque, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngMuonProblem *p = &problem->u.muon;
    const EngMuonArgs *a = &args->u.muon;
    State *state = opaque;
    size_t n = (size_t)p->rows * (size_t)p->cols;
    float keep = 1.0f - a->rate * p->decay, step = a->rate * p->rms * sqrtf((float)longer_of(p));
    bool tall = p->rows > p->cols;
    dnnl_status_t status = dnnl_success;
    int before = eng_onednn_set_threads(problem->threads);
    for (int64_t i = 0; i < p->count && !status; i++) {
        size_t at = (size_t)i * n;
        look_ahead(p->momentum, a->grad + at, a->buffer + at, n, tall ? state->next : state->x);
        if (tall) transpose(state->next, p->rows, p->cols, state->x);
        status = orthogonalise(p, state);
        if (tall) transpose(state->x, p->cols, p->rows, state->next);
        update(keep, step, tall ? state->next : state->x, n, a->w + at);
    }
    omp_set_num_threads(before);
    return eng_onednn_status(status, "Newton-Schulz", err);
}

const EngKernel eng_cpu_muon_onednn = {
    .op = ENG_OP_MUON,
    .name = "onednn",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "Newton-Schulz through oneDNN's sgemm, on the shorter side",
    .supports = supports,
    .cost = cost_of,
    .create = create,
    .run = run,
    .destroy = destroy,
};
