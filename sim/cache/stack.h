/* Exact LRU stack distances: one pass over a trace gives the hits of every capacity at once
 * (Mattson et al., "Evaluation techniques for storage hierarchies", 1970). The distance of an
 * access is the number of distinct rows asked for since the same row was, itself included; an LRU
 * cache of C rows hits exactly when it is at most C. Rows are counted with a Fenwick tree over
 * moments of last use; moments are renumbered when they run out, so that memory grows with distinct
 * rows, not with the trace.
 */
#ifndef ENG_SIM_CACHE_STACK_H
#define ENG_SIM_CACHE_STACK_H

#include <stdint.h>
#include <engram/status.h>

typedef struct EngStack {
    uint32_t *tree;  /* [size + 1] Fenwick sums over moments; 1: the last use of some row */
    uint32_t *owner; /* [size] id + 1 of the row last used then; 0: none */
    uint32_t *last;  /* [last_room] by id: moment of last use */
    uint64_t last_room;
    uint32_t size, next; /* moments there are, and the next to give out */
    uint32_t distinct;   /* rows seen: ids 0 .. distinct - 1 */
    int64_t *counts;     /* [counts_room] accesses by distance, from 1 */
    uint64_t counts_room;
    int64_t accesses;
} EngStack;

EngStatus eng_stack_init(EngStack *stack, EngErr *err);
void eng_stack_fini(EngStack *stack); /* accepts zeros */

/* One access to the row numbered `id`; ids come in order of first use (sim/cache/row_ids.h). The
 * distance goes to *distance (NULL allowed): 0 for a first use. */
EngStatus eng_stack_add(EngStack *stack, uint32_t id, uint32_t *distance, EngErr *err);

/* hits[i]: accesses so far that an LRU cache of capacities[i] rows, which ascend, would answer. */
void eng_stack_hits(const EngStack *stack, const int64_t *capacities, int n, int64_t *hits);

#endif
