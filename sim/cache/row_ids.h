/* Dense numbers of rows in order of first use, so that every model of a cache can keep what it
 * knows of a row in plain arrays. */
#ifndef ENG_SIM_CACHE_ROW_IDS_H
#define ENG_SIM_CACHE_ROW_IDS_H

#include <stddef.h>
#include <stdint.h>
#include <engram/status.h>

typedef struct EngRowIds {
    int64_t *rows; /* [mask + 1] */
    uint32_t *ids; /* [mask + 1] id + 1; 0: free */
    uint64_t mask;
    uint32_t n; /* distinct rows so far */
} EngRowIds;

EngStatus eng_row_ids_init(EngRowIds *ids, EngErr *err);
void eng_row_ids_fini(EngRowIds *ids); /* accepts zeros */

/* The row's number; a row seen for the first time gets the next one, n. */
EngStatus eng_row_ids_of(EngRowIds *ids, int64_t row, uint32_t *id, EngErr *err);

/* Grows an array kept by id (old contents stay, new entries are zero) so that it holds `need`
 * entries of `size` bytes; *have is its length. */
EngStatus eng_by_id_grow(void **array, uint64_t *have, uint64_t need, size_t size, EngErr *err);

#endif
