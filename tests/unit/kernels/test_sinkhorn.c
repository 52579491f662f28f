/* The Sinkhorn-balanced update: the published step, PyTorch, variants against the naive dense
 * oracle over many steps with rows that come and go, groups, dense gradients, and the pitfalls of
 * paper.md 7.2 (a)-(d).
 */
#include "training_test.h"

#include "kernels/ref/sinkhorn.h"

#define LENGTH 64 /* of lists of touched rows */

static EngSinkhornProblem problem_of(int64_t rows, int dims)
{
    return (EngSinkhornProblem){.rows = rows,
                                .row_dims = dims,
                                .max_touched = rows,
                                .beta = 0.95f,
                                .gamma = 0.18f,
                                .tau = 1e-3f,
                                .eps = 1e-20f,
                                .balance = 11,
                                .n_groups = 1};
}

/* ---- the oracle ----
 */

/* Facts section 4, item 12. */
static void test_published_step(void **state)
{
    double grad[] = {1, 2, -1, 0, 0, 0, .5, -.5, .25, 1e-6, 0, 1e-6}, momentum[12] = {0};
    double step[12], ratios[4];
    double want[] = {0.7493679337814649, 1.104184699183089,   -1.104184699183089, 0, 0, 0,
                     1.1993524695769997, -0.8836157687930745, 0.8836157687930745, 0, 0, 0};
    EngSinkhornProblem problem = problem_of(4, 3);
    (void)state;
    problem.beta = (float)0.95;
    eng_ref_sinkhorn_step(&problem, 4, grad, momentum, step, ratios, NULL);
    assert_near(step, want, 12, 1e-6, "step"); /* tau, beta and eps are f32 here */
    assert_true(ratios[1] == 0 && ratios[3] < 1e-5 && ratios[0] > 1);
}

static void test_torch(void **state)
{
    enum { R = 6, D = 4, N = R * D };
    EngSinkhornProblem problem = problem_of(R, D);
    double *w = known("opt_w", N), *grads = known("opt_grads", 3 * N);
    double *want = known("opt_sinkhorn", N), momentum[N] = {0};
    (void)state;
    for (int step = 0; step < 3; step++) {
        double *grad = grads + step * N;
        for (int i = 0; i < N && step; i++)
            if (i / D == 1 || i / D == 3 || i / D == 4) grad[i] = 0;
        assert_true(eng_ref_sinkhorn(&problem, w, grad, momentum, 0.01f, NULL, NULL));
    }
    assert_near(w, want, N, 1e-12, "w");
    free(w), free(grads), free(want);
}

/* ---- variants ----
 */

typedef struct Table {
    EngProblem problem;
    size_t n;
    float *w, *grad, *momentum, *norms;
    int32_t *steps;
    double *ref_w, *ref_grad, *ref_momentum, *ratios, *errors;
    EngRng rng;
    int64_t step;
} Table;

static Table make_table(EngSinkhornProblem problem, int threads)
{
    Table t = {.problem = {.op = ENG_OP_SINKHORN, .threads = threads}};
    size_t rows = (size_t)problem.rows;
    eng_rng_seed(&t.rng, 41);
    t.problem.u.sinkhorn = problem;
    t.n = rows * (size_t)problem.row_dims;
    t.ref_w = normals(&t.rng, t.n, 0, 1);
    t.w = narrowed(t.ref_w, t.n);
    t.grad = floats(t.n), t.momentum = floats(t.n), t.norms = floats(rows);
    t.steps = calloc(rows + 1, sizeof *t.steps);
    t.ref_grad = doubles(t.n), t.ref_momentum = doubles(t.n);
    t.ratios = doubles(rows), t.errors = doubles(t.n);
    return t;
}

static void free_table(Table *t)
{
    free(t->w), free(t->grad), free(t->momentum), free(t->norms), free(t->steps);
    free(t->ref_w), free(t->ref_grad), free(t->ref_momentum), free(t->ratios), free(t->errors);
}

