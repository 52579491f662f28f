/* Hash: known answers, every variant against the oracle on random batches, and what is refused. */
#include "tests/unit/kernels/hash_cases.h"

#include <jansson.h>

#include "base/digest.h"

/* ---- known answers ---- */

static json_t *g_golden;

static int setup(void **state)
{
    (void)state;
    find_variants();
    g_golden = json_load_file(ENG_SOURCE_DIR "/tests/data/golden_hash.json", 0, NULL);
    return g_golden ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    json_decref(g_golden);
    return 0;
}

static int64_t read_ids(const json_t *list, int32_t *ids, int64_t most)
{
    int64_t n = (int64_t)json_array_size(list);
    assert_in_range(n, 1, most);
    for (int64_t i = 0; i < n; i++)
        ids[i] = (int32_t)json_integer_value(json_array_get(list, (size_t)i));
    return n;
}

static void digest_rows(const EngAddress *address, const int64_t *rows, int64_t n_tokens,
                        char hex[ENG_DIGEST_HEX])
{
    EngErr err;
    size_t bytes = (size_t)(n_tokens * per_token(address)) * sizeof *rows;
    assert_int_equal(eng_digest(rows, bytes, hex, &err), ENG_OK);
}

static void check_listed_rows(const EngAddress *address, const json_t *want, const int64_t *rows)
{
    size_t t, layer, c;
    json_t *position, *columns, *row;
    json_array_foreach(want, t, position) json_array_foreach(position, layer, columns)
    {
        assert_int_equal(json_array_size(columns), address->n_columns);
        json_array_foreach(columns, c, row) assert_int_equal(*rows++, json_integer_value(row));
    }
}

static void check_case(const EngAddress *address, const EngKernel *kernel, const json_t *golden)
{
    int32_t ids[64];
    char hex[ENG_DIGEST_HEX];
    int64_t n = read_ids(json_object_get(golden, "compressed"), ids, 64);
    EngHashArgs args = {.tokens = ids, .n_tokens = n, .n_live = n};
    args.rows = new_rows(address, n);
    run_hash(kernel, address, 1, &args);
    const char *want = json_string_value(json_object_get(golden, "sha256_i64le"));
    if (want) {
        digest_rows(address, args.rows, n, hex);
        assert_string_equal(hex, want);
    }
    check_listed_rows(address, json_object_get(golden, "rows"), args.rows);
    eng_free(args.rows);
}

static void test_golden(void **state)
{
    (void)state;
    EngAddress a = address_of("engram-demo"), b = address_of("v41-flash"),
               tiny = address_of("tiny");
    size_t i;
    json_t *golden, *cases = json_object_get(g_golden, "cases");
    assert_in_range(json_array_size(cases), 10, 100);
    for (int v = -1; v < g_n_variants; v++) {
        const EngKernel *kernel = v < 0 ? NULL : g_variants[v];
        json_array_foreach(cases, i, golden)
        {
            const char *variant = json_string_value(json_object_get(golden, "variant"));
            check_case(*variant == 'A' ? &a : &b, kernel, golden);
        }
        check_case(&tiny, kernel, json_object_get(g_golden, "tiny"));
    }
}

/* One layer alone has the published digest of that layer: its seed depends on its id, its primes on
 * the layers before it. */
static void test_golden_layers(void **state)
{
    (void)state;
    EngAddress both = address_of("v41-flash");
    size_t i;
    json_t *golden;
    json_array_foreach(json_object_get(g_golden, "layer_digests"), i, golden)
    {
        int32_t ids[2];
        int64_t n = read_ids(json_object_get(golden, "tokens"), ids, 2);
        int64_t *rows = prefill(&both, ids, n), layer_rows[48];
        char hex[ENG_DIGEST_HEX];
        EngErr err;
        int layer = json_integer_value(json_object_get(golden, "layer")) == 14;
        for (int t = 0; t < 2; t++)
            memcpy(layer_rows + t * 24, rows + t * 48 + layer * 24, 24 * sizeof *rows);
        assert_int_equal(eng_digest(layer_rows, sizeof layer_rows, hex, &err), ENG_OK);
        assert_string_equal(hex, json_string_value(json_object_get(golden, "sha256_i64le")));
        eng_free(rows);
    }
}

