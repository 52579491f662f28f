/* See engram/prefetch.h.
 *
 * One lock guards all but the rows themselves. A layer of a step goes queued -> reading -> ready ->
 * held -> over, or reading -> failed -> over; a buffer belongs to the layer from reading until
 * over. The thread reads without the lock, a piece at a time, into a buffer that is the layer's
 * alone.
 */
#include <engram/prefetch.h>

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/nvtx.h"
#include "kernels/store/pool.h"

#define DEFAULT_BUFFERS    2
#define DEFAULT_STEPS      2
#define DEFAULT_PIECE_ROWS 4096
#define MOST_BUFFERS       1024
#define NO_BUFFER          (-1)

typedef enum LayerState { QUEUED = 0, READING, READY, HELD, FAILED, OVER } LayerState;

typedef struct Layer {
    LayerState state;
    int buffer;        /* NO_BUFFER but from reading to over */
    int64_t rows_read; /* into the buffer */
    int64_t begin_ns, end_ns;
    EngStatus status; /* failed */
    EngErr err;
} Layer;

typedef struct Step {
    EngPrefetchTicket ticket; /* 0: free */
    int64_t step, tokens;
    bool cancelled;
    _Atomic int64_t kept; /* tokens still wanted; read between pieces without the lock */
    int64_t *rows;        /* [layers][max_tokens * columns] */
    Layer *layers;        /* [layers] */
} Step;

struct EngPrefetcher {
    EngPrefetchOptions options;
    EngStore *stores[ENG_PREFETCH_MAX_LAYERS];
    int layer_ids[ENG_PREFETCH_MAX_LAYERS];
    int layers;
    size_t row_bytes;    /* asked for, scales included */
    Step *steps;         /* [options.steps] */
    EngRowsOut *buffers; /* [options.buffers] */
    bool *taken;
    EngPrefetchTicket last;
    EngPrefetchStats stats;
    pthread_t thread;
    bool started, reading;
    _Atomic bool stop;
    pthread_mutex_t lock;
    pthread_cond_t work;    /* for the thread: a step, a buffer, the end */
    pthread_cond_t changed; /* for callers: a layer ready, a step over */
};

/* ---- under the lock ----------------------------------------------------------------------------
 */

static Step *find_step(EngPrefetcher *p, EngPrefetchTicket ticket)
{
    for (int s = 0; ticket && s < p->options.steps; s++)
        if (p->steps[s].ticket == ticket && !p->steps[s].cancelled) return &p->steps[s];
    return NULL;
}

static int free_buffer(const EngPrefetcher *p)
{
    for (int b = 0; b < p->options.buffers; b++)
        if (!p->taken[b]) return b;
    return NO_BUFFER;
}

static void end_layer(EngPrefetcher *p, Step *step, int l)
{
    Layer *layer = &step->layers[l];
    if (layer->state == QUEUED)
        p->stats.rows_dropped += step->tokens * p->options.columns;
    else if (layer->state == READY)
        p->stats.rows_in_vain += layer->rows_read;
    if (layer->buffer != NO_BUFFER) p->taken[layer->buffer] = false;
    layer->buffer = NO_BUFFER;
    layer->state = OVER;
    bool all = true;
    for (int i = 0; i < p->layers; i++) all = all && step->layers[i].state == OVER;
    if (all) step->ticket = 0;
    pthread_cond_signal(&p->work);
    pthread_cond_broadcast(&p->changed);
}

/* A layer being read ends when the thread is back. */
static void cancel_step(EngPrefetcher *p, Step *step)
{
    step->cancelled = true;
    for (int l = 0; l < p->layers && step->ticket; l++)
        if (step->layers[l].state != READING && step->layers[l].state != OVER)
            end_layer(p, step, l);
    step->kept = 0;
}

/* The oldest step's first layer that nobody has read. */
static Step *next_work(EngPrefetcher *p, int *l)
{
    Step *oldest = NULL;
    for (int s = 0; s < p->options.steps; s++) {
        Step *step = &p->steps[s];
        if (!step->ticket || step->cancelled || (oldest && oldest->ticket < step->ticket)) continue;
        for (int i = 0; i < p->layers; i++)
            if (step->layers[i].state == QUEUED) {
                oldest = step;
                *l = i;
                break;
            }
    }
    return oldest;
}

