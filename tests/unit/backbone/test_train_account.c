/* Parameters counted as the paper does, arms of equal budgets, fields by name, and configurations
 * that cannot be. */
#include "tests/unit/backbone/train_test.h"

static EngTrainConfig rung(const char *name)
{
    EngTrainConfig config;
    EngErr err = {0};
    if (eng_train_rung(name, &config, &err)) fail_msg("%s", err.text);
    return config;
}

/* paper.md 8.3: active and total in thousands, rounded as printed there. */
static void test_rungs_have_the_ladders_sizes(void **state)
{
    const struct {
        const char *name;
        double active, total;
        int64_t expert;
    } want[] = {{"R0", 0.292e6, 2.92e6, 3 * 64 * 32 * 4},
                {"R0c", 0.297e6, 2.95e6, 3 * 64 * 96 * 4},
                {"R1", 1.657e6, 16.55e6, 3 * 128 * 64 * 6}};
    (void)state;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        EngTrainConfig config = rung(want[i].name);
        EngTrainAccount account;
        EngErr err = {0};
        assert_int_equal(eng_train_account(&config, &account, &err), ENG_OK);
        assert_true(fabs((double)account.active / want[i].active - 1) < 0.005);
        assert_true(fabs((double)account.total / want[i].total - 1) < 0.005);
        assert_int_equal(account.expert, want[i].expert);
        EngBackboneSize size; /* counted by the backbone that runs the same model */
        EngBackboneConfig model = config.model;
        model.max_tokens = model.max_len = 64, model.max_seqs = 1;
        if (eng_backbone_size(&model, &size, &err)) fail_msg("%s", err.text);
        assert_int_equal(size.total, account.total);
        assert_int_equal(size.active, account.active);
        assert_int_equal(account.total - account.active,
                         account.expert * (config.model.experts - config.model.top_k));
    }
}

static void test_account_is_of_the_parameters_there_are(void **state)
{
    const char *const arms[] = {"", "engram_at=0,1 streams=3 conv_kernel=4 kv_bias=true",
                                "engram_at=0 fusion=input tied_head=true",
                                "engram_at=1 fusion=read streams=2", "experts=0 top_k=0"};
    (void)state;
    for (size_t i = 0; i < sizeof arms / sizeof *arms; i++) {
        EngTrainConfig config = tiny(arms[i]);
        EngTrainer *t = new_trainer(&config);
        EngTrainAccount account;
        EngErr err = {0};
        assert_int_equal(eng_train_account(&config, &account, &err), ENG_OK);
        assert_int_equal(account.total + account.vocabulary, t->tensors.all);
        assert_int_equal(account.tables, t->tensors.all - t->tensors.dense);
        eng_trainer_destroy(t);
    }
}

static void check_budget(const char *name, const double *rhos, const int *experts, int n)
{
    EngTrainConfig base = rung(name);
    EngTrainAccount whole, own;
    EngErr err = {0};
    assert_int_equal(eng_train_account(&base, &whole, &err), ENG_OK);
    for (int i = 0; i < n; i++) {
        EngTrainConfig arm = base;
        double residual;
        arm.engram_layers = base.engram_at[1] ? 2 : 1;
        if (eng_train_allocate(&base, rhos[i], &arm, &residual, &err)) fail_msg("%s", err.text);
        assert_int_equal(arm.model.experts, experts[i]);
        assert_int_equal(eng_train_account(&arm, &own, &err), ENG_OK);
        assert_true(fabs(residual) < 0.001);
        assert_true(fabs((double)own.total / (double)whole.total - 1 - residual) < 1e-12);
        double share = (double)(own.expert * (experts[i] - base.model.top_k)) /
                       (double)(whole.total - whole.active);
        assert_true(fabs(share - rhos[i]) < 0.5 / (base.model.experts - base.model.top_k) + 1e-9);
    }
}

