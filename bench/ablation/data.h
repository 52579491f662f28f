/* What models are trained on and judged by: the streams of scripts/fetch_data --training, the token
 * map of their tokenizer, and what is known of each held-out token. */
#ifndef ENG_ABLATION_DATA_H
#define ENG_ABLATION_DATA_H

#include "bench/core/stream.h"
#include "kernels/address/tokenizer_json.h"
#include "kernels/address/tokmap.h"

#define ENG_TRAIN_SOURCES 16

typedef struct EngTrainSource {
    char name[48]; /* the package it comes from */
    double bytes_per_token;
} EngTrainSource;

/* What an id is, by its bytes. */
typedef enum EngTokenClass {
    ENG_TOKEN_WORD = 0, /* begins a word: a space and letters, or a capital */
    ENG_TOKEN_PART,     /* letters that go on with one */
    ENG_TOKEN_DIGITS,
    ENG_TOKEN_SPACE, /* white space alone */
    ENG_TOKEN_SIGNS, /* punctuation */
    ENG_TOKEN_END,   /* between documents */
    ENG_TOKEN_CLASS_COUNT
} EngTokenClass;
const char *eng_token_class_name(EngTokenClass class_of);

typedef struct EngTrainText {
    EngStream stream;
    const int32_t *ids; /* those of the stream */
    int64_t n;
    uint8_t *source; /* [n] index into sources */
} EngTrainText;

typedef struct EngTrainData {
    EngTrainText train, heldout;
    EngTokmap map;
    int n_sources;
    EngTrainSource sources[ENG_TRAIN_SOURCES];
    uint8_t *classes;         /* [vocab] EngTokenClass */
    EngTokenizer names;       /* what ids decode to; n_ids 0 for generated text */
    double bytes_per_token;   /* of the held-out text */
    char digest[ENG_KEY_HEX]; /* of both streams and the map */
} EngTrainData;

/* text "training": bpeV-train and bpeV-heldout in data_dir/training, for V = vocab. ENG_NOT_FOUND
 * says which command makes them. text "synthetic": generated, with n_tokens for
 * training: pairs of ids follow each other more often than chance, so that there is something to
 * learn. */
EngStatus eng_train_data_open(const char *data_dir, const char *text, int64_t vocab,
                              int64_t n_tokens, EngTrainData *data, EngErr *err);
void eng_train_data_close(EngTrainData *data); /* accepts an empty one */

#endif
