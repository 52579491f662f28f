/* Who else reads a row: how much of what training put into the rows of a held-out token came from
 * other n-grams that hash to the same place. */
#ifndef ENG_ABLATION_CROWD_H
#define ENG_ABLATION_CROWD_H

#include "bench/ablation/data.h"
#include "bench/backbone/train.h"

/* The training text is counted up to here: shares of reads change little beyond. */
#define ENG_CROWD_TOKENS (1 << 22)

/* Of the rows of each held-out position, one module. A row's reads are those of the training text;
 * they are foreign when another n-gram makes them. */
typedef struct EngCrowd {
    int64_t n;
    float *foreign;  /* [n] mean share of foreign reads, of rows that are read at all; NaN: none */
    float *collided; /* [n] share of the rows that have a foreign read */
    float *unread;   /* [n] share of the rows that training never reads */
} EngCrowd;
/* n: the first so many held-out tokens, whole sequences; n_train: tokens of training, of which
 * whole sequences from the start of the text are counted. ENG_UNSUPPORTED: rows do not depend on
 * the n-gram alone (shuffled). */
EngStatus eng_crowd_count(EngTrainer *trainer, const EngTrainData *data, int module,
                          int64_t n_train, int64_t n, EngCrowd *crowd, EngErr *err);
void eng_crowd_free(EngCrowd *crowd); /* accepts an empty one */

#endif
