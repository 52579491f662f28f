/* One figure: query, data file, sentence, picture, caption; see figure.h. */
#include "reports/figure.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "reports/page.h"
#include "reports/plot.h"

EngStatus eng_render_read(EngRender *render, const char *name, const char *suffix, char **path,
                          char **text, EngErr *err)
{
    const EngReportRequest *request = render->request;
    const char *middle[] = {request->name, NULL};
    *path = *text = NULL;
    for (int i = 0; i < 2; i++) {
        char *read = NULL;
        *path = middle[i] ? eng_arena_printf(render->arena, "%s/%s/%s%s", request->reports_dir,
                                             middle[i], name, suffix)
                          : eng_arena_printf(render->arena, "%s/%s%s", request->reports_dir, name,
                                             suffix);
        if (!*path) return ENG_FAIL(err, ENG_NO_MEMORY, "%s%s: out of memory", name, suffix);
        EngStatus status = eng_file_read(*path, &read, NULL, err);
        if (status == ENG_NOT_FOUND) continue;
        if (status) return status;
        *text = eng_arena_strdup(render->arena, read);
        eng_free(read);
        return *text ? ENG_OK : ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", *path);
    }
    return ENG_FAIL(err, ENG_NOT_FOUND, "no file %s%s in report %s", name, suffix, request->name);
}

/* ---- where the rows come from
 * ------------------------------------------------------------------------ */

typedef struct Origin {
    EngCells kinds;   /* kind */
    EngCells bases;   /* what points that were not measured rest on */
    EngCells streams; /* stream_digest, corpus, kind, n_tokens */
    EngStr label;     /* "measured · prose · synthetic token stream" */
} Origin;

static EngStatus find_origin(EngRender *render, const char *path, Origin *origin, EngErr *err)
{
    static const char kinds[] =
        "SELECT DISTINCT p.kind FROM temp.figure f JOIN main.points p USING (point_key) ORDER BY 1";
    static const char streams[] =
        "SELECT DISTINCT s.stream_digest, s.corpus, s.kind, s.n_tokens FROM temp.figure f "
        "JOIN main.points p USING (point_key) JOIN main.streams s USING (stream_digest) "
        "ORDER BY s.corpus, s.stream_digest";
    static const char bases[] =
        "SELECT DISTINCT p.provenance FROM temp.figure f JOIN main.points p USING (point_key) "
        "WHERE p.kind <> 'measured' ORDER BY 1 LIMIT 12";
    EngStatus status =
        eng_reportdb_query(render->db, path, kinds, render->arena, &origin->kinds, err);
    if (!status)
        status = eng_reportdb_query(render->db, path, bases, render->arena, &origin->bases, err);
    if (!status)
        status =
            eng_reportdb_query(render->db, path, streams, render->arena, &origin->streams, err);
    if (status) return status;
    bool synthetic = false;
    for (int64_t i = 0; i < origin->kinds.n_rows; i++)
        eng_str_printf(&origin->label, "%s%s", i ? ", " : "",
                       eng_cells_get(&origin->kinds, i, "kind"));
    for (int64_t i = 0; i < origin->streams.n_rows; i++) {
        eng_str_printf(&origin->label, "%s%s", i ? ", " : " · ",
                       eng_cells_get(&origin->streams, i, "corpus"));
        synthetic = synthetic || !strcmp(eng_cells_get(&origin->streams, i, "kind"), "synthetic");
    }
    if (synthetic) eng_str_add(&origin->label, " · synthetic token stream");
    return eng_str_status(&origin->label, err);
}

static void origin_free(Origin *origin)
{
    eng_str_free(&origin->label);
}

/* ---- files beside the page
 * ------------------------------------------------------------------------- */

static char *out_path(EngRender *render, const char *name, const char *suffix)
{
    return eng_arena_printf(render->arena, "%s/%s%s", render->request->out_dir, name, suffix);
}

static EngStatus write_out(EngRender *render, const char *name, const char *suffix,
                           const char *text, EngErr *err)
{
    char *path = out_path(render, name, suffix);
    if (!path) return ENG_FAIL(err, ENG_NO_MEMORY, "%s%s: out of memory", name, suffix);
    return eng_file_write(path, text, strlen(text), err);
}

