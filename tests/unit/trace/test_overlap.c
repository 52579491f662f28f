/* Fetch, stall and hidden fraction of traces with known answers: by ranges, by kernel names, and
 * what the command line changes; and the Perfetto export, read back by a parser. */
#include "tests/unit/trace/trace_fixtures.h"

#include <jansson.h>
#include <math.h>

#include "bench/trace/engine.h"
#include "bench/trace/perfetto.h"

const char fixtures_source[] = ENG_SOURCE_DIR, fixtures_shared[] = ENG_SHARED_DIR;

static EngErr g_err;
static const int64_t g_layers[] = {1, 14};

static EngEngineOptions defaults(void)
{
    return (EngEngineOptions){
        .layers = g_layers, .n_layers = 2, .tokens = 4, .bytes_per_token = 24 * 264};
}

static EngEngine engine_of(const EngTrace *t, const EngEngineOptions *options)
{
    EngEngine engine;
    if (eng_engine_read(t, options, &engine, &g_err)) fail_msg("%s", g_err.text);
    return engine;
}

static void assert_fetch(const EngFetch *f, int64_t step, int64_t layer, int64_t fetch_us,
                         int64_t stall_us, double hidden)
{
    assert_int_equal(f->step, step);
    assert_int_equal(f->layer, layer);
    assert_int_equal(f->fetch_ns, 1000 * fetch_us);
    assert_int_equal(f->stall_ns, 1000 * stall_us);
    assert_true(fabs(f->hidden - hidden) < 1e-12);
    int64_t sum = 0;
    for (int c = 0; c < ENG_WAIT_COUNT; c++) sum += f->wait_ns[c];
    assert_int_equal(sum, f->stall_ns);
}

static void test_two_streams(void **state)
{
    (void)state;
    static const char *const files[] = {"engine_3.16.sqlite", "engine_3.22.sqlite",
                                        "engine_3.28.sqlite"};
    for (int i = 0; i < 3; i++) {
        EngEngineOptions options = defaults();
        if (i == 1) options.step = "^execute_model [0-9]+$";
        EngTrace *t = opened(fixture_path(files[i]));
        EngEngine e = engine_of(t, &options);
        assert_int_equal(e.overlap.n, 4);
        assert_int_equal(e.n_devices, 1);
        assert_int_equal(e.n_steps, i == 1 ? 2 : 0);
        for (int s = 0; s < 2; s++) {
            const EngFetch *f = &e.overlap.fetches[2 * s];
            assert_fetch(f, s, 1, 50, 30, 0.4);
            assert_int_equal(f->wait_ns[ENG_WAIT_READ], 20000);
            assert_int_equal(f->wait_ns[ENG_WAIT_COLLECTIVE], 10000);
            assert_int_equal(f->bytes, 4 * 24 * 264);
            assert_int_equal(f->step_ns, i == 1 ? 40000 : -1);
            assert_int_equal(f->ready_ns, 1000000 * (s + 1) + 75000);
            assert_int_equal(f->consumer_ns, 1000000 * (s + 1) + 80000);
            assert_fetch(f + 1, s, 14, 60, 0, 1);
        }
        assert_int_equal(e.classes[ENG_CLASS_LOOKUP].n, 4);
        assert_int_equal(e.classes[ENG_CLASS_LOOKUP].busy_ns, 220000);
        assert_int_equal(e.classes[ENG_CLASS_COLLECTIVE].busy_ns, 20000);
        /* All of it beside a lookup, so none is exposed. */
        assert_int_equal(e.classes[ENG_CLASS_COLLECTIVE].exposed_ns, 0);
        assert_int_equal(e.classes[ENG_CLASS_OTHER].n, 4);
        eng_engine_free(&e);
        eng_trace_close(t);
    }
}

