/* From axes to arms: allocation, holds, manifests, and which comparisons are refused. */
#include "tests/unit/experiments/points.h"

#include <math.h>

#include "base/mem.h"
#include "bench/ablation/sweep.h"

static EngArm arm_of(const EngPoint *point)
{
    EngArm arm;
    EngErr err = {0};
    if (eng_arm_resolve(point, &arm, &err)) fail_msg("%s", err.text);
    return arm;
}

static void refused(const EngPoint *point, EngStatus want, const char *text)
{
    EngArm arm;
    EngErr err = {0};
    assert_int_equal(eng_arm_resolve(point, &arm, &err), want);
    if (!strstr(err.text, text)) fail_msg("'%s' lacks '%s'", err.text, text);
}

#define POINT(...) point_of(&eng_experiment_train, __VA_ARGS__, NULL)

/* Counts of paper notes 8.3 for R0c. */
static void test_rho_keeps_the_budget(void **state)
{
    (void)state;
    static const struct {
        const char *rho;
        int experts;
    } table[] = {{"0.95", 36}, {"0.8", 31}, {"0.6", 24}, {"0.4", 16}, {"0.2", 9}, {"0.03", 3}};
    EngPoint pure = POINT("rung", "R0c");
    EngArm base = arm_of(&pure);
    assert_int_equal(base.config.model.experts, 38);
    assert_int_equal(base.config.engram_layers, 0);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        EngPoint point = POINT("rung", "R0c", "rho", table[i].rho);
        EngArm arm = arm_of(&point);
        assert_int_equal(arm.config.model.experts, table[i].experts);
        assert_true(fabs(arm.residual) < 0.001);
        assert_true(fabs(arm.account.total / (double)base.account.total - 1) < 0.001);
        assert_int_equal(arm.config.tokens, base.config.tokens);
        assert_true(fabs(arm.rho - atof(table[i].rho)) < 0.02);
        /* What a token uses grows by the projections, and loses the router's missing columns. */
        assert_int_equal(arm.account.active, base.account.active + arm.account.engram_dense -
                                                 (38 - table[i].experts) * 64 * 4);
    }
}

static void test_holds(void **state)
{
    (void)state;
    EngPoint reference = POINT("rung", "R0c", "rho", "0.8");
    EngArm two = arm_of(&reference);
    EngPoint bytes = POINT("rung", "R0c", "rho", "0.8", "heads", "4", "hold", "total_bytes");
    EngArm arm = arm_of(&bytes);
    assert_true(fabs(arm.residual) < 0.001); /* rows shrink, P_total stays */
    assert_int_equal(arm.config.row_dims, two.config.row_dims);
    EngPoint dims = POINT("rung", "R0c", "rho", "0.8", "heads", "4", "hold", "embed_dims");
    arm = arm_of(&dims);
    assert_int_equal(arm.config.row_dims * 2, two.config.row_dims);
    assert_int_equal(arm.config.row_start, two.config.row_start);
    assert_true(fabs((double)arm.account.tables / two.account.tables - 1) < 0.01);
    assert_int_equal(arm.account.engram_dense, two.account.engram_dense);
    EngPoint row = POINT("rung", "R0c", "rho", "0.8", "heads", "4", "hold", "row_dims");
    arm = arm_of(&row);
    assert_int_equal(arm.config.row_dims, two.config.row_dims);
    assert_true(fabs((double)arm.account.tables / two.account.tables - 2) < 0.02);
    EngPoint odd = POINT("rung", "R0c", "rho", "0.8", "heads", "3", "hold", "embed_dims");
    refused(&odd, ENG_UNSUPPORTED, "K = 3");
}

