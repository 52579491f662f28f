/* The gate for training: oracle against finite differences, PyTorch and a published small case;
 * variants of forward and backward against the oracle; buffers in place; any number of threads.
 */
#include "training_test.h"

#include "kernels/ref/gate.h"
#include "kernels/ref/train_gate.h"

typedef struct Data {
    EngTrainGateProblem problem;
    size_t width, n, n_kv; /* streams * hidden, and values of streams and kv */
    double *x, *kv, *q, *k, *d_out;
    uint8_t *dead;
} Data;

static Data make_data(int64_t tokens, int streams, int hidden, EngGateFormula formula, double scale)
{
    EngRng rng;
    Data d = {.problem = {tokens, streams, hidden, formula, 1e-6f}};
    eng_rng_seed(&rng, 31);
    d.width = (size_t)streams * (size_t)hidden;
    d.n = (size_t)tokens * d.width;
    d.n_kv = (size_t)tokens * (d.width + (size_t)hidden);
    d.x = normals(&rng, d.n, 0, scale);
    d.kv = normals(&rng, d.n_kv, 0, 1);
    d.q = normals(&rng, d.width, 1, 0.3);
    d.k = normals(&rng, d.width, 1, 0.3);
    d.d_out = normals(&rng, d.n, 0, 1);
    d.dead = calloc((size_t)tokens + 1, 1);
    for (int64_t t = 2; t < tokens; t += 5) d.dead[t] = 1;
    return d;
}

static void free_data(Data *d)
{
    free(d->x), free(d->kv), free(d->q), free(d->k), free(d->d_out), free(d->dead);
}

static EngRefGateInputs inputs_of(const Data *d)
{
    return (EngRefGateInputs){d->x, d->kv, d->q, d->k, d->dead};
}

static EngRefGateGradients make_gradients(const Data *d)
{
    return (EngRefGateGradients){doubles(d->n), doubles(d->n_kv), doubles(d->width),
                                 doubles(d->width)};
}

static void free_gradients(EngRefGateGradients *g)
{
    free(g->streams), free(g->kv), free(g->q_weight), free(g->k_weight);
}

/* ---- the oracle ----
 */

static double loss(void *context)
{
    const Data *d = context;
    EngRefGateInputs inputs = inputs_of(d);
    double *out = doubles(d->n), sum = 0;
    eng_ref_train_gate(&d->problem, &inputs, out, NULL, NULL, NULL);
    for (size_t i = 0; i < d->n; i++) sum += out[i] * d->d_out[i];
    free(out);
    return sum;
}

static void check_differences(Data *d, double *at, const double *got, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        double want = derivative(loss, d, &at[i]);
        if (!(fabs(got[i] - want) <= 1e-7 * (1 + fabs(want))))
            fail_msg("%s %s[%zu]: %.12g, differences give %.12g",
                     eng_gate_formula_name(d->problem.formula), what, i, got[i], want);
    }
}

static void test_differences(void **state)
{
    (void)state;
    for (int formula = 0; formula < ENG_GATE_FORMULA_COUNT; formula++) {
        Data d = make_data(3, 2, 7, (EngGateFormula)formula, 1.5);
        EngRefGateGradients g = make_gradients(&d);
        EngRefGateInputs inputs = inputs_of(&d);
        eng_ref_back_gate(&d.problem, &inputs, d.d_out, &g, NULL);
        check_differences(&d, d.x, g.streams, d.n, "d_streams");
        check_differences(&d, d.kv, g.kv, d.n_kv, "d_kv");
        check_differences(&d, d.q, g.q_weight, d.width, "d_q_weight");
        check_differences(&d, d.k, g.k_weight, d.width, "d_k_weight");
        free_gradients(&g);
        free_data(&d);
    }
}

