/* See nsys_file.h. One transaction in a file of its own, without a journal: until commit gives it
 * its name the file does not count. */
#include "bench/trace/nsys_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/embedded.h"
#include "base/file.h"
#include "base/kill_point.h"
#include "base/mem.h"
#include "base/str.h"
#include "bench/core/key_table.h"
#include "bench/trace/nsys_tables.h"

#define SQL_BYTES 4096

extern const EngEmbedded eng_embedded_nsys[];

struct EngNsys {
    sqlite3 *sql;
    char *path, *temporary;
    sqlite3_stmt *inserts[ENG_NSYS_TABLE_COUNT]; /* NULL: not needed yet */
    sqlite3_stmt *new_string;
    EngArena *arena;     /* of the strings */
    EngKeyTable strings; /* text -> its StringIds.id, as a number in a pointer */
    int64_t drops;
};

/* ---- statements --------------------------------------------------------------------------------
 */

static EngStatus fail(EngNsys *nsys, EngErr *err)
{
    int rc = sqlite3_errcode(nsys->sql) & 0xff;
    EngStatus status = rc == SQLITE_NOMEM ? ENG_NO_MEMORY
                       : rc == SQLITE_FULL || rc == SQLITE_IOERR || rc == SQLITE_CANTOPEN ? ENG_IO
                                                                                          : ENG_DB;
    return ENG_FAIL(err, status, "%s: cannot write: %s", nsys->path, sqlite3_errmsg(nsys->sql));
}

static EngStatus script(EngNsys *nsys, const char *sql, EngErr *err)
{
    return sqlite3_exec(nsys->sql, sql, NULL, NULL, NULL) ? fail(nsys, err) : ENG_OK;
}

static const char *embedded(const char *name)
{
    const EngEmbedded *file = eng_embedded_nsys;
    while (file->name && strcmp(file->name, name)) file++;
    return file->text ? file->text : "";
}

/* A statement of text values, for the few rows of the META_DATA and TARGET_INFO tables. */
static EngStatus put_texts(EngNsys *nsys, const char *sql, const char *const *values, EngErr *err)
{
    sqlite3_stmt *statement = NULL;
    bool ok = !sqlite3_prepare_v2(nsys->sql, sql, -1, &statement, NULL);
    for (int i = 0; ok && i < sqlite3_bind_parameter_count(statement); i++)
        ok = !sqlite3_bind_text(statement, i + 1, values[i], -1, SQLITE_STATIC);
    ok = ok && sqlite3_step(statement) == SQLITE_DONE;
    EngStatus status = ok ? ENG_OK : fail(nsys, err);
    sqlite3_finalize(statement);
    return status;
}

static EngStatus string_id(EngNsys *nsys, const char *text, int64_t *id, EngErr *err)
{
    void *known = eng_key_table_get(&nsys->strings, text);
    *id = (int64_t)(intptr_t)known;
    if (known) return ENG_OK;
    char *copy = eng_arena_strdup(nsys->arena, text);
    *id = (int64_t)nsys->strings.n + 1;
    if (!copy || !eng_key_table_put(&nsys->strings, copy, (void *)(intptr_t)*id))
        return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory for names", nsys->path);
    sqlite3_bind_int64(nsys->new_string, 1, *id);
    sqlite3_bind_text(nsys->new_string, 2, copy, -1, SQLITE_STATIC);
    bool ok = sqlite3_step(nsys->new_string) == SQLITE_DONE;
    sqlite3_reset(nsys->new_string);
    return ok ? ENG_OK : fail(nsys, err);
}

/* ---- rows --------------------------------------------------------------------------------------
 */

/* Makes a table of the lazy part; those always made are there. */
static EngStatus make_table(EngNsys *nsys, const char *name, EngErr *err)
{
    const char *schema = embedded("nsys_schema.sql"), *lazy = strstr(schema, "-- lazy");
    char head[128];
    snprintf(head, sizeof head, "CREATE TABLE %s (", name);
    const char *from = lazy ? strstr(lazy, head) : NULL, *to = from ? strchr(from, ';') : NULL;
    if (!to) return ENG_OK;
    char *sql = eng_alloc((size_t)(to - from) + 1);
    if (!sql) return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", nsys->path);
    memcpy(sql, from, (size_t)(to - from));
    EngStatus status = script(nsys, sql, err);
    eng_free(sql);
    return status;
}

