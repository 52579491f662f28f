/* Number formats and table layout shared by kernels, stores and the harness. */
#ifndef ENGRAM_TYPES_H
#define ENGRAM_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Values of one scale share it: 1x32 along a row, 32x32 tiles in wkv (facts section 5). */
#define ENG_SCALE_GROUP 32

/* Type of activations, outputs and weights. FP8 is e4m3fn values with e8m0 scales kept apart. */
typedef enum EngDtype { ENG_F32 = 0, ENG_BF16, ENG_FP8, ENG_DTYPE_COUNT } EngDtype;

/* How a table row lies in memory. Sizes are for 256 dims; with other dims the padded formats round
 * a packed row up to 16 and to 32 bytes. int4: two's complement nibbles -8..7, element 2i in the
 * low half of byte i, then one bf16 scale for each 32 elements; a value is their product. */
typedef enum EngRowFormat {
    ENG_ROW_FP8 = 0, /* split: rows x dims e4m3fn bytes, and rows x dims/32 e8m0 bytes elsewhere */
    ENG_ROW_BF16,
    ENG_ROW_F32,
    ENG_ROW_FP8_PACKED, /* the dims/32 scales follow the values: 264 bytes */
    ENG_ROW_FP8_PAD272,
    ENG_ROW_FP8_PAD288,
    ENG_ROW_INT4, /* 128 + 16 = 144 bytes */
    ENG_ROW_FORMAT_COUNT
} EngRowFormat;

/* A table of `rows` rows, read-only to kernels; whoever made it owns the memory. A full layer is
 * 101 GB: offsets are 64-bit throughout. */
typedef struct EngTable {
    EngRowFormat format;
    int row_dims;
    int64_t rows;
    const uint8_t *values; /* rows * eng_row_stride_bytes() bytes */
    const uint8_t *scales; /* rows * eng_row_scale_bytes() bytes, NULL when that is 0 */
} EngTable;

/* Bytes of one row that lie in `values`, scales kept there included and padding not, and bytes of
 * its scales that lie in `scales`: together what a reader of the row needs. */
size_t eng_row_value_bytes(EngRowFormat format, int row_dims);
size_t eng_row_scale_bytes(EngRowFormat format, int row_dims);
/* Distance of rows in `values`: the above with padding. */
size_t eng_row_stride_bytes(EngRowFormat format, int row_dims);
/* Where a row's scales begin in its own bytes; 0 when it keeps none there. */
size_t eng_row_scale_offset(EngRowFormat format, int row_dims);
/* e4m3fn values with e8m0 scales, wherever they lie. */
bool eng_row_is_fp8(EngRowFormat format);
/* Needs dims in multiples of ENG_SCALE_GROUP. */
bool eng_row_has_groups(EngRowFormat format);

/* Bytes of n elements of a dtype, without scales. */
size_t eng_dtype_bytes(EngDtype dtype, size_t n);

/* Names as they appear on the command line, in the database and in plots; NULL / -1 when unknown.
 */
const char *eng_dtype_name(EngDtype dtype);
const char *eng_row_format_name(EngRowFormat format);
int eng_dtype_parse(const char *name);
int eng_row_format_parse(const char *name);

#ifdef __cplusplus
}
#endif
#endif
