/* The short convolution for training: oracle against finite differences and PyTorch, variants
 * against the oracle on packed sequences; sequences do not see each other; any number of threads.
 */
#include "training_test.h"

#include "kernels/ref/conv.h"
#include "kernels/ref/train_conv.h"

typedef struct Data {
    EngTrainConvProblem problem;
    size_t width, n, n_taps;
    double *value, *norm, *taps, *d_out;
    const int64_t *starts;
    int64_t n_seqs;
} Data;

static Data make_data(EngTrainConvProblem problem, const int64_t *starts, int64_t n_seqs)
{
    EngRng rng;
    Data d = {.problem = problem, .starts = starts, .n_seqs = n_seqs};
    eng_rng_seed(&rng, 13);
    d.width = (size_t)problem.streams * (size_t)problem.hidden;
    d.n = (size_t)problem.tokens * d.width;
    d.n_taps = d.width * (size_t)problem.kernel;
    d.value = normals(&rng, d.n, 0, 2);
    d.norm = normals(&rng, d.width, 1, 0.2);
    d.taps = normals(&rng, d.n_taps, 0, 1);
    d.d_out = normals(&rng, d.n, 0, 1);
    return d;
}

static void free_data(Data *d)
{
    free(d->value), free(d->norm), free(d->taps), free(d->d_out);
}

static EngRefConvInputs inputs_of(const Data *d)
{
    return (EngRefConvInputs){d->value, d->norm, d->taps, d->starts, d->n_seqs};
}

static EngRefConvGradients make_gradients(const Data *d)
{
    return (EngRefConvGradients){doubles(d->n), doubles(d->width), doubles(d->n_taps)};
}

static void free_gradients(EngRefConvGradients *g)
{
    free(g->value), free(g->norm_weight), free(g->conv_weight);
}

/* ---- the oracle ----
 */

static double loss(void *context)
{
    const Data *d = context;
    EngRefConvInputs inputs = inputs_of(d);
    double *out = doubles(d->n), sum = 0;
    eng_ref_train_conv(&d->problem, &inputs, out, NULL);
    for (size_t i = 0; i < d->n; i++) sum += out[i] * d->d_out[i];
    free(out);
    return sum;
}

static void check_differences(Data *d, double *at, const double *got, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        double want = derivative(loss, d, &at[i]);
        if (!(fabs(got[i] - want) <= 1e-7 * (1 + fabs(want))))
            fail_msg("%s[%zu]: %.12g, differences give %.12g", what, i, got[i], want);
    }
}

static void test_differences(void **state)
{
    static const int64_t starts[] = {0, 4, 4, 5, 9};
    Data d = make_data((EngTrainConvProblem){9, 2, 3, 3, 2, 1e-5f}, starts, 4);
    EngRefConvGradients g = make_gradients(&d);
    EngRefConvInputs inputs = inputs_of(&d);
    (void)state;
    assert_true(eng_ref_back_conv(&d.problem, &inputs, d.d_out, &g, NULL));
    check_differences(&d, d.value, g.value, d.n, "d_value");
    check_differences(&d, d.norm, g.norm_weight, d.width, "d_norm_weight");
    check_differences(&d, d.taps, g.conv_weight, d.n_taps, "d_conv_weight");
    free_gradients(&g);
    free_data(&d);
}

static void test_torch(void **state)
{
    enum { T = 9, W = 6, K = 3 };
    static const int64_t starts[] = {0, 5, 6, 9};
    Data d = make_data((EngTrainConvProblem){T, 2, 3, K, 2, 1e-5f}, starts, 3);
    (void)state;
    free_data(&d);
    d.value = known("conv_value", T * W), d.norm = known("conv_norm", W);
    d.taps = known("conv_weight", W * K), d.d_out = known("conv_d_out", T * W);
    EngRefConvGradients g = make_gradients(&d);
    EngRefConvInputs inputs = inputs_of(&d);
    double *out = doubles(T * W), *want_out = known("conv_out", T * W);
    double *value = known("conv_d_value", T * W), *norm = known("conv_d_norm", W);
    double *taps = known("conv_d_weight", W * K);
    eng_ref_train_conv(&d.problem, &inputs, out, NULL);
    assert_true(eng_ref_back_conv(&d.problem, &inputs, d.d_out, &g, NULL));
    assert_near(out, want_out, T * W, 1e-12, "out");
    assert_near(g.value, value, T * W, 1e-12, "d_value");
    assert_near(g.norm_weight, norm, W, 1e-12, "d_norm_weight");
    assert_near(g.conv_weight, taps, W * K, 1e-12, "d_conv_weight");
    free(out), free(want_out), free(value), free(norm), free(taps);
    free_gradients(&g);
    free_data(&d);
}