static void check_torch(EngGateFormula formula)
{
    enum { T = 4, S = 2, D = 5, W = S * D, N = T * W, KV = T * (S + 1) * D };
    const char *name = eng_gate_formula_name(formula);
    Data d = make_data(T, S, D, formula, 1);
    free_data(&d);
    d.x = known("gate_x", N), d.kv = known("gate_kv", KV), d.d_out = known("gate_d_out", N);
    d.q = known("gate_q", W), d.k = known("gate_k", W);
    d.dead = calloc(T, 1);
    d.dead[1] = 1;
    EngRefGateGradients g = make_gradients(&d);
    EngRefGateInputs inputs = inputs_of(&d);
    double *out = doubles(N);
    eng_ref_train_gate(&d.problem, &inputs, out, NULL, NULL, NULL);
    eng_ref_back_gate(&d.problem, &inputs, d.d_out, &g, NULL);
    struct {
        const char *name;
        const double *got;
        size_t n;
    } all[] = {{"out", out, N},
               {"d_x", g.streams, N},
               {"d_kv", g.kv, KV},
               {"d_q", g.q_weight, W},
               {"d_k", g.k_weight, W}};
    for (int i = 0; i < LENGTH_OF(all); i++) {
        char full[64];
        snprintf(full, sizeof full, "%s_%s", name, all[i].name);
        double *want = known(full, all[i].n);
        assert_near(all[i].got, want, all[i].n, 1e-12, full);
        free(want);
    }
    free(out);
    free_gradients(&g);
    free_data(&d);
}

static void test_torch(void **state)
{
    (void)state;
    for (int formula = 0; formula < ENG_GATE_FORMULA_COUNT; formula++)
        check_torch((EngGateFormula)formula);
}

/* Facts section 4, item 11: two streams of four. */
static void test_published_case(void **state)
{
    double x[] = {.25, -.5, .75, -1, -.25, .5, -.75, 1};
    double kv[] = {.5, .3, .1, -.1, 1, .8, .6, .4, 1, -2, .5, 4};
    double q[] = {1, .5, 2, 1.5, 1, 1, 1, 1}, k[] = {1, 1, .5, 2, .5, 1, 2, 1};
    double want[] = {0.9844164045585451,  -1.9688328091170901, 1.1172082022792726,
                     1.9376656182341803,  0.133936988150281,   -0.267873976300562,
                     -0.5580315059248595, 2.535747952601124};
    double out[8], kept[2 * ENG_GATE_KEPT];
    EngTrainGateProblem problem = {1, 2, 4, ENG_GATE_COPYSIGN, 1e-20f};
    EngRefGateInputs inputs = {x, kv, q, k, NULL};
    (void)state;
    eng_ref_train_gate(&problem, &inputs, out, kept, NULL, NULL);
    assert_near(out, want, 8, 1e-14, "out");
    assert_true(fabs(kept[1] - 0.7344164045585451) < 1e-14);
    assert_true(fabs(kept[ENG_GATE_KEPT + 1] - 0.383936988150281) < 1e-14);
}

/* Strictly below the clamp nothing flows; at it and above, and in the plain formula, it does. */
static void test_slopes(void **state)
{
    (void)state;
    assert_true(eng_ref_gate_slope(ENG_GATE_COPYSIGN, 0.999e-6) == 0);
    assert_true(fabs(eng_ref_gate_slope(ENG_GATE_COPYSIGN, -1e-6) - 125) < 1e-3);
    assert_true(eng_ref_gate_slope(ENG_GATE_SIGN, 0) == 0);
    assert_true(eng_ref_gate_slope(ENG_GATE_PLAIN, 0) == 0.25);
}

/* ---- variants ----
 */

typedef struct Buffers {
    float *x, *kv, *q, *k, *d_out, *out, *kept, *d_x, *d_kv, *d_q, *d_k;
} Buffers;

static Buffers make_buffers(const Data *d)
{
    size_t slots = (size_t)d->problem.tokens * (size_t)d->problem.streams;
    Buffers b = {narrowed(d->x, d->n),
                 narrowed(d->kv, d->n_kv),
                 narrowed(d->q, d->width),
                 narrowed(d->k, d->width),
                 narrowed(d->d_out, d->n),
                 floats(d->n),
                 floats(slots * ENG_GATE_KEPT),
                 floats(d->n),
                 floats(d->n_kv),
                 floats(d->width),
                 floats(d->width)};
    memset(b.d_kv, 0x7f, d->n_kv * sizeof(float)); /* what was there must not matter */
    memset(b.d_x, 0x7f, d->n * sizeof(float));
    return b;
}