static EngStatus prepare(EngNsys *nsys, EngNsysTableId id, EngErr *err)
{
    const EngNsysTable *table = &eng_nsys_tables[id];
    EngStr columns = {0}, values = {0};
    EngStatus status = make_table(nsys, table->name, err);
    if (status) return status;
    for (const EngNsysColumn *c = table->columns; c->name; c++) {
        const char *comma = c == table->columns ? "" : ", ";
        eng_str_printf(&columns, "%s%s", comma, c->name);
        eng_str_printf(&values, "%s%s", comma, c->type == ENG_NSYS_FIXED ? c->fixed : "?");
    }
    status = eng_str_status(&columns, err);
    if (!status) status = eng_str_status(&values, err);
    if (!status) {
        char sql[SQL_BYTES];
        snprintf(sql, sizeof sql, "INSERT INTO %s (%s) VALUES (%s)", table->name, columns.text,
                 values.text);
        if (sqlite3_prepare_v2(nsys->sql, sql, -1, &nsys->inserts[id], NULL))
            status = fail(nsys, err);
    }
    eng_str_free(&columns);
    eng_str_free(&values);
    return status;
}

static EngStatus bind(EngNsys *nsys, sqlite3_stmt *statement, int at, const EngNsysColumn *column,
                      const void *row, EngErr *err)
{
    const void *member = (const char *)row + column->offset;
    int64_t number = 0;
    double real = 0;
    const char *text = NULL;
    EngStatus status = ENG_OK;
    switch (column->type) {
    case ENG_NSYS_INT:
        memcpy(&number, member, sizeof number);
        if (number != ENG_NSYS_NULL) sqlite3_bind_int64(statement, at, number);
        break;
    case ENG_NSYS_REAL:
        memcpy(&real, member, sizeof real);
        sqlite3_bind_double(statement, at, real); /* SQLite stores NAN as NULL */
        break;
    case ENG_NSYS_TEXT:
        memcpy(&text, member, sizeof text);
        sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC);
        break;
    case ENG_NSYS_NAME:
        memcpy(&text, member, sizeof text);
        if (text) status = string_id(nsys, text, &number, err);
        if (text) sqlite3_bind_int64(statement, at, number);
        break;
    case ENG_NSYS_FIXED:
        break;
    }
    return status;
}

static EngStatus put_row(EngNsys *nsys, EngNsysTableId id, const void *row, EngErr *err)
{
    EngStatus status = nsys->inserts[id] ? ENG_OK : prepare(nsys, id, err);
    if (status) return status;
    sqlite3_stmt *statement = nsys->inserts[id];
    int at = 0;
    for (const EngNsysColumn *c = eng_nsys_tables[id].columns; c->name && !status; c++)
        if (c->type != ENG_NSYS_FIXED) status = bind(nsys, statement, ++at, c, row, err);
    if (!status && sqlite3_step(statement) != SQLITE_DONE) status = fail(nsys, err);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    eng_kill_point("trace");
    return status;
}

#define PUT(name, type, id)                                                                        \
    EngStatus eng_nsys_put_##name(EngNsys *nsys, const type *row, EngErr *err)                     \
    {                                                                                              \
        return put_row(nsys, id, row, err);                                                        \
    }
PUT(nvtx, EngNsysNvtx, ENG_NSYS_TABLE_NVTX)
PUT(kernel, EngNsysKernel, ENG_NSYS_TABLE_KERNEL)
PUT(memcpy, EngNsysMemcpy, ENG_NSYS_TABLE_MEMCPY)
PUT(memset, EngNsysMemset, ENG_NSYS_TABLE_MEMSET)
PUT(api, EngNsysApi, ENG_NSYS_TABLE_API)
PUT(sync, EngNsysSync, ENG_NSYS_TABLE_SYNC)
PUT(overhead, EngNsysOverhead, ENG_NSYS_TABLE_OVERHEAD)
PUT(graph_node, EngNsysGraphNode, ENG_NSYS_TABLE_GRAPH_NODE)
PUT(environment, EngNsysEnvironment, ENG_NSYS_TABLE_ENVIRONMENT)
PUT(gpu, EngNsysGpu, ENG_NSYS_TABLE_GPU)
PUT(cuda_device, EngNsysCudaDevice, ENG_NSYS_TABLE_CUDA_DEVICE)
PUT(cuda_context, EngNsysCudaContext, ENG_NSYS_TABLE_CUDA_CONTEXT)
PUT(cuda_stream, EngNsysCudaStream, ENG_NSYS_TABLE_CUDA_STREAM)
PUT(external, EngNsysExternal, ENG_NSYS_TABLE_EXTERNAL)

