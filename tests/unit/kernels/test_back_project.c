/* Backward of the projection: every variant against the oracle, in f32 and with bf16 operands;
 * d_x and bias that are not wanted; gradients of weights that are added to.
 */
#include "training_test.h"

#include "kernels/ref/back_project.h"

typedef struct Data {
    EngProblem problem;
    EngBackProjectArgs args;
    float *x, *w, *d_out, *d_x, *d_w, *d_bias;
    size_t m, n, k;
} Data;

static float *random_floats(EngRng *rng, size_t n)
{
    float *values = floats(n);
    for (size_t i = 0; i < n; i++) values[i] = (float)eng_rng_normal(rng);
    return values;
}

static Data make_data(int64_t tokens, int n, int k, EngDtype type, int threads)
{
    Data d = {.problem = {.op = ENG_OP_BACK_PROJECT, .threads = threads},
              .m = (size_t)tokens,
              .n = (size_t)n,
              .k = (size_t)k};
    EngRng rng;
    eng_rng_seed(&rng, 23);
    d.problem.u.back_project = (EngBackProjectProblem){tokens, n, k, type};
    d.x = random_floats(&rng, d.m * d.k), d.w = random_floats(&rng, d.n * d.k);
    d.d_out = random_floats(&rng, d.m * d.n);
    d.d_x = floats(d.m * d.k), d.d_w = floats(d.n * d.k), d.d_bias = floats(d.n);
    memset(d.d_x, 0x7f, d.m * d.k * sizeof(float)); /* what was there must not matter */
    d.args = (EngBackProjectArgs){d.x, d.w, d.d_out, d.d_x, d.d_w, d.d_bias};
    return d;
}

static void free_data(Data *d)
{
    free(d->x), free(d->w), free(d->d_out), free(d->d_x), free(d->d_w), free(d->d_bias);
}

static bool run(const EngKernel *kernel, const Data *d)
{
    EngArgs args;
    args.u.back_project = d->args;
    return run_kernel(kernel, &d->problem, &args);
}

/* Sums of `terms` products, added to `before`. */
static void add(EngComparison *residual, float got, double value, double abs_sum, double terms,
                double before)
{
    double want = before + value;
    eng_residual_add(residual, ENG_F32, got, want,
                     eng_limit_sum(ENG_F32, want, terms + 1, abs_sum + fabs(before)));
}

static void check_outputs(const Data *d, double before, const char *name)
{
    const EngBackProjectProblem *p = &d->problem.u.back_project;
    EngComparison x, w, bias;
    double value, abs_sum;
    eng_residual_start(&x), eng_residual_start(&w), eng_residual_start(&bias);
    for (size_t t = 0; d->args.d_x && t < d->m; t++)
        for (size_t i = 0; i < d->k; i++) {
            eng_ref_back_project_x(p, &d->args, (int64_t)t, (int)i, &value, &abs_sum);
            add(&x, d->d_x[t * d->k + i], value, abs_sum, (double)d->n, 0);
        }
    for (size_t j = 0; j < d->n; j++) {
        for (size_t i = 0; i < d->k; i++) {
            eng_ref_back_project_w(p, &d->args, (int)j, (int)i, &value, &abs_sum);
            add(&w, d->d_w[j * d->k + i], value, abs_sum, (double)d->m, before);
        }
        eng_ref_back_project_bias(p, &d->args, (int)j, &value, &abs_sum);
        if (d->args.d_bias) add(&bias, d->d_bias[j], value, abs_sum, (double)d->m, before);
    }
    assert_residual(&x, name), assert_residual(&w, name), assert_residual(&bias, name);
}

static bool check(const EngKernel *kernel, int64_t tokens, int n, int k, EngDtype type, int threads)
{
    Data d = make_data(tokens, n, k, type, threads);
    for (size_t i = 0; i < d.n * d.k; i++) d.d_w[i] = 0.5f;
    for (size_t i = 0; i < d.n; i++) d.d_bias[i] = 0.5f;
    bool ran = run(kernel, &d);
    if (ran) check_outputs(&d, 0.5, kernel->name);
    free_data(&d);
    return ran;
}

static void test_shapes(void **state)
{
    int n, in_bf16 = 0;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_BACK_PROJECT, &n);
    (void)state;
    assert_true(n >= 2);
    for (int i = 0; i < n; i++) {
        if (!kernels[i]->checked) continue;
        assert_true(check(kernels[i], 0, 8, 8, ENG_F32, 1));
        assert_true(check(kernels[i], 1, 7, 5, ENG_F32, 1));
        assert_true(check(kernels[i], 19, 33, 24, ENG_F32, 2));
        assert_true(check(kernels[i], 66, 40, 129, ENG_F32, 3));
        in_bf16 += check(kernels[i], 19, 33, 24, ENG_BF16, 2);
        in_bf16 += check(kernels[i], 64, 96, 32, ENG_BF16, 1);
    }
    if (!in_bf16) print_message("bf16: not on this processor\n");
}

static void test_parts_not_wanted(void **state)
{
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_BACK_PROJECT, &n);
    (void)state;
    for (int i = 0; i < n; i++) {
        if (!kernels[i]->checked) continue;
        Data d = make_data(9, 12, 10, ENG_F32, 1);
        d.args.d_x = NULL, d.args.d_bias = NULL;
        assert_true(run(kernels[i], &d));
        check_outputs(&d, 0, kernels[i]->name);
        assert_true(d.d_bias[0] == 0);
        free_data(&d);
    }
}

static void test_refusals(void **state)
{
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_BACK_PROJECT, &n);
    EngErr err = {0};
    (void)state;
    for (int i = 0; i < n; i++) {
        EngProblem p = {.op = ENG_OP_BACK_PROJECT, .threads = 1};
        p.u.back_project = (EngBackProjectProblem){4, 0, 8, ENG_F32};
        assert_int_equal(kernels[i]->supports(&p, &err), ENG_UNSUPPORTED);
        p.u.back_project = (EngBackProjectProblem){4, 8, 8, ENG_FP8};
        assert_int_equal(kernels[i]->supports(&p, &err), ENG_UNSUPPORTED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_parts_not_wanted),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
