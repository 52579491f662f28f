/* Every planted fault is found, whatever the order of threads, the policy of streams and the seed;
 * and nothing is reported when the fault is left out.
 */
#include "planted.cuh"

#include "control.hpp"

#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cublasLt.h>
extern "C" {
#include <cmocka.h>
}

using simt::Fault;
using simt::Order;
using simt::Policy;

namespace
{
const int blocks = 3, threads = 64, n_in = 256, n_out = blocks * threads;
const int seeds = 10;

cudaStream_t new_stream(void)
{
    cudaStream_t stream;
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    return stream;
}

cudaEvent_t new_event(void)
{
    cudaEvent_t event;
    assert_int_equal(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    return event;
}

std::vector<int *> g_device, g_pinned; /* allocations of the case */

int *new_ints(int n, bool pinned)
{
    void *at = nullptr;
    size_t bytes = (size_t)n * sizeof(int);
    cudaError_t error = pinned ? cudaHostAlloc(&at, bytes, 0) : cudaMalloc(&at, bytes);
    assert_int_equal(error, cudaSuccess);
    (pinned ? g_pinned : g_device).push_back(static_cast<int *>(at));
    return static_cast<int *>(at);
}

/* A case has ended, and all that it made is gone. */
void finish(const char *name)
{
    for (int *at : g_device) (void)cudaFree(at);
    for (int *at : g_pinned) (void)cudaFreeHost(at);
    g_device.clear(), g_pinned.clear();
    if (simt::left_over()) fail_msg("%s: %s left over", name, simt::left_over());
}

/* Device numbers 10, 11, 12, .. */
int *counted(int n)
{
    int *host = static_cast<int *>(malloc((size_t)n * sizeof(int)));
    int *device = new_ints(n, false);
    for (int i = 0; i < n; i++) host[i] = 10 + i;
    cudaMemcpy(device, host, (size_t)n * sizeof(int), cudaMemcpyHostToDevice);
    free(host);
    return device;
}

void expect(Fault want, const char *name, const simt::Options &options)
{
    Fault got = simt::fault(0);
    if (got == want) return;
    fail_msg("%s (order %d, policy %d, seed %d): want '%s', got '%s'", name, (int)options.order,
             (int)options.policy, (int)options.seed, simt::fault_name(want), simt::fault_text(0));
}

/* ---- faults of kernels ---- */

typedef void (*Planted)(const int *in, int *out, bool broken);

void run_planted(const char *name, Planted kernel, Fault want, bool broken,
                 const simt::Options &options)
{
    simt::begin(options);
    cudaStream_t stream = new_stream();
    const int *in = counted(n_in);
    int *out = new_ints(n_out, false);
    long done = simt::launches_done();
    cudaMemsetAsync(out, 0, n_out * sizeof(int), stream);
    ENG_LAUNCH(kernel, dim3(blocks), dim3(threads), 1024, stream, in, out, broken);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    finish(name);
    expect(broken ? want : Fault::none, name, options);
    assert_int_equal(simt::launches_done() - done, broken ? 0 : 1);
}

#define KERNEL(name, fault)                                                                        \
    {                                                                                              \
#name, name, Fault::fault                                                                  \
    }

void test_kernels(void **)
{
    static const struct {
        const char *name;
        Planted kernel;
        Fault fault;
    } all[] = {
        KERNEL(neighbour_sum, race_in_block),
        KERNEL(warp_neighbour, race_in_block),
        KERNEL(early_exit, divergent_barrier),
        KERNEL(two_barriers, divergent_barrier),
        KERNEL(lane_from_outside, inactive_lane),
        KERNEL(full_mask_in_branch, divergent_collective),
        KERNEL(shared_past_end, shared_bounds),
        KERNEL(shared_before_start, shared_bounds),
        KERNEL(shared_misaligned, misaligned),
        KERNEL(shared_unwritten, uninitialised),
        KERNEL(global_past_end, bounds),
        KERNEL(global_far, foreign_memory),
        KERNEL(global_misaligned, misaligned),
        KERNEL(same_cell, race_in_block),
        KERNEL(cell_of_all_blocks, race_between_blocks),
        KERNEL(copy_too_early, copy_in_flight),
        KERNEL(copy_never_awaited, copy_not_awaited),
        KERNEL(mma_in_branch, divergent_collective),
    };
    for (const auto &one : all)
        for (Order order : {Order::forward, Order::reverse, Order::random})
            for (int seed = 1; seed <= (order == Order::random ? seeds : 1); seed++)
                for (bool broken : {false, true})
                    run_planted(one.name, one.kernel, one.fault, broken,
                                {order, Policy::lazy, (uint64_t)seed, 1000000});
}

/* The fault's name depends on who comes first; that there is one does not. */
void test_kernels_of_several_names(void **)
{
    static const struct {
        Planted kernel;
        Fault one, other;
    } all[] = {
        {ended_lane, Fault::inactive_lane, Fault::divergent_collective},
        {mma_of_ended_lane, Fault::inactive_lane, Fault::divergent_collective},
        {copy_without_barrier, Fault::copy_in_flight, Fault::race_in_block},
        {double_buffer, Fault::copy_in_flight, Fault::race_in_block},
    };
    for (const auto &one : all)
        for (Order order : {Order::forward, Order::reverse, Order::random}) {
            run_planted("control", one.kernel, one.one, false, {order, Policy::lazy, 1, 1000000});
            simt::begin({order, Policy::lazy, 1, 1000000});
            cudaStream_t stream = new_stream();
            const int *in = counted(n_in);
            int *out = new_ints(n_out, false);
            ENG_LAUNCH(one.kernel, dim3(blocks), dim3(threads), 1024, stream, in, out, true);
            cudaStreamSynchronize(stream);
            cudaStreamDestroy(stream);
            finish("several names");
            assert_int_equal(simt::faults(), 1);
            if (simt::fault(0) != one.one && simt::fault(0) != Fault::uninitialised)
                expect(one.other, "several names", {order, Policy::lazy, 1, 1000000});
        }
}

/* The product that lanes make together, with fragments where the instruction wants them. */
void test_mma(void **)
{
    uint16_t a[16 * 16], b[16 * 8];
    float out[16 * 8];
    simt::begin({Order::random, Policy::lazy, 3, 1000000});
    cudaStream_t stream = new_stream();
    for (int i = 0; i < 256; i++) a[i] = (uint16_t)(0x3f80 + i * 37 % 256); /* 1 to 4 */
    for (int i = 0; i < 128; i++) b[i] = (uint16_t)(0xbf80 + i * 29 % 128); /* -1 to -2 */
    uint16_t *a_there = reinterpret_cast<uint16_t *>(new_ints(16 * 8, false));
    uint16_t *b_there = reinterpret_cast<uint16_t *>(new_ints(8 * 8, false));
    float *out_there = reinterpret_cast<float *>(new_ints(16 * 8, false));
    cudaMemcpy(a_there, a, sizeof a, cudaMemcpyHostToDevice);
    cudaMemcpy(b_there, b, sizeof b, cudaMemcpyHostToDevice);
    ENG_LAUNCH(mma_product, dim3(1), dim3(32), 0, stream, a_there, b_there, out_there);
    cudaStreamSynchronize(stream);
    cudaMemcpy(out, out_there, sizeof out, cudaMemcpyDeviceToHost);
    expect(Fault::none, "mma", {});
    for (int row = 0; row < 16; row++)
        for (int column = 0; column < 8; column++) {
            double sum = 0;
            for (int k = 0; k < 16; k++) {
                uint32_t left = (uint32_t)a[16 * row + k] << 16;
                uint32_t right = (uint32_t)b[8 * k + column] << 16;
                float x, y;
                memcpy(&x, &left, 4), memcpy(&y, &right, 4);
                sum += (double)x * y;
            }
            assert_true(out[8 * row + column] <= sum * (1 - 0x1p-22));
            assert_true(out[8 * row + column] >= sum * (1 + 0x1p-22));
        }
    cudaStreamDestroy(stream);
    finish("mma");
}

/* ---- faults around kernels ---- */

struct Around {
    const char *name;
    Fault fault;
    bool wrong_result;        /* a broken run also gives a wrong number under some seed */
    bool (*run)(bool broken); /* whether the result is right */
};

/* Producer in one stream, consumer in another. */
bool missing_wait(bool broken)
{
    cudaStream_t a = new_stream(), b = new_stream();
    cudaEvent_t event = new_event();
    int *in = counted(64), *middle = counted(64), *out = new_ints(64, false), result = 0;
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, a, in, middle);
    cudaEventRecord(event, a);
    if (!broken) cudaStreamWaitEvent(b, event, 0);
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, b, middle, out);
    cudaStreamSynchronize(b);
    cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost);
    cudaStreamSynchronize(a);
    cudaEventDestroy(event), cudaStreamDestroy(a), cudaStreamDestroy(b);
    return result == 12;
}

