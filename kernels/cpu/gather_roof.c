/* Roofs of the gather: the same rows read and the same number of output bytes stored, without
 * decoding. One family, tuned over how far ahead rows are requested: `roof_copy_d*` rolling,
 * `roof_copy_g*` in groups. For packed fp8 output this is the operation itself.
 */
#include "kernels/cpu/common.h"
#include "kernels/cpu/gather.h"

#define BLOCK 64

/* Stores every block of a row `times` times: output 2 or 4 times as wide as the row. */
ENG_CLONES static void copy_times(const uint8_t *from, size_t n, int times, uint8_t *out)
{
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK)
        for (int j = 0; j < times; j++, out += BLOCK) memcpy(out, from + i, BLOCK);
    for (int j = 0; i < n && j < times; j++, out += n - i) memcpy(out, from + i, n - i);
}

/* Output half as wide as the row (f32 to bf16): both halves are read and folded. */
ENG_CLONES static void fold_halves(const uint8_t *from, size_t half, uint8_t *out)
{
    for (size_t i = 0; i < half; i++) out[i] = from[i] ^ from[half + i];
}

static void read_scales(const uint8_t *scales, size_t n, uint8_t *out)
{
    uint8_t head[8] = {0};
    for (size_t i = 0; i < n; i += sizeof head) {
        uint64_t part = 0, sum;
        memcpy(&part, scales + i, n - i < sizeof part ? n - i : sizeof part);
        memcpy(&sum, head, sizeof sum);
        sum ^= part;
        memcpy(head, &sum, sizeof sum);
    }
    memcpy(out, head, sizeof head); /* stored, so that the loads cannot be left out */
}

static void copy_row(const EngTable *table, int64_t row, size_t out_bytes, uint8_t *out,
                     uint8_t *out_scales)
{
    size_t n = eng_row_value_bytes(table->format, table->row_dims);
    size_t scale_bytes = eng_row_scale_bytes(table->format, table->row_dims);
    const uint8_t *values = table->values + (size_t)row * n;
    if (out_bytes == n)
        memcpy(out, values, n);
    else if (out_bytes > n)
        copy_times(values, n, (int)(out_bytes / n), out);
    else
        fold_halves(values, out_bytes, out);
    if (out_scales)
        memcpy(out_scales, table->scales + (size_t)row * scale_bytes, scale_bytes);
    else if (scale_bytes)
        read_scales(table->scales + (size_t)row * scale_bytes, scale_bytes, out);
}

static void to_f32(const EngTable *table, int64_t row, uint8_t *out, uint8_t *out_scales)
{
    copy_row(table, row, eng_dtype_bytes(ENG_F32, (size_t)table->row_dims), out, out_scales);
}

static void to_bf16(const EngTable *table, int64_t row, uint8_t *out, uint8_t *out_scales)
{
    copy_row(table, row, eng_dtype_bytes(ENG_BF16, (size_t)table->row_dims), out, out_scales);
}

static void to_fp8(const EngTable *table, int64_t row, uint8_t *out, uint8_t *out_scales)
{
    copy_row(table, row, eng_dtype_bytes(ENG_FP8, (size_t)table->row_dims), out, out_scales);
}

static void run_roof(const EngProblem *problem, const EngArgs *args, EngPrefetchPlan plan,
                     int depth)
{
    EngDtype out = problem->u.gather.out;
    EngGatherRow *row_fn = out == ENG_F32 ? to_f32 : out == ENG_BF16 ? to_bf16 : to_fp8;
    eng_cpu_gather_rows(problem, &args->u.gather, row_fn, plan, depth);
}

#define ROOF(id, text_name, plan, depth, text)                                                     \
    static EngStatus run_##id(void *state, const EngProblem *problem, const EngArgs *args,         \
                              EngErr *err)                                                         \
    {                                                                                              \
        (void)state, (void)err;                                                                    \
        run_roof(problem, args, plan, depth);                                                      \
        return ENG_OK;                                                                             \
    }                                                                                              \
    const EngKernel eng_cpu_gather_roof_##id = {                                                   \
        .op = ENG_OP_GATHER,                                                                       \
        .name = text_name,                                                                         \
        .backend = ENG_CPU,                                                                        \
        .roof = true,                                                                              \
        .checked = false,                                                                          \
        .summary = "roof: same rows read, same bytes stored, no decoding; " text,                  \
        .supports = eng_cpu_gather_supports,                                                       \
        .cost = eng_cpu_gather_cost,                                                               \
        .run = run_##id,                                                                           \
    }

ROOF(d0, "roof_copy_d0", ENG_PREFETCH_NONE, 0, "no prefetch");
ROOF(d16, "roof_copy_d16", ENG_PREFETCH_ROLLING, 16, "16 rows ahead");
ROOF(d48, "roof_copy_d48", ENG_PREFETCH_ROLLING, 48, "48 rows ahead");
ROOF(g24, "roof_copy_g24", ENG_PREFETCH_GROUPS, 24, "groups of 24 rows");
ROOF(g48, "roof_copy_g48", ENG_PREFETCH_GROUPS, 48, "groups of 48 rows");
