/* Gather: every variant against the oracle, bit for bit, over formats, output types, odd shapes,
 * strides, alignments and thread counts; roofs stay inside their buffers; rows beyond 4 GiB.
 */
#include "kernels_test.h"

#include "kernels/ref/gather.h"

#include <math.h>

typedef struct Case {
    EngRowFormat format;
    EngDtype out;
} Case;

static const Case g_cases[] = {
    {ENG_ROW_FP8, ENG_F32},  {ENG_ROW_FP8, ENG_BF16},  {ENG_ROW_FP8, ENG_FP8},
    {ENG_ROW_BF16, ENG_F32}, {ENG_ROW_BF16, ENG_BF16}, {ENG_ROW_F32, ENG_F32},
    {ENG_ROW_F32, ENG_BF16},
};

/* Every bit pattern may occur: NaN, infinities, subnormals, scale bytes 0 and 255 included. */
static EngTable random_table(EngRng *rng, EngRowFormat format, int row_dims, int64_t rows,
                             size_t offset)
{
    size_t values = (size_t)rows * eng_row_value_bytes(format, row_dims);
    size_t scales = (size_t)rows * eng_row_scale_bytes(format, row_dims);
    uint8_t *v = malloc(values + offset), *s = malloc(scales + offset);
    assert_non_null(v);
    assert_non_null(s);
    for (size_t i = 0; i < values + offset; i++) v[i] = (uint8_t)eng_rng_u64(rng);
    for (size_t i = 0; i < scales + offset; i++)
        s[i] = eng_rng_below(rng, 8) ? (uint8_t)eng_rng_u64(rng)
                                     : (uint8_t)(eng_rng_below(rng, 2) ? 0 : 255);
    return (EngTable){.format = format,
                      .row_dims = row_dims,
                      .rows = rows,
                      .values = v + offset,
                      .scales = scales ? s + offset : s};
}

static void free_table(EngTable *table, size_t offset)
{
    bool split = eng_row_scale_bytes(table->format, table->row_dims) != 0;
    free((void *)(table->values - offset));
    free((void *)(split ? table->scales - offset : table->scales));
}

/* Runs a variant on a problem and compares all outputs, or for a roof only that it ends. */
static void check(const EngKernel *kernel, Case c, int row_dims, int columns, int64_t tokens,
                  int threads, size_t offset, int64_t more_stride)
{
    EngRng rng;
    eng_rng_seed(&rng, (uint64_t)(row_dims * 131 + columns * 17 + tokens));
    EngTable table = random_table(&rng, c.format, row_dims, 61, offset);
    EngProblem problem = {.op = ENG_OP_GATHER, .threads = threads};
    problem.u.gather = (EngGatherProblem){table, columns, tokens, c.out};
    int64_t stride = columns + more_stride;
    size_t n = (size_t)tokens * (size_t)columns * (size_t)row_dims;
    size_t bytes = eng_dtype_bytes(c.out, n), scale_bytes = c.out == ENG_FP8 ? n / 32 : 0;
    int64_t *rows = calloc((size_t)(tokens * stride) + 1, sizeof *rows);
    for (int64_t i = 0; i < tokens * stride; i++) rows[i] = (int64_t)eng_rng_below(&rng, 61);
    if (tokens && columns > 1) rows[0] = 0, rows[1] = 60; /* both ends */
    Unaligned got = unaligned_copy(NULL, bytes, offset), want = unaligned_copy(NULL, bytes, 0);
    Unaligned got_scales = unaligned_copy(NULL, scale_bytes, offset);
    Unaligned want_scales = unaligned_copy(NULL, scale_bytes, 0);
    EngArgs args = {.u.gather = {rows, stride, got.bytes, got_scales.bytes}};
    EngGatherArgs oracle = {rows, stride, want.bytes, want_scales.bytes};
    if (run_if_isa(kernel, &problem, &args) && kernel->checked) {
        EngComparison residual;
        eng_ref_gather(&problem.u.gather, &oracle);
        eng_compare_bits(&residual, c.out, got.bytes, want.bytes, (int64_t)n);
        assert_int_equal(residual.count, n);
        assert_residual(&residual, kernel->name);
        assert_memory_equal(got_scales.bytes, want_scales.bytes, scale_bytes);
    }
    free(got.block), free(want.block), free(got_scales.block), free(want_scales.block);
    free(rows);
    free_table(&table, offset);
}

