/* The CUDA variants of the projection: an own kernel for few tokens, cuBLASLt for any number. */
#include "base/log.h"
#include "base/mem.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/variants.h"

typedef struct State {
    EngCudaStream *stream;
    EngCudaProject *mma;
    EngCudaBlas *blas;
} State;

static void destroy(void *of)
{
    State *state = of;
    if (!state) return;
    eng_cuda_project_destroy(state->mma);
    eng_cuda_blas_destroy(state->blas);
    eng_free(state);
}

static EngStatus start(const EngProblem *problem, State **out, EngErr *err)
{
    State *state = NULL;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "CUDA projection", err);
    if (!status) status = eng_cuda_main(&state->stream, err);
    if (!status) status = eng_cuda_reachable(problem->u.project.w, "the weights", err);
    *out = state;
    return status;
}

/* What the algorithm must move, whatever a variant reads: as on the host. */
void eng_cuda_project_cost(const EngProblem *problem, EngCost *cost)
{
    const EngProjectProblem *p = &problem->u.project;
    double m = (double)p->tokens, n = p->n, k = p->k;
    double w_scales = p->weights == ENG_FP8 ? n * k / (ENG_SCALE_GROUP * ENG_SCALE_GROUP) : 0;
    double x_scales = p->x == ENG_FP8 ? m * k / ENG_SCALE_GROUP : 0;
    cost->flops = 2 * m * n * k;
    cost->read_bytes = n * k * (double)eng_dtype_bytes(p->weights, 1) + w_scales +
                       m * k * (double)eng_dtype_bytes(p->x, 1) + x_scales;
    cost->write_bytes = m * n * (double)eng_dtype_bytes(p->out, 1);
}

/* ---- mma.sync ---- */

static const EngTunable mma_tunables[] = {
    {.name = "splits",
     .min = 1,
     .max = 32,
     .values = "1,2,4,8",
     .help = "parts that k is cut into, each for blocks of its own (default: enough that every "
             "multiprocessor holds four blocks)"},
    {.name = NULL},
};

static EngStatus mma_supports(const EngProblem *problem, EngErr *why)
{
    EngStatus status = eng_cuda_variant_supports(problem, why);
    return status ? status : eng_cuda_project_fits(&problem->u.project, why);
}

static EngStatus mma_create(const EngProblem *problem, void **out, EngErr *err)
{
    State *state = NULL;
    EngStatus status = start(problem, &state, err);
    if (!status)
        status = eng_cuda_project_create(&problem->u.project, problem->tuned[0], &state->mma, err);
    if (status) {
        destroy(state);
        state = NULL;
    }
    *out = state;
    return status;
}

static EngStatus mma_run(void *of, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    State *state = of;
    (void)problem;
    EngStatus status = eng_cuda_variant_reachable(args->u.project.x, "the input", err);
    if (!status) status = eng_cuda_project(state->mma, &args->u.project, state->stream, err);
    return status ? status : eng_cuda_settle(state->stream, err);
}

const EngKernel eng_cuda_project_mma = {
    .op = ENG_OP_PROJECT,
    .name = "cuda_mma",
    .backend = ENG_CUDA,
    .checked = true,
    .summary = "up to 16 tokens, fp8 weights read as they lie, bf16 products of 16 rows by 8 "
               "tokens; exact while their scales multiply to 2^-117 .. 2^119",
    .tunables = mma_tunables,
    .supports = mma_supports,
    .cost = eng_cuda_project_cost,
    .create = mma_create,
    .run = mma_run,
    .destroy = destroy,
};

/* ---- cuBLASLt ---- */

static EngStatus blas_supports(const EngProblem *problem, EngErr *why)
{
    EngStatus status = eng_cuda_variant_supports(problem, why);
    return status ? status : eng_cuda_blas_fits(&problem->u.project, why);
}

static EngStatus blas_create(const EngProblem *problem, void **out, EngErr *err)
{
    State *state = NULL;
    EngStatus status = start(problem, &state, err);
    if (!status)
        status = eng_cuda_blas_create(&problem->u.project, state->stream, &state->blas, err);
    if (status) {
        destroy(state);
        state = NULL;
    } else {
        EngCudaExpansion expansion = eng_cuda_blas_expansion(state->blas);
        if (expansion.bytes)
            eng_info("cuda", "weights expanded to %.1f MiB of bf16 in %.3f ms",
                     (double)expansion.bytes / (1 << 20), expansion.ns / 1e6);
    }
    *out = state;
    return status;
}

static EngStatus blas_run(void *of, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    State *state = of;
    (void)problem;
    EngStatus status = eng_cuda_variant_reachable(args->u.project.x, "the input", err);
    if (!status) status = eng_cuda_blas_project(state->blas, &args->u.project, state->stream, err);
    return status ? status : eng_cuda_settle(state->stream, err);
}

const EngKernel eng_cuda_project_blas = {
    .op = ENG_OP_PROJECT,
    .name = "cuda_cublaslt",
    .backend = ENG_CUDA,
    .checked = true,
    .summary = "cuBLASLt in bf16, fp8 weights expanded once and fp8 tokens before each product",
    .supports = blas_supports,
    .cost = eng_cuda_project_cost,
    .create = blas_create,
    .run = blas_run,
    .destroy = destroy,
};
