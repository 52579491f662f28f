/* Reuse that the planner counts in a stream: windows of drafts read the rows that the experiment
 * `speculate` reads; counts that are kept are found again, and those of another stream, cut or
 * edited are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "bench/cli/size_reuse.h"
#include "bench/core/resources.h"
#include "bench/experiments/idset.h"
#include "kernels/ref/hash.h"
#include "tests/unit/experiments/points.h"

#define TOKENS     3000
#define VOCABULARY 61
#define SCATTER    7919 /* of rejected drafts, as bench/experiments/drafts.h has it */

typedef struct Fixture {
    char folder[32];
    uint32_t ids[TOKENS];
    EngPreset preset;
    EngSizeCorpus corpus;
} Fixture;

static void write_stream(Fixture *f, uint64_t seed)
{
    char path[64], digest[ENG_DIGEST_HEX], header[512];
    EngRng rng;
    EngErr err = {0};
    eng_rng_seed(&rng, seed);
    for (int i = 0; i < TOKENS; i++) f->ids[i] = (uint32_t)eng_rng_below(&rng, VOCABULARY);
    snprintf(path, sizeof path, "%s/text.ids", f->folder);
    if (eng_file_write(path, f->ids, sizeof f->ids, &err)) fail_msg("%s", err.text);
    assert_int_equal(eng_digest(f->ids, sizeof f->ids, digest, &err), ENG_OK);
    int n = snprintf(header, sizeof header,
                     "{\"format\": \"engram-stream-1\", \"corpus\": \"text\", \"kind\": "
                     "\"imported\", \"ids_file\": \"text.ids\", \"sha256\": \"%s\", \"vocab_ids\": "
                     "%d, \"n_tokens\": %d, \"document_starts\": [0]}",
                     digest, VOCABULARY, TOKENS);
    snprintf(path, sizeof path, "%s/text.json", f->folder);
    if (eng_file_write(path, header, (size_t)n, &err)) fail_msg("%s", err.text);
}

static void open_corpus(Fixture *f)
{
    EngErr err = {0};
    if (eng_size_corpus_open(f->folder, "text", &f->preset, &f->corpus, &err))
        fail_msg("%s", err.text);
}

static void keep(Fixture *f)
{
    EngErr err = {0};
    if (eng_size_counts_keep(f->corpus.counts, &err)) fail_msg("%s", err.text);
}

