/* The linked-in hook: ranges of several threads become rows of a trace file, with names, payloads
 * and nesting; lost events are counted; an outside tool wins. skips: no NVTX headers */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/nvtx.h"
#include "bench/trace/hook.h"
#include "bench/trace/recording.h"
#include "trace_fixture.h"

#define STEPS 20

static void skip_without_nvtx(void)
{
    if (!eng_hook_refusal()) return;
    printf("skipped: %s\n", eng_hook_refusal());
    skip();
}

static void steps(int64_t first)
{
    for (int64_t i = first; i < first + STEPS; i++) {
        eng_nvtx_push(ENG_RANGE_STEP, (EngRangeInfo){.tokens = 4, .layer = -1, .step = i});
        eng_nvtx_push(ENG_RANGE_FETCH,
                      (EngRangeInfo){.tokens = 4, .layer = 14, .bytes = 101000000000, .step = i});
        eng_nvtx_pop();
        eng_nvtx_pop();
    }
}

static void *other_thread(void *unused)
{
    (void)unused;
    eng_nvtx_name_thread("fetcher");
    steps(1000);
    return NULL;
}

/* Two threads record; gives the file. */
static void record(const char *path, EngRecordHead *head, EngRecordingCounts *counts)
{
    pthread_t thread;
    assert_true(eng_hook_start(head));
    assert_true(eng_nvtx_on);
    pthread_create(&thread, NULL, other_thread, NULL);
    steps(0);
    pthread_join(thread, NULL);
    eng_nvtx_mark_value("saturated", 0.375);
    eng_hook_stop(head);
    assert_false(eng_nvtx_on);
    steps(5000); /* nobody listens any more */
    save_recording(path, head, counts);
}

static void ranges_of_two_threads(void **state)
{
    char path[256];
    EngRecordingCounts counts;
    skip_without_nvtx();
    EngRecordHead *head = eng_record_map(16);
    assert_non_null(head);
    file_in(*state, "two.sqlite", path);
    record(path, head, &counts);
    assert_int_equal(counts.ranges, 4 * STEPS);
    assert_int_equal(counts.marks, 1);
    assert_int_equal(counts.dropped, 0);
    assert_true(eng_hook_is_tool());
    sqlite3 *db = open_trace(path);
    assert_int_equal(number(db, "SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 59"),
                     4 * STEPS);
    assert_int_equal(number(db, "SELECT count(DISTINCT globalTid) FROM NVTX_EVENTS WHERE eventType"
                                " = 59"),
                     2);
    assert_int_equal(number(db, "SELECT count(*) FROM NVTX_EVENTS e JOIN StringIds s ON s.id ="
                                " e.textId JOIN NVTX_EVENTS d ON d.eventType = 75 AND d.domainId ="
                                " e.domainId JOIN StringIds n ON n.id = d.textId WHERE n.value ="
                                " 'engram' AND s.value = 'fetch'"),
                     2 * STEPS);
    /* Every fetch lies within one step of its thread, that of its payload. */
    assert_int_equal(
        number(db, "SELECT count(*) FROM NVTX_EVENTS f JOIN NVTX_EVENTS s ON s.globalTid ="
                   " f.globalTid AND s.start <= f.start AND f.end <= s.end AND s.rowid <> f.rowid"
                   " WHERE json_extract(f.jsonText, '$.layer') = 14 AND"
                   " json_extract(f.jsonText, '$.bytes') = 101000000000 AND"
                   " json_extract(s.jsonText, '$.layer') = -1 AND"
                   " json_extract(f.jsonText, '$.step') = json_extract(s.jsonText, '$.step')"),
        2 * STEPS);
    assert_int_equal(number(db, "SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 34 AND text ="
                                " 'saturated' AND doubleValue = 0.375 AND end IS NULL"),
                     1);
    assert_int_equal(number(db, "SELECT count(*) FROM ThreadNames t JOIN StringIds s ON s.id ="
                                " t.nameId WHERE s.value = 'fetcher' AND (t.globalTid >> 24 &"
                                " 0xffffff) = (SELECT pid FROM PROCESSES)"),
                     1);
    assert_int_equal(number(db, "SELECT n FROM ENGRAM_DROPS WHERE what = 'nvtx'"), 0);
    sqlite3_close(db);
    eng_record_unmap(head);
}

