/* Products of training through oneDNN; see grad_product.h. */
#include "bench/backbone/grad_product.h"

#include <oneapi/dnnl/dnnl.h>
#include <string.h>

#include "base/mem.h"
#include "bench/backbone/pointwise.h"
#include "kernels/cpu/onednn_weights.h"

/* ---- general ---- */

#ifdef ENG_BACKBONE_DOUBLE
EngStatus eng_real_gemm(const EngRealGemm *g, EngErr *err)
{
    (void)err;
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            EngReal sum = 0, *c = g->c + i * g->ldc + j;
            for (int64_t k = 0; k < g->k; k++)
                sum += g->a[g->turn_a ? k * g->lda + i : i * g->lda + k] *
                       g->b[g->turn_b ? j * g->ldb + k : k * g->ldb + j];
            *c = g->alpha * sum + (g->beta != 0 ? g->beta * *c : 0);
        }
    return ENG_OK;
}
#else
EngStatus eng_real_gemm(const EngRealGemm *g, EngErr *err)
{
    return eng_onednn_status(dnnl_sgemm(g->turn_a ? 'T' : 'N', g->turn_b ? 'T' : 'N', g->m, g->n,
                                        g->k, g->alpha, g->a, g->lda, g->b, g->ldb, g->beta, g->c,
                                        g->ldc),
                             "sgemm", err);
}
#endif

/* ---- with weights, f32 ---- */

static EngRealGemm forward_gemm(const EngDense *dense, const EngReal *x, int64_t rows, EngReal *y)
{
    return (EngRealGemm){.a = x,
                         .b = dense->w,
                         .c = y,
                         .m = rows,
                         .n = dense->out,
                         .k = dense->in,
                         .lda = dense->in,
                         .ldb = dense->turned ? dense->in : dense->out,
                         .ldc = dense->out,
                         .turn_b = dense->turned,
                         .alpha = 1};
}

static EngRealGemm input_gemm(const EngDense *dense, const EngReal *d_y, int64_t rows, EngReal *d_x,
                              bool add)
{
    bool turned = dense->turned || dense->w_turned;
    return (EngRealGemm){.a = d_y,
                         .b = dense->w_turned ? dense->w_turned : dense->w,
                         .c = d_x,
                         .m = rows,
                         .n = dense->in,
                         .k = dense->out,
                         .lda = dense->out,
                         .ldb = turned ? dense->in : dense->out,
                         .ldc = dense->in,
                         .turn_b = !turned,
                         .alpha = 1,
                         .beta = add};
}

static EngRealGemm weight_gemm(const EngDense *dense, const EngReal *x, const EngReal *d_y,
                               int64_t rows)
{
    bool turned = dense->turned;
    return (EngRealGemm){.a = turned ? d_y : x,
                         .b = turned ? x : d_y,
                         .c = dense->gradient,
                         .m = turned ? dense->out : dense->in,
                         .n = turned ? dense->in : dense->out,
                         .k = rows,
                         .lda = turned ? dense->out : dense->in,
                         .ldb = turned ? dense->in : dense->out,
                         .ldc = turned ? dense->in : dense->out,
                         .turn_a = true,
                         .alpha = 1,
                         .beta = !dense->fresh};
}

/* ---- bf16: a primitive for each shape of product, one more with open rows where they vary ---- */

typedef enum ProductKind { FORWARD = 0, INPUT, WEIGHT, INPUT_ADD, WEIGHT_ADD } ProductKind;

typedef struct Primitive {
    ProductKind kind;
    int64_t in, out, rows; /* rows 0: open */
    bool turned;
    dnnl_primitive_t primitive;
} Primitive;

enum { MAX_PRIMITIVES = 128 };

struct EngDenses {
    int64_t rows[ENG_DENSE_ROWS];
    uint16_t *a, *b; /* rounded operands: x and d_y */
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    Primitive list[MAX_PRIMITIVES];
    int n;
};

EngStatus eng_denses_create(EngDtype dtype, int64_t most, const int64_t rows[ENG_DENSE_ROWS],
                            EngDenses **denses, EngErr *err)
{
    EngDenses *made = NULL;
    EngStatus status = eng_alloc_or((void **)&made, 1, sizeof *made, "products", err);
    *denses = made;
    if (status || dtype != ENG_BF16) return status;
    memcpy(made->rows, rows, sizeof made->rows);
    status = eng_onednn_bf16(err);
    if (!status)
        status = eng_alloc_or((void **)&made->a, (size_t)most, sizeof *made->a, "products", err);
    if (!status)
        status = eng_alloc_or((void **)&made->b, (size_t)most, sizeof *made->b, "products", err);
    if (!status) status = eng_onednn_engine(&made->engine, err);
    if (!status)
        status = eng_onednn_status(
            dnnl_stream_create(&made->stream, made->engine, dnnl_stream_default_flags), "stream",
            err);
    return status;
}

