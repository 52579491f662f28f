/* Text normalisation of the token map (engram_facts section 2). */
#ifndef ENG_KERNELS_NORMALIZE_H
#define ENG_KERNELS_NORMALIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"
#include <engram/status.h>

/* Code points of a text, reused from call to call. */
typedef struct EngCodepoints {
    int32_t *points;
    size_t n, size;
} EngCodepoints;
void eng_codepoints_free(EngCodepoints *points);

/* NFKC, NFD, accents dropped, lower case, runs of blanks joined, white space stripped at both ends
 * but for a text that is one space. Appends the result to `out` (often nothing: the caller then
 * keys by the text itself). text must be valid UTF-8. */
EngStatus eng_normalize(const char *text, size_t n, EngCodepoints *scratch, EngStr *out,
                        EngErr *err);

/* Strictly valid UTF-8 (no surrogates, no overlong forms, at most U+10FFFF) without U+FFFD, i.e.
 * what a lossy decoder returns unchanged and without a replacement character. */
bool eng_utf8_is_clean(const uint8_t *bytes, size_t n);

#endif
