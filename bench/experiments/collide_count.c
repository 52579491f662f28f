/* Exact collision counts; see collide.h. */
#include "bench/experiments/collide.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* One n-gram: its mix and where it was first seen. */
typedef struct Gram {
    uint64_t mix;
    int64_t at; /* of its newest token */
} Gram;

static const int64_t *primes_of(const EngCollideInput *input)
{
    const EngAddress *address = input->address;
    return address->primes[0] + (input->order - address->min_order) * address->heads;
}

static uint64_t mix_at(const EngCollideInput *input, int64_t at)
{
    uint64_t mix = 0;
    for (int lag = 0; lag < input->order; lag++)
        mix ^= (uint64_t)input->ids[at - lag] * (uint64_t)input->address->multipliers[0][lag];
    return mix;
}

static bool same_ngram(const EngCollideInput *input, int64_t a, int64_t b)
{
    int back = input->order - 1;
    return !memcmp(input->ids + a - back, input->ids + b - back,
                   (size_t)input->order * sizeof *input->ids);
}

static EngStatus check_length(const EngCollideInput *input, EngErr *err)
{
    if (input->n_ids >= input->order) return ENG_OK;
    return ENG_FAIL(err, ENG_UNSUPPORTED, "%" PRId64 " tokens hold no %d-gram", input->n_ids,
                    input->order);
}

static int shared_heads(const EngCollideInput *input, uint64_t a, uint64_t b)
{
    const int64_t *primes = primes_of(input);
    uint64_t difference = a > b ? a - b : b - a;
    int shared = 0;
    for (int k = 0; k < input->address->heads; k++) shared += difference % (uint64_t)primes[k] == 0;
    return shared;
}

int eng_collide_bound(const EngAddress *address, int order)
{
    const int64_t *primes = address->primes[0] + (order - address->min_order) * address->heads;
    uint64_t least = (uint64_t)primes[0];
    for (int k = 1; k < address->heads; k++)
        if ((uint64_t)primes[k] < least) least = (uint64_t)primes[k];
    int bound = 0;
    unsigned __int128 product = least; /* of bound + 1 primes that are no smaller */
    while (product < (unsigned __int128)1 << 63) {
        bound++;
        product *= least;
    }
    return bound;
}

/* ---- distinct n-grams ---- */

static uint64_t slots_for(int64_t n)
{
    uint64_t slots = 16;
    while (slots < 2 * (uint64_t)n) slots *= 2;
    return slots;
}

static uint64_t scatter(uint64_t x)
{
    x *= 0x9e3779b97f4a7c15u;
    return x ^ (x >> 32);
}

/* Owned grams [*n]: slots hold 1 + index of a gram, 0 when free. N-grams of equal mix differ in
 * their tokens and take slots of their own. */
static EngStatus find_grams(const EngCollideInput *input, Gram **grams, int64_t *n, EngErr *err)
{
    uint32_t *slots = NULL;
    int64_t most = input->n_ids - input->order + 1;
    uint64_t mask = slots_for(most) - 1;
    *n = 0;
    EngStatus status = eng_alloc_or((void **)grams, (size_t)most, sizeof **grams, "n-grams", err);
    if (!status) status = eng_alloc_or((void **)&slots, mask + 1, sizeof *slots, "n-grams", err);
    for (int64_t at = input->order - 1; !status && at < input->n_ids; at++) {
        uint64_t mix = mix_at(input, at), slot = scatter(mix) & mask;
        while (slots[slot]) {
            const Gram *gram = &(*grams)[slots[slot] - 1];
            if (gram->mix == mix && same_ngram(input, gram->at, at)) break;
            slot = (slot + 1) & mask;
        }
        if (slots[slot]) continue;
        (*grams)[(*n)++] = (Gram){.mix = mix, .at = at};
        slots[slot] = (uint32_t)*n;
    }
    eng_free(slots);
    return status;
}

static int compare_grams(const void *a, const void *b)
{
    uint64_t x = ((const Gram *)a)->mix, y = ((const Gram *)b)->mix;
    return (x > y) - (x < y);
}

