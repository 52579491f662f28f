/* Text tables for people, and the short form of a point's axes. */
#ifndef ENG_BENCH_CLI_TABLE_H
#define ENG_BENCH_CLI_TABLE_H

#include <stdbool.h>
#include <stdio.h>
#include "bench/core/db.h"
#include "bench/core/experiment.h"

typedef struct EngTableColumn {
    const char *title;
    bool right; /* aligned right: numbers */
} EngTableColumn;

/* A table wider than this says above it what all rows share in its first columns. Where that is not
 * enough, first columns of text are printed above their rows. In a terminal its last column, of
 * text, is broken into lines. */
#define ENG_TABLE_COLUMNS 100

/* Cells are added row by row; a failed allocation is told by eng_table_print. */
typedef struct EngTextTable EngTextTable;
EngStatus eng_table_create(EngTextTable **table, const EngTableColumn *columns, int n_columns,
                           EngErr *err);
void eng_table_text(EngTextTable *table, const char *text);
void eng_table_printf(EngTextTable *table, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void eng_table_number(EngTextTable *table, double value); /* four digits; NAN: empty */
EngStatus eng_table_print(const EngTextTable *table, FILE *out, EngErr *err);
void eng_table_free(EngTextTable *table); /* accepts NULL */

/* text from column `at` on, and a newline. In a terminal it is broken at spaces, so that no line is
 * wider than ENG_TABLE_COLUMNS (words that are stay whole); further lines begin at `indent`. */
void eng_text_print(FILE *out, const char *text, size_t at, size_t indent);
/* The same, broken wherever it goes: for what no program reads by lines. */
void eng_prose_print(FILE *out, const char *text, size_t at, size_t indent);

/* "sampling ended: pairs reached 12, time budget 3\n"; nothing when no sampling ended yet. */
void eng_stops_print(const EngRunStatus *run);

/* "tokens=4 corpus=code": the axes of a JSON object that are not at their default, without the
 * variant. What finds no room in `size` (8 or more) ends with "...". */
void eng_axes_text(const EngExperimentList *list, const char *experiment, const char *axes_json,
                   char *out, size_t size);
/* One axis of a JSON object of axes; false when it is not there or of another type. */
bool eng_axes_word(const char *axes_json, const char *axis, char *out, size_t size);
bool eng_axes_int(const char *axes_json, const char *axis, int64_t *value);
/* "gather avx2 tokens=4": experiment, variant and the axes of eng_axes_text. */
void eng_point_text(const EngExperimentList *list, const char *experiment, const char *axes_json,
                    char *out, size_t size);
/* The kernel variant in a JSON object of axes, "" when it has none. */
void eng_variant_text(const char *axes_json, char *out, size_t size);

#endif
