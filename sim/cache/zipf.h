/* SYNTHETIC: the hit rate of an LRU cache when rows are drawn independently by a Zipf law, by Che's
 * approximation ("Hierarchical web caching systems", 2002): with the time T in which C distinct
 * rows are asked for, row i hits with probability 1 - exp(-q_i T).
 *
 * Text is not such a draw: on token streams this is off by up to 0.2, since uses of an n-gram come
 * in bursts and many n-grams are used once. It is for tests and for plans that ask for it, which
 * say so; never a default.
 */
#ifndef ENG_SIM_CACHE_ZIPF_H
#define ENG_SIM_CACHE_ZIPF_H

#include <stdint.h>
#include <engram/status.h>

/* Rows 1 .. n with q_i proportional to i^-exponent. ENG_USAGE: n or capacity below 1, an exponent
 * that is negative or not finite. A cache as large as n hits always (no first uses here). */
EngStatus eng_zipf_che_hit_rate(int64_t n, double exponent, int64_t capacity, double *rate,
                                EngErr *err);

#endif
