/* Small things that every experiment repeats: a kernel with its problem and state, the residual of
 * a check, times per iteration. */
#ifndef ENG_EXPERIMENTS_SUPPORT_H
#define ENG_EXPERIMENTS_SUPPORT_H

#include "bench/core/experiment.h"
#include "bench/experiments/device_axes.h"
#include "bench/experiments/mirror.h"
#include "bench/experiments/oracle.h"

/* A kernel made ready for one problem. */
typedef struct EngRunner {
    const EngKernel *kernel;
    EngProblem problem; /* as the experiment sees it */
    EngProblem there;   /* of a device's kernel: as that sees it (mirror.h) */
    EngMirrors mirrors;
    void *state;
    int layer;     /* of the model, for traces; -1 (as opened): none, or several */
    int64_t bytes; /* moved by one run, for traces */
} EngRunner;

/* supports(), then create(). ENG_UNSUPPORTED with the kernel's reason; also for NULL, a kernel that
 * was not found. */
EngStatus eng_runner_open(EngRunner *runner, const EngKernel *kernel, const EngProblem *problem,
                          EngErr *err);
/* The same with the table where the point's axis `table_at` has it; point may be NULL. */
EngStatus eng_runner_open_at(EngRunner *runner, const EngPoint *point, const EngKernel *kernel,
                             const EngProblem *problem, EngErr *err);
void eng_runner_close(EngRunner *runner); /* accepts an empty one; before buffers are freed */
/* Arguments will point into this buffer: on a device it is then mirrored as a whole. */
EngStatus eng_runner_cover(EngRunner *runner, const void *buffer, size_t bytes, EngErr *err);
/* What one run must do, from its shape alone: arithmetic, and bytes read and written together. */
void eng_runner_cost(const EngRunner *runner, double *flops, double *moved_bytes);
/* Runs the kernel, inside a range of its operation's name while anybody listens (base/nvtx.h). */
EngStatus eng_runner_run(EngRunner *runner, const EngArgs *args, EngErr *err);
/* The same for results that are looked at: a device's kernel reads what the buffers hold now, and
 * they hold its results afterwards. */
EngStatus eng_runner_run_whole(EngRunner *runner, const EngArgs *args, EngErr *err);
/* Around runs on a device: args' buffers as they are, to it; what they would hold, back. */
EngStatus eng_runner_push(EngRunner *runner, const EngArgs *args, EngErr *err);
EngStatus eng_runner_pull(EngRunner *runner, const EngArgs *args, EngErr *err);

/* The share of gates (of `n`) at most 0.05 or at least 0.95, as a mark "saturated". Only while
 * anybody listens. */
void eng_mark_saturated(const float *gates, int64_t n);

/* A roof without `checked` moves bytes and computes nothing: no oracle applies. */
bool eng_kernel_unchecked(const EngKernel *kernel);
void eng_residual_of_roof(EngResidual *residual);
/* of "exact": no element may differ. of "rel": max_rel of the row is the largest error as a share
 * of its derived limit, so the limit is 1. */
void eng_residual_of_check(const EngCheck *check, const char *of, EngResidual *residual);

/* The scale "signed_log" of histograms: copysign(log10(1 + 100 |x|), x), linear below 0.01. Bins
 * are equal steps of it between the scale's values at lo and hi. */
double eng_signed_log(double x);
/* The bin of x among n equal ones over [lo, hi]; what lies outside counts into the last ones,
 * NaN into the first. */
int eng_bin_of(double x, double lo, double hi, int n);

/* Nanoseconds of one inner iteration. */
double eng_cpu_ns(const EngTiming *timing);
double eng_wall_ns(const EngTiming *timing);
/* Launches of one inner iteration; NAN on the host. */
double eng_launches(const EngTiming *timing);

#endif
