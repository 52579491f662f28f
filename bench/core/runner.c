/* The run: session, database, blocks, progress. See runner.h. */
#include "bench/core/runner.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "bench/core/block.h"
#include "bench/core/db_costs.h"
#include "bench/core/session.h"

typedef struct Progress {
    bool line;
    int64_t start_ns, shown_ns;
    double total_ns, done_ns,
        block_ns; /* estimates: of all blocks, of finished ones, of this one */
    int block, n_blocks;
    const char *experiment;
    int64_t samples, block_wanted, block_samples;
} Progress;

/* ---- progress ----------------------------------------------------------------------------------
 */

static void show_progress(Progress *p, bool force)
{
    int64_t now = eng_now_ns(), since = now - p->shown_ns;
    int64_t interval = p->line ? (int64_t)200000000 : (int64_t)60000000000;
    if (!force && since < interval) return;
    p->shown_ns = now;
    double part = p->block_wanted ? (double)p->block_samples / (double)p->block_wanted : 0;
    double done = p->done_ns + p->block_ns * (part > 1 ? 1 : part);
    double elapsed = (double)(now - p->start_ns);
    /* The estimates are corrected by what has been measured so far. */
    double left = done > 0 ? elapsed * (p->total_ns - done) / done : p->total_ns;
    fprintf(stderr,
            p->line ? "\r[%d/%d] %-8s %lld samples, %.0f s, about %.0f s left   "
                    : "[%d/%d] %s: %lld samples, %.0f s, about %.0f s left\n",
            p->block + 1, p->n_blocks, p->experiment, (long long)p->samples, elapsed * 1e-9,
            left * 1e-9);
    fflush(stderr);
}

static void tick(void *context)
{
    Progress *p = context;
    p->samples++;
    p->block_samples++;
    show_progress(p, false);
}

static bool is_interrupted(const EngRunOptions *options)
{
    if (options->interrupted && *options->interrupted) return true;
    return options->deadline_ns && eng_now_ns() >= options->deadline_ns;
}

/* ---- rows that points refer to -----------------------------------------------------------------
 */

static EngStatus put_streams(EngDb *db, const EngResources *resources, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (int i = 0; i < eng_resources_streams(resources) && !status; i++) {
        const EngTokens *t = eng_resources_stream(resources, i);
        json_t *json = json_pack("{s:s}", "label", t->label);
        char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
        status = text ? eng_db_put_stream(db, t->digest, t->corpus, t->kind, t->n_tokens, text, err)
                      : ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a stream's row");
        free(text);
        json_decref(json);
    }
    return status;
}

static EngStatus put_presets(EngDb *db, const EngSession *session, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (int i = 0; i < session->n_presets && !status; i++) {
        const EngPreset *p = &session->presets[i];
        json_t *json = json_pack("{s:s, s:s, s:I, s:i, s:i, s:i}", "name", p->name, "summary",
                                 p->summary, "vocab", (json_int_t)p->address.vocab, "row_dims",
                                 p->row_dims, "hidden", p->hidden, "streams", p->streams);
        char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
        status = text ? eng_db_put_preset(db, p->digest, p->name, text, err)
                      : ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a preset's row");
        free(text);
        json_decref(json);
    }
    return status;
}

static EngStatus put_stores(EngDb *db, const EngSession *session, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (int format = 0; format < ENG_ROW_FORMAT_COUNT && !status; format++) {
        char text[96];
        if (!session->stores[format][0]) continue;
        snprintf(text, sizeof text, "{\"seed\":%d,\"content\":\"seeded random rows\"}",
                 ENG_DATA_SEED);
        status = eng_db_put_store(db, session->stores[format], "memory",
                                  eng_row_format_name((EngRowFormat)format), text, err);
    }
    return status;
}

static EngStatus put_references(EngDb *db, const EngSession *session, EngErr *err)
{
    const EngMachine *m = &session->machine;
    const EngBuild *b = &session->build;
    EngMachineRow machine = {.machine_id = m->machine_id,
                             .cpu_model = m->cpu_model,
                             .cores = m->cores,
                             .memory_bytes = m->memory_bytes,
                             .cache_bytes = m->cache_bytes,
                             .gpu = m->gpu[0] ? m->gpu : NULL,
                             .description_json = m->description_json};
    EngBuildRow build = {.build_id = b->build_id,
                         .version = b->version,
                         .commit_id = b->commit[0] ? b->commit : NULL,
                         .compiler = b->compiler,
                         .flags = b->flags,
                         .libraries_json = b->libraries_json};
    EngStatus status = eng_db_put_machine(db, &machine, err);
    if (!status) status = eng_db_put_build(db, &build, err);
    if (!status) status = put_streams(db, session->resources, err);
    if (!status) status = put_presets(db, session, err);
    if (!status) status = put_stores(db, session, err);
    for (int i = 0; i < session->plan->n_blocks && !status; i++) {
        const EngExperiment *e = session->plan->blocks[i].experiment;
        bool first = true;
        for (int k = 0; k < i; k++) first = first && session->plan->blocks[k].experiment != e;
        if (first) status = eng_db_put_metrics(db, e, err);
    }
    return status;
}

