/* Roofs of gate + write-back: streams, keys and value are read and the streams rewritten, in place
 * when the arguments say so, with two logical operations per word for maths. The words of kv are
 * masked by a value that is 0 but unknown to the compiler: the streams keep their bits, so that a
 * buffer can be measured any number of times.
 *
 * A family, of which the best is the limit: `roof_inplace` leaves fetching to the processor,
 * `roof_ahead` also asks for input and key some lines early, as the fast kernels do.
 */
#include "kernels/cpu/common.h"
#include "kernels/cpu/gate.h"

#include "base/mem.h"

#include <omp.h>

#define AHEAD_BYTES 4096

typedef uint64_t Words __attribute__((vector_size(64), aligned(1), may_alias));

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    (void)problem;
    return eng_alloc_or(out, 1, sizeof(uint64_t), "roof of the gate", err); /* zeroed: the mask */
}

/* Whole vectors of 64 bytes, two at a time: what the widest registers of the machine take at once.
 */
static inline __attribute__((always_inline)) void rewrite(const uint8_t *x, const uint8_t *key,
                                                          const uint8_t *value, size_t bytes,
                                                          uint64_t mask, uint8_t *out, size_t ahead)
{
    size_t i = 0;
    for (; i + 2 * sizeof(Words) <= bytes; i += 2 * sizeof(Words)) {
        if (ahead) {
            __builtin_prefetch(x + i + ahead);
            __builtin_prefetch(x + i + 64 + ahead);
            __builtin_prefetch(key + i + ahead);
            __builtin_prefetch(key + i + 64 + ahead);
        }
        Words a = *(const Words *)(x + i), b = *(const Words *)(x + i + 64);
        a ^= (*(const Words *)(key + i) ^ *(const Words *)(value + i)) & mask;
        b ^= (*(const Words *)(key + i + 64) ^ *(const Words *)(value + i + 64)) & mask;
        *(Words *)(out + i) = a;
        *(Words *)(out + i + 64) = b;
    }
    for (; i < bytes; i++) out[i] = (uint8_t)(x[i] ^ ((key[i] ^ value[i]) & (uint8_t)mask));
}

typedef void Rewrite(const uint8_t *x, const uint8_t *key, const uint8_t *value, size_t bytes,
                     uint64_t mask, uint8_t *out);

ENG_CLONES static void rewrite_plain(const uint8_t *x, const uint8_t *key, const uint8_t *value,
                                     size_t bytes, uint64_t mask, uint8_t *out)
{
    rewrite(x, key, value, bytes, mask, out, 0);
}

ENG_CLONES static void rewrite_ahead(const uint8_t *x, const uint8_t *key, const uint8_t *value,
                                     size_t bytes, uint64_t mask, uint8_t *out)
{
    rewrite(x, key, value, bytes, mask, out, AHEAD_BYTES);
}

static void run(void *opaque, const EngProblem *problem, const EngArgs *args, Rewrite *rewrite_row)
{
    const EngGateProblem *p = &problem->u.gate;
    const EngGateArgs *a = &args->u.gate;
    size_t row = 2 * (size_t)p->hidden, streams = (size_t)p->streams;
    uint64_t mask = *(const volatile uint64_t *)opaque;
    int threads = problem->threads;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        int64_t from, to;
        eng_cpu_share(p->tokens, omp_get_num_threads(), omp_get_thread_num(), &from, &to);
        for (int64_t t = from; t < to; t++) {
            const uint8_t *keys = (const uint8_t *)a->kv + (size_t)t * (streams + 1) * row;
            for (size_t s = 0; s < streams; s++) {
                size_t at = ((size_t)t * streams + s) * row;
                rewrite_row((const uint8_t *)a->streams_in + at, keys + s * row,
                            keys + streams * row, row, mask, (uint8_t *)a->streams_out + at);
            }
        }
    }
}

static EngStatus run_plain(void *opaque, const EngProblem *problem, const EngArgs *args,
                           EngErr *err)
{
    (void)err;
    run(opaque, problem, args, rewrite_plain);
    return ENG_OK;
}

static EngStatus run_ahead(void *opaque, const EngProblem *problem, const EngArgs *args,
                           EngErr *err)
{
    (void)err;
    run(opaque, problem, args, rewrite_ahead);
    return ENG_OK;
}

#define ROOF(id, run_fn, text)                                                                     \
    const EngKernel eng_cpu_gate_##id = {                                                          \
        .op = ENG_OP_GATE,                                                                         \
        .name = #id,                                                                               \
        .backend = ENG_CPU,                                                                        \
        .roof = true,                                                                              \
        .checked = false,                                                                          \
        .summary = text,                                                                           \
        .supports = eng_cpu_gate_supports,                                                         \
        .cost = eng_cpu_gate_cost,                                                                 \
        .create = create,                                                                          \
        .run = run_fn,                                                                             \
        .destroy = eng_free,                                                                       \
    }

ROOF(roof_inplace, run_plain, "roof: streams and kv read, streams rewritten with the same bits");
ROOF(roof_ahead, run_ahead, "roof: the same with input and key asked for 4 KB early");