/* ---- the thread --------------------------------------------------------------------------------
 */

/* Reads what is still wanted of a layer; returns the rows that are in the buffer. */
static int64_t read_layer(EngPrefetcher *p, Step *step, int l, EngStatus *status, EngErr *err)
{
    const EngPrefetchOptions *o = &p->options;
    EngStore *store = p->stores[l];
    const int64_t *rows = step->rows + (size_t)l * (size_t)o->max_tokens * (size_t)o->columns;
    EngRowsOut at = p->buffers[step->layers[l].buffer];
    int64_t done = 0, wanted = step->kept * o->columns;
    eng_nvtx_push(ENG_RANGE_FETCH, (EngRangeInfo){.tokens = step->kept,
                                                  .layer = p->layer_ids[l],
                                                  .bytes = wanted * (int64_t)p->row_bytes,
                                                  .step = step->step});
    *status = ENG_OK;
    while (done < wanted && !atomic_load(&p->stop)) {
        int64_t n = wanted - done < o->piece_rows ? wanted - done : o->piece_rows;
        *status = eng_store_read(store, rows + done, n, &at, err);
        if (*status) break;
        done += n;
        at.values += eng_rows_value_bytes(store->format, store->row_dims, n);
        if (at.scales) at.scales += eng_rows_scale_bytes(store->format, store->row_dims, n);
        wanted = step->kept * o->columns;
    }
    eng_nvtx_pop();
    return done;
}

static void finish_layer(EngPrefetcher *p, Step *step, int l, int64_t done, EngStatus status,
                         const EngErr *err)
{
    Layer *layer = &step->layers[l];
    layer->rows_read = done;
    layer->end_ns = eng_now_ns();
    p->stats.rows_read += done;
    if (!status) p->stats.rows_dropped += step->tokens * p->options.columns - done;
    layer->state = READY;
    if (step->cancelled) {
        end_layer(p, step, l);
    } else if (status) {
        layer->state = FAILED;
        layer->status = status;
        layer->err = *err;
        p->taken[layer->buffer] = false;
        layer->buffer = NO_BUFFER;
    }
    pthread_cond_broadcast(&p->changed);
}

