/* See gatherers.h. */
#include "bench/experiments/gatherers.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/nvtx.h"
#include "bench/experiments/stages.h"

#define LEAST_BATCHES 2

static const int64_t *rows_of(const EngGatherers *g, int64_t window)
{
    return g->rows + window * g->shape.tokens * g->shape.columns;
}

static EngGatherArgs gather_args(const EngGatherer *one, int64_t window)
{
    return (EngGatherArgs){.rows = rows_of(one->all, window),
                           .row_stride = one->all->shape.columns,
                           .out = one->gathered};
}

static int64_t window_after(const EngGatherers *g, int64_t window, int64_t step)
{
    return (window + step + g->windows.n) % g->windows.n;
}

static EngStatus do_batch(EngGatherer *one, EngErr *err)
{
    EngGatherers *g = one->all;
    int64_t window = one->window;
    one->window = window_after(g, window, 1);
    if (g->from_store)
        return eng_store_read(one->table.store, rows_of(g, window),
                              g->shape.tokens * g->shape.columns, &one->rows, err);
    EngArgs args = {.u.gather = gather_args(one, window)};
    return eng_runner_run(&one->runner, &args, err);
}

static void count_batch(EngGatherer *one)
{
    int64_t now = eng_now_ns();
    if (now < one->all->from_ns || now > one->all->to_ns) return;
    if (one->first_ns)
        one->batches++;
    else
        one->first_ns = now;
    one->last_ns = now;
}

static void wait_until_let(EngGatherers *g)
{
    g->n_idle++;
    pthread_cond_broadcast(&g->idle);
    while (!g->running && !g->over) pthread_cond_wait(&g->go, &g->lock);
    g->n_idle--;
}

