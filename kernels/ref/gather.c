/* Gather, one value at a time; see gather.h. */
#include "kernels/ref/gather.h"

#include "kernels/ref/fp8.h"

#include <string.h>

/* Scales of a row: in the table's own array, or behind the row's values. */
static const uint8_t *scales_of(const EngTable *table, int64_t row)
{
    size_t dims = (size_t)table->row_dims;
    switch (table->format) {
    case ENG_ROW_FP8:
        return table->scales + (size_t)row * (dims / ENG_SCALE_GROUP);
    case ENG_ROW_INT4:
        return table->values + (size_t)row * (dims / 2 + dims / 16) + dims / 2;
    default:
        return table->values + (size_t)row * eng_row_stride_bytes(table->format, table->row_dims) +
               dims;
    }
}

double eng_ref_table_value(const EngTable *table, int64_t row, int i)
{
    const uint8_t *own =
        table->values + (size_t)row * eng_row_stride_bytes(table->format, table->row_dims);
    const uint8_t *scales = scales_of(table, row);
    uint16_t bf16;
    float f32;
    int nibble;
    switch (table->format) {
    case ENG_ROW_BF16:
        memcpy(&bf16, own + 2 * (size_t)i, sizeof bf16);
        return eng_ref_bf16(bf16);
    case ENG_ROW_F32:
        memcpy(&f32, own + 4 * (size_t)i, sizeof f32);
        return f32;
    case ENG_ROW_INT4:
        nibble = own[i / 2] >> (i % 2 ? 4 : 0) & 15;
        memcpy(&bf16, scales + 2 * (size_t)(i / ENG_SCALE_GROUP), sizeof bf16);
        return (nibble < 8 ? nibble : nibble - 16) * eng_ref_bf16(bf16);
    default: /* the fp8 formats */
        return eng_ref_e4m3(own[i]) * eng_ref_e8m0(scales[i / ENG_SCALE_GROUP]);
    }
}

void eng_ref_gather_row(const EngTable *table, int64_t row, EngDtype type, void *out,
                        uint8_t *out_scales)
{
    size_t dims = (size_t)table->row_dims;
    unsigned char *bytes = out;
    if (type == ENG_FP8) { /* undecoded */
        memcpy(bytes,
               table->values + (size_t)row * eng_row_stride_bytes(table->format, table->row_dims),
               dims);
        memcpy(out_scales, scales_of(table, row), dims / ENG_SCALE_GROUP);
        return;
    }
    for (size_t i = 0; i < dims; i++) {
        double value = eng_ref_table_value(table, row, (int)i);
        if (type == ENG_BF16) {
            uint16_t bits = eng_ref_bf16_round(value);
            memcpy(bytes + 2 * i, &bits, sizeof bits);
        } else {
            float f32 = eng_ref_f32_round(value);
            memcpy(bytes + 4 * i, &f32, sizeof f32);
        }
    }
}

void eng_ref_gather(const EngGatherProblem *problem, const EngGatherArgs *args)
{
    size_t dims = (size_t)problem->table.row_dims;
    size_t row_bytes = eng_dtype_bytes(problem->out, dims);
    for (int64_t t = 0; t < problem->tokens; t++) {
        for (int c = 0; c < problem->columns; c++) {
            size_t slot = (size_t)t * (size_t)problem->columns + (size_t)c;
            uint8_t *scales =
                problem->out == ENG_FP8 ? args->out_scales + slot * (dims / ENG_SCALE_GROUP) : NULL;
            eng_ref_gather_row(&problem->table, args->rows[t * args->row_stride + c], problem->out,
                               (uint8_t *)args->out + slot * row_bytes, scales);
        }
    }
}
