/* Storing a plan's points beside measured ones; see size_points.h. */
#include "bench/cli/size_points.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "bench/core/db_import.h"
#include "bench/core/machine.h"

#define MAX_POINTS 16384
#define MAX_AXES   8

static const EngMetricDef g_metrics[ENG_SIZE_METRICS] = {
    [ENG_SIZE_BYTES] = {"bytes", "B", 0, "none", "held or moved"},
    [ENG_SIZE_ROWS] = {"rows", "rows", 0, "none", "of a step and layer"},
    [ENG_SIZE_FETCH_US] = {"fetch_us", "us", -1, "none", "mean time of one layer's fetch"},
    [ENG_SIZE_WINDOW_US] = {"window_us", "us", 1, "none", "before the layer"},
    [ENG_SIZE_STALL_US] = {"stall_us", "us", -1, "none", "mean wait of the layer"},
    [ENG_SIZE_STEP_US] = {"step_us", "us", -1, "none", "of a step, stalls included"},
    [ENG_SIZE_TERM_US] = {"term_us", "us", -1, "none", "what one limit alone would take"},
    [ENG_SIZE_RATE_PER_S] = {"rate_per_s", "/s", 1, "none", "requests of a tier"},
    [ENG_SIZE_SHARE] = {"share", "share", 0, "none", "hits, or distinct rows"},
    [ENG_SIZE_SHARE_LOW] = {"share_low", "share", 0, "none", "95 % band over eighths of a text"},
    [ENG_SIZE_SHARE_HIGH] = {"share_high", "share", 0, "none", "95 % band over eighths of a text"},
    [ENG_SIZE_COLD] = {"cold", "share", 0, "none", "look-ups of rows not asked for before"},
    [ENG_SIZE_HOSTS] = {"hosts", "hosts", -1, "none", "for a rate of tokens"},
    [ENG_SIZE_GBPS] = {"gbps", "GB/s", 0, "none", "that a host asks of a tier"},
    [ENG_SIZE_REQUESTS_PER_S] = {"requests_per_s", "/s", 0, "none", "that a host asks of a tier"},
    [ENG_SIZE_UNITS] = {"units", "devices", -1, "none", "of the tier that carry it"},
    [ENG_SIZE_USD_LOW] = {"usd_low", "USD", -1, "none", "per million tokens, lowest price"},
    [ENG_SIZE_USD_HIGH] = {"usd_high", "USD", -1, "none", "per million tokens, highest price"},
    [ENG_SIZE_VALUE] = {"value", "", 0, "none", "of the figure"},
};
static const EngExperiment g_experiment = {
    .name = "size", .metrics = g_metrics, .n_metrics = ENG_SIZE_METRICS, .op = -1};

struct EngSizePoints {
    EngArena *arena;
    EngImportPoint *items; /* [MAX_POINTS] */
    int n;
    bool no_memory, too_many;
};

static void begin(EngSizePoints *p, const char *what, const char *kind, const char *provenance)
{
    static const int64_t no_time = 0;
    if (p->n == MAX_POINTS) p->too_many = true;
    if (p->no_memory || p->too_many) return;
    EngImportAxis *axes = eng_arena_alloc(p->arena, MAX_AXES * sizeof *axes);
    double *values = eng_arena_alloc(p->arena, ENG_SIZE_METRICS * sizeof *values);
    if (!axes || !values) {
        p->no_memory = true;
        return;
    }
    for (int m = 0; m < ENG_SIZE_METRICS; m++) values[m] = NAN;
    p->items[p->n++] = (EngImportPoint){.variant = "",
                                        .kind = kind,
                                        .provenance = provenance,
                                        .axes = axes,
                                        .n_samples = 1,
                                        .wall_ns = &no_time,
                                        .values = values};
    eng_size_word(p, "what", what);
}

void eng_size_point(EngSizePoints *p, const char *what)
{
    begin(p, what, "simulated", NULL);
}

void eng_size_published(EngSizePoints *p, const char *what, const char *source)
{
    begin(p, what, "published", source);
}

static void add_axis(EngSizePoints *p, const char *axis, const char *value, double number)
{
    if (p->no_memory || p->too_many) return;
    EngImportPoint *point = &p->items[p->n - 1];
    char *copy = eng_arena_strdup(p->arena, value);
    if (point->n_axes == MAX_AXES) p->too_many = true;
    if (!copy) p->no_memory = true;
    if (!copy || point->n_axes == MAX_AXES) return;
    ((EngImportAxis *)(uintptr_t)point->axes)[point->n_axes++] =
        (EngImportAxis){axis, copy, number};
}

void eng_size_word(EngSizePoints *p, const char *axis, const char *value)
{
    add_axis(p, axis, value, NAN);
}

void eng_size_number(EngSizePoints *p, const char *axis, double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.17g", value);
    add_axis(p, axis, text, value);
}

void eng_size_value(EngSizePoints *p, EngSizeMetric metric, double value)
{
    if (p->no_memory || p->too_many || !isfinite(value)) return;
    ((double *)(uintptr_t)p->items[p->n - 1].values)[metric] = value;
}

void eng_size_rests(EngSizePoints *p, const char *fmt, ...)
{
    va_list args, again;
    if (p->no_memory || p->too_many) return;
    va_start(args, fmt);
    va_copy(again, args);
    size_t size = (size_t)vsnprintf(NULL, 0, fmt, args) + 1;
    char *text = eng_arena_alloc(p->arena, size);
    if (text) vsnprintf(text, size, fmt, again);
    va_end(again);
    va_end(args);
    p->items[p->n - 1].provenance = text;
    p->no_memory = !text;
}