bool event_too_early(bool broken)
{
    cudaStream_t a = new_stream(), b = new_stream();
    cudaEvent_t event = new_event();
    int *in = counted(64), *middle = counted(64), *out = new_ints(64, false), result = 0;
    if (broken) cudaEventRecord(event, a);
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, a, in, middle);
    if (!broken) cudaEventRecord(event, a);
    cudaStreamWaitEvent(b, event, 0);
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, b, middle, out);
    cudaStreamSynchronize(b);
    cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost);
    cudaStreamSynchronize(a);
    cudaEventDestroy(event), cudaStreamDestroy(a), cudaStreamDestroy(b);
    return result == 12;
}

bool two_writers(bool broken)
{
    cudaStream_t a = new_stream(), b = broken ? new_stream() : a;
    int *in = counted(128), *out = new_ints(64, false), result = 0;
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, a, in, out);
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, b, in + 64, out);
    cudaDeviceSynchronize();
    cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost);
    cudaStreamDestroy(a);
    if (broken) cudaStreamDestroy(b);
    return result == 75;
}

/* Two readers in different streams, then a writer that waits for one of them only. */
bool reader_forgotten(bool broken)
{
    cudaStream_t a = new_stream(), b = new_stream(), c = new_stream();
    cudaEvent_t from_a = new_event(), from_b = new_event();
    int *in = counted(64), *more = counted(64), *x = new_ints(64, false), *y = new_ints(64, false);
    int result = 0;
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, a, in, x);
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, b, in, y);
    cudaEventRecord(from_a, a), cudaEventRecord(from_b, b);
    cudaStreamWaitEvent(c, from_b, 0);
    if (!broken) cudaStreamWaitEvent(c, from_a, 0);
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, c, more, in);
    cudaStreamSynchronize(c);
    cudaDeviceSynchronize();
    cudaMemcpy(&result, x, sizeof result, cudaMemcpyDeviceToHost);
    cudaEventDestroy(from_a), cudaEventDestroy(from_b);
    cudaStreamDestroy(a), cudaStreamDestroy(b), cudaStreamDestroy(c);
    return result == 11;
}

