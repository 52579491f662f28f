/* The part of the CUDA runtime that kernels/cuda and its tests use, without a device.
 *
 * Streams, events and graphs only build the order of operations; order.cpp carries them out. What
 * the real runtime allows but this project does not want (work in the legacy default stream but for
 * blocking copies and sets, asynchronous copies of pageable memory) is a fault.
 */
#include "runtime.hpp"
#include "simt.cuh"

#include <cstdio>
#include <cstring>
#include <memory>
#include <set>

struct CUgraph_st {
    std::vector<simt::Node> nodes;
};

struct CUgraphExec_st {
    std::vector<simt::Node> nodes;
    uint32_t last; /* its previous launch: launches of one graph never overlap */
};

struct CUstream_st {
    uint32_t last, priority, number;
    CUgraph_st *graph; /* being captured into, else NULL */
    bool origin;
    std::vector<uint32_t> tail; /* captured nodes that the next one comes after */
};

struct CUevent_st {
    uint32_t op;
    bool recorded;
    CUgraph_st *graph;
    std::vector<uint32_t> tail;
};

namespace simt
{
namespace
{
std::set<CUstream_st *> g_streams;
cudaError_t g_error = cudaSuccess;
long g_launches_done, g_launches_begun, g_graphs_launched, g_left_out;
uint32_t g_streams_made;
uint32_t g_legacy; /* the last operation of the default stream */

cudaError_t fail(cudaError_t error)
{
    return g_error = error;
}

/* What a call gives that finds nothing wrong itself. */
cudaError_t after_faults(void)
{
    return options().faults_stay && faults() ? cudaErrorIllegalAddress : cudaSuccess;
}

bool capturing(void)
{
    for (const CUstream_st *stream : g_streams)
        if (stream->graph) return true;
    return false;
}

bool refused_in_capture(const char *what)
{
    if (!capturing()) return false;
    report(Fault::capture_sync, "%s", what);
    return true;
}

/* Device and pinned ranges through the shadow; pageable ones are the host's own. */
void note_range(const void *at, size_t bytes, Access access, uint32_t op)
{
    Kind kind;
    Stamp stamp = {};
    stamp.op = op;
    if (memory_known(at, &kind)) memory_access((uintptr_t)at, bytes, access, 1, stamp, false);
}

void copy_now(void *dst, const void *src, size_t bytes, uint32_t op)
{
    int before = faults();
    note_range(src, bytes, Access::read, op);
    note_range(dst, bytes, Access::write, op);
    if (faults() == before) memcpy(dst, src, bytes);
}

/* A blocking form's operation: in the default stream, which other streams do not wait for, nor it
 * for them. */
void put_blocking(const char *name, Work work, ActivityKind kind, size_t bytes)
{
    host_calls();
    g_legacy =
        add_operation(name, {g_legacy}, std::move(work), 0, {kind, copy_ns + bytes / 16, bytes, 0});
}

bool lies_in(const void *at, Kind wanted)
{
    Kind kind;
    return memory_known(at, &kind) && kind == wanted;
}

void set_now(void *dst, int value, size_t bytes, uint32_t op)
{
    int before = faults();
    note_range(dst, bytes, Access::write, op);
    if (faults() == before) memset(dst, value, bytes);
}

cudaError_t allocate(void **at, size_t bytes, Kind kind)
{
    if (refused_in_capture("allocation")) return fail(cudaErrorStreamCaptureUnsupported);
    if (cudaError_t error = making_fails()) return fail(error);
    *at = memory_allocate(bytes, kind);
    return *at ? cudaSuccess : fail(cudaErrorMemoryAllocation);
}

cudaError_t release(void *at, Kind kind)
{
    if (!at) return cudaSuccess;
    if (refused_in_capture("release of memory")) return fail(cudaErrorStreamCaptureUnsupported);
    wait_for_all();
    return memory_release(at, kind) ? cudaSuccess : fail(cudaErrorInvalidValue);
}

template <class T> cudaError_t destroy(Object kind, T *object)
{
    if (!destroyed(kind, object)) return fail(cudaErrorInvalidResourceHandle);
    delete object;
    return cudaSuccess;
}

/* All nodes that `tail` comes after, itself included. */
std::set<uint32_t> behind(const CUgraph_st &graph, const std::vector<uint32_t> &tail)
{
    std::set<uint32_t> seen;
    std::vector<uint32_t> open = tail;
    while (!open.empty()) {
        uint32_t node = open.back();
        open.pop_back();
        if (!seen.insert(node).second) continue;
        const std::vector<uint32_t> &after = graph.nodes[node].after;
        open.insert(open.end(), after.begin(), after.end());
    }
    return seen;
}
} // namespace

cudaError_t put(cudaStream_t stream, const std::string &name, Work work, Costs costs)
{
    host_calls();
    if (after_faults()) return fail(after_faults());
    if (!stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread) {
        report(Fault::legacy_stream, "%s", name.c_str());
        return fail(cudaErrorInvalidValue);
    }
    costs.stream = stream->number;
    if (stream->graph) {
        stream->graph->nodes.push_back({name, std::move(work), stream->tail, costs, nullptr});
        stream->tail = {(uint32_t)stream->graph->nodes.size() - 1};
        return cudaSuccess;
    }
    stream->last = add_operation(name, {stream->last}, std::move(work), stream->priority, costs);
    return cudaSuccess;
}

void launch(const char *kernel, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
            void *arguments, void (*call)(void *))
{
    Launch launch = {kernel, grid, block, shared_bytes, arguments, call};
    uint64_t threads = (uint64_t)grid.x * grid.y * grid.z * block.x * block.y * block.z;
    put(stream, kernel,
        [launch](uint32_t op) {
            int before = faults();
            if (++g_launches_begun == options().failing_launch)
                report(Fault::planted, "%s", launch.kernel);
            if (faults() > before) return;
            execute(launch, op, options());
            g_launches_done += faults() == before;
        },
        {ActivityKind::kernel, kernel_ns + threads, 0, 0});
}

/* Streams live as long as their process, like the main stream of kernels/cuda. */
void streams_begin(void)
{
    g_launches_begun = 0;
    g_legacy = 0;
    for (CUstream_st *stream : g_streams) {
        stream->last = 0, stream->graph = nullptr, stream->origin = false;
        stream->tail.clear();
    }
}

long launches_done(void)
{
    return g_launches_done;
}

long graphs_launched(void)
{
    return g_graphs_launched;
}

long work_left_out(void)
{
    return g_left_out;
}
} // namespace simt