static void *work(void *opaque)
{
    EngGatherer *one = opaque;
    EngGatherers *g = one->all;
    eng_nvtx_name_thread("gather");
    pthread_mutex_lock(&g->lock);
    wait_until_let(g);
    while (!g->over) {
        EngErr err = {0};
        bool first = true;
        EngStatus status = ENG_OK;
        pthread_mutex_unlock(&g->lock);
        while (!status && (g->running || first)) {
            status = do_batch(one, &err);
            count_batch(one);
            if (!first) continue;
            first = false;
            pthread_mutex_lock(&g->lock);
            g->n_first++;
            pthread_cond_broadcast(&g->idle);
            pthread_mutex_unlock(&g->lock);
        }
        pthread_mutex_lock(&g->lock);
        if (status && !one->status) {
            one->status = status;
            one->err = err;
        }
        while (status && g->running && !g->over) { /* its error is told at the stop */
            pthread_cond_wait(&g->go, &g->lock);
        }
        wait_until_let(g);
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

void eng_gatherers_start(EngGatherers *g)
{
    pthread_mutex_lock(&g->lock);
    for (int i = 0; i < g->n; i++) {
        g->each[i].batches = 0;
        g->each[i].first_ns = 0;
    }
    g->from_ns = g->to_ns = INT64_MAX;
    g->n_first = 0;
    g->running = true;
    pthread_cond_broadcast(&g->go);
    while (g->n_first < g->n) pthread_cond_wait(&g->idle, &g->lock);
    pthread_mutex_unlock(&g->lock);
    g->from_ns = eng_now_ns();
}

void eng_gatherers_end(EngGatherers *g)
{
    g->to_ns = eng_now_ns();
}

EngStatus eng_gatherers_stop(EngGatherers *g, EngGathered *sum, EngErr *err)
{
    EngStatus status = ENG_OK;
    pthread_mutex_lock(&g->lock);
    g->running = false;
    pthread_cond_broadcast(&g->go);
    while (g->n_idle < g->n) pthread_cond_wait(&g->idle, &g->lock);
    for (int i = 0; i < g->n && !status; i++) {
        status = g->each[i].status;
        if (status && err) *err = g->each[i].err;
    }
    for (int i = 0; i < g->n && sum; i++) {
        sum->batches[i] += g->each[i].batches;
        if (g->each[i].batches) sum->ns[i] += g->each[i].last_ns - g->each[i].first_ns;
    }
    pthread_mutex_unlock(&g->lock);
    if (sum) sum->times++;
    return status;
}

double eng_gathered_rate(const EngGatherers *g, const EngGathered *sum)
{
    double rate = 0, rows = (double)(g->shape.tokens * g->shape.columns);
    for (int i = 0; i < g->n; i++) {
        if (sum->batches[i] < LEAST_BATCHES * sum->times || sum->ns[i] <= 0) return NAN;
        rate += rows * (double)sum->batches[i] / (double)sum->ns[i];
    }
    return rate;
}

EngStatus eng_gatherers_prepare(EngGatherers *g, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (int i = 0; i < g->n && g->from_store && !status; i++)
        status = eng_open_table_prepare(&g->each[i].table, err);
    return status;
}

EngStatus eng_gatherers_check(EngGatherers *g, EngCheck *check, EngErr *err)
{
    const EngShape *shape = &g->shape;
    int64_t n = shape->tokens * shape->columns;
    EngStatus status = ENG_OK;
    for (int i = 0; i < g->n && !status; i++) {
        EngGatherer *one = &g->each[i];
        int64_t last = window_after(g, one->window, -1), wrong = 0;
        EngGatherArgs args = gather_args(one, last);
        if (!g->from_store) {
            status = eng_check_gather(&one->runner.problem.u.gather, &args, check, err);
            continue;
        }
        status = eng_table_rows_check(g->resources, shape->row_format, shape->row_dims,
                                      rows_of(g, last), n, &one->rows, &wrong, err);
        check->n_checked += n;
        check->n_outputs += n;
        check->n_failed += wrong;
    }
    return status;
}

/* ---- creation ----------------------------------------------------------------------------------
 */

static EngStatus open_one(EngGatherers *g, EngGatherer *one, const EngTable *table,
                          const EngPoint *point, EngErr *err)
{
    const EngKernel *kernel;
    const EngShape *shape = &g->shape;
    size_t n = (size_t)(shape->tokens * shape->columns);
    size_t scale = eng_row_scale_bytes(shape->row_format, shape->row_dims);
    if (g->from_store) {
        EngStatus status = eng_open_table(&one->table, g->resources, shape, point, err);
        if (!status)
            status = eng_alloc_or((void **)&one->rows.values, n,
                                  eng_row_stride_bytes(shape->row_format, shape->row_dims),
                                  "fetched rows", err);
        if (!status && scale)
            status = eng_alloc_or((void **)&one->rows.scales, n, scale, "fetched scales", err);
        return status;
    }
    EngProblem problem = {
        .op = ENG_OP_GATHER,
        .threads = 1,
        .u.gather = {
            .table = *table, .columns = shape->columns, .tokens = shape->tokens, .out = ENG_BF16}};
    EngStatus status = eng_alloc_or(&one->gathered, n, (size_t)shape->row_dims * sizeof(uint16_t),
                                    "gathered rows", err);
    if (!status) status = eng_stage_best(&problem, &kernel, err);
    if (!status) status = eng_runner_open(&one->runner, kernel, &problem, err);
    if (!status) one->runner.layer = shape->layer;
    return status;
}

static EngStatus open_windows(EngGatherers *g, const EngBench *bench, const EngPoint *point,
                              EngErr *err)
{
    EngTokens tokens;
    EngShape *shape = &g->shape;
    EngStatus status = eng_resources_tokens(bench->resources, shape->preset.name,
                                            eng_point_word(point, "corpus"), &tokens, err);
    if (!status)
        status = eng_windows_create(&g->windows, &tokens, shape->tokens,
                                    eng_windows_count(shape->tokens), shape->max_order - 1,
                                    bench->seed, "gatherers", err);
    if (!status) status = eng_windows_rows(&g->windows, &shape->address, &g->rows, err);
    return status;
}

EngStatus eng_gatherers_create(EngGatherers *g, int n, const EngShape *shape, bool from_store,
                               const EngCores *cores, const EngBench *bench, const EngPoint *point,
                               EngErr *err)
{
    EngTable table = {0};
    g->shape = *shape;
    g->resources = bench->resources;
    g->from_store = from_store;
    if (!n) return ENG_OK;
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->go, NULL);
    pthread_cond_init(&g->idle, NULL);
    EngStatus status = open_windows(g, bench, point, err);
    if (!status && !from_store)
        status = eng_resources_table(bench->resources, shape->row_format, shape->row_dims,
                                     shape->address.rows[0], &table, err);
    if (!status && !from_store)
        eng_touch_rows(&table, g->rows, g->windows.n * shape->tokens * shape->columns);
    if (!status)
        status = eng_alloc_or((void **)&g->each, (size_t)n, sizeof *g->each, "gatherers", err);
    if (status) return status;
    g->n = n;
    status = eng_cores_fetch(cores, err);
    for (int i = 0; i < n && !status; i++) {
        EngGatherer *one = &g->each[i];
        one->all = g;
        one->window = i * g->windows.n / n;
        status = open_one(g, one, &table, point, err);
        if (status) break;
        one->started = !pthread_create(&one->thread, NULL, work, one);
        if (!one->started) status = ENG_FAIL(err, ENG_NO_MEMORY, "cannot start gatherer %d", i);
    }
    eng_cores_free(cores);
    return status;
}

void eng_gatherers_destroy(EngGatherers *g)
{
    pthread_mutex_lock(&g->lock);
    g->over = true;
    pthread_cond_broadcast(&g->go);
    pthread_mutex_unlock(&g->lock);
    for (int i = 0; i < g->n; i++) {
        EngGatherer *one = &g->each[i];
        if (one->started) pthread_join(one->thread, NULL);
        eng_open_table_close(&one->table);
        eng_runner_close(&one->runner);
        eng_free(one->rows.values);
        eng_free(one->rows.scales);
        eng_free(one->gathered);
    }
    eng_windows_destroy(&g->windows);
    eng_free(g->rows);
    eng_free(g->each);
    memset(g, 0, sizeof *g);
}
