/* The rules that move a run: learning rates over its steps, rates of tables, and the router's bias.
 */
#include "tests/unit/backbone/train_test.h"

/* ---- learning rate ---- */

enum { STEPS = 20 };
static double g_rates[STEPS];

static bool note_rate(void *context, const EngTrainPoint *point)
{
    (void)context;
    assert_true(point->step >= 1 && point->step <= STEPS);
    g_rates[point->step - 1] = point->lr;
    return true;
}

static void test_schedules(void **state)
{
    (void)state;
    /* Warm-up of 4 steps to 0.01; then by the share of all 20 steps that is done, at 10 a half. */
    static const struct {
        const char *fields;
        double at[6]; /* steps 4, 10, 15, 16, 18, 19 */
    } cases[] = {
        {"schedule=constant", {.01, .01, .01, .01, .01, .01}},
        {"schedule=step", {.01, .01, .01, .00316, .001, .001}},
        /* .1 + .9 (1 + cos(pi s)) / 2 for s = .2, .5, .75, .8, .9, .95 */
        {"schedule=cosine final_lr=0.1",
         {.0091405765, .0055, .0023180195, .0018594235, .0012202457, .0010554019}},
    };
    static const int steps[] = {4, 10, 15, 16, 18, 19};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        EngTrainConfig config = tiny("tokens=1280 lr=0.01 warmup_steps=4");
        EngTrainResult result;
        EngErr err = {0};
        apply_fields(&config, cases[i].fields);
        EngTrainer *t = new_trainer(&config);
        if (eng_trainer_run(t, 0, note_rate, NULL, &result, &err)) fail_msg("%s", err.text);
        assert_int_equal(result.last.step, STEPS);
        for (int s = 0; s < 4; s++) assert_true(fabs(g_rates[s] - .0025 * (s + 1)) < 1e-12);
        for (int k = 0; k < 6; k++)
            if (!(fabs(g_rates[steps[k]] - cases[i].at[k]) < 1e-9))
                fail_msg("%s step %d: %.10f", cases[i].fields, steps[k], g_rates[steps[k]]);
        eng_trainer_destroy(t);
    }
}

/* ---- rate of tables ---- */

/* How far values of the tables, or all others, are moved by a step. */
static float *after_a_step(const char *fields, bool tables, size_t *n)
{
    EngTrainConfig config =
        tiny("engram_at=1 lr=0.01 warmup_steps=0 schedule=constant tokens=64 weight_decay=0");
    apply_fields(&config, fields);
    EngTrainer *before = new_trainer(&config), *t = new_trainer(&config);
    run_until(t, 0);
    size_t dense = (size_t)t->tensors.dense, first = tables ? dense : 0;
    *n = tables ? (size_t)t->tensors.all - dense : dense;
    float *change = eng_alloc_array(*n, sizeof *change);
    for (size_t i = 0; i < *n; i++) change[i] = t->values[first + i] - before->values[first + i];
    eng_trainer_destroy(before);
    eng_trainer_destroy(t);
    return change;
}

/* A table moves by the multiplier, and nothing else does. The first step of Adam has the length of
 * its rate whatever the gradient is; that of SGD is proportional to it. */
static void test_table_rate(void **state)
{
    (void)state;
    static const char *const rules[] = {"adamw", "sgd"};
    for (int r = 0; r < 2; r++)
        for (int tables = 0; tables < 2; tables++) {
            char one[64], ten[64];
            size_t n, moved = 0;
            snprintf(one, sizeof one, "table_rule=%s table_lr=1", rules[r]);
            snprintf(ten, sizeof ten, "table_rule=%s table_lr=10", rules[r]);
            float *a = after_a_step(one, tables, &n), *b = after_a_step(ten, tables, &n);
            for (size_t i = 0; i < n; i++) {
                double wanted = (double)a[i] * (tables ? 10 : 1);
                moved += a[i] != 0;
                if (!(fabs((double)b[i] - wanted) <= 1e-3 * fabs(wanted) + 2e-7))
                    fail_msg("%s: %g, not %g", ten, (double)b[i], wanted);
                if (tables && !r && fabs(fabs((double)a[i]) - .01) > 1e-4 && a[i] != 0)
                    fail_msg("Adam moves a row by %g at rate .01", (double)a[i]);
            }
            assert_true(moved > n / 20);
            eng_free(a);
            eng_free(b);
        }
}

