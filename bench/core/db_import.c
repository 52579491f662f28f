/* Writing imported points; see db_import.h. */
#include "bench/core/db_import.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "bench/core/db_sql.h"

typedef struct Import {
    EngDb *db;
    const EngImport *import;
    char run_id[ENG_KEY_HEX], block_id[ENG_KEY_HEX];
    EngErr *err;
} Import;

static EngStatus key_of(Import *i, const char *what, const char *rest, char key[ENG_KEY_HEX])
{
    EngStr text = {0};
    eng_str_printf(&text, "%s\n%s\n%s", what, i->import->source_key, rest);
    EngStatus status = eng_str_status(&text, i->err);
    if (!status) status = eng_key_of(text.text, key, i->err);
    eng_str_free(&text);
    return status;
}

static EngStatus put_run(Import *i)
{
    const EngImport *m = i->import;
    EngStatus status = eng_db_put_machine(i->db, m->machine, i->err);
    if (!status) status = eng_db_put_build(i->db, m->build, i->err);
    if (!status) status = eng_db_put_metrics(i->db, m->experiment, i->err);
    if (!status)
        status = eng_db_exec(i->db, i->err,
                             "INSERT INTO runs (run_id, started_utc, ended_utc, state, machine_id,"
                             " build_id, seed, command_json, sweep_name, sweep_text, plan_key,"
                             " environment_json) VALUES (?, ?, ?, 'done', ?, ?, 0, ?, ?, ?, ?, ?)",
                             "ssssssssss", i->run_id, m->started_utc, m->started_utc,
                             m->machine->machine_id, m->build->build_id, m->command_json, m->name,
                             m->text, m->source_key, m->evidence_json);
    if (!status)
        status = eng_db_exec(i->db, i->err,
                             "INSERT INTO blocks (block_id, run_id, ordinal, experiment,"
                             " compare_axis, seed, estimate_ns, segments_wanted, pairs_wanted,"
                             " state) VALUES (?, ?, 0, ?, 'variant', 0, 0, 1, 1, 'done')",
                             "sss", i->block_id, i->run_id, m->experiment->name);
    if (!status)
        status = eng_db_exec(i->db, i->err,
                             "INSERT INTO segments (block_id, segment, started_utc, ended_utc,"
                             " state, seed, evidence_json) VALUES (?, 0, ?, ?, 'done', 0, ?)",
                             "ssss", i->block_id, m->started_utc, m->started_utc, m->evidence_json);
    return status;
}

static EngStatus axes_text(Import *i, const EngImportPoint *point, char **text)
{
    json_t *axes = json_object();
    for (int a = 0; a < point->n_axes; a++) {
        const EngImportAxis *axis = &point->axes[a];
        bool whole = !isnan(axis->number) && axis->number == floor(axis->number);
        json_object_set_new(axes, axis->axis,
                            whole                 ? json_integer((json_int_t)axis->number)
                            : isnan(axis->number) ? json_string(axis->value)
                                                  : json_real(axis->number));
    }
    json_object_set_new(axes, "variant", json_string(point->variant));
    *text = json_dumps(axes, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(axes);
    if (*text) return ENG_OK;
    return ENG_FAIL(i->err, ENG_NO_MEMORY, "%s: out of memory for an import", eng_db_path(i->db));
}

static EngStatus put_axes(Import *i, const EngImportPoint *point, const char *key)
{
    EngStatus status = ENG_OK;
    for (int a = 0; a < point->n_axes && !status; a++)
        status = eng_db_exec(i->db, i->err,
                             "INSERT INTO axis_values (point_key, axis, value, number, is_default)"
                             " VALUES (?, ?, ?, ?, 0)",
                             "sssd", key, point->axes[a].axis, point->axes[a].value,
                             point->axes[a].number);
    if (!status)
        status = eng_db_exec(i->db, i->err,
                             "INSERT INTO axis_values (point_key, axis, value, number, is_default)"
                             " VALUES (?, 'variant', ?, NULL, 0)",
                             "ss", key, point->variant);
    return status;
}

/* The kind says that these samples are from a trace, so they are not marked as the traced pass of a
 * measured point. */
static EngStatus put_samples(Import *i, const EngImportPoint *point, const char *key)
{
    EngStatus status = ENG_OK;
    int n_metrics = i->import->experiment->n_metrics;
    for (int64_t s = 0; s < point->n_samples && !status; s++) {
        EngSampleId id = {i->block_id, key, 0, (int)s};
        EngTiming timing = {.inner = 1, .wall_ns = point->wall_ns[s]};
        status = eng_db_put_sample(i->db, &id, 0, false, &timing, i->import->experiment,
                                   point->values + s * n_metrics, i->err);
    }
    for (int d = 0; d < i->import->n_drops && !status; d++) {
        EngSampleId id = {i->block_id, key, 0, 0};
        const EngImportDrop *drop = &i->import->drops[d];
        if (drop->n) status = eng_db_put_drops(i->db, &id, drop->what, drop->n, i->err);
    }
    return status;
}

static EngStatus put_point(Import *i, int ordinal)
{
    const EngImport *m = i->import;
    const EngImportPoint *point = &m->points[ordinal];
    char key[ENG_KEY_HEX], config[ENG_KEY_HEX], *axes = NULL;
    EngStatus status = axes_text(i, point, &axes);
    if (status) return status;
    status = key_of(i, "imported point", axes, key);
    if (!status) status = key_of(i, "imported config", axes, config);
    if (!status)
        status =
            eng_db_exec(i->db, i->err,
                        "INSERT INTO points (point_key, config_key, experiment, variant,"
                        " backend, kind, is_roof, variant_digest, machine_id, axes_json,"
                        " provenance) VALUES (?, ?, ?, ?, ?, ?, 0, '', ?, ?, ?)",
                        "sssssssss", key, config, m->experiment->name, point->variant, m->backend,
                        point->kind ? point->kind : "imported", m->machine->machine_id, axes,
                        point->provenance ? point->provenance : m->provenance);
    if (!status) status = put_axes(i, point, key);
    if (!status)
        status = eng_db_exec(i->db, i->err,
                             "INSERT INTO block_points (block_id, point_key, ordinal, state,"
                             " outcome, stop_reason) VALUES (?, ?, ?, 'done', 'measured',"
                             " 'imported')",
                             "ssi", i->block_id, key, (int64_t)ordinal);
    if (!status)
        status = eng_db_exec(i->db, i->err,
                             "INSERT INTO run_points (run_id, point_key, block_id)"
                             " VALUES (?, ?, ?)",
                             "sss", i->run_id, key, i->block_id);
    if (!status) status = put_samples(i, point, key);
    free(axes);
    return status;
}

EngStatus eng_db_import(EngDb *db, const EngImport *import, char run_id[ENG_KEY_HEX], bool *added,
                        EngErr *err)
{
    Import i = {.db = db, .import = import, .err = err};
    int64_t known = 0;
    bool own;
    *added = false;
    EngStatus status = key_of(&i, "imported run", "", i.run_id);
    if (!status) status = key_of(&i, "imported block", "", i.block_id);
    if (!status) status = eng_db_own(db, &own, err);
    if (status) return status;
    for (int c = 0; c < ENG_KEY_HEX; c++) run_id[c] = i.run_id[c];
    status =
        eng_db_number(db, &known, err, "SELECT count(*) FROM runs WHERE run_id = ?", "s", i.run_id);
    if (!status && !known) {
        status = put_run(&i);
        for (int p = 0; p < import->n_points && !status; p++) status = put_point(&i, p);
        *added = !status;
    }
    return eng_db_end(db, own, status, err);
}
