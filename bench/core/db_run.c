/* Rows that points refer to, and runs; see db.h. */
#include "bench/core/db_sql.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

EngStatus eng_db_put_machine(EngDb *db, const EngMachineRow *row, EngErr *err)
{
    static const char known[] =
        "INSERT INTO machines (machine_id, cpu_model, cores, memory_bytes, cache_bytes, gpu,"
        " description_json) VALUES (?, ?, ?, ?, nullif(?, 0), ?, ?)"
        " ON CONFLICT (machine_id) DO NOTHING";
    return eng_db_exec(db, err, known, "ssiiiss", row->machine_id, row->cpu_model,
                       (int64_t)row->cores, row->memory_bytes, row->cache_bytes, row->gpu,
                       row->description_json);
}

EngStatus eng_db_put_build(EngDb *db, const EngBuildRow *row, EngErr *err)
{
    static const char known[] =
        "INSERT INTO builds (build_id, version, commit_id, compiler, flags, libraries_json)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (build_id) DO NOTHING";
    return eng_db_exec(db, err, known, "ssssss", row->build_id, row->version, row->commit_id,
                       row->compiler, row->flags, row->libraries_json);
}

EngStatus eng_db_put_stream(EngDb *db, const char *stream_digest, const char *corpus,
                            const char *kind, int64_t n_tokens, const char *header_json,
                            EngErr *err)
{
    static const char known[] =
        "INSERT INTO streams (stream_digest, corpus, kind, n_tokens, header_json)"
        " VALUES (?, ?, ?, ?, ?) ON CONFLICT (stream_digest) DO NOTHING";
    return eng_db_exec(db, err, known, "sssis", stream_digest, corpus, kind, n_tokens, header_json);
}

EngStatus eng_db_put_preset(EngDb *db, const char *preset_digest, const char *name,
                            const char *preset_json, EngErr *err)
{
    static const char known[] = "INSERT INTO presets (preset_digest, name, preset_json)"
                                " VALUES (?, ?, ?) ON CONFLICT (preset_digest) DO NOTHING";
    return eng_db_exec(db, err, known, "sss", preset_digest, name, preset_json);
}

EngStatus eng_db_put_store(EngDb *db, const char *store_digest, const char *kind,
                           const char *row_format, const char *description_json, EngErr *err)
{
    static const char known[] =
        "INSERT INTO stores (store_digest, kind, row_format, description_json)"
        " VALUES (?, ?, ?, ?) ON CONFLICT (store_digest) DO NOTHING";
    return eng_db_exec(db, err, known, "ssss", store_digest, kind, row_format, description_json);
}

EngStatus eng_db_put_metrics(EngDb *db, const EngExperiment *experiment, EngErr *err)
{
    static const char known[] =
        "INSERT INTO metrics (experiment, metric, unit, direction, clock, help)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (experiment, metric) DO UPDATE SET"
        " unit = excluded.unit, direction = excluded.direction, clock = excluded.clock,"
        " help = excluded.help";
    bool own;
    EngStatus status = eng_db_own(db, &own, err);
    if (status) return status;
    for (int i = 0; !status && i < experiment->n_metrics; i++) {
        const EngMetricDef *m = &experiment->metrics[i];
        status = eng_db_exec(db, err, known, "sssiss", experiment->name, m->name, m->unit,
                             (int64_t)m->better, m->clock, m->help ? m->help : "");
    }
    return eng_db_end(db, own, status, err);
}

/* ---- runs --------------------------------------------------------------------------------------
 */

/* The newest unfinished run of the plan, on the same machine and build; "" when there is none. */
static EngStatus find_unfinished(EngDb *db, const EngRunSpec *spec, char run_id[ENG_KEY_HEX],
                                 EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    run_id[0] = 0;
    EngStatus status = eng_db_query(
        db, &statement, err,
        "SELECT run_id FROM runs WHERE plan_key = ? AND machine_id = ? AND state <> 'done'"
        " AND build_id IN (SELECT o.build_id FROM builds o JOIN builds b"
        "  USING (version, compiler, flags, libraries_json) WHERE b.build_id = ?) ORDER BY "
        "started_utc DESC, run_id LIMIT 1",
        "sss", spec->plan_key, spec->machine_id, spec->build_id);
    if (!status) status = eng_db_step(db, statement, &row, err);
    if (status || !row) return status;
    snprintf(run_id, ENG_KEY_HEX, "%s", (const char *)sqlite3_column_text(statement, 0));
    sqlite3_reset(statement);
    return ENG_OK;
}

/* What a killed run left open: no worker of it lives, since we hold the run lock. */
static EngStatus recover(EngDb *db, const char *run_id, EngErr *err)
{
    EngStatus status =
        eng_db_exec(db, err, "UPDATE runs SET state = 'running', ended_utc = NULL WHERE run_id = ?",
                    "s", run_id);
    if (!status)
        status = eng_db_exec(db, err,
                             "UPDATE segments SET state = 'broken' WHERE state = 'running' AND"
                             " block_id IN (SELECT block_id FROM blocks WHERE run_id = ?)",
                             "s", run_id);
    if (!status)
        status = eng_db_exec(db, err,
                             "UPDATE block_points SET state = 'pending' WHERE state = 'running' AND"
                             " block_id IN (SELECT block_id FROM blocks WHERE run_id = ?)",
                             "s", run_id);
    if (!status)
        status = eng_db_exec(
            db, err, "UPDATE blocks SET state = 'pending' WHERE state = 'running' AND run_id = ?",
            "s", run_id);
    return status;
}

static EngStatus insert_run(EngDb *db, const EngRunSpec *spec, char run_id[ENG_KEY_HEX],
                            EngErr *err)
{
    static const char insert[] =
        "INSERT INTO runs (run_id, started_utc, state, machine_id, build_id, seed, command_json,"
        " sweep_name, sweep_text, plan_key, environment_json)"
        " VALUES (?, ?, 'running', ?, ?, ?, ?, ?, ?, ?, ?)";
    char now[32];
    EngStatus status = eng_uuid(run_id, err);
    if (status) return status;
    eng_utc_now(now, sizeof now);
    return eng_db_exec(db, err, insert, "ssssisssss", run_id, now, spec->machine_id, spec->build_id,
                       (int64_t)spec->seed, spec->command_json, spec->sweep_name, spec->sweep_text,
                       spec->plan_key, spec->environment_json);
}

EngStatus eng_db_run_begin(EngDb *db, const EngRunSpec *spec, bool fresh, char run_id[ENG_KEY_HEX],
                           bool *resumed, EngErr *err)
{
    bool own;
    *resumed = false;
    run_id[0] = 0;
    EngStatus status = eng_db_own(db, &own, err);
    if (status) return status;
    if (!fresh) status = find_unfinished(db, spec, run_id, err);
    if (!status && run_id[0]) {
        *resumed = true;
        status = recover(db, run_id, err);
    } else if (!status) {
        status = insert_run(db, spec, run_id, err);
    }
    if (!status) eng_db_lock_name(db, run_id);
    return eng_db_end(db, own, status, err);
}

EngStatus eng_db_run_finish(EngDb *db, const char *run_id, EngRunState state, EngErr *err)
{
    static const char *const names[] = {"running", "done", "interrupted", "failed"};
    char now[32];
    eng_utc_now(now, sizeof now);
    return eng_db_exec(db, err, "UPDATE runs SET state = ?, ended_utc = ? WHERE run_id = ?", "sss",
                       names[state], state == ENG_RUN_RUNNING ? NULL : now, run_id);
}
