/* See device_table.h. */
#include "bench/experiments/device_table.h"

#include <string.h>

#include "base/mem.h"
#include "kernels/cuda/queue.h"

static EngDeviceTable *g_tables;

static size_t value_bytes(const EngTable *table)
{
    return (size_t)table->rows * eng_row_stride_bytes(table->format, table->row_dims);
}

static size_t scale_bytes(const EngTable *table)
{
    return (size_t)table->rows * eng_row_scale_bytes(table->format, table->row_dims);
}

EngStatus eng_device_table_fits(const EngTable *table, EngErr *why)
{
    EngCudaInfo info;
    double bytes = (double)value_bytes(table) + (double)scale_bytes(table);
    EngStatus status = eng_cuda_info(&info, why);
    if (status || bytes < (double)info.memory_bytes) return status;
    return ENG_FAIL(why, ENG_UNSUPPORTED, "table of %.1f GiB, the device has %.1f", bytes / 0x1p30,
                    (double)info.memory_bytes / 0x1p30);
}

/* ---- made ---- */

static void release(EngDeviceTable *made)
{
    eng_cuda_free(ENG_CUDA_DEVICE, (void *)made->table.values);
    eng_cuda_free(ENG_CUDA_DEVICE, (void *)made->table.scales);
    eng_free(made);
}

static EngStatus fill(EngDeviceTable *made, EngErr *err)
{
    EngContent content;
    void *quantiles = NULL;
    EngCudaStream *stream;
    EngStatus status = eng_content_create(&content, made->table.format, made->seed, err);
    if (!status) status = eng_cuda_main(&stream, err);
    if (!status && content.quantiles) {
        size_t bytes = ENG_CONTENT_QUANTILES * sizeof *content.quantiles;
        status = eng_cuda_alloc(ENG_CUDA_DEVICE, bytes, &quantiles, err);
        if (!status) status = eng_cuda_copy(quantiles, content.quantiles, bytes, err);
    }
    if (!status)
        status =
            eng_cuda_fill(&made->table, 0, made->table.rows, made->seed, quantiles, stream, err);
    if (!status) status = eng_cuda_wait(stream, err);
    eng_cuda_free(ENG_CUDA_DEVICE, quantiles);
    eng_content_destroy(&content);
    return status;
}

static EngStatus make(const EngTable *like, uint64_t seed, EngDeviceTable **out, EngErr *err)
{
    EngDeviceTable *made = NULL;
    void *values = NULL, *scales = NULL;
    EngStatus status = eng_alloc_or((void **)&made, 1, sizeof *made, "table on the device", err);
    if (!status) status = eng_cuda_alloc(ENG_CUDA_DEVICE, value_bytes(like), &values, err);
    if (!status && scale_bytes(like))
        status = eng_cuda_alloc(ENG_CUDA_DEVICE, scale_bytes(like), &scales, err);
    if (made) {
        made->table = *like;
        made->table.values = values, made->table.scales = scales;
        made->seed = seed;
    }
    if (!status) status = fill(made, err);
    if (status && made) release(made);
    if (!status) *out = made;
    return status;
}

EngStatus eng_device_table_take(const EngTable *like, uint64_t seed, EngDeviceTable **out,
                                EngErr *err)
{
    EngDeviceTable *found = g_tables;
    EngStatus status = ENG_OK;
    *out = NULL;
    while (found && (found->table.format != like->format || found->seed != seed ||
                     found->table.row_dims != like->row_dims || found->table.rows != like->rows))
        found = found->next;
    if (!found) {
        status = make(like, seed, &found, err);
        if (status) return status;
        found->next = g_tables;
        g_tables = found;
    }
    found->users++;
    *out = found;
    return ENG_OK;
}

void eng_device_table_drop(EngDeviceTable *table)
{
    EngDeviceTable **at = &g_tables;
    if (!table || --table->users) return;
    while (*at != table) at = &(*at)->next;
    *at = table->next;
    release(table);
}

/* ---- rows made anew ---- */

/* Bytes [from, from + n) of a content whose streams begin at whole chunks. */
typedef void (*Maker)(const EngContent *content, uint64_t at, size_t n, uint8_t *out);

static void cut_out(Maker maker, const EngContent *content, uint64_t from, size_t n,
                    uint8_t *scratch, uint8_t *out)
{
    size_t before = (size_t)(from % ENG_CONTENT_CHUNK_BYTES);
    maker(content, from - before, before + n, scratch);
    memcpy(out, scratch + before, n);
}

EngStatus eng_device_table_rows(const EngDeviceTable *table, const int64_t *rows, int64_t n,
                                EngTable *out, EngErr *err)
{
    const EngTable *of = &table->table;
    EngContent content = {0};
    size_t stride = eng_row_stride_bytes(of->format, of->row_dims);
    size_t scale = eng_row_scale_bytes(of->format, of->row_dims);
    uint8_t *scratch = NULL, *values = NULL, *scales = NULL;
    EngStatus status = eng_content_create(&content, of->format, table->seed, err);
    if (!status)
        status = eng_alloc_or((void **)&scratch, 1, ENG_CONTENT_CHUNK_BYTES + stride, "rows", err);
    if (!status) status = eng_alloc_or((void **)&values, (size_t)n, stride, "rows", err);
    if (!status && scale)
        status = eng_alloc_or((void **)&scales, (size_t)n, scale, "scales of rows", err);
    for (int64_t i = 0; i < n && !status; i++) {
        uint64_t row = (uint64_t)rows[i];
        uint8_t *value = values + (size_t)i * stride;
        cut_out(eng_content_values, &content, row * stride, stride, scratch, value);
        eng_content_row_scales(&content, of->row_dims, row * stride, stride, value);
        if (scale)
            cut_out(eng_content_scales, &content, row * scale, scale, scratch,
                    scales + (size_t)i * scale);
    }
    *out = *of;
    out->values = values, out->scales = scales, out->rows = n;
    eng_free(scratch);
    eng_content_destroy(&content);
    return status;
}
