/* Opening a trace, and what is refused; see reader.h. The tables are read in reader_rows.c. */
#include "bench/trace/reader.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/str.h"
#include "bench/trace/reader_parts.h"

/* ---- the database ------------------------------------------------------------------------------
 */

EngStatus eng_reader_fail(EngReader *r, const char *doing)
{
    int rc = sqlite3_errcode(r->sql) & 0xff;
    if (rc == SQLITE_NOMEM) return ENG_FAIL(r->err, ENG_NO_MEMORY, "%s: out of memory", r->t->path);
    if (rc == SQLITE_NOTADB)
        return ENG_FAIL(r->err, ENG_BAD_DATA,
                        "%s: no SQLite database, so no export of Nsight Systems (`nsys export "
                        "--type=sqlite` makes one)",
                        r->t->path);
    return ENG_FAIL(r->err, ENG_BAD_DATA, "%s: cannot %s: %s", r->t->path, doing,
                    sqlite3_errmsg(r->sql));
}

EngStatus eng_reader_no_memory(EngReader *r)
{
    return ENG_FAIL(r->err, ENG_NO_MEMORY, "%s: out of memory for the trace", r->t->path);
}

const char *eng_reader_intern(EngReader *r, const char *text)
{
    const char *known = eng_key_table_get(&r->texts, text ? text : "");
    if (known) return known;
    char *copy = eng_arena_strdup(r->t->arena, text ? text : "");
    if (copy && eng_key_table_put(&r->texts, copy, copy)) return copy;
    r->no_memory = true; /* or a table would look absent */
    return NULL;
}

/* The first column of the first row, "" without one or where the table is absent. What asks for a
 * column that this table lacks is told nothing as well: to prepare it is a plain error then. */
static EngStatus ask(EngReader *r, const char *table, const char **text, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    EngStatus status = ENG_OK;
    *text = "";
    if (!eng_reader_has_table(r, table)) return ENG_OK;
    int rc = sqlite3_prepare_v2(r->sql, sql, -1, &statement, NULL);
    if (rc == SQLITE_ERROR) return ENG_OK;
    if (rc) return eng_reader_fail(r, "read it");
    rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW && sqlite3_column_type(statement, 0) != SQLITE_NULL) {
        *text = eng_reader_intern(r, (const char *)sqlite3_column_text(statement, 0));
        if (!*text) status = eng_reader_no_memory(r);
    } else if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        status = eng_reader_fail(r, "read it");
    }
    sqlite3_finalize(statement);
    return status;
}

static EngStatus read_about(EngReader *r)
{
    EngTrace *t = r->t;
    const char *product = "", *version = "", *cores = "";
    EngStatus status = ask(r, "META_DATA_EXPORT", &product,
                           "SELECT value FROM META_DATA_EXPORT WHERE name = 'EXPORT_PRODUCT_NAME'");
    if (!status)
        status = ask(r, "META_DATA_EXPORT", &version,
                     "SELECT value FROM META_DATA_EXPORT WHERE name = 'EXPORT_PRODUCT_VERSION'");
    if (!status)
        status = ask(r, "META_DATA_EXPORT", &t->schema,
                     "SELECT value FROM META_DATA_EXPORT WHERE name IN ('EXPORT_SCHEMA_VERSION',"
                     " 'EXPORT_SCHEMA_VERSION_MAJOR') ORDER BY name");
    if (!status)
        status = ask(r, "TARGET_INFO_GPU", &t->gpu, "SELECT name FROM TARGET_INFO_GPU LIMIT 1");
    if (!status)
        status = ask(r, "TARGET_INFO_SYSTEM_ENV", &t->host_os,
                     "SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'OsDescription'");
    if (!status)
        status = ask(r, "TARGET_INFO_SYSTEM_ENV", &cores,
                     "SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'CpuCores'");
    if (!status)
        status = ask(r, "TARGET_INFO_SESSION_START_TIME", &t->utc,
                     "SELECT utcTime FROM TARGET_INFO_SESSION_START_TIME LIMIT 1");
    if (status) return status;
    t->cpu_cores = strtoll(cores, NULL, 10);
    t->ours = strncmp(product, "NVIDIA", 6) && strcasestr(product, "engram") != NULL;
    t->product = eng_arena_printf(t->arena, "%s%s%s", product, *version ? " " : "", version);
    if (!t->product) return eng_reader_no_memory(r);
    if (*t->schema && strtol(t->schema, NULL, 10) != 3)
        return ENG_FAIL(r->err, ENG_BAD_DATA,
                        "%s: schema version %s; only those of major version 3 can be read", t->path,
                        t->schema);
    return ENG_OK;
}

