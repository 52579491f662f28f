/* Shared pieces of experiments; see support.h. */
#include "bench/experiments/support.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/nvtx.h"
#include "bench/experiments/shape.h"

static bool on_device(const EngKernel *kernel)
{
    return kernel->backend == ENG_CUDA;
}

static EngStatus open_at(EngRunner *runner, EngTableAt table_at, const EngKernel *kernel,
                         const EngProblem *problem, EngErr *err)
{
    memset(runner, 0, sizeof *runner);
    if (!kernel)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "%s: this build lacks the kernel that it takes",
                        eng_op_name(problem->op));
    EngStatus status = eng_kernel_supports(kernel, problem, err);
    if (status) return status;
    runner->problem = *problem;
    runner->layer = -1;
    if (on_device(kernel))
        status =
            eng_mirror_problem(&runner->mirrors, &runner->problem, table_at, &runner->there, err);
    /* A failed create leaves no state behind. */
    const EngProblem *seen = on_device(kernel) ? &runner->there : &runner->problem;
    if (!status && kernel->create) status = kernel->create(seen, &runner->state, err);
    if (status) {
        eng_runner_close(runner);
        return status;
    }
    EngCost cost = {0};
    runner->kernel = kernel;
    if (kernel->cost) kernel->cost(&runner->problem, &cost);
    runner->bytes = (int64_t)(cost.read_bytes + cost.write_bytes);
    return ENG_OK;
}

EngStatus eng_runner_open(EngRunner *runner, const EngKernel *kernel, const EngProblem *problem,
                          EngErr *err)
{
    return open_at(runner, ENG_TABLE_LOCAL, kernel, problem, err);
}

EngStatus eng_runner_open_at(EngRunner *runner, const EngPoint *point, const EngKernel *kernel,
                             const EngProblem *problem, EngErr *err)
{
    return open_at(runner, eng_point_table_at(point), kernel, problem, err);
}

void eng_runner_close(EngRunner *runner)
{
    if (runner->kernel && runner->kernel->destroy) runner->kernel->destroy(runner->state);
    eng_mirror_drop(&runner->mirrors);
    memset(runner, 0, sizeof *runner);
}

EngStatus eng_runner_cover(EngRunner *runner, const void *buffer, size_t bytes, EngErr *err)
{
    if (!on_device(runner->kernel)) return ENG_OK;
    return eng_mirror_cover(&runner->mirrors, buffer, bytes, err);
}

_Static_assert((int)ENG_RANGE_HASH == (int)ENG_OP_HASH &&
                   (int)ENG_RANGE_SINKHORN == (int)ENG_OP_SINKHORN &&
                   (int)ENG_RANGE_FETCH == (int)ENG_OP_COUNT,
               "ranges of operations are numbered as in the registry");

static int64_t tokens_of(const EngProblem *problem)
{
    switch (problem->op) {
    case ENG_OP_HASH:
        return problem->u.hash.max_tokens;
    case ENG_OP_GATHER:
        return problem->u.gather.tokens;
    case ENG_OP_PROJECT:
        return problem->u.project.tokens;
    case ENG_OP_GATE:
        return problem->u.gate.tokens;
    case ENG_OP_CONV:
        return problem->u.conv.tokens;
    case ENG_OP_LOOKUP:
        return problem->u.lookup.tokens;
    case ENG_OP_TRAIN_GATE:
    case ENG_OP_BACK_GATE:
        return problem->u.train_gate.tokens;
    case ENG_OP_TRAIN_CONV:
    case ENG_OP_BACK_CONV:
        return problem->u.train_conv.tokens;
    case ENG_OP_BACK_PROJECT:
        return problem->u.back_project.tokens;
    case ENG_OP_BACK_GATHER:
        return problem->u.back_gather.tokens;
    default:
        return -1;
    }
}

static EngStatus run_there(EngRunner *runner, const EngArgs *args, EngErr *err)
{
    EngArgs there;
    if (!on_device(runner->kernel))
        return runner->kernel->run(runner->state, &runner->problem, args, err);
    EngStatus status = eng_mirror_args(&runner->mirrors, &runner->problem, args, &there, err);
    return status ? status : runner->kernel->run(runner->state, &runner->there, &there, err);
}

