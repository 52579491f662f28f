/* Prime table sizes: one prime per head (engram_facts section 3). */
#ifndef ENG_KERNELS_PRIMES_H
#define ENG_KERNELS_PRIMES_H

#include <stdbool.h>
#include <stdint.h>

/* Deterministic for all 64-bit numbers. */
bool eng_is_prime(uint64_t n);

/* Smallest prime >= n, or 0 when it would exceed 2^62 (rows are signed 64-bit sums of primes). */
uint64_t eng_prime_from(uint64_t n);

#endif