/* The different mixes, and what is known of each. */
typedef struct Mixes {
    uint64_t *mix;
    uint32_t *grams; /* how many n-grams have it */
    uint8_t *shares; /* 1: some row of it is another n-gram's too */
    int64_t n;
} Mixes;

static EngStatus merge_equal(Gram *grams, int64_t n, Mixes *mixes, int64_t *equal_pairs,
                             EngErr *err)
{
    size_t room = (size_t)n;
    EngStatus status = eng_alloc_or((void **)&mixes->mix, room, sizeof *mixes->mix, "mixes", err);
    if (!status)
        status = eng_alloc_or((void **)&mixes->grams, room, sizeof *mixes->grams, "mixes", err);
    if (!status)
        status = eng_alloc_or((void **)&mixes->shares, room, sizeof *mixes->shares, "mixes", err);
    if (status) return status;
    qsort(grams, room, sizeof *grams, compare_grams);
    for (int64_t i = 0; i < n;) {
        int64_t end = i + 1;
        while (end < n && grams[end].mix == grams[i].mix) end++;
        *equal_pairs += (end - i) * (end - i - 1) / 2;
        mixes->mix[mixes->n] = grams[i].mix;
        mixes->grams[mixes->n] = (uint32_t)(end - i);
        mixes->shares[mixes->n++] = end - i > 1;
        i = end;
    }
    return ENG_OK;
}

/* ---- one head ---- */

/* Chains of mixes by row: last[slot] is the newest one of a row, before[i] the one before i. Both
 * hold 1 + index, 0 for none. */
typedef struct Chains {
    uint64_t *rows; /* of a slot in use */
    uint32_t *last, *before;
    uint64_t mask;
} Chains;

static EngStatus create_chains(Chains *chains, int64_t n, EngErr *err)
{
    uint64_t slots = slots_for(n);
    chains->mask = slots - 1;
    EngStatus status =
        eng_alloc_or((void **)&chains->rows, slots, sizeof *chains->rows, "rows", err);
    if (!status)
        status = eng_alloc_or((void **)&chains->last, slots, sizeof *chains->last, "rows", err);
    if (!status)
        status =
            eng_alloc_or((void **)&chains->before, (size_t)n, sizeof *chains->before, "rows", err);
    return status;
}

/* Where a row is, or where it belongs. */
static uint64_t slot_of(const Chains *chains, uint64_t row)
{
    uint64_t slot = scatter(row) & chains->mask;
    while (chains->last[slot] && chains->rows[slot] != row) slot = (slot + 1) & chains->mask;
    return slot;
}

/* Walks the pairs that share a row in head k, and returns the rows in use. Pairs that share every
 * head are counted in head 0, which they share. */
static int64_t count_head(const EngCollideInput *input, int k, const Mixes *mixes, Chains *chains,
                          EngCollisions *out)
{
    uint64_t prime = (uint64_t)primes_of(input)[k];
    int heads = input->address->heads;
    int64_t used = 0;
    memset(chains->last, 0, (chains->mask + 1) * sizeof *chains->last);
    for (int64_t i = 0; i < mixes->n; i++) {
        uint64_t row = mixes->mix[i] % prime, slot = slot_of(chains, row);
        uint32_t other = chains->last[slot];
        used += !other;
        if (other) mixes->shares[i] = mixes->shares[other - 1] = 1;
        chains->rows[slot] = row;
        chains->before[i] = other;
        chains->last[slot] = (uint32_t)(i + 1);
        /* Once two share every head, only head 0 has more to tell: how many do. */
        if (k && out->heads_shared_max == heads) continue;
        for (; other; other = chains->before[other - 1]) {
            int shared = shared_heads(input, mixes->mix[i], mixes->mix[other - 1]);
            if (shared > out->heads_shared_max) out->heads_shared_max = shared;
            if (k == 0 && shared == heads)
                out->pairs_all_heads += (int64_t)mixes->grams[i] * mixes->grams[other - 1];
        }
    }
    return used;
}

