/* A trainer: what it holds, the data it walks through, steps and runs; see train.h. */
#include "bench/backbone/train.h"

#include <inttypes.h>
#include <malloc.h>
#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "bench/backbone/grad_pointwise.h"
#include "bench/backbone/pointwise.h"
#include "bench/backbone/train_parts.h"
#include "kernels/store/memory.h"

#define ORDER_SEED   0x6f72646572ull   /* of the order of sequences */
#define SHUFFLE_SEED 0x73687566666cull /* of rows, for the control */

/* ---- memory ---- */

static void fill_angles(EngTrainer *t)
{
    int64_t half = t->config.model.head_dim / 2;
    for (int64_t position = 0; position < t->config.seq_len; position++)
        for (int64_t i = 0; i < half; i++) {
            double turn = pow(t->config.model.rope_theta, -(double)i / (double)half);
            t->cos[position * half + i] = (EngReal)cos((double)position * turn);
            t->sin[position * half + i] = (EngReal)sin((double)position * turn);
        }
}

typedef struct Block {
    void **at;
    int64_t n, each;
    size_t size;
} Block;

static EngStatus allocate(EngTrainer *t, EngErr *err)
{
    const EngTrainConfig *c = &t->config;
    const EngBackboneConfig *m = &c->model;
    int64_t batch = c->batch_tokens, modules = c->engram_layers, bf16 = m->dtype == ENG_BF16;
    const Block blocks[] = {
        {(void **)&t->values, t->tensors.all, 1, sizeof(EngReal)},
        {(void **)&t->rounded, bf16 ? t->tensors.dense : 0, 1, sizeof *t->rounded},
        {(void **)&t->head_turned, m->tied_head ? 0 : m->vocab, m->hidden, sizeof(EngReal)},
        {(void **)&t->bias, m->layers, m->experts, sizeof(EngReal)},
        {(void **)&t->cos, c->seq_len, m->head_dim / 2, sizeof(EngReal)},
        {(void **)&t->sin, c->seq_len, m->head_dim / 2, sizeof(EngReal)},
        {(void **)&t->lanes, m->threads, 1, sizeof *t->lanes},
        {(void **)&t->counts, m->layers, m->experts, sizeof *t->counts},
        {(void **)&t->d_e, modules * batch, eng_train_d_mem(c), sizeof(EngReal)},
        {(void **)&t->batch, batch, 2, sizeof *t->batch},
        {(void **)&t->batch_rows, modules * batch, t->address.n_columns, sizeof *t->batch_rows},
        {(void **)&t->hash_ids, batch, 1, sizeof *t->hash_ids},
        {(void **)&t->starts, batch / c->seq_len + 1, 1, sizeof *t->starts},
    };
    EngStatus status = ENG_OK;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks && !status; i++) {
        size_t n;
        if (!blocks[i].n) continue;
        if (!eng_mul_size((size_t)blocks[i].n, (size_t)blocks[i].each, &n))
            return ENG_FAIL(err, ENG_USAGE, "training: shapes overflow the address space");
        status = eng_alloc_or(blocks[i].at, n, blocks[i].size, "training", err);
    }
    return status;
}

static EngStatus make_lanes(EngTrainer *t, EngErr *err)
{
    EngStatus status = ENG_OK;
    int64_t sequences = t->config.batch_tokens / t->config.seq_len, first = 0;
    int threads = t->config.model.threads;
    for (int i = 0; i < threads && !status; i++) {
        int64_t own = sequences / threads + (i < sequences % threads);
        status = eng_lane_create(t, own * t->config.seq_len, &t->lanes[i], err);
        t->lanes[i].first = first;
        t->lanes[i].d_e = t->d_e ? t->d_e + first * eng_train_d_mem(&t->config) : NULL;
        first += own * t->config.seq_len;
    }
    return status;
}

static EngStatus make_hash(EngTrainer *t, EngErr *err)
{
    EngProblem problem = {.op = ENG_OP_HASH, .threads = 1};
    problem.u.hash = (EngHashProblem){&t->address, t->config.batch_tokens};
    t->hash = eng_kernel_find(ENG_OP_HASH, "portable");
    if (!t->config.engram_layers || t->config.rows == ENG_ROWS_ONE || !t->hash->create)
        return ENG_OK;
    return t->hash->create(&problem, &t->hash_state, err);
}