/* Pictures of an earlier run would stand beside a page that says there are none. */
static void remove_stale(EngRender *render, const char *name)
{
    static const char *const suffixes[] = {".dat", ".csv", ".gp", ".sql", ".svg", ".png"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char *path = out_path(render, name, suffixes[i]);
        if (path) unlink(path);
    }
}

/* gnuplot's single quotes keep everything but the quote itself, which is doubled. */
static void add_quoted(EngStr *out, const char *text)
{
    eng_str_add(out, "'");
    for (; *text; text++) eng_str_add_n(out, *text == '\'' ? "''" : text, *text == '\'' ? 2 : 1);
    eng_str_add(out, "'");
}

/* The script as it lies beside its data: a preamble that names data, target and origin, then the
 * report's drawing commands. */
static EngStatus write_script(EngRender *render, const EngFigure *figure, const char *path,
                              const char *body, const Origin *origin, EngErr *err)
{
    EngStr text = {0}, footer = {0};
    int width = 820, height = 500;
    char size[32];
    if (eng_page_directive(body, "#", "size", size, sizeof size) &&
        (sscanf(size, "%d %d", &width, &height) != 2 || width < 200 || height < 200 ||
         width > 4000 || height > 4000))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: size '%s' is not two numbers from 200 to 4000",
                        path, size);
    const char *cpu = eng_cells_get(&render->run, 0, "cpu_model");
    eng_str_printf(&footer, "%s%s%s · run %.8s", origin->label.text ? origin->label.text : "",
                   origin->label.n ? " · " : "", cpu ? cpu : "", eng_reportdb_run_id(render->db));
    eng_str_printf(&text,
                   "# %s\n# Redraw: gnuplot %s.gp (SVG), or gnuplot -e \"target='png'\" %s.gp\n"
                   "if (!exists(\"target\")) target = 'svg'\n"
                   "if (!exists(\"out\")) out = '%s.' . target\n"
                   "data = '%s.dat'\nwidth = %d\nheight = %d\nfooter = ",
                   figure->title, figure->name, figure->name, figure->name, figure->name, width,
                   height);
    add_quoted(&text, footer.text ? footer.text : "");
    eng_str_add(&text, "\ntitle_text = ");
    add_quoted(&text, figure->title);
    eng_str_printf(&text, "\nload 'style.gp'\n\n%s", body);
    EngStatus status = text.failed || footer.failed
                           ? ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", path)
                           : write_out(render, figure->name, ".gp", text.text, err);
    eng_str_free(&text);
    eng_str_free(&footer);
    return status;
}

/* ---- caption
 * ---------------------------------------------------------------------------------------- */

static void add_item(EngStr *out, const char *key, const char *value)
{
    eng_str_printf(out, "<dt>%s</dt><dd><code>", key);
    eng_page_escape(out, value);
    eng_str_add(out, "</code></dd>\n");
}

static void add_streams(EngStr *out, const Origin *origin)
{
    eng_str_add(out, "<dt>token streams</dt><dd>");
    for (int64_t i = 0; i < origin->streams.n_rows; i++) {
        if (i) eng_str_add(out, "<br>");
        eng_page_escape(out, eng_cells_get(&origin->streams, i, "corpus"));
        eng_str_add(out, " (");
        eng_page_escape(out, eng_cells_get(&origin->streams, i, "kind"));
        eng_str_add(out, ", ");
        eng_page_escape(out, eng_cells_get(&origin->streams, i, "n_tokens"));
        eng_str_add(out, " tokens) <code>");
        eng_page_escape(out, eng_cells_get(&origin->streams, i, "stream_digest"));
        eng_str_add(out, "</code>");
    }
    eng_str_add(out, origin->streams.n_rows ? "</dd>\n" : "none measured</dd>\n");
}

/* The rows again, by sqlite3 alone. */
static void add_sqlite_command(const EngRender *render, EngStr *text, const char *name)
{
    const EngReportRequest *request = render->request;
    eng_str_printf(text,
                   "# the data, from the database\n"
                   "sqlite3 -readonly '%s' '.param set :run \"'\"'%s'\"'\"' '.mode tabs' "
                   "'.headers on' '.nullvalue NaN' ",
                   request->db_path, eng_reportdb_run_id(render->db));
    if (*eng_reportdb_traces(render->db))
        eng_str_printf(text, "'.read \"%s/traces.sql\"' ", request->out_dir);
    eng_str_printf(text, "'.read \"%s/%s.sql\"'\n", request->out_dir, name);
}

