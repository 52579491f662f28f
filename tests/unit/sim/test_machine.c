/* Machine descriptions: what a file must say of every value, and that the presets say it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>

#include "base/mem.h"
#include "sim/machine/machine.h"

#define VALUE(text)   "{\"summary\": \"s\", \"tiers\": {\"dram\": {" text "}}}"
#define LATENCY(text) VALUE("\"latency\": {" text "}")
#define FINE                                                                                       \
    "\"value\": 110, \"unit\": \"ns\", \"kind\": \"spec\", \"date\": \"2026-11-29\", \"source\": " \
    "\"x\""

static void check_refused(const char *text, const char *says)
{
    EngErr err = {0};
    EngMachineModel machine;
    EngStatus status = eng_machine_parse("m", text, &machine, &err);
    if (status != ENG_BAD_DATA) fail_msg("status %d of %s", status, text);
    if (!strstr(err.text, says)) fail_msg("\"%s\" does not say \"%s\"", err.text, says);
}

static void test_presets(void **state)
{
    (void)state;
    static const char *const wanted[] = {"h100",   "h200",      "b200",      "gb200",
                                         "mi300x", "mi355x",    "epyc-9005", "gb10",
                                         "cxl-x8", "nvme-gen5", "rdma-400g"};
    for (size_t w = 0; w < sizeof wanted / sizeof *wanted; w++) {
        EngErr err = {0};
        EngMachineModel machine;
        if (eng_machine_open(wanted[w], &machine, &err)) fail_msg("%s", err.text);
    }
    for (const char *const *name = eng_machine_names(); *name; name++) {
        EngErr err = {0};
        EngMachineModel machine;
        if (eng_machine_open(*name, &machine, &err)) fail_msg("%s", err.text);
        assert_true(machine.n_tiers > 0);
        assert_int_equal(strlen(machine.digest), ENG_KEY_HEX - 1);
        for (int t = 0; t < machine.n_tiers; t++)
            for (int f = 0; f < ENG_TIER_FIELD_COUNT; f++) {
                const EngQuantity *q = &machine.tiers[t].fields[f];
                if (!eng_tier_has(&machine.tiers[t], (EngTierField)f)) continue;
                assert_true(q->origin == ENG_SPEC || q->origin == ENG_MEASURED);
                assert_true(strlen(q->source) > 10 && strlen(q->date) == 10 && q->value > 0);
                if (strstr(q->source, "notes")) fail_msg("%s: %s", *name, q->source);
            }
    }
}

/* Figures that were once those of another machine, mixture or direction, by hand from their
 * sources: 400 Gb/s are 50 GB/s; 160 Gb/s 20; 8 lanes of 32 GT/s 32; half of 450. */
static void test_known_values(void **state)
{
    (void)state;
    static const struct {
        const char *machine, *tier;
        EngTierField field;
        double value;
    } known[] = {
        {"b200", "nic", ENG_TIER_BANDWIDTH, 400e9 / 8},
        {"h200", "nic", ENG_TIER_BANDWIDTH, 400e9 / 8},
        {"h200", "nic", ENG_TIER_REQUEST_RATE, 45e6},
        {"gb10", "nic", ENG_TIER_BANDWIDTH, 160e9 / 8},
        {"cxl-x8", "cxl", ENG_TIER_BANDWIDTH, 8 * 32e9 / 8},
        {"gb200", "c2c", ENG_TIER_BANDWIDTH, 900e9 / 2 / 2},
        {"rdma-400g", "rdma", ENG_TIER_REQUEST_RATE, 45e6},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        EngErr err = {0};
        EngMachineModel machine;
        const EngTier *tier;
        if (eng_machine_open(known[i].machine, &machine, &err)) fail_msg("%s", err.text);
        if (eng_machine_tier(&machine, known[i].tier, &tier, &err)) fail_msg("%s", err.text);
        if (!(fabs(tier->fields[known[i].field].value - known[i].value) <= 1))
            fail_msg("%s.%s: %g, not %g", known[i].machine, known[i].tier,
                     tier->fields[known[i].field].value, known[i].value);
    }
    EngTier nic = {.name = "nic"}, rdma = {.name = "rdma"}, pcie = {.name = "pcie"};
    assert_true(eng_tier_is_adapter(&nic) && eng_tier_is_adapter(&rdma));
    assert_false(eng_tier_is_adapter(&pcie));
}

