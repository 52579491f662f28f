/* Queries of a report: opens a results database for reading, picks the run, and returns results as
 * text cells. One figure is one query; its result is kept as the temporary table `figure`, so that
 * the sentence of the figure and the list of its streams are drawn from the very rows that are
 * plotted.
 */
#ifndef ENG_REPORTS_QUERY_H
#define ENG_REPORTS_QUERY_H

#include <stdbool.h>
#include <stdint.h>
#include "base/mem.h"
#include "base/str.h"
#include <engram/status.h>

typedef struct EngReportDb EngReportDb;

/* Read-only; statuses as eng_db_open, and those of eng_db_run_named (bench/core/db_runs.h), which
 * says what `run` may be. experiment: that "latest" is of, NULL: of any. */
EngStatus eng_reportdb_open(const char *path, const char *run, const char *experiment,
                            EngReportDb **out, EngErr *err);
void eng_reportdb_close(EngReportDb *db);
const char *eng_reportdb_run_id(const EngReportDb *db);
/* Statements that made the table trace_events (reports/traces.h); "" when the run has no traces. */
const char *eng_reportdb_traces(const EngReportDb *db);

/* Whether sqlite3 itself can run a query: it needs nothing that a report adds but its traces. */
bool eng_reportdb_is_plain(EngReportDb *db, const char *sql);

/* What a report's folder has for all its queries: published numbers as the table `published` (see
 * reports/study.h), and temporary views of its own (views.sql). */
EngStatus eng_reportdb_folder(EngReportDb *db, const char *folder, EngErr *err);

/* Rows as text. Numbers are the shortest that read back to the same value; NULL cells are NULL
 * pointers. */
typedef struct EngCells {
    int n_columns;
    int64_t n_rows;
    const char **names; /* [n_columns] */
    const char **cells; /* [n_rows, n_columns] */
} EngCells;

/* One statement with :run bound to the run. `label` is the file the text came from, for errors
 * (ENG_BAD_DATA). Memory is the arena's. */
EngStatus eng_reportdb_query(EngReportDb *db, const char *label, const char *sql, EngArena *arena,
                             EngCells *cells, EngErr *err);
/* The same, keeping the rows as the temporary table `figure`, which must have a column point_key.
 */
EngStatus eng_reportdb_figure(EngReportDb *db, const char *label, const char *sql, EngArena *arena,
                              EngCells *cells, EngErr *err);

const char *eng_cells_get(const EngCells *cells, int64_t row, const char *column);
/* Tab-separated text with a header line, NULL written as NaN; what gnuplot reads. */
EngStatus eng_cells_write(const EngCells *cells, const char *path, EngErr *err);
/* The same for spreadsheets: comma-separated as in RFC 4180, NULL empty. */
void eng_cells_csv(const EngCells *cells, EngStr *out);

#endif
