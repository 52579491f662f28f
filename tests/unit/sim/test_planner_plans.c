/* Whole plans of a step: verdicts, what would hide a fetch, and who shares a tier. */
#include "tests/unit/sim/planner_test.h"

#include "sim/planner/fleet.h"
#include "sim/planner/plan.h"
#include "sim/planner/sharding.h"

static EngPreset preset_of(const char *name)
{
    EngErr err = {0};
    EngPreset preset;
    if (eng_preset_find(name, &preset, &err)) fail_msg("%s", err.text);
    return preset;
}

static EngTier tier_of(const char *name, double bandwidth, double rate, double latency)
{
    EngTier tier = {0};
    snprintf(tier.name, sizeof tier.name, "%s", name);
    if (bandwidth)
        tier.fields[ENG_TIER_BANDWIDTH] = (EngQuantity){.value = bandwidth, .origin = ENG_MEASURED};
    if (rate)
        tier.fields[ENG_TIER_REQUEST_RATE] = (EngQuantity){.value = rate, .origin = ENG_MEASURED};
    tier.fields[ENG_TIER_LATENCY] = (EngQuantity){.value = latency, .origin = ENG_MEASURED};
    return tier;
}

static EngStepInput step_of(const EngPreset *preset, const EngTier *tier, double tokens,
                            const double *layers)
{
    return (EngStepInput){.preset = preset,
                          .format = ENG_ROW_FP8_PACKED,
                          .path = {tier},
                          .n_path = 1,
                          .tokens = tokens,
                          .unique = 1,
                          .layers = layers,
                          .n_layers = 61};
}

static EngStepPlan plan_of(const EngPreset *preset, const EngTier *tier, double tokens,
                           const double *layers)
{
    EngErr err = {0};
    EngStepPlan plan;
    EngStepInput input = step_of(preset, tier, tokens, layers);
    if (eng_step_plan(&input, &plan, &err)) fail_msg("%s", err.text);
    return plan;
}

/* Verdicts of the notes for a decoder of 0.8 ms a layer: at layer 1, memories and networks hide;
 * a drive does at small batches only; layer 14 has fourteen times the window. */
static void test_verdicts(void **state)
{
    (void)state;
    EngPreset preset = preset_of("v41-flash");
    double layers[61];
    for (int i = 0; i < 61; i++) layers[i] = 0.8e-3;
    EngTier link = tier_of("pcie", 53e9, 0, 1.5e-6), cxl = tier_of("cxl", 36e9, 0, 0.4e-6);
    EngTier rdma = tier_of("nic", 0, 45e6, 4e-6), nvme = tier_of("nvme", 0, 2.5e6, 80e-6);
    const EngTier *fast[] = {&link, &cxl, &rdma};
    for (int i = 0; i < LENGTH(fast); i++) {
        EngStepPlan plan = plan_of(&preset, fast[i], 128, layers);
        assert_true(eng_step_hidden(&plan));
        assert_near(plan.added, 0, 0, "hidden");
    }
    EngStepPlan small = plan_of(&preset, &nvme, 16, layers),
                large = plan_of(&preset, &nvme, 128, layers);
    assert_true(eng_step_hidden(&small));
    assert_false(eng_step_hidden(&large));
    assert_near(large.fetches[0].stall, 1308.8e-6 - 800e-6, 1e-7, "stall at layer 1");
    assert_near(large.fetches[1].stall, 0, 0, "layer 14");
    assert_near(large.added, large.fetches[0].stall, 1e-12, "added");
}

