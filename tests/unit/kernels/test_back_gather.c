/* Scatter-add: every variant against the oracle with many and few duplicates; the ordered variants
 * give the same bits for any number of threads, and each other's; runs leave no trace behind.
 */
#include "training_test.h"

#include "kernels/ref/back_gather.h"

typedef struct Data {
    EngProblem problem;
    EngBackGatherArgs args;
    int64_t *rows, *touched, n_touched;
    float *d_out, *d_rows;
    size_t n, dims;
} Data;

/* Rows below `spread` of the table, at a stride above the columns. */
static Data make_data(int64_t table_rows, int64_t spread, int64_t tokens, int columns, int dims,
                      int threads)
{
    Data d = {.problem = {.op = ENG_OP_BACK_GATHER, .threads = threads},
              .n = (size_t)tokens * (size_t)columns,
              .dims = (size_t)dims};
    int64_t stride = columns + 3;
    EngRng rng;
    eng_rng_seed(&rng, 17);
    d.problem.u.back_gather = (EngBackGatherProblem){table_rows, dims, columns, tokens};
    d.rows = calloc((size_t)(tokens * stride) + 1, sizeof *d.rows);
    d.touched = calloc(d.n + 1, sizeof *d.touched);
    d.d_out = floats(d.n * d.dims), d.d_rows = floats(d.n * d.dims);
    for (int64_t i = 0; i < tokens * stride; i++)
        d.rows[i] = i % stride < columns
                        ? table_rows - 1 - (int64_t)eng_rng_below(&rng, (uint64_t)spread)
                        : INT64_MAX; /* never read */
    for (size_t i = 0; i < d.n * d.dims; i++) d.d_out[i] = (float)eng_rng_normal(&rng);
    memset(d.d_rows, 0x7f, d.n * d.dims * sizeof(float)); /* what was there must not matter */
    return d;
}

static void free_data(Data *d)
{
    free(d->rows), free(d->touched), free(d->d_out), free(d->d_rows);
}

static EngArgs args_of(Data *d)
{
    EngArgs args;
    args.u.back_gather = (EngBackGatherArgs){d->rows,       d->problem.u.back_gather.columns + 3,
                                             d->d_out,      d->touched,
                                             &d->n_touched, d->d_rows};
    return args;
}

static void check_result(Data *d, const char *name)
{
    EngArgs args = args_of(d);
    const EngBackGatherProblem *p = &d->problem.u.back_gather;
    int64_t *want = calloc(d->n + 1, sizeof *want), n_want = -1, times;
    double *sum = doubles(d->dims), *abs_sum = doubles(d->dims);
    EngComparison residual;
    eng_residual_start(&residual);
    assert_true(eng_ref_touched(p, &args.u.back_gather, want, &n_want));
    assert_int_equal(d->n_touched, n_want);
    assert_memory_equal(d->touched, want, (size_t)n_want * sizeof *want);
    for (int64_t i = 0; i < n_want; i++) {
        eng_ref_back_gather_row(p, &args.u.back_gather, want[i], sum, abs_sum, &times);
        for (size_t j = 0; j < d->dims; j++)
            eng_residual_add(&residual, ENG_F32, d->d_rows[(size_t)i * d->dims + j], sum[j],
                             eng_limit_sum(ENG_F32, sum[j], (double)times, abs_sum[j]));
    }
    assert_residual(&residual, name);
    free(want), free(sum), free(abs_sum);
}

static void check(const EngKernel *kernel, int64_t table_rows, int64_t spread, int64_t tokens,
                  int columns, int dims, int threads)
{
    Data d = make_data(table_rows, spread, tokens, columns, dims, threads);
    EngArgs args = args_of(&d);
    assert_true(run_kernel(kernel, &d.problem, &args));
    check_result(&d, kernel->name);
    free_data(&d);
}

