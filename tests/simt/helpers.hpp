/* What the tests of kernels share: the simulated device, its memory, and verdicts. */
#ifndef ENG_TESTS_SIMT_HELPERS_H
#define ENG_TESTS_SIMT_HELPERS_H

#include "control.hpp"

#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>
extern "C" {
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/queue.h"
#include "kernels/ref/compare.h"
#include "kernels/ref/fp8.h"
}

inline EngErr g_err;

inline void ok(EngStatus status)
{
    if (status) fail_msg("%s", g_err.text);
}

inline void no_faults(const char *what)
{
    if (simt::faults()) fail_msg("%s: %s", what, simt::fault_text(0));
}

inline std::vector<void *> g_given, g_pinned; /* by allocate() and pinned() to the case */

/* The end of a case and, as a teardown, of a test: nothing that it made may be left over. */
inline int finish(void **)
{
    for (void *at : g_given) (void)cudaFree(at);
    for (void *at : g_pinned) (void)cudaFreeHost(at);
    g_given.clear(), g_pinned.clear();
    const char *left = simt::left_over();
    if (left) print_error("left over: %s\n", left);
    return left != nullptr;
}

#define CASES(test) cmocka_unit_test_teardown(test, finish)

/* The case before has ended. The process's main stream is nobody's to destroy. */
inline void begin_case(const simt::Options &options)
{
    static EngCudaStream *main;
    assert_int_equal(finish(nullptr), 0);
    simt::begin({});
    ok(eng_cuda_main(&main, &g_err));
    simt::begin(options);
}

/* A different order of threads, policy and seed for every case. */
inline void fresh_device(int number)
{
    begin_case({(simt::Order)(number % 3), (simt::Policy)(number % 4), (uint64_t)number + 1});
}

inline EngCudaStream *fresh_stream(int number)
{
    EngCudaStream *stream;
    fresh_device(number);
    ok(eng_cuda_stream_create(&stream, &g_err));
    return stream;
}

inline void *allocate(size_t bytes)
{
    void *at = nullptr;
    assert_int_equal(cudaMalloc(&at, bytes ? bytes : 1), cudaSuccess);
    g_given.push_back(at);
    return at;
}

inline void *pinned(size_t bytes)
{
    void *at = nullptr;
    assert_int_equal(cudaHostAlloc(&at, bytes, cudaHostAllocDefault), cudaSuccess);
    g_pinned.push_back(at);
    return at;
}

/* A copy of pageable memory that has arrived when this returns. */
inline void copy_in(void *at, const void *from, size_t bytes)
{
    cudaMemcpy(at, from, bytes, cudaMemcpyHostToDevice);
    cudaStreamSynchronize(cudaStreamLegacy);
}

template <class T> T *upload(const T *from, size_t n)
{
    void *at = allocate(n * sizeof(T));
    copy_in(at, from, n * sizeof(T));
    return static_cast<T *>(at);
}

template <class T> T *upload(const std::vector<T> &from)
{
    return upload(from.data(), from.size());
}

/* The same `bytes` behind an allocation's start, which is aligned for every access. */
template <class T> T *upload_off(const std::vector<T> &from, size_t bytes)
{
    uint8_t *at = static_cast<uint8_t *>(allocate(bytes + from.size() * sizeof(T))) + bytes;
    copy_in(at, from.data(), from.size() * sizeof(T));
    return reinterpret_cast<T *>(at);
}

template <class T> std::vector<T> download(const T *from, size_t n)
{
    std::vector<T> to(n);
    cudaMemcpy(to.data(), from, n * sizeof(T), cudaMemcpyDeviceToHost);
    return to;
}

inline std::vector<uint16_t> random_bf16(EngRng *rng, size_t n, double deviation)
{
    std::vector<uint16_t> values(n);
    for (uint16_t &value : values) value = eng_ref_bf16_round(deviation * eng_rng_normal(rng));
    return values;
}

inline void assert_residual(const EngComparison &residual, const char *what)
{
    if (residual.verdict == ENG_RESIDUAL_PASS) return;
    fail_msg("%s: element %lld is %.9g, want %.9g, limits %.3g %.3g", what,
             (long long)residual.worst, residual.got, residual.want, residual.limit.warn,
             residual.limit.pass);
}

/* One allocation more of each kind fails every time, until create() succeeds: every failure is an
 * error, and nothing leaks. */
template <class Failing>
void *create_despite(const EngKernel *kernel, const EngProblem &problem, Failing failing)
{
    void *state = nullptr;
    for (uint64_t nth = 1;; nth++) {
        uint64_t blocks = eng_mem_live_blocks();
        long allocations = simt::live_allocations();
        failing(nth);
        EngStatus status = kernel->create(&problem, &state, &g_err);
        failing(0);
        if (!status) return state;
        assert_int_equal(status, ENG_NO_MEMORY);
        assert_null(state);
        assert_int_equal(eng_mem_live_blocks(), blocks);
        assert_int_equal(simt::live_allocations(), allocations);
    }
}

/* create, run, destroy, as the harness does. */
inline void run_variant(EngOp op, const char *name, const EngProblem &problem, const EngArgs &args)
{
    const EngKernel *kernel = eng_kernel_find(op, name);
    assert_non_null(kernel);
    assert_int_equal(kernel->backend, ENG_CUDA);
    ok(kernel->supports(&problem, &g_err));
    uint64_t blocks = eng_mem_live_blocks();
    long allocations = simt::live_allocations();
    kernel->destroy(create_despite(kernel, problem, eng_mem_fail_at));
    void *state =
        create_despite(kernel, problem, [](uint64_t nth) { simt::fail_allocation((long)nth); });
    ok(kernel->run(state, &problem, &args, &g_err));
    kernel->destroy(state);
    assert_int_equal(eng_mem_live_blocks(), blocks);
    assert_int_equal(simt::live_allocations(), allocations);
    no_faults(name);
}

#endif
