/* Writing a plan into the ledger, in one transaction, before anything runs; see db.h. */
#include "bench/core/db_sql.h"

#include <sqlite3.h>
#include <math.h>
#include <string.h>

#include "base/kill_point.h"

/* A block of earlier runs that holds a point as measured or, if it cannot be now either (?2), as
 * skipped: what it lacked then may be there today. Measured comes first, the newest of equals. */
#define FIND_POINT                                                                                 \
    "SELECT bp.block_id FROM block_points bp JOIN blocks b USING (block_id)"                       \
    " JOIN runs r USING (run_id)"                                                                  \
    " WHERE bp.point_key = ?1 AND bp.state = 'done'"                                               \
    " AND bp.outcome IN ('measured', iif(?2, 'skipped', 'measured'))"                              \
    " ORDER BY bp.outcome = 'measured' DESC, r.started_utc DESC, b.ordinal LIMIT 1"

typedef struct Writer {
    EngDb *db;
    const char *run_id;
    const EngPlan *plan;
    bool fresh;
    EngStr json; /* scratch */
    EngErr *err;
} Writer;

static EngStatus put_axis_values(Writer *w, const EngPlanPoint *point)
{
    const EngExperiment *experiment = point->point.experiment;
    EngStatus status = ENG_OK;
    for (int i = 0; !status && i < experiment->n_axes; i++) {
        const EngAxisDef *def = &experiment->axes[i];
        const EngValue *value = &point->point.values[i];
        status = eng_db_exec(w->db, w->err,
                             "INSERT INTO axis_values (point_key, axis, value, number, is_default)"
                             " VALUES (?, ?, ?, ?, ?)",
                             "sssdi", point->point_key, def->name, value->text,
                             def->type == ENG_AXIS_WORD ? NAN : value->f,
                             (int64_t)(point->at_default >> i & 1));
    }
    return status;
}

static EngStatus put_point(Writer *w, const EngPlanPoint *point)
{
    static const char insert[] =
        "INSERT INTO points (point_key, config_key, experiment, variant, backend, kind, is_roof,"
        " variant_digest, machine_id, stream_digest, preset_digest, store_digest, axes_json,"
        " provenance) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (point_key) DO NOTHING";
    w->json.n = 0;
    EngStatus status = eng_plan_axes_json(point, &w->json, w->err);
    if (status) return status;
    status =
        eng_db_exec(w->db, w->err, insert, "ssssssisssssss", point->point_key, point->config_key,
                    point->point.experiment->name, point->variant, point->backend,
                    point->kind ? point->kind : "measured", (int64_t)point->is_roof,
                    point->variant_digest ? point->variant_digest : "",
                    w->plan->identity->machine_id ? w->plan->identity->machine_id : "",
                    point->stream_digest, point->preset_digest, point->store_digest, w->json.text,
                    point->provenance ? point->provenance : "engram run");
    if (!status && sqlite3_changes(w->db->sql)) status = put_axis_values(w, point);
    return status;
}

/* Links a point to the run; the first block that holds it wins (a roof may be in many). */
static EngStatus link_point(Writer *w, const EngPlanPoint *point, const char *block_id)
{
    return eng_db_exec(w->db, w->err,
                       "INSERT INTO run_points (run_id, point_key, block_id) VALUES (?, ?, ?)"
                       " ON CONFLICT (run_id, point_key) DO NOTHING",
                       "sss", w->run_id, point->point_key, block_id);
}

/* block_id "" when the point is not there yet. */
static EngStatus find_point(Writer *w, const EngPlanPoint *point, char block_id[ENG_KEY_HEX])
{
    sqlite3_stmt *statement;
    bool row;
    block_id[0] = 0;
    if (w->fresh) return ENG_OK;
    EngStatus status = eng_db_query(w->db, &statement, w->err, FIND_POINT, "si", point->point_key,
                                    (int64_t)(point->skip != NULL));
    if (!status) status = eng_db_step(w->db, statement, &row, w->err);
    if (status || !row) return status;
    sqlite3_snprintf(ENG_KEY_HEX, block_id, "%s", sqlite3_column_text(statement, 0));
    sqlite3_reset(statement);
    return ENG_OK;
}