static void free_buffers(Buffers *b)
{
    free(b->x), free(b->kv), free(b->q), free(b->k), free(b->d_out), free(b->out);
    free(b->kept), free(b->d_x), free(b->d_kv), free(b->d_q), free(b->d_k);
}

static bool run_forward(const EngKernel *kernel, const Data *d, const Buffers *b, int threads)
{
    EngProblem problem = {.op = ENG_OP_TRAIN_GATE, .threads = threads};
    EngArgs args;
    problem.u.train_gate = d->problem;
    args.u.train_gate = (EngTrainGateArgs){b->x, b->kv, b->q, b->k, d->dead, b->out, b->kept};
    return run_kernel(kernel, &problem, &args);
}

static bool run_backward(const EngKernel *kernel, const Data *d, const Buffers *b, int threads,
                         bool in_place)
{
    EngProblem problem = {.op = ENG_OP_BACK_GATE, .threads = threads};
    EngArgs args;
    problem.u.train_gate = d->problem;
    args.u.back_gate = (EngBackGateArgs){.streams_in = b->x,
                                         .kv = b->kv,
                                         .q_weight = b->q,
                                         .k_weight = b->k,
                                         .dead = d->dead,
                                         .kept = b->kept,
                                         .d_out = in_place ? b->d_x : b->d_out,
                                         .d_streams = b->d_x,
                                         .d_kv = b->d_kv,
                                         .d_q_weight = b->d_q,
                                         .d_k_weight = b->d_k};
    if (in_place) memcpy(b->d_x, b->d_out, d->n * sizeof(float));
    return run_kernel(kernel, &problem, &args);
}

static void check(int64_t tokens, int streams, int hidden, EngGateFormula formula, int threads)
{
    int n_forward, n_backward;
    const EngKernel *const *forward = cpu_kernels(ENG_OP_TRAIN_GATE, &n_forward);
    const EngKernel *const *backward = cpu_kernels(ENG_OP_BACK_GATE, &n_backward);
    Data d = make_data(tokens, streams, hidden, formula, 2);
    EngRefGateInputs inputs = inputs_of(&d);
    size_t n_kept = (size_t)tokens * (size_t)streams * ENG_GATE_KEPT;
    double *out = doubles(d.n), *out_errors = doubles(d.n);
    double *kept = doubles(n_kept), *kept_errors = doubles(n_kept);
    EngRefGateGradients want = make_gradients(&d), errors = make_gradients(&d);
    Buffers b = make_buffers(&d);
    eng_ref_train_gate(&d.problem, &inputs, out, kept, out_errors, kept_errors);
    eng_ref_back_gate(&d.problem, &inputs, d.d_out, &want, &errors);
    for (int i = 0; i < n_forward; i++) {
        if (!forward[i]->checked) continue;
        assert_true(run_forward(forward[i], &d, &b, threads));
        assert_within(b.out, out, out_errors, d.n, "streams_out");
        assert_within(b.kept, kept, kept_errors, n_kept, "kept");
    }
    for (int i = 0; i < n_backward; i++) {
        if (!backward[i]->checked) continue;
        for (int in_place = 0; in_place < 2; in_place++) {
            memset(b.d_q, 0, d.width * sizeof(float)), memset(b.d_k, 0, d.width * sizeof(float));
            assert_true(run_backward(backward[i], &d, &b, threads, in_place));
            assert_within(b.d_x, want.streams, errors.streams, d.n, "d_streams");
            assert_within(b.d_kv, want.kv, errors.kv, d.n_kv, "d_kv");
            assert_within(b.d_q, want.q_weight, errors.q_weight, d.width, "d_q_weight");
            assert_within(b.d_k, want.k_weight, errors.k_weight, d.width, "d_k_weight");
        }
    }
    free_buffers(&b);
    free_gradients(&want), free_gradients(&errors);
    free(out), free(out_errors), free(kept), free(kept_errors);
    free_data(&d);
}

