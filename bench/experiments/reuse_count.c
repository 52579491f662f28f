/* Counting the rows of batches; see reuse_count.h. */
#include "bench/experiments/reuse_count.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/ref/hash.h"

#define MAX_BATCHES 64
#define MIN_BATCHES 4

int64_t eng_reuse_batches(int64_t tokens, int64_t available, int64_t most_tokens)
{
    int64_t n = most_tokens / tokens;
    if (n > MAX_BATCHES) n = MAX_BATCHES;
    if (n < MIN_BATCHES) n = MIN_BATCHES;
    return n < available ? n : available;
}

void eng_reuse_close(EngReuse *reuse)
{
    eng_idset_destroy(&reuse->now);
    eng_idset_destroy(&reuse->before);
    eng_free(reuse->rows);
    memset(reuse, 0, sizeof *reuse);
}

EngStatus eng_reuse_open(EngReuse *reuse, const EngAddress *address, const int32_t *stream,
                         int64_t n_tokens, int64_t tokens, int64_t most_tokens, EngErr *err)
{
    int64_t per_batch = tokens * address->n_columns;
    memset(reuse, 0, sizeof *reuse);
    if (n_tokens < tokens)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "has %" PRId64 " tokens, a batch takes %" PRId64,
                        n_tokens, tokens);
    reuse->address = *address;
    reuse->stream = stream;
    reuse->tokens = tokens;
    reuse->total_batches = n_tokens / tokens;
    reuse->n_batches = eng_reuse_batches(tokens, reuse->total_batches, most_tokens);
    EngStatus status = eng_alloc_or((void **)&reuse->rows, (size_t)per_batch, sizeof *reuse->rows,
                                    "rows of a batch", err);
    if (!status) status = eng_idset_create(&reuse->now, per_batch, err);
    if (!status) status = eng_idset_create(&reuse->before, per_batch, err);
    if (status) eng_reuse_close(reuse);
    return status;
}

/* Rows of batch b with the stream's own history before it. */
void eng_reuse_rows(EngReuse *reuse, int64_t batch)
{
    int reach = reuse->address.max_order - 1;
    int64_t at = batch * reuse->tokens;
    EngHashArgs args = {.tokens = reuse->stream + at,
                        .n_tokens = reuse->tokens,
                        .n_live = reuse->tokens,
                        .n_seqs = 1,
                        .rows = reuse->rows};
    int32_t start[ENG_MAX_ORDER];
    for (int i = 0; i < reach; i++) {
        int64_t from = at - reach + i;
        start[i] = from < 0 ? ENG_TOKEN_DEAD : reuse->stream[from];
    }
    args.history = start;
    eng_ref_hash(&reuse->address, &args);
}

/* Adds one order's columns of the batch to the set and returns how many rows were new. Columns own
 * disjoint rows, so orders can share one set. */
static int64_t add_order(const EngReuse *reuse, int order, EngIdSet *set)
{
    int64_t before = set->n;
    int first = (order - reuse->address.min_order) * reuse->address.heads;
    for (int64_t t = 0; t < reuse->tokens; t++)
        for (int c = first; c < first + reuse->address.heads; c++)
            eng_idset_add(set, (uint64_t)reuse->rows[t * reuse->address.n_columns + c]);
    return set->n - before;
}

static void fill_set(EngReuse *reuse, int64_t batch, EngIdSet *set)
{
    eng_reuse_rows(reuse, batch);
    eng_idset_clear(set);
    for (int order = reuse->address.min_order; order <= reuse->address.max_order; order++)
        add_order(reuse, order, set);
}

static int64_t count_common(const EngReuse *reuse)
{
    int64_t common = 0;
    const EngIdSet *now = &reuse->now;
    for (uint64_t slot = 0; slot <= now->mask; slot++)
        if (now->stamps[slot] == now->stamp)
            common += eng_idset_has(&reuse->before, now->keys[slot]);
    return common;
}

/* Batch i of n, spread evenly; the last is the stream's last whole one. */
int64_t eng_reuse_batch_at(const EngReuse *reuse, int64_t i)
{
    if (reuse->n_batches == reuse->total_batches) return i;
    return (i + 1) * (reuse->total_batches - 1) / reuse->n_batches;
}

void eng_reuse_add(EngReuse *reuse, int64_t batch, EngReuseCounts *counts)
{
    double per_order = (double)(reuse->tokens * reuse->address.heads);
    if (batch) fill_set(reuse, batch - 1, &reuse->before);
    eng_reuse_rows(reuse, batch);
    eng_idset_clear(&reuse->now);
    for (int order = reuse->address.min_order; order <= reuse->address.max_order; order++) {
        int64_t distinct = add_order(reuse, order, &reuse->now);
        if (order <= ENG_REUSE_LAST_ORDER) counts->distinct[order] += (double)distinct / per_order;
    }
    counts->distinct_all +=
        (double)reuse->now.n / (double)(reuse->tokens * reuse->address.n_columns);
    counts->batches++;
    if (!batch) return;
    counts->repeat_prev += (double)count_common(reuse) / (double)reuse->now.n;
    counts->repeats++;
}

void eng_reuse_count(EngReuse *reuse, EngReuseCounts *counts)
{
    EngReuseCounts sum = {0};
    for (int64_t i = 0; i < reuse->n_batches; i++)
        eng_reuse_add(reuse, eng_reuse_batch_at(reuse, i), &sum);
    double n = (double)sum.batches;
    sum.distinct_all /= n;
    for (int order = 0; order <= ENG_REUSE_LAST_ORDER; order++) sum.distinct[order] /= n;
    sum.repeat_prev = sum.repeats ? sum.repeat_prev / (double)sum.repeats : NAN;
    *counts = sum;
}
