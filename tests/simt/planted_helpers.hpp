/* What the tests of planted faults share: small buffers, verdicts, and the end of a case. */
#ifndef ENG_TESTS_SIMT_PLANTED_HELPERS_H
#define ENG_TESTS_SIMT_PLANTED_HELPERS_H

#include "planted.cuh"

#include "control.hpp"

#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
extern "C" {
#include <cmocka.h>
}

using simt::Fault;
using simt::Order;
using simt::Policy;

const int blocks = 3, threads = 64, n_in = 256, n_out = blocks * threads;
const int seeds = 10;

inline cudaStream_t new_stream(void)
{
    cudaStream_t stream;
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    return stream;
}

inline cudaEvent_t new_event(void)
{
    cudaEvent_t event;
    assert_int_equal(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    return event;
}

inline std::vector<int *> g_device, g_pinned; /* allocations of the case */

inline int *new_ints(int n, bool pinned)
{
    void *at = nullptr;
    size_t bytes = (size_t)n * sizeof(int);
    cudaError_t error = pinned ? cudaHostAlloc(&at, bytes, 0) : cudaMalloc(&at, bytes);
    assert_int_equal(error, cudaSuccess);
    (pinned ? g_pinned : g_device).push_back(static_cast<int *>(at));
    return static_cast<int *>(at);
}

/* A case has ended, and all that it made is gone. */
inline void finish(const char *name)
{
    for (int *at : g_device) (void)cudaFree(at);
    for (int *at : g_pinned) (void)cudaFreeHost(at);
    g_device.clear(), g_pinned.clear();
    if (simt::left_over()) fail_msg("%s: %s left over", name, simt::left_over());
}

/* Device numbers 10, 11, 12, .. */
inline int *counted(int n)
{
    int *host = static_cast<int *>(malloc((size_t)n * sizeof(int)));
    int *device = new_ints(n, false);
    for (int i = 0; i < n; i++) host[i] = 10 + i;
    cudaMemcpy(device, host, (size_t)n * sizeof(int), cudaMemcpyHostToDevice);
    cudaStreamSynchronize(cudaStreamLegacy);
    free(host);
    return device;
}

typedef void (*Planted)(const int *in, int *out, bool broken);

inline void expect(Fault want, const char *name, const simt::Options &options)
{
    Fault got = simt::fault(0);
    if (got == want) return;
    fail_msg("%s (order %d, policy %d, seed %d): want '%s', got '%s'", name, (int)options.order,
             (int)options.policy, (int)options.seed, simt::fault_name(want), simt::fault_text(0));
}

#endif
