/* Start-up, training groups, hosts, cost, prices and admission. */
#include "tests/unit/sim/planner_test.h"

#include "base/rng.h"
#include "sim/cache/admission.h"
#include "sim/planner/fleet.h"
#include "sim/machine/machine.h"
#include "sim/planner/startup.h"
#include "sim/planner/training.h"

#define GIB  0x1p30

#define SAID "\"kind\": \"spec\", \"date\": \"2026-11-29\", \"source\": \"x\""

/* ---- prices ---- */

static void test_prices(void **state)
{
    (void)state;
#define RENT(numbers)                                                                              \
    "{\"summary\": \"s\", \"tiers\": {\"hbm\": {\"rent\": {" numbers                               \
    ", \"unit\": \"USD/h\", " SAID "}}}}"
    EngErr err = {0};
    EngMachineModel machine;
    if (eng_machine_parse("m", RENT("\"low\": 2, \"high\": 5"), &machine, &err))
        fail_msg("%s", err.text);
    const EngQuantity *rent = &machine.tiers[0].fields[ENG_TIER_RENT];
    assert_near(rent->low, 2, 0, "low");
    assert_near(rent->high, 5, 0, "high");
    static const char *const wrong[] = {RENT("\"value\": 3"), RENT("\"low\": 5, \"high\": 2"),
                                        RENT("\"low\": 0, \"high\": 2"),
                                        RENT("\"low\": -1, \"high\": 2"), RENT("\"low\": 1")};
    for (int i = 0; i < LENGTH(wrong); i++) {
        EngMachineModel refused;
        assert_int_equal(eng_machine_parse("m", wrong[i], &refused, &err), ENG_BAD_DATA);
    }
    EngBill cost = {0};
    EngQuantity dram = {.low = 2.4e-9, .high = 30e-9, .origin = ENG_MEASURED}, none = {0};
    eng_bill_bought(&cost, "memory", &dram, 203e9, 4, 14800);
    assert_near(cost.low, 0.0003, 5e-5, "tables at 2.4 USD/GB");
    assert_near(cost.high, 0.0033, 5e-5, "tables at 30 USD/GB");
    eng_bill_rent(&cost, "devices", rent, 8, 14800);
    assert_near(cost.lines[1].low, 16 / (3600 * 14800.0) * 1e6, 1e-9, "devices");
    assert_near(cost.high, cost.lines[0].high + cost.lines[1].high, 1e-12, "sum");
    eng_bill_rent(&cost, "adapter", &none, 1, 14800);
    eng_bill_rent(&cost, "power", &none, 1, 14800);
    assert_int_equal(cost.n, 2);
    assert_string_equal(cost.unpriced, "adapter, power");
    /* 3.2 kW at 0.1 USD/kWh are 0.32 USD/h, whatever the range of prices. */
    double low = cost.low, high = cost.high;
    eng_bill_power(&cost, 3200, 0.1, 14800);
    assert_string_equal(cost.lines[2].name, "power");
    assert_near(cost.lines[2].low, 0.32 / (3600 * 14800.0) * 1e6, 1e-12, "power");
    assert_near(cost.low - low, cost.lines[2].low, 1e-12, "power in all");
    assert_near(cost.high - high, cost.lines[2].low, 1e-12, "power in all");
    eng_bill_unpowered(&cost, "dram");
    eng_bill_unpowered(&cost, "nvme");
    assert_string_equal(cost.unpowered, "power of dram, nvme");
}

/* ---- hosts ---- */

static void test_hosts(void **state)
{
    (void)state;
    EngErr err = {0};
    EngFleet fleet;
    EngFleetInput in = {.target = 1e5,
                        .step = 0.025,
                        .step_tokens = 128,
                        .ranks = 4,
                        .devices_per_host = 8,
                        .table_hosts = 1};
    assert_int_equal(eng_fleet_plan(&in, &fleet, &err), ENG_OK);
    assert_near(fleet.replica_rate, 5120, 1e-9, "rate");
    assert_int_equal(fleet.replicas, 20); /* 19.5 */
    assert_int_equal(fleet.devices, 80);
    assert_int_equal(fleet.busy_devices, 80);
    assert_int_equal(fleet.hosts, 10);
    in.ranks = 3; /* two fit a host of eight */
    assert_int_equal(eng_fleet_plan(&in, &fleet, &err), ENG_OK);
    assert_int_equal(fleet.hosts, 10);
    assert_int_equal(fleet.devices, 80); /* all of these hosts, two idle in each */
    assert_int_equal(fleet.busy_devices, 60);
    in.ranks = 16;
    assert_int_equal(eng_fleet_plan(&in, &fleet, &err), ENG_OK);
    assert_int_equal(fleet.hosts, 40);
    assert_false(fleet.tables_bind);
    in.table_hosts = 64;
    assert_int_equal(eng_fleet_plan(&in, &fleet, &err), ENG_OK);
    assert_int_equal(fleet.hosts, 64);
    assert_int_equal(fleet.devices, 512);
    assert_int_equal(fleet.busy_devices, 320);
    assert_true(fleet.tables_bind);
    in.target = 1e18;
    assert_int_equal(eng_fleet_plan(&in, &fleet, &err), ENG_UNSUPPORTED);
    in.target = 0;
    assert_int_equal(eng_fleet_plan(&in, &fleet, &err), ENG_USAGE);
    in.target = 1;
    in.devices_per_host = 0;
    assert_int_equal(eng_fleet_plan(&in, &fleet, &err), ENG_USAGE);
    /* Units of a tier carry what its busy time is of each second. */
    EngStepPlan plan = {.n = 2};
    plan.gathers[0].stages[0] =
        (EngStage){.requests = 3072, .bytes = 1e6, .terms = {1e-3, 2e-3, 9e-3}};
    fleet.host_rate = 12800;
    EngLoad load = eng_fleet_load(&fleet, 128, &plan, 0);
    assert_near(load.requests_per_s, 3072 * 200, 1e-6, "requests");
    assert_near(load.units, 0.4, 1e-12, "units: outstanding requests are not a rate");
}