static void test_one_stream(void **state)
{
    (void)state;
    EngEngineOptions options = defaults();
    EngTrace *t = opened(fixture_path("one_stream.sqlite"));
    EngEngine e = engine_of(t, &options);
    assert_int_equal(e.overlap.n, 4);
    assert_fetch(&e.overlap.fetches[0], 0, 1, 50, 65, 0);
    assert_int_equal(e.overlap.fetches[0].wait_ns[ENG_WAIT_HASH], 5000);
    assert_int_equal(e.overlap.fetches[0].wait_ns[ENG_WAIT_COLLECTIVE], 10000);
    assert_fetch(&e.overlap.fetches[1], 0, 14, 60, 65, 0);
    assert_int_equal(e.overlap.fetches[1].wait_ns[ENG_WAIT_QUEUE], 2000);
    eng_engine_free(&e);
    eng_trace_close(t);
}

/* Own work between a lookup and its consumer does not hide a lookup of the same stream. */
static void test_serial_is_not_hidden(void **state)
{
    (void)state;
    EngEngineOptions options = defaults();
    EngTrace *t =
        opened(changed(fixture_path("one_stream.sqlite"), "serial",
                       "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET shortName ="
                       " (SELECT id FROM StringIds WHERE value LIKE 'ncclDev%' AND value"
                       " NOT LIKE '%(%') + 1000, demangledName = shortName + 1000 WHERE"
                       " shortName = (SELECT id FROM StringIds WHERE value LIKE"
                       " 'ncclDev%' AND value NOT LIKE '%(%');"
                       "INSERT INTO StringIds SELECT id + 1000, 'attention' FROM StringIds"
                       " WHERE value LIKE 'ncclDev%'"));
    EngEngine e = engine_of(t, &options);
    assert_int_equal(e.classes[ENG_CLASS_COLLECTIVE].n, 0);
    assert_fetch(&e.overlap.fetches[0], 0, 1, 50, 55, 0); /* hash and read, not attention */
    eng_engine_free(&e);
    eng_trace_close(t);
}

static void test_patterns(void **state)
{
    (void)state;
    EngEngineOptions options = defaults();
    EngTrace *t = opened(fixture_path("engine_3.16.sqlite"));
    options.patterns[ENG_CLASS_LOOKUP] = "no_such_kernel";
    EngEngine e = engine_of(t, &options);
    assert_int_equal(e.overlap.n, 0);
    eng_engine_free(&e);
    /* Without gates the consumer is the first projection after the lookup has ended, and not taken
     * by another: layer 14's rows are then used by layer 1's projection's successor. */
    options = defaults();
    options.patterns[ENG_CLASS_GATE] = "no_such_kernel";
    e = engine_of(t, &options);
    assert_fetch(&e.overlap.fetches[0], 0, 1, 50, 30, 0.4);
    assert_fetch(&e.overlap.fetches[1], 0, 14, 60, 0, 1);
    eng_engine_free(&e);
    options.patterns[ENG_CLASS_PROJECTION] = "no_such_kernel";
    e = engine_of(t, &options);
    assert_int_equal(e.overlap.n_without_consumer, 4); /* nothing else on the lookups' stream */
    assert_true(isnan(e.overlap.fetches[0].hidden));
    eng_engine_free(&e);
    options.patterns[ENG_CLASS_PROJECTION] = "(";
    assert_int_equal(eng_engine_read(t, &options, &e, &g_err), ENG_USAGE);
    assert_non_null(strstr(g_err.text, "--projection=("));
    options.patterns[ENG_CLASS_PROJECTION] = "";
    assert_int_equal(eng_engine_read(t, &options, &e, &g_err), ENG_USAGE);
    eng_trace_close(t);
}

/* Copies from the host as the fetch (an engine whose host fills rows), and as a cause of waiting.
 */