EngStatus eng_collide_count(const EngCollideInput *input, EngCollisions *out, EngErr *err)
{
    Gram *grams = NULL;
    Mixes mixes = {0};
    Chains chains = {0};
    int heads = input->address->heads;
    int64_t alone = 0;
    memset(out, 0, sizeof *out);
    EngStatus status = check_length(input, err);
    if (!status) status = find_grams(input, &grams, &out->ngrams, err);
    if (!status) status = merge_equal(grams, out->ngrams, &mixes, &out->equal_mixes, err);
    if (!status) status = create_chains(&chains, mixes.n, err);
    if (status) goto out;
    out->pairs_all_heads = out->equal_mixes;
    for (int k = 0; k < heads; k++) {
        double used = (double)count_head(input, k, &mixes, &chains, out);
        out->ngrams_per_row += (double)out->ngrams / used / heads;
        out->rows_used += used / (double)primes_of(input)[k] / heads;
    }
    for (int64_t i = 0; i < mixes.n; i++) alone += !mixes.shares[i];
    out->alone_share = (double)alone / (double)out->ngrams;
out:
    eng_free(grams);
    eng_free(mixes.mix);
    eng_free(mixes.grams);
    eng_free(mixes.shares);
    eng_free(chains.rows);
    eng_free(chains.last);
    eng_free(chains.before);
    return status;
}

/* ---- brute force ---- */

/* First position of each different n-gram, by comparing with all before. */
static int64_t first_positions(const EngCollideInput *input, int64_t *at)
{
    int64_t n = 0;
    for (int64_t t = input->order - 1; t < input->n_ids; t++) {
        bool seen = false;
        for (int64_t i = 0; i < n && !seen; i++) seen = same_ngram(input, at[i], t);
        if (!seen) at[n++] = t;
    }
    return n;
}

static void compare_pair(const EngCollideInput *input, uint64_t a, uint64_t b, bool *alone,
                         EngCollisions *out)
{
    int shared = 0;
    for (int k = 0; k < input->address->heads; k++) {
        uint64_t prime = (uint64_t)primes_of(input)[k];
        shared += a % prime == b % prime;
    }
    if (shared) *alone = false;
    if (a == b) out->equal_mixes++;
    if (shared == input->address->heads) out->pairs_all_heads++;
    if (a != b && shared > out->heads_shared_max) out->heads_shared_max = shared;
}

/* Rows of head k that any n-gram reads: those whose row no earlier one has. */
static double rows_in_use(const EngCollideInput *input, int k, const int64_t *at, int64_t n)
{
    uint64_t prime = (uint64_t)primes_of(input)[k];
    int64_t used = 0;
    for (int64_t i = 0; i < n; i++) {
        bool seen = false;
        for (int64_t j = 0; j < i && !seen; j++)
            seen = mix_at(input, at[i]) % prime == mix_at(input, at[j]) % prime;
        used += !seen;
    }
    return (double)used;
}

EngStatus eng_collide_brute_force(const EngCollideInput *input, EngCollisions *out, EngErr *err)
{
    int64_t *at = NULL, alone_count = 0;
    int heads = input->address->heads;
    memset(out, 0, sizeof *out);
    EngStatus status = check_length(input, err);
    if (!status)
        status = eng_alloc_or((void **)&at, (size_t)input->n_ids, sizeof *at, "n-grams", err);
    if (status) return status;
    int64_t n = first_positions(input, at);
    out->ngrams = n;
    for (int64_t i = 0; i < n; i++) {
        bool alone = true;
        EngCollisions both_ways = {0};
        for (int64_t j = 0; j < n; j++) {
            if (j == i) continue;
            compare_pair(input, mix_at(input, at[i]), mix_at(input, at[j]), &alone,
                         j < i ? out : &both_ways);
        }
        alone_count += alone;
    }
    for (int k = 0; k < heads; k++) {
        double used = rows_in_use(input, k, at, n);
        out->ngrams_per_row += (double)n / used / heads;
        out->rows_used += used / (double)primes_of(input)[k] / heads;
    }
    out->alone_share = (double)alone_count / (double)n;
    eng_free(at);
    return ENG_OK;
}
