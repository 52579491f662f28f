/* The harness's random numbers: xoshiro256**, seeded through splitmix64. Reproducible for a seed on
 * every machine. (numpy's generator, which the Engram multipliers need, lives in kernels/address/.)
 */
#ifndef ENG_BASE_RNG_H
#define ENG_BASE_RNG_H

#include <stdint.h>

typedef struct EngRng {
    uint64_t s[4];
} EngRng;

void eng_rng_seed(EngRng *rng, uint64_t seed);
/* An independent stream for (seed, index): for parallel fills that do not depend on thread count.
 */
void eng_rng_seed_at(EngRng *rng, uint64_t seed, uint64_t index);
uint64_t eng_rng_u64(EngRng *rng);
uint64_t eng_rng_below(EngRng *rng, uint64_t bound); /* uniform in [0, bound), bound > 0 */
double eng_rng_unit(EngRng *rng);                    /* [0, 1) */
double eng_rng_normal(EngRng *rng);                  /* mean 0, deviation 1 */

#endif
