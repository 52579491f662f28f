/* Ledgers, sharding and cost against figures known from outside. */
#include "tests/unit/sim/planner_test.h"

#include "sim/planner/ledger.h"
#include "sim/planner/fleet.h"
#include "sim/planner/plan.h"
#include "sim/planner/sharding.h"

#define GIB 0x1p30

static EngPreset preset_of(const char *name)
{
    EngErr err = {0};
    EngPreset preset;
    if (eng_preset_find(name, &preset, &err)) fail_msg("%s", err.text);
    return preset;
}

static EngLedgerInput input_of(const EngPreset *preset)
{
    return (EngLedgerInput){.preset = preset,
                            .format = ENG_ROW_FP8,
                            .tables = ENG_PLACE_DEVICE,
                            .shards = 1,
                            .numa_copies = 1,
                            .replicas = 1,
                            .batch_tokens = 128,
                            .staging_buffers = 2};
}

static EngLedger build(const EngLedgerInput *input)
{
    EngErr err = {0};
    EngLedger ledger;
    if (eng_ledger_build(input, &ledger, &err)) fail_msg("%s", err.text);
    return ledger;
}

/* Bytes of the lines whose name begins so; layer -2: any. */
static double bytes_of(const EngLedger *ledger, const char *name, int layer)
{
    double sum = 0;
    for (int i = 0; i < ledger->n; i++)
        if (!strncmp(ledger->lines[i].name, name, strlen(name)) &&
            (layer == -2 || ledger->lines[i].layer == layer))
            sum += (double)ledger->lines[i].bytes;
    return sum;
}

static void test_tables(void **state)
{
    (void)state;
    EngPreset preset = preset_of("v41-flash");
    EngLedgerInput input = input_of(&preset);
    EngLedger whole = build(&input);
    assert_int_equal(whole.table_bytes, 768022850ull * 264);
    assert_near((double)whole.table_bytes / 1e9, 202.758, 5e-4, "tables, GB");
    assert_near((double)whole.table_bytes / GIB, 188.83, 5e-3, "tables, GiB");
    assert_near(bytes_of(&whole, "table values", -2), 768022850.0 * 256, 0, "values");
    for (int l = 0; l < 2; l++) {
        int layer = preset.address.layer_ids[l];
        assert_near(bytes_of(&whole, "table scales", layer),
                    bytes_of(&whole, "table values", layer) / 32, 0, "scales are values / 32");
    }
    /* One rank of four: 47.2 GiB of both tables; 23.6 are those of one. */
    input.shards = 4;
    EngLedger rank = build(&input);
    assert_near(bytes_of(&rank, "table", -2) / GIB, 47.208, 5e-4, "rank at TP4");
    assert_near(bytes_of(&rank, "table", 1) / GIB, 23.604, 2e-3, "one table of it");
    assert_true(bytes_of(&rank, "table", 14) > bytes_of(&rank, "table", 1));
    assert_int_equal(rank.table_bytes, whole.table_bytes);
    /* All scales on each of four ranks: 6.1 GB instead of a quarter. */
    input.scales_everywhere = true;
    EngLedger scales = build(&input);
    assert_near(bytes_of(&scales, "table scales", -2) / 1e9, 6.144, 5e-4, "scales everywhere");
    assert_near(bytes_of(&scales, "table values", -2), bytes_of(&rank, "table values", -2), 0,
                "values stay shared");
}

static void check_over(const EngLedgerInput *input, const char *want)
{
    EngLedger ledger = build(input);
    EngStr over = {0};
    eng_ledger_over(&ledger, &over);
    assert_string_equal(over.text, want);
    eng_str_free(&over);
}