/* ---- files that cannot answer ------------------------------------------------------------------
 */

static EngStatus refuse_lost(EngReader *r)
{
    const char *text;
    EngStatus status = ask(r, "DIAGNOSTIC_EVENT", &text,
                           "SELECT text FROM DIAGNOSTIC_EVENT WHERE severity IN (2, 3) AND"
                           " (text LIKE '%dropped%' OR text LIKE '%lost %' OR text LIKE '% lost%')"
                           " LIMIT 1");
    /* Of a trace of ours; its diagnostics tell lost records from refused ones. */
    if (!status && !*text && !eng_reader_has_table(r, "DIAGNOSTIC_EVENT"))
        status = ask(r, "ENGRAM_DROPS", &text,
                     "SELECT n || ' ' || what FROM ENGRAM_DROPS WHERE n > 0 LIMIT 1");
    if (status || !*text) return status;
    return ENG_FAIL(r->err, ENG_BAD_DATA,
                    "%s: records were lost while it was recorded (\"%.160s\")", r->t->path, text);
}

/* Traced graph by graph a launch is one interval: what ran inside, and when, is not in the file.
 * Without any row of it, launches whose nodes left no record tell the same. */
static EngStatus refuse_hidden(EngReader *r)
{
    const char *graphs, *launches = "", *nodes = "";
    char sql[512];
    const char *api = eng_reader_table(r, "CUPTI_ACTIVITY_KIND_RUNTIME"),
               *kernels = eng_reader_table(r, "CUPTI_ACTIVITY_KIND_KERNEL");
    EngStatus status = ask(r, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", &graphs,
                           "SELECT nullif(count(*), 0) FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE");
    if (!status && api) {
        snprintf(sql, sizeof sql,
                 "SELECT nullif(count(*), 0) FROM %s a JOIN StringIds s ON s.id = a.nameId WHERE"
                 " s.value GLOB 'cudaGraphLaunch*' OR s.value GLOB 'cuGraphLaunch*'",
                 api);
        status = ask(r, api, &launches, sql);
    }
    if (!status && kernels) {
        snprintf(sql, sizeof sql, "SELECT 1 FROM %s WHERE graphNodeId <> 0 LIMIT 1", kernels);
        status = ask(r, kernels, &nodes, sql);
    }
    if (status || (!*graphs && (!*launches || *nodes))) return status;
    return ENG_FAIL(r->err, ENG_BAD_DATA,
                    "%s: hides the kernels of %s graph launches; record with `nsys profile "
                    "--cuda-graph-trace=node`",
                    r->t->path, *graphs ? graphs : launches);
}

static EngStatus refuse_foreign(EngReader *r)
{
    const char *kernels = eng_reader_table(r, "CUPTI_ACTIVITY_KIND_KERNEL"),
               *ranges = eng_reader_table(r, "NVTX_EVENTS"),
               *export = eng_reader_table(r, "META_DATA_EXPORT");
    bool usable = (kernels && eng_reader_has_column(r, kernels, "start")) ||
                  (ranges && eng_reader_has_column(r, ranges, "eventType"));
    if (usable) return ENG_OK;
    return ENG_FAIL(r->err, ENG_BAD_DATA,
                    export ? "%s: an export without kernels and without NVTX ranges"
                           : "%s: no export of Nsight Systems (no table of kernels or of NVTX "
                             "ranges)",
                    r->t->path);
}

/* ---- order and duplicates ----------------------------------------------------------------------
 */

static int by_place(const void *a, const void *b)
{
    const EngTraceEvent *x = a, *y = b;
    if (x->track != y->track) return x->track < y->track ? -1 : 1;
    if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
    if (x->what != y->what) return x->what < y->what ? -1 : 1;
    if (x->what <= ENG_TRACE_SET) {
        if (x->correlation != y->correlation) return x->correlation < y->correlation ? -1 : 1;
        if (x->graph_node != y->graph_node) return x->graph_node < y->graph_node ? -1 : 1;
    }
    return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns); /* longest first */
}

static bool is_repeat(const EngTraceEvent *a, const EngTraceEvent *b)
{
    return a->what <= ENG_TRACE_SET && a->what == b->what && a->correlation >= 0 &&
           a->track == b->track && a->start_ns == b->start_ns && a->correlation == b->correlation &&
           a->graph_node == b->graph_node;
}

