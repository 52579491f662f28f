/* Constraints and costs of each operation, the same for all its CPU variants; see common.h. */
#include "kernels/cpu/common.h"

#include "base/mem.h"

/* Whether a buffer of t * n elements of `size` bytes can exist at all. */
static bool fits(int64_t t, size_t n, size_t size)
{
    size_t bytes;
    return t >= 0 && eng_mul_size((size_t)t, n, &bytes) && eng_mul_size(bytes, size, &bytes) &&
           bytes <= PTRDIFF_MAX;
}

static EngStatus check_common(const EngProblem *problem, int64_t tokens, EngErr *why)
{
    if (problem->threads < 1)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "threads = %d, must be 1 or more", problem->threads);
    if (tokens < 0)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "tokens = %lld is negative", (long long)tokens);
    return ENG_OK;
}

EngStatus eng_cpu_gather_supports(const EngProblem *problem, EngErr *why)
{
    const EngGatherProblem *p = &problem->u.gather;
    const EngTable *table = &p->table;
    EngStatus status = check_common(problem, p->tokens, why);
    if (status) return status;
    if (table->row_dims < 1 || p->columns < 1 || table->rows < 0)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "row dims %d, columns %d: must be positive",
                        table->row_dims, p->columns);
    if ((unsigned)table->format >= ENG_ROW_FORMAT_COUNT)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "unknown row format %d", (int)table->format);
    if (eng_row_has_groups(table->format) && table->row_dims % ENG_SCALE_GROUP)
        return ENG_FAIL(why, ENG_UNSUPPORTED,
                        "%s rows need row dims that are a multiple of %d, not %d",
                        eng_row_format_name(table->format), ENG_SCALE_GROUP, table->row_dims);
    if (p->out == ENG_FP8 && !eng_row_is_fp8(table->format))
        return ENG_FAIL(why, ENG_UNSUPPORTED, "fp8 output needs an fp8 table, not %s",
                        eng_row_format_name(table->format));
    size_t width = (size_t)p->columns * (size_t)table->row_dims;
    if (!fits(p->tokens, width, 4) || !fits(table->rows, (size_t)table->row_dims, 4))
        return ENG_FAIL(why, ENG_UNSUPPORTED, "%lld tokens of %zu values do not fit memory",
                        (long long)p->tokens, width);
    return ENG_OK;
}

void eng_cpu_gather_cost(const EngProblem *problem, EngCost *cost)
{
    const EngGatherProblem *p = &problem->u.gather;
    double rows = (double)p->tokens * p->columns;
    size_t dims = (size_t)p->table.row_dims;
    size_t scale_bytes = eng_row_scale_bytes(p->table.format, p->table.row_dims);
    size_t out_scale_bytes = p->out == ENG_FP8 ? dims / ENG_SCALE_GROUP : 0;
    bool decodes = eng_row_has_groups(p->table.format) && p->out != ENG_FP8;
    cost->flops = decodes ? rows * (double)dims : 0; /* one product with the scale */
    cost->read_bytes =
        rows * (double)(eng_row_value_bytes(p->table.format, p->table.row_dims) + scale_bytes);
    cost->write_bytes = rows * (double)(eng_dtype_bytes(p->out, dims) + out_scale_bytes);
}

EngStatus eng_cpu_project_supports(const EngProblem *problem, EngErr *why)
{
    const EngProjectProblem *p = &problem->u.project;
    EngStatus status = check_common(problem, p->tokens, why);
    if (status) return status;
    if (p->n < 1 || p->k < 1)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "n = %d, k = %d: must be positive", p->n, p->k);
    if (p->x != ENG_FP8 && p->x != ENG_BF16)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "input type %s: must be fp8 or bf16",
                        eng_dtype_name(p->x));
    if (p->weights != ENG_FP8 && p->weights != ENG_BF16)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "weight type %s: must be fp8 or bf16",
                        eng_dtype_name(p->weights));
    if (p->out != ENG_BF16 && p->out != ENG_F32)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "output type %s: must be bf16 or f32",
                        eng_dtype_name(p->out));
    if ((p->x == ENG_FP8 || p->weights == ENG_FP8) && p->k % ENG_SCALE_GROUP)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "fp8 needs k that is a multiple of %d, not %d",
                        ENG_SCALE_GROUP, p->k);
    if (p->weights == ENG_FP8 && p->n % ENG_SCALE_GROUP)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "fp8 weights need n that is a multiple of %d, not %d",
                        ENG_SCALE_GROUP, p->n);
    if (!fits(p->tokens, (size_t)p->n, 4) || !fits(p->tokens, (size_t)p->k, 4))
        return ENG_FAIL(why, ENG_UNSUPPORTED, "%lld tokens of %d outputs do not fit memory",
                        (long long)p->tokens, p->n);
    return ENG_OK;
}

void eng_cpu_project_cost(const EngProblem *problem, EngCost *cost)
{
    const EngProjectProblem *p = &problem->u.project;
    double m = (double)p->tokens, n = p->n, k = p->k;
    double weight_bytes = n * k * (double)eng_dtype_bytes(p->weights, 1);
    double x_bytes = m * k * (double)eng_dtype_bytes(p->x, 1);
    if (p->weights == ENG_FP8) weight_bytes += n / ENG_SCALE_GROUP * (k / ENG_SCALE_GROUP);
    if (p->x == ENG_FP8) x_bytes += m * (k / ENG_SCALE_GROUP);
    cost->flops = 2 * m * n * k;
    cost->read_bytes = weight_bytes + x_bytes;
    cost->write_bytes = m * n * (double)eng_dtype_bytes(p->out, 1);
}

