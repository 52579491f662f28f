/* `where` expressions: values, precedence, types, and the column of each error. */
#include "ledger_fixture.h"

static EngPoint sample_point(void)
{
    EngPoint point = {.experiment = &gather};
    point.values[0] = (EngValue){"12", 12, 12};
    point.values[1] = (EngValue){"8", 8, 8};
    point.values[2] = (EngValue){.text = "bf16"};
    point.values[3] = (EngValue){.text = "prose"};
    point.values[4] = (EngValue){"0.5", 0, 0.5};
    point.values[5] = (EngValue){.text = "fast"};
    return point;
}

static void test_truth(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool keep;
    } cases[] = {
        {"tokens == 12", true},
        {"tokens != 12", false},
        {"tokens<13&&heads>=8", true},
        {"tokens > 12 || heads <= 7", false},
        {"row_format == \"bf16\" && corpus != 'docs'", true},
        {"'bf16' == row_format", true},
        {"1 + 2 * 3 == 7", true},
        {"(1 + 2) * 3 == 9", true},
        {"10 - 4 - 3 == 3", true},
        {"tokens / 5 == 2", true},
        {"tokens % 5 == 2", true},
        {"tokens / 5.0 == 2.4", true},
        {"-tokens < 0 && - -tokens == 12", true},
        {"!(tokens == 12) || !(heads == 9)", true},
        {"mix * 2 == 1", true},
        {"mix <= 0.5 && mix >= .5", true},
        {"2^10 == 1024", true},
        {"1e-3 < mix", true},
        {"true_is_no_axis == 1 || 1 == 1", false}, /* parse error, below */
        {"1 == 1 || 1 / 0 == 1", true},            /* not evaluated */
        {"1 == 2 && 1 / 0 == 1", false},
        {"1 == 2 || 1 == 1 && 1 == 2", false},           /* && binds tighter */
        {"9007199254740993 == 9007199254740992", false}, /* integers, not doubles */
    };
    EngPoint point = sample_point();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        EngArena *arena = eng_arena_create();
        EngWhere *where;
        EngErr err = {0};
        bool keep = true;
        EngStatus status = eng_where_parse(cases[i].text, &gather, arena, &where, &err);
        if (strncmp(cases[i].text, "true_", 5)) {
            if (status) fail_msg("%s: %s", cases[i].text, err.text);
            assert_int_equal(eng_where_eval(where, &point, &keep, &err), ENG_OK);
            if (keep != cases[i].keep) fail_msg("%s", cases[i].text);
        } else {
            assert_int_equal(status, ENG_USAGE);
        }
        eng_arena_destroy(arena);
    }
}

static void test_parse_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "column 1: something is missing at the end"},
        {"tokens", "column 1: the expression is no condition but an integer"},
        {"tokns == 1",
         "column 1: no axis 'tokns' in gather; did you mean 'tokens'? (words need quotes)"},
        {"row_format == fp8", "column 15: no axis 'fp8' in gather (words need quotes)"},
        {"tokens == \"1\"", "column 8: == cannot join an integer and a word"},
        {"corpus < 'a'", "column 8: < cannot join a word and a word"},
        {"tokens && 1 == 1", "column 8: && cannot join an integer and a condition"},
        {"mix % 2 == 0", "column 5: % cannot join a real and an integer"},
        {"(tokens == 1", "column 1: parenthesis is not closed"},
        {"tokens == 1)", "column 12: expected an operator at )"},
        {"corpus == 'docs", "column 11: quote is not closed"},
        {"tokens = 1", "column 8: expected an operator at = 1"},
        {"tokens == 1x", "column 11: not a number: 1x"},
        {"!tokens == 1", "column 1: ! needs a condition, not an integer"},
        {"-corpus == 'a'", "column 1: - needs a number, not a word"},
        {"1 < tokens < 3", "column 12: < cannot join a condition and an integer"},
        {"tokens == 1 @ 2", "column 13: expected an operator at @ 2"},
        {"tokens == @", "column 11: unexpected @"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        EngArena *arena = eng_arena_create();
        EngWhere *where;
        EngErr err = {0};
        assert_int_equal(eng_where_parse(cases[i].text, &gather, arena, &where, &err), ENG_USAGE);
        assert_string_equal(err.text, cases[i].says);
        eng_arena_destroy(arena);
    }
    char deep[4096] = {0};
    memset(deep, '(', sizeof deep - 1);
    EngArena *arena = eng_arena_create();
    EngWhere *where;
    EngErr err = {0};
    assert_int_equal(eng_where_parse(deep, &gather, arena, &where, &err), ENG_USAGE);
    assert_non_null(strstr(err.text, "nested too deeply"));
    eng_arena_destroy(arena);
}

static void test_eval_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"1 / (tokens - 12) == 1", "column 3: integer overflow or division by zero"},
        {"5 % (heads - 8) == 1", "column 3: integer overflow or division by zero"},
        {"mix / (mix - 0.5) > 1", "column 5: division by zero"},
        {"2^62 * tokens > 1", "column 6: integer overflow"},
        {"2^62 + 2^62 > 1", "column 6: integer overflow"},
    };
    EngPoint point = sample_point();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        EngArena *arena = eng_arena_create();
        EngWhere *where;
        EngErr err = {0};
        bool keep;
        assert_int_equal(eng_where_parse(cases[i].text, &gather, arena, &where, &err), ENG_OK);
        assert_int_equal(eng_where_eval(where, &point, &keep, &err), ENG_USAGE);
        assert_string_equal(err.text, cases[i].says);
        eng_arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truth),
        cmocka_unit_test(test_parse_errors),
        cmocka_unit_test(test_eval_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
