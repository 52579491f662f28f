/* Merging databases, table by table in the order of their references; see db_merge.h.
 *
 * Rows travel through two connections, so that the other file is never opened for writing. One
 * description per table says what is its key, what may be further along, and what a conflict of a
 * parent leaves out; the statements are made from it. */
#include "bench/core/db_merge.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/kill_point.h"
#include "bench/core/db_sql.h"

#define MAX_COLUMNS 16

typedef struct Table {
    const char *name;
    const char *columns; /* all, the n_key of the key first */
    int n_columns, n_key;
    int state, ended;   /* columns that say how far a row is, and since when; 0: none */
    int started;        /* column that tells lifetimes under one key apart, 0: none */
    unsigned ignored;   /* columns (bits) that follow the program or are remarks: ours stay */
    const char *source; /* how it is read from the other database, NULL: as it is */
    bool owned;         /* column 0 names a run or block: when that was updated, so is this */
    int segment; /* column 0 and this name a segment, whose conflict leaves the row out; 0: none */
    int since;   /* version that brought the table, 0: the first */
    int axes;    /* last column, longer where the experiment had more axes already; 0: none */
} Table;

/* As a kill would have left them: what nobody works on any more is open again. */
#define READ_RUNS                                                                                  \
    "SELECT run_id, iif(state = 'running', 'interrupted', state), started_utc, ended_utc,"         \
    " machine_id, build_id, seed, command_json, sweep_name, sweep_text, plan_key,"                 \
    " environment_json FROM runs ORDER BY run_id"
#define READ_BLOCKS                                                                                \
    "SELECT block_id, iif(state = 'running', 'pending', state), run_id, ordinal, experiment,"      \
    " compare_axis, seed, estimate_ns, segments_wanted, pairs_wanted FROM blocks ORDER BY "        \
    "block_id"
#define READ_BLOCK_POINTS                                                                          \
    "SELECT block_id, point_key, iif(state = 'running', 'pending', state), ordinal, outcome,"      \
    " reason, stop_reason FROM block_points ORDER BY block_id, point_key"
#define READ_SEGMENTS                                                                              \
    "SELECT block_id, segment, iif(state = 'running', 'broken', state), started_utc, ended_utc,"   \
    " seed, evidence_json FROM segments ORDER BY block_id, segment"