/* A second recording starts empty and knows the names that the first one defined. */
static void recordings_follow_each_other(void **state)
{
    char path[256];
    EngRecordingCounts counts;
    skip_without_nvtx();
    EngRecordHead *head = eng_record_map(16);
    file_in(*state, "again.sqlite", path);
    for (int i = 0; i < 3; i++) {
        record(path, head, &counts);
        assert_int_equal(counts.ranges, 4 * STEPS);
        sqlite3 *db = open_trace(path);
        assert_int_equal(number(db, "SELECT count(*) FROM NVTX_EVENTS e JOIN StringIds s ON s.id ="
                                    " e.textId WHERE e.eventType = 59"),
                         4 * STEPS);
        sqlite3_close(db);
    }
    eng_record_unmap(head);
}

/* One chunk: what does not fit is counted, and nothing waits. */
static void overflow_is_counted(void **state)
{
    char path[256];
    EngRecordingCounts counts;
    skip_without_nvtx();
    EngRecordHead *head = eng_record_map(1);
    file_in(*state, "full.sqlite", path);
    assert_true(eng_hook_start(head));
    for (int i = 0; i < 500; i++) steps(0);
    eng_hook_stop(head);
    save_recording(path, head, &counts);
    assert_true(counts.dropped > 0);
    assert_true(counts.ranges > 1000);
    sqlite3 *db = open_trace(path);
    assert_int_equal(number(db, "SELECT n FROM ENGRAM_DROPS WHERE what = 'nvtx'"), counts.dropped);
    assert_int_equal(number(db, "SELECT count(*) FROM DIAGNOSTIC_EVENT WHERE severity = 2"), 1);
    sqlite3_close(db);
    eng_record_unmap(head);
}

/* A forked worker records into memory of its parent, which writes the file. */
static void worker_and_parent(void **state)
{
    char path[256];
    EngRecordingCounts counts;
    skip_without_nvtx();
    EngRecordHead *head = eng_record_map(16);
    file_in(*state, "worker.sqlite", path);
    pid_t pid = fork();
    if (pid == 0) {
        eng_hook_start(head);
        steps(0);
        eng_nvtx_push(ENG_RANGE_WAIT, (EngRangeInfo){.step = 99}); /* never closed */
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    save_recording(path, head, &counts);
    assert_int_equal(counts.ranges, 2 * STEPS + 1);
    sqlite3 *db = open_trace(path);
    assert_int_equal(number(db, "SELECT pid FROM PROCESSES"), pid);
    assert_int_equal(number(db, "SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 59 AND end IS"
                                " NULL AND json_extract(jsonText, '$.step') = 99"),
                     1);
    sqlite3_close(db);
    eng_record_unmap(head);
}

/* Whatever lies in a region, reading it ends and stays inside. */
static void damaged_regions(void **state)
{
    char path[256];
    EngRecordingCounts counts;
    skip_without_nvtx();
    EngRecordHead *head = eng_record_map(2);
    file_in(*state, "damaged.sqlite", path);
    srand(1);
    for (int round = 0; round < 30; round++) {
        assert_true(eng_hook_start(head));
        steps(0);
        eng_hook_stop(head);
        unsigned char *bytes = (unsigned char *)eng_record_chunk(head, 0);
        for (int i = 0; i < 40; i++) bytes[24 + rand() % 3000] = (unsigned char)rand();
        if (round % 3 == 0) bytes[4 + rand() % 4] = (unsigned char)rand(); /* its length */
        save_recording(path, head, &counts);
    }
    eng_record_unmap(head);
}

/* The variable of a tool is set: the hook stays away and the product's ranges go to the tool. */
static void outside_tool_wins(void **state)
{
    (void)state;
    skip_without_nvtx();
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        setenv("NVTX_INJECTION64_PATH", "/nonexistent/tool.so", 1);
        EngRecordHead *head = eng_record_map(1);
        bool away = eng_hook_refusal() != NULL && !eng_hook_start(head);
        _exit(away && !eng_nvtx_on ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outside_tool_wins),
        cmocka_unit_test_setup_teardown(worker_and_parent, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(ranges_of_two_threads, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(recordings_follow_each_other, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(overflow_is_counted, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(damaged_regions, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
