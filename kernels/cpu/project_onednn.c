/* Projection through oneDNN on expanded, packed weights: what a product can reach here, so a roof,
 * and the production path for many tokens. fp8 input is expanded inside run(). `onednn_bf16` and
 * `onednn_bf16_ip` (matmul and inner product: which is faster depends on M) need AVX-512;
 * `onednn_f32` runs everywhere.
 */
#include "kernels/cpu/common.h"
#include "kernels/cpu/onednn_weights.h"
#include "kernels/cpu/project.h"

#include "base/mem.h"

#include <omp.h>

typedef struct State {
    EngDtype type; /* of the product's operands */
    dnnl_primitive_t primitive;
    dnnl_stream_t stream;
    dnnl_memory_t src, dst;
    EngPackedWeights *weights;
    uint8_t *x;   /* expanded input, NULL when the caller's is used as it is */
    uint8_t *sum; /* f32 result of an f32 product that is to be rounded to bf16, else NULL */
} State;

static void destroy(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    if (state->primitive) dnnl_primitive_destroy(state->primitive);
    if (state->stream) dnnl_stream_destroy(state->stream);
    if (state->src) dnnl_memory_destroy(state->src);
    if (state->dst) dnnl_memory_destroy(state->dst);
    eng_packed_weights_release(state->weights);
    eng_free(state->x);
    eng_free(state->sum);
    eng_free(state);
}

static dnnl_data_type_t type_of(EngDtype type)
{
    return type == ENG_BF16 ? dnnl_bf16 : dnnl_f32;
}

/* The operation's description with weights in the layout oneDNN prefers (`any`), or plain. */
static dnnl_status_t describe(const EngProjectProblem *p, const State *state, bool inner_product,
                              dnnl_memory_desc_t *plain, dnnl_memory_desc_t *src,
                              dnnl_memory_desc_t *dst, dnnl_primitive_desc_t *desc,
                              dnnl_engine_t engine)
{
    dnnl_dims_t src_dims = {p->tokens, p->k}, dst_dims = {p->tokens, p->n};
    dnnl_dims_t ip_dims = {p->n, p->k}, mm_dims = {p->k, p->n};
    dnnl_dims_t ip_strides = {p->k, 1}, mm_strides = {1, p->k};
    dnnl_data_type_t type = type_of(state->type);
    dnnl_memory_desc_t any;
    dnnl_matmul_desc_t matmul;
    dnnl_inner_product_desc_t product;
    dnnl_status_t status = dnnl_memory_desc_init_by_tag(src, 2, src_dims, type, dnnl_ab);
    if (!status)
        status = dnnl_memory_desc_init_by_tag(dst, 2, dst_dims,
                                              state->sum ? dnnl_f32 : type_of(p->out), dnnl_ab);
    if (!status)
        status = dnnl_memory_desc_init_by_tag(&any, 2, inner_product ? ip_dims : mm_dims, type,
                                              dnnl_format_tag_any);
    if (!status)
        status = dnnl_memory_desc_init_by_strides(plain, 2, inner_product ? ip_dims : mm_dims, type,
                                                  inner_product ? ip_strides : mm_strides);
    if (status) return status;
    if (!inner_product) {
        status = dnnl_matmul_desc_init(&matmul, src, &any, NULL, dst);
        return status ? status : dnnl_primitive_desc_create(desc, &matmul, NULL, engine, NULL);
    }
    status = dnnl_inner_product_forward_desc_init(&product, dnnl_forward_inference, src, &any, NULL,
                                                  dst);
    return status ? status : dnnl_primitive_desc_create(desc, &product, NULL, engine, NULL);
}

static EngStatus build(const EngProblem *problem, State *state, bool inner_product, EngErr *err)
{
    dnnl_engine_t engine;
    dnnl_memory_desc_t plain, src, dst;
    dnnl_primitive_desc_t desc = NULL;
    EngStatus status = eng_onednn_engine(&engine, err);
    if (status) return status;
    status = eng_onednn_status(
        describe(&problem->u.project, state, inner_product, &plain, &src, &dst, &desc, engine),
        "this product", err);
    if (status) goto done;
    status = eng_packed_weights_acquire(
        problem, state->type, &plain, dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0),
        &state->weights, err);
    if (status) goto done;
    status = eng_onednn_status(dnnl_primitive_create(&state->primitive, desc), "product", err);
    if (status) goto done;
    status = eng_onednn_status(
        dnnl_stream_create(&state->stream, engine, dnnl_stream_default_flags), "stream", err);
    if (status) goto done;
    status = eng_onednn_status(dnnl_memory_create(&state->src, &src, engine, DNNL_MEMORY_NONE),
                               "input", err);
    if (status) goto done;
    status = eng_onednn_status(dnnl_memory_create(&state->dst, &dst, engine, DNNL_MEMORY_NONE),
                               "output", err);
done:
    if (desc) dnnl_primitive_desc_destroy(desc);
    return status;
}