/* The cure that a plan names cures. */
static void test_explanations(void **state)
{
    (void)state;
    EngPreset preset = preset_of("v41-flash");
    double layers[61], factor, times, rest;
    for (int i = 0; i < 61; i++) layers[i] = 0.1e-3;
    EngTier nvme = tier_of("nvme", 0, 2.5e6, 80e-6);
    EngStepPlan plan = plan_of(&preset, &nvme, 128, layers);
    EngStepInput input = step_of(&preset, &nvme, 128, layers);
    EngStr out = {0};
    eng_step_print(&input, &plan, &out);
    assert_non_null(strstr(out.text, "layer 1: NOT hidden"));
    assert_non_null(strstr(out.text, "request rate"));
    const char *cure = strstr(out.text, "hidden if nvme took");
    assert_non_null(cure);
    assert_int_equal(sscanf(cure, "hidden if nvme took %lf us, not %lf: %lf times its rate", &times,
                            &rest, &factor),
                     3);
    nvme.fields[ENG_TIER_REQUEST_RATE].value *= factor;
    plan = plan_of(&preset, &nvme, 128, layers);
    assert_near(plan.fetches[0].stall, 0, 0, "cured");
    nvme.fields[ENG_TIER_REQUEST_RATE].value *= 0.99;
    plan = plan_of(&preset, &nvme, 128, layers);
    assert_true(plan.fetches[0].stall > 0);
    eng_str_free(&out);
    nvme = tier_of("nvme", 0, 2.5e6, 200e-6); /* more than the window: no rate helps */
    plan = plan_of(&preset, &nvme, 128, layers);
    out = (EngStr){0};
    eng_step_print(&input, &plan, &out);
    assert_non_null(strstr(out.text, "not hidden by any rate: of one row"));
    assert_non_null(strstr(out.text, "take 100.4 us more")); /* 200 us, and a row at 2.5 M/s */
    eng_str_free(&out);
}

static EngStepCure cure_of(const EngStepInput *in, int k, EngStepPlan *plan)
{
    EngErr err = {0};
    EngStepCure cure;
    if (eng_step_plan(in, plan, &err)) fail_msg("%s", err.text);
    assert_true(plan->fetches[k].stall > 0);
    eng_step_cure(in, plan, k, &cure);
    return cure;
}

/* Cures by hand, of 2400 rows a layer. Layers of 1 ms that are 20 % slower beside fetches that are
 * 50 % slower leave 0.8 ms of fetch; a second tier that is too slow as well is not cured by the
 * first; layer 14 has the 13 ms behind a layer 1 that waits; and what replicas that meet (R = 4 of
 * a step of 0.1 s) must reach is t0 / (1 - 6 t0 / S) = 5 ms, so t0 = 5 / 1.3 ms. */
static void test_cures(void **state)
{
    (void)state;
    EngErr err = {0};
    EngPreset preset = preset_of("v41-flash");
    EngTier slow = tier_of("cxl", 0, 1e6, 1e-12), link = tier_of("pcie", 0, 2e6, 1e-12);
    double layers[61];
    EngStepPlan plan;
    EngStepInput in = step_of(&preset, &slow, 100, layers);
    in.n_layers = 20;
    for (int l = 0; l < 20; l++) layers[l] = 1e-3;
    in.interference = (EngSlowdowns){.fetch = 0.5, .compute = 0.2};
    EngStepCure cure = cure_of(&in, 0, &plan);
    assert_near(cure.faster, 3, 0.011, "beside slower layers");
    assert_near(cure.time, 0.8e-3, 0.003e-3, "beside slower layers");
    assert_near(cure.rows, 0.333, 1e-9, "beside slower layers");
    in.interference = (EngSlowdowns){0};
    in.hash = 0.4e-3; /* leaves 0.6 ms */
    cure = cure_of(&in, 0, &plan);
    assert_near(cure.faster, 4, 0.011, "behind the hash");
    assert_near(cure.rows, 0.249, 0.0011, "behind the hash");
    in.hash = 0;

    in.path[1] = &link;
    in.n_path = 2;
    EngStr out = {0};
    cure = cure_of(&in, 0, &plan);
    assert_true(isnan(cure.faster));
    assert_near(cure.rows, 0.416, 1e-9, "both tiers");
    assert_true(cure.then.tier == &link);
    eng_step_print(&in, &plan, &out);
    assert_non_null(strstr(out.text, "not hidden by any rate of cxl alone: pcie takes 1200 us; "
                                     "hidden with 41.6 % of the rows"));
    eng_str_free(&out);
    in.unique = cure.rows;
    assert_int_equal(eng_step_plan(&in, &plan, &err), ENG_OK);
    assert_near(plan.fetches[0].stall, 0, 0, "cured");
    in.unique = 1;

    in.n_path = 1;
    slow = tier_of("nvme", 0, 1e5, 1e-12);
    cure = cure_of(&in, 1, &plan);
    assert_near(cure.faster, 24. / 13, 0.011, "layer 14");
    assert_near(cure.time, 13e-3, 0.1e-3, "layer 14");

    for (int l = 0; l < 20; l++) layers[l] = 5e-3;
    slow = tier_of("nvme", 0, 2.5e5, 1e-12);
    in.replicas = 4;
    in.shared = 1;
    cure = cure_of(&in, 0, &plan);
    assert_near(cure.faster, 9.6 / (5 / 1.3), 0.011, "replicas that meet less");
    slow.fields[ENG_TIER_REQUEST_RATE].value *= cure.faster;
    assert_int_equal(eng_step_plan(&in, &plan, &err), ENG_OK);
    assert_near(plan.fetches[0].stall, 0, 0, "cured");
}

