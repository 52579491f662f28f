/* Names and sizes of number formats; see engram/types.h. */
#include <engram/types.h>

#include <string.h>

static const char *const g_dtypes[ENG_DTYPE_COUNT] = {
    [ENG_F32] = "f32", [ENG_BF16] = "bf16", [ENG_FP8] = "fp8"};
static const char *const g_row_formats[ENG_ROW_FORMAT_COUNT] = {
    [ENG_ROW_FP8] = "fp8", [ENG_ROW_BF16] = "bf16", [ENG_ROW_F32] = "f32"};

static int find_name(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name)) return i;
    return -1;
}

size_t eng_row_value_bytes(EngRowFormat format, int row_dims)
{
    size_t per_value = format == ENG_ROW_F32 ? 4 : format == ENG_ROW_BF16 ? 2 : 1;
    return (size_t)row_dims * per_value;
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