EngStatus eng_trainer_create(const EngTrainConfig *config, EngTrainer **trainer, EngErr *err)
{
    EngTrainer *t = NULL;
    *trainer = NULL;
    /* oneDNN allocates its packing buffers in each call: these pages are to stay with the process,
     * which faults of new ones would cost a tenth of the time. */
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 512 << 20);
    EngStatus status = eng_train_check(config, err);
    if (!status) status = eng_alloc_or((void **)&t, 1, sizeof *t, "a trainer", err);
    if (status) return status;
    t->config = *config;
    status = eng_train_address(config, &t->address, err);
    if (!status) status = eng_tensors_create(config, &t->address, &t->tensors, err);
    if (!status) status = allocate(t, err);
    if (!status) status = make_lanes(t, err);
    if (!status) status = make_hash(t, err);
    if (!status) status = eng_optimizer_create(t, &t->optimizer, err);
    if (status) {
        eng_trainer_destroy(t);
        return status;
    }
    fill_angles(t);
    for (int64_t s = 0; s <= config->batch_tokens / config->seq_len; s++)
        t->starts[s] = s * config->seq_len;
    eng_tensors_fill(config, &t->address, &t->tensors, t->values);
    eng_trainer_refresh(t);
    *trainer = t;
    return ENG_OK;
}

void eng_trainer_destroy(EngTrainer *t)
{
    if (!t) return;
    eng_optimizer_destroy(t->optimizer);
    for (int i = 0; t->lanes && i < t->config.model.threads; i++) eng_lane_destroy(&t->lanes[i]);
    if (t->hash && t->hash->destroy) t->hash->destroy(t->hash_state);
    void *blocks[] = {t->values, t->rounded, t->head_turned, t->bias,       t->cos,
                      t->sin,    t->lanes,   t->counts,      t->d_e,        t->batch,
                      t->order,  t->starts,  t->hash_ids,    t->batch_rows, t};
    eng_tensors_destroy(&t->tensors);
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) eng_free(blocks[i]);
}

const EngTrainConfig *eng_trainer_config(const EngTrainer *t)
{
    return &t->config;
}

/* [d, vocab] to [vocab, d], sixteen columns at a time so that both sides stay in the cache. */
static void turn_head(const EngReal *head, int64_t d, int64_t vocab, EngReal *turned)
{
    for (int64_t from = 0; from < vocab; from += ENG_LANES) {
        int64_t to = from + ENG_LANES < vocab ? from + ENG_LANES : vocab;
        for (int64_t i = 0; i < d; i++)
            for (int64_t v = from; v < to; v++) turned[v * d + i] = head[i * vocab + v];
    }
}

void eng_trainer_refresh(EngTrainer *t)
{
    if (t->head_turned)
        turn_head(eng_value(&t->lanes[0], ENG_W_HEAD, 0), t->config.model.hidden,
                  t->config.model.vocab, t->head_turned);
    if (t->rounded) eng_to_bf16(t->values, t->rounded, (size_t)t->tensors.dense);
}

/* ---- data ---- */

static int64_t steps_of(const EngTrainer *t)
{
    return t->config.tokens / t->config.batch_tokens;
}

