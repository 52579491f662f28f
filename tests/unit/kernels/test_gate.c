/* Gate + write-back: published answers, all three formulas at and around 0, every variant against
 * the oracle within derived limits, in place and not, masked tokens, NaN; and two statements about
 * the gate itself: how scores of unrelated vectors are distributed, and how far the two formulas
 * with a root differ.
 */
#include "kernels_test.h"

#include "kernels/ref/gate.h"

#include <math.h>

typedef struct Data {
    EngProblem problem;
    uint16_t *q, *k, *x, *kv;
    uint8_t *dead;
    float *gates, *scores;
    size_t n_x;
} Data;

static Data make_data(int64_t tokens, int streams, int hidden, EngGateFormula formula, int threads)
{
    Data d = {0};
    EngRng rng;
    size_t t = (size_t)tokens, s = (size_t)streams, h = (size_t)hidden;
    eng_rng_seed(&rng, (uint64_t)(tokens * 100 + hidden));
    d.n_x = t * s * h;
    d.q = malloc(2 * s * h), d.k = malloc(2 * s * h);
    d.x = malloc(2 * d.n_x + 1), d.kv = malloc(2 * t * (s + 1) * h + 1);
    d.dead = calloc(t + 1, 1);
    d.gates = calloc(t * s + 1, sizeof(float)), d.scores = calloc(t * s + 1, sizeof(float));
    fill_bf16(&rng, d.q, s * h, 1.0);
    fill_bf16(&rng, d.k, s * h, 1.0);
    fill_bf16(&rng, d.x, d.n_x, 2.0);
    fill_bf16(&rng, d.kv, t * (s + 1) * h, 0.7);
    for (size_t i = 0; i < t; i++) d.dead[i] = i % 5 == 3;
    d.problem.op = ENG_OP_GATE;
    d.problem.threads = threads;
    d.problem.u.gate = (EngGateProblem){tokens, streams, hidden, formula, 1e-20f, d.q, d.k};
    return d;
}

static void free_data(Data *d)
{
    free(d->q), free(d->k), free(d->x), free(d->kv), free(d->dead), free(d->gates), free(d->scores);
}

/* Checks what a run left in `out`; NULL members of args are not looked at. */
static void compare(const Data *d, const uint16_t *out, bool with_dead, const char *what)
{
    EngGateArgs args = {
        d->x, (uint16_t *)(uintptr_t)out, d->kv, with_dead ? d->dead : NULL, d->gates, d->scores};
    EngComparison outs, gates, scores;
    eng_residual_start(&outs), eng_residual_start(&gates), eng_residual_start(&scores);
    for (int64_t t = 0; t < d->problem.u.gate.tokens; t++)
        eng_ref_gate_check_token(&d->problem.u.gate, &args, t, &outs, &gates, &scores);
    assert_residual(&scores, what);
    assert_residual(&gates, what);
    assert_residual(&outs, what);
    assert_int_equal(gates.count, d->problem.u.gate.tokens * d->problem.u.gate.streams);
}

static void check(const EngKernel *kernel, int64_t tokens, int streams, int hidden,
                  EngGateFormula formula, int threads, bool in_place)
{
    Data d = make_data(tokens, streams, hidden, formula, threads);
    Unaligned kv =
        unaligned_copy(d.kv, 2 * (size_t)tokens * (size_t)(streams + 1) * (size_t)hidden, 2);
    Unaligned in = unaligned_copy(d.x, 2 * d.n_x, 2), out = unaligned_copy(NULL, 2 * d.n_x, 6);
    uint16_t *x = (uint16_t *)in.bytes, *y = in_place ? x : (uint16_t *)out.bytes;
    EngArgs args = {.u.gate = {x, y, (uint16_t *)kv.bytes, d.dead, d.gates, d.scores}};
    bool ran = run_if_isa(kernel, &d.problem, &args);
    if (ran && kernel->checked)
        compare(&d, y, true, kernel->name);
    else if (ran)
        assert_memory_equal(y, d.x, 2 * d.n_x); /* the roof keeps every bit */
    free(kv.block), free(in.block), free(out.block);
    free_data(&d);
}

