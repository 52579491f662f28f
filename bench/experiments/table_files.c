/* Table files of experiments; see table_files.h. */
#include "bench/experiments/table_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "kernels/store/content.h"
#include "kernels/store/table_file.h"

/* Anybody may have put a file there: buffers are as large as the rows of this table. */
static EngStatus check_table(const char *path, EngRowFormat format, int row_dims, int64_t rows,
                             uint64_t seed, EngErr *err)
{
    EngTableFile file;
    char last[32];
    EngStatus status = eng_table_file_open(path, &file, err);
    if (status) return status;
    int n = snprintf(last, sizeof last, "\"seed\":%" PRIu64 "}", seed);
    size_t length = strlen(file.description);
    bool seeded = length >= (size_t)n && !strcmp(file.description + length - (size_t)n, last);
    if (file.format != format || file.row_dims != row_dims || file.rows != rows || !seeded)
        status = ENG_FAIL(
            err, ENG_BAD_DATA,
            "%s: another table than its name says: %" PRId64 " %s rows of %d dims, %s; remove it",
            path, file.rows, eng_row_format_name(file.format), file.row_dims, file.description);
    eng_table_file_close(&file);
    return status;
}

EngStatus eng_table_file_ready(const EngResources *resources, EngRowFormat format, int row_dims,
                               int64_t rows, char path[ENG_TABLE_PATH_BYTES], EngErr *err)
{
    char folder[ENG_TABLE_PATH_BYTES];
    const char *asked = getenv("ENG_TABLES"), *data = eng_resources_data_dir(resources);
    uint64_t seed = eng_resources_seed(resources);
    int n = asked ? snprintf(folder, sizeof folder, "%s", asked)
                  : snprintf(folder, sizeof folder, "%s/tables", data);
    int m = snprintf(path, ENG_TABLE_PATH_BYTES, "%s/%s-%d-%" PRId64 "-%" PRIu64 ".table", folder,
                     eng_row_format_name(format), row_dims, rows, seed);
    if (n >= ENG_TABLE_PATH_BYTES || m >= ENG_TABLE_PATH_BYTES)
        return ENG_FAIL(err, ENG_USAGE, "folder of tables: a name of %d characters is too long", n);
    if (eng_file_exists(path)) /* whole: it gets its name when it is */
        return check_table(path, format, row_dims, rows, seed, err);
    EngStatus status = eng_make_dirs(folder, err);
    if (status) return status;
    return eng_table_file_create_seeded(path, format, row_dims, rows, seed, 0, NULL, err);
}

/* ---- soundness ---------------------------------------------------------------------------------
 */

#define VERIFY_BYTES ((uint64_t)8 << 30) /* some ten seconds of reading */

/* A key of what a file is that nobody has written to since; not 0. */
static EngStatus identity(const EngTableFile *file, uint64_t *key, EngErr *err)
{
    struct stat st;
    char text[256], hex[ENG_KEY_HEX];
    if (fstat(file->fd, &st))
        return ENG_FAIL(err, ENG_IO, "%s: cannot look at it: %s", file->path, strerror(errno));
    snprintf(text, sizeof text, "table %jx %jx %jx %jx.%lx %jx.%lx", (uintmax_t)st.st_dev,
             (uintmax_t)st.st_ino, (uintmax_t)st.st_size, (uintmax_t)st.st_mtim.tv_sec,
             (unsigned long)st.st_mtim.tv_nsec, (uintmax_t)st.st_ctim.tv_sec,
             (unsigned long)st.st_ctim.tv_nsec);
    EngStatus status = eng_key_of(text, hex, err);
    hex[16] = '\0';
    if (!status) *key = strtoull(hex, NULL, 16) | 1;
    return status;
}

/* Says once in a run why a file is not verified. */
static void leave_out(const EngResources *resources, uint64_t key, const char *path,
                      const char *reason)
{
    if (eng_resources_done(resources, key + 1)) return; /* keys of files are odd */
    eng_resources_set_done(resources, key + 1);
    eng_warn("store", "%s: not compared with its checksums, %s; engram store verify does it", path,
             reason);
}

EngStatus eng_table_file_sound(const EngResources *resources, const char *path, bool may_cache,
                               EngErr *err)
{
    EngTableFile file;
    uint64_t key = 0, most = VERIFY_BYTES;
    const char *text = getenv("ENG_VERIFY_BYTES");
    EngStatus status = eng_table_file_open(path, &file, err);
    if (status) return status;
    if (text && sscanf(text, "%" SCNu64, &most) != 1)
        status = ENG_FAIL(err, ENG_USAGE, "ENG_VERIFY_BYTES=%s: no number of bytes", text);
    if (!status) status = identity(&file, &key, err);
    if (!status && !eng_resources_done(resources, key)) {
        char reason[96];
        snprintf(reason, sizeof reason, "its %" PRIu64 " bytes are more than ENG_VERIFY_BYTES",
                 file.file_bytes);
        if (file.file_bytes > most) {
            leave_out(resources, key, path, reason);
        } else if (!may_cache) {
            leave_out(resources, key, path, "since its residency is to stay as found");
        } else {
            status = eng_table_file_verify(&file, 0, err);
            if (!status) eng_resources_set_done(resources, key);
        }
    }
    eng_table_file_close(&file);
    return status;
}

/* ---- truth -------------------------------------------------------------------------------------
 */

typedef struct Truth {
    EngContent content;
    int row_dims;
    uint8_t *chunks; /* the chunks that one row touches */
} Truth;

/* n bytes from `at` of the values or scales region. */
static const uint8_t *bytes_at(const Truth *truth, bool scales, uint64_t at, size_t n)
{
    uint64_t from = at / ENG_CONTENT_CHUNK_BYTES * ENG_CONTENT_CHUNK_BYTES;
    size_t skip = (size_t)(at - from);
    if (scales) {
        eng_content_scales(&truth->content, from, skip + n, truth->chunks);
    } else {
        eng_content_values(&truth->content, from, skip + n, truth->chunks);
        eng_content_row_scales(&truth->content, truth->row_dims, from, skip + n, truth->chunks);
    }
    return truth->chunks + skip;
}

EngStatus eng_table_rows_check(const EngResources *resources, EngRowFormat format, int row_dims,
                               const int64_t *rows, int64_t n, const EngRowsOut *out,
                               int64_t *n_wrong, EngErr *err)
{
    size_t stride = eng_row_stride_bytes(format, row_dims);
    size_t value = eng_row_value_bytes(format, row_dims);
    size_t scale = eng_row_scale_bytes(format, row_dims);
    Truth truth = {.row_dims = row_dims};
    EngStatus status =
        eng_content_create(&truth.content, format, eng_resources_seed(resources), err);
    if (status) return status;
    status = eng_alloc_or((void **)&truth.chunks, 1, ENG_CONTENT_CHUNK_BYTES + stride + scale,
                          "rows to compare with", err);
    for (int64_t i = 0; i < n && !status; i++) {
        uint64_t row = (uint64_t)rows[i];
        const uint8_t *want = bytes_at(&truth, false, row * stride, value);
        bool wrong = memcmp(out->values + (size_t)i * stride, want, value) != 0;
        if (scale) {
            want = bytes_at(&truth, true, row * scale, scale);
            wrong = wrong || memcmp(out->scales + (size_t)i * scale, want, scale);
        }
        *n_wrong += wrong;
    }
    eng_free(truth.chunks);
    eng_content_destroy(&truth.content);
    return status;
}
