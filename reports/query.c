/* Reading the results database for a report; see query.h. */
#include "reports/query.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "bench/core/db.h"
#include "bench/core/db_knee.h"
#include "bench/core/db_recording.h"
#include "reports/printf.h"
#include "reports/study.h"
#include "reports/traces.h"
#include "reports/worth.h"
#include "bench/core/db_runs.h"

struct EngReportDb {
    EngDb *db;
    sqlite3 *sql;   /* db's handle */
    sqlite3 *plain; /* what sqlite3 alone sees: traces and nothing else of ours; NULL: not asked */
    char run_id[64];
    EngStr traces; /* how trace_events was made, "" without traces */
};

/* ---- results
 * -------------------------------------------------------------------------------------- */

static char *shortest_number(EngArena *arena, double value)
{
    char text[40];
    if (!isfinite(value))
        return eng_arena_strdup(arena, isnan(value) ? "NaN" : value > 0 ? "inf" : "-inf");
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    return eng_arena_strdup(arena, text);
}

/* NULL for a NULL cell; *ok false when memory is short. */
static const char *cell_text(sqlite3_stmt *stmt, int column, EngArena *arena, bool *ok)
{
    char *text = NULL;
    switch (sqlite3_column_type(stmt, column)) {
    case SQLITE_NULL:
        return NULL;
    case SQLITE_FLOAT:
        text = shortest_number(arena, sqlite3_column_double(stmt, column));
        break;
    default: {
        const char *source = (const char *)sqlite3_column_text(stmt, column);
        text = source ? eng_arena_strdup(arena, source) : NULL;
    }
    }
    if (!text) *ok = false;
    return text;
}

static EngStatus sql_failed(EngReportDb *db, const char *label, EngErr *err)
{
    EngStatus status =
        (sqlite3_errcode(db->sql) & 0xff) == SQLITE_NOMEM ? ENG_NO_MEMORY : ENG_BAD_DATA;
    return ENG_FAIL(err, status, "%s: %s", label, sqlite3_errmsg(db->sql));
}

/* Exactly one statement: a second one would silently not run. */
static EngStatus prepare(EngReportDb *db, const char *label, const char *sql, sqlite3_stmt **stmt,
                         EngErr *err)
{
    const char *rest = NULL;
    if (sqlite3_prepare_v2(db->sql, sql, -1, stmt, &rest)) return sql_failed(db, label, err);
    if (!*stmt) return ENG_FAIL(err, ENG_BAD_DATA, "%s: no statement in it", label);
    sqlite3_stmt *second = NULL;
    bool more = sqlite3_prepare_v2(db->sql, rest, -1, &second, NULL) || second;
    sqlite3_finalize(second);
    if (more) return ENG_FAIL(err, ENG_BAD_DATA, "%s: more than one statement", label);
    int run = sqlite3_bind_parameter_index(*stmt, ":run");
    if (run) sqlite3_bind_text(*stmt, run, db->run_id, -1, SQLITE_STATIC);
    if (sqlite3_bind_parameter_count(*stmt) > (run ? 1 : 0))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: a parameter other than :run", label);
    return ENG_OK;
}

static EngStatus no_memory(const char *label, EngErr *err)
{
    return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory for the rows", label);
}