/* Commands for a shell; the text is shown, never run. */
static void add_commands(EngRender *render, EngStr *out, const char *name, const char *sql)
{
    const EngReportRequest *request = render->request;
    EngStr text = {0};
    eng_str_printf(&text, "# the picture, from the data beside it\n(cd '%s' && gnuplot %s.gp)\n",
                   request->out_dir, name);
    if (eng_reportdb_is_plain(render->db, sql)) add_sqlite_command(render, &text, name);
    eng_str_printf(&text, "# the whole report\nengram report %s --db='%s' --run=%s --out='%s'",
                   request->name, request->db_path, eng_reportdb_run_id(render->db),
                   request->out_dir);
    eng_str_add(out, "<pre><code>");
    if (text.text) eng_page_escape(out, text.text);
    eng_str_add(out, "</code></pre>\n");
    out->failed = out->failed || text.failed;
    eng_str_free(&text);
}

/* The picture in the page, which then needs no other file. */
static EngStatus add_inline_picture(EngRender *render, EngFigure *figure, EngErr *err)
{
    char *svg, *path = out_path(render, figure->name, ".svg");
    EngStatus status = path ? eng_file_read(path, &svg, NULL, err)
                            : ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", figure->name);
    if (status) return status;
    eng_str_add(&figure->html, "<img src=\"");
    eng_page_data_uri(&figure->html, "image/svg+xml", svg);
    eng_str_add(&figure->html, "\" alt=\"");
    eng_page_escape(&figure->html, figure->title);
    eng_str_add(&figure->html, "\">");
    eng_free(svg);
    return ENG_OK;
}

static void add_bases(EngStr *out, const Origin *origin)
{
    if (!origin->bases.n_rows) return;
    eng_str_add(out, "<p class=\"label\">Rests on: ");
    for (int64_t i = 0; i < origin->bases.n_rows; i++) {
        if (i) eng_str_add(out, " · ");
        eng_page_escape(out, eng_cells_get(&origin->bases, i, "provenance"));
    }
    eng_str_add(out, "</p>\n");
}

static EngStatus add_html(EngRender *render, EngFigure *figure, const char *sql,
                          const EngCells *cells, const Origin *origin, EngErr *err)
{
    EngStr *out = &figure->html;
    EngStr csv = {0};
    EngStatus status = ENG_OK;
    eng_cells_csv(cells, &csv);
    if (!status) status = eng_str_status(&csv, err);
    if (!status) status = write_out(render, figure->name, ".csv", csv.text, err);
    eng_str_printf(out, "<figure id=\"%s\">\n", figure->name);
    if (!status && render->inline_files) status = add_inline_picture(render, figure, err);
    if (!render->inline_files) {
        eng_str_printf(out, "<a href=\"%s.png\"><img src=\"%s.svg\" alt=\"", figure->name,
                       figure->name);
        eng_page_escape(out, figure->title);
        eng_str_add(out, "\"></a>");
    }
    eng_str_add(out, "\n<figcaption>\n<p><strong>");
    eng_page_escape(out, figure->title);
    bool asks = figure->title[strlen(figure->title) - 1] == '?';
    eng_str_add(out, asks ? "</strong> " : ".</strong> ");
    if (figure->sentence.text) eng_page_escape(out, figure->sentence.text);
    eng_str_add(out, "</p>\n<p class=\"label\">");
    if (origin->label.text) eng_page_escape(out, origin->label.text);
    eng_str_printf(out, " · <a download=\"%s.csv\" href=\"", figure->name);
    if (!render->inline_files)
        eng_str_printf(out, "%s.csv", figure->name);
    else if (csv.text)
        eng_page_data_uri(out, "text/csv", csv.text);
    eng_str_add(out, "\">CSV</a></p>\n");
    add_bases(out, origin);
    eng_str_add(out, "<details><summary>Query, run, streams, commands</summary>\n<dl>\n");
    add_item(out, "run", eng_reportdb_run_id(render->db));
    add_item(out, "database", render->request->db_path);
    add_streams(out, origin);
    eng_str_add(out, "</dl>\n<pre><code>");
    eng_page_escape(out, sql);
    eng_str_add(out, "</code></pre>\n");
    add_commands(render, out, figure->name, sql);
    eng_str_add(out, "</details>\n</figcaption>\n</figure>\n");
    eng_str_free(&csv);
    return status ? status : eng_str_status(out, err);
}