/* A value without any one of its five parts, in any field of any preset, refuses the file. */
static void test_every_part_is_needed(void **state)
{
    (void)state;
    static const char *const parts[] = {"value", "low", "high", "unit", "kind", "date", "source"};
    int tried = 0;
    for (const char *const *name = eng_machine_names(); *name; name++) {
        char path[512];
        snprintf(path, sizeof path, "%s/sim/machine/presets/%s.json", ENG_SOURCE_DIR, *name);
        json_t *root = json_load_file(path, 0, NULL), *tier, *value;
        const char *tier_name, *field;
        assert_non_null(root);
        json_object_foreach(json_object_get(root, "tiers"), tier_name, tier)
            json_object_foreach(tier, field, value) for (int p = 0; p < 7; p++)
        {
            if (!json_object_get(value, parts[p])) continue;
            json_t *part = json_incref(json_object_get(value, parts[p]));
            json_object_del(value, parts[p]);
            char *text = json_dumps(root, 0);
            check_refused(text, parts[p]);
            check_refused(text, field);
            free(text);
            json_object_set_new(value, parts[p], part);
            tried++;
        }
        json_decref(root);
    }
    assert_true(tried > 100);
}

static void test_refusals(void **state)
{
    (void)state;
    EngErr err = {0};
    EngMachineModel machine;
    assert_int_equal(eng_machine_parse("m", LATENCY(FINE), &machine, &err), ENG_OK);
    assert_true(fabs(machine.tiers[0].fields[ENG_TIER_LATENCY].value - 110e-9) < 1e-15);
    check_refused("{", "line 1");
    check_refused("[]", "not an object");
    check_refused("{\"summary\": \"s\"}", "tiers");
    check_refused(VALUE(""), "no fields");
    check_refused(VALUE("\"latancy\": {" FINE "}"), "latancy");
    check_refused(LATENCY(FINE ", \"also\": 1"), "other keys");
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"\"value\": 0, \"unit\": \"ns\", \"kind\": \"spec\", \"date\": \"2026-11-29\", "
         "\"source\": \"x\"",
         "above 0"},
        {"\"value\": -1, \"unit\": \"ns\", \"kind\": \"spec\", \"date\": \"2026-11-29\", "
         "\"source\": \"x\"",
         "above 0"},
        {"\"value\": 1, \"unit\": \"GB/s\", \"kind\": \"spec\", \"date\": \"2026-11-29\", "
         "\"source\": \"x\"",
         "ns us ms s"},
        {"\"value\": 1, \"unit\": \"us\", \"kind\": \"assumed\", \"date\": \"2026-11-29\", "
         "\"source\": \"x\"",
         "neither spec nor measured"},
        {"\"value\": 1, \"unit\": \"us\", \"kind\": \"spec\", \"date\": \"May 2026\", \"source\": "
         "\"x\"",
         "YYYY-MM-DD"},
        {"\"value\": 1, \"unit\": \"us\", \"kind\": \"spec\", \"date\": \"2026-13-01\", "
         "\"source\": \"x\"",
         "YYYY-MM-DD"},
        {"\"value\": 1, \"unit\": \"us\", \"kind\": \"spec\", \"date\": \"2026-02-29\", "
         "\"source\": \"x\"",
         "YYYY-MM-DD"},
        {"\"value\": \"1\", \"unit\": \"us\", \"kind\": \"spec\", \"date\": \"2026-11-29\", "
         "\"source\": \"x\"",
         "no value"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[400];
        snprintf(text, sizeof text, LATENCY("%s"), bad[i].text);
        check_refused(text, bad[i].says);
    }
#define MORE "\"kind\": \"spec\", \"date\": \"2026-11-29\", \"source\": \"x\"}"
    check_refused(VALUE("\"bandwidth\": {\"value\": 1, \"unit\": \"GB/s\", " MORE
                        ", \"granule\": {\"value\": 4, \"unit\": \"KiB\", " MORE
                        ", \"request_rate\": {\"value\": 1, \"unit\": \"M/s\", " MORE),
                  "its bandwidth is");
    check_refused(VALUE("\"efficiency\": {\"value\": 120, \"unit\": \"%\", " MORE), "above 1");
    check_refused(VALUE("\"capacity\": {\"value\": 100, \"unit\": \"GB\", " MORE
                        ", \"pin_limit\": {\"value\": 100, \"unit\": \"GiB\", " MORE),
                  "pin_limit");
    assert_int_equal(eng_machine_open("h20", &machine, &err), ENG_USAGE);
    assert_non_null(strstr(err.text, "h200"));
    assert_int_equal(eng_machine_open("/nowhere/m.json", &machine, &err), ENG_NOT_FOUND);
}

