/* The CUDA backend's variants: the process's main stream and a launcher of device.h. */
#include "kernels/cuda/cuda.h"

#include "base/mem.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/queue.h"
#include "kernels/cuda/variants.h"

typedef struct State {
    EngCudaStream *stream;
    EngCudaHash *hash; /* of ENG_OP_HASH */
} State;

EngStatus eng_cuda_variant_supports(const EngProblem *problem, EngErr *why)
{
    (void)problem; /* shapes are the launchers' to refuse */
    return eng_cuda_device(why);
}

static void destroy(void *of)
{
    State *state = of;
    if (!state) return;
    eng_cuda_hash_destroy(state->hash);
    eng_free(state);
}

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    State *state = NULL;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "CUDA variant", err);
    if (!status) status = eng_cuda_main(&state->stream, err);
    if (!status && problem->op == ENG_OP_HASH)
        status = eng_cuda_hash_create(problem->u.hash.address, &state->hash, err);
    if (!status && problem->op == ENG_OP_GATHER)
        status = eng_cuda_reachable(problem->u.gather.table.values, "the table", err);
    if (!status && problem->op == ENG_OP_GATE)
        status = eng_cuda_reachable(problem->u.gate.q_weight, "the gate's weights", err);
    if (status) {
        destroy(state);
        state = NULL;
    }
    *out = state;
    return status;
}

EngStatus eng_cuda_variant_reachable(const void *at, const char *what, EngErr *err)
{
    return eng_cuda_hurries() ? ENG_OK : eng_cuda_reachable(at, what, err);
}

/* ---- hash ---- */

static void hash_cost(const EngProblem *problem, EngCost *cost)
{
    const EngAddress *address = problem->u.hash.address;
    double tokens = (double)problem->u.hash.max_tokens;
    double rows = tokens * address->n_layers * address->n_columns;
    *cost = (EngCost){0, tokens * sizeof(int32_t), rows * sizeof(int64_t)};
}

static EngStatus hash_run(void *of, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    State *state = of;
    (void)problem;
    EngStatus status = eng_cuda_variant_reachable(args->u.hash.rows, "the rows", err);
    if (!status) status = eng_cuda_hash(state->hash, &args->u.hash, state->stream, err);
    return status ? status : eng_cuda_settle(state->stream, err);
}

static const EngKernel hash_reciprocal = {
    .op = ENG_OP_HASH,
    .name = "cuda_reciprocal",
    .backend = ENG_CUDA,
    .checked = true,
    .summary = "one launch for all layers, remainders by multiplication with 2^64 / prime",
    .supports = eng_cuda_variant_supports,
    .cost = hash_cost,
    .create = create,
    .run = hash_run,
    .destroy = destroy,
};

/* ---- gather ---- */

#define TILE_TUNABLE                                                                               \
    {                                                                                              \
        .name = "tile", .min = 1, .max = 1024, .values = "2,4,8,16,32",                            \
        .help = "rows of a block's tile (default: 2 up to 4,096 rows, 16 beyond)"                  \
    }

const EngTunable eng_cuda_gather_tile[] = {TILE_TUNABLE, {.name = NULL}};

static const EngTunable gather_tunables[] = {
    TILE_TUNABLE,
    {.name = "blocks",
     .min = 1,
     .max = 65535,
     .values = "66,132,528,1056,2112",
     .help = "blocks that share the tiles (default: as many as run at once)"},
    {.name = NULL},
};

void eng_cuda_gather_cost(const EngProblem *problem, EngCost *cost)
{
    const EngGatherProblem *p = &problem->u.gather;
    double rows = (double)p->tokens * p->columns, dims = p->table.row_dims;
    bool raw = p->out == ENG_FP8, decodes = eng_row_has_groups(p->table.format) && !raw;
    double row_bytes = (double)eng_row_value_bytes(p->table.format, p->table.row_dims) +
                       (double)eng_row_scale_bytes(p->table.format, p->table.row_dims);
    double out_bytes = (double)eng_dtype_bytes(p->out, (size_t)p->table.row_dims);
    cost->flops = decodes ? rows * dims : 0;
    cost->read_bytes = rows * row_bytes;
    cost->write_bytes = rows * (out_bytes + (raw ? dims / ENG_SCALE_GROUP : 0));
}