static const Table tables[] = {
    {.name = "machines",
     .columns = "machine_id, cpu_model, cores, memory_bytes, cache_bytes, gpu, description_json",
     .n_columns = 7,
     .n_key = 1},
    {.name = "builds",
     .columns = "build_id, version, commit_id, compiler, flags, libraries_json",
     .n_columns = 6,
     .n_key = 1},
    {.name = "streams",
     .columns = "stream_digest, corpus, kind, n_tokens, header_json",
     .n_columns = 5,
     .n_key = 1,
     .ignored = 1u << 4},
    {.name = "presets", .columns = "preset_digest, name, preset_json", .n_columns = 3, .n_key = 1},
    {.name = "stores",
     .columns = "store_digest, kind, row_format, description_json",
     .n_columns = 4,
     .n_key = 1},
    {.name = "metrics",
     .columns = "experiment, metric, unit, direction, clock, help",
     .n_columns = 6,
     .n_key = 2,
     .ignored = 1u << 5},
    {.name = "points",
     .columns = "point_key, config_key, experiment, variant, backend, kind, is_roof,"
                " variant_digest, machine_id, stream_digest, preset_digest, store_digest,"
                " provenance, axes_json",
     .n_columns = 14,
     .n_key = 1,
     .axes = 13},
    {.name = "axis_values",
     .columns = "point_key, axis, value, number, is_default",
     .n_columns = 5,
     .n_key = 2},
    {.name = "runs",
     .columns = "run_id, state, started_utc, ended_utc, machine_id, build_id, seed, command_json,"
                " sweep_name, sweep_text, plan_key, environment_json",
     .n_columns = 12,
     .n_key = 1,
     .state = 1,
     .ended = 3,
     .source = READ_RUNS},
    {.name = "blocks",
     .columns = "block_id, state, run_id, ordinal, experiment, compare_axis, seed, estimate_ns,"
                " segments_wanted, pairs_wanted",
     .n_columns = 10,
     .n_key = 1,
     .state = 1,
     .source = READ_BLOCKS},
    {.name = "block_points",
     .columns = "block_id, point_key, state, ordinal, outcome, reason, stop_reason",
     .n_columns = 7,
     .n_key = 2,
     .state = 2,
     .source = READ_BLOCK_POINTS},
    {.name = "run_points",
     .columns = "run_id, point_key, block_id",
     .n_columns = 3,
     .n_key = 2,
     .owned = true},
    {.name = "segments",
     .columns = "block_id, segment, state, started_utc, ended_utc, seed, evidence_json",
     .n_columns = 7,
     .n_key = 2,
     .state = 2,
     .ended = 4,
     .started = 3,
     .source = READ_SEGMENTS},
    {.name = "samples",
     .columns = "block_id, point_key, segment, pair, position, inner_iterations, wall_ns, cpu_ns,"
                " traced",
     .n_columns = 9,
     .n_key = 4,
     .segment = 2},
    {.name = "sample_values",
     .columns = "block_id, point_key, metric, segment, pair, value",
     .n_columns = 6,
     .n_key = 5,
     .segment = 3},
    {.name = "residuals",
     .columns = "block_id, point_key, segment, measure, max_abs, max_rel, limit_value, n_checked,"
                " n_outputs, n_nonfinite, pass, note",
     .n_columns = 12,
     .n_key = 3,
     .segment = 2},
    {.name = "roofs",
     .columns = "block_id, roof_point_key, clock, tuned_json",
     .n_columns = 4,
     .n_key = 2,
     .owned = true},
    {.name = "histograms",
     .columns = "block_id, point_key, segment, pair, name, layer, stream, scale, lo, hi,"
                " counts_json",
     .n_columns = 11,
     .n_key = 7,
     .segment = 2},
    {.name = "series",
     .columns = "block_id, point_key, name, step, value",
     .n_columns = 5,
     .n_key = 4,
     .owned = true},
    {.name = "artifacts",
     .columns = "artifact_id, block_id, point_key, kind, path, bytes, sha256",
     .n_columns = 7,
     .n_key = 1},
    {.name = "drops",
     .columns = "block_id, point_key, segment, what, count",
     .n_columns = 5,
     .n_key = 4,
     .segment = 2},
    {.name = "verdicts",
     .columns = "run_id, base_run_id, point_key, base_point_key, kind, verdict, ratio, ratio_lo,"
                " ratio_hi, p, p_corrected, n_compared, control_ratio, floor, threshold, band,"
                " alpha, resolution_ns, base_ns, new_ns, n_pairs, n_segments, reason",
     .n_columns = 23,
     .n_key = 3,
     .owned = true,
     .since = 2},
};

typedef struct Merge {
    EngDb *db, *other;
    const Table *table;
    sqlite3_stmt *read, *find, *insert, *update, *mark, *is_marked;
    EngMergeCounts *counts;
    EngErr *err;
} Merge;

/* ---- statements --------------------------------------------------------------------------------
 */

static EngStatus prepare(EngDb *db, sqlite3_stmt **statement, const char *sql, EngErr *err)
{
    int rc = sqlite3_prepare_v2(db->sql, sql, -1, statement, NULL);
    return rc == SQLITE_OK ? ENG_OK : eng_db_fail(db, rc, "prepare a merge", err);
}

/* The i-th name of a list "a, b, c". */
static void name_at(const char *list, int i, char out[64])
{
    for (; i > 0 && *list; i--) {
        list += strcspn(list, ",");
        list += strspn(list, ", ");
    }
    snprintf(out, 64, "%.*s", (int)strcspn(list, ","), list);
}

