/* Look-up: every variant against the double-precision oracle within derived limits, over row
 * formats, heads, odd shapes and buffers; extreme and NaN bytes; threads that must not change a
 * bit; the same bits as the gather and the product it is made of. skips: no AVX-512
 */
#include "kernels_test.h"

#include "kernels/cpu/project.h"
#include "kernels/ref/lookup.h"

#include <math.h>

typedef struct Data {
    EngProblem problem;
    uint8_t *values, *scales, *w, *w_scales;
    int64_t *ids, row_stride;
} Data;

static uint8_t *random_bytes(EngRng *rng, size_t n)
{
    uint8_t *bytes = malloc(n ? n : 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)eng_rng_u64(rng);
    return bytes;
}

/* Rows of normal size: the bytes of values and scales, wherever a format keeps them. */
static void fill_row(EngRng *rng, EngRowFormat format, int dims, uint8_t *row, uint8_t *scales)
{
    size_t n = (size_t)dims;
    for (size_t i = 0; i < n; i++) {
        double normal = 0.1 * eng_rng_normal(rng);
        uint16_t bf16 = eng_ref_bf16_round(normal);
        float f32 = (float)normal;
        if (format == ENG_ROW_BF16) memcpy(row + 2 * i, &bf16, 2);
        if (format == ENG_ROW_F32) memcpy(row + 4 * i, &f32, 4);
    }
    if (eng_row_is_fp8(format))
        fill_fp8(rng, row, n, format == ENG_ROW_FP8 ? scales : row + n, n / 32);
    for (size_t g = 0; format == ENG_ROW_INT4 && g < n / 32; g++) {
        uint16_t scale = random_bf16(rng, 0.1);
        memcpy(row + n / 2 + 2 * g, &scale, 2);
    }
}

static Data make_data(EngRowFormat format, int dims, int columns, int64_t tokens, int n,
                      EngDtype out, int threads)
{
    EngRng rng;
    Data d = {.row_stride = columns + 3};
    size_t k = (size_t)columns * (size_t)dims;
    const int64_t rows = 57;
    size_t stride = eng_row_stride_bytes(format, dims), scale = eng_row_scale_bytes(format, dims);
    eng_rng_seed(&rng, (uint64_t)(dims * 131 + columns));
    d.w = random_bytes(&rng, (size_t)n * k);
    d.w_scales = random_bytes(&rng, (size_t)n / 32 * (k / 32) + 1);
    fill_fp8(&rng, d.w, (size_t)n * k, d.w_scales, (size_t)n / 32 * (k / 32));
    d.values = random_bytes(&rng, (size_t)rows * stride);
    d.scales = random_bytes(&rng, (size_t)rows * scale);
    for (size_t r = 0; r < (size_t)rows; r++)
        fill_row(&rng, format, dims, d.values + r * stride, d.scales + r * scale);
    d.ids = malloc(((size_t)(tokens * d.row_stride) + 1) * sizeof *d.ids);
    for (int64_t i = 0; i < tokens * d.row_stride; i++)
        d.ids[i] = i % 5 ? (int64_t)eng_rng_below(&rng, (uint64_t)rows) : i % 2 ? 0 : rows - 1;
    d.problem =
        (EngProblem){.op = ENG_OP_LOOKUP,
                     .threads = threads,
                     .u.lookup = {.table = {format, dims, rows, d.values, scale ? d.scales : NULL},
                                  .columns = columns,
                                  .tokens = tokens,
                                  .n = n,
                                  .weights = ENG_FP8,
                                  .out = out,
                                  .w = d.w,
                                  .w_scales = d.w_scales}};
    return d;
}

static void free_data(Data *d)
{
    free(d->values), free(d->scales), free(d->w), free(d->w_scales), free(d->ids);
    eng_project_cache_clear();
}

static bool look_up(const EngKernel *kernel, const Data *d, void *out)
{
    EngArgs args = {.u.lookup = {d->ids, d->row_stride, out}};
    return run_kernel(kernel, &d->problem, &args);
}

static void compare_with(const Data *d, const void *out, const double *want, const double *sums,
                         const char *what)
{
    const EngLookupProblem *p = &d->problem.u.lookup;
    EngComparison residual;
    int64_t n = p->tokens * p->n;
    int k = p->columns * p->table.row_dims;
    if (p->out == ENG_BF16)
        eng_compare_bf16(&residual, out, want, sums, k, n);
    else
        eng_compare_f32(&residual, out, want, sums, k, n);
    assert_int_equal(residual.count, n);
    assert_residual(&residual, what);
}

static void compare(const Data *d, const void *out, const char *what)
{
    const EngLookupProblem *p = &d->problem.u.lookup;
    size_t n = (size_t)p->tokens * (size_t)p->n;
    double *want = calloc(n, sizeof *want), *sums = calloc(n, sizeof *sums);
    EngLookupArgs args = {d->ids, d->row_stride, NULL};
    eng_ref_lookup(p, &args, want, sums);
    compare_with(d, out, want, sums, what);
    free(want), free(sums);
}

