/* engram trace import: overlap of a serving engine's trace by the names of its kernels, printed and
 * stored as points of kind `imported`, one per device and layer and one of the whole file. */
#include "bench/cli/trace_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "bench/core/db_import.h"

/* Metrics of layers, then of the whole file; each point has those of its kind. */
enum {
    FETCH,
    STALL,
    HIDDEN,
    GBPS,
    WAIT_READ,
    WAIT_COLLECTIVE,
    WAIT_HASH,
    WAIT_COPY,
    WAIT_QUEUE,
    STEP_TIME,
    TIME_HASH,
    TIME_LOOKUP,
    TIME_GATE,
    TIME_COLLECTIVE,
    TIME_PROJECTION,
    TIME_OTHER,
    EXPOSED,
    N_METRICS
};

static const EngMetricDef g_metrics[N_METRICS] = {
    [FETCH] = {"fetch_us", "us", -1, "wall", "union of the reads of one layer's rows"},
    [STALL] = {"stall_us", "us", -1, "wall", "union of the consumer's waits for them"},
    [HIDDEN] = {"hidden", "share", 1, "none", "1 - stall / fetch, not below 0"},
    [GBPS] = {"gather_gbps", "GB/s", 1, "wall", "logical bytes over fetch time"},
    [WAIT_READ] = {"wait_read_us", "us", -1, "wall", "of the stall: while its rows were read"},
    [WAIT_COLLECTIVE] = {"wait_collective_us", "us", -1, "wall", "of the stall: a collective"},
    [WAIT_HASH] = {"wait_hash_us", "us", -1, "wall", "of the stall: row numbers were computed"},
    [WAIT_COPY] = {"wait_copy_us", "us", -1, "wall", "of the stall: a copy from the host"},
    [WAIT_QUEUE] = {"wait_queue_us", "us", -1, "wall", "of the stall: none of these ran"},
    [STEP_TIME] = {"step_us", "us", -1, "wall", "of the whole step"},
    [TIME_HASH] = {"time_hash_us", "us", 0, "wall", "busy time of hash kernels in the file"},
    [TIME_LOOKUP] = {"time_lookup_us", "us", 0, "wall", "busy time of lookup kernels"},
    [TIME_GATE] = {"time_gate_us", "us", 0, "wall", "busy time of gate kernels"},
    [TIME_COLLECTIVE] = {"time_collective_us", "us", 0, "wall", "busy time of collectives"},
    [TIME_PROJECTION] = {"time_projection_us", "us", 0, "wall", "busy time of projections"},
    [TIME_OTHER] = {"time_other_us", "us", 0, "wall", "busy time of all other GPU work"},
    [EXPOSED] = {"collective_exposed_us", "us", -1, "wall", "collectives with nothing beside them"},
};
static const EngExperiment g_experiment = {
    .name = "engine", .metrics = g_metrics, .n_metrics = N_METRICS, .op = -1};

typedef struct Stored {
    const EngTrace *trace;
    const EngEngine *engine;
    const EngTraceEngineArgs *args;
    EngArena *arena;
    EngErr *err;
    char *tokens, *file;
} Stored;

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static EngStatus no_memory(const Stored *s)
{
    return ENG_FAIL(s->err, ENG_NO_MEMORY, "%s: out of memory for its points", s->trace->path);
}

/* ---- points ------------------------------------------------------------------------------------
 */

static void fill_values(const EngFetch *f, double *v)
{
    bool stalls = f->stall_ns >= 0;
    for (int m = 0; m < N_METRICS; m++) v[m] = NAN;
    v[FETCH] = (double)f->fetch_ns * 1e-3;
    v[STALL] = stalls ? (double)f->stall_ns * 1e-3 : NAN;
    v[HIDDEN] = f->hidden;
    v[GBPS] = f->bytes >= 0 && f->fetch_ns ? (double)f->bytes / (double)f->fetch_ns : NAN;
    for (int c = 0; c < ENG_WAIT_COUNT && stalls; c++)
        v[WAIT_READ + c] = (double)f->wait_ns[c] * 1e-3;
    v[STEP_TIME] = f->step_ns >= 0 ? (double)f->step_ns * 1e-3 : NAN;
}

