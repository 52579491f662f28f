/* The axes that say how a row store is made, and making it. Options that a store does not have are
 * refused with a reason when they are set, so that a sweep may cross all of them and each store is
 * measured once per setting that it knows.
 */
#ifndef ENG_EXPERIMENTS_STORE_AXES_H
#define ENG_EXPERIMENTS_STORE_AXES_H

#include <engram/store.h>
#include "bench/core/experiment.h"

extern const char *const eng_words_store[];  /* memory mmap pread nowait uring */
extern const char *const eng_words_io[];     /* buffered direct */
extern const char *const eng_words_scales[]; /* disk memory */
extern const char *const eng_words_advice[]; /* normal random willneed */
extern const char *const eng_words_pages[];  /* 4k 2m 1g */
extern const char *const eng_words_numa[];   /* default bind interleave */
extern const char *const eng_words_on_off[];
extern const char *const eng_words_policy[]; /* none lru sieve direct ways */

#define ENG_AXES_STORE                                                                             \
    {"store",                                                                                      \
     ENG_AXIS_WORD,                                                                                \
     "uring",                                                                                      \
     "",                                                                                           \
     0,                                                                                            \
     0,                                                                                            \
     eng_words_store,                                                                              \
     "where rows lie and how they are read"},                                                      \
        {"readers", ENG_AXIS_INT,                                                                  \
         "8",       "threads",                                                                     \
         1,         256,                                                                           \
         NULL,      "pread, nowait, mmap: threads that read, the caller's included"},              \
        {"depth", ENG_AXIS_INT, "64", "requests", 1, 4096, NULL, "uring: requests in flight"},     \
        {"io",                                                                                     \
         ENG_AXIS_WORD,                                                                            \
         "buffered",                                                                               \
         "",                                                                                       \
         0,                                                                                        \
         0,                                                                                        \
         eng_words_io,                                                                             \
         "pread, uring: through the page cache or past it"},                                       \
        {"block", ENG_AXIS_INT, "4096", "bytes",                                                   \
         512,     65536,        NULL,   "direct reads: what a request is a multiple of"},          \
        {"scales",                                                                                 \
         ENG_AXIS_WORD,                                                                            \
         "disk",                                                                                   \
         "",                                                                                       \
         0,                                                                                        \
         0,                                                                                        \
         eng_words_scales,                                                                         \
         "fp8: where the scales lie that are kept apart"},                                         \
        {"advice",                                                                                 \
         ENG_AXIS_WORD,                                                                            \
         "random",                                                                                 \
         "",                                                                                       \
         0,                                                                                        \
         0,                                                                                        \
         eng_words_advice,                                                                         \
         "mmap: willneed asks for all pages of a batch before the first is read"},                 \
        {"pages", ENG_AXIS_WORD, "2m", "", 0, 0, eng_words_pages, "memory: page size"},            \
        {"numa", ENG_AXIS_WORD, "default", "", 0, 0, eng_words_numa, "memory: where pages lie"},   \
        {"shards", ENG_AXIS_INT,                                                                   \
         "1",      "",                                                                             \
         1,        256,                                                                            \
         NULL,     "row ranges, each read through a handle of its own; answers are summed"},       \
        {"policy", ENG_AXIS_WORD, "none", "", 0, 0, eng_words_policy, "row cache in front"},       \
        {"cache_rows", ENG_AXIS_INT, "16384", "rows", 1, 0x1p31, NULL, "row cache: capacity"},     \
        {"ways", ENG_AXIS_INT, "8", "", 2, 16, NULL, "row cache, policy ways: places per row"},    \
    {                                                                                              \
        "dedup", ENG_AXIS_WORD, "off", "", 0, 0, eng_words_on_off,                                 \
            "on: rows that a batch names twice are fetched once"                                   \
    }

typedef struct EngStoreSpec {
    EngStoreKind kind;
    EngStoreOptions options;
    int shards;
    bool cached, dedup;
    EngCacheOptions cache;
} EngStoreSpec;

/* ENG_UNSUPPORTED: a setting that this store ignores, or that this row format does. */
EngStatus eng_store_spec_read(const EngPoint *point, EngRowFormat format, EngStoreSpec *spec,
                              EngErr *why);
/* ENG_UNSUPPORTED with the store's note where it had to become another one. */
EngStatus eng_store_spec_open(const EngStoreSpec *spec, const char *path, EngStore **store,
                              EngErr *err);
/* About what it takes of memory, for a table of so many rows of these bytes. */
size_t eng_store_spec_bytes(const EngStoreSpec *spec, int64_t rows, size_t row_bytes,
                            size_t scale_bytes);

#endif
