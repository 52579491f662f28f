/* The normaliser chain on code points, with utf8proc's tables; see normalize.h. */
#include "kernels/address/normalize.h"

#include <string.h>
#include <utf8proc.h>

#include "base/mem.h"

/* A private-use character that stands for a lone space while the ends are stripped; texts that hold
 * it themselves turn it into a space, as the published chain does. */
#define SENTINEL 0xE000

void eng_codepoints_free(EngCodepoints *points)
{
    eng_free(points->points);
    *points = (EngCodepoints){0};
}

/* NFD(NFKC(x)) is NFKD(x): composing first changes nothing that decomposing does not undo. */
static EngStatus decompose(const char *text, size_t n, EngCodepoints *points, EngErr *err)
{
    const utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_COMPAT | UTF8PROC_DECOMPOSE;
    for (;;) {
        utf8proc_ssize_t needed =
            utf8proc_decompose((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, points->points,
                               (utf8proc_ssize_t)points->size, options);
        if (needed < 0) return ENG_FAIL(err, ENG_BAD_DATA, "text: %s", utf8proc_errmsg(needed));
        points->n = (size_t)needed;
        if (points->n <= points->size) return ENG_OK;
        size_t size = points->n * 2 + 64;
        eng_codepoints_free(points);
        EngStatus status = eng_alloc_or((void **)&points->points, size, sizeof *points->points,
                                        "normalised text", err);
        if (status) return status;
        points->size = size;
    }
}

static bool is_mark(int32_t point)
{
    utf8proc_category_t category = utf8proc_category(point);
    return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
           category == UTF8PROC_CATEGORY_ME;
}

/* Unicode White_Space. */
static bool is_space(int32_t point)
{
    return (point >= 0x09 && point <= 0x0d) || point == 0x20 || point == 0x85 || point == 0xa0 ||
           point == 0x1680 || (point >= 0x2000 && point <= 0x200a) || point == 0x2028 ||
           point == 0x2029 || point == 0x202f || point == 0x205f || point == 0x3000;
}

static bool is_blank(int32_t point)
{
    return point == ' ' || point == '\t' || point == '\r' || point == '\n';
}

/* Lower case by single characters: the only one whose lower case is two characters, U+0130, was
 * decomposed and has lost its dot by now. */
static size_t fold(int32_t *points, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (is_mark(points[i])) continue;
        int32_t point = utf8proc_tolower(points[i]);
        if (is_blank(point)) {
            if (kept && points[kept - 1] == ' ') continue;
            point = ' ';
        }
        points[kept++] = point;
    }
    return kept;
}

EngStatus eng_normalize(const char *text, size_t n, EngCodepoints *scratch, EngStr *out,
                        EngErr *err)
{
    EngStatus status = decompose(text, n, scratch, err);
    if (status) return status;
    int32_t *points = scratch->points;
    size_t end = fold(points, scratch->n), begin = 0;
    if (end == 1 && points[0] == ' ') points[0] = SENTINEL;
    while (begin < end && is_space(points[begin])) begin++;
    while (end > begin && is_space(points[end - 1])) end--;
    for (size_t i = begin; i < end; i++) {
        utf8proc_uint8_t bytes[4];
        utf8proc_ssize_t length =
            utf8proc_encode_char(points[i] == SENTINEL ? ' ' : points[i], bytes);
        eng_str_add_n(out, (const char *)bytes, (size_t)length);
    }
    return eng_str_status(out, err);
}

bool eng_utf8_is_clean(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n;) {
        utf8proc_int32_t point;
        utf8proc_ssize_t length = utf8proc_iterate(bytes + i, (utf8proc_ssize_t)(n - i), &point);
        if (length <= 0 || point == 0xfffd) return false;
        i += (size_t)length;
    }
    return true;
}
