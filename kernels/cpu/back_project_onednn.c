/* Backward of the projection through oneDNN: f32 by its sgemm, which takes a transposed operand and
 * adds to what is there; bf16 by two matmuls on operands rounded in run(), d_out also transposed on
 * the way, since products with a transposed input are far slower there.
 */
#include "kernels/cpu/back_project.h"
#include "kernels/cpu/common.h"
#include "kernels/cpu/onednn_weights.h"

#include "base/mem.h"

#include <omp.h>

/* One product of bf16 matrices, f32 out. */
typedef struct Product {
    dnnl_primitive_t primitive;
    dnnl_memory_t a, b, c;
} Product;

/* bf16 only. */
typedef struct State {
    dnnl_stream_t stream;
    Product d_x, d_w;
    uint16_t *x, *w, *d_out, *d_out_t; /* rounded; d_out_t [n, tokens] */
} State;

static void destroy_product(Product *product)
{
    if (product->primitive) dnnl_primitive_destroy(product->primitive);
    if (product->a) dnnl_memory_destroy(product->a);
    if (product->b) dnnl_memory_destroy(product->b);
    if (product->c) dnnl_memory_destroy(product->c);
}

static void destroy(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    destroy_product(&state->d_x);
    destroy_product(&state->d_w);
    if (state->stream) dnnl_stream_destroy(state->stream);
    eng_free(state->x);
    eng_free(state->w);
    eng_free(state->d_out);
    eng_free(state->d_out_t);
    eng_free(state);
}

/* c [m, n] = a [m, k] . b [k, n], or added to c; a and b where they will lie in every run. */
static dnnl_status_t make_product(dnnl_engine_t engine, int64_t m, int64_t n, int64_t k, void *a,
                                  void *b, bool add, Product *out)
{
    dnnl_dims_t a_dims = {m, k}, b_dims = {k, n}, c_dims = {m, n};
    dnnl_memory_desc_t a_desc, b_desc, c_desc;
    dnnl_matmul_desc_t matmul;
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_post_ops_t after = NULL;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_status_t status = dnnl_memory_desc_init_by_tag(&a_desc, 2, a_dims, dnnl_bf16, dnnl_ab);
    if (!status) status = dnnl_memory_desc_init_by_tag(&b_desc, 2, b_dims, dnnl_bf16, dnnl_ab);
    if (!status) status = dnnl_memory_desc_init_by_tag(&c_desc, 2, c_dims, dnnl_f32, dnnl_ab);
    if (!status) status = dnnl_matmul_desc_init(&matmul, &a_desc, &b_desc, NULL, &c_desc);
    if (!status) status = dnnl_primitive_attr_create(&attributes);
    if (!status) status = dnnl_post_ops_create(&after);
    if (!status && add) status = dnnl_post_ops_append_sum(after, 1.0f);
    if (!status) status = dnnl_primitive_attr_set_post_ops(attributes, after);
    if (!status) status = dnnl_primitive_desc_create(&desc, &matmul, attributes, engine, NULL);
    if (!status) status = dnnl_primitive_create(&out->primitive, desc);
    if (!status) status = dnnl_memory_create(&out->a, &a_desc, engine, a);
    if (!status) status = dnnl_memory_create(&out->b, &b_desc, engine, b);
    if (!status) status = dnnl_memory_create(&out->c, &c_desc, engine, DNNL_MEMORY_NONE);
    if (desc) dnnl_primitive_desc_destroy(desc);
    if (after) dnnl_post_ops_destroy(after);
    if (attributes) dnnl_primitive_attr_destroy(attributes);
    return status;
}

static EngStatus build(const EngBackProjectProblem *p, State *state, EngErr *err)
{
    size_t m = (size_t)p->tokens, n = (size_t)p->n, k = (size_t)p->k, size = sizeof(uint16_t);
    struct {
        uint16_t **at;
        size_t rows, columns;
    } wanted[] = {
        {&state->x, m, k}, {&state->w, n, k}, {&state->d_out, m, n}, {&state->d_out_t, n, m}};
    EngStatus status = ENG_OK;
    dnnl_engine_t engine;
    for (size_t i = 0; !status && i < sizeof wanted / sizeof *wanted; i++)
        status = eng_alloc_or((void **)wanted[i].at, wanted[i].rows, wanted[i].columns * size,
                              "rounded operands", err);
    if (!status) status = eng_onednn_engine(&engine, err);
    if (status) return status;
    dnnl_status_t done = dnnl_stream_create(&state->stream, engine, dnnl_stream_default_flags);
    if (!done)
        done =
            make_product(engine, p->tokens, p->k, p->n, state->d_out, state->w, false, &state->d_x);
    if (!done)
        done = make_product(engine, p->n, p->k, p->tokens, state->d_out_t, state->x, true,
                            &state->d_w);
    return eng_onednn_status(done, "a product", err);
}

