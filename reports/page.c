/* Markdown, placeholders and tables; see page.h. */
#include "reports/page.h"

#include <cmark.h>
#include <stdlib.h>
#include <string.h>

void eng_page_escape(EngStr *out, const char *text)
{
    for (; *text; text++) switch (*text) {
        case '&':
            eng_str_add(out, "&amp;");
            break;
        case '<':
            eng_str_add(out, "&lt;");
            break;
        case '>':
            eng_str_add(out, "&gt;");
            break;
        case '"':
            eng_str_add(out, "&quot;");
            break;
        case '\'':
            eng_str_add(out, "&#39;");
            break;
        default:
            eng_str_add_n(out, text, 1);
        }
}

void eng_page_data_uri(EngStr *out, const char *media_type, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_.!~*();/?:@=+$, ";
    eng_str_printf(out, "data:%s;charset=utf-8,", media_type);
    while (*text) {
        size_t n = strspn(text, plain);
        eng_str_add_n(out, text, n);
        text += n;
        if (*text) eng_str_printf(out, "%%%02X", (unsigned char)*text++);
    }
}

EngStatus eng_page_markdown(const char *label, const char *markdown, EngStr *out, EngErr *err)
{
    char *html = cmark_markdown_to_html(markdown, strlen(markdown), CMARK_OPT_VALIDATE_UTF8);
    if (!html) return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", label);
    eng_str_add(out, html);
    free(html);
    return eng_str_status(out, err);
}

/* ---- placeholders
 * --------------------------------------------------------------------------------- */

typedef struct Placeholder {
    char word[16], name[64];
    const char *end; /* behind the closing braces */
} Placeholder;

static bool parse_placeholder(const char *at, Placeholder *p)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    at += 2;
    at += strspn(at, " ");
    size_t n = strspn(at, letters);
    if (!n || n >= sizeof p->word) return false;
    memcpy(p->word, at, n);
    p->word[n] = 0;
    at += n;
    at += strspn(at, " ");
    n = strspn(at, letters);
    if (n >= sizeof p->name) return false;
    memcpy(p->name, at, n);
    p->name[n] = 0;
    at += n;
    at += strspn(at, " ");
    p->end = at + 2;
    return !strncmp(at, "}}", 2);
}

EngStatus eng_page_expand(const char *label, const char *html, EngPageFill fill, void *context,
                          EngStr *out, EngErr *err)
{
    static const char open[] = "<p>", close[] = "</p>";
    const char *at;
    while ((at = strstr(html, "{{"))) {
        Placeholder p;
        if (!parse_placeholder(at, &p))
            return ENG_FAIL(err, ENG_BAD_DATA, "%s: not a placeholder: '%.*s'", label,
                            (int)strcspn(at, "<\n"), at);
        bool block = !strcmp(p.word, "figure") || !strcmp(p.word, "table");
        bool alone =
            block && at - html >= 3 && !strncmp(at - 3, open, 3) && !strncmp(p.end, close, 4);
        eng_str_add_n(out, html, (size_t)(at - html) - (alone ? 3 : 0));
        EngStatus status = fill(context, p.word, p.name, out, err);
        if (status == ENG_NOT_FOUND && err) {
            err->status = ENG_BAD_DATA;
            eng_err_prefix(err, "%s: {{%s%s%s}}", label, p.word, p.name[0] ? " " : "", p.name);
        }
        if (status) return status == ENG_NOT_FOUND ? ENG_BAD_DATA : status;
        html = p.end + (alone ? 4 : 0);
    }
    eng_str_add(out, html);
    return eng_str_status(out, err);
}

bool eng_page_directive(const char *text, const char *comment, const char *key, char *value,
                        size_t size)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t n = strlen(comment), k = strlen(key);
        if (strncmp(line, comment, n)) continue;
        const char *at = line + n + strspn(line + n, " ");
        if (strncmp(at, key, k) || at[k] != ':') continue;
        at += k + 1;
        at += strspn(at, " ");
        size_t length = strcspn(at, "\r\n");
        if (length >= size) length = size - 1;
        memcpy(value, at, length);
        value[length] = 0;
        return true;
    }
    return false;
}

/* ---- tables
 * --------------------------------------------------------------------------------------- */

static bool is_numeric(const EngCells *cells, int column)
{
    bool any = false;
    for (int64_t row = 0; row < cells->n_rows; row++) {
        const char *text = cells->cells[row * cells->n_columns + column];
        if (!text) continue;
        char *end;
        strtod(text, &end);
        /* "12.5 GB/s", "3 of 8" and "1,000" count as numbers too. */
        if (end == text || (*end && !strchr(" %,", *end))) return false;
        any = true;
    }
    return any;
}

void eng_page_table(EngStr *out, const EngCells *cells)
{
    eng_str_add(out, "<div class=\"scroll\"><table>\n<thead><tr>");
    for (int i = 0; i < cells->n_columns; i++) {
        eng_str_add(out, is_numeric(cells, i) ? "<th class=\"number\">" : "<th>");
        eng_page_escape(out, cells->names[i]);
        eng_str_add(out, "</th>");
    }
    eng_str_add(out, "</tr></thead>\n<tbody>\n");
    for (int64_t row = 0; row < cells->n_rows; row++) {
        eng_str_add(out, "<tr>");
        for (int i = 0; i < cells->n_columns; i++) {
            const char *text = cells->cells[row * cells->n_columns + i];
            eng_str_add(out, is_numeric(cells, i) ? "<td class=\"number\">" : "<td>");
            eng_page_escape(out, text ? text : "-");
            eng_str_add(out, "</td>");
        }
        eng_str_add(out, "</tr>\n");
    }
    eng_str_add(out, "</tbody></table></div>\n");
}
