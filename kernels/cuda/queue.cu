/* The main stream, memory, events, graphs and the measured window; see queue.h. */
#include "kernels/cuda/queue.h"

#include "kernels/cuda/errors.cuh"
#include "kernels/cuda/launch.cuh"

extern "C" {
#include "base/mem.h"
}

#define FLOOR_TRIES 21

struct EngCudaGraph {
    cudaGraphExec_t exec;
};

/* One thread of a process speaks to the device. */
static cudaStream_t g_main;
static cudaEvent_t g_opened, g_closed;
static bool g_window, g_capture;
static long g_before_window, g_before_capture; /* launches */

EngStatus eng_cuda_main(EngCudaStream **stream, EngErr *err)
{
    EngStatus status = ENG_OK;
    if (!g_main) status = eng_cuda_stream_create(&g_main, err);
    *stream = g_main;
    return status;
}

bool eng_cuda_used(void)
{
    return g_main != nullptr;
}

bool eng_cuda_hurries(void)
{
    return g_window || g_capture;
}

EngStatus eng_cuda_settle(EngCudaStream *stream, EngErr *err)
{
    return eng_cuda_hurries() ? ENG_OK : eng_cuda_wait(stream, err);
}

bool eng_cuda_lost(void)
{
    return eng_cuda_error_stays;
}

/* ---- memory ---- */

EngStatus eng_cuda_alloc(EngCudaPlace place, size_t bytes, void **at, EngErr *err)
{
    size_t some = bytes ? bytes : 1;
    *at = nullptr;
    cudaError_t error = place == ENG_CUDA_PINNED
                            ? cudaHostAlloc(at, some, cudaHostAllocPortable | cudaHostAllocMapped)
                            : cudaMalloc(at, some);
    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return ENG_FAIL(err, ENG_NO_MEMORY, "out of %s memory: %zu bytes wanted",
                        place == ENG_CUDA_PINNED ? "pinned" : "device", bytes);
    }
    return eng_cuda_check(error, "memory", err);
}

void eng_cuda_free(EngCudaPlace place, void *at)
{
    if (at) (void)(place == ENG_CUDA_PINNED ? cudaFreeHost(at) : cudaFree(at));
}

EngStatus eng_cuda_copy(void *to, const void *from, size_t bytes, EngErr *err)
{
    EngStatus status = g_main ? eng_cuda_wait(g_main, err) : ENG_OK;
    if (status || !bytes) return status;
    status = eng_cuda_check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "copy", err);
    /* What comes from pageable memory may be on its way yet, and our streams would not wait. */
    return status ? status : eng_cuda_wait(cudaStreamLegacy, err);
}

EngStatus eng_cuda_copy_async(void *to, const void *from, size_t bytes, EngCudaStream *stream,
                              EngErr *err)
{
    if (!bytes) return ENG_OK;
    return eng_cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "copy", err);
}

/* ---- events ---- */

EngStatus eng_cuda_event_create(EngCudaEvent **event, EngErr *err)
{
    *event = nullptr;
    return eng_cuda_check(cudaEventCreateWithFlags(event, cudaEventDefault), "event", err);
}

void eng_cuda_event_destroy(EngCudaEvent *event)
{
    if (event) (void)cudaEventDestroy(event);
}

EngStatus eng_cuda_event_record(EngCudaEvent *event, EngCudaStream *stream, EngErr *err)
{
    return eng_cuda_check(cudaEventRecord(event, stream), "event", err);
}

EngStatus eng_cuda_event_stamp(EngCudaEvent *event, EngCudaStream *stream, EngErr *err)
{
    unsigned flags = g_capture ? cudaEventRecordExternal : cudaEventRecordDefault;
    return eng_cuda_check(cudaEventRecordWithFlags(event, stream, flags), "event", err);
}

EngStatus eng_cuda_event_order(EngCudaStream *stream, EngCudaEvent *event, EngErr *err)
{
    return eng_cuda_check(cudaStreamWaitEvent(stream, event, 0), "order of streams", err);
}

EngStatus eng_cuda_event_wait(EngCudaEvent *event, EngErr *err)
{
    return eng_cuda_check(cudaEventSynchronize(event), "wait", err);
}

EngStatus eng_cuda_event_ns(EngCudaEvent *from, EngCudaEvent *to, double *ns, EngErr *err)
{
    float ms = 0;
    EngStatus status = eng_cuda_event_wait(to, err);
    if (!status) status = eng_cuda_check(cudaEventElapsedTime(&ms, from, to), "event", err);
    *ns = (double)ms * 1e6;
    return status;
}

