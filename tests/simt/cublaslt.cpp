/* The part of cuBLASLt that kernels/cuda uses, without a device: products of bf16 matrices.
 *
 * What the library checks or leaves undefined is checked: layouts against shapes, leading
 * dimensions, alignment that was promised, workspace, an algorithm that was chosen for another
 * product. The product is work of its stream: its operands, output and workspace take part in the
 * search for races, and are read and written when the stream gets there.
 */
#include "runtime.hpp"

#include <cublasLt.h>

#include <cstring>
#include <vector>

struct cublasLtContext {
    bool live;
};

namespace simt
{
namespace
{
struct Desc {
    cublasComputeType_t compute;
    cudaDataType_t scale;
    cublasOperation_t a, b;
};

struct Layout {
    cudaDataType type;
    uint64_t rows, columns;
    int64_t ld;
};

struct Preference {
    size_t workspace;
    uint32_t aligned[4];
};

/* Kept in the opaque words of an algorithm. */
struct Choice {
    uint64_t m, n, k;
    size_t workspace;
    uint32_t aligned[4];
};

struct Matrix {
    uintptr_t at;
    Layout layout;
};

struct Product {
    uint64_t m, n, k;
    Matrix a, b, d;
    bool transposed_a, transposed_b;
    float alpha;
    uintptr_t workspace;
    size_t workspace_bytes;
};

/* What is kept in the words of an opaque object. */
template <class T, class Opaque> T of(const Opaque *opaque)
{
    T kept;
    static_assert(sizeof kept <= sizeof opaque->data, "fits the opaque words");
    memcpy(&kept, opaque->data, sizeof kept);
    return kept;
}

template <class Opaque, class T> void keep(Opaque *opaque, const T &value)
{
    static_assert(sizeof value <= sizeof opaque->data, "fits the opaque words");
    memcpy(opaque->data, &value, sizeof value);
}

size_t size_of(cudaDataType type)
{
    return type == CUDA_R_32F ? 4 : type == CUDA_R_16BF ? 2 : 0;
}

/* Sizes of the product, or nothing when they do not fit together. */
bool shape(const Desc &desc, const Layout &a, const Layout &b, const Layout &c, const Layout &d,
           Product *product)
{
    product->transposed_a = desc.a == CUBLAS_OP_T, product->transposed_b = desc.b == CUBLAS_OP_T;
    product->m = product->transposed_a ? a.columns : a.rows;
    product->k = product->transposed_a ? a.rows : a.columns;
    product->n = product->transposed_b ? b.rows : b.columns;
    uint64_t k = product->transposed_b ? b.columns : b.rows;
    product->a.layout = a, product->b.layout = b, product->d.layout = d;
    for (const Layout *layout : {&a, &b, &c, &d})
        if (!layout->rows || !layout->columns || layout->ld < (int64_t)layout->rows) return false;
    return k == product->k && a.type == CUDA_R_16BF && b.type == CUDA_R_16BF && size_of(d.type) &&
           c.type == d.type && c.rows == d.rows && c.columns == d.columns && d.rows == product->m &&
           d.columns == product->n && desc.compute == CUBLAS_COMPUTE_32F &&
           desc.scale == CUDA_R_32F;
}

size_t bytes_of(const Layout &layout)
{
    return ((size_t)layout.ld * (layout.columns - 1) + layout.rows) * size_of(layout.type);
}

float bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

uint16_t bf16_rounded(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value) return 0x7fff;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Vectors along k, as f32. */
std::vector<float> vectors(const Matrix &matrix, bool k_is_rows, uint64_t count, uint64_t k)
{
    std::vector<float> all(count * k);
    const uint16_t *from = reinterpret_cast<const uint16_t *>(matrix.at);
    size_t ld = (size_t)matrix.layout.ld;
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t l = 0; l < k; l++)
            all[i * k + l] = bf16(k_is_rows ? from[i * ld + l] : from[l * ld + i]);
    return all;
}

/* Eight partial sums in double, which g++ turns into vectors. */
float dot(const float *a, const float *b, uint64_t k)
{
    double sums[8] = {}, sum = 0;
    uint64_t l = 0;
    for (; l + 8 <= k; l += 8)
        for (int i = 0; i < 8; i++) sums[i] += (double)a[l + i] * b[l + i];
    for (; l < k; l++) sum += (double)a[l] * b[l];
    for (double one : sums) sum += one;
    return (float)sum;
}

void carry_out(const Product &product, uint32_t op)
{
    int before = faults();
    Stamp stamp = {};
    stamp.op = op;
    for (const Matrix *matrix : {&product.a, &product.b})
        memory_access(matrix->at, bytes_of(matrix->layout), Access::read, 1, stamp, false);
    memory_access(product.d.at, bytes_of(product.d.layout), Access::write, 1, stamp, false);
    if (product.workspace_bytes)
        memory_access(product.workspace, product.workspace_bytes, Access::write, 1, stamp, false);
    if (faults() != before) return;
    memset(reinterpret_cast<void *>(product.workspace), 0xff, product.workspace_bytes);
    std::vector<float> b = vectors(product.b, !product.transposed_b, product.n, product.k);
    size_t ld = (size_t)product.d.layout.ld;
    Matrix row = product.a; /* one vector of a at a time: it may be large */
    for (uint64_t i = 0; i < product.m; i++) {
        row.at = product.a.at + 2 * i * (product.transposed_a ? (size_t)product.a.layout.ld : 1);
        std::vector<float> a = vectors(row, product.transposed_a, 1, product.k);
        for (uint64_t j = 0; j < product.n; j++) {
            float sum = product.alpha * dot(a.data(), &b[j * product.k], product.k);
            if (product.d.layout.type == CUDA_R_32F)
                reinterpret_cast<float *>(product.d.at)[j * ld + i] = sum;
            else
                reinterpret_cast<uint16_t *>(product.d.at)[j * ld + i] = bf16_rounded(sum);
        }
    }
}

template <class T> cublasStatus_t give(T **out, Object kind, T *object)
{
    if (cudaError_t error = making_fails()) {
        delete object;
        return error == cudaErrorMemoryAllocation ? CUBLAS_STATUS_ALLOC_FAILED
                                                  : CUBLAS_STATUS_NOT_INITIALIZED;
    }
    made(kind, *out = object);
    return CUBLAS_STATUS_SUCCESS;
}

template <class T> cublasStatus_t take_back(Object kind, T *object)
{
    if (!destroyed(kind, object)) return CUBLAS_STATUS_INVALID_VALUE;
    delete object;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t wrong(const char *what)
{
    report(Fault::library_call, "cublasLtMatmul: %s", what);
    return CUBLAS_STATUS_INVALID_VALUE;
}
} // namespace
} // namespace simt

