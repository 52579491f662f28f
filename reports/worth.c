/* Expectation and worth as SQL functions; see worth.h. */
#include "reports/worth.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>

#include "base/mem.h"
#include "bench/core/amdahl.h"
#include "bench/core/db_expectation.h"

typedef struct Worth {
    EngArena *arena;
    const char *path, *run_id, *machine_id;
    EngDb *db;           /* NULL until a query asks */
    EngRateTable *rates; /* the same */
} Worth;

static void worth_free(void *opaque)
{
    Worth *worth = opaque;
    eng_db_close(worth->db);
    eng_arena_destroy(worth->arena);
    eng_free(worth);
}

static EngStatus open_own(Worth *worth, EngErr *err)
{
    return worth->db ? ENG_OK : eng_db_open(worth->path, ENG_DB_READ, &worth->db, err);
}

static void fail(sqlite3_context *context, EngStatus status, const EngErr *err)
{
    if (status == ENG_NO_MEMORY)
        sqlite3_result_error_nomem(context);
    else
        sqlite3_result_error(context, err->text, -1);
}

static double number_or_nan(sqlite3_stmt *stmt, int column)
{
    return sqlite3_column_type(stmt, column) == SQLITE_NULL ? NAN
                                                            : sqlite3_column_double(stmt, column);
}

/* The point's medians, from the page's own v_summary. */
static EngStatus read_facts(sqlite3 *sql, const char *key, EngPointFacts *facts, EngErr *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(sql,
                                "SELECT metric, median, percent_of_roof, axes_json FROM v_summary"
                                " WHERE point_key = ? AND backend = 'cpu' AND metric IS NOT NULL",
                                -1, &stmt, NULL);
    *facts = eng_no_facts;
    if (!rc) rc = sqlite3_bind_text(stmt, 1, key, -1, SQLITE_STATIC);
    while (!rc && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *metric = (const char *)sqlite3_column_text(stmt, 0);
        const char *axes = (const char *)sqlite3_column_text(stmt, 3);
        eng_point_facts_add(facts, metric, number_or_nan(stmt, 1), number_or_nan(stmt, 2));
        if (axes) facts->threads = eng_threads_of(axes);
        rc = SQLITE_OK;
    }
    sqlite3_finalize(stmt);
    if (rc == SQLITE_DONE) return ENG_OK;
    return ENG_FAIL(err, rc == SQLITE_NOMEM ? ENG_NO_MEMORY : ENG_BAD_DATA, "%s",
                    sqlite3_errmsg(sql));
}

/* Of the point that the first argument names; false: NULL or an error is the result already. */
static bool expect(sqlite3_context *context, sqlite3_value **arguments, EngExpectation *expected)
{
    Worth *worth = sqlite3_user_data(context);
    const char *key = (const char *)sqlite3_value_text(arguments[0]);
    EngPointFacts facts = eng_no_facts;
    EngErr err = {0};
    EngStatus status =
        key ? read_facts(sqlite3_context_db_handle(context), key, &facts, &err) : ENG_OK;
    if (!status && isnan(facts.cpu_us) && isnan(facts.wall_us)) return false;
    if (!status) status = open_own(worth, &err);
    if (!status && !worth->rates)
        status = eng_db_rates(worth->db, worth->machine_id, worth->arena, &worth->rates, &err);
    if (!status)
        status =
            eng_db_roof_moved_bytes(worth->db, worth->run_id, key, &facts.roof_moved_bytes, &err);
    if (status)
        fail(context, status, &err);
    else
        eng_expect_point(worth->rates, worth->run_id, &facts, expected);
    return !status && expected->term;
}

static void expected_us(sqlite3_context *context, int n, sqlite3_value **arguments)
{
    EngExpectation expected;
    (void)n;
    if (expect(context, arguments, &expected))
        sqlite3_result_double(context, expected.expected_ns * 1e-3);
}

static void expected_why(sqlite3_context *context, int n, sqlite3_value **arguments)
{
    EngExpectation expected;
    (void)n;
    if (expect(context, arguments, &expected))
        sqlite3_result_text(context, expected.why, -1, SQLITE_TRANSIENT);
}

static void chain_worth(sqlite3_context *context, int n, sqlite3_value **arguments)
{
    Worth *worth = sqlite3_user_data(context);
    const char *stage = (const char *)sqlite3_value_text(arguments[0]);
    const char *preset = (const char *)sqlite3_value_text(arguments[1]);
    double ratio = sqlite3_value_double(arguments[4]);
    EngAmdahl amdahl;
    EngErr err = {0};
    (void)n;
    if (!stage || !preset || !(ratio > 0)) return; /* NULL */
    EngStatus status = open_own(worth, &err);
    if (!status)
        status = eng_amdahl_find(worth->db, worth->machine_id, stage, preset,
                                 sqlite3_value_int64(arguments[2]),
                                 sqlite3_value_int64(arguments[3]), &amdahl, &err);
    if (status) {
        fail(context, status, &err);
        return;
    }
    if (!amdahl.found) return;
    /* The share was measured with the kernel: what the reference in its place would cost. */
    double gain = 1 / (1 + eng_amdahl_gain(amdahl.share, 1 / ratio)) - 1;
    char text[48];
    snprintf(text, sizeof text, fabs(gain) < 1 ? "%+.2g %%%s" : "%+.0f %%%s", 100 * gain,
             isnan(amdahl.floor)         ? " (noise unknown)"
             : fabs(gain) > amdahl.floor ? ""
                                         : " (nd)");
    sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
}

static EngStatus machine_of(sqlite3 *sql, Worth *worth, EngErr *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc =
        sqlite3_prepare_v2(sql, "SELECT machine_id FROM runs WHERE run_id = ?", -1, &stmt, NULL);
    if (!rc) rc = sqlite3_bind_text(stmt, 1, worth->run_id, -1, SQLITE_STATIC);
    if (!rc && sqlite3_step(stmt) == SQLITE_ROW)
        worth->machine_id =
            eng_arena_strdup(worth->arena, (const char *)sqlite3_column_text(stmt, 0));
    sqlite3_finalize(stmt);
    return worth->machine_id ? ENG_OK
                             : ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", worth->path);
}

EngStatus eng_worth_register(sqlite3 *sql, const char *path, const char *run_id, EngErr *err)
{
    Worth *worth = eng_alloc(sizeof *worth);
    if (!worth) return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", path);
    *worth = (Worth){.arena = eng_arena_create()};
    if (worth->arena) {
        worth->path = eng_arena_strdup(worth->arena, path);
        worth->run_id = eng_arena_strdup(worth->arena, run_id);
    }
    EngStatus status = worth->path && worth->run_id
                           ? machine_of(sql, worth, err)
                           : ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", path);
    if (status) {
        worth_free(worth);
        return status;
    }
    /* The last function's end, which is the connection's, frees what all use. */
    int rc =
        sqlite3_create_function(sql, "expected_us", 1, SQLITE_UTF8, worth, expected_us, NULL, NULL);
    if (!rc)
        rc = sqlite3_create_function(sql, "expected_why", 1, SQLITE_UTF8, worth, expected_why, NULL,
                                     NULL);
    if (rc)
        worth_free(worth);
    else
        rc = sqlite3_create_function_v2(sql, "chain_worth", 5, SQLITE_UTF8, worth, chain_worth,
                                        NULL, NULL, worth_free);
    return rc ? ENG_FAIL(err, rc == SQLITE_NOMEM ? ENG_NO_MEMORY : ENG_BAD_DATA, "%s: %s", path,
                         sqlite3_errmsg(sql))
              : ENG_OK;
}
