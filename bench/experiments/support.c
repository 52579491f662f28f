/* Shared pieces of experiments; see support.h. */
#include "bench/experiments/support.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/experiments/shape.h"

EngStatus eng_runner_open(EngRunner *runner, const EngKernel *kernel, const EngProblem *problem,
                          EngErr *err)
{
    memset(runner, 0, sizeof *runner);
    EngStatus status = eng_kernel_supports(kernel, problem, err);
    if (status) return status;
    runner->problem = *problem;
    /* From here on a failed create is the kernel's: it leaves no state behind. */
    if (kernel->create) status = kernel->create(&runner->problem, &runner->state, err);
    if (!status) runner->kernel = kernel;
    return status;
}

void eng_runner_close(EngRunner *runner)
{
    if (runner->kernel && runner->kernel->destroy) runner->kernel->destroy(runner->state);
    memset(runner, 0, sizeof *runner);
}

EngStatus eng_runner_run(const EngRunner *runner, const EngArgs *args, EngErr *err)
{
    return runner->kernel->run(runner->state, &runner->problem, args, err);
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
