/* The CUDA backend's roofs as variants: what gather, gate and project are held against, in the same
 * block (section 4 of the design). Of the gather a family, of which the best is the limit. */
#include "base/mem.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/variants.h"

#define MOST_TOKENS 16 /* of a projection that reading its weights bounds */

typedef struct State {
    EngCudaStream *stream;
} State;

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    State *state = NULL;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "CUDA roof", err);
    if (!status) status = eng_cuda_main(&state->stream, err);
    if (!status && problem->op == ENG_OP_GATHER)
        status = eng_cuda_reachable(problem->u.gather.table.values, "the table", err);
    if (!status && problem->op == ENG_OP_PROJECT)
        status = eng_cuda_reachable(problem->u.project.w, "the weights", err);
    if (status) {
        eng_free(state);
        state = NULL;
    }
    *out = state;
    return status;
}

/* ---- gather ---- */

static EngStatus gather_supports(const EngProblem *problem, EngErr *why)
{
    EngStatus status = eng_cuda_variant_supports(problem, why);
    return status ? status : eng_cuda_gather_roof_fits(&problem->u.gather, why);
}

static EngStatus gather(const State *state, const EngProblem *problem, const EngArgs *args,
                        EngCudaGrid grid, bool deep, EngErr *err)
{
    EngStatus status = eng_cuda_variant_reachable(args->u.gather.out, "the output", err);
    if (!status)
        status = eng_cuda_gather_roof(&problem->u.gather, &args->u.gather, grid, deep,
                                      state->stream, err);
    return status ? status : eng_cuda_settle(state->stream, err);
}

#define GATHER_ROOF(id, row_tile, blocks, deep, text)                                              \
    static EngStatus id##_run(void *state, const EngProblem *problem, const EngArgs *args,         \
                              EngErr *err)                                                         \
    {                                                                                              \
        return gather(state, problem, args, (EngCudaGrid){row_tile, blocks}, deep, err);           \
    }                                                                                              \
    const EngKernel eng_cuda_gather_##id = {                                                       \
        .op = ENG_OP_GATHER,                                                                       \
        .name = "cuda_" #id,                                                                       \
        .backend = ENG_CUDA,                                                                       \
        .roof = true,                                                                              \
        .summary = "roof: same rows read, same bytes stored, no decoding; " text,                  \
        .supports = gather_supports,                                                               \
        .cost = eng_cuda_gather_cost,                                                              \
        .create = create,                                                                          \
        .run = id##_run,                                                                           \
        .destroy = eng_free,                                                                       \
    }

GATHER_ROOF(roof_t2, 2, 0, false, "tiles of 2 rows");
GATHER_ROOF(roof_t16, 16, 0, false, "tiles of 16 rows");
GATHER_ROOF(roof_t32_b1056, 32, 1056, false,
            "tiles of 32 rows, four loads in flight a thread, at most 1,056 blocks");
GATHER_ROOF(roof_t64_deep, 64, 0, true, "tiles of 64 rows, eight loads in flight a thread");

/* ---- gate ---- */

static EngStatus gate_supports(const EngProblem *problem, EngErr *why)
{
    EngStatus status = eng_cuda_variant_supports(problem, why);
    return status ? status : eng_cuda_gate_roof_fits(&problem->u.gate, why);
}

static EngStatus gate_run(void *of, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    State *state = of;
    EngStatus status = eng_cuda_variant_reachable(args->u.gate.streams_out, "the streams", err);
    if (!status) status = eng_cuda_gate_roof(&problem->u.gate, &args->u.gate, state->stream, err);
    return status ? status : eng_cuda_settle(state->stream, err);
}

const EngKernel eng_cuda_gate_roof_copy = {
    .op = ENG_OP_GATE,
    .name = "cuda_roof_copy",
    .backend = ENG_CUDA,
    .roof = true,
    .summary = "roof: kv read, streams copied with the same bits",
    .supports = gate_supports,
    .cost = eng_cuda_gate_cost,
    .create = create,
    .run = gate_run,
    .destroy = eng_free,
};

/* ---- project ---- */

static EngStatus project_supports(const EngProblem *problem, EngErr *why)
{
    EngStatus status = eng_cuda_variant_supports(problem, why);
    if (status || problem->u.project.tokens <= MOST_TOKENS) return status;
    return ENG_FAIL(why, ENG_UNSUPPORTED,
                    "roof of the projection: reading weights bounds up to %d tokens", MOST_TOKENS);
}

static EngStatus project_run(void *of, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    State *state = of;
    EngStatus status = eng_cuda_variant_reachable(args->u.project.x, "the input", err);
    if (!status)
        status = eng_cuda_project_roof(&problem->u.project, &args->u.project, state->stream, err);
    return status ? status : eng_cuda_settle(state->stream, err);
}

const EngKernel eng_cuda_project_roof_read = {
    .op = ENG_OP_PROJECT,
    .name = "cuda_roof_read",
    .backend = ENG_CUDA,
    .roof = true,
    .summary = "roof: weights and tokens read, as many bytes stored; up to 16 tokens",
    .supports = project_supports,
    .cost = eng_cuda_project_cost,
    .create = create,
    .run = project_run,
    .destroy = eng_free,
};
