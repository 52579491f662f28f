/* Strings: a growing buffer, number parsing with errors, and the nearest name for a mistyped one.
 */
#ifndef ENG_BASE_STR_H
#define ENG_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <engram/status.h>

/* Growing text. A failed allocation makes it sticky: later calls do nothing, eng_str_status tells.
 */
typedef struct EngStr {
    char *text; /* zero-terminated once anything was added; owned */
    size_t n, size;
    bool failed;
} EngStr;
void eng_str_add(EngStr *str, const char *text);
void eng_str_add_n(EngStr *str, const char *text, size_t n);
void eng_str_printf(EngStr *str, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
EngStatus eng_str_status(const EngStr *str, EngErr *err);
void eng_str_free(EngStr *str);

/* Whole text must be a number ("12", "2^20", "-3"; reals too for _f64); false otherwise. */
bool eng_parse_i64(const char *text, int64_t *value);
bool eng_parse_f64(const char *text, double *value);

/* Decimals for "%.*f": `least`, and of a value nearer to 0 as many as show three of its digits, so
 * that what is small does not print as 0. */
int eng_decimals(double value, int least);

/* Bytes of the first characters of a UTF-8 text, at most so many: cutting there breaks none. */
size_t eng_utf8_bytes(const char *text, size_t characters);

/* Removes white space at both ends in place; returns the first character kept. */
char *eng_trim(char *text);

/* The candidate with the smallest edit distance to name, or NULL when none is near enough to be
 * meant. */
const char *eng_nearest(const char *name, const char *const *candidates, size_t n);

#endif
