/* The ladder's cycle and its memory; see ladder.h. The walks are in ladder_walk.c.
 *
 * slot_at is three rounds of "xor with the high half, multiply by an odd key" on the next power of
 * two, each a bijection with a known inverse; results beyond the last slot are mapped again until
 * they fall inside, which keeps it a bijection of [0, slots).
 */
#include "kernels/cpu/ladder.h"

#include <string.h>

#include "base/parallel.h"
#include "base/rng.h"

#define LINE        64
#define FILL_SLOTS  8192
#define SIDE_STRIDE 8

static const struct {
    const char *name;
    size_t stride, side_stride;
    int lines;
} g_lines[ENG_LADDER_LINE_COUNT] = {
    [ENG_LADDER_LINE64] = {"64", LINE, 0, 1},
    [ENG_LADDER_SPLIT] = {"256+8", 256, SIDE_STRIDE, 5},
    [ENG_LADDER_PACKED] = {"264", 264, 0, 5},
};

const char *eng_ladder_line_name(EngLadderLine line)
{
    return (unsigned)line < ENG_LADDER_LINE_COUNT ? g_lines[line].name : NULL;
}

int eng_ladder_line_parse(const char *name)
{
    for (int i = 0; i < ENG_LADDER_LINE_COUNT; i++)
        if (!strcmp(g_lines[i].name, name)) return i;
    return -1;
}

int eng_ladder_lines(EngLadderLine line)
{
    return g_lines[line].lines;
}

size_t eng_ladder_bytes(EngLadderLine line)
{
    return g_lines[line].stride + g_lines[line].side_stride;
}

/* ---- the cycle ---------------------------------------------------------------------------------
 */

/* Newton's iteration: each step doubles the bits that are right. */
static uint64_t inverse_of(uint64_t odd)
{
    uint64_t x = odd;
    for (int i = 0; i < 6; i++) x *= 2 - odd * x;
    return x;
}

static uint64_t mix(const EngLadder *l, uint64_t x)
{
    for (int i = 0; i < 3; i++) {
        x ^= x >> l->shift;
        x = x * l->key[i] & l->mask;
    }
    return x;
}

static uint64_t unmix(const EngLadder *l, uint64_t x)
{
    for (int i = 2; i >= 0; i--) {
        x = x * l->inverse[i] & l->mask;
        x ^= x >> l->shift; /* its own inverse: the shift is at least half the width */
    }
    return x;
}

int64_t eng_ladder_slot_at(const EngLadder *l, int64_t t)
{
    uint64_t x = (uint64_t)(t % l->slots);
    do x = mix(l, x);
    while (x >= (uint64_t)l->slots);
    return (int64_t)x;
}

int64_t eng_ladder_place_of(const EngLadder *l, int64_t slot)
{
    uint64_t x = (uint64_t)slot;
    do x = unmix(l, x);
    while (x >= (uint64_t)l->slots);
    return (int64_t)x;
}

/* ---- memory ------------------------------------------------------------------------------------
 */

EngStatus eng_ladder_init(EngLadder *l, EngLadderLine line, uint8_t *memory, size_t bytes,
                          uint64_t seed, EngErr *err)
{
    EngRng rng;
    int bits = 1;
    size_t each = eng_ladder_bytes(line), slots = bytes / each;
    if (!slots)
        return ENG_FAIL(err, ENG_USAGE, "a working set of %zu bytes holds no %s-byte slot", bytes,
                        g_lines[line].name);
    *l = (EngLadder){.line = line,
                     .slots = (int64_t)slots,
                     .stride = g_lines[line].stride,
                     .side_stride = g_lines[line].side_stride,
                     .values = memory};
    if (l->side_stride) l->side = memory + slots * l->stride;
    while (bits < 63 && (uint64_t)1 << bits < slots) bits++;
    l->mask = ((uint64_t)1 << bits) - 1;
    l->shift = (bits + 1) / 2;
    eng_rng_seed(&rng, seed);
    for (int i = 0; i < 3; i++) {
        l->key[i] = eng_rng_u64(&rng) | 1;
        l->inverse[i] = inverse_of(l->key[i]);
    }
    return ENG_OK;
}

static uint64_t word_of(int64_t slot, int line)
{
    return (uint64_t)slot * 8 + (uint64_t)line;
}

static const uint8_t *next_of(const EngLadder *l, int64_t slot)
{
    int64_t next = eng_ladder_slot_at(l, eng_ladder_place_of(l, slot) + 1);
    return l->values + (size_t)next * l->stride;
}

static void fill_slots(void *context, int64_t chunk)
{
    const EngLadder *l = context;
    int64_t from = chunk * FILL_SLOTS, to = from + FILL_SLOTS;
    int n_values = (int)((l->stride + LINE - 1) / LINE);
    if (to > l->slots) to = l->slots;
    for (int64_t slot = from; slot < to; slot++) {
        uint8_t *at = l->values + (size_t)slot * l->stride;
        const uint8_t *next = next_of(l, slot);
        memcpy(at, &next, sizeof next);
        for (int line = 1; line < n_values; line++) {
            uint64_t word = word_of(slot, line);
            memcpy(at + line * LINE, &word, sizeof word);
        }
        if (l->side) {
            uint64_t word = word_of(slot, n_values);
            memcpy(l->side + (size_t)slot * l->side_stride, &word, sizeof word);
        }
    }
}

void eng_ladder_fill(const EngLadder *ladder)
{
    EngLadder copy = *ladder;
    eng_parallel_for((ladder->slots + FILL_SLOTS - 1) / FILL_SLOTS, 0, fill_slots, &copy);
}

uint64_t eng_ladder_slot_sum(const EngLadder *l, int64_t slot)
{
    uint64_t sum = (uint64_t)(uintptr_t)next_of(l, slot);
    for (int line = 1; line < eng_ladder_lines(l->line); line++) sum += word_of(slot, line);
    return sum;
}
