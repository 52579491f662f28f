/* A set of 64-bit numbers for exact counting: open addressing, cleared in constant time, so that
 * one set serves many batches. */
#ifndef ENG_EXPERIMENTS_IDSET_H
#define ENG_EXPERIMENTS_IDSET_H

#include <stdbool.h>
#include <stdint.h>
#include <engram/status.h>

typedef struct EngIdSet {
    uint64_t *keys;
    uint32_t *stamps; /* a slot is in use when its stamp is the current one */
    uint32_t stamp;
    uint64_t mask; /* slots - 1 */
    int64_t n;     /* numbers in the set */
} EngIdSet;

/* Room for `most` numbers; adding more is a broken invariant of the caller. */
EngStatus eng_idset_create(EngIdSet *set, int64_t most, EngErr *err);
void eng_idset_destroy(EngIdSet *set);
void eng_idset_clear(EngIdSet *set);
/* true when the number was not in the set before. */
bool eng_idset_add(EngIdSet *set, uint64_t number);
bool eng_idset_has(const EngIdSet *set, uint64_t number);

#endif