/* One step of both with gradients of `touched` rows (NULL: all), each row of its own size. */
static void step_both(const EngKernel *kernel, Table *t, const int64_t *touched, int64_t n_touched)
{
    size_t dims = (size_t)t->problem.u.sinkhorn.row_dims;
    EngArgs args;
    t->step++;
    memset(t->ref_grad, 0, t->n * sizeof(double));
    for (int64_t i = 0; i < n_touched; i++) {
        int64_t row = touched ? touched[i] : i;
        double size = pow(4, (double)(row % 5));
        for (size_t j = 0; j < dims; j++) {
            size_t at = (size_t)i * dims + j;
            t->grad[at] = (float)(size * eng_rng_normal(&t->rng));
            t->ref_grad[(size_t)row * dims + j] = t->grad[at];
        }
    }
    for (size_t i = 0; i < t->n; i++) t->ref_w[i] = t->w[i];
    args.u.sinkhorn = (EngSinkhornArgs){t->w,     touched,  n_touched, t->grad, t->momentum,
                                        t->norms, t->steps, 0.05f,     t->step};
    assert_true(run_kernel(kernel, &t->problem, &args));
    assert_true(eng_ref_sinkhorn(&t->problem.u.sinkhorn, t->ref_w, t->ref_grad, t->ref_momentum,
                                 0.05f, t->ratios, t->errors));
}

/* Rows of each step: a few that change, so that some stay untouched for long. */
static int64_t choose_rows(Table *t, int64_t rows, int64_t *touched)
{
    int64_t n = 0;
    for (int64_t row = 0; row < rows && n < LENGTH; row++)
        if (eng_rng_below(&t->rng, 7) == 0 && (t->step < 20 || row % 3)) touched[n++] = row;
    return n;
}

static void check(const EngKernel *kernel, EngSinkhornProblem problem, int threads, int steps)
{
    Table t = make_table(problem, threads);
    for (int step = 0; step < steps; step++) {
        int64_t touched[LENGTH], n = choose_rows(&t, problem.rows, touched);
        step_both(kernel, &t, touched, n);
        for (int64_t row = 0; row < problem.rows; row++) /* a decision in the balance: not ours */
            assert_true(fabs(t.ratios[row] / problem.tau - 1) > 1e-4);
        assert_within(t.w, t.ref_w, t.errors, t.n, "w");
    }
    free_table(&t);
}

static void test_sparse_steps(void **state)
{
    static const int64_t bounds[] = {0, 11, 11, 12, 40};
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_SINKHORN, &n);
    (void)state;
    for (int k = 0; k < n; k++) {
        if (!kernels[k]->checked) continue;
        EngSinkhornProblem problem = problem_of(40, 8);
        check(kernels[k], problem, 1, 200); /* rows fall below the threshold and come back */
        check(kernels[k], problem, 3, 20);
        problem.bounds = bounds;
        problem.n_groups = 4;
        check(kernels[k], problem, 2, 40);
        problem = problem_of(37, 19);
        problem.balance = 1;
        check(kernels[k], problem, 1, 10);
        check(kernels[k], problem_of(1, 1), 1, 10);
    }
}

static void test_dense_steps(void **state)
{
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_SINKHORN, &n);
    (void)state;
    for (int k = 0; k < n; k++) {
        if (!kernels[k]->checked) continue;
        Table t = make_table(problem_of(600, 24), 2);
        for (int step = 0; step < 3; step++) {
            step_both(kernels[k], &t, NULL, 600);
            assert_within(t.w, t.ref_w, t.errors, t.n, "w");
        }
        free_table(&t);
    }
}

static void test_threads(void **state)
{
    const EngKernel *kernel = eng_kernel_find(ENG_OP_SINKHORN, "portable");
    Table one = make_table(problem_of(300, 17), 1), three = make_table(problem_of(300, 17), 3);
    int64_t touched[LENGTH];
    (void)state;
    for (int64_t i = 0; i < LENGTH; i++) touched[i] = 4 * i + 2;
    for (int step = 0; step < 4; step++) {
        step_both(kernel, &one, touched, LENGTH - step);
        step_both(kernel, &three, touched, LENGTH - step);
    }
    assert_memory_equal(one.w, three.w, one.n * sizeof(float));
    assert_memory_equal(one.momentum, three.momentum, one.n * sizeof(float));
    free_table(&one), free_table(&three);
}