/* Every variant that takes the problem here; one oracle for all of them. */
static void check(EngRowFormat format, int dims, int columns, int64_t tokens, int n, EngDtype out,
                  int threads)
{
    int n_kernels, ran = 0;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_LOOKUP, &n_kernels);
    Data d = make_data(format, dims, columns, tokens, n, out, threads);
    size_t size = eng_dtype_bytes(out, 1), count = (size_t)tokens * (size_t)n;
    double *want = calloc(count + 1, sizeof *want), *sums = calloc(count + 1, sizeof *sums);
    EngLookupArgs args = {d.ids, d.row_stride, NULL};
    eng_ref_lookup(&d.problem.u.lookup, &args, want, sums);
    for (int i = 0; i < n_kernels; i++) {
        assert_true(kernels[i]->checked);
        Unaligned got = unaligned_copy(NULL, count * size, size);
        if (look_up(kernels[i], &d, got.bytes)) {
            compare_with(&d, got.bytes, want, sums, kernels[i]->name);
            ran++;
        }
        free(got.block);
    }
    assert_true(ran >= 2); /* portable and oneDNN in f32 */
    free(want), free(sums);
    free_data(&d);
}

static void test_formats(void **state)
{
    (void)state;
    for (int format = 0; format < ENG_ROW_FORMAT_COUNT; format++) {
        check((EngRowFormat)format, 64, 3, 1, 64, ENG_F32, 1);
        check((EngRowFormat)format, 64, 2, 33, 32, ENG_F32, 1);
        check((EngRowFormat)format, 256, 2, 13, 32, ENG_BF16, 2);
    }
}

/* Token counts around the register tiles (11, 14) and the blocks; heads; threads beyond tokens. */
static void test_shapes(void **state)
{
    static const int64_t tokens[] = {0, 1, 2, 7, 11, 12, 13, 29, 33, 131};
    (void)state;
    for (int i = 0; i < LENGTH_OF(tokens); i++)
        check(ENG_ROW_FP8, 32, 6, tokens[i], 32, ENG_F32, i % 2 ? 3 : 1);
    check(ENG_ROW_FP8, 32, 1, 65537, 32, ENG_BF16, 3);
    for (int heads = 1; heads <= 16; heads++)
        check(heads % 2 ? ENG_ROW_FP8_PACKED : ENG_ROW_FP8, 32, 3 * heads, 5, 32, ENG_BF16, 2);
}

/* Scale bytes at both ends of what the arithmetic decodes and beyond, NaN scales and NaN codes,
 * rows of zeros: outputs of the tokens that read them are NaN, or right to the last bit that
 * matters; and the next call of the same state is not spoiled. */
static void test_extreme_rows(void **state)
{
    static const uint8_t bytes[] = {0, 1, 9, 10, 11, 40, 100, 200, 220, 246, 247, 254, 255};
    const EngKernel *kernel = eng_kernel_find(ENG_OP_LOOKUP, "avx512_fused");
    enum { TOKENS = 13, N = 32, COLUMNS = 3, DIMS = 32 };
    static float out[TOKENS * N], clean[TOKENS * N];
    void *made = NULL;
    EngErr err = {0};
    (void)state;
    Data d = make_data(ENG_ROW_FP8, DIMS, COLUMNS, TOKENS, N, ENG_F32, 2);
    if (!kernel || kernel->supports(&d.problem, &err)) {
        free_data(&d);
        print_message("skipped: no AVX-512\n");
        skip();
        return;
    }
    EngArgs args = {.u.lookup = {d.ids, d.row_stride, clean}};
    assert_int_equal(kernel->create(&d.problem, &made, &err), ENG_OK);
    assert_int_equal(kernel->run(made, &d.problem, &args, &err), ENG_OK);
    args.u.lookup.out = out;
    for (int i = 0; i < LENGTH_OF(bytes); i++) {
        uint8_t scale_before = d.scales[20], code_before = d.values[21 * DIMS + 7];
        int64_t first = d.ids[0], second = d.ids[4 * d.row_stride + 1];
        d.ids[0] = 20; /* only these two tokens */
        d.ids[4 * d.row_stride + 1] = 21;
        d.scales[20] = bytes[i];
        d.values[21 * DIMS + 7] = i % 2 ? 0x7f : 0xff;
        assert_int_equal(kernel->run(made, &d.problem, &args, &err), ENG_OK);
        compare(&d, out, "extreme scale");
        assert_true(isnan(out[4 * N]));
        d.scales[20] = scale_before;
        d.values[21 * DIMS + 7] = code_before;
        d.ids[0] = first;
        d.ids[4 * d.row_stride + 1] = second;
        assert_int_equal(kernel->run(made, &d.problem, &args, &err), ENG_OK);
        assert_memory_equal(out, clean, sizeof clean);
    }
    kernel->destroy(made);
    free_data(&d);
}

