/* Gather with decode in portable C: `naive` looks every value up and waits for every row;
 * `portable` decodes by vectorizable arithmetic and prefetches bursts of rows. All row formats to
 * f32 and bf16, and fp8 rows copied undecoded. */
#include "kernels/cpu/decode.h"
#include "kernels/cpu/gather_loop.h"

/* ---- rows --------------------------------------------------------------------------------------
 */

static void fp8_to_f32(const EngGatherLoop *loop, const uint8_t *values, const uint8_t *scales,
                       uint8_t *out, uint8_t *out_scales)
{
    (void)out_scales;
    eng_cpu_decode_f32(values, scales, loop->groups, out);
}

static void fp8_to_bf16(const EngGatherLoop *loop, const uint8_t *values, const uint8_t *scales,
                        uint8_t *out, uint8_t *out_scales)
{
    (void)out_scales;
    eng_cpu_decode_bf16(values, scales, loop->groups, out);
}

static void fp8_to_f32_table(const EngGatherLoop *loop, const uint8_t *values,
                             const uint8_t *scales, uint8_t *out, uint8_t *out_scales)
{
    (void)out_scales;
    eng_cpu_decode_f32_table(values, scales, loop->groups, out);
}

static void fp8_to_bf16_table(const EngGatherLoop *loop, const uint8_t *values,
                              const uint8_t *scales, uint8_t *out, uint8_t *out_scales)
{
    (void)out_scales;
    eng_cpu_decode_bf16_table(values, scales, loop->groups, out);
}

static void int4_to_f32(const EngGatherLoop *loop, const uint8_t *values, const uint8_t *scales,
                        uint8_t *out, uint8_t *out_scales)
{
    (void)out_scales;
    eng_cpu_decode_int4_f32(values, scales, loop->groups, out);
}

static void int4_to_bf16(const EngGatherLoop *loop, const uint8_t *values, const uint8_t *scales,
                         uint8_t *out, uint8_t *out_scales)
{
    (void)out_scales;
    eng_cpu_decode_int4_bf16(values, scales, loop->groups, out);
}

static void copy_row(const EngGatherLoop *loop, const uint8_t *values, const uint8_t *scales,
                     uint8_t *out, uint8_t *out_scales)
{
    memcpy(out, values, loop->out_bytes);
    if (loop->out_scale_bytes) memcpy(out_scales, scales, loop->out_scale_bytes);
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

static void bf16_to_f32(const EngGatherLoop *loop, const uint8_t *values, const uint8_t *scales,
                        uint8_t *out, uint8_t *out_scales)
{
    (void)scales, (void)out_scales;
    widen(values, out, loop->dims);
}

static void f32_to_bf16(const EngGatherLoop *loop, const uint8_t *values, const uint8_t *scales,
                        uint8_t *out, uint8_t *out_scales)
{
    (void)scales, (void)out_scales;
    narrow(values, out, loop->dims);
}

/* ---- variants ----------------------------------------------------------------------------------
 */

static EngGatherRowFn *row_fn_of(const EngGatherProblem *p, bool tables)
{
    EngRowFormat format = p->table.format;
    if (p->out == ENG_FP8) return copy_row;
    if (format == ENG_ROW_BF16) return p->out == ENG_BF16 ? copy_row : bf16_to_f32;
    if (format == ENG_ROW_F32) return p->out == ENG_BF16 ? f32_to_bf16 : copy_row;
    if (format == ENG_ROW_INT4) return p->out == ENG_BF16 ? int4_to_bf16 : int4_to_f32;
    if (p->out == ENG_BF16) return tables ? fp8_to_bf16_table : fp8_to_bf16;
    return tables ? fp8_to_f32_table : fp8_to_f32;
}

/* The row function is known at run time only: it comes along as the loop's state. */
typedef struct Plan {
    EngGatherRowFn *row_fn;
} Plan;

static void call_row(const EngGatherLoop *loop, const uint8_t *values, const uint8_t *scales,
                     uint8_t *out, uint8_t *out_scales)
{
    ((const Plan *)loop->state)->row_fn(loop, values, scales, out, out_scales);
}

static void part_plain(const EngGatherLoop *loop)
{
    eng_gather_bursts(loop, call_row, 1, 0, ENG_ROWS_ANY);
}

static void part_bursts(const EngGatherLoop *loop)
{
    if (loop->row_bytes > 512)
        eng_gather_bursts(loop, call_row, 12, 12, ENG_ROWS_ANY);
    else
        eng_gather_bursts(loop, call_row, 48, 48, ENG_ROWS_ANY);
}

static EngStatus run_naive(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    (void)state, (void)err;
    Plan plan = {row_fn_of(&problem->u.gather, true)};
    eng_cpu_gather_parts(problem, &args->u.gather, part_plain, &plan, SIZE_MAX);
    return ENG_OK;
}

static EngStatus run_portable(void *state, const EngProblem *problem, const EngArgs *args,
                              EngErr *err)
{
    (void)state, (void)err;
    Plan plan = {row_fn_of(&problem->u.gather, false)};
    eng_cpu_gather_parts(problem, &args->u.gather, part_bursts, &plan, SIZE_MAX);
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
    .summary = "bursts of 48 rows prefetched back to back, fp8 by vectorized arithmetic",
    .tunables = eng_cpu_gather_tunables,
    .supports = eng_cpu_gather_supports,
    .cost = eng_cpu_gather_cost,
    .run = run_portable,
};
