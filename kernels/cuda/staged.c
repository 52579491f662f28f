/* The CUDA variant of the gather that has the host pack the rows. */
#include "base/mem.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/variants.h"

typedef struct State {
    EngCudaStream *stream;
    EngCudaStaged *staged;
    int64_t *rows; /* pinned: the ids of a batch */
} State;

static void destroy(void *of)
{
    State *state = of;
    if (!state) return;
    eng_cuda_staged_destroy(state->staged);
    eng_cuda_free(ENG_CUDA_PINNED, state->rows);
    eng_free(state);
}

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    const EngGatherProblem *p = &problem->u.gather;
    State *state = NULL;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "CUDA gather", err);
    if (!status) status = eng_cuda_main(&state->stream, err);
    if (!status) status = eng_cuda_staged_create(p, &state->staged, err);
    if (!status)
        status =
            eng_cuda_alloc(ENG_CUDA_PINNED, (size_t)(p->tokens * p->columns) * sizeof *state->rows,
                           (void **)&state->rows, err);
    if (status) {
        destroy(state);
        state = NULL;
    }
    *out = state;
    return status;
}

/* Ids come to the host first, so that run() waits, in a measured window too. */
static EngStatus run(void *of, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    State *state = of;
    const EngGatherProblem *p = &problem->u.gather;
    const EngGatherArgs *a = &args->u.gather;
    EngStatus status = eng_cuda_variant_reachable(a->out, "the output", err);
    size_t columns = (size_t)p->columns;
    if (a->row_stride == p->columns && !status)
        status = eng_cuda_copy_async(state->rows, a->rows,
                                     (size_t)p->tokens * columns * sizeof *state->rows,
                                     state->stream, err);
    for (int64_t t = 0; a->row_stride != p->columns && t < p->tokens && !status; t++)
        status = eng_cuda_copy_async(state->rows + (size_t)t * columns, a->rows + t * a->row_stride,
                                     columns * sizeof *state->rows, state->stream, err);
    if (!status) status = eng_cuda_wait(state->stream, err);
    if (!status) status = eng_cuda_staged_pack(state->staged, state->rows, p->columns, err);
    if (!status)
        status = eng_cuda_staged_send(state->staged, a, (EngCudaGrid){problem->tuned[0], 0},
                                      state->stream, err);
    return status ? status : eng_cuda_settle(state->stream, err);
}

const EngKernel eng_cuda_gather_staged = {
    .op = ENG_OP_GATHER,
    .name = "cuda_staged",
    .backend = ENG_CUDA,
    .checked = true,
    .summary = "the host packs rows of its table into pinned memory: one copy, then decoded",
    .tunables = eng_cuda_gather_tile,
    .supports = eng_cuda_variant_supports,
    .cost = eng_cuda_gather_cost,
    .create = create,
    .run = run,
    .destroy = destroy,
};
