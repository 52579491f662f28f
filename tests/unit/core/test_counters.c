/* Counters and evidence: page faults that are made are seen, refusals have reasons, and a worker's
 * faults are told apart from the parent's. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include <jansson.h>

#include "bench/core/counters.h"
#include "bench/core/evidence.h"

#define PAGES 500

static void touch_pages(void)
{
    size_t bytes = (size_t)PAGES * 4096;
    volatile char *pages =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    madvise((void *)pages, bytes, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < PAGES; i++) pages[i * 4096] = 1;
    munmap((void *)pages, bytes);
}

static void test_sample(void **state)
{
    (void)state;
    EngCounters counters;
    double values[ENG_COUNTER_COUNT], idle[ENG_COUNTER_COUNT];
    eng_counters_open(&counters);
    eng_counters_start(&counters);
    touch_pages();
    eng_counters_stop(&counters, values);
    eng_counters_start(&counters);
    eng_counters_stop(&counters, idle);
    assert_true(values[ENG_COUNTER_PAGE_FAULTS] >= PAGES);
    assert_true(idle[ENG_COUNTER_PAGE_FAULTS] < PAGES / 2);
    assert_true(values[ENG_COUNTER_SWITCHES] >= 0);
    for (int i = ENG_COUNTER_CYCLES; i < ENG_COUNTER_COUNT; i++) {
        assert_true((counters.fds[i] >= 0) == (counters.errors[i] == 0));
        if (counters.errors[i]) assert_true(isnan(values[i]));
    }
    /* Where they count, they count the work. */
    if (!isnan(values[ENG_COUNTER_INSTRUCTIONS]))
        assert_true(values[ENG_COUNTER_INSTRUCTIONS] > PAGES);
    char text[512];
    eng_counters_json(&counters, text, sizeof text);
    json_t *json = json_loads(text, 0, NULL);
    assert_int_equal(json_object_size(json), ENG_COUNTER_COUNT - ENG_COUNTER_CYCLES);
    const char *cycles = json_string_value(json_object_get(json, "cycles"));
    assert_non_null(cycles);
    if (counters.errors[ENG_COUNTER_CYCLES])
        assert_memory_equal(cycles, "perf_event_open: E", 18);
    else
        assert_string_equal(cycles, "counted");
    json_decref(json);
    eng_counters_close(&counters);
}

static json_t *evidence_of(bool in_child)
{
    EngEvidence before, after;
    char text[ENG_EVIDENCE_BYTES];
    eng_evidence_read(&before);
    pid_t pid = in_child ? fork() : 0;
    if (!in_child || !pid) touch_pages();
    if (in_child && !pid) _exit(0);
    if (in_child) waitpid(pid, NULL, 0);
    eng_evidence_read(&after);
    eng_evidence_delta_json(&before, &after, text, sizeof text);
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    return json;
}

static void test_segment(void **state)
{
    (void)state;
    json_t *worker = evidence_of(true), *parent = evidence_of(false);
    assert_true(json_integer_value(json_object_get(worker, "minor_faults")) >= PAGES);
    assert_int_equal(json_integer_value(json_object_get(parent, "minor_faults")), 0);
    static const char *const keys[] = {"steal_ticks", "major_faults", "voluntary_switches",
                                       "mhz",         "throttles",    "load",
                                       "counters"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_non_null(json_object_get(worker, keys[i]));
    json_decref(worker);
    json_decref(parent);
    /* Half a text would be no JSON. */
    EngEvidence now;
    char small[64];
    eng_evidence_read(&now);
    eng_evidence_delta_json(&now, &now, small, sizeof small);
    assert_string_equal(small, "{}");
}

/* What a kernel does not show is stored as that, and what it does as numbers. */
static void test_reasons(void **state)
{
    (void)state;
    static const char *const keys[] = {"steal_ticks", "throttles", "mhz"};
    const EngEvidence shown = {.steal_ticks = 7, .throttles = 3, .mhz = 2000, .load = 1};
    const EngEvidence later = {.steal_ticks = 9, .throttles = 3, .mhz = 2100, .load = 1};
    const EngEvidence hidden = {.steal_ticks = -1, .throttles = -1, .mhz = NAN, .load = NAN};
    char text[ENG_EVIDENCE_BYTES];
    eng_evidence_delta_json(&shown, &later, text, sizeof text);
    json_t *json = json_loads(text, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(json, "steal_ticks")), 2);
    assert_true(json_is_integer(json_object_get(json, "throttles")));
    assert_int_equal(json_array_size(json_object_get(json, "mhz")), 2);
    json_decref(json);
    eng_evidence_delta_json(&hidden, &hidden, text, sizeof text);
    json = json_loads(text, 0, NULL);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_string_equal(json_string_value(json_object_get(json, keys[i])),
                            "not shown by the kernel");
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sample),
                                       cmocka_unit_test(test_segment),
                                       cmocka_unit_test(test_reasons)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