static void test_host_copies(void **state)
{
    (void)state;
    EngPreset preset = preset_of("v41-flash");
    EngLedgerInput input = input_of(&preset);
    input.tables = ENG_PLACE_HOST;
    input.pinned = true;
    input.numa_copies = 2;
    input.capacity[ENG_PLACE_HOST] = 512000000000ull;
    EngLedger ledger = build(&input);
    assert_near(bytes_of(&ledger, "table", -2) / GIB, 2 * 188.83, 0.01, "a copy for each node");
    assert_true(eng_ledger_fits(&ledger));
    input.pin_limit = 307000000000ull; /* of a driver that was met */
    ledger = build(&input);
    assert_true(eng_ledger_left(&ledger, ENG_PLACE_HOST) > 0);
    assert_false(eng_ledger_fits(&ledger));
    EngStr out = {0};
    eng_ledger_print(&ledger, &out);
    assert_non_null(strstr(out.text, "pinned"));
    eng_str_free(&out);
    check_over(&input, "pinned");
    input.capacity[ENG_PLACE_HOST] = input.capacity[ENG_PLACE_DEVICE] = 1;
    check_over(&input, "device, host, pinned");
    input.capacity[ENG_PLACE_DEVICE] = 0;
    /* 196.6 GB of values fit 200 GB, with their scales they do not. */
    input.numa_copies = 1;
    input.capacity[ENG_PLACE_HOST] = 200000000000ull;
    ledger = build(&input);
    assert_true(bytes_of(&ledger, "table values", -2) < 200e9);
    assert_false(eng_ledger_fits(&ledger));
    /* Staging: 2 buffers of raw rows on the host; decoded rows and numbers on the device. */
    assert_near(bytes_of(&ledger, "staging", -2), 2.0 * 128 * 24 * 264, 0, "staging");
    assert_near(bytes_of(&ledger, "decoded", -2), 128.0 * 12288, 0, "decoded");
    assert_near(bytes_of(&ledger, "row numbers", -2), 8.0 * 128 * 24, 0, "row numbers");
    assert_near(2 * 24 * 264, 12672, 0, "bytes of a token");
}

/* Weights: 256 GiB over the ranks and 17.2 GiB on each is what a public plan fits. */
static void test_weights_and_cache(void **state)
{
    (void)state;
    static const struct {
        int ranks;
        double gib;
    } fitted[] = {{2, 145.2}, {4, 81.2}, {8, 49.2}};
    EngPreset preset = preset_of("v41-flash");
    for (int i = 0; i < LENGTH(fitted); i++) {
        EngTensorShape weights[] = {
            {.name = "experts",
             .bits = 4,
             .n_dims = 2,
             .dims = {16384, 32768},
             .count = 1024,
             .split = fitted[i].ranks},
            {.name = "others", .bits = 16, .n_dims = 1, .dims = {9234179687}},
        };
        EngTensorShape kv = {.name = "latents", .bits = 8, .n_dims = 1, .dims = {576}, .count = 61};
        EngLedgerLine reserves[] = {
            {.name = "indexer buffer", .layer = -1, .bytes = 32ull << 30},
            {.name = "graphs", .layer = -1, .bytes = 22ull << 30},
        };
        EngLedgerInput input = input_of(&preset);
        input.tables = ENG_PLACE_HOST;
        input.weights = weights;
        input.n_weights = 2;
        input.kv = &kv;
        input.n_kv = 1;
        input.kv_tokens = 1000;
        input.capacity[ENG_PLACE_DEVICE] = 192000000000ull;
        EngLedger ledger = build(&input);
        assert_near((bytes_of(&ledger, "experts", -2) + bytes_of(&ledger, "others", -2)) / GIB,
                    fitted[i].gib, 0.01, "weights of a rank");
        assert_int_equal(ledger.kv_per_token, 576 * 61);
        assert_near(bytes_of(&ledger, "cache of latents", -2), 1000.0 * 576 * 61, 0, "cache");
        assert_true(eng_ledger_fits(&ledger));
        /* Room for context that the plan names is room there is, and no more. */
        input.kv_tokens += eng_ledger_left(&ledger, ENG_PLACE_DEVICE) / (576 * 61);
        ledger = build(&input);
        assert_true(eng_ledger_fits(&ledger));
        input.kv_tokens++;
        ledger = build(&input);
        assert_false(eng_ledger_fits(&ledger));
        input.kv_tokens = 0;
        input.reserves = reserves;
        input.n_reserves = 2;
        ledger = build(&input);
        assert_int_equal(eng_ledger_fits(&ledger), fitted[i].ranks > 2);
        EngStr out = {0};
        eng_ledger_print(&ledger, &out);
        assert_true((strstr(out.text, "does not fit") != NULL) == (fitted[i].ranks == 2));
        assert_non_null(strstr(out.text, "indexer buffer"));
        if (fitted[i].ranks == 2) assert_non_null(strstr(out.text, "largest line is experts"));
        eng_str_free(&out);
    }
}

static void check_refused(const EngLedgerInput *input, EngStatus want, const char *says)
{
    EngErr err = {0};
    EngLedger ledger;
    assert_int_equal(eng_ledger_build(input, &ledger, &err), want);
    if (!strstr(err.text, says)) fail_msg("\"%s\" does not say \"%s\"", err.text, says);
}

