/* See table.h. Widths count UTF-8 characters. */
#include "bench/cli/table.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "bench/ablation/sweep.h"

struct EngTextTable {
    EngArena *arena;
    const EngTableColumn *columns;
    int n_columns;
    const char **cells;
    int n_cells, room;
    bool failed;
};

EngStatus eng_table_create(EngTextTable **table, const EngTableColumn *columns, int n_columns,
                           EngErr *err)
{
    EngStatus status = eng_alloc_or((void **)table, 1, sizeof **table, "a table", err);
    if (status) return status;
    (*table)->arena = eng_arena_create();
    (*table)->columns = columns;
    (*table)->n_columns = n_columns;
    (*table)->failed = !(*table)->arena;
    return ENG_OK;
}

void eng_table_text(EngTextTable *table, const char *text)
{
    if (table->failed) return;
    if (table->n_cells == table->room) {
        int room = table->room ? table->room * 2 : 64;
        const char **grown = eng_realloc(table->cells, (size_t)table->n_cells * sizeof *grown,
                                         (size_t)room * sizeof *grown);
        table->failed = !grown;
        if (!grown) return;
        table->cells = grown;
        table->room = room;
    }
    const char *copy = eng_arena_strdup(table->arena, text);
    table->failed = !copy;
    if (copy) table->cells[table->n_cells++] = copy;
}

void eng_table_printf(EngTextTable *table, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    eng_table_text(table, text);
}

void eng_table_number(EngTextTable *table, double value)
{
    if (isnan(value))
        eng_table_text(table, "");
    else if (fabs(value) >= 1e4 && fabs(value) < 1e15)
        eng_table_printf(table, "%.0f", value);
    else
        eng_table_printf(table, "%.4g", value);
}

static size_t width_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

void eng_text_print(FILE *out, const char *text, size_t at, size_t indent)
{
    bool breaks = isatty(fileno(out)) == 1, begun = false;
    for (size_t n; breaks && *(text += strspn(text, " ")); text += n) {
        char word[256];
        n = strcspn(text, " ");
        size_t shown = n < sizeof word ? n : sizeof word - 1;
        snprintf(word, sizeof word, "%.*s", (int)shown, text);
        size_t width = width_of(word) + (n - shown);
        if (begun && at + 1 + width > ENG_TABLE_COLUMNS) {
            fprintf(out, "\n%*s", (int)indent, "");
            at = indent;
        } else if (begun) {
            fputc(' ', out);
            at++;
        }
        fprintf(out, "%.*s", (int)n, text);
        at += width;
        begun = true;
    }
    fprintf(out, "%s\n", text);
}

/* Columns for a last cell beside the others; with fewer it has lines of its own. */
#define LEAST_TEXT 40

/* The last cell of a row of a table that is too wide. */
static void print_last(FILE *out, const char *text, size_t before)
{
    bool beside = before + LEAST_TEXT <= ENG_TABLE_COLUMNS;
    if (!beside && *text && isatty(fileno(out)) == 1) {
        fprintf(out, "\n    ");
        before = 4;
    }
    eng_text_print(out, text, before, before);
}

static void print_cell(FILE *out, const char *text, size_t width, bool right, bool last)
{
    int pad = last && !*text ? 0 : (int)(width - width_of(text));
    if (right)
        fprintf(out, "%*s%s", pad, "", text);
    else
        fprintf(out, "%s%*s", text, last ? 0 : pad, "");
    fputs(last ? "\n" : "  ", out);
}

/* Whether a column of text says the same in every one of several rows. */
static bool says_one_thing(const EngTextTable *table, int column)
{
    int n = table->n_columns;
    if (table->columns[column].right || table->n_cells < 2 * n) return false;
    for (int i = column; i < table->n_cells; i += n)
        if (strcmp(table->cells[i], table->cells[column])) return false;
    return true;
}

/* A table that is too wide says once, above it, what all rows share: of as many columns, from the
 * left, as make it fit; true for those. */
static void fold(const EngTextTable *table, const size_t *widths, bool *folded, FILE *out)
{
    size_t total = 0;
    int left = table->n_columns;
    const char *before = "all rows: ";
    for (int c = 0; c < table->n_columns; c++) total += widths[c] + (c ? 2 : 0);
    for (int c = 0; c < table->n_columns && total > ENG_TABLE_COLUMNS; c++) {
        if (!says_one_thing(table, c) || left == 1) continue;
        folded[c] = true;
        left--;
        total -= widths[c] + 2;
        if (!table->cells[c][0]) continue;
        fprintf(out, "%s%s %s", before, table->columns[c].title, table->cells[c]);
        before = ", ";
    }
    if (before[0] == ',') fputc('\n', out);
}