bool buffer_reused(bool broken)
{
    cudaStream_t stream = new_stream();
    int *host = new_ints(64, true), *device = new_ints(64, false), result = 0;
    for (int i = 0; i < 64; i++) host[i] = i;
    cudaMemcpyAsync(device, host, 64 * sizeof(int), cudaMemcpyHostToDevice, stream);
    if (!broken) cudaStreamSynchronize(stream);
    host[5] = -1;
    cudaStreamSynchronize(stream);
    cudaMemcpy(&result, device + 5, sizeof result, cudaMemcpyDeviceToHost);
    cudaStreamDestroy(stream);
    return result == 5;
}

bool result_read_early(bool broken)
{
    cudaStream_t stream = new_stream();
    int *host = new_ints(64, true), *in = counted(64), *out = new_ints(64, false);
    for (int i = 0; i < 64; i++) host[i] = 0;
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, stream, in, out);
    cudaMemcpyAsync(host, out, 64 * sizeof(int), cudaMemcpyDeviceToHost, stream);
    if (!broken) cudaStreamSynchronize(stream);
    int result = host[3];
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    return result == 14;
}

/* A side stream forked inside a capture, whose result the main stream uses. */
bool unjoined(bool broken)
{
    cudaStream_t main = new_stream(), side = new_stream();
    cudaEvent_t fork = new_event(), join = new_event();
    int *in = counted(64), *out = new_ints(64, false), result = 0;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamBeginCapture(main, cudaStreamCaptureModeGlobal);
    cudaEventRecord(fork, main);
    cudaStreamWaitEvent(side, fork, 0);
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, side, in, out);
    cudaEventRecord(join, side);
    if (!broken) cudaStreamWaitEvent(main, join, 0);
    cudaError_t error = cudaStreamEndCapture(main, &graph);
    assert_int_equal(error, broken ? cudaErrorStreamCaptureUnjoined : cudaSuccess);
    if (!error) {
        assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
        for (int i = 0; i < 3; i++) cudaGraphLaunch(exec, main);
        cudaStreamSynchronize(main);
        cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost);
        cudaGraphExecDestroy(exec), cudaGraphDestroy(graph);
    }
    cudaEventDestroy(fork), cudaEventDestroy(join);
    cudaStreamDestroy(main), cudaStreamDestroy(side);
    return result == 11;
}