/* Multiplier i belongs to lag i, the newest id first; a kernel and an oracle that share the
 * opposite order agree with each other and not with this. */
static void test_literal(void **state)
{
    (void)state;
    EngAddress address = {.n_layers = 1,
                          .min_order = 2,
                          .max_order = 3,
                          .heads = 1,
                          .n_columns = 2,
                          .vocab = 100,
                          .pad = 99,
                          .multipliers = {{3, 5, 7}},
                          .primes = {{101, 103}},
                          .offsets = {{0, 101}},
                          .rows = {204}};
    const int32_t tokens[] = {7, 9, 11};
    const int64_t want[] = {1, 124, 56, 136, 12, 162};
    for (int v = -1; v < g_n_variants; v++) {
        int64_t rows[6];
        EngHashArgs args = {.tokens = tokens, .n_tokens = 3, .n_live = 3, .rows = rows};
        run_hash(v < 0 ? NULL : g_variants[v], &address, 1, &args);
        assert_memory_equal(rows, want, sizeof want);
    }
}

/* A changed multiplier, two primes swapped, one id mapped elsewhere: the digests see each. */
static void test_mutations(void **state)
{
    (void)state;
    static const char want[] = "f5a64799492bea90bc6d87f0cb8a67bb983441e1cd9c12ec2e7b8df6cbcfee1d";
    const EngAddress good = address_of("v41-flash");
    for (int mutation = 0; mutation < 5; mutation++) {
        EngAddress address = good;
        int32_t ids[] = {0, 3};
        char hex[ENG_DIGEST_HEX];
        if (mutation == 1) address.multipliers[0][1] += 2;
        if (mutation == 2) address.multipliers[1][3] -= 2;
        if (mutation == 3) {
            address.primes[1][20] = good.primes[1][21];
            address.primes[1][21] = good.primes[1][20];
        }
        if (mutation == 4) ids[1] = 4;
        int64_t *rows = prefill(&address, ids, 2);
        digest_rows(&address, rows, 2, hex);
        if (mutation == 0)
            assert_string_equal(hex, want);
        else
            assert_string_not_equal(hex, want);
        eng_free(rows);
    }
}

/* ---- variants against the oracle ---- */

typedef struct Batch {
    EngHashArgs args;
    int32_t *tokens, *history;
    int64_t *starts;
} Batch;

/* Sequences of random lengths, some empty; starts carries stale entries behind the last one. */
static void make_batch(EngRng *rng, const EngAddress *address, int64_t n_tokens, Batch *batch)
{
    int64_t n_seqs = 1 + (int64_t)eng_rng_below(rng, 6), reach = address->max_order - 1;
    *batch = (Batch){0};
    batch->tokens = eng_alloc_array((size_t)n_tokens, sizeof *batch->tokens);
    random_ids(rng, address, true, batch->tokens, n_tokens);
    batch->starts = eng_alloc_array((size_t)n_seqs + 4, sizeof *batch->starts);
    for (int64_t s = 1; s <= n_seqs; s++) {
        int64_t left = n_tokens - batch->starts[s - 1];
        batch->starts[s] = batch->starts[s - 1] + (int64_t)eng_rng_below(rng, (uint64_t)left + 1);
    }
    if (eng_rng_below(rng, 2)) batch->starts[n_seqs] = n_tokens;
    for (int i = 1; i < 4; i++) batch->starts[n_seqs + i] = (int64_t)eng_rng_below(rng, 9) - 4;
    if (eng_rng_below(rng, 3)) {
        batch->history = eng_alloc_array((size_t)(n_seqs * reach), sizeof *batch->history);
        random_ids(rng, address, true, batch->history, n_seqs * reach);
    }
    batch->args = (EngHashArgs){.tokens = batch->tokens,
                                .n_tokens = n_tokens,
                                .n_live = n_tokens,
                                .starts = batch->starts,
                                .n_seqs = n_seqs,
                                .history = batch->history};
    if (eng_rng_below(rng, 3) == 0)
        batch->args.n_live = (int64_t)eng_rng_below(rng, (uint64_t)n_tokens + 1);
    if (eng_rng_below(rng, 8) == 0) {
        batch->args.starts = NULL;
        if (batch->history) batch->args.n_seqs = 1;
    }
}

