/* Causal grouped-query attention over cached keys and values; see backbone.h. Queries are scored in
 * blocks, so that the scores of a long prompt never exist at once; scores and sums are f32 products
 * of oneDNN in both dtypes.
 */
#include <math.h>
#include <omp.h>
#include <stdatomic.h>
#include <string.h>

#include "bench/backbone/parts.h"
#include "bench/backbone/pointwise.h"

EngStatus eng_attend(const EngAttend *a, float *scores, EngErr *err)
{
    EngStatus status = ENG_OK;
    float scale = 1.0f / sqrtf((float)a->head_dim);
    for (int64_t at = 0; at < a->rows && !status; at += ENG_QUERY_BLOCK) {
        int64_t rows = a->rows - at < ENG_QUERY_BLOCK ? a->rows - at : ENG_QUERY_BLOCK;
        int64_t seen = a->visible + at + rows - 1, keys = seen < a->keys ? seen : a->keys;
        EngGemm score = {a->q + at * a->ldq,
                         a->k,
                         scores,
                         rows,
                         keys,
                         a->head_dim,
                         a->ldq,
                         a->ldkv,
                         keys,
                         true,
                         scale};
        status = eng_gemm(&score, err);
        if (status) break;
        for (int64_t r = 0; r < rows; r++) {
            int64_t own = a->visible + at + r;
            eng_softmax(scores + r * keys, own < keys ? own : keys, keys);
        }
        EngGemm sum = {
            scores, a->v, a->out + at * a->ldo, rows, a->head_dim, keys, keys, a->ldkv, a->ldo,
            false,  1};
        status = eng_gemm(&sum, err);
    }
    return status;
}

/* Keys (part 0) or values (part 1) of a sequence's head: [max_len, head_dim]. */
static float *cache_of(const EngBackbone *b, int layer, int slot, int part, int head)
{
    const EngBackboneConfig *c = &b->config;
    int64_t at = (((int64_t)layer * c->max_seqs + slot) * 2 + part) * c->kv_heads + head;
    return b->cache + at * c->max_len * c->head_dim;
}

/* Rotates queries and keys of one token, and appends keys and values. */
static void place_token(EngBackbone *b, int layer, int slot, int64_t token, int64_t position)
{
    const EngBackboneConfig *c = &b->config;
    int64_t dim = c->head_dim, half = dim / 2, width = (c->heads + 2 * c->kv_heads) * dim;
    float *row = b->qkv + token * width;
    eng_rope(row, c->heads + c->kv_heads, c->head_dim, b->cos + position * half,
             b->sin + position * half);
    for (int part = 0; part < 2; part++)
        for (int h = 0; h < c->kv_heads; h++)
            memcpy(cache_of(b, layer, slot, part, h) + position * dim,
                   row + (c->heads + part * c->kv_heads + h) * dim, (size_t)dim * sizeof *row);
}

typedef struct Task {
    EngBackbone *b;
    const EngBackboneStep *step;
    int layer;
    atomic_int status; /* the first failure */
} Task;

static int slot_of(const EngBackboneStep *step, int seq)
{
    return step->slots ? step->slots[seq] : seq;
}

static void attend_head(Task *task, int64_t index)
{
    EngBackbone *b = task->b;
    const EngBackboneConfig *c = &b->config;
    int seq = (int)(index / c->heads), head = (int)(index % c->heads);
    int slot = slot_of(task->step, seq), kv = head / (c->heads / c->kv_heads);
    int64_t first = task->step->starts[seq], rows = task->step->starts[seq + 1] - first;
    int64_t dim = c->head_dim, width = (c->heads + 2 * c->kv_heads) * dim;
    EngAttend attend = {.q = b->qkv + first * width + head * dim,
                        .k = cache_of(b, task->layer, slot, 0, kv),
                        .v = cache_of(b, task->layer, slot, 1, kv),
                        .out = b->heads + first * c->heads * dim + head * dim,
                        .ldq = width,
                        .ldkv = dim,
                        .ldo = c->heads * dim,
                        .rows = rows,
                        .keys = b->lengths[slot] + rows,
                        .visible = b->lengths[slot] + 1,
                        .head_dim = c->head_dim};
    int64_t longest = c->max_len > c->vision_patches ? c->max_len : c->vision_patches;
    float *scores = b->scores + omp_get_thread_num() * ENG_QUERY_BLOCK * longest;
    EngStatus status = eng_attend(&attend, scores, NULL);
    if (status) atomic_store(&task->status, (int)status);
}

EngStatus eng_attention(EngBackbone *b, int layer, const EngBackboneStep *step, EngErr *err)
{
    const EngBackboneConfig *c = &b->config;
    int64_t tokens = step->starts[step->n_seqs], d = c->hidden, inner = c->heads * c->head_dim;
    int64_t width = (c->heads + 2 * c->kv_heads) * c->head_dim;
    EngProduct qkv = {b->normed, eng_weight_of(b, ENG_W_QKV, layer, 0), b->qkv, tokens, d, width,
                      false};
    EngProduct out = {b->heads, eng_weight_of(b, ENG_W_OUT, layer, 0), b->y, tokens, inner, d,
                      false};
    EngStatus status = eng_product(b->products, &qkv, err);
    if (status) return status;
    for (int s = 0; s < step->n_seqs; s++)
        for (int64_t t = step->starts[s]; t < step->starts[s + 1]; t++)
            place_token(b, layer, slot_of(step, s), t,
                        b->lengths[slot_of(step, s)] + t - step->starts[s]);
    eng_emit(b, layer, ENG_ACT_QKV, 0, b->qkv, tokens, width);
    Task task = {.b = b, .step = step, .layer = layer};
    int64_t n = (int64_t)step->n_seqs * c->heads;
    int threads = c->threads;
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (threads > 1)
    for (int64_t i = 0; i < n; i++) attend_head(&task, i);
    if (atomic_load(&task.status))
        return ENG_FAIL(err, (EngStatus)atomic_load(&task.status), "oneDNN failed in attention");
    eng_emit(b, layer, ENG_ACT_CONTEXT, 0, b->heads, tokens, inner);
    return eng_product(b->products, &out, err);
}