/* Joined, but after the kernel that needs the side stream's result. */
bool joined_too_late(bool broken)
{
    cudaStream_t main = new_stream(), side = new_stream();
    cudaEvent_t fork = new_event(), join = new_event();
    int *in = counted(64), *middle = counted(64), *out = new_ints(64, false), result = 0;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStreamBeginCapture(main, cudaStreamCaptureModeGlobal);
    cudaEventRecord(fork, main);
    cudaStreamWaitEvent(side, fork, 0);
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, side, in, middle);
    cudaEventRecord(join, side);
    if (!broken) cudaStreamWaitEvent(main, join, 0);
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, main, middle, out);
    if (broken) cudaStreamWaitEvent(main, join, 0);
    assert_int_equal(cudaStreamEndCapture(main, &graph), cudaSuccess);
    assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    cudaGraphLaunch(exec, main);
    cudaStreamSynchronize(main);
    cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost);
    cudaGraphExecDestroy(exec), cudaGraphDestroy(graph);
    cudaEventDestroy(fork), cudaEventDestroy(join);
    cudaStreamDestroy(main), cudaStreamDestroy(side);
    return result == 12;
}

bool wait_in_capture(bool broken)
{
    cudaStream_t stream = new_stream();
    int *in = counted(64), *out = new_ints(64, false);
    cudaGraph_t graph;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, stream, in, out);
    if (broken) assert_int_equal(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    return true;
}

bool capture_of_outside(bool broken)
{
    cudaStream_t stream = new_stream(), other = new_stream();
    cudaEvent_t event = new_event();
    int *in = counted(64), *out = new_ints(64, false);
    cudaGraph_t graph;
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, other, in, out);
    cudaEventRecord(event, other);
    if (!broken) cudaStreamWaitEvent(stream, event, 0);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    if (broken) cudaStreamWaitEvent(stream, event, 0);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphDestroy(graph);
    cudaDeviceSynchronize();
    cudaEventDestroy(event), cudaStreamDestroy(stream), cudaStreamDestroy(other);
    return true;
}

bool freed(bool broken)
{
    cudaStream_t stream = new_stream();
    int *in = counted(64), *out = new_ints(64, false);
    if (broken) cudaFree(in);
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, stream, in, out);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    return true;
}

bool host_pointer(bool broken)
{
    static int host[64];
    cudaStream_t stream = new_stream();
    int *in = counted(64), *out = new_ints(64, false);
    int *heap = static_cast<int *>(calloc(64, sizeof(int)));
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, stream, in, broken ? heap : out);
    cudaStreamSynchronize(stream);
    if (!broken) cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    cudaStreamDestroy(stream);
    free(heap);
    return true;
}

