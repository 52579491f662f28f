/* The CUDA variants of the training path: gate backward, scatter-add, Sinkhorn-balanced update. */
#include "base/mem.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/variants.h"

typedef struct State { /* one of the three */
    EngCudaStream *stream;
    EngCudaBackGate *gate;
    EngCudaBackGather *gather;
    EngCudaSinkhorn *sinkhorn;
} State;

static void destroy(void *of)
{
    State *state = of;
    if (!state) return;
    eng_cuda_back_gate_destroy(state->gate);
    eng_cuda_back_gather_destroy(state->gather);
    eng_cuda_sinkhorn_destroy(state->sinkhorn);
    eng_free(state);
}

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    State *state = NULL;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "CUDA training", err);
    if (!status) status = eng_cuda_main(&state->stream, err);
    if (!status && problem->op == ENG_OP_BACK_GATE)
        status = eng_cuda_back_gate_create(&problem->u.train_gate, &state->gate, err);
    if (!status && problem->op == ENG_OP_BACK_GATHER)
        status = eng_cuda_back_gather_create(&problem->u.back_gather, &state->gather, err);
    if (!status && problem->op == ENG_OP_SINKHORN)
        status = eng_cuda_sinkhorn_create(&problem->u.sinkhorn, &state->sinkhorn, err);
    if (status) {
        destroy(state);
        state = NULL;
    }
    *out = state;
    return status;
}

/* ---- gate backward ---- */

static void gate_cost(const EngProblem *problem, EngCost *cost)
{
    const EngTrainGateProblem *p = &problem->u.train_gate;
    double tokens = (double)p->tokens, values = tokens * p->streams * p->hidden;
    cost->flops = values * (2 + 5 + 4 + 2 + 2);
    cost->read_bytes = 4 * (3 * values + tokens * p->hidden + tokens * p->streams * ENG_GATE_KEPT);
    cost->write_bytes = 4 * (2 * values + tokens * p->hidden);
}

static EngStatus gate_run(void *of, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    State *state = of;
    (void)problem;
    EngStatus status = eng_cuda_variant_reachable(args->u.back_gate.d_out, "the gradient", err);
    if (!status) status = eng_cuda_back_gate(state->gate, &args->u.back_gate, state->stream, err);
    return status ? status : eng_cuda_settle(state->stream, err);
}

const EngKernel eng_cuda_back_gate_parts = {
    .op = ENG_OP_BACK_GATE,
    .name = "cuda_parts",
    .backend = ENG_CUDA,
    .checked = true,
    .summary = "gate gradients first, then a channel of all streams a thread, parts of the tokens",
    .supports = eng_cuda_variant_supports,
    .cost = gate_cost,
    .create = create,
    .run = gate_run,
    .destroy = destroy,
};

/* ---- scatter-add ---- */

static void gather_cost(const EngProblem *problem, EngCost *cost)
{
    const EngBackGatherProblem *p = &problem->u.back_gather;
    double rows = (double)p->tokens * p->columns, values = rows * p->row_dims;
    cost->flops = values;
    cost->read_bytes = 4 * values + 8 * rows;
    cost->write_bytes = 4 * values + 8 * rows; /* at most: no row twice */
}

static EngStatus gather_run(void *of, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    State *state = of;
    (void)problem;
    EngStatus status = eng_cuda_variant_reachable(args->u.back_gather.n_touched, "the rows", err);
    if (!status)
        status = eng_cuda_back_gather(state->gather, &args->u.back_gather, state->stream, err);
    return status ? status : eng_cuda_settle(state->stream, err);
}

const EngKernel eng_cuda_back_gather_sort = {
    .op = ENG_OP_BACK_GATHER,
    .name = "cuda_sort",
    .backend = ENG_CUDA,
    .checked = true,
    .summary = "stable sort of row ids by four bits a pass, a warp sums a row, in batch order",
    .supports = eng_cuda_variant_supports,
    .cost = gather_cost,
    .create = create,
    .run = gather_run,
    .destroy = destroy,
};

/* ---- Sinkhorn ---- */

static void sinkhorn_cost(const EngProblem *problem, EngCost *cost)
{
    const EngSinkhornProblem *p = &problem->u.sinkhorn;
    double n = (double)p->rows * p->row_dims, passes = p->balance / 2;
    cost->flops = n * (6 + 2 + 6 * passes + 6);
    cost->read_bytes = 4 * n * (2 + passes + 2) + 8 * (double)p->rows;
    cost->write_bytes = 4 * n * (2 + 1) + 8 * (double)p->rows;
}

static EngStatus sinkhorn_run(void *of, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    State *state = of;
    (void)problem;
    EngStatus status = eng_cuda_variant_reachable(args->u.sinkhorn.w, "the table", err);
    if (!status) status = eng_cuda_sinkhorn(state->sinkhorn, &args->u.sinkhorn, state->stream, err);
    return status ? status : eng_cuda_settle(state->stream, err);
}

const EngKernel eng_cuda_sinkhorn_scales = {
    .op = ENG_OP_SINKHORN,
    .name = "cuda_scales",
    .backend = ENG_CUDA,
    .checked = true,
    .summary = "row and column scales, a row and the next column step in one launch, lazy decay",
    .supports = eng_cuda_variant_supports,
    .cost = sinkhorn_cost,
    .create = create,
    .run = sinkhorn_run,
    .destroy = destroy,
};
