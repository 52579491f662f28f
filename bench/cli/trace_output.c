/* Rows of `engram trace` in three formats, and the line that says what a file is; see
 * trace_parts.h. */
#include "bench/cli/trace_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static EngStatus put_stdout(void *context, const char *text, size_t n, EngErr *err)
{
    (void)context;
    if (fwrite(text, 1, n, stdout) == n) return ENG_OK;
    return ENG_FAIL(err, ENG_IO, "standard output: cannot write");
}

EngStatus eng_trace_is_table(const EngCli *cli, bool *table, EngErr *err)
{
    const char *format = eng_cli_text(cli, "format");
    *table = !format || !strcmp(format, "table");
    if (*table || eng_rows_format_parse(format) >= 0) return ENG_OK;
    return ENG_FAIL(err, ENG_USAGE, "--format=%s: table, csv or json", format);
}

/* Cuts the list at its commas. People read the unit once, above the table. */
static void split(EngTraceRows *rows, char *list, bool table)
{
    for (char *name = strtok(list, ","); name && rows->n_columns < 24; name = strtok(NULL, ",")) {
        bool number = *name == '+';
        size_t n = strlen(name);
        if (table && n > 3 && !strcmp(name + n - 3, "_us")) name[n - 3] = 0;
        rows->number[rows->n_columns] = number;
        rows->titles[rows->n_columns] = (EngTableColumn){name + number, number};
        rows->columns[rows->n_columns++] = name + number;
    }
}

EngStatus eng_trace_rows_begin(EngTraceRows *rows, const EngCli *cli, const char *title,
                               const char *columns, EngErr *err)
{
    bool table;
    *rows = (EngTraceRows){.err = err};
    EngStatus status = eng_trace_is_table(cli, &table, err);
    if (status) return status;
    eng_str_add(&rows->names, columns);
    status = eng_str_status(&rows->names, err);
    if (status) return status;
    split(rows, rows->names.text, table);
    if (table) {
        if (title) printf("\n%s (times in us)\n", title);
        return rows->status = eng_table_create(&rows->table, rows->titles, rows->n_columns, err);
    }
    rows->text =
        (EngRowsText){.format = (EngRowsFormat)eng_rows_format_parse(eng_cli_text(cli, "format")),
                      .columns = rows->columns,
                      .n_columns = rows->n_columns,
                      .sink = put_stdout};
    return rows->status = eng_rows_begin(&rows->text, err);
}

/* Behind the last cell of a row. */
static void next(EngTraceRows *rows)
{
    if (!rows->table && !rows->status && rows->text.column == rows->n_columns)
        rows->status = eng_rows_end_row(&rows->text, rows->err);
}

/* Names come from other programs: a line feed or an escape must not break a terminal's table. */
static EngStatus put_plain(EngTextTable *table, const char *text, EngErr *err)
{
    EngStr plain = {0};
    eng_str_add(&plain, text);
    EngStatus status = eng_str_status(&plain, err);
    for (size_t i = 0; !status && i < plain.n; i++)
        if ((unsigned char)plain.text[i] < ' ' || plain.text[i] == 127) plain.text[i] = '?';
    if (!status) eng_table_text(table, plain.text);
    eng_str_free(&plain);
    return status;
}

void eng_trace_rows_text(EngTraceRows *rows, const char *text)
{
    if (rows->status) return;
    if (rows->table)
        rows->status = put_plain(rows->table, text, rows->err);
    else
        eng_rows_text(&rows->text, text);
    next(rows);
}

void eng_trace_rows_int(EngTraceRows *rows, int64_t value, bool known)
{
    if (rows->status) return;
    if (rows->table && known)
        eng_table_printf(rows->table, "%" PRId64, value);
    else if (rows->table)
        eng_table_text(rows->table, "");
    else if (known)
        eng_rows_int(&rows->text, value);
    else
        eng_rows_none(&rows->text);
    next(rows);
}

void eng_trace_rows_real(EngTraceRows *rows, double value)
{
    if (rows->status) return;
    if (rows->table)
        eng_table_number(rows->table, value);
    else
        eng_rows_real(&rows->text, value);
    next(rows);
}

void eng_trace_rows_us(EngTraceRows *rows, int64_t ns, bool known)
{
    eng_trace_rows_real(rows, known ? (double)ns * 1e-3 : NAN);
}

EngStatus eng_trace_rows_end(EngTraceRows *rows)
{
    if (!rows->status)
        rows->status = rows->table ? eng_table_print(rows->table, stdout, rows->err)
                                   : eng_rows_end(&rows->text, rows->err);
    eng_table_free(rows->table);
    eng_rows_free(&rows->text);
    eng_str_free(&rows->names);
    return rows->status;
}

void eng_trace_headline(const EngTrace *trace, FILE *out)
{
    static const char *const what[] = {"kernels", "copies", "sets", "ranges", "marks", "API calls"};
    char refused[512];
    const char *slash = strrchr(trace->path, '/');
    fprintf(out, "%s: %s%s%s%s%s", slash ? slash + 1 : trace->path,
            *trace->product ? trace->product : "unknown program", *trace->schema ? ", schema " : "",
            trace->schema, *trace->gpu ? ", " : "", trace->gpu);
    for (int i = 0, n = 0; i <= ENG_TRACE_API; i++)
        if (trace->n_by_what[i])
            fprintf(out, "%s%" PRId64 " %s", n++ ? ", " : "\n", trace->n_by_what[i], what[i]);
    fprintf(out, " in %.4g ms\n", (double)(trace->last_ns - trace->first_ns) * 1e-6);
    eng_trace_refusals_text(&trace->refused, refused, sizeof refused);
    if (*refused) fprintf(out, "%s\n", refused);
}
