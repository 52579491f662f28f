/* Gather from a table in host memory by staged copies; see device.h.
 *
 * Reading pinned rows in place makes a small transfer of each row. Here the host packs the rows
 * into one pinned buffer, in the table's own format, so that one large copy moves them, and the
 * kernel of gather_decode.cu decodes the copy.
 */
#include "kernels/cuda/device.h"

#include <string.h>

#include "kernels/cuda/errors.cuh"
#include "kernels/cuda/queue.h"

extern "C" {
#include "base/mem.h"
}

#define AHEAD 8 /* rows asked for before they are packed */

typedef struct Part { /* the values or the scales of a batch's rows */
    const uint8_t *table;
    size_t stride, bytes; /* from row to row; of a row, padding left out */
    uint8_t *pinned, *device;
} Part;

struct EngCudaStaged {
    EngGatherProblem problem;
    Part parts[2]; /* values, scales; stride 0: there are none */
    EngCudaEvent *sent;
    bool in_flight;
};

static EngStatus on_host(const EngTable *table, EngErr *err)
{
    cudaPointerAttributes attributes;
    EngStatus status =
        eng_cuda_check(cudaPointerGetAttributes(&attributes, table->values), "the table", err);
    if (status || attributes.type != cudaMemoryTypeDevice) return status;
    return ENG_FAIL(err, ENG_UNSUPPORTED, "the host cannot pack rows of a table in device memory");
}

EngStatus eng_cuda_staged_create(const EngGatherProblem *problem, EngCudaStaged **out, EngErr *err)
{
    const EngTable *table = &problem->table;
    EngRowFormat format = table->format;
    EngCudaStaged *staged = NULL;
    *out = NULL;
    EngStatus status = on_host(table, err);
    if (!status && (problem->columns < 1 || problem->tokens < 0 ||
                    problem->tokens > INT32_MAX / problem->columns))
        status = ENG_FAIL(err, ENG_UNSUPPORTED, "gather: %lld tokens of %d columns",
                          (long long)problem->tokens, problem->columns);
    if (!status) status = eng_alloc_or((void **)&staged, 1, sizeof *staged, "staged gather", err);
    if (status) return status;
    staged->problem = *problem;
    size_t scale_bytes = eng_row_scale_bytes(format, table->row_dims);
    staged->parts[0] = {table->values, eng_row_stride_bytes(format, table->row_dims),
                        eng_row_value_bytes(format, table->row_dims), NULL, NULL};
    staged->parts[1] = {table->scales, scale_bytes, scale_bytes, NULL, NULL};
    size_t n = (size_t)(problem->tokens * problem->columns);
    status = eng_cuda_event_create(&staged->sent, err);
    for (Part &part : staged->parts) {
        if (!part.stride || status) continue;
        status = eng_cuda_alloc(ENG_CUDA_PINNED, n * part.stride, (void **)&part.pinned, err);
        if (!status)
            status = eng_cuda_alloc(ENG_CUDA_DEVICE, n * part.stride, (void **)&part.device, err);
        /* Padding is copied, and nobody else writes it. */
        if (!status && part.bytes < part.stride) memset(part.pinned, 0, n * part.stride);
    }
    if (status) {
        eng_cuda_staged_destroy(staged);
        staged = NULL;
    }
    *out = staged;
    return status;
}

void eng_cuda_staged_destroy(EngCudaStaged *staged)
{
    if (!staged) return;
    for (Part &part : staged->parts) {
        eng_cuda_free(ENG_CUDA_PINNED, part.pinned);
        eng_cuda_free(ENG_CUDA_DEVICE, part.device);
    }
    eng_cuda_event_destroy(staged->sent);
    eng_free(staged);
}

static void pack(const EngGatherProblem *problem, const Part &part, const int64_t *rows,
                 int64_t row_stride)
{
    uint8_t *to = part.pinned;
    for (int64_t t = 0; t < problem->tokens; t++, rows += row_stride) {
        for (int c = 0; c < problem->columns; c++, to += part.stride) {
            if (c + AHEAD < problem->columns)
                for (size_t line = 0; line < part.bytes; line += 64)
                    __builtin_prefetch(part.table + (size_t)rows[c + AHEAD] * part.stride + line);
            memcpy(to, part.table + (size_t)rows[c] * part.stride, part.bytes);
        }
    }
}

EngStatus eng_cuda_staged_pack(EngCudaStaged *staged, const int64_t *rows, int64_t row_stride,
                               EngErr *err)
{
    EngStatus status = staged->in_flight ? eng_cuda_event_wait(staged->sent, err) : ENG_OK;
    if (status) return status;
    staged->in_flight = false;
    for (const Part &part : staged->parts)
        if (part.stride) pack(&staged->problem, part, rows, row_stride);
    return ENG_OK;
}

EngStatus eng_cuda_staged_send(EngCudaStaged *staged, const EngGatherArgs *args, EngCudaGrid grid,
                               EngCudaStream *stream, EngErr *err)
{
    EngGatherProblem problem = staged->problem;
    EngGatherArgs own = {NULL, problem.columns, args->out, args->out_scales};
    cudaStreamCaptureStatus capture;
    EngStatus status = ENG_OK;
    if (!problem.tokens) return status;
    size_t n = (size_t)(problem.tokens * problem.columns);
    for (const Part &part : staged->parts)
        if (part.stride && !status)
            status = eng_cuda_copy_async(part.device, part.pinned, n * part.stride, stream, err);
    problem.table.values = staged->parts[0].device;
    problem.table.scales = staged->parts[1].device;
    problem.table.rows = (int64_t)n;
    if (!status) status = eng_cuda_check(cudaStreamIsCapturing(stream, &capture), "gather", err);
    if (!status && capture == cudaStreamCaptureStatusNone) {
        status = eng_cuda_event_record(staged->sent, stream, err);
        staged->in_flight = !status;
    }
    return status ? status : eng_cuda_gather(&problem, &own, grid, stream, err);
}
