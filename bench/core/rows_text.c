/* CSV and JSON rows; see rows_text.h. */
#include "bench/core/rows_text.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int eng_rows_format_parse(const char *name)
{
    return !strcmp(name, "csv") ? ENG_ROWS_CSV : !strcmp(name, "json") ? ENG_ROWS_JSON : -1;
}

void eng_shortest_real(double value, char out[32])
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, 32, "%.*g", digits, value);
        if (strtod(out, NULL) == value) return;
    }
}

static void add_csv(EngStr *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        eng_str_add(out, text);
        return;
    }
    eng_str_add(out, "\"");
    for (const char *p = text; *p; p++) {
        if (*p == '"') eng_str_add(out, "\"");
        eng_str_add_n(out, p, 1);
    }
    eng_str_add(out, "\"");
}

/* JSON is UTF-8; other bytes (of a path in a reason, say) become '?'. */
static void add_json(EngStr *out, const char *text)
{
    json_t *string = json_string(text);
    if (!string) {
        EngStr copy = {0};
        for (const char *p = text; *p; p++)
            eng_str_add_n(&copy, (unsigned char)*p < 0x80 ? p : "?", 1);
        if (copy.text) string = json_string(copy.text);
        eng_str_free(&copy);
    }
    char *dumped = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    if (dumped)
        eng_str_add(out, dumped);
    else
        out->failed = true;
    free(dumped);
    json_decref(string);
}

/* What stands before the next cell. */
static void separate(EngRowsText *rows)
{
    int column = rows->column++;
    if (rows->format == ENG_ROWS_CSV) {
        if (column) eng_str_add(&rows->text, ",");
        return;
    }
    eng_str_add(&rows->text, column ? "," : rows->n_rows ? ",\n{" : "\n{");
    if (column < rows->n_columns) add_json(&rows->text, rows->columns[column]);
    eng_str_add(&rows->text, ":");
}

void eng_rows_number_text(EngRowsText *rows, const char *text)
{
    separate(rows);
    eng_str_add(&rows->text, text);
}

void eng_rows_none(EngRowsText *rows)
{
    eng_rows_number_text(rows, rows->format == ENG_ROWS_CSV ? "" : "null");
}

void eng_rows_text(EngRowsText *rows, const char *text)
{
    if (!text) {
        eng_rows_none(rows);
        return;
    }
    separate(rows);
    if (rows->format == ENG_ROWS_CSV)
        add_csv(&rows->text, text);
    else
        add_json(&rows->text, text);
}

void eng_rows_int(EngRowsText *rows, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    eng_rows_number_text(rows, text);
}

void eng_rows_real(EngRowsText *rows, double value)
{
    char text[32];
    if (!isfinite(value)) {
        eng_rows_none(rows);
        return;
    }
    eng_shortest_real(value, text);
    eng_rows_number_text(rows, text);
}

static EngStatus hand_over(EngRowsText *rows, EngErr *err)
{
    EngStatus status = eng_str_status(&rows->text, err);
    if (!status) status = rows->sink(rows->context, rows->text.text, rows->text.n, err);
    rows->text.n = 0;
    return status;
}

EngStatus eng_rows_begin(EngRowsText *rows, EngErr *err)
{
    rows->n_rows = 0;
    rows->column = 0;
    if (rows->format == ENG_ROWS_JSON) {
        eng_str_add(&rows->text, "[");
    } else {
        for (int i = 0; i < rows->n_columns; i++) {
            if (i) eng_str_add(&rows->text, ",");
            add_csv(&rows->text, rows->columns[i]);
        }
        eng_str_add(&rows->text, "\n");
    }
    return hand_over(rows, err);
}

EngStatus eng_rows_end_row(EngRowsText *rows, EngErr *err)
{
    if (rows->column != rows->n_columns)
        return ENG_FAIL(err, ENG_INTERNAL, "%d cells for %d columns", rows->column,
                        rows->n_columns);
    eng_str_add(&rows->text, rows->format == ENG_ROWS_JSON ? "}" : "\n");
    rows->column = 0;
    rows->n_rows++;
    return hand_over(rows, err);
}

EngStatus eng_rows_end(EngRowsText *rows, EngErr *err)
{
    if (rows->format == ENG_ROWS_CSV) return ENG_OK;
    eng_str_add(&rows->text, "\n]\n");
    return hand_over(rows, err);
}

void eng_rows_free(EngRowsText *rows)
{
    eng_str_free(&rows->text);
}