/* Every kept row moves by gamma * rate in the root mean square, however small its gradient. */
static void test_updates_have_one_size(void **state)
{
    enum { R = 30, D = 16 };
    Table t = make_table(problem_of(R, D), 1);
    double expected = 0.18 * 0.05;
    (void)state;
    memset(t.w, 0, t.n * sizeof(float));
    step_both(eng_kernel_find(ENG_OP_SINKHORN, "portable"), &t, NULL, R);
    for (int row = 0; row < R; row++) {
        double squares = 0;
        for (int j = 0; j < D; j++) squares += pow(t.w[row * D + j], 2);
        assert_true(fabs(sqrt(squares / D) / expected - 1) < 1e-4);
    }
    free_table(&t);
}

/* A column without any gradient must not turn into NaN through its scale. */
static void test_column_of_zeros(void **state)
{
    enum { R = 5, D = 4 };
    Table t = make_table(problem_of(R, D), 1);
    EngArgs args;
    (void)state;
    for (size_t i = 0; i < t.n; i++) t.grad[i] = i % D == 2 ? 0 : (float)eng_rng_normal(&t.rng);
    float before = t.w[2];
    args.u.sinkhorn =
        (EngSinkhornArgs){t.w, NULL, R, t.grad, t.momentum, t.norms, t.steps, 0.05f, 1};
    assert_true(run_kernel(eng_kernel_find(ENG_OP_SINKHORN, "portable"), &t.problem, &args));
    for (size_t i = 0; i < t.n; i++) assert_true(isfinite(t.w[i]));
    assert_true(t.w[2] == before);
    free_table(&t);
}

/* Nothing known, nothing moves: all norms are 0 and so is their mean. */
static void test_no_gradients(void **state)
{
    Table t = make_table(problem_of(9, 4), 1);
    (void)state;
    step_both(eng_kernel_find(ENG_OP_SINKHORN, "portable"), &t, (int64_t[]){0}, 0);
    assert_within(t.w, t.ref_w, NULL, t.n, "w");
    free_table(&t);
}

/* ---- pitfalls (paper.md 7.2) ----
 */

/* Steps after which a row that was touched once, beside `others` rows touched with gradients of
 * the same norm in every step among `rows`, no longer moves. */
static int steps_moving(int64_t rows, int64_t others)
{
    enum { D = 4 };
    const EngKernel *kernel = eng_kernel_find(ENG_OP_SINKHORN, "portable");
    Table t = make_table(problem_of(rows, D), 1);
    int64_t touched[LENGTH];
    int last = 0;
    for (int64_t i = 0; i <= others; i++) touched[i] = i;
    for (size_t i = 0; i < (size_t)(others + 1) * D; i++) t.grad[i] = (i / D + i) % 3 ? 1 : -1;
    for (int step = 1; step < 400; step++) {
        float before = t.w[0];
        EngArgs args;
        if (step == 1) /* the others have been at it for long: their momentum is their gradient */
            for (int64_t i = 0; i <= others; i++) {
                for (int j = 0; j < D; j++) t.momentum[i * D + j] = t.grad[i * D + j];
                t.norms[i] = 2;
            }
        args.u.sinkhorn = (EngSinkhornArgs){t.w,     touched + 1, others, t.grad + D, t.momentum,
                                            t.norms, t.steps,     0.05f,  step};
        assert_true(run_kernel(kernel, &t.problem, &args));
        if (t.w[0] != before)
            last = step;
        else
            break;
    }
    free_table(&t);
    return last;
}

/* (a) A row that began at the mean moves at full size until 0.95^t <= 1e-3: t = 135. The look-ahead
 * multiplies by beta once more and the row itself lowers the mean, which one step covers. */
static void test_pitfall_old_rows_move(void **state)
{
    (void)state;
    assert_true(pow(0.95, 134) > 1e-3 && pow(0.95, 135) <= 1e-3);
    int all = steps_moving(41, 40);
    assert_in_range(all, 132, 135);
}

/* (c) The mean is over all rows: with ten times as many rows that nobody reads it is a tenth, and
 * the same row moves for ln(10) / -ln(.95) = 45 steps more. */
static void test_pitfall_table_size(void **state)
{
    (void)state;
    int small = steps_moving(41, 40), large = steps_moving(410, 40);
    assert_in_range(large - small, 44, 46);
}

