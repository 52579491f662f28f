/* Hash: known answers, every variant against the oracle on random batches, and the equivalences
 * that serving relies on: prefill, decode, verify windows, rollback, fork, packing, padding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "base/digest.h"
#include "base/mem.h"
#include "base/rng.h"
#include "kernels/address/history.h"
#include "kernels/address/preset.h"
#include "kernels/cpu/hash.h"
#include "kernels/ref/hash.h"

#define CANARY INT64_C(-0x5a5a5a5a5a5a5a5a)

/* Those of this machine's instruction sets, of all; filled by setup. */
static const EngKernel *const g_all[] = {&eng_cpu_hash_naive, &eng_cpu_hash_portable,
                                         &eng_cpu_hash_avx2, &eng_cpu_hash_avx512,
                                         &eng_cpu_hash_avx512_ifma};
static const EngKernel *g_variants[sizeof g_all / sizeof *g_all];
static int g_n_variants;

/* ---- helpers ---- */

static int64_t per_token(const EngAddress *address)
{
    return (int64_t)address->n_layers * address->n_columns;
}

static int64_t *new_rows(const EngAddress *address, int64_t n_tokens)
{
    int64_t n = n_tokens * per_token(address);
    int64_t *rows = eng_alloc_array((size_t)n, sizeof *rows);
    assert_non_null(rows);
    for (int64_t i = 0; i < n; i++) rows[i] = CANARY;
    return rows;
}

/* NULL stands for the oracle. */
static void run_hash(const EngKernel *kernel, const EngAddress *address, int threads,
                     const EngHashArgs *hash)
{
    EngErr err = {0};
    void *state = NULL;
    if (!kernel) {
        eng_ref_hash(address, hash);
        return;
    }
    EngProblem problem = {.op = ENG_OP_HASH, .threads = threads};
    problem.u.hash = (EngHashProblem){address, hash->n_tokens};
    EngArgs args = {.u.hash = *hash};
    assert_int_equal(kernel->supports(&problem, &err), ENG_OK);
    if (kernel->create) assert_int_equal(kernel->create(&problem, &state, &err), ENG_OK);
    assert_int_equal(kernel->run(state, &problem, &args, &err), ENG_OK);
    if (kernel->destroy) kernel->destroy(state);
}

/* Rows of one fresh sequence by the oracle. */
static int64_t *prefill(const EngAddress *address, const int32_t *tokens, int64_t n)
{
    EngHashArgs args = {.tokens = tokens, .n_tokens = n, .n_live = n};
    args.rows = new_rows(address, n);
    eng_ref_hash(address, &args);
    return args.rows;
}

static void assert_same_rows(const EngAddress *address, const int64_t *a, const int64_t *b,
                             int64_t n_tokens)
{
    assert_memory_equal(a, b, (size_t)(n_tokens * per_token(address)) * sizeof *a);
}

static bool same_row(const EngAddress *address, const int64_t *a, const int64_t *b)
{
    return !memcmp(a, b, (size_t)per_token(address) * sizeof *a);
}

static EngAddress address_of(const char *preset_name)
{
    EngPreset preset;
    EngAddress address;
    EngErr err = {0};
    assert_int_equal(eng_preset_find(preset_name, &preset, &err), ENG_OK);
    assert_int_equal(eng_address_build(&preset.address, &address, &err), ENG_OK);
    return address;
}

static EngAddress random_address(EngRng *rng)
{
    EngAddress address;
    EngErr err = {0};
    EngAddressSpec spec = {.n_layers = 1 + (int)eng_rng_below(rng, 3)};
    for (int i = 0; i < spec.n_layers; i++) spec.layer_ids[i] = 1 + 13 * i;
    spec.min_order = 1 + (int)eng_rng_below(rng, 3);
    spec.max_order = spec.min_order + (int)eng_rng_below(rng, (uint64_t)(6 - spec.min_order));
    spec.heads = 1 + (int)eng_rng_below(rng, 16);
    spec.vocab = 2 + (int64_t)eng_rng_below(rng, (uint64_t)1 << (1 + eng_rng_below(rng, 30)));
    spec.pad = (int32_t)eng_rng_below(rng, (uint64_t)spec.vocab);
    spec.start = 2 + (int64_t)eng_rng_below(rng, (uint64_t)1 << eng_rng_below(rng, 50));
    assert_int_equal(eng_address_build(&spec, &address, &err), ENG_OK);
    return address;
}

