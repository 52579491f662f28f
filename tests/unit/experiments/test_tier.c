/* The experiments tier and cache: rows of the seeded table through every store of the axes, what is
 * refused and why, counts whose answers are known, and that cold means cold. */
#include "points.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "bench/core/resources.h"
#include "bench/experiments/shape.h"
#include "bench/experiments/store_axes.h"
#include "bench/experiments/table_files.h"
#include "kernels/store/table_file.h"

#define TINY                                                                                       \
    "preset", "tiny", "orders", "2-3", "heads", "2", "rows", "1009", "row_dims", "64", "corpus",   \
        "synthetic", "tokens", "9"

static EngResources *open_for(const EngPoint *point)
{
    EngResources *resources;
    EngNeed need;
    EngErr err = {0};
    if (eng_resources_create("no-such-folder", 1, &resources, &err)) fail_msg("%s", err.text);
    if (point->experiment->need(point, &need, &err)) fail_msg("%s", err.text);
    if (eng_resources_add(resources, &need, &err)) fail_msg("%s", err.text);
    return resources;
}

/* One life with two calls in its sample; the status of the first step that fails. */
static EngStatus live(const EngPoint *point, double *values, EngErr *err)
{
    const EngExperiment *x = point->experiment;
    void *state = NULL;
    EngResidual residual = {0};
    EngStatus status = x->check(point, err);
    if (status) return status;
    EngResources *resources = open_for(point);
    EngBench bench = {.resources = resources, .seed = 3};
    status = x->setup(&bench, point, &state, err);
    if (!status) status = x->verify(state, &residual, err);
    if (!status && !residual.pass) fail_msg("%s", residual.note);
    if (!status && x->prepare) status = x->prepare(state, err);
    EngTiming timing = {.inner = x->counted ? 1 : 2, .wall_ns = 2000, .cpu_ns = 1000};
    for (int i = 0; i < timing.inner && !status; i++) status = x->run(state, err);
    if (!status) x->observe(state, &timing, values);
    x->teardown(state);
    eng_resources_destroy(resources);
    return status;
}

static double tier_metric(const double *values, const char *name)
{
    return metric_of(&eng_experiment_tier, values, name);
}

static void test_stores(void **unused)
{
    (void)unused;
    static const char *const formats[] = {"fp8", "fp8_packed", "int4", "f32"};
    uint64_t blocks = eng_mem_live_blocks();
    for (int s = 0; eng_words_store[s]; s++)
        for (int f = 0; f < 4; f++)
            for (int p = 0; eng_words_policy[p]; p++) {
                double v[ENG_MAX_METRICS];
                EngErr err = {0};
                EngPoint point = point_of(&eng_experiment_tier, TINY, "store", eng_words_store[s],
                                          "row_format", formats[f], "policy", eng_words_policy[p],
                                          "dedup", p % 2 ? "on" : "off", "shards",
                                          p == 2 ? "3" : "1", "cache_rows", "50", NULL);
                EngStatus status = live(&point, v, &err);
                if (status == ENG_UNSUPPORTED && strstr(err.text, "io_uring")) continue;
                if (status) fail_msg("%s: %s", eng_words_store[s], err.text);
                assert_true(tier_metric(v, "batch_rows") == 9 * 4);
                assert_true(tier_metric(v, "row_ns") == 1000.0 / 36);
                double hits = tier_metric(v, "hit_rate");
                assert_true(p ? hits >= 0 && hits <= 1 : isnan(hits));
                bool reads = s >= ENG_STORE_PREAD;
                if (!p) assert_true(tier_metric(v, "requests") == (reads ? f ? 36 : 72 : 0));
            }
    assert_int_equal(eng_mem_live_blocks(), blocks);
}

/* A cache of all rows hits all of them after it was filled with all windows. */
static void test_all_hits(void **unused)
{
    (void)unused;
    double v[ENG_MAX_METRICS];
    EngErr err = {0};
    EngPoint point = point_of(&eng_experiment_tier, TINY, "store", "pread", "policy", "direct",
                              "cache_rows", "8000", NULL);
    assert_int_equal(live(&point, v, &err), ENG_OK);
    assert_true(tier_metric(v, "hit_rate") == 1);
    assert_true(tier_metric(v, "requests") == 0);
}

