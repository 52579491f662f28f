/* Import of checkpoint rows: finds the pieces of the weight and scale tensors, checks that they fit
 * each other, and hands their bytes to the writer of table files; see table_import.h.
 */
#include "kernels/store/table_import.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "kernels/store/safetensors.h"

/* Rows of one tensor, in one or several files: consecutive pieces of a row-major matrix. */
typedef struct Piece {
    const EngSafetensors *file;
    uint64_t offset, bytes;
} Piece;

typedef struct Matrix {
    char *name;        /* as asked for; owned */
    const char *full;  /* as the files call it: one name, or it would be two tensors */
    const char *dtype; /* NULL: not found */
    int64_t rows, columns;
    Piece *pieces; /* [n_files], owned */
    int n;
} Matrix;

typedef struct Import {
    const EngTableImport *ask;
    EngSafetensors *files; /* opened so far, owned; never moved: pieces point to them */
    int n_files;
    Matrix weight, scale;
    EngTableSource source;
} Import;

/* ---- finding the tensors ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

/* Opens a file, unless it is open already, however its path is spelled. */
static EngStatus open_one(Import *import, const char *path, EngErr *err)
{
    struct stat st, held;
    bool there = !stat(path, &st);
    for (int i = 0; i < import->n_files && there; i++)
        if (!fstat(import->files[i].fd, &held) && held.st_dev == st.st_dev &&
            held.st_ino == st.st_ino)
            return ENG_OK;
    EngStatus status = eng_safetensors_open(path, &import->files[import->n_files], err);
    if (!status) import->n_files++;
    return status;
}

static EngStatus two_tensors(const char *path, const char *one, const char *other, EngErr *err)
{
    return ENG_FAIL(err, ENG_BAD_DATA,
                    "%s: tensors '%.200s' and '%.200s' are two: say the whole name of one", path,
                    one, other);
}

/* The file that the map gives for `name`, or else for the only entry that ends with "." and it;
 * NULL: none. */
static EngStatus find_in_map(const char *path, const json_t *map, const char *name,
                             const char **file, EngErr *err)
{
    const char *key, *match = NULL, *second = NULL;
    json_t *value;
    size_t n = strlen(name);
    *file = json_string_value(json_object_get(map, name));
    if (*file) return ENG_OK;
    json_object_foreach((json_t *)map, key, value)
    {
        size_t length = strlen(key);
        if (length <= n || key[length - n - 1] != '.' || !ends_with(key, name)) continue;
        second = match;
        match = key;
        *file = json_string_value(value);
    }
    return second ? two_tensors(path, second, match, err) : ENG_OK;
}

/* Opens the files that an index names for the two tensors. They lie beside it. */
static EngStatus open_indexed(Import *import, const char *path, EngErr *err)
{
    char *text = NULL;
    json_t *json = NULL;
    size_t n = 0;
    const char *slash = strrchr(path, '/');
    EngStatus status = eng_file_read(path, &text, &n, err);
    if (status == ENG_NOT_FOUND) return ENG_FAIL(err, ENG_BAD_DATA, "%s: no such file", path);
    if (status) return status;
    json = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
    const json_t *map = json_object_get(json, "weight_map");
    if (!json_is_object(map))
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: no index: it has no object weight_map", path);
    for (int i = 0; i < 2 && !status; i++) {
        const char *name = i ? import->scale.name : import->weight.name;
        const char *file = NULL;
        EngStr full = {0};
        status = find_in_map(path, map, name, &file, err);
        if (!file || status) continue; /* none: told later when the tensor is needed */
        if (strchr(file, '/')) {
            status = ENG_FAIL(err, ENG_BAD_DATA, "%s: '%s': not a file beside it", path, file);
            break;
        }
        eng_str_printf(&full, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path, file);
        status = eng_str_status(&full, err);
        if (!status) status = open_one(import, full.text, err);
        eng_str_free(&full);
    }
    json_decref(json);
    eng_free(text);
    return status;
}

static EngStatus add_piece(Matrix *matrix, const EngSafetensors *file, const EngTensor *tensor,
                           EngErr *err)
{
    if (tensor->n_dims != 2 || !tensor->shape[0] || !tensor->shape[1])
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: tensor '%.200s': not [rows, columns]", file->path,
                        tensor->name);
    if (matrix->dtype && strcmp(matrix->full, tensor->name))
        return two_tensors(file->path, matrix->full, tensor->name, err);
    if (matrix->dtype &&
        (strcmp(matrix->dtype, tensor->dtype) || matrix->columns != tensor->shape[1]))
        return ENG_FAIL(err, ENG_BAD_DATA,
                        "%s: tensor '%.200s': %s of %" PRId64 " columns, but %s of %" PRId64
                        " in the file before",
                        file->path, tensor->name, tensor->dtype, tensor->shape[1], matrix->dtype,
                        matrix->columns);
    matrix->full = tensor->name;
    matrix->dtype = tensor->dtype;
    matrix->columns = tensor->shape[1];
    matrix->rows += tensor->shape[0]; /* bounded by the sizes of files */
    matrix->pieces[matrix->n++] = (Piece){file, tensor->offset, tensor->bytes};
    return ENG_OK;
}

