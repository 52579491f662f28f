/* Gates along phrases (paper 6.5, Fig. 7): short runs of tokens that are frequent in the training
 * text beyond what their parts explain, at a place of the held-out text with what stands around
 * them. Which phrases is a matter of the text alone, so that all arms show the same. */
#ifndef ENG_ABLATION_PHRASES_H
#define ENG_ABLATION_PHRASES_H

#include "bench/ablation/data.h"
#include "bench/ablation/result.h"
#include "bench/backbone/train.h"

#define ENG_PHRASES       6
#define ENG_PHRASE_TOKENS 3
#define ENG_PHRASE_BEFORE 5
#define ENG_PHRASE_WINDOW 12
/* Trigrams are counted in so much of the training text, and must be found so often. */
#define ENG_PHRASE_TEXT  (1 << 22)
#define ENG_PHRASE_LEAST 4

typedef struct EngPhrase {
    int64_t at;    /* held-out position of its first token; its window begins BEFORE tokens ahead */
    int64_t count; /* in the training text */
    double pmi;    /* log2 of its count over that of independent tokens */
    EngReal gates[ENG_MAX_LAYERS][ENG_BACKBONE_MAX_STREAMS][ENG_PHRASE_WINDOW];
} EngPhrase;

typedef struct EngPhrases {
    const EngTrainConfig *config;
    int n, streams;
    EngPhrase list[ENG_PHRASES];
} EngPhrases;

/* Words and parts of words alone, begun by a word; by count * PMI, best first, each from another
 * source of text as long as there are some; no two share a token. n: the first so many
 * held-out tokens. May find fewer, or none. */
EngStatus eng_phrases_choose(const EngTrainData *data, const EngTrainConfig *config, int64_t n,
                             EngPhrases *phrases, EngErr *err);
/* As eng_gate_view_take. */
void eng_phrases_take(EngPhrases *phrases, int layer, EngTrainValue what, int64_t first,
                      const EngReal *data, int64_t tokens, int64_t columns);
/* Series, step: place in the window, from 0.
 *   phrase:K:token:TEXT (value 1 within the phrase, else 0), phrase:K:gate:LAYER:STREAM
 *   phrase:K:count and phrase:K:pmi (step 0) */
EngStatus eng_phrases_put(const EngPhrases *phrases, const EngTrainData *data,
                          EngTrainResultText *out, EngErr *err);

#endif