EngStatus eng_size_points_status(const EngSizePoints *p, EngErr *err)
{
    if (p->no_memory) return ENG_FAIL(err, ENG_NO_MEMORY, "size: out of memory for points");
    if (p->too_many) return ENG_FAIL(err, ENG_UNSUPPORTED, "size: more than %d points", MAX_POINTS);
    return ENG_OK;
}

/* ---- storing -----------------------------------------------------------------------------------
 */

/* Of all values: a model that changed makes another run of the same plan. */
static EngStatus digest_of(const EngSizePoints *p, char key[ENG_KEY_HEX], EngErr *err)
{
    EngStr text = {0};
    for (int i = 0; i < p->n; i++)
        for (int m = 0; m < ENG_SIZE_METRICS; m++)
            if (!isnan(p->items[i].values[m]))
                eng_str_printf(&text, "%.9g ", p->items[i].values[m]);
    EngStatus status = eng_str_status(&text, err);
    if (!status) status = eng_key_of(text.text ? text.text : "", key, err);
    eng_str_free(&text);
    return status;
}

/* Everything that decides the figures: options, presets and streams by content, and the models. */
static void add_settings(const EngSize *s, const char *digest, EngStr *text)
{
    eng_str_printf(text, "values %s\nmachines %s\npreset %s\nweights %s\n", digest,
                   s->machine_digests, s->preset.digest, s->model.digest);
    for (int i = 0; i < s->n_corpora; i++)
        eng_str_printf(text, "corpus %s %s\n", s->corpora[i].name, s->corpora[i].digest);
    for (int i = 1; i < eng_cli_argc(s->cli); i++) {
        const char *word = eng_cli_argv(s->cli)[i];
        if (strncmp(word, "--db", 4) && strncmp(word, "--data", 6))
            eng_str_printf(text, "%s\n", word);
    }
}

static char *command_json(const EngSize *s)
{
    json_t *words = json_array();
    for (int i = 0; i < eng_cli_argc(s->cli); i++)
        json_array_append_new(words, json_string(eng_cli_argv(s->cli)[i]));
    char *text = json_dumps(words, JSON_COMPACT);
    json_decref(words);
    return text;
}

static EngStatus put(const EngSize *s, const EngSizePoints *p, const char *db_path,
                     const char *settings, EngErr *err)
{
    char machine_id[ENG_KEY_HEX], run_id[ENG_KEY_HEX], now[32];
    EngBuild build = {0};
    EngDb *db = NULL;
    bool added;
    char *command = command_json(s);
    EngStatus status = command ? ENG_OK : ENG_FAIL(err, ENG_NO_MEMORY, "size: out of memory");
    if (!status) status = eng_key_of(s->machine_digests, machine_id, err);
    if (!status) status = eng_build_describe(&build, err);
    eng_utc_now(now, sizeof now);
    EngMachineRow machine = {.machine_id = machine_id,
                             .cpu_model = s->machine.name,
                             .cores = 1,
                             .description_json = "{\"simulated\":true}"};
    EngBuildRow row = {.build_id = build.build_id,
                       .version = build.version,
                       .commit_id = build.commit && *build.commit ? build.commit : NULL,
                       .compiler = build.compiler,
                       .flags = build.flags,
                       .libraries_json = build.libraries_json};
    EngImport import = {.source_key = settings,
                        .experiment = &g_experiment,
                        .machine = &machine,
                        .build = &row,
                        .backend = "model",
                        .started_utc = now,
                        .command_json = command,
                        .name = "size",
                        .text = settings,
                        .provenance = "engram size",
                        .evidence_json = "{}",
                        .points = p->items,
                        .n_points = p->n};
    if (!status) status = eng_db_open(db_path, ENG_DB_WRITE, &db, err);
    if (!status) status = eng_db_import(db, &import, run_id, &added, err);
    if (!status)
        eng_info("size",
                 added ? "%s: %d points as run %.8s" : "%s: %d points were there (run %.8s)",
                 db_path, p->n, run_id);
    eng_db_close(db);
    eng_build_free(&build);
    free(command);
    return status;
}

EngStatus eng_size_store(const EngSize *s, const char *db_path, EngErr *err)
{
    EngSizePoints points = {.arena = eng_arena_create()};
    EngStr settings = {0};
    char digest[ENG_KEY_HEX];
    EngStatus status = ENG_OK;
    if (points.arena)
        points.items = eng_arena_alloc(points.arena, MAX_POINTS * sizeof *points.items);
    points.no_memory = !points.items;
    status = eng_size_points_status(&points, err);
    if (!status) status = eng_size_plan_points(s, &points, err);
    if (!status) status = eng_size_fleet_points(s, &points, err);
    if (!status) status = eng_size_trace_points(s, &points, err);
    if (!status) status = eng_size_anchor_points(s, &points, err);
    if (!status) status = eng_size_points_status(&points, err);
    if (!status) status = digest_of(&points, digest, err);
    if (!status) add_settings(s, digest, &settings);
    if (!status) status = eng_str_status(&settings, err);
    if (!status) status = put(s, &points, db_path, settings.text, err);
    eng_str_free(&settings);
    if (points.arena) eng_arena_destroy(points.arena);
    return status;
}
