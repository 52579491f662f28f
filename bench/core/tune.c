/* The stages of a search; see tune.h. */
#include "bench/core/tune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "bench/core/db_pairs.h"
#include "bench/core/session.h"

typedef struct Search {
    EngTuneSpace *space;
    const EngTuneOptions *options;
    EngTuneResult *result;
    int chosen[ENG_TUNE_MAX_CANDIDATES]; /* still in, best first */
    int n_chosen;
    int64_t start_ns, deadline_ns;
    EngErr *err;
} Search;

/* Samples of a stage as rounds of its candidates. */
typedef struct Table {
    EngArena *arena;
    EngRounds rounds;
} Table;

static EngStatus no_memory(Search *s)
{
    return ENG_FAIL(s->err, ENG_NO_MEMORY, "out of memory for a search");
}

static bool out_of_time(const Search *s)
{
    return s->deadline_ns && eng_now_ns() >= s->deadline_ns;
}

/* ---- plan of a stage ---------------------------------------------------------------------------
 */

/* The candidate that a plan's point is, -1: none. */
static int candidate_of(const EngTuneSpace *space, const EngPlanPoint *point)
{
    for (int i = 0; i < space->n; i++) {
        bool same = true;
        for (int k = 0; k < space->n_axes && same; k++)
            same = !strcmp(space->items[i].values[k], point->point.values[space->axes[k]].text);
        if (same) return i;
    }
    return -1;
}

/* Keys and reasons to skip, from the plan; the key and ids that a run is found by. */
static EngStatus read_plan(Search *s, const EngSweep *sweep, char plan_key[ENG_KEY_HEX],
                           char build_id[ENG_KEY_HEX])
{
    EngSession *session;
    EngStatus status = eng_session_open(sweep, s->options->run.data_dir, &session, s->err);
    if (status) return status;
    const EngPlan *plan = eng_session_plan(session);
    for (int i = 0; i < plan->n_named && !status; i++) {
        int c = candidate_of(s->space, plan->points[i]);
        if (c < 0) continue;
        EngTuneCandidate *item = &s->space->items[c];
        memcpy(item->point_key, plan->points[i]->point_key, ENG_KEY_HEX);
        if (!plan->points[i]->skip) continue;
        item->skip = eng_arena_strdup(s->space->arena, plan->points[i]->skip);
        if (!item->skip) status = no_memory(s);
    }
    memcpy(plan_key, plan->plan_key, ENG_KEY_HEX);
    snprintf(build_id, ENG_KEY_HEX, "%s", session->build.build_id);
    snprintf(s->result->machine_id, ENG_KEY_HEX, "%s", session->machine.machine_id);
    eng_session_free(session);
    return status;
}

static EngStatus open_stage(Search *s, const EngTuneStage *stage, int number, EngSweep **sweep)
{
    EngStr text = {0};
    EngStatus status =
        eng_tune_stage_text(s->space, s->chosen, s->n_chosen, stage, number, &text, s->err);
    if (!status)
        status =
            eng_sweep_parse(text.text, "tune", s->space->sweep->catalog, NULL, 0, sweep, s->err);
    eng_str_free(&text);
    return status;
}

/* Candidates that cannot run here leave before the first stage, so that the ladder is made for the
 * others. */
static EngStatus drop_skipped(Search *s)
{
    char plan_key[ENG_KEY_HEX], build_id[ENG_KEY_HEX];
    EngTuneStage any = {s->n_chosen, 1, 1, 1};
    EngSweep *sweep = NULL;
    const char *reason = NULL;
    EngStatus status = open_stage(s, &any, 0, &sweep);
    if (!status) status = read_plan(s, sweep, plan_key, build_id);
    eng_sweep_free(sweep);
    int n = 0;
    for (int i = 0; i < s->n_chosen && !status; i++) {
        const char *skip = s->space->items[s->chosen[i]].skip;
        if (!skip) s->chosen[n++] = s->chosen[i];
        if (!reason) reason = skip;
    }
    if (status) return status;
    s->result->n_skipped = s->n_chosen - n;
    s->n_chosen = n;
    if (n) return ENG_OK;
    return ENG_FAIL(s->err, ENG_NOT_FOUND, "tune: no candidate can run here: %s",
                    reason ? reason : "there is none");
}

