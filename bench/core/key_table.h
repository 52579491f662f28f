/* A hash table from content keys (hex text) to pointers: what the plan and the ledger look points
 * up with. Keys are not copied. Start from zeros. */
#ifndef ENG_BENCH_KEY_TABLE_H
#define ENG_BENCH_KEY_TABLE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct EngKeyTable {
    const char **keys;
    void **values;
    size_t n, size;
} EngKeyTable;

/* Adds or replaces; false: out of memory. value is not NULL. */
bool eng_key_table_put(EngKeyTable *table, const char *key, void *value);
void *eng_key_table_get(const EngKeyTable *table, const char *key); /* NULL: none */
/* Copies all n values out, in no useful order. */
void eng_key_table_values(const EngKeyTable *table, void **out);
void eng_key_table_free(EngKeyTable *table);

#endif
