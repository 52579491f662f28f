/* xoshiro256** and splitmix64 (Blackman and Vigna, public algorithms), Box-Muller for normals. */
#include "base/rng.h"

#include <math.h>

static uint64_t splitmix(uint64_t *x)
{
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void eng_rng_seed(EngRng *rng, uint64_t seed)
{
    for (int i = 0; i < 4; i++) rng->s[i] = splitmix(&seed);
}

void eng_rng_seed_at(EngRng *rng, uint64_t seed, uint64_t index)
{
    uint64_t x = seed;
    uint64_t mixed = splitmix(&x) ^ (index * 0xd1342543de82ef95u + 1);
    eng_rng_seed(rng, mixed);
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t eng_rng_u64(EngRng *rng)
{
    uint64_t *s = rng->s, result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint64_t eng_rng_below(EngRng *rng, uint64_t bound)
{
    /* Reject the short last interval, so that every value is equally likely. */
    uint64_t limit = UINT64_MAX - UINT64_MAX % bound, x;
    do x = eng_rng_u64(rng);
    while (x >= limit);
    return x % bound;
}

double eng_rng_unit(EngRng *rng)
{
    return (double)(eng_rng_u64(rng) >> 11) * 0x1p-53;
}

double eng_rng_normal(EngRng *rng)
{
    double u = 1.0 - eng_rng_unit(rng), v = eng_rng_unit(rng);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}