EngStatus eng_table_print(const EngTextTable *table, FILE *out, EngErr *err)
{
    size_t widths[32] = {0};
    bool folded[32] = {false};
    int n = table->n_columns, last = 0;
    if (table->failed || n > 32) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a table");
    for (int c = 0; c < n; c++) widths[c] = width_of(table->columns[c].title);
    for (int i = 0; i < table->n_cells; i++) {
        size_t width = width_of(table->cells[i]);
        if (width > widths[i % n]) widths[i % n] = width;
    }
    fold(table, widths, folded, out);
    for (int c = 0; c < n; c++)
        if (!folded[c]) last = c;
    size_t before = 0;
    for (int c = 0; c < last; c++) before += folded[c] ? 0 : widths[c] + 2;
    bool breaks = !table->columns[last].right && before + widths[last] > ENG_TABLE_COLUMNS;
    for (int i = -n; i < table->n_cells; i++) { /* titles first */
        int c = (i + n) % n;
        const char *text = i < 0 ? table->columns[c].title : table->cells[i];
        if (!folded[c] && c == last && breaks && i >= 0)
            print_last(out, text, before);
        else if (!folded[c])
            print_cell(out, text, widths[c], table->columns[c].right, c == last);
    }
    return ENG_OK;
}

void eng_table_free(EngTextTable *table)
{
    if (!table) return;
    eng_arena_destroy(table->arena);
    eng_free(table->cells);
    eng_free(table);
}

static const EngAxisDef *find_axis(const EngExperiment *experiment, const char *name)
{
    for (int i = 0; experiment && i < experiment->n_axes; i++)
        if (!strcmp(experiment->axes[i].name, name)) return &experiment->axes[i];
    return NULL;
}

void eng_axes_text(const EngExperimentList *list, const char *experiment, const char *axes_json,
                   char *out, size_t size)
{
    const EngExperiment *e = NULL;
    const char *name;
    json_t *value, *axes = json_loads(axes_json, 0, NULL);
    size_t used = 0;
    out[0] = 0;
    if (eng_experiment_find(list, experiment, &e, NULL))
        eng_experiment_find(&eng_train_experiments, experiment, &e, NULL);
    json_object_foreach(axes, name, value)
    {
        char text[96];
        const EngAxisDef *axis = find_axis(e, name);
        if (!strcmp(name, "variant")) continue;
        if (json_is_string(value))
            snprintf(text, sizeof text, "%s", json_string_value(value));
        else if (json_is_integer(value))
            snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
        else
            snprintf(text, sizeof text, "%g", json_number_value(value));
        if ((axis && !strcmp(axis->def, text)) || used >= size) continue;
        int n = snprintf(out + used, size - used, "%s%s=%s", used ? " " : "", name, text);
        used += n > 0 ? (size_t)n : 0;
    }
    json_decref(axes);
}

void eng_variant_text(const char *axes_json, char *out, size_t size)
{
    json_t *axes = json_loads(axes_json, 0, NULL);
    const char *variant = json_string_value(json_object_get(axes, "variant"));
    snprintf(out, size, "%s", variant ? variant : "");
    json_decref(axes);
}

bool eng_axes_word(const char *axes_json, const char *axis, char *out, size_t size)
{
    json_t *axes = json_loads(axes_json, 0, NULL);
    const char *word = json_string_value(json_object_get(axes, axis));
    bool found = word != NULL;
    if (found) snprintf(out, size, "%s", word);
    json_decref(axes);
    return found;
}

bool eng_axes_int(const char *axes_json, const char *axis, int64_t *value)
{
    json_t *axes = json_loads(axes_json, 0, NULL);
    const json_t *found = json_object_get(axes, axis);
    bool is_int = json_is_integer(found);
    if (is_int) *value = json_integer_value(found);
    json_decref(axes);
    return is_int;
}

void eng_stops_print(const EngRunStatus *run)
{
    for (int i = 0; i < run->n_stops; i++)
        printf("%s%s %d%s", i ? ", " : "sampling ended: ", run->stops[i].reason,
               run->stops[i].points, i + 1 == run->n_stops ? "\n" : "");
}

void eng_point_text(const EngExperimentList *list, const char *experiment, const char *axes_json,
                    char *out, size_t size)
{
    char variant[64], axes[256];
    eng_variant_text(axes_json, variant, sizeof variant);
    eng_axes_text(list, experiment, axes_json, axes, sizeof axes);
    snprintf(out, size, "%s%s%s%s%s", experiment, *variant ? " " : "", variant, *axes ? " " : "",
             axes);
}
