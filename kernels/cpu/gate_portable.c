/* Gate + write-back in one pass over the streams, in portable C: for each token and stream, three
 * sums over key and stream, one sigmoid, then the write-back while both still lie in the nearest
 * cache (facts section 6, steps 3-6).
 *
 * bf16 pairs are read as 32-bit words: the upper half of a word is already an f32, the lower needs
 * one shift. So a block of 32 values is worked on as 16 odd and 16 even ones, without any
 * conversion or shuffle; the folded weights are stored in that order.
 */
#include "kernels/cpu/common.h"
#include "kernels/cpu/gate.h"

#define BLOCK ENG_GATE_BLOCK

/* The last, short block of a row, filled up with zeros, which add nothing to any sum. */
static void pad_block(const uint8_t *from, size_t bytes, uint8_t block[2 * BLOCK])
{
    memset(block, 0, 2 * BLOCK);
    memcpy(block, from, bytes);
}

static float sum_of_lanes(const EngLanesF32 *lanes)
{
    float part[ENG_LANES];
    memcpy(part, lanes, sizeof part);
    for (int width = ENG_LANES / 2; width; width /= 2)
        for (int i = 0; i < width; i++) part[i] += part[i + width];
    return part[0];
}

#define EVEN(words) ((EngLanesF32)((words) << 16))
#define ODD(words)  ((EngLanesF32)((words)&0xffff0000u))
/* f32 lanes to bf16 in the upper half of each word: ties to even, a NaN stays one. */
#define ROUND_UP_HALF(lanes, result)                                                               \
    do {                                                                                           \
        EngLanesU32 bits_ = (EngLanesU32)(lanes);                                                  \
        EngLanesU32 nan_ = (EngLanesU32)((lanes) != (lanes));                                      \
        EngLanesU32 near_ = bits_ + 0x7fffu + ((bits_ >> 16) & 1u);                                \
        (result) = ((near_ & ~nan_) | ((bits_ | 0x400000u) & nan_)) & 0xffff0000u;                 \
    } while (0)

/* Sums over one block, into sums[0..5]: xx, kk and dot of even and of odd values. */
static inline __attribute__((always_inline)) void add_block(const uint8_t *x, const uint8_t *key,
                                                            const float *w, EngLanesF32 sums[6])
{
    EngLanesU32 xw = *(const EngLanesU32 *)x, kw = *(const EngLanesU32 *)key;
    EngLanesF32 x0 = EVEN(xw), x1 = ODD(xw), k0 = EVEN(kw), k1 = ODD(kw);
    sums[0] += x0 * x0;
    sums[1] += x1 * x1;
    sums[2] += k0 * k0;
    sums[3] += k1 * k1;
    sums[4] += x0 * *(const EngLanesF32 *)w * k0;
    sums[5] += x1 * *(const EngLanesF32 *)(w + ENG_LANES) * k1;
}

ENG_CLONES static void sum_stream(const EngGateStream *stream, EngGateSums *out)
{
    const uint8_t *x = stream->x, *key = stream->key;
    const float *w = stream->w;
    size_t hidden = stream->hidden;
    EngLanesF32 sums[6] = {{0}};
    size_t i = 0;
    for (; i + BLOCK <= hidden; i += BLOCK) add_block(x + 2 * i, key + 2 * i, w + i, sums);
    if (i < hidden) {
        uint8_t last_x[2 * BLOCK], last_key[2 * BLOCK];
        pad_block(x + 2 * i, 2 * (hidden - i), last_x);
        pad_block(key + 2 * i, 2 * (hidden - i), last_key);
        add_block(last_x, last_key, w + i, sums);
    }
    for (int j = 0; j < 6; j += 2) sums[j] += sums[j + 1];
    out->xx = sum_of_lanes(&sums[0]);
    out->kk = sum_of_lanes(&sums[2]);
    out->dot = sum_of_lanes(&sums[4]);
}

static inline __attribute__((always_inline)) void
write_block(const uint8_t *x, const uint8_t *value, float gate, uint8_t *out)
{
    EngLanesU32 xw = *(const EngLanesU32 *)x, vw = *(const EngLanesU32 *)value, even, odd;
    EngLanesF32 y0 = EVEN(xw) + gate * EVEN(vw), y1 = ODD(xw) + gate * ODD(vw);
    ROUND_UP_HALF(y0, even);
    ROUND_UP_HALF(y1, odd);
    *(EngLanesU32 *)out = odd | even >> 16;
}

ENG_CLONES static void write_stream(const EngGateStream *stream)
{
    const uint8_t *x = stream->x, *value = stream->value;
    uint8_t *out = stream->out;
    size_t hidden = stream->hidden;
    float gate = stream->gate;
    size_t i = 0;
    for (; i + BLOCK <= hidden; i += BLOCK)
        write_block(x + 2 * i, value + 2 * i, gate, out + 2 * i);
    if (i < hidden) {
        uint8_t last_x[2 * BLOCK], last_value[2 * BLOCK];
        pad_block(x + 2 * i, 2 * (hidden - i), last_x);
        pad_block(value + 2 * i, 2 * (hidden - i), last_value);
        write_block(last_x, last_value, gate, last_x);
        memcpy(out + 2 * i, last_x, 2 * (hidden - i));
    }
}

static EngStatus run(void *opaque, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    static const EngGateSteps steps = {sum_stream, write_stream};
    (void)err;
    eng_cpu_gate_run(opaque, problem, &args->u.gate, &steps);
    return ENG_OK;
}

const EngKernel eng_cpu_gate_portable = {
    .op = ENG_OP_GATE,
    .name = "portable",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "gate and write-back in one pass, f32 lanes, in place or not",
    .supports = eng_cpu_gate_supports,
    .cost = eng_cpu_gate_cost,
    .create = eng_cpu_gate_create,
    .run = run,
    .destroy = eng_cpu_gate_destroy,
};
