/* SGD, AdamW, sparse Adam and Muon: oracles against PyTorch, variants against the oracles over
 * several steps, any number of threads; the updates' known properties.
 */
#include "training_test.h"

#include "kernels/ref/optimizers.h"

enum { STEPS = 3 };

static const float g_rate = 0.01f;

static EngProblem sgd_problem(int64_t n, float momentum, bool nesterov, int threads)
{
    EngProblem problem = {.op = ENG_OP_SGD, .threads = threads};
    problem.u.sgd = (EngSgdProblem){n, momentum, 0.1f, nesterov};
    return problem;
}

static EngProblem adamw_problem(int64_t n, int threads)
{
    EngProblem problem = {.op = ENG_OP_ADAMW, .threads = threads};
    problem.u.adamw = (EngAdamWProblem){n, 0.9f, 0.95f, 1e-8f, 0.1f};
    return problem;
}

static EngProblem sparse_problem(int64_t rows, int dims, int threads)
{
    EngProblem problem = {.op = ENG_OP_SPARSE_ADAM, .threads = threads};
    problem.u.sparse_adam = (EngSparseAdamProblem){rows, dims, 0.9f, 0.95f, 1e-8f};
    return problem;
}

static EngProblem muon_problem(int64_t count, int rows, int cols, int threads)
{
    EngProblem problem = {.op = ENG_OP_MUON, .threads = threads};
    problem.u.muon = (EngMuonProblem){count, rows, cols, 0.95f, 0.1f, 0.18f, 5};
    return problem;
}

/* ---- the oracles against PyTorch: 3 steps on 6 x 4 weights ----
 */

enum { ROWS = 6, DIMS = 4, N = ROWS * DIMS };

static void assert_known(const char *name, double *w)
{
    double *want = known(name, N);
    assert_near(w, want, N, 1e-13, name);
    free(want), free(w);
}

static void test_torch(void **state)
{
    static const int64_t touched[] = {0, 2, 5};
    double *grads = known("opt_grads", STEPS * N), a[N] = {0}, b[N] = {0};
    EngProblem sgd = sgd_problem(N, 0.9f, true, 1), adamw = adamw_problem(N, 1);
    EngProblem sparse = sparse_problem(ROWS, DIMS, 1), muon = muon_problem(1, ROWS, DIMS, 1);
    double *w = known("opt_w", N);
    (void)state;
    for (int s = 0; s < STEPS; s++) eng_ref_sgd(&sgd.u.sgd, w, grads + s * N, a, g_rate, NULL);
    assert_known("opt_sgd", w);
    memset(a, 0, sizeof a);
    w = known("opt_w", N);
    for (int s = 0; s < STEPS; s++)
        eng_ref_adamw(&adamw.u.adamw, w, grads + s * N, a, b, g_rate, s + 1, NULL);
    assert_known("opt_adamw", w);
    memset(a, 0, sizeof a), memset(b, 0, sizeof b);
    w = known("opt_w", N);
    sparse.u.sparse_adam.eps = 1e-20f;
    for (int s = 0; s < STEPS; s++)
        eng_ref_sparse_adam(&sparse.u.sparse_adam, w, touched, 3, grads + s * N, a, b, NULL, g_rate,
                            s + 1, NULL);
    assert_known("opt_sparse", w);
    memset(a, 0, sizeof a);
    w = known("opt_w", N);
    for (int s = 0; s < STEPS; s++)
        assert_true(eng_ref_muon(&muon.u.muon, w, grads + s * N, a, g_rate, NULL));
    assert_known("opt_muon", w);
    free(grads);
}

/* ---- variants: each step from the state that the variant itself left ----
 */

typedef struct Arrays {
    size_t n;
    float *w, *grad, *a, *b;
    double *ref_w, *ref_grad, *ref_a, *ref_b, *errors;
    EngRng rng;
} Arrays;

static Arrays make_arrays(size_t n)
{
    Arrays s = {.n = n};
    eng_rng_seed(&s.rng, 3);
    s.ref_w = normals(&s.rng, n, 0, 1);
    s.w = narrowed(s.ref_w, n);
    s.grad = floats(n), s.a = floats(n), s.b = floats(n);
    s.ref_grad = doubles(n), s.ref_a = doubles(n), s.ref_b = doubles(n), s.errors = doubles(n);
    return s;
}

static void free_arrays(Arrays *s)
{
    free(s->w), free(s->grad), free(s->a), free(s->b), free(s->errors);
    free(s->ref_w), free(s->ref_grad), free(s->ref_a), free(s->ref_b);
}

