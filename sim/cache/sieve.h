/* SIEVE of one capacity (Zhang et al., NSDI 2024). Rows never move in its queue, so the queue is an
 * array in order of arrival with gaps where rows have left, closed up when the array is full. It is
 * no stack policy: each capacity needs its own pass, which eng_curve runs side by side.
 */
#ifndef ENG_SIM_CACHE_SIEVE_H
#define ENG_SIM_CACHE_SIEVE_H

#include <stdint.h>
#include <engram/status.h>

typedef struct EngSieve {
    int64_t capacity, accesses, hits;
    uint32_t *queue; /* [room] id + 1, the oldest first; 0: a gap */
    uint64_t room, end;
    uint64_t hand;   /* place to look at next */
    int64_t held;    /* rows in the queue */
    uint64_t *place; /* [place_room] by id: 2 * (place + 1) + visited; 0: not held */
    uint64_t place_room;
} EngSieve;

/* ENG_USAGE: a capacity below 1 or beyond 2^31. */
EngStatus eng_sieve_init(EngSieve *sieve, int64_t capacity, EngErr *err);
void eng_sieve_fini(EngSieve *sieve); /* accepts zeros */
EngStatus eng_sieve_add(EngSieve *sieve, uint32_t id, EngErr *err);

#endif