static void test_assumptions(void **state)
{
    (void)state;
    EngErr err = {0};
    EngMachineModel machine;
    const EngTier *tier;
    double value;
    assert_int_equal(eng_machine_open("h200", &machine, &err), ENG_OK);
    assert_int_equal(eng_machine_tier(&machine, "pcie", &tier, &err), ENG_OK);
    assert_int_equal(eng_tier_need(tier, ENG_TIER_LATENCY, &value, &err), ENG_UNSUPPORTED);
    assert_non_null(strstr(err.text, "pcie.latency=1.5us"));
    assert_int_equal(eng_machine_assume(&machine, "pcie.latency=1.5us", &err), ENG_OK);
    assert_int_equal(eng_machine_assume(&machine, "pcie.outstanding=256", &err), ENG_OK);
    assert_int_equal(eng_machine_assume(&machine, "pcie.efficiency=83 %", &err), ENG_OK);
    assert_int_equal(eng_tier_need(tier, ENG_TIER_LATENCY, &value, &err), ENG_OK);
    assert_true(fabs(value - 1.5e-6) < 1e-15);
    assert_int_equal(tier->fields[ENG_TIER_LATENCY].origin, ENG_ASSUMED);
    assert_int_equal(eng_machine_assume(&machine, "dram.bandwidth=500GB/s", &err), ENG_OK);
    assert_int_equal(eng_machine_tier(&machine, "dram", &tier, &err), ENG_OK);
    static const char *const bad[] = {
        "pcie.latency=1.5",   "pcie.latency=0us",  "pcie.latency=-1us", "pcie.latency",
        "latency=1us",        "pcie.latency=us",   "pcie.lateness=1us", "pcie.latency=1 GB",
        "pcie.latency=nanus", "pcie.efficiency=2", "pcie.latency=2us"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (eng_machine_assume(&machine, bad[i], &err) != ENG_USAGE) fail_msg("took %s", bad[i]);
    assert_int_equal(eng_machine_tier(&machine, "tape", &tier, &err), ENG_USAGE);
    assert_non_null(strstr(err.text, "hbm"));
}

static void test_units(void **state)
{
    (void)state;
    EngErr err = {0};
    double value;
    assert_int_equal(eng_quantity_parse("188.83GiB", ENG_DIM_BYTES, &value, &err), ENG_OK);
    assert_true(fabs(value - 202.754e9) < 1e7);
    assert_int_equal(eng_quantity_parse("50 GB/s", ENG_DIM_BYTES_PER_S, &value, &err), ENG_OK);
    assert_true(value == 50e9);
    assert_int_equal(eng_quantity_parse("50 Gb/s", ENG_DIM_BYTES_PER_S, &value, &err), ENG_USAGE);
    assert_int_equal(eng_quantity_parse("50", ENG_DIM_BYTES, &value, &err), ENG_USAGE);
    assert_int_equal(eng_quantity_parse("inf GB", ENG_DIM_BYTES, &value, &err), ENG_USAGE);
    assert_int_equal(eng_quantity_parse("1e308TB/s", ENG_DIM_BYTES_PER_S, &value, &err), ENG_USAGE);
    assert_int_equal(eng_quantity_parse("1e-320ns", ENG_DIM_SECONDS, &value, &err), ENG_USAGE);
}

/* Of no dimension is a value taken that would come out of a plan as infinite or nothing. */
static void test_ends(void **state)
{
    (void)state;
    static const struct {
        const char *unit, *base;
    } units[ENG_DIM_KINDS] = {
        [ENG_DIM_BYTES] = {"GB", " B"},
        [ENG_DIM_BYTES_PER_S] = {"GB/s", " B/s"},
        [ENG_DIM_SECONDS] = {"us", " s"},
        [ENG_DIM_PER_S] = {"M/s", " /s"},
        [ENG_DIM_COUNT] = {"", ""},
        [ENG_DIM_REQUESTS] = {" requests", ""},
        [ENG_DIM_NODES] = {" nodes", ""},
        [ENG_DIM_NUMBER] = {"", ""},
        [ENG_DIM_SHARE] = {"%", ""},
        [ENG_DIM_USD] = {"USD", " USD"},
        [ENG_DIM_USD_PER_H] = {"USD/h", " USD/h"},
        [ENG_DIM_USD_PER_GB] = {"USD/GB", " USD/B"},
        [ENG_DIM_FLOPS] = {"TFLOP/s", " FLOP/s"},
        [ENG_DIM_WATTS] = {"kW", " W"},
        [ENG_DIM_USD_PER_KWH] = {"USD/kWh", " USD/kWh"},
    };
    static const char *const numbers[] = {"1e290", "1e30", "1e-40", "1e-300"};
    for (int k = 0; k < ENG_DIM_KINDS; k++)
        for (int i = 0; i < 4; i++) {
            EngErr err = {0};
            char text[40], says[64];
            double value;
            snprintf(text, sizeof text, "%s%s", numbers[i], units[k].unit);
            snprintf(says, sizeof says, "%s than 1e%s18%s", i < 2 ? "more" : "less",
                     i < 2 ? "+" : "-", units[k].base);
            EngStatus status = eng_quantity_parse(text, (EngDimension)k, &value, &err);
            if (status != ENG_USAGE || !strstr(err.text, says))
                fail_msg("%s: %s, not \"%s\"", text, err.text, says);
            snprintf(text, sizeof text, "1%s", units[k].unit);
            assert_int_equal(eng_quantity_parse(text, (EngDimension)k, &value, &err), ENG_OK);
        }
    check_refused(VALUE("\"latency\": {\"value\": 1e300, \"unit\": \"s\", " MORE), "than 1e+18 s");
}

/* A number without its unit is refused wherever there is one, with those that are possible. */
static void test_bare_numbers(void **state)
{
    (void)state;
    static const struct {
        EngDimension dimension;
        const char *says; /* NULL: has no unit */
    } kinds[ENG_DIM_KINDS] = {
        [ENG_DIM_BYTES] = {ENG_DIM_BYTES, "GiB"},
        [ENG_DIM_BYTES_PER_S] = {ENG_DIM_BYTES_PER_S, "GB/s"},
        [ENG_DIM_SECONDS] = {ENG_DIM_SECONDS, "ns us ms s"},
        [ENG_DIM_PER_S] = {ENG_DIM_PER_S, "M/s"},
        [ENG_DIM_COUNT] = {ENG_DIM_COUNT, NULL},
        [ENG_DIM_REQUESTS] = {ENG_DIM_REQUESTS, NULL},
        [ENG_DIM_NODES] = {ENG_DIM_NODES, NULL},
        [ENG_DIM_NUMBER] = {ENG_DIM_NUMBER, NULL},
        [ENG_DIM_SHARE] = {ENG_DIM_SHARE, "10% or 1000%"},
        [ENG_DIM_USD] = {ENG_DIM_USD, "USD"},
        [ENG_DIM_USD_PER_H] = {ENG_DIM_USD_PER_H, "USD/h"},
        [ENG_DIM_USD_PER_GB] = {ENG_DIM_USD_PER_GB, "USD/GB"},
        [ENG_DIM_FLOPS] = {ENG_DIM_FLOPS, "TFLOP/s"},
        [ENG_DIM_WATTS] = {ENG_DIM_WATTS, "W kW"},
        [ENG_DIM_USD_PER_KWH] = {ENG_DIM_USD_PER_KWH, "USD/kWh"},
    };
    for (int k = 0; k < ENG_DIM_KINDS; k++) {
        EngErr err = {0};
        double value;
        assert_int_equal(kinds[k].dimension, k);
        EngStatus status = eng_quantity_parse("10", kinds[k].dimension, &value, &err);
        if (status != (kinds[k].says ? ENG_USAGE : ENG_OK)) fail_msg("dimension %d", k);
        if (kinds[k].says && !strstr(err.text, kinds[k].says)) fail_msg("%s", err.text);
        if (kinds[k].says && !strstr(err.text, "\"10\"")) fail_msg("%s", err.text);
    }
}

static void test_shares(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value; /* below 0: refused */
    } shares[] = {{"0.1", 0.1}, {"10%", 0.1},     {"10 %", 0.1}, {"1", 1},     {"120%", 1.2},
                  {"0", 0},     {"0%", 0},        {"1.2", -1},   {"10", -1},   {"-1%", -1},
                  {"%", -1},    {"10 nodes", -1}, {"nan", -1},   {"10%%", -1}, {"0.1x", -1}};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        EngErr err = {0};
        double value = -1;
        EngStatus status = eng_share_parse(shares[i].text, &value, &err);
        if (status != (shares[i].value < 0 ? ENG_USAGE : ENG_OK)) fail_msg("%s", shares[i].text);
        if (!status) assert_true(fabs(value - shares[i].value) < 1e-15);
    }
    /* Counts are of one kind each, and an exponent is no share. */
    EngErr err = {0};
    double value;
    assert_int_equal(eng_quantity_parse("2 nodes", ENG_DIM_REQUESTS, &value, &err), ENG_USAGE);
    assert_int_equal(eng_quantity_parse("2 requests", ENG_DIM_COUNT, &value, &err), ENG_USAGE);
    assert_int_equal(eng_quantity_parse("200%", ENG_DIM_NUMBER, &value, &err), ENG_USAGE);
    check_refused(VALUE("\"fetch_slowdown\": {\"value\": 10, \"unit\": \"1\", " MORE),
                  "10% or 1000%");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_presets),
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_every_part_is_needed),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_assumptions),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_bare_numbers),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
