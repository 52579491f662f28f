/* See stages.h. */
#include "bench/experiments/stages.h"

#include <string.h>

#include "bench/experiments/device_axes.h"

/* Kernels of all variants but `portable`, in order of preference: the first that is there and takes
 * the shape. */
enum { CANDIDATES = 4 };
static const char *const g_best[ENG_OP_COUNT][CANDIDATES] = {
    [ENG_OP_HASH] = {"avx512_ifma", "avx512", "avx2", "portable"},
    [ENG_OP_GATHER] = {"avx512", "avx2", "portable"},
    [ENG_OP_PROJECT] = {"avx512", "onednn_bf16", "onednn_f32", "portable"},
    [ENG_OP_LOOKUP] = {"avx512_fused"},
    [ENG_OP_GATE] = {"avx512", "avx2", "portable"}};
static const char *const g_portable[CANDIDATES] = {"portable"};

EngProblem eng_stage_problem(const EngPoint *point, const EngShape *shape, EngOp op)
{
    EngProblem problem = {.op = op, .threads = shape->threads};
    switch (op) {
    case ENG_OP_HASH:
        problem.u.hash = (EngHashProblem){.address = &shape->address, .max_tokens = shape->tokens};
        break;
    case ENG_OP_GATHER:
        problem.u.gather = (EngGatherProblem){.table = eng_shape_table(shape),
                                              .columns = shape->columns,
                                              .tokens = shape->tokens,
                                              .out = ENG_FP8};
        break;
    case ENG_OP_PROJECT:
        problem.u.project = (EngProjectProblem){.tokens = shape->tokens,
                                                .n = (int)shape->n,
                                                .k = (int)shape->k,
                                                .x = ENG_FP8,
                                                .weights = ENG_FP8,
                                                .out = ENG_BF16};
        break;
    case ENG_OP_LOOKUP:
        problem.u.lookup = (EngLookupProblem){.table = eng_shape_table(shape),
                                              .columns = shape->columns,
                                              .tokens = shape->tokens,
                                              .n = (int)shape->n,
                                              .weights = ENG_FP8,
                                              .out = ENG_BF16};
        break;
    default:
        problem.u.gate = (EngGateProblem){
            .tokens = shape->tokens,
            .streams = shape->streams,
            .hidden = shape->hidden,
            .formula = (EngGateFormula)eng_gate_formula_parse(eng_point_word(point, "formula")),
            .eps = shape->preset.gate_eps};
    }
    return problem;
}

static EngStatus first_of(const char *const *names, const EngProblem *problem,
                          const EngKernel **kernel, EngErr *err)
{
    EngStatus status = ENG_FAIL(err, ENG_UNSUPPORTED, "no %s kernel", eng_op_name(problem->op));
    for (int i = 0; i < CANDIDATES && names[i]; i++) {
        *kernel = eng_kernel_find(problem->op, names[i]);
        if (!*kernel) continue;
        status = eng_kernel_supports(*kernel, problem, err);
        if (!status) return ENG_OK;
    }
    return status;
}

/* The first in the registry that takes the problem. */
static EngStatus first_on_device(const EngPoint *point, const EngProblem *problem,
                                 const EngKernel **kernel, EngErr *err)
{
    int n;
    const EngKernel *const *kernels = eng_kernels(problem->op, &n);
    EngStatus status =
        ENG_FAIL(err, ENG_UNSUPPORTED, "no cuda kernel of %s", eng_op_name(problem->op));
    for (int i = 0; i < n && status; i++) {
        *kernel = kernels[i];
        if (kernels[i]->backend != ENG_CUDA || kernels[i]->roof) continue;
        status = eng_kernel_supports(kernels[i], problem, err);
        if (!status) status = eng_point_device_check(point, kernels[i], err);
    }
    return status;
}

EngStatus eng_stage_kernel(const EngPoint *point, const EngShape *shape, EngOp op,
                           const EngKernel **kernel, EngErr *err)
{
    const char *variant = eng_point_word(point, "variant");
    bool portable = !strcmp(variant, "portable");
    EngProblem problem = eng_stage_problem(point, shape, op);
    if (!strcmp(variant, eng_backend_name(ENG_CUDA)))
        return first_on_device(point, &problem, kernel, err);
    return first_of(portable ? g_portable : g_best[op], &problem, kernel, err);
}

EngStatus eng_stage_best(const EngProblem *problem, const EngKernel **kernel, EngErr *err)
{
    return first_of(g_best[problem->op], problem, kernel, err);
}