bool host_reads_device(bool broken)
{
    int *in = broken ? counted(64) : new_ints(64, true);
    volatile int *at = in;
    return at[3] != 0;
}

bool unwritten_input(bool broken)
{
    cudaStream_t stream = new_stream();
    int *in = broken ? new_ints(64, false) : counted(64), *out = new_ints(64, false);
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, stream, in, out);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    return true;
}

bool pageable(bool broken)
{
    int host[64] = {0};
    cudaStream_t stream = new_stream();
    int *pinned = new_ints(64, true), *device = new_ints(64, false);
    pinned[0] = 1;
    cudaMemcpyAsync(device, broken ? host : pinned, 64 * sizeof(int), cudaMemcpyHostToDevice,
                    stream);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    return true;
}

bool no_stream(bool broken)
{
    cudaStream_t stream = new_stream();
    int *in = counted(64), *out = new_ints(64, false);
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, broken ? nullptr : stream, in, out);
    cudaDeviceSynchronize();
    cudaStreamDestroy(stream);
    return true;
}

bool too_many_threads(bool broken)
{
    cudaStream_t stream = new_stream();
    int *in = counted(64), *out = new_ints(64, false);
    ENG_LAUNCH(add_one, dim3(1), dim3(broken ? 1056 : 64), 0, stream, in, out);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    return true;
}

bool destroyed_twice(bool broken)
{
    cudaEvent_t event = new_event();
    assert_int_equal(cudaEventDestroy(event), cudaSuccess);
    if (broken) assert_int_equal(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
    return true;
}

/* A table of 6 GB of which two rows exist; 32 bits of offset lead to neither. */
bool short_offset(bool broken)
{
    const int row_ints = 64, rows = 24 << 20, row = 20000003;
    cudaStream_t stream = new_stream();
    int *table = new_ints(rows * row_ints, false), *at = table + (size_t)row * row_ints;
    int *out = new_ints(1, false), value = 77, result = 0;
    cudaMemcpy(at, &value, sizeof value, cudaMemcpyHostToDevice);
    ENG_LAUNCH(far_row, dim3(1), dim3(1), 0, stream, table, out, row, row_ints, broken);
    cudaStreamSynchronize(stream);
    if (!broken) cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost);
    cudaStreamDestroy(stream);
    return result == 77;
}

const Around around[] = {
    {"missing stream wait", Fault::race_between_streams, true, missing_wait},
    {"event recorded too early", Fault::race_between_streams, true, event_too_early},
    {"two writers", Fault::race_between_streams, true, two_writers},
    {"a reader forgotten", Fault::race_between_streams, false, reader_forgotten},
    {"host buffer reused", Fault::race_with_host, true, buffer_reused},
    {"result read early", Fault::race_with_host, true, result_read_early},
    {"side stream not joined", Fault::capture_unjoined, false, unjoined},
    {"joined too late", Fault::race_between_streams, true, joined_too_late},
    {"wait during capture", Fault::capture_sync, false, wait_in_capture},
    {"capture of outside work", Fault::capture_isolation, false, capture_of_outside},
    {"use after free", Fault::use_after_free, false, freed},
    {"destroyed twice", Fault::use_after_free, false, destroyed_twice},
    {"kernel writes host memory", Fault::foreign_memory, false, host_pointer},
    {"host reads device memory", Fault::foreign_memory, false, host_reads_device},
    {"input never written", Fault::uninitialised, false, unwritten_input},
    {"pageable memory", Fault::pageable_copy, false, pageable},
    {"legacy stream", Fault::legacy_stream, false, no_stream},
    {"too many threads", Fault::bad_launch, false, too_many_threads},
    {"32-bit row offset", Fault::uninitialised, true, short_offset},
};

