/* Gather with decode in portable C: `naive` looks every value up and waits for every row;
 * `portable` decodes by vectorizable arithmetic and prefetches groups of rows. All three row
 * formats to f32 and bf16, and fp8 rows copied undecoded.
 */
#include "kernels/cpu/common.h"
#include "kernels/cpu/decode.h"
#include "kernels/cpu/gather.h"

/* Rows asked for back to back: of 24 to 64 the flat part of the curve (engram row: 5 lines). */
#define GROUP_ROWS 48

/* ---- rows --------------------------------------------------------------------------------------
 */

static const uint8_t *values_of(const EngTable *table, int64_t row)
{
    return table->values + (size_t)row * eng_row_value_bytes(table->format, table->row_dims);
}

static const uint8_t *scales_of(const EngTable *table, int64_t row)
{
    return table->scales + (size_t)row * eng_row_scale_bytes(table->format, table->row_dims);
}

static void fp8_to_f32(const EngTable *table, int64_t row, uint8_t *out, uint8_t *out_scales)
{
    (void)out_scales;
    eng_cpu_decode_f32(values_of(table, row), scales_of(table, row),
                       table->row_dims / ENG_SCALE_GROUP, out);
}

static void fp8_to_bf16(const EngTable *table, int64_t row, uint8_t *out, uint8_t *out_scales)
{
    (void)out_scales;
    eng_cpu_decode_bf16(values_of(table, row), scales_of(table, row),
                        table->row_dims / ENG_SCALE_GROUP, out);
}

static void fp8_to_f32_table(const EngTable *table, int64_t row, uint8_t *out, uint8_t *out_scales)
{
    (void)out_scales;
    eng_cpu_decode_f32_table(values_of(table, row), scales_of(table, row),
                             table->row_dims / ENG_SCALE_GROUP, out);
}

static void fp8_to_bf16_table(const EngTable *table, int64_t row, uint8_t *out, uint8_t *out_scales)
{
    (void)out_scales;
    eng_cpu_decode_bf16_table(values_of(table, row), scales_of(table, row),
                              table->row_dims / ENG_SCALE_GROUP, out);
}

static void copy_row(const EngTable *table, int64_t row, uint8_t *out, uint8_t *out_scales)
{
    memcpy(out, values_of(table, row), eng_row_value_bytes(table->format, table->row_dims));
    if (out_scales)
        memcpy(out_scales, scales_of(table, row),
               eng_row_scale_bytes(table->format, table->row_dims));
}

ENG_CLONES static void widen(const uint8_t *from, uint8_t *out, int n)
{
    for (int i = 0; i < n; i++) {
        uint16_t narrow;
        memcpy(&narrow, from + 2 * (size_t)i, sizeof narrow);
        uint32_t wide = (uint32_t)narrow << 16;
        memcpy(out + 4 * (size_t)i, &wide, sizeof wide);
    }
}

ENG_CLONES static void narrow(const uint8_t *from, uint8_t *out, int n)
{
    for (int i = 0; i < n; i++) {
        float wide;
        memcpy(&wide, from + 4 * (size_t)i, sizeof wide);
        uint16_t bits = eng_cpu_bf16_of(wide);
        memcpy(out + 2 * (size_t)i, &bits, sizeof bits);
    }
}

static void bf16_to_f32(const EngTable *table, int64_t row, uint8_t *out, uint8_t *out_scales)
{
    (void)out_scales;
    widen(values_of(table, row), out, table->row_dims);
}

static void f32_to_bf16(const EngTable *table, int64_t row, uint8_t *out, uint8_t *out_scales)
{
    (void)out_scales;
    narrow(values_of(table, row), out, table->row_dims);
}

/* ---- variants ----------------------------------------------------------------------------------
 */

static EngGatherRow *row_fn_of(const EngGatherProblem *p, bool tables)
{
    if (p->table.format == ENG_ROW_FP8) {
        if (p->out == ENG_FP8) return copy_row;
        if (p->out == ENG_BF16) return tables ? fp8_to_bf16_table : fp8_to_bf16;
        return tables ? fp8_to_f32_table : fp8_to_f32;
    }
    if (p->table.format == ENG_ROW_BF16) return p->out == ENG_BF16 ? copy_row : bf16_to_f32;
    return p->out == ENG_BF16 ? f32_to_bf16 : copy_row;
}

static EngStatus run_naive(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    (void)state, (void)err;
    eng_cpu_gather_rows(problem, &args->u.gather, row_fn_of(&problem->u.gather, true),
                        ENG_PREFETCH_NONE, 0);
    return ENG_OK;
}

static EngStatus run_portable(void *state, const EngProblem *problem, const EngArgs *args,
                              EngErr *err)
{
    (void)state, (void)err;
    eng_cpu_gather_rows(problem, &args->u.gather, row_fn_of(&problem->u.gather, false),
                        ENG_PREFETCH_GROUPS, GROUP_ROWS);
    return ENG_OK;
}

const EngKernel eng_cpu_gather_naive = {
    .op = ENG_OP_GATHER,
    .name = "naive",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "row by row without prefetch, fp8 by table look-up",
    .supports = eng_cpu_gather_supports,
    .cost = eng_cpu_gather_cost,
    .run = run_naive,
};

const EngKernel eng_cpu_gather_portable = {
    .op = ENG_OP_GATHER,
    .name = "portable",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "groups of 48 rows prefetched back to back, fp8 by vectorized arithmetic",
    .supports = eng_cpu_gather_supports,
    .cost = eng_cpu_gather_cost,
    .run = run_portable,
};