/* One NaN code, one NaN scale byte: the tokens that read them are NaN in every variant, others not.
 */
static void test_nan_rows(void **state)
{
    enum { TOKENS = 13, N = 32, COLUMNS = 3, DIMS = 32 };
    static float out[TOKENS * N];
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_LOOKUP, &n);
    (void)state;
    for (int k = 0; k < n; k++) {
        Data d = make_data(ENG_ROW_FP8, DIMS, COLUMNS, TOKENS, N, ENG_F32, 2);
        for (int64_t i = 0; i < TOKENS * d.row_stride; i++) d.ids[i] = i % 19;
        d.ids[2 * d.row_stride] = 20, d.scales[20] = 255;
        d.ids[9 * d.row_stride + 1] = 21, d.values[21 * DIMS + 7] = 0xff;
        if (look_up(kernels[k], &d, out)) {
            compare(&d, out, kernels[k]->name);
            for (int t = 0; t < TOKENS; t++) assert_true(!isnan(out[t * N]) == (t != 2 && t != 9));
        }
        free_data(&d);
    }
}

/* Rows of 101 GB, and weights that pass on the first values of each. */
static void test_full_layer_file(void **state)
{
    enum { N = 32, DIMS = FULL_LAYER_DIMS, TOKENS = FULL_LAYER_KNOWN };
    static uint8_t w[N * DIMS], w_scales[DIMS / 32];
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_LOOKUP, &n);
    (void)state;
    EngTable table = map_full_layer();
    for (int i = 0; i < N; i++) w[i * DIMS + i] = 0x38; /* 1 */
    memset(w_scales, 127, sizeof w_scales);
    for (int k = 0; k < n; k++) {
        float out[TOKENS * N];
        EngProblem p = {.op = ENG_OP_LOOKUP, .threads = 2};
        p.u.lookup = (EngLookupProblem){table, 1, TOKENS, N, ENG_FP8, ENG_F32, w, w_scales};
        EngArgs args = {.u.lookup = {full_layer_rows, 1, out}};
        if (!run_kernel(kernels[k], &p, &args)) continue;
        for (int i = 0; i < TOKENS * N; i++) assert_true(out[i] == full_layer_value(i / N));
    }
    eng_project_cache_clear();
    unmap_full_layer(&table);
}

/* Subnormal and infinite words in rows that are not fp8. */
static void test_extreme_words(void **state)
{
    static const uint16_t words[] = {0x0001, 0x807f, 0x0080, 0x7f7f, 0x7f80, 0xff80, 0x7fc1, 0};
    enum { TOKENS = 3, N = 32, COLUMNS = 2, DIMS = 32 };
    static float out[TOKENS * N];
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_LOOKUP, &n);
    (void)state;
    for (int k = 0; k < n; k++) {
        if (kernels[k]->roof) continue; /* a library's bf16 products flush subnormals */
        for (int i = 0; i < LENGTH_OF(words); i++) {
            Data d = make_data(ENG_ROW_BF16, DIMS, COLUMNS, TOKENS, N, ENG_F32, 1);
            memset(d.values + 2 * DIMS * 9, 0, 2 * DIMS); /* row 9: one word alone */
            memcpy(d.values + 2 * (DIMS * 9 + 5), &words[i], 2);
            d.ids[d.row_stride] = d.ids[d.row_stride + 1] = 9;
            if (look_up(kernels[k], &d, out)) compare(&d, out, kernels[k]->name);
            free_data(&d);
        }
    }
}

/* Bits do not depend on threads, and are those of gather, then product, of the same kind. */
static void test_threads_and_composition(void **state)
{
    static const int64_t tokens[] = {1, 11, 12, 45, 140};
    enum { N = 96, MOST = 140 };
    static float one[MOST * N], other[MOST * N];
    const EngKernel *fused = eng_kernel_find(ENG_OP_LOOKUP, "avx512_fused");
    const EngKernel *apart = eng_kernel_find(ENG_OP_LOOKUP, "avx512");
    (void)state;
    for (int i = 0; i < LENGTH_OF(tokens); i++)
        for (int format = 0; format < ENG_ROW_FORMAT_COUNT; format++) {
            Data d = make_data((EngRowFormat)format, 64, 3, tokens[i], N, ENG_F32, 1);
            if (!fused || !look_up(fused, &d, one)) {
                free_data(&d);
                print_message("skipped: no AVX-512\n");
                skip();
                return;
            }
            for (int threads = 2; threads <= 5; threads++) {
                memset(other, 0, sizeof other);
                d.problem.threads = threads;
                assert_true(look_up(fused, &d, other));
                assert_memory_equal(one, other, sizeof *one * (size_t)tokens[i] * N);
            }
            assert_true(look_up(apart, &d, other));
            assert_memory_equal(one, other, sizeof *one * (size_t)tokens[i] * N);
            free_data(&d);
        }
}