static void *fetch(void *opaque)
{
    EngPrefetcher *p = opaque;
    EngStatus status;
    int l = 0;
    eng_nvtx_name_thread("fetch");
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        Step *step = next_work(p, &l);
        int buffer = free_buffer(p);
        if (!step || buffer == NO_BUFFER) {
            pthread_cond_wait(&p->work, &p->lock);
            continue;
        }
        EngErr err = {0};
        step->layers[l].state = READING;
        step->layers[l].buffer = buffer;
        step->layers[l].begin_ns = eng_now_ns();
        p->taken[buffer] = p->reading = true;
        pthread_mutex_unlock(&p->lock);
        int64_t done = read_layer(p, step, l, &status, &err);
        pthread_mutex_lock(&p->lock);
        p->reading = false;
        finish_layer(p, step, l, done, status, &err);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- creation ----------------------------------------------------------------------------------
 */

static EngStatus check_options(EngStore *const *stores, int layers, EngPrefetchOptions *o,
                               EngErr *err)
{
    if (!o->buffers) o->buffers = DEFAULT_BUFFERS;
    if (!o->steps) o->steps = DEFAULT_STEPS;
    if (!o->piece_rows) o->piece_rows = DEFAULT_PIECE_ROWS;
    if (layers < 1 || layers > ENG_PREFETCH_MAX_LAYERS)
        return ENG_FAIL(err, ENG_USAGE, "prefetch: %d layers, 1 to %d are possible", layers,
                        ENG_PREFETCH_MAX_LAYERS);
    if (o->columns < 1 || o->max_tokens < 1 || o->piece_rows < 1 || o->steps < 1 ||
        o->buffers < 1 || o->buffers > MOST_BUFFERS || o->steps > MOST_BUFFERS)
        return ENG_FAIL(err, ENG_USAGE,
                        "prefetch: %d columns, %" PRId64 " tokens, pieces of %" PRId64
                        " rows, %d buffers, %d steps: all are 1 or more, buffers and steps at "
                        "most %d",
                        o->columns, o->max_tokens, o->piece_rows, o->buffers, o->steps,
                        MOST_BUFFERS);
    for (int l = 1; l < layers; l++)
        if (stores[l]->format != stores[0]->format || stores[l]->row_dims != stores[0]->row_dims)
            return ENG_FAIL(err, ENG_USAGE, "prefetch: rows of layer %d are %s of %d, not %s of %d",
                            l, eng_row_format_name(stores[l]->format), stores[l]->row_dims,
                            eng_row_format_name(stores[0]->format), stores[0]->row_dims);
    return ENG_OK;
}

static EngStatus make_buffers(EngPrefetcher *p, EngErr *err)
{
    const EngPrefetchOptions *o = &p->options;
    const EngStore *store = p->stores[0];
    size_t rows, row_numbers, values, scales;
    size_t value_bytes = eng_row_stride_bytes(store->format, store->row_dims);
    size_t scale_bytes = eng_row_scale_bytes(store->format, store->row_dims);
    if (!eng_mul_size((size_t)o->max_tokens, (size_t)o->columns, &rows) ||
        !eng_mul_size(rows, (size_t)p->layers, &row_numbers) ||
        !eng_mul_size(rows, value_bytes, &values) || !eng_mul_size(rows, scale_bytes, &scales))
        return ENG_FAIL(err, ENG_USAGE, "prefetch: %" PRId64 " tokens of %d rows are too many",
                        o->max_tokens, o->columns);
    EngStatus status =
        eng_alloc_or((void **)&p->steps, (size_t)o->steps, sizeof *p->steps, "prefetch steps", err);
    if (!status)
        status = eng_alloc_or((void **)&p->buffers, (size_t)o->buffers, sizeof *p->buffers,
                              "prefetch buffers", err);
    if (!status)
        status = eng_alloc_or((void **)&p->taken, (size_t)o->buffers, sizeof *p->taken,
                              "prefetch buffers", err);
    for (int s = 0; s < o->steps && !status; s++) {
        status = eng_alloc_or((void **)&p->steps[s].rows, row_numbers, sizeof(int64_t),
                              "row numbers of a step", err);
        if (!status)
            status = eng_alloc_or((void **)&p->steps[s].layers, (size_t)p->layers, sizeof(Layer),
                                  "layers of a step", err);
    }
    for (int b = 0; b < o->buffers && !status; b++) {
        status = eng_alloc_or((void **)&p->buffers[b].values, values, 1, "prefetched rows", err);
        if (!status && scales)
            status =
                eng_alloc_or((void **)&p->buffers[b].scales, scales, 1, "prefetched rows", err);
    }
    p->stats.memory_bytes = (int64_t)((size_t)o->buffers * (values + scales) +
                                      (size_t)o->steps * row_numbers * sizeof(int64_t));
    return status;
}

static EngStatus start_thread(EngPrefetcher *p, EngErr *err)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    if (p->options.pin) {
        cpu_set_t set;
        CPU_ZERO(&set);
        if (p->options.core >= 0 && p->options.core < CPU_SETSIZE)
            CPU_SET((size_t)p->options.core, &set);
        pthread_attr_setaffinity_np(&attr, sizeof set, &set);
    }
    int failed = eng_pool_start_thread(&p->thread, &attr, fetch, p);
    pthread_attr_destroy(&attr);
    p->started = !failed;
    if (failed && p->options.pin)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "prefetch: no thread on processor %d: %s",
                        p->options.core, strerror(failed));
    if (failed) return ENG_FAIL(err, ENG_NO_MEMORY, "prefetch: no thread: %s", strerror(failed));
    return ENG_OK;
}

