/* Runs as recordings, and simulated points; see db_recording.h. */
#include "bench/core/db_recording.h"

#include <jansson.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/core/db_sql.h"

/* ---- recordings --------------------------------------------------------------------------------
 */

static void copy_column(sqlite3_stmt *statement, int column, char *out, size_t size)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    snprintf(out, size, "%s", text ? text : "");
}

static EngStatus read_head(EngDb *db, const char *run_id, EngRecording *recording, EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    char model[64];
    EngStatus status =
        eng_db_query(db, &statement, err,
                     "SELECT replace(substr(r.started_utc, 1, 16), 'T', ' '), m.cpu_model, m.cores,"
                     " CAST(coalesce(json_extract(r.environment_json, '$.load'), '0') AS REAL)"
                     " FROM runs r JOIN machines m USING (machine_id) WHERE r.run_id = ?",
                     "s", run_id);
    if (!status) status = eng_db_step(db, statement, &row, err);
    if (status) return status;
    if (!row) return ENG_FAIL(err, ENG_NOT_FOUND, "%s: no run %s", db->path, run_id);
    copy_column(statement, 0, recording->date, sizeof recording->date);
    copy_column(statement, 1, model, sizeof model);
    snprintf(recording->machine, sizeof recording->machine, "%s, %d processors", model,
             sqlite3_column_int(statement, 2));
    recording->load = sqlite3_column_double(statement, 3);
    sqlite3_reset(statement);
    return ENG_OK;
}

/* "a=1 b=2" of the axes that are recorded; false: one is not there, or the text is too long. */
static bool axes_text(const char *experiment, const char *json, char *out, size_t size)
{
    json_t *axes = json_loads(json, 0, NULL);
    size_t n = 0;
    bool whole = axes != NULL;
    for (const char *const *axis = eng_recorded_axes(experiment); whole && *axis; axis++) {
        const json_t *value = json_object_get(axes, *axis);
        char number[32];
        const char *text = json_string_value(value);
        if (json_is_integer(value))
            snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
        else if (json_is_real(value))
            snprintf(number, sizeof number, "%g", json_real_value(value));
        if (!text && json_is_number(value)) text = number;
        int more = text ? snprintf(out + n, size - n, "%s%s=%s", n ? " " : "", *axis, text) : -1;
        whole = more > 0 && (size_t)more < size - n;
        n += whole ? (size_t)more : 0;
    }
    json_decref(axes);
    return whole;
}

static bool is_recorded(const char *experiment, const char *metric)
{
    const char *const *metrics = eng_recorded_metrics(experiment);
    for (; metrics && *metrics; metrics++)
        if (!strcmp(*metrics, metric)) return true;
    return false;
}

static double column_or_nan(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_NULL
               ? NAN
               : sqlite3_column_double(statement, column);
}

static EngStatus add_row(sqlite3_stmt *statement, EngRecording *recording, EngErr *err)
{
    EngRecordedValue v = {0};
    copy_column(statement, 0, v.experiment, sizeof v.experiment);
    copy_column(statement, 1, v.key, sizeof v.key);
    copy_column(statement, 3, v.metric, sizeof v.metric);
    if (!is_recorded(v.experiment, v.metric)) return ENG_OK;
    if (!axes_text(v.experiment, (const char *)sqlite3_column_text(statement, 2), v.axes,
                   sizeof v.axes))
        return ENG_OK;
    v.median = column_or_nan(statement, 4);
    v.lo = column_or_nan(statement, 5);
    v.hi = column_or_nan(statement, 6);
    v.n = sqlite3_column_int(statement, 7);
    if (isnan(v.median) || eng_recording_find(recording, v.experiment, v.axes, v.metric))
        return ENG_OK;
    return eng_recording_add(recording, &v, err);
}

static EngStatus add_run(EngDb *db, const char *run_id, EngRecording *recording, EngErr *err)
{
    sqlite3_stmt *statement;
    bool row = true;
    EngStatus status =
        eng_db_query(db, &statement, err,
                     "SELECT v.experiment, v.point_key, v.axes_json, v.metric, v.median, v.ci_lo,"
                     " v.ci_hi, v.n FROM v_summary v JOIN points p USING (point_key)"
                     " WHERE v.run_id = ? AND v.outcome = 'measured' AND v.kind = 'measured'"
                     " AND NOT p.is_roof ORDER BY v.experiment, v.axes_json, v.metric",
                     "s", run_id);
    while (!status && !(status = eng_db_step(db, statement, &row, err)) && row)
        status = add_row(statement, recording, err);
    if (status) sqlite3_reset(statement);
    return status;
}