static EngStatus put_in_order(EngReader *r)
{
    EngTrace *t = r->t;
    int64_t n = 0;
    for (int64_t i = 0; i < t->n_events; i++) {
        EngTraceEvent *e = &t->events[i];
        if (e->end_ns == ENG_READER_OPEN) {
            e->end_ns = t->last_ns > e->start_ns ? t->last_ns : e->start_ns;
            t->refused.open++;
        }
    }
    if (t->n_events) qsort(t->events, (size_t)t->n_events, sizeof *t->events, by_place);
    for (int64_t i = 0; i < t->n_events; i++) {
        if (n && is_repeat(&t->events[n - 1], &t->events[i])) {
            t->refused.repeated++;
            t->tracks[t->events[i].track].n_events--;
            t->n_by_what[t->events[i].what]--;
        } else {
            t->events[n++] = t->events[i];
        }
    }
    t->n_events = n;
    EngStatus status = ENG_OK;
    for (int i = 0; i < t->n_tracks && !status; i++) {
        EngTrackWork work;
        if (!t->tracks[i].gpu) continue;
        status = eng_trace_track_work(t, i, &work, NULL, NULL, r->err);
        t->refused.above_wall += work.kernel_ns < 0;
    }
    return status;
}

/* ---- opening -----------------------------------------------------------------------------------
 */

static uint32_t big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* SQLite itself notices missing pages only when it comes to them. The header holds the page size
 * (1: 65536), the number of pages, and whether that number is up to date. */
static EngStatus refuse_cut(EngReader *r, const uint8_t *file, size_t n)
{
    if (n < 100 || memcmp(file, "SQLite format 3", 16)) return ENG_OK; /* told when opened */
    uint64_t page = (uint64_t)file[16] << 8 | file[17];
    uint64_t bytes = (page == 1 ? 65536 : page) * big_endian(file + 28);
    if (big_endian(file + 24) != big_endian(file + 92) || bytes <= n) return ENG_OK;
    return ENG_FAIL(r->err, ENG_BAD_DATA, "%s: cut off, %llu of %llu bytes are there", r->t->path,
                    (unsigned long long)n, (unsigned long long)bytes);
}

static EngStatus digest_file(EngReader *r)
{
    EngMapping map;
    EngStatus status = eng_file_map(r->t->path, &map, r->err);
    if (status == ENG_NOT_FOUND)
        return ENG_FAIL(r->err, ENG_BAD_DATA, "%s: no such file", r->t->path);
    if (status) return status;
    status = refuse_cut(r, map.data, map.bytes);
    if (!status) status = eng_digest(map.data ? map.data : "", map.bytes, r->t->sha256, r->err);
    eng_file_unmap(&map);
    return status;
}

/* A file in WAL mode is opened as unchanging, unless a log lies beside it: SQLite would make such
 * files beside it, and fail where it must not. */
static EngStatus open_database(EngReader *r)
{
    EngStr uri = {0}, log = {0};
    eng_str_printf(&log, "%s-wal", r->t->path);
    eng_str_add(&uri, "file:");
    for (const char *c = r->t->path; *c; c++)
        eng_str_printf(&uri, strchr("?#%", *c) ? "%%%02x" : "%c", (unsigned char)*c);
    EngStatus status = eng_str_status(&log, r->err);
    if (!status && !eng_file_exists(log.text)) eng_str_add(&uri, "?immutable=1");
    if (!status) status = eng_str_status(&uri, r->err);
    if (!status && sqlite3_open_v2(uri.text, &r->sql, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL))
        status = eng_reader_fail(r, "open it");
    eng_str_free(&uri);
    eng_str_free(&log);
    return status;
}

static EngStatus read_all(EngReader *r)
{
    EngStatus status = digest_file(r);
    if (status) return status;
    status = open_database(r);
    if (status) return status;
    /* The header is read by the first statement, not by opening. */
    if (sqlite3_exec(r->sql, "SELECT 1 FROM sqlite_master", NULL, NULL, NULL))
        return eng_reader_fail(r, "read it");
    status = refuse_foreign(r);
    if (!status) status = read_about(r);
    if (!status) status = refuse_lost(r);
    if (!status) status = refuse_hidden(r);
    if (!status) status = eng_reader_rows(r);
    if (!status && r->no_memory) status = eng_reader_no_memory(r);
    return status ? status : put_in_order(r);
}

EngStatus eng_trace_open(const char *path, EngTrace **trace, EngErr *err)
{
    *trace = NULL;
    EngTrace *t = eng_alloc(sizeof *t);
    if (!t) return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory for the trace", path);
    EngReader r = {.t = t, .err = err};
    t->arena = eng_arena_create();
    t->path = t->arena ? eng_arena_strdup(t->arena, path) : NULL;
    t->product = t->schema = t->gpu = t->host_os = t->utc = "";
    t->first_ns = INT64_MAX;
    t->last_ns = INT64_MIN;
    EngStatus status = t->path
                           ? read_all(&r)
                           : ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory for the trace", path);
    sqlite3_close(r.sql);
    eng_key_table_free(&r.texts);
    if (status) {
        eng_trace_close(t);
        return status;
    }
    if (!t->n_events) t->first_ns = t->last_ns = 0;
    *trace = t;
    return ENG_OK;
}