static void for_all(void (*body)(const EngKernel *kernel, Case c))
{
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_GATHER, &n);
    assert_true(n >= 4);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < LENGTH_OF(g_cases); i++) body(kernels[k], g_cases[i]);
}

static void shapes(const EngKernel *kernel, Case c)
{
    static const int64_t tokens[] = {0, 1, 2, 7, 97};
    for (int i = 0; i < LENGTH_OF(tokens); i++) {
        check(kernel, c, 64, 24, tokens[i], 1, 0, 0);
        check(kernel, c, 32, 1, tokens[i], 1, 0, 0);
        check(kernel, c, 256, 5, tokens[i], 2, 0, 0);
    }
    if (c.format != ENG_ROW_FP8) check(kernel, c, 37, 3, 11, 1, 0, 0); /* any dims without scales */
    if (c.format != ENG_ROW_FP8) check(kernel, c, 1, 3, 11, 1, 0, 0);
}

static void test_shapes(void **state)
{
    (void)state;
    for_all(shapes);
}

static void unaligned(const EngKernel *kernel, Case c)
{
    check(kernel, c, 96, 6, 23, 1, 1, 0);
    check(kernel, c, 96, 6, 23, 3, 3, 0);
}

static void test_unaligned(void **state)
{
    (void)state;
    for_all(unaligned);
}

/* Layers of a hash output: the stride is that of all layers. */
static void strided(const EngKernel *kernel, Case c)
{
    check(kernel, c, 64, 8, 31, 1, 0, 8);
    check(kernel, c, 64, 8, 31, 3, 0, 13);
}

static void test_stride_and_threads(void **state)
{
    (void)state;
    for_all(strided);
}

/* Rows whose bytes lie beyond 4 GiB, at offsets that no 32-bit product could reach. */
static void far_rows(Case c, const EngKernel *kernel)
{
    enum { DIMS = 256 };
    int64_t rows = ((int64_t)9 << 30) / (int64_t)eng_row_value_bytes(c.format, DIMS);
    size_t bytes = (size_t)rows * eng_row_value_bytes(c.format, DIMS);
    size_t scale_bytes = (size_t)rows * eng_row_scale_bytes(c.format, DIMS);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    uint8_t *values = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    uint8_t *scales = mmap(NULL, scale_bytes + 1, PROT_READ | PROT_WRITE, flags, -1, 0);
    assert_true(values != MAP_FAILED && scales != MAP_FAILED);
    /* Last row, and the rows whose byte offset is 2^31, 2^32 and 2^33: their low 32 bits repeat. */
    size_t row_bytes = eng_row_value_bytes(c.format, DIMS);
    int64_t ids[5] = {0, (int64_t)(((size_t)1 << 31) / row_bytes),
                      (int64_t)(((size_t)1 << 32) / row_bytes),
                      (int64_t)(((size_t)1 << 33) / row_bytes), rows - 1};
    for (int i = 0; i < 5; i++) {
        /* 0x38 is 1.0 in e4m3fn; bytes 0x3c.. are small numbers in the other formats. */
        memset(values + (size_t)ids[i] * row_bytes, 0x38 + i, row_bytes);
        if (c.format == ENG_ROW_FP8)
            memset(scales + (size_t)ids[i] * (DIMS / 32), 0x70 + i, DIMS / 32);
    }
    EngProblem problem = {.op = ENG_OP_GATHER, .threads = 1};
    problem.u.gather = (EngGatherProblem){{c.format, DIMS, rows, values, scales}, 5, 1, c.out};
    uint8_t got[5 * DIMS * 4], want[5 * DIMS * 4], got_scales[5 * 8], want_scales[5 * 8];
    EngArgs args = {.u.gather = {ids, 5, got, got_scales}};
    EngGatherArgs oracle = {ids, 5, want, want_scales};
    EngComparison residual;
    eng_ref_gather(&problem.u.gather, &oracle);
    if (run_if_isa(kernel, &problem, &args)) {
        eng_compare_bits(&residual, c.out, got, want, 5 * DIMS);
        assert_residual(&residual, kernel->name);
    }
    /* And not by agreement of two wrong offsets: row i was filled with its own bytes. */
    EngTable table = problem.u.gather.table;
    for (int i = 0; i < 4; i++)
        assert_true(eng_ref_table_value(&table, ids[i], DIMS - 1) <
                    eng_ref_table_value(&table, ids[i + 1], DIMS - 1));
    munmap(values, bytes);
    munmap(scales, scale_bytes + 1);
}