EngStatus eng_trainer_data(EngTrainer *t, const int32_t *ids, int64_t n, EngErr *err)
{
    int64_t length = t->config.seq_len, sequences = (n - 1) / length;
    int64_t wanted = steps_of(t) * (t->config.batch_tokens / length);
    EngRng rng;
    if (sequences < wanted || n < 1)
        return ENG_FAIL(err, ENG_USAGE,
                        "training data: %" PRId64 " ids; a single pass of %" PRId64
                        " tokens needs %" PRId64,
                        n, t->config.tokens, wanted * length + 1);
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= t->config.model.vocab)
            return ENG_FAIL(err, ENG_BAD_DATA,
                            "training data: id %" PRId32 " at %" PRId64 " is not in [0, %d)",
                            ids[i], i, t->config.model.vocab);
    if (sequences > INT32_MAX)
        return ENG_FAIL(err, ENG_USAGE, "training data: %" PRId64 " sequences are too many",
                        sequences);
    eng_free(t->order);
    EngStatus status = eng_alloc_or((void **)&t->order, (size_t)sequences, sizeof *t->order,
                                    "the order of sequences", err);
    if (status) return status;
    eng_rng_seed_at(&rng, t->config.model.seed, ORDER_SEED);
    for (int64_t i = 0; i < sequences; i++) t->order[i] = (int32_t)i;
    for (int64_t i = sequences - 1; i > 0; i--) {
        int64_t j = (int64_t)eng_rng_below(&rng, (uint64_t)i + 1);
        int32_t other = t->order[i];
        t->order[i] = t->order[j], t->order[j] = other;
    }
    t->ids = ids, t->n_ids = n, t->n_sequences = sequences;
    return ENG_OK;
}

/* Rows of another position instead of its own, for all modules alike. */
static void shuffle_rows(const EngTrainer *t, int64_t n, uint64_t number, int64_t *rows)
{
    int64_t width = t->address.n_layers * t->address.n_columns;
    EngRng rng;
    eng_rng_seed_at(&rng, t->config.model.seed ^ SHUFFLE_SEED, number);
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t *a = rows + i * width;
        int64_t *b = rows + (int64_t)eng_rng_below(&rng, (uint64_t)i + 1) * width;
        for (int64_t c = 0; c < width; c++) {
            int64_t other = a[c];
            a[c] = b[c], b[c] = other;
        }
    }
}

EngStatus eng_trainer_hash(EngTrainer *t, const int32_t *ids, int64_t n, uint64_t number,
                           int64_t *rows, EngErr *err)
{
    const EngTrainConfig *c = &t->config;
    int64_t width = t->address.n_layers * t->address.n_columns;
    if (!c->engram_layers) return ENG_OK;
    if (c->rows == ENG_ROWS_ONE) {
        for (int64_t i = 0; i < n * width; i++) rows[i] = i % t->address.n_columns;
        return ENG_OK;
    }
    for (int64_t i = 0; i < n; i++) t->hash_ids[i] = c->compress ? c->token_map[ids[i]] : ids[i];
    EngProblem problem = {.op = ENG_OP_HASH, .threads = 1};
    EngArgs args = {.u.hash = {.tokens = t->hash_ids,
                               .n_tokens = n,
                               .n_live = n,
                               .starts = t->starts,
                               .n_seqs = n / c->seq_len,
                               .rows = rows}};
    problem.u.hash = (EngHashProblem){&t->address, c->batch_tokens};
    EngStatus status = t->hash->run(t->hash_state, &problem, &args, err);
    if (!status && c->rows == ENG_ROWS_SHUFFLED) shuffle_rows(t, n, number, rows);
    return status;
}

/* ---- a step ---- */

/* Zeros where a pass adds; gradients of matrices are written by it. */
static void clear_gradient(EngLane *lane)
{
    const EngTensors *tensors = &lane->trainer->tensors;
    for (int i = 0; i < tensors->n; i++) {
        const EngTensor *tensor = &tensors->list[i];
        if (tensor->group == ENG_GROUP_VECTOR || tensor->group == ENG_GROUP_VOCABULARY)
            memset(lane->gradient + tensor->at, 0,
                   (size_t)(tensor->rows * tensor->columns) * sizeof *lane->gradient);
    }
}

