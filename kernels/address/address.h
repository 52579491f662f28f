/* Building an EngAddress: primes, numpy-identical multipliers, offsets (engram_facts section 3). */
#ifndef ENG_KERNELS_ADDRESS_H
#define ENG_KERNELS_ADDRESS_H

#include <engram/address.h>
#include <engram/status.h>

/* What a preset or a sweep point asks for; the same fields as the finished address holds. */
typedef struct EngAddressSpec {
    int n_layers;
    int layer_ids[ENG_MAX_LAYERS];
    int min_order, max_order;
    int heads;
    int64_t vocab; /* compressed vocabulary size */
    int32_t pad;
    int64_t start; /* first candidate for a prime, itself included */
    int64_t seed;  /* 0 in both published variants */
} EngAddressSpec;

/* Fills address. ENG_USAGE names the field and value that is out of range: no layers, K or orders
 * of 0 or beyond the ENG_MAX_ limits, vocab < 1, pad outside [0, vocab), start < 2, primes past
 * 2^62. */
EngStatus eng_address_build(const EngAddressSpec *spec, EngAddress *address, EngErr *err);

/* Ids outside [DEAD, vocab) give ENG_BAD_DATA with position and value. */
EngStatus eng_address_check_ids(const EngAddress *address, const int32_t *ids, int64_t n,
                                EngErr *err);

#endif
