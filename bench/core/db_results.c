/* Samples, residuals, histograms, roofs and drop counts; see db.h. */
#include "bench/core/db_sql.h"

#include <sqlite3.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/kill_point.h"
#include "bench/core/counters.h"

EngStatus eng_db_put_sample(EngDb *db, const EngSampleId *id, int position, bool traced,
                            const EngTiming *timing, const EngExperiment *experiment,
                            const double *values, EngErr *err)
{
    bool own;
    EngStatus status = eng_db_own(db, &own, err);
    if (status) return status;
    status = eng_db_exec(db, err,
                         "INSERT INTO samples (block_id, point_key, segment, pair, position,"
                         " inner_iterations, wall_ns, cpu_ns, traced)"
                         " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                         "ssiiiiiii", id->block_id, id->point_key, (int64_t)id->segment,
                         (int64_t)id->pair, (int64_t)position, timing->inner, timing->wall_ns,
                         timing->cpu_ns, (int64_t)traced);
    eng_kill_point("sample");
    for (int i = 0; !status && values && i < experiment->n_metrics; i++) {
        if (isnan(values[i])) continue;
        status = eng_db_exec(db, err,
                             "INSERT INTO sample_values (block_id, point_key, segment, pair,"
                             " metric, value) VALUES (?, ?, ?, ?, ?, ?)",
                             "ssiisd", id->block_id, id->point_key, (int64_t)id->segment,
                             (int64_t)id->pair, experiment->metrics[i].name, values[i]);
    }
    return eng_db_end(db, own, status, err);
}

EngStatus eng_db_put_counters(EngDb *db, const EngSampleId *id, const double *counters, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (int i = 0; !status && i < ENG_COUNTER_COUNT; i++) {
        if (isnan(counters[i])) continue;
        status =
            eng_db_exec(db, err,
                        "INSERT INTO sample_values (block_id, point_key, segment, pair,"
                        " metric, value) VALUES (?, ?, ?, ?, '" ENG_COUNTER_PREFIX "' || ?, ?)",
                        "ssiisd", id->block_id, id->point_key, (int64_t)id->segment,
                        (int64_t)id->pair, eng_counter_name((EngCounter)i), counters[i]);
    }
    return status;
}

EngStatus eng_db_put_residual(EngDb *db, const EngSampleId *id, const EngResidual *residual,
                              EngErr *err)
{
    return eng_db_exec(db, err,
                       "INSERT OR REPLACE INTO residuals (block_id, point_key, segment, measure,"
                       " max_abs, max_rel, limit_value, n_checked, n_outputs, n_nonfinite, pass,"
                       " note) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                       "ssisdddiiiis", id->block_id, id->point_key, (int64_t)id->segment,
                       residual->of ? residual->of : "exact", residual->max_abs, residual->max_rel,
                       residual->limit, residual->n_checked, residual->n_outputs,
                       residual->n_nonfinite, (int64_t)residual->pass, residual->note);
}

EngStatus eng_db_put_histogram(EngDb *db, const EngSampleId *id, const char *name, int layer,
                               int stream, const char *scale, double lo, double hi,
                               const int64_t *counts, int n_bins, EngErr *err)
{
    EngStr json = {0};
    for (int i = 0; i < n_bins; i++)
        eng_str_printf(&json, "%s%lld", i ? "," : "[", (long long)counts[i]);
    eng_str_add(&json, n_bins ? "]" : "[]");
    EngStatus status = eng_str_status(&json, err);
    if (!status)
        status = eng_db_exec(db, err,
                             "INSERT OR REPLACE INTO histograms (block_id, point_key, segment,"
                             " pair, name, layer, stream, scale, lo, hi, counts_json)"
                             " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                             "ssiisiisdds", id->block_id, id->point_key, (int64_t)id->segment,
                             (int64_t)id->pair, name, (int64_t)layer, (int64_t)stream, scale, lo,
                             hi, json.text);
    eng_str_free(&json);
    return status;
}