void test_around(void **)
{
    for (const Around &one : around)
        for (Policy policy : {Policy::lazy, Policy::random, Policy::priority, Policy::eager}) {
            int wrong = 0;
            for (uint64_t seed = 1; seed <= (uint64_t)seeds; seed++) {
                simt::Options options = {Order::random, policy, seed, 1000000};
                simt::begin(options);
                assert_true(one.run(false));
                finish(one.name);
                expect(Fault::none, one.name, options);
                simt::begin(options);
                wrong += !one.run(true);
                finish(one.name);
                expect(one.fault, one.name, options);
            }
            if (one.wrong_result && policy == Policy::random && !wrong)
                fail_msg("%s: no wrong result in %d seeds", one.name, seeds);
        }
}

/* ---- what is never destroyed ---- */

void stream_left(bool broken)
{
    cudaStream_t stream = new_stream();
    if (!broken) cudaStreamDestroy(stream);
}

void event_left(bool broken)
{
    cudaEvent_t event = new_event();
    if (!broken) cudaEventDestroy(event);
}

/* Destroys graph and executable, or one of them. */
void capture(bool graph_too, bool executable_too)
{
    cudaStream_t stream = new_stream();
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    int *in = counted(64), *out = new_ints(64, false);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, stream, in, out);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    if (graph_too) cudaGraphDestroy(graph);
    if (executable_too) cudaGraphExecDestroy(exec);
    cudaStreamDestroy(stream);
    cudaFree(in), cudaFree(out);
}

void graph_left(bool broken)
{
    capture(!broken, true);
}

void executable_left(bool broken)
{
    capture(true, !broken);
}

void handle_left(bool broken)
{
    cublasLtHandle_t handle;
    cublasLtCreate(&handle);
    if (!broken) cublasLtDestroy(handle);
}

void descriptions_left(bool broken)
{
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t layout;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatrixLayoutCreate(&layout, CUDA_R_16BF, 64, 8, 64);
    cublasLtMatmulPreferenceCreate(&preference);
    if (broken) return;
    cublasLtMatmulDescDestroy(product), cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulPreferenceDestroy(preference);
}

void device_memory_left(bool broken)
{
    void *at;
    cudaMalloc(&at, 64);
    if (!broken) cudaFree(at);
}

/* The broken one gives it back as if it were the device's, which does not. */
void pinned_memory_left(bool broken)
{
    void *at;
    cudaHostAlloc(&at, 64, 0);
    assert_int_equal(broken ? cudaFree(at) : cudaFreeHost(at),
                     broken ? cudaErrorInvalidValue : cudaSuccess);
}

void test_left_over(void **)
{
    static const struct {
        const char *text;
        void (*run)(bool broken);
    } all[] = {
        {"1 stream", stream_left},
        {"1 event", event_left},
        {"1 graph", graph_left},
        {"1 executable graph", executable_left},
        {"1 library handle", handle_left},
        {"3 library descriptions", descriptions_left},
        {"1 device allocation", device_memory_left},
        {"1 pinned allocation", pinned_memory_left},
    };
    for (const auto &one : all) {
        simt::begin({});
        g_device.clear();
        one.run(false);
        assert_null(simt::left_over());
        one.run(true);
        assert_non_null(simt::left_over());
        assert_string_equal(simt::left_over(), one.text);
        simt::begin({}); /* what was there before is not asked for */
        assert_null(simt::left_over());
    }
    g_device.clear();
}

void test_stuck(void **)
{
    const simt::Options options = {Order::forward, Policy::lazy, 1, 1000000};
    run_planted("endless", endless, Fault::stuck, true, options);
    run_planted("endless", endless, Fault::stuck, false, options);
}

void test_texts_name_the_place(void **)
{
    run_planted("global_past_end", global_past_end, Fault::bounds, true,
                {Order::forward, Policy::lazy, 1, 1000000});
    assert_non_null(strstr(simt::fault_text(0), "block 2 thread 63"));
}
} // namespace

int main(void)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_mma),
        cmocka_unit_test(test_kernels_of_several_names),
        cmocka_unit_test(test_around),
        cmocka_unit_test(test_left_over),
        cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_texts_name_the_place),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
