/* A kernel of your own in one file: fp8 rows to bf16, one row ahead. Build it with
 *
 *     gcc -O3 -march=native -shared -fPIC -Iinclude -o mine.so docs/examples/gather_plugin.c
 *
 * and have it checked against the oracle and measured beside the built-in variants with
 *
 *     engram run gather --plugin=./mine.so -a tokens=64
 *
 * -DREPEAT=N decodes every N-th row twice: a kernel that is slower by a known share, for trying out
 * `engram ab`. N is read at run time, so that both builds hold the same instructions: a compiler
 * that lays out a changed loop otherwise may win more than the change costs.
 */
#include <engram/plugin.h>

#include <string.h>

#ifndef REPEAT
#define REPEAT 0
#endif

/* Value of an e4m3fn byte as the top half of a float: 4 exponent bits (bias 7), 3 of mantissa. */
static float value_of(uint8_t byte)
{
    uint32_t magnitude = byte & 0x7fu, bits;
    float value;
    if (magnitude < 8) { /* subnormal: steps of 2^-9 */
        value = (float)magnitude * 0x1p-9f;
        return byte & 0x80 ? -value : value;
    }
    bits = ((uint32_t)(byte & 0x80) << 24) | ((magnitude << 20) + (120u << 23));
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float g_values[256];
static const volatile int g_repeat = REPEAT;

static EngStatus supports(const EngProblem *problem, EngErr *why)
{
    const EngGatherProblem *p = &problem->u.gather;
    if (p->table.format != ENG_ROW_FP8 || p->out != ENG_BF16)
        return eng_plugin_refuse(why, ENG_UNSUPPORTED, "only split fp8 rows to bf16");
    if (problem->threads != 1) return eng_plugin_refuse(why, ENG_UNSUPPORTED, "one thread only");
    return ENG_OK;
}

static void cost(const EngProblem *problem, EngCost *out)
{
    const EngGatherProblem *p = &problem->u.gather;
    double values = (double)p->tokens * p->columns * p->table.row_dims;
    out->flops = values;
    out->read_bytes = values * (1 + 1.0 / ENG_SCALE_GROUP);
    out->write_bytes = 2 * values;
}

static EngStatus create(const EngProblem *problem, void **state, EngErr *err)
{
    (void)problem, (void)err;
    for (int i = 0; i < 256; i++) g_values[i] = value_of((uint8_t)i);
    *state = NULL;
    return ENG_OK;
}

/* Scales of 2^-117 and up keep the product normal, and exact in bf16: 4 significant bits. */
static void decode(const uint8_t *values, const uint8_t *scales, int dims, uint16_t *out)
{
    for (int g = 0; g < dims / ENG_SCALE_GROUP; g++) {
        uint32_t scale_bits = scales[g] ? (uint32_t)scales[g] << 23 : 0x00400000u;
        float scale;
        memcpy(&scale, &scale_bits, sizeof scale);
        for (int i = 0; i < ENG_SCALE_GROUP; i++) {
            float value = g_values[values[g * ENG_SCALE_GROUP + i]] * scale;
            uint32_t bits;
            memcpy(&bits, &value, sizeof bits);
            out[g * ENG_SCALE_GROUP + i] = (uint16_t)(bits >> 16);
        }
    }
}

static EngStatus run(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngGatherProblem *p = &problem->u.gather;
    const EngGatherArgs *a = &args->u.gather;
    int dims = p->table.row_dims;
    size_t n_scales = (size_t)dims / ENG_SCALE_GROUP;
    uint16_t *out = a->out;
    int repeat = g_repeat;
    (void)state, (void)err;
    for (int64_t t = 0; t < p->tokens; t++)
        for (int c = 0; c < p->columns; c++, out += dims) {
            size_t row = (size_t)a->rows[t * a->row_stride + c];
            size_t next = (size_t)a->rows[t * a->row_stride + (c + 1 < p->columns ? c + 1 : c)];
            __builtin_prefetch(p->table.values + next * (size_t)dims);
            decode(p->table.values + row * (size_t)dims, p->table.scales + row * n_scales, dims,
                   out);
            if (repeat && (t * p->columns + c) % repeat == 0) {
                __asm__ volatile("" ::: "memory");
                decode(p->table.values + row * (size_t)dims, p->table.scales + row * n_scales, dims,
                       out);
            }
        }
    return ENG_OK;
}

static const EngKernel g_mine = {
    .op = ENG_OP_GATHER,
    .name = "mine",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "example plugin: table decode, one row ahead",
    .supports = supports,
    .cost = cost,
    .create = create,
    .run = run,
};
static const EngKernel *const g_kernels[] = {&g_mine, NULL};

const EngPlugin *eng_plugin(void)
{
    static const EngPlugin plugin = {ENG_PLUGIN_VERSION, "mine", g_kernels};
    return &plugin;
}