/* One sequence from zeros is what the inference operation computes. */
static void test_equals_inference(void **state)
{
    Data d = make_data((EngTrainConvProblem){11, 2, 5, 4, 3, 1e-5f}, NULL, 0);
    EngRefConvInputs inputs = inputs_of(&d);
    float *value = narrowed(d.value, d.n), *norm = narrowed(d.norm, d.width);
    float *taps = narrowed(d.taps, d.n_taps), *zeros = floats(9 * d.width);
    EngConvProblem plain = {11, 2, 5, 4, 3, 1e-5f, norm, taps};
    double *out = doubles(d.n), *want = doubles(d.n);
    (void)state;
    eng_ref_train_conv(&d.problem, &inputs, out, NULL);
    eng_ref_conv(&plain, value, zeros, want, NULL, NULL);
    assert_near(out, want, d.n, 1e-14, "out");
    free(value), free(norm), free(taps), free(zeros), free(out), free(want);
    free_data(&d);
}

/* ---- variants ----
 */

typedef struct Buffers {
    float *value, *norm, *taps, *d_out, *out, *d_value, *d_norm, *d_taps;
} Buffers;

static Buffers make_buffers(const Data *d)
{
    return (Buffers){narrowed(d->value, d->n),
                     narrowed(d->norm, d->width),
                     narrowed(d->taps, d->n_taps),
                     narrowed(d->d_out, d->n),
                     floats(d->n),
                     floats(d->n),
                     floats(d->width),
                     floats(d->n_taps)};
}

static void free_buffers(Buffers *b)
{
    free(b->value), free(b->norm), free(b->taps), free(b->d_out);
    free(b->out), free(b->d_value), free(b->d_norm), free(b->d_taps);
}

static bool run_forward(const EngKernel *kernel, const Data *d, const Buffers *b, int threads)
{
    EngProblem problem = {.op = ENG_OP_TRAIN_CONV, .threads = threads};
    EngArgs args;
    problem.u.train_conv = d->problem;
    args.u.train_conv =
        (EngTrainConvArgs){b->value, b->norm, b->taps, d->starts, d->n_seqs, b->out};
    return run_kernel(kernel, &problem, &args);
}

static bool run_backward(const EngKernel *kernel, const Data *d, const Buffers *b, int threads)
{
    EngProblem problem = {.op = ENG_OP_BACK_CONV, .threads = threads};
    EngArgs args;
    problem.u.train_conv = d->problem;
    args.u.back_conv = (EngBackConvArgs){b->value, b->norm,    b->taps,   d->starts, d->n_seqs,
                                         b->d_out, b->d_value, b->d_norm, b->d_taps};
    return run_kernel(kernel, &problem, &args);
}

static void check(EngTrainConvProblem problem, const int64_t *starts, int64_t n_seqs, int threads)
{
    int n_forward, n_backward;
    const EngKernel *const *forward = cpu_kernels(ENG_OP_TRAIN_CONV, &n_forward);
    const EngKernel *const *backward = cpu_kernels(ENG_OP_BACK_CONV, &n_backward);
    Data d = make_data(problem, starts, n_seqs);
    EngRefConvInputs inputs = inputs_of(&d);
    EngRefConvGradients want = make_gradients(&d), errors = make_gradients(&d);
    double *out = doubles(d.n), *out_errors = doubles(d.n);
    Buffers b = make_buffers(&d);
    eng_ref_train_conv(&d.problem, &inputs, out, out_errors);
    assert_true(eng_ref_back_conv(&d.problem, &inputs, d.d_out, &want, &errors));
    for (int i = 0; i < n_forward; i++) {
        if (!forward[i]->checked) continue;
        assert_true(run_forward(forward[i], &d, &b, threads));
        assert_within(b.out, out, out_errors, d.n, "out");
    }
    for (int i = 0; i < n_backward; i++) {
        if (!backward[i]->checked) continue;
        memset(b.d_norm, 0, d.width * sizeof(float)), memset(b.d_taps, 0, d.n_taps * sizeof(float));
        assert_true(run_backward(backward[i], &d, &b, threads));
        assert_within(b.d_value, want.value, errors.value, d.n, "d_value");
        assert_within(b.d_norm, want.norm_weight, errors.norm_weight, d.width, "d_norm_weight");
        assert_within(b.d_taps, want.conv_weight, errors.conv_weight, d.n_taps, "d_conv_weight");
    }
    free_buffers(&b);
    free_gradients(&want), free_gradients(&errors);
    free(out), free(out_errors);
    free_data(&d);
}