/* Forward and backward of the batch in t->batch, gradients of all lanes summed in lane 0's. */
static EngStatus batch_gradient(EngTrainer *t, double *loss, EngErr *err)
{
    const EngTrainConfig *c = &t->config;
    int threads = c->model.threads;
    atomic_int failed = 0;
    int64_t begin = eng_thread_cpu_ns();
    EngStatus status =
        eng_trainer_hash(t, t->batch, c->batch_tokens, (uint64_t)t->step, t->batch_rows, err);
    if (status) return status;
    t->ns[ENG_PART_ENGRAM] += eng_thread_cpu_ns() - begin;
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
    for (int i = 0; i < threads; i++) {
        EngLane *lane = &t->lanes[i];
        int64_t width = t->address.n_layers * t->address.n_columns;
        lane->tokens = lane->max_tokens, lane->total = c->batch_tokens;
        lane->ids = t->batch + lane->first, lane->target = lane->ids + c->batch_tokens;
        lane->rows = t->batch_rows + lane->first * width;
        lane->suppress = false, lane->value = NULL, lane->losses = NULL;
        eng_part_begin(lane);
        clear_gradient(lane);
        memset(lane->load, 0, (size_t)(c->model.layers * c->model.experts) * sizeof *lane->load);
        eng_part_end(lane, ENG_PART_REDUCE);
        EngErr own = {0};
        if (eng_lane_pass(lane, true, &own)) atomic_store(&failed, (int)own.status);
    }
    if (atomic_load(&failed))
        return ENG_FAIL(err, (EngStatus)atomic_load(&failed), "oneDNN failed in training");
    *loss = 0;
    begin = eng_thread_cpu_ns();
    for (int i = 0; i < threads; i++) {
        *loss += t->lanes[i].loss / (double)c->batch_tokens;
        if (i)
            eng_add(t->lanes[0].gradient, t->lanes[i].gradient, t->lanes[0].gradient,
                    (size_t)t->tensors.dense);
    }
    t->ns[ENG_PART_REDUCE] += eng_thread_cpu_ns() - begin;
    return ENG_OK;
}

static void take_batch(EngTrainer *t)
{
    int64_t length = t->config.seq_len, n = t->config.batch_tokens / length;
    for (int64_t s = 0; s < n; s++) {
        const int32_t *from = t->ids + t->order[t->step * n + s] * length;
        memcpy(t->batch + s * length, from, (size_t)length * sizeof *from);
        memcpy(t->batch + (n + s) * length, from + 1, (size_t)length * sizeof *from);
    }
}

static double rate_at(const EngTrainer *t, int64_t step)
{
    const EngTrainConfig *c = &t->config;
    double done = (double)step / (double)steps_of(t), rate = c->lr;
    if (step < c->warmup_steps) return rate * (double)(step + 1) / (double)c->warmup_steps;
    if (c->schedule == ENG_SCHEDULE_COSINE)
        rate *= c->final_lr + (1 - c->final_lr) * (1 + cos(3.14159265358979323846 * done)) / 2;
    if (c->schedule == ENG_SCHEDULE_STEP) rate *= done < 0.8 ? 1 : done < 0.9 ? 0.316 : 0.1;
    return rate;
}

/* Loss-free balancing, and what the batch's loads were. */
static void balance_experts(EngTrainer *t, double lr, EngTrainPoint *point)
{
    const EngTrainConfig *c = &t->config;
    int64_t experts = c->model.experts;
    double step = c->bias_step * (c->lr > 0 ? 1 - c->bias_decay + c->bias_decay * lr / c->lr : 1);
    double mean = (double)(c->batch_tokens * c->model.top_k) / (double)experts;
    point->load_max = 0, point->unused = 0;
    for (int64_t i = 0; i < c->model.layers * experts; i++) {
        int64_t load = 0;
        for (int lane = 0; lane < c->model.threads; lane++) load += t->lanes[lane].load[i];
        t->counts[i] += load;
        point->unused += !load;
        if ((double)load / mean > point->load_max) point->load_max = (double)load / mean;
        if ((double)load != mean) t->bias[i] += (EngReal)((double)load < mean ? step : -step);
    }
}

static int64_t spent_ns(const EngTrainer *t)
{
    int64_t parts[ENG_PART_COUNT], sum = 0;
    eng_trainer_times(t, parts);
    for (int i = 0; i < ENG_PART_COUNT; i++) sum += parts[i];
    return sum;
}

