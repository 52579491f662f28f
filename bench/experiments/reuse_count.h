/* Exact counts of the rows that batches of a token stream read: what the experiment reuse reports
 * and `engram audit` judges by. */
#ifndef ENG_EXPERIMENTS_REUSE_COUNT_H
#define ENG_EXPERIMENTS_REUSE_COUNT_H

#include <engram/address.h>
#include "bench/experiments/idset.h"

#define ENG_REUSE_FIRST_ORDER 2 /* of the orders counted apart */
#define ENG_REUSE_LAST_ORDER  5

/* Means over batches: shares of rows looked up that are distinct, and of a batch's distinct rows
 * that the batch before read too (NAN without one before). Orders that the address lacks are 0. */
typedef struct EngReuseCounts {
    double distinct_all, distinct[ENG_REUSE_LAST_ORDER + 1], repeat_prev;
    int64_t batches, repeats; /* repeats: batches that have one before them */
} EngReuseCounts;

typedef struct EngReuse {
    EngAddress address;    /* of one layer */
    const int32_t *stream; /* compressed ids; batch b starts at b * tokens */
    int64_t tokens;        /* of a batch */
    int64_t n_batches;     /* to count, spread evenly over the stream */
    int64_t total_batches; /* whole ones that the stream has */
    int64_t *rows;         /* [tokens, columns] of the last batch */
    EngIdSet now, before;
} EngReuse;

/* The stream must outlive it. most_tokens: of all counted batches together, but at least 4 batches
 * are counted where the stream has them. ENG_UNSUPPORTED: the stream is shorter than a batch. */
EngStatus eng_reuse_open(EngReuse *reuse, const EngAddress *address, const int32_t *stream,
                         int64_t n_tokens, int64_t tokens, int64_t most_tokens, EngErr *err);
void eng_reuse_close(EngReuse *reuse); /* accepts zeros */

/* How many batches would be counted. */
int64_t eng_reuse_batches(int64_t tokens, int64_t available, int64_t most_tokens);
/* Place in the stream of the i-th batch counted; the last is the stream's last whole one. */
int64_t eng_reuse_batch_at(const EngReuse *reuse, int64_t i);
/* Rows of batch b, with the stream's own history before it, into reuse->rows. */
void eng_reuse_rows(EngReuse *reuse, int64_t batch);
/* Adds a batch to the sums in counts; reuse->now then holds its distinct rows. */
void eng_reuse_add(EngReuse *reuse, int64_t batch, EngReuseCounts *counts);
/* All batches, as means. */
void eng_reuse_count(EngReuse *reuse, EngReuseCounts *counts);

#endif