static EngStatus put_block(Writer *w, const EngPlanBlock *block, int ordinal,
                           char block_id[ENG_KEY_HEX])
{
    const EngSweepSettings *s = &block->settings;
    double ns = block->estimate_ns; /* an estimate may be anything */
    int64_t estimate_ns = ns > 0 && ns < 1e18 ? (int64_t)ns : 0;
    bool counted = block->experiment->counted; /* deterministic: one sample tells all */
    EngStatus status = eng_uuid(block_id, w->err);
    if (status) return status;
    return eng_db_exec(w->db, w->err,
                       "INSERT INTO blocks (block_id, run_id, ordinal, experiment, compare_axis,"
                       " seed, estimate_ns, segments_wanted, pairs_wanted, state)"
                       " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending')",
                       "ssissiiii", block_id, w->run_id, (int64_t)ordinal, block->experiment->name,
                       block->compare_axis, (int64_t)block->seed, estimate_ns,
                       (int64_t)(counted ? 1 : s->segments), (int64_t)(counted ? 1 : s->pairs));
}

static EngStatus put_block_point(Writer *w, const char *block_id, const EngPlanPoint *point,
                                 int ordinal)
{
    EngStatus status = put_point(w, point);
    eng_kill_point("plan");
    if (!status)
        status = eng_db_exec(w->db, w->err,
                             "INSERT INTO block_points (block_id, point_key, ordinal, state,"
                             " outcome, reason) VALUES (?, ?, ?, ?, ?, ?)",
                             "ssisss", block_id, point->point_key, (int64_t)ordinal,
                             point->skip ? "done" : "pending", point->skip ? "skipped" : NULL,
                             point->skip);
    return status ? status : link_point(w, point, block_id);
}

/* Named points of a block: found ones are linked, the others enter a new block row. *pending:
 * those that something remains to be measured of. */
static EngStatus write_named(Writer *w, const EngPlanBlock *block, int ordinal,
                             char block_id[ENG_KEY_HEX], int *pending)
{
    int n = 0;
    *pending = 0;
    block_id[0] = 0;
    for (int i = 0; i < block->n_points; i++) {
        const EngPlanPoint *point = block->points[i];
        char found[ENG_KEY_HEX];
        if (point->is_roof) continue;
        EngStatus status = find_point(w, point, found);
        if (!status && found[0]) {
            status = link_point(w, point, found);
        } else if (!status) {
            if (!block_id[0]) status = put_block(w, block, ordinal, block_id);
            if (!status) status = put_block_point(w, block_id, point, n++);
            *pending += !point->skip;
        }
        if (status) return status;
    }
    return ENG_OK;
}

/* Roofs go where something is pending; else the run owns those measured before. */
static EngStatus write_roofs(Writer *w, const EngPlanBlock *block, const char *block_id,
                             int pending)
{
    for (int i = 0; i < block->n_points; i++) {
        const EngPlanPoint *point = block->points[i];
        char found[ENG_KEY_HEX] = "";
        EngStatus status = ENG_OK;
        if (!point->is_roof) continue;
        if (pending)
            status = put_block_point(w, block_id, point, i + block->n_points);
        else
            status = find_point(w, point, found);
        if (!status && found[0]) status = link_point(w, point, found);
        if (status) return status;
    }
    return ENG_OK;
}

static EngStatus write_blocks(Writer *w)
{
    EngStatus status = ENG_OK;
    for (int i = 0; !status && i < w->plan->n_blocks; i++) {
        const EngPlanBlock *block = &w->plan->blocks[i];
        char block_id[ENG_KEY_HEX];
        int pending;
        status = write_named(w, block, i, block_id, &pending);
        if (!status) status = write_roofs(w, block, block_id, pending);
        if (!status && block_id[0] && !pending)
            status =
                eng_db_exec(w->db, w->err, "UPDATE blocks SET state = 'done' WHERE block_id = ?",
                            "s", block_id);
    }
    return status;
}