static void test_shapes(void **state)
{
    static const int64_t tokens[] = {0, 1, 2, 13};
    static const int hidden[] = {1, 4, 31, 32, 33, 257, 640};
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_GATE, &n);
    (void)state;
    assert_true(n >= 2);
    for (int k = 0; k < n; k++)
        for (int t = 0; t < LENGTH_OF(tokens); t++)
            for (int h = 0; h < LENGTH_OF(hidden); h++)
                for (int f = 0; f < ENG_GATE_FORMULA_COUNT; f++)
                    check(kernels[k], tokens[t], 1 + h % 4, hidden[h], (EngGateFormula)f, 1 + f,
                          (t + h) % 2 == 0);
    for (int k = 0; k < n; k++) {
        check(kernels[k], 3, 4, 5120, ENG_GATE_COPYSIGN, 1, true);
        check(kernels[k], 65537, 1, 33, ENG_GATE_COPYSIGN, 3, true);
    }
}

/* Facts section 4, item 10, and section 8, item 1. */
static void test_formula_answers(void **state)
{
    static const double answers[][2] = {{0.0, 0.5002499999791666},     {-0.0, 0.4997500000208333},
                                        {1e-3, 0.5079050354084492},    {0.25, 0.6224593312018546},
                                        {1, 0.7310585786300049},       {4, 0.8807970779778823},
                                        {-100, 4.5397868702434395e-05}};
    (void)state;
    for (int i = 0; i < LENGTH_OF(answers); i++) {
        double score = answers[i][0], want = answers[i][1];
        double got = eng_ref_gate_formula(ENG_GATE_COPYSIGN, score);
        assert_true(fabs(got - want) <= 1e-15);
        if (score != 0) assert_true(eng_ref_gate_formula(ENG_GATE_SIGN, score) == got);
    }
    assert_true(eng_ref_gate_formula(ENG_GATE_SIGN, 0.0) == 0.5);
    assert_true(eng_ref_gate_formula(ENG_GATE_SIGN, -0.0) == 0.5);
    assert_true(eng_ref_gate_formula(ENG_GATE_PLAIN, 0.0) == 0.5);
    assert_true(fabs(eng_ref_gate_formula(ENG_GATE_PLAIN, 4) - 0.9820137900379085) < 1e-15);
    for (int f = 0; f < ENG_GATE_FORMULA_COUNT; f++)
        assert_true(isnan(eng_ref_gate_formula((EngGateFormula)f, NAN)));
}

/* Facts section 4, item 11: two streams, four dimensions, through the oracle and every variant. */
static void test_small_case(void **state)
{
    static const double x[8] = {.25, -.5, .75, -1, -.25, .5, -.75, 1};
    static const double kv[12] = {.5, .3, .1, -.1, 1, .8, .6, .4, 1, -2, .5, 4};
    static const double q[8] = {1, .5, 2, 1.5, 1, 1, 1, 1};
    static const double k[8] = {1, 1, .5, 2, .5, 1, 2, 1};
    static const double gate_want[2] = {0.7344164045585451, 0.383936988150281};
    static const double out_want[8] = {0.9844164045585451,  -1.9688328091170901, 1.1172082022792726,
                                       1.9376656182341803,  0.133936988150281,   -0.267873976300562,
                                       -0.5580315059248595, 2.535747952601124};
    uint16_t xb[8], kvb[12], qb[8], kb[8];
    EngRefGate gates[2];
    double out[8];
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_GATE, &n);
    (void)state;
    for (int i = 0; i < 12; i++) kvb[i] = eng_ref_bf16_round(kv[i]);
    for (int i = 0; i < 8; i++) {
        xb[i] = eng_ref_bf16_round(x[i]);
        qb[i] = eng_ref_bf16_round(q[i]);
        kb[i] = eng_ref_bf16_round(k[i]);
    }
    /* The numbers as written, in double precision. */
    for (int h = 0; h < 2; h++) {
        EngRefGateSums sums = {0, 0, 0, 0};
        for (int i = 4 * h; i < 4 * h + 4; i++) eng_ref_gate_add(&sums, x[i], q[i] * k[i], kv[i]);
        EngRefGate exact = eng_ref_gate_finish(&sums, 4, 1e-20, ENG_GATE_COPYSIGN);
        assert_true(fabs(sums.dot - (h ? -0.225 : 0.425)) < 1e-15);
        assert_true(fabs(exact.gate - gate_want[h]) < 1e-15);
        for (int i = 0; i < 4; i++)
            assert_true(fabs(x[4 * h + i] + exact.gate * kv[8 + i] - out_want[4 * h + i]) < 1e-15);
    }
    EngProblem problem = {.op = ENG_OP_GATE, .threads = 1};
    problem.u.gate = (EngGateProblem){1, 2, 4, ENG_GATE_COPYSIGN, 1e-20f, qb, kb};
    EngArgs args = {.u.gate = {.streams_in = xb, .kv = kvb}};
    eng_ref_gate(&problem.u.gate, &args.u.gate, out, gates);
    /* Through bf16: keys such as .3 move by up to 2^-9 of themselves, the gate by less. */
    for (int s = 0; s < 2; s++) assert_true(fabs(gates[s].gate - gate_want[s]) < 1e-3);
    for (int i = 0; i < 8; i++) assert_true(fabs(out[i] - out_want[i]) < 4e-3);
    for (int v = 0; v < n; v++) {
        uint16_t y[8];
        float g[2];
        if (!kernels[v]->checked) continue;
        args.u.gate.streams_out = y;
        args.u.gate.gates = g;
        if (!run_if_isa(kernels[v], &problem, &args)) continue;
        for (int s = 0; s < 2; s++) assert_true(fabs(g[s] - gates[s].gate) < 1e-6);
        for (int i = 0; i < 8; i++) assert_true(fabs(eng_ref_bf16(y[i]) - out_want[i]) < 0.015);
    }
}

