/* What the stores over a table file share: the open file, where a row's bytes lie in it, requests
 * of whole blocks for direct reads, scales kept in memory, counts, and the text of errors.
 *
 * A row is one request, or two where its scales lie apart and on disk ("parts"). A direct request
 * covers the blocks that hold the part; what was asked for is copied out of a bounce buffer.
 */
#ifndef ENG_KERNELS_STORE_FILE_STORE_H
#define ENG_KERNELS_STORE_FILE_STORE_H

#include <engram/store.h>
#include "kernels/store/pages.h"
#include "kernels/store/table_file.h"

typedef struct EngFileStore {
    EngStore base;
    EngTableFile file;
    int fd;            /* rows are read from it: the file's own, or one past the page cache */
    size_t block;      /* requests are multiples of it; 1: buffered */
    size_t span_bytes; /* the most bytes of a request */
    int parts;         /* requests of a row: 1, or 2 with scales on disk */
    uint8_t *scales;   /* [rows] in memory, owned; NULL: none, or on disk */
    EngStoreStats stats;
} EngFileStore;

/* One request: `span` bytes from `from`, of which `bytes` from `skip` on go to `to`. */
typedef struct EngRowPart {
    int64_t row;
    uint64_t from;
    size_t span, skip, bytes;
    uint8_t *to;
} EngRowPart;

/* Opens, verifies, loads scales as the options say. On failure everything is closed again; the
 * store itself is the caller's. */
EngStatus eng_file_store_open(EngFileStore *store, const EngStoreOps *ops, const char *path,
                              const EngStoreOptions *options, EngErr *err);
void eng_file_store_close(EngFileStore *store);

/* Part 0 or 1 of a row that goes to a slot. */
EngRowPart eng_file_store_part(const EngFileStore *store, int part, int64_t row, int64_t slot,
                               const EngRowsOut *out);
/* Reads one part with pread; direct ones through `bounce` (span_bytes, aligned to the block). */
EngStatus eng_file_store_fetch(const EngFileStore *store, const EngRowPart *part, uint8_t *bounce,
                               EngErr *err);
/* What a request returned (bytes, or a negative errno): ENG_OK when it holds the part, then copied
 * out of `bounce` (NULL: it was read in place); else an error that names file, row and offset. */
EngStatus eng_file_store_take(const EngFileStore *store, const EngRowPart *part, int64_t got,
                              const uint8_t *bounce, EngErr *err);

/* After a batch: copies scales that are in memory, and counts. */
void eng_file_store_finish(EngFileStore *store, const int64_t *rows, const int64_t *slots,
                           int64_t n, const EngRowsOut *out);

/* stats and reset_stats of EngStoreOps. */
void eng_file_store_stats(const EngStore *store, EngStoreStats *stats);
void eng_file_store_reset_stats(EngStore *store);

/* n bounce buffers of span_bytes each, one after the other; none where requests are buffered. */
EngStatus eng_file_store_bounce(const EngFileStore *store, int n, EngPages *buffers, EngErr *err);

#endif
