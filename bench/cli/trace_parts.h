/* The parts of `engram trace`: one file per word behind it, and the rows they print. */
#ifndef ENG_BENCH_CLI_TRACE_PARTS_H
#define ENG_BENCH_CLI_TRACE_PARTS_H

#include "bench/cli/cli.h"
#include "bench/cli/table.h"
#include "bench/core/rows_text.h"
#include "bench/trace/engine.h"

/* Operands from the second on are a command. */
EngStatus eng_trace_record(EngCli *cli, EngErr *err);
EngStatus eng_trace_summary(EngCli *cli, const char *file, EngErr *err);
EngStatus eng_trace_overlap(EngCli *cli, const char *file, EngErr *err);
EngStatus eng_trace_saturation(EngCli *cli, const char *file, EngErr *err);
EngStatus eng_trace_export(EngCli *cli, const char *file, EngErr *err);
EngStatus eng_trace_import(EngCli *cli, const char *file, EngErr *err);

/* Rows as a table for people, or as CSV or JSON (--format), with the same columns: column names are
 * what machines read, so units are in them. Start with eng_trace_rows_begin; cells come in order.
 */
typedef struct EngTraceRows {
    const char *columns[24];
    bool number[24];
    int n_columns;
    EngTextTable *table; /* NULL: text goes out row by row */
    EngTableColumn titles[24];
    EngRowsText text;
    EngStr names; /* what columns and titles point into */
    EngErr *err;
    EngStatus status;
} EngTraceRows;

/* columns: "step,+layer,+fetch_us": names, a plus before those that hold numbers. title: printed
 * before a table, not before CSV or JSON; NULL: none. */
EngStatus eng_trace_rows_begin(EngTraceRows *rows, const EngCli *cli, const char *title,
                               const char *columns, EngErr *err);
void eng_trace_rows_text(EngTraceRows *rows, const char *text);
void eng_trace_rows_int(EngTraceRows *rows, int64_t value, bool known);
void eng_trace_rows_real(EngTraceRows *rows, double value); /* NAN: empty */
void eng_trace_rows_us(EngTraceRows *rows, int64_t ns, bool known);
EngStatus eng_trace_rows_end(EngTraceRows *rows);
/* Whether --format is a table: then words for people may stand around it. ENG_USAGE for a format
 * that is none of table, csv, json. */
EngStatus eng_trace_is_table(const EngCli *cli, bool *table, EngErr *err);

/* "FILE: NVIDIA Nsight Systems 2026.2, schema 3.25.0: 4010 kernels, ..." and what was refused, to
 * standard error when stdout is for machines. */
void eng_trace_headline(const EngTrace *trace, FILE *out);

/* Options that name kernels (--lookup, ..), --step, --layers, --tokens, --columns, --row-bytes. */
typedef struct EngTraceEngineArgs {
    EngEngineOptions options;
    int64_t layers[16];
} EngTraceEngineArgs;
EngStatus eng_trace_engine_args(const EngCli *cli, EngTraceEngineArgs *args, EngErr *err);

/* Fetch, stall and hidden fraction: totals by layer, then every step (at most `most` of them in a
 * table). */
EngStatus eng_trace_print_overlap(const EngCli *cli, const EngOverlap *overlap, int64_t most,
                                  EngErr *err);

#endif