/* NULL: out of memory. JSON is UTF-8, an argument (a path) may hold any bytes: those become '?'. */
static json_t *argument_json(const char *argument)
{
    json_t *text = json_string(argument);
    char *copy = text ? NULL : eng_strdup(argument);
    for (char *p = copy; p && *p; p++)
        if ((unsigned char)*p >= 0x80) *p = '?';
    if (copy) text = json_string(copy);
    eng_free(copy);
    return text;
}

static EngStatus begin_run(EngDb *db, const EngSession *session, const EngSweep *sweep,
                           const EngRunOptions *options, EngRunResult *result, EngErr *err)
{
    EngStr sweep_text = {0};
    char *environment = NULL, *command = NULL;
    json_t *argv = json_array();
    bool whole = argv != NULL;
    for (int i = 0; i < options->argc && whole; i++)
        whole = !json_array_append_new(argv, argument_json(options->argv[i]));
    if (whole) command = json_dumps(argv, JSON_COMPACT);
    json_decref(argv);
    EngStatus status =
        command ? ENG_OK : ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the run's row");
    if (!status) status = eng_environment_json(&environment, err);
    if (!status) status = eng_sweep_text(sweep, &sweep_text, err);
    if (!status) {
        EngRunSpec spec = {.machine_id = session->machine.machine_id,
                           .build_id = session->build.build_id,
                           .seed = sweep->settings.seed,
                           .command_json = command,
                           .sweep_name = sweep->name,
                           .sweep_text = sweep_text.text,
                           .plan_key = session->plan->plan_key,
                           .environment_json = environment};
        status = eng_db_run_begin(db, &spec, options->fresh, result->run_id, &result->resumed, err);
    }
    eng_str_free(&sweep_text);
    eng_free(environment);
    free(command);
    return status;
}

/* ---- blocks ------------------------------------------------------------------------------------
 */

/* Samples, and what surrounds them: overhead_ns per point and lifetime. */
static double ledger_estimate_ns(const EngLedgerBlock *block, double overhead_ns)
{
    double total = 0, points = 0;
    for (int i = 0; i < block->n_points; i++) {
        double each = block->points[i].plan->estimate_ns;
        if (block->points[i].state == ENG_POINT_DONE) continue;
        total += each > (double)ENG_SAMPLE_TARGET_NS ? each : (double)ENG_SAMPLE_TARGET_NS;
        points++;
    }
    if (!block->experiment->counted) total *= (double)block->segments_wanted * block->pairs_wanted;
    double budget = (double)block->settings.budget_ms * 1e6;
    return (budget > 0 && total > budget ? budget : total) +
           overhead_ns * points * block->segments_wanted;
}

static EngStatus estimate_blocks(EngDb *db, const EngLedgerBlock *blocks, int n, double *ns,
                                 EngErr *err)
{
    EngOverheads overheads = {0};
    EngStatus status = ENG_OK;
    for (int i = 0; i < n && !status; i++) {
        double overhead_ns;
        status = eng_db_overhead_ns(&overheads, db, blocks[i].experiment->name, &overhead_ns, err);
        if (!status) ns[i] = ledger_estimate_ns(&blocks[i], overhead_ns);
    }
    return status;
}

static int64_t wanted_samples(const EngLedgerBlock *block)
{
    int64_t points = 0;
    for (int i = 0; i < block->n_points; i++) points += block->points[i].state != ENG_POINT_DONE;
    return points *
           (block->experiment->counted ? 1 : (int64_t)block->segments_wanted * block->pairs_wanted);
}

/* Maps what the block's points read; table arenas of another format are released first. */
static EngStatus map_for(EngResources *resources, const EngLedgerBlock *block, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (int i = 0; i < block->n_points && !status; i++) {
        const EngPlanPoint *point = block->points[i].plan;
        const EngNeed *need = &point->need;
        if (block->points[i].state == ENG_POINT_DONE) continue;
        if (need->table) status = eng_resources_map(resources, need->row_format, err);
        if (!status && need->table) status = eng_resources_layout(resources, need->row_dims, err);
        if (!status && need->weight_bytes) status = eng_resources_map_weights(resources, err);
        if (status) eng_plan_blame(point, status, err);
    }
    return status;
}