static void test_copies(void **state)
{
    (void)state;
    EngEngineOptions options = defaults();
    const char *path = changed(
        fixture_path("engine_3.16.sqlite"), "copies",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, contextId INT,"
        " streamId INT, correlationId INT, globalPid INT, bytes INT, copyKind INT);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY SELECT end, end + 12000, deviceId, contextId,"
        " streamId, 7000 + rowid, globalPid, 5000, 1 FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE start IN"
        " (1065000, 2065000) AND streamId = 7");
    EngTrace *t = opened(path);
    EngEngine e = engine_of(t, &options);
    assert_fetch(&e.overlap.fetches[0], 0, 1, 50, 35, 0.3); /* until the projection, at 80 */
    assert_int_equal(e.overlap.fetches[0].wait_ns[ENG_WAIT_COPY], 5000);
    eng_engine_free(&e);
    options.patterns[ENG_CLASS_LOOKUP] = "memcpy host-to-device";
    options.n_layers = 1;
    e = engine_of(t, &options);
    assert_int_equal(e.overlap.n, 2);
    assert_int_equal(e.overlap.fetches[1].step, 1);
    assert_int_equal(e.overlap.fetches[0].fetch_ns, 12000);
    eng_engine_free(&e);
    eng_trace_close(t);
}

static void test_ranges(void **state)
{
    (void)state;
    EngTrace *t = opened(fixture_path("steps.sqlite"));
    EngOverlap o;
    EngLayerOverlap *layers;
    int n;
    assert_int_equal(eng_overlap_from_ranges(t, &o, &g_err), ENG_OK);
    assert_int_equal(o.n, 16);
    for (int s = 0; s < 8; s++) {
        assert_fetch(&o.fetches[2 * s], s, 1, 100, s % 2 ? 20 : 30, s % 2 ? 0.8 : 0.7);
        assert_int_equal(o.fetches[2 * s].wait_ns[ENG_WAIT_QUEUE], 10000);
        assert_int_equal(o.fetches[2 * s].step_ns, 500000);
        assert_int_equal(o.fetches[2 * s].bytes, 16 * 24 * 264);
        assert_fetch(&o.fetches[2 * s + 1], s, 14, 120, 0, 1);
    }
    assert_int_equal(eng_overlap_by_layer(&o, &layers, &n, &g_err), ENG_OK);
    assert_int_equal(n, 3);
    assert_int_equal(layers[0].n_steps, 8);
    assert_int_equal(layers[0].fetch_ns, 800000);
    assert_true(layers[0].hidden == 0.75 && layers[1].hidden == 1);
    assert_true(layers[2].all_layers && fabs(layers[2].hidden - (1 - 200.0 / 1760)) < 1e-12);
    eng_free(layers);
    EngVictim victims[4];
    assert_int_equal(eng_overlap_victims(t, victims, &n, &g_err), ENG_OK);
    assert_int_equal(n, 3);
    assert_string_equal(victims[0].name, "layer");
    assert_true(fabs(victims[0].effect.slowdown - 0.9) < 1e-12);
    eng_overlap_free(&o);
    eng_trace_close(t);
}

/* ---- Perfetto ----------------------------------------------------------------------------------
 */

static EngStatus collect(void *context, const char *text, size_t n, EngErr *err)
{
    (void)err;
    eng_str_add_n(context, text, n);
    return ENG_OK;
}

static json_t *exported(const EngTrace *t, const EngOverlap *o)
{
    EngStr text = {0};
    json_error_t why;
    if (eng_perfetto_write(t, o, collect, &text, &g_err)) fail_msg("%s", g_err.text);
    json_t *root = json_loadb(text.text, text.n, JSON_REJECT_DUPLICATES, &why);
    if (!root) fail_msg("line %d: %s", why.line, why.text);
    eng_str_free(&text);
    return root;
}

static int64_t ns_of(const json_t *event, const char *key)
{
    return llround(1000 * json_number_value(json_object_get(event, key)));
}

static int64_t int_of(const json_t *event, const char *key)
{
    return json_integer_value(json_object_get(event, key));
}

static bool is_phase(const json_t *event, const char *phase)
{
    return !strcmp(json_string_value(json_object_get(event, "ph")), phase);
}

/* No two slices of a track overlap without nesting. */
static void assert_all_nested(json_t *events)
{
    size_t i, k;
    json_t *event, *other;
    int64_t seen[512];
    int n_seen = 0;
    json_array_foreach(events, i, event)
    {
        int64_t tid = int_of(event, "tid"), ends[64];
        int depth = 0;
        bool known = false;
        for (int s = 0; s < n_seen; s++) known = known || seen[s] == tid;
        if (!is_phase(event, "X") || known) continue;
        seen[n_seen++] = tid;
        json_array_foreach(events, k, other)
        {
            if (!is_phase(other, "X") || int_of(other, "tid") != tid) continue;
            int64_t start = ns_of(other, "ts"), end = start + ns_of(other, "dur");
            assert_true(start >= 0 && end >= start);
            while (depth && ends[depth - 1] <= start) depth--;
            if (depth) assert_true(ends[depth - 1] >= end);
            assert_true(depth < 64);
            ends[depth++] = end;
        }
    }
}

