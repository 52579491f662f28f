/* Reading an option of `engram size`: lists of key=value with units, numbers, and what must be
 * given. Every refusal names option, key and value. */
#ifndef ENG_BENCH_CLI_SIZE_FIELDS_H
#define ENG_BENCH_CLI_SIZE_FIELDS_H

#include "bench/cli/size_parts.h"

typedef struct EngSizeField {
    const char *key;
    EngDimension dimension;
    double *value; /* stays when the list lacks it */
} EngSizeField;

/* The next of a list, "" where two commas meet; false at its end. A word that does not fit is cut,
 * so that it is no name; fields, whose values a cut would change, are refused. */
bool eng_size_next_word(const char **at, char *word, size_t size);
/* ENG_USAGE: an unknown key, with the nearest; a key given twice; a value without its unit. */
EngStatus eng_size_read_fields(const char *option, const char *list, const EngSizeField *fields,
                               int n, EngErr *err);
/* An option that must be given (`why` says what it is), or may be; integers from 1 to max. */
EngStatus eng_size_need_text(const EngSize *s, const char *option, const char *why,
                             const char **text, EngErr *err);
EngStatus eng_size_need_int(const EngSize *s, const char *option, const char *why, int64_t max,
                            int *value, EngErr *err);
/* Words of a repeated option that are the same are a slip. */
EngStatus eng_size_given_once(const EngSize *s, const char *option, const char *text, EngErr *err);
EngStatus eng_size_maybe_int(const EngSize *s, const char *option, int64_t max, int *value,
                             EngErr *err);
EngStatus eng_size_maybe_quantity(const EngSize *s, const char *option, EngDimension dimension,
                                  double *value, EngErr *err);

#endif