/* ---- judging -----------------------------------------------------------------------------------
 */

static int compare_rounds(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Blocks are few, and samples a point are at most 10,000. */
#define ROUND_ID(sample)                                                                           \
    ((int64_t)(sample)->block << 40 | (int64_t)(sample)->segment << 16 | (sample)->pair)

/* Every (segment, pair) that any candidate has, ascending. */
static EngStatus number_rounds(Search *s, const EngPairPoint *points, int n_points, EngArena *arena,
                               int64_t **ids, int *n)
{
    int64_t total = 0;
    for (int i = 0; i < n_points; i++) total += points[i].n;
    *n = 0;
    *ids = eng_arena_alloc(arena, (size_t)(total + 1) * sizeof **ids);
    if (!*ids) return no_memory(s);
    int64_t *out = *ids;
    size_t k = 0;
    for (int i = 0; i < n_points; i++)
        for (int j = 0; j < points[i].n; j++) out[k++] = ROUND_ID(&points[i].samples[j]);
    qsort(out, k, sizeof *out, compare_rounds);
    for (size_t i = 0; i < k; i++)
        if (!*n || out[*n - 1] != out[i]) out[(*n)++] = out[i];
    return ENG_OK;
}

/* Fills one candidate's column; both lists ascend. */
static void fill_column(const Search *s, const EngPairPoint *point, const int64_t *ids, int n,
                        int column, double *times)
{
    bool wall = !strcmp(s->space->clock, "wall");
    for (int r = 0, j = 0; r < n && j < point->n; r++) {
        if (ids[r] != ROUND_ID(&point->samples[j])) continue;
        times[(size_t)r * (size_t)s->n_chosen + (size_t)column] =
            wall ? point->samples[j].wall_ns : point->samples[j].cpu_ns;
        j++;
    }
}

static const EngPairPoint *find_point(const EngPairPoint *points, int n, const char *key)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(points[i].point_key, key)) return &points[i];
    return NULL;
}

/* Rounds of the chosen candidates in a run; failed and wrong points count as absent. */
static EngStatus read_table(Search *s, const char *run_id, Table *table)
{
    EngDb *db = NULL;
    EngPairPoint *points = NULL;
    int64_t *ids = NULL;
    int n_points = 0, n = 0;
    EngStatus status = eng_db_open(s->options->run.db_path, ENG_DB_READ, &db, s->err);
    if (!status) status = eng_db_pairs(db, run_id, NULL, table->arena, &points, &n_points, s->err);
    eng_db_close(db);
    if (!status) status = number_rounds(s, points, n_points, table->arena, &ids, &n);
    if (status) return status;
    size_t cells = (size_t)n * (size_t)s->n_chosen;
    double *times = eng_arena_alloc(table->arena, (cells + 1) * sizeof *times);
    int *segments = eng_arena_alloc(table->arena, (size_t)(n + 1) * sizeof *segments);
    if (!times || !segments) return no_memory(s);
    for (size_t i = 0; i < cells; i++) times[i] = NAN;
    for (int r = 0; r < n; r++) segments[r] = (int)(ids[r] >> 16);
    for (int c = 0; c < s->n_chosen; c++) {
        const EngPairPoint *p =
            find_point(points, n_points, s->space->items[s->chosen[c]].point_key);
        if (p && p->outcome != ENG_OUTCOME_FAILED && p->outcome != ENG_OUTCOME_WRONG)
            fill_column(s, p, ids, n, c, times);
    }
    table->rounds = (EngRounds){
        .n_rounds = n, .n_candidates = s->n_chosen, .segments = segments, .times = times};
    return ENG_OK;
}

/* Scores are against the round's median; between the two fastest their own pairs decide. */
static EngStatus order_first_two(Search *s, const Table *table, int *place, int n)
{
    EngMedian ratio = {0, NAN, NAN, NAN};
    EngStatus status =
        n < 2 ? ENG_OK : eng_rounds_ratio(&table->rounds, place[0], place[1], &ratio, s->err);
    if (!status && ratio.median < 1) {
        int first = place[0];
        place[0] = place[1];
        place[1] = first;
    }
    return status;
}

