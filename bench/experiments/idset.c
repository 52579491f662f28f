/* Set of 64-bit numbers; see idset.h. */
#include "bench/experiments/idset.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"

EngStatus eng_idset_create(EngIdSet *set, int64_t most, EngErr *err)
{
    memset(set, 0, sizeof *set);
    if (most < 0 || most > INT64_MAX / 4)
        return ENG_FAIL(err, ENG_USAGE, "a set of %" PRId64 " numbers is too large", most);
    uint64_t slots = 16;
    while (slots < 2 * (uint64_t)most) slots *= 2;
    EngStatus status = eng_alloc_or((void **)&set->keys, slots, sizeof *set->keys, "a set", err);
    if (!status)
        status = eng_alloc_or((void **)&set->stamps, slots, sizeof *set->stamps, "a set", err);
    if (status) {
        eng_idset_destroy(set);
        return status;
    }
    set->mask = slots - 1;
    set->stamp = 1;
    return ENG_OK;
}

void eng_idset_destroy(EngIdSet *set)
{
    eng_free(set->keys);
    eng_free(set->stamps);
    memset(set, 0, sizeof *set);
}

void eng_idset_clear(EngIdSet *set)
{
    set->n = 0;
    if (++set->stamp) return;
    memset(set->stamps, 0, (set->mask + 1) * sizeof *set->stamps); /* stamps have run out */
    set->stamp = 1;
}

/* The slot that holds the number, or the free one where it belongs. */
static uint64_t find_slot(const EngIdSet *set, uint64_t number)
{
    uint64_t h = number * 0x9e3779b97f4a7c15u;
    uint64_t slot = (h ^ (h >> 32)) & set->mask;
    while (set->stamps[slot] == set->stamp && set->keys[slot] != number)
        slot = (slot + 1) & set->mask;
    return slot;
}

bool eng_idset_add(EngIdSet *set, uint64_t number)
{
    uint64_t slot = find_slot(set, number);
    if (set->stamps[slot] == set->stamp) return false;
    set->keys[slot] = number;
    set->stamps[slot] = set->stamp;
    set->n++;
    return true;
}

bool eng_idset_has(const EngIdSet *set, uint64_t number)
{
    return set->stamps[find_slot(set, number)] == set->stamp;
}
