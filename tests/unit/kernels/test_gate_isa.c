/* The vector gates where their instructions would go wrong: ties and subnormals in the final
 * rounding, squares too small for a bf16 dot instruction, NaN and infinity, masked tokens beside
 * fetched ones, threads; and refusals on lesser processors.
 */
#include "kernels_test.h"

#include "kernels/cpu/isa.h"
#include "kernels/ref/gate.h"

#include <math.h>

static const char *const g_names[] = {"portable", "avx2", "avx512"};

typedef struct Data {
    EngProblem problem;
    uint16_t *q, *k, *x, *kv;
    uint8_t *dead;
    size_t n_x, n_kv;
} Data;

static Data make_data(int64_t tokens, int streams, int hidden, EngGateFormula formula)
{
    Data d = {.problem = {.op = ENG_OP_GATE, .threads = 1}};
    EngRng rng;
    size_t t = (size_t)tokens, s = (size_t)streams, h = (size_t)hidden;
    eng_rng_seed(&rng, (uint64_t)(tokens * 100 + hidden));
    d.n_x = t * s * h, d.n_kv = t * (s + 1) * h;
    d.q = malloc(2 * s * h), d.k = malloc(2 * s * h);
    d.x = malloc(2 * d.n_x), d.kv = malloc(2 * d.n_kv), d.dead = calloc(t, 1);
    fill_bf16(&rng, d.q, s * h, 1.0);
    fill_bf16(&rng, d.k, s * h, 1.0);
    fill_bf16(&rng, d.x, d.n_x, 2.0);
    fill_bf16(&rng, d.kv, d.n_kv, 0.7);
    d.problem.u.gate = (EngGateProblem){tokens, streams, hidden, formula, 1e-20f, d.q, d.k};
    return d;
}

static void free_data(Data *d)
{
    free(d->q), free(d->k), free(d->x), free(d->kv), free(d->dead);
}

/* In place, unaligned, against the oracle; NULL when the machine lacks the instructions, else the
 * streams after it. */
static uint16_t *check(const char *name, const Data *d)
{
    const EngKernel *kernel = eng_kernel_find(ENG_OP_GATE, name);
    const EngGateProblem *p = &d->problem.u.gate;
    size_t n_gates = (size_t)p->tokens * (size_t)p->streams;
    float *gates = calloc(n_gates, sizeof(float)), *scores = calloc(n_gates, sizeof(float));
    Unaligned x = unaligned_copy(d->x, 2 * d->n_x, 2), kv = unaligned_copy(d->kv, 2 * d->n_kv, 2);
    uint16_t *streams = (uint16_t *)(void *)x.bytes, *result = NULL;
    EngArgs args = {
        .u.gate = {streams, streams, (uint16_t *)(void *)kv.bytes, d->dead, gates, scores}};
    if (kernel && run_if_isa(kernel, &d->problem, &args)) {
        EngGateArgs seen = {d->x, streams, d->kv, d->dead, gates, scores};
        EngComparison outs, g, s;
        eng_residual_start(&outs), eng_residual_start(&g), eng_residual_start(&s);
        for (int64_t t = 0; t < p->tokens; t++)
            eng_ref_gate_check_token(p, &seen, t, &outs, &g, &s);
        assert_residual(&s, name);
        assert_residual(&g, name);
        assert_residual(&outs, name);
        result = malloc(2 * d->n_x);
        memcpy(result, streams, 2 * d->n_x);
    }
    free(x.block), free(kv.block), free(gates), free(scores);
    return result;
}

static void for_all(const Data *d)
{
    for (int i = 0; i < LENGTH_OF(g_names); i++) free(check(g_names[i], d));
}

/* Widths around the blocks of 32 and steps of 64, a masked token between others. */
static void test_widths(void **state)
{
    static const int hidden[] = {1, 2, 31, 32, 33, 63, 64, 65, 95, 96, 97, 127, 129, 1000};
    (void)state;
    for (int i = 0; i < LENGTH_OF(hidden); i++) {
        Data d = make_data(5, 1 + i % 5, hidden[i], (EngGateFormula)(i % ENG_GATE_FORMULA_COUNT));
        d.dead[1] = 1;
        for_all(&d);
        free_data(&d);
    }
}

/* A key of zeros: score 0 and, by the plain formula, a gate of exactly 1/2. */
static Data half_gate(int hidden)
{
    Data d = make_data(1, 1, hidden, ENG_GATE_PLAIN);
    memset(d.kv, 0, 2 * (size_t)hidden);
    return d;
}

