/* A worker lifetime: one forked process that sets up the points of a block, checks them against the
 * oracle and takes samples in shuffled rounds. It reports through a pipe and, after each sample,
 * waits until the parent has stored it: the parent's database work never runs beside a timed
 * window, and a kill loses at most the sample in flight.
 */
#ifndef ENG_BENCH_WORKER_H
#define ENG_BENCH_WORKER_H

#include "bench/core/counters.h"
#include "bench/core/experiment.h"
#include "bench/core/sampling.h"
#include "bench/core/tracer.h"
#include "kernels/cuda/queue.h"

/* What the child is told: plain memory inherited through fork. */
typedef struct EngWorkerTask {
    const EngResources *resources;
    const EngPoint *const *points; /* [n_points]; all of one experiment */
    int n_points;
    bool verify;           /* compare with the oracle before sampling */
    uint64_t seed;         /* of this lifetime: layout, inputs, order */
    int first_pair, pairs; /* rounds to run; pair numbers count up over the segment */
    int64_t budget_ns;     /* stop after the round in which this has passed, 0: none */
    int64_t target_ns;     /* least length of a sample: inner iterations are sized for it */
    /* Paced: says ENG_WORKER_READY when warm, with the inner iterations in `timing`, and takes each
     * sample only when told to (eng_worker_acknowledge), after an untimed one. */
    bool paced;
    int64_t inner; /* fixed inner iterations, the same for workers that are compared; 0: sized */
    int skip;      /* untimed samples before the first, at most 50 ms of them */
    /* A traced pass: `pairs` samples of one run each, one point after the other, no verification.
     */
    const EngTracer *tracer;
    const EngTracePoint *traced; /* [n_points] */
} EngWorkerTask;

typedef enum EngWorkerEvent {
    ENG_WORKER_ENTER = 1, /* point `point` is in `phase` */
    ENG_WORKER_RESIDUAL,
    ENG_WORKER_SAMPLE,
    ENG_WORKER_HISTOGRAM,
    ENG_WORKER_POINT_ENDED, /* with a status: unsupported, failed or wrong */
    ENG_WORKER_DONE,        /* all rounds over; says how it sampled */
    ENG_WORKER_READY,       /* paced ones only: warm, waits to be told */
    ENG_WORKER_TRACED       /* traced passes only: all samples of the point are taken */
} EngWorkerEvent;

typedef struct EngWorkerHistogram {
    char name[16], scale[16];
    int layer, stream, n_bins;
    double lo, hi;
    int64_t counts[256];
} EngWorkerHistogram;

/* The device at the end of a lifetime that used it. */
typedef struct EngDeviceNote {
    bool used;
    double floor_ns;        /* of a kernel that does nothing, 0: not measured */
    EngCudaClocks clocks;   /* right after the last sample */
    char why_no_clocks[96]; /* "" with clocks */
    int64_t l2_bytes;
} EngDeviceNote;

/* How a lifetime sampled. */
typedef struct EngWorkerNote {
    EngTimer timer;
    int64_t length_ns;    /* that samples were sized for */
    int64_t flush_bytes;  /* read before each cold sample, 0: none was cold */
    int points, unstable; /* warmed up; of these: those whose times did not settle */
    int cpu, node; /* where the lifetime ended, -1: unknown; memory is placed by first touch */
    EngDeviceNote device;
} EngWorkerNote;

typedef struct EngWorkerMessage {
    EngWorkerEvent event;
    int point; /* index into the task's points, -1: none */
    int pair, position;
    EngStatus status;
    EngTiming timing;
    EngResidual residual; /* `of` points into static memory, valid in the parent too */
    double values[ENG_MAX_METRICS];
    double counters[ENG_COUNTER_COUNT];
    EngWorkerHistogram histogram;
    EngWorkerNote note;
    char text[256]; /* phase, reason */
} EngWorkerMessage;

typedef struct EngWorker {
    int pid, from_fd, to_fd;
} EngWorker;

/* Forks; in_child (may be NULL) runs first in the child, to drop what it must not hold. */
EngStatus eng_worker_start(EngWorker *worker, const EngWorkerTask *task,
                           void (*in_child)(void *context), void *context, EngErr *err);
/* Next message. ENG_NOT_FOUND: the worker closed the pipe (ended or died); ENG_IO: nothing came
 * within timeout_ns; ENG_INTERRUPTED: a signal arrived. */
EngStatus eng_worker_receive(EngWorker *worker, EngWorkerMessage *message, int64_t timeout_ns,
                             EngErr *err);
/* How long a worker may say nothing: 300 s, ENG_WORKER_TIMEOUT_S says otherwise. */
int64_t eng_worker_hang_ns(void);
/* Tells the worker that its sample is stored. */
EngStatus eng_worker_acknowledge(EngWorker *worker, EngErr *err);
/* Waits (killing first when `kill_it`) and describes how it ended: "exit 0", "signal 11
 * (Segmentation fault)". */
void eng_worker_end(EngWorker *worker, bool kill_it, char *how, size_t size);

#endif