EngStatus eng_cpu_gate_supports(const EngProblem *problem, EngErr *why)
{
    const EngGateProblem *p = &problem->u.gate;
    EngStatus status = check_common(problem, p->tokens, why);
    if (status) return status;
    if (p->streams < 1 || p->hidden < 1 || p->streams > INT16_MAX)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "streams = %d, hidden = %d: out of range", p->streams,
                        p->hidden);
    if ((unsigned)p->formula >= ENG_GATE_FORMULA_COUNT)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "unknown gate formula %d", (int)p->formula);
    if (!fits(p->tokens, (size_t)(p->streams + 1) * (size_t)p->hidden, 2))
        return ENG_FAIL(why, ENG_UNSUPPORTED, "%lld tokens of %d x %d values do not fit memory",
                        (long long)p->tokens, p->streams + 1, p->hidden);
    return ENG_OK;
}

void eng_cpu_gate_cost(const EngProblem *problem, EngCost *cost)
{
    const EngGateProblem *p = &problem->u.gate;
    double values = (double)p->tokens * p->streams * p->hidden;
    /* Two squares and sums, a product of three and a sum, then a product and a sum. */
    cost->flops = values * (2 + 2 + 3 + 2);
    cost->read_bytes = 2 * values + 2.0 * (double)p->tokens * (p->streams + 1) * p->hidden;
    cost->write_bytes = 2 * values;
}

EngStatus eng_cpu_conv_supports(const EngProblem *problem, EngErr *why)
{
    const EngConvProblem *p = &problem->u.conv;
    EngStatus status = check_common(problem, p->tokens, why);
    if (status) return status;
    if (p->streams < 1 || p->hidden < 1 || p->streams > INT16_MAX)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "streams = %d, hidden = %d: out of range", p->streams,
                        p->hidden);
    if (p->kernel < 1 || p->kernel > 64 || p->dilation < 1 || p->dilation > 1024)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "kernel = %d, dilation = %d: out of range", p->kernel,
                        p->dilation);
    if (p->tokens > INT64_MAX / 2 ||
        !fits(p->tokens + 64 * 1024, (size_t)p->streams * (size_t)p->hidden, 4))
        return ENG_FAIL(why, ENG_UNSUPPORTED, "%lld tokens of %d x %d values do not fit memory",
                        (long long)p->tokens, p->streams, p->hidden);
    return ENG_OK;
}

void eng_cpu_conv_cost(const EngProblem *problem, EngCost *cost)
{
    const EngConvProblem *p = &problem->u.conv;
    double width = (double)p->streams * p->hidden;
    double values = (double)p->tokens * width;
    double state = (double)(p->kernel - 1) * p->dilation * width;
    /* Norm: square, sum, two products; taps: product and sum each; silu and the last sum: four. */
    cost->flops = values * (4 + 2.0 * p->kernel + 4);
    cost->read_bytes = 4 * (values + state + width * (p->kernel + 1));
    cost->write_bytes = 4 * (values + state);
}

EngProblem eng_cpu_lookup_gather(const EngProblem *problem, EngDtype x)
{
    const EngLookupProblem *p = &problem->u.lookup;
    return (EngProblem){
        .op = ENG_OP_GATHER,
        .threads = problem->threads,
        .u.gather = {.table = p->table, .columns = p->columns, .tokens = p->tokens, .out = x}};
}

EngProblem eng_cpu_lookup_project(const EngProblem *problem, EngDtype x)
{
    const EngLookupProblem *p = &problem->u.lookup;
    EngProblem project = {.op = ENG_OP_PROJECT,
                          .threads = problem->threads,
                          .u.project = {.tokens = p->tokens,
                                        .n = p->n,
                                        .k = p->columns * p->table.row_dims,
                                        .x = x,
                                        .weights = p->weights,
                                        .out = p->out,
                                        .w = p->w,
                                        .w_scales = p->w_scales}};
    memcpy(project.tuned, problem->tuned, sizeof project.tuned);
    return project;
}

EngStatus eng_cpu_lookup_supports(const EngProblem *problem, EngErr *why)
{
    const EngLookupProblem *p = &problem->u.lookup;
    EngProblem gather = eng_cpu_lookup_gather(problem, ENG_BF16);
    EngStatus status = eng_cpu_gather_supports(&gather, why);
    if (status) return status;
    if ((int64_t)p->columns * p->table.row_dims > INT32_MAX)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "%d columns of %d values are too many inputs",
                        p->columns, p->table.row_dims);
    EngProblem project = eng_cpu_lookup_project(problem, ENG_BF16);
    return eng_cpu_project_supports(&project, why);
}

void eng_cpu_lookup_cost(const EngProblem *problem, EngCost *cost)
{
    EngProblem gather = eng_cpu_lookup_gather(problem, ENG_BF16);
    EngProblem project = eng_cpu_lookup_project(problem, ENG_BF16);
    EngCost rows, weights;
    eng_cpu_gather_cost(&gather, &rows);
    project.u.project.tokens = 0;
    eng_cpu_project_cost(&project, &weights);
    project.u.project.tokens = problem->u.lookup.tokens;
    eng_cpu_project_cost(&project, cost);
    cost->flops += rows.flops;
    cost->read_bytes = rows.read_bytes + weights.read_bytes;
}
