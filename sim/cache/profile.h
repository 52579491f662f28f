/* What a text does to row caches and batches: one pass over its token stream, kept as a small file
 * and asked as often as plans need it.
 *
 * All heads and layers look up rows by the same n-grams, so n-grams are counted: one key per order
 * and token instead of a row per order, head and layer. What differs between keys and rows is that
 * keys may share a row: U keys touch M (1 - exp(-U / M)) rows of a head of M, as balls thrown into
 * bins (eng_rows_touched of sim/planner; eng_profile_keys has the inverse).
 *
 * Hit rates are those of an LRU cache that starts empty: first uses miss. Beyond what the stream
 * was long enough to tell, functions say so instead of guessing.
 */
#ifndef ENG_SIM_CACHE_PROFILE_H
#define ENG_SIM_CACHE_PROFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <engram/types.h>

#include "base/digest.h"
#include "base/str.h"

#define ENG_PROFILE_SIZES   40
#define ENG_PROFILE_BATCHES 16
#define ENG_PROFILE_ORDERS  8

typedef struct EngProfile {
    char corpus[48], digest[ENG_DIGEST_HEX]; /* of the stream */
    int min_order, max_order;
    int64_t tokens, accesses;             /* accesses: tokens x orders */
    int64_t distinct[ENG_PROFILE_ORDERS]; /* keys of the whole stream, by order - min_order */
    int n_sizes;
    int64_t sizes[ENG_PROFILE_SIZES];   /* keys that a cache holds, ascending */
    double hits[ENG_PROFILE_SIZES];     /* exact (Mattson) */
    double sampled[ENG_PROFILE_SIZES];  /* by SHARDS, of a hundredth of the keys; NAN: none */
    double modelled[ENG_PROFILE_SIZES]; /* by AET */
    int n_batches;
    int64_t batches[ENG_PROFILE_BATCHES]; /* tokens, ascending */
    /* Distinct keys over look-ups: of consecutive tokens, and of single tokens drawn all over the
     * stream (a decode step of so many sequences), means over batches. */
    double prefill[ENG_PROFILE_BATCHES], decode[ENG_PROFILE_BATCHES];
} EngProfile;

/* ids: [n] compressed ids of the stream, from its start. ENG_USAGE: orders outside 1 ..
 * ENG_PROFILE_ORDERS, no tokens. Takes about a second per million tokens. */
EngStatus eng_profile_build(const char *corpus, const char *digest, const int32_t *ids, int64_t n,
                            int min_order, int max_order, EngProfile *profile, EngErr *err);

/* JSON, and back. ENG_BAD_DATA names the file and what is wrong. */
EngStatus eng_profile_print(const EngProfile *profile, EngStr *out, EngErr *err);
EngStatus eng_profile_parse(const char *name, const char *text, EngProfile *profile, EngErr *err);

/* Share of look-ups that an LRU cache of so many keys answers. *known false: the cache holds every
 * key of the stream and the rate is 1 minus first uses, which only a longer text can tell. */
EngStatus eng_profile_hits(const EngProfile *profile, double keys, double *rate, bool *known,
                           EngErr *err);
/* Distinct keys over look-ups of a batch. ENG_UNSUPPORTED: longer than what was counted. */
EngStatus eng_profile_unique(const EngProfile *profile, bool decode, double tokens, double *share,
                             EngErr *err);

/* How many keys the rows of a cache stand for: `cached` rows of a layer's table with `heads` heads
 * per order of `rows` rows each. INFINITY: it holds the whole table. */
double eng_profile_keys(const EngProfile *profile, double cached, double rows, int heads);

#endif
