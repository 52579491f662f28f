/* Look-ups as a gather into a buffer and a product on it: what the fused one is compared with. The
 * `onednn` ones are roofs as they are for the projection: the best library product, behind the
 * fastest gather that decodes to what it takes.
 */
#include "kernels/cpu/common.h"
#include "kernels/cpu/gather.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lookup.h"
#include "kernels/cpu/project.h"

#include "base/mem.h"

/* Gathers in order of preference: the first that this processor can run. `packed`: rows of fp8
 * formats are handed on undecoded. */
typedef struct Composition {
    const EngKernel *gathers[3];
    const EngKernel *project;
    bool packed;
} Composition;

typedef struct State {
    const EngKernel *gather;
    const Composition *composition;
    EngProblem gather_problem, project_problem;
    void *gather_state, *project_state;
    void *x;
    uint8_t *x_scales;
} State;

static EngDtype type_between(const EngProblem *problem, const Composition *composition)
{
    bool packed = composition->packed && eng_row_is_fp8(problem->u.lookup.table.format);
    return packed ? ENG_FP8 : ENG_BF16;
}

static EngStatus choose_gather(const EngProblem *gather, const Composition *composition,
                               const EngKernel **out, EngErr *why)
{
    EngStatus status = ENG_UNSUPPORTED;
    for (int i = 0; i < 3 && composition->gathers[i] && status; i++) {
        *out = composition->gathers[i];
        status = (*out)->supports(gather, why);
    }
    return status;
}

static EngStatus composed_supports(const EngProblem *problem, const Composition *composition,
                                   EngErr *why)
{
    const EngKernel *gather;
    EngStatus status = eng_cpu_lookup_supports(problem, why);
    if (status) return status;
    EngProblem rows = eng_cpu_lookup_gather(problem, type_between(problem, composition));
    EngProblem product = eng_cpu_lookup_project(problem, type_between(problem, composition));
    status = choose_gather(&rows, composition, &gather, why);
    return status ? status : composition->project->supports(&product, why);
}

static void destroy(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    if (state->gather->destroy) state->gather->destroy(state->gather_state);
    if (state->composition->project->destroy)
        state->composition->project->destroy(state->project_state);
    eng_free(state->x);
    eng_free(state->x_scales);
    eng_free(state);
}

static EngStatus open_parts(State *state, EngErr *err)
{
    const EngProjectProblem *p = &state->project_problem.u.project;
    const EngKernel *project = state->composition->project;
    size_t tokens = (size_t)p->tokens, k = (size_t)p->k;
    EngStatus status =
        eng_alloc_or(&state->x, tokens, eng_dtype_bytes(p->x, k), "gathered rows", err);
    if (!status && p->x == ENG_FP8)
        status = eng_alloc_or((void **)&state->x_scales, tokens, k / ENG_SCALE_GROUP,
                              "gathered scales", err);
    if (!status && state->gather->create)
        status = state->gather->create(&state->gather_problem, &state->gather_state, err);
    if (!status && project->create)
        status = project->create(&state->project_problem, &state->project_state, err);
    return status;
}

static EngStatus composed_create(const EngProblem *problem, const Composition *composition,
                                 void **out, EngErr *err)
{
    State *state = NULL;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "look-up", err);
    if (status) goto done;
    state->composition = composition;
    state->gather_problem = eng_cpu_lookup_gather(problem, type_between(problem, composition));
    state->project_problem = eng_cpu_lookup_project(problem, type_between(problem, composition));
    status = choose_gather(&state->gather_problem, composition, &state->gather, err);
    if (!status) status = open_parts(state, err);
    if (status) {
        destroy(state);
        state = NULL;
    }
done:
    *out = state;
    return status;
}

static EngStatus run(void *opaque, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    State *state = opaque;
    const EngLookupArgs *a = &args->u.lookup;
    EngArgs rows = {.u.gather = {.rows = a->rows,
                                 .row_stride = a->row_stride,
                                 .out = state->x,
                                 .out_scales = state->x_scales}};
    EngArgs product = {.u.project = {.x = state->x, .x_scales = state->x_scales, .out = a->out}};
    (void)problem;
    EngStatus status = state->gather->run(state->gather_state, &state->gather_problem, &rows, err);
    if (status) return status;
    return state->composition->project->run(state->project_state, &state->project_problem, &product,
                                            err);
}

/* ---- variants ----------------------------------------------------------------------------------
 */

#define COMPOSED(id, is_roof, text, settings, ...)                                                 \
    static const Composition g_##id = __VA_ARGS__;                                                 \
    static EngStatus supports_##id(const EngProblem *problem, EngErr *why)                         \
    {                                                                                              \
        return composed_supports(problem, &g_##id, why);                                           \
    }                                                                                              \
    static EngStatus create_##id(const EngProblem *problem, void **state, EngErr *err)             \
    {                                                                                              \
        return composed_create(problem, &g_##id, state, err);                                      \
    }                                                                                              \
    const EngKernel eng_cpu_lookup_##id = {                                                        \
        .op = ENG_OP_LOOKUP,                                                                       \
        .name = #id,                                                                               \
        .backend = ENG_CPU,                                                                        \
        .roof = is_roof,                                                                           \
        .checked = true,                                                                           \
        .summary = text,                                                                           \
        .tunables = settings,                                                                      \
        .supports = supports_##id,                                                                 \
        .cost = eng_cpu_lookup_cost,                                                               \
        .create = create_##id,                                                                     \
        .run = run,                                                                                \
        .destroy = destroy,                                                                        \
    }

#define FASTEST_GATHER                                                                             \
    {                                                                                              \
        &eng_cpu_gather_avx512_vbmi_cached, &eng_cpu_gather_avx2, &eng_cpu_gather_portable         \
    }

COMPOSED(portable, false, "the portable gather, then the portable product", NULL,
         {{&eng_cpu_gather_portable}, &eng_cpu_project_portable, true});
COMPOSED(onednn_bf16, true, "roof: rows as bf16, then oneDNN matmul on packed bf16 weights", NULL,
         {FASTEST_GATHER, &eng_cpu_project_onednn_bf16, false});
COMPOSED(onednn_bf16_ip, true,
         "roof: rows as bf16, then oneDNN inner product on packed bf16 weights", NULL,
         {FASTEST_GATHER, &eng_cpu_project_onednn_bf16_ip, false});
COMPOSED(onednn_f32, true, "roof: rows as bf16, then oneDNN matmul on packed f32 weights", NULL,
         {FASTEST_GATHER, &eng_cpu_project_onednn_f32, false});
#if ENG_X86
#include "kernels/cpu/project_avx512.h"

COMPOSED(avx2, false, "the AVX2 gather, then the AVX2 product", NULL,
         {{&eng_cpu_gather_avx2}, &eng_cpu_project_avx2, true});
COMPOSED(avx512, false, "the AVX-512 gather, then the AVX-512 product", eng_project_avx512_tunables,
         {{&eng_cpu_gather_avx512_vbmi_cached}, &eng_cpu_project_avx512, true});
#endif
