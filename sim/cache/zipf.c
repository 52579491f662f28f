/* Che's approximation over blocks of ranks; see zipf.h. */
#include "sim/cache/zipf.h"

#include <math.h>

#include "base/mem.h"

#define EXACT_RANKS 4096 /* ranks with a block of their own; later blocks grow by this share */
#define BISECTIONS  200

typedef struct Block {
    double ranks, q; /* ranks in it, and the probability of each */
} Block;

static EngStatus make_blocks(int64_t n, double exponent, Block **out, int64_t *n_blocks,
                             EngErr *err)
{
    int64_t count = 0, room = 2 * EXACT_RANKS + (int64_t)(EXACT_RANKS * log((double)n + 1));
    Block *blocks;
    EngStatus status =
        eng_alloc_or((void **)&blocks, (size_t)room, sizeof *blocks, "Zipf ranks", err);
    if (status) return status;
    double sum = 0;
    for (int64_t first = 1; first <= n;) {
        int64_t width = first < EXACT_RANKS ? 1 : first / EXACT_RANKS;
        if (width > n - first + 1) width = n - first + 1;
        double middle = (double)first + (double)(width - 1) / 2;
        blocks[count] = (Block){(double)width, pow(middle, -exponent)};
        sum += blocks[count].ranks * blocks[count].q;
        count++;
        first += width;
    }
    for (int64_t i = 0; i < count; i++) blocks[i].q /= sum;
    *out = blocks;
    *n_blocks = count;
    return ENG_OK;
}

/* Distinct ranks asked for in `time` draws, or the share of draws that hit. */
static double sum_over(const Block *blocks, int64_t n, double time, int weighted)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double seen = -expm1(-blocks[i].q * time) * blocks[i].ranks;
        sum += weighted ? seen * blocks[i].q : seen;
    }
    return sum;
}

EngStatus eng_zipf_che_hit_rate(int64_t n, double exponent, int64_t capacity, double *rate,
                                EngErr *err)
{
    Block *blocks;
    int64_t n_blocks;
    if (n < 1 || capacity < 1 || !(exponent >= 0) || !isfinite(exponent))
        return ENG_FAIL(err, ENG_USAGE, "Zipf: %lld rows, exponent %g, a cache of %lld rows",
                        (long long)n, exponent, (long long)capacity);
    *rate = 1;
    if (capacity >= n) return ENG_OK;
    EngStatus status = make_blocks(n, exponent, &blocks, &n_blocks, err);
    if (status) return status;
    double low = 0, high = 1;
    while (sum_over(blocks, n_blocks, high, 0) < (double)capacity) high *= 2;
    for (int i = 0; i < BISECTIONS && high - low > 1e-12 * high; i++) {
        double middle = (low + high) / 2;
        if (sum_over(blocks, n_blocks, middle, 0) < (double)capacity)
            low = middle;
        else
            high = middle;
    }
    *rate = sum_over(blocks, n_blocks, high, 1);
    eng_free(blocks);
    return ENG_OK;
}