EngStatus eng_reportdb_query(EngReportDb *db, const char *label, const char *sql, EngArena *arena,
                             EngCells *cells, EngErr *err)
{
    sqlite3_stmt *stmt = NULL;
    EngStr pointers = {0}; /* a growing array of const char *, as bytes */
    int rc = SQLITE_ROW;
    bool ok = true;
    *cells = (EngCells){0};
    EngStatus status = prepare(db, label, sql, &stmt, err);
    if (status) goto out;
    cells->n_columns = sqlite3_column_count(stmt);
    cells->names = eng_arena_alloc(arena, sizeof *cells->names * ((size_t)cells->n_columns + 1));
    for (int i = 0; cells->names && i < cells->n_columns; i++) {
        cells->names[i] = eng_arena_strdup(arena, sqlite3_column_name(stmt, i));
        ok = ok && cells->names[i];
    }
    while (ok && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        for (int i = 0; i < cells->n_columns; i++) {
            const char *text = cell_text(stmt, i, arena, &ok);
            eng_str_add_n(&pointers, (const char *)&text, sizeof text);
        }
        cells->n_rows++;
    }
    if (ok && rc != SQLITE_DONE && rc != SQLITE_ROW) {
        status = sql_failed(db, label, err);
        goto out;
    }
    cells->cells = eng_arena_alloc(arena, pointers.n + 1);
    if (!ok || pointers.failed || !cells->names || !cells->cells) {
        status = no_memory(label, err);
        goto out;
    }
    if (pointers.n) memcpy((void *)cells->cells, pointers.text, pointers.n);
out:
    eng_str_free(&pointers);
    sqlite3_finalize(stmt);
    return status;
}

static EngStatus execute(EngReportDb *db, const char *label, const char *sql, EngErr *err)
{
    sqlite3_stmt *stmt = NULL;
    EngStatus status = prepare(db, label, sql, &stmt, err);
    if (!status && sqlite3_step(stmt) != SQLITE_DONE) status = sql_failed(db, label, err);
    sqlite3_finalize(stmt);
    return status;
}

EngStatus eng_reportdb_figure(EngReportDb *db, const char *label, const char *sql, EngArena *arena,
                              EngCells *cells, EngErr *err)
{
    EngStr create = {0};
    eng_str_printf(&create, "CREATE TEMP TABLE figure AS %s", sql);
    EngStatus status = eng_str_status(&create, err);
    if (!status) status = execute(db, label, "DROP TABLE IF EXISTS temp.figure", err);
    if (!status) status = execute(db, label, create.text, err);
    if (!status)
        status = eng_reportdb_query(db, label, "SELECT * FROM temp.figure ORDER BY rowid", arena,
                                    cells, err);
    if (status) goto out;
    for (int i = 0; i < cells->n_columns; i++)
        if (!strcmp(cells->names[i], "point_key")) goto out;
    status = ENG_FAIL(err, ENG_BAD_DATA,
                      "%s: needs a column point_key, which says where a row comes from", label);
out:
    eng_str_free(&create);
    return status;
}

const char *eng_cells_get(const EngCells *cells, int64_t row, const char *column)
{
    for (int i = 0; i < cells->n_columns && row < cells->n_rows; i++)
        if (!strcmp(cells->names[i], column)) return cells->cells[row * cells->n_columns + i];
    return NULL;
}

/* Tabs and line ends would break the columns. */
static EngStatus put_cell(EngWriter *writer, const char *text, EngErr *err)
{
    EngStatus status = ENG_OK;
    while (!status && *text) {
        size_t n = strcspn(text, "\t\r\n");
        if (n) status = eng_writer_put(writer, text, n, err);
        text += n;
        if (!status && *text) status = eng_writer_put(writer, " ", 1, err);
        text += *text != 0;
    }
    return status;
}

EngStatus eng_cells_write(const EngCells *cells, const char *path, EngErr *err)
{
    EngWriter writer;
    EngStatus status = eng_writer_open(&writer, path, err);
    if (status) return status;
    for (int64_t row = -1; row < cells->n_rows; row++)
        for (int i = 0; i < cells->n_columns && !status; i++) {
            const char *text = row < 0 ? cells->names[i] : cells->cells[row * cells->n_columns + i];
            status = put_cell(&writer, text ? text : "NaN", err);
            if (!status)
                status = eng_writer_put(&writer, i + 1 < cells->n_columns ? "\t" : "\n", 1, err);
        }
    if (!status) return eng_writer_commit(&writer, err);
    eng_writer_close(&writer);
    return status;
}

