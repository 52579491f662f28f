/* Names of runs, and their list; see db_runs.h. */
#include "bench/core/db_runs.h"

#include <sqlite3.h>
#include <string.h>

#include "base/str.h"
#include "bench/core/db_sql.h"

#define LATEST "latest"

/* "latest" and "latest~N"; false: another name. A number that is none gives -1. */
static bool read_latest(const char *name, int64_t *back)
{
    size_t n = strlen(LATEST);
    *back = 0;
    if (!name || !strcmp(name, LATEST)) return true;
    if (strncmp(name, LATEST "~", n + 1)) return false;
    if (!eng_parse_i64(name + n + 1, back) || *back < 0) *back = -1;
    return true;
}

static EngStatus find_latest(EngDb *db, const char *name, int64_t back, char run_id[ENG_KEY_HEX],
                             EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    int64_t n = 0;
    if (back < 0)
        return ENG_FAIL(err, ENG_USAGE, "%s: after " LATEST "~ stands how many runs before it",
                        name);
    EngStatus status = eng_db_query(
        db, &statement, err,
        "SELECT run_id FROM runs ORDER BY started_utc DESC, rowid DESC LIMIT 1 OFFSET ?", "i",
        back);
    if (!status) status = eng_db_step(db, statement, &row, err);
    if (status) return status;
    if (row) {
        sqlite3_snprintf(ENG_KEY_HEX, run_id, "%s", sqlite3_column_text(statement, 0));
        sqlite3_reset(statement);
        return ENG_OK;
    }
    status = eng_db_number(db, &n, err, "SELECT count(*) FROM runs", "");
    if (status) return status;
    if (!n)
        return ENG_FAIL(err, ENG_NOT_FOUND, "%s: no run yet; `engram run` makes one",
                        eng_db_path(db));
    return ENG_FAIL(err, ENG_NOT_FOUND, "%s: no run '%s', there %s %lld", eng_db_path(db), name,
                    n == 1 ? "is" : "are", (long long)n);
}

EngStatus eng_db_run_named(EngDb *db, const char *name, char run_id[ENG_KEY_HEX], EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    int64_t back;
    if (read_latest(name, &back)) return find_latest(db, name, back, run_id, err);
    EngStatus status = eng_db_query(
        db, &statement, err,
        "SELECT run_id, count(*) OVER () FROM runs WHERE substr(run_id, 1, length(?1)) = ?1"
        " AND ?1 <> '' ORDER BY run_id = ?1 DESC LIMIT 1",
        "s", name);
    if (!status) status = eng_db_step(db, statement, &row, err);
    if (status) return status;
    if (!row)
        return ENG_FAIL(err, ENG_NOT_FOUND, "%s: no run '%s'; `engram runs` lists them",
                        eng_db_path(db), name);
    int same = sqlite3_column_int(statement, 1);
    sqlite3_snprintf(ENG_KEY_HEX, run_id, "%s", sqlite3_column_text(statement, 0));
    sqlite3_reset(statement);
    if (same == 1 || !strcmp(run_id, name)) return ENG_OK;
    return ENG_FAIL(err, ENG_USAGE, "%s: %d runs begin with '%s'", eng_db_path(db), same, name);
}

EngStatus eng_db_run_of(EngDb *db, const char *experiment, char run_id[ENG_KEY_HEX], EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    EngStatus status = eng_db_query(
        db, &statement, err,
        "SELECT run_id FROM runs r WHERE EXISTS (SELECT 1 FROM run_points l JOIN points p"
        " USING (point_key) WHERE l.run_id = r.run_id AND p.experiment = ?)"
        " ORDER BY started_utc DESC, rowid DESC LIMIT 1",
        "s", experiment);
    if (!status) status = eng_db_step(db, statement, &row, err);
    if (status) return status;
    if (!row) return eng_db_run_named(db, LATEST, run_id, err);
    sqlite3_snprintf(ENG_KEY_HEX, run_id, "%s", sqlite3_column_text(statement, 0));
    sqlite3_reset(statement);
    return ENG_OK;
}

/* Databases of version 1 have no verdicts. */
#define RUNS(VERDICTS)                                                                             \
    "SELECT run_id, sweep_name, state, started_utc, ended_utc, machine_id, command_json,"          \
    " (SELECT count(*) FROM run_points l JOIN points p USING (point_key)"                          \
    "  WHERE l.run_id = r.run_id AND p.is_roof = 0),"                                              \
    " (SELECT count(*) FROM run_points l JOIN points p USING (point_key)"                          \
    "  JOIN block_points b USING (block_id, point_key)"                                            \
    "  WHERE l.run_id = r.run_id AND p.is_roof = 0 AND b.outcome = 'measured'), " VERDICTS         \
    " FROM runs r ORDER BY started_utc DESC, rowid DESC"

EngStatus eng_db_runs(EngDb *db, EngArena *arena, EngRunRow **rows, int *n_rows, EngErr *err)
{
    static const char with[] = RUNS("(SELECT count(*) FROM verdicts v WHERE v.run_id = r.run_id)");
    static const char without[] = RUNS("0");
    sqlite3_stmt *statement;
    bool row;
    int64_t n = 0;
    *n_rows = 0;
    EngStatus status = eng_db_number(db, &n, err, "SELECT count(*) FROM runs", "");
    if (status) return status;
    *rows = eng_arena_alloc(arena, ((size_t)n + 1) * sizeof **rows);
    status = *rows ? eng_db_query(db, &statement, err, db->version < 2 ? without : with, "")
                   : ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", eng_db_path(db));
    while (!status && !(status = eng_db_step(db, statement, &row, err)) && row && *n_rows < n) {
        const char *texts[7];
        bool all = true;
        for (int i = 0; i < 7; i++) all &= (texts[i] = eng_db_text(arena, statement, i)) != NULL;
        if (!all) {
            sqlite3_reset(statement);
            return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", eng_db_path(db));
        }
        (*rows)[(*n_rows)++] = (EngRunRow){.run_id = texts[0],
                                           .sweep_name = texts[1],
                                           .state = texts[2],
                                           .started_utc = texts[3],
                                           .ended_utc = texts[4],
                                           .machine_id = texts[5],
                                           .command_json = texts[6],
                                           .points = sqlite3_column_int(statement, 7),
                                           .measured = sqlite3_column_int(statement, 8),
                                           .verdicts = sqlite3_column_int(statement, 9)};
    }
    return status;
}