/* Margin and floor between the two fastest; place[] are columns of the table. */
static EngStatus judge_margin(Search *s, const Table *table, const int *place, int n)
{
    EngTuneResult *result = s->result;
    double second = NAN;
    EngStatus status = eng_rounds_floor(&table->rounds, place[0], &result->floor, NULL, s->err);
    if (!status && n > 1)
        status = eng_rounds_floor(&table->rounds, place[1], &second, NULL, s->err);
    if (second > result->floor) result->floor = second;
    for (int i = 0; i < n && !status; i++) {
        EngMedian ratio;
        status = eng_rounds_ratio(&table->rounds, place[0], place[i], &ratio, s->err);
        result->ratios[i] = ratio.median;
        if (i == 1) result->margin = ratio;
    }
    if (!status && n > 1) result->verdict = eng_rounds_verdict(&result->margin, result->floor);
    return status;
}

/* Ranks the chosen candidates by a stage's samples. *n: how many have one. The result takes it when
 * it tells something. */
static EngStatus judge(Search *s, int stage, int *order, int *n)
{
    EngTuneResult *result = s->result;
    double scores[ENG_TUNE_MAX_CANDIDATES];
    int place[ENG_TUNE_MAX_CANDIDATES];
    Table table = {.arena = eng_arena_create()};
    *n = 0;
    if (!table.arena) return no_memory(s);
    EngStatus status = read_table(s, result->stages[stage].run_id, &table);
    if (!status) status = eng_rounds_scores(&table.rounds, scores, s->err);
    if (!status) {
        eng_rounds_order(scores, s->n_chosen, place);
        while (*n < s->n_chosen && !isnan(scores[place[*n]])) ++*n;
        status = order_first_two(s, &table, place, *n);
    }
    if (!status) {
        for (int i = 0; i < *n; i++) order[i] = s->chosen[place[i]];
        result->stages[stage].rounds = table.rounds.n_rounds;
    }
    bool tells = *n >= 2 || (*n == 1 && s->n_chosen == 1);
    if (!status && tells) {
        result->judged = stage;
        result->n_order = *n;
        result->margin = (EngMedian){0, NAN, NAN, NAN};
        result->verdict = 0;
        memcpy(result->order, order, (size_t)*n * sizeof *order);
        for (int i = 0; i < *n; i++) result->scores[order[i]] = scores[place[i]];
        status = judge_margin(s, &table, place, *n);
    }
    eng_arena_destroy(table.arena);
    return status;
}

/* ---- stages ------------------------------------------------------------------------------------
 */

static EngStatus find_run(Search *s, const char *plan_key, const char *build_id,
                          EngTuneStageResult *stage)
{
    EngDb *db = NULL;
    stage->run_id[0] = 0;
    if (!eng_file_exists(s->options->run.db_path)) return ENG_OK;
    EngStatus status = eng_db_open(s->options->run.db_path, ENG_DB_READ, &db, s->err);
    if (!status)
        status = eng_db_find_run(db, plan_key, s->result->machine_id, build_id, stage->run_id,
                                 &stage->finished, s->err);
    eng_db_close(db);
    return status;
}

static void report(const Search *s, int number)
{
    if (s->options->report)
        s->options->report(s->options->context, &s->result->stages[number], number,
                           s->result->n_ladder);
}

/* Measures what is missing of a stage. *cut: the budget ended it. */
static EngStatus run_stage(Search *s, const EngSweep *sweep, EngTuneStageResult *stage, bool *cut)
{
    EngRunOptions options = s->options->run;
    EngRunResult run = {0};
    int64_t start = eng_now_ns();
    /* What an earlier stage or another run measured has no round in common with the rest. */
    options.own_points = true;
    options.fresh = s->options->fresh;
    options.deadline_ns = s->deadline_ns;
    EngStatus status = eng_run_sweep(sweep, &options, &run, s->err);
    memcpy(stage->run_id, run.run_id, ENG_KEY_HEX);
    stage->seconds = (double)(eng_now_ns() - start) * 1e-9;
    bool asked = options.interrupted && *options.interrupted;
    *cut = status == ENG_INTERRUPTED && !asked && out_of_time(s);
    stage->finished = !status;
    return *cut ? ENG_OK : status;
}

