/* See db_knee.h. */
#include "bench/core/db_knee.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/embedded.h"
#include "bench/core/db_sql.h"

extern const EngEmbedded eng_embedded_schema[]; /* the .sql files of this folder */

EngStatus eng_db_make_knee_view(EngDb *db, EngErr *err)
{
    for (const EngEmbedded *file = eng_embedded_schema; file->name; file++) {
        if (strcmp(file->name, "knee.sql")) continue;
        int rc = sqlite3_exec(eng_db_handle(db), file->text, NULL, NULL, NULL);
        return rc == SQLITE_OK ? ENG_OK : eng_db_fail(db, rc, "make the view of the knee", err);
    }
    return ENG_FAIL(err, ENG_INTERNAL, "knee.sql is not compiled in");
}

EngStatus eng_db_cache_knee(EngDb *db, const char *machine_id, EngCacheKnee *knee, EngErr *err)
{
    sqlite3_stmt *s;
    bool row = false;
    EngStatus status = eng_db_make_knee_view(db, err);
    if (!status)
        status = eng_db_query(db, &s, err,
                              "SELECT knee_bytes, near_ns, far_ns, points, pages FROM v_cache_knee "
                              "WHERE machine_id = ? AND knee_bytes IS NOT NULL "
                              "ORDER BY pages = '2m' DESC, pages LIMIT 1",
                              "s", machine_id);
    if (!status) status = eng_db_step(db, s, &row, err);
    if (status) return status;
    if (!row)
        return ENG_FAIL(err, ENG_NOT_FOUND, "%s: no ladder of this machine reaches its memory",
                        eng_db_path(db));
    *knee = (EngCacheKnee){.bytes = sqlite3_column_int64(s, 0),
                           .near_ns = sqlite3_column_double(s, 1),
                           .far_ns = sqlite3_column_double(s, 2),
                           .points = sqlite3_column_int(s, 3)};
    snprintf(knee->pages, sizeof knee->pages, "%s", (const char *)sqlite3_column_text(s, 4));
    return eng_db_step(db, s, &row, err); /* to the end: the statement is free again */
}