/* Points found measured are not measured again, so they are not traced either. */
static EngStatus tell_untraced(EngDb *db, const EngSweep *sweep, const EngRunOptions *options,
                               const char *run_id, EngErr *err)
{
    bool wanted = false;
    int64_t n = 0;
    for (int i = 0; i < sweep->n_sections; i++)
        wanted = wanted || sweep->sections[i].settings.trace;
    if (!wanted || !options->tracer) return ENG_OK;
    EngStatus status = eng_db_count_untraced(db, run_id, &n, err);
    if (!status && n)
        eng_warn("trace",
                 "%lld points found measured have no trace; --fresh measures and traces them",
                 (long long)n);
    return status;
}

static EngStatus run_blocks(EngDb *db, EngSession *session, const EngRunOptions *options,
                            EngRunResult *result, EngErr *err)
{
    EngLedgerBlock *blocks = NULL;
    int n_blocks = 0;
    const EngRunHooks *hooks = options->hooks;
    Progress progress = {.line = options->progress_line};
    EngArena *arena = eng_arena_create();
    if (!arena) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the ledger");
    EngBlockContext context = {.db = db,
                               .resources = session->resources,
                               .interrupted = options->interrupted,
                               .deadline_ns = options->deadline_ns,
                               .tick = tick,
                               .tick_context = &progress,
                               .tracer = options->tracer,
                               .result = result};
    EngStatus status =
        eng_db_blocks(db, result->run_id, session->plan, arena, &blocks, &n_blocks, err);
    double *estimates = eng_arena_alloc(arena, ((size_t)n_blocks + 1) * sizeof *estimates);
    if (!status && !estimates)
        status = ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the ledger");
    if (!status) status = estimate_blocks(db, blocks, n_blocks, estimates, err);
    progress.start_ns = progress.shown_ns = eng_now_ns();
    progress.n_blocks = n_blocks;
    for (int i = 0; i < n_blocks && !status; i++) progress.total_ns += estimates[i];
    for (int i = 0; i < n_blocks && !status; i++) {
        progress.block = i;
        progress.experiment = blocks[i].experiment->name;
        progress.block_ns = estimates[i];
        progress.block_samples = 0;
        progress.block_wanted = wanted_samples(&blocks[i]);
        status = map_for(session->resources, &blocks[i], err);
        if (!status)
            status = hooks ? hooks->block(hooks->context, &context, &blocks[i], err)
                           : eng_block_run(&context, &blocks[i], err);
        if (!status && is_interrupted(options))
            status = ENG_FAIL(err, ENG_INTERRUPTED, "interrupted");
        progress.done_ns += progress.block_ns;
    }
    if (progress.line && n_blocks) {
        progress.block_ns = 0;
        show_progress(&progress, true);
        fputc('\n', stderr);
    }
    eng_arena_destroy(arena);
    return status;
}

EngStatus eng_run_sweep(const EngSweep *sweep, const EngRunOptions *options, EngRunResult *result,
                        EngErr *err)
{
    EngDb *db = options->db;
    const EngRunHooks *hooks = options->hooks;
    EngSession *session = NULL;
    bool begun = false;
    *result = (EngRunResult){0};
    /* The lock comes first: a second run must hear of it before it waits for anything. */
    EngStatus status = db ? ENG_OK : eng_db_open(options->db_path, ENG_DB_RUN, &db, err);
    if (!status) status = eng_session_open(sweep, options->data_dir, &session, err);
    if (!status && hooks) status = hooks->planned(hooks->context, session, err);
    if (!status && is_interrupted(options)) status = ENG_FAIL(err, ENG_INTERRUPTED, "interrupted");
    if (!status) status = put_references(db, session, err);
    if (!status && hooks && hooks->references) status = hooks->references(hooks->context, db, err);
    if (!status) status = begin_run(db, session, sweep, options, result, err);
    begun = !status;
    if (!status)
        status = eng_db_plan_write(db, result->run_id, session->plan,
                                   options->fresh || options->own_points, &result->counts, err);
    if (!status) {
        eng_info("run",
                 "%s run %.8s: %d points to measure in %d blocks, %d found measured, %d skipped",
                 result->resumed ? "resumed" : "new", result->run_id, result->counts.planned,
                 result->counts.blocks, result->counts.found, result->counts.skipped);
        status = tell_untraced(db, sweep, options, result->run_id, err);
    }
    if (!status) {
        status = run_blocks(db, session, options, result, err);
    }
    if (!status && hooks && hooks->judge)
        status = hooks->judge(hooks->context, db, result->run_id, err);
    if (begun) {
        EngRunState state = !status                     ? ENG_RUN_DONE
                            : status == ENG_INTERRUPTED ? ENG_RUN_INTERRUPTED
                                                        : ENG_RUN_FAILED;
        EngErr later;
        EngStatus finished = eng_db_run_finish(db, result->run_id, state, &later);
        if (finished && !status) {
            status = finished;
            if (err) *err = later;
        }
    }
    eng_session_free(session);
    if (!options->db) eng_db_close(db);
    return status;
}
