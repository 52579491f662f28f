/* What the host does with the device, behind plain C: memory, copies, streams, events, graphs, and
 * the measured window.
 *
 * A process has one main stream; the variants of cuda.h put their work there, so that what is
 * launched in turn runs in turn. Outside a window and a capture, run() of a variant waits for its
 * result (eng_cuda_settle); inside, it only launches. Functions that name no other status give
 * ENG_NO_MEMORY or ENG_INTERNAL with CUDA's own words. A build without CUDA has stubs that answer
 * "no device" (no_device.c).
 */
#ifndef ENG_KERNELS_CUDA_QUEUE_H
#define ENG_KERNELS_CUDA_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/cuda/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The process's main stream, made at first use; lives as long as the process. */
EngStatus eng_cuda_main(EngCudaStream **stream, EngErr *err);
bool eng_cuda_used(void); /* it has been made */

/* Waits for the stream unless a window is open or a capture under way. */
EngStatus eng_cuda_settle(EngCudaStream *stream, EngErr *err);
/* Inside a window or a capture: addresses are known to be good, and nobody waits. */
bool eng_cuda_hurries(void);

/* Whether an error was seen after which every call of this process fails (an illegal address, a
 * failed launch): only a new process can go on. */
bool eng_cuda_lost(void);

/* ---- memory ---- */

typedef enum EngCudaPlace {
    ENG_CUDA_DEVICE = 0, /* the device's own memory */
    ENG_CUDA_PINNED      /* page-locked host memory, which the device reads at the same address */
} EngCudaPlace;

EngStatus eng_cuda_alloc(EngCudaPlace place, size_t bytes, void **at, EngErr *err);
void eng_cuda_free(EngCudaPlace place, void *at); /* accepts NULL */
/* After everything that the main stream holds; back when it is done. Any memory on either side. */
EngStatus eng_cuda_copy(void *to, const void *from, size_t bytes, EngErr *err);
/* Device or pinned memory on either side, which has to stay until the stream has passed it. */
EngStatus eng_cuda_copy_async(void *to, const void *from, size_t bytes, EngCudaStream *stream,
                              EngErr *err);

/* ---- events: an order between streams, and times ---- */

typedef struct CUevent_st EngCudaEvent;
EngStatus eng_cuda_event_create(EngCudaEvent **event, EngErr *err);
void eng_cuda_event_destroy(EngCudaEvent *event); /* accepts NULL */
EngStatus eng_cuda_event_record(EngCudaEvent *event, EngCudaStream *stream, EngErr *err);
/* For eng_cuda_event_ns alone: in a graph it is recorded anew at each launch, and orders nothing.
 */
EngStatus eng_cuda_event_stamp(EngCudaEvent *event, EngCudaStream *stream, EngErr *err);
/* What the stream is given from now on comes after what the event was recorded behind. */
EngStatus eng_cuda_event_order(EngCudaStream *stream, EngCudaEvent *event, EngErr *err);
EngStatus eng_cuda_event_wait(EngCudaEvent *event, EngErr *err); /* the host waits */
/* Nanoseconds between two recorded events, waited for. */
EngStatus eng_cuda_event_ns(EngCudaEvent *from, EngCudaEvent *to, double *ns, EngErr *err);

/* ---- graphs ---- */

/* From begin to end, what the stream is given (and streams ordered behind it, which have to be
 * joined again) becomes a graph and is not run. end also ends a capture that went wrong. */
typedef struct EngCudaGraph EngCudaGraph;
EngStatus eng_cuda_capture_begin(EngCudaStream *stream, EngErr *err);
EngStatus eng_cuda_capture_end(EngCudaStream *stream, EngCudaGraph **graph, EngErr *err);
EngStatus eng_cuda_graph_launch(EngCudaGraph *graph, EngCudaStream *stream, EngErr *err);
void eng_cuda_graph_destroy(EngCudaGraph *graph); /* accepts NULL */

/* ---- the measured window ---- */

typedef struct EngCudaWindow {
    double ns;       /* between events of the main stream; 0: nothing was launched */
    double launches; /* kernels and graphs that the host launched */
} EngCudaWindow;
/* Does nothing in a process that has no main stream. */
EngStatus eng_cuda_window_open(EngErr *err);
/* Waits for the main stream. */
EngStatus eng_cuda_window_close(EngCudaWindow *window, EngErr *err);

/* Time of a kernel that does nothing, by events, the median of several: what a window of one
 * launch cannot go below. */
EngStatus eng_cuda_floor_ns(double *ns, EngErr *err);

/* ---- the device ---- */

typedef struct EngCudaInfo {
    char name[128];
    bool simulated; /* by the executor of the tests: its times are made up */
    int processors; /* multiprocessors */
    int major, minor;
    int64_t l2_bytes, memory_bytes;
} EngCudaInfo;
/* Of the device in use. In a child process, the first time, so that the caller may fork workers
 * that use the device. ENG_UNSUPPORTED: "no device" with the driver's reason. */
EngStatus eng_cuda_info(EngCudaInfo *info, EngErr *err);

/* Clocks now, by NVML, which is looked for when first asked and never needed. */
typedef struct EngCudaClocks {
    int sm_mhz, memory_mhz;  /* -1: not told */
    unsigned long long slow; /* NVML's reasons for lower clocks, bits; 0: none */
} EngCudaClocks;
/* ENG_UNSUPPORTED with the reason. */
EngStatus eng_cuda_clocks(EngCudaClocks *clocks, EngErr *err);

#ifdef __cplusplus
}
#endif
#endif