/* Every variant, few tokens and many. */
static void test_threads(void **state)
{
    static const int64_t tokens[] = {1, 7, 67};
    enum { N = 96, MOST = 67 };
    static float one[MOST * N], other[MOST * N];
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_LOOKUP, &n);
    (void)state;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < LENGTH_OF(tokens); i++) {
            Data d = make_data(ENG_ROW_FP8, 64, 3, tokens[i], N, ENG_F32, 1);
            bool ran = look_up(kernels[k], &d, one);
            for (d.problem.threads = 2; ran && d.problem.threads <= 3; d.problem.threads++) {
                assert_true(look_up(kernels[k], &d, other));
                if (memcmp(one, other, sizeof *one * (size_t)tokens[i] * N))
                    fail_msg("%s: other bits with %d threads", kernels[k]->name, d.problem.threads);
            }
            free_data(&d);
        }
}

static void expect_refusal(const char *name, Data *d, const char *reason)
{
    const EngKernel *kernel = eng_kernel_find(ENG_OP_LOOKUP, name);
    EngErr err = {0};
    assert_non_null(kernel);
    assert_int_equal(kernel->supports(&d->problem, &err), ENG_UNSUPPORTED);
    if (!strstr(err.text, reason)) fail_msg("%s: %s", name, err.text);
}

static void test_refusals(void **state)
{
    (void)state;
    Data d = make_data(ENG_ROW_BF16, 33, 32, 1, 32, ENG_F32, 1);
    EngErr err = {0};
    if (eng_kernel_find(ENG_OP_LOOKUP, "avx512_fused"))
        expect_refusal("avx512_fused", &d, "pairs, which must not cross");
    d.problem.u.lookup.columns = 31; /* k = 1023 */
    expect_refusal("portable", &d, "k that is a multiple of 32");
    d.problem.u.lookup.columns = 1 << 27;
    expect_refusal("portable", &d, "too many inputs");
    free_data(&d);
    d = make_data(ENG_ROW_FP8, 32, 2, 1, 32, ENG_F32, 1);
    d.problem.u.lookup.table.row_dims = 33;
    expect_refusal("portable", &d, "multiple of 32");
    d.problem.u.lookup.table.row_dims = 32;
    d.problem.threads = 0;
    expect_refusal("portable", &d, "threads");
    d.problem.threads = 1;
    const EngKernel *fused = eng_kernel_find(ENG_OP_LOOKUP, "avx512_fused");
    d.problem.u.lookup.weights = ENG_BF16;
    if (fused) assert_int_equal(fused->supports(&d.problem, &err), ENG_UNSUPPORTED);
    free_data(&d);
}

/* By hand: 1.5 * 2 * 2^-1 at one place, and the cost of that shape. */
static void test_by_hand(void **state)
{
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_LOOKUP, &n);
    uint8_t values[3 * 32] = {0}, scales[3] = {127, 127, 126}, w[32 * 64] = {0},
                       w_scales[2] = {127, 128};
    int64_t ids[2] = {0, 2};
    (void)state;
    values[2 * 32 + 9] = 0x40; /* row 2: 2 * 2^-1 */
    w[5 * 64 + 32 + 9] = 0x3c; /* output 5, column 1: 1.5 * 2 */
    for (int i = 0; i < n; i++) {
        float out[32];
        EngProblem p = {.op = ENG_OP_LOOKUP, .threads = 1};
        p.u.lookup = (EngLookupProblem){
            {ENG_ROW_FP8, 32, 3, values, scales}, 2, 1, 32, ENG_FP8, ENG_F32, w, w_scales};
        EngArgs args = {.u.lookup = {ids, 2, out}};
        EngCost cost;
        kernels[i]->cost(&p, &cost);
        assert_true(cost.flops == 2 * 32 * 64 + 64);
        assert_true(cost.read_bytes == 2 * 33 + 32 * 64 + 2 && cost.write_bytes == 4 * 32);
        if (!run_kernel(kernels[i], &p, &args)) continue;
        for (int j = 0; j < 32; j++) assert_true(out[j] == (j == 5 ? 3 : 0));
        eng_project_cache_clear();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),         cmocka_unit_test(test_formats),
        cmocka_unit_test(test_shapes),          cmocka_unit_test(test_extreme_rows),
        cmocka_unit_test(test_extreme_words),   cmocka_unit_test(test_threads_and_composition),
        cmocka_unit_test(test_refusals),        cmocka_unit_test(test_nan_rows),
        cmocka_unit_test(test_full_layer_file), cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
