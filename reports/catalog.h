/* Which reports there are: a report is a folder <reports>/<name> that holds page.md.in.
 */
#ifndef ENG_REPORTS_CATALOG_H
#define ENG_REPORTS_CATALOG_H

#include <engram/status.h>

#define ENG_REPORTS_MAX 64

typedef struct EngReportName {
    char name[64];
    char title[128]; /* the page's first heading */
} EngReportName;

typedef struct EngReportNames {
    EngReportName items[ENG_REPORTS_MAX]; /* sorted by name */
    int n;
} EngReportNames;

/* ENG_REPORTS_DIR of the environment, else the folder of the source tree. */
const char *eng_reports_dir(void);
/* ENG_IO when the folder cannot be read. */
EngStatus eng_reports_list(const char *dir, EngReportNames *names, EngErr *err);
/* ENG_USAGE with the nearest name when there is no such report. */
EngStatus eng_reports_find(const char *dir, const char *name, EngReportName *found, EngErr *err);

#endif
