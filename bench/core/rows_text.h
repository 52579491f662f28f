/* Rows as text for other programs: CSV (RFC 4180, line feeds) or JSON (an array of flat objects),
 * the same columns in both. Nothing depends on locale or time, so equal rows give equal bytes.
 * Numbers are the shortest text that reads back as the same double; a number that is not finite is
 * an empty field or null. */
#ifndef ENG_BENCH_ROWS_TEXT_H
#define ENG_BENCH_ROWS_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

typedef enum EngRowsFormat { ENG_ROWS_CSV = 0, ENG_ROWS_JSON } EngRowsFormat;
/* "csv" or "json"; -1: neither. */
int eng_rows_format_parse(const char *name);

/* Takes finished text; a status that is not ENG_OK ends the export. */
typedef EngStatus (*EngRowsSink)(void *context, const char *text, size_t n, EngErr *err);

/* Start from zeros, then set format, columns (they must outlive it), sink. */
typedef struct EngRowsText {
    EngRowsFormat format;
    const char *const *columns;
    int n_columns;
    EngRowsSink sink;
    void *context;
    int64_t n_rows;
    int column; /* next cell of the row */
    EngStr text;
} EngRowsText;

EngStatus eng_rows_begin(EngRowsText *rows, EngErr *err); /* header line, or "[" */
/* Cells come in the order of the columns. */
void eng_rows_text(EngRowsText *rows, const char *text); /* NULL: none */
/* A number as it is written already ("64", "0.3"): quoted neither way. */
void eng_rows_number_text(EngRowsText *rows, const char *text);
void eng_rows_int(EngRowsText *rows, int64_t value);
void eng_rows_real(EngRowsText *rows, double value);
void eng_rows_none(EngRowsText *rows);
/* Hands the row to the sink. ENG_INTERNAL when it has too few or too many cells. */
EngStatus eng_rows_end_row(EngRowsText *rows, EngErr *err);
EngStatus eng_rows_end(EngRowsText *rows, EngErr *err);
void eng_rows_free(EngRowsText *rows);

/* The shortest text that reads back as `value`, which is finite. */
void eng_shortest_real(double value, char out[32]);

#endif
