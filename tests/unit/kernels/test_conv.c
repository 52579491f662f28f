/* Short convolution: an answer computed by numpy, every variant against the oracle, and the decode
 * state: a sequence in one run, token by token, or in any pieces gives the same bits.
 */
#include "kernels_test.h"

#include "kernels/ref/conv.h"

#include <math.h>

typedef struct Data {
    EngProblem problem;
    float *norm, *taps, *value, *state, *out;
    size_t width, history;
} Data;

static Data make_data(int64_t tokens, int streams, int hidden, int kernel, int dilation,
                      int threads)
{
    Data d = {0};
    EngRng rng;
    size_t n;
    eng_rng_seed(&rng, 5);
    d.width = (size_t)streams * (size_t)hidden;
    d.history = (size_t)(kernel - 1) * (size_t)dilation;
    n = (size_t)tokens * d.width;
    d.norm = malloc(d.width * sizeof(float));
    d.taps = malloc(d.width * (size_t)kernel * sizeof(float));
    d.value = malloc((n + 1) * sizeof(float));
    d.out = calloc(n + 1, sizeof(float));
    d.state = calloc(d.history * d.width + 1, sizeof(float));
    for (size_t i = 0; i < d.width; i++) d.norm[i] = (float)(1 + 0.1 * eng_rng_normal(&rng));
    for (size_t i = 0; i < d.width * (size_t)kernel; i++) d.taps[i] = (float)eng_rng_normal(&rng);
    for (size_t i = 0; i < n; i++) d.value[i] = (float)(3 * eng_rng_normal(&rng));
    d.problem.op = ENG_OP_CONV;
    d.problem.threads = threads;
    d.problem.u.conv =
        (EngConvProblem){tokens, streams, hidden, kernel, dilation, 1e-5f, d.norm, d.taps};
    return d;
}

static void free_data(Data *d)
{
    free(d->norm), free(d->taps), free(d->value), free(d->state), free(d->out);
}

static bool run_tokens(const EngKernel *kernel, const Data *d, int64_t from, int64_t tokens,
                       float *state, float *out)
{
    EngProblem problem = d->problem;
    problem.u.conv.tokens = tokens;
    EngArgs args = {
        .u.conv = {d->value + (size_t)from * d->width, state, out + (size_t)from * d->width}};
    return run_kernel(kernel, &problem, &args);
}

static void check(const EngKernel *kernel, int64_t tokens, int streams, int hidden, int taps,
                  int dilation, int threads)
{
    Data d = make_data(tokens, streams, hidden, taps, dilation, threads);
    size_t n = (size_t)tokens * d.width, n_state = d.history * d.width;
    double *want = calloc(n + 1, sizeof *want), *sums = calloc(n + 1, sizeof *sums);
    double *want_state = calloc(n_state + 1, sizeof *want_state);
    EngComparison residual;
    EngRng rng;
    eng_rng_seed(&rng, 9);
    for (size_t i = 0; i < n_state; i++) d.state[i] = (float)eng_rng_normal(&rng); /* mid-text */
    eng_ref_conv(&d.problem.u.conv, d.value, d.state, want, want_state, sums);
    assert_true(run_tokens(kernel, &d, 0, tokens, d.state, d.out));
    eng_residual_start(&residual);
    for (size_t i = 0; i < n; i++)
        eng_residual_add(&residual, ENG_F32, d.out[i], want[i],
                         eng_ref_conv_limit(&d.problem.u.conv, want[i], d.value[i], sums[i]));
    assert_residual(&residual, kernel->name);
    eng_residual_start(&residual);
    for (size_t i = 0; i < n_state; i++)
        eng_residual_add(
            &residual, ENG_F32, d.state[i], want_state[i],
            eng_limit_sum(ENG_F32, want_state[i], hidden / 2 + 8, fabs(want_state[i])));
    assert_residual(&residual, "state");
    free(want), free(sums), free(want_state);
    free_data(&d);
}

static void test_shapes(void **state)
{
    static const int64_t tokens[] = {0, 1, 2, 8, 9, 10, 23};
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_CONV, &n);
    (void)state;
    assert_true(n >= 1);
    for (int k = 0; k < n; k++) {
        for (int t = 0; t < LENGTH_OF(tokens); t++) {
            check(kernels[k], tokens[t], 4, 64, 4, 3, 1);
            check(kernels[k], tokens[t], 1, 17, 4, 3, 3);
            check(kernels[k], tokens[t], 2, 1, 1, 1, 1); /* one tap: no state */
            check(kernels[k], tokens[t], 3, 33, 2, 5, 2);
        }
        check(kernels[k], 65537, 1, 17, 4, 3, 3);
    }
}