static EngStatus take_step(EngTrainer *t, EngErr *err)
{
    EngTrainPoint *point = &t->last;
    double log_vocab = log((double)t->config.model.vocab);
    take_batch(t);
    EngStatus status = batch_gradient(t, &point->loss, err);
    if (status) return status;
    point->lr = rate_at(t, t->step);
    if (!isfinite(point->loss) || point->loss > t->config.blow_up * log_vocab) {
        snprintf(t->failed, sizeof t->failed, "loss is %g at step %" PRId64 " (limit %g)",
                 point->loss, t->step, t->config.blow_up * log_vocab);
        return ENG_OK;
    }
    int64_t begin = eng_thread_cpu_ns();
    if (t->config.model.experts) balance_experts(t, point->lr, point);
    status = eng_optimizer_step(t, point->lr, &point->grad_norm, err);
    if (status) return status;
    eng_trainer_refresh(t);
    t->ns[ENG_PART_OPTIMIZER] += eng_thread_cpu_ns() - begin;
    t->step++;
    point->step = t->step, point->tokens = t->step * t->config.batch_tokens;
    point->cpu_s = (double)spent_ns(t) * 1e-9;
    if (!isfinite(point->grad_norm))
        snprintf(t->failed, sizeof t->failed, "norm of the gradient is %g at step %" PRId64,
                 point->grad_norm, t->step - 1);
    return ENG_OK;
}

int eng_trainer_alone(void)
{
    int threads = omp_get_max_threads(); /* oneDNN takes its number from OpenMP */
    if (threads != 1) omp_set_num_threads(1);
    return threads;
}

void eng_trainer_together(int threads)
{
    if (threads != 1) omp_set_num_threads(threads);
}

EngStatus eng_trainer_run(EngTrainer *t, int64_t until, EngTrainPointFn point, void *context,
                          EngTrainResult *result, EngErr *err)
{
    int64_t last = steps_of(t);
    EngStatus status = ENG_OK;
    if (!t->order) return ENG_FAIL(err, ENG_USAGE, "training: no data was given");
    if (until > 0 && until / t->config.batch_tokens < last) last = until / t->config.batch_tokens;
    int threads = eng_trainer_alone();
    for (bool go = true; go && t->step < last && !*t->failed && !status;) {
        status = take_step(t, err);
        if (!status && !*t->failed && point) go = point(context, &t->last);
    }
    eng_trainer_together(threads);
    *result = (EngTrainResult){.last = t->last, .finished = t->step == steps_of(t)};
    memcpy(result->failed, t->failed, sizeof t->failed);
    return status;
}

EngStatus eng_trainer_gradient(EngTrainer *t, const int32_t *ids, double *loss, EngErr *err)
{
    int64_t length = t->config.seq_len, n = t->config.batch_tokens / length;
    for (int64_t s = 0; s < n; s++) {
        memcpy(t->batch + s * length, ids + s * (length + 1), (size_t)length * sizeof *ids);
        memcpy(t->batch + (n + s) * length, ids + s * (length + 1) + 1,
               (size_t)length * sizeof *ids);
    }
    int threads = eng_trainer_alone();
    EngStatus status = batch_gradient(t, loss, err);
    eng_trainer_together(threads);
    return status;
}

/* ---- statistics ---- */

void eng_trainer_load_counts(const EngTrainer *t, int layer, int64_t *counts, float *bias)
{
    int experts = t->config.model.experts;
    for (int e = 0; e < experts; e++) {
        if (counts) counts[e] = t->counts[layer * experts + e];
        if (bias) bias[e] = (float)t->bias[layer * experts + e];
    }
}

void eng_trainer_reset_counts(EngTrainer *t)
{
    memset(t->counts, 0,
           (size_t)(t->config.model.layers * t->config.model.experts) * sizeof *t->counts);
}

const char *eng_train_part_name(EngTrainPart part)
{
    static const char *const names[ENG_PART_COUNT] = {"embed",  "streams",  "attention", "router",
                                                      "shared", "experts",  "engram",    "head",
                                                      "reduce", "optimizer"};
    return part < ENG_PART_COUNT ? names[part] : NULL;
}

void eng_trainer_times(const EngTrainer *t, int64_t ns[ENG_PART_COUNT])
{
    for (int part = 0; part < ENG_PART_COUNT; part++) {
        ns[part] = t->ns[part];
        for (int i = 0; i < t->config.model.threads; i++) ns[part] += t->lanes[i].ns[part];
    }
}