/* (b) Momentum of rows without gradient decays: the lazy state says so when it is read. */
static void test_pitfall_lazy_decay(void **state)
{
    enum { R = 3, D = 2 };
    const EngKernel *kernel = eng_kernel_find(ENG_OP_SINKHORN, "portable");
    Table t = make_table(problem_of(R, D), 1);
    (void)state;
    step_both(kernel, &t, (int64_t[]){0, 1}, 2);
    float kept[D] = {t.momentum[0], t.momentum[1]};
    for (int i = 0; i < 9; i++) step_both(kernel, &t, (int64_t[]){1}, 1);
    assert_memory_equal(kept, t.momentum, sizeof kept); /* not rewritten, but dated */
    assert_int_equal(t.steps[0], 1);
    step_both(kernel, &t, (int64_t[]){0, 1}, 2);
    assert_int_equal(t.steps[0], 11);
    for (int j = 0; j < D; j++)
        assert_true(fabs(t.momentum[j] - t.ref_momentum[j]) <= 1e-6 * fabs(t.ref_momentum[j]));
    free_table(&t);
}

/* (d) The column steps couple rows: another row's gradient changes this row's update; a single row
 * step (balance 1) does not. */
static double update_of_first(int balance, double other)
{
    EngSinkhornProblem problem = problem_of(2, 2);
    problem.balance = balance;
    Table t = make_table(problem, 1);
    EngArgs args;
    float grad[] = {1, 2, (float)other, 1};
    memset(t.w, 0, t.n * sizeof(float));
    args.u.sinkhorn = (EngSinkhornArgs){t.w, NULL, 2, grad, t.momentum, t.norms, t.steps, 0.05f, 1};
    assert_true(run_kernel(eng_kernel_find(ENG_OP_SINKHORN, "portable"), &t.problem, &args));
    double moved = t.w[0];
    free_table(&t);
    return moved;
}

static void test_pitfall_coupling(void **state)
{
    (void)state;
    assert_true(update_of_first(1, 3) == update_of_first(1, -0.1));
    assert_true(fabs(update_of_first(11, 3) - update_of_first(11, -0.1)) > 1e-4);
}

static void test_refusals(void **state)
{
    static const int64_t falling[] = {0, 7, 5, 9}, short_of[] = {0, 4, 8};
    const EngKernel *kernel = eng_kernel_find(ENG_OP_SINKHORN, "portable");
    EngProblem problem = {.op = ENG_OP_SINKHORN, .threads = 1};
    EngErr err = {0};
    void *made = NULL;
    EngArgs args;
    (void)state;
    problem.u.sinkhorn = problem_of(9, 4);
    problem.u.sinkhorn.balance = 10;
    assert_int_equal(kernel->supports(&problem, &err), ENG_UNSUPPORTED);
    problem.u.sinkhorn = problem_of(9, 4);
    problem.u.sinkhorn.bounds = falling;
    problem.u.sinkhorn.n_groups = 3;
    assert_int_equal(kernel->supports(&problem, &err), ENG_UNSUPPORTED);
    problem.u.sinkhorn.bounds = short_of;
    problem.u.sinkhorn.n_groups = 2;
    assert_int_equal(kernel->supports(&problem, &err), ENG_UNSUPPORTED);
    problem.u.sinkhorn = problem_of(9, 4);
    for (uint64_t nth = 1; nth <= 9; nth++) {
        eng_mem_fail_at(nth);
        assert_int_equal(kernel->create(&problem, &made, &err), ENG_NO_MEMORY);
        assert_null(made);
    }
    eng_mem_fail_at(0);
    problem.u.sinkhorn.max_touched = 2;
    assert_int_equal(kernel->create(&problem, &made, &err), ENG_OK);
    args.u.sinkhorn = (EngSinkhornArgs){.n_touched = 3, .step = 1};
    assert_int_equal(kernel->run(made, &problem, &args, &err), ENG_USAGE);
    kernel->destroy(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_step),
        cmocka_unit_test(test_torch),
        cmocka_unit_test(test_sparse_steps),
        cmocka_unit_test(test_dense_steps),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_updates_have_one_size),
        cmocka_unit_test(test_column_of_zeros),
        cmocka_unit_test(test_no_gradients),
        cmocka_unit_test(test_pitfall_old_rows_move),
        cmocka_unit_test(test_pitfall_table_size),
        cmocka_unit_test(test_pitfall_lazy_decay),
        cmocka_unit_test(test_pitfall_coupling),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
