/* The loads of the ladder; see ladder.h. Each number of chains is a loop of its own with the chains
 * unrolled, so that the core sees nothing but loads and the additions that keep them alive.
 */
#include "kernels/cpu/ladder.h"

#include <omp.h>
#include <string.h>

#include "kernels/cpu/common.h"

#define LINE 64

/* A word of line `line` (1..) of the slot at p. */
static inline __attribute__((always_inline)) uint64_t word_at(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

static inline __attribute__((always_inline)) uint64_t
other_lines(const EngLadder *l, EngLadderLine line, const uint8_t *p)
{
    if (line == ENG_LADDER_LINE64) return 0;
    uint64_t sum = word_at(p + LINE) + word_at(p + 2 * LINE) + word_at(p + 3 * LINE);
    /* 8 scale bytes per 256 value bytes: the offset divided by 32. */
    return sum + (line == ENG_LADDER_SPLIT ? word_at(l->side + ((size_t)(p - l->values) >> 5))
                                           : word_at(p + 4 * LINE));
}

static inline __attribute__((always_inline)) uint64_t
walk(const EngLadder *l, EngLadderLine line, int chains, int64_t steps, const uint8_t **at)
{
    const uint8_t *p[ENG_LADDER_MAX_CHAINS];
    uint64_t sum = 0;
    memcpy(p, at, (size_t)chains * sizeof *p);
    for (int64_t i = 0; i < steps; i++) {
#pragma GCC unroll 64
        for (int c = 0; c < chains; c++) {
            const uint8_t *next = (const uint8_t *)(uintptr_t)word_at(p[c]);
            sum += (uint64_t)(uintptr_t)next + other_lines(l, line, p[c]);
            p[c] = next;
        }
    }
    memcpy(at, p, (size_t)chains * sizeof *p);
    return sum;
}

#define WALK(line, n)                                                                              \
    case n:                                                                                        \
        return walk(l, line, n, steps, at)

#define WALKS(name, line)                                                                          \
    static uint64_t name(const EngLadder *l, int chains, int64_t steps, const uint8_t **at)        \
    {                                                                                              \
        switch (chains) {                                                                          \
            WALK(line, 1);                                                                         \
            WALK(line, 2);                                                                         \
            WALK(line, 4);                                                                         \
            WALK(line, 8);                                                                         \
            WALK(line, 16);                                                                        \
            WALK(line, 32);                                                                        \
            WALK(line, 64);                                                                        \
        }                                                                                          \
        return 0;                                                                                  \
    }

WALKS(walk_lines, ENG_LADDER_LINE64)
WALKS(walk_split, ENG_LADDER_SPLIT)
WALKS(walk_packed, ENG_LADDER_PACKED)

uint64_t eng_ladder_walk(const EngLadder *l, int threads, int chains, int64_t steps,
                         const uint8_t **at)
{
    uint64_t (*const walks[ENG_LADDER_LINE_COUNT])(const EngLadder *, int, int64_t,
                                                   const uint8_t **) = {
        [ENG_LADDER_LINE64] = walk_lines,
        [ENG_LADDER_SPLIT] = walk_split,
        [ENG_LADDER_PACKED] = walk_packed,
    };
    uint64_t sum = 0;
    if (threads == 1) return walks[l->line](l, chains, steps, at);
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    /* A team may come out smaller than asked for: every chain is walked all the same. */
    for (int part = omp_get_thread_num(); part < threads; part += omp_get_num_threads())
        sum += walks[l->line](l, chains, steps, at + part * ENG_LADDER_MAX_CHAINS);
    return sum;
}

/* ---- rows known in advance ---------------------------------------------------------------------
 */

static inline __attribute__((always_inline)) void request(const EngLadder *l, EngLadderLine line,
                                                          int64_t slot)
{
    const uint8_t *p = l->values + (size_t)slot * l->stride;
    __builtin_prefetch(p);
    if (line == ENG_LADDER_LINE64) return;
    __builtin_prefetch(p + LINE);
    __builtin_prefetch(p + 2 * LINE);
    __builtin_prefetch(p + 3 * LINE);
    __builtin_prefetch(line == ENG_LADDER_SPLIT ? l->side + (size_t)slot * l->side_stride
                                                : p + 4 * LINE);
}

static inline __attribute__((always_inline)) uint64_t
read_groups(const EngLadder *l, EngLadderLine line, int depth, const int64_t *ids, int64_t n)
{
    uint64_t sum = 0;
    int64_t ahead = n < depth ? n : depth;
    for (int64_t i = 0; i < ahead; i++) request(l, line, ids[i]);
    for (int64_t i = 0; i < n;) {
        int64_t end = ahead, next = n - ahead < depth ? n : ahead + depth;
        for (; ahead < next; ahead++) request(l, line, ids[ahead]);
        for (; i < end; i++) {
            const uint8_t *p = l->values + (size_t)ids[i] * l->stride;
            sum += word_at(p) + other_lines(l, line, p);
        }
    }
    return sum;
}

static uint64_t read_part(const EngLadder *l, int depth, const int64_t *ids, int64_t n)
{
    if (l->line == ENG_LADDER_SPLIT) return read_groups(l, ENG_LADDER_SPLIT, depth, ids, n);
    if (l->line == ENG_LADDER_PACKED) return read_groups(l, ENG_LADDER_PACKED, depth, ids, n);
    return read_groups(l, ENG_LADDER_LINE64, depth, ids, n);
}

uint64_t eng_ladder_read(const EngLadder *l, int threads, int depth, const int64_t *ids, int64_t n)
{
    uint64_t sum = 0;
    if (threads == 1) return read_part(l, depth, ids, n);
#pragma omp parallel num_threads(threads) reduction(+ : sum)
    {
        int64_t from, to;
        eng_cpu_share(n, omp_get_num_threads(), omp_get_thread_num(), &from, &to);
        sum += read_part(l, depth, ids + from, to - from);
    }
    return sum;
}