static EngStatus gather(State *state, const EngProblem *problem, const EngArgs *args, int blocks,
                        EngErr *err)
{
    EngCudaGrid grid = {problem->tuned[0], blocks};
    EngStatus status = eng_cuda_variant_reachable(args->u.gather.out, "the output", err);
    if (!status)
        status = eng_cuda_gather(&problem->u.gather, &args->u.gather, grid, state->stream, err);
    return status ? status : eng_cuda_settle(state->stream, err);
}

static EngStatus gather_run(void *of, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    return gather(of, problem, args, problem->tuned[1], err);
}

static EngStatus background_run(void *of, const EngProblem *problem, const EngArgs *args,
                                EngErr *err)
{
    return gather(of, problem, args, ENG_CUDA_HALF_GRID, err);
}

static const EngKernel gather_decode = {
    .op = ENG_OP_GATHER,
    .name = "cuda_decode",
    .backend = ENG_CUDA,
    .checked = true,
    .summary = "wide loads of several rows in flight a thread, decoded in registers",
    .tunables = gather_tunables,
    .supports = eng_cuda_variant_supports,
    .cost = eng_cuda_gather_cost,
    .create = create,
    .run = gather_run,
    .destroy = destroy,
};

static const EngKernel gather_background = {
    .op = ENG_OP_GATHER,
    .name = "cuda_background",
    .backend = ENG_CUDA,
    .checked = true,
    .summary = "cuda_decode with half the blocks, for fetches beside other work",
    .tunables = eng_cuda_gather_tile,
    .supports = eng_cuda_variant_supports,
    .cost = eng_cuda_gather_cost,
    .create = create,
    .run = background_run,
    .destroy = destroy,
};

/* ---- gate ---- */

void eng_cuda_gate_cost(const EngProblem *problem, EngCost *cost)
{
    const EngGateProblem *p = &problem->u.gate;
    double values = (double)p->tokens * p->streams * p->hidden;
    cost->flops = values * 9; /* two squares and sums, a product of three and a sum, x + gate * v */
    cost->read_bytes = 2 * values + 2.0 * (double)p->tokens * (p->streams + 1) * p->hidden;
    cost->write_bytes = 2 * values;
}

static EngStatus gate_run(void *of, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    State *state = of;
    EngStatus status = eng_cuda_variant_reachable(args->u.gate.streams_out, "the streams", err);
    if (!status) status = eng_cuda_gate(&problem->u.gate, &args->u.gate, state->stream, err);
    return status ? status : eng_cuda_settle(state->stream, err);
}

static const EngKernel gate_onepass = {
    .op = ENG_OP_GATE,
    .name = "cuda_onepass",
    .backend = ENG_CUDA,
    .checked = true,
    .summary =
        "a block for each token and stream, elements kept in registers from sum to write-back",
    .supports = eng_cuda_variant_supports,
    .cost = eng_cuda_gate_cost,
    .create = create,
    .run = gate_run,
    .destroy = destroy,
};

const EngKernel *const eng_cuda_kernels[] = {
    &hash_reciprocal,
    &gather_decode,
    &gather_background,
    &eng_cuda_gather_staged,
    &eng_cuda_gather_roof_t2,
    &eng_cuda_gather_roof_t16,
    &eng_cuda_gather_roof_t32_b1056,
    &eng_cuda_gather_roof_t64_deep,
    &eng_cuda_project_mma,
    &eng_cuda_project_blas,
    &eng_cuda_project_roof_read,
    &gate_onepass,
    &eng_cuda_gate_roof_copy,
    &eng_cuda_conv_taps,
    &eng_cuda_back_gate_parts,
    &eng_cuda_back_gather_sort,
    &eng_cuda_sinkhorn_scales,
    NULL,
};
