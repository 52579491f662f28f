/* engram report: figures and a page from one run of a results database. */
#include "bench/cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "bench/cli/verbs.h"
#include "reports/catalog.h"
#include "reports/render.h"

static const EngOption g_options[] = {
    {.name = "db",
     .value = "FILE",
     .def = "out/engram.db",
     .env = true,
     .help = "results database"},
    {.name = "run",
     .value = "RUN",
     .def = "latest",
     .help = "run to report: an id, its beginning, latest~N, or latest, the newest that "
             "the report is of; ablation and gates draw all training runs"},
    {.name = "out", .value = "DIR", .def = "out/report", .help = "folder to write"},
    {.name = "list", .help = "list the reports and end"},
};

static EngStatus list_reports(EngErr *err)
{
    EngReportNames *names = eng_alloc(sizeof *names);
    if (!names) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the list of reports");
    EngStatus status = eng_reports_list(eng_reports_dir(), names, err);
    for (int i = 0; !status && i < names->n; i++)
        printf("%-16s %s\n", names->items[i].name, names->items[i].title);
    eng_free(names);
    return status;
}

static EngStatus run(EngCli *cli, EngErr *err)
{
    if (eng_cli_flag(cli, "list")) return list_reports(err);
    const char *name = eng_cli_operand(cli, 0);
    EngReportRequest request = {
        .name = name ? name : "quickstart",
        .db_path = eng_cli_text(cli, "db"),
        .run = eng_cli_text(cli, "run"),
        .out_dir = eng_cli_text(cli, "out"),
        .reports_dir = eng_reports_dir(),
    };
    if (!request.out_dir[0]) return ENG_FAIL(err, ENG_USAGE, "--out= names no folder");
    EngReportDone done;
    EngStatus status = eng_report_render(&request, &done, err);
    if (status) return status;
    eng_info("report", "%d figures of run %.8s", done.n_figures, done.run_id);
    if (done.n_empty)
        eng_warn("report", "%d figures have no data in this run; the page says which",
                 done.n_empty);
    printf("%s/index.html\n", request.out_dir);
    return ENG_OK;
}

const EngVerb eng_verb_report = {
    .name = "report",
    .operands = "[NAME]",
    .summary = "draw the figures of a run and write a page that opens from disk",
    .details = "NAME is a folder of reports/ (default quickstart). The folder written holds "
               "index.html, and for "
               "each\nfigure its query, data, gnuplot script, SVG and PNG; `gnuplot FIGURE.gp` "
               "there redraws one "
               "without\nthe database. The path of the page is printed.",
    .options = g_options,
    .n_options = sizeof g_options / sizeof *g_options,
    .max_operands = 1,
    .run = run,
};