static void test_shapes(void **state)
{
    (void)state;
    for (int formula = 0; formula < ENG_GATE_FORMULA_COUNT; formula++) {
        check(0, 4, 64, (EngGateFormula)formula, 1);
        check(1, 4, 64, (EngGateFormula)formula, 1);
        check(7, 1, 17, (EngGateFormula)formula, 2);
        check(67, 3, 33, (EngGateFormula)formula, 3);
        check(40, 2, 1, (EngGateFormula)formula, 2);
    }
    check(3, 4, 5120, ENG_GATE_COPYSIGN, 1);
}

/* Weights' gradients are added to, and do not depend on the number of threads. */
static void test_threads_and_sums(void **state)
{
    const EngKernel *kernel = eng_kernel_find(ENG_OP_BACK_GATE, "portable");
    Data d = make_data(71, 2, 48, ENG_GATE_COPYSIGN, 1);
    Buffers one = make_buffers(&d), three = make_buffers(&d);
    (void)state;
    assert_true(run_forward(eng_kernel_find(ENG_OP_TRAIN_GATE, "portable"), &d, &one, 1));
    assert_true(run_forward(eng_kernel_find(ENG_OP_TRAIN_GATE, "portable"), &d, &three, 3));
    assert_memory_equal(one.out, three.out, d.n * sizeof(float));
    assert_true(run_backward(kernel, &d, &one, 1, false));
    assert_true(run_backward(kernel, &d, &three, 3, false));
    assert_memory_equal(one.d_x, three.d_x, d.n * sizeof(float));
    assert_memory_equal(one.d_kv, three.d_kv, d.n_kv * sizeof(float));
    assert_memory_equal(one.d_q, three.d_q, d.width * sizeof(float));
    assert_memory_equal(one.d_k, three.d_k, d.width * sizeof(float));
    assert_true(run_backward(kernel, &d, &one, 1, false));
    for (size_t c = 0; c < d.width; c++) assert_true(one.d_q[c] == 2 * three.d_q[c]);
    free_buffers(&one), free_buffers(&three);
    free_data(&d);
}

static void test_refusals(void **state)
{
    EngProblem problem = {.op = ENG_OP_BACK_GATE, .threads = 1};
    const EngKernel *kernel = eng_kernel_find(ENG_OP_BACK_GATE, "portable");
    EngErr err = {0};
    (void)state;
    problem.u.train_gate = (EngTrainGateProblem){4, 0, 64, ENG_GATE_PLAIN, 0};
    assert_int_equal(kernel->supports(&problem, &err), ENG_UNSUPPORTED);
    problem.u.train_gate = (EngTrainGateProblem){4, 4, 64, (EngGateFormula)9, 0};
    assert_int_equal(kernel->supports(&problem, &err), ENG_UNSUPPORTED);
    problem.u.train_gate = (EngTrainGateProblem){INT64_MAX, 4, 64, ENG_GATE_PLAIN, 0};
    assert_int_equal(kernel->supports(&problem, &err), ENG_UNSUPPORTED);
    problem.u.train_gate = (EngTrainGateProblem){40, 4, 64, ENG_GATE_PLAIN, 0};
    for (uint64_t nth = 1; nth <= 3; nth++) {
        void *made = &problem;
        eng_mem_fail_at(nth);
        assert_int_equal(kernel->create(&problem, &made, &err), ENG_NO_MEMORY);
        assert_null(made);
    }
    eng_mem_fail_at(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_differences),    cmocka_unit_test(test_torch),
        cmocka_unit_test(test_published_case), cmocka_unit_test(test_slopes),
        cmocka_unit_test(test_shapes),         cmocka_unit_test(test_threads_and_sums),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
