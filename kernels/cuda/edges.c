/* The edges of a histogram's bins; see device.h. */
#include "kernels/cuda/device.h"

#include <math.h>
#include <string.h>

/* Floats in their order as whole numbers, and back. */
static int64_t rank_of(float value)
{
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits < 0 ? (int64_t)INT32_MIN - bits : bits;
}

static float float_of(int64_t rank)
{
    int32_t bits = (int32_t)(rank < 0 ? INT32_MIN - rank : rank);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void eng_cuda_histogram_edges(int (*bin_of)(float value), int n_bins, float *edges)
{
    int64_t low = rank_of(-INFINITY);
    for (int i = 0; i + 1 < n_bins; i++) {
        int64_t high = rank_of(INFINITY) + 1; /* a NaN: no value gets into the bin */
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (middle <= rank_of(INFINITY) && bin_of(float_of(middle)) <= i)
                low = middle + 1;
            else
                high = middle;
        }
        edges[i] = float_of(low);
    }
}
