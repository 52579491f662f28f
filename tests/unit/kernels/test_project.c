/* Projection: every variant against the double-precision oracle within derived limits, over shapes
 * and types; thread counts and batch sizes that must not change a bit; the cache of packed weights.
 */
#include "kernels_test.h"

#include "kernels/cpu/project.h"
#include "kernels/ref/project.h"

#include <math.h>

typedef struct Data {
    uint8_t *x, *x_scales, *w, *w_scales;
    EngProblem problem;
} Data;

static void *copy_to_end(const void *from, size_t n)
{
    uint8_t *to = malloc(n ? n : 1);
    assert_non_null(to);
    if (n) memcpy(to, from, n);
    return to;
}

static void make_operand(EngRng *rng, EngDtype type, size_t n, size_t n_scales, uint8_t **values,
                         uint8_t **scales)
{
    uint16_t *wide = malloc(2 * n + 2);
    uint8_t *codes = malloc(n + 1), *s = malloc(n_scales + 1);
    fill_fp8(rng, codes, n, s, n_scales);
    fill_bf16(rng, wide, n, 0.5);
    *values = copy_to_end(type == ENG_FP8 ? (void *)codes : (void *)wide, eng_dtype_bytes(type, n));
    *scales = type == ENG_FP8 ? copy_to_end(s, n_scales) : NULL;
    free(wide), free(codes), free(s);
}

static Data make_data(EngDtype x, EngDtype w, EngDtype out, int64_t tokens, int n, int k,
                      int threads)
{
    EngRng rng;
    Data d = {0};
    size_t m = (size_t)tokens, nn = (size_t)n, kk = (size_t)k;
    eng_rng_seed(&rng, (uint64_t)(n * 7 + k)); /* the same weights and tokens for every M */
    make_operand(&rng, w, nn * kk, nn / 32 * (kk / 32), &d.w, &d.w_scales);
    make_operand(&rng, x, m * kk, m * (kk / 32), &d.x, &d.x_scales);
    d.problem.op = ENG_OP_PROJECT;
    d.problem.threads = threads;
    d.problem.u.project = (EngProjectProblem){tokens, n, k, x, w, out, d.w, d.w_scales};
    return d;
}

static void free_data(Data *d)
{
    free(d->x), free(d->x_scales), free(d->w), free(d->w_scales);
}

/* false when the machine lacks what the variant needs. out: [tokens, n], one element unaligned. */
static bool project(const EngKernel *kernel, const Data *d, void *out)
{
    EngArgs args = {.u.project = {d->x, d->x_scales, out}};
    return run_kernel(kernel, &d->problem, &args);
}

static void compare(const Data *d, const void *out, const char *what)
{
    const EngProjectProblem *p = &d->problem.u.project;
    int64_t n = p->tokens * p->n;
    double *want = calloc((size_t)n + 1, sizeof *want), *sums = calloc((size_t)n + 1, sizeof *sums);
    EngProjectArgs args = {d->x, d->x_scales, NULL};
    EngComparison residual;
    eng_ref_project(p, &args, want, sums);
    if (p->out == ENG_BF16)
        eng_compare_bf16(&residual, out, want, sums, p->k, n);
    else
        eng_compare_f32(&residual, out, want, sums, p->k, n);
    assert_int_equal(residual.count, n);
    assert_residual(&residual, what);
    free(want), free(sums);
}

static void check(const EngKernel *kernel, EngDtype x, EngDtype w, EngDtype out, int64_t tokens,
                  int n, int k, int threads)
{
    Data d = make_data(x, w, out, tokens, n, k, threads);
    size_t size = eng_dtype_bytes(out, 1);
    Unaligned got = unaligned_copy(NULL, (size_t)tokens * (size_t)n * size, size);
    if (project(kernel, &d, got.bytes)) compare(&d, got.bytes, kernel->name);
    free(got.block);
    free_data(&d);
    eng_project_cache_clear();
}

static void for_checked(void (*body)(const EngKernel *kernel))
{
    int n, checked = 0;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_PROJECT, &n);
    for (int i = 0; i < n; i++) {
        if (!kernels[i]->checked) continue;
        body(kernels[i]);
        checked++;
    }
    assert_true(checked >= 3);
}

