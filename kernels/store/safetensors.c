/* Reading and checking the header of a safetensors file; see safetensors.h. */
#include "kernels/store/safetensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

#define LENGTH_BYTES 8

typedef struct Dtype {
    const char *name;
    unsigned bits;
} Dtype;

static const Dtype g_dtypes[] = {
    {"BOOL", 8},    {"U8", 8},          {"I8", 8},          {"F8_E4M3", 8}, {"F8_E5M2", 8},
    {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F4", 4},      {"F6_E2M3", 6},
    {"F6_E3M2", 6}, {"U16", 16},        {"I16", 16},        {"F16", 16},    {"BF16", 16},
    {"U32", 32},    {"I32", 32},        {"F32", 32},        {"U64", 64},    {"I64", 64},
    {"F64", 64},    {"C64", 64},
};

/* ---- one tensor ---- */

static EngStatus bad_tensor(const EngSafetensors *file, const char *name, const char *what,
                            EngErr *err)
{
    return ENG_FAIL(err, ENG_BAD_DATA, "%s: tensor '%.200s': %s", file->path, name, what);
}

static const Dtype *find_dtype(const json_t *json)
{
    const char *name = json_string_value(json);
    for (size_t i = 0; name && i < sizeof g_dtypes / sizeof *g_dtypes; i++)
        if (!strcmp(name, g_dtypes[i].name)) return &g_dtypes[i];
    return NULL;
}

/* Product of the shape in bits; false when it is no list of sizes or overflows. */
static bool read_shape(const json_t *json, EngTensor *tensor, uint64_t *bits)
{
    if (!json_is_array(json) || json_array_size(json) > ENG_SAFETENSORS_MAX_DIMS) return false;
    tensor->n_dims = (int)json_array_size(json);
    bool empty = false;
    for (int i = 0; i < tensor->n_dims; i++) {
        const json_t *size = json_array_get(json, (size_t)i);
        if (!json_is_integer(size) || json_integer_value(size) < 0) return false;
        tensor->shape[i] = json_integer_value(size);
        empty |= !tensor->shape[i];
    }
    for (int i = 0; i < tensor->n_dims && !empty; i++)
        if (!eng_mul_size(*bits, (size_t)tensor->shape[i], bits)) return false;
    if (empty) *bits = 0;
    return true;
}

/* data_offsets [begin, end], counted from the end of the header. */
static bool read_offsets(const json_t *json, uint64_t data_bytes, uint64_t *begin, uint64_t *end)
{
    const json_t *a = json_array_get(json, 0), *b = json_array_get(json, 1);
    if (json_array_size(json) != 2 || !json_is_integer(a) || !json_is_integer(b)) return false;
    if (json_integer_value(a) < 0 || json_integer_value(b) < json_integer_value(a)) return false;
    *begin = (uint64_t)json_integer_value(a);
    *end = (uint64_t)json_integer_value(b);
    return *end <= data_bytes;
}

static EngStatus parse_tensor(const EngSafetensors *file, const char *name, json_t *json,
                              uint64_t data_offset, EngTensor *tensor, EngErr *err)
{
    char text[200];
    uint64_t begin, end, bits, data_bytes = file->file_bytes - data_offset;
    const Dtype *dtype = find_dtype(json_object_get(json, "dtype"));
    if (!json_is_object(json) || json_object_size(json) != 3)
        return bad_tensor(file, name, "no object of dtype, shape and data_offsets", err);
    if (!dtype) return bad_tensor(file, name, "unknown dtype", err);
    bits = dtype->bits;
    if (!read_shape(json_object_get(json, "shape"), tensor, &bits))
        return bad_tensor(file, name, "shape: no list of up to 8 sizes whose product fits", err);
    if (!read_offsets(json_object_get(json, "data_offsets"), data_bytes, &begin, &end)) {
        snprintf(text, sizeof text,
                 "data_offsets: no [begin, end] within the %" PRIu64 " bytes of data", data_bytes);
        return bad_tensor(file, name, text, err);
    }
    if (bits % 8 || bits / 8 != end - begin) {
        snprintf(text, sizeof text,
                 "%" PRIu64 " bytes of data, but its shape and dtype %s take %" PRIu64
                 "%s bytes (offset %" PRIu64 ")",
                 end - begin, dtype->name, bits / 8, bits % 8 ? " and a part of" : "", begin);
        return bad_tensor(file, name, text, err);
    }
    tensor->name = name;
    tensor->dtype = dtype->name;
    tensor->offset = data_offset + begin;
    tensor->bytes = end - begin;
    return ENG_OK;
}

/* ---- the header ---- */

static int by_offset(const void *a, const void *b)
{
    const EngTensor *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Sorted tensors must tile the data from first to last byte. */
static EngStatus check_tiling(const EngSafetensors *file, uint64_t data_offset, EngErr *err)
{
    char text[300];
    uint64_t at = data_offset;
    for (size_t i = 0; i < file->n; i++) {
        const EngTensor *tensor = &file->tensors[i];
        if (tensor->offset < at) {
            snprintf(text, sizeof text, "data overlaps that of '%.200s'",
                     file->tensors[i - 1].name);
            return bad_tensor(file, tensor->name, text, err);
        }
        if (tensor->offset > at) {
            snprintf(text, sizeof text, "a gap of %" PRIu64 " bytes before its data",
                     tensor->offset - at);
            return bad_tensor(file, tensor->name, text, err);
        }
        at += tensor->bytes;
    }
    if (at == file->file_bytes) return ENG_OK;
    return ENG_FAIL(err, ENG_BAD_DATA, "%s: %" PRIu64 " bytes at its end belong to no tensor",
                    file->path, file->file_bytes - at);
}

static EngStatus parse_header(EngSafetensors *file, json_t *json, uint64_t data_offset, EngErr *err)
{
    const char *name;
    json_t *value;
    EngStatus status = ENG_OK;
    if (!json_is_object(json))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: header is no JSON object", file->path);
    file->arena = eng_arena_create();
    if (!file->arena) return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", file->path);
    status = eng_alloc_or((void **)&file->tensors, json_object_size(json), sizeof *file->tensors,
                          "tensors", err);
    if (status) return status;
    json_object_foreach(json, name, value)
    {
        if (!strcmp(name, "__metadata__")) continue;
        char *kept = eng_arena_strdup(file->arena, name);
        if (!kept) return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", file->path);
        status = parse_tensor(file, kept, value, data_offset, &file->tensors[file->n], err);
        if (status) return status;
        file->n++;
    }
    qsort(file->tensors, file->n, sizeof *file->tensors, by_offset);
    return check_tiling(file, data_offset, err);
}

static EngStatus read_header(EngSafetensors *file, EngErr *err)
{
    uint8_t head[LENGTH_BYTES];
    uint64_t n = 0;
    char *text = NULL;
    json_t *json = NULL;
    json_error_t why;
    if (file->file_bytes < LENGTH_BYTES)
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: %" PRIu64 " bytes: no safetensors file", file->path,
                        file->file_bytes);
    EngStatus status = eng_file_read_at(file->fd, file->path, head, sizeof head, 0, err);
    if (status) return status;
    for (int i = 0; i < LENGTH_BYTES; i++) n |= (uint64_t)head[i] << 8 * i;
    if (n > ENG_SAFETENSORS_HEADER_MAX || n > file->file_bytes - LENGTH_BYTES)
        return ENG_FAIL(err, ENG_BAD_DATA,
                        "%s: a header of %" PRIu64 " bytes; the file has %" PRIu64
                        " and the format allows %d: truncated, or no safetensors file",
                        file->path, n, file->file_bytes, ENG_SAFETENSORS_HEADER_MAX);
    status = eng_alloc_or((void **)&text, n + 1, 1, "a safetensors header", err);
    if (!status) status = eng_file_read_at(file->fd, file->path, text, n, LENGTH_BYTES, err);
    if (status) goto done;
    json = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    if (json)
        status = parse_header(file, json, LENGTH_BYTES + n, err);
    else
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: header is no JSON: %s (byte %d)", file->path,
                          why.text, why.position);
done:
    json_decref(json);
    eng_free(text);
    return status;
}