/* A case that can be worked out by hand, with numbers that bf16 holds. */
static void test_exact_steps(void **state)
{
    /* One stream, D = 4: x = 2,2,2,2; k = 1,1,1,1; w = 1/2: dot 4; rstd 1/2 * 1; /sqrt(4): 1. */
    uint16_t x[4], kv[8], q[4], k[4], y[4];
    float gate, score;
    (void)state;
    for (int i = 0; i < 4; i++) {
        x[i] = eng_ref_bf16_round(2);
        kv[i] = eng_ref_bf16_round(1);
        kv[4 + i] = eng_ref_bf16_round(i);
        q[i] = eng_ref_bf16_round(0.25);
        k[i] = eng_ref_bf16_round(2);
    }
    EngProblem problem = {.op = ENG_OP_GATE, .threads = 1};
    problem.u.gate = (EngGateProblem){1, 1, 4, ENG_GATE_COPYSIGN, 1e-20f, q, k};
    EngArgs args = {.u.gate = {x, y, kv, NULL, &gate, &score}};
    assert_true(run_kernel(eng_kernel_find(ENG_OP_GATE, "portable"), &problem, &args));
    assert_true(fabs(score - 1) < 1e-6);
    assert_true(fabs(gate - 0.7310585786300049) < 1e-6); /* item 10, dot 1 */
    for (int i = 0; i < 4; i++)
        assert_int_equal(y[i], eng_ref_bf16_round(2 + 0.7310585786300049 * i));
}

/* A masked token keeps its bits, whatever they are, in place and into another buffer. */
static void test_masked_tokens(void **state)
{
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_GATE, &n);
    enum { T = 3, S = 4, H = 65 };
    (void)state;
    for (int k = 0; k < n; k++) {
        for (int in_place = 0; in_place < 2; in_place++) {
            Data d = make_data(T, S, H, ENG_GATE_COPYSIGN, 2);
            uint16_t *x = malloc(2 * d.n_x), *out = calloc(d.n_x, 2);
            for (size_t i = 0; i < d.n_x; i++) x[i] = (uint16_t)(i * 40503u); /* NaN among them */
            memcpy(d.x, x, 2 * d.n_x);
            memset(d.dead, 1, T);
            uint16_t *y = in_place ? x : out;
            EngArgs args = {.u.gate = {x, y, d.kv, d.dead, d.gates, d.scores}};
            bool ran = run_if_isa(kernels[k], &d.problem, &args);
            if (ran) assert_memory_equal(y, d.x, 2 * d.n_x);
            for (int i = 0; ran && kernels[k]->checked && i < T * S; i++)
                assert_true(d.gates[i] == 0);
            free(x), free(out);
            free_data(&d);
        }
    }
}

