/* Gates of trained models against answers worked out by hand or by the plainest loop. */
#include "tests/unit/experiments/points.h"

#include <math.h>

#include "base/mem.h"
#include "bench/ablation/crowd.h"
#include "bench/ablation/gates.h"
#include "bench/ablation/phrases.h"
#include "bench/ablation/sweep.h"

static double value_of(const EngTrainResultText *out, const char *name, int64_t step)
{
    const json_t *series = json_object_get(out->series, name);
    for (size_t i = 0; i < json_array_size(series); i++) {
        const json_t *pair = json_array_get(series, i);
        if (json_integer_value(json_array_get(pair, 0)) == step)
            return json_number_value(json_array_get(pair, 1));
    }
    return NAN;
}

static void assert_near(double is, double want)
{
    if (!(fabs(is - want) <= 1e-5 * (1 + fabs(want)))) fail_msg("%.9g, expected %.9g", is, want);
}

static EngTrainResultText begin(void)
{
    EngTrainResultText out;
    EngErr err = {0};
    if (eng_train_result_begin(&out, &err)) fail_msg("%s", err.text);
    return out;
}

static EngTrainConfig two_streams(EngGateFormula formula)
{
    return (EngTrainConfig){.model = {.layers = 2, .streams = 2, .hidden = 2},
                            .engram_layers = 1,
                            .engram_at = {1},
                            .gate = formula};
}

/* ---- tallies ---- */

static void test_shares(void **state)
{
    (void)state;
    static const EngReal gates[] = {0.01f, 0.5f, 0.04f, 0.03f, 0.97f, 0.2f, 0.92f, 0.06f};
    static const uint8_t group[] = {0, 1, 0, 255, 1};
    EngTrainConfig config = two_streams(ENG_GATE_PLAIN);
    EngTrainResultText out = begin();
    EngGateView view;
    EngErr err = {0};
    assert_int_equal(eng_gate_view_open(&view, &config, 2, &err), ENG_OK);
    view.group[0] = group;
    view.n = 4;
    eng_gate_view_take(&view, 1, ENG_TV_GATE, 0, gates, 4, 2);
    eng_gate_view_take(&view, 0, ENG_TV_GATE, 0, gates, 4, 2); /* no module there */
    eng_gate_view_take(&view, 1, ENG_TV_GATE, 4, gates, 1, 2); /* beyond the sample */
    assert_int_equal(eng_gate_view_put(&view, "g", 10, &out, &err), ENG_OK);
    assert_near(value_of(&out, "g:n:1", 10), 2);
    assert_near(value_of(&out, "g:n:1", 11), 1);
    assert_near(value_of(&out, "g:mean:1:0", 10), 0.49);
    assert_near(value_of(&out, "g:mean:1:1", 10), 0.35);
    assert_near(value_of(&out, "g:saturated05:1:0", 10), 1);
    assert_near(value_of(&out, "g:closed:1:0", 10), 0.5);
    assert_near(value_of(&out, "g:saturated05:1:1", 10), 0);
    assert_near(value_of(&out, "g:unused:1", 10), 0); /* no position with both closed */
    assert_near(value_of(&out, "g:unused:1", 11), 1);
    assert_true(isnan(value_of(&out, "g:mean:0:0", 10)));
    /* 0.01 and 0.97 of 80 bins. */
    const json_t *first = json_array_get(out.histograms, 0),
                 *bins = json_object_get(first, "counts");
    assert_string_equal(json_string_value(json_object_get(first, "name")), "g:10");
    assert_int_equal(json_array_size(bins), ENG_GATE_BINS);
    assert_int_equal(json_integer_value(json_array_get(bins, 0)), 1);
    assert_int_equal(json_integer_value(json_array_get(bins, 77)), 1);
    eng_gate_view_close(&view);
    eng_train_result_free(&out);
}

/* Slopes of both formulas where they are easy: 1/4 at 0; sigma(2) (1 - sigma(2)) / 4 with the root
 * of 4; 0 below the clamp. */