static void test_other_arms(void **state)
{
    (void)state;
    EngPoint plain = POINT("rung", "R0c"), engram = POINT("rung", "R0c", "rho", "0.8");
    EngArm base = arm_of(&plain), with = arm_of(&engram);
    EngPoint point = POINT("rung", "R0c", "iso", "flops");
    EngArm arm = arm_of(&point);
    assert_true(arm.residual > 0.001);
    assert_true(fabs(arm.account.flops_per_token / with.account.flops_per_token - 1) < 0.01);
    assert_true(arm.account.flops_per_token > base.account.flops_per_token);
    point = POINT("rung", "R0c", "backbone", "dense");
    arm = arm_of(&point);
    assert_int_equal(arm.config.model.experts, 0);
    assert_true(fabs(arm.account.flops_per_token / base.account.flops_per_token - 1) < 0.001);
    point = POINT("rung", "R0c", "memory", "1048576");
    arm = arm_of(&point);
    assert_int_equal(arm.config.model.experts, 38);
    assert_true(fabs(arm.account.tables / 1048576.0 - 1) < 0.01);
    point = POINT("rung", "R0c", "memory", "1048576", "fusion", "input", "engram_at", "2");
    arm = arm_of(&point);
    assert_int_equal(arm.config.engram_at[0], 0);
    point = POINT("rung", "R0c", "rho", "0.8", "engram_at", "1+3", "gate", "off", "conv", "4");
    arm = arm_of(&point);
    assert_int_equal(arm.config.engram_layers, 2);
    assert_int_equal(arm.config.engram_at[1], 3);
    assert_true(arm.config.gate_off && arm.config.conv_kernel == 4);
}

/* The pure MoE that is wider by a module is so by the one that is asked for. */
static void test_iso_flops_counts_the_columns(void **state)
{
    static const char *const arms[][4] = {{"heads", "4", "hold", "total_bytes"},
                                          {"orders", "2-4", "hold", "total_bytes"},
                                          {"heads", "4", "hold", "embed_dims"},
                                          {"engram_at", "1+3", "conv", "4"}};
    (void)state;
    for (int i = 0; i < 4; i++) {
        const char *const *a = arms[i];
        EngPoint point = POINT("rung", "R0c", "rho", "0.8", a[0], a[1], a[2], a[3]);
        EngArm with = arm_of(&point);
        point = POINT("rung", "R0c", "iso", "flops", a[0], a[1], a[2], a[3]);
        EngArm arm = arm_of(&point);
        double a_column = 3.0 * arm.config.model.hidden * arm.config.model.layers;
        assert_int_equal(arm.config.model.shared_extra,
                         (int)lround((double)with.account.engram_dense / a_column));
    }
    EngPoint odd = POINT("rung", "R0c", "iso", "flops", "heads", "3", "hold", "embed_dims");
    refused(&odd, ENG_UNSUPPORTED, "K = 3");
}

static void test_what_cannot_be(void **state)
{
    (void)state;
    EngPoint point = POINT("rung", "R0c", "rho", "0.8", "engram_at", "4");
    refused(&point, ENG_USAGE, "layer 4 is not one of the rung's, 0 to 3");
    point = POINT("rung", "R0c", "rho", "0.8", "iso", "flops");
    refused(&point, ENG_USAGE, "not with rho = 0.8");
    point = POINT("rung", "R0c", "memory", "1048576", "iso", "flops");
    refused(&point, ENG_USAGE, "not with memory = 1048576");
    point = POINT("rung", "R0c", "rho", "0.8", "engram_at", "2+1");
    refused(&point, ENG_USAGE, "engram_at = 2+1");
    point = POINT("rung", "R0c", "rho", "0.8", "memory", "1000000");
    refused(&point, ENG_UNSUPPORTED, "memory and rho");
    point = POINT("rung", "R0c", "rho", "0.8", "orders", "4-2");
    refused(&point, ENG_USAGE, "orders");
    point = POINT("rung", "R0c", "rho", "0.999");
    refused(&point, ENG_UNSUPPORTED, "rho");
    const char *const of_rung[] = {"lr", "bias_step", "balance_loss"};
    for (int i = 0; i < 3; i++) {
        point = POINT("rung", "R0c", of_rung[i], "-0.5");
        refused(&point, ENG_USAGE, of_rung[i]);
    }
    const char *const counts[] = {"heads", "streams", "batch"};
    for (int i = 0; i < 3; i++) {
        point = POINT("rung", "R0c", "rho", "0.8", counts[i], "0");
        refused(&point, ENG_USAGE, "at least 1, or -1 for the rung's");
    }
    point = POINT("rung", "R0c", "rho", "0.8", "table_rule", "muon");
    refused(&point, ENG_USAGE, "table_rule");
}

