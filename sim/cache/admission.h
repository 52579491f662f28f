/* An LRU cache that takes a row in at its second use only. More than half of the n-grams of a text
 * are used once; kept out, they evict nothing. Which rows are in line does not depend on the
 * capacity, so one pass serves all capacities: stack distances over the uses from the second on.
 * It remembers every row seen; a filter of limited memory forgets some and takes them in later.
 */
#ifndef ENG_SIM_CACHE_ADMISSION_H
#define ENG_SIM_CACHE_ADMISSION_H

#include "sim/cache/row_ids.h"
#include "sim/cache/stack.h"

typedef struct EngAdmission {
    EngRowIds seen, admitted; /* admitted: of ids of `seen` */
    EngStack stack;
    uint64_t uses_room;
    uint8_t *used; /* [uses_room] by id: whether it was used before */
    int64_t accesses;
} EngAdmission;

EngStatus eng_admission_init(EngAdmission *admission, EngErr *err);
void eng_admission_fini(EngAdmission *admission); /* accepts zeros */
EngStatus eng_admission_add(EngAdmission *admission, int64_t row, EngErr *err);
/* hits[i]: accesses so far that a cache of capacities[i] rows, which ascend, would answer. */
void eng_admission_hits(const EngAdmission *admission, const int64_t *capacities, int n,
                        int64_t *hits);

#endif