static void test_slopes(void **state)
{
    (void)state;
    static const EngReal scores[] = {4, 0, -4, 0};
    double s = 1 / (1 + exp(-2.0)), plain = 1 / (1 + exp(-4.0));
    for (int formula = 0; formula < 2; formula++) {
        EngTrainConfig config = two_streams(formula ? ENG_GATE_PLAIN : ENG_GATE_COPYSIGN);
        EngTrainResultText out = begin();
        EngGateView view;
        EngErr err = {0};
        static const EngReal gates[4] = {0};
        assert_int_equal(eng_gate_view_open(&view, &config, 1, &err), ENG_OK);
        eng_gate_view_take(&view, 1, ENG_TV_SCORE, 0, scores, 2, 2);
        eng_gate_view_take(&view, 1, ENG_TV_GATE, 0, gates, 2, 2);
        assert_int_equal(eng_gate_view_put(&view, "g", 0, &out, &err), ENG_OK);
        assert_near(value_of(&out, "g:score:1:0", 0), 4);
        assert_near(value_of(&out, "g:slope:1:0", 0),
                    formula ? plain * (1 - plain) : s * (1 - s) / 4);
        assert_near(value_of(&out, "g:slope:1:1", 0), formula ? 0.25 : 0);
        /* 0 lies at the border of the two middle bins, +4 and -4 mirror each other. */
        const json_t *bins = json_object_get(json_array_get(out.histograms, 1), "counts");
        int total = 0;
        for (int b = 0; b < ENG_GATE_BINS; b++) {
            int64_t n = json_integer_value(json_array_get(bins, (size_t)b));
            assert_true(n == json_integer_value(json_array_get(bins, ENG_GATE_BINS - 1 - b)));
            total += (int)n;
        }
        assert_int_equal(total, 2);
        eng_gate_view_close(&view);
        eng_train_result_free(&out);
    }
}

static void test_likeness_of_streams(void **state)
{
    (void)state;
    static const EngReal same[] = {1, 2, 1, 2, -3, 1, -3, 1}, across[] = {1, 0, 0, 2, 0, 3, 1, 0};
    static const EngReal gates[] = {0.1f, 0.9f, 0.4f, 0.6f, 0.7f, 0.3f};
    static const EngReal still[] = {0.5f, 0.9f, 0.5f, 0.6f};
    EngTrainConfig config = two_streams(ENG_GATE_PLAIN);
    EngTrainResultText out = begin();
    EngStreamTally tally = {.config = &config};
    EngErr err = {0};
    eng_stream_tally_take(&tally, 0, ENG_TV_STREAMS, same, 2, 4);
    eng_stream_tally_take(&tally, 2, ENG_TV_STREAMS, across, 2, 4);
    eng_stream_tally_take(&tally, 1, ENG_TV_GATE, gates, 3, 2);
    assert_int_equal(eng_stream_tally_put(&tally, &out, &err), ENG_OK);
    assert_near(value_of(&out, "stream_cosine:0-1", 0), 1);
    assert_true(isnan(value_of(&out, "stream_cosine:0-1", 1))); /* never shown */
    assert_near(value_of(&out, "stream_cosine:0-1", 2), 0);
    assert_near(value_of(&out, "gate_correlation:0-1", 1), -1);
    assert_near(value_of(&out, "gate_cosine:0-1", 1), 0.54 / sqrt(0.66 * 1.26));
    eng_train_result_free(&out);
    out = begin();
    EngStreamTally second = {.config = &config};
    eng_stream_tally_take(&second, 1, ENG_TV_GATE, still, 2, 2);
    assert_int_equal(eng_stream_tally_put(&second, &out, &err), ENG_OK);
    assert_true(isnan(value_of(&out, "gate_correlation:0-1", 1)));
    assert_near(value_of(&out, "gate_cosine:0-1", 1), 0.75 / sqrt(0.5 * 1.17));
    eng_train_result_free(&out);
}

/* ---- rows ---- */

static EngTrainData g_data;

static int open_text(void **state)
{
    (void)state;
    EngErr err = {0};
    return eng_train_data_open("nowhere", "synthetic", 64, 16384, &g_data, &err) != ENG_OK;
}

