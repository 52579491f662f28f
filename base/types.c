/* Names and sizes of number formats; see engram/types.h. */
#include <engram/types.h>

#include <string.h>

static const char *const g_dtypes[ENG_DTYPE_COUNT] = {
    [ENG_F32] = "f32", [ENG_BF16] = "bf16", [ENG_FP8] = "fp8"};
static const char *const g_row_formats[ENG_ROW_FORMAT_COUNT] = {
    [ENG_ROW_FP8] = "fp8",
    [ENG_ROW_BF16] = "bf16",
    [ENG_ROW_F32] = "f32",
    [ENG_ROW_FP8_PACKED] = "fp8_packed",
    [ENG_ROW_FP8_PAD272] = "fp8_pad272",
    [ENG_ROW_FP8_PAD288] = "fp8_pad288",
    [ENG_ROW_INT4] = "int4",
};

static int find_name(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name)) return i;
    return -1;
}

size_t eng_row_value_bytes(EngRowFormat format, int row_dims)
{
    size_t dims = (size_t)row_dims, groups = dims / ENG_SCALE_GROUP;
    switch (format) {
    case ENG_ROW_F32:
        return dims * 4;
    case ENG_ROW_BF16:
        return dims * 2;
    case ENG_ROW_FP8:
        return dims;
    case ENG_ROW_INT4:
        return dims / 2 + 2 * groups;
    default:
        return dims + groups;
    }
}

size_t eng_row_stride_bytes(EngRowFormat format, int row_dims)
{
    size_t bytes = eng_row_value_bytes(format, row_dims);
    size_t unit = format == ENG_ROW_FP8_PAD272 ? 16 : format == ENG_ROW_FP8_PAD288 ? 32 : 1;
    return (bytes + unit - 1) / unit * unit;
}

size_t eng_row_scale_offset(EngRowFormat format, int row_dims)
{
    if (format == ENG_ROW_INT4) return (size_t)row_dims / 2;
    return eng_row_is_fp8(format) && format != ENG_ROW_FP8 ? (size_t)row_dims : 0;
}

bool eng_row_is_fp8(EngRowFormat format)
{
    return format == ENG_ROW_FP8 || format == ENG_ROW_FP8_PACKED || format == ENG_ROW_FP8_PAD272 ||
           format == ENG_ROW_FP8_PAD288;
}

bool eng_row_has_groups(EngRowFormat format)
{
    return eng_row_is_fp8(format) || format == ENG_ROW_INT4;
}

size_t eng_row_scale_bytes(EngRowFormat format, int row_dims)
{
    return format == ENG_ROW_FP8 ? (size_t)row_dims / ENG_SCALE_GROUP : 0;
}

size_t eng_dtype_bytes(EngDtype dtype, size_t n)
{
    return n * (dtype == ENG_F32 ? 4 : dtype == ENG_BF16 ? 2 : 1);
}

const char *eng_dtype_name(EngDtype dtype)
{
    return (unsigned)dtype < ENG_DTYPE_COUNT ? g_dtypes[dtype] : NULL;
}

const char *eng_row_format_name(EngRowFormat format)
{
    return (unsigned)format < ENG_ROW_FORMAT_COUNT ? g_row_formats[format] : NULL;
}

int eng_dtype_parse(const char *name)
{
    return find_name(g_dtypes, ENG_DTYPE_COUNT, name);
}

int eng_row_format_parse(const char *name)
{
    return find_name(g_row_formats, ENG_ROW_FORMAT_COUNT, name);
}