EngStatus eng_safetensors_open(const char *path, EngSafetensors *file, EngErr *err)
{
    size_t bytes = 0;
    *file = (EngSafetensors){.fd = -1, .path = eng_strdup(path)};
    if (!file->path) return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", path);
    EngStatus status = eng_file_open_read(path, &file->fd, &bytes, err);
    if (status == ENG_NOT_FOUND) status = ENG_FAIL(err, ENG_BAD_DATA, "%s: no such file", path);
    file->file_bytes = bytes;
    if (!status) status = read_header(file, err);
    if (status) eng_safetensors_close(file);
    return status;
}

void eng_safetensors_close(EngSafetensors *file)
{
    if (file->path && file->fd >= 0) close(file->fd);
    eng_free(file->path);
    eng_free(file->tensors);
    if (file->arena) eng_arena_destroy(file->arena);
    *file = (EngSafetensors){.fd = -1};
}

const EngTensor *eng_safetensors_find(const EngSafetensors *file, const char *name)
{
    size_t n = strlen(name), matches = 0;
    const EngTensor *match = NULL;
    for (size_t i = 0; i < file->n; i++) {
        const EngTensor *tensor = &file->tensors[i];
        size_t length = strlen(tensor->name);
        if (!strcmp(tensor->name, name)) return tensor;
        if (length <= n || tensor->name[length - n - 1] != '.' ||
            strcmp(tensor->name + length - n, name))
            continue;
        match = tensor;
        matches++;
    }
    return matches == 1 ? match : NULL;
}