/* ---- graphs ---- */

EngStatus eng_cuda_capture_begin(EngCudaStream *stream, EngErr *err)
{
    EngStatus status = eng_cuda_check(
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture", err);
    g_capture = !status;
    g_before_capture = eng_cuda_launched;
    return status;
}

EngStatus eng_cuda_capture_end(EngCudaStream *stream, EngCudaGraph **out, EngErr *err)
{
    cudaGraph_t captured = nullptr;
    EngCudaGraph *graph = nullptr;
    g_capture = false;
    eng_cuda_launched = g_before_capture; /* nothing ran */
    *out = nullptr;
    EngStatus status = eng_cuda_check(cudaStreamEndCapture(stream, &captured), "capture", err);
    if (!status) status = eng_alloc_or((void **)&graph, 1, sizeof *graph, "graph", err);
    if (!status) {
        status = eng_cuda_check(cudaGraphInstantiate(&graph->exec, captured, 0), "graph", err);
        if (status) graph->exec = nullptr; /* nobody says what it is then */
    }
    /* Else the first launch would. */
    if (!status) status = eng_cuda_check(cudaGraphUpload(graph->exec, stream), "graph", err);
    if (captured) (void)cudaGraphDestroy(captured);
    if (status) {
        (void)cudaGetLastError();
        eng_cuda_graph_destroy(graph);
    } else {
        *out = graph;
    }
    return status;
}

EngStatus eng_cuda_graph_launch(EngCudaGraph *graph, EngCudaStream *stream, EngErr *err)
{
    eng_cuda_launched++;
    return eng_cuda_check(cudaGraphLaunch(graph->exec, stream), "graph", err);
}

void eng_cuda_graph_destroy(EngCudaGraph *graph)
{
    if (graph && graph->exec) (void)cudaGraphExecDestroy(graph->exec);
    eng_free(graph);
}

/* ---- the measured window ---- */

EngStatus eng_cuda_window_open(EngErr *err)
{
    EngStatus status = ENG_OK;
    if (!g_main) return ENG_OK;
    if (!g_opened) status = eng_cuda_event_create(&g_opened, err);
    if (!status && !g_closed) status = eng_cuda_event_create(&g_closed, err);
    if (!status) status = eng_cuda_wait(g_main, err);
    if (!status) status = eng_cuda_event_record(g_opened, g_main, err);
    g_window = !status;
    g_before_window = eng_cuda_launched;
    return status;
}

EngStatus eng_cuda_window_close(EngCudaWindow *window, EngErr *err)
{
    *window = (EngCudaWindow){0, 0};
    if (!g_window) return ENG_OK;
    g_window = false;
    long launches = eng_cuda_launched - g_before_window;
    EngStatus status = eng_cuda_event_record(g_closed, g_main, err);
    if (!status) status = eng_cuda_event_ns(g_opened, g_closed, &window->ns, err);
    if (!launches) window->ns = 0;
    window->launches = (double)launches;
    return status;
}

__global__ void eng_nothing_kernel(void) {}

static EngStatus time_nothing(cudaEvent_t *events, double *ns, EngErr *err)
{
    EngStatus status = eng_cuda_event_record(events[0], g_main, err);
    if (status) return status;
    ENG_LAUNCH(eng_nothing_kernel, dim3(1), dim3(32), 0, g_main);
    status = eng_cuda_check(cudaGetLastError(), "empty kernel", err);
    if (!status) status = eng_cuda_event_record(events[1], g_main, err);
    return status ? status : eng_cuda_event_ns(events[0], events[1], ns, err);
}

EngStatus eng_cuda_floor_ns(double *ns, EngErr *err)
{
    double times[FLOOR_TRIES];
    cudaEvent_t events[2] = {nullptr, nullptr};
    EngCudaStream *stream;
    EngStatus status = eng_cuda_main(&stream, err);
    for (int i = 0; i < 2 && !status; i++) status = eng_cuda_event_create(&events[i], err);
    for (int i = 0; i < FLOOR_TRIES && !status; i++) {
        double time;
        status = time_nothing(events, &time, err);
        int k = i;
        for (; k && times[k - 1] > time; k--) times[k] = times[k - 1];
        times[k] = time;
    }
    for (int i = 0; i < 2; i++) eng_cuda_event_destroy(events[i]);
    *ns = status ? 0 : times[FLOOR_TRIES / 2];
    return status;
}
