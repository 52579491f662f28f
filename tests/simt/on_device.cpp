/* control.hpp for a real device: the same tests of kernels, compared with the same oracles, where
 * the hardware schedules. Without a device the program ends with 77. */
#include "control.hpp"

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

namespace simt
{
namespace
{
long g_begun;
char g_text[256];
} // namespace

void begin(const Options &)
{
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess || n < 1) {
        fprintf(stderr, "no device\n");
        exit(77);
    }
    g_begun++;
}

/* A device has memory enough, and nobody counts it. */
void fail_allocation(long) {}

long live_allocations(void)
{
    return 0;
}

const char *left_over(void)
{
    return nullptr;
}

int faults(void)
{
    cudaError_t error = cudaDeviceSynchronize();
    snprintf(g_text, sizeof g_text, "%s", cudaGetErrorString(error));
    return error != cudaSuccess;
}

Fault fault(int)
{
    return faults() ? Fault::bounds : Fault::none;
}

const char *fault_text(int)
{
    return g_text;
}

const char *fault_name(Fault)
{
    return g_text;
}

long launches_done(void)
{
    return g_begun;
}
} // namespace simt