/* One stage: from the database or by measuring. *go_on false: the search ends here. */
static EngStatus do_stage(Search *s, const EngTuneStage *wanted, int number, bool *go_on)
{
    EngTuneStageResult *stage = &s->result->stages[number];
    char plan_key[ENG_KEY_HEX], build_id[ENG_KEY_HEX];
    int order[ENG_TUNE_MAX_CANDIDATES], n = 0;
    EngSweep *sweep = NULL;
    bool cut = false;
    *stage = (EngTuneStageResult){.stage = *wanted};
    *go_on = false;
    EngStatus status = open_stage(s, wanted, number, &sweep);
    if (!status) status = read_plan(s, sweep, plan_key, build_id);
    if (!status) status = find_run(s, plan_key, build_id, stage);
    if (status) goto out;
    stage->found = stage->finished && !s->options->fresh;
    if (!stage->found && out_of_time(s) && !stage->run_id[0]) goto out; /* nothing begun */
    s->result->n_stages = number + 1;
    if (!stage->found) {
        report(s, number);
        if (!out_of_time(s))
            status = run_stage(s, sweep, stage, &cut);
        else
            cut = true;
    }
    if (!status) status = judge(s, number, order, &n);
    if (!status) report(s, number);
    if (status || cut) goto out;
    if (!n) {
        status = ENG_FAIL(s->err, ENG_NOT_FOUND,
                          "tune: no candidate gave a sample (`engram status` has the reasons)");
        goto out;
    }
    s->n_chosen = n < wanted->keep ? n : wanted->keep;
    memcpy(s->chosen, order, (size_t)s->n_chosen * sizeof *order);
    *go_on = true;
out:
    eng_sweep_free(sweep);
    return status;
}

static EngStatus allocate(Search *s)
{
    EngTuneResult *result = s->result;
    size_t n = (size_t)s->space->n;
    EngStatus status =
        eng_alloc_or((void **)&result->order, n, sizeof *result->order, "a search", s->err);
    if (!status)
        status =
            eng_alloc_or((void **)&result->scores, n, sizeof *result->scores, "a search", s->err);
    if (!status)
        status =
            eng_alloc_or((void **)&result->ratios, n, sizeof *result->ratios, "a search", s->err);
    return status;
}

EngStatus eng_tune_run(EngTuneSpace *space, const EngTuneOptions *options, EngTuneResult *result,
                       EngErr *err)
{
    Search s = {.space = space,
                .options = options,
                .result = result,
                .n_chosen = space->n,
                .start_ns = eng_now_ns(),
                .err = err};
    EngTuneStage ladder[ENG_TUNE_MAX_STAGES];
    *result = (EngTuneResult){.judged = -1, .floor = NAN, .margin = {0, NAN, NAN, NAN}};
    if (options->budget_s > 0) s.deadline_ns = s.start_ns + (int64_t)(options->budget_s * 1e9);
    for (int i = 0; i < space->n; i++) s.chosen[i] = i;
    EngStatus status = allocate(&s);
    if (!status) status = drop_skipped(&s);
    if (!status) result->n_ladder = eng_tune_ladder(s.n_chosen, ladder);
    bool go_on = true;
    for (int i = 0; i < result->n_ladder && !status && go_on; i++) {
        ladder[i].candidates = s.n_chosen; /* fewer when some failed */
        status = do_stage(&s, &ladder[i], i, &go_on);
        result->complete = !status && go_on && i + 1 == result->n_ladder;
    }
    if (status) eng_tune_result_free(result);
    return status;
}

void eng_tune_result_free(EngTuneResult *result)
{
    eng_free(result->order);
    eng_free(result->scores);
    eng_free(result->ratios);
    result->order = NULL;
    result->scores = result->ratios = NULL;
}