/* Half of 24,000 look-ups are left, of which a cache in memory holds three quarters: the drive
 * reads 3000 rows, memory and link carry 12,000 of 264 B each. */
static void test_plan_shares(void **state)
{
    (void)state;
    EngErr err = {0};
    EngPreset preset = preset_of("v41-flash");
    EngTier nvme = tier_of("nvme", 0, 2.5e6, 80e-6), dram = tier_of("dram", 200e9, 0, 1e-7);
    EngTier pcie = tier_of("pcie", 53e9, 0, 1e-6);
    double layers[20] = {0};
    EngStepPlan plan;
    EngFleet fleet = {.host_rate = 1000};
    EngStepInput good = {.preset = &preset,
                         .format = ENG_ROW_FP8_PACKED,
                         .path = {&nvme, &dram, &pcie},
                         .n_path = 3,
                         .tokens = 1000,
                         .unique = 0.5,
                         .hits = 0.75,
                         .cache = 1,
                         .layers = layers,
                         .n_layers = 20,
                         .hash = 1e-5};
    assert_int_equal(eng_step_plan(&good, &plan, &err), ENG_OK);
    assert_near(plan.looked_up, 24000, 0, "looked up");
    assert_near(plan.rows, 12000, 1e-9, "read");
    const EngStage *stages = plan.gathers[0].stages;
    assert_near(stages[0].time, 3000 / 2.5e6, 1e-12, "misses");
    assert_near(stages[1].time, 12000 * 264 / 200e9, 1e-15, "all from memory");
    assert_near(stages[2].bytes, 12000 * 264, 1e-6, "hits cross the link");
    assert_near(plan.gathers[0].time, 3000 / 2.5e6 + 81.1e-6, 1e-12, "with its latencies");
    /* A step of 1000 tokens a second, two layers. */
    assert_near(eng_fleet_load(&fleet, 1000, &plan, 0).requests_per_s, 6000, 1e-9, "drive");
    assert_near(eng_fleet_load(&fleet, 1000, &plan, 2).requests_per_s, 24000, 1e-9, "link");
    EngStr out = {0};
    eng_step_print(&good, &plan, &out);
    assert_non_null(
        strstr(out.text, "12000 read by one reader; 75 % of them from the cache in dram"));
    eng_str_free(&out);
    /* Readers have links of their own; the drive of their host reads the misses of all. */
    EngStepInput more = good;
    more.readers = 4;
    more.shared = 3;
    assert_int_equal(eng_step_plan(&more, &plan, &err), ENG_OK);
    assert_near(plan.gathers[0].stages[0].time, 3000 / 2.5e6, 1e-12, "misses of four");
    assert_near(plan.gathers[0].stages[2].bytes, 3000 * 264, 1e-6, "a reader's link");
    assert_near(eng_fleet_load(&fleet, 1000, &plan, 0).requests_per_s, 6000, 1e-9, "of four");
    EngStepInput bad = good;
    bad.hits = 1;
    assert_int_equal(eng_step_plan(&bad, &plan, &err), ENG_OK);
    assert_near(plan.gathers[0].time, 12000 * 264 / 53e9 + 1.1e-6, 1e-12, "none of the drive");
    bad.cache = 2;
    assert_int_equal(eng_step_plan(&bad, &plan, &err), ENG_OK);
    assert_near(plan.gathers[0].time, 12000 * 264 / 53e9 + 1e-6, 1e-12, "behind memory");
    static const int outside[] = {-1, 0, 3};
    for (int i = 0; i < LENGTH(outside); i++) {
        bad.cache = outside[i];
        assert_int_equal(eng_step_plan(&bad, &plan, &err), ENG_USAGE);
    }
    bad = good;
    bad.hits = 1.1;
    assert_int_equal(eng_step_plan(&bad, &plan, &err), ENG_USAGE);
    bad = good;
    bad.unique = 0;
    assert_int_equal(eng_step_plan(&bad, &plan, &err), ENG_USAGE);
    bad = good;
    bad.tokens = NAN;
    assert_int_equal(eng_step_plan(&bad, &plan, &err), ENG_USAGE);
    bad = good;
    bad.n_layers = 14; /* layer 14 is the fifteenth */
    assert_int_equal(eng_step_plan(&bad, &plan, &err), ENG_USAGE);
    nvme.fields[ENG_TIER_LATENCY].origin = ENG_UNKNOWN;
    assert_int_equal(eng_step_plan(&good, &plan, &err), ENG_UNSUPPORTED);
}