static int close_text(void **state)
{
    (void)state;
    eng_train_data_close(&g_data);
    return 0;
}

static EngTrainer *trainer_of(const char *rows, const char *compress)
{
    EngPoint point = point_of(&eng_experiment_train, "rung", "tiny", "text", "synthetic", "rho",
                              "0.4", "rows", rows, "compress", compress, NULL);
    EngArm arm;
    EngTrainer *trainer;
    EngErr err = {0};
    if (eng_arm_resolve(&point, &arm, &err)) fail_msg("%s", err.text);
    arm.config.token_map = g_data.map.map;
    arm.config.vocab_compressed = g_data.map.n_compressed;
    if (eng_trainer_create(&arm.config, &trainer, &err)) fail_msg("%s", err.text);
    return trainer;
}

static int32_t id_before(const EngTrainConfig *c, const int32_t *ids, int64_t at, int back)
{
    if (at % c->seq_len < back) return c->pad;
    return c->compress ? g_data.map.map[ids[at - back]] : ids[at - back];
}

static bool same_gram(const EngTrainConfig *c, const int32_t *a, int64_t at, const int32_t *b,
                      int64_t bt, int order)
{
    for (int k = 0; k < order; k++)
        if (id_before(c, a, at, k) != id_before(c, b, bt, k)) return false;
    return true;
}

/* Every held-out row against every training row. */
static void test_foreign_reads(void **state)
{
    (void)state;
    enum { TRAIN = 1024, HELD = 64, MOST = 64 };
    static const char *const kinds[][2] = {{"hashed", "on"}, {"hashed", "off"}, {"one", "on"}};
    static int64_t train_rows[TRAIN * MOST], rows[HELD * MOST];
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        EngTrainer *trainer = trainer_of(kinds[kind][0], kinds[kind][1]);
        const EngTrainConfig *c = eng_trainer_config(trainer);
        int columns = (c->max_order - c->min_order + 1) * c->engram_heads;
        EngCrowd crowd;
        EngErr err = {0};
        if (eng_crowd_count(trainer, &g_data, 0, TRAIN + 3, HELD, &crowd, &err))
            fail_msg("%s", err.text);
        assert_true(columns <= MOST);
        const int32_t *train = g_data.train.ids, *held = g_data.heldout.ids;
        assert_int_equal(eng_trainer_rows(trainer, 0, train, TRAIN, train_rows, &err), ENG_OK);
        assert_int_equal(eng_trainer_rows(trainer, 0, held, HELD, rows, &err), ENG_OK);
        int seen = 0;
        for (int64_t p = 0; p < HELD; p++) {
            int read = 0, collided = 0;
            double foreign = 0;
            for (int k = 0; k < columns; k++) {
                int all = 0, own = 0, order = c->min_order + k / c->engram_heads;
                for (int64_t i = 0; i < TRAIN; i++) {
                    if (train_rows[i * columns + k] != rows[p * columns + k]) continue;
                    all++;
                    own += same_gram(c, train, i, held, p, order);
                }
                if (!all) continue;
                read++, collided += all > own, foreign += 1 - (double)own / all;
                seen += own > 0;
            }
            if (read)
                assert_near((double)crowd.foreign[p], foreign / read);
            else
                assert_true(isnan(crowd.foreign[p]));
            assert_near((double)crowd.collided[p], (double)collided / columns);
            assert_near((double)crowd.unread[p], 1 - (double)read / columns);
        }
        assert_true(seen > 10);
        eng_crowd_free(&crowd);
        eng_trainer_destroy(trainer);
    }
}

static void test_shuffled_rows_belong_to_nobody(void **state)
{
    (void)state;
    EngTrainer *trainer = trainer_of("shuffled", "on");
    EngCrowd crowd;
    EngErr err = {0};
    assert_int_equal(eng_crowd_count(trainer, &g_data, 0, 64, 64, &crowd, &err), ENG_UNSUPPORTED);
    /* Yet their gates are looked at. */
    EngTrainResultText out = begin();
    if (eng_train_judge_gates(trainer, &g_data, &out, &err)) fail_msg("%s", err.text);
    assert_true(value_of(&out, "gate_decile:n:1", 3) > 100);
    assert_true(isnan(value_of(&out, "gate_foreign:n:1", 9)));
    assert_true(isnan(value_of(&out, "rows_foreign:1", 9)));
    eng_train_result_free(&out);
    eng_trainer_destroy(trainer);
}