/* Points stored before their experiment had an axis have its default: they get it written out, with
 * keys sorted as eng_plan_axes_json has them, since roofs and points are matched by these texts;
 * numbers keep theirs, too.
 * Defaults that a preset gives are older than this. */
static EngStatus add_axis(Writer *w, const EngExperiment *experiment, const EngAxisDef *def)
{
    bool word = def->type == ENG_AXIS_WORD;
    int64_t lacking = 0;
    double number = NAN;
    if (!word && !eng_parse_f64(def->def, &number)) return ENG_OK;
    EngStatus status = eng_db_number(w->db, &lacking, w->err,
                                     "SELECT EXISTS (SELECT 1 FROM points WHERE experiment = ?1"
                                     " AND json_type(axes_json, '$.' || ?2) IS NULL)",
                                     "ss", experiment->name, def->name);
    if (status || !lacking) return status;
    status = eng_db_exec(w->db, w->err,
                         "INSERT INTO axis_values (point_key, axis, value, number, is_default)"
                         " SELECT point_key, ?2, ?3, ?4, 1 FROM points WHERE experiment = ?1"
                         " AND json_type(axes_json, '$.' || ?2) IS NULL"
                         " ON CONFLICT (point_key, axis) DO NOTHING",
                         "sssd", experiment->name, def->name, def->def, number);
    if (status) return status;
    return eng_db_exec(w->db, w->err,
                       "UPDATE points SET axes_json = (SELECT json_group_object(key, json(text))"
                       "  FROM (SELECT key, axes -> key AS text FROM (SELECT json_set(axes_json,"
                       "    '$.' || ?2, iif(?4, ?3, json(?3))) AS axes), json_each(axes)"
                       "   ORDER BY key))"
                       " WHERE experiment = ?1 AND json_type(axes_json, '$.' || ?2) IS NULL",
                       "sssi", experiment->name, def->name, def->def, (int64_t)word);
}

static EngStatus add_new_axes(Writer *w)
{
    const EngPlan *plan = w->plan;
    EngStatus status = ENG_OK;
    for (int i = 0; i < plan->n_blocks && !status; i++) {
        const EngExperiment *e = plan->blocks[i].experiment;
        bool first = true;
        for (int k = 0; k < i; k++) first = first && plan->blocks[k].experiment != e;
        for (int a = 0; first && a < e->n_axes && !status; a++)
            status = add_axis(w, e, &e->axes[a]);
    }
    return status;
}

/* A resumed run: open points of its plan that later runs have measured meanwhile are linked to the
 * newest one's block and leave ours, unless ours has samples of them already. */
static EngStatus adopt_points(Writer *w)
{
#define MEANWHILE                                                                                  \
    "SELECT o.block_id FROM block_points o JOIN blocks ob USING (block_id)"                        \
    " JOIN runs orun ON orun.run_id = ob.run_id"                                                   \
    " WHERE o.point_key = run_points.point_key AND ob.run_id <> run_points.run_id"                 \
    " AND o.state = 'done' AND o.outcome = 'measured'"                                             \
    " AND orun.started_utc > (SELECT started_utc FROM runs WHERE run_id = run_points.run_id)"
    EngStatus status = eng_db_exec(
        w->db, w->err,
        "UPDATE run_points SET block_id = (" MEANWHILE
        " ORDER BY orun.started_utc DESC, ob.ordinal LIMIT 1) WHERE run_id = ?"
        " AND EXISTS (" MEANWHILE ")"
        " AND EXISTS (SELECT 1 FROM block_points b JOIN points p USING (point_key)"
        "  WHERE b.block_id = run_points.block_id AND b.point_key = run_points.point_key"
        "  AND b.state <> 'done' AND p.is_roof = 0)"
        " AND NOT EXISTS (SELECT 1 FROM samples s WHERE s.block_id = run_points.block_id"
        "  AND s.point_key = run_points.point_key)",
        "s", w->run_id);
    if (!status)
        status = eng_db_exec(
            w->db, w->err,
            "DELETE FROM block_points WHERE state <> 'done'"
            " AND block_id IN (SELECT block_id FROM blocks WHERE run_id = ?1)"
            " AND (SELECT is_roof FROM points p WHERE p.point_key = block_points.point_key) = 0"
            " AND NOT EXISTS (SELECT 1 FROM run_points l WHERE l.run_id = ?1"
            "  AND l.point_key = block_points.point_key AND l.block_id = block_points.block_id)",
            "s", w->run_id);
    return status;
}