/* Replicas of a host that read one drive, against answers by hand: one that is always asked gives
 * each its part; with c = 1 + (R - 1) 2 t / S seen by a hidden fetch, t = t0 / (1 - (R - 1) 2 t0 /
 * S); and what a replica's own requests under way limit is as if alone. */
static void test_replicas(void **state)
{
    (void)state;
    EngErr err = {0};
    EngPreset preset = preset_of("v41-flash");
    EngTier nvme = tier_of("nvme", 0, 2.5e6, 1e-12), dram = tier_of("dram", 100e9, 0, 1e-12);
    double none[20] = {0}, layers[20];
    EngStepPlan alone, shared;
    EngStepInput in = {.preset = &preset,
                       .format = ENG_ROW_FP8_PACKED,
                       .path = {&nvme},
                       .n_path = 1,
                       .tokens = 100,
                       .unique = 1,
                       .layers = none,
                       .n_layers = 20};
    for (int l = 0; l < 20; l++) layers[l] = 5e-3;
    const double rows = 100 * 24, t0 = rows / 2.5e6;
    assert_int_equal(eng_step_plan(&in, &alone, &err), ENG_OK);
    assert_near(alone.fetches[0].fetch, t0, 1e-9, "alone");
    in.replicas = 4;
    assert_int_equal(eng_step_plan(&in, &shared, &err), ENG_OK);
    assert_near(shared.fetches[0].fetch, t0, 1e-9, "nothing is shared");
    in.shared = 1;
    assert_int_equal(eng_step_plan(&in, &shared, &err), ENG_OK);
    assert_near(shared.fetches[0].fetch, 4 * t0, 1e-6 * t0, "always asked");
    assert_near(shared.gathers[0].stages[0].crowd, 4, 1e-6, "crowd");
    assert_true(shared.gathers[0].stages[0].tier == &nvme);
    in.layers = layers; /* S = 0.1 s */
    assert_int_equal(eng_step_plan(&in, &shared, &err), ENG_OK);
    assert_near(shared.fetches[1].fetch, t0 / (1 - 3 * 2 * t0 / 0.1), 1e-6 * t0, "seldom asked");
    assert_near(shared.added, 0, 0, "hidden");
    /* Of a path only the tier that is shared: through memory that nobody else reads. */
    in.path[0] = &dram;
    in.path[1] = &nvme;
    in.n_path = 2;
    assert_int_equal(eng_step_plan(&in, &shared, &err), ENG_OK);
    assert_near(shared.gathers[0].stages[1].time, t0, 1e-9, "not shared");
    assert_true(shared.gathers[0].stages[0].crowd > 1 && shared.gathers[0].stages[1].crowd == 1);
    /* Four reads under way at 80 us: 50,000/s, whatever the others do. */
    in.path[0] = &nvme;
    in.n_path = 1;
    in.layers = none;
    nvme = tier_of("nvme", 0, 2.5e6, 80e-6);
    nvme.fields[ENG_TIER_OUTSTANDING] = (EngQuantity){.value = 4, .origin = ENG_MEASURED};
    assert_int_equal(eng_step_plan(&in, &shared, &err), ENG_OK);
    assert_near(shared.gathers[0].stages[0].time, (rows - 4) / 50000, 1e-9, "below the knee");
    assert_near(shared.gathers[0].stages[0].crowd, 4, 0.01, "at once");
    /* What a host asks of the drive does not depend on how its replicas share it. */
    EngFleet fleet = {.host_rate = 1000};
    in.layers = layers;
    in.shared = 0;
    assert_int_equal(eng_step_plan(&in, &alone, &err), ENG_OK);
    in.shared = 1;
    assert_int_equal(eng_step_plan(&in, &shared, &err), ENG_OK);
    assert_near(eng_fleet_load(&fleet, 100, &shared, 0).units,
                eng_fleet_load(&fleet, 100, &alone, 0).units, 1e-12, "load");
}

