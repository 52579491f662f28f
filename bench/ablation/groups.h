/* Held-out loss by what a token is: the text it comes from, its class, whether its context copies
 * it, how often its context's n-gram stands in the training text. */
#ifndef ENG_ABLATION_GROUPS_H
#define ENG_ABLATION_GROUPS_H

#include "bench/ablation/data.h"

#define ENG_TRAIN_DECILES     10
#define ENG_TRAIN_COPY_TOKENS 256 /* how far back a copy is looked for */

/* A partition of held-out tokens: group[i] of predicting ids[i], 255: in none. */
typedef struct EngTrainGrouping {
    uint8_t *group; /* [n] owned */
    int n_groups;
} EngTrainGrouping;
void eng_train_grouping_free(EngTrainGrouping *grouping);

/* Sources as in data; classes of the token predicted. n: the first so many held-out tokens. */
EngStatus eng_train_by_source(const EngTrainData *data, int64_t n, EngTrainGrouping *out,
                              EngErr *err);
EngStatus eng_train_by_class(const EngTrainData *data, int64_t n, EngTrainGrouping *out,
                             EngErr *err);
/* 1: the same pair of tokens (the one before and this) stands within ENG_TRAIN_COPY_TOKENS before
 * it in the document; 0: not. */
EngStatus eng_train_by_copy(const EngTrainData *data, int64_t n, EngTrainGrouping *out,
                            EngErr *err);
/* Tenths of the held-out tokens by how often the two compressed ids before them follow each other
 * in the training text, rarest first; counts[d]: the mean number in a tenth. Equal counts may fall
 * into neighbouring tenths, in the order of the text. */
EngStatus eng_train_by_frequency(const EngTrainData *data, int64_t n, EngTrainGrouping *out,
                                 double counts[ENG_TRAIN_DECILES], EngErr *err);

/* Mean loss per group over tokens whose loss is not NaN; sizes[g] how many. Groups without any get
 * NaN. */
void eng_train_group_means(const EngTrainGrouping *grouping, const float *losses, int64_t n,
                           double *means, int64_t *sizes);

#endif
