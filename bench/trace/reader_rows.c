/* The tables of a trace, row by row. Each SELECT is made from the columns that the file has; a
 * column that an older or newer schema lacks reads as "not told". */
#include "bench/trace/reader_parts.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

const char *eng_reader_table(EngReader *r, const char *name)
{
    static const char sql[] =
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND (name = ?1 OR"
        " name GLOB ?1 || '_V[0-9]') ORDER BY name DESC LIMIT 1";
    sqlite3_stmt *statement = NULL;
    const char *found = NULL;
    if (!sqlite3_prepare_v2(r->sql, sql, -1, &statement, NULL)) {
        sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
        if (sqlite3_step(statement) == SQLITE_ROW)
            found = eng_reader_intern(r, (const char *)sqlite3_column_text(statement, 0));
    }
    sqlite3_finalize(statement);
    return found;
}

bool eng_reader_has_table(EngReader *r, const char *table)
{
    return eng_reader_has_column(r, table, NULL);
}

bool eng_reader_has_column(EngReader *r, const char *table, const char *column)
{
    static const char sql[] =
        "SELECT 1 FROM pragma_table_info(?1) WHERE ?2 IS NULL OR name = ?2 LIMIT 1";
    sqlite3_stmt *statement = NULL;
    bool found = false;
    if (!sqlite3_prepare_v2(r->sql, sql, -1, &statement, NULL)) {
        sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
        if (column) sqlite3_bind_text(statement, 2, column, -1, SQLITE_STATIC);
        found = sqlite3_step(statement) == SQLITE_ROW;
    }
    sqlite3_finalize(statement);
    return found;
}

/* ---- tracks and events -------------------------------------------------------------------------
 */

static bool same_track(const EngTraceTrack *a, const EngTraceTrack *b)
{
    return a->gpu == b->gpu && a->global == b->global && a->device == b->device &&
           a->context == b->context && a->stream == b->stream;
}

/* Index of the track, made when new; -1: out of memory. Neighbouring rows mostly share one. */
static int track_of(EngReader *r, EngTraceTrack wanted)
{
    EngTrace *t = r->t;
    if (r->last_track < t->n_tracks && same_track(&t->tracks[r->last_track], &wanted))
        return r->last_track;
    for (int i = 0; i < t->n_tracks; i++)
        if (same_track(&t->tracks[i], &wanted)) return r->last_track = i;
    if (t->n_tracks == r->n_track_room) {
        int room = r->n_track_room ? 2 * r->n_track_room : 32;
        EngTraceTrack *grown = eng_realloc(t->tracks, (size_t)t->n_tracks * sizeof *grown,
                                           (size_t)room * sizeof *grown);
        if (!grown) return -1;
        t->tracks = grown;
        r->n_track_room = room;
    }
    if (wanted.gpu)
        wanted.name = eng_arena_printf(t->arena, "stream %lld of device %lld",
                                       (long long)wanted.stream, (long long)wanted.device);
    else
        wanted.name =
            eng_arena_printf(t->arena, "thread %lld", (long long)(wanted.global & 0xffffff));
    if (!wanted.name) return -1;
    t->tracks[t->n_tracks] = wanted;
    return r->last_track = t->n_tracks++;
}

/* Nanoseconds that differ by less than 2^63: more than a century from the origin is no time. */
static bool is_time(int64_t ns)
{
    return ns > -(INT64_C(1) << 62) && ns < INT64_C(1) << 62;
}

/* Checks times, then keeps the event. */
static EngStatus keep(EngReader *r, const EngTraceEvent *event)
{
    EngTrace *t = r->t;
    bool gpu = event->what <= ENG_TRACE_SET, open = event->end_ns == ENG_READER_OPEN;
    if (!is_time(event->start_ns) || (!open && !is_time(event->end_ns)))
        return t->refused.zero++, ENG_OK;
    if (!open) {
        bool lost = event->start_ns == 0 && event->end_ns == 0;
        lost = lost || (gpu && (event->start_ns == 0 || event->end_ns == 0));
        if (lost && event->what != ENG_TRACE_MARK) return t->refused.zero++, ENG_OK;
        if (event->end_ns < event->start_ns) return t->refused.backwards++, ENG_OK;
        if (event->end_ns > t->last_ns) t->last_ns = event->end_ns;
    }
    if (event->start_ns < t->first_ns) t->first_ns = event->start_ns;
    if (event->start_ns > t->last_ns) t->last_ns = event->start_ns;
    if (t->n_events == t->room) {
        int64_t room = t->room ? 2 * t->room : 4096;
        EngTraceEvent *grown = eng_realloc(t->events, (size_t)t->n_events * sizeof *grown,
                                           (size_t)room * sizeof *grown);
        if (!grown) return eng_reader_no_memory(r);
        t->events = grown;
        t->room = room;
    }
    t->events[t->n_events++] = *event;
    t->tracks[event->track].n_events++;
    t->n_by_what[event->what]++;
    return ENG_OK;
}

/* ---- selects -----------------------------------------------------------------------------------
 */

/* "k.<column>, " when the table has it, else its stand-in. */
static void add_column(EngReader *r, EngStr *sql, const char *table, const char *column,
                       const char *instead)
{
    bool there = eng_reader_has_column(r, table, column);
    eng_str_printf(sql, "%s%s, ", there ? "k." : "", there ? column : instead);
}

static bool has_strings(EngReader *r)
{
    return eng_reader_has_column(r, "StringIds", "id") &&
           eng_reader_has_column(r, "StringIds", "value");
}

/* The text of a column that refers to StringIds. */
static void add_string(EngReader *r, EngStr *sql, const char *table, const char *column)
{
    if (!eng_reader_has_column(r, table, column))
        eng_str_add(sql, "NULL, ");
    else if (has_strings(r))
        eng_str_printf(sql, "(SELECT s.value FROM StringIds s WHERE s.id = k.%s), ", column);
    else
        eng_str_printf(sql, "'#' || k.%s, ", column);
}

static int64_t number_or(sqlite3_stmt *row, int column, int64_t instead)
{
    return sqlite3_column_type(row, column) == SQLITE_NULL ? instead
                                                           : sqlite3_column_int64(row, column);
}

static const char *text_at(sqlite3_stmt *row, int column)
{
    return (const char *)sqlite3_column_text(row, column);
}

typedef EngStatus (*Row)(EngReader *r, EngTraceWhat what, sqlite3_stmt *row);

static EngStatus each(EngReader *r, EngStr *sql, const char *table, EngTraceWhat what, Row take)
{
    sqlite3_stmt *statement = NULL;
    int rc = SQLITE_DONE;
    eng_str_printf(sql, "0 FROM %s k", table); /* the 0 ends the list of columns */
    EngStatus status = eng_str_status(sql, r->err);
    if (!status && sqlite3_prepare_v2(r->sql, sql->text, -1, &statement, NULL))
        status = eng_reader_fail(r, "read its tables");
    while (!status && (rc = sqlite3_step(statement)) == SQLITE_ROW)
        status = take(r, what, statement);
    if (!status && rc != SQLITE_DONE) status = eng_reader_fail(r, "read its tables");
    sqlite3_finalize(statement);
    eng_str_free(sql);
    return status;
}

/* ---- kernels, copies, sets ---------------------------------------------------------------------
 */

enum {
    START,
    END,
    DEVICE,
    GPU,
    CONTEXT,
    STREAM,
    PROCESS,
    CORRELATION,
    NODE,
    BYTES,
    KIND,
    NAME,
    FULL
};

/* The GPU of a process's device, NULL where the file does not tell: processes that each see one
 * GPU all call it device 0. */
static void add_gpu(EngReader *r, EngStr *sql, const char *table)
{
    static const char *const columns[] = {"gpuId", "cudaId", "pid"};
    bool told =
        eng_reader_has_column(r, table, "globalPid") && eng_reader_has_column(r, table, "deviceId");
    for (int i = 0; i < 3 && told; i++)
        told = eng_reader_has_column(r, "TARGET_INFO_CUDA_DEVICE", columns[i]);
    eng_str_add(sql, told ? "(SELECT d.gpuId FROM TARGET_INFO_CUDA_DEVICE d WHERE d.cudaId ="
                            " k.deviceId AND d.pid = k.globalPid >> 24 & 0xffffff LIMIT 1), "
                          : "NULL, ");
}

static const char *copy_name(int64_t kind)
{
    static const char *const names[] = {"unknown",         "host-to-device",  "device-to-host",
                                        "host-to-array",   "array-to-host",   "array-to-array",
                                        "array-to-device", "device-to-array", "device-to-device",
                                        "host-to-host",    "peer-to-peer"};
    return kind >= 0 && kind <= 10 ? names[kind] : kind <= 13 ? "unified memory" : "unknown";
}

static EngStatus take_work(EngReader *r, EngTraceWhat what, sqlite3_stmt *row)
{
    char copy[64] = "memset";
    EngTraceEvent e = {.start_ns = sqlite3_column_int64(row, START),
                       .end_ns = sqlite3_column_int64(row, END),
                       .what = what,
                       .domain = "",
                       .correlation = number_or(row, CORRELATION, -1),
                       .graph_node = number_or(row, NODE, 0),
                       .tokens = -1,
                       .layer = -1,
                       .step = -1,
                       .bytes = number_or(row, BYTES, -1),
                       .value = NAN};
    EngTraceTrack track = {.gpu = true,
                           .global = number_or(row, PROCESS, 0),
                           .device = number_or(row, GPU, number_or(row, DEVICE, 0)),
                           .context = number_or(row, CONTEXT, 0),
                           .stream = number_or(row, STREAM, 0)};
    if (what == ENG_TRACE_COPY)
        snprintf(copy, sizeof copy, "memcpy %s", copy_name(number_or(row, KIND, 0)));
    const char *name = what == ENG_TRACE_KERNEL ? text_at(row, NAME) : copy;
    const char *full = what == ENG_TRACE_KERNEL ? text_at(row, FULL) : NULL;
    if (!name) name = full ? full : "";
    e.name = eng_reader_intern(r, name);
    e.full = full ? eng_reader_intern(r, full) : e.name;
    e.track = track_of(r, track);
    if (!e.name || !e.full || e.track < 0) return eng_reader_no_memory(r);
    return keep(r, &e);
}

static EngStatus read_work(EngReader *r, EngTraceWhat what, const char *base)
{
    EngStr sql = {0};
    const char *table = eng_reader_table(r, base);
    if (!table) return ENG_OK;
    if (!eng_reader_has_column(r, table, "start") || !eng_reader_has_column(r, table, "end"))
        return ENG_FAIL(r->err, ENG_BAD_DATA, "%s: table %s has no start or no end", r->t->path,
                        table);
    eng_str_add(&sql, "SELECT ");
    add_column(r, &sql, table, "start", "");
    add_column(r, &sql, table, "end", "");
    add_column(r, &sql, table, "deviceId", "0");
    add_gpu(r, &sql, table);
    add_column(r, &sql, table, "contextId", "0");
    add_column(r, &sql, table, "streamId", "0");
    add_column(r, &sql, table, "globalPid", "0");
    add_column(r, &sql, table, "correlationId", "NULL");
    add_column(r, &sql, table, "graphNodeId", "NULL");
    add_column(r, &sql, table, "bytes", "NULL");
    add_column(r, &sql, table, "copyKind", "NULL");
    add_string(r, &sql, table, "shortName");
    add_string(r, &sql, table, "demangledName");
    return each(r, &sql, table, what, take_work);
}

/* ---- ranges, marks, API calls ------------------------------------------------------------------
 */

enum {
    R_START,
    R_END,
    R_TYPE,
    R_THREAD,
    R_CORRELATION,
    R_TEXT_ID,
    R_TEXT,
    R_DOMAIN,
    R_TOKENS,
    R_LAYER,
    R_BYTES,
    R_STEP,
    R_DOUBLE
};

static EngStatus take_range(EngReader *r, EngTraceWhat what, sqlite3_stmt *row)
{
    bool api = what == ENG_TRACE_API, ended = sqlite3_column_type(row, R_END) != SQLITE_NULL;
    EngTraceTrack track = {.global = number_or(row, R_THREAD, 0)};
    EngTraceEvent e = {.start_ns = sqlite3_column_int64(row, R_START),
                       .end_ns = ended ? sqlite3_column_int64(row, R_END) : ENG_READER_OPEN,
                       .what = what,
                       .correlation = number_or(row, R_CORRELATION, -1),
                       .tokens = number_or(row, R_TOKENS, -1),
                       .layer = number_or(row, R_LAYER, -1),
                       .step = number_or(row, R_STEP, -1),
                       .bytes = number_or(row, R_BYTES, -1),
                       .value = NAN};
    if (!api && sqlite3_column_int64(row, R_TYPE) == 34) e.what = ENG_TRACE_MARK;
    if (e.what == ENG_TRACE_MARK) e.end_ns = e.start_ns;
    if (sqlite3_column_type(row, R_DOUBLE) != SQLITE_NULL)
        e.value = sqlite3_column_double(row, R_DOUBLE);
    const char *registered = text_at(row, R_TEXT_ID);
    e.name = e.full = eng_reader_intern(r, registered ? registered : text_at(row, R_TEXT));
    e.domain = eng_reader_intern(r, text_at(row, R_DOMAIN));
    e.track = track_of(r, track);
    if (!e.name || !e.domain || e.track < 0) return eng_reader_no_memory(r);
    return keep(r, &e);
}

/* Domains have names that belong to a process. */
static bool has_domains(EngReader *r, const char *table)
{
    static const char *const columns[] = {"domainId", "textId", "eventType", "globalTid"};
    bool all = has_strings(r);
    for (int i = 0; i < 4 && all; i++) all = eng_reader_has_column(r, table, columns[i]);
    return all;
}

/* Members of a payload's JSON text; another tool's payload may hold anything. */
static void add_payload(EngReader *r, EngStr *sql, const char *table, const char *member)
{
    if (eng_reader_has_column(r, table, "jsonText"))
        eng_str_printf(sql,
                       "CASE WHEN json_valid(k.jsonText) AND json_type(k.jsonText, '$.%s') ="
                       " 'integer' THEN json_extract(k.jsonText, '$.%s') END, ",
                       member, member);
    else
        eng_str_add(sql, "NULL, ");
}

static EngStatus read_ranges(EngReader *r)
{
    EngStr sql = {0};
    const char *table = eng_reader_table(r, "NVTX_EVENTS");
    if (!table || !eng_reader_has_column(r, table, "start") ||
        !eng_reader_has_column(r, table, "eventType"))
        return ENG_OK;
    eng_str_add(&sql, "SELECT ");
    add_column(r, &sql, table, "start", "0");
    add_column(r, &sql, table, "end", "NULL");
    add_column(r, &sql, table, "eventType", "");
    add_column(r, &sql, table, "globalTid", "0");
    eng_str_add(&sql, "NULL, ");
    add_string(r, &sql, table, "textId");
    add_column(r, &sql, table, "text", "NULL");
    if (has_domains(r, table))
        eng_str_printf(&sql, "(SELECT d.name FROM temp.domains d WHERE d.id = k.domainId AND"
                             " d.process IS k.globalTid & ~0xffffff), ");
    else
        eng_str_add(&sql, "NULL, ");
    const char *const members[] = {"tokens", "layer", "bytes", "step"};
    for (int i = 0; i < 4; i++) add_payload(r, &sql, table, members[i]);
    add_column(r, &sql, table, "doubleValue", "NULL");
    char where[256];
    snprintf(where, sizeof where, "(SELECT * FROM %s WHERE eventType IN (34, 59, 60, 70, 71))",
             table);
    return each(r, &sql, where, ENG_TRACE_RANGE, take_range);
}

/* A domain is a row of its own kind that carries the name. */
static EngStatus read_domains(EngReader *r)
{
    EngStr sql = {0};
    const char *table = eng_reader_table(r, "NVTX_EVENTS");
    if (!table || !has_domains(r, table)) return ENG_OK;
    eng_str_add(&sql, "CREATE TEMP TABLE domains AS SELECT domainId AS id,"
                      " globalTid & ~0xffffff AS process, coalesce((SELECT value FROM StringIds s"
                      " WHERE s.id = k.textId)");
    eng_str_printf(&sql, "%s, '') AS name FROM %s k WHERE eventType = 75",
                   eng_reader_has_column(r, table, "text") ? ", text" : "", table);
    EngStatus status = eng_str_status(&sql, r->err);
    if (!status && sqlite3_exec(r->sql, sql.text, NULL, NULL, NULL))
        status = eng_reader_fail(r, "read its NVTX domains");
    eng_str_free(&sql);
    return status;
}

static EngStatus read_api(EngReader *r)
{
    EngStr sql = {0};
    const char *table = eng_reader_table(r, "CUPTI_ACTIVITY_KIND_RUNTIME");
    if (!table || !eng_reader_has_column(r, table, "start") ||
        !eng_reader_has_column(r, table, "end"))
        return ENG_OK;
    eng_str_add(&sql, "SELECT k.start, k.end, NULL, ");
    add_column(r, &sql, table, "globalTid", "0");
    add_column(r, &sql, table, "correlationId", "NULL");
    add_string(r, &sql, table, "nameId");
    eng_str_add(&sql, "NULL, NULL, NULL, NULL, NULL, NULL, NULL, ");
    return each(r, &sql, table, ENG_TRACE_API, take_range);
}

/* ---- names of threads --------------------------------------------------------------------------
 */

static EngStatus take_thread(EngReader *r, EngTraceWhat what, sqlite3_stmt *row)
{
    (void)what;
    for (int i = 0; i < r->t->n_tracks; i++) {
        EngTraceTrack *track = &r->t->tracks[i];
        if (track->gpu || track->global != sqlite3_column_int64(row, 0) || !text_at(row, 1))
            continue;
        track->name = eng_arena_printf(r->t->arena, "%s (thread %lld)", text_at(row, 1),
                                       (long long)(track->global & 0xffffff));
        if (!track->name) return eng_reader_no_memory(r);
    }
    return ENG_OK;
}

static EngStatus name_threads(EngReader *r)
{
    EngStr sql = {0};
    if (!eng_reader_has_column(r, "ThreadNames", "globalTid") ||
        !eng_reader_has_column(r, "ThreadNames", "nameId"))
        return ENG_OK;
    eng_str_add(&sql, "SELECT k.globalTid, ");
    add_string(r, &sql, "ThreadNames", "nameId");
    return each(r, &sql, "ThreadNames", ENG_TRACE_RANGE, take_thread);
}

EngStatus eng_reader_rows(EngReader *r)
{
    EngStatus status = read_work(r, ENG_TRACE_KERNEL, "CUPTI_ACTIVITY_KIND_KERNEL");
    if (!status) status = read_work(r, ENG_TRACE_COPY, "CUPTI_ACTIVITY_KIND_MEMCPY");
    if (!status) status = read_work(r, ENG_TRACE_SET, "CUPTI_ACTIVITY_KIND_MEMSET");
    if (!status) status = read_domains(r);
    if (!status) status = read_ranges(r);
    if (!status) status = read_api(r);
    return status ? status : name_threads(r);
}
