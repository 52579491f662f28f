/* ATTACH and the table made from it; see traces.h. */
#include "reports/traces.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/log.h"

#define MOST 8 /* SQLite attaches ten at most */

/* The columns of one file. The domain's name is in a row of its own (type 75). */
static const char columns[] =
    "SELECT %Q AS point_key, e.globalTid & 0xffffff AS thread,\n"
    "    coalesce((SELECT s.value FROM trace_%d.ThreadNames t JOIN trace_%d.StringIds s ON s.id ="
    " t.nameId WHERE t.globalTid = e.globalTid), 'thread ' || (e.globalTid & 0xffffff)) AS"
    " thread_name,\n"
    "    iif(e.eventType = 34, 'mark', 'range') AS kind,\n"
    "    coalesce((SELECT s.value FROM trace_%d.StringIds s WHERE s.id = e.textId), e.text) AS"
    " name,\n"
    "    e.start AS start_ns, iif(e.eventType = 34, e.start, e.end) AS end_ns,\n"
    "    nullif(e.jsonText ->> '$.step', -1) AS step, nullif(e.jsonText ->> '$.layer', -1) AS"
    " layer,\n"
    "    nullif(e.jsonText ->> '$.tokens', -1) AS tokens, nullif(e.jsonText ->> '$.bytes', -1) AS"
    " bytes,\n"
    "    e.doubleValue AS value\n"
    "FROM trace_%d.NVTX_EVENTS e\n"
    "WHERE e.eventType IN (34, 59, 60, 70, 71) AND (e.eventType = 34 OR e.end IS NOT NULL)\n"
    "    AND e.domainId IN (SELECT d.domainId FROM trace_%d.NVTX_EVENTS d JOIN trace_%d.StringIds"
    " s ON s.id = d.textId WHERE d.eventType = 75 AND s.value = 'engram')";

static const char no_rows[] =
    "SELECT NULL AS point_key, NULL AS thread, NULL AS thread_name, NULL AS kind, NULL AS name,"
    " NULL AS start_ns, NULL AS end_ns, NULL AS step, NULL AS layer, NULL AS tokens, NULL AS"
    " bytes, NULL AS value WHERE 0";

static EngStatus add(EngStr *out, char *text, EngErr *err)
{
    if (!text) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for traces");
    eng_str_add(out, text);
    sqlite3_free(text);
    return eng_str_status(out, err);
}

static bool run(sqlite3 *db, const char *sql)
{
    return sql && sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

/* Attaches one file as trace_<n>; false: it is no trace, nothing is attached. */
static bool attach(sqlite3 *db, const char *path, int n)
{
    char *try = sqlite3_mprintf("ATTACH %Q AS trace_%d", path, n);
    char *probe = sqlite3_mprintf(
        "SELECT e.start, e.end, e.eventType, e.globalTid, e.textId, e.text, e.domainId, e.jsonText,"
        " e.doubleValue, s.value, t.nameId FROM trace_%d.NVTX_EVENTS e, trace_%d.StringIds s,"
        " trace_%d.ThreadNames t LIMIT 1",
        n, n, n);
    bool attached = run(db, try), good = attached && run(db, probe);
    if (attached && !good) {
        char *detach = sqlite3_mprintf("DETACH trace_%d", n);
        run(db, detach);
        sqlite3_free(detach);
    }
    sqlite3_free(try);
    sqlite3_free(probe);
    return good;
}

/* Why the file is not the one that was recorded, NULL: it is. Paths of merged databases start at
 * the other database's folder, where a file of another run may lie. */
static const char *refuse(const char *path, const char *sha256)
{
    EngMapping map;
    EngErr err;
    char hex[ENG_DIGEST_HEX];
    if (!eng_file_exists(path))
        return "not there (after a merge: copy it from the other database's folder)";
    if (eng_file_map(path, &map, &err)) return "cannot be read";
    EngStatus status = eng_digest(map.data ? map.data : "", map.bytes, hex, &err);
    eng_file_unmap(&map);
    return !status && sha256 && !strcmp(hex, sha256) ? NULL : "not the file that was recorded";
}

static EngStatus take(sqlite3 *db, const char *folder, sqlite3_stmt *row, EngStr *attached,
                      EngStr *parts, int *n, EngErr *err)
{
    const char *key = (const char *)sqlite3_column_text(row, 0);
    const char *path = (const char *)sqlite3_column_text(row, 1);
    char whole[4096];
    int k = *n + 1;
    if (!key || !path) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for traces");
    snprintf(whole, sizeof whole, "%s%s", *path == '/' ? "" : folder, path);
    const char *why = refuse(whole, (const char *)sqlite3_column_text(row, 2));
    if (!why && !attach(db, whole, k)) why = "no trace";
    if (why) {
        eng_warn("report", "%s: %s; its figures are left out", whole, why);
        return ENG_OK;
    }
    *n = k;
    EngStatus status = add(attached, sqlite3_mprintf("ATTACH %Q AS trace_%d;\n", whole, k), err);
    if (status) return status;
    return add(parts,
               sqlite3_mprintf(k > 1 ? "\nUNION ALL\n%z" : "%z",
                               sqlite3_mprintf(columns, key, k, k, k, k, k, k)),
               err);
}

static EngStatus take_all(sqlite3 *db, const char *db_path, const char *run_id, EngStr *attached,
                          EngStr *parts, int *n, EngErr *err)
{
    static const char sql[] =
        "SELECT a.point_key, a.path, a.sha256 FROM artifacts a JOIN run_points l USING (block_id, "
        "point_key)"
        " WHERE l.run_id = ? AND a.kind = 'trace' ORDER BY a.point_key LIMIT ?";
    sqlite3_stmt *row = NULL;
    const char *slash = strrchr(db_path, '/');
    char folder[4096];
    EngStatus status = ENG_OK;
    int rc = sqlite3_prepare_v2(db, sql, -1, &row, NULL);
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - db_path) + 1 : 0, db_path);
    if (!rc) {
        sqlite3_bind_text(row, 1, run_id, -1, SQLITE_STATIC);
        sqlite3_bind_int(row, 2, MOST + 1);
        for (int i = 0; !status && (rc = sqlite3_step(row)) == SQLITE_ROW && i < MOST; i++)
            status = take(db, folder, row, attached, parts, n, err);
    }
    if (!status && rc == SQLITE_ROW)
        eng_warn("report", "more than %d traces: the first %d are drawn", MOST, MOST);
    else if (!status && rc != SQLITE_DONE)
        status = ENG_FAIL(err, ENG_DB, "%s: %s", db_path, sqlite3_errmsg(db));
    sqlite3_finalize(row);
    return status;
}

EngStatus eng_traces_attach(sqlite3 *db, const char *db_path, const char *run_id, EngStr *sql,
                            EngErr *err)
{
    EngStr parts = {0}, create = {0};
    int n = 0;
    EngStatus status = take_all(db, db_path, run_id, sql, &parts, &n, err);
    eng_str_printf(&create, "CREATE TEMP TABLE trace_events AS\n%s;\n",
                   parts.text ? parts.text : no_rows);
    if (!status) status = eng_str_status(&create, err);
    if (!status && !run(db, create.text))
        status = ENG_FAIL(err, ENG_DB, "%s: %s", db_path, sqlite3_errmsg(db));
    if (!status && n) eng_str_add(sql, create.text);
    if (!status) status = eng_str_status(sql, err);
    eng_str_free(&parts);
    eng_str_free(&create);
    return status;
}