void eng_denses_destroy(EngDenses *denses)
{
    if (!denses) return;
    for (int i = 0; i < denses->n; i++) dnnl_primitive_destroy(denses->list[i].primitive);
    if (denses->stream) dnnl_stream_destroy(denses->stream);
    eng_free(denses->a);
    eng_free(denses->b);
    eng_free(denses);
}

/* A matrix as oneDNN sees it: [rows, columns], or the other way round in memory. */
static dnnl_status_t describe_matrix(dnnl_data_type_t type, int64_t rows, int64_t columns,
                                     int64_t lead, bool turned, dnnl_memory_desc_t *desc)
{
    dnnl_dims_t dims = {rows, columns}, strides = {turned ? 1 : lead, turned ? lead : 1};
    return dnnl_memory_desc_init_by_strides(desc, 2, dims, type, strides);
}

/* The three matrices of a product over `rows` rows; open: DNNL_RUNTIME_DIM_VAL. */
static dnnl_status_t describe_product(const Primitive *p, int64_t rows, dnnl_memory_desc_t desc[3])
{
    int64_t in = p->in, out = p->out;
    dnnl_status_t status;
    if (p->kind == FORWARD) {
        status = describe_matrix(dnnl_bf16, rows, in, in, false, &desc[0]);
        if (!status)
            status = describe_matrix(dnnl_bf16, in, out, p->turned ? in : out, p->turned, &desc[1]);
        return status ? status : describe_matrix(dnnl_f32, rows, out, out, false, &desc[2]);
    }
    if (p->kind == INPUT || p->kind == INPUT_ADD) {
        status = describe_matrix(dnnl_bf16, rows, out, out, false, &desc[0]);
        if (!status)
            status =
                describe_matrix(dnnl_bf16, out, in, p->turned ? in : out, !p->turned, &desc[1]);
        return status ? status : describe_matrix(dnnl_f32, rows, in, in, false, &desc[2]);
    }
    int64_t m = p->turned ? out : in, n = p->turned ? in : out;
    status = describe_matrix(dnnl_bf16, m, rows, m, true, &desc[0]);
    if (!status) status = describe_matrix(dnnl_bf16, rows, n, n, false, &desc[1]);
    return status ? status : describe_matrix(dnnl_f32, m, n, n, false, &desc[2]);
}

static dnnl_status_t make_primitive(EngDenses *denses, Primitive *p)
{
    dnnl_memory_desc_t desc[3];
    dnnl_matmul_desc_t matmul;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t sum = NULL;
    dnnl_primitive_desc_t made = NULL;
    dnnl_status_t status = describe_product(p, p->rows ? p->rows : DNNL_RUNTIME_DIM_VAL, desc);
    if (!status) status = dnnl_matmul_desc_init(&matmul, &desc[0], &desc[1], NULL, &desc[2]);
    if (!status) status = dnnl_primitive_attr_create(&attr);
    if (!status) status = dnnl_post_ops_create(&sum);
    if (!status && p->kind >= INPUT_ADD) status = dnnl_post_ops_append_sum(sum, 1);
    if (!status) status = dnnl_primitive_attr_set_post_ops(attr, sum);
    if (!status) status = dnnl_primitive_desc_create(&made, &matmul, attr, denses->engine, NULL);
    if (!status) status = dnnl_primitive_create(&p->primitive, made);
    if (made) dnnl_primitive_desc_destroy(made);
    if (sum) dnnl_post_ops_destroy(sum);
    if (attr) dnnl_primitive_attr_destroy(attr);
    return status;
}

static EngStatus find_primitive(EngDenses *denses, Primitive wanted, const Primitive **found,
                                EngErr *err)
{
    for (int i = 0; i < denses->n; i++) {
        const Primitive *p = &denses->list[i];
        if (p->kind == wanted.kind && p->in == wanted.in && p->out == wanted.out &&
            p->rows == wanted.rows && p->turned == wanted.turned) {
            *found = p;
            return ENG_OK;
        }
    }
    if (denses->n == MAX_PRIMITIVES)
        return ENG_FAIL(err, ENG_INTERNAL, "more than %d shapes of products", MAX_PRIMITIVES);
    EngStatus status = eng_onednn_status(make_primitive(denses, &wanted), "a product", err);
    if (status) return status;
    denses->list[denses->n] = wanted;
    *found = &denses->list[denses->n++];
    return ENG_OK;
}

