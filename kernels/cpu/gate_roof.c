/* Roof of gate + write-back: streams, keys and value are read and the streams rewritten, in place
 * when the arguments say so, with one exclusive-or per word for maths. The words of kv are masked
 * by a value that is 0 but unknown to the compiler: the streams keep their bits, so that a buffer
 * can be measured any number of times.
 */
#include "kernels/cpu/common.h"
#include "kernels/cpu/gate.h"

#include "base/mem.h"

#include <omp.h>

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    (void)problem;
    return eng_alloc_or(out, 1, sizeof(uint64_t), "roof of the gate", err); /* zeroed: the mask */
}

ENG_CLONES static void rewrite(const uint8_t *x, const uint8_t *key, const uint8_t *value,
                               size_t bytes, uint64_t mask, uint8_t *out)
{
    size_t i = 0;
    for (; i + sizeof mask <= bytes; i += sizeof mask) {
        uint64_t a, b, c;
        memcpy(&a, x + i, sizeof a);
        memcpy(&b, key + i, sizeof b);
        memcpy(&c, value + i, sizeof c);
        a ^= (b ^ c) & mask;
        memcpy(out + i, &a, sizeof a);
    }
    for (; i < bytes; i++) out[i] = (uint8_t)(x[i] ^ ((key[i] ^ value[i]) & (uint8_t)mask));
}

static EngStatus run(void *opaque, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngGateProblem *p = &problem->u.gate;
    const EngGateArgs *a = &args->u.gate;
    size_t row = 2 * (size_t)p->hidden, streams = (size_t)p->streams;
    uint64_t mask = *(const volatile uint64_t *)opaque;
    int threads = problem->threads;
    (void)err;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        int64_t from, to;
        eng_cpu_share(p->tokens, omp_get_num_threads(), omp_get_thread_num(), &from, &to);
        for (int64_t t = from; t < to; t++) {
            const uint8_t *keys = (const uint8_t *)a->kv + (size_t)t * (streams + 1) * row;
            for (size_t s = 0; s < streams; s++) {
                size_t at = ((size_t)t * streams + s) * row;
                rewrite((const uint8_t *)a->streams_in + at, keys + s * row, keys + streams * row,
                        row, mask, (uint8_t *)a->streams_out + at);
            }
        }
    }
    return ENG_OK;
}

const EngKernel eng_cpu_gate_roof_inplace = {
    .op = ENG_OP_GATE,
    .name = "roof_inplace",
    .backend = ENG_CPU,
    .roof = true,
    .checked = false,
    .summary = "roof: streams and kv read, streams rewritten with the same bits",
    .supports = eng_cpu_gate_supports,
    .cost = eng_cpu_gate_cost,
    .create = create,
    .run = run,
    .destroy = eng_free,
};
