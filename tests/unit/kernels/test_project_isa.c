/* The vector projections on what could trip them: every number of tokens around their register
 * tiles, shapes down to one tile, buffers off by one, NaN and infinity in each place, scale bytes
 * at both ends, values so small that bf16 instructions would lose them, threads, processors without
 * the instructions, and the cache of repacked weights.
 */
#include "kernels_test.h"

#include "kernels/cpu/isa.h"
#include "kernels/cpu/project.h"
#include "kernels/cpu/project_tiles.h"
#include "kernels/ref/project.h"

#include <math.h>

static const char *const g_names[] = {"avx2", "avx512"};

typedef struct Data {
    EngProblem problem;
    Unaligned x, x_scales, w, w_scales;
} Data;

static Data make_data(EngDtype x, EngDtype out, int64_t tokens, int n, int k, int threads)
{
    Data d = {.problem = {.op = ENG_OP_PROJECT, .threads = threads}};
    EngRng rng;
    size_t m = (size_t)tokens, nn = (size_t)n, kk = (size_t)k, x_bytes = eng_dtype_bytes(x, m * kk);
    eng_rng_seed(&rng, (uint64_t)(tokens * 131 + n * 7 + k));
    d.x = unaligned_copy(NULL, x_bytes, x == ENG_BF16 ? 2 : 1);
    d.x_scales = unaligned_copy(NULL, m * kk / 32, 1);
    d.w = unaligned_copy(NULL, nn * kk, 1);
    d.w_scales = unaligned_copy(NULL, nn * kk / 1024, 1);
    fill_fp8(&rng, d.w.bytes, nn * kk, d.w_scales.bytes, nn * kk / 1024);
    if (x == ENG_FP8) {
        fill_fp8(&rng, d.x.bytes, m * kk, d.x_scales.bytes, m * kk / 32);
    } else {
        for (size_t i = 0; i < m * kk; i++) {
            uint16_t bits = random_bf16(&rng, 0.5);
            memcpy(d.x.bytes + 2 * i, &bits, 2);
        }
    }
    d.problem.u.project =
        (EngProjectProblem){tokens, n, k, x, ENG_FP8, out, d.w.bytes, d.w_scales.bytes};
    return d;
}

static void free_data(Data *d)
{
    free(d->x.block), free(d->x_scales.block), free(d->w.block), free(d->w_scales.block);
    eng_project_cache_clear();
}

/* Runs and compares with the oracle; false when the machine lacks the instructions. out is freed by
 * the caller where it asks for it. */
static bool check(const char *name, const Data *d, Unaligned *out)
{
    const EngProjectProblem *p = &d->problem.u.project;
    const EngKernel *kernel = eng_kernel_find(ENG_OP_PROJECT, name);
    size_t n = (size_t)p->tokens * (size_t)p->n, size = eng_dtype_bytes(p->out, 1);
    Unaligned got = unaligned_copy(NULL, n * size, size);
    EngArgs args = {.u.project = {d->x.bytes, d->x_scales.bytes, got.bytes}};
    if (!kernel) {
        free(got.block);
        if (out) out->block = NULL;
        return false; /* not built for this processor family */
    }
    bool ran = run_if_isa(kernel, &d->problem, &args);
    if (ran) {
        double *want = calloc(n + 1, sizeof *want), *sums = calloc(n + 1, sizeof *sums);
        EngComparison comparison;
        eng_ref_project(p, &args.u.project, want, sums);
        if (p->out == ENG_BF16)
            eng_compare_bf16(&comparison, (const uint16_t *)(void *)got.bytes, want, sums, p->k,
                             (int64_t)n);
        else
            eng_compare_f32(&comparison, (const float *)(void *)got.bytes, want, sums, p->k,
                            (int64_t)n);
        assert_int_equal(comparison.count, n);
        assert_residual(&comparison, name);
        free(want), free(sums);
    }
    if (out)
        *out = got;
    else
        free(got.block);
    return ran;
}

static void for_all(const Data *d)
{
    for (int i = 0; i < LENGTH_OF(g_names); i++) check(g_names[i], d, NULL);
}

static void test_tokens(void **state)
{
    static const int tokens[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  10, 11, 12, 13,
                                 16, 17, 24, 25, 31, 32, 33, 39, 63, 64, 65, 257};
    (void)state;
    for (int i = 0; i < LENGTH_OF(tokens); i++) {
        Data d =
            make_data(i % 2 ? ENG_FP8 : ENG_BF16, i % 3 ? ENG_BF16 : ENG_F32, tokens[i], 64, 96, 1);
        for_all(&d);
        free_data(&d);
    }
}

