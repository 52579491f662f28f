/* Products through oneDNN; see product.h. One matmul primitive per shape of weights, with the
 * number of rows left open until it runs. */
#include "bench/backbone/product.h"

#include <oneapi/dnnl/dnnl.h>

#include "base/mem.h"
#include "bench/backbone/pointwise.h"
#include "kernels/cpu/onednn_weights.h"

#define MAX_SHAPES 16 /* of weights; a backbone has eleven */

typedef struct Shape {
    int64_t inputs, outputs;
    bool transposed;
    dnnl_primitive_t primitive;
    dnnl_memory_desc_t weights;
} Shape;

struct EngProducts {
    EngDtype dtype;
    uint16_t *rounded; /* [max_rows, max_inputs], bf16 only */
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    Shape shapes[MAX_SHAPES];
    int n_shapes;
};

EngStatus eng_products_create(EngDtype dtype, int64_t max_rows, int64_t max_inputs,
                              EngProducts **products, EngErr *err)
{
    EngProducts *made = NULL;
    EngStatus status = eng_alloc_or((void **)&made, 1, sizeof *made, "products", err);
    *products = made;
    if (status) return status;
    made->dtype = dtype;
    if (dtype != ENG_BF16) return ENG_OK;
    status = eng_onednn_bf16(err);
    if (!status)
        status = eng_alloc_or((void **)&made->rounded, (size_t)max_rows,
                              (size_t)max_inputs * sizeof *made->rounded, "rounded inputs", err);
    if (!status) status = eng_onednn_engine(&made->engine, err);
    if (!status)
        status = eng_onednn_status(
            dnnl_stream_create(&made->stream, made->engine, dnnl_stream_default_flags), "stream",
            err);
    if (!status) return ENG_OK;
    eng_products_destroy(made);
    *products = NULL;
    return status;
}

void eng_products_destroy(EngProducts *products)
{
    if (!products) return;
    for (int i = 0; i < products->n_shapes; i++)
        dnnl_primitive_destroy(products->shapes[i].primitive);
    if (products->stream) dnnl_stream_destroy(products->stream);
    eng_free(products->rounded);
    eng_free(products);
}

/* Memory of [rows, columns] where `bytes` are. */
static dnnl_status_t wrap(dnnl_engine_t engine, dnnl_data_type_t type, int64_t rows,
                          int64_t columns, void *bytes, dnnl_memory_t *memory)
{
    dnnl_memory_desc_t desc;
    dnnl_dims_t dims = {rows, columns}, strides = {columns, 1};
    dnnl_status_t status = dnnl_memory_desc_init_by_strides(&desc, 2, dims, type, strides);
    return status ? status : dnnl_memory_create(memory, &desc, engine, bytes);
}

static dnnl_status_t make_shape(EngProducts *products, const EngProduct *p, Shape *shape)
{
    dnnl_memory_desc_t x, y;
    dnnl_matmul_desc_t matmul;
    dnnl_primitive_desc_t desc;
    dnnl_dims_t x_dims = {DNNL_RUNTIME_DIM_VAL, p->inputs}, w_dims = {p->inputs, p->outputs},
                y_dims = {DNNL_RUNTIME_DIM_VAL, p->outputs};
    dnnl_dims_t x_strides = {p->inputs, 1}, y_strides = {p->outputs, 1},
                w_strides = {p->transposed ? 1 : p->outputs, p->transposed ? p->inputs : 1};
    *shape = (Shape){.inputs = p->inputs, .outputs = p->outputs, .transposed = p->transposed};
    dnnl_status_t status = dnnl_memory_desc_init_by_strides(&x, 2, x_dims, dnnl_bf16, x_strides);
    if (!status)
        status = dnnl_memory_desc_init_by_strides(&shape->weights, 2, w_dims, dnnl_bf16, w_strides);
    if (!status) status = dnnl_memory_desc_init_by_strides(&y, 2, y_dims, dnnl_f32, y_strides);
    if (!status) status = dnnl_matmul_desc_init(&matmul, &x, &shape->weights, NULL, &y);
    if (!status) status = dnnl_primitive_desc_create(&desc, &matmul, NULL, products->engine, NULL);
    if (status) return status;
    status = dnnl_primitive_create(&shape->primitive, desc);
    dnnl_primitive_desc_destroy(desc);
    return status;
}

static EngStatus find_shape(EngProducts *products, const EngProduct *p, const Shape **found,
                            EngErr *err)
{
    for (int i = 0; i < products->n_shapes; i++) {
        const Shape *shape = &products->shapes[i];
        if (shape->inputs == p->inputs && shape->outputs == p->outputs &&
            shape->transposed == p->transposed) {
            *found = shape;
            return ENG_OK;
        }
    }
    if (products->n_shapes == MAX_SHAPES)
        return ENG_FAIL(err, ENG_INTERNAL, "more than %d shapes of weights", MAX_SHAPES);
    Shape *shape = &products->shapes[products->n_shapes];
    EngStatus status = eng_onednn_status(make_shape(products, p, shape), "a product", err);
    if (!status) products->n_shapes++;
    *found = shape;
    return status;
}

static EngStatus product_bf16(EngProducts *products, const EngProduct *p, EngErr *err)
{
    const Shape *shape = NULL;
    dnnl_memory_t x = NULL, w = NULL, y = NULL;
    EngStatus status = find_shape(products, p, &shape, err);
    if (status) return status;
    eng_to_bf16(p->x, products->rounded, (size_t)(p->rows * p->inputs));
    dnnl_status_t done =
        wrap(products->engine, dnnl_bf16, p->rows, p->inputs, products->rounded, &x);
    if (!done) done = wrap(products->engine, dnnl_f32, p->rows, p->outputs, p->y, &y);
    /* oneDNN does not write through the weights' handle. */
    if (!done)
        done = dnnl_memory_create(&w, &shape->weights, products->engine, (void *)(uintptr_t)p->w);
    dnnl_exec_arg_t list[] = {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y}};
    if (!done) done = dnnl_primitive_execute(shape->primitive, products->stream, 3, list);
    if (!done) done = dnnl_stream_wait(products->stream);
    if (x) dnnl_memory_destroy(x);
    if (w) dnnl_memory_destroy(w);
    if (y) dnnl_memory_destroy(y);
    return eng_onednn_status(done, "running a product", err);
}

EngStatus eng_product(EngProducts *products, const EngProduct *p, EngErr *err)
{
    if (!p->rows) return ENG_OK;
    if (products->dtype == ENG_BF16) return product_bf16(products, p, err);
    EngGemm gemm = {.a = p->x,
                    .b = p->w,
                    .c = p->y,
                    .m = p->rows,
                    .n = p->outputs,
                    .k = p->inputs,
                    .lda = p->inputs,
                    .ldb = p->transposed ? p->inputs : p->outputs,
                    .ldc = p->outputs,
                    .transposed = p->transposed,
                    .alpha = 1};
    return eng_gemm(&gemm, err);
}

EngStatus eng_gemm(const EngGemm *g, EngErr *err)
{
    return eng_onednn_status(dnnl_sgemm('N', g->transposed ? 'T' : 'N', g->m, g->n, g->k, g->alpha,
                                        g->a, g->lda, g->b, g->ldb, 0, g->c, g->ldc),
                             "sgemm", err);
}
