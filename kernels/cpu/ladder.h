/* Random loads over a working set: the latency ladder, and the limit of random-row gathers.
 *
 * The set is cut into slots (one 64-byte line, or a table row with all its lines). The first word
 * of a slot points to the next one along a single pseudo-random cycle through all slots, so that
 * the hardware can neither guess nor skip a load. One chain gives the latency; independent chains,
 * started evenly spaced on the cycle, give the rate that the core's outstanding misses allow.
 *
 * The cycle is arithmetic: slot_at(t) is a bijection of [0, slots) that is not stored, so that a
 * set is filled in the order of its addresses, and what a walk must have seen can be computed
 * without walking. Other loads of a row (lines 1..) depend on the pointer of its slot only.
 */
#ifndef ENG_KERNELS_CPU_LADDER_H
#define ENG_KERNELS_CPU_LADDER_H

#include <stddef.h>
#include <stdint.h>
#include <engram/status.h>

#define ENG_LADDER_MAX_CHAINS 64

typedef enum EngLadderLine {
    ENG_LADDER_LINE64 = 0, /* 64-byte slots, one line each */
    ENG_LADDER_SPLIT,      /* fp8 rows of 256 bytes, and 8 bytes of scales elsewhere: 5 lines */
    ENG_LADDER_PACKED,     /* fp8 rows of 264 bytes: 5 lines */
    ENG_LADDER_LINE_COUNT
} EngLadderLine;

/* Plain data: may be copied. Memory belongs to the caller. */
typedef struct EngLadder {
    EngLadderLine line;
    int64_t slots;
    size_t stride, side_stride; /* bytes of a slot in values and in side */
    uint8_t *values;            /* [slots * stride], at a multiple of 64 */
    uint8_t *side;              /* [slots * side_stride], NULL when that is 0 */
    uint64_t key[3], inverse[3], mask;
    int shift;
} EngLadder;

/* Names as they appear in axes: "64", "256+8", "264"; NULL, -1 when unknown. */
const char *eng_ladder_line_name(EngLadderLine line);
int eng_ladder_line_parse(const char *name);
int eng_ladder_lines(EngLadderLine line);    /* lines touched per slot */
size_t eng_ladder_bytes(EngLadderLine line); /* bytes of a slot, side bytes included */

/* As many slots as fit `bytes`; side begins behind values. ENG_USAGE: not one slot fits. Fill it
 * before any walk. memory: at least `bytes`, at a multiple of 64. */
EngStatus eng_ladder_init(EngLadder *ladder, EngLadderLine line, uint8_t *memory, size_t bytes,
                          uint64_t seed, EngErr *err);
/* Writes all slots, with all processors (plain threads). */
void eng_ladder_fill(const EngLadder *ladder);
/* The slot at place t of the cycle (t taken modulo slots), and the place of a slot. */
int64_t eng_ladder_slot_at(const EngLadder *ladder, int64_t t);
int64_t eng_ladder_place_of(const EngLadder *ladder, int64_t slot);

/* What the loads of one slot add up to (modulo 2^64): its pointer to the next, and the word of each
 * of its other lines. */
uint64_t eng_ladder_slot_sum(const EngLadder *ladder, int64_t slot);

/* chains: 1, 2, 4, .. 64; at: [threads, ENG_LADDER_MAX_CHAINS] slot addresses, in/out. Walks
 * `steps` of every chain on `threads` threads; returns the sum over all slots left behind. */
uint64_t eng_ladder_walk(const EngLadder *ladder, int threads, int chains, int64_t steps,
                         const uint8_t **at);

/* Rows known in advance: reads a word of each line of slots ids[0..n), requesting `depth` slots
 * back to back while the group before them is read. Returns the sum as above. depth: 1 ..
 * ENG_LADDER_MAX_DEPTH. */
#define ENG_LADDER_MAX_DEPTH 256
uint64_t eng_ladder_read(const EngLadder *ladder, int threads, int depth, const int64_t *ids,
                         int64_t n);

#endif