static void test_shapes(void **state)
{
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_BACK_GATHER, &n);
    (void)state;
    assert_true(n >= 3);
    for (int i = 0; i < n; i++) {
        if (!kernels[i]->checked) continue;
        check(kernels[i], 100, 100, 0, 4, 8, 2);
        check(kernels[i], 1, 1, 33, 2, 5, 2); /* one row */
        check(kernels[i], 1000, 10, 50, 6, 17, 1);
        check(kernels[i], 1000, 1000, 50, 6, 17, 3);
        check(kernels[i], 70000, 70000, 129, 3, 32, 2);
        check(kernels[i], 5000000, 4000000, 64, 4, 16, 3); /* three digits of the sort */
        check(kernels[i], 64, 64, 2, 3, 1, 5);             /* more threads than tokens */
    }
}

/* Ids beyond 32 bits, which a bitmap would need 640 MB for: sorted only. */
static void test_large_rows(void **state)
{
    (void)state;
    check(eng_kernel_find(ENG_OP_BACK_GATHER, "sort"), (int64_t)5 << 30, (int64_t)5 << 30, 64, 4, 8,
          2);
}

static void test_same_bits(void **state)
{
    static const char *const names[] = {"sort", "owner"};
    Data want = make_data(3000, 90, 200, 5, 19, 1);
    EngArgs args = args_of(&want);
    (void)state;
    assert_true(run_kernel(eng_kernel_find(ENG_OP_BACK_GATHER, "sort"), &want.problem, &args));
    for (int i = 0; i < 2; i++)
        for (int threads = 1; threads <= 4; threads++) {
            Data d = make_data(3000, 90, 200, 5, 19, threads);
            args = args_of(&d);
            assert_true(
                run_kernel(eng_kernel_find(ENG_OP_BACK_GATHER, names[i]), &d.problem, &args));
            assert_int_equal(d.n_touched, want.n_touched);
            assert_memory_equal(d.d_rows, want.d_rows,
                                (size_t)d.n_touched * d.dims * sizeof(float));
            free_data(&d);
        }
    free_data(&want);
}

/* A state used again, on other rows: nothing of the first run is left. */
static void test_runs_leave_nothing(void **state)
{
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_BACK_GATHER, &n);
    (void)state;
    for (int i = 0; i < n; i++) {
        if (!kernels[i]->checked) continue;
        Data d = make_data(900, 900, 40, 4, 7, 2);
        EngArgs args = args_of(&d);
        EngErr err = {0};
        void *made = NULL;
        assert_int_equal(kernels[i]->create(&d.problem, &made, &err), ENG_OK);
        for (int run = 0; run < 3; run++) {
            for (int64_t t = 0; t < 40; t++)
                for (int64_t c = 0; c < 4; c++) d.rows[t * 7 + c] = (t * (run + 3) + c) % 900;
            assert_int_equal(kernels[i]->run(made, &d.problem, &args, &err), ENG_OK);
            check_result(&d, kernels[i]->name);
        }
        kernels[i]->destroy(made);
        free_data(&d);
    }
}

static void test_refusals(void **state)
{
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_BACK_GATHER, &n);
    EngErr err = {0};
    (void)state;
    for (int i = 0; i < n; i++) {
        EngProblem p = {.op = ENG_OP_BACK_GATHER, .threads = 1};
        p.u.back_gather = (EngBackGatherProblem){100, 0, 4, 8};
        assert_int_equal(kernels[i]->supports(&p, &err), ENG_UNSUPPORTED);
        p.u.back_gather = (EngBackGatherProblem){(int64_t)1 << 42, 1, 4, 1 << 22};
        assert_int_equal(kernels[i]->supports(&p, &err), ENG_UNSUPPORTED);
        if (!kernels[i]->checked) continue;
        p.u.back_gather = (EngBackGatherProblem){100, 8, 4, 8};
        for (uint64_t nth = 1; nth <= 5; nth++) {
            void *made = &p;
            eng_mem_fail_at(nth);
            assert_int_equal(kernels[i]->create(&p, &made, &err), ENG_NO_MEMORY);
            assert_null(made);
        }
        eng_mem_fail_at(0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),    cmocka_unit_test(test_large_rows),
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_runs_leave_nothing),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
