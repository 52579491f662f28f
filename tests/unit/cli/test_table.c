/* Long lines of text and tables: broken at spaces in a terminal, whole in a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "bench/cli/table.h"

#define REASON                                                                                     \
    "the arm has fewer experts than each token is sent to, which is what a small share of the "    \
    "parameters leaves over for them in a model of this size"

static int g_master;

/* A stream whose reader is a terminal; what was written is in the text that `shown` gives. */
static FILE *open_terminal(void)
{
    struct termios raw;
    g_master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(g_master >= 0 && !grantpt(g_master) && !unlockpt(g_master));
    int slave = open(ptsname(g_master), O_RDWR | O_NOCTTY);
    assert_true(slave >= 0 && !tcgetattr(slave, &raw));
    cfmakeraw(&raw);
    assert_int_equal(tcsetattr(slave, TCSANOW, &raw), 0);
    return fdopen(slave, "w");
}

/* A terminal gives what is written in pieces, so that a mark tells the end. */
static const char *shown(FILE *out)
{
    static char text[4096];
    size_t n = 0;
    char *mark = NULL;
    fputc('\f', out);
    fflush(out);
    while (!mark) {
        ssize_t got = read(g_master, text + n, sizeof text - 1 - n);
        assert_true(got > 0);
        n += (size_t)got;
        text[n] = 0;
        mark = strchr(text, '\f');
    }
    *mark = 0;
    fclose(out);
    close(g_master);
    return text;
}

/* No line is too wide, and the words are those of `whole`, in order. */
static void expect_words(const char *text, const char *whole)
{
    char copy[4096], *save = NULL;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= ENG_TABLE_COLUMNS);
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
        whole = strstr(whole, word);
        assert_non_null(whole);
        whole += strlen(word);
    }
    assert_string_equal(whole, "");
}

static void test_text(void **state)
{
    char *file = NULL;
    size_t size;
    (void)state;
    FILE *out = open_terminal();
    eng_text_print(out, REASON, 60, 6);
    const char *text = shown(out);
    expect_words(text, REASON);
    assert_true(strcspn(text, "\n") <= ENG_TABLE_COLUMNS - 60);
    assert_int_equal(strspn(strchr(text, '\n') + 1, " "), 6);
    out = open_memstream(&file, &size);
    eng_text_print(out, REASON, 60, 6);
    fclose(out);
    assert_string_equal(file, REASON "\n");
    free(file);
}

static void print_table(FILE *out, const char *first)
{
    static const EngTableColumn columns[] = {{"point", false}, {"us", true}, {"reason", false}};
    EngTextTable *table;
    EngErr err;
    assert_int_equal(eng_table_create(&table, columns, 3, &err), ENG_OK);
    eng_table_text(table, first);
    eng_table_number(table, 12);
    eng_table_text(table, REASON);
    assert_int_equal(eng_table_print(table, out, &err), ENG_OK);
    eng_table_free(table);
}

static void test_last_column(void **state)
{
    static const char *const firsts[] = {
        "rho=0.4", "rho=0.4 model_seed=1 budget=20 engram_at=1+3 table_rule=sinkhorn"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        FILE *out = open_terminal();
        char *whole = NULL;
        size_t size;
        print_table(out, firsts[i]);
        const char *text = shown(out);
        const char *row = strchr(text, '\n') + 1, *next = strchr(row, '\n') + 1;
        /* Beside the other columns where there is room, else below them. */
        assert_int_equal(strspn(next, " "), i ? 4 : strlen(firsts[0]) + 2 + 2 + 2);
        out = open_memstream(&whole, &size);
        print_table(out, firsts[i]);
        fclose(out);
        whole[size - 1] = 0;
        expect_words(text, whole);
        free(whole);
    }
}

/* First columns of text go above their rows, once each, where the others have no room beside them.
 */
static void test_first_columns(void **state)
{
    static const EngTableColumn columns[] = {
        {"experiment", false}, {"axes", false}, {"variant", false}, {"us", true}, {"why", false}};
    static const char *const axes[] = {"corpus=uniform heads=2 orders=2-3 preset=tiny row_dims=32",
                                       "corpus=uniform heads=4 orders=2-4 preset=tiny row_dims=64"};
    static const char *const why[] = {"not significant among all points", "interval holds 1"};
    char *printed = NULL;
    EngTextTable *table;
    EngErr err;
    size_t size;
    (void)state;
    FILE *out = open_memstream(&printed, &size);
    assert_int_equal(eng_table_create(&table, columns, 5, &err), ENG_OK);
    for (int i = 0; i < 3; i++) {
        eng_table_text(table, i < 2 ? "hash" : "gather");
        eng_table_text(table, axes[i > 1]);
        eng_table_text(table, i % 2 ? "avx2" : "portable");
        eng_table_number(table, i);
        eng_table_text(table, why[i % 2]);
    }
    assert_int_equal(eng_table_print(table, out, &err), ENG_OK);
    eng_table_free(table);
    fclose(out);
    assert_string_equal(printed,
                        "experiment  axes\n"
                        "    variant   us  why\n"
                        "hash        corpus=uniform heads=2 orders=2-3 preset=tiny row_dims=32\n"
                        "    portable   0  not significant among all points\n"
                        "    avx2       1  interval holds 1\n"
                        "gather      corpus=uniform heads=4 orders=2-4 preset=tiny row_dims=64\n"
                        "    portable   2  not significant among all points\n");
    free(printed);
}

/* Texts of users are whole in a cell, and where there is no room cut between characters. */
static void test_long_texts(void **state)
{
    static const EngTableColumn column = {"file", false};
    static const EngExperimentList none = {.n = 0};
    char name[601] = "", axes[700], text[64], whole[700], *printed = NULL;
    EngTextTable *table;
    EngErr err;
    size_t size;
    (void)state;
    for (int i = 0; i < 300; i++) strcat(name, "é");
    FILE *out = open_memstream(&printed, &size);
    assert_int_equal(eng_table_create(&table, &column, 1, &err), ENG_OK);
    eng_table_printf(table, "%s", name);
    assert_int_equal(eng_table_print(table, out, &err), ENG_OK);
    eng_table_free(table);
    fclose(out);
    assert_non_null(strstr(printed, name));
    free(printed);
    snprintf(axes, sizeof axes, "{\"file\": \"%s\", \"n\": 3, \"variant\": \"v\"}", name);
    eng_axes_text(&none, "engine", axes, whole, sizeof whole);
    assert_true(!strncmp(whole, "file=é", 7) && strstr(whole, name) && strstr(whole, "é n=3"));
    for (size_t room = 60; room <= sizeof text; room++) {
        eng_axes_text(&none, "engine", axes, text, room);
        size_t n = strlen(text);
        assert_true(n < room && n >= room - 2 && !strcmp(text + n - 3, "..."));
        assert_true(!strncmp(text, whole, n - 3) && (n - 3 - 5) % 2 == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_last_column),
        cmocka_unit_test(test_first_columns),
        cmocka_unit_test(test_long_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
