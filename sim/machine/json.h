/* What the JSON files of machines and models share: texts, and where a value is from. */
#ifndef ENG_SIM_MACHINE_JSON_H
#define ENG_SIM_MACHINE_JSON_H

#include "sim/machine/quantity.h"

#include <jansson.h>
#include <stddef.h>

/* The text at a key. ENG_BAD_DATA, naming the key: none, empty, or too long for out[size]. */
EngStatus eng_json_text(const json_t *object, const char *key, char *out, size_t size, EngErr *err);
/* "kind" (spec or measured), "date" and "source" into a quantity. ENG_BAD_DATA. */
EngStatus eng_json_origin(const json_t *object, EngQuantity *quantity, EngErr *err);

#endif
