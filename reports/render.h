/* Renders a report: for each figure a query to <fig>.dat, gnuplot to <fig>.svg and <fig>.png, a
 * sentence made from the rows, and one page, index.html, that opens from disk. The folder it writes
 * holds everything a figure needs to be redrawn without the database: style.gp, <fig>.gp,
 * <fig>.dat; and <fig>.sql to make the .dat again.
 * <fig>.csv is for spreadsheets. A page.md.in with a line "[files]: inline" makes a page that holds
 * pictures and CSV itself; with "[latest]: E" the newest run is the newest one of experiment E.
 *
 * A report is a folder <reports>/<name> with page.md.in, whose {{figure F}}, {{sentence F}},
 * {{table T}} and
 * {{value KEY}} are filled in, and for each figure F.sql (first line "-- title: ..."; a column
 * point_key says where each row comes from), F.say.sql (one text cell from the table `figure`,
 * which holds F.sql's rows) and F.gp (drawing commands; "# size: W H" chooses the size). What
 * several queries of a report share is a CREATE TEMP VIEW in its views.sql. What every report
 * shares lies in <reports> itself: run.sql (one row: the keys of {{value}}), outcomes.sql,
 * style.gp, frame.html.in.
 */
#ifndef ENG_REPORTS_RENDER_H
#define ENG_REPORTS_RENDER_H

#include <engram/status.h>

typedef struct EngReportRequest {
    const char *name; /* "quickstart" */
    const char *db_path;
    const char *run; /* as eng_db_run_named takes it (bench/core/db_runs.h) */
    const char *out_dir;
    const char *reports_dir; /* eng_reports_dir() */
} EngReportRequest;

typedef struct EngReportDone {
    int n_figures, n_empty; /* drawn; without data in this run */
    char run_id[64];
} EngReportDone;

/* ENG_USAGE for an unknown report, ENG_DB and ENG_NOT_FOUND as eng_reportdb_open, ENG_BAD_DATA for
 * a broken report file, ENG_IO when the folder cannot be written or gnuplot fails. The page is
 * written last: after an error the page that was there still is. */
EngStatus eng_report_render(const EngReportRequest *request, EngReportDone *done, EngErr *err);

#endif
