/* Exact collision counts of the n-grams of one order; the heart of the collide experiment, apart so
 * that it can be tested on inputs of any size. */
#ifndef ENG_EXPERIMENTS_COLLIDE_H
#define ENG_EXPERIMENTS_COLLIDE_H

#include <stdint.h>
#include <engram/address.h>
#include <engram/status.h>

/* What is looked at: all whole n-grams of a text, hashed as one layer does (address, first layer).
 */
typedef struct EngCollideInput {
    const EngAddress *address;
    int order;
    const int32_t *ids; /* compressed, none dead */
    int64_t n_ids;
} EngCollideInput;

typedef struct EngCollisions {
    int64_t ngrams;          /* distinct */
    double ngrams_per_row;   /* per row that any reads, mean over heads */
    double rows_used;        /* share of a head's rows that any reads, mean over heads */
    int heads_shared_max;    /* most heads that two n-grams of different mixes share */
    int64_t pairs_all_heads; /* pairs of distinct n-grams that share every head */
    int64_t equal_mixes;     /* pairs of distinct n-grams with the same 64-bit mix */
    double alone_share;      /* of n-grams that share no row with another */
} EngCollisions;

/* ENG_UNSUPPORTED when the text is shorter than the order, ENG_NO_MEMORY. Pairs are found through
 * the rows they share, so the time grows with n^2 / rows, not n^2. */
EngStatus eng_collide_count(const EngCollideInput *input, EngCollisions *out, EngErr *err);
/* The same by comparing every n-gram with every other: for small inputs, to check the above. */
EngStatus eng_collide_brute_force(const EngCollideInput *input, EngCollisions *out, EngErr *err);

/* floor(63 / log2 p) for the smallest prime p of the order: mixes are below 2^63, and two that
 * agree modulo m different primes differ by a multiple of their product. */
int eng_collide_bound(const EngAddress *address, int order);

#endif