/* Eight readers of one replica: each has a link of its own, memory and drive of a host carry what
 * all of that host read. 2400 rows a layer, 300 of each reader. */
static void test_readers(void **state)
{
    (void)state;
    EngErr err = {0};
    EngPreset preset = preset_of("v41-flash");
    EngTier nvme = tier_of("nvme", 0, 2.5e6, 1e-12), pcie = tier_of("pcie", 53e9, 0, 1e-12);
    double layers[20];
    EngStepPlan plan;
    EngFleet fleet = {.host_rate = 1000};
    EngStepInput in = {.preset = &preset,
                       .format = ENG_ROW_FP8_PACKED,
                       .path = {&nvme, &pcie},
                       .n_path = 2,
                       .tokens = 100,
                       .unique = 1,
                       .readers = 8,
                       .layers = layers,
                       .n_layers = 20,
                       .shared = 1};
    for (int l = 0; l < 20; l++) layers[l] = 5e-3;
    assert_int_equal(eng_step_plan(&in, &plan, &err), ENG_OK);
    assert_near(plan.gathers[0].stages[0].time, 2400 / 2.5e6, 1e-12, "one drive, all rows");
    assert_near(plan.gathers[0].stages[1].time, 300 * 264 / 53e9, 1e-15, "a link, a reader's rows");
    assert_near(plan.rows, 300, 1e-9, "one reader");
    assert_near(plan.all_rows, 2400, 1e-9, "all");
    /* 10 steps a second of two layers, whoever reads which part. */
    for (int i = 0; i < 2; i++)
        assert_near(eng_fleet_load(&fleet, 100, &plan, i).requests_per_s, 48000, 1e-6, "asked");
    assert_near(eng_fleet_load(&fleet, 100, &plan, 0).units, 48000 / 2.5e6, 1e-12, "of a drive");
    in.hosts = 2;
    assert_int_equal(eng_step_plan(&in, &plan, &err), ENG_OK);
    assert_near(plan.gathers[0].stages[0].time, 1200 / 2.5e6, 1e-12, "four of them on a host");
    assert_near(eng_fleet_load(&fleet, 100, &plan, 0).requests_per_s, 48000, 1e-6, "of both hosts");
    in.hosts = 8; /* as holders of a shared table are */
    assert_int_equal(eng_step_plan(&in, &plan, &err), ENG_OK);
    assert_near(plan.gathers[0].stages[0].time, 300 / 2.5e6, 1e-12, "each a drive");
    in.hosts = 1;
    in.readers = 5; /* not even: the fullest has more than 480, the drive what there is */
    assert_int_equal(eng_step_plan(&in, &plan, &err), ENG_OK);
    assert_near(plan.gathers[0].stages[1].rows, 480 + sqrt(2 * 480 * log(5)), 1e-9, "fullest");
    assert_near(plan.gathers[0].stages[0].time, 2400 / 2.5e6, 1e-12, "all rows");
    assert_near(eng_fleet_load(&fleet, 100, &plan, 1).requests_per_s, 48000, 1e-6, "not five most");
    in.tokens = 0.01; /* on the mean; the fullest of five is expected to have no more than all */
    assert_int_equal(eng_step_plan(&in, &plan, &err), ENG_OK);
    assert_near(plan.rows, 0.24, 1e-12, "all there is");
}