static void test_cold(void **unused)
{
    (void)unused;
    double v[ENG_MAX_METRICS];
    EngErr err = {0};
    for (int s = ENG_STORE_MMAP; s <= ENG_STORE_NOWAIT; s++) {
        EngPoint point = point_of(&eng_experiment_tier, TINY, "store", eng_words_store[s],
                                  "residency", "cold", NULL);
        EngStatus status = live(&point, v, &err);
        if (status == ENG_UNSUPPORTED) {
            assert_non_null(strstr(err.text, "not cold")); /* a file system in memory */
            continue;
        }
        assert_int_equal(status, ENG_OK);
        assert_true(tier_metric(v, "resident_share") <= 0.001);
        set_axis(&point, "residency", "warm");
        assert_int_equal(live(&point, v, &err), ENG_OK);
        assert_true(tier_metric(v, "resident_share") >= 0.999);
        assert_true(!(tier_metric(v, "device_bytes") > 0));
    }
}

/* Bytes that this process has read by system calls, -1: not told here. */
static long long bytes_read(void)
{
    long long n = -1;
    FILE *file = fopen("/proc/self/io", "re");
    if (file && fscanf(file, "rchar: %lld", &n) != 1) n = -1;
    if (file) fclose(file);
    return n;
}

/* The last row, far from those that are compared with the seed: found by its block's checksum, also
 * where the file pretends to be as old as before; read once in a run. */
static void test_damage(void **unused)
{
    (void)unused;
    EngErr err = {0};
    double v[ENG_MAX_METRICS];
    char path[ENG_TABLE_PATH_BYTES], byte;
    EngPoint point = point_of(&eng_experiment_tier, TINY, "store", "uring", NULL);
    EngResources *resources = open_for(&point), *later = open_for(&point);
    EngShape shape;
    struct stat old;
    assert_int_equal(eng_shape_resolve(&point, &shape, &err), ENG_OK);
    assert_int_equal(eng_table_file_ready(resources, shape.row_format, shape.row_dims,
                                          shape.address.rows[0], path, &err),
                     ENG_OK);
    assert_int_equal(eng_table_file_sound(resources, path, true, &err), ENG_OK);
    assert_int_equal(stat(path, &old), 0);
    long long before = bytes_read();
    assert_int_equal(eng_table_file_sound(resources, path, true, &err), ENG_OK);
    assert_true(before < 0 || bytes_read() - before < old.st_size);

    off_t at = ENG_TABLE_FILE_PAGE + (off_t)shape.address.rows[0] * 64 - 1;
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && pread(fd, &byte, 1, at) == 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    assert_int_equal(futimens(fd, (struct timespec[]){old.st_atim, old.st_mtim}), 0);
    assert_int_equal(eng_table_file_sound(resources, path, true, &err), ENG_BAD_DATA);
    if (!strstr(err.text, path) || !strstr(err.text, "checksum mismatch in block 0"))
        fail_msg("%s", err.text);
    static const char *const stores[] = {"memory", "mmap", "pread", "nowait", "uring"};
    for (int s = 0; s < 5; s++) {
        set_axis(&point, "store", stores[s]);
        assert_int_equal(live(&point, v, &err), ENG_BAD_DATA);
    }

    /* Left out, and not taken for done. */
    assert_int_equal(eng_table_file_sound(later, path, false, &err), ENG_OK);
    assert_int_equal(setenv("ENG_VERIFY_BYTES", "1000", 1), 0);
    assert_int_equal(eng_table_file_sound(later, path, true, &err), ENG_OK);
    assert_int_equal(unsetenv("ENG_VERIFY_BYTES"), 0);
    assert_int_equal(eng_table_file_sound(later, path, true, &err), ENG_BAD_DATA);

    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
    assert_int_equal(eng_table_file_sound(later, path, true, &err), ENG_OK);
    eng_resources_destroy(resources);
    eng_resources_destroy(later);
}