static void test_ledger_refuses(void **state)
{
    (void)state;
    EngPreset preset = preset_of("tiny");
    EngTensorShape shape = {.name = "w", .bits = 8, .n_dims = 2, .dims = {4, 0}};
    EngLedgerInput good = input_of(&preset), bad = good;
    (void)build(&good);
    bad.shards = 0;
    check_refused(&bad, ENG_USAGE, "shards");
    bad.shards = INT32_MAX;
    check_refused(&bad, ENG_USAGE, "shards");
    bad = good;
    bad.numa_copies = 2;
    check_refused(&bad, ENG_USAGE, "NUMA");
    bad = good;
    bad.batch_tokens = INT64_MAX;
    check_refused(&bad, ENG_UNSUPPORTED, "64 bits");
    bad.batch_tokens = -5;
    check_refused(&bad, ENG_USAGE, "batch_tokens");
    bad = good;
    bad.kv_tokens = -1;
    check_refused(&bad, ENG_USAGE, "kv_tokens");
    bad = good;
    bad.weights = &shape;
    bad.n_weights = 1;
    check_refused(&bad, ENG_USAGE, "tensor w");
    shape.dims[1] = INT64_MAX;
    check_refused(&bad, ENG_UNSUPPORTED, "w");
}

static EngTier link_of(double latency, double bandwidth)
{
    EngTier link = {.name = "link"};
    link.fields[ENG_TIER_LATENCY] = (EngQuantity){.value = latency, .origin = ENG_MEASURED};
    link.fields[ENG_TIER_BANDWIDTH] = (EngQuantity){.value = bandwidth, .origin = ENG_MEASURED};
    return link;
}

static void check_peers(const EngShardShape *shape, const EngTier *link, double want,
                        const char *what)
{
    EngErr err = {0};
    double seconds;
    assert_int_equal(eng_shard_time(ENG_SHARD_PEER_READ, shape, link, &seconds, &err), ENG_OK);
    assert_near(seconds, want, 1e-12, what);
}

