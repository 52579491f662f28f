/* A table file opened as a row store, with the residency that a point is about: its pages all in
 * the page cache, none, or as found. Every table that this process has open is known here, since a
 * page that any handle maps cannot leave the page cache.
 */
#ifndef ENG_EXPERIMENTS_OPEN_TABLE_H
#define ENG_EXPERIMENTS_OPEN_TABLE_H

#include "bench/experiments/shape.h"
#include "bench/experiments/store_axes.h"
#include "bench/experiments/table_files.h"

extern const char *const eng_words_residency[]; /* warm cold as_found */

#define ENG_AXIS_RESIDENCY_DEF                                                                     \
    {                                                                                              \
        "residency", ENG_AXIS_WORD, "warm", "", 0, 0, eng_words_residency,                         \
            "what the page cache holds of the file before each sample: all, nothing, or what it "  \
            "happens to"                                                                           \
    }

typedef enum EngResidency { ENG_WARM = 0, ENG_COLD, ENG_AS_FOUND } EngResidency;

typedef struct EngOpenTable {
    struct EngOpenTable *next; /* of this process */
    char path[ENG_TABLE_PATH_BYTES];
    EngStoreSpec spec;
    EngResidency residency;
    EngStore *store;
    double resident_share; /* of the file when the sample began; NAN where rows are in memory */
} EngOpenTable;

/* The axes of ENG_AXES_STORE and residency. ENG_UNSUPPORTED: what a store does not have, and a
 * memory store that is to be cold. */
EngStatus eng_open_table_read(const EngPoint *point, EngRowFormat format, EngStoreSpec *spec,
                              EngResidency *residency, EngErr *why);
/* Makes the file where there is none (table_files.h) and opens it. The caller closes it, and moves
 * the struct no more. */
EngStatus eng_open_table(EngOpenTable *table, const EngResources *resources, const EngShape *shape,
                         const EngPoint *point, EngErr *err);
/* Before a sample: makes the residency true and counts from zero. ENG_UNSUPPORTED: the page cache
 * keeps too much or too little of the file. */
EngStatus eng_open_table_prepare(EngOpenTable *table, EngErr *err);
void eng_open_table_close(EngOpenTable *table); /* accepts one never opened: zeros */

#endif
