/* See db_costs.h. */
#include "bench/core/db_costs.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/db_sql.h"

#define OVERHEAD                                                                                   \
    "SELECT avg(max(0, (julianday(ended_utc) - julianday(started_utc)) * 86400e9"                  \
    "  - (SELECT coalesce(sum(x.wall_ns), 0) FROM samples x"                                       \
    "     WHERE x.block_id = s.block_id AND x.segment = s.segment))"                               \
    "  / (SELECT count(DISTINCT x.point_key) FROM samples x"                                       \
    "     WHERE x.block_id = s.block_id AND x.segment = s.segment))"                               \
    " FROM (SELECT block_id, segment, started_utc, ended_utc FROM segments"                        \
    "  JOIN blocks b USING (block_id)"                                                             \
    "  WHERE segments.state = 'done' AND (?1 IS NULL OR b.experiment = ?1)"                        \
    "  ORDER BY started_utc DESC LIMIT 24) s"

static EngStatus read_overhead(EngDb *db, const char *experiment, double *ns, EngErr *err)
{
    *ns = ENG_DEFAULT_OVERHEAD_NS;
    for (int any = 0; db && any < 2; any++) {
        sqlite3_stmt *statement;
        bool row;
        EngStatus status =
            eng_db_query(db, &statement, err, OVERHEAD, "s", any ? NULL : experiment);
        if (!status) status = eng_db_step(db, statement, &row, err);
        if (status) return status;
        bool known = row && sqlite3_column_type(statement, 0) != SQLITE_NULL;
        if (known) *ns = sqlite3_column_double(statement, 0);
        sqlite3_reset(statement);
        if (known) break;
    }
    return ENG_OK;
}

EngStatus eng_db_overhead_ns(EngOverheads *overheads, EngDb *db, const char *experiment, double *ns,
                             EngErr *err)
{
    const int room = (int)(sizeof overheads->known / sizeof *overheads->known);
    for (int i = 0; i < overheads->n; i++)
        if (!strcmp(overheads->known[i].experiment, experiment)) {
            *ns = overheads->known[i].ns;
            return ENG_OK;
        }
    EngStatus status = read_overhead(db, experiment, ns, err);
    if (status || overheads->n == room) return status;
    snprintf(overheads->known[overheads->n].experiment, sizeof overheads->known->experiment, "%s",
             experiment);
    overheads->known[overheads->n++].ns = *ns;
    return ENG_OK;
}