static void shapes(const EngKernel *kernel)
{
    static const int64_t tokens[] = {0, 1, 2, 3, 17, 64, 65};
    for (int i = 0; i < LENGTH_OF(tokens); i++) {
        check(kernel, ENG_FP8, ENG_FP8, ENG_BF16, tokens[i], 96, 64, 1);
        check(kernel, ENG_FP8, ENG_FP8, ENG_F32, tokens[i], 64, 1088, 2); /* three k blocks */
        check(kernel, ENG_BF16, ENG_FP8, ENG_BF16, tokens[i], 64, 96, 1);
        check(kernel, ENG_FP8, ENG_BF16, ENG_F32, tokens[i], 37, 96, 3);
        check(kernel, ENG_BF16, ENG_BF16, ENG_BF16, tokens[i], 5, 33, 2); /* odd everything */
        check(kernel, ENG_BF16, ENG_BF16, ENG_F32, tokens[i], 1, 1, 1);
    }
    check(kernel, ENG_FP8, ENG_FP8, ENG_BF16, 65537, 32, 32, 3);
}

static void test_shapes(void **state)
{
    (void)state;
    for_checked(shapes);
}

/* One output of a whole matrix is the same number as the element asked for alone. */
static void test_oracle_element(void **state)
{
    Data d = make_data(ENG_FP8, ENG_FP8, ENG_BF16, 3, 64, 96, 1);
    EngProjectArgs args = {d.x, d.x_scales, NULL};
    double want[3 * 64], sums[3 * 64], value, sum;
    (void)state;
    eng_ref_project(&d.problem.u.project, &args, want, sums);
    eng_ref_project_at(&d.problem.u.project, &args, 2, 41, &value, &sum);
    assert_true(value == want[2 * 64 + 41] && sum == sums[2 * 64 + 41]);
    assert_true(sum >= fabs(value));
    free_data(&d);
}

/* By hand: 32x32 tiles, so row 33 and column 40 use tile (1, 1) of 2 x 2. */
static void test_tile_of_a_scale(void **state)
{
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_PROJECT, &n);
    uint8_t w[64 * 64] = {0}, w_scales[4] = {127, 128, 129, 130}, x[64] = {0},
                   x_scales[2] = {127, 126};
    (void)state;
    w[33 * 64 + 40] = 0x3c; /* 1.5, times 2^3 in tile (1,1) */
    w[2 * 64 + 40] = 0x38;  /* 1, times 2 in tile (0,1) */
    w[33 * 64 + 1] = 0x38;  /* 1, times 4 in tile (1,0) */
    x[40] = 0x40;           /* 2, times 1/2 */
    x[1] = 0x38;
    for (int i = 0; i < n; i++) {
        EngProblem p = {.op = ENG_OP_PROJECT, .threads = 1};
        float out[64];
        p.u.project = (EngProjectProblem){1, 64, 64, ENG_FP8, ENG_FP8, ENG_F32, w, w_scales};
        EngArgs args = {.u.project = {x, x_scales, out}};
        if (!run_kernel(kernels[i], &p, &args)) continue;
        for (int j = 0; j < 64; j++) assert_true(out[j] == (j == 33 ? 12 + 4 : j == 2 ? 2 : 0));
        eng_project_cache_clear();
    }
}

/* Bits do not depend on threads; for the portable variant, nor on how many tokens there are. */
static void test_threads_and_batch(void **state)
{
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_PROJECT, &n);
    enum { M = 67, N = 96, K = 544 };
    static float one[M * N], other[M * N], row[N];
    (void)state;
    for (int i = 0; i < n; i++) {
        Data d = make_data(ENG_FP8, ENG_FP8, ENG_F32, M, N, K, 1);
        bool portable = !strcmp(kernels[i]->name, "portable");
        if (!project(kernels[i], &d, one)) {
            assert_false(portable);
            free_data(&d);
            continue;
        }
        for (int threads = 2; threads <= 3; threads++) {
            memset(other, 0, sizeof other);
            d.problem.threads = threads;
            assert_true(project(kernels[i], &d, other));
            if (memcmp(one, other, sizeof one))
                fail_msg("%s: other bits with %d threads", kernels[i]->name, threads);
        }
        d.problem.u.project.tokens = 1;
        assert_true(project(kernels[i], &d, row));
        if (portable) assert_memory_equal(one, row, sizeof row);
        free_data(&d);
        eng_project_cache_clear();
    }
}