static void test_rows_beyond_32_bits(void **state)
{
    static const Case cases[] = {
        {ENG_ROW_FP8, ENG_BF16}, {ENG_ROW_BF16, ENG_F32}, {ENG_ROW_F32, ENG_F32}};
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_GATHER, &n);
    (void)state;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < LENGTH_OF(cases) && kernels[k]->checked; i++)
            far_rows(cases[i], kernels[k]);
}

/* A table too large for 32-bit offsets of anything; see kernels_test.h. */
static void test_full_layer_file(void **state)
{
    enum { DIMS = FULL_LAYER_DIMS, N = FULL_LAYER_KNOWN };
    int n;
    (void)state;
    EngTable table = map_full_layer();
    EngProblem problem = {.op = ENG_OP_GATHER, .threads = 2};
    problem.u.gather = (EngGatherProblem){table, N, 1, ENG_F32};
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_GATHER, &n);
    for (int k = 0; k < n; k++) {
        float got[N * DIMS];
        EngArgs args = {.u.gather = {full_layer_rows, N, got, NULL}};
        if (!kernels[k]->checked || !run_kernel(kernels[k], &problem, &args)) continue;
        for (int i = 0; i < N * DIMS; i++) assert_true(got[i] == full_layer_value(i / DIMS));
    }
    unmap_full_layer(&table);
}

static void assert_refused(const EngProblem *problem, const char *part_of_reason)
{
    int n;
    const EngKernel *const *kernels = cpu_kernels(problem->op, &n);
    for (int k = 0; k < n; k++) {
        EngErr why = {0};
        assert_int_equal(kernels[k]->supports(problem, &why), ENG_UNSUPPORTED);
        if (!strstr(why.text, part_of_reason) && !is_isa(&why))
            fail_msg("reason was: %s", why.text);
    }
}

static void test_refusals(void **state)
{
    EngProblem p = {.op = ENG_OP_GATHER, .threads = 1};
    (void)state;
    p.u.gather = (EngGatherProblem){{ENG_ROW_FP8, 80, 10, NULL, NULL}, 2, 1, ENG_BF16};
    assert_refused(&p, "multiple of 32");
    p.u.gather = (EngGatherProblem){{ENG_ROW_BF16, 64, 10, NULL, NULL}, 2, 1, ENG_FP8};
    assert_refused(&p, "fp8 table");
    p.u.gather = (EngGatherProblem){{ENG_ROW_F32, 64, 10, NULL, NULL}, 0, 1, ENG_F32};
    assert_refused(&p, "columns 0");
    p.u.gather = (EngGatherProblem){{ENG_ROW_F32, 64, 10, NULL, NULL}, 24, INT64_MAX, ENG_F32};
    assert_refused(&p, "do not fit");
    p.u.gather.tokens = -1;
    assert_refused(&p, "negative");
    p.u.gather.tokens = 1;
    p.threads = 0;
    assert_refused(&p, "threads");
}

static void test_cost(void **state)
{
    EngProblem p = {.op = ENG_OP_GATHER, .threads = 1};
    EngCost cost;
    (void)state;
    p.u.gather = (EngGatherProblem){{ENG_ROW_FP8, 256, 10, NULL, NULL}, 24, 100, ENG_BF16};
    eng_kernel_find(ENG_OP_GATHER, "portable")->cost(&p, &cost);
    assert_true(cost.read_bytes == 6336 * 100); /* facts section 5: 6336 B per token and layer */
    assert_true(cost.write_bytes == 6144 * 2 * 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_unaligned),
        cmocka_unit_test(test_stride_and_threads),
        cmocka_unit_test(test_rows_beyond_32_bits),
        cmocka_unit_test(test_full_layer_file),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
