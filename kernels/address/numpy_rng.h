/* numpy's default_rng(seed).integers(0, bound, dtype=int64), bit for bit: SeedSequence, PCG64 and
 * both bounded generators. The Engram multipliers are defined through it (engram_facts section 3).
 */
#ifndef ENG_KERNELS_NUMPY_RNG_H
#define ENG_KERNELS_NUMPY_RNG_H

#include <stdbool.h>
#include <stdint.h>

typedef struct EngNumpyRng {
    unsigned __int128 state, increment;
    uint32_t spare; /* upper half of the last 64-bit draw, when has_spare: numpy hands out halves */
    bool has_spare;
} EngNumpyRng;

/* default_rng(seed). */
void eng_numpy_rng_seed(EngNumpyRng *rng, uint64_t seed);
uint64_t eng_numpy_rng_u64(EngNumpyRng *rng);

/* integers(0, bound, size=n, dtype=int64) into out; bound >= 1. One call of numpy is one call here:
 * for bounds up to 2^32 the spare half of a draw is kept inside the generator, as numpy keeps it.
 */
void eng_numpy_rng_integers(EngNumpyRng *rng, uint64_t bound, int64_t *out, int64_t n);

#endif
