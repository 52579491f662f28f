/* The ledger file of training runs: what goes in comes out, nothing is torn, and damage is named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "bench/ablation/ledger.h"

static char g_path[64];

static EngTrainRecord record_of(const char *key)
{
    EngTrainRecord record = {.key = key,
                             .axes = "rho=0.8 seed=1",
                             .outcome = "measured",
                             .reason = "",
                             .finished_utc = "2026-11-30T00:00:00Z",
                             .machine = "A CPU, with a \"name\"",
                             .build = "abc",
                             .data = "d",
                             .manifest = "a=1 b=2",
                             .series = "{\"train_loss\":[[64,4.5],[128,4.25]]}"};
    for (int i = 0; i < ENG_TM_COUNT; i++) record.metrics[i] = i + 0.1;
    record.metrics[ENG_TM_SUPPRESSED_LOSS] = NAN;
    return record;
}

static const char *const g_one = "0123456789abcdef0123456789abcdef";
static const char *const g_two = "1123456789abcdef0123456789abcdef";

static int fresh(void **state)
{
    (void)state;
    snprintf(g_path, sizeof g_path, "test_ledger.%d.csv", (int)getpid());
    unlink(g_path);
    return 0;
}

static int done(void **state)
{
    (void)state;
    eng_file_fail_after(-1);
    unlink(g_path);
    return 0;
}

static void test_round_trip(void **state)
{
    (void)state;
    EngTrainLedger ledger;
    EngErr err = {0};
    assert_int_equal(eng_train_ledger_open(g_path, &ledger, &err), ENG_OK);
    assert_int_equal(ledger.n, 0);
    EngTrainRecord one = record_of(g_one), two = record_of(g_two);
    two.outcome = "failed";
    two.reason = "loss is nan at step 7,\nsaid \"it\"";
    assert_int_equal(eng_train_ledger_append(&ledger, &one, &err), ENG_OK);
    assert_int_equal(eng_train_ledger_append(&ledger, &two, &err), ENG_OK);
    one.axes = "another";
    assert_int_equal(eng_train_ledger_append(&ledger, &one, &err), ENG_OK); /* is there: stays */
    eng_train_ledger_close(&ledger);
    assert_int_equal(eng_train_ledger_open(g_path, &ledger, &err), ENG_OK);
    assert_int_equal(ledger.n, 2);
    const EngTrainRecord *got = eng_train_ledger_find(&ledger, g_one);
    assert_string_equal(got->axes, "rho=0.8 seed=1");
    assert_string_equal(got->machine, "A CPU, with a \"name\"");
    assert_string_equal(got->series, record_of(g_one).series);
    assert_true(got->metrics[ENG_TM_LOSS] == 0.1);
    assert_true(isnan(got->metrics[ENG_TM_SUPPRESSED_LOSS]));
    assert_string_equal(eng_train_ledger_find(&ledger, g_two)->reason, two.reason);
    assert_null(eng_train_ledger_find(&ledger, "no"));
    eng_train_ledger_close(&ledger);
}

/* A full disk at any byte leaves the old file. */
static void test_full_disk(void **state)
{
    (void)state;
    EngTrainLedger ledger;
    EngErr err = {0};
    EngTrainRecord one = record_of(g_one), two = record_of(g_two);
    assert_int_equal(eng_train_ledger_open(g_path, &ledger, &err), ENG_OK);
    assert_int_equal(eng_train_ledger_append(&ledger, &one, &err), ENG_OK);
    for (int64_t bytes = 0; bytes < 1600; bytes += 200) {
        eng_file_fail_after(bytes);
        EngStatus status = eng_train_ledger_append(&ledger, &two, &err);
        eng_file_fail_after(-1);
        if (!status) break;
        assert_int_equal(status, ENG_IO);
        assert_true(bytes < 1400);
        eng_train_ledger_close(&ledger);
        assert_int_equal(eng_train_ledger_open(g_path, &ledger, &err), ENG_OK);
        assert_int_equal(ledger.n, 1);
    }
    assert_int_equal(ledger.n, 2);
    eng_train_ledger_close(&ledger);
}

