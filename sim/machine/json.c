/* Texts and origins in JSON; see json.h. */
#include "sim/machine/json.h"

#include <string.h>

EngStatus eng_json_text(const json_t *object, const char *key, char *out, size_t size, EngErr *err)
{
    const char *text = json_string_value(json_object_get(object, key));
    if (!text || !*text) return ENG_FAIL(err, ENG_BAD_DATA, "has no %s", key);
    if (strlen(text) >= size)
        return ENG_FAIL(err, ENG_BAD_DATA, "%s is longer than %zu", key, size - 1);
    memcpy(out, text, strlen(text) + 1);
    return ENG_OK;
}

/* YYYY-MM-DD */
static bool is_date(const char *text)
{
    int year, month, day, n = 0;
    if (strlen(text) != 10 || sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &n) != 3 ||
        n != 10 || year < 2000 || month < 1 || month > 12)
        return false;
    bool leap = year % 4 == 0 && (year % 100 || year % 400 == 0);
    int days = month == 2 ? 28 + leap : 30 + (month + (month > 7)) % 2;
    return day >= 1 && day <= days;
}

EngStatus eng_json_origin(const json_t *object, EngQuantity *quantity, EngErr *err)
{
    char kind[16];
    EngStatus status = eng_json_text(object, "kind", kind, sizeof kind, err);
    if (!status) status = eng_json_text(object, "date", quantity->date, sizeof quantity->date, err);
    if (!status)
        status = eng_json_text(object, "source", quantity->source, sizeof quantity->source, err);
    if (status) return status;
    quantity->origin = !strcmp(kind, "spec")       ? ENG_SPEC
                       : !strcmp(kind, "measured") ? ENG_MEASURED
                                                   : ENG_UNKNOWN;
    if (!quantity->origin)
        return ENG_FAIL(err, ENG_BAD_DATA, "kind \"%s\" is neither spec nor measured", kind);
    if (!is_date(quantity->date))
        return ENG_FAIL(err, ENG_BAD_DATA, "date \"%s\" is not YYYY-MM-DD", quantity->date);
    return ENG_OK;
}