EngStatus eng_db_recording(EngDb *db, const char *const *run_ids, int n_runs,
                           EngRecording *recording, EngErr *err)
{
    *recording = (EngRecording){0};
    EngStatus status = read_head(db, run_ids[0], recording, err);
    snprintf(recording->name, sizeof recording->name, "run %.8s", run_ids[0]);
    for (int i = 0; i < n_runs && !status; i++) status = add_run(db, run_ids[i], recording, err);
    if (!status && !recording->n)
        status = ENG_FAIL(err, ENG_NOT_FOUND, "%s: run %.8s has nothing to record", db->path,
                          run_ids[0]);
    if (status) eng_recording_free(recording);
    return status;
}

/* ---- simulated points --------------------------------------------------------------------------
 */

typedef struct Simulation {
    EngDb *db;
    const char *of_run, *name, *model;
    char run_id[ENG_KEY_HEX];
    EngErr *err;
} Simulation;

static EngStatus key_of(Simulation *s, const char *what, const char *of, char key[ENG_KEY_HEX])
{
    EngStr text = {0};
    eng_str_printf(&text, "%s\n%s\n%s", what, s->model, of);
    EngStatus status = eng_str_status(&text, s->err);
    if (!status) status = eng_key_of(text.text, key, s->err);
    eng_str_free(&text);
    return status;
}

/* Begun just before the run that it speaks of, which stays the newest; ended after all others that
 * speak of it, also within the clock's millisecond, since the last word is told by that. */
static EngStatus put_run(Simulation *s)
{
    char now[32];
    eng_utc_now(now, sizeof now);
    return eng_db_exec(s->db, s->err,
                       "INSERT INTO runs (run_id, started_utc, ended_utc, state, machine_id,"
                       " build_id, seed, command_json, sweep_name, sweep_text, plan_key,"
                       " environment_json) SELECT ?1, strftime('%Y-%m-%dT%H:%M:%fZ',"
                       " started_utc, '-0.001 seconds'), max(?2, coalesce((SELECT"
                       " strftime('%Y-%m-%dT%H:%M:%fZ', max(ended_utc), '+0.001 seconds')"
                       " FROM runs WHERE environment_json ->> '$.of_run' = ?5 AND run_id <> ?1),"
                       " '')), 'done', machine_id, build_id, 0,"
                       " command_json, ?3, '', ?4, json_object('of_run', run_id)"
                       " FROM runs WHERE run_id = ?5"
                       " ON CONFLICT (run_id) DO UPDATE SET ended_utc = excluded.ended_utc",
                       "sssss", s->run_id, now, s->name, s->model, s->of_run);
}

static EngStatus put_block(Simulation *s, const char *block_id, const char *measured)
{
    EngStatus status =
        eng_db_exec(s->db, s->err,
                    "INSERT INTO blocks (block_id, run_id, ordinal, experiment, compare_axis,"
                    " seed, estimate_ns, segments_wanted, pairs_wanted, state)"
                    " SELECT ?1, ?2, 0, experiment, '', 0, 0, 1, 1, 'done' FROM points"
                    " WHERE point_key = ?3 ON CONFLICT (block_id) DO NOTHING",
                    "sss", block_id, s->run_id, measured);
    if (status) return status;
    return eng_db_exec(s->db, s->err,
                       "INSERT INTO segments (block_id, segment, started_utc, ended_utc, state,"
                       " seed, evidence_json) SELECT ?1, 0, started_utc, ended_utc, 'done', 0,"
                       " '{}' FROM runs WHERE run_id = ?2"
                       " ON CONFLICT (block_id, segment) DO NOTHING",
                       "ss", block_id, s->run_id);
}