/* A slice of that place holds the moment. */
static bool is_bound(json_t *events, const json_t *flow)
{
    size_t i;
    json_t *event;
    int64_t at = ns_of(flow, "ts");
    json_array_foreach(events, i, event)
    {
        if (is_phase(event, "X") && int_of(event, "pid") == int_of(flow, "pid") &&
            int_of(event, "tid") == int_of(flow, "tid") && ns_of(event, "ts") <= at &&
            at <= ns_of(event, "ts") + ns_of(event, "dur"))
            return true;
    }
    return false;
}

static int count_phase(json_t *events, const char *phase)
{
    size_t i;
    json_t *event;
    int n = 0;
    json_array_foreach(events, i, event) n += is_phase(event, phase);
    return n;
}

static void assert_flows(json_t *events, int wanted)
{
    size_t i, k;
    json_t *from, *to;
    int pairs = 0;
    json_array_foreach(events, i, from)
    {
        if (!is_phase(from, "s")) continue;
        json_array_foreach(events, k, to)
        {
            if (!is_phase(to, "f") || int_of(to, "id") != int_of(from, "id")) continue;
            pairs++;
            assert_true(ns_of(from, "ts") <= ns_of(to, "ts"));
            assert_true(is_bound(events, from) && is_bound(events, to));
            assert_string_equal(json_string_value(json_object_get(to, "bp")), "e");
        }
    }
    assert_int_equal(pairs, wanted);
    assert_int_equal(count_phase(events, "s"), wanted);
    assert_int_equal(count_phase(events, "f"), wanted);
}

/* Steps are counted by each process: the same numbers in another one are other steps. */
static void test_processes(void **state)
{
    (void)state;
    EngTrace *t = opened(changed(
        fixture_path("steps.sqlite"), "two_processes",
        "INSERT INTO NVTX_EVENTS (start, end, eventType, text, textId, globalTid, domainId,"
        " jsonText) SELECT start + 7000, end + 7000, eventType, text, textId,"
        " globalTid + (5 << 24), domainId, jsonText FROM NVTX_EVENTS WHERE eventType <> 34"));
    EngOverlap one, two;
    EngTrace *alone = opened(fixture_path("steps.sqlite"));
    assert_int_equal(eng_overlap_from_ranges(alone, &one, &g_err), ENG_OK);
    assert_int_equal(eng_overlap_from_ranges(t, &two, &g_err), ENG_OK);
    assert_int_equal(two.n, 2 * one.n);
    for (int64_t i = 0; i < two.n; i++) {
        const EngFetch *f = &two.fetches[i];
        int64_t k = 0;
        while (k < one.n && (one.fetches[k].step != f->step || one.fetches[k].layer != f->layer))
            k++;
        assert_true(k < one.n);
        assert_int_equal(f->fetch_ns, one.fetches[k].fetch_ns);
        assert_int_equal(f->stall_ns, one.fetches[k].stall_ns);
        assert_int_equal(f->step_ns, one.fetches[k].step_ns);
        for (int c = 0; c < ENG_WAIT_COUNT; c++)
            assert_int_equal(f->wait_ns[c], one.fetches[k].wait_ns[c]);
    }
    eng_overlap_free(&one);
    eng_overlap_free(&two);
    eng_trace_close(alone);
    eng_trace_close(t);
}

