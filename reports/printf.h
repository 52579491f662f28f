/* printf of a report's queries. SQLite's own writes NULL as 0, and 0 is what a reader would take
 * for a result; here a number that is not there makes the whole text NULL: an empty cell, which
 * coalesce sees, and a row that group_concat passes over. NULL for %s is still "". */
#ifndef ENG_REPORTS_PRINTF_H
#define ENG_REPORTS_PRINTF_H

#include <engram/status.h>

struct sqlite3;

/* Replaces printf of a connection; format() stays SQLite's. path: for errors. */
EngStatus eng_printf_register(struct sqlite3 *sql, const char *path, EngErr *err);

#endif
