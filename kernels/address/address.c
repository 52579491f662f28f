/* Building an EngAddress; see address.h. Order of the checks is the order a user reads an option
 * list in: layers, orders, heads, vocabulary, pad, start. */
#include "kernels/address/address.h"

#include <inttypes.h>
#include <string.h>

#include "kernels/address/numpy_rng.h"
#include "kernels/address/primes.h"

#define SEED_STEP_PER_LAYER 10007

static EngStatus check_layers(const EngAddressSpec *spec, EngErr *err)
{
    if (spec->n_layers < 1 || spec->n_layers > ENG_MAX_LAYERS)
        return ENG_FAIL(err, ENG_USAGE, "layers: %d layers given, must be 1 to %d", spec->n_layers,
                        ENG_MAX_LAYERS);
    for (int i = 0; i < spec->n_layers; i++) {
        if (spec->layer_ids[i] < 0)
            return ENG_FAIL(err, ENG_USAGE, "layers: id %d is negative (layers count from 0)",
                            spec->layer_ids[i]);
        for (int j = 0; j < i; j++)
            if (spec->layer_ids[i] == spec->layer_ids[j])
                return ENG_FAIL(err, ENG_USAGE, "layers: id %d is given twice", spec->layer_ids[i]);
    }
    if (spec->seed < 0 || spec->seed > INT64_MAX / 2)
        return ENG_FAIL(err, ENG_USAGE, "seed: %" PRId64 " is out of range, must be 0 to %" PRId64,
                        spec->seed, INT64_MAX / 2);
    return ENG_OK;
}

static EngStatus check_spec(const EngAddressSpec *spec, EngErr *err)
{
    EngStatus status = check_layers(spec, err);
    if (status) return status;
    if (spec->max_order < 1 || spec->max_order > ENG_MAX_ORDER)
        return ENG_FAIL(err, ENG_USAGE, "max-order: %d is out of range, must be 1 to %d",
                        spec->max_order, ENG_MAX_ORDER);
    if (spec->min_order < 1 || spec->min_order > spec->max_order)
        return ENG_FAIL(err, ENG_USAGE, "min-order: %d is out of range, must be 1 to max-order %d",
                        spec->min_order, spec->max_order);
    if (spec->heads < 1 || spec->heads > ENG_MAX_HEADS)
        return ENG_FAIL(err, ENG_USAGE, "heads: %d is out of range, must be 1 to %d", spec->heads,
                        ENG_MAX_HEADS);
    int orders = spec->max_order - spec->min_order + 1;
    if (orders * spec->heads > ENG_MAX_COLUMNS)
        return ENG_FAIL(err, ENG_USAGE, "heads: %d orders x %d heads are %d columns, at most %d",
                        orders, spec->heads, orders * spec->heads, ENG_MAX_COLUMNS);
    if (spec->vocab < 1)
        return ENG_FAIL(err, ENG_USAGE, "vocab: %" PRId64 " is out of range, must be 1 or more",
                        spec->vocab);
    if (spec->pad < 0 || spec->pad >= spec->vocab)
        return ENG_FAIL(err, ENG_USAGE, "pad: %" PRId32 " is not an id of a vocabulary of %" PRId64,
                        spec->pad, spec->vocab);
    if (spec->start < 2)
        return ENG_FAIL(err, ENG_USAGE, "start: %" PRId64 " is out of range, must be 2 or more",
                        spec->start);
    return ENG_OK;
}

/* Odd and below INT64_MAX / vocab, so that id * multiplier never leaves 63 bits for a valid id. */
static void fill_multipliers(const EngAddressSpec *spec, int layer, EngAddress *address)
{
    EngNumpyRng rng;
    int64_t bound = INT64_MAX / spec->vocab / 2;
    uint64_t seed = (uint64_t)(spec->seed + (int64_t)SEED_STEP_PER_LAYER * spec->layer_ids[layer]);
    int64_t *multipliers = address->multipliers[layer];
    eng_numpy_rng_seed(&rng, seed);
    eng_numpy_rng_integers(&rng, bound > 1 ? (uint64_t)bound : 1, multipliers, spec->max_order);
    for (int i = 0; i < spec->max_order; i++) multipliers[i] = 2 * multipliers[i] + 1;
}

/* The published rule restarts every order at `start` and skips primes already used by any order or
 * layer; with one start for all that is one ascending walk, carried here by *next. */
static EngStatus fill_primes(const EngAddressSpec *spec, int layer, uint64_t *next,
                             EngAddress *address, EngErr *err)
{
    int64_t rows = 0;
    for (int column = 0; column < address->n_columns; column++) {
        uint64_t prime = eng_prime_from(*next);
        address->offsets[layer][column] = rows;
        if (!prime || __builtin_add_overflow(rows, (int64_t)prime, &rows))
            return ENG_FAIL(err, ENG_USAGE,
                            "start: %" PRId64 " makes a table of more than 2^62 rows", spec->start);
        address->primes[layer][column] = (int64_t)prime;
        *next = prime + 1;
    }
    address->rows[layer] = rows;
    if (rows > (int64_t)1 << 62)
        return ENG_FAIL(err, ENG_USAGE, "start: %" PRId64 " makes a table of more than 2^62 rows",
                        spec->start);
    return ENG_OK;
}

EngStatus eng_address_build(const EngAddressSpec *spec, EngAddress *address, EngErr *err)
{
    memset(address, 0, sizeof *address);
    EngStatus status = check_spec(spec, err);
    if (status) return status;
    address->n_layers = spec->n_layers;
    memcpy(address->layer_ids, spec->layer_ids, sizeof spec->layer_ids);
    address->min_order = spec->min_order;
    address->max_order = spec->max_order;
    address->heads = spec->heads;
    address->n_columns = (spec->max_order - spec->min_order + 1) * spec->heads;
    address->vocab = spec->vocab;
    address->pad = spec->pad;
    address->start = spec->start;
    uint64_t next = (uint64_t)spec->start;
    for (int layer = 0; layer < spec->n_layers; layer++) {
        fill_multipliers(spec, layer, address);
        status = fill_primes(spec, layer, &next, address, err);
        if (status) return status;
    }
    return ENG_OK;
}

EngStatus eng_address_check_ids(const EngAddress *address, const int32_t *ids, int64_t n,
                                EngErr *err)
{
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < ENG_TOKEN_DEAD || ids[i] >= address->vocab)
            return ENG_FAIL(err, ENG_BAD_DATA,
                            "position %" PRId64 ": id %" PRId32
                            " is not in a vocabulary of %" PRId64,
                            i, ids[i], address->vocab);
    return ENG_OK;
}