static void csv_cell(EngStr *out, const char *text)
{
    if (!text[strcspn(text, "\",\r\n")]) {
        eng_str_add(out, text);
        return;
    }
    eng_str_add(out, "\"");
    for (; *text; text++) eng_str_add_n(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    eng_str_add(out, "\"");
}

void eng_cells_csv(const EngCells *cells, EngStr *out)
{
    for (int64_t row = -1; row < cells->n_rows; row++)
        for (int i = 0; i < cells->n_columns; i++) {
            const char *text = row < 0 ? cells->names[i] : cells->cells[row * cells->n_columns + i];
            csv_cell(out, text ? text : "");
            eng_str_add(out, i + 1 < cells->n_columns ? "," : "\r\n");
        }
}

/* ---- opening
 * -------------------------------------------------------------------------------------- */

/* Most figures ask v_summary, whose medians cost a pass over all samples: it is worked out once for
 * the run and put in front of the view under the same name, so that the queries stay what plain
 * sqlite3 would run. */
static EngStatus shadow_summary(EngReportDb *db, const char *path, EngErr *err)
{
    EngStatus status = execute(db, path, "PRAGMA temp_store = MEMORY", err);
    if (!status)
        status = execute(
            db, path,
            "CREATE TEMP TABLE v_summary AS SELECT * FROM main.v_summary WHERE run_id = :run", err);
    return status;
}

EngStatus eng_reportdb_open(const char *path, const char *run, const char *experiment,
                            EngReportDb **out, EngErr *err)
{
    bool newest = experiment && (!run || !strcmp(run, "latest"));
    EngReportDb *db = eng_alloc(sizeof *db);
    *out = NULL;
    if (!db) return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", path);
    EngStatus status = eng_db_open(path, ENG_DB_READ, &db->db, err);
    if (!status) db->sql = eng_db_handle(db->db);
    if (!status)
        status = newest ? eng_db_run_of(db->db, experiment, db->run_id, err)
                        : eng_db_run_named(db->db, run, db->run_id, err);
    if (!status) status = shadow_summary(db, path, err);
    if (!status) status = eng_db_make_knee_view(db->db, err);
    if (!status) status = eng_db_make_predictions_view(db->db, err);
    if (!status) status = eng_printf_register(db->sql, path, err);
    if (!status) status = eng_study_register(db->sql, path, err);
    if (!status) status = eng_worth_register(db->sql, path, db->run_id, err);
    if (!status) status = eng_traces_attach(db->sql, path, db->run_id, &db->traces, err);
    if (status)
        eng_reportdb_close(db);
    else
        *out = db;
    return status;
}

void eng_reportdb_close(EngReportDb *db)
{
    if (!db) return;
    sqlite3_close(db->plain);
    eng_db_close(db->db);
    eng_str_free(&db->traces);
    eng_free(db);
}

EngStatus eng_reportdb_folder(EngReportDb *db, const char *folder, EngErr *err)
{
    char path[PATH_MAX], *views = NULL;
    EngStatus status = eng_study_published(db->sql, folder, err);
    if (status) return status;
    snprintf(path, sizeof path, "%s/views.sql", folder);
    status = eng_file_read(path, &views, NULL, err);
    if (status == ENG_NOT_FOUND) return ENG_OK;
    if (!status && sqlite3_exec(db->sql, views, NULL, NULL, NULL))
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: %s", path, sqlite3_errmsg(db->sql));
    eng_free(views);
    return status;
}

const char *eng_reportdb_traces(const EngReportDb *db)
{
    return db->traces.text ? db->traces.text : "";
}

bool eng_reportdb_is_plain(EngReportDb *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    if (!db->plain) {
        const char *path = sqlite3_db_filename(db->sql, "main");
        if (sqlite3_open_v2(path, &db->plain, SQLITE_OPEN_READONLY, NULL)) return false;
        sqlite3_exec(db->plain, "PRAGMA temp_store = MEMORY", NULL, NULL, NULL);
        sqlite3_exec(db->plain, eng_reportdb_traces(db), NULL, NULL, NULL);
    }
    bool ok = !sqlite3_prepare_v2(db->plain, sql, -1, &stmt, NULL);
    sqlite3_finalize(stmt);
    return ok;
}

const char *eng_reportdb_run_id(const EngReportDb *db)
{
    return db->run_id;
}