EngStatus eng_prefetch_create(EngStore *const *stores, int layers,
                              const EngPrefetchOptions *options, EngPrefetcher **out, EngErr *err)
{
    EngPrefetcher *p;
    EngPrefetchOptions checked = *options;
    EngStatus status = check_options(stores, layers, &checked, err);
    *out = NULL;
    if (!status) status = eng_alloc_or((void **)&p, 1, sizeof *p, "prefetcher", err);
    if (status) return status;
    p->options = checked;
    p->layers = layers;
    for (int l = 0; l < layers; l++) {
        p->stores[l] = stores[l];
        p->layer_ids[l] = options->layer_ids ? options->layer_ids[l] : l;
    }
    p->row_bytes = eng_row_value_bytes(stores[0]->format, stores[0]->row_dims) +
                   eng_row_scale_bytes(stores[0]->format, stores[0]->row_dims);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->changed, NULL);
    status = make_buffers(p, err);
    if (!status) status = start_thread(p, err);
    if (status) {
        eng_prefetch_destroy(p);
        return status;
    }
    *out = p;
    return ENG_OK;
}

void eng_prefetch_destroy(EngPrefetcher *p)
{
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
    if (p->started) pthread_join(p->thread, NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->changed);
    for (int s = 0; p->steps && s < p->options.steps; s++) {
        eng_free(p->steps[s].rows);
        eng_free(p->steps[s].layers);
    }
    for (int b = 0; p->buffers && b < p->options.buffers; b++) {
        eng_free(p->buffers[b].values);
        eng_free(p->buffers[b].scales);
    }
    eng_free(p->steps);
    eng_free(p->buffers);
    eng_free(p->taken);
    eng_free(p);
}

/* ---- the caller's side -------------------------------------------------------------------------
 */

static Step *free_step(EngPrefetcher *p)
{
    for (int s = 0; s < p->options.steps; s++)
        if (!p->steps[s].ticket) return &p->steps[s];
    return NULL;
}

EngStatus eng_prefetch_submit(EngPrefetcher *p, const int64_t *rows, int64_t token_stride,
                              int64_t tokens, int64_t step, bool block, EngPrefetchTicket *ticket,
                              EngErr *err)
{
    size_t columns = (size_t)p->options.columns;
    *ticket = 0;
    if (tokens < 0 || tokens > p->options.max_tokens || token_stride < (int64_t)columns * p->layers)
        return ENG_FAIL(err, ENG_USAGE,
                        "prefetch: a step of %" PRId64 " tokens of %" PRId64
                        " rows; made for %" PRId64 " of %" PRId64,
                        tokens, token_stride, p->options.max_tokens, (int64_t)columns * p->layers);
    pthread_mutex_lock(&p->lock);
    Step *free;
    while (!(free = free_step(p)) && block) pthread_cond_wait(&p->changed, &p->lock);
    if (free) {
        for (int l = 0; l < p->layers; l++) {
            int64_t *to = free->rows + (size_t)l * (size_t)p->options.max_tokens * columns;
            for (int64_t t = 0; t < tokens; t++)
                memcpy(to + (size_t)t * columns, rows + t * token_stride + l * (int64_t)columns,
                       columns * sizeof *to);
            free->layers[l].state = QUEUED;
            free->layers[l].buffer = NO_BUFFER;
        }
        free->tokens = free->kept = tokens;
        free->step = step;
        free->cancelled = false;
        free->ticket = *ticket = ++p->last;
        p->stats.steps++;
        pthread_cond_signal(&p->work);
    }
    pthread_mutex_unlock(&p->lock);
    return ENG_OK;
}

static EngStatus take_layer(EngPrefetcher *p, Step *step, int l, EngPrefetchRows *out, EngErr *err)
{
    Layer *layer = &step->layers[l];
    if (layer->state == FAILED) {
        EngStatus status = layer->status;
        if (err) *err = layer->err;
        end_layer(p, step, l);
        return status;
    }
    int64_t kept = step->kept;
    layer->state = HELD;
    out->tokens = kept;
    out->table =
        eng_rows_table(p->stores[l], &p->buffers[layer->buffer], kept * p->options.columns);
    out->fetch_begin_ns = layer->begin_ns;
    out->fetch_end_ns = layer->end_ns;
    p->stats.rows_in_vain += layer->rows_read - kept * p->options.columns;
    return ENG_OK;
}