/* Two ranks, threads of one process with a GPU each: rows of one step of both have its number. */
static void test_steps_of_ranks(void **state)
{
    (void)state;
    EngEngineOptions options = defaults();
    options.step = "^execute_model [0-9]+$";
    EngTrace *t = opened(
        changed(fixture_path("engine_3.22.sqlite"), "ranks",
                "INSERT INTO NVTX_EVENTS (start, end, eventType, text, textId, globalTid)"
                " SELECT start, end, eventType, text, textId, globalTid + 1000 FROM NVTX_EVENTS"
                " WHERE eventType = 59;"
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId,"
                " nameId) SELECT start, end, globalTid + 1000, correlationId + 5000, nameId"
                " FROM CUPTI_ACTIVITY_KIND_RUNTIME;"
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, streamId, deviceId,"
                " contextId, correlationId, globalPid, shortName, demangledName) SELECT start,"
                " end, streamId, 1, contextId, correlationId + 5000, globalPid, shortName,"
                " demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL"));
    EngEngine e = engine_of(t, &options);
    assert_int_equal(e.n_devices, 2);
    assert_int_equal(e.overlap.n, 8);
    for (int64_t i = 0; i < e.overlap.n; i++) { /* by step, device, layer */
        assert_int_equal(e.overlap.fetches[i].device, i / 2 % 2);
        assert_fetch(&e.overlap.fetches[i], i / 4, i % 2 ? 14 : 1, i % 2 ? 60 : 50, i % 2 ? 0 : 30,
                     i % 2 ? 1 : 0.4);
    }
    eng_engine_free(&e);
    eng_trace_close(t);
}

/* Sums are over the same fetches all: without the gates and projections of the second step nobody
 * uses its rows, and neither their time nor their bytes are in a sum with a stall. */
static void test_sums_without_consumer(void **state)
{
    (void)state;
    EngEngineOptions options = defaults();
    EngLayerOverlap *layers;
    int n;
    EngTrace *t = opened(
        changed(fixture_path("engine_3.22.sqlite"), "lonely",
                "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE start > 2000000 AND streamId = 7"));
    EngEngine e = engine_of(t, &options);
    assert_int_equal(e.overlap.n, 4);
    assert_int_equal(e.overlap.n_without_consumer, 2);
    assert_int_equal(eng_overlap_by_layer(&e.overlap, &layers, &n, &g_err), ENG_OK);
    assert_int_equal(n, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(layers[i].n_steps, i < 2 ? 1 : 2);
        assert_int_equal(layers[i].fetch_ns, i == 0 ? 50000 : i == 1 ? 60000 : 110000);
        assert_int_equal(layers[i].bytes, layers[i].n_steps * 4 * 24 * 264);
    }
    eng_free(layers);
    /* Of no consumer at all, all; and a fetch that does not tell its bytes makes theirs unknown. */
    for (int64_t i = 0; i < 4; i++) e.overlap.fetches[i].stall_ns = -1;
    e.overlap.fetches[3].bytes = -1;
    assert_int_equal(eng_overlap_by_layer(&e.overlap, &layers, &n, &g_err), ENG_OK);
    assert_int_equal(layers[0].n_steps, 2);
    assert_int_equal(layers[0].fetch_ns, 100000);
    assert_int_equal(layers[0].bytes, 2 * 4 * 24 * 264);
    assert_int_equal(layers[1].bytes, -1);
    assert_int_equal(layers[2].bytes, -1);
    assert_int_equal(layers[2].fetch_ns, 220000);
    assert_true(layers[2].stall_ns == -1 && isnan(layers[2].hidden));
    eng_free(layers);
    eng_engine_free(&e);
    eng_trace_close(t);
}

/* Many threads with steps of their own beside the one that launches; and all of it before the
 * origin, which changes no duration. */