/* One tile, one group, k beyond a chunk, groups that threads cannot share evenly. */
static void test_shapes(void **state)
{
    static const int shapes[][2] = {{32, 32}, {32, 1056}, {160, 64}, {96, 544}};
    static const int tokens[] = {1, 7, 17, 33, 300};
    (void)state;
    for (int i = 0; i < LENGTH_OF(shapes); i++) {
        for (int j = 0; j < LENGTH_OF(tokens); j++) {
            Data d = make_data(ENG_FP8, j % 2 ? ENG_BF16 : ENG_F32, tokens[j], shapes[i][0],
                               shapes[i][1], 1 + (i + j) % 3);
            for_all(&d);
            free_data(&d);
        }
    }
}

static void test_threads(void **state)
{
    static const int tokens[] = {1, 5, 19, 70};
    (void)state;
    for (int v = 0; v < LENGTH_OF(g_names); v++) {
        for (int i = 0; i < LENGTH_OF(tokens); i++) {
            Data d = make_data(ENG_FP8, ENG_F32, tokens[i], 224, 576, 1);
            Unaligned one, more;
            size_t bytes = (size_t)tokens[i] * 224 * 4;
            bool ran = check(g_names[v], &d, &one);
            for (d.problem.threads = 2; ran && d.problem.threads <= 3; d.problem.threads++) {
                check(g_names[v], &d, &more);
                assert_memory_equal(one.bytes, more.bytes, bytes);
                free(more.block);
            }
            free(one.block);
            free_data(&d);
        }
    }
}

/* Settings change speed, not bits. */
static void test_settings(void **state)
{
    static const char *const settings[] = {"avx512@ahead=1@chunk=1@block=32@groups=1",
                                           "avx512@chunk=64@groups=64@block=4096",
                                           "avx512@chunk=5@groups=3@block=33"};
    const EngKernel *kernel = eng_kernel_find(ENG_OP_PROJECT, "avx512");
    (void)state;
    for (int i = 0; kernel && i < LENGTH_OF(settings); i++) {
        Data d = make_data(ENG_FP8, ENG_F32, 101, 224, 576, 2);
        Unaligned plain, tuned;
        EngErr err;
        bool ran = check("avx512", &d, &plain);
        assert_int_equal(eng_kernel_settings(kernel, settings[i], d.problem.tuned, &err), ENG_OK);
        check("avx512", &d, &tuned);
        if (ran) assert_memory_equal(plain.bytes, tuned.bytes, 101 * 224 * 4);
        free(plain.block), free(tuned.block);
        free_data(&d);
    }
}

/* NaN codes and infinities, one at a time, in a product for few and for many tokens. */
static void test_nonfinite(void **state)
{
    static const int tokens[] = {6, 40};
    (void)state;
    for (int i = 0; i < LENGTH_OF(tokens); i++) {
        for (int place = 0; place < 5; place++) {
            Data d = make_data(place < 2 ? ENG_BF16 : ENG_FP8, ENG_F32, tokens[i], 96, 128, 2);
            uint16_t nan = 0xffc1, infinity = 0xff80;
            if (place == 0) memcpy(d.x.bytes + 2 * (3 * 128 + 77), &nan, 2);
            if (place == 1) memcpy(d.x.bytes + 2 * (5 * 128 + 1), &infinity, 2);
            if (place == 2) d.x.bytes[2 * 128 + 127] = 0xff;
            if (place == 3) d.w.bytes[40 * 128 + 33] = 0x7f;
            if (place == 4) d.x_scales.bytes[4] = 255;
            for_all(&d);
            free_data(&d);
        }
    }
}

/* An infinite token meets a tile of zeros: NaN, as in IEEE arithmetic. */
static void test_infinity_times_zero(void **state)
{
    Data d = make_data(ENG_BF16, ENG_F32, 2, 32, 64, 1);
    uint16_t infinity = 0x7f80;
    (void)state;
    for (int j = 0; j < 32; j++) memset(d.w.bytes + j * 64, 0, 32);
    memcpy(d.x.bytes + 2 * 5, &infinity, 2);
    d.w_scales.bytes[0] = 0; /* of a tile of zeros: harmless */
    for_all(&d);
    free_data(&d);
}

/* Scale bytes at both ends in weights, in tokens, and in both: results may leave f32's range or
 * come back into it. */