EngStatus eng_prefetch_wait(EngPrefetcher *p, EngPrefetchTicket ticket, int l, EngPrefetchRows *out,
                            EngErr *err)
{
    EngStatus status = ENG_OK;
    *out = (EngPrefetchRows){.needed_ns = eng_now_ns()};
    if (l < 0 || l >= p->layers)
        return ENG_FAIL(err, ENG_USAGE, "prefetch: layer %d of %d", l, p->layers);
    pthread_mutex_lock(&p->lock);
    Step *step = find_step(p, ticket);
    LayerState state = step ? step->layers[l].state : OVER;
    if (state == OVER || state == HELD) {
        status = ENG_FAIL(err, ENG_NOT_FOUND, "prefetch: layer %d of ticket %" PRIu64 " is %s", l,
                          ticket, state == HELD ? "held already" : "over");
        goto done;
    }
    eng_nvtx_push(ENG_RANGE_WAIT, (EngRangeInfo){.tokens = step->kept,
                                                 .layer = p->layer_ids[l],
                                                 .bytes = 0,
                                                 .step = step->step});
    while (step->layers[l].state == QUEUED || step->layers[l].state == READING) {
        if (step->layers[l].state == QUEUED && !p->reading && free_buffer(p) == NO_BUFFER) {
            status = ENG_FAIL(err, ENG_USAGE,
                              "prefetch: layer %d of ticket %" PRIu64
                              " cannot be read: all %d buffers hold rows that were not released",
                              l, ticket, p->options.buffers);
            break;
        }
        pthread_cond_wait(&p->changed, &p->lock);
    }
    eng_nvtx_pop();
    if (!status) status = take_layer(p, step, l, out, err);
    out->ready_ns = eng_now_ns();
done:
    pthread_mutex_unlock(&p->lock);
    return status;
}

EngStatus eng_prefetch_wait_all(EngPrefetcher *p, EngPrefetchTicket ticket, EngPrefetchRows *out,
                                EngErr *err)
{
    EngStatus status = ENG_OK;
    if (p->options.buffers < p->layers)
        return ENG_FAIL(err, ENG_USAGE, "prefetch: %d buffers for %d layers at once",
                        p->options.buffers, p->layers);
    for (int l = 0; l < p->layers && !status; l++)
        status = eng_prefetch_wait(p, ticket, l, &out[l], err);
    if (status) eng_prefetch_cancel(p, ticket);
    return status;
}

EngTable eng_prefetch_slice(const EngPrefetcher *p, const EngPrefetchRows *rows, int64_t first,
                            int64_t tokens)
{
    EngTable table = rows->table;
    int64_t skipped = first * p->options.columns;
    table.rows = tokens * p->options.columns;
    table.values += eng_rows_value_bytes(table.format, table.row_dims, skipped);
    if (table.scales) table.scales += eng_rows_scale_bytes(table.format, table.row_dims, skipped);
    return table;
}

void eng_prefetch_release(EngPrefetcher *p, EngPrefetchTicket ticket, int l)
{
    pthread_mutex_lock(&p->lock);
    Step *step = find_step(p, ticket);
    if (step && l >= 0 && l < p->layers && step->layers[l].state == HELD) end_layer(p, step, l);
    pthread_mutex_unlock(&p->lock);
}

void eng_prefetch_keep(EngPrefetcher *p, EngPrefetchTicket ticket, int64_t tokens)
{
    pthread_mutex_lock(&p->lock);
    Step *step = find_step(p, ticket);
    if (step && tokens >= 0 && tokens < step->kept) step->kept = tokens;
    pthread_mutex_unlock(&p->lock);
}

void eng_prefetch_cancel(EngPrefetcher *p, EngPrefetchTicket ticket)
{
    pthread_mutex_lock(&p->lock);
    Step *step = find_step(p, ticket);
    if (step) cancel_step(p, step);
    pthread_mutex_unlock(&p->lock);
}

void eng_prefetch_stats(EngPrefetcher *p, EngPrefetchStats *stats)
{
    pthread_mutex_lock(&p->lock);
    *stats = p->stats;
    pthread_mutex_unlock(&p->lock);
}
