/* String helpers; see str.h. */
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MOST_DECIMALS 15

static bool reserve(EngStr *str, size_t more)
{
    if (str->failed) return false;
    if (str->n + more + 1 <= str->size) return true;
    size_t size = str->size ? str->size : 128;
    while (size < str->n + more + 1) size *= 2;
    char *grown = eng_realloc(str->text, str->n, size);
    if (!grown) {
        str->failed = true;
        return false;
    }
    str->text = grown;
    str->size = size;
    return true;
}

void eng_str_add_n(EngStr *str, const char *text, size_t n)
{
    if (!reserve(str, n)) return;
    memcpy(str->text + str->n, text, n);
    str->n += n;
    str->text[str->n] = 0;
}

void eng_str_add(EngStr *str, const char *text)
{
    eng_str_add_n(str, text, strlen(text));
}

void eng_str_printf(EngStr *str, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    if (n >= 0 && reserve(str, (size_t)n)) {
        vsnprintf(str->text + str->n, (size_t)n + 1, fmt, again);
        str->n += (size_t)n;
    }
    va_end(again);
    va_end(ap);
}

EngStatus eng_str_status(const EngStr *str, EngErr *err)
{
    return str->failed ? ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for text") : ENG_OK;
}

void eng_str_free(EngStr *str)
{
    eng_free(str->text);
    *str = (EngStr){0};
}

static bool parse_plain_i64(const char *text, const char *end, int64_t *value)
{
    char *stop;
    if (text == end || isspace((unsigned char)*text)) return false;
    errno = 0;
    *value = strtoll(text, &stop, 10);
    return !errno && stop == end;
}

bool eng_parse_i64(const char *text, int64_t *value)
{
    const char *end = text + strlen(text), *caret = strchr(text, '^');
    if (!caret) return parse_plain_i64(text, end, value);
    int64_t base, exponent, product = 1;
    if (!parse_plain_i64(text, caret, &base) || !parse_plain_i64(caret + 1, end, &exponent))
        return false;
    if (exponent < 0 || exponent > 63) return false;
    for (int64_t i = 0; i < exponent; i++)
        if (__builtin_mul_overflow(product, base, &product)) return false;
    *value = product;
    return true;
}

bool eng_parse_f64(const char *text, double *value)
{
    int64_t whole;
    if (eng_parse_i64(text, &whole)) {
        *value = (double)whole;
        return true;
    }
    char *stop;
    if (!*text || isspace((unsigned char)*text)) return false;
    *value = strtod(text, &stop);
    return !*stop && isfinite(*value);
}

int eng_decimals(double value, int least)
{
    double size = fabs(value);
    if (!(size > 0) || size >= 1 || !isfinite(size)) return least;
    int needed = 2 - (int)floor(log10(size));
    return needed < least ? least : needed > MOST_DECIMALS ? MOST_DECIMALS : needed;
}

size_t eng_utf8_bytes(const char *text, size_t characters)
{
    size_t n = 0;
    for (; text[n]; n++)
        if (((unsigned char)text[n] & 0xc0) != 0x80 && !characters--) break;
    return n;
}

char *eng_trim(char *text)
{
    while (isspace((unsigned char)*text)) text++;
    size_t n = strlen(text);
    while (n && isspace((unsigned char)text[n - 1])) text[--n] = 0;
    return text;
}

/* Levenshtein distance, both sides cut at 63 characters: names are short. */
static size_t edit_distance(const char *a, const char *b)
{
    enum { LIMIT = 63 };
    size_t na = strnlen(a, LIMIT), nb = strnlen(b, LIMIT), row[LIMIT + 1];
    for (size_t j = 0; j <= nb; j++) row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t replace = diagonal + (a[i - 1] != b[j - 1]);
            size_t insert = row[j - 1] + 1, remove = row[j] + 1;
            diagonal = row[j];
            row[j] = replace < insert ? replace : insert;
            if (remove < row[j]) row[j] = remove;
        }
    }
    return row[nb];
}

const char *eng_nearest(const char *name, const char *const *candidates, size_t n)
{
    const char *best = NULL;
    size_t best_distance = strlen(name) / 2 + 2; /* farther than that is another word, not a slip */
    for (size_t i = 0; i < n; i++) {
        size_t distance = edit_distance(name, candidates[i]);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidates[i];
        }
    }
    return best;
}
