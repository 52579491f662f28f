/* Pages of reports in a folder of the test's own, which the tests of reports read sentences from.
 */
#ifndef ENG_TESTS_REPORTS_PAGES_H
#define ENG_TESTS_REPORTS_PAGES_H

#include "tests/unit/reports/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "reports/catalog.h"
#include "reports/render.h"

static char g_dir[64] = "/tmp/test_reports_XXXXXX"; /* mkdtemp makes it */

static inline const char *in_dir(const char *name)
{
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", g_dir, name);
    return path;
}

/* The page of a report of the latest run of a database; the caller frees it with eng_free. */
static inline char *page_of_run(const char *report, const char *db, EngReportDone *done)
{
    EngErr err = {0};
    char *html = NULL;
    EngReportRequest request = {report, db, "latest", in_dir("out"), eng_reports_dir()};
    if (eng_report_render(&request, done, &err)) fail_msg("%s", err.text);
    if (eng_file_read(in_dir("out/index.html"), &html, NULL, &err)) fail_msg("%s", err.text);
    return html;
}

/* The same; n_drawn -1: with any figures. */
static inline char *page_of(const char *report, const char *db, int n_drawn, int n_empty)
{
    EngReportDone done;
    char *html = page_of_run(report, db, &done);
    if (n_drawn >= 0) assert_int_equal(done.n_figures, n_drawn);
    if (n_drawn >= 0) assert_int_equal(done.n_empty, n_empty);
    return html;
}

static inline void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("'%s' is not on the page", part);
}

#endif