static EngStatus create(const EngProblem *problem, EngDtype type, bool inner_product, void **out,
                        EngErr *err)
{
    const EngProjectProblem *p = &problem->u.project;
    State *state = NULL;
    int before = eng_onednn_set_threads(problem->threads);
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "projection", err);
    if (status) goto done;
    state->type = type;
    if (p->x != type) {
        status = eng_alloc_or((void **)&state->x, (size_t)p->tokens,
                              eng_dtype_bytes(type, (size_t)p->k), "expanded input", err);
        if (status) goto done;
    }
    if (type == ENG_F32 && p->out == ENG_BF16) {
        status = eng_alloc_or((void **)&state->sum, (size_t)p->tokens, (size_t)p->n * sizeof(float),
                              "f32 output", err);
        if (status) goto done;
    }
    if (p->tokens) status = build(problem, state, inner_product, err);
done:
    if (before != problem->threads) omp_set_num_threads(before);
    if (status) {
        destroy(state);
        state = NULL;
    }
    *out = state;
    return status;
}

static void expand_input(const EngProblem *problem, const EngProjectArgs *args, const State *state)
{
    const EngProjectProblem *p = &problem->u.project;
    size_t k = (size_t)p->k;
    int threads = problem->threads;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t t = 0; t < p->tokens; t++) {
        const uint8_t *scales =
            p->x == ENG_FP8 ? args->x_scales + (size_t)t * (k / ENG_SCALE_GROUP) : NULL;
        eng_onednn_expand_row(p->x, (const uint8_t *)args->x + (size_t)t * eng_dtype_bytes(p->x, k),
                              scales, p->k, state->type,
                              state->x + (size_t)t * eng_dtype_bytes(state->type, k));
    }
}

ENG_CLONES static void narrow(const uint8_t *from, uint8_t *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float wide;
        memcpy(&wide, from + 4 * i, sizeof wide);
        uint16_t bits = eng_cpu_bf16_of(wide);
        memcpy(to + 2 * i, &bits, sizeof bits);
    }
}

static void round_output(const EngProblem *problem, const State *state, uint8_t *out)
{
    const EngProjectProblem *p = &problem->u.project;
    size_t n = (size_t)p->n;
    int threads = problem->threads;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t t = 0; t < p->tokens; t++)
        narrow(state->sum + 4 * (size_t)t * n, out + 2 * (size_t)t * n, n);
}

static EngStatus run(void *opaque, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngProjectArgs *a = &args->u.project;
    State *state = opaque;
    if (!problem->u.project.tokens) return ENG_OK;
    if (state->x) expand_input(problem, a, state);
    int before = eng_onednn_set_threads(problem->threads);
    /* oneDNN does not write through the input's handle. */
    void *src = state->x ? state->x : (void *)(uintptr_t)a->x;
    dnnl_status_t status = dnnl_memory_set_data_handle(state->src, src);
    if (!status) status = dnnl_memory_set_data_handle(state->dst, state->sum ? state->sum : a->out);
    dnnl_exec_arg_t list[] = {{DNNL_ARG_SRC, state->src},
                              {DNNL_ARG_WEIGHTS, eng_packed_weights_memory(state->weights)},
                              {DNNL_ARG_DST, state->dst}};
    if (!status) status = dnnl_primitive_execute(state->primitive, state->stream, 3, list);
    if (!status) status = dnnl_stream_wait(state->stream);
    if (before != problem->threads) omp_set_num_threads(before);
    if (!status && state->sum) round_output(problem, state, a->out);
    return eng_onednn_status(status, "running the product", err);
}

/* ---- variants ----------------------------------------------------------------------------------
 */

static EngStatus supports_bf16(const EngProblem *problem, EngErr *why)
{
    EngStatus status = eng_cpu_project_supports(problem, why);
    return status ? status : eng_onednn_bf16(why);
}

static EngStatus create_bf16(const EngProblem *problem, void **out, EngErr *err)
{
    return create(problem, ENG_BF16, false, out, err);
}

static EngStatus create_bf16_ip(const EngProblem *problem, void **out, EngErr *err)
{
    return create(problem, ENG_BF16, true, out, err);
}

static EngStatus create_f32(const EngProblem *problem, void **out, EngErr *err)
{
    return create(problem, ENG_F32, false, out, err);
}

#define VARIANT(id, text, supports_fn, create_fn)                                                  \
    const EngKernel eng_cpu_project_##id = {                                                       \
        .op = ENG_OP_PROJECT,                                                                      \
        .name = #id,                                                                               \
        .backend = ENG_CPU,                                                                        \
        .roof = true,                                                                              \
        .checked = true,                                                                           \
        .summary = text,                                                                           \
        .supports = supports_fn,                                                                   \
        .cost = eng_cpu_project_cost,                                                              \
        .create = create_fn,                                                                       \
        .run = run,                                                                                \
        .destroy = destroy,                                                                        \
    }

VARIANT(onednn_bf16, "roof: oneDNN matmul on weights expanded to bf16 and packed", supports_bf16,
        create_bf16);
VARIANT(onednn_bf16_ip, "roof: oneDNN inner product on weights expanded to bf16 and packed",
        supports_bf16, create_bf16_ip);
VARIANT(onednn_f32, "roof: oneDNN matmul on weights expanded to f32 and packed",
        eng_cpu_project_supports, create_f32);