/* Readers of nsys files look for lost records among the diagnostics. */
EngStatus eng_nsys_put_drops(EngNsys *nsys, const EngNsysDrops *row, EngErr *err)
{
    EngStatus status = put_row(nsys, ENG_NSYS_TABLE_DROPS, row, err);
    if (!status && row->n && !nsys->drops) status = make_table(nsys, "DIAGNOSTIC_EVENT", err);
    if (status || !row->n) return status;
    char text[128];
    const char *const values[] = {row->refused ? "1" : "2", text};
    snprintf(text, sizeof text, "%lld records were %s (%s)", (long long)row->n,
             row->refused ? "refused" : "lost", row->what);
    nsys->drops += row->n;
    return put_texts(nsys,
                     "INSERT INTO DIAGNOSTIC_EVENT (timestamp, timestampType, source, severity,"
                     " text) VALUES (0, 1, 1, ?, ?)",
                     values, err);
}

EngStatus eng_nsys_put_process(EngNsys *nsys, int64_t pid, const char *name, EngErr *err)
{
    char global[32], number[32];
    const char *const values[] = {global, number, name};
    snprintf(global, sizeof global, "%lld", (long long)eng_nsys_pid(pid));
    snprintf(number, sizeof number, "%lld", (long long)pid);
    return put_texts(nsys, "INSERT INTO PROCESSES VALUES (?, ?, ?)", values, err);
}

EngStatus eng_nsys_put_thread(EngNsys *nsys, int64_t pid, int64_t tid, const char *name,
                              EngErr *err)
{
    char id[32], global[32];
    const char *const values[] = {id, global};
    int64_t name_id;
    EngStatus status = string_id(nsys, name, &name_id, err);
    if (status) return status;
    snprintf(id, sizeof id, "%lld", (long long)name_id);
    snprintf(global, sizeof global, "%lld", (long long)eng_nsys_tid(pid, tid));
    return put_texts(nsys, "INSERT INTO ThreadNames (nameId, globalTid) VALUES (?, ?)", values,
                     err);
}

/* ---- the session -------------------------------------------------------------------------------
 */

static EngStatus put_pairs(EngNsys *nsys, const char *sql, const char *const (*pairs)[2],
                           EngErr *err)
{
    EngStatus status = ENG_OK;
    for (; (*pairs)[0] && !status; pairs++)
        if ((*pairs)[1]) status = put_texts(nsys, sql, *pairs, err);
    return status;
}

static EngStatus put_export(EngNsys *nsys, const EngNsysSession *session, EngErr *err)
{
    char now[32];
    struct tm utc;
    time_t seconds = time(NULL);
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &utc));
    const char *const pairs[][2] = {
        {"EXPORT_PRODUCT_NAME", ENG_NSYS_PRODUCT},
        {"EXPORT_PRODUCT_VERSION", session->version},
        {"EXPORT_SCHEMA_VERSION", ENG_NSYS_SCHEMA},
        {"EXPORT_SCHEMA_VERSION_MAJOR", "3"},
        {"EXPORT_SCHEMA_VERSION_MINOR", "25"},
        {"EXPORT_SCHEMA_VERSION_MICRO", "0"},
        {"EXPORT_PLATFORM", "linux-desktop"},
        {"EXPORT_TIME_UTC", now},
        {"EXPORT_PARAM_EXPORT_TYPE", "SQLite"},
        {"EXPORT_PARAM_LAZY", "true"},
        {NULL, NULL},
    };
    return put_pairs(nsys, "INSERT INTO META_DATA_EXPORT VALUES (?, ?)", pairs, err);
}