/* ---- start-up ---- */

static void test_startup(void **state)
{
    (void)state;
    EngErr err = {0};
    EngStartup s;
    EngStartupInput in = {.bytes = 400e9,
                          .copies = 2,
                          .read_rate = 2e9,
                          .populate_rate = 8e9,
                          .pin_rate = 10e9,
                          .pinned = 400e9};
    assert_int_equal(eng_startup_plan(&in, &s, &err), ENG_OK);
    assert_near(s.read, 100, 1e-9, "read once");
    assert_near(s.populate, 50, 1e-9, "touched twice");
    assert_near(s.total, 140, 1e-9, "all");
    in.pin_rate = 0;
    assert_int_equal(eng_startup_plan(&in, &s, &err), ENG_OK);
    assert_true(isnan(s.pin) && isnan(s.total));
    in.pinned = 0;
    assert_int_equal(eng_startup_plan(&in, &s, &err), ENG_OK);
    assert_near(s.total, 100, 1e-9, "nothing pinned");
    in.populate_rate = 0;
    assert_int_equal(eng_startup_plan(&in, &s, &err), ENG_OK);
    assert_true(isnan(s.total));
    in.copies = 0;
    assert_int_equal(eng_startup_plan(&in, &s, &err), ENG_USAGE);
}

/* ---- training ---- */

static void test_training(void **state)
{
    (void)state;
    EngErr err = {0};
    EngPreset preset;
    EngTraining small, large;
    assert_int_equal(eng_preset_find("v41-flash", &preset, &err), ENG_OK);
    EngTrainingInput in = {.preset = &preset,
                           .ranks = 512,
                           .group = 8,
                           .ranks_per_node = 8,
                           .local_tokens = 65536,
                           .unique = 0.6,
                           .state_bytes = 4,
                           .gradient_bytes = 2,
                           .near_rate = 400e9,
                           .far_rate = 40e9,
                           .vision = 0.01,
                           .backward = 0.1};
    assert_int_equal(eng_training_plan(&in, &small, &err), ENG_OK);
    assert_near(small.table_bytes / GIB, 188.83 / 8, 0.01, "an eighth of the tables");
    assert_near(small.far_share, 0, 0, "all in the node");
    assert_int_equal(small.replicas, 64);
    in.group = 64;
    assert_int_equal(eng_training_plan(&in, &large, &err), ENG_OK);
    assert_near(large.table_bytes * 8, small.table_bytes, 1, "memory falls with the group");
    assert_near(large.state_bytes, small.state_bytes, 1, "state is shared by all ranks either way");
    assert_near(large.far_share, 56.0 / 63, 1e-12, "of the rows of 63 others");
    assert_near(large.fetch_bytes * large.far_share, 65536 * 48 * 0.6 * 264 * 0.875, 1, "far");
    assert_true(large.fetch > 5 * small.fetch);
    assert_near(large.fetch, 65536 * 48 * 0.6 * 264 * 0.875 / 40e9, 1e-9, "network");
    /* Gradients of 65536 x 48 x 0.6 rows of 256 values of 2 B go to 7 of 8 replicas on other nodes,
     * after those of the group: 21.14 ms and as much again, of which 25 ms are hidden. */
    const double back = 65536 * 48 * 0.6 * 256 * 2;
    assert_near(large.sync_bytes, back * 7 / 8, 1, "between replicas");
    assert_near(large.sync, back * 7 / 8 / 40e9, 1e-9, "all far");
    assert_near(large.give_back, back * 0.875 / 40e9, 1e-9, "returned");
    in.backward = 0.025;
    assert_int_equal(eng_training_plan(&in, &large, &err), ENG_OK);
    assert_near(large.exposed, large.fetch - 0.01 + 2 * 0.0211392 - 0.025, 1e-6, "windows");
    in.vision = in.backward = 1;
    assert_int_equal(eng_training_plan(&in, &large, &err), ENG_OK);
    assert_near(large.exposed, 0, 0, "all hidden");
    /* A group of one fetches nothing, and gives all but one part of 512 to replicas, of which 7 of
     * 511 are on its node. */
    in.vision = in.backward = 0;
    in.group = 1;
    assert_int_equal(eng_training_plan(&in, &small, &err), ENG_OK);
    assert_near(small.fetch, 0, 0, "alone");
    assert_near(small.far_share, 0, 0, "nothing comes from others");
    assert_near(small.sync_bytes, back * 511 / 512, 1, "all replicas");
    assert_near(small.sync, back * 504 / 512 / 40e9, 1e-9, "504 of them far");
    assert_near(small.exposed, small.sync, 1e-12, "not free");
    in.ranks = 8;
    assert_int_equal(eng_training_plan(&in, &small, &err), ENG_OK);
    assert_near(small.sync, back * 7 / 8 / 400e9, 1e-9, "one node");
    in.ranks = 512;
    in.local_tokens = 1e9; /* no more rows than the shard has */
    assert_int_equal(eng_training_plan(&in, &small, &err), ENG_OK);
    assert_near(small.sync_bytes, 768022850 * 256.0 * 2 * 511 / 512, 1, "all rows of the shard");
    in.local_tokens = 65536;
    in.group = 7;
    assert_int_equal(eng_training_plan(&in, &small, &err), ENG_USAGE);
    in.group = 8;
    in.unique = 0;
    assert_int_equal(eng_training_plan(&in, &small, &err), ENG_USAGE);
    in.unique = 1;
    in.far_rate = 0;
    assert_int_equal(eng_training_plan(&in, &small, &err), ENG_USAGE);
}