/* Scores of +0 and -0 give the gates that the formulas promise, and a NaN stays in its stream. */
static void test_zero_and_nan(void **state)
{
    static const double want[ENG_GATE_FORMULA_COUNT] = {0.5002499999791666, 0.5, 0.5};
    (void)state;
    for (int f = 0; f < ENG_GATE_FORMULA_COUNT; f++) {
        Data d = make_data(1, 2, 64, (EngGateFormula)f, 1);
        uint16_t *out = calloc(d.n_x, 2);
        memset(d.kv, 0, 2 * 64); /* key of stream 0: score 0 */
        d.x[64] = 0x7fc0;        /* stream 1 */
        EngArgs args = {.u.gate = {d.x, out, d.kv, NULL, d.gates, d.scores}};
        assert_true(run_kernel(eng_kernel_find(ENG_OP_GATE, "portable"), &d.problem, &args));
        assert_true(d.scores[0] == 0);
        assert_true(fabs(d.gates[0] - want[f]) < 1e-7);
        assert_true(isnan(d.scores[1]) && isnan(d.gates[1]));
        compare(&d, out, false, "portable");
        free(out);
        free_data(&d);
    }
}

/* The one rounding is to nearest, ties to even: with a score of 0 the plain gate is exactly 1/2,
 * and 1 + 2^-8 lies between two bf16 numbers, as does 1 + 2^-7 + 2^-8. */
static void test_ties_to_even(void **state)
{
    static const double x[4] = {1, 1 + 0x1p-7, -1, -1 - 0x1p-7};
    static const double want[4] = {1, 1 + 0x1p-6, -1, -1 - 0x1p-6};
    uint16_t xb[4], kv[8] = {0}, one[4], y[4];
    (void)state;
    for (int i = 0; i < 4; i++) {
        xb[i] = eng_ref_bf16_round(x[i]);
        kv[4 + i] = eng_ref_bf16_round(x[i] > 0 ? 0x1p-7 : -0x1p-7);
        one[i] = eng_ref_bf16_round(1);
    }
    EngProblem problem = {.op = ENG_OP_GATE, .threads = 1};
    problem.u.gate = (EngGateProblem){1, 1, 4, ENG_GATE_PLAIN, 1e-20f, one, one};
    EngArgs args = {.u.gate = {xb, y, kv, NULL, NULL, NULL}};
    assert_true(run_kernel(eng_kernel_find(ENG_OP_GATE, "portable"), &problem, &args));
    for (int i = 0; i < 4; i++) assert_true(eng_ref_bf16(y[i]) == want[i]);
}

static void test_threads(void **state)
{
    Data d = make_data(11, 3, 321, ENG_GATE_COPYSIGN, 1);
    uint16_t *one = calloc(d.n_x, 2), *other = calloc(d.n_x, 2);
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        d.problem.threads = threads;
        EngArgs args = {.u.gate = {d.x, threads == 1 ? one : other, d.kv, d.dead, NULL, NULL}};
        assert_true(run_kernel(eng_kernel_find(ENG_OP_GATE, "portable"), &d.problem, &args));
        if (threads > 1) assert_memory_equal(one, other, 2 * d.n_x);
    }
    free(one), free(other);
    free_data(&d);
}

/* Unrelated vectors at width 5120: the score is a normalised dot product times sqrt(5120), so its
 * mean is 0 and its deviation 1; and no score can exceed sqrt(5120) = 71.55 (Cauchy-Schwarz), which
 * a vector paired with itself reaches. */
