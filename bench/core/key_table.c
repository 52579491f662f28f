/* Open addressing with linear probes; see key_table.h. */
#include "bench/core/key_table.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"

static size_t slot_of(const EngKeyTable *table, const char *key)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (const char *p = key; *p; p++) hash = (hash ^ (unsigned char)*p) * 0x100000001b3u;
    size_t slot = (size_t)(hash ^ hash >> 32) & (table->size - 1);
    while (table->keys[slot] && strcmp(table->keys[slot], key))
        slot = (slot + 1) & (table->size - 1);
    return slot;
}

static bool enlarge(EngKeyTable *table)
{
    EngKeyTable larger = {.n = table->n, .size = table->size ? 2 * table->size : 256};
    larger.keys = eng_alloc_array(larger.size, sizeof *larger.keys);
    larger.values = eng_alloc_array(larger.size, sizeof *larger.values);
    if (!larger.keys || !larger.values) {
        eng_free(larger.keys);
        eng_free(larger.values);
        return false;
    }
    for (size_t i = 0; i < table->size; i++) {
        if (!table->keys[i]) continue;
        size_t slot = slot_of(&larger, table->keys[i]);
        larger.keys[slot] = table->keys[i];
        larger.values[slot] = table->values[i];
    }
    eng_key_table_free(table);
    *table = larger;
    return true;
}

bool eng_key_table_put(EngKeyTable *table, const char *key, void *value)
{
    if (2 * (table->n + 1) > table->size && !enlarge(table)) return false;
    size_t slot = slot_of(table, key);
    if (!table->keys[slot]) table->n++;
    table->keys[slot] = key;
    table->values[slot] = value;
    return true;
}

void *eng_key_table_get(const EngKeyTable *table, const char *key)
{
    if (!table->n) return NULL;
    size_t slot = slot_of(table, key);
    return table->keys[slot] ? table->values[slot] : NULL;
}

void eng_key_table_values(const EngKeyTable *table, void **out)
{
    size_t n = 0;
    for (size_t i = 0; i < table->size; i++)
        if (table->keys[i]) out[n++] = table->values[i];
}

void eng_key_table_free(EngKeyTable *table)
{
    eng_free(table->keys);
    eng_free(table->values);
    *table = (EngKeyTable){0};
}
