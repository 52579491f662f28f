/* Memory row store: one arena per run holds seeded random rows; every table of the run is a prefix
 * of it.
 *
 * Content is that of content.h. Where scales lie inside rows they depend on the row's size, so that
 * eng_table_arena_layout() must say it before a view.
 */
#ifndef ENG_KERNELS_STORE_MEMORY_H
#define ENG_KERNELS_STORE_MEMORY_H

#include <engram/status.h>
#include <engram/types.h>

typedef struct EngTableArena {
    EngRowFormat format;
    uint64_t seed;
    size_t value_bytes, scale_bytes; /* capacity */
    uint8_t *values, *scales;        /* mapped, owned */
    int row_dims;      /* that scales inside rows were laid out for; 0: none yet, or none inside */
    size_t huge_bytes; /* of values, backed by huge pages (from smaps), 0 when none */
} EngTableArena;

/* Maps and fills (all processors, plain threads). Refuses with ENG_NO_MEMORY, naming the bytes
 * needed and available, before mapping what would not fit in available memory less 10 %. */
EngStatus eng_table_arena_create(EngTableArena *arena, EngRowFormat format, size_t value_bytes,
                                 uint64_t seed, EngErr *err);
void eng_table_arena_destroy(EngTableArena *arena);
/* Writes the scales of formats that keep them inside rows, for rows of so many dims; nothing to do
 * for other formats or when they lie so already. Tables of an earlier layout are void. */
EngStatus eng_table_arena_layout(EngTableArena *arena, int row_dims, EngErr *err);
/* The first `rows` rows as a table; ENG_NO_MEMORY when the arena is smaller. */
EngStatus eng_table_arena_view(const EngTableArena *arena, int row_dims, int64_t rows,
                               EngTable *table, EngErr *err);
/* Bytes of values that a table needs (checked: ENG_USAGE on overflow). */
EngStatus eng_table_value_bytes(EngRowFormat format, int row_dims, int64_t rows, size_t *bytes,
                                EngErr *err);
/* What new memory may take: MemAvailable, or less where a control group limits us or where
 * ENG_MEMORY_BYTES in the environment says so. 0: unknown, nothing is refused. */
size_t eng_memory_available_bytes(void);
/* ENG_NO_MEMORY, naming `what`, when that less 10 % is not enough. */
EngStatus eng_memory_check(size_t needed, const char *what, EngErr *err);

#endif
