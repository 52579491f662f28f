/* For tests of hashing: the variants of this machine, addresses and ids at random, and runs of
 * them.
 */
#ifndef ENG_TESTS_HASH_CASES_H
#define ENG_TESTS_HASH_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "kernels/address/preset.h"
#include "kernels/cpu/hash.h"
#include "kernels/ref/hash.h"

#define CANARY INT64_C(-0x5a5a5a5a5a5a5a5a)

/* Those of this machine's instruction sets, of all; filled by find_variants. */
static const EngKernel *const g_all[] = {&eng_cpu_hash_naive, &eng_cpu_hash_portable,
                                         &eng_cpu_hash_avx2, &eng_cpu_hash_avx512,
                                         &eng_cpu_hash_avx512_ifma};
static const EngKernel *g_variants[sizeof g_all / sizeof *g_all];
static int g_n_variants;

static inline void find_variants(void)
{
    EngErr why;
    EngAddress address = {.n_layers = 1};
    EngProblem problem = {.op = ENG_OP_HASH, .threads = 1, .u.hash = {&address, 1}};
    for (size_t i = 0; i < sizeof g_all / sizeof *g_all; i++) {
        if (!g_all[i]->supports(&problem, &why))
            g_variants[g_n_variants++] = g_all[i];
        else
            print_message("without %s: %s\n", g_all[i]->name, why.text);
    }
}

static inline int64_t per_token(const EngAddress *address)
{
    return (int64_t)address->n_layers * address->n_columns;
}

static inline int64_t *new_rows(const EngAddress *address, int64_t n_tokens)
{
    int64_t n = n_tokens * per_token(address);
    int64_t *rows = eng_alloc_array((size_t)n, sizeof *rows);
    assert_non_null(rows);
    for (int64_t i = 0; i < n; i++) rows[i] = CANARY;
    return rows;
}

/* NULL stands for the oracle. */
static inline void run_hash(const EngKernel *kernel, const EngAddress *address, int threads,
                            const EngHashArgs *hash)
{
    EngErr err = {0};
    void *state = NULL;
    if (!kernel) {
        eng_ref_hash(address, hash);
        return;
    }
    EngProblem problem = {.op = ENG_OP_HASH, .threads = threads};
    problem.u.hash = (EngHashProblem){address, hash->n_tokens};
    EngArgs args = {.u.hash = *hash};
    assert_int_equal(kernel->supports(&problem, &err), ENG_OK);
    if (kernel->create) assert_int_equal(kernel->create(&problem, &state, &err), ENG_OK);
    assert_int_equal(kernel->run(state, &problem, &args, &err), ENG_OK);
    if (kernel->destroy) kernel->destroy(state);
}

/* Rows of one fresh sequence by the oracle. */
static inline int64_t *prefill(const EngAddress *address, const int32_t *tokens, int64_t n)
{
    EngHashArgs args = {.tokens = tokens, .n_tokens = n, .n_live = n};
    args.rows = new_rows(address, n);
    eng_ref_hash(address, &args);
    return args.rows;
}

static inline void assert_same_rows(const EngAddress *address, const int64_t *a, const int64_t *b,
                                    int64_t n_tokens)
{
    assert_memory_equal(a, b, (size_t)(n_tokens * per_token(address)) * sizeof *a);
}

static inline bool same_row(const EngAddress *address, const int64_t *a, const int64_t *b)
{
    return !memcmp(a, b, (size_t)per_token(address) * sizeof *a);
}

static inline EngAddress address_of(const char *preset_name)
{
    EngPreset preset;
    EngAddress address;
    EngErr err = {0};
    assert_int_equal(eng_preset_find(preset_name, &preset, &err), ENG_OK);
    assert_int_equal(eng_address_build(&preset.address, &address, &err), ENG_OK);
    return address;
}

static inline EngAddress random_address(EngRng *rng)
{
    EngAddress address;
    EngErr err = {0};
    EngAddressSpec spec = {.n_layers = 1 + (int)eng_rng_below(rng, 3)};
    for (int i = 0; i < spec.n_layers; i++) spec.layer_ids[i] = 1 + 13 * i;
    spec.min_order = 1 + (int)eng_rng_below(rng, 3);
    spec.max_order = spec.min_order + (int)eng_rng_below(rng, (uint64_t)(6 - spec.min_order));
    spec.heads = 1 + (int)eng_rng_below(rng, 16);
    spec.vocab = 2 + (int64_t)eng_rng_below(rng, (uint64_t)1 << (1 + eng_rng_below(rng, 30)));
    spec.pad = (int32_t)eng_rng_below(rng, (uint64_t)spec.vocab);
    spec.start = 2 + (int64_t)eng_rng_below(rng, (uint64_t)1 << eng_rng_below(rng, 50));
    assert_int_equal(eng_address_build(&spec, &address, &err), ENG_OK);
    return address;
}

/* About one id in eight is dead when `dead` is set; now and then the largest id and the pad. */
static inline int32_t random_id(EngRng *rng, const EngAddress *address, bool dead)
{
    switch (eng_rng_below(rng, 8)) {
    case 0:
        return dead ? ENG_TOKEN_DEAD : 0;
    case 1:
        return address->pad;
    case 2:
        return (int32_t)(address->vocab - 1);
    default:
        return (int32_t)eng_rng_below(rng, (uint64_t)address->vocab);
    }
}

static inline void random_ids(EngRng *rng, const EngAddress *address, bool dead, int32_t *ids,
                              int64_t n)
{
    for (int64_t i = 0; i < n; i++) ids[i] = random_id(rng, address, dead);
}

#endif
