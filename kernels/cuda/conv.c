/* The CUDA variant of the short convolution. */
#include "base/mem.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/variants.h"

typedef struct State {
    EngCudaStream *stream;
    EngCudaConv *conv;
} State;

static void destroy(void *of)
{
    State *state = of;
    if (!state) return;
    eng_cuda_conv_destroy(state->conv);
    eng_free(state);
}

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    State *state = NULL;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "CUDA convolution", err);
    if (!status) status = eng_cuda_main(&state->stream, err);
    if (!status)
        status = eng_cuda_reachable(problem->u.conv.conv_weight, "the convolution's weights", err);
    if (!status) status = eng_cuda_conv_create(&problem->u.conv, &state->conv, err);
    if (status) {
        destroy(state);
        state = NULL;
    }
    *out = state;
    return status;
}

static void cost(const EngProblem *problem, EngCost *cost)
{
    const EngConvProblem *p = &problem->u.conv;
    double width = (double)p->streams * p->hidden, values = (double)p->tokens * width;
    double state = (double)(p->kernel - 1) * p->dilation * width;
    cost->flops = values * (2.0 * p->kernel + 8); /* norm, taps, silu and sum */
    cost->read_bytes = 4 * (values + state + width * (p->kernel + 1));
    cost->write_bytes = 4 * (values + state);
}

static EngStatus run(void *of, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    State *state = of;
    (void)problem;
    EngStatus status = eng_cuda_variant_reachable(args->u.conv.value, "the values", err);
    if (!status) status = eng_cuda_conv(state->conv, &args->u.conv, state->stream, err);
    return status ? status : eng_cuda_settle(state->stream, err);
}

const EngKernel eng_cuda_conv_taps = {
    .op = ENG_OP_CONV,
    .name = "cuda_taps",
    .backend = ENG_CUDA,
    .checked = true,
    .summary = "1/rms of each token first, then taps normalised on the way, f32",
    .supports = eng_cuda_variant_supports,
    .cost = cost,
    .create = create,
    .run = run,
    .destroy = destroy,
};