static void test_equal_budgets(void **state)
{
    const double rhos[] = {.40, .51, .60, .70, .75, .80, .85, .90, .95};
    const int r0[] = {49, 61, 70, 81, 86, 92, 97, 102, 108};
    const int r1[] = {46, 58, 67, 77, 82, 87, 92, 97, 102};
    const double coarse[] = {.03, .1, .2, .4, .5, .6, .7, .8, .9};
    const int r0c[] = {3, 6, 9, 16, 20, 24, 27, 31, 34};
    (void)state;
    check_budget("R0", rhos, r0, 9);
    check_budget("R1", rhos, r1, 9);
    check_budget("R0c", coarse, r0c, 9);
}

static void test_no_room_for_rows(void **state)
{
    (void)state;
    EngTrainConfig base = rung("R0c"), arm = base;
    double residual;
    EngErr err = {0};
    arm.engram_layers = 1;
    assert_int_equal(eng_train_allocate(&base, 1, &arm, &residual, &err), ENG_USAGE);
    assert_non_null(strstr(err.text, "parameters left for tables"));
    assert_int_equal(eng_train_allocate(&base, 1.2, &arm, &residual, &err), ENG_USAGE);
    assert_int_equal(eng_train_allocate(&base, NAN, &arm, &residual, &err), ENG_USAGE);
}

static void test_tables_of_a_size(void **state)
{
    (void)state;
    EngTrainConfig config = rung("R1");
    EngTrainAccount account;
    EngErr err = {0};
    config.engram_layers = 2;
    for (int64_t wanted = 100000; wanted < 100000000; wanted *= 7) {
        assert_int_equal(eng_train_size_tables(&config, wanted, &err), ENG_OK);
        assert_int_equal(eng_train_account(&config, &account, &err), ENG_OK);
        assert_true(fabs((double)account.tables / (double)wanted - 1) < 0.02);
    }
}

/* ---- fields ---- */

static void test_fields_round_trip(void **state)
{
    (void)state;
    EngTrainConfig config =
        tiny("engram_at=0,1 lr=0.0123456789012345 gate_eps=1e-20 streams=3 rows=frozen "
             "fusion=read seed=18446744073709551 table_rule=sinkhorn compress=false");
    EngTrainConfig copy = rung("R1");
    EngErr err = {0};
    char value[128], again[128];
    for (int i = 0; i < eng_train_fields(); i++) {
        const char *name = eng_train_field_name(i);
        assert_int_equal(eng_train_field_get(&config, i, value, sizeof value, &err), ENG_OK);
        if (eng_train_set(&copy, name, value, &err)) fail_msg("%s", err.text);
        assert_int_equal(eng_train_field_get(&copy, i, again, sizeof again, &err), ENG_OK);
        assert_string_equal(value, again);
    }
    assert_true(copy.lr == 0.0123456789012345 && copy.model.seed == 18446744073709551u);
    assert_null(eng_train_field_name(eng_train_fields()));
}

static void refused(const char *name, const char *value, const char *words)
{
    EngTrainConfig config = tiny("");
    EngErr err = {0};
    assert_int_equal(eng_train_set(&config, name, value, &err), ENG_USAGE);
    if (!strstr(err.text, words)) fail_msg("%s: no \"%s\"", err.text, words);
}

static void test_values_that_fields_refuse(void **state)
{
    (void)state;
    refused("expert", "3", "experts");
    refused("experts", "3x", "experts=3x");
    refused("experts", "", "experts=");
    refused("experts", "99999999999", "experts=99999999999");
    refused("lr", "nan", "lr=nan");
    refused("gate", "copy", "one of copysign,sign,plain");
    refused("compress", "yes", "compress=yes");
    refused("engram_at", "1,", "engram_at=1,");
    refused("engram_at", "-1", "engram_at=-1");
    refused("seed", "-1", "seed=-1");
}

static void impossible(const char *fields, const char *words)
{
    EngTrainConfig config = tiny(fields);
    EngTrainer *t = NULL;
    EngErr err = {0};
    EngStatus status = eng_trainer_create(&config, &t, &err);
    if (status != ENG_USAGE) fail_msg("%s: %s", fields, status ? err.text : "made");
    if (!strstr(err.text, words)) fail_msg("%s: no \"%s\"", err.text, words);
    assert_null(t);
}