/* SGD moves a table against its gradient, by rate times multiplier. */
static void test_table_descends(void **state)
{
    (void)state;
    EngTrainConfig config = tiny("engram_at=1 lr=0.01 warmup_steps=0 schedule=constant tokens=64 "
                                 "table_rule=sgd table_lr=100");
    EngTrainer *t = new_trainer(&config), *same = new_trainer(&config);
    EngErr err = {0};
    double loss;
    int32_t ids[4 * 17]; /* the batch that the step takes: sequences, a target behind each */
    for (int s = 0; s < 4; s++) memcpy(ids + s * 17, t->ids + t->order[s] * 16, 17 * sizeof *ids);
    assert_int_equal(config.batch_tokens, 64);
    assert_int_equal(eng_trainer_gradient(same, ids, &loss, &err), ENG_OK);
    size_t n = (size_t)(t->tensors.all - t->tensors.dense);
    EngReal *gradient = eng_alloc_array(n, sizeof *gradient);
    assert_int_equal(eng_trainer_table_gradient(same, 0, gradient, &err), ENG_OK);
    run_until(t, 0);
    for (size_t i = 0; i < n; i++) {
        size_t at = (size_t)t->tensors.dense + i;
        double change = (double)t->values[at] - (double)same->values[at];
        assert_true(fabs(change + (double)gradient[i]) < 1e-5 * fabs((double)gradient[i]) + 1e-7);
    }
    eng_free(gradient);
    eng_trainer_destroy(t);
    eng_trainer_destroy(same);
}

/* ---- router ---- */

/* Loss-free balancing: after a batch the bias of an expert with more than the mean load falls by
 * the step, that of one with less rises by it, at the mean it stays. */
static void check_bias(const char *fields, const double *steps, int n_steps)
{
    EngTrainConfig config = tiny(fields);
    EngTrainer *t = new_trainer(&config);
    double wanted[12] = {0};
    int up = 0, down = 0;
    for (int s = 0; s < n_steps; s++) {
        eng_trainer_reset_counts(t);
        run_until(t, (s + 1) * config.batch_tokens);
        for (int layer = 0; layer < 2; layer++) {
            int64_t counts[6], sum = 0;
            float bias[6];
            eng_trainer_load_counts(t, layer, counts, bias);
            for (int e = 0; e < 6; e++) sum += counts[e];
            assert_int_equal(sum, 64 * 2);
            for (int e = 0; e < 6; e++) {
                double *own = &wanted[layer * 6 + e];
                int side = (counts[e] * 6 < sum) - (counts[e] * 6 > sum);
                *own += side * steps[s];
                up += side > 0, down += side < 0;
                if (!(fabs((double)bias[e] - *own) < 1e-6))
                    fail_msg("%s: step %d layer %d expert %d with %d of %d: bias %g, not %g",
                             fields, s, layer, e, (int)counts[e], (int)sum, (double)bias[e], *own);
            }
        }
    }
    assert_true(up > 2 && down > 2);
    eng_trainer_destroy(t);
}

static void test_bias(void **state)
{
    (void)state;
    static const double constant[] = {.01, .01, .01}, rising[] = {.0025, .005, .0075, .01};
    check_bias("bias_step=0.01", constant, 3);
    check_bias("bias_step=0.01 threads=2", constant, 3);
    /* In proportion to the learning rate, which warms up over 4 steps. */
    check_bias("bias_step=0.01 bias_decay=1 warmup_steps=4", rising, 4);
}

/* Two experts of two have the same load always. */
static void test_bias_rests_at_the_mean(void **state)
{
    (void)state;
    EngTrainConfig config = tiny("experts=2 top_k=2 bias_step=0.01 tokens=640");
    EngTrainer *t = new_trainer(&config);
    int64_t counts[2];
    float bias[2];
    run_until(t, 0);
    for (int layer = 0; layer < 2; layer++) {
        eng_trainer_load_counts(t, layer, counts, bias);
        assert_int_equal(counts[0], counts[1]);
        assert_true(bias[0] == 0 && bias[1] == 0);
    }
    eng_trainer_destroy(t);
}

/* What it is for: a router that prefers two experts is brought back, and stays so without the rule.
 */
static double late_load(const char *fields)
{
    EngTrainConfig config = tiny(fields);
    EngTrainer *t = new_trainer(&config);
    double most = 0;
    for (int e = 0; e < 2; e++) t->bias[e] = t->bias[6 + e] = 0.2f;
    run_until(t, 3072);
    eng_trainer_reset_counts(t);
    run_until(t, 0);
    for (int layer = 0; layer < 2; layer++) {
        int64_t counts[6], sum = 0;
        eng_trainer_load_counts(t, layer, counts, NULL);
        for (int e = 0; e < 6; e++) sum += counts[e];
        for (int e = 0; e < 6; e++) most = fmax(most, 6. * (double)counts[e] / (double)sum);
    }
    eng_trainer_destroy(t);
    return most;
}

static void test_bias_balances(void **state)
{
    (void)state;
    double with = late_load("bias_step=0.01"), without = late_load("bias_step=0");
    if (!(with < 1.6 && without > 1.3 * with)) fail_msg("with %g, without %g", with, without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_table_rate),
        cmocka_unit_test(test_table_descends),
        cmocka_unit_test(test_bias),
        cmocka_unit_test(test_bias_rests_at_the_mean),
        cmocka_unit_test(test_bias_balances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