static void read_numbers(FILE *file, const char *name, double *out, int n)
{
    char word[64];
    int count;
    assert_int_equal(fscanf(file, "%63s %d", word, &count), 2);
    assert_string_equal(word, name);
    assert_int_equal(count, n);
    for (int i = 0; i < n; i++) assert_int_equal(fscanf(file, "%la", &out[i]), 1);
}

/* tests/oracle/conv_case.py: 13 tokens, 2 streams of 5, kernel 4, dilation 3, from zeros. */
static void test_numpy_answer(void **state)
{
    enum { T = 13, W = 10, K = 4, HISTORY = 9 };
    double value[T * W], norm[W], taps[W * K], out[T * W], past[HISTORY * W];
    Data d = make_data(T, 2, 5, K, 3, 1);
    double want[T * W], want_state[HISTORY * W];
    FILE *file = fopen(ENG_SOURCE_DIR "/tests/data/conv_case.txt", "r");
    (void)state;
    assert_non_null(file);
    assert_non_null(fgets((char[256]){0}, 256, file));
    read_numbers(file, "value", value, T * W);
    read_numbers(file, "norm_weight", norm, W);
    read_numbers(file, "conv_weight", taps, W * K);
    read_numbers(file, "out", out, T * W);
    read_numbers(file, "state", past, HISTORY * W);
    fclose(file);
    for (int i = 0; i < T * W; i++) d.value[i] = (float)value[i];
    for (int i = 0; i < W; i++) d.norm[i] = (float)norm[i];
    for (int i = 0; i < W * K; i++) d.taps[i] = (float)taps[i];
    eng_ref_conv(&d.problem.u.conv, d.value, d.state, want, want_state, NULL);
    for (int i = 0; i < T * W; i++) assert_true(fabs(want[i] - out[i]) < 1e-12);
    for (int i = 0; i < HISTORY * W; i++) assert_true(fabs(want_state[i] - past[i]) < 1e-12);
    assert_true(run_tokens(eng_kernel_find(ENG_OP_CONV, "portable"), &d, 0, T, d.state, d.out));
    for (int i = 0; i < T * W; i++) assert_true(fabs(d.out[i] - out[i]) < 1e-5);
    free_data(&d);
}

/* Pieces of given sizes, again and again; the state carries over. */
static void check_pieces(const EngKernel *kernel, const int64_t *sizes, int n_sizes)
{
    enum { T = 29 };
    Data d = make_data(T, 4, 48, 4, 3, 1);
    float *state = calloc(d.history * d.width, sizeof *state);
    float *out = calloc(T * d.width, sizeof *out);
    assert_true(run_tokens(kernel, &d, 0, T, d.state, d.out));
    int64_t at = 0;
    for (int i = 0; at < T; i++) {
        int64_t size = sizes[i % n_sizes] < T - at ? sizes[i % n_sizes] : T - at;
        assert_true(run_tokens(kernel, &d, at, size, state, out));
        at += size;
    }
    assert_memory_equal(out, d.out, T * d.width * sizeof *out);
    assert_memory_equal(state, d.state, d.history * d.width * sizeof *state);
    free(state), free(out);
    free_data(&d);
}

static void test_prefill_equals_decode(void **state)
{
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_CONV, &n);
    (void)state;
    for (int k = 0; k < n; k++) {
        check_pieces(kernels[k], (int64_t[]){1}, 1);
        check_pieces(kernels[k], (int64_t[]){2, 5, 0, 11}, 4);
        check_pieces(kernels[k], (int64_t[]){9, 10, 3}, 3);
    }
}

static void test_threads(void **state)
{
    Data one = make_data(19, 4, 80, 4, 3, 1), other = make_data(19, 4, 80, 4, 3, 3);
    const EngKernel *kernel = eng_kernel_find(ENG_OP_CONV, "portable");
    (void)state;
    assert_true(run_tokens(kernel, &one, 0, 19, one.state, one.out));
    assert_true(run_tokens(kernel, &other, 0, 19, other.state, other.out));
    assert_memory_equal(one.out, other.out, 19 * one.width * sizeof(float));
    free_data(&one);
    free_data(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_numpy_answer),
        cmocka_unit_test(test_prefill_equals_decode),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
