/* SIEVE as an array with gaps; see sieve.h. */
#include "sim/cache/sieve.h"

#include <stdbool.h>

#include "base/mem.h"
#include "sim/cache/row_ids.h"

#define MOST_ROWS ((int64_t)1 << 31)

EngStatus eng_sieve_init(EngSieve *sieve, int64_t capacity, EngErr *err)
{
    *sieve = (EngSieve){.capacity = capacity, .room = 2 * (uint64_t)capacity};
    if (capacity < 1 || capacity > MOST_ROWS)
        return ENG_FAIL(err, ENG_USAGE, "cache model: a capacity of %lld rows",
                        (long long)capacity);
    return eng_alloc_or((void **)&sieve->queue, sieve->room, sizeof *sieve->queue,
                        "queue of a cache model", err);
}

void eng_sieve_fini(EngSieve *sieve)
{
    eng_free(sieve->queue);
    eng_free(sieve->place);
    *sieve = (EngSieve){0};
}

/* The array ends with the newest row: past it the hand starts over, before rows that come later. */
static void evict(EngSieve *sieve)
{
    for (;; sieve->hand++) {
        if (sieve->hand >= sieve->end) sieve->hand = 0;
        uint32_t id_1 = sieve->queue[sieve->hand];
        if (!id_1) continue;
        if (sieve->place[id_1 - 1] & 1) {
            sieve->place[id_1 - 1] &= ~(uint64_t)1;
            continue;
        }
        sieve->queue[sieve->hand++] = 0;
        sieve->place[id_1 - 1] = 0;
        sieve->held--;
        while (sieve->end && !sieve->queue[sieve->end - 1]) sieve->end--;
        if (sieve->hand >= sieve->end) sieve->hand = 0;
        return;
    }
}

static void close_gaps(EngSieve *sieve)
{
    uint64_t to = 0, hand = 0;
    bool passed = false;
    for (uint64_t from = 0; from < sieve->end; from++) {
        uint32_t id_1 = sieve->queue[from];
        if (!id_1) continue;
        if (from >= sieve->hand && !passed) {
            hand = to;
            passed = true;
        }
        sieve->queue[to] = id_1;
        sieve->place[id_1 - 1] = 2 * (to + 1) + (sieve->place[id_1 - 1] & 1);
        to++;
    }
    for (uint64_t i = to; i < sieve->end; i++) sieve->queue[i] = 0;
    sieve->end = to;
    sieve->hand = hand;
}

EngStatus eng_sieve_add(EngSieve *sieve, uint32_t id, EngErr *err)
{
    EngStatus status = eng_by_id_grow((void **)&sieve->place, &sieve->place_room, (uint64_t)id + 1,
                                      sizeof *sieve->place, err);
    if (status) return status;
    sieve->accesses++;
    if (sieve->place[id]) {
        sieve->hits++;
        sieve->place[id] |= 1;
        return ENG_OK;
    }
    if (sieve->held == sieve->capacity) evict(sieve);
    if (sieve->end == sieve->room) close_gaps(sieve);
    sieve->queue[sieve->end] = id + 1;
    sieve->place[id] = 2 * (sieve->end + 1);
    sieve->end++;
    sieve->held++;
    return ENG_OK;
}