static void test_no_memory(void **state)
{
    (void)state;
    EngTrainLedger ledger;
    EngErr err = {0};
    EngTrainRecord one = record_of(g_one);
    assert_int_equal(eng_train_ledger_open(g_path, &ledger, &err), ENG_OK);
    uint64_t live = eng_mem_live_blocks(), n = 1;
    for (EngStatus status = ENG_NO_MEMORY; status; n++) {
        eng_mem_fail_at(n);
        status = eng_train_ledger_append(&ledger, &one, &err);
        eng_mem_fail_at(0);
        if (!status) break;
        assert_int_equal(status, ENG_NO_MEMORY);
        assert_int_equal(eng_mem_live_blocks(), live);
    }
    assert_true(n > 3);
    eng_train_ledger_close(&ledger);
}

static void damaged(const char *text, const char *want)
{
    EngTrainLedger ledger;
    EngErr err = {0};
    assert_int_equal(eng_file_write(g_path, text, strlen(text), &err), ENG_OK);
    assert_int_equal(eng_train_ledger_open(g_path, &ledger, &err), ENG_BAD_DATA);
    if (!strstr(err.text, want)) fail_msg("'%s' lacks '%s'", err.text, want);
}

static void test_damage_is_named(void **state)
{
    (void)state;
    EngTrainLedger ledger;
    EngErr err = {0};
    char *text;
    size_t n;
    EngTrainRecord one = record_of(g_one);
    assert_int_equal(eng_train_ledger_open(g_path, &ledger, &err), ENG_OK);
    assert_int_equal(eng_train_ledger_append(&ledger, &one, &err), ENG_OK);
    eng_train_ledger_close(&ledger);
    assert_int_equal(eng_file_read(g_path, &text, &n, &err), ENG_OK);
    text[n - 10] = 0;
    damaged(text, ".csv:2: column 30 (series)");
    text[n - 60] = 0;
    damaged(text, ".csv:2: column");
    damaged("key,axis\n", "column 2 is 'axis', expected 'axes'");
    eng_free(text);
}

/* The file with one record and then another written behind it by hand. */
static void two_rows(EngTrainRecord *one, EngTrainRecord *two, char *text, size_t size)
{
    char *parts[2];
    EngErr err = {0};
    EngTrainRecord *records[] = {one, two};
    for (int i = 0; i < 2; i++) {
        EngTrainLedger ledger;
        unlink(g_path);
        assert_int_equal(eng_train_ledger_open(g_path, &ledger, &err), ENG_OK);
        assert_int_equal(eng_train_ledger_append(&ledger, records[i], &err), ENG_OK);
        eng_train_ledger_close(&ledger);
        assert_int_equal(eng_file_read(g_path, &parts[i], NULL, &err), ENG_OK);
    }
    snprintf(text, size, "%s%s", parts[0], strchr(parts[1], '\n') + 1);
    eng_free(parts[0]);
    eng_free(parts[1]);
}

/* What two machines found of one key is one run only when it is the same. */
static void test_second_result_of_a_key(void **state)
{
    (void)state;
    char text[8192];
    EngTrainLedger ledger;
    EngErr err = {0};
    EngTrainRecord one = record_of(g_one), two = record_of(g_one);
    two.machine = "another";
    two_rows(&one, &two, text, sizeof text);
    assert_int_equal(eng_file_write(g_path, text, strlen(text), &err), ENG_OK);
    assert_int_equal(eng_train_ledger_open(g_path, &ledger, &err), ENG_OK);
    assert_int_equal(ledger.n, 1);
    eng_train_ledger_close(&ledger);
    two.metrics[ENG_TM_LOSS] += 1e-6;
    two_rows(&one, &two, text, sizeof text);
    damaged(text, ".csv:3: run 01234567 (rho=0.8 seed=1) is there already with another result");
}

