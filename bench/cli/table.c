/* See table.h. Widths count UTF-8 characters. */
#include "bench/cli/table.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
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
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    size_t size = (size_t)vsnprintf(NULL, 0, fmt, ap) + 1;
    char *text = eng_alloc(size);
    table->failed |= !text;
    if (text) vsnprintf(text, size, fmt, again);
    if (text) eng_table_text(table, text);
    eng_free(text);
    va_end(again);
    va_end(ap);
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

void eng_prose_print(FILE *out, const char *text, size_t at, size_t indent)
{
    bool begun = false;
    for (size_t n; *(text += strspn(text, " ")); text += n) {
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
    fputc('\n', out);
}

void eng_text_print(FILE *out, const char *text, size_t at, size_t indent)
{
    if (isatty(fileno(out)) == 1)
        eng_prose_print(out, text, at, indent);
    else
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

#define MAX_COLUMNS 32
#define INDENT      4 /* of rows whose first columns are above them */

typedef struct Layout {
    size_t widths[MAX_COLUMNS];
    bool folded[MAX_COLUMNS]; /* said above the table */
    int head;                 /* columns before this one are above their rows */
    int last;                 /* column that is not folded */
    size_t before;            /* columns of the screen before it */
    bool breaks;              /* its text may be broken into lines */
} Layout;

/* A table that is too wide says once, above it, what all rows share: of as many columns, from the
 * left, as make it fit. */
static EngStatus fold(const EngTextTable *table, Layout *layout, FILE *out, EngErr *err)
{
    EngStr said = {0};
    size_t total = 0;
    int left = table->n_columns;
    for (int c = 0; c < table->n_columns; c++) total += layout->widths[c] + (c ? 2 : 0);
    for (int c = 0; c < table->n_columns && total > ENG_TABLE_COLUMNS; c++) {
        if (!says_one_thing(table, c) || left == 1) continue;
        layout->folded[c] = true;
        left--;
        total -= layout->widths[c] + 2;
        if (!table->cells[c][0]) continue;
        eng_str_printf(&said, "%s%s %s", said.n ? ", " : "all rows: ", table->columns[c].title,
                       table->cells[c]);
    }
    EngStatus status = eng_str_status(&said, err);
    if (!status && said.n) eng_prose_print(out, said.text, 0, INDENT);
    eng_str_free(&said);
    return status;
}

/* Puts first columns of text above their rows until the others fit; a last one of long text need
 * not, it has lines of its own. */
static void raise_columns(const EngTextTable *table, Layout *layout)
{
    size_t text = layout->widths[layout->last];
    if (!table->columns[layout->last].right && text > LEAST_TEXT) text = 0;
    for (int c = 0; c < layout->last && layout->before + text > ENG_TABLE_COLUMNS; c++) {
        if (layout->folded[c]) continue;
        if (table->columns[c].right) break;
        layout->before -= layout->widths[c] + 2;
        if (!layout->head) layout->before += INDENT;
        layout->head = c + 1;
    }
}

static const char *cell_of(const EngTextTable *table, int row, int column)
{
    return row < 0 ? table->columns[column].title : table->cells[row * table->n_columns + column];
}

/* Columns from..to-1 of a row, -1 for the titles. */
static void print_cells(const EngTextTable *table, const Layout *layout, int row, int from, int to,
                        FILE *out)
{
    int last = to - 1;
    while (last > from && layout->folded[last]) last--;
    for (int c = from; c <= last; c++) {
        const char *text = cell_of(table, row, c);
        if (layout->folded[c]) continue;
        if (c == layout->last && layout->breaks && row >= 0)
            print_last(out, text, layout->before);
        else
            print_cell(out, text, layout->widths[c], table->columns[c].right, c == last);
    }
}

static bool heads_anew(const EngTextTable *table, int head, int row)
{
    bool anew = row <= 0;
    for (int c = 0; c < head && !anew; c++)
        anew = strcmp(cell_of(table, row, c), cell_of(table, row - 1, c)) != 0;
    return anew;
}

EngStatus eng_table_print(const EngTextTable *table, FILE *out, EngErr *err)
{
    Layout layout = {.last = 0};
    int n = table->n_columns;
    if (table->failed || n > MAX_COLUMNS)
        return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a table");
    for (int c = 0; c < n; c++) layout.widths[c] = width_of(table->columns[c].title);
    for (int i = 0; i < table->n_cells; i++) {
        size_t width = width_of(table->cells[i]);
        if (width > layout.widths[i % n]) layout.widths[i % n] = width;
    }
    EngStatus status = fold(table, &layout, out, err);
    if (status) return status;
    for (int c = 0; c < n; c++)
        if (!layout.folded[c]) layout.last = c;
    for (int c = 0; c < layout.last; c++)
        layout.before += layout.folded[c] ? 0 : layout.widths[c] + 2;
    raise_columns(table, &layout);
    layout.breaks = !table->columns[layout.last].right &&
                    layout.before + layout.widths[layout.last] > ENG_TABLE_COLUMNS;
    for (int row = -1; row < table->n_cells / n; row++) {
        if (layout.head && heads_anew(table, layout.head, row))
            print_cells(table, &layout, row, 0, layout.head, out);
        fprintf(out, "%*s", layout.head ? INDENT : 0, "");
        print_cells(table, &layout, row, layout.head, n, out);
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

/* A text that did not fit says so, and ends between two characters. */
static void mark_cut(char *out, size_t size)
{
    static const char mark[] = "...";
    size_t at = size - sizeof mark;
    while (at && ((unsigned char)out[at] & 0xc0) == 0x80) at--;
    memcpy(out + at, mark, sizeof mark);
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
        char number[32];
        const char *text = json_is_string(value) ? json_string_value(value) : number;
        const EngAxisDef *axis = find_axis(e, name);
        if (!strcmp(name, "variant")) continue;
        if (json_is_integer(value))
            snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
        else if (!json_is_string(value))
            snprintf(number, sizeof number, "%g", json_number_value(value));
        if ((axis && !strcmp(axis->def, text)) || used >= size) continue;
        int n = snprintf(out + used, size - used, "%s%s=%s", used ? " " : "", name, text);
        used += n > 0 ? (size_t)n : 0;
    }
    json_decref(axes);
    if (used >= size) mark_cut(out, size);
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
    char variant[ENG_VARIANT_BYTES], axes[256];
    eng_variant_text(axes_json, variant, sizeof variant);
    eng_axes_text(list, experiment, axes_json, axes, sizeof axes);
    snprintf(out, size, "%s%s%s%s%s", experiment, *variant ? " " : "", variant, *axes ? " " : "",
             axes);
}
