/* Running a step; see fetched_step.h. Set-up is in fetched_step_setup.c. */
#include "bench/experiments/fetched_step.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/nvtx.h"
#include "bench/experiments/oracle.h"

#define VERIFIED_TOKENS 128

/* ---- tokens ------------------------------------------------------------------------------------
 */

void eng_step_keep_ids(EngStep *step, int64_t at, const int32_t *tokens, int64_t n)
{
    int32_t vocab = step->spec.backbone.vocab;
    for (int64_t i = 0; i < n; i++) step->ids[at + i] = tokens[i] < 0 ? 0 : tokens[i] % vocab;
}

void eng_step_take_text(EngStep *step, int64_t sequence, int64_t at)
{
    int64_t n = step->spec.verified, reach = step->address.max_order - 1;
    const int32_t *text = step->windows.stream + at;
    int32_t *history = step->history + sequence * reach;
    memcpy(step->tokens + sequence * n, text, (size_t)n * sizeof *text);
    for (int64_t i = 0; i < reach; i++)
        history[i] = step->windows.history ? text[i - reach] : ENG_TOKEN_DEAD;
}

/* The next tokens of the rotation, outside the clock. */
static void next_tokens(EngStep *step)
{
    const EngStepSpec *spec = &step->spec;
    const EngWindows *w = &step->windows;
    step->window = eng_windows_next(&step->windows);
    if (!spec->decode) {
        eng_step_keep_ids(step, 0, w->stream + w->at[step->window], spec->shapes[0].tokens);
        return;
    }
    for (int64_t s = 0; s < spec->chunk / spec->verified; s++) {
        if (s) step->window = eng_windows_next(&step->windows);
        eng_step_take_text(step, s, w->at[step->window]);
    }
    eng_step_keep_ids(step, 0, step->tokens, spec->chunk);
}

static int64_t pass_tokens(const EngStep *step, int64_t pass)
{
    if (step->spec.decode) return step->spec.chunk;
    int64_t all = step->spec.shapes[0].tokens, chunk = step->spec.chunk, left = all - pass * chunk;
    return left < chunk ? left : chunk;
}

/* What lies before a pass of a prompt: of a window that starts a text, its own tokens, and dead
 * ones before them. */
static const int32_t *tokens_before(EngStep *step, int64_t at)
{
    const EngWindows *w = &step->windows;
    int64_t reach = step->address.max_order - 1;
    const int32_t *text = w->stream + w->at[step->window];
    if (w->history || at >= reach) return text + at - reach;
    for (int64_t i = 0; i < reach; i++)
        step->history[i] = at - reach + i < 0 ? ENG_TOKEN_DEAD : text[at - reach + i];
    return step->history;
}

static EngHashArgs hash_args(EngStep *step, int64_t pass)
{
    int64_t n = pass_tokens(step, pass), at = pass * step->spec.chunk;
    int64_t *rows = step->rows[pass & 1];
    const EngWindows *w = &step->windows;
    if (step->spec.decode)
        return (EngHashArgs){.tokens = step->tokens,
                             .n_tokens = n,
                             .n_live = n,
                             .starts = step->starts,
                             .n_seqs = n / step->spec.verified,
                             .history = step->history,
                             .rows = rows};
    return (EngHashArgs){.tokens = w->stream + w->at[step->window] + at,
                         .n_tokens = n,
                         .n_live = n,
                         .n_seqs = 1,
                         .history = tokens_before(step, at),
                         .rows = rows};
}

/* ---- rows --------------------------------------------------------------------------------------
 */

EngStatus eng_step_hash(EngStep *step, int64_t pass, EngErr *err)
{
    EngArgs args = {.u.hash = hash_args(step, pass)};
    return eng_runner_run(&step->hash, &args, err);
}

/* The tokens of a pass from `from` on; their row numbers have been hashed. */
static EngStatus ask(EngStep *step, int64_t pass, int64_t from, EngPrefetchTicket *ticket,
                     EngErr *err)
{
    int64_t stride = (int64_t)step->spec.modules * step->spec.shapes[0].columns;
    EngStatus status =
        eng_prefetch_submit(step->prefetcher, step->rows[pass & 1] + from * stride, stride,
                            pass_tokens(step, pass) - from, eng_nvtx_step, false, ticket, err);
    if (!status && !*ticket)
        status = ENG_FAIL(err, ENG_INTERNAL, "prefetch: no room for pass %" PRId64, pass);
    return status;
}

EngStatus eng_step_submit(EngStep *step, int64_t pass, EngErr *err)
{
    EngStepTickets *t = &step->tickets[pass & 1];
    *t = (EngStepTickets){.kept = pass_tokens(step, pass)};
    step->known_ns[pass & 1] = eng_now_ns();
    EngStatus status = eng_step_hash(step, pass, err);
    return status ? status : ask(step, pass, 0, &t->first, err);
}

