/* engram status: where a run stands, also while it is running in another terminal. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "bench/cli/table.h"
#include "bench/cli/verbs.h"
#include "bench/core/db.h"
#include "bench/experiments/experiments.h"

static void add_counts(EngTextTable *table, const char *name, const EngStatusCounts *c)
{
    eng_table_text(table, name);
    const int numbers[] = {c->points, c->pending, c->running, c->measured,
                           c->found,  c->skipped, c->failed,  c->wrong};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        eng_table_printf(table, "%d", numbers[i]);
}

static EngStatus print_counts(const EngRunStatus *run, EngErr *err)
{
    static const EngTableColumn columns[] = {
        {"experiment", false}, {"points", true},   {"pending", true},
        {"running", true},     {"measured", true}, {"(found)", true},
        {"skipped", true},     {"failed", true},   {"wrong", true}};
    EngTextTable *table;
    EngStatus status = eng_table_create(&table, columns, 9, err);
    if (status) return status;
    for (int i = 0; i < run->n_experiments; i++)
        add_counts(table, run->experiments[i].experiment, &run->experiments[i]);
    add_counts(table, "all", &run->total);
    status = eng_table_print(table, stdout, err);
    eng_table_free(table);
    return status;
}

static void print_reasons(const char *title, const EngStatusPoint *points, int n)
{
    if (n) printf("\n%s\n", title);
    for (int i = 0; i < n; i++) {
        char point[400], line[ENG_ERR_TEXT_BYTES + sizeof point];
        eng_point_text(&eng_experiments, points[i].experiment, points[i].axes_json, point,
                       sizeof point);
        snprintf(line, sizeof line, "%s: %s", point, points[i].reason);
        printf("  ");
        eng_text_print(stdout, line, 2, 6);
    }
}

static EngStatus run(EngCli *cli, EngErr *err)
{
    EngDb *db = NULL;
    EngRunStatus run_status;
    EngArena *arena = eng_arena_create();
    if (!arena) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory");
    EngStatus status = eng_db_open(eng_cli_text(cli, "db"), ENG_DB_READ, &db, err);
    if (!status) status = eng_db_status(db, eng_cli_operand(cli, 0), arena, &run_status, err);
    if (status) goto out;
    const EngRunStatus *r = &run_status;
    bool killed = !strcmp(r->state, "running") && !eng_db_run_is_alive(db, r->run_id);
    printf("run %.8s  %s  %s  started %s%s%s\n", r->run_id, r->sweep_name,
           killed ? "killed (the same command goes on)" : r->state, r->started_utc,
           r->ended_utc[0] ? "  ended " : "", r->ended_utc);
    printf("%d of %d blocks done, %lld samples", r->blocks_done, r->blocks,
           (long long)r->n_samples);
    if (r->blocks_done < r->blocks)
        printf(", about %.0f s left", (double)r->remaining_estimate_ns * 1e-9);
    if (r->blocks_done < r->blocks && !isnan(r->cost_factor))
        printf(" (finished blocks took %.3g times their estimates)", r->cost_factor);
    if (r->current_block >= 0 && !strcmp(r->state, "running") && !killed)
        printf("\nin work: block %d, %s, segment %d of %d", r->current_block + 1,
               r->current_experiment, r->current_segment + 1, r->current_segments);
    printf("\n\n");
    status = print_counts(r, err);
    if (r->n_stops) printf("\n");
    eng_stops_print(r);
    print_reasons("failed or wrong", r->failures, r->n_failures);
    print_reasons("skipped", r->skips, r->n_skips);
    if (r->n_slowest) printf("\nslowest\n");
    for (int i = 0; i < r->n_slowest; i++) {
        char point[400];
        const EngStatusPoint *p = &r->slowest[i];
        eng_point_text(&eng_experiments, p->experiment, p->axes_json, point, sizeof point);
        printf("  %6.2f s  ", (double)p->wall_ns * 1e-9);
        eng_text_print(stdout, point, 12, 12);
    }
out:
    eng_db_close(db);
    eng_arena_destroy(arena);
    return status;
}

static const EngOption g_options[] = {
    ENG_OPTION_DB,
};

const EngVerb eng_verb_status = {
    .name = "status",
    .operands = "[RUN]",
    .summary = "where a run stands: states, time left, failures with reasons, slowest points",
    .details = "RUN is a run id, its first characters, latest or latest~N (`engram runs`); without "
               "it the newest.\nReading does "
               "not disturb a run.",
    .options = g_options,
    .n_options = 1,
    .max_operands = 1,
    .run = run,
};