static EngStatus run_bf16(EngDenses *denses, ProductKind kind, const EngDense *dense,
                          const uint16_t *a, const uint16_t *b, int64_t rows, EngReal *c,
                          EngErr *err)
{
    Primitive wanted = {.kind = kind, .in = dense->in, .out = dense->out, .turned = dense->turned};
    const Primitive *p = NULL;
    const void *bytes[3] = {a, b, c};
    dnnl_memory_desc_t desc[3];
    dnnl_memory_t memory[3] = {NULL};
    for (int i = 0; i < ENG_DENSE_ROWS; i++)
        if (denses->rows[i] == rows) wanted.rows = rows;
    EngStatus status = find_primitive(denses, wanted, &p, err);
    if (status) return status;
    dnnl_status_t done = describe_product(p, rows, desc);
    for (int i = 0; i < 3 && !done; i++) /* oneDNN writes through the third alone */
        done =
            dnnl_memory_create(&memory[i], &desc[i], denses->engine, (void *)(uintptr_t)bytes[i]);
    dnnl_exec_arg_t list[] = {
        {DNNL_ARG_SRC, memory[0]}, {DNNL_ARG_WEIGHTS, memory[1]}, {DNNL_ARG_DST, memory[2]}};
    if (!done) done = dnnl_primitive_execute(p->primitive, denses->stream, 3, list);
    if (!done) done = dnnl_stream_wait(denses->stream);
    for (int i = 0; i < 3; i++)
        if (memory[i]) dnnl_memory_destroy(memory[i]);
    return eng_onednn_status(done, "running a product", err);
}

static const uint16_t *round_to(uint16_t *to, const EngReal *from, int64_t n)
{
    eng_to_bf16(from, to, (size_t)n);
    return to;
}

/* ---- both ---- */

EngStatus eng_dense_forward(EngDenses *denses, const EngDense *dense, const EngReal *x,
                            int64_t rows, EngReal *y, EngErr *err)
{
    if (!rows) return ENG_OK;
    if (dense->rounded)
        return run_bf16(denses, FORWARD, dense, round_to(denses->a, x, rows * dense->in),
                        dense->rounded, rows, y, err);
    EngRealGemm gemm = forward_gemm(dense, x, rows, y);
    return eng_real_gemm(&gemm, err);
}

EngStatus eng_dense_input(EngDenses *denses, const EngDense *dense, const EngReal *d_y,
                          int64_t rows, EngReal *d_x, bool add, EngErr *err)
{
    if (!rows) return ENG_OK;
    if (dense->rounded)
        return run_bf16(denses, add ? INPUT_ADD : INPUT, dense,
                        round_to(denses->b, d_y, rows * dense->out), dense->rounded, rows, d_x,
                        err);
    EngRealGemm gemm = input_gemm(dense, d_y, rows, d_x, add);
    return eng_real_gemm(&gemm, err);
}

static EngStatus no_rows(const EngDense *dense)
{
    if (dense->fresh)
        memset(dense->gradient, 0, (size_t)(dense->in * dense->out) * sizeof *dense->gradient);
    return ENG_OK;
}

/* x and d_y are rounded already. */
static EngStatus weight_bf16(EngDenses *denses, const EngDense *dense, int64_t rows, EngErr *err)
{
    bool turned = dense->turned;
    return run_bf16(denses, dense->fresh ? WEIGHT : WEIGHT_ADD, dense,
                    turned ? denses->b : denses->a, turned ? denses->a : denses->b, rows,
                    dense->gradient, err);
}

EngStatus eng_dense_weight(EngDenses *denses, const EngDense *dense, const EngReal *x,
                           const EngReal *d_y, int64_t rows, EngErr *err)
{
    if (!rows) return no_rows(dense);
    if (dense->rounded) {
        round_to(denses->a, x, rows * dense->in);
        round_to(denses->b, d_y, rows * dense->out);
        return weight_bf16(denses, dense, rows, err);
    }
    EngRealGemm gemm = weight_gemm(dense, x, d_y, rows);
    return eng_real_gemm(&gemm, err);
}

uint16_t *eng_dense_rounded(EngDenses *denses, const EngDense *dense)
{
    return dense->rounded ? denses->b : NULL;
}

EngStatus eng_dense_backward(EngDenses *denses, const EngDense *dense, const EngReal *x,
                             const EngReal *d_y, int64_t rows, EngReal *d_x, bool add, EngErr *err)
{
    if (!rows) return no_rows(dense);
    if (!dense->rounded) {
        EngStatus first = eng_dense_weight(denses, dense, x, d_y, rows, err);
        return first ? first : eng_dense_input(denses, dense, d_y, rows, d_x, add, err);
    }
    round_to(denses->a, x, rows * dense->in);
    if (d_y) round_to(denses->b, d_y, rows * dense->out);
    EngStatus status = weight_bf16(denses, dense, rows, err);
    if (status) return status;
    return run_bf16(denses, add ? INPUT_ADD : INPUT, dense, denses->b, dense->rounded, rows, d_x,
                    err);
}