static void test_extreme_scales(void **state)
{
    static const uint8_t bytes[] = {0, 1, 9, 10, 63, 64, 190, 191, 246, 247, 254, 255};
    static const int tokens[] = {3, 15};
    (void)state;
    for (int i = 0; i < LENGTH_OF(bytes); i++) {
        for (int j = 0; j < LENGTH_OF(bytes); j++) {
            Data d = make_data(ENG_FP8, ENG_F32, tokens[(i + j) % 2], 64, 64, 1);
            d.w_scales.bytes[1] = bytes[i];
            memset(d.x_scales.bytes + 2, bytes[j], 2); /* all of the second token */
            for_all(&d);
            free_data(&d);
        }
    }
}

/* Subnormal bf16 inputs, and products that bf16 instructions would flush: small weights of every
 * tile, so that no large term hides the loss. */
static void test_tiny_values(void **state)
{
    (void)state;
    for (int scale = 64; scale <= 124; scale += 20) {
        Data d = make_data(ENG_BF16, ENG_F32, 13, 64, 64, 1);
        memset(d.w_scales.bytes, scale, 4);
        for (int i = 0; i < 64; i++) {
            uint16_t tiny = (uint16_t)(i * 3 + 1), small = (uint16_t)(0x2000 + i * 16);
            memcpy(d.x.bytes + 2 * (2 * 64 + i), &tiny, 2);
            memcpy(d.x.bytes + 2 * (4 * 64 + i), &small, 2); /* about 2^-63 */
        }
        for_all(&d);
        free_data(&d);
    }
}

/* On a processor without the instructions a variant refuses and says what is missing. */
static void test_refusals(void **state)
{
    Data d = make_data(ENG_FP8, ENG_F32, 1, 32, 32, 1);
    EngErr why = {0};
    (void)state;
    eng_isa_limit(0);
    for (int i = 0; i < LENGTH_OF(g_names); i++) {
        const EngKernel *kernel = eng_kernel_find(ENG_OP_PROJECT, g_names[i]);
        if (!kernel) continue;
        assert_int_equal(kernel->supports(&d.problem, &why), ENG_UNSUPPORTED);
        assert_non_null(strstr(why.text, "AVX"));
    }
    eng_isa_limit(ENG_ISA_ALL);
    d.problem.u.project.weights = ENG_BF16;
    for (int i = 0; i < LENGTH_OF(g_names); i++) {
        const EngKernel *kernel = eng_kernel_find(ENG_OP_PROJECT, g_names[i]);
        if (!kernel) continue;
        assert_int_equal(kernel->supports(&d.problem, &why), ENG_UNSUPPORTED);
        assert_non_null(strstr(why.text, "fp8"));
    }
    free_data(&d);
}

/* One copy per order of bytes, kept while in use; a changed byte anywhere makes another. */
static void test_cache(void **state)
{
    static const EngTileOrder order = {.name = "test"}; /* all bytes the same: allowed */
    Data d = make_data(ENG_FP8, ENG_F32, 1, 64, 64, 1);
    const EngWeightTiles *first, *second, *third;
    EngErr err;
    uint64_t blocks = eng_mem_live_blocks();
    (void)state;
    assert_int_equal(eng_weight_tiles_entries(), 0);
    assert_int_equal(eng_weight_tiles_acquire(&d.problem, &order, false, &first, &err), ENG_OK);
    assert_int_equal(eng_weight_tiles_acquire(&d.problem, &order, false, &second, &err), ENG_OK);
    assert_ptr_equal(first, second);
    d.w.bytes[1234] ^= 1;
    assert_int_equal(eng_weight_tiles_acquire(&d.problem, &order, false, &third, &err), ENG_OK);
    assert_ptr_not_equal(first, third);
    eng_weight_tiles_release(second);
    eng_weight_tiles_release(third);
    eng_project_cache_clear(); /* the first is still held once */
    assert_int_equal(eng_weight_tiles_entries(), 1);
    eng_weight_tiles_release(first);
    eng_project_cache_clear();
    assert_int_equal(eng_weight_tiles_entries(), 0);
    assert_int_equal(eng_mem_live_blocks(), blocks);
    free_data(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),         cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_threads),        cmocka_unit_test(test_nonfinite),
        cmocka_unit_test(test_extreme_scales), cmocka_unit_test(test_infinity_times_zero),
        cmocka_unit_test(test_tiny_values),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_cache),          cmocka_unit_test(test_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