/* NaN in a token spoils its row, NaN in a weight row its column, a NaN scale its tile's rows; an
 * infinity stays one. Where the oracle has NaN or infinity, so must the output, and nowhere else.
 */
static void nonfinite(const EngKernel *kernel)
{
    static const int special[][2] = {{2, 5}, {4, 40}};
    Data d = make_data(ENG_BF16, ENG_BF16, ENG_F32, 6, 64, 64, 1);
    float out[6 * 64];
    uint16_t nan = 0x7fc0, infinity = 0x7f80;
    for (int i = 0; i < 2; i++)
        memcpy(d.x + 2 * (special[i][0] * 64 + special[i][1]), i ? &infinity : &nan, 2);
    memcpy(d.w + 2 * (33 * 64 + 7), &nan, 2);
    if (project(kernel, &d, out)) {
        compare(&d, out, kernel->name);
        for (int j = 0; j < 64; j++) {
            assert_true(isnan(out[2 * 64 + j]));
            assert_true(j == 33 ? isnan(out[4 * 64 + j]) : isinf(out[4 * 64 + j]));
        }
        assert_true(isnan(out[33]) && isfinite(out[32]));
    }
    free_data(&d);
    eng_project_cache_clear();

    d = make_data(ENG_FP8, ENG_FP8, ENG_F32, 6, 64, 64, 1);
    d.x[64 * 3 + 9] = 0x7f;
    d.w_scales[3] = 255; /* rows 32..63 */
    if (project(kernel, &d, out)) {
        compare(&d, out, kernel->name);
        assert_true(isnan(out[3 * 64 + 2]) && isfinite(out[2]) && isnan(out[32]));
    }
    free_data(&d);
    eng_project_cache_clear();
}

static void test_nonfinite(void **state)
{
    (void)state;
    for_checked(nonfinite);
}

/* A checker that accepts anything is no checker: one output off by 1 % of its terms must fail. */
static void test_errors_are_seen(void **state)
{
    Data d = make_data(ENG_FP8, ENG_FP8, ENG_F32, 2, 32, 64, 1);
    EngProjectArgs args = {d.x, d.x_scales, NULL};
    double want[64], sums[64];
    float got[64];
    EngComparison residual;
    (void)state;
    eng_ref_project(&d.problem.u.project, &args, want, sums);
    for (int i = 0; i < 64; i++) got[i] = (float)want[i];
    eng_compare_f32(&residual, got, want, sums, 64, 64);
    assert_residual(&residual, "rounded oracle");
    got[17] += (float)(0.001 * sums[17]);
    eng_compare_f32(&residual, got, want, sums, 64, 64);
    assert_int_equal(residual.verdict, ENG_RESIDUAL_FAIL);
    assert_int_equal(residual.worst, 17);
    free_data(&d);
}

/* Several M share packed weights; rewritten weights at the same address are not mistaken. */
static void test_weight_cache(void **state)
{
    const EngKernel *kernel = eng_kernel_find(ENG_OP_PROJECT, "onednn_f32");
    Data d = make_data(ENG_FP8, ENG_FP8, ENG_F32, 4, 64, 64, 1);
    void *first = NULL, *second = NULL;
    float out[4 * 64];
    uint64_t blocks = eng_mem_live_blocks();
    (void)state;
    assert_int_equal(eng_project_cache_entries(), 0);
    assert_int_equal(kernel->create(&d.problem, &first, NULL), ENG_OK);
    assert_int_equal(kernel->create(&d.problem, &second, NULL), ENG_OK);
    assert_int_equal(eng_project_cache_entries(), 1);
    eng_project_cache_clear(); /* in use: stays */
    assert_int_equal(eng_project_cache_entries(), 1);
    kernel->destroy(first);
    kernel->destroy(second);
    d.w[5] ^= 0x80;
    assert_true(project(kernel, &d, out));
    compare(&d, out, "rewritten weights");
    assert_int_equal(eng_project_cache_entries(), 2);
    eng_project_cache_clear();
    assert_int_equal(eng_project_cache_entries(), 0);
    assert_int_equal(eng_mem_live_blocks(), blocks);
    free_data(&d);
}

