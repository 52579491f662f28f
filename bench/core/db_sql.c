/* Statements, transactions and error text of the database; see db_sql.h. */
#include "bench/core/db_sql.h"

#include <sqlite3.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/kill_point.h"

EngStatus eng_db_fail(EngDb *db, int rc, const char *doing, EngErr *err)
{
    const char *why = db->sql ? sqlite3_errmsg(db->sql) : sqlite3_errstr(rc);
    switch (rc & 0xff) {
    case SQLITE_FULL:
        return ENG_FAIL(err, ENG_IO, "%s: disk full, cannot %s", db->path, doing);
    case SQLITE_READONLY:
        return ENG_FAIL(err, ENG_IO, "%s: cannot %s: the file or its folder is read-only", db->path,
                        doing);
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        return ENG_FAIL(err, db->mode == ENG_DB_READ ? ENG_BAD_DATA : ENG_IO, "%s: cannot %s: %s",
                        db->path, doing, why);
    case SQLITE_IOERR:
        return ENG_FAIL(err, ENG_IO, "%s: cannot %s: %s", db->path, doing, why);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return ENG_FAIL(err, ENG_DB, "%s: cannot %s: another program is writing it", db->path,
                        doing);
    case SQLITE_NOTADB:
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: not a database", db->path);
    case SQLITE_CORRUPT:
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: the database is damaged (%s)", db->path, why);
    case SQLITE_NOMEM:
        return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", db->path);
    case SQLITE_CONSTRAINT:
        return ENG_FAIL(err, ENG_INTERNAL, "%s: cannot %s: %s", db->path, doing, why);
    default:
        return ENG_FAIL(err, ENG_DB, "%s: cannot %s: %s", db->path, doing, why);
    }
}

static EngStatus prepare(EngDb *db, const char *sql, sqlite3_stmt **out, EngErr *err)
{
    for (int i = 0; i < db->n_statements; i++)
        if (db->texts[i] == sql) {
            *out = db->statements[i];
            sqlite3_reset(*out);
            return ENG_OK;
        }
    if (db->n_statements == ENG_DB_CACHED)
        return ENG_FAIL(err, ENG_INTERNAL, "more than %d statements", ENG_DB_CACHED);
    int rc = sqlite3_prepare_v3(db->sql, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL);
    if (rc != SQLITE_OK) return eng_db_fail(db, rc, "prepare a statement", err);
    db->texts[db->n_statements] = sql;
    db->statements[db->n_statements++] = *out;
    return ENG_OK;
}

static EngStatus query(EngDb *db, sqlite3_stmt **statement, EngErr *err, const char *sql,
                       const char *types, va_list ap)
{
    EngStatus status = prepare(db, sql, statement, err);
    if (status) return status;
    int rc = SQLITE_OK;
    for (int i = 1; types[i - 1] && rc == SQLITE_OK; i++) {
        if (types[i - 1] == 's') {
            const char *text = va_arg(ap, const char *);
            rc = text ? sqlite3_bind_text(*statement, i, text, -1, SQLITE_TRANSIENT)
                      : sqlite3_bind_null(*statement, i);
        } else if (types[i - 1] == 'i') {
            rc = sqlite3_bind_int64(*statement, i, va_arg(ap, int64_t));
        } else {
            double number = va_arg(ap, double);
            rc = isnan(number) ? sqlite3_bind_null(*statement, i)
                               : sqlite3_bind_double(*statement, i, number);
        }
    }
    return rc == SQLITE_OK ? ENG_OK : eng_db_fail(db, rc, "bind a value", err);
}

EngStatus eng_db_query(EngDb *db, sqlite3_stmt **statement, EngErr *err, const char *sql,
                       const char *types, ...)
{
    va_list ap;
    va_start(ap, types);
    EngStatus status = query(db, statement, err, sql, types, ap);
    va_end(ap);
    return status;
}

/* "INSERT INTO samples ..." -> what a message says was tried. */
static const char *purpose(const char *sql)
{
    return strncmp(sql, "SELECT", 6) && strncmp(sql, "WITH", 4) ? "write results" : "read results";
}

EngStatus eng_db_step(EngDb *db, sqlite3_stmt *statement, bool *row, EngErr *err)
{
    int rc = sqlite3_step(statement);
    *row = rc == SQLITE_ROW;
    if (*row) return ENG_OK;
    EngStatus status =
        rc == SQLITE_DONE ? ENG_OK : eng_db_fail(db, rc, purpose(sqlite3_sql(statement)), err);
    sqlite3_reset(statement);
    return status;
}

EngStatus eng_db_exec(EngDb *db, EngErr *err, const char *sql, const char *types, ...)
{
    sqlite3_stmt *statement;
    bool row;
    va_list ap;
    va_start(ap, types);
    EngStatus status = query(db, &statement, err, sql, types, ap);
    va_end(ap);
    if (!status) status = eng_db_step(db, statement, &row, err);
    return status;
}

EngStatus eng_db_number(EngDb *db, int64_t *number, EngErr *err, const char *sql, const char *types,
                        ...)
{
    sqlite3_stmt *statement;
    bool row;
    va_list ap;
    *number = 0;
    va_start(ap, types);
    EngStatus status = query(db, &statement, err, sql, types, ap);
    va_end(ap);
    if (!status) status = eng_db_step(db, statement, &row, err);
    if (status || !row) return status;
    *number = sqlite3_column_int64(statement, 0);
    sqlite3_reset(statement);
    return ENG_OK;
}

const char *eng_db_text(EngArena *arena, sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement, column);
    return eng_arena_strdup(arena, text ? (const char *)text : "");
}

EngOutcome eng_db_outcome(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    EngOutcome outcome = text ? ENG_OUTCOME_WRONG : ENG_OUTCOME_NONE;
    while (outcome && strcmp(eng_outcome_name(outcome), text)) outcome--;
    return outcome;
}

/* ---- transactions ------------------------------------------------------------------------------
 */

EngStatus eng_db_begin(EngDb *db, EngErr *err)
{
    return eng_db_exec(db, err, "BEGIN IMMEDIATE", "");
}

EngStatus eng_db_commit(EngDb *db, EngErr *err)
{
    /* A full disk rolls back by itself: the calls inside have said so. */
    if (sqlite3_get_autocommit(db->sql))
        return ENG_FAIL(err, ENG_IO, "%s: the transaction was rolled back", db->path);
    eng_kill_point("commit");
    EngStatus status = eng_db_exec(db, err, "COMMIT", "");
    eng_kill_point("commit");
    if (status) eng_db_rollback(db);
    return status;
}

void eng_db_rollback(EngDb *db)
{
    if (!sqlite3_get_autocommit(db->sql)) eng_db_exec(db, NULL, "ROLLBACK", "");
}

EngStatus eng_db_own(EngDb *db, bool *own, EngErr *err)
{
    *own = sqlite3_get_autocommit(db->sql) != 0;
    return *own ? eng_db_begin(db, err) : ENG_OK;
}

EngStatus eng_db_end(EngDb *db, bool own, EngStatus status, EngErr *err)
{
    if (!own) return status;
    if (!status) return eng_db_commit(db, err);
    eng_db_rollback(db);
    return status;
}