/* Eight holders that read each other: of 2400 rows a layer each needs 300, 37.5 of its own and the
 * others through the link, beside which its memory answers for the 300 that it holds. */
static void test_peers(void **state)
{
    (void)state;
    EngErr err = {0};
    EngPreset preset = preset_of("v41-flash");
    EngTier hbm = tier_of("hbm", 2e12, 0, 1e-6), link = tier_of("nic", 50e9, 45e6, 4e-6);
    double layers[20] = {0};
    EngStepPlan plan;
    EngFleet fleet = {.host_rate = 1000};
    EngStepInput in = {.preset = &preset,
                       .format = ENG_ROW_FP8,
                       .path = {&hbm, &link},
                       .n_path = 2,
                       .tokens = 100,
                       .unique = 1,
                       .readers = 8,
                       .hosts = 8,
                       .peers = true,
                       .layers = layers,
                       .n_layers = 20};
    assert_int_equal(eng_step_plan(&in, &plan, &err), ENG_OK);
    const EngStage *stages = plan.gathers[0].stages;
    assert_near(stages[0].requests, 600, 1e-9, "values and scales of 300 rows");
    assert_near(stages[1].requests, 525, 1e-9, "values and scales of 262.5 rows");
    assert_near(plan.gathers[0].time, 525 / 45e6 + 5e-6, 1e-12, "at the link's message rate");
    assert_near(plan.fetches[0].fetch, plan.gathers[0].time, 0, "nothing behind the gather");
    assert_near(eng_fleet_load(&fleet, 100, &plan, 1).requests_per_s, 84000, 1e-6, "of all links");
    /* Five do not divide 24 columns: the exchange is planned as it is told, of the fullest. */
    EngShardShape shape = {.ranks = 5,
                           .tokens = 100,
                           .columns = 24,
                           .row_dims = 256,
                           .row = eng_row_layout(ENG_ROW_FP8, 256),
                           .unique = 1};
    double seconds;
    in.readers = in.hosts = 5;
    assert_int_equal(eng_step_plan(&in, &plan, &err), ENG_OK);
    assert_int_equal(eng_shard_time(ENG_SHARD_PEER_READ, &shape, &link, &seconds, &err), ENG_OK);
    assert_near(stages[1].time + 4e-6, seconds, 1e-15, "what the step waits for");
    in.readers = in.hosts = 8;
    in.values_between_peers = true;
    assert_int_equal(eng_step_plan(&in, &plan, &err), ENG_OK);
    assert_near(stages[0].requests, 600, 1e-9, "scales of one's own memory");
    assert_near(stages[1].bytes, 262.5 * 256, 1e-9, "values only");
    assert_near(plan.gathers[0].time, 262.5 / 45e6 + 5e-6, 1e-12, "a message less");
    in.peers = in.values_between_peers = false;
    in.n_path = 1;
    in.scale_rows = 8; /* the scales of all 2400 rows, from each memory */
    assert_int_equal(eng_step_plan(&in, &plan, &err), ENG_OK);
    assert_near(stages[0].bytes, 300 * 256 + 2400 * 8, 1e-9, "all scales");
    in.peers = true; /* without a link, or without others */
    assert_int_equal(eng_step_plan(&in, &plan, &err), ENG_USAGE);
    in.n_path = 2;
    in.readers = 1;
    assert_int_equal(eng_step_plan(&in, &plan, &err), ENG_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peers),        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_explanations), cmocka_unit_test(test_cures),
        cmocka_unit_test(test_plan_shares),  cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_readers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