/* ---- a whole look ---- */

/* An untrained model: as many positions in all tenths as in the sample, and shares that fit. */
static void test_look(void **state)
{
    (void)state;
    EngTrainer *trainer = trainer_of("hashed", "on");
    EngTrainResultText out = begin();
    EngErr err = {0};
    double tenths = 0, foreign = 0, sample, mean = 0;
    if (eng_train_gates_at(trainer, &g_data, 5, &out, &err)) fail_msg("%s", err.text);
    if (eng_train_judge_gates(trainer, &g_data, &out, &err)) fail_msg("%s", err.text);
    sample = value_of(&out, "gate:n:1", 5);
    for (int d = 0; d < 10; d++) {
        double n = value_of(&out, "gate_decile:n:1", d), f = value_of(&out, "gate_foreign:n:1", d);
        tenths += n, mean += n * value_of(&out, "gate_decile:mean:1:0", d);
        foreign += isnan(f) ? 0 : f;
    }
    /* The first of a text has no pair before the token it tells. */
    assert_near(tenths, sample - 1);
    assert_true(foreign > 0.5 * sample && foreign <= sample);
    assert_true(fabs(mean / tenths - value_of(&out, "gate:mean:1:0", 5)) < 1e-3);
    assert_true(value_of(&out, "gathered_bytes:1", 0) > 0);
    assert_true(isfinite(value_of(&out, "phrase:0:count", 0)));
    eng_train_result_free(&out);
    eng_trainer_destroy(trainer);
}

static void test_look_without_memory(void **state)
{
    (void)state;
    EngTrainer *trainer = trainer_of("hashed", "on");
    EngErr err = {0};
    uint64_t live = eng_mem_live_blocks(), n = 0;
    EngStatus status = ENG_NO_MEMORY;
    while (status) {
        EngTrainResultText out = begin();
        eng_mem_fail_at(++n);
        status = eng_train_judge_gates(trainer, &g_data, &out, &err);
        eng_mem_fail_at(0);
        eng_train_result_free(&out);
        if (status) assert_int_equal(status, ENG_NO_MEMORY);
        assert_int_equal(eng_mem_live_blocks(), live);
    }
    assert_true(n > 15);
    eng_trainer_destroy(trainer);
}

/* What has no gates is not looked at; one gate on the vector that attention reads is one stream. */
static void test_arms_without_gates(void **state)
{
    (void)state;
    static const char *const arms[][2] = {{"gate", "off"}, {"fusion", "input"}, {"fusion", "read"}};
    for (int i = 0; i < 3; i++) {
        EngPoint point = point_of(&eng_experiment_train, "rung", "tiny", "text", "synthetic", "rho",
                                  "0.4", "streams", "4", arms[i][0], arms[i][1], NULL);
        EngTrainResultText out = begin();
        EngTrainer *trainer;
        EngArm arm;
        EngErr err = {0};
        if (eng_arm_resolve(&point, &arm, &err)) fail_msg("%s", err.text);
        arm.config.token_map = g_data.map.map;
        arm.config.vocab_compressed = g_data.map.n_compressed;
        if (eng_trainer_create(&arm.config, &trainer, &err)) fail_msg("%s", err.text);
        assert_int_equal(eng_train_has_gates(&arm.config), i == 2);
        if (eng_train_gates_at(trainer, &g_data, 0, &out, &err)) fail_msg("%s", err.text);
        if (eng_train_judge_gates(trainer, &g_data, &out, &err)) fail_msg("%s", err.text);
        assert_int_equal(isfinite(value_of(&out, "gate:mean:1:0", 0)), i == 2);
        assert_true(isnan(value_of(&out, "gate:mean:1:1", 0)));
        assert_near(value_of(&out, "stream_cosine:2-3", 0), 1);
        assert_true(isfinite(value_of(&out, "stream_cosine:2-3", 2)));
        assert_true(isnan(value_of(&out, "gate_cosine:2-3", 1)));
        eng_train_result_free(&out);
        eng_trainer_destroy(trainer);
    }
}

