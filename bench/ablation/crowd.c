/* Reads of rows by n-gram; see crowd.h. */
#include "bench/ablation/crowd.h"

#include <math.h>

#include "base/mem.h"

/* Counts of the n-grams that the held-out text has: open addressing, key 0 is free. */
typedef struct Grams {
    uint64_t *keys;
    uint32_t *counts;
    size_t mask;
} Grams;

typedef struct Job {
    EngTrainer *trainer;
    const EngTrainConfig *config;
    const EngTrainData *data;
    int module, orders, columns;
    Grams grams;
    uint32_t *reads; /* [rows] by the training text */
    int64_t *rows;   /* [batch_tokens, columns] */
    int32_t *ids;    /* [batch_tokens] as they are hashed */
} Job;

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* The n-gram of `order` ids that ends at `at` of its sequence; before its start stands the pad. */
static uint64_t key_of(const Job *job, const int32_t *ids, int64_t at, int order)
{
    uint64_t key = (uint64_t)order;
    for (int64_t k = 0; k < order; k++) {
        int32_t id = at - k >= 0 ? ids[at - k] : job->config->pad;
        key = mix(key * 0x9e3779b97f4a7c15u + (uint64_t)id + 1);
    }
    return key ? key : 1;
}

static size_t slot_of(const Grams *grams, uint64_t key)
{
    size_t slot = (size_t)key & grams->mask;
    while (grams->keys[slot] && grams->keys[slot] != key) slot = (slot + 1) & grams->mask;
    return slot;
}

static EngStatus open_grams(Grams *grams, size_t most, EngErr *err)
{
    size_t size = 16;
    while (size < 2 * most) size *= 2;
    grams->mask = size - 1;
    EngStatus status =
        eng_alloc_or((void **)&grams->keys, size, sizeof *grams->keys, "n-grams", err);
    if (!status)
        status = eng_alloc_or((void **)&grams->counts, size, sizeof *grams->counts, "n-grams", err);
    return status;
}

typedef void (*PositionFn)(Job *job, const int32_t *sequence, int64_t at, const int64_t *rows,
                           int64_t position, EngCrowd *crowd);

/* Calls `fn` for the first n positions of a text, whole sequences. */
static EngStatus each_position(Job *job, const int32_t *ids, int64_t n, PositionFn fn,
                               EngCrowd *crowd, EngErr *err)
{
    const EngTrainConfig *c = job->config;
    EngStatus status = ENG_OK;
    for (int64_t from = 0; from < n && !status; from += c->batch_tokens) {
        int64_t piece = n - from < c->batch_tokens ? n - from : c->batch_tokens;
        status = eng_trainer_rows(job->trainer, job->module, ids + from, piece, job->rows, err);
        for (int64_t i = 0; i < piece && !status; i++)
            job->ids[i] = c->compress ? job->data->map.map[ids[from + i]] : ids[from + i];
        for (int64_t i = 0; i < piece && !status; i++)
            fn(job, job->ids + i / c->seq_len * c->seq_len, i % c->seq_len,
               job->rows + i * job->columns, from + i, crowd);
    }
    return status;
}

static void enter(Job *job, const int32_t *sequence, int64_t at, const int64_t *rows,
                  int64_t position, EngCrowd *crowd)
{
    (void)rows, (void)position, (void)crowd;
    for (int o = 0; o < job->orders; o++) {
        uint64_t key = key_of(job, sequence, at, job->config->min_order + o);
        job->grams.keys[slot_of(&job->grams, key)] = key;
    }
}

static void count(Job *job, const int32_t *sequence, int64_t at, const int64_t *rows,
                  int64_t position, EngCrowd *crowd)
{
    (void)position, (void)crowd;
    for (int c = 0; c < job->columns; c++) job->reads[rows[c]]++;
    for (int o = 0; o < job->orders; o++) {
        uint64_t key = key_of(job, sequence, at, job->config->min_order + o);
        size_t slot = slot_of(&job->grams, key);
        if (job->grams.keys[slot]) job->grams.counts[slot]++;
    }
}

static void judge(Job *job, const int32_t *sequence, int64_t at, const int64_t *rows,
                  int64_t position, EngCrowd *crowd)
{
    int heads = job->config->engram_heads, read = 0, collided = 0;
    double foreign = 0;
    for (int c = 0; c < job->columns; c++) {
        uint64_t key = key_of(job, sequence, at, job->config->min_order + c / heads);
        uint32_t own = job->grams.counts[slot_of(&job->grams, key)], all = job->reads[rows[c]];
        if (!all) continue;
        read++;
        collided += all > own;
        foreign += 1 - (double)own / all;
    }
    crowd->foreign[position] = read ? (float)(foreign / read) : NAN;
    crowd->collided[position] = (float)collided / (float)job->columns;
    crowd->unread[position] = (float)(job->columns - read) / (float)job->columns;
}

static EngStatus open_job(Job *job, int64_t n, EngCrowd *crowd, EngErr *err)
{
    const EngTrainConfig *c = job->config;
    EngTrainAccount account;
    size_t batch = (size_t)c->batch_tokens, columns = (size_t)job->columns;
    EngStatus status = eng_train_account(c, &account, err);
    if (!status) status = open_grams(&job->grams, (size_t)n * (size_t)job->orders, err);
    /* Rows of all modules: no fewer than those of one. */
    if (!status)
        status = eng_alloc_or((void **)&job->reads, (size_t)account.table_rows, sizeof *job->reads,
                              "reads of rows", err);
    if (!status)
        status = eng_alloc_or((void **)&job->rows, batch * columns, sizeof *job->rows, "rows", err);
    if (!status) status = eng_alloc_or((void **)&job->ids, batch, sizeof *job->ids, "ids", err);
    float **const shares[3] = {&crowd->foreign, &crowd->collided, &crowd->unread};
    for (int i = 0; i < 3 && !status; i++)
        status = eng_alloc_or((void **)shares[i], (size_t)n, sizeof **shares[i],
                              "shares of foreign reads", err);
    return status;
}

EngStatus eng_crowd_count(EngTrainer *trainer, const EngTrainData *data, int module,
                          int64_t n_train, int64_t n, EngCrowd *crowd, EngErr *err)
{
    const EngTrainConfig *c = eng_trainer_config(trainer);
    Job job = {.trainer = trainer, .config = c, .data = data, .module = module};
    job.orders = c->max_order - c->min_order + 1;
    job.columns = job.orders * c->engram_heads;
    *crowd = (EngCrowd){.n = n};
    if (c->rows == ENG_ROWS_SHUFFLED)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "shuffled rows belong to no n-gram");
    if (n_train > ENG_CROWD_TOKENS) n_train = ENG_CROWD_TOKENS;
    if (n_train > data->train.n) n_train = data->train.n;
    n_train = n_train / c->seq_len * c->seq_len;
    EngStatus status = open_job(&job, n, crowd, err);
    if (!status) status = each_position(&job, data->heldout.ids, n, enter, crowd, err);
    if (!status) status = each_position(&job, data->train.ids, n_train, count, crowd, err);
    if (!status) status = each_position(&job, data->heldout.ids, n, judge, crowd, err);
    eng_free(job.grams.keys);
    eng_free(job.grams.counts);
    eng_free(job.reads);
    eng_free(job.rows);
    eng_free(job.ids);
    if (status) eng_crowd_free(crowd);
    return status;
}

void eng_crowd_free(EngCrowd *crowd)
{
    eng_free(crowd->foreign);
    eng_free(crowd->collided);
    eng_free(crowd->unread);
    *crowd = (EngCrowd){0};
}