/* What the query says of it ("-- empty: ..."), else that there is no data. */
static void add_empty(EngFigure *figure, const char *sql)
{
    char note[160];
    if (!eng_page_directive(sql, "--", "empty", note, sizeof note))
        snprintf(note, sizeof note, "no data in this run.");
    eng_str_printf(&figure->sentence, "This run has no data for it.");
    eng_str_printf(&figure->html, "<p class=\"empty\" id=\"%s\"><strong>", figure->name);
    eng_page_escape(&figure->html, figure->title);
    eng_str_add(&figure->html, ":</strong> ");
    eng_page_escape(&figure->html, note);
    eng_str_add(&figure->html, "</p>\n");
}

/* ---- the figure
 * ------------------------------------------------------------------------------------- */

static EngStatus make_sentence(EngRender *render, EngFigure *figure, EngErr *err)
{
    char *path, *sql;
    EngCells cells;
    EngStatus status = eng_render_read(render, figure->name, ".say.sql", &path, &sql, err);
    if (!status) status = eng_reportdb_query(render->db, path, sql, render->arena, &cells, err);
    if (status) return status;
    if (cells.n_columns != 1 || cells.n_rows != 1)
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: gives %lld rows of %d columns, not one cell", path,
                        (long long)cells.n_rows, cells.n_columns);
    eng_str_add(&figure->sentence, cells.cells[0] ? cells.cells[0] : "");
    return eng_str_status(&figure->sentence, err);
}

static EngStatus draw_figure(EngRender *render, EngFigure *figure, const char *path,
                             const char *sql, const EngCells *cells, EngErr *err)
{
    Origin origin = {0};
    char *gp_path, *gp, *dat = out_path(render, figure->name, ".dat");
    EngStatus status = dat ? find_origin(render, path, &origin, err)
                           : ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", figure->name);
    if (!status) status = make_sentence(render, figure, err);
    if (!status) status = eng_cells_write(cells, dat, err);
    if (!status) status = write_out(render, figure->name, ".sql", sql, err);
    if (!status) status = eng_render_read(render, figure->name, ".gp", &gp_path, &gp, err);
    if (!status) status = write_script(render, figure, gp_path, gp, &origin, err);
    if (!status) status = eng_plot(render->request->out_dir, figure->name, err);
    if (!status) status = add_html(render, figure, sql, cells, &origin, err);
    figure->drawn = !status;
    origin_free(&origin);
    return status;
}

EngStatus eng_render_figure(EngRender *render, const char *name, EngFigure **out, EngErr *err)
{
    char *path, *sql;
    EngCells cells;
    for (int i = 0; i < render->n_figures; i++)
        if (!strcmp(render->figures[i].name, name)) {
            *out = &render->figures[i];
            return ENG_OK;
        }
    if (render->n_figures == ENG_REPORT_MAX_FIGURES)
        return ENG_FAIL(err, ENG_BAD_DATA, "report %s: more than %d figures", render->request->name,
                        ENG_REPORT_MAX_FIGURES);
    EngStatus status = eng_render_read(render, name, ".sql", &path, &sql, err);
    if (status) return status;
    EngFigure *figure = *out = &render->figures[render->n_figures++];
    snprintf(figure->name, sizeof figure->name, "%s", name);
    if (!eng_page_directive(sql, "--", "title", figure->title, sizeof figure->title))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: needs a line '-- title: ...'", path);
    status = eng_reportdb_figure(render->db, path, sql, render->arena, &cells, err);
    if (status) return status;
    if (cells.n_rows) return draw_figure(render, figure, path, sql, &cells, err);
    remove_stale(render, name);
    add_empty(figure, sql);
    return eng_str_status(&figure->html, err);
}
