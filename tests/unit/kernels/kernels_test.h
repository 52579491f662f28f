/* Helpers of the kernel tests: running a variant from start to end, random numbers in every format,
 * and buffers that start one element away from any alignment.
 */
#ifndef ENG_TESTS_KERNELS_TEST_H
#define ENG_TESTS_KERNELS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include <engram/kernels.h>

#include "base/mem.h"
#include "base/rng.h"
#include "kernels/ref/compare.h"
#include "kernels/ref/fp8.h"

#define LENGTH_OF(array) ((int)(sizeof(array) / sizeof *(array)))

/* create, run, destroy; false when the variant does not support the problem on this machine. */
static inline bool run_kernel(const EngKernel *kernel, const EngProblem *problem,
                              const EngArgs *args)
{
    EngErr err = {0};
    void *state = NULL;
    if (kernel->supports(problem, &err) != ENG_OK) {
        assert_true(err.text[0] != 0);
        return false;
    }
    if (kernel->create && kernel->create(problem, &state, &err) != ENG_OK)
        fail_msg("%s: create: %s", kernel->name, err.text);
    if (kernel->run(state, problem, args, &err) != ENG_OK)
        fail_msg("%s: run: %s", kernel->name, err.text);
    if (kernel->destroy) kernel->destroy(state);
    return true;
}

/* Missing instructions are the reason for a refusal. */
static inline bool is_isa(const EngErr *why)
{
    return strstr(why->text, "which this processor lacks") ||
           strstr(why->text, "for x86-64 processors only");
}

/* run_kernel for problems that only missing instructions keep a variant from, as it then says (and
 * test_isa.c sees to it that they are missing). */
static inline bool run_if_isa(const EngKernel *kernel, const EngProblem *problem,
                              const EngArgs *args)
{
    EngErr why = {0};
    if (run_kernel(kernel, problem, args)) return true;
    (void)kernel->supports(problem, &why);
    if (!is_isa(&why)) fail_msg("%s refuses a plain problem: %s", kernel->name, why.text);
    return false;
}

/* The CPU's variants, which come first: those of a device take its memory (tests/simt). */
static inline const EngKernel *const *cpu_kernels(EngOp op, int *n)
{
    const EngKernel *const *kernels = eng_kernels(op, n);
    while (*n && kernels[*n - 1]->backend != ENG_CPU) --*n;
    return kernels;
}

static inline void assert_residual(const EngComparison *residual, const char *what)
{
    if (residual->verdict == ENG_RESIDUAL_PASS) return;
    fail_msg("%s: %s, element %lld: got %.9g, want %.9g, limits %.3g %.3g (%lld failed of %lld)",
             what, eng_residual_verdict_name(residual->verdict), (long long)residual->worst,
             residual->got, residual->want, residual->limit.warn, residual->limit.pass,
             (long long)residual->failed, (long long)residual->count);
}

static inline uint16_t random_bf16(EngRng *rng, double deviation)
{
    return eng_ref_bf16_round(deviation * eng_rng_normal(rng));
}

static inline void fill_bf16(EngRng *rng, uint16_t *out, size_t n, double deviation)
{
    for (size_t i = 0; i < n; i++) out[i] = random_bf16(rng, deviation);
}

/* e4m3fn codes without NaN, and scale bytes around 2^-8. */
static inline void fill_fp8(EngRng *rng, uint8_t *codes, size_t n, uint8_t *scales, size_t n_scales)
{
    for (size_t i = 0; i < n; i++) {
        codes[i] = (uint8_t)eng_rng_u64(rng);
        if ((codes[i] & 0x7f) == 0x7f) codes[i] ^= 1;
    }
    for (size_t i = 0; i < n_scales; i++) scales[i] = (uint8_t)(0x74 + eng_rng_below(rng, 8));
}

/* The same bytes at an address that is 1 modulo 64 (times `size` for typed buffers), in a block of
 * exactly the size needed, so that a sanitizer sees a step beyond the end. */
typedef struct Unaligned {
    uint8_t *block, *bytes;
} Unaligned;

static inline Unaligned unaligned_copy(const void *from, size_t n, size_t offset)
{
    Unaligned u = {.block = malloc(n + 64 + offset)};
    assert_non_null(u.block);
    /* The end of the data is the end of the block. */
    u.bytes = u.block + 64 + offset;
    if (from && n) memcpy(u.bytes, from, n);
    return u;
}

/* A whole layer of V4.1 (facts section 1), 101 GB in two sparse files of the working folder. Only
 * these rows are there: the first of some heads and the last of all; all values of row rows[i] are
 * full_layer_value(i). */
enum { FULL_LAYER_DIMS = 256, FULL_LAYER_KNOWN = 5 };

static const int64_t full_layer_rows[FULL_LAYER_KNOWN] = {0, 16000057, 192001740, 368005705,
                                                          384006167};

static inline double full_layer_value(int i)
{
    return (1 + i / 8.0) * (double)(1 << i);
}

static inline const uint8_t *map_sparse(int64_t rows, size_t row_bytes, const uint8_t *fills)
{
    char path[] = "layer_XXXXXX", row[FULL_LAYER_DIMS];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    unlink(path);
    assert_int_equal(ftruncate(fd, (off_t)rows * (off_t)row_bytes), 0);
    for (int i = 0; i < FULL_LAYER_KNOWN; i++) {
        memset(row, fills[i], row_bytes);
        assert_int_equal(pwrite(fd, row, row_bytes, full_layer_rows[i] * (off_t)row_bytes),
                         row_bytes);
    }
    void *map = mmap(NULL, (size_t)rows * row_bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
    assert_true(map != MAP_FAILED);
    close(fd);
    return map;
}

static inline EngTable map_full_layer(void)
{
    static const uint8_t values[] = {0x38, 0x39, 0x3a, 0x3b, 0x3c}; /* 1.0, 1.125, .. */
    static const uint8_t scales[] = {127, 128, 129, 130, 131};
    const int64_t rows = 384006168;
    return (EngTable){.format = ENG_ROW_FP8,
                      .row_dims = FULL_LAYER_DIMS,
                      .rows = rows,
                      .values = map_sparse(rows, FULL_LAYER_DIMS, values),
                      .scales = map_sparse(rows, FULL_LAYER_DIMS / 32, scales)};
}

static inline void unmap_full_layer(const EngTable *table)
{
    munmap((void *)(uintptr_t)table->values, (size_t)table->rows * FULL_LAYER_DIMS);
    munmap((void *)(uintptr_t)table->scales, (size_t)table->rows * (FULL_LAYER_DIMS / 32));
}

#endif