void eng_trace_close(EngTrace *trace)
{
    if (!trace) return;
    eng_free(trace->events);
    eng_free(trace->tracks);
    if (trace->arena) eng_arena_destroy(trace->arena);
    eng_free(trace);
}

void eng_trace_refusals_text(const EngTraceRefusals *refused, char *out, size_t size)
{
    const struct {
        int64_t n;
        const char *what;
    } all[] = {{refused->backwards, "ended before they began"},
               {refused->zero, "had no timestamps"},
               {refused->repeated, "were there twice"}};
    size_t used = 0;
    int64_t sum = refused->backwards + refused->zero + refused->repeated;
    out[0] = 0;
    if (sum) used = (size_t)snprintf(out, size, "%lld records refused", (long long)sum);
    for (size_t i = 0, told = 0; sum && i < 3; i++)
        if (all[i].n && used < size)
            used += (size_t)snprintf(out + used, size - used, "%s %lld %s", told++ ? "," : ":",
                                     (long long)all[i].n, all[i].what);
    if (refused->above_wall && used < size)
        used += (size_t)snprintf(out + used, size - used,
                                 "%skernel times of %lld streams sum to more than their wall time "
                                 "and are not given",
                                 used ? "; " : "", (long long)refused->above_wall);
    if (refused->open && used < size)
        snprintf(out + used, size - used, "%s%lld ranges without end, taken to the last timestamp",
                 used ? "; " : "", (long long)refused->open);
}

/* ---- work of a track ---------------------------------------------------------------------------
 */

/* Events of a track lie together. */
static int64_t first_of(const EngTrace *t, int track)
{
    int64_t lo = 0, hi = t->n_events;
    while (lo < hi) {
        int64_t middle = lo + (hi - lo) / 2;
        if (t->events[middle].track < track)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

static EngStatus add_events(const EngTrace *t, int track, EngTrackWork *w, EngIntervals *set,
                            EngErr *err)
{
    bool gpu = t->tracks[track].gpu;
    EngStatus status = ENG_OK;
    int64_t kernel_first = INT64_MAX, kernel_last = INT64_MIN;
    for (int64_t i = first_of(t, track); i < t->n_events && t->events[i].track == track; i++) {
        const EngTraceEvent *e = &t->events[i];
        if (gpu ? e->what > ENG_TRACE_SET : e->what != ENG_TRACE_RANGE) continue;
        if (!w->n || e->start_ns < w->first_ns) w->first_ns = e->start_ns;
        if (!w->n || e->end_ns > w->last_ns) w->last_ns = e->end_ns;
        w->n++;
        w->sum_ns += e->end_ns - e->start_ns;
        if (e->what == ENG_TRACE_KERNEL) {
            w->kernel_ns += e->end_ns - e->start_ns;
            if (e->start_ns < kernel_first) kernel_first = e->start_ns;
            if (e->end_ns > kernel_last) kernel_last = e->end_ns;
        }
        status = eng_intervals_add(set, e->start_ns, e->end_ns, err);
        if (status) return status;
    }
    if (w->kernel_ns && w->kernel_ns > kernel_last - kernel_first) w->kernel_ns = -1;
    return ENG_OK;
}

EngStatus eng_trace_track_work(const EngTrace *trace, int track, EngTrackWork *work,
                               EngIntervals *busy, EngIntervals *gaps, EngErr *err)
{
    EngIntervals own_busy = {0}, own_gaps = {0};
    EngIntervals *set = busy ? busy : &own_busy, *idle = gaps ? gaps : &own_gaps;
    *work = (EngTrackWork){0};
    eng_intervals_clear(set);
    EngStatus status = add_events(trace, track, work, set, err);
    eng_intervals_close(set);
    work->busy_ns = eng_intervals_total(set);
    if (!status) status = eng_intervals_gaps(set, work->first_ns, work->last_ns, idle, err);
    work->n_gaps = idle->n;
    work->gap_ns = eng_intervals_total(idle);
    for (int64_t i = 0; i < idle->n; i++) {
        int64_t length = idle->items[i].end - idle->items[i].start;
        if (length > work->longest_gap_ns) work->longest_gap_ns = length;
    }
    eng_intervals_free(&own_busy);
    eng_intervals_free(&own_gaps);
    return status;
}