/* Two modules in one stage load it twice; on layers of different stages they do not, whichever. */
static void test_stages(void **state)
{
    (void)state;
    EngErr err = {0};
    static const int apart[] = {1, 14}, close[] = {1, 2};
    double a, b;
    for (int stages = 4; stages <= 20; stages *= 2) {
        assert_int_equal(eng_stage_balance(40, 1, apart, 2, 10, stages, &a, &err), ENG_OK);
        assert_int_equal(eng_stage_balance(40, 1, close, 2, 10, stages, &b, &err), ENG_OK);
        assert_true(a < b || stages > 13);
    }
    assert_int_equal(eng_stage_balance(40, 1, apart, 2, 10, 40, &a, &err), ENG_OK);
    assert_int_equal(eng_stage_balance(40, 1, close, 2, 10, 40, &b, &err), ENG_OK);
    assert_near(a, b, 1e-12, "a layer a stage");
    assert_int_equal(eng_stage_balance(40, 1, apart, 2, 0, 4, &a, &err), ENG_OK);
    assert_near(a, 1, 1e-12, "nothing to balance");
    assert_int_equal(eng_stage_balance(40, 1, apart, 2, 10, 4, &a, &err), ENG_OK);
    assert_near(a, 20 / 15.0, 1e-12, "20 in the first two stages, 60 in all");
    assert_int_equal(eng_stage_balance(40, 1, apart, 2, 10, 41, &a, &err), ENG_USAGE);
    assert_int_equal(eng_stage_balance(10, 1, apart, 2, 10, 2, &a, &err), ENG_USAGE);
}

/* ---- admission: against a cache that is simulated as it would be built ---- */

typedef struct Slow {
    int64_t rows[64]; /* the most recent first */
    int n, capacity;
    bool seen[256];
    int64_t hits;
} Slow;

static void slow_add(Slow *s, int64_t row)
{
    int at = 0;
    while (at < s->n && s->rows[at] != row) at++;
    if (at < s->n)
        s->hits++;
    else if (!s->seen[row]) {
        s->seen[row] = true;
        return;
    } else if (s->n < s->capacity)
        at = s->n++;
    else
        at = s->n - 1;
    memmove(s->rows + 1, s->rows, (size_t)at * sizeof *s->rows);
    s->rows[0] = row;
}

static void test_admission(void **state)
{
    (void)state;
    EngErr err = {0};
    EngRng rng;
    EngAdmission admission;
    static const int64_t capacities[] = {1, 2, 7, 20, 64};
    static Slow slow[LENGTH(capacities)];
    int64_t hits[LENGTH(capacities)];
    eng_rng_seed(&rng, 5);
    assert_int_equal(eng_admission_init(&admission, &err), ENG_OK);
    for (int c = 0; c < LENGTH(capacities); c++) slow[c].capacity = (int)capacities[c];
    for (int i = 0; i < 20000; i++) {
        double u = eng_rng_unit(&rng);
        int64_t row = (int64_t)(255 * u * u * u);
        assert_int_equal(eng_admission_add(&admission, row, &err), ENG_OK);
        for (int c = 0; c < LENGTH(capacities); c++) slow_add(&slow[c], row);
    }
    eng_admission_hits(&admission, capacities, LENGTH(capacities), hits);
    for (int c = 0; c < LENGTH(capacities); c++) assert_int_equal(hits[c], slow[c].hits);
    assert_int_equal(admission.accesses, 20000);
    eng_admission_fini(&admission);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prices),  cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_startup), cmocka_unit_test(test_training),
        cmocka_unit_test(test_stages),  cmocka_unit_test(test_admission),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