void eng_step_keep(EngStep *step, int64_t pass, int64_t tokens)
{
    EngStepTickets *t = &step->tickets[pass & 1];
    t->kept = tokens;
    if (tokens) {
        eng_prefetch_keep(step->prefetcher, t->first, tokens);
    } else {
        eng_prefetch_cancel(step->prefetcher, t->first);
        t->first = 0;
    }
}

EngStatus eng_step_submit_rest(EngStep *step, int64_t pass, EngErr *err)
{
    EngStepTickets *t = &step->tickets[pass & 1];
    step->known_ns[pass & 1] = eng_now_ns();
    EngStatus status = eng_step_hash(step, pass, err);
    return status ? status : ask(step, pass, t->kept, &t->rest, err);
}

static void count_wait(EngStep *step, int m, const EngPrefetchRows *rows)
{
    EngStepSums *sums = step->sums;
    int64_t known = step->known_ns[step->pass & 1];
    sums->fetch_ns[m] += rows->fetch_end_ns - rows->fetch_begin_ns;
    sums->stall_ns[m] += rows->ready_ns - rows->needed_ns;
    sums->window_ns[m] += rows->needed_ns - known;
    sums->wanted_ns[m] += rows->fetch_end_ns - known;
}

/* Rows of tokens from `from` of the pass on: the first against the seed, then all of what was
 * gathered from them. */
static EngStatus compare(EngStep *step, int m, const EngPrefetchRows *rows, int64_t from,
                         int64_t tokens, EngErr *err)
{
    const EngShape *shape = &step->spec.shapes[m];
    EngResidual *r = step->residual;
    EngRowsOut out = {(uint8_t *)(uintptr_t)rows->table.values,
                      (uint8_t *)(uintptr_t)rows->table.scales};
    EngCheck check = {0};
    const int64_t *numbers =
        step->rows[step->pass & 1] + (from * step->spec.modules + m) * shape->columns;
    int64_t wrong = 0, n = rows->tokens < VERIFIED_TOKENS ? rows->tokens : VERIFIED_TOKENS, *wanted;
    EngStatus status = eng_alloc_or((void **)&wanted, (size_t)n, (size_t)shape->columns * 8,
                                    "row numbers to compare", err);
    for (int64_t t = 0; t < n && !status; t++)
        memcpy(wanted + t * shape->columns, numbers + t * step->spec.modules * shape->columns,
               (size_t)shape->columns * sizeof *wanted);
    if (!status)
        status = eng_table_rows_check(step->resources, shape->row_format, shape->row_dims, wanted,
                                      n * shape->columns, &out, &wrong, err);
    EngGatherArgs args = {.rows = step->identity,
                          .row_stride = shape->columns,
                          .out = step->gathered + from * shape->k};
    if (!status) status = eng_check_gather(&step->gather.problem.u.gather, &args, &check, err);
    eng_free(wanted);
    r->n_checked += n * shape->columns + check.n_checked;
    r->n_outputs += rows->tokens * shape->columns + check.n_outputs;
    r->n_nonfinite += check.n_nonfinite;
    if (!wrong && !check.n_failed && rows->tokens == tokens) return status;
    r->pass = false;
    r->max_rel = 1;
    snprintf(r->note, sizeof r->note,
             "module %d: %" PRId64 " rows and %" PRId64 " gathered values differ", m, wrong,
             check.n_failed);
    return status;
}

/* What one ticket of the pass was for: tokens from `from` on. */
static EngStatus take_part(EngStep *step, int m, EngPrefetchTicket ticket, int64_t from,
                           int64_t tokens, EngErr *err)
{
    const EngShape *shape = &step->spec.shapes[m];
    EngPrefetchRows *rows = &step->held[m];
    EngStatus status = ENG_OK;
    if (!step->ahead) {
        status = eng_prefetch_wait(step->prefetcher, ticket, m, rows, err);
        if (status) return status;
        count_wait(step, m, rows);
    }
    EngArgs args = {.u.gather = {.rows = step->identity,
                                 .row_stride = shape->columns,
                                 .out = step->gathered + from * shape->k}};
    step->gather.problem.u.gather.table = rows->table;
    step->gather.problem.u.gather.tokens = rows->tokens;
    step->gather.layer = step->spec.at[m];
    status = eng_runner_run(&step->gather, &args, err);
    if (!status && step->residual) status = compare(step, m, rows, from, tokens, err);
    eng_prefetch_release(step->prefetcher, ticket, m);
    return status;
}

static EngStatus take_rows(EngStep *step, int m, EngErr *err)
{
    const EngStepTickets *t = &step->tickets[step->pass & 1];
    int64_t all = pass_tokens(step, step->pass);
    EngStatus status = ENG_OK;
    if (t->first) status = take_part(step, m, t->first, 0, t->kept, err);
    if (t->rest && !status) status = take_part(step, m, t->rest, t->kept, all - t->kept, err);
    if (!status && !t->first && !t->rest)
        status = ENG_FAIL(err, ENG_INTERNAL, "prefetch: nothing was asked for");
    return status;
}