static void refuse(const char *word, const char *a, const char *x, const char *b, const char *y)
{
    EngErr err = {0};
    EngPoint point = point_of(&eng_experiment_tier, TINY, a, x, b, y, NULL);
    assert_int_equal(eng_experiment_tier.check(&point, &err), ENG_UNSUPPORTED);
    if (!strstr(err.text, word)) fail_msg("\"%s\" lacks \"%s\"", err.text, word);
}

static void test_refusals(void **unused)
{
    (void)unused;
    refuse("no depth", "store", "pread", "depth", "4");
    refuse("no readers", "store", "uring", "readers", "4");
    refuse("no io", "store", "mmap", "io", "direct");
    refuse("no io", "store", "nowait", "io", "direct");
    refuse("no numa", "store", "mmap", "numa", "bind");
    refuse("no pages", "store", "uring", "pages", "4k");
    refuse("never cold", "store", "memory", "residency", "cold");
    refuse("no scales apart", "row_format", "int4", "scales", "memory");
    refuse("no blocks", "store", "uring", "block", "512");
    refuse("power of two", "io", "direct", "block", "1000");
    refuse("3 is none of", "policy", "ways", "ways", "3");
}

/* ---- cache ---- */

static double cache_metric(const double *values, const char *name)
{
    return metric_of(&eng_experiment_cache, values, name);
}

/* With room for the whole table only first look-ups miss, whatever the policy. */
static void test_room_for_all(void **unused)
{
    (void)unused;
    static const char *const policies[] = {"lru", "sieve", "direct", "ways"};
    for (int p = 0; p < 4; p++) {
        double v[ENG_MAX_METRICS];
        EngErr err = {0};
        EngPoint point = point_of(&eng_experiment_cache, TINY, "policy", policies[p], "cache_rows",
                                  "1000000", "stream_tokens", "5000", NULL);
        if (live(&point, v, &err)) fail_msg("%s", err.text);
        assert_true(cache_metric(v, "lookups") == 5000 * 4);
        assert_true(fabs(cache_metric(v, "hit_rate") + cache_metric(v, "cold_misses") - 1) < 1e-12);
        assert_true(cache_metric(v, "evicted") == 0);
        assert_true(cache_metric(v, "table_share") >= 1);
        assert_true(isnan(cache_metric(v, "hit_4")));
        double orders = cache_metric(v, "hit_2") + cache_metric(v, "hit_3");
        assert_true(fabs(orders / 2 - cache_metric(v, "hit_rate")) < 1e-12);
        assert_true(cache_metric(v, "hit_warm") > cache_metric(v, "hit_rate"));
    }
}

/* More room, more hits; a front leaves the whole of an LRU nearly as it was and takes the easy hits
 * away from what lies behind it. */
static void test_capacities(void **unused)
{
    (void)unused;
    double last = 0, v[ENG_MAX_METRICS];
    static const char *const rows[] = {"10", "100", "1000"};
    EngErr err = {0};
    for (int i = 0; i < 3; i++) {
        EngPoint point = point_of(&eng_experiment_cache, TINY, "cache_rows", rows[i],
                                  "stream_tokens", "20000", NULL);
        if (live(&point, v, &err)) fail_msg("%s", err.text);
        assert_true(cache_metric(v, "hit_rate") >= last);
        last = cache_metric(v, "hit_rate");
        assert_true(cache_metric(v, "capacity_rows") == atoi(rows[i]));
        assert_true(cache_metric(v, "capacity_bytes") == 66 * atoi(rows[i]));
        assert_true(cache_metric(v, "hit_conditional") == last);
    }
    EngPoint point = point_of(&eng_experiment_cache, TINY, "cache_rows", "1000", "front_rows",
                              "100", "stream_tokens", "20000", NULL);
    if (live(&point, v, &err)) fail_msg("%s", err.text);
    double front = cache_metric(v, "hit_front"), behind = cache_metric(v, "hit_conditional");
    assert_true(front > 0);
    assert_true(fabs(front + (1 - front) * behind - cache_metric(v, "hit_rate")) < 1e-12);
    set_axis(&point, "front_rows", "1000");
    assert_int_equal(eng_experiment_cache.check(&point, &err), ENG_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stores),       cmocka_unit_test(test_all_hits),
        cmocka_unit_test(test_cold),         cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_room_for_all), cmocka_unit_test(test_capacities),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, make_tables, remove_tables);
}