using namespace simt;

extern "C" {
cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    return give(handle, Object::handle, new cublasLtContext{true});
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    return take_back(Object::handle, handle);
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return status ? "simulated error" : "no error";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    auto *object = new cublasLtMatmulDescOpaque_t{};
    keep(object, Desc{compute, scale, CUBLAS_OP_N, CUBLAS_OP_N});
    return give(out, Object::description, object);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    return take_back(Object::description, desc);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size)
{
    Desc own = of<Desc>(desc);
    if (size != sizeof own.a) return CUBLAS_STATUS_INVALID_VALUE;
    if (attribute == CUBLASLT_MATMUL_DESC_TRANSA)
        memcpy(&own.a, value, size);
    else if (attribute == CUBLASLT_MATMUL_DESC_TRANSB)
        memcpy(&own.b, value, size);
    else
        return CUBLAS_STATUS_NOT_SUPPORTED;
    keep(desc, own);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld)
{
    auto *object = new cublasLtMatrixLayoutOpaque_t{};
    keep(object, Layout{type, rows, columns, ld});
    return give(out, Object::description, object);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return take_back(Object::description, layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    auto *object = new cublasLtMatmulPreferenceOpaque_t{};
    keep(object, Preference{0, {256, 256, 256, 256}});
    return give(out, Object::description, object);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    return take_back(Object::description, preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t size)
{
    static const cublasLtMatmulPreferenceAttributes_t aligned[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    Preference own = of<Preference>(preference);
    cublasStatus_t status = CUBLAS_STATUS_NOT_SUPPORTED;
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && size == sizeof own.workspace) {
        memcpy(&own.workspace, value, size);
        status = CUBLAS_STATUS_SUCCESS;
    }
    for (int i = 0; i < 4; i++)
        if (attribute == aligned[i] && size == sizeof own.aligned[i]) {
            memcpy(&own.aligned[i], value, size);
            status = CUBLAS_STATUS_SUCCESS;
        }
    keep(preference, own);
    return status;
}

/* One algorithm, which wants all the workspace that it may have, up to 4 KiB. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *n)
{
    Product product = {};
    *n = 0;
    if (!handle || wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
    if (!shape(of<Desc>(desc), of<Layout>(a), of<Layout>(b), of<Layout>(c), of<Layout>(d),
               &product))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    Preference own = of<Preference>(preference);
    Choice choice = {
        product.m, product.n, product.k, own.workspace < 4096 ? own.workspace : 4096, {}};
    memcpy(choice.aligned, own.aligned, sizeof choice.aligned);
    results[0] = cublasLtMatmulHeuristicResult_t{};
    keep(&results[0].algo, choice);
    results[0].workspaceSize = choice.workspace;
    *n = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream)
{
    Product product = {};
    float scale[2];
    if (!handle || !algorithm) return wrong("no handle or algorithm");
    Choice choice = of<Choice>(algorithm);
    memcpy(&scale[0], alpha, sizeof(float)), memcpy(&scale[1], beta, sizeof(float));
    if (!shape(of<Desc>(desc), of<Layout>(a_layout), of<Layout>(b_layout), of<Layout>(c_layout),
               of<Layout>(d_layout), &product))
        return wrong("layouts that do not fit together");
    if (choice.m != product.m || choice.n != product.n || choice.k != product.k)
        return wrong("an algorithm for another product");
    if (workspace_bytes < choice.workspace || (uintptr_t)workspace % 256)
        return wrong("a workspace that is too small or not aligned to 256 bytes");
    if (scale[1] != 0 || c != d) return wrong("a sum with c, which is not simulated");
    const void *const operands[4] = {a, b, c, d};
    for (int i = 0; i < 4; i++)
        if ((uintptr_t)operands[i] % choice.aligned[i])
            return wrong("less alignment than promised");
    product.alpha = scale[0];
    product.a.at = (uintptr_t)a, product.b.at = (uintptr_t)b, product.d.at = (uintptr_t)d;
    product.workspace = (uintptr_t)workspace, product.workspace_bytes = choice.workspace;
    return put(stream, "cublasLtMatmul", [product](uint32_t op) { simt::carry_out(product, op); },
               {simt::ActivityKind::kernel, simt::kernel_ns + product.m * product.n, 0, 0})
               ? CUBLAS_STATUS_EXECUTION_FAILED
               : CUBLAS_STATUS_SUCCESS;
}
}