static void test_sharding(void **state)
{
    (void)state;
    EngErr err = {0};
    double bytes[ENG_SHARD_COUNT];
    EngShardShape s = {.ranks = 8,
                       .tokens = 1000,
                       .columns = 24,
                       .row_dims = 256,
                       .row = eng_row_layout(ENG_ROW_FP8, 256),
                       .projected = 25600,
                       .unique = 0.5};
    for (int k = 0; k < ENG_SHARD_COUNT; k++)
        assert_int_equal(eng_shard_bytes((EngSharding)k, &s, &bytes[k], &err), ENG_OK);
    assert_near(bytes[ENG_SHARD_ALL_REDUCE], 2 * 7.0 / 8 * 1000 * 12288, 1e-3, "all-reduce");
    assert_near(bytes[ENG_SHARD_ALL_GATHER], 7.0 / 8 * 1000 * 6336, 1e-3, "all-gather");
    assert_near(bytes[ENG_SHARD_ALL_TO_ALL], 7.0 / 8 * 125 * 6336 * 0.5, 1e-3, "all-to-all");
    assert_near(bytes[ENG_SHARD_HEADS], 2 * 7.0 / 8 * 1000 * 51200, 1e-3, "heads");
    assert_near(bytes[ENG_SHARD_PEER_READ], 7.0 / 8 * 125 * 6336 * 0.5, 1e-3, "own rows only");
    assert_near(bytes[ENG_SHARD_ALL_REDUCE] / bytes[ENG_SHARD_ALL_GATHER], 3.9, 0.05, "published");
    /* 2 us a message, 100 GB/s: 7 steps to gather, 14 to reduce or to swap numbers and rows; peers
     * are read in one latency. */
    EngTier link = link_of(2e-6, 100e9);
    double seconds, numbers = 7.0 / 8 * 125 * 24 * 8 * 0.5;
    const double expected[ENG_SHARD_COUNT] = {
        [ENG_SHARD_ALL_REDUCE] = 28e-6 + bytes[ENG_SHARD_ALL_REDUCE] / 100e9,
        [ENG_SHARD_ALL_GATHER] = 14e-6 + bytes[ENG_SHARD_ALL_GATHER] / 100e9,
        [ENG_SHARD_ALL_TO_ALL] = 28e-6 + (bytes[ENG_SHARD_ALL_TO_ALL] + numbers) / 100e9,
        [ENG_SHARD_HEADS] = 28e-6 + bytes[ENG_SHARD_HEADS] / 100e9,
        [ENG_SHARD_PEER_READ] = 2e-6 + bytes[ENG_SHARD_PEER_READ] / 100e9};
    for (int k = 0; k < ENG_SHARD_COUNT; k++) {
        assert_int_equal(eng_shard_time((EngSharding)k, &s, &link, &seconds, &err), ENG_OK);
        assert_near(seconds, expected[k], 1e-12, "exchange");
    }
    /* 1312.5 rows at 45 M requests/s, two of each row (values, scales), or one where ranks have all
     * scales; or in blocks of 128 B, three and two of a row. */
    link.fields[ENG_TIER_REQUEST_RATE] = (EngQuantity){.value = 45e6, .origin = ENG_MEASURED};
    check_peers(&s, &link, 2e-6 + 2 * 1312.5 / 45e6, "messages");
    s.ranks = 16; /* the fullest of these is asked for more than the mean of 1500 rows */
    double fullest = (1500 + sqrt(2 * 1500 * log(16))) * 15.0 / 16 * 0.5;
    check_peers(&s, &link, 2e-6 + 2 * fullest / 45e6, "messages to the fullest");
    s.ranks = 8;
    link.fields[ENG_TIER_GRANULE] = (EngQuantity){.value = 128, .origin = ENG_MEASURED};
    check_peers(&s, &link, 2e-6 + 3 * 1312.5 / 45e6, "blocks");
    s.row.scale_bytes = 0;
    check_peers(&s, &link, 2e-6 + 2 * 1312.5 / 45e6, "blocks of values");
    link = link_of(2e-6, 100e9);
    assert_int_equal(eng_shard_bytes(ENG_SHARD_PEER_READ, &s, bytes, &err), ENG_OK);
    assert_near(bytes[0], 1312.5 * 256, 1e-6, "scales everywhere");
    s.row = eng_row_layout(ENG_ROW_FP8, 256);
    EngTier unknown = {.name = "link"};
    for (int k = 0; k < ENG_SHARD_COUNT; k++) {
        err.text[0] = 0;
        assert_int_equal(eng_shard_time((EngSharding)k, &s, &unknown, &seconds, &err),
                         ENG_UNSUPPORTED);
        assert_non_null(strstr(err.text, "link.latency"));
    }
    s.ranks = 1;
    for (int k = 0; k < ENG_SHARD_COUNT; k++) {
        assert_int_equal(eng_shard_bytes((EngSharding)k, &s, &bytes[k], &err), ENG_OK);
        assert_near(bytes[k], 0, 0, "alone");
        assert_int_equal(eng_shard_time((EngSharding)k, &s, &link, &seconds, &err), ENG_OK);
        assert_near(seconds, 0, 0, "nothing to exchange");
    }
    s.unique = 0;
    assert_int_equal(eng_shard_bytes(ENG_SHARD_ALL_TO_ALL, &s, bytes, &err), ENG_USAGE);
    assert_int_equal(eng_shard_bytes(ENG_SHARD_PEER_READ, &s, bytes, &err), ENG_USAGE);
    s.ranks = 0;
    assert_int_equal(eng_shard_bytes(ENG_SHARD_ALL_REDUCE, &s, bytes, &err), ENG_USAGE);
    static const int even[] = {1, 2, 3, 4, 6, 8, 12, 24};
    for (int i = 0; i < LENGTH(even); i++)
        assert_near(eng_shard_largest_load(24, even[i], 128), 128 * 24.0 / even[i], 0, "even");
    assert_near(eng_shard_largest_load(24, 16, 128), 192 + sqrt(2 * 192 * log(16)), 1e-9, "uneven");
}

/* Prices published for a node of DeepSeek at $16 an hour, and rows that n-grams share. */
static void test_cost_and_collisions(void **state)
{
    (void)state;
    assert_near(eng_cost_per_million(16, 14800), 0.30, 5e-3, "output");
    assert_near(eng_cost_per_million(16, 73700), 0.060, 5e-4, "input");
    assert_near(eng_rows_touched(16e6, 1e6) / 1e6, 0.969, 6e-4, "1 M");
    assert_near(eng_rows_touched(16e6, 4e6) / 4e6, 0.885, 6e-4, "4 M");
    assert_near(eng_rows_touched(16e6, 16e6) / 16e6, 0.632, 6e-4, "16 M");
    assert_near(eng_rows_touched(16e6, 64e6) / 16e6, 0.98, 6e-3, "64 M");
    assert_near(eng_ngrams_behind(16e6, 8e6) / 16e6, log(2), 1e-9, "half of the rows");
    assert_near(eng_ngrams_behind(16e6, 0), 0, 0, "none");
    assert_true(isinf(eng_ngrams_behind(16e6, 16e6)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_host_copies),
        cmocka_unit_test(test_weights_and_cache),
        cmocka_unit_test(test_ledger_refuses),
        cmocka_unit_test(test_sharding),
        cmocka_unit_test(test_cost_and_collisions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
