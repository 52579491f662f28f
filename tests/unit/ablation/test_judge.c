/* What held-out text is asked, against answers worked out here: when a router has collapsed, and
 * what LogitLens measures. */
#include "tests/unit/backbone/train_test.h"

#include "base/file.h"
#include "bench/ablation/data.h"
#include "bench/ablation/judge.h"

static double load_of(const char *fields, const int64_t *loads, int experts, EngTrainMetric which)
{
    EngTrainConfig config = tiny(fields);
    EngTrainer *t = new_trainer(&config);
    EngTrainResultText out;
    EngErr err = {0};
    double metrics[ENG_TM_COUNT];
    assert_int_equal(eng_train_result_begin(&out, &err), ENG_OK);
    for (int layer = 0; layer < config.model.layers; layer++)
        for (int e = 0; e < experts; e++)
            t->counts[layer * experts + e] = layer == 1 ? loads[e] : 100; /* the worst layer says */
    if (eng_train_judge_loads(t, metrics, &out, &err)) fail_msg("%s", err.text);
    eng_train_result_free(&out);
    eng_trainer_destroy(t);
    return metrics[which];
}

static void test_collapse(void **state)
{
    (void)state;
    static const struct {
        const char *fields;
        int experts;
        int64_t loads[8];
        double load_max, dead_share;
        bool collapsed;
    } cases[] = {
        {"", 6, {100, 100, 100, 100, 100, 100}, 1, 0, false},
        {"", 6, {40, 40, 400, 40, 40, 40}, 4, 0, false}, /* four times the mean is the limit */
        {"", 6, {39, 40, 401, 40, 40, 40}, 4.01, 0, true},
        {"", 6, {190, 190, 190, 10, 10, 10}, 1.9, 0, false}, /* a tenth of the mean is not below it
                                                              */
        {"", 6, {190, 195, 195, 10, 5, 5}, 1.95, 2. / 6, true},
        {"experts=8", 8, {200, 200, 140, 140, 110, 10, 0, 0}, 2, .25, false}, /* a quarter: the
                                                                                 limit */
        {"experts=8", 8, {200, 200, 141, 140, 110, 9, 0, 0}, 2, .375, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *fields = cases[i].fields;
        const int64_t *loads = cases[i].loads;
        int n = cases[i].experts;
        assert_true(fabs(load_of(fields, loads, n, ENG_TM_LOAD_MAX) - cases[i].load_max) < 1e-9);
        assert_true(fabs(load_of(fields, loads, n, ENG_TM_DEAD_SHARE) - cases[i].dead_share) <
                    1e-9);
        if (load_of(fields, loads, n, ENG_TM_COLLAPSED) != cases[i].collapsed)
            fail_msg("case %zu", i);
    }
}

/* KL(p_final || p_layer) in nats, mean over rows, from softmaxes as they are defined. */
static double divergence(EngTrainer *t, const EngTrainStates *s, int layer)
{
    EngErr err = {0};
    EngReal final[64], here[64];
    double sum = 0;
    for (int64_t r = 0; r < s->rows; r++) {
        const float *last = s->values + (s->layers - 1) * s->rows * s->columns + r * s->columns;
        const float *at = s->values + layer * s->rows * s->columns + r * s->columns;
        double zf = 0, zh = 0;
        assert_int_equal(eng_trainer_logits(t, last, 1, final, &err), ENG_OK);
        assert_int_equal(eng_trainer_logits(t, at, 1, here, &err), ENG_OK);
        for (int v = 0; v < 64; v++) zf += exp((double) final[v]), zh += exp((double)here[v]);
        for (int v = 0; v < 64; v++) {
            double p = exp((double) final[v]) / zf, q = exp((double)here[v]) / zh;
            sum += p * log(p / q);
        }
    }
    return sum / (double)s->rows;
}

static void test_lens(void **state)
{
    (void)state;
    const char *path = "test_judge.states";
    EngTrainData data;
    EngErr err = {0};
    if (eng_train_data_open("nowhere", "synthetic", 64, 8192, &data, &err))
        fail_msg("%s", err.text);
    EngArm arm = {.config = tiny("engram_at=1 streams=2 lr=0.02")};
    EngTrainer *t = new_trainer(&arm.config);
    EngTrainRun run = {.arm = &arm, .data = &data};
    EngTrainResultText out;
    EngTrainStates states;
    double metrics[ENG_TM_COUNT];
    run_until(t, 0);
    assert_int_equal(eng_train_result_begin(&out, &err), ENG_OK);
    if (eng_train_judge(t, &run, path, metrics, &out, &err)) fail_msg("%s", err.text);
    assert_int_equal(eng_train_states_read(path, &states, &err), ENG_OK);
    unlink(path);
    const json_t *lens = json_object_get(out.series, "lens");
    assert_int_equal(json_array_size(lens), 3); /* entries of two layers, and the output */
    for (int l = 0; l < 3; l++) {
        const json_t *pair = json_array_get(lens, (size_t)l);
        double wanted = divergence(t, &states, l);
        double got = json_number_value(json_array_get(pair, 1));
        assert_int_equal(json_integer_value(json_array_get(pair, 0)), l);
        if (!(fabs(got - wanted) < 1e-5 * (1 + wanted)))
            fail_msg("layer %d: %g, not %g", l, got, wanted);
        assert_true(l == 2 ? got < 1e-6 : got > 0.01);
    }
    eng_train_states_free(&states);
    eng_train_result_free(&out);
    eng_trainer_destroy(t);
    eng_train_data_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collapse),
        cmocka_unit_test(test_lens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