/* Where a file calls a tensor just so, those whose names only end so are others. */
static EngStatus find_matrix(const Import *import, Matrix *matrix, EngErr *err)
{
    bool whole = false;
    EngStatus status = eng_alloc_or((void **)&matrix->pieces, (size_t)import->n_files + 1,
                                    sizeof *matrix->pieces, "pieces", err);
    for (int i = 0; i < import->n_files && !whole; i++) {
        const EngTensor *tensor = eng_safetensors_find(&import->files[i], matrix->name);
        whole = tensor && !strcmp(tensor->name, matrix->name);
    }
    for (int i = 0; i < import->n_files && !status; i++) {
        const EngTensor *tensor = eng_safetensors_find(&import->files[i], matrix->name);
        if (tensor && (!whole || !strcmp(tensor->name, matrix->name)))
            status = add_piece(matrix, &import->files[i], tensor, err);
    }
    return status;
}

static EngStatus name_tensors(Import *import, EngErr *err)
{
    char text[512];
    const char *weight = import->ask->weight;
    if (!weight) {
        snprintf(text, sizeof text, "layers.%d.engram.embed.weight", import->ask->layer);
        weight = text;
    }
    size_t stem = strlen(weight) - (ends_with(weight, ".weight") ? strlen(".weight") : 0);
    EngStr scale = {0};
    eng_str_printf(&scale, "%.*s.scale", (int)stem, weight);
    import->weight.name = eng_strdup(weight);
    import->scale.name = scale.text ? eng_strdup(scale.text) : NULL;
    eng_str_free(&scale);
    return import->weight.name && import->scale.name
               ? ENG_OK
               : ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a tensor's name");
}

static EngStatus find_tensors(Import *import, EngErr *err)
{
    EngStatus status = name_tensors(import, err);
    if (!status) /* an index names two files at most */
        status = eng_alloc_or((void **)&import->files, 2 * (size_t)import->ask->n_from + 1,
                              sizeof *import->files, "files", err);
    for (int i = 0; i < import->ask->n_from && !status; i++) {
        const char *path = import->ask->from[i];
        status = ends_with(path, ".json") ? open_indexed(import, path, err)
                                          : open_one(import, path, err);
    }
    if (!status) status = find_matrix(import, &import->weight, err);
    if (!status) status = find_matrix(import, &import->scale, err);
    if (!status && !import->weight.dtype)
        status =
            ENG_FAIL(err, ENG_BAD_DATA, "%s%s: no tensor '%s'", import->ask->from[0],
                     import->ask->n_from > 1 ? " and the other files" : "", import->weight.name);
    return status;
}

/* ---- do they make a table ---- */

static EngStatus check_scales(const Import *import, EngErr *err)
{
    const Matrix *w = &import->weight, *s = &import->scale;
    const char *path = w->pieces[0].file->path;
    if (!s->dtype)
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: '%s' is F8_E4M3, but there is no '%s'", path,
                        w->name, s->name);
    if (w->columns % ENG_SCALE_GROUP || strcmp(s->dtype, "F8_E8M0") || s->rows != w->rows ||
        s->columns != w->columns / ENG_SCALE_GROUP)
        return ENG_FAIL(err, ENG_BAD_DATA,
                        "%s: '%s' is %s [%" PRId64 ", %" PRId64 "]; weights of [%" PRId64
                        ", %" PRId64 "] need F8_E8M0 of one scale for %d columns",
                        path, s->name, s->dtype, s->rows, s->columns, w->rows, w->columns,
                        ENG_SCALE_GROUP);
    return ENG_OK;
}

static EngStatus choose_format(Import *import, EngErr *err)
{
    const Matrix *w = &import->weight;
    const char *path = w->pieces[0].file->path;
    int ask = import->ask->format;
    EngRowFormat own = ENG_ROW_FP8;
    if (!strcmp(w->dtype, "BF16"))
        own = ENG_ROW_BF16;
    else if (!strcmp(w->dtype, "F32"))
        own = ENG_ROW_F32;
    else if (strcmp(w->dtype, "F8_E4M3"))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: '%s' is %s; rows are F8_E4M3, BF16 or F32", path,
                        w->name, w->dtype);
    EngRowFormat format = ask < 0 ? own : (EngRowFormat)ask;
    if (format != own && !(own == ENG_ROW_FP8 && eng_row_is_fp8(format)))
        return ENG_FAIL(err, ENG_USAGE, "%s: '%s' is %s: rows of format %s would have other values",
                        path, w->name, w->dtype, eng_row_format_name(format));
    import->source.format = format;
    return own == ENG_ROW_FP8 ? check_scales(import, err) : ENG_OK;
}

