/* Reuse in a token stream: distinct keys of a step, hits of caches; and counts that are kept beside
 * the stream, so that each is made once. */
#ifndef ENG_BENCH_CLI_SIZE_REUSE_H
#define ENG_BENCH_CLI_SIZE_REUSE_H

#include <stdbool.h>

#include "base/digest.h"
#include "kernels/address/preset.h"

#define ENG_SIZE_MAX_DRAFTED 256
#define ENG_SIZE_MAX_CACHES  16

typedef struct EngSizeKeys EngSizeKeys;     /* of a stream's n-grams */
typedef struct EngSizeCounts EngSizeCounts; /* that were made before, or now */

/* A token stream as keys: of each token and order one, whose rows in all heads and layers are read
 * together. */
typedef struct EngSizeCorpus {
    char name[64], kind[16], digest[ENG_DIGEST_HEX];
    int64_t n_tokens;
    int orders;
    double key_bytes;
    const EngPreset *preset; /* of the plan */
    const char *data;        /* folder */
    EngSizeKeys *hashed;     /* empty until something is counted */
    EngSizeCounts *counts;
} EngSizeCorpus;

/* What a step looks up: of each of `streams` texts `each` tokens in a row, of which all but the
 * first are drafts where acceptance < 1: each is accepted with that probability if all before it
 * were; those behind it are other tokens of the text. */
typedef struct EngSizeStep {
    int64_t streams, each;
    double acceptance; /* 1: all are the text's own */
} EngSizeStep;

/* The stream NAME of the data folder. preset and data must stay. ENG_BAD_DATA, ENG_NO_MEMORY. */
EngStatus eng_size_corpus_open(const char *data, const char *name, const EngPreset *preset,
                               EngSizeCorpus *corpus, EngErr *err);
void eng_size_corpus_close(EngSizeCorpus *corpus); /* accepts zeros */

/* The acceptance with which `drafted` tokens yield `accepted` of them and one more on the mean,
 * 1 <= accepted <= drafted + 1: 1 + a + ... + a^drafted = accepted. */
double eng_size_acceptance(double drafted, double accepted);

/* Share of keys that are distinct in a step whose texts begin at random places of the stream; a
 * mean over many such steps. ENG_UNSUPPORTED: the stream is shorter than a step's text. */
EngStatus eng_size_unique(const EngSizeCorpus *corpus, const EngSizeStep *step, double *share,
                          EngErr *err);

typedef struct EngSizeCaches {
    int n;
    int64_t capacities[ENG_SIZE_MAX_CACHES]; /* keys, ascending */
    double rates[ENG_SIZE_MAX_CACHES];       /* hits over all look-ups, first uses included */
    double bands[ENG_SIZE_MAX_CACHES];       /* half of the 95 % interval between eighths */
    double cold;                             /* share of first uses; NAN: not counted (ways) */
} EngSizeCaches;
/* Hits when step.streams parts of the first n_tokens are read side by side, step by step. policy:
 * "lru", "ways" (16 of them), "admission". ENG_UNSUPPORTED: too few tokens. */
EngStatus eng_size_hits(const EngSizeCorpus *corpus, const char *policy, const EngSizeStep *step,
                        int64_t n_tokens, EngSizeCaches *caches, EngErr *err);

/* ---- keys, for counting ---- */

/* Hashes the stream unless that was done. */
EngStatus eng_size_keys(const EngSizeCorpus *corpus, EngErr *err);
const int64_t *eng_size_keys_at(const EngSizeCorpus *corpus, int64_t token); /* [.., orders] */
/* Keys [each, orders] of a window of drafts at `at` that gains `gained` >= 1 tokens; the others are
 * rejected drafts (bench/experiments/drafts.h). each <= ENG_SIZE_MAX_DRAFTED + 1. */
void eng_size_window_keys(const EngSizeCorpus *corpus, int64_t at, int64_t each, int64_t gained,
                          int64_t *keys);

/* ---- counts ---- */

#define ENG_SIZE_COUNTS_KEYS "keys" /* the time of hashing */

/* DATA/counts/CORPUS-PRESET.json, or none where that is absent, damaged or of another stream or
 * preset; the latter two are said. ENG_NO_MEMORY. */
EngStatus eng_size_counts_open(const EngSizeCorpus *corpus, EngSizeCounts **counts, EngErr *err);
/* Values of a count as it was added; NAN where it was. */
bool eng_size_counts_find(EngSizeCounts *counts, const char *what, double *values, int n);
EngStatus eng_size_counts_add(EngSizeCounts *counts, const char *what, const double *values, int n,
                              double seconds, EngErr *err);
/* Writes what was added and says what was spared. A folder that cannot be written is said, too, and
 * is no error. */
EngStatus eng_size_counts_keep(EngSizeCounts *counts, EngErr *err);
void eng_size_counts_close(EngSizeCounts *counts);

#endif