static void test_manifest_is_the_model(void **state)
{
    (void)state;
    EngTrainData data;
    EngErr err = {0};
    EngStr text = {0};
    char key[ENG_KEY_HEX], other[ENG_KEY_HEX];
    assert_int_equal(eng_train_data_open("nowhere", "synthetic", 64, 4096, &data, &err), ENG_OK);
    EngPoint point = POINT("rung", "tiny", "rho", "0.4");
    EngArm arm = arm_of(&point);
    assert_int_equal(eng_arm_manifest(&arm, &data, &text, key, &err), ENG_OK);
    assert_non_null(strstr(text.text, "\nvocab_compressed=48\n"));
    assert_null(strstr(text.text, "threads="));
    EngArm changed = arm;
    changed.config.model.threads = 2; /* no part of what a run is */
    text.n = 0;
    assert_int_equal(eng_arm_manifest(&changed, &data, &text, other, &err), ENG_OK);
    assert_string_equal(key, other);
    assert_null(strstr(text.text, "kv_bias")); /* came later: keys of recorded runs stay */
    changed.config.kv_bias = true;
    text.n = 0;
    assert_int_equal(eng_arm_manifest(&changed, &data, &text, other, &err), ENG_OK);
    assert_string_not_equal(key, other);
    changed.config.lr *= 2;
    text.n = 0;
    assert_int_equal(eng_arm_manifest(&changed, &data, &text, other, &err), ENG_OK);
    assert_string_not_equal(key, other);
    text.n = 0;
    data.digest[0] ^= 1;
    assert_int_equal(eng_arm_manifest(&arm, &data, &text, other, &err), ENG_OK);
    assert_string_not_equal(key, other);
    eng_str_free(&text);
    eng_train_data_close(&data);
}

static EngStatus check_text(const char *text, EngErr *err)
{
    static const EngCatalog catalog = {.experiments = &eng_train_experiments,
                                       .kernels = eng_kernels};
    EngSweep *sweep = NULL;
    EngStatus status = eng_sweep_parse(text, "t.sweep", &catalog, NULL, 0, &sweep, err);
    if (!status) status = eng_arm_check_sweep(sweep, err);
    eng_sweep_free(sweep);
    return status;
}

static void test_sweeps(void **state)
{
    (void)state;
    EngErr err = {0};
    assert_int_equal(check_text("[train:a]\nrho = 0.4, 1\nmodel_seed = 1:8:+1\n", &err), ENG_OK);
    assert_int_equal(
        check_text("[train:a]\nrho = 0.4, 1\n[train:b]\nrho = 0.4\ngate = off, plain\n", &err),
        ENG_OK);
    assert_int_equal(check_text("[train:a]\nrho = 0.4, 1\nlr = 0.01, 0.02\n", &err), ENG_USAGE);
    assert_non_null(strstr(err.text, "t.sweep: [train:a] changes two variables, rho and lr"));
    assert_int_equal(
        check_text("[train:a]\nzip = (rho, lr)\nrho = 0.4, 1\nlr = 0.01, 0.02\n", &err), ENG_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rho_keeps_the_budget),
        cmocka_unit_test(test_holds),
        cmocka_unit_test(test_other_arms),
        cmocka_unit_test(test_iso_flops_counts_the_columns),
        cmocka_unit_test(test_what_cannot_be),
        cmocka_unit_test(test_manifest_is_the_model),
        cmocka_unit_test(test_sweeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