using namespace simt;

extern "C" {

/* ---- memory ---- */

cudaError_t cudaMalloc(void **at, size_t bytes)
{
    return allocate(at, bytes, Kind::device);
}

cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned)
{
    return allocate(at, bytes, Kind::pinned);
}

cudaError_t cudaFree(void *at)
{
    return release(at, Kind::device);
}

cudaError_t cudaFreeHost(void *at)
{
    return release(at, Kind::pinned);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *at)
{
    Kind kind;
    memset(attributes, 0, sizeof *attributes);
    attributes->type = cudaMemoryTypeUnregistered;
    if (memory_known(at, &kind))
        attributes->type = kind == Kind::device ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream)
{
    Kind kind;
    if (!memory_known(dst, &kind) || !memory_known(src, &kind))
        report(Fault::pageable_copy, "cudaMemcpyAsync of %zu bytes", bytes);
    return put(stream, "cudaMemcpyAsync", [=](uint32_t op) { copy_now(dst, src, bytes, op); },
               {ActivityKind::copy, copy_ns + bytes / 16, bytes, 0});
}

cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t stream)
{
    return put(stream, "cudaMemsetAsync", [=](uint32_t op) { set_now(dst, value, bytes, op); },
               {ActivityKind::set, copy_ns + bytes / 16, bytes, 0});
}

/* Back when it is done, but for two ways into device memory: from pageable memory, which has been
 * read by then, and from device memory ("API synchronization behavior" in CUDA's manual). */
cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, cudaMemcpyKind)
{
    Kind kind;
    if (refused_in_capture("cudaMemcpy")) return fail(cudaErrorStreamCaptureUnsupported);
    if (lies_in(dst, Kind::device) && !memory_known(src, &kind)) {
        const uint8_t *from = static_cast<const uint8_t *>(src);
        auto read = std::make_shared<std::vector<uint8_t>>(from, from + bytes);
        wait_for(g_legacy);
        put_blocking(
            "cudaMemcpy", [=](uint32_t op) { copy_now(dst, read->data(), bytes, op); },
            ActivityKind::copy, bytes);
        return after_faults();
    }
    put_blocking(
        "cudaMemcpy", [=](uint32_t op) { copy_now(dst, src, bytes, op); }, ActivityKind::copy,
        bytes);
    if (!lies_in(dst, Kind::device) || !lies_in(src, Kind::device)) wait_for(g_legacy);
    return after_faults();
}

/* Not waited for but in pinned memory. */
cudaError_t cudaMemset(void *dst, int value, size_t bytes)
{
    if (refused_in_capture("cudaMemset")) return fail(cudaErrorStreamCaptureUnsupported);
    put_blocking(
        "cudaMemset", [=](uint32_t op) { set_now(dst, value, bytes, op); }, ActivityKind::set,
        bytes);
    if (!lies_in(dst, Kind::device)) wait_for(g_legacy);
    return after_faults();
}

/* ---- streams and events ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    if (cudaError_t error = making_fails()) return fail(error);
    *stream = new CUstream_st{0, random_priority(), ++g_streams_made, nullptr, false, {}};
    g_streams.insert(*stream);
    made(Object::stream, *stream);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    g_streams.erase(stream);
    return destroy(Object::stream, stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (refused_in_capture("cudaStreamSynchronize")) return fail(cudaErrorStreamCaptureUnsupported);
    wait_for(stream && stream != cudaStreamLegacy ? stream->last : g_legacy);
    return after_faults();
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return operation_done(stream->last) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize(void)
{
    if (refused_in_capture("cudaDeviceSynchronize")) return fail(cudaErrorStreamCaptureUnsupported);
    wait_for_all();
    return after_faults();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    if (cudaError_t error = making_fails()) return fail(error);
    *event = new CUevent_st{};
    made(Object::event, *event);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    return destroy(Object::event, event);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    cudaError_t error = put(stream, "cudaEventRecord", nullptr);
    if (error) return error;
    *event = CUevent_st{stream->last, true, stream->graph, stream->tail};
    return cudaSuccess;
}

/* External: a node of the graph that records the event at each launch. */
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    if (flags != cudaEventRecordExternal || !stream || !stream->graph)
        return cudaEventRecord(event, stream);
    cudaError_t error = put(stream, "cudaEventRecord", nullptr);
    if (!error) stream->graph->nodes.back().stamp = event;
    return error;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (event->graph || refused_in_capture("cudaEventSynchronize"))
        return fail(cudaErrorStreamCaptureUnsupported);
    wait_for(event->op);
    return after_faults();
}

/* On the simulated clock. */
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    if (!from->recorded || !to->recorded) return fail(cudaErrorInvalidResourceHandle);
    if (!operation_done(from->op) || !operation_done(to->op)) return fail(cudaErrorNotReady);
    *ms = (float)((double)(operation_end(to->op) - operation_end(from->op)) * 1e-6);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return operation_done(event->op) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    if (!event->recorded) return cudaSuccess;
    if (event->graph) {
        if (stream->graph && stream->graph != event->graph)
            return fail(cudaErrorStreamCaptureMerge);
        stream->graph = event->graph;
        stream->tail.insert(stream->tail.end(), event->tail.begin(), event->tail.end());
        return cudaSuccess;
    }
    if (stream->graph) {
        report(Fault::capture_isolation, "cudaStreamWaitEvent");
        return fail(cudaErrorStreamCaptureIsolation);
    }
    stream->last =
        add_operation("cudaStreamWaitEvent", {stream->last, event->op}, nullptr, stream->priority);
    return cudaSuccess;
}