static EngImportAxis number_axis(Stored *s, const char *name, int64_t value)
{
    const char *text = eng_arena_printf(s->arena, "%lld", (long long)value);
    return (EngImportAxis){name, text, (double)value};
}

/* One layer of a device: a sample per step. */
static EngStatus layer_point(Stored *s, int64_t device, int64_t layer, EngImportPoint *point)
{
    const EngOverlap *o = &s->engine->overlap;
    EngImportAxis *axes = eng_arena_alloc(s->arena, 4 * sizeof *axes);
    double *values = eng_arena_alloc(s->arena, (size_t)(o->n + 1) * N_METRICS * sizeof *values);
    int64_t *wall = eng_arena_alloc(s->arena, (size_t)(o->n + 1) * sizeof *wall), n = 0;
    int n_axes = 0;
    if (!axes || !values || !wall) return no_memory(s);
    axes[n_axes++] = number_axis(s, "device", device);
    axes[n_axes++] = (EngImportAxis){"file", s->file, NAN};
    axes[n_axes++] = number_axis(s, "layer", layer);
    if (s->args->options.tokens >= 0)
        axes[n_axes++] = number_axis(s, "tokens", s->args->options.tokens);
    for (int i = 0; i < n_axes; i++)
        if (!axes[i].value) return no_memory(s);
    for (int64_t i = 0; i < o->n; i++) {
        if (o->fetches[i].device != device || o->fetches[i].layer != layer) continue;
        wall[n] = o->fetches[i].fetch_ns;
        fill_values(&o->fetches[i], values + n++ * N_METRICS);
    }
    *point = (EngImportPoint){.variant = "",
                              .axes = axes,
                              .n_axes = n_axes,
                              .n_samples = n,
                              .wall_ns = wall,
                              .values = values};
    return ENG_OK;
}

static EngStatus file_point(Stored *s, EngImportPoint *point)
{
    EngImportAxis *axes = eng_arena_alloc(s->arena, sizeof *axes);
    double *values = eng_arena_alloc(s->arena, N_METRICS * sizeof *values);
    int64_t *wall = eng_arena_alloc(s->arena, sizeof *wall);
    if (!axes || !values || !wall) return no_memory(s);
    axes[0] = (EngImportAxis){"file", s->file, NAN};
    *wall = s->trace->last_ns - s->trace->first_ns;
    for (int m = 0; m < N_METRICS; m++) values[m] = NAN;
    for (int c = 0; c < ENG_CLASS_COUNT; c++)
        values[TIME_HASH + c] = (double)s->engine->classes[c].busy_ns * 1e-3;
    values[EXPOSED] = (double)s->engine->classes[ENG_CLASS_COLLECTIVE].exposed_ns * 1e-3;
    *point = (EngImportPoint){.variant = "",
                              .axes = axes,
                              .n_axes = 1,
                              .n_samples = 1,
                              .wall_ns = wall,
                              .values = values};
    return ENG_OK;
}

static EngStatus make_points(Stored *s, EngImportPoint **points, int *n)
{
    EngLayerOverlap *layers = NULL;
    int n_layers = 0;
    *n = 0;
    EngStatus status = eng_overlap_by_layer(&s->engine->overlap, &layers, &n_layers, s->err);
    if (status) return status;
    *points = eng_arena_alloc(s->arena, (size_t)(n_layers + 1) * sizeof **points);
    status = *points ? file_point(s, &(*points)[(*n)++]) : no_memory(s);
    for (int i = 0; i < n_layers && !status; i++)
        if (!layers[i].all_layers)
            status = layer_point(s, layers[i].device, layers[i].layer, &(*points)[(*n)++]);
    eng_free(layers);
    return status;
}

