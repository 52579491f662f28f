/* One figure of a report, from its query to its HTML. Internal to the renderer.
 */
#ifndef ENG_REPORTS_FIGURE_H
#define ENG_REPORTS_FIGURE_H

#include "base/str.h"
#include "reports/query.h"
#include "reports/render.h"

#define ENG_REPORT_MAX_FIGURES 64

typedef struct EngFigure {
    char name[64], title[160];
    bool drawn;      /* false: no data in this run */
    EngStr sentence; /* plain text */
    EngStr html;     /* the whole <figure> */
} EngFigure;

/* What rendering one report carries along. */
typedef struct EngRender {
    const EngReportRequest *request;
    EngReportDb *db;
    EngArena *arena;
    EngCells run; /* one row of run.sql */
    EngFigure figures[ENG_REPORT_MAX_FIGURES];
    int n_figures;
    const char *title;
    bool inline_files; /* the page holds pictures and tables itself ("[files]: inline") */
} EngRender;

/* Reads <report>/<name><suffix>, else <reports>/<name><suffix>; *path is the file found. Both are
 * the arena's. ENG_NOT_FOUND when there is neither. */
EngStatus eng_render_read(EngRender *render, const char *name, const char *suffix, char **path,
                          char **text, EngErr *err);
/* The figure of that name, drawn at first use. */
EngStatus eng_render_figure(EngRender *render, const char *name, EngFigure **figure, EngErr *err);

#endif