/* Blocks that have only roofs left to do are over. */
static EngStatus close_empty_blocks(Writer *w)
{
    EngStatus status = ENG_OK;
    for (;;) {
        sqlite3_stmt *statement;
        bool row;
        char block_id[ENG_KEY_HEX];
        status = eng_db_query(
            w->db, &statement, w->err,
            "SELECT block_id FROM blocks WHERE run_id = ? AND state <> 'done' AND NOT EXISTS"
            " (SELECT 1 FROM block_points b JOIN points p USING (point_key)"
            "  WHERE b.block_id = blocks.block_id AND b.state <> 'done' AND p.is_roof = 0) LIMIT 1",
            "s", w->run_id);
        if (!status) status = eng_db_step(w->db, statement, &row, w->err);
        if (status || !row) return status;
        sqlite3_snprintf(ENG_KEY_HEX, block_id, "%s", sqlite3_column_text(statement, 0));
        sqlite3_reset(statement);
        status = eng_db_block_done(w->db, block_id, w->err);
        if (status) return status;
    }
}

static EngStatus count(Writer *w, EngPlanCounts *counts)
{
    sqlite3_stmt *statement;
    bool row;
    int64_t blocks = 0;
    *counts = (EngPlanCounts){0};
    EngStatus status = eng_db_query(
        w->db, &statement, w->err,
        "SELECT count(*) FILTER (WHERE b.run_id <> l.run_id),"
        " count(*) FILTER (WHERE b.run_id = l.run_id AND bp.state <> 'done'),"
        " count(*) FILTER (WHERE b.run_id = l.run_id AND bp.outcome = 'skipped')"
        " FROM run_points l JOIN points p USING (point_key) JOIN blocks b USING (block_id)"
        " JOIN block_points bp USING (block_id, point_key) WHERE l.run_id = ? AND p.is_roof = 0",
        "s", w->run_id);
    if (!status) status = eng_db_step(w->db, statement, &row, w->err);
    if (status) return status;
    counts->found = sqlite3_column_int(statement, 0);
    counts->planned = sqlite3_column_int(statement, 1);
    counts->skipped = sqlite3_column_int(statement, 2);
    sqlite3_reset(statement);
    status = eng_db_number(w->db, &blocks, w->err,
                           "SELECT count(*) FROM blocks WHERE run_id = ? AND state <> 'done'", "s",
                           w->run_id);
    counts->blocks = (int)blocks;
    return status;
}

EngStatus eng_db_plan_write(EngDb *db, const char *run_id, const EngPlan *plan, bool fresh,
                            EngPlanCounts *counts, EngErr *err)
{
    Writer w = {.db = db, .run_id = run_id, .plan = plan, .fresh = fresh, .err = err};
    bool own;
    int64_t linked = 0;
    EngStatus status = eng_db_own(db, &own, err);
    if (status) return status;
    status = eng_db_number(db, &linked, err, "SELECT count(*) FROM run_points WHERE run_id = ?",
                           "s", run_id);
    if (!status && !linked) {
        status = add_new_axes(&w);
        if (!status) status = write_blocks(&w);
    } else if (!status) {
        if (!fresh) status = adopt_points(&w);
        if (!status) status = close_empty_blocks(&w);
    }
    if (!status) status = count(&w, counts);
    eng_str_free(&w.json);
    return eng_db_end(db, own, status, err);
}
