/* Row stores: where the rows of a table lie, and the one call that fetches them.
 *
 * A store answers batches: row numbers in, dense rows in the table's own row format out. read()
 * blocks until every row of the batch is there; how much of it runs side by side (threads, requests
 * in flight) is an option of the store's creation. A batch either arrives whole or fails with an
 * error that names file, row and offset: rows are never stale and never left as zeros. After an
 * error the destination holds nothing of use, and the store may be asked again.
 *
 * A handle belongs to one thread at a time. Handles of one file are independent of each other.
 * What was fetched is gathered by the ordinary kernels: eng_rows_table() makes a table of the
 * destination, in which the i-th row asked for is row i.
 *
 * Stores over a table file (kernels/store/table_file.h): memory, mmap, pread, nowait, uring. Stores
 * over stores: cache, sharded, dedup; these own what they are made of.
 */
#ifndef ENGRAM_STORE_H
#define ENGRAM_STORE_H

#include <stdbool.h>
#include <engram/status.h>
#include <engram/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct EngStore EngStore;

/* Where the rows of a batch go: slot s at values + s * eng_row_stride_bytes() and, for formats with
 * scales of their own, at scales + s * eng_row_scale_bytes(). Padding between rows may be written.
 */
typedef struct EngRowsOut {
    uint8_t *values;
    uint8_t *scales; /* NULL when the format keeps none apart */
} EngRowsOut;

/* Counted since creation or eng_store_reset_stats(). A store over another one reports its own
 * requests and hits, and the bytes and system calls of what lies below it. */
typedef struct EngStoreStats {
    int64_t batches, rows; /* asked for by the caller */
    int64_t bytes_asked;   /* rows * bytes of a row, scales included */
    int64_t requests;      /* reads given to the operating system; mmap and memory: 0 */
    int64_t bytes_read;    /* by them: more than asked where reads are whole blocks */
    int64_t ready;         /* nowait: requests that the page cache answered at once */
    int64_t hits, misses;  /* cache: rows found in it, rows fetched from below */
    int64_t evictions;     /* cache: rows given up for others */
    int64_t duplicates;    /* dedup: rows copied instead of fetched */
    int64_t memory_bytes;  /* held now by the store: table, cache, buffers */
} EngStoreStats;

typedef struct EngStoreOps {
    const char *name; /* "uring": what an axis calls it */
    /* Row rows[i] into slot slots[i], or slot i where slots is NULL. Row numbers lie in the table:
     * eng_store_read() has checked them. */
    EngStatus (*read)(EngStore *store, const int64_t *rows, const int64_t *slots, int64_t n,
                      const EngRowsOut *out, EngErr *err);
    void (*stats)(const EngStore *store, EngStoreStats *stats);
    void (*reset_stats)(EngStore *store);
    /* The whole table where it can be read in place, else NULL (also as the function). */
    const EngTable *(*table)(const EngStore *store);
    /* Gives up pages of the file that the process has mapped; may be NULL. */
    void (*release)(EngStore *store);
    void (*destroy)(EngStore *store);
} EngStoreOps;

/* What every store begins with. */
struct EngStore {
    const EngStoreOps *ops;
    EngRowFormat format;
    int row_dims;
    int64_t rows;
    char note[256]; /* what the store does otherwise than asked, with the reason; "" when nothing */
};

/* Fetches rows[0..n), any order, repeats allowed, into slots 0..n-1. ENG_USAGE: a row that the
 * table lacks; ENG_BAD_DATA: the file ends before a row; ENG_IO: a read failed. */
EngStatus eng_store_read(EngStore *store, const int64_t *rows, int64_t n, const EngRowsOut *out,
                         EngErr *err);
/* The same into chosen slots. */
EngStatus eng_store_read_slots(EngStore *store, const int64_t *rows, const int64_t *slots,
                               int64_t n, const EngRowsOut *out, EngErr *err);
void eng_store_stats(const EngStore *store, EngStoreStats *stats);
void eng_store_reset_stats(EngStore *store);
/* Kernels may gather from it without a fetch; NULL when rows must be read first. */
const EngTable *eng_store_table(const EngStore *store);
/* Gives up pages of the file that this handle keeps mapped, so that the file can leave the page
 * cache; rows held in memory of our own stay. */
void eng_store_release(EngStore *store);
void eng_store_destroy(EngStore *store); /* accepts NULL */

/* Bytes that n slots take in a destination. */
size_t eng_rows_value_bytes(EngRowFormat format, int row_dims, int64_t n);
size_t eng_rows_scale_bytes(EngRowFormat format, int row_dims, int64_t n);
/* A destination of n slots as a table of n rows. */
EngTable eng_rows_table(const EngStore *store, const EngRowsOut *out, int64_t n);

/* ---- creation ------------------------------------------------------------------------------- */