/* ---- graphs ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode)
{
    if (!stream || stream->graph) return fail(cudaErrorIllegalState);
    stream->graph = new CUgraph_st;
    made(Object::graph, stream->graph);
    stream->origin = true;
    stream->tail.clear();
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status)
{
    *status = stream->graph ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
    *out = nullptr;
    if (!stream->graph || !stream->origin) return fail(cudaErrorStreamCaptureUnmatched);
    CUgraph_st *graph = stream->graph;
    std::set<uint32_t> reached = behind(*graph, stream->tail);
    for (CUstream_st *other : g_streams) {
        if (other->graph != graph) continue;
        other->graph = nullptr;
        other->origin = false;
        other->tail.clear();
    }
    for (uint32_t node = 0; node < graph->nodes.size(); node++) {
        if (reached.count(node)) continue;
        report(Fault::capture_unjoined, "%s in a side stream", graph->nodes[node].name.c_str());
        (void)destroy(Object::graph, graph);
        return fail(cudaErrorStreamCaptureUnjoined);
    }
    *out = graph;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    if (cudaError_t error = making_fails()) return fail(error);
    *exec = new CUgraphExec_st{graph->nodes, 0};
    made(Object::executable, *exec);
    return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t stream)
{
    if (!stream || stream->graph) return fail(cudaErrorStreamCaptureUnsupported);
    if (cudaError_t error = making_fails()) return fail(error);
    return after_faults() ? fail(after_faults()) : cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    if (!stream || stream->graph) return fail(cudaErrorStreamCaptureUnsupported);
    host_calls();
    if (after_faults()) return fail(after_faults());
    std::vector<uint32_t> ops, all = {stream->last, exec->last};
    uint32_t start = add_operation("cudaGraphLaunch", all, nullptr, stream->priority);
    g_graphs_launched += !exec->last;
    int nth = 0;
    for (const Node &node : exec->nodes) {
        std::vector<uint32_t> after = {start};
        for (uint32_t before : node.after) after.push_back(ops[before]);
        bool out = node.work && (++nth == options().left_out || options().left_out < 0);
        g_left_out += out;
        ops.push_back(add_operation(node.name, after, out ? nullptr : node.work, random_priority(),
                                    node.costs));
        if (node.stamp) *node.stamp = CUevent_st{ops.back(), true, nullptr, {}};
    }
    ops.push_back(start);
    stream->last = add_operation("end of the graph", ops, nullptr, stream->priority);
    exec->last = stream->last;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    return destroy(Object::executable, exec);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    return destroy(Object::graph, graph);
}

/* ---- errors and the device ---- */

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = g_error;
    g_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return g_error;
}

const char *cudaGetErrorString(cudaError_t error)
{
    if (error == cudaErrorIllegalAddress && faults()) return fault_text(0);
    if (error == cudaErrorNoDevice) return "no CUDA-capable device is detected";
    if (error == cudaErrorInsufficientDriver) return "the driver is older than the runtime";
    if (error == cudaErrorDevicesUnavailable) return "the device is busy or unavailable";
    return error ? "simulated error" : "no error";
}

const char *cudaGetErrorName(cudaError_t error)
{
    return error ? "cudaErrorSimulated" : "cudaSuccess";
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = options().devices;
    return (cudaError_t)options().device_error;
}

/* Two multiprocessors: a persistent grid must loop, and a grid must not count on more. */
static const int processors = 2;

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int)
{
    *value = attribute == cudaDevAttrMultiProcessorCount      ? processors
             : attribute == cudaDevAttrComputeCapabilityMajor ? options().capability / 10
                                                              : 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int)
{
    memset(properties, 0, sizeof *properties);
    strcpy(properties->name, "host executor");
    properties->multiProcessorCount = processors;
    properties->major = options().capability / 10;
    properties->minor = options().capability % 10;
    properties->l2CacheSize = 1 << 20;
    properties->totalGlobalMem = (size_t)24 << 30;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *, int, size_t)
{
    *blocks = 20;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *bus_id, int size, int)
{
    snprintf(bus_id, (size_t)size, "0000:00:00.0");
    return cudaSuccess;
}
}