EngStatus eng_db_put_roof(EngDb *db, const char *block_id, const char *roof_point_key,
                          const char *clock, const char *tuned_json, EngErr *err)
{
    /* One roof a shape and backend: another of the same axes but the variant makes way. */
    static const char clear[] =
        "DELETE FROM roofs WHERE block_id = ?1 AND roof_point_key IN (SELECT o.point_key"
        " FROM points o JOIN points p ON p.point_key = ?2"
        " WHERE o.backend = p.backend"
        " AND json_remove(o.axes_json, '$.variant') = json_remove(p.axes_json, '$.variant')"
        " AND o.point_key IN (SELECT roof_point_key FROM roofs WHERE block_id = ?1))";
    bool own;
    EngStatus status = eng_db_own(db, &own, err);
    if (status) return status;
    status = eng_db_exec(db, err, clear, "ss", block_id, roof_point_key);
    if (!status)
        status = eng_db_exec(db, err,
                             "INSERT INTO roofs (block_id, roof_point_key, clock, tuned_json)"
                             " VALUES (?, ?, ?, ?)",
                             "ssss", block_id, roof_point_key, clock, tuned_json);
    return eng_db_end(db, own, status, err);
}

EngStatus eng_db_put_artifact(EngDb *db, const EngSampleId *id, const char *kind, const char *path,
                              int64_t bytes, const char *sha256, EngErr *err)
{
    char text[256], key[ENG_KEY_HEX];
    snprintf(text, sizeof text, "%s %s %s", id->block_id, id->point_key, kind);
    EngStatus status = eng_key_of(text, key, err);
    if (status) return status;
    return eng_db_exec(db, err,
                       "INSERT OR REPLACE INTO artifacts (artifact_id, block_id, point_key, kind,"
                       " path, bytes, sha256) VALUES (?, ?, ?, ?, ?, ?, ?)",
                       "sssssis", key, id->block_id, id->point_key, kind, path, bytes, sha256);
}

EngStatus eng_db_wants_trace(EngDb *db, const char *block_id, const char *point_key, bool *wanted,
                             EngErr *err)
{
    int64_t n = 0;
    EngStatus status = eng_db_number(
        db, &n, err,
        "SELECT count(*) FROM block_points b WHERE b.block_id = ?1 AND b.point_key = ?2"
        " AND iif(b.state = 'done', b.outcome = 'measured', EXISTS (SELECT 1 FROM samples s WHERE"
        "  s.block_id = ?1 AND s.point_key = ?2 AND s.traced = 0))"
        " AND NOT EXISTS (SELECT 1 FROM artifacts a WHERE a.block_id = ?1 AND a.point_key = ?2"
        "  AND a.kind = 'trace')",
        "ss", block_id, point_key);
    *wanted = n > 0;
    return status;
}

EngStatus eng_db_count_untraced(EngDb *db, const char *run_id, int64_t *n, EngErr *err)
{
    return eng_db_number(
        db, n, err,
        "SELECT count(*) FROM run_points l JOIN points p USING (point_key)"
        " JOIN block_points f USING (block_id, point_key) JOIN blocks b USING (block_id)"
        " WHERE l.run_id = ?1 AND b.run_id <> ?1 AND NOT p.is_roof AND f.outcome = 'measured'"
        " AND NOT EXISTS (SELECT 1 FROM artifacts a WHERE a.block_id = l.block_id"
        "  AND a.point_key = l.point_key AND a.kind = 'trace')",
        "s", run_id);
}

EngStatus eng_db_put_series(EngDb *db, const EngSampleId *id, const char *name, int64_t step,
                            double value, EngErr *err)
{
    return eng_db_exec(db, err,
                       "INSERT OR REPLACE INTO series (block_id, point_key, name, step, value)"
                       " VALUES (?, ?, ?, ?, ?)",
                       "sssid", id->block_id, id->point_key, name, step, value);
}

EngStatus eng_db_put_drops(EngDb *db, const EngSampleId *id, const char *what, int64_t count,
                           EngErr *err)
{
    return eng_db_exec(db, err,
                       "INSERT INTO drops (block_id, point_key, segment, what, count)"
                       " VALUES (?, ?, ?, ?, ?) ON CONFLICT (block_id, point_key, segment, what)"
                       " DO UPDATE SET count = count + excluded.count",
                       "ssisi", id->block_id, id->point_key, (int64_t)id->segment, what, count);
}