/* New gradients of many magnitudes, and the oracle's state from the variant's. */
static void next_step(Arrays *s)
{
    for (size_t i = 0; i < s->n; i++) {
        s->grad[i] = (float)(eng_rng_normal(&s->rng) * pow(10, -(double)(i % 7)));
        s->ref_grad[i] = s->grad[i];
        s->ref_w[i] = s->w[i];
        s->ref_a[i] = s->a[i];
        s->ref_b[i] = s->b[i];
    }
}

static void check_sgd(const EngKernel *kernel, size_t n, float momentum, bool nesterov, int threads)
{
    EngProblem problem = sgd_problem((int64_t)n, momentum, nesterov, threads);
    Arrays s = make_arrays(n);
    double *buffer = momentum > 0 ? s.ref_a : NULL;
    for (int step = 0; step < STEPS; step++) {
        EngArgs args;
        next_step(&s);
        args.u.sgd = (EngSgdArgs){s.w, s.grad, momentum > 0 ? s.a : NULL, g_rate};
        assert_true(run_kernel(kernel, &problem, &args));
        eng_ref_sgd(&problem.u.sgd, s.ref_w, s.ref_grad, buffer, g_rate, s.errors);
        assert_within(s.w, s.ref_w, s.errors, n, "sgd");
    }
    free_arrays(&s);
}

static void check_adamw(const EngKernel *kernel, size_t n, int threads)
{
    EngProblem problem = adamw_problem((int64_t)n, threads);
    Arrays s = make_arrays(n);
    for (int step = 1; step <= STEPS; step++) {
        EngArgs args;
        next_step(&s);
        args.u.adamw = (EngAdamWArgs){s.w, s.grad, s.a, s.b, g_rate, step};
        assert_true(run_kernel(kernel, &problem, &args));
        eng_ref_adamw(&problem.u.adamw, s.ref_w, s.ref_grad, s.ref_a, s.ref_b, g_rate, step,
                      s.errors);
        assert_within(s.w, s.ref_w, s.errors, n, "adamw");
    }
    free_arrays(&s);
}

static void test_elementwise(void **state)
{
    static const size_t sizes[] = {0, 1, 15, 16, 1000};
    int n;
    (void)state;
    for (int i = 0; i < LENGTH_OF(sizes); i++)
        for (int threads = 1; threads <= 3; threads += 2) {
            const EngKernel *const *kernels = cpu_kernels(ENG_OP_SGD, &n);
            for (int k = 0; k < n; k++) {
                if (!kernels[k]->checked) continue;
                check_sgd(kernels[k], sizes[i], 0, false, threads);
                check_sgd(kernels[k], sizes[i], 0.9f, false, threads);
                check_sgd(kernels[k], sizes[i], 0.9f, true, threads);
            }
            kernels = cpu_kernels(ENG_OP_ADAMW, &n);
            for (int k = 0; k < n; k++)
                if (kernels[k]->checked) check_adamw(kernels[k], sizes[i], threads);
        }
}

static void check_sparse(const EngKernel *kernel, bool row_steps, int threads)
{
    enum { R = 41, D = 19 };
    static const int64_t touched[] = {0, 3, 4, 17, 40};
    EngProblem problem = sparse_problem(R, D, threads);
    Arrays s = make_arrays(R * D);
    int32_t got_steps[R] = {0}, want_steps[R] = {0};
    for (int step = 1; step <= STEPS; step++) {
        int64_t n_touched = step == 2 ? 2 : 5;
        EngArgs args;
        next_step(&s);
        args.u.sparse_adam = (EngSparseAdamArgs){
            s.w, touched, n_touched, s.grad, s.a, s.b, row_steps ? got_steps : NULL, g_rate, step};
        assert_true(run_kernel(kernel, &problem, &args));
        eng_ref_sparse_adam(&problem.u.sparse_adam, s.ref_w, touched, n_touched, s.ref_grad,
                            s.ref_a, s.ref_b, row_steps ? want_steps : NULL, g_rate, step,
                            s.errors);
        assert_within(s.w, s.ref_w, s.errors, R * D, "sparse adam"); /* other rows: to the bit */
    }
    assert_memory_equal(got_steps, want_steps, sizeof got_steps);
    if (row_steps) assert_int_equal(got_steps[17], 2);
    free_arrays(&s);
}

static void test_sparse(void **state)
{
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_SPARSE_ADAM, &n);
    (void)state;
    for (int k = 0; k < n; k++) {
        if (!kernels[k]->checked) continue;
        check_sparse(kernels[k], false, 1);
        check_sparse(kernels[k], true, 1);
        check_sparse(kernels[k], true, 3);
    }
}

/* A row touched first at step 1000 moves by the full rate when rows count their own steps, and by
 * what the means lack otherwise. */