/* x + v / 2 lies in the middle of two bf16 numbers, in whole blocks and in the rest. */
static void test_ties(void **state)
{
    (void)state;
    for (int v = 0; v < LENGTH_OF(g_names); v++) {
        Data d = half_gate(101);
        for (int i = 0; i < 101; i++) {
            d.x[i] = (uint16_t)(0x3f80 + i % 8 + (i % 3 ? 0 : 0x8000));
            d.kv[101 + i] = (uint16_t)(0x3c00 + (i % 3 ? 0 : 0x8000)); /* 2^-7 */
        }
        uint16_t *y = check(g_names[v], &d);
        for (int i = 0; y && i < 101; i++)
            assert_int_equal(y[i] & 0x7fff, 0x3f80 + (i % 8 + 1) / 2 * 2);
        free(y);
        free_data(&d);
    }
}

/* Results below 2^-126 must not become 0: sums of subnormals, and a difference of larger numbers.
 */
static void test_subnormal_results(void **state)
{
    (void)state;
    for (int v = 0; v < LENGTH_OF(g_names); v++) {
        Data d = half_gate(101);
        for (int i = 0; i < 101; i++) {
            d.x[i] = (uint16_t)(i % 2 ? i + 1 : 0x0085 + i % 2);
            d.kv[101 + i] = i % 2 ? 4 : 0x8100; /* 2^-131, or -2^-125 */
        }
        uint16_t *y = check(g_names[v], &d);
        for (int i = 0; y && i < 101; i++) assert_int_equal(y[i], i % 2 ? i + 1 + 2 : 0x0005);
        free(y);
        free_data(&d);
    }
}

/* Squares of 2^-64 are subnormal; without eps the norm rests on them alone. */
static void test_tiny_squares(void **state)
{
    (void)state;
    for (int of_key = 0; of_key < 2; of_key++) {
        Data d = make_data(2, 2, 160, ENG_GATE_COPYSIGN);
        uint16_t *tiny = of_key ? d.kv : d.x;
        d.problem.u.gate.eps = 0;
        for (size_t i = 0; i < (of_key ? d.n_kv : d.n_x); i++)
            tiny[i] = (uint16_t)(0x1f80 | (tiny[i] & 0x8000));
        for_all(&d);
        free_data(&d);
    }
}

static void test_nonfinite(void **state)
{
    static const uint16_t special[] = {0x7fc0, 0xffc3, 0x7f80, 0xff80};
    (void)state;
    for (int i = 0; i < LENGTH_OF(special); i++) {
        Data d = make_data(3, 2, 96, ENG_GATE_COPYSIGN);
        d.kv[3 * 96 + 2 * 96 + 40 + i] = special[i]; /* value of token 1: one element of each */
        for_all(&d);
        d.kv[96 + 40 + i] = special[i]; /* key of token 0, stream 1 */
        for_all(&d);
        d.x[5] = special[i]; /* a whole stream of token 0 */
        for_all(&d);
        d.q[96 + 70] = special[i]; /* a weight: stream 1 of every token */
        for_all(&d);
        free_data(&d);
    }
}

static void test_threads(void **state)
{
    (void)state;
    for (int v = 0; v < LENGTH_OF(g_names); v++) {
        Data d = make_data(7, 4, 320, ENG_GATE_SIGN);
        uint16_t *one = check(g_names[v], &d);
        for (d.problem.threads = 2; one && d.problem.threads <= 3; d.problem.threads++) {
            uint16_t *more = check(g_names[v], &d);
            assert_memory_equal(one, more, 2 * d.n_x);
            free(more);
        }
        free(one);
        free_data(&d);
    }
}

static void test_refusals(void **state)
{
    Data d = make_data(1, 1, 32, ENG_GATE_PLAIN);
    (void)state;
    eng_isa_limit(0);
    for (int i = 1; i < LENGTH_OF(g_names); i++) {
        const EngKernel *kernel = eng_kernel_find(ENG_OP_GATE, g_names[i]);
        EngErr why = {0};
        if (!kernel) continue;
        assert_int_equal(kernel->supports(&d.problem, &why), ENG_UNSUPPORTED);
        assert_non_null(strstr(why.text, "AVX"));
    }
    eng_isa_limit(ENG_ISA_ALL);
    free_data(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widths),       cmocka_unit_test(test_ties),
        cmocka_unit_test(test_nonfinite),    cmocka_unit_test(test_subnormal_results),
        cmocka_unit_test(test_tiny_squares), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