/* "?1, ?2" or "a IS ?1 AND b IS ?2" over columns [first, end). */
static void add_list(EngStr *sql, const Table *t, int first, int end, const char *form,
                     const char *between)
{
    for (int i = first; i < end; i++) {
        char name[64];
        name_at(t->columns, i, name);
        if (i > first) eng_str_add(sql, between);
        if (form) eng_str_printf(sql, "%s %s ", name, form);
        eng_str_printf(sql, "?%d", i + 1);
    }
}

static EngStatus prepare_table(Merge *m)
{
    const Table *t = m->table;
    EngStr read = {0}, find = {0}, insert = {0}, update = {0};
    if (t->source)
        eng_str_add(&read, t->source);
    else
        eng_str_printf(&read, "SELECT %s FROM %s", t->columns, t->name);
    eng_str_printf(&find, "SELECT %s FROM %s WHERE ", t->columns, t->name);
    add_list(&find, t, 0, t->n_key, "IS", " AND ");
    eng_str_printf(&insert, "INSERT INTO %s (%s) VALUES (", t->name, t->columns);
    add_list(&insert, t, 0, t->n_columns, NULL, ", ");
    eng_str_add(&insert, ")");
    eng_str_printf(&update, "UPDATE %s SET ", t->name);
    add_list(&update, t, t->n_key, t->n_columns, "=", ", ");
    eng_str_add(&update, " WHERE ");
    add_list(&update, t, 0, t->n_key, "IS", " AND ");
    EngStatus status = eng_str_status(&read, m->err);
    if (!status) status = eng_str_status(&find, m->err);
    if (!status) status = eng_str_status(&insert, m->err);
    if (!status) status = eng_str_status(&update, m->err);
    if (!status) status = prepare(m->other, &m->read, read.text, m->err);
    if (!status) status = prepare(m->db, &m->find, find.text, m->err);
    if (!status) status = prepare(m->db, &m->insert, insert.text, m->err);
    if (!status) status = prepare(m->db, &m->update, update.text, m->err);
    eng_str_free(&read);
    eng_str_free(&find);
    eng_str_free(&insert);
    eng_str_free(&update);
    return status;
}

static void finalize_table(Merge *m)
{
    sqlite3_stmt **all[] = {&m->read, &m->find, &m->insert, &m->update};
    for (int i = 0; i < 4; i++) {
        sqlite3_finalize(*all[i]);
        *all[i] = NULL;
    }
}

static EngStatus bind_row(Merge *m, sqlite3_stmt *statement, int n)
{
    int rc = sqlite3_reset(statement);
    for (int i = 0; i < n; i++) {
        rc = sqlite3_bind_value(statement, i + 1, sqlite3_column_value(m->read, i));
        if (rc != SQLITE_OK) return eng_db_fail(m->db, rc, "bind a value", m->err);
    }
    return ENG_OK;
}

static EngStatus write_row(Merge *m, sqlite3_stmt *statement)
{
    EngStatus status = bind_row(m, statement, m->table->n_columns);
    if (status) return status;
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_DONE) {
        sqlite3_reset(statement);
        return ENG_OK;
    }
    if ((rc & 0xff) == SQLITE_CONSTRAINT)
        status = ENG_FAIL(m->err, ENG_BAD_DATA, "%s: table %s has a row that cannot be: %s",
                          eng_db_path(m->other), m->table->name, sqlite3_errmsg(m->db->sql));
    else
        status = eng_db_fail(m->db, rc, "merge", m->err);
    sqlite3_reset(statement);
    return status;
}

/* ---- marks: what was updated, and which segments conflict --------------------------------------
 */