static void test_first_touch_late(void **state)
{
    EngProblem problem = sparse_problem(2, 1, 1);
    float w[2] = {0, 0}, grad = 3, m[2] = {0}, v[2] = {0};
    int32_t steps[2] = {0};
    int64_t row = 1;
    EngArgs args;
    (void)state;
    args.u.sparse_adam = (EngSparseAdamArgs){w, &row, 1, &grad, m, v, steps, 0.5f, 1000};
    assert_true(run_kernel(eng_kernel_find(ENG_OP_SPARSE_ADAM, "portable"), &problem, &args));
    assert_true(w[0] == 0 && fabsf(w[1] + 0.5f) < 1e-5f);
    m[1] = v[1] = w[1] = 0;
    args.u.sparse_adam.row_steps = NULL;
    assert_true(run_kernel(eng_kernel_find(ENG_OP_SPARSE_ADAM, "portable"), &problem, &args));
    assert_true(fabsf(w[1] + 0.5f * 0.1f / sqrtf(0.05f)) < 1e-5f);
}

static void check_muon(const EngKernel *kernel, int64_t count, int rows, int cols, int threads)
{
    EngProblem problem = muon_problem(count, rows, cols, threads);
    Arrays s = make_arrays((size_t)count * (size_t)rows * (size_t)cols);
    for (int step = 0; step < STEPS; step++) {
        EngArgs args;
        next_step(&s);
        args.u.muon = (EngMuonArgs){s.w, s.grad, s.a, g_rate};
        assert_true(run_kernel(kernel, &problem, &args));
        assert_true(eng_ref_muon(&problem.u.muon, s.ref_w, s.ref_grad, s.ref_a, g_rate, s.errors));
        assert_within(s.w, s.ref_w, s.errors, s.n, "muon");
    }
    free_arrays(&s);
}

static void test_muon(void **state)
{
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_MUON, &n);
    (void)state;
    for (int k = 0; k < n; k++) {
        if (!kernels[k]->checked) continue;
        check_muon(kernels[k], 1, 8, 8, 1);
        check_muon(kernels[k], 3, 12, 40, 2);
        check_muon(kernels[k], 2, 33, 7, 1);
        check_muon(kernels[k], 1, 1, 9, 1);
        check_muon(kernels[k], 0, 4, 4, 1);
    }
}

/* Five steps bring singular values of a random matrix near 1; the update's root mean square is
 * near rate * .18. */
static void test_muon_balances(void **state)
{
    enum { R = 24, C = 60 };
    EngProblem problem = muon_problem(1, R, C, 1);
    Arrays s = make_arrays(R * C);
    double squares = 0;
    EngArgs args;
    (void)state;
    for (size_t i = 0; i < s.n; i++) s.grad[i] = (float)eng_rng_normal(&s.rng), s.w[i] = 0;
    args.u.muon = (EngMuonArgs){s.w, s.grad, s.a, 1.0f};
    assert_true(run_kernel(eng_kernel_find(ENG_OP_MUON, "onednn"), &problem, &args));
    for (size_t i = 0; i < s.n; i++) squares += (double)s.w[i] * s.w[i];
    double rms = sqrt(squares / (R * C));
    assert_true(rms > 0.18 * 0.6 && rms < 0.18 * 1.25);
    free_arrays(&s);
}

static void test_refusals(void **state)
{
    EngErr err = {0};
    EngProblem muon = muon_problem(1, 0, 4, 1), adamw = adamw_problem(4, 0);
    const EngKernel *kernel = eng_kernel_find(ENG_OP_MUON, "onednn");
    (void)state;
    assert_int_equal(kernel->supports(&muon, &err), ENG_UNSUPPORTED);
    assert_int_equal(eng_kernel_find(ENG_OP_ADAMW, "portable")->supports(&adamw, &err),
                     ENG_UNSUPPORTED);
    adamw = adamw_problem(INT64_MAX / 2, 1);
    assert_int_equal(eng_kernel_find(ENG_OP_ADAMW, "portable")->supports(&adamw, &err),
                     ENG_UNSUPPORTED);
    muon = muon_problem(1, 4, 4, 1);
    for (uint64_t nth = 1; nth <= 5; nth++) {
        void *made = &muon;
        eng_mem_fail_at(nth);
        assert_int_equal(kernel->create(&muon, &made, &err), ENG_NO_MEMORY);
        assert_null(made);
    }
    eng_mem_fail_at(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torch),    cmocka_unit_test(test_elementwise),
        cmocka_unit_test(test_sparse),   cmocka_unit_test(test_first_touch_late),
        cmocka_unit_test(test_muon),     cmocka_unit_test(test_muon_balances),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