static void test_shapes(void **state)
{
    static const int64_t starts[] = {0, 1, 1, 20, 23, 37};
    (void)state;
    check((EngTrainConvProblem){0, 2, 16, 4, 3, 1e-5f}, NULL, 0, 1);
    check((EngTrainConvProblem){1, 2, 16, 4, 3, 1e-5f}, NULL, 0, 1);
    check((EngTrainConvProblem){37, 2, 40, 4, 3, 1e-5f}, starts, 5, 1);
    check((EngTrainConvProblem){37, 1, 17, 3, 2, 1e-5f}, starts, 5, 3);
    check((EngTrainConvProblem){37, 3, 5, 1, 1, 1e-5f}, starts, 5, 2);
    check((EngTrainConvProblem){12, 4, 64, 2, 9, 1e-5f}, NULL, 0, 2);
    /* Several blocks of channels, the last one odd; taps that reach beyond the sequence. */
    check((EngTrainConvProblem){37, 2, 301, 4, 3, 1e-5f}, starts, 5, 3);
    check((EngTrainConvProblem){20, 1, 150, 4, 50, 1e-5f}, NULL, 0, 1);
    check((EngTrainConvProblem){70, 1, 131, 5, 2, 1e-5f}, NULL, 0, 2);
}

/* A sequence gives the same bits alone and packed behind another. */
static void test_sequences_are_apart(void **state)
{
    static const int64_t starts[] = {0, 7, 19};
    Data d = make_data((EngTrainConvProblem){19, 2, 24, 4, 3, 1e-5f}, starts, 2);
    Buffers b = make_buffers(&d), alone = make_buffers(&d);
    size_t at = 7 * d.width, n = 12 * d.width;
    Data second = d;
    (void)state;
    assert_true(run_forward(eng_kernel_find(ENG_OP_TRAIN_CONV, "portable"), &d, &b, 1));
    assert_true(run_backward(eng_kernel_find(ENG_OP_BACK_CONV, "portable"), &d, &b, 1));
    memmove(alone.value, alone.value + at, n * sizeof(float));
    memmove(alone.d_out, alone.d_out + at, n * sizeof(float));
    second.problem.tokens = 12;
    second.starts = NULL;
    assert_true(run_forward(eng_kernel_find(ENG_OP_TRAIN_CONV, "portable"), &second, &alone, 1));
    assert_true(run_backward(eng_kernel_find(ENG_OP_BACK_CONV, "portable"), &second, &alone, 1));
    assert_memory_equal(alone.out, b.out + at, n * sizeof(float));
    assert_memory_equal(alone.d_value, b.d_value + at, n * sizeof(float));
    free_buffers(&b), free_buffers(&alone);
    free_data(&d);
}

static void test_threads_and_sums(void **state)
{
    Data d = make_data((EngTrainConvProblem){53, 2, 40, 4, 3, 1e-5f}, NULL, 0);
    Buffers one = make_buffers(&d), three = make_buffers(&d);
    const EngKernel *kernel = eng_kernel_find(ENG_OP_BACK_CONV, "portable");
    (void)state;
    assert_true(run_backward(kernel, &d, &one, 1));
    assert_true(run_backward(kernel, &d, &three, 3));
    assert_memory_equal(one.d_value, three.d_value, d.n * sizeof(float));
    assert_memory_equal(one.d_norm, three.d_norm, d.width * sizeof(float));
    assert_memory_equal(one.d_taps, three.d_taps, d.n_taps * sizeof(float));
    for (size_t i = 0; i < d.width; i++) one.d_norm[i] = 1000;
    assert_true(run_backward(kernel, &d, &one, 1));
    for (size_t i = 0; i < d.width; i++)
        assert_true(fabsf(one.d_norm[i] - 1000 - three.d_norm[i]) < 0.01f);
    free_buffers(&one), free_buffers(&three);
    free_data(&d);
}

static void test_refusals(void **state)
{
    EngProblem problem = {.op = ENG_OP_BACK_CONV, .threads = 1};
    const EngKernel *kernel = eng_kernel_find(ENG_OP_BACK_CONV, "portable");
    EngErr err = {0};
    (void)state;
    problem.u.train_conv = (EngTrainConvProblem){4, 2, 16, 0, 3, 0};
    assert_int_equal(kernel->supports(&problem, &err), ENG_UNSUPPORTED);
    problem.u.train_conv = (EngTrainConvProblem){4, 2, 16, 4, 3, 0};
    const EngKernel *both[] = {kernel, eng_kernel_find(ENG_OP_TRAIN_CONV, "portable")};
    for (int i = 0; i < 2; i++) {
        EngStatus status = ENG_NO_MEMORY;
        uint64_t nth = 0;
        void *made = &problem;
        while (status == ENG_NO_MEMORY) {
            made = &problem;
            problem.op = both[i]->op;
            eng_mem_fail_at(++nth);
            status = both[i]->create(&problem, &made, &err);
            if (status) assert_null(made);
        }
        assert_int_equal(status, ENG_OK);
        assert_true(nth > 4);
        both[i]->destroy(made);
    }
    eng_mem_fail_at(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_torch),
        cmocka_unit_test(test_equals_inference),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_sequences_are_apart),
        cmocka_unit_test(test_threads_and_sums),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