static EngStatus set_mark(Merge *m, const char *what, int n)
{
    sqlite3_reset(m->mark);
    sqlite3_bind_text(m->mark, 1, what, -1, SQLITE_STATIC);
    sqlite3_bind_value(m->mark, 2, sqlite3_column_value(m->read, 0));
    sqlite3_bind_int64(m->mark, 3, n);
    int rc = sqlite3_step(m->mark);
    sqlite3_reset(m->mark);
    return rc == SQLITE_DONE ? ENG_OK : eng_db_fail(m->db, rc, "merge", m->err);
}

static bool has_mark(Merge *m, const char *what, int64_t n)
{
    sqlite3_reset(m->is_marked);
    sqlite3_bind_text(m->is_marked, 1, what, -1, SQLITE_STATIC);
    sqlite3_bind_value(m->is_marked, 2, sqlite3_column_value(m->read, 0));
    sqlite3_bind_int64(m->is_marked, 3, n);
    bool found = sqlite3_step(m->is_marked) == SQLITE_ROW;
    sqlite3_reset(m->is_marked);
    return found;
}

/* ---- rows --------------------------------------------------------------------------------------
 */

static bool same_value(sqlite3_stmt *a, sqlite3_stmt *b, int column)
{
    int type = sqlite3_column_type(a, column);
    if (type != sqlite3_column_type(b, column)) return false;
    if (type == SQLITE_INTEGER)
        return sqlite3_column_int64(a, column) == sqlite3_column_int64(b, column);
    if (type == SQLITE_FLOAT)
        return sqlite3_column_double(a, column) == sqlite3_column_double(b, column);
    if (type == SQLITE_NULL) return true;
    int n = sqlite3_column_bytes(a, column);
    if (n != sqlite3_column_bytes(b, column)) return false;
    return !n || /* an empty text has no address */
           !memcmp(sqlite3_column_blob(a, column), sqlite3_column_blob(b, column), (size_t)n);
}

/* First column outside the key that differs, -1: none. */
static int difference(Merge *m)
{
    for (int i = m->table->n_key; i < m->table->n_columns; i++)
        if (!(m->table->ignored >> i & 1) && !same_value(m->read, m->find, i)) return i;
    return -1;
}

/* pending, then broken off, then done. */
static int rank_of(const char *state)
{
    if (!strcmp(state, "done")) return 2;
    return !strcmp(state, "interrupted") || !strcmp(state, "failed") || !strcmp(state, "broken");
}

/* > 0: their row is further along, < 0: ours is. Of two that broke off, the later one is; of two
 * that differ in their axes alone, the one whose program knew more of them (the key is of those
 * that are not at their default, so both say the same). */
static int further(Merge *m, int column)
{
    const Table *t = m->table;
    if (t->axes && column == t->axes)
        return sqlite3_column_bytes(m->read, column) - sqlite3_column_bytes(m->find, column);
    if (!t->state || (t->started && !same_value(m->read, m->find, t->started))) return 0;
    int theirs = rank_of((const char *)sqlite3_column_text(m->read, t->state));
    int ours = rank_of((const char *)sqlite3_column_text(m->find, t->state));
    if (theirs != ours || theirs != 1 || !t->ended) return theirs - ours;
    const char *their_end = (const char *)sqlite3_column_text(m->read, t->ended);
    const char *our_end = (const char *)sqlite3_column_text(m->find, t->ended);
    return strcmp(their_end ? their_end : "", our_end ? our_end : "");
}

static EngStatus tell_conflict(Merge *m, int column)
{
    EngMergeCounts *counts = m->counts;
    char name[64];
    counts->conflicts++;
    name_at(m->table->columns, column, name);
    if (counts->n_shown < ENG_MERGE_SHOWN) {
        char *out = counts->shown[counts->n_shown++];
        int used = snprintf(out, sizeof counts->shown[0], "%s", m->table->name);
        for (int i = 0; i < m->table->n_key && used < 150; i++)
            used += snprintf(out + used, sizeof counts->shown[0] - (size_t)used, " %.32s",
                             (const char *)sqlite3_column_text(m->read, i));
        if (used < 150)
            snprintf(out + used, sizeof counts->shown[0] - (size_t)used, ": %s differs", name);
    }
    if (strcmp(m->table->name, "segments")) return ENG_OK;
    return set_mark(m, "segment", sqlite3_column_int(m->read, 1));
}

