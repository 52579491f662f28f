/* Between the db_*.c files: statements, errors and the shape of EngDb. */
#ifndef ENG_BENCH_DB_SQL_H
#define ENG_BENCH_DB_SQL_H

#include "bench/core/db.h"

/* As in <sqlite3.h>, which the db_*.c files include. */
typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;

#define ENG_DB_CACHED 256 /* more than there are texts */

struct EngDb {
    sqlite3 *sql;
    char *path;
    EngDbMode mode;
    int version; /* below ENG_DB_VERSION when reading an older one: later tables are not there */
    int lock_fd; /* -1: none */
    /* Prepared statements by the address of their text, which is a literal of ours. */
    const char *texts[ENG_DB_CACHED];
    sqlite3_stmt *statements[ENG_DB_CACHED];
    int n_statements;
};

/* Status and text for an SQLite result code; `doing` says what was tried ("write a sample"). */
EngStatus eng_db_fail(EngDb *db, int rc, const char *doing, EngErr *err);

/* Binds and gives a statement ready to step. `types` has one letter per argument: s text (NULL:
 * null), i int64_t, d double (NAN: null). `sql` must be a literal. The statement belongs to the
 * cache; do not use one text in two loops at once. */
EngStatus eng_db_query(EngDb *db, sqlite3_stmt **statement, EngErr *err, const char *sql,
                       const char *types, ...);
/* One row further; *row false at the end, when the statement is reset. */
EngStatus eng_db_step(EngDb *db, sqlite3_stmt *statement, bool *row, EngErr *err);
/* A statement that gives no rows. */
EngStatus eng_db_exec(EngDb *db, EngErr *err, const char *sql, const char *types, ...);
/* The first column of the first row, 0 without one. */
EngStatus eng_db_number(EngDb *db, int64_t *number, EngErr *err, const char *sql, const char *types,
                        ...);

/* Says in the run lock, if db holds it, which run it is for: eng_db_run_is_alive. */
void eng_db_lock_name(EngDb *db, const char *run_id);

/* Runs one of the .sql files of this folder. */
EngStatus eng_db_run_embedded(EngDb *db, const char *file, EngErr *err);

/* A text column copied into an arena ("" for NULL); NULL: out of memory. */
const char *eng_db_text(EngArena *arena, sqlite3_stmt *statement, int column);
/* An outcome column; ENG_OUTCOME_NONE for NULL. */
EngOutcome eng_db_outcome(sqlite3_stmt *statement, int column);

/* Begins unless a transaction is open; *own says whether eng_db_end must end it. */
EngStatus eng_db_own(EngDb *db, bool *own, EngErr *err);
/* Commits (status ENG_OK) or rolls back an own transaction; gives the status on. */
EngStatus eng_db_end(EngDb *db, bool own, EngStatus status, EngErr *err);

#endif