/* Variants and batch sizes that want different layouts do not get each other's. */
static void test_layouts_apart(void **state)
{
    static const int64_t tokens[] = {1, 64, 300};
    static float out[300 * 96];
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_PROJECT, &n);
    Data d = make_data(ENG_FP8, ENG_FP8, ENG_F32, 300, 96, 128, 2);
    (void)state;
    for (int i = 0; i < LENGTH_OF(tokens); i++) {
        for (int k = 0; k < n; k++) {
            d.problem.u.project.tokens = tokens[i];
            if (project(kernels[k], &d, out)) compare(&d, out, kernels[k]->name);
        }
    }
    eng_project_cache_clear();
    free_data(&d);
}

/* Each allocation of create() fails in turn: an error, nothing leaked. */
static void test_no_memory(void **state)
{
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_PROJECT, &n);
    Data d = make_data(ENG_FP8, ENG_FP8, ENG_BF16, 4, 64, 64, 1);
    (void)state;
    for (int i = 0; i < n; i++) {
        EngErr err;
        if (kernels[i]->supports(&d.problem, &err)) continue;
        uint64_t blocks = eng_mem_live_blocks();
        int failures = 0;
        for (uint64_t at = 1; at < 20; at++) {
            void *s = NULL;
            eng_mem_fail_at(at);
            EngStatus status = kernels[i]->create(&d.problem, &s, &err);
            eng_mem_fail_at(0);
            if (!status) {
                kernels[i]->destroy(s);
                break;
            }
            assert_int_equal(status, ENG_NO_MEMORY);
            assert_null(s);
            failures++;
        }
        assert_true(failures >= 2);
        eng_project_cache_clear();
        assert_int_equal(eng_mem_live_blocks(), blocks);
    }
    free_data(&d);
}

static void assert_refused(EngProjectProblem p, const char *part_of_reason)
{
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_PROJECT, &n);
    EngProblem problem = {.op = ENG_OP_PROJECT, .threads = 1, .u.project = p};
    for (int k = 0; k < n; k++) {
        EngErr why = {0};
        assert_int_equal(kernels[k]->supports(&problem, &why), ENG_UNSUPPORTED);
        if (!strstr(why.text, part_of_reason)) fail_msg("reason was: %s", why.text);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    assert_refused((EngProjectProblem){1, 64, 80, ENG_FP8, ENG_BF16, ENG_BF16, NULL, NULL},
                   "k that");
    assert_refused((EngProjectProblem){1, 80, 64, ENG_BF16, ENG_FP8, ENG_BF16, NULL, NULL},
                   "n that");
    assert_refused((EngProjectProblem){1, 64, 64, ENG_F32, ENG_FP8, ENG_BF16, NULL, NULL}, "input");
    assert_refused((EngProjectProblem){1, 64, 64, ENG_FP8, ENG_FP8, ENG_FP8, NULL, NULL}, "output");
    assert_refused((EngProjectProblem){-1, 64, 64, ENG_FP8, ENG_FP8, ENG_F32, NULL, NULL},
                   "negative");
    assert_refused((EngProjectProblem){1, 0, 64, ENG_FP8, ENG_FP8, ENG_F32, NULL, NULL}, "n = 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),          cmocka_unit_test(test_oracle_element),
        cmocka_unit_test(test_tile_of_a_scale), cmocka_unit_test(test_threads_and_batch),
        cmocka_unit_test(test_nonfinite),       cmocka_unit_test(test_errors_are_seen),
        cmocka_unit_test(test_weight_cache),    cmocka_unit_test(test_layouts_apart),
        cmocka_unit_test(test_no_memory),       cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