typedef enum EngStoreKind {
    ENG_STORE_MEMORY = 0, /* the file's rows, loaded once */
    ENG_STORE_MMAP,       /* page faults of the reader */
    ENG_STORE_PREAD,      /* a pool of threads, one pread a row */
    ENG_STORE_NOWAIT,     /* page-cache hits inline, the pool for the rest */
    ENG_STORE_URING,      /* io_uring, `depth` requests in flight */
    ENG_STORE_KIND_COUNT
} EngStoreKind;

/* Advice for the mapping of mmap. */
typedef enum EngMapAdvice {
    ENG_ADVICE_NORMAL = 0,
    ENG_ADVICE_RANDOM,   /* no read-ahead */
    ENG_ADVICE_WILLNEED, /* the same, and a batch's pages are asked for before the first is read */
    ENG_MAP_ADVICE_COUNT
} EngMapAdvice;

typedef enum EngNumaPolicy {
    ENG_NUMA_DEFAULT = 0, /* where the loading threads run */
    ENG_NUMA_BIND,        /* the node of the creating thread */
    ENG_NUMA_INTERLEAVE,  /* pages in turn over all nodes */
    ENG_NUMA_POLICY_COUNT
} EngNumaPolicy;

/* Zeros are good defaults. */
typedef struct EngStoreOptions {
    int threads;           /* readers, the caller's thread included; 0: 8 for pread and nowait, 1
                              for mmap */
    int depth;             /* uring: requests in flight; 0: 64 */
    bool direct;           /* pread, uring: past the page cache, in whole blocks */
    size_t block_bytes;    /* of direct reads, a power of two from 512; 0: 4096 */
    bool scales_in_memory; /* formats with scales of their own: load those at creation */
    bool verify;         /* compare the whole file with its checksums first (memory always does) */
    EngMapAdvice advice; /* mmap */
    int page_kind;       /* memory: EngPageKind of kernels/store/pages.h */
    EngNumaPolicy numa;  /* memory; on a machine of one node there is no choice: `note` */
} EngStoreOptions;

/* Opens the table file at `path`. Where io_uring is forbidden or absent, uring opens pread with as
 * many threads as its depth, 32 at most, and `note` says so. ENG_BAD_DATA: no such file, no table
 * file, or a damaged one; ENG_IO: too few descriptors, among others; ENG_UNSUPPORTED: no 1 GiB
 * pages, direct reads that the file system refuses; ENG_NO_MEMORY: naming bytes needed and there;
 * ENG_USAGE: an option out of range. */
EngStatus eng_store_open(const char *path, EngStoreKind kind, const EngStoreOptions *options,
                         EngStore **store, EngErr *err);
/* A store over a table that is in memory already and outlives it. */
EngStatus eng_store_of_table(const EngTable *table, EngStore **store, EngErr *err);

/* What follows is made of other stores and owns them; where making it fails they stay the caller's.
 */

/* Within a batch, each row is fetched once and copied to its other places. */
EngStatus eng_store_dedup(EngStore *inner, EngStore **store, EngErr *err);

typedef enum EngCachePolicy {
    ENG_CACHE_LRU = 0, /* the row not asked for longest goes */
    ENG_CACHE_SIEVE,   /* in order of arrival, rows asked for again are spared once */
    ENG_CACHE_DIRECT,  /* one place per row */
    ENG_CACHE_WAYS,    /* `ways` places per row, the least recent goes */
    ENG_CACHE_POLICY_COUNT
} EngCachePolicy;

typedef struct EngCacheOptions {
    EngCachePolicy policy;
    int64_t rows; /* capacity; WAYS: rounded up to whole sets */
    int ways;     /* WAYS only: 2, 4, 8 or 16; 0: 8 */
} EngCacheOptions;

/* A bounded cache of rows in front of `inner`. A failed read empties it. */
EngStatus eng_store_cache(EngStore *inner, const EngCacheOptions *options, EngStore **store,
                          EngErr *err);

/* n shards, shard s owning rows [starts[s], starts[s + 1]); starts[0] = 0, starts[n] = rows. All
 * take the table's row numbers. Each shard answers the whole batch, zeros for rows of others, and
 * the answers are summed, as the reference engine does (facts section 5), but as integers: adding
 * +0 to -0 as floating point numbers would lose the sign, and NaN payloads with it. ENG_USAGE:
 * ranges that do not tile the table, shards of different shapes. */
EngStatus eng_store_sharded(EngStore *const *shards, const int64_t *starts, int n, EngStore **store,
                            EngErr *err);

/* Names on the command line; NULL and -1 when unknown. "random", "bind", "sieve", ... */
const char *eng_store_kind_name(EngStoreKind kind);
int eng_store_kind_parse(const char *name);
const char *eng_map_advice_name(EngMapAdvice advice);
int eng_map_advice_parse(const char *name);
const char *eng_numa_policy_name(EngNumaPolicy policy);
int eng_numa_policy_parse(const char *name);
const char *eng_cache_policy_name(EngCachePolicy policy);
int eng_cache_policy_parse(const char *name);

#ifdef __cplusplus
}
#endif
#endif