static EngStatus put_point(Simulation *s, const char *key, const char *block_id,
                           const char *measured, const char *provenance)
{
    EngStatus status = eng_db_exec(
        s->db, s->err,
        "INSERT INTO points (point_key, config_key, experiment, variant, backend, kind, is_roof,"
        " variant_digest, machine_id, stream_digest, preset_digest, store_digest, axes_json,"
        " provenance) SELECT ?1, config_key, experiment, variant, backend, 'simulated', 0, ?2,"
        " machine_id, stream_digest, preset_digest, store_digest, axes_json, ?3"
        " FROM points WHERE point_key = ?4 ON CONFLICT (point_key) DO NOTHING",
        "ssss", key, s->model, provenance, measured);
    if (!status)
        status = eng_db_exec(s->db, s->err,
                             "INSERT INTO axis_values (point_key, axis, value, number, is_default)"
                             " SELECT ?1, axis, value, number, is_default FROM axis_values"
                             " WHERE point_key = ?2 ON CONFLICT (point_key, axis) DO NOTHING",
                             "ss", key, measured);
    if (!status)
        status = eng_db_exec(s->db, s->err,
                             "INSERT INTO block_points (block_id, point_key, ordinal, state,"
                             " outcome, stop_reason) VALUES (?, ?, 0, 'done', 'measured',"
                             " 'simulated') ON CONFLICT (block_id, point_key) DO NOTHING",
                             "ss", block_id, key);
    if (status) return status;
    return eng_db_exec(s->db, s->err,
                       "INSERT INTO run_points (run_id, point_key, block_id) VALUES (?, ?, ?)"
                       " ON CONFLICT (run_id, point_key) DO NOTHING",
                       "sss", s->run_id, key, block_id);
}

static EngStatus put_value(Simulation *s, const char *key, const char *block_id,
                           const EngSimulated *value)
{
    EngStatus status =
        eng_db_exec(s->db, s->err,
                    "INSERT INTO samples (block_id, point_key, segment, pair, position,"
                    " inner_iterations, wall_ns, cpu_ns, traced) VALUES (?, ?, 0, 0, 0, 1, 0, 0, 0)"
                    " ON CONFLICT (block_id, point_key, segment, pair) DO NOTHING",
                    "ss", block_id, key);
    if (status) return status;
    return eng_db_exec(s->db, s->err,
                       "INSERT OR REPLACE INTO sample_values (block_id, point_key, segment, pair,"
                       " metric, value) VALUES (?, ?, 0, 0, ?, ?)",
                       "sssd", block_id, key, value->metric, value->value);
}

/* The measured point that a key or its first characters name, among those of the run. */
static EngStatus find_measured(Simulation *s, const char *start, char measured[ENG_KEY_HEX],
                               char experiment[32])
{
    sqlite3_stmt *statement;
    bool row;
    EngStatus status =
        eng_db_query(s->db, &statement, s->err,
                     "SELECT p.point_key, p.experiment FROM run_points l JOIN points p USING"
                     " (point_key) WHERE l.run_id = ?1 AND substr(p.point_key, 1, length(?2)) = ?2"
                     " AND NOT p.is_roof ORDER BY p.point_key LIMIT 1",
                     "ss", s->of_run, start);
    if (!status) status = eng_db_step(s->db, statement, &row, s->err);
    if (status) return status;
    if (!row)
        return ENG_FAIL(s->err, ENG_INTERNAL, "%s: run %.8s has no point %s", s->db->path,
                        s->of_run, start);
    copy_column(statement, 0, measured, ENG_KEY_HEX);
    copy_column(statement, 1, experiment, 32);
    sqlite3_reset(statement);
    return ENG_OK;
}

static EngStatus put_simulated(Simulation *s, const EngSimulated *value)
{
    char measured[ENG_KEY_HEX], experiment[32], key[ENG_KEY_HEX], block_id[ENG_KEY_HEX];
    EngStr block = {0};
    EngStatus status = find_measured(s, value->point_key, measured, experiment);
    eng_str_printf(&block, "%s %s", s->of_run, experiment);
    if (!status) status = eng_str_status(&block, s->err);
    if (!status) status = key_of(s, "simulated block", block.text, block_id);
    if (!status) status = key_of(s, "simulated point", measured, key);
    if (!status) status = put_block(s, block_id, measured);
    if (!status) status = put_point(s, key, block_id, measured, value->provenance);
    if (!status) status = put_value(s, key, block_id, value);
    eng_str_free(&block);
    return status;
}

EngStatus eng_db_put_simulated(EngDb *db, const char *of_run, const char *name, const char *model,
                               const EngSimulated *values, int n, char run_id[ENG_KEY_HEX],
                               EngErr *err)
{
    Simulation s = {.db = db, .of_run = of_run, .name = name, .model = model, .err = err};
    bool own;
    EngStatus status = key_of(&s, "simulated run", of_run, s.run_id);
    if (!status) status = eng_db_own(db, &own, err);
    if (status) return status;
    memcpy(run_id, s.run_id, ENG_KEY_HEX);
    status = put_run(&s);
    for (int i = 0; i < n && !status; i++) status = put_simulated(&s, &values[i]);
    return eng_db_end(db, own, status, err);
}

EngStatus eng_db_make_predictions_view(EngDb *db, EngErr *err)
{
    return eng_db_run_embedded(db, "predictions.sql", err);
}