/* ---- where they come from ----------------------------------------------------------------------
 */

/* Everything that decides the numbers, one line each: the import's key, and what the run shows. */
static char *settings_text(const Stored *s)
{
    const EngEngineOptions *o = &s->args->options;
    EngStr text = {0};
    for (int c = 0; c < ENG_CLASS_OTHER; c++)
        eng_str_printf(&text, "%s = %s\n", eng_class_name((EngKernelClass)c),
                       o->patterns[c] ? o->patterns[c] : eng_class_pattern((EngKernelClass)c));
    eng_str_printf(&text, "step = %s\nlayers =", o->step ? o->step : "");
    for (int i = 0; i < o->n_layers; i++) eng_str_printf(&text, " %lld", (long long)o->layers[i]);
    eng_str_printf(&text, "\ntokens = %lld\nbytes_per_token = %lld\n", (long long)o->tokens,
                   (long long)o->bytes_per_token);
    char *copy = text.failed ? NULL : eng_arena_strdup(s->arena, text.text);
    eng_str_free(&text);
    return copy;
}

static EngStatus describe(Stored *s, EngImport *import, EngMachineRow *machine, EngBuildRow *build)
{
    const EngTrace *t = s->trace;
    const EngTraceRefusals *r = &t->refused;
    EngImportDrop *drops = eng_arena_alloc(s->arena, 4 * sizeof *drops);
    char machine_key[ENG_KEY_HEX], build_key[ENG_KEY_HEX];
    char *described = eng_arena_printf(s->arena, "imported\n%s\n%s\n%lld", t->gpu, t->host_os,
                                       (long long)t->cpu_cores);
    const char *settings = settings_text(s);
    if (!drops || !described || !settings) return no_memory(s);
    EngStatus status = eng_key_of(described, machine_key, s->err);
    if (!status) status = eng_key_of(t->product, build_key, s->err);
    if (status) return status;
    drops[0] = (EngImportDrop){"end before start", r->backwards};
    drops[1] = (EngImportDrop){"no timestamps", r->zero};
    drops[2] = (EngImportDrop){"repeated records", r->repeated};
    drops[3] = (EngImportDrop){"streams with kernel time above wall time", r->above_wall};
    *machine =
        (EngMachineRow){.machine_id = eng_arena_strdup(s->arena, machine_key),
                        .cpu_model = "unknown (imported)",
                        .cores = t->cpu_cores > 0 && t->cpu_cores < 1 << 20 ? (int)t->cpu_cores : 1,
                        .gpu = *t->gpu ? t->gpu : NULL,
                        .description_json = "{}"};
    *build = (EngBuildRow){.build_id = eng_arena_strdup(s->arena, build_key),
                           .version = *t->product ? t->product : "unknown",
                           .compiler = "",
                           .flags = "",
                           .libraries_json = "{}"};
    *import = (EngImport){
        .source_key = eng_arena_printf(s->arena, "%s\n%s", t->sha256, settings),
        .experiment = &g_experiment,
        .machine = machine,
        .build = build,
        .backend = t->n_by_what[ENG_TRACE_KERNEL] ? "cuda" : "cpu",
        .started_utc =
            *t->utc ? eng_arena_printf(s->arena, "%.19sZ", t->utc) : "1970-01-01T00:00:00Z",
        .command_json = "[\"engram\",\"trace\",\"import\"]",
        .name = s->file,
        .text = settings,
        .provenance = eng_arena_printf(s->arena, "engram trace import %s, sha256 %s, %s, schema %s",
                                       s->file, t->sha256, t->product, t->schema),
        .evidence_json = eng_arena_printf(
            s->arena,
            "{\"refused\":{\"end_before_start\":%lld,\"no_timestamps\":%lld,\"repeated\":%lld},"
            "\"streams_above_wall\":%lld,\"open_ranges\":%lld}",
            (long long)r->backwards, (long long)r->zero, (long long)r->repeated,
            (long long)r->above_wall, (long long)r->open),
        .drops = drops,
        .n_drops = 4};
    return machine->machine_id && build->build_id && import->source_key && import->provenance &&
                   import->evidence_json && import->started_utc
               ? ENG_OK
               : no_memory(s);
}