/* About one id in eight is dead when `dead` is set; now and then the largest id and the pad. */
static int32_t random_id(EngRng *rng, const EngAddress *address, bool dead)
{
    switch (eng_rng_below(rng, 8)) {
    case 0:
        return dead ? ENG_TOKEN_DEAD : 0;
    case 1:
        return address->pad;
    case 2:
        return (int32_t)(address->vocab - 1);
    default:
        return (int32_t)eng_rng_below(rng, (uint64_t)address->vocab);
    }
}

static void random_ids(EngRng *rng, const EngAddress *address, bool dead, int32_t *ids, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ids[i] = random_id(rng, address, dead);
}

/* ---- known answers ---- */

static json_t *g_golden;

static int setup(void **state)
{
    (void)state;
    EngErr why;
    EngAddress address = {.n_layers = 1};
    EngProblem problem = {.op = ENG_OP_HASH, .threads = 1, .u.hash = {&address, 1}};
    for (size_t i = 0; i < sizeof g_all / sizeof *g_all; i++) {
        if (!g_all[i]->supports(&problem, &why))
            g_variants[g_n_variants++] = g_all[i];
        else
            print_message("without %s: %s\n", g_all[i]->name, why.text);
    }
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

/* ---- equivalences ---- */

enum { TEXT = 97, SLOTS = 3 };

/* Feeds `text` from `*at` on in windows of `width(rng)` ids for all sequences at once, each with
 * its own history, and compares with prefill. Every window holds `extra` rejected ids at its end
 * that are hashed and not committed. */
static void check_steps(const EngKernel *kernel, const EngAddress *address, EngRng *rng,
                        int64_t max_width, bool ragged)
{
    static int32_t text[SLOTS][TEXT];
    int64_t *want[SLOTS], at[SLOTS] = {0}, reach = address->max_order - 1;
    EngHistory *history;
    EngErr err;
    assert_int_equal(eng_history_create(&history, address->max_order, SLOTS, 8, &err), ENG_OK);
    for (int s = 0; s < SLOTS; s++) {
        random_ids(rng, address, true, text[s], TEXT);
        want[s] = prefill(address, text[s], TEXT);
    }
    for (bool more = true; more;) {
        int32_t tokens[SLOTS * 16], windows[SLOTS * ENG_MAX_ORDER];
        int64_t starts[SLOTS + 1] = {0}, slots[SLOTS], take[SLOTS];
        more = false;
        for (int s = 0; s < SLOTS; s++) {
            int64_t width =
                ragged ? (int64_t)eng_rng_below(rng, (uint64_t)max_width + 1) : max_width;
            if (width > TEXT - at[s]) width = TEXT - at[s];
            memcpy(tokens + starts[s], text[s] + at[s], (size_t)width * sizeof *tokens);
            starts[s + 1] = starts[s] + width;
            slots[s] = s;
            /* Speculation: only some of the window is accepted. */
            take[s] = ragged ? (int64_t)eng_rng_below(rng, (uint64_t)width + 1) : width;
        }
        assert_int_equal(eng_history_window(history, slots, SLOTS, windows, &err), ENG_OK);
        EngHashArgs args = {.tokens = tokens,
                            .n_tokens = starts[SLOTS],
                            .n_live = starts[SLOTS],
                            .starts = starts,
                            .n_seqs = SLOTS,
                            .history = reach ? windows : NULL};
        args.rows = new_rows(address, args.n_tokens);
        run_hash(kernel, address, 1, &args);
        for (int s = 0; s < SLOTS; s++) {
            assert_same_rows(address, args.rows + starts[s] * per_token(address),
                             want[s] + at[s] * per_token(address), starts[s + 1] - starts[s]);
            assert_int_equal(eng_history_commit(history, s, text[s] + at[s], take[s], &err),
                             ENG_OK);
            at[s] += take[s];
            more = more || at[s] < TEXT;
        }
        eng_free(args.rows);
    }
    for (int s = 0; s < SLOTS; s++) eng_free(want[s]);
    eng_history_destroy(history);
}

static void test_decode(void **state)
{
    (void)state;
    EngRng rng;
    eng_rng_seed(&rng, 4);
    for (int round = 0; round < 20; round++) {
        EngAddress address = random_address(&rng);
        for (int v = -1; v < g_n_variants; v++)
            check_steps(v < 0 ? NULL : g_variants[v], &address, &rng, 1, false);
    }
}

static void test_verify_windows(void **state)
{
    (void)state;
    EngRng rng;
    eng_rng_seed(&rng, 5);
    for (int round = 0; round < 20; round++) {
        EngAddress address = random_address(&rng);
        for (int v = -1; v < g_n_variants; v++) {
            const EngKernel *kernel = v < 0 ? NULL : g_variants[v];
            check_steps(kernel, &address, &rng, 4, false);
            check_steps(kernel, &address, &rng, 8, false);
            check_steps(kernel, &address, &rng, 6, true);
            check_steps(kernel, &address, &rng, 16, true);
        }
    }
}

/* One step of one sequence from a slot's history. */
static void step_slot(const EngKernel *kernel, const EngAddress *address, const EngHistory *history,
                      int64_t slot, int32_t token, int64_t *row)
{
    int32_t window[ENG_MAX_ORDER];
    EngErr err;
    assert_int_equal(eng_history_window(history, &slot, 1, window, &err), ENG_OK);
    EngHashArgs args = {
        .tokens = &token, .n_tokens = 1, .n_live = 1, .history = window, .rows = row};
    run_hash(kernel, address, 1, &args);
}

/* Ids taken back and others put in their place read as if the first had never been. */
static void test_rollback(void **state)
{
    (void)state;
    EngAddress address = address_of("v41-flash");
    EngRng rng;
    EngErr err;
    int64_t row[2 * 24];
    eng_rng_seed(&rng, 6);
    for (int v = 0; v < g_n_variants; v++) {
        EngHistory *history;
        int32_t text[TEXT];
        assert_int_equal(eng_history_create(&history, 4, 1, 8, &err), ENG_OK);
        random_ids(&rng, &address, true, text, TEXT);
        int64_t *want = prefill(&address, text, TEXT);
        for (int64_t t = 0; t < TEXT;) {
            step_slot(g_variants[v], &address, history, 0, text[t], row);
            assert_true(same_row(&address, row, want + t * per_token(&address)));
            assert_int_equal(eng_history_commit(history, 0, &text[t++], 1, &err), ENG_OK);
            int32_t wrong[8];
            int64_t back = (int64_t)eng_rng_below(&rng, 4), n = (int64_t)eng_rng_below(&rng, 5);
            random_ids(&rng, &address, true, wrong, n);
            assert_int_equal(eng_history_commit(history, 0, wrong, n, &err), ENG_OK);
            if (back > t || eng_rng_below(&rng, 3)) back = 0;
            assert_int_equal(eng_history_rollback(history, 0, n + back, &err), ENG_OK);
            assert_int_equal(eng_history_commit(history, 0, text + t - back, back, &err), ENG_OK);
        }
        eng_free(want);
        eng_history_destroy(history);
    }
}

/* A fork goes on like its parent; a sequence that starts without the history does not. */
static void test_fork(void **state)
{
    (void)state;
    EngAddress address = address_of("v41-flash");
    const int32_t text[] = {11, 500, 42, 99091, 7, 8, 9, 10};
    int64_t *want = prefill(&address, text, 8), row[2 * 24];
    EngErr err;
    for (int v = 0; v < g_n_variants; v++) {
        EngHistory *history;
        assert_int_equal(eng_history_create(&history, 4, 3, 0, &err), ENG_OK);
        assert_int_equal(eng_history_commit(history, 0, text, 4, &err), ENG_OK);
        assert_int_equal(eng_history_fork(history, 0, 2, &err), ENG_OK);
        int32_t other = 77; /* the parent goes elsewhere */
        assert_int_equal(eng_history_commit(history, 0, &other, 1, &err), ENG_OK);
        for (int64_t t = 4; t < 8; t++) {
            const int64_t *expected = want + t * per_token(&address);
            step_slot(g_variants[v], &address, history, 2, text[t], row);
            assert_true(same_row(&address, row, expected));
            step_slot(g_variants[v], &address, history, 1, text[t], row);
            assert_int_equal(same_row(&address, row, expected), t - 4 >= 3); /* out of reach */
            assert_int_equal(eng_history_commit(history, 2, &text[t], 1, &err), ENG_OK);
            assert_int_equal(eng_history_commit(history, 1, &text[t], 1, &err), ENG_OK);
        }
        eng_history_destroy(history);
    }
    eng_free(want);
}

/* Documents laid end to end hash as if each were alone. */
static void test_packed(void **state)
{
    (void)state;
    EngRng rng;
    eng_rng_seed(&rng, 7);
    for (int round = 0; round < 40; round++) {
        EngAddress address = random_address(&rng);
        int32_t tokens[TEXT];
        int64_t starts[] = {0, 1, 1, 4, 30, 33, TEXT, 5, 0}; /* one empty, two stale entries */
        random_ids(&rng, &address, true, tokens, TEXT);
        for (int v = -1; v < g_n_variants; v++) {
            EngHashArgs args = {
                .tokens = tokens, .n_tokens = TEXT, .n_live = TEXT, .starts = starts, .n_seqs = 6};
            args.rows = new_rows(&address, TEXT);
            run_hash(v < 0 ? NULL : g_variants[v], &address, v > 0 ? 3 : 1, &args);
            for (int s = 0; s < 6; s++) {
                int64_t n = starts[s + 1] - starts[s];
                int64_t *alone = prefill(&address, tokens + starts[s], n);
                assert_same_rows(&address, args.rows + starts[s] * per_token(&address), alone, n);
                eng_free(alone);
            }
            eng_free(args.rows);
        }
    }
}

/* After an image at p every order sees p+1, p+2, ... as the start of a text, although the places
 * before p are alive: the latch holds for all reaches. The image itself reads as pads. */
static void test_dead_latch(void **state)
{
    (void)state;
    EngRng rng;
    eng_rng_seed(&rng, 8);
    for (int round = 0; round < 40; round++) {
        EngAddress address = random_address(&rng);
        int32_t tokens[16];
        random_ids(&rng, &address, false, tokens, 16);
        for (int64_t p = 0; p < 16; p++) {
            int32_t kept = tokens[p];
            tokens[p] = ENG_TOKEN_DEAD;
            int64_t *before = prefill(&address, tokens, p);
            int64_t *after = prefill(&address, tokens + p + 1, 15 - p);
            int64_t *pads = prefill(&address, &address.pad, 1);
            for (int v = -1; v < g_n_variants; v++) {
                EngHashArgs args = {.tokens = tokens, .n_tokens = 16, .n_live = 16};
                args.rows = new_rows(&address, 16);
                run_hash(v < 0 ? NULL : g_variants[v], &address, 1, &args);
                assert_same_rows(&address, args.rows, before, p);
                assert_same_rows(&address, args.rows + p * per_token(&address), pads, 1);
                assert_same_rows(&address, args.rows + (p + 1) * per_token(&address), after,
                                 15 - p);
                eng_free(args.rows);
            }
            eng_free(before);
            eng_free(after);
            eng_free(pads);
            tokens[p] = kept;
        }
    }
}

/* A text token that is the pad token blocks nothing. */
static void test_pad_is_no_barrier(void **state)
{
    (void)state;
    EngAddress address = address_of("v41-flash");
    const int32_t pad[] = {5, 6, 2, 7}, dead[] = {5, 6, -1, 7}, fresh[] = {2, 7};
    int64_t *with_pad = prefill(&address, pad, 4), *with_dead = prefill(&address, dead, 4);
    int64_t *alone = prefill(&address, fresh, 2), stride = per_token(&address);
    assert_false(same_row(&address, with_pad + 3 * stride, with_dead + 3 * stride));
    assert_false(same_row(&address, with_pad + 3 * stride, alone + stride));
    /* 2-grams reach the pad only: the first 8 columns agree, the 4-grams see beyond it. */
    assert_memory_equal(with_pad + 3 * stride, with_dead + 3 * stride, 8 * sizeof *with_pad);
    eng_free(with_pad);
    eng_free(with_dead);
    eng_free(alone);
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
        cmocka_unit_test(test_golden),         cmocka_unit_test(test_golden_layers),
        cmocka_unit_test(test_literal),        cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_variants),       cmocka_unit_test(test_remainders),
        cmocka_unit_test(test_roof),           cmocka_unit_test(test_decode),
        cmocka_unit_test(test_verify_windows), cmocka_unit_test(test_rollback),
        cmocka_unit_test(test_fork),           cmocka_unit_test(test_packed),
        cmocka_unit_test(test_dead_latch),     cmocka_unit_test(test_pad_is_no_barrier),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_cost)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