static EngStatus put_capture(EngNsys *nsys, const EngNsysSession *session, EngErr *err)
{
    static const char sql[] = "INSERT INTO META_DATA_CAPTURE VALUES (?, ?)";
    char duration[32], pid[32], key[48];
    const char *const *argv = session->argv;
    snprintf(duration, sizeof duration, "%lld", (long long)(session->duration_ns / 1000000));
    snprintf(pid, sizeof pid, "%lld", (long long)session->pid);
    const char *const pairs[][2] = {
        {"CAPTURE_EVENT_TYPE", "NvtxEvents"},
        {"CAPTURE_EVENT_TYPE", session->cuda ? "Cuda" : NULL},
        {"RUN_DURATION_MS", duration},
        {"PROCESS_0:PID", pid},
        {"PROCESS_0:COMMAND", argv && argv[0] ? argv[0] : NULL},
        {NULL, NULL},
    };
    EngStatus status = put_pairs(nsys, sql, pairs, err);
    for (int i = 1; argv && argv[0] && argv[i] && !status; i++) {
        const char *const pair[] = {key, argv[i]};
        snprintf(key, sizeof key, "PROCESS_0:ARGUMENT_%d", i - 1);
        status = put_texts(nsys, sql, pair, err);
    }
    return status;
}

static EngStatus put_times(EngNsys *nsys, const EngNsysSession *session, EngErr *err)
{
    char epoch[32], utc[32], local[32], clock[32], duration[32];
    struct tm tm;
    time_t seconds = (time_t)(session->utc_ns / 1000000000);
    strftime(utc, sizeof utc, "%Y-%m-%dT%H:%M:%S", gmtime_r(&seconds, &tm));
    strftime(local, sizeof local, "%Y-%m-%dT%H:%M:%S", localtime_r(&seconds, &tm));
    snprintf(epoch, sizeof epoch, "%lld", (long long)session->utc_ns);
    snprintf(clock, sizeof clock, "%lld", (long long)session->start_ns);
    snprintf(duration, sizeof duration, "%lld", (long long)session->duration_ns);
    const char *const start[] = {epoch, utc, local, clock};
    const char *const details[] = {duration, duration};
    EngStatus status = put_texts(
        nsys, "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?, ?, ?, ?)", start, err);
    if (!status)
        status = put_texts(nsys, "INSERT INTO ANALYSIS_DETAILS VALUES (281474976710656, ?, 0, ?)",
                           details, err);
    return status;
}

/* Line `key` of a file of "key<separator>value" lines, without quotes; "" when not told. */
static void line_of(const char *path, const char *key, char separator, char *out, size_t size)
{
    FILE *file = fopen(path, "re");
    char line[512];
    out[0] = 0;
    while (file && !out[0] && fgets(line, sizeof line, file)) {
        char *at = strchr(line, separator);
        if (!at || strncmp(line, key, strlen(key))) continue;
        snprintf(out, size, "%s", eng_trim(at + 1));
        size_t n = strlen(out);
        if (n > 1 && out[0] == '"' && out[n - 1] == '"') {
            memmove(out, out + 1, n - 2);
            out[n - 2] = 0;
        }
    }
    if (file) fclose(file);
}

static EngStatus put_machine(EngNsys *nsys, EngErr *err)
{
    char cores[32], os[256], cpu[256];
    struct utsname host;
    if (uname(&host)) memset(&host, 0, sizeof host);
    snprintf(cores, sizeof cores, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    line_of("/etc/os-release", "PRETTY_NAME", '=', os, sizeof os);
    line_of("/proc/cpuinfo", "model name", ':', cpu, sizeof cpu);
    const EngNsysEnvironment rows[] = {
        {"Local", "CpuCores", 1, cores},
        {"Local", "CpuArchitecture", 3, host.machine},
        {"Local", "CpuDescription", 13, cpu},
        {"Local", "OsDescription", 605, os},
        {"Local", "KernelVersion", 882, host.release},
    };
    EngStatus status = ENG_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !status; i++)
        status = eng_nsys_put_environment(nsys, &rows[i], err);
    return status;
}

/* ---- the file ----------------------------------------------------------------------------------
 */

static void close_file(EngNsys *nsys)
{
    for (int i = 0; i < ENG_NSYS_TABLE_COUNT; i++) sqlite3_finalize(nsys->inserts[i]);
    sqlite3_finalize(nsys->new_string);
    sqlite3_close(nsys->sql);
    nsys->sql = NULL;
    nsys->new_string = NULL;
    memset(nsys->inserts, 0, sizeof nsys->inserts);
}