/* ---- phrases ---- */

/* 1 2 3 stands six times among noise, 1 1 1 as often as its parts explain: the first is chosen, at
 * the first place of the held-out text with a whole window around it. */
static void test_phrases(void **state)
{
    (void)state;
    enum { N = 480, HELD = 64, AT = 37 };
    static int32_t train[N], held[HELD];
    static uint8_t source[HELD], classes[] = {ENG_TOKEN_SIGNS, ENG_TOKEN_WORD, ENG_TOKEN_PART,
                                              ENG_TOKEN_WORD,  ENG_TOKEN_END,  ENG_TOKEN_WORD};
    for (int i = 0; i < N; i++) train[i] = i % 2 ? 0 : 5;
    for (int i = 0; i < 60; i++) train[i] = 5;
    for (int i = 100; i < 400; i += 50) train[i] = 1, train[i + 1] = 2, train[i + 2] = 3;
    held[1] = 1, held[2] = 2, held[3] = 3;    /* no room before it */
    held[21] = 1, held[22] = 2, held[23] = 3; /* a document ends in its window */
    held[25] = 4;
    held[AT] = 1, held[AT + 1] = 2, held[AT + 2] = 3;
    EngTrainData data = {.classes = classes, .n_sources = 1};
    data.train.ids = train, data.train.n = N;
    data.heldout.ids = held, data.heldout.n = HELD, data.heldout.source = source;
    EngTrainConfig config = two_streams(ENG_GATE_PLAIN);
    config.seq_len = 32, config.model.vocab = 6;
    EngPhrases phrases;
    EngErr err = {0};
    assert_int_equal(eng_phrases_choose(&data, &config, HELD, &phrases, &err), ENG_OK);
    assert_int_equal(phrases.n, 1);
    assert_int_equal(phrases.list[0].at, AT);
    assert_int_equal(phrases.list[0].count, 6);
    assert_near(phrases.list[0].pmi, log2(6.0 / N) - 3 * log2(6.0 / N));
    /* The gate of position p is p / 100, of the other stream half of it. */
    EngReal gates[32 * 2];
    for (int from = 0; from < HELD; from += 32) {
        for (int i = 0; i < 32; i++) {
            gates[2 * i] = (EngReal)(from + i) / 100;
            gates[2 * i + 1] = (EngReal)(from + i) / 200;
        }
        eng_phrases_take(&phrases, 1, ENG_TV_GATE, from, gates, 32, 2);
    }
    EngTrainResultText out = begin();
    assert_int_equal(eng_phrases_put(&phrases, &data, &out, &err), ENG_OK);
    for (int k = 0; k < ENG_PHRASE_WINDOW; k++) {
        assert_near(value_of(&out, "phrase:0:gate:1:0", k), (AT - ENG_PHRASE_BEFORE + k) / 100.0);
        assert_near(value_of(&out, "phrase:0:gate:1:1", k), (AT - ENG_PHRASE_BEFORE + k) / 200.0);
    }
    assert_near(value_of(&out, "phrase:0:token:#2", ENG_PHRASE_BEFORE + 1), 1);
    assert_near(value_of(&out, "phrase:0:token:#0", 0), 0);
    eng_train_result_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_slopes),
        cmocka_unit_test(test_likeness_of_streams),
        cmocka_unit_test(test_foreign_reads),
        cmocka_unit_test(test_shuffled_rows_belong_to_nobody),
        cmocka_unit_test(test_look),
        cmocka_unit_test(test_look_without_memory),
        cmocka_unit_test(test_arms_without_gates),
        cmocka_unit_test(test_phrases),
    };
    return cmocka_run_group_tests(tests, open_text, close_text);
}