EngStatus eng_step_before_layer(void *context, const EngBackboneStep *backbone_step, int layer,
                                void *streams, EngErr *err)
{
    EngStep *step = context;
    EngStatus status = ENG_OK;
    (void)backbone_step, (void)streams;
    for (int m = 0; m < step->spec.modules && !status; m++)
        if (step->spec.at[m] == layer) status = take_rows(step, m, err);
    return status;
}

/* ---- steps -------------------------------------------------------------------------------------
 */

EngStatus eng_step_forward(EngStep *step, int64_t pass, EngErr *err)
{
    int64_t n = pass_tokens(step, pass), whole[2] = {0, n};
    EngBackboneStep now = {.ids = step->ids + pass * step->spec.chunk,
                           .starts = step->spec.decode ? step->starts : whole,
                           .n_seqs = step->spec.decode ? (int)(n / step->spec.verified) : 1};
    step->pass = pass;
    EngStatus status = ENG_OK;
    bool first = !pass || step->spec.decode; /* of a prompt: nothing is cached before it */
    for (int s = 0; s < step->spec.backbone.max_seqs && first && !status; s++)
        status = eng_backbone_truncate(step->backbone, s, 0, err);
    return status ? status : eng_backbone_forward(step->backbone, &now, false, NULL, err);
}

EngStatus eng_step_hold(EngStep *step, int64_t pass, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (int m = 0; m < step->spec.modules && !status; m++)
        status = eng_prefetch_wait(step->prefetcher, step->tickets[pass & 1].first, m,
                                   &step->held[m], err);
    step->ahead = true;
    return status;
}

static void begin(EngStep *step, EngStepSums *sums)
{
    step->sums = sums;
    step->ahead = false;
    sums->steps++;
    next_tokens(step);
}

EngStatus eng_step_fetch(EngStep *step, EngStepSums *sums, EngErr *err)
{
    int64_t passes = step->spec.passes;
    begin(step, sums);
    int64_t from = eng_now_ns();
    EngStatus status = eng_step_submit(step, 0, err);
    for (int64_t pass = 0; pass < passes && !status; pass++) {
        if (pass + 1 < passes) status = eng_step_submit(step, pass + 1, err);
        if (!status) status = eng_step_forward(step, pass, err);
    }
    sums->step_ns += eng_now_ns() - from;
    return status;
}

/* Row numbers are hashed again within the clock, as where they are hashed once. */
EngStatus eng_step_ready(EngStep *step, EngStepSums *sums, EngErr *err)
{
    EngStatus status = ENG_OK;
    begin(step, sums);
    for (int64_t pass = 0; pass < step->spec.passes && !status; pass++) {
        status = eng_step_submit(step, pass, err);
        if (!status) status = eng_step_hold(step, pass, err);
        if (status) break;
        int64_t from = eng_now_ns();
        status = eng_step_hash(step, pass, err);
        if (!status) status = eng_step_forward(step, pass, err);
        sums->step_ns += eng_now_ns() - from;
    }
    return status;
}

EngStatus eng_step_verify(EngStep *step, EngResidual *residual, EngErr *err)
{
    EngStepSums unused = {0};
    *residual = (EngResidual){.of = "exact", .pass = true};
    EngStatus status = eng_step_prepare(step, err);
    step->residual = residual;
    if (!status) status = eng_step_fetch(step, &unused, err);
    if (!status) status = eng_step_ready(step, &unused, err);
    step->residual = NULL;
    eng_step_over(step);
    if (residual->pass)
        snprintf(residual->note, sizeof residual->note, "0 of %" PRId64 " rows and values differ",
                 residual->n_checked);
    return status;
}

EngStatus eng_step_prepare(EngStep *step, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (int m = 0; m < step->spec.modules && !status; m++)
        status = eng_open_table_prepare(&step->tables[m], err);
    return status ? status : eng_cores_compute(&step->cores, err);
}

void eng_step_over(EngStep *step)
{
    eng_cores_free(&step->cores);
}

void eng_step_store_stats(const EngStep *step, EngStoreStats *stats)
{
    *stats = (EngStoreStats){0};
    for (int m = 0; m < step->spec.modules; m++) {
        EngStoreStats s;
        eng_store_stats(step->tables[m].store, &s);
        stats->rows += s.rows;
        stats->bytes_asked += s.bytes_asked;
        stats->requests += s.requests;
        stats->bytes_read += s.bytes_read;
        stats->hits += s.hits;
        stats->misses += s.misses;
        stats->memory_bytes += s.memory_bytes;
    }
}
