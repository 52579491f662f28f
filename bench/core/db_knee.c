/* See db_knee.h. */
#include "bench/core/db_knee.h"

#include <sqlite3.h>
#include <stdio.h>

#include "bench/core/db_sql.h"

EngStatus eng_db_make_knee_view(EngDb *db, EngErr *err)
{
    return eng_db_run_embedded(db, "knee.sql", err);
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
