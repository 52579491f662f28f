/* See expected.h. */
#include "bench/cli/expected.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/cli/table.h"
#include "bench/core/db_expectation.h"
#include "bench/experiments/experiments.h"

#define NUMBER_COLUMNS (9 + 11) /* "1.234e+05", "expected us" */

typedef struct Line {
    const EngSummaryRow *row; /* the point's first */
    char axes[256];
    double measured_us;
    EngExpectation expected;
} Line;

static bool starts_point(const EngSummaryRow *rows, int i)
{
    return !i || strcmp(rows[i].point_key, rows[i - 1].point_key);
}

const EngKernel *eng_row_kernel(const EngSummaryRow *row)
{
    const EngExperiment *e = NULL;
    char variant[ENG_VARIANT_BYTES];
    if (eng_experiment_find(&eng_experiments, row->experiment, &e, NULL) || e->op < 0) return NULL;
    eng_variant_text(row->axes_json, variant, sizeof variant);
    return eng_kernel_find((EngOp)e->op, variant);
}

bool eng_row_is_roof(const EngSummaryRow *row)
{
    const EngKernel *kernel = eng_row_kernel(row);
    return kernel && kernel->roof;
}

bool eng_row_is_device(const EngSummaryRow *row)
{
    const EngKernel *kernel = eng_row_kernel(row);
    return kernel && kernel->backend == ENG_CUDA;
}

/* One line per point, from its rows; *n_lines: those that something is expected of. */
static EngStatus collect(EngDb *db, const char *run_id, const EngRateTable *rates,
                         const EngSummaryRow *rows, int n, Line *lines, int *n_lines, EngErr *err)
{
    EngStatus status = ENG_OK;
    *n_lines = 0;
    for (int i = 0, end; i < n && !status; i = end) {
        EngPointFacts facts = eng_no_facts;
        Line *line = &lines[*n_lines];
        for (end = i; end == i || (end < n && !starts_point(rows, end)); end++)
            eng_point_facts_add(&facts, rows[end].metric, rows[end].median,
                                rows[end].percent_of_roof);
        bool timed = !isnan(facts.cpu_us) || !isnan(facts.wall_us);
        if (!timed || eng_row_is_roof(&rows[i]) || eng_row_is_device(&rows[i])) continue;
        facts.threads = eng_threads_of(rows[i].axes_json);
        status =
            eng_db_roof_moved_bytes(db, run_id, rows[i].point_key, &facts.roof_moved_bytes, err);
        if (!status) eng_expect_point(rates, run_id, &facts, &line->expected);
        if (status || !line->expected.term) continue;
        line->row = &rows[i];
        line->measured_us = isnan(facts.cpu_us) ? facts.wall_us : facts.cpu_us;
        eng_axes_text(&eng_experiments, rows[i].experiment, rows[i].axes_json, line->axes,
                      sizeof line->axes);
        ++*n_lines;
    }
    return status;
}

static bool has_word(const char *text, const char *word, size_t length)
{
    for (const char *at = text; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == length && !strncmp(at, word, length)) return true;
    return false;
}

/* Columns left for names beside two numbers, the gaps and the longest explanation. */
static size_t name_room(const Line *lines, int n)
{
    size_t longest = 0;
    for (int i = 0; i < n; i++) {
        size_t length = strlen(lines[i].expected.why);
        if (length > longest) longest = length;
    }
    return ENG_TABLE_COLUMNS - NUMBER_COLUMNS - 3 * 2 - longest;
}

/* "gather tokens=4 avx2": without the axes that all lines of the experiment share. */
static void name_of(const Line *lines, int n, int of, size_t room, char out[128])
{
    const char *axes = lines[of].axes;
    char variant[64];
    size_t used = (size_t)snprintf(out, 128, "%s", lines[of].row->experiment);
    for (const char *word = axes; *word; word += strcspn(word, " "), word += *word == ' ') {
        size_t length = strcspn(word, " ");
        bool shared = true;
        for (int i = 0; i < n && shared; i++)
            shared = strcmp(lines[i].row->experiment, lines[of].row->experiment) ||
                     has_word(lines[i].axes, word, length);
        if (!shared && used + length + 1 < 64)
            used += (size_t)snprintf(out + used, 128 - used, " %.*s", (int)length, word);
    }
    eng_variant_text(lines[of].row->axes_json, variant, sizeof variant);
    if (*variant) snprintf(out + used, 128 - used, " %s", variant);
    if (strlen(out) > room) memcpy(out + room - 2, "..", 3);
}

static EngStatus print_lines(const Line *lines, int n, EngErr *err)
{
    static const EngTableColumn columns[] = {
        {"point", false}, {"us", true}, {"expected us", true}, {"because of", false}};
    EngTextTable *table;
    EngStatus status = eng_table_create(&table, columns, 4, err);
    if (status) return status;
    size_t room = name_room(lines, n);
    for (int i = 0; i < n; i++) {
        char name[128];
        name_of(lines, n, i, room, name);
        eng_table_text(table, name);
        eng_table_number(table, lines[i].measured_us);
        eng_table_number(table, lines[i].expected.expected_ns * 1e-3);
        eng_table_text(table, lines[i].expected.why);
    }
    printf("\n");
    status = eng_table_print(table, stdout, err);
    eng_table_free(table);
    return status;
}

EngStatus eng_expected_print(EngDb *db, const char *run_id, const char *machine_id,
                             const EngSummaryRow *rows, int n, EngErr *err)
{
    EngRateTable *rates = NULL;
    int points = 0, n_lines = 0;
    Line *lines = NULL;
    for (int i = 0; i < n; i++) points += starts_point(rows, i);
    EngArena *arena = eng_arena_create();
    if (arena) lines = eng_arena_alloc(arena, ((size_t)points + 1) * sizeof *lines);
    EngStatus status = lines ? eng_db_rates(db, machine_id, arena, &rates, err)
                             : ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the expected times");
    if (!status) status = collect(db, run_id, rates, rows, n, lines, &n_lines, err);
    if (!status && n_lines) status = print_lines(lines, n_lines, err);
    eng_arena_destroy(arena);
    return status;
}
