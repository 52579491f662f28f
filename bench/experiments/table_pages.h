/* A table on pages of another size than the run's arena: copied once per worker and shared by the
 * points that read the same one. */
#ifndef ENG_EXPERIMENTS_TABLE_PAGES_H
#define ENG_EXPERIMENTS_TABLE_PAGES_H

#include "kernels/store/pages.h"
#include <engram/types.h>

typedef struct EngTablePages {
    struct EngTablePages *next;
    int users;
    EngTable source, table; /* table: the copy */
    EngPages values, scales;
    double huge_share; /* of the values */
} EngTablePages;

/* The copy of `table` on pages of this kind: found, or made with all processors. ENG_UNSUPPORTED:
 * no such pages. The caller gives it back with eng_table_pages_drop. Not for threads. */
EngStatus eng_table_pages_take(const EngTable *table, EngPageKind kind, EngTablePages **out,
                               EngErr *err);
void eng_table_pages_drop(EngTablePages *pages); /* accepts NULL; the last user frees it */

#endif
