/* Header page of a table file; see table_header.h.
 *
 *   0   magic, 8 bytes
 *   8   version, u32
 *   12  bytes of the description, u32
 *   16  sha256 of all block checksums
 *   48  description, JSON text; zeros up to
 *   4064 sha256 of the 4064 bytes before it
 *
 * The layout follows from the description, so that there are no offsets that could contradict it.
 */
#include "kernels/store/table_header.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/store/memory.h"

#define VERSION        1
#define SUM_AT         16
#define DESCRIPTION_AT (SUM_AT + ENG_DIGEST_BYTES)
#define PAGE_SUM_AT    (ENG_TABLE_FILE_PAGE - ENG_DIGEST_BYTES)

static uint64_t pages(uint64_t bytes)
{
    return (bytes + ENG_TABLE_FILE_PAGE - 1) / ENG_TABLE_FILE_PAGE * ENG_TABLE_FILE_PAGE;
}

static int64_t blocks_of(uint64_t bytes)
{
    return (int64_t)((bytes + ENG_TABLE_FILE_BLOCK_BYTES - 1) / ENG_TABLE_FILE_BLOCK_BYTES);
}

EngStatus eng_table_layout(EngTableFile *file, EngErr *err)
{
    size_t bytes;
    EngStatus status = eng_table_value_bytes(file->format, file->row_dims, file->rows, &bytes, err);
    if (status) return status;
    /* Scales and checksums are a fraction of the values: below this nothing overflows. */
    if (!file->rows || bytes > INT64_MAX / 4)
        return ENG_FAIL(err, ENG_USAGE, "a file of %" PRId64 " rows of %d dims: out of range",
                        file->rows, file->row_dims);
    file->stride_bytes = eng_row_stride_bytes(file->format, file->row_dims);
    file->scale_bytes = eng_row_scale_bytes(file->format, file->row_dims);
    file->values_bytes = bytes;
    file->scales_bytes = (uint64_t)file->rows * file->scale_bytes;
    file->value_blocks = blocks_of(file->values_bytes);
    file->scale_blocks = blocks_of(file->scales_bytes);
    file->values_offset = ENG_TABLE_FILE_PAGE;
    file->scales_offset = file->values_offset + pages(file->values_bytes);
    file->file_bytes = eng_table_checks_offset(file) + pages(eng_table_checks_bytes(file));
    return ENG_OK;
}

size_t eng_table_checks_bytes(const EngTableFile *file)
{
    return (size_t)(file->value_blocks + file->scale_blocks) * ENG_TABLE_FILE_CHECK_BYTES;
}

uint64_t eng_table_checks_offset(const EngTableFile *file)
{
    return file->scales_offset + pages(file->scales_bytes);
}

static void put_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> 8 * i);
}

static uint32_t get_u32(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

EngStatus eng_table_header_write(const char *magic, const char *description,
                                 const uint8_t checks_sum[ENG_DIGEST_BYTES],
                                 uint8_t page[ENG_TABLE_FILE_PAGE], EngErr *err)
{
    size_t n = strlen(description);
    if (n > PAGE_SUM_AT - DESCRIPTION_AT)
        return ENG_FAIL(err, ENG_USAGE, "a table's description of %zu bytes; %d fit its header", n,
                        PAGE_SUM_AT - DESCRIPTION_AT);
    memset(page, 0, ENG_TABLE_FILE_PAGE);
    memcpy(page, magic, 8);
    put_u32(page + 8, VERSION);
    put_u32(page + 12, (uint32_t)n);
    memcpy(page + SUM_AT, checks_sum, ENG_DIGEST_BYTES);
    memcpy(page + DESCRIPTION_AT, description, n);
    return eng_digest_raw(page, PAGE_SUM_AT, page + PAGE_SUM_AT, err);
}

/* Magic, version, page checksum; the description's length. */
static EngStatus check_page(const char *path, const uint8_t *page, uint32_t *n, EngErr *err)
{
    uint8_t sum[ENG_DIGEST_BYTES];
    if (!memcmp(page, ENG_TABLE_MAGIC_PART, 8))
        return ENG_FAIL(err, ENG_BAD_DATA,
                        "%s: a table file still being written; create it again to go on", path);
    if (memcmp(page, ENG_TABLE_MAGIC, 8))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: not a table file", path);
    if (get_u32(page + 8) != VERSION)
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: table file of version %" PRIu32 ", not %d", path,
                        get_u32(page + 8), VERSION);
    EngStatus status = eng_digest_raw(page, PAGE_SUM_AT, sum, err);
    if (status) return status;
    *n = get_u32(page + 12);
    if (memcmp(sum, page + PAGE_SUM_AT, sizeof sum) || *n > PAGE_SUM_AT - DESCRIPTION_AT)
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: damaged header: its checksum does not hold", path);
    return ENG_OK;
}

static EngStatus parse_description(const char *path, EngTableFile *file, EngErr *err)
{
    json_error_t why;
    json_t *json = json_loads(file->description, 0, &why);
    const char *format = json_string_value(json_object_get(json, "row_format"));
    json_int_t dims = json_integer_value(json_object_get(json, "row_dims"));
    json_int_t rows = json_integer_value(json_object_get(json, "rows"));
    int parsed = format ? eng_row_format_parse(format) : -1;
    EngStatus status = ENG_OK;
    if (!json)
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: header is no JSON: %s", path, why.text);
    else if (parsed < 0)
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: row_format: '%s' is no row format", path,
                          format ? format : "");
    else if (dims < 1 || dims > INT32_MAX || rows < 1)
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: %lld rows of %lld dims: out of range", path,
                          (long long)rows, (long long)dims);
    if (!status) {
        file->format = (EngRowFormat)parsed;
        file->row_dims = (int)dims;
        file->rows = rows;
    }
    json_decref(json);
    return status;
}

EngStatus eng_table_header_read(const char *path, const uint8_t page[ENG_TABLE_FILE_PAGE],
                                EngTableFile *file, const uint8_t **checks_sum, EngErr *err)
{
    uint32_t n = 0;
    EngStatus status = check_page(path, page, &n, err);
    if (status) return status;
    *checks_sum = page + SUM_AT;
    file->description = eng_alloc(n + 1);
    if (!file->description) return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", path);
    memcpy(file->description, page + DESCRIPTION_AT, n);
    status = parse_description(path, file, err);
    if (!status) status = eng_key_of(file->description, file->digest, err);
    return status;
}