static void free_batch(Batch *batch)
{
    eng_free(batch->tokens);
    eng_free(batch->history);
    eng_free(batch->starts);
}

static void check_canaries(const EngAddress *address, const Batch *batch, const int64_t *rows)
{
    int64_t end = batch->args.n_live, n = batch->args.n_tokens;
    if (batch->args.starts && batch->starts[batch->args.n_seqs] < end)
        end = batch->starts[batch->args.n_seqs];
    for (int64_t i = 0; i < n * per_token(address); i++) {
        int64_t column = i % per_token(address), layer = column / address->n_columns;
        if (i < end * per_token(address))
            assert_in_range(rows[i], address->offsets[layer][column % address->n_columns],
                            address->rows[layer] - 1);
        else
            assert_int_equal(rows[i], CANARY);
    }
}

static void test_variants(void **state)
{
    (void)state;
    static const int64_t lengths[] = {0, 1, 2, 3, 5, 7, 13, 31, 61, 127};
    EngRng rng;
    eng_rng_seed(&rng, 2);
    for (int round = 0; round < 300; round++) {
        EngAddress address = random_address(&rng);
        Batch batch;
        int64_t n = lengths[eng_rng_below(&rng, sizeof lengths / sizeof *lengths)];
        make_batch(&rng, &address, n, &batch);
        int64_t *want = new_rows(&address, n);
        batch.args.rows = want;
        eng_ref_hash(&address, &batch.args);
        check_canaries(&address, &batch, want);
        for (int v = 0; v < g_n_variants; v++)
            for (int threads = 1; threads <= 3; threads++) {
                batch.args.rows = new_rows(&address, n);
                run_hash(g_variants[v], &address, threads, &batch.args);
                assert_same_rows(&address, batch.args.rows, want, n);
                eng_free(batch.args.rows);
            }
        eng_free(want);
        free_batch(&batch);
    }
}

/* Primes from 2 to beyond 2^56 and the largest mixes there can be. */
static void test_remainders(void **state)
{
    (void)state;
    EngRng rng;
    eng_rng_seed(&rng, 3);
    for (int bits = 1; bits <= 56; bits++) {
        EngAddressSpec spec = {1, {0}, 1, 3, 16, 2, 1, (int64_t)1 << bits, 0};
        EngAddress address;
        EngErr err;
        int32_t tokens[64];
        assert_int_equal(eng_address_build(&spec, &address, &err), ENG_OK);
        /* Any odd multiplier below 2^63 is fair with ids 0 and 1. */
        for (int lag = 0; lag < 3; lag++)
            address.multipliers[0][lag] = (int64_t)(eng_rng_u64(&rng) >> 1 | 1);
        address.multipliers[0][0] = INT64_MAX;
        for (int i = 0; i < 64; i++) tokens[i] = (int32_t)eng_rng_below(&rng, 2);
        int64_t *want = prefill(&address, tokens, 64);
        for (int v = 0; v < g_n_variants; v++) {
            EngHashArgs args = {.tokens = tokens, .n_tokens = 64, .n_live = 64};
            args.rows = new_rows(&address, 64);
            run_hash(g_variants[v], &address, 1, &args);
            assert_same_rows(&address, args.rows, want, 64);
            eng_free(args.rows);
        }
        eng_free(want);
    }
}

