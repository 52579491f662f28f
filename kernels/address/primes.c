/* Deterministic Miller-Rabin; see primes.h. The first twelve primes as bases decide every number
 * below 3.3e24 (Sorenson and Webster 2015), so every 64-bit one. */
#include "kernels/address/primes.h"

static const uint64_t g_bases[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
enum { N_BASES = sizeof g_bases / sizeof *g_bases };

static uint64_t multiply(uint64_t a, uint64_t b, uint64_t modulus)
{
    return (uint64_t)((unsigned __int128)a * b % modulus);
}

static uint64_t power(uint64_t base, uint64_t exponent, uint64_t modulus)
{
    uint64_t result = 1;
    for (base %= modulus; exponent; exponent >>= 1) {
        if (exponent & 1) result = multiply(result, base, modulus);
        base = multiply(base, base, modulus);
    }
    return result;
}

/* n odd, n - 1 = odd * 2^twos. */
static bool is_strong_probable_prime(uint64_t n, uint64_t base, uint64_t odd, int twos)
{
    uint64_t x = power(base, odd, n);
    if (x == 1 || x == n - 1) return true;
    for (int i = 1; i < twos; i++) {
        x = multiply(x, x, n);
        if (x == n - 1) return true;
    }
    return false;
}

bool eng_is_prime(uint64_t n)
{
    if (n < 2) return false;
    for (int i = 0; i < N_BASES; i++)
        if (n % g_bases[i] == 0) return n == g_bases[i];
    int twos = __builtin_ctzll(n - 1);
    for (int i = 0; i < N_BASES; i++)
        if (!is_strong_probable_prime(n, g_bases[i], (n - 1) >> twos, twos)) return false;
    return true;
}

uint64_t eng_prime_from(uint64_t n)
{
    if (n <= 2) return 2;
    for (n |= 1; n <= (uint64_t)1 << 62; n += 2)
        if (eng_is_prime(n)) return n;
    return 0;
}