static int set_up(void **state)
{
    Fixture *f = calloc(1, sizeof *f);
    EngErr err = {0};
    snprintf(f->folder, sizeof f->folder, "/tmp/engram_reuse_XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    assert_int_equal(eng_preset_find("tiny", &f->preset, &err), ENG_OK);
    write_stream(f, 5);
    open_corpus(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    char command[64];
    eng_size_corpus_close(&f->corpus);
    snprintf(command, sizeof command, "rm -rf %s", f->folder);
    free(f);
    return system(command);
}

/* First-head rows of a window, hashed as one text: history, then what is verified. */
static void window_rows(const Fixture *f, const EngAddress *address, int64_t at, int64_t each,
                        int64_t gained, int64_t *rows)
{
    int32_t tokens[32], history[ENG_MAX_ORDER];
    int64_t all[32 * ENG_MAX_COLUMNS];
    int reach = address->max_order - 1, orders = address->max_order - address->min_order + 1;
    for (int64_t j = 0; j < each; j++) {
        int64_t from = j < gained ? at + j : (at + j) * SCATTER % TOKENS;
        tokens[j] = (int32_t)f->ids[from];
    }
    for (int i = 0; i < reach; i++)
        history[i] = at - reach + i < 0 ? ENG_TOKEN_DEAD : (int32_t)f->ids[at - reach + i];
    EngHashArgs args = {.tokens = tokens,
                        .n_tokens = each,
                        .n_live = each,
                        .n_seqs = 1,
                        .history = history,
                        .rows = all};
    eng_ref_hash(address, &args);
    for (int64_t t = 0; t < each; t++)
        for (int o = 0; o < orders; o++)
            rows[t * orders + o] = all[t * address->n_columns + o * address->heads];
}

static void first_layer(const Fixture *f, EngAddress *address)
{
    EngAddressSpec spec = f->preset.address;
    EngErr err = {0};
    spec.n_layers = 1;
    assert_int_equal(eng_address_build(&spec, address, &err), ENG_OK);
}

static void test_window_keys(void **state)
{
    Fixture *f = *state;
    EngAddress address;
    EngErr err = {0};
    int64_t ours[32 * ENG_MAX_ORDER], theirs[32 * ENG_MAX_ORDER];
    first_layer(f, &address);
    assert_int_equal(eng_size_keys(&f->corpus, &err), ENG_OK);
    for (int64_t at = 0; at < 40; at += at < 4 ? 1 : 7)
        for (int64_t each = 1; each <= 9; each += 4)
            for (int64_t gained = 1; gained <= each; gained++) {
                eng_size_window_keys(&f->corpus, at, each, gained, ours);
                window_rows(f, &address, at, each, gained, theirs);
                assert_memory_equal(ours, theirs, (size_t)(each * f->corpus.orders) * sizeof *ours);
            }
}

/* The whole walk again, written plainly: a stream's steps one after the other, look-ups and
 * distinct rows of all of them. */
static void test_hits_of_windows(void **state)
{
    Fixture *f = *state;
    const EngSizeStep step = {.streams = 3, .each = 5, .acceptance = 0.6};
    EngSizeCaches cache = {.n = 1, .capacities = {1 << 20}};
    EngAddress address;
    EngErr err = {0};
    EngIdSet set = {0};
    EngRng rng;
    int64_t at[3] = {0}, rows[5 * ENG_MAX_ORDER], looked_up = 0, length = TOKENS / 3;
    first_layer(f, &address);
    assert_int_equal(eng_idset_create(&set, 40 * TOKENS, &err), ENG_OK);
    eng_rng_seed(&rng, 1);
    for (int running = 3; running;) {
        running = 0;
        for (int s = 0; s < 3; s++) {
            if (at[s] + 5 > length) continue;
            int gained = 1;
            while (gained < 5 && eng_rng_unit(&rng) < 0.6) gained++;
            window_rows(f, &address, s * length + at[s], 5, gained, rows);
            for (int k = 0; k < 5 * f->corpus.orders; k++) eng_idset_add(&set, (uint64_t)rows[k]);
            looked_up += 5 * f->corpus.orders;
            at[s] += gained;
            running++;
        }
    }
    if (eng_size_hits(&f->corpus, "lru", &step, TOKENS, &cache, &err)) fail_msg("%s", err.text);
    assert_true(fabs(cache.cold - (double)set.n / (double)looked_up) < 1e-12);
    assert_true(fabs(cache.rates[0] - (1 - cache.cold)) < 1e-12); /* everything fits */
    eng_idset_destroy(&set);
    /* Rejected drafts are looked up besides, so more is asked for than the text has. */
    EngSizeCaches plain = {.n = 1, .capacities = {1 << 20}};
    const EngSizeStep text = {.streams = 3, .each = 1, .acceptance = 1};
    assert_int_equal(eng_size_hits(&f->corpus, "lru", &text, TOKENS, &plain, &err), ENG_OK);
    assert_true(plain.cold != cache.cold);
    assert_true(looked_up > TOKENS * f->corpus.orders);
}

/* Text alone, read side by side: hits of a small cache that keeps the latest keys, by looking back
 * from each look-up for how many others came since its last one; by eighths, whose band is that of
 * Student with 7 degrees of freedom. Read one stream after the other there would be other hits. */
static void test_hits_side_by_side(void **state)
{
    Fixture *f = *state;
    enum { STREAMS = 3, PARTS = 8 };
    static int64_t keys[TOKENS * ENG_MAX_ORDER];
    const EngSizeStep step = {.streams = STREAMS, .each = 1, .acceptance = 1};
    EngSizeCaches cache = {.n = 2, .capacities = {6, 1 << 20}}, in_turn = cache;
    EngErr err = {0};
    int64_t n = 0, length = TOKENS / STREAMS, hits = 0;
    double rates[PARTS] = {0}, mean = 0, squares = 0;
    assert_int_equal(eng_size_keys(&f->corpus, &err), ENG_OK);
    for (int64_t t = 0; t < length; t++)
        for (int s = 0; s < STREAMS; s++)
            for (int o = 0; o < f->corpus.orders; o++)
                keys[n++] = eng_size_keys_at(&f->corpus, s * length + t)[o];
    for (int64_t i = 0; i < n; i++) {
        int64_t others = 0, from = i - 1;
        while (from >= 0 && keys[from] != keys[i]) from--;
        for (int64_t j = from + 1; j < i && from >= 0; j++) {
            int64_t k = j + 1;
            while (k < i && keys[k] != keys[j]) k++;
            others += k == i; /* the last one of its kind */
        }
        bool hit = from >= 0 && others < 6;
        hits += hit;
        rates[i * PARTS / n] += hit * PARTS / (double)n;
    }
    for (int p = 0; p < PARTS; p++) mean += rates[p] / PARTS;
    for (int p = 0; p < PARTS; p++) squares += (rates[p] - mean) * (rates[p] - mean);
    if (eng_size_hits(&f->corpus, "lru", &step, TOKENS, &cache, &err)) fail_msg("%s", err.text);
    assert_int_equal(n % PARTS, 0);
    assert_true(hits > 0 && fabs(cache.rates[0] - (double)hits / (double)n) < 1e-12);
    assert_true(fabs(cache.bands[0] / (2.3646 * sqrt(squares / 7 / PARTS)) - 1) < 1e-3);
    const EngSizeStep alone = {.streams = 1, .each = 1, .acceptance = 1};
    assert_int_equal(eng_size_hits(&f->corpus, "lru", &alone, TOKENS, &in_turn, &err), ENG_OK);
    assert_true(in_turn.rates[0] != cache.rates[0]);
}

/* Texts that begin anywhere: with p_k the share of a key among all of its order, a step of S tokens
 * has sum of 1 - (1 - p_k)^S distinct ones on the mean, which 64 steps must meet as closely as so
 * many do. */
static void test_unique_on_the_mean(void **state)
{
    Fixture *f = *state;
    static int64_t counts[1 << 16];
    EngErr err = {0};
    EngRng rng;
    eng_rng_seed(&rng, 77);
    assert_int_equal(eng_size_keys(&f->corpus, &err), ENG_OK);
    memset(counts, 0, sizeof counts);
    for (int64_t t = 0; t < TOKENS; t++)
        for (int o = 0; o < f->corpus.orders; o++) {
            int64_t key = eng_size_keys_at(&f->corpus, t)[o];
            assert_true(key >= 0 && key < 1 << 16);
            counts[key]++;
        }
    for (int streams = 2; streams <= 32; streams += 1 + streams / 3) {
        const EngSizeStep step = {.streams = streams, .each = 1, .acceptance = 1};
        double expected = 0, share, sum = 0, squares = 0, all = streams * f->corpus.orders;
        for (int k = 0; k < 1 << 16; k++)
            expected += 1 - pow(1 - (double)counts[k] / TOKENS, streams);
        for (int run = 0; run < 200; run++) {
            EngIdSet set = {0};
            assert_int_equal(eng_idset_create(&set, (int64_t)all, &err), ENG_OK);
            for (int i = 0; i < streams; i++) {
                int64_t at = (int64_t)eng_rng_below(&rng, TOKENS);
                for (int o = 0; o < f->corpus.orders; o++)
                    eng_idset_add(&set, (uint64_t)eng_size_keys_at(&f->corpus, at)[o]);
            }
            sum += (double)set.n;
            squares += (double)set.n * (double)set.n;
            eng_idset_destroy(&set);
        }
        double deviation = sqrt((squares - sum * sum / 200) / 199);
        if (eng_size_unique(&f->corpus, &step, &share, &err)) fail_msg("%s", err.text);
        if (!(fabs(share * all - expected) <= 2 * deviation / sqrt(64)))
            fail_msg("%d streams: %g distinct, not %g within %g", streams, share * all, expected,
                     2 * deviation / sqrt(64));
    }
}

static void test_acceptance(void **state)
{
    (void)state;
    assert_true(eng_size_acceptance(5, 6) == 1);
    assert_true(fabs(eng_size_acceptance(5, 1)) < 1e-12);
    assert_true(fabs(eng_size_acceptance(1, 1.4) - 0.4) < 1e-9);
    double a = eng_size_acceptance(5, 2.5), sum = 0;
    for (int k = 0; k <= 5; k++) sum += pow(a, k);
    assert_true(fabs(sum - 2.5) < 1e-9);
}

/* What the experiment measured of its windows, beside what the planner says they yield: the same
 * volume, and as many rejected rows as acceptance makes on the mean of its draws. */
static void test_speculate(void **state)
{
    (void)state;
    const int runs = 24;
    double values[ENG_MAX_METRICS], expected = 0;
    EngPoint point =
        point_of(&eng_experiment_speculate, "preset", "tiny", "orders", "2-3", "heads", "2", "rows",
                 "101", "row_dims", "32", "corpus", "synthetic", "hidden", "64", "sequences", "8",
                 "draft", "5", "acceptance", "0.6", "window", "paced:20", NULL);
    EngResources *resources;
    EngNeed need;
    EngErr err = {0};
    EngTiming timing = {.inner = runs};
    void *running;
    assert_int_equal(eng_resources_create("no-such-folder", 1, &resources, &err), ENG_OK);
    assert_int_equal(point.experiment->need(&point, &need, &err), ENG_OK);
    assert_int_equal(eng_resources_add(resources, &need, &err), ENG_OK);
    assert_int_equal(eng_resources_map_weights(resources, &err), ENG_OK);
    EngBench bench = {.resources = resources, .seed = 3};
    if (point.experiment->setup(&bench, &point, &running, &err)) fail_msg("%s", err.text);
    assert_int_equal(point.experiment->prepare(running, &err), ENG_OK);
    for (int i = 0; i < runs; i++) assert_int_equal(point.experiment->run(running, &err), ENG_OK);
    point.experiment->observe(running, &timing, values);
    point.experiment->teardown(running);
    eng_resources_destroy(resources);
    for (int k = 0; k <= 5; k++) expected += pow(0.6, k);
    double gained = metric_of(point.experiment, values, "gained_tokens");
    double rejected = metric_of(point.experiment, values, "rejected_rows");
    /* 8 sequences, 8 steps a run: the deviation of a window's tokens is below 1.8. */
    double noise = 3 * 1.8 / sqrt(8.0 * 8 * runs);
    assert_true(metric_of(point.experiment, values, "window_rows") == 8 * 6 * 4);
    assert_true(fabs(rejected - (6 - gained) * 8 * 4) < 1e-9);
    assert_true(fabs(gained - expected) < noise);
    assert_true(fabs(eng_size_acceptance(5, gained) - 0.6) < 0.05);
}

static double unique_of(Fixture *f)
{
    const EngSizeStep step = {.streams = 8, .each = 6, .acceptance = 0.5};
    EngErr err = {0};
    double share = NAN;
    if (eng_size_unique(&f->corpus, &step, &share, &err)) fail_msg("%s", err.text);
    return share;
}

static bool is_kept(Fixture *f)
{
    double value;
    return eng_size_counts_find(f->corpus.counts, "unique of 8 x 6 accepted 0.5", &value, 1);
}

static void again(Fixture *f)
{
    eng_size_corpus_close(&f->corpus);
    open_corpus(f);
}

static void damage(const Fixture *f, size_t cut, const char *from, const char *to)
{
    char path[64], *text, *at;
    size_t n;
    EngErr err = {0};
    snprintf(path, sizeof path, "%s/counts/text-tiny.json", f->folder);
    if (eng_file_read(path, &text, &n, &err)) fail_msg("%s", err.text);
    if (from) {
        at = strstr(text, from);
        assert_non_null(at);
        memcpy(at, to, strlen(to));
    }
    assert_int_equal(eng_file_write(path, text, cut ? n / cut : n, &err), ENG_OK);
    eng_free(text);
}

static void test_kept_counts(void **state)
{
    Fixture *f = *state;
    EngSizeCaches first = {.n = 2, .capacities = {10, 100}}, second = first;
    const EngSizeStep step = {.streams = 2, .each = 1, .acceptance = 1};
    EngErr err = {0};
    double share = unique_of(f);
    assert_int_equal(eng_size_hits(&f->corpus, "ways", &step, TOKENS, &first, &err), ENG_OK);
    keep(f);
    again(f);
    assert_true(is_kept(f));
    assert_true(unique_of(f) == share); /* to the bit */
    assert_int_equal(eng_size_hits(&f->corpus, "ways", &step, TOKENS, &second, &err), ENG_OK);
    for (int i = 0; i < 2; i++) {
        assert_true(first.rates[i] == second.rates[i] && first.bands[i] == second.bands[i]);
    }
    assert_true(isnan(first.cold) && isnan(second.cold));
    /* Cut, edited, of another stream: counted again, and kept then. */
    for (int kind = 0; kind < 4; kind++) {
        if (kind == 0) damage(f, 2, NULL, NULL);
        if (kind == 1) damage(f, 0, "\"values\":[0.", "\"values\":[1.");
        if (kind == 2) damage(f, 0, "counts-1", "counts-0");
        if (kind == 3) write_stream(f, 6);
        again(f);
        assert_false(is_kept(f));
        assert_true((unique_of(f) == share) == (kind < 3));
        keep(f);
        again(f);
        assert_true(is_kept(f));
    }
}

/* A folder that takes no file, and a disk that gets full, cost the kept counts and nothing else. */
static void test_no_room(void **state)
{
    Fixture *f = *state;
    char path[64];
    EngErr err = {0};
    snprintf(path, sizeof path, "%s/counts", f->folder);
    assert_int_equal(eng_file_write(path, "x", 1, &err), ENG_OK);
    again(f);
    double share = unique_of(f);
    keep(f);
    assert_int_equal(remove(path), 0);
    again(f);
    assert_true(unique_of(f) == share);
    eng_file_fail_after(20);
    keep(f);
    eng_file_fail_after(-1);
    again(f);
    assert_false(is_kept(f));
    assert_true(unique_of(f) == share);
    keep(f);
    again(f);
    assert_true(is_kept(f));
}

static void test_refusals(void **state)
{
    Fixture *f = *state;
    double share;
    EngErr err = {0};
    const EngSizeStep longer = {1, TOKENS + 1, 1}, none = {0, 1, 1}, many = {1, 400, 0.5},
                      huge = {INT64_MAX / 2, 2, 1};
    const EngSizeStep *bad[] = {&longer, &none, &many, &huge};
    for (int i = 0; i < 4; i++)
        assert_int_equal(eng_size_unique(&f->corpus, bad[i], &share, &err), ENG_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_window_keys, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hits_side_by_side, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unique_on_the_mean, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hits_of_windows, set_up, tear_down),
        cmocka_unit_test(test_acceptance),
        cmocka_unit_test(test_speculate),
        cmocka_unit_test_setup_teardown(test_kept_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_room, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refusals, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, make_tables, remove_tables);
}