static void release(EngNsys *nsys)
{
    eng_key_table_free(&nsys->strings);
    if (nsys->arena) eng_arena_destroy(nsys->arena);
    eng_free(nsys->temporary);
    eng_free(nsys->path);
    eng_free(nsys);
}

void eng_nsys_abort(EngNsys *nsys)
{
    if (!nsys) return;
    close_file(nsys);
    if (nsys->temporary) unlink(nsys->temporary);
    release(nsys);
}

static EngStatus open_file(EngNsys *nsys, EngErr *err)
{
    const char *pages = getenv("ENG_DB_MAX_PAGES");
    char pragma[96];
    int64_t n;
    unlink(nsys->temporary); /* of a killed writer that had our number */
    if (sqlite3_open_v2(nsys->temporary, &nsys->sql, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                        NULL))
        return fail(nsys, err);
    EngStatus status =
        script(nsys, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN", err);
    if (!status && pages && eng_parse_i64(pages, &n)) {
        snprintf(pragma, sizeof pragma, "PRAGMA max_page_count = %lld", (long long)n);
        status = script(nsys, pragma, err);
    }
    return status;
}

static EngStatus fill(EngNsys *nsys, const EngNsysSession *session, EngErr *err)
{
    const char *schema = embedded("nsys_schema.sql"), *lazy = strstr(schema, "-- lazy");
    char *always = eng_strdup(schema);
    if (!always || !lazy) {
        eng_free(always);
        return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", nsys->path);
    }
    always[lazy - schema] = 0;
    EngStatus status = script(nsys, always, err);
    eng_free(always);
    if (!status) status = script(nsys, embedded("nsys_enums.sql"), err);
    if (!status && sqlite3_prepare_v2(nsys->sql, "INSERT INTO StringIds VALUES (?, ?)", -1,
                                      &nsys->new_string, NULL))
        status = fail(nsys, err);
    if (!status) status = put_export(nsys, session, err);
    if (!status) status = put_capture(nsys, session, err);
    if (!status) status = put_times(nsys, session, err);
    return status ? status : put_machine(nsys, err);
}

EngStatus eng_nsys_create(const char *path, const EngNsysSession *session, EngNsys **out,
                          EngErr *err)
{
    struct stat st;
    *out = NULL;
    /* Renaming over a device, a pipe or a link would replace it. */
    if (!lstat(path, &st) && !S_ISREG(st.st_mode))
        return ENG_FAIL(err, ENG_IO, "%s: not a regular file, left alone", path);
    EngNsys *nsys = eng_alloc(sizeof *nsys);
    if (!nsys) return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", path);
    nsys->path = eng_strdup(path);
    nsys->temporary = eng_writer_temporary(path);
    nsys->arena = eng_arena_create();
    if (!nsys->path || !nsys->temporary || !nsys->arena) {
        release(nsys);
        return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", path);
    }
    eng_writer_sweep(path);
    EngStatus status = open_file(nsys, err);
    eng_kill_point("trace");
    if (!status) status = fill(nsys, session, err);
    if (status)
        eng_nsys_abort(nsys);
    else
        *out = nsys;
    return status;
}

/* Data must be on disk before the name points to it. */
static EngStatus sync_file(EngNsys *nsys, EngErr *err)
{
    int fd = open(nsys->temporary, O_RDWR | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0) close(fd);
    if (ok) return ENG_OK;
    return ENG_FAIL(err, ENG_IO, "%s: cannot write: %s", nsys->path, strerror(errno));
}

EngStatus eng_nsys_commit(EngNsys *nsys, EngErr *err)
{
    eng_kill_point("trace");
    EngStatus status = script(nsys, "COMMIT", err);
    close_file(nsys);
    eng_kill_point("trace");
    if (!status) status = sync_file(nsys, err);
    eng_kill_point("trace");
    if (!status && rename(nsys->temporary, nsys->path))
        status = ENG_FAIL(err, ENG_IO, "%s: cannot write: %s", nsys->path, strerror(errno));
    if (!status) eng_kill_point("trace");
    if (status) unlink(nsys->temporary);
    release(nsys);
    return status;
}