static EngStatus create(const EngProblem *problem, void **out, EngErr *err)
{
    const EngBackProjectProblem *p = &problem->u.back_project;
    State *state = NULL;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "projection", err);
    *out = state;
    if (status) return status;
    int before = eng_onednn_set_threads(problem->threads);
    if (p->type == ENG_BF16 && p->tokens) status = build(p, state, err);
    omp_set_num_threads(before);
    if (!status) return ENG_OK;
    destroy(state);
    *out = NULL;
    return status;
}

/* ---- running ----------------------------------------------------------------------------------
 */

static dnnl_status_t run_f32(const EngBackProjectProblem *p, const EngBackProjectArgs *a)
{
    dnnl_status_t status = dnnl_success;
    if (a->d_x)
        status = dnnl_sgemm('N', 'N', p->tokens, p->k, p->n, 1, a->d_out, p->n, a->w, p->k, 0,
                            a->d_x, p->k);
    if (status) return status;
    return dnnl_sgemm('T', 'N', p->n, p->k, p->tokens, 1, a->d_out, p->n, a->x, p->k, 1, a->d_w,
                      p->k);
}

ENG_CLONES static void round_values(const float *restrict from, size_t n, uint16_t *restrict to)
{
    for (size_t i = 0; i < n; i++) to[i] = eng_cpu_bf16_of(from[i]);
}

static void round_all(const float *from, int64_t n, uint16_t *to, int threads)
{
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        int64_t first, end;
        eng_cpu_share(n, omp_get_num_threads(), omp_get_thread_num(), &first, &end);
        round_values(from + first, (size_t)(end - first), to + first);
    }
}

/* from [rows, columns] to [columns, rows], in tiles that fit the first-level cache. */
static void transpose(const uint16_t *from, int64_t rows, int64_t columns, uint16_t *to,
                      int threads)
{
    enum { TILE = 64 };
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t c0 = 0; c0 < columns; c0 += TILE)
        for (int64_t r0 = 0; r0 < rows; r0 += TILE)
            for (int64_t c = c0; c < c0 + TILE && c < columns; c++)
                for (int64_t r = r0; r < r0 + TILE && r < rows; r++)
                    to[c * rows + r] = from[r * columns + c];
}

static dnnl_status_t execute(const Product *product, dnnl_stream_t stream, float *c)
{
    dnnl_exec_arg_t list[] = {
        {DNNL_ARG_SRC, product->a}, {DNNL_ARG_WEIGHTS, product->b}, {DNNL_ARG_DST, product->c}};
    dnnl_status_t status = dnnl_memory_set_data_handle(product->c, c);
    if (!status) status = dnnl_primitive_execute(product->primitive, stream, 3, list);
    return status ? status : dnnl_stream_wait(stream);
}

static dnnl_status_t run_bf16(const EngBackProjectProblem *p, const EngBackProjectArgs *a,
                              const State *state, int threads)
{
    dnnl_status_t status = dnnl_success;
    round_all(a->d_out, p->tokens * p->n, state->d_out, threads);
    round_all(a->x, p->tokens * p->k, state->x, threads);
    transpose(state->d_out, p->tokens, p->n, state->d_out_t, threads);
    if (a->d_x) {
        round_all(a->w, (int64_t)p->n * p->k, state->w, threads);
        status = execute(&state->d_x, state->stream, a->d_x);
    }
    return status ? status : execute(&state->d_w, state->stream, a->d_w);
}

static EngStatus run(void *opaque, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngBackProjectProblem *p = &problem->u.back_project;
    const EngBackProjectArgs *a = &args->u.back_project;
    if (!p->tokens) return ENG_OK;
    int before = eng_onednn_set_threads(problem->threads);
    dnnl_status_t status =
        p->type == ENG_BF16 ? run_bf16(p, a, opaque, problem->threads) : run_f32(p, a);
    omp_set_num_threads(before);
    if (!status && a->d_bias) eng_cpu_back_project_bias(problem, a);
    return eng_onednn_status(status, "running the product", err);
}

static EngStatus supports(const EngProblem *problem, EngErr *why)
{
    EngStatus status = eng_cpu_back_project_supports(problem, why);
    if (status || problem->u.back_project.type != ENG_BF16) return status;
    return eng_onednn_bf16(why);
}

const EngKernel eng_cpu_back_project_onednn = {
    .op = ENG_OP_BACK_PROJECT,
    .name = "onednn",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "oneDNN products, f32, or bf16 rounded and transposed on the way",
    .supports = supports,
    .cost = eng_cpu_back_project_cost,
    .create = create,
    .run = run,
    .destroy = destroy,
};