static void test_step_threads(void **state)
{
    (void)state;
    EngEngineOptions options = defaults();
    options.step = "^execute_model [0-9]+$";
    EngTrace *t = opened(
        changed(fixture_path("engine_3.22.sqlite"), "threads",
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)"
                " INSERT INTO NVTX_EVENTS (start, end, eventType, text, textId, globalTid)"
                " SELECT e.start + i, e.end, e.eventType, e.text, e.textId, e.globalTid + 1000 + i"
                " FROM NVTX_EVENTS e, n WHERE e.eventType = 59;"
                "UPDATE NVTX_EVENTS SET start = start - 100000000, end = end - 100000000;"
                "UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET start = start - 100000000,"
                " end = end - 100000000;"
                "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = start - 100000000,"
                " end = end - 100000000 WHERE start > 0"));
    EngEngine e = engine_of(t, &options);
    assert_int_equal(e.n_steps, 2 * 41);
    assert_int_equal(e.overlap.n, 4);
    for (int64_t i = 0; i < e.overlap.n; i++) {
        assert_int_equal(e.overlap.fetches[i].step, i / 2);
        assert_int_equal(e.overlap.fetches[i].step_ns, 40000);
        assert_true(e.overlap.fetches[i].stall_ns >= 0);
    }
    eng_engine_free(&e);
    eng_trace_close(t);
}

static void test_perfetto(void **state)
{
    (void)state;
    EngTrace *t = opened(fixture_path("steps.sqlite"));
    EngOverlap o;
    assert_int_equal(eng_overlap_from_ranges(t, &o, &g_err), ENG_OK);
    json_t *root = exported(t, &o), *events = json_object_get(root, "traceEvents");
    assert_int_equal(count_phase(events, "X"), 120);
    assert_int_equal(count_phase(events, "C"), 64);
    assert_flows(events, 8); /* layer 14 is never waited for */
    assert_all_nested(events);
    json_decref(root);
    eng_overlap_free(&o);
    eng_trace_close(t);
}

/* Overlapping kernels of one stream, names that JSON must escape, more overlaps than tracks. */
static void test_perfetto_odd(void **state)
{
    (void)state;
    EngEngineOptions options = defaults();
    EngTrace *t = opened(changed(
        fixture_path("engine_3.28.sqlite"), "odd",
        "UPDATE StringIds SET value = 'a\"b\\c' || char(1, 10) || x'ff' WHERE id IN"
        " (SELECT shortName FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE streamId = 7 LIMIT 1);"
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12)"
        " INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, streamId, deviceId, contextId,"
        " correlationId, globalPid, shortName, demangledName) SELECT 5000000 + i, 6000000 +"
        " 10 * i, 7, 0, 1, 5000 + i, globalPid, shortName, demangledName FROM n, (SELECT *"
        " FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1)"));
    EngEngine e = engine_of(t, &options);
    json_t *root = exported(t, &e.overlap), *events = json_object_get(root, "traceEvents");
    assert_int_equal(count_phase(events, "b"), 4); /* twelve overlap, eight tracks */
    assert_int_equal(count_phase(events, "e"), 4);
    assert_int_equal(count_phase(events, "X"), 32 - 4 + 2 + 2); /* with ranges and calls */
    assert_flows(events, 4);
    assert_all_nested(events);
    json_decref(root);
    eng_engine_free(&e);
    eng_trace_close(t);
}

static void test_memory(void **state)
{
    (void)state;
    EngEngineOptions options = defaults();
    EngTrace *t = opened(fixture_path("engine_3.16.sqlite"));
    EngStatus status = ENG_NO_MEMORY;
    for (uint64_t n = 1; status; n++) {
        EngEngine e;
        EngStr text = {0};
        uint64_t live = eng_mem_live_blocks();
        eng_mem_fail_at(n);
        status = eng_engine_read(t, &options, &e, &g_err);
        if (!status) status = eng_perfetto_write(t, &e.overlap, collect, &text, &g_err);
        if (!status) status = eng_str_status(&text, &g_err);
        eng_mem_fail_at(0);
        eng_engine_free(&e);
        eng_str_free(&text);
        if (status) assert_int_equal(status, ENG_NO_MEMORY);
        assert_int_equal(eng_mem_live_blocks(), live);
    }
    eng_trace_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_streams),
        cmocka_unit_test(test_one_stream),
        cmocka_unit_test(test_serial_is_not_hidden),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_step_threads),
        cmocka_unit_test(test_steps_of_ranks),
        cmocka_unit_test(test_sums_without_consumer),
        cmocka_unit_test(test_perfetto),
        cmocka_unit_test(test_perfetto_odd),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, fixtures_make, fixtures_remove);
}