static void test_impossible_outcomes(void **state)
{
    (void)state;
    char text[8192];
    EngTrainRecord one = record_of(g_one), two = record_of(g_two);
    two.outcome = "likeness";
    two.metrics[ENG_TM_LOSS] = NAN;
    two_rows(&one, &two, text, sizeof text);
    char *outcome = strstr(text, "likeness");
    memcpy(outcome, "mesured!", 8);
    damaged(text, ".csv:3: outcome 'mesured!' is not measured, failed or likeness");
    memcpy(outcome, "measured", 8);
    damaged(text, ".csv:3: a measured run without a loss");
}

/* A spreadsheet's line ends change nothing. */
static void test_line_ends(void **state)
{
    (void)state;
    char text[8192], crlf[8192];
    EngTrainLedger ledger;
    EngErr err = {0};
    EngTrainRecord one = record_of(g_one), two = record_of(g_two);
    two_rows(&one, &two, text, sizeof text);
    size_t n = 0;
    for (const char *p = text; *p; p++) {
        if (*p == '\n') crlf[n++] = '\r';
        crlf[n++] = *p;
    }
    assert_int_equal(eng_file_write(g_path, crlf, n, &err), ENG_OK);
    if (eng_train_ledger_open(g_path, &ledger, &err)) fail_msg("%s", err.text);
    assert_int_equal(ledger.n, 2);
    assert_string_equal(ledger.records[1].series, two.series);
    eng_train_ledger_close(&ledger);
}

/* What the file would refuse when it is read again is refused before it is written. */
static void test_impossible_results(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"{\"metrics\":{},\"outcome\":\"weird\",\"reason\":\"\",\"series\":{}}",
         ".csv: outcome 'weird' is not measured, failed or likeness"},
        {"{\"metrics\":{},\"outcome\":\"measured\",\"reason\":\"\",\"series\":{}}",
         ".csv: a measured run without a loss"},
        {"{\"metrics\":{},\"outcome\":\"measured\"}", ".csv: no result of a training run"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        EngErr err = {0};
        EngTrainRecord record = record_of(g_one);
        EngArena *arena = eng_arena_create();
        assert_int_equal(eng_file_write(g_path, cases[i].text, strlen(cases[i].text), &err),
                         ENG_OK);
        assert_int_equal(eng_train_result_read(g_path, arena, &record, &err), ENG_BAD_DATA);
        if (!strstr(err.text, cases[i].why)) fail_msg("%s", err.text);
        eng_arena_destroy(arena);
    }
}

/* Processes that append at once: every row is there, whole. */
static void test_two_processes(void **state)
{
    (void)state;
    enum { PROCESSES = 4, EACH = 12 };
    EngErr err = {0};
    for (int p = 0; p < PROCESSES; p++) {
        if (fork()) continue;
        EngTrainLedger ledger;
        EngStatus status = eng_train_ledger_open(g_path, &ledger, &err);
        for (int i = 0; i < EACH && !status; i++) {
            char key[ENG_KEY_HEX];
            snprintf(key, sizeof key, "%016x%016x", p, i);
            EngTrainRecord record = record_of(key);
            status = eng_train_ledger_append(&ledger, &record, &err);
        }
        _exit(status != ENG_OK);
    }
    for (int p = 0; p < PROCESSES; p++) {
        int how;
        assert_true(wait(&how) > 0);
        assert_int_equal(how, 0);
    }
    EngTrainLedger ledger;
    assert_int_equal(eng_train_ledger_open(g_path, &ledger, &err), ENG_OK);
    assert_int_equal(ledger.n, PROCESSES * EACH);
    eng_train_ledger_close(&ledger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, fresh, done),
        cmocka_unit_test_setup_teardown(test_full_disk, fresh, done),
        cmocka_unit_test_setup_teardown(test_no_memory, fresh, done),
        cmocka_unit_test_setup_teardown(test_damage_is_named, fresh, done),
        cmocka_unit_test_setup_teardown(test_second_result_of_a_key, fresh, done),
        cmocka_unit_test_setup_teardown(test_impossible_outcomes, fresh, done),
        cmocka_unit_test_setup_teardown(test_line_ends, fresh, done),
        cmocka_unit_test_setup_teardown(test_impossible_results, fresh, done),
        cmocka_unit_test_setup_teardown(test_two_processes, fresh, done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
