/* Shared pieces of experiments; see support.h. */
#include "bench/experiments/support.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/nvtx.h"
#include "bench/experiments/shape.h"

#define GATE_BINS 80

EngStatus eng_runner_open(EngRunner *runner, const EngKernel *kernel, const EngProblem *problem,
                          EngErr *err)
{
    memset(runner, 0, sizeof *runner);
    EngStatus status = eng_kernel_supports(kernel, problem, err);
    if (status) return status;
    runner->problem = *problem;
    /* From here on a failed create is the kernel's: it leaves no state behind. */
    if (kernel->create) status = kernel->create(&runner->problem, &runner->state, err);
    if (status) return status;
    EngCost cost = {0};
    runner->kernel = kernel;
    runner->layer = -1;
    if (kernel->cost) kernel->cost(&runner->problem, &cost);
    runner->bytes = (int64_t)(cost.read_bytes + cost.write_bytes);
    return ENG_OK;
}

void eng_runner_close(EngRunner *runner)
{
    if (runner->kernel && runner->kernel->destroy) runner->kernel->destroy(runner->state);
    memset(runner, 0, sizeof *runner);
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

EngStatus eng_runner_run(const EngRunner *runner, const EngArgs *args, EngErr *err)
{
    if (!eng_nvtx_on) return runner->kernel->run(runner->state, &runner->problem, args, err);
    eng_nvtx_push((EngRange)runner->kernel->op,
                  (EngRangeInfo){.tokens = tokens_of(&runner->problem),
                                 .layer = runner->layer,
                                 .bytes = runner->bytes,
                                 .step = eng_nvtx_step});
    EngStatus status = runner->kernel->run(runner->state, &runner->problem, args, err);
    eng_nvtx_pop();
    return status;
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

int eng_bin_of(double x, double lo, double hi, int n)
{
    int bin = (int)floor((x - lo) / (hi - lo) * n);
    return bin < 0 ? 0 : bin >= n ? n - 1 : bin;
}

void eng_gate_histograms(const float *gates, int64_t tokens, int streams, int layer,
                         EngHistogramSink sink, void *context)
{
    for (int s = 0; s < streams; s++) {
        int64_t counts[GATE_BINS] = {0};
        for (int64_t t = 0; t < tokens; t++)
            counts[eng_bin_of(gates[t * streams + s], 0, 1, GATE_BINS)]++;
        sink(context, "gate", layer, s, "linear", 0, 1, counts, GATE_BINS);
    }
}