static EngStatus store(const EngCli *cli, Stored *s)
{
    EngImport import;
    EngMachineRow machine;
    EngBuildRow build;
    EngDb *db = NULL;
    EngImportPoint *points = NULL;
    char run_id[ENG_KEY_HEX];
    bool added = false;
    int n = 0;
    EngStatus status = describe(s, &import, &machine, &build);
    if (!status) status = make_points(s, &points, &n);
    if (status) return status;
    import.points = points;
    import.n_points = n;
    status = eng_db_open(eng_cli_text(cli, "db"), ENG_DB_WRITE, &db, s->err);
    if (!status) status = eng_db_import(db, &import, run_id, &added, s->err);
    if (!status)
        eng_info("trace",
                 added ? "%s: %d points as run %.8s" : "%s: %d points were there (run %.8s)",
                 eng_cli_text(cli, "db"), n, run_id);
    eng_db_close(db);
    return status;
}

/* ---- printing ----------------------------------------------------------------------------------
 */

static EngStatus print_classes(const EngCli *cli, const EngEngine *engine, EngErr *err)
{
    EngTraceRows rows;
    EngStatus status = eng_trace_rows_begin(
        &rows, cli, "classes; exposed: nothing else of the device ran beside it",
        "class,+n,+sum_us,+busy_us,+exposed_us", err);
    for (int c = 0; c < ENG_CLASS_COUNT && !status; c++) {
        const EngClassTime *t = &engine->classes[c];
        eng_trace_rows_text(&rows, eng_class_name((EngKernelClass)c));
        eng_trace_rows_int(&rows, t->n, true);
        eng_trace_rows_us(&rows, t->sum_ns, true);
        eng_trace_rows_us(&rows, t->busy_ns, true);
        eng_trace_rows_us(&rows, t->exposed_ns, true);
    }
    return status ? status : eng_trace_rows_end(&rows);
}

static EngStatus print(const EngCli *cli, const EngEngine *engine, bool table, EngErr *err)
{
    EngStatus status = ENG_OK;
    if (table) status = print_classes(cli, engine, err);
    if (!status && (engine->overlap.n || !table))
        status = eng_trace_print_overlap(cli, &engine->overlap, 40, err);
    if (!status && !engine->overlap.n)
        eng_warn("trace", "no kernel is a lookup: no fetch, no hidden share (see --lookup)");
    return status;
}

EngStatus eng_trace_import(EngCli *cli, const char *file, EngErr *err)
{
    EngTraceEngineArgs args;
    EngEngine engine = {0};
    EngTrace *trace = NULL;
    bool table;
    EngStatus status = eng_trace_is_table(cli, &table, err);
    if (!status) status = eng_trace_engine_args(cli, &args, err);
    if (!status) status = eng_trace_open(file, &trace, err);
    if (status) return status;
    Stored s = {
        .trace = trace, .engine = &engine, .args = &args, .err = err, .arena = eng_arena_create()};
    if (!s.arena || !(s.file = eng_arena_strdup(s.arena, file_name(file)))) status = no_memory(&s);
    eng_trace_headline(trace, table ? stdout : stderr);
    if (!status && !trace->n_by_what[ENG_TRACE_KERNEL] && !trace->n_by_what[ENG_TRACE_COPY])
        status = ENG_FAIL(err, ENG_BAD_DATA,
                          "%s: no GPU work in it; `engram trace overlap` reads ranges", file);
    if (!status) status = eng_engine_read(trace, &args.options, &engine, err);
    if (!status) status = print(cli, &engine, table, err);
    if (!status) status = store(cli, &s);
    eng_engine_free(&engine);
    if (s.arena) eng_arena_destroy(s.arena);
    eng_trace_close(trace);
    return status;
}
