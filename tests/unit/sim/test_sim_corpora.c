/* label: slow. Hit rates on the fetched corpora: the model of an LRU cache equals the row cache on
 * rows that real texts look up, and the estimates are within 0.01 of it, on the mean over
 * capacities. One head of each order stands for all its heads. skips: no corpora
 * (scripts/fetch_data gets them) */
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
#include "kernels/address/preset.h"
#include "kernels/ref/hash.h"
#include "kernels/store/cache_index.h"
#include "sim/cache/aet.h"
#include "sim/cache/curve.h"
#include "sim/cache/shards.h"

#define SHARDS_RATE 0.01
#define WITHIN      0.01
#define CHUNK       4096

static const int64_t g_capacities[] = {10000, 40000, 160000, 640000, 2560000};
enum { COUNT = sizeof g_capacities / sizeof *g_capacities };

typedef struct Trace {
    int64_t *rows;
    int64_t n;
    int64_t table;
} Trace;

/* The first head's row of each order, of all tokens. */
static Trace trace_of(const char *path)
{
    EngErr err = {0};
    EngMapping map;
    EngPreset preset;
    EngAddress address;
    if (eng_file_map(path, &map, &err)) fail_msg("%s", err.text);
    assert_int_equal(eng_preset_find("v41-flash", &preset, &err), ENG_OK);
    preset.address.n_layers = 1;
    preset.address.vocab = preset.vocab_ids; /* ids as the tokenizer wrote them */
    assert_int_equal(eng_address_build(&preset.address, &address, &err), ENG_OK);
    int orders = address.max_order - address.min_order + 1, reach = address.max_order - 1;
    int64_t n = (int64_t)(map.bytes / sizeof(int32_t)), at = 0;
    const int32_t *ids = map.data;
    Trace trace = {.rows = malloc((size_t)(n * orders) * sizeof(int64_t)),
                   .table = address.rows[0]};
    int64_t *rows = malloc((size_t)(CHUNK * address.n_columns) * sizeof *rows);
    for (; at < n; at += CHUNK) {
        int64_t tokens = n - at < CHUNK ? n - at : CHUNK;
        int32_t history[ENG_MAX_ORDER];
        for (int i = 0; i < reach; i++) history[i] = at ? ids[at - reach + i] : ENG_TOKEN_DEAD;
        EngHashArgs args = {.tokens = ids + at,
                            .n_tokens = tokens,
                            .n_live = tokens,
                            .n_seqs = 1,
                            .history = history,
                            .rows = rows};
        eng_ref_hash(&address, &args);
        for (int64_t t = 0; t < tokens; t++)
            for (int o = 0; o < orders; o++)
                trace.rows[trace.n++] = rows[t * address.n_columns + o * address.heads];
    }
    free(rows);
    eng_file_unmap(&map);
    return trace;
}

static void check_store(const Trace *trace, const EngCurve *curve)
{
    int64_t hits[COUNT];
    eng_curve_hits(curve, hits);
    for (int i = 0; i < COUNT; i += 2) {
        EngErr err = {0};
        EngCacheIndex index;
        EngCacheOptions options = {.policy = ENG_CACHE_LRU, .rows = g_capacities[i]};
        bool hit;
        assert_int_equal(eng_cache_index_init(&index, &options, trace->table, &err), ENG_OK);
        for (int64_t r = 0; r < trace->n; r++) eng_cache_index_access(&index, trace->rows[r], &hit);
        assert_int_equal(hits[i], index.hits);
        eng_cache_index_fini(&index);
    }
}

static void check_estimates(const char *name, const Trace *trace, EngCurve *curve)
{
    EngErr err = {0};
    EngShards shards;
    EngAet aet;
    int64_t hits[COUNT];
    double sampled[COUNT], modelled[COUNT], sampled_error = 0, modelled_error = 0;
    assert_int_equal(eng_shards_init(&shards, SHARDS_RATE, &err), ENG_OK);
    assert_int_equal(eng_aet_init(&aet, &err), ENG_OK);
    for (int64_t r = 0; r < trace->n; r++) {
        uint32_t id;
        assert_int_equal(eng_shards_add(&shards, trace->rows[r], &err), ENG_OK);
        assert_int_equal(eng_row_ids_of(&curve->ids, trace->rows[r], &id, &err), ENG_OK);
        assert_int_equal(eng_aet_add(&aet, id, &err), ENG_OK);
    }
    eng_curve_hits(curve, hits);
    assert_int_equal(eng_shards_rates(&shards, g_capacities, COUNT, sampled, &err), ENG_OK);
    eng_aet_rates(&aet, g_capacities, COUNT, modelled);
    for (int i = 0; i < COUNT; i++) {
        double exact = (double)hits[i] / (double)trace->n;
        print_message("%s, %ld rows: exact %.4f, SHARDS %.4f, AET %.4f\n", name,
                      (long)g_capacities[i], exact, sampled[i], modelled[i]);
        sampled_error += fabs(sampled[i] - exact) / COUNT;
        modelled_error += fabs(modelled[i] - exact) / COUNT;
    }
    print_message("%s: mean error of SHARDS %.4f, of AET %.4f\n", name, sampled_error,
                  modelled_error);
    assert_true(sampled_error <= WITHIN);
    assert_true(modelled_error <= WITHIN);
    eng_shards_fini(&shards);
    eng_aet_fini(&aet);
}

static const char *const g_names[] = {"docs", "prose", "code", "multilingual"};
enum { CORPORA = sizeof g_names / sizeof *g_names };

static void path_of(int corpus, char path[512])
{
    const char *folder = getenv("ENG_DATA");
    snprintf(path, 512, "%s/%s.ids", folder ? folder : ENG_SOURCE_DIR "/data/cache",
             g_names[corpus]);
}

static void test_corpora(void **state)
{
    (void)state;
    for (int c = 0; c < CORPORA; c++) {
        char path[512];
        EngErr err = {0};
        EngCurve curve;
        path_of(c, path);
        Trace trace = trace_of(path);
        assert_int_equal(eng_curve_open(&curve, ENG_CACHE_LRU, 0, g_capacities, COUNT, &err),
                         ENG_OK);
        assert_int_equal(eng_curve_add(&curve, trace.rows, trace.n, &err), ENG_OK);
        check_store(&trace, &curve);
        check_estimates(g_names[c], &trace, &curve);
        eng_curve_close(&curve);
        free(trace.rows);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_corpora)};
    for (int c = 0; c < CORPORA; c++) {
        char path[512];
        path_of(c, path);
        if (eng_file_exists(path)) continue;
        fprintf(stderr, "skipped: no corpora: %s is missing\n", path);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
