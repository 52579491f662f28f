/* Options as text; see size_fields.h. */
#include "bench/cli/size_fields.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The next of a list, "" where two commas meet or one is the last; false behind its end, where *at
 * is NULL. A word that does not fit is cut, so that it is no name; fields, whose values a cut would
 * change, are refused (read_fields). */
bool eng_size_next_word(const char **at, char *word, size_t size)
{
    if (!*at) return false;
    size_t all = strcspn(*at, ","), n = all < size ? all : size - 1;
    memcpy(word, *at, n);
    word[n] = 0;
    *at = (*at)[all] ? *at + all + 1 : NULL;
    return true;
}

EngStatus eng_size_read_fields(const char *option, const char *list, const EngSizeField *fields,
                               int n, EngErr *err)
{
    char word[64];
    unsigned given = 0;
    while (eng_size_next_word(&list, word, sizeof word)) {
        char *equal = strlen(word) + 1 < sizeof word ? strchr(word, '=') : NULL;
        const char *names[16];
        int f = 0;
        if (equal) *equal = 0;
        for (f = 0; f < n; f++) names[f] = fields[f].key;
        for (f = 0; f < n && strcmp(fields[f].key, word); f++) {
        }
        if (!equal || f == n) {
            const char *near = eng_nearest(word, names, (size_t)n);
            return ENG_FAIL(err, ENG_USAGE, "--%s: \"%s\" is not %s=...%s%s%s", option, word,
                            names[0], near ? "; did you mean \"" : "", near ? near : "",
                            near ? "\"?" : "");
        }
        double value;
        EngStatus status = fields[f].dimension == ENG_DIM_SHARE
                               ? eng_share_parse(equal + 1, &value, err)
                               : eng_quantity_parse(equal + 1, fields[f].dimension, &value, err);
        if (status) return eng_err_prefix(err, "--%s: %s", option, word), status;
        if (given & 1u << f)
            return ENG_FAIL(err, ENG_USAGE, "--%s: %s is given twice", option, word);
        given |= 1u << f;
        *fields[f].value = value;
    }
    return ENG_OK;
}

EngStatus eng_size_need_text(const EngSize *s, const char *option, const char *why,
                             const char **text, EngErr *err)
{
    *text = eng_cli_text(s->cli, option);
    return *text ? ENG_OK : ENG_FAIL(err, ENG_USAGE, "--%s is needed: %s", option, why);
}

EngStatus eng_size_need_int(const EngSize *s, const char *option, const char *why, int64_t max,
                            int *value, EngErr *err)
{
    const char *text;
    int64_t number = 0;
    EngStatus status = eng_size_need_text(s, option, why, &text, err);
    if (!status) status = eng_cli_int(s->cli, option, 1, max, &number, err);
    *value = (int)number;
    return status;
}

/* Of an option that may be repeated with other values. */
EngStatus eng_size_given_once(const EngSize *s, const char *option, const char *text, EngErr *err)
{
    int times = 0;
    for (int i = 0; i < eng_cli_repeats(s->cli, option); i++)
        times += !strcmp(eng_cli_repeat(s->cli, option, i), text);
    return times < 2 ? ENG_OK : ENG_FAIL(err, ENG_USAGE, "--%s=%s: is given twice", option, text);
}

EngStatus eng_size_maybe_int(const EngSize *s, const char *option, int64_t max, int *value,
                             EngErr *err)
{
    return eng_cli_text(s->cli, option) ? eng_size_need_int(s, option, "", max, value, err)
                                        : ENG_OK;
}

EngStatus eng_size_maybe_quantity(const EngSize *s, const char *option, EngDimension dimension,
                                  double *value, EngErr *err)
{
    const char *text = eng_cli_text(s->cli, option);
    if (!text) return ENG_OK;
    EngStatus status = eng_quantity_parse(text, dimension, value, err);
    return status ? eng_err_prefix(err, "--%s", option), status : ENG_OK;
}
