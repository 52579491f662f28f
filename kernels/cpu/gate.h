/* Gate + write-back on the CPU: the variants, and the loop over tokens and streams they share.
 * Internal to kernels/cpu.
 *
 * A variant brings two leaf functions: three sums over a stream and its key, and the write-back of
 * one stream. Both work on blocks of 32 bf16 values as 16 words of two: the upper half of a word is
 * an f32 already, the lower needs one shift. The folded weights lie in that order.
 */
#ifndef ENG_KERNELS_CPU_GATE_H
#define ENG_KERNELS_CPU_GATE_H

#include <engram/kernels.h>

#define ENG_GATE_BLOCK 32

typedef struct EngGateState {
    size_t hidden_padded; /* to whole blocks; weights there are 0 */
    float *w; /* [streams, hidden_padded]: q_weight * k_weight, per block 16 even, then 16 odd */
} EngGateState;

typedef struct EngGateSums {
    float xx, kk, dot; /* of x * x, key * key, and x * w * key */
} EngGateSums;

/* One stream of one token. bf16 buffers of `hidden` values, any alignment; out may be x. */
typedef struct EngGateStream {
    const uint8_t *x, *key, *value;
    const float *w;
    uint8_t *out;
    size_t hidden;
    float gate;
    const uint8_t *next_x, *next_key; /* of the stream after it */
    size_t next_bytes;                /* of each that are to be fetched: 0 at the end */
    const uint8_t *next_value;        /* a part of the next token's value, or NULL */
    size_t next_value_bytes;
} EngGateStream;

/* Settings of the variants that fetch: percent of the next stream that is asked for early. */
extern const EngTunable eng_cpu_gate_tunables[];

typedef struct EngGateSteps {
    void (*sum)(const EngGateStream *stream, EngGateSums *sums);
    void (*write)(const EngGateStream *stream);
} EngGateSteps;

EngStatus eng_cpu_gate_create(const EngProblem *problem, void **state, EngErr *err);
void eng_cpu_gate_destroy(void *state);
/* run() of every variant: masked tokens, gates and scores are dealt with here. */
void eng_cpu_gate_run(const EngGateState *state, const EngProblem *problem, const EngGateArgs *args,
                      const EngGateSteps *steps);

extern const EngKernel eng_cpu_gate_portable, eng_cpu_gate_avx2, eng_cpu_gate_avx512;
extern const EngKernel eng_cpu_gate_roof_inplace, eng_cpu_gate_roof_ahead;

#endif