static EngStatus check_shape(Import *import, EngErr *err)
{
    const Matrix *w = &import->weight;
    const EngTableImport *ask = import->ask;
    const char *path = w->pieces[0].file->path;
    if (w->columns > INT32_MAX / 4 || (ask->row_dims && w->columns != ask->row_dims))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: '%s' has rows of %" PRId64 " dims, not %d", path,
                        w->name, w->columns, ask->row_dims);
    if (ask->rows > w->rows)
        return ENG_FAIL(err, ENG_USAGE, "%s: '%s' has %" PRId64 " rows, not %" PRId64, path,
                        w->name, w->rows, ask->rows);
    EngStatus status = choose_format(import, err);
    import->source.row_dims = (int)w->columns;
    import->source.rows = ask->rows ? ask->rows : w->rows;
    return status;
}

/* ---- bytes ---- */

static EngStatus read_matrix(const Matrix *matrix, uint64_t at, size_t n, uint8_t *out, EngErr *err)
{
    EngStatus status = ENG_OK;
    for (int i = 0; i < matrix->n && n && !status; i++) {
        const Piece *piece = &matrix->pieces[i];
        if (at >= piece->bytes) {
            at -= piece->bytes;
            continue;
        }
        size_t part = piece->bytes - at < n ? (size_t)(piece->bytes - at) : n;
        status = eng_file_read_at(piece->file->fd, piece->file->path, out, part, piece->offset + at,
                                  err);
        out += part;
        n -= part;
        at = 0;
    }
    return status;
}

/* Rows whose scales follow the values: put together from both matrices, row by row. */
static EngStatus read_joined(const Import *import, uint64_t at, size_t n, uint8_t *out, EngErr *err)
{
    const EngTableSource *source = &import->source;
    size_t stride = eng_row_stride_bytes(source->format, source->row_dims);
    size_t w = (size_t)import->weight.columns,
           s = (size_t)import->scale.columns; /* one byte each */
    uint64_t first = at / stride, end = (at + n + stride - 1) / stride;
    size_t rows = (size_t)(end - first);
    uint8_t *values = NULL, *scales = NULL, *joined = NULL;
    EngStatus status = eng_alloc_or((void **)&values, rows, w, "rows", err);
    if (!status) status = eng_alloc_or((void **)&scales, rows, s, "scales", err);
    if (!status) status = eng_alloc_or((void **)&joined, rows, stride, "rows", err);
    if (!status) status = read_matrix(&import->weight, first * w, rows * w, values, err);
    if (!status) status = read_matrix(&import->scale, first * s, rows * s, scales, err);
    for (size_t i = 0; i < rows && !status; i++) {
        memcpy(joined + i * stride, values + i * w, w);
        memcpy(joined + i * stride + w, scales + i * s, s);
    }
    if (!status) memcpy(out, joined + (at - first * stride), n);
    eng_free(values);
    eng_free(scales);
    eng_free(joined);
    return status;
}

static EngStatus read_import(const void *context, bool scales, uint64_t at, size_t n, uint8_t *out,
                             EngErr *err)
{
    const Import *import = context;
    if (!scales && eng_row_scale_offset(import->source.format, import->source.row_dims))
        return read_joined(import, at, n, out, err);
    return read_matrix(scales ? &import->scale : &import->weight, at, n, out, err);
}

/* ---- import ---- */

/* What the sources are beyond their names: a changed file must not be gone on with. */
static EngStatus describe_sources(const Import *import, EngStr *state, EngErr *err)
{
    for (int i = 0; i < import->n_files; i++) {
        struct stat st;
        const EngSafetensors *file = &import->files[i];
        if (stat(file->path, &st)) return ENG_FAIL(err, ENG_IO, "%s: cannot stat it", file->path);
        eng_str_printf(state, "%ju %jd %jd.%09ld\n", (uintmax_t)st.st_ino, (intmax_t)st.st_size,
                       (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    }
    return eng_str_status(state, err);
}

static EngStatus make_table(Import *import, const char *path, int threads, EngTableCreated *created,
                            EngErr *err)
{
    char key[ENG_KEY_HEX];
    EngStr state = {0};
    char *identity = NULL;
    EngStatus status = describe_sources(import, &state, err);
    if (!status) status = eng_key_of(state.text, key, err);
    if (status) goto done;
    json_t *json = json_pack("{s:s, s:s}", "content", "safetensors", "tensor", import->weight.name);
    identity = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (!identity) {
        status = ENG_FAIL(err, ENG_BAD_DATA, "'%s': no tensor name", import->weight.name);
        goto done;
    }
    import->source.identity = identity;
    import->source.by_content = true;
    import->source.state = key;
    import->source.read = read_import;
    import->source.context = import;
    status = eng_table_file_create(path, &import->source, threads, created, err);
done:
    free(identity);
    eng_str_free(&state);
    return status;
}

EngStatus eng_table_import(const char *path, const EngTableImport *ask, int threads,
                           EngTableCreated *created, EngErr *err)
{
    Import import = {.ask = ask};
    EngStatus status = find_tensors(&import, err);
    if (!status) status = check_shape(&import, err);
    if (!status) status = make_table(&import, path, threads, created, err);
    for (int i = 0; i < import.n_files; i++) eng_safetensors_close(&import.files[i]);
    eng_free(import.files);
    eng_free(import.weight.name);
    eng_free(import.scale.name);
    eng_free(import.weight.pieces);
    eng_free(import.scale.pieces);
    return status;
}
