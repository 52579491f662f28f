/* Listing of report folders; see catalog.h. */
#include "reports/catalog.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

const char *eng_reports_dir(void)
{
    const char *chosen = getenv("ENG_REPORTS_DIR");
    return chosen && *chosen ? chosen : ENG_REPORTS_DIR;
}

static bool is_name(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-");
    return n && !text[n] && n < sizeof((EngReportName *)0)->name;
}

/* *is_report is false for a folder without a page. */
static EngStatus read_title(const char *dir, EngReportName *report, bool *is_report, EngErr *err)
{
    char path[4096], *text = NULL;
    int n = snprintf(path, sizeof path, "%s/%s/page.md.in", dir, report->name);
    *is_report = n > 0 && (size_t)n < sizeof path && eng_file_exists(path);
    if (!*is_report) return ENG_OK;
    EngStatus status = eng_file_read(path, &text, NULL, err);
    if (status) return status;
    const char *heading = !strncmp(text, "# ", 2) ? text : strstr(text, "\n# ");
    heading = heading ? heading + (*heading == '\n') + 2 : report->name;
    snprintf(report->title, sizeof report->title, "%.*s", (int)strcspn(heading, "\r\n"), heading);
    eng_free(text);
    return ENG_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const EngReportName *)a)->name, ((const EngReportName *)b)->name);
}

EngStatus eng_reports_list(const char *dir, EngReportNames *names, EngErr *err)
{
    *names = (EngReportNames){0};
    DIR *folder = opendir(dir);
    if (!folder)
        return ENG_FAIL(err, ENG_IO,
                        "%s: cannot read the folder of reports: %s (ENG_REPORTS_DIR names another)",
                        dir, strerror(errno));
    EngStatus status = ENG_OK;
    struct dirent *entry;
    while (!status && (entry = readdir(folder)) && names->n < ENG_REPORTS_MAX) {
        bool is_report;
        EngReportName report = {0};
        if (!is_name(entry->d_name)) continue;
        snprintf(report.name, sizeof report.name, "%.63s", entry->d_name);
        status = read_title(dir, &report, &is_report, err);
        if (!status && is_report) names->items[names->n++] = report;
    }
    closedir(folder);
    qsort(names->items, (size_t)names->n, sizeof *names->items, by_name);
    return status;
}

EngStatus eng_reports_find(const char *dir, const char *name, EngReportName *found, EngErr *err)
{
    const char *known[ENG_REPORTS_MAX];
    EngReportNames *names = eng_alloc(sizeof *names);
    if (!names) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the list of reports");
    EngStatus status = eng_reports_list(dir, names, err);
    if (status) goto out;
    for (int i = 0; i < names->n; i++) {
        known[i] = names->items[i].name;
        if (strcmp(known[i], name)) continue;
        *found = names->items[i];
        goto out;
    }
    const char *near = eng_nearest(name, known, (size_t)names->n);
    if (near)
        status = ENG_FAIL(err, ENG_USAGE,
                          "unknown report '%s' (did you mean %s?); --list shows all", name, near);
    else
        status = ENG_FAIL(err, ENG_USAGE, "unknown report '%s'; --list shows all", name);
out:
    eng_free(names);
    return status;
}