EngStatus eng_runner_run(EngRunner *runner, const EngArgs *args, EngErr *err)
{
    if (!eng_nvtx_on) return run_there(runner, args, err);
    eng_nvtx_push((EngRange)runner->kernel->op,
                  (EngRangeInfo){.tokens = tokens_of(&runner->problem),
                                 .layer = runner->layer,
                                 .bytes = runner->bytes,
                                 .step = eng_nvtx_step});
    EngStatus status = run_there(runner, args, err);
    eng_nvtx_pop();
    return status;
}

/* Mirrors first seen here go again: a buffer of a check may not outlive it. */
EngStatus eng_runner_run_whole(EngRunner *runner, const EngArgs *args, EngErr *err)
{
    if (!on_device(runner->kernel)) return eng_runner_run(runner, args, err);
    EngMirrors *all = &runner->mirrors, fresh = {0};
    int before = all->n;
    EngStatus status = eng_mirror_push(all, &runner->problem, args, err);
    if (!status) status = eng_runner_run(runner, args, err);
    if (!status) status = eng_mirror_pull(all, &runner->problem, args, err);
    while (all->n > before) fresh.held[fresh.n++] = all->held[--all->n];
    eng_mirror_drop(&fresh);
    return status;
}

EngStatus eng_runner_push(EngRunner *runner, const EngArgs *args, EngErr *err)
{
    if (!on_device(runner->kernel)) return ENG_OK;
    return eng_mirror_push(&runner->mirrors, &runner->problem, args, err);
}

EngStatus eng_runner_pull(EngRunner *runner, const EngArgs *args, EngErr *err)
{
    if (!on_device(runner->kernel)) return ENG_OK;
    return eng_mirror_pull(&runner->mirrors, &runner->problem, args, err);
}

void eng_mark_saturated(const float *gates, int64_t n)
{
    int64_t saturated = 0;
    if (!eng_nvtx_on) return;
    for (int64_t i = 0; i < n; i++) saturated += gates[i] <= 0.05f || gates[i] >= 0.95f;
    eng_nvtx_mark_value("saturated", (double)saturated / (double)n);
}

void eng_runner_cost(const EngRunner *runner, double *flops, double *moved_bytes)
{
    EngCost cost = {0};
    runner->kernel->cost(&runner->problem, &cost);
    *flops = cost.flops;
    *moved_bytes = cost.read_bytes + cost.write_bytes;
}

bool eng_kernel_unchecked(const EngKernel *kernel)
{
    return kernel->roof && !kernel->checked;
}

void eng_residual_of_roof(EngResidual *residual)
{
    *residual = (EngResidual){.of = "exact", .pass = true};
    snprintf(residual->note, sizeof residual->note, "roof: output not compared");
}

void eng_residual_of_check(const EngCheck *check, const char *of, EngResidual *residual)
{
    bool exact = !strcmp(of, "exact");
    *residual =
        (EngResidual){.max_abs = check->max_abs,
                      .max_rel = exact ? check->max_rel : check->max_share,
                      .limit = exact ? 0 : 1,
                      .of = of,
                      .n_checked = check->n_checked,
                      .n_outputs = check->n_outputs,
                      .n_nonfinite = check->n_nonfinite,
                      .pass = !check->n_failed && !check->n_nonfinite && check->n_checked > 0};
    if (exact)
        snprintf(residual->note, sizeof residual->note, "%" PRId64 " of %" PRId64 " differ",
                 check->n_failed, check->n_checked);
    else
        snprintf(residual->note, sizeof residual->note,
                 "max_rel is the error over its derived limit; %" PRId64 " failed, %" PRId64
                 " marginal",
                 check->n_failed, check->n_marginal);
}

double eng_signed_log(double x)
{
    return copysign(log10(1 + 100 * fabs(x)), x);
}

double eng_cpu_ns(const EngTiming *timing)
{
    return (double)timing->cpu_ns / (double)timing->inner;
}

double eng_wall_ns(const EngTiming *timing)
{
    return (double)timing->wall_ns / (double)timing->inner;
}

double eng_launches(const EngTiming *timing)
{
    return timing->launches > 0 ? timing->launches / (double)timing->inner : NAN;
}

int eng_bin_of(double x, double lo, double hi, int n)
{
    double bin = floor((x - lo) / (hi - lo) * n);
    return !(bin >= 0) ? 0 : bin >= n ? n - 1 : (int)bin; /* in this order: it may not fit an int */
}
