/* Verdicts into the database, and ends of points out of it; see db_verdicts.h. */
#include "bench/core/db_verdicts.h"

#include <sqlite3.h>
#include <math.h>

#include "bench/core/db_sql.h"

static EngStatus put_verdict(EngDb *db, const EngVerdictRules *rules, const EngVerdictRow *row,
                             int n_compared, EngErr *err)
{
    const EngEffect *e = row->effect;
    const EngVerdict *v = row->verdict;
    return eng_db_exec(
        db, err,
        "INSERT OR REPLACE INTO verdicts (run_id, base_run_id, point_key, base_point_key, kind,"
        " verdict, ratio, ratio_lo, ratio_hi, p, p_corrected, n_compared, control_ratio, floor,"
        " threshold, band, alpha, resolution_ns, base_ns, new_ns, n_pairs, n_segments, reason)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        "ssssssdddddiddddddddiis", row->run_id, row->base_run_id, row->point_key,
        row->base_point_key, row->kind, eng_verdict_name(v->word), e->ratio.ratio, e->ratio.lo,
        e->ratio.hi, e->ratio.p, v->p_corrected, (int64_t)n_compared, e->control.ratio, v->floor,
        rules->threshold, rules->band, rules->alpha, rules->resolution_ns, e->old_ns, e->new_ns,
        (int64_t)e->ratio.n_pairs, (int64_t)e->ratio.n_segments, v->reason);
}

EngStatus eng_db_put_verdicts(EngDb *db, const EngVerdictRules *rules, const EngVerdictRow *rows,
                              int n, EngErr *err)
{
    bool own;
    EngStatus status = eng_db_own(db, &own, err);
    if (status) return status;
    for (int i = 0; i < n && !status; i++) status = put_verdict(db, rules, &rows[i], n, err);
    return eng_db_end(db, own, status, err);
}

EngStatus eng_db_point_end(EngDb *db, const char *run_id, const char *point_key, EngArena *arena,
                           EngPointEnd *end, EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    *end = (EngPointEnd){.reason = "", .stop_reason = ""};
    EngStatus status = eng_db_query(db, &statement, err,
                                    "SELECT b.outcome, b.reason, b.stop_reason FROM run_points l"
                                    " JOIN block_points b USING (block_id, point_key)"
                                    " WHERE l.run_id = ? AND l.point_key = ?",
                                    "ss", run_id, point_key);
    if (!status) status = eng_db_step(db, statement, &row, err);
    if (status) return status;
    if (!row)
        return ENG_FAIL(err, ENG_NOT_FOUND, "%s: run %.8s has no point %s", eng_db_path(db), run_id,
                        point_key);
    end->outcome = eng_db_outcome(statement, 0);
    end->reason = eng_db_text(arena, statement, 1);
    end->stop_reason = eng_db_text(arena, statement, 2);
    sqlite3_reset(statement);
    if (end->reason && end->stop_reason) return ENG_OK;
    return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", eng_db_path(db));
}

EngStatus eng_db_whole_segments(EngDb *db, const char *block_id, int pairs, int *segments,
                                EngErr *err)
{
    int64_t n = 0;
    EngStatus status = eng_db_number(
        db, &n, err,
        "SELECT count(*) FROM (SELECT 1 FROM samples WHERE block_id = ?1 GROUP BY segment"
        " HAVING count(*) >= ?2 * (SELECT count(*) FROM block_points WHERE block_id = ?1))",
        "si", block_id, (int64_t)pairs);
    *segments = (int)n;
    return status;
}