/* The roof writes the same bytes: all live ones, no other. */
static void test_roof(void **state)
{
    (void)state;
    EngAddress address = address_of("tiny");
    int32_t tokens[31] = {0};
    for (int threads = 1; threads <= 3; threads++) {
        EngHashArgs args = {.tokens = tokens, .n_tokens = 31, .n_live = 23};
        args.rows = new_rows(&address, 31);
        run_hash(&eng_cpu_hash_roof_store, &address, threads, &args);
        for (int64_t i = 0; i < 31 * per_token(&address); i++)
            assert_int_equal(args.rows[i] == CANARY, i >= 23 * per_token(&address));
        eng_free(args.rows);
    }
    assert_true(eng_cpu_hash_roof_store.roof && !eng_cpu_hash_roof_store.checked);
}

/* ---- refused batches ---- */

static void refuse(EngHashArgs hash, const EngAddress *address, int64_t max_tokens,
                   const char *names)
{
    for (int v = 0; v < g_n_variants; v++) {
        EngErr err = {0};
        void *state = NULL;
        EngProblem problem = {.op = ENG_OP_HASH, .threads = 1};
        problem.u.hash = (EngHashProblem){address, max_tokens};
        EngArgs args = {.u.hash = hash};
        if (g_variants[v]->create)
            assert_int_equal(g_variants[v]->create(&problem, &state, &err), ENG_OK);
        assert_int_equal(g_variants[v]->run(state, &problem, &args, &err), ENG_USAGE);
        assert_non_null(strstr(err.text, names));
        if (g_variants[v]->destroy) g_variants[v]->destroy(state);
        for (int64_t i = 0; i < 8 * per_token(address); i++) assert_int_equal(hash.rows[i], CANARY);
    }
}

static void test_refused(void **state)
{
    (void)state;
    EngAddress address = address_of("tiny");
    const int32_t tokens[8] = {0};
    const int64_t falls[] = {0, 5, 3, 8}, late[] = {1, 8}, beyond[] = {0, 9};
    int64_t *rows = new_rows(&address, 8);
    EngHashArgs good = {.tokens = tokens, .n_tokens = 8, .n_live = 8, .rows = rows}, bad;
    refuse(good, &address, 7, "8 tokens, at most 7");
    bad = good;
    bad.n_live = 9;
    refuse(bad, &address, 8, "9 live");
    bad = good;
    bad.starts = falls;
    bad.n_seqs = 3;
    refuse(bad, &address, 8, "starts[2] is 3");
    bad.starts = late;
    bad.n_seqs = 1;
    refuse(bad, &address, 8, "starts[0] is 1");
    bad.starts = beyond;
    refuse(bad, &address, 8, "starts[1] is 9");
    eng_free(rows);

    EngErr err;
    EngProblem problem = {.op = ENG_OP_HASH, .threads = 0, .u.hash = {&address, 8}};
    assert_int_equal(eng_cpu_hash_portable.supports(&problem, &err), ENG_UNSUPPORTED);
}

static void test_cost(void **state)
{
    (void)state;
    EngAddress address = address_of("v41-flash");
    EngProblem problem = {.op = ENG_OP_HASH, .threads = 1, .u.hash = {&address, 1000}};
    for (int v = 0; v < g_n_variants; v++) {
        EngCost cost;
        g_variants[v]->cost(&problem, &cost);
        assert_true(cost.read_bytes == 4000);
        assert_true(cost.write_bytes == 1000. * 48 * 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),   cmocka_unit_test(test_golden_layers),
        cmocka_unit_test(test_literal),  cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_variants), cmocka_unit_test(test_remainders),
        cmocka_unit_test(test_roof),     cmocka_unit_test(test_refused),
        cmocka_unit_test(test_cost)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