static void test_score_statistics(void **state)
{
    enum { T = 96, S = 4, H = 5120 };
    Data d = make_data(T, S, H, ENG_GATE_COPYSIGN, 2);
    uint16_t one = eng_ref_bf16_round(1);
    uint16_t *out = malloc(2 * d.n_x);
    double sum = 0, squares = 0, largest = 0;
    (void)state;
    for (int i = 0; i < S * H; i++) d.q[i] = d.k[i] = one;
    /* The last token's key of stream 0 is the stream itself: the largest score there is. */
    size_t last = T - 1;
    memcpy(d.kv + last * (S + 1) * H, d.x + last * S * H, 2 * H);
    EngArgs args = {.u.gate = {d.x, out, d.kv, NULL, d.gates, d.scores}};
    assert_true(run_kernel(eng_kernel_find(ENG_OP_GATE, "portable"), &d.problem, &args));
    int n = (T - 1) * S;
    for (int i = 0; i < n; i++) {
        sum += d.scores[i];
        squares += (double)d.scores[i] * d.scores[i];
        largest = fmax(largest, fabs(d.scores[i]));
    }
    double mean = sum / n, deviation = sqrt(squares / n - mean * mean);
    print_message("scores of %d unrelated pairs at width %d: mean %.4f, deviation %.4f, largest "
                  "%.2f; of a vector with itself %.4f\n",
                  n, H, mean, deviation, largest, d.scores[last * S]);
    /* Five standard errors of a mean and of a deviation of n normal values. */
    assert_true(fabs(mean) < 5 / sqrt(n));
    assert_true(fabs(deviation - 1) < 5 / sqrt(2.0 * n));
    assert_true(largest < 71.6);
    assert_true(fabs(d.scores[last * S] - sqrt(5120)) < 1e-3);
    assert_true(d.scores[last * S] < 71.6);
    free(out);
    free_data(&d);
}

/* How far the formulas part. copysign and sign differ at a score of 0 alone, by 2.5e-4, so the gate
 * jumps by 5e-4 between -0 and +0. With and without root they agree at 0, at 1 and far out, and
 * part most near 3.36: sigmoid(3.36) - sigmoid(1.833) = 0.96644 - 0.86214. */
static void test_formula_divergence(void **state)
{
    double with_sign = 0, with_plain = 0, at = 0;
    (void)state;
    for (int i = -716000; i <= 716000; i++) {
        double score = i * 1e-4;
        double root = eng_ref_gate_formula(ENG_GATE_COPYSIGN, score);
        with_sign = fmax(with_sign, fabs(root - eng_ref_gate_formula(ENG_GATE_SIGN, score)));
        double plain = fabs(root - eng_ref_gate_formula(ENG_GATE_PLAIN, score));
        if (plain > with_plain) with_plain = plain, at = score;
    }
    double across = eng_ref_gate_formula(ENG_GATE_COPYSIGN, 0.0) -
                    eng_ref_gate_formula(ENG_GATE_COPYSIGN, -0.0);
    print_message("gate formulas: copysign and sign differ by %.3e (at score 0 only), copysign "
                  "jumps by %.3e across 0, root and plain differ by %.4f (at score %.2f)\n",
                  with_sign, across, with_plain, at);
    /* sigmoid(1e-3) - 1/2 = 1e-3/4 - (1e-3)^3/48 */
    assert_true(fabs(with_sign - (2.5e-4 - 1e-9 / 48)) < 1e-12);
    assert_true(fabs(across - 2 * with_sign) < 1e-12);
    assert_true(fabs(with_plain - 0.1043) < 1e-4 && fabs(fabs(at) - 3.36) < 0.05);
}

static void test_refusals(void **state)
{
    EngProblem p = {.op = ENG_OP_GATE, .threads = 1};
    EngErr why = {0};
    const EngKernel *kernel = eng_kernel_find(ENG_OP_GATE, "portable");
    (void)state;
    p.u.gate = (EngGateProblem){1, 0, 64, ENG_GATE_SIGN, 1e-20f, NULL, NULL};
    assert_int_equal(kernel->supports(&p, &why), ENG_UNSUPPORTED);
    assert_non_null(strstr(why.text, "streams = 0"));
    p.u.gate = (EngGateProblem){1, 4, 64, ENG_GATE_FORMULA_COUNT, 1e-20f, NULL, NULL};
    assert_int_equal(kernel->supports(&p, &why), ENG_UNSUPPORTED);
    assert_non_null(strstr(why.text, "formula"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),           cmocka_unit_test(test_formula_answers),
        cmocka_unit_test(test_small_case),       cmocka_unit_test(test_exact_steps),
        cmocka_unit_test(test_masked_tokens),    cmocka_unit_test(test_zero_and_nan),
        cmocka_unit_test(test_ties_to_even),     cmocka_unit_test(test_threads),
        cmocka_unit_test(test_score_statistics), cmocka_unit_test(test_formula_divergence),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
