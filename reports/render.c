/* From a report's page to index.html; see render.h. */
#include "reports/render.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "reports/catalog.h"
#include "reports/figure.h"
#include "reports/page.h"

static EngStatus fill_value(EngRender *render, const char *key, EngStr *out, EngErr *err)
{
    const struct {
        const char *key, *value;
    } known[] = {
        {"report", render->request->name},
        {"database", render->request->db_path},
        {"title", render->title},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].key, key)) {
            eng_page_escape(out, known[i].value);
            return ENG_OK;
        }
    for (int i = 0; i < render->run.n_columns; i++)
        if (!strcmp(render->run.names[i], key)) {
            const char *value = render->run.cells[i];
            eng_page_escape(out, value ? value : "unknown");
            return ENG_OK;
        }
    const char *near = eng_nearest(key, render->run.names, (size_t)render->run.n_columns);
    return ENG_FAIL(err, ENG_NOT_FOUND, "no such value%s%s%s", near ? " (did you mean " : "",
                    near ? near : "", near ? "?)" : "");
}

static EngStatus fill_table(EngRender *render, const char *name, EngStr *out, EngErr *err)
{
    char *path, *sql, note[160];
    EngCells cells;
    EngStatus status = eng_render_read(render, name, ".sql", &path, &sql, err);
    if (!status) status = eng_reportdb_query(render->db, path, sql, render->arena, &cells, err);
    if (status) return status;
    if (cells.n_rows) {
        eng_page_table(out, &cells);
        return ENG_OK;
    }
    if (!eng_page_directive(sql, "--", "empty", note, sizeof note))
        snprintf(note, sizeof note, "No data in this run.");
    eng_str_add(out, "<p class=\"empty\">");
    eng_page_escape(out, note);
    eng_str_add(out, "</p>\n");
    return ENG_OK;
}

static EngStatus fill_page(void *context, const char *word, const char *name, EngStr *out,
                           EngErr *err)
{
    EngRender *render = context;
    EngFigure *figure;
    if (!strcmp(word, "value")) return fill_value(render, name, out, err);
    if (!strcmp(word, "table")) return fill_table(render, name, out, err);
    if (strcmp(word, "figure") && strcmp(word, "sentence"))
        return ENG_FAIL(err, ENG_NOT_FOUND, "not one of figure, sentence, table, value");
    EngStatus status = eng_render_figure(render, name, &figure, err);
    if (status) return status;
    if (!strcmp(word, "figure"))
        eng_str_add_n(out, figure->html.text, figure->html.n);
    else if (figure->sentence.text)
        eng_page_escape(out, figure->sentence.text);
    return ENG_OK;
}

typedef struct Frame {
    EngRender *render;
    const EngStr *body;
} Frame;

static EngStatus fill_frame(void *context, const char *word, const char *name, EngStr *out,
                            EngErr *err)
{
    Frame *frame = context;
    if (strcmp(word, "body")) return fill_page(frame->render, word, name, out, err);
    eng_str_add_n(out, frame->body->text, frame->body->n);
    return ENG_OK;
}

/* page.md.in -> HTML -> filled body -> frame. */
static EngStatus make_page(EngRender *render, EngStr *page, EngErr *err)
{
    EngStr html = {0}, body = {0};
    Frame frame = {render, &body};
    char *path, *text, files[16];
    EngStatus status = eng_render_read(render, "page", ".md.in", &path, &text, err);
    render->inline_files = !status &&
                           eng_page_directive(text, "[", "files]", files, sizeof files) &&
                           !strcmp(files, "inline");
    if (!status) status = eng_page_markdown(path, text, &html, err);
    if (!status)
        status = eng_page_expand(path, html.text ? html.text : "", fill_page, render, &body, err);
    if (!status) status = eng_render_read(render, "frame", ".html.in", &path, &text, err);
    if (!status) status = eng_page_expand(path, text, fill_frame, &frame, page, err);
    eng_str_free(&html);
    eng_str_free(&body);
    return status;
}

static EngStatus open_db(EngRender *render, EngErr *err)
{
    const EngReportRequest *request = render->request;
    char *path, *text, of[32];
    EngStatus status = eng_render_read(render, "page", ".md.in", &path, &text, err);
    if (status) return status;
    bool only = eng_page_directive(text, "[", "latest]", of, sizeof of);
    return eng_reportdb_open(request->db_path, request->run, only ? of : NULL, &render->db, err);
}

static EngStatus read_run(EngRender *render, EngErr *err)
{
    char *path, *sql;
    EngStatus status = eng_render_read(render, "run", ".sql", &path, &sql, err);
    if (!status)
        status = eng_reportdb_query(render->db, path, sql, render->arena, &render->run, err);
    if (!status && render->run.n_rows != 1)
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: gives %lld rows, not one", path,
                          (long long)render->run.n_rows);
    return status;
}

/* The folder, and the style that every script in it loads. */
static EngStatus prepare_folder(EngRender *render, EngErr *err)
{
    char *path, *style, *out;
    EngStatus status = eng_make_dirs(render->request->out_dir, err);
    if (!status) status = eng_render_read(render, "style", ".gp", &path, &style, err);
    if (status) return status;
    out = eng_arena_printf(render->arena, "%s/style.gp", render->request->out_dir);
    if (!out) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory");
    status = eng_file_write(out, style, strlen(style), err);
    const char *traces = eng_reportdb_traces(render->db);
    if (status || !*traces) return status;
    out = eng_arena_printf(render->arena, "%s/traces.sql", render->request->out_dir);
    if (!out) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory");
    return eng_file_write(out, traces, strlen(traces), err);
}

static void count_figures(const EngRender *render, EngReportDone *done)
{
    *done = (EngReportDone){0};
    for (int i = 0; i < render->n_figures; i++) {
        done->n_figures += render->figures[i].drawn;
        done->n_empty += !render->figures[i].drawn;
    }
    snprintf(done->run_id, sizeof done->run_id, "%s", eng_reportdb_run_id(render->db));
}

EngStatus eng_report_render(const EngReportRequest *request, EngReportDone *done, EngErr *err)
{
    EngReportName name;
    EngStr page = {0};
    EngStatus status = eng_reports_find(request->reports_dir, request->name, &name, err);
    if (status) return status;
    EngRender *render = eng_alloc(sizeof *render);
    if (!render) return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", request->name);
    render->request = request;
    render->title = name.title;
    render->arena = eng_arena_create();
    if (!render->arena) status = ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", request->name);
    if (!status) status = open_db(render, err);
    if (!status) status = read_run(render, err);
    char *folder =
        status ? NULL
               : eng_arena_printf(render->arena, "%s/%s", request->reports_dir, request->name);
    if (!status)
        status = folder ? eng_reportdb_folder(render->db, folder, err)
                        : ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", request->name);
    if (!status) status = prepare_folder(render, err);
    if (!status) status = make_page(render, &page, err);
    if (status) goto out;
    char *index = eng_arena_printf(render->arena, "%s/index.html", request->out_dir);
    status = index ? eng_file_write(index, page.text, page.n, err)
                   : ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", request->name);
    if (!status) count_figures(render, done);
out:
    for (int i = 0; i < render->n_figures; i++) {
        eng_str_free(&render->figures[i].sentence);
        eng_str_free(&render->figures[i].html);
    }
    eng_str_free(&page);
    eng_reportdb_close(render->db);
    if (render->arena) eng_arena_destroy(render->arena);
    eng_free(render);
    return status;
}
