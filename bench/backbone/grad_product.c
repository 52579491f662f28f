/* Products of training through oneDNN; see grad_product.h. */
#include "bench/backbone/grad_product.h"

#include <oneapi/dnnl/dnnl.h>

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

/* ---- with weights ---- */

struct EngDenses {
    EngDtype dtype;
    uint16_t *a, *b; /* rounded operands */
};

EngStatus eng_denses_create(EngDtype dtype, int64_t max_elements, EngDenses **denses, EngErr *err)
{
    EngDenses *made = NULL;
    EngStatus status = eng_alloc_or((void **)&made, 1, sizeof *made, "products", err);
    *denses = made;
    if (status) return status;
    made->dtype = dtype;
    (void)max_elements;
    return ENG_OK;
}

void eng_denses_destroy(EngDenses *denses)
{
    if (!denses) return;
    eng_free(denses->a);
    eng_free(denses->b);
    eng_free(denses);
}

EngStatus eng_dense_forward(EngDenses *denses, const EngDense *dense, const EngReal *x,
                            int64_t rows, EngReal *y, EngErr *err)
{
    (void)denses;
    EngRealGemm gemm = {.a = x,
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
    return rows ? eng_real_gemm(&gemm, err) : ENG_OK;
}

EngStatus eng_dense_input(EngDenses *denses, const EngDense *dense, const EngReal *d_y,
                          int64_t rows, EngReal *d_x, bool add, EngErr *err)
{
    (void)denses;
    bool turned = dense->turned || dense->w_turned;
    EngRealGemm gemm = {.a = d_y,
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
    return rows ? eng_real_gemm(&gemm, err) : ENG_OK;
}

EngStatus eng_dense_weight(EngDenses *denses, const EngDense *dense, const EngReal *x,
                           const EngReal *d_y, int64_t rows, EngErr *err)
{
    (void)denses;
    bool turned = dense->turned;
    EngRealGemm gemm = {.a = turned ? d_y : x,
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
                        .beta = 1};
    return rows ? eng_real_gemm(&gemm, err) : ENG_OK;
}