static EngStatus merge_known(Merge *m)
{
    const Table *t = m->table;
    int column = difference(m);
    if (column < 0) {
        m->counts->same++;
        return ENG_OK;
    }
    int ahead = further(m, column);
    if (ahead < 0) { /* merged before it went on here */
        m->counts->same++;
        return ENG_OK;
    }
    bool update = ahead > 0 || (t->owned && has_mark(m, "updated", 0));
    if (!update) return tell_conflict(m, column);
    m->counts->updated++;
    EngStatus status = write_row(m, m->update);
    if (!status && t->state == 1) status = set_mark(m, "updated", 0); /* a run or a block */
    return status;
}

static EngStatus merge_row(Merge *m)
{
    const Table *t = m->table;
    if (t->segment && has_mark(m, "segment", sqlite3_column_int64(m->read, t->segment))) {
        m->counts->conflicts++;
        return ENG_OK;
    }
    EngStatus status = bind_row(m, m->find, t->n_key);
    if (status) return status;
    int rc = sqlite3_step(m->find);
    if (rc == SQLITE_ROW) {
        status = merge_known(m);
    } else if (rc == SQLITE_DONE) {
        eng_kill_point("merge");
        status = write_row(m, m->insert);
        m->counts->added++;
        m->counts->runs += !strcmp(t->name, "runs");
        m->counts->points += !strcmp(t->name, "points");
        m->counts->samples += !strcmp(t->name, "samples");
    } else {
        status = eng_db_fail(m->db, rc, "merge", m->err);
    }
    sqlite3_reset(m->find);
    return status;
}

static EngStatus merge_table(Merge *m, const Table *table)
{
    bool row = false;
    m->table = table;
    EngStatus status = prepare_table(m);
    while (!status && !(status = eng_db_step(m->other, m->read, &row, m->err)) && row)
        status = merge_row(m);
    finalize_table(m);
    return status;
}

static EngStatus merge_all(Merge *m)
{
    EngStatus status = eng_db_exec(m->db, m->err,
                                   "CREATE TEMP TABLE merge_marks (what TEXT, id TEXT, n INTEGER,"
                                   " PRIMARY KEY (what, id, n)) WITHOUT ROWID",
                                   "");
    if (!status)
        status = prepare(m->db, &m->mark, "INSERT OR IGNORE INTO merge_marks VALUES (?1, ?2, ?3)",
                         m->err);
    if (!status)
        status =
            prepare(m->db, &m->is_marked,
                    "SELECT 1 FROM merge_marks WHERE what = ?1 AND id = ?2 AND n = ?3", m->err);
    for (size_t i = 0; i < sizeof tables / sizeof *tables && !status; i++)
        if (tables[i].since <= m->other->version) status = merge_table(m, &tables[i]);
    sqlite3_finalize(m->mark);
    sqlite3_finalize(m->is_marked);
    if (!status) status = eng_db_exec(m->db, m->err, "DROP TABLE merge_marks", "");
    return status;
}

EngStatus eng_db_merge(EngDb *db, EngDb *other, EngMergeCounts *counts, EngErr *err)
{
    Merge m = {.db = db, .other = other, .counts = counts, .err = err};
    *counts = (EngMergeCounts){0};
    EngStatus status = eng_db_exec(other, err, "BEGIN", ""); /* one snapshot of all its tables */
    if (status) return status;
    status = eng_db_begin(db, err);
    if (!status) status = eng_db_end(db, true, merge_all(&m), err);
    eng_db_rollback(other);
    return status;
}