static void test_configurations_that_cannot_be(void **state)
{
    (void)state;
    impossible("engram_at=2", "engram_at=2: not a layer; there are 0 to 1");
    impossible("engram_at=1,1", "does not ascend");
    impossible("experts=1", "experts=1: fewer than top_k=2");
    impossible("seq_len=1", "seq_len=1");
    impossible("batch_tokens=70", "not a multiple of seq_len=16");
    impossible("threads=5", "a batch has only 4 sequences");
    impossible("tokens=63", "tokens=63");
    impossible("engram_at=1 fusion=input", "engram_at=0");
    impossible("engram_at=1 compress=true", "needs a token map");
    impossible("rule=sinkhorn", "rule=sinkhorn");
    impossible("vocab_rule=muon", "muon");
    impossible("streams=2 sinkhorn_iters=0", "sinkhorn_iters=0");
    impossible("hidden=0", "hidden=0");
    impossible("engram_at=1 row_dims=0", "row_dims=0");
}

static void test_data_that_cannot_be(void **state)
{
    (void)state;
    EngTrainConfig config = tiny("tokens=6400");
    EngTrainer *t;
    EngErr err = {0};
    EngTrainResult result;
    int32_t ids[6401] = {0};
    assert_int_equal(eng_trainer_create(&config, &t, &err), ENG_OK);
    assert_int_equal(eng_trainer_run(t, 0, NULL, NULL, &result, &err), ENG_USAGE);
    assert_int_equal(eng_trainer_data(t, ids, 6400, &err), ENG_USAGE);
    assert_non_null(strstr(err.text, "6400 ids; a single pass of 6400 tokens needs 6401"));
    ids[77] = 64;
    assert_int_equal(eng_trainer_data(t, ids, 6401, &err), ENG_BAD_DATA);
    assert_non_null(strstr(err.text, "id 64 at 77 is not in [0, 64)"));
    ids[77] = 1;
    assert_int_equal(eng_trainer_data(t, ids, 6401, &err), ENG_OK);
    eng_trainer_destroy(t);
}

static void test_token_maps(void **state)
{
    (void)state;
    EngTrainConfig config = tiny("engram_at=1 compress=true vocab_compressed=32");
    EngTrainer *t = NULL;
    EngErr err = {0};
    int32_t map[64];
    int64_t rows[2][16 * 2];
    const int32_t *ids = drawn_ids();
    int32_t other[16];
    for (int i = 0; i < 64; i++) map[i] = i / 2;
    for (int i = 0; i < 16; i++) other[i] = ids[i] ^ 1;
    config.token_map = map;
    assert_int_equal(eng_trainer_create(&config, &t, &err), ENG_OK);
    assert_int_equal(eng_trainer_rows(t, 0, ids, 16, rows[0], &err), ENG_OK);
    assert_int_equal(eng_trainer_rows(t, 0, other, 16, rows[1], &err), ENG_OK);
    assert_memory_equal(rows[0], rows[1], sizeof rows[0]);
    eng_trainer_destroy(t);
    map[5] = 32;
    assert_int_equal(eng_trainer_create(&config, &t, &err), ENG_BAD_DATA);
    assert_non_null(strstr(err.text, "id 5 gives 32"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rungs_have_the_ladders_sizes),
        cmocka_unit_test(test_account_is_of_the_parameters_there_are),
        cmocka_unit_test(test_equal_budgets),
        cmocka_unit_test(test_no_room_for_rows),
        cmocka_unit_test(test_tables_of_a_size),
        cmocka_unit_test(test_fields_round_trip),
        cmocka_unit_test(test_values_that_fields_refuse),
        cmocka_unit_test(test_configurations_that_cannot_be),
        cmocka_unit_test(test_data_that_cannot_be),
        cmocka_unit_test(test_token_maps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
