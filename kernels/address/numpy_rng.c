/* SeedSequence, PCG64 (XSL-RR) and Lemire's bounded integers as numpy has them; see numpy_rng.h.
 *
 * The constants are those of the published algorithms (O'Neill's PCG and seed_seq alternatives,
 * Lemire 2019). numpy chooses the generator by the bound alone: one value needs no draw, bounds up
 * to 2^32 draw 32-bit halves, larger ones draw 64 bits.
 */
#include "kernels/address/numpy_rng.h"

enum { POOL_WORDS = 4, SEED_WORDS = 8 };

/* ---- SeedSequence ---- */

static uint32_t hash_word(uint32_t value, uint32_t *hash, uint32_t step)
{
    value ^= *hash;
    *hash *= step;
    value *= *hash;
    return value ^ value >> 16;
}

static uint32_t mix_words(uint32_t x, uint32_t y)
{
    uint32_t mixed = 0xca01f9ddu * x - 0x4973f715u * y;
    return mixed ^ mixed >> 16;
}

/* Entropy of one integer seed: its 32-bit words, low first; missing words count as 0. */
static void seed_sequence(uint64_t seed, uint64_t out[SEED_WORDS / 2])
{
    uint32_t pool[POOL_WORDS] = {(uint32_t)seed, (uint32_t)(seed >> 32), 0, 0};
    uint32_t hash = 0x43b0d7e5u, words[SEED_WORDS];
    for (int i = 0; i < POOL_WORDS; i++) pool[i] = hash_word(pool[i], &hash, 0x931e8875u);
    for (int from = 0; from < POOL_WORDS; from++)
        for (int to = 0; to < POOL_WORDS; to++)
            if (from != to)
                pool[to] = mix_words(pool[to], hash_word(pool[from], &hash, 0x931e8875u));
    hash = 0x8b51f9ddu;
    for (int i = 0; i < SEED_WORDS; i++)
        words[i] = hash_word(pool[i % POOL_WORDS], &hash, 0x58f38dedu);
    for (int i = 0; i < SEED_WORDS / 2; i++)
        out[i] = (uint64_t)words[2 * i + 1] << 32 | words[2 * i];
}

/* ---- PCG64 ---- */

static unsigned __int128 u128(uint64_t high, uint64_t low)
{
    return (unsigned __int128)high << 64 | low;
}

static void step(EngNumpyRng *rng)
{
    rng->state = rng->state * u128(2549297995355413924u, 4865540595714422341u) + rng->increment;
}

void eng_numpy_rng_seed(EngNumpyRng *rng, uint64_t seed)
{
    uint64_t words[SEED_WORDS / 2];
    seed_sequence(seed, words);
    rng->increment = u128(words[2], words[3]) << 1 | 1;
    rng->state = 0;
    step(rng);
    rng->state += u128(words[0], words[1]);
    step(rng);
    rng->spare = 0;
    rng->has_spare = false;
}

uint64_t eng_numpy_rng_u64(EngNumpyRng *rng)
{
    step(rng);
    uint64_t folded = (uint64_t)(rng->state >> 64) ^ (uint64_t)rng->state;
    unsigned turn = (unsigned)(rng->state >> 122);
    return folded >> turn | folded << (-turn & 63);
}

static uint32_t next_u32(EngNumpyRng *rng)
{
    if (rng->has_spare) {
        rng->has_spare = false;
        return rng->spare;
    }
    uint64_t drawn = eng_numpy_rng_u64(rng);
    rng->spare = (uint32_t)(drawn >> 32);
    rng->has_spare = true;
    return (uint32_t)drawn;
}

/* ---- bounded integers ---- */

/* Lemire: the high half of draw * bound, redrawn while the low half lies in the biased part. */
static uint64_t below_u64(EngNumpyRng *rng, uint64_t bound)
{
    unsigned __int128 product = (unsigned __int128)eng_numpy_rng_u64(rng) * bound;
    if ((uint64_t)product < bound) {
        uint64_t threshold = (0 - bound) % bound;
        while ((uint64_t)product < threshold)
            product = (unsigned __int128)eng_numpy_rng_u64(rng) * bound;
    }
    return (uint64_t)(product >> 64);
}

static uint32_t below_u32(EngNumpyRng *rng, uint32_t bound)
{
    uint64_t product = (uint64_t)next_u32(rng) * bound;
    if ((uint32_t)product < bound) {
        uint32_t threshold = (0 - bound) % bound;
        while ((uint32_t)product < threshold) product = (uint64_t)next_u32(rng) * bound;
    }
    return (uint32_t)(product >> 32);
}

void eng_numpy_rng_integers(EngNumpyRng *rng, uint64_t bound, int64_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (bound <= 1) {
            out[i] = 0;
        } else if (bound < (uint64_t)1 << 32) {
            out[i] = below_u32(rng, (uint32_t)bound);
        } else if (bound == (uint64_t)1 << 32) {
            out[i] = next_u32(rng);
        } else {
            out[i] = (int64_t)below_u64(rng, bound);
        }
    }
}
