/* Every fault planted around kernels, in streams, events, copies, graphs and launches, is found
 * under every policy and seed; nothing is reported when it is left out; and what is never destroyed
 * is told.
 */
#include "planted_helpers.hpp"

#include <cublasLt.h>

namespace
{
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

bool pageable_target(bool broken)
{
    int host[64] = {0};
    cudaStream_t stream = new_stream();
    int *pinned = new_ints(64, true), *device = counted(64);
    cudaMemcpyAsync(broken ? host : pinned, device, 64 * sizeof(int), cudaMemcpyDeviceToHost,
                    stream);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    return true;
}

bool thread_stream(bool broken)
{
    cudaStream_t stream = new_stream();
    int *in = counted(64), *out = new_ints(64, false);
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, broken ? cudaStreamPerThread : stream, in, out);
    cudaDeviceSynchronize();
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

void launch_of(dim3 grid, dim3 block, size_t shared_bytes, Planted kernel, bool broken)
{
    cudaStream_t stream = new_stream();
    const int *in = counted(64);
    int *out = new_ints(64, false);
    ENG_LAUNCH(kernel, grid, block, shared_bytes, stream, in, out, broken);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
}

bool deep_block(bool broken)
{
    launch_of(dim3(1), broken ? dim3(1, 1, 65) : dim3(64), 0, large_static, false);
    return true;
}

bool tall_grid(bool broken)
{
    launch_of(dim3(1, broken ? 65536 : 1), dim3(64), 0, large_static, false);
    return true;
}

bool empty_grid(bool broken)
{
    launch_of(dim3(broken ? 0 : 1), dim3(64), 0, large_static, false);
    return true;
}

bool much_static(bool broken)
{
    launch_of(dim3(1), dim3(64), 0, large_static, broken);
    return true;
}

bool much_dynamic(bool broken)
{
    launch_of(dim3(1), dim3(64), broken ? 300 << 10 : 1024, large_static, false);
    return true;
}

bool no_dynamic(bool broken)
{
    launch_of(dim3(1), dim3(64), broken ? 0 : 1024, shared_before_start, false);
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
    cudaStreamSynchronize(cudaStreamLegacy);
    ENG_LAUNCH(far_row, dim3(1), dim3(1), 0, stream, table, out, row, row_ints, broken);
    cudaStreamSynchronize(stream);
    if (!broken) cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost);
    cudaStreamDestroy(stream);
    return result == 77;
}

/* A blocking copy of pageable memory is back when that has been read; a stream that does not block
 * does not wait until it has arrived. */
bool copy_on_its_way(bool broken)
{
    cudaStream_t stream = new_stream();
    int *in = counted(64), *out = new_ints(64, false), host[64] = {70}, result = 0;
    cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
    host[0] = 0;
    if (!broken) cudaStreamSynchronize(cudaStreamLegacy);
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, stream, in, out);
    cudaStreamSynchronize(stream);
    cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost);
    cudaStreamDestroy(stream);
    return result == 71;
}

/* The same within the device. */
bool set_on_its_way(bool broken)
{
    cudaStream_t stream = new_stream();
    int *first = counted(64), *in = counted(64), *out = new_ints(64, false), result = 0;
    cudaMemset(first, 0, 64 * sizeof(int));
    cudaMemcpy(in, first, 64 * sizeof(int), cudaMemcpyDeviceToDevice);
    if (!broken) cudaStreamSynchronize(cudaStreamLegacy);
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, stream, in, out);
    cudaStreamSynchronize(stream);
    cudaMemcpy(&result, out, sizeof result, cudaMemcpyDeviceToHost);
    cudaStreamDestroy(stream);
    return result == 1;
}

const Around around[] = {
    {"copy on its way", Fault::race_between_streams, true, copy_on_its_way},
    {"set on its way", Fault::race_between_streams, true, set_on_its_way},
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
    {"pageable target", Fault::pageable_copy, false, pageable_target},
    {"stream of the thread", Fault::legacy_stream, false, thread_stream},
    {"too many threads", Fault::bad_launch, false, too_many_threads},
    {"a block of 65 layers", Fault::bad_launch, false, deep_block},
    {"a grid of 65536 lines", Fault::bad_launch, false, tall_grid},
    {"no blocks", Fault::bad_launch, false, empty_grid},
    {"too much static shared memory", Fault::bad_launch, false, much_static},
    {"too much dynamic shared memory", Fault::bad_launch, false, much_dynamic},
    {"no dynamic shared memory", Fault::bad_launch, false, no_dynamic},
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

/* ---- what a program asks for ---- */

/* The second launch is a fault, after which nothing works. */
void test_failing_launch(void **)
{
    simt::Options options;
    options.failing_launch = 2, options.faults_stay = true;
    simt::begin(options);
    cudaStream_t stream = new_stream();
    int *in = counted(64), *out = new_ints(64, false);
    long done = simt::launches_done();
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, stream, in, out);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    ENG_LAUNCH(add_one, dim3(1), dim3(64), 0, stream, in, out);
    assert_int_equal(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
    expect(Fault::planted, "failing launch", options);
    assert_int_equal(simt::launches_done(), done + 1);
    assert_int_equal(cudaMemsetAsync(out, 0, 4, stream), cudaErrorIllegalAddress);
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    cudaStreamDestroy(stream);
    finish("failing launch");
}
} // namespace

int main(void)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_around),
        cmocka_unit_test(test_left_over),
        cmocka_unit_test(test_failing_launch),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
