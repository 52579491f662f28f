/* The grammar of sweeps: each construct, and the text of each error. */
#include "ledger_fixture.h"

static const EngSweepAxis *axis_of(const EngSweepSection *section, const char *name)
{
    int axis = eng_experiment_axis(section->experiment, name);
    for (int i = 0; i < section->n_axes; i++)
        if (section->axes[i].axis == axis) return &section->axes[i];
    fail_msg("no axis %s", name);
    return NULL;
}

static void check_values(const char *list, const char *axis, const char *expected)
{
    char text[4096];
    EngStr joined = {0};
    snprintf(text, sizeof text, "[gather]\n%s = %s\n", axis, list);
    EngSweep *sweep = good_sweep(&catalog, text);
    const EngSweepAxis *found = axis_of(&sweep->sections[0], axis);
    for (int i = 0; i < found->n; i++)
        eng_str_printf(&joined, "%s%s", i ? " " : "", found->values[i].text);
    assert_string_equal(joined.text, expected);
    eng_str_free(&joined);
    eng_sweep_free(sweep);
}

static void test_lists(void **state)
{
    (void)state;
    check_values("1,4, 64", "tokens", "1 4 64");
    check_values("2^10, 1024, 1", "tokens", "1024 1");
    check_values("2^10:2^20:x4", "tokens", "1024 4096 16384 65536 262144 1048576");
    check_values("1:16:+5", "tokens", "1 6 11 16");
    check_values("1:10:+4", "tokens", "1 5 9");
    check_values("3, 8:64:x2, 5:6:+1", "tokens", "3 8 16 32 64 5 6");
    check_values("+7", "tokens", "7");
    check_values("0:1:+0.1", "mix", "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1");
    check_values("0.30, 1e-1, .5, -0.0", "mix", "0.3 0.1 0.5 0");
    check_values("0.125:1:x2", "mix", "0.125 0.25 0.5 1");
    check_values("0.30000000000000004", "mix", "0.30000000000000004");
    check_values("fp8, bf16", "row_format", "fp8 bf16");
    check_values("portable", "variant", "portable");
    check_values("all", "variant", "all");
    check_values("prose, my-log.v2", "corpus", "prose my-log.v2");
}

static void test_sections(void **state)
{
    (void)state;
    EngSweep *sweep = good_sweep(&catalog, "; a comment\n"
                                           "[sweep]\n"
                                           "name = sizes\n"
                                           "question = How fast, # and why?\n"
                                           "pairs = 7\n"
                                           "seed = 42\n"
                                           "# another\n"
                                           "[gather]\n"
                                           "tokens = 1, 2,\n"
                                           "    ; inside\n"
                                           "    4, ; four\n"
                                           "\t8\n"
                                           "heads = 4, 8, 4, 8\n"
                                           "zip = (tokens, heads)\n"
                                           "where = tokens > 1\n"
                                           "compare = row_format\n"
                                           "segments = 2\n"
                                           "[gather:second]\n"
                                           "mix = 0.5 ; trailing\n"
                                           "[reuse]\n");
    assert_string_equal(sweep->name, "sizes");
    assert_string_equal(sweep->question, "How fast, # and why?");
    assert_int_equal(sweep->settings.pairs, 7);
    assert_int_equal(sweep->settings.seed, 42);
    assert_int_equal(sweep->settings.segments, eng_sweep_defaults.segments);
    assert_int_equal(sweep->n_sections, 3);
    const EngSweepSection *first = &sweep->sections[0];
    assert_int_equal(axis_of(first, "tokens")->n, 4);
    assert_int_equal(axis_of(first, "heads")->n, 4); /* zipped: repeats stay */
    assert_int_equal(axis_of(first, "heads")->zip, 0);
    assert_int_equal(axis_of(first, "tokens")->zip, 0);
    assert_int_equal(first->compare, 2);
    assert_int_equal(first->settings.segments, 2);
    assert_int_equal(first->settings.pairs, 7);
    assert_string_equal(sweep->sections[1].label, "second");
    assert_int_equal(sweep->sections[1].compare, 5);
    assert_string_equal(axis_of(&sweep->sections[1], "mix")->values[0].text, "0.5");
    assert_int_equal(sweep->sections[2].n_axes, 0);
    assert_int_equal(sweep->sections[2].compare, -1);
    eng_sweep_free(sweep);
}

static void check_effective(const EngSweep *sweep)
{
    EngStr text = {0}, again = {0};
    EngErr err = {0};
    assert_int_equal(eng_sweep_text(sweep, &text, &err), ENG_OK);
    EngSweep *copy = good_sweep(sweep->catalog, text.text);
    assert_int_equal(eng_sweep_text(copy, &again, &err), ENG_OK);
    assert_string_equal(text.text, again.text);
    EngPlan *a = good_plan(sweep, &identity), *b = good_plan(copy, &identity);
    assert_string_equal(a->plan_key, b->plan_key);
    assert_int_equal(a->n_points, b->n_points);
    eng_plan_free(a);
    eng_plan_free(b);
    eng_sweep_free(copy);
    eng_str_free(&text);
    eng_str_free(&again);
}

static void test_effective_text(void **state)
{
    (void)state;
    EngSweep *sweep = good_sweep(
        &catalog, "[sweep]\nname = s\nquestion = w # x ; y and a long text that goes on and on\n"
                  "    and on so that it must be broken into several lines # here and ;there\n"
                  "[gather:a]\ntokens = 10:900:+10\nheads = 1,2,3\nmix = 0.1, 0.2, 0.25\n"
                  "zip = (heads, mix)\nwhere = tokens * heads > 50 &&\n"
                  "   row_format == \"fp8\" && (mix < 0.22 || tokens % 3 == 0) && heads != 77\n"
                  "compare = tokens\nsegments = 12\nprecision = 1 %\nsettled = 12.5%\n"
                  "[reuse]\npairs = 1\n");
    check_effective(sweep);
    assert_int_equal(sweep->sections[0].settings.precision, 100);
    assert_int_equal(sweep->sections[0].settings.settled, 1250);
    assert_int_equal(sweep->sections[1].settings.precision, 0);
    EngStr text = {0};
    EngErr err = {0};
    assert_int_equal(eng_sweep_text(sweep, &text, &err), ENG_OK);
    assert_non_null(strstr(text.text, "zip = (heads, mix)\n"));
    assert_non_null(strstr(text.text, "compare = tokens\n"));
    assert_non_null(strstr(text.text, "precision = 1%\nsettled = 12.5%\n"));
    eng_str_free(&text);
    eng_sweep_free(sweep);
}

static void test_overrides(void **state)
{
    (void)state;
    const char *const set[] = {"tokens=2,3", "pairs=4", "where=tokens != 3"};
    EngSweep *sweep = NULL;
    EngErr err = {0};
    const char *text = "[gather]\ntokens = 100\nheads = 4\nwhere = heads > 2\n[reuse]\n";
    /* `where` names an axis of both experiments, so both take it. */
    assert_int_equal(eng_sweep_parse(text, "t.sweep", &catalog, set, 3, &sweep, &err), ENG_OK);
    assert_int_equal(axis_of(&sweep->sections[0], "tokens")->n, 2);
    assert_int_equal(axis_of(&sweep->sections[0], "heads")->n, 1);
    assert_int_equal(axis_of(&sweep->sections[1], "tokens")->n, 2);
    assert_int_equal(sweep->settings.pairs, 4);
    assert_int_equal(sweep->sections[1].settings.pairs, 4);
    assert_string_equal(sweep->sections[0].where_text, "tokens != 3");
    assert_string_equal(sweep->name, "t");
    check_effective(sweep);
    eng_sweep_free(sweep);

    const char *const adhoc[] = {"tokens=1,4,64", "heads=8"};
    assert_int_equal(eng_sweep_adhoc("gather", &catalog, adhoc, 2, &sweep, &err), ENG_OK);
    assert_string_equal(sweep->name, "gather");
    assert_int_equal(sweep->n_sections, 1);
    assert_int_equal(axis_of(&sweep->sections[0], "tokens")->n, 3);
    check_effective(sweep);
    eng_sweep_free(sweep);
}

typedef struct Bad {
    const char *text, *says; /* says: the whole message */
} Bad;

static void test_errors(void **state)
{
    (void)state;
    static const Bad bad[] = {
        {"[gather]\ntoken = 1\n", "t.sweep:2: [gather] token = 1: unknown axis 'token' of "
                                  "experiment gather; did you mean 'tokens'?"},
        {"[gahter]\ntokens = 1\n",
         "t.sweep:1: [gahter]: unknown experiment 'gahter'; did you mean 'gather'?"},
        {"[sweep]\npair = 3\n[gather]\n",
         "t.sweep:2: [sweep] pair = 3: unknown key 'pair'; did you mean 'pairs'?"},
        {"[sweep]\nname = x\n", "t.sweep: no section names an experiment"},
        {"", "t.sweep: no section names an experiment"},
        {"[gather]\nprecision = 1\n", "t.sweep:2: [gather] precision = 1: '1' is no share from 0% "
                                      "to 50% in steps of 0.01%, such "
                                      "as 1%"},
        {"[sweep]\nprecision = 50.01%\n[gather]\n",
         "t.sweep:2: [sweep] precision = 50.01%: '50.01%' is no share from 0% to 50% in steps of "
         "0.01%, such as 1%"},
        {"[gather]\nsettled = 5%%\n",
         "t.sweep:2: [gather] settled = 5%%: '5%%' is no share from 0% to 50% in steps of 0.01%, "
         "such as 1%"},
        {"[gather]\nprecision = 1%\n",
         "t.sweep: [gather]: precision ends sampling after 31 pairs in 2 segments at the earliest, "
         "pairs 10 times segments 3 is 30: raise segments"},
        {"[gather]\nsettled = 5%\n",
         "t.sweep: [gather]: settled needs a precision to fall short of"},
        {"tokens = 1\n[gather]\n", "t.sweep:1: a key before the first [section]"},
        {"[gather]\ntokens\n", "t.sweep:2: expected 'key = value' or '[section]'"},
        {"[gather\ntokens = 1\n", "t.sweep:1: section heading without ']'"},
        {"[gather]\ntokens = 1\n\ntokens = 2\n",
         "t.sweep:4: [gather] tokens is given twice (first in line 2)"},
        {"[gather]\ntokens = 1,x\n",
         "t.sweep:2: [gather] tokens = 1,x: tokens 'x' is not an integer"},
        {"[gather]\ntokens = 1.5\n",
         "t.sweep:2: [gather] tokens = 1.5: tokens '1.5' is not an integer"},
        {"[gather]\ntokens = 99999999999999999999\n",
         "t.sweep:2: [gather] tokens = 99999999999999999999: tokens '99999999999999999999' is not "
         "an integer"},
        {"[gather]\nheads = 0\n",
         "t.sweep:2: [gather] heads = 0: heads 0 is below its least value 1"},
        {"[gather]\nheads = 65\n",
         "t.sweep:2: [gather] heads = 65: heads 65 is above its greatest value 64"},
        {"[gather]\nmix = nan\n", "t.sweep:2: [gather] mix = nan: mix 'nan' is not a number"},
        {"[gather]\nmix = 1.01\n",
         "t.sweep:2: [gather] mix = 1.01: mix 1.01 is above its greatest value 1"},
        {"[gather]\nrow_format = fp9\n",
         "t.sweep:2: [gather] row_format = fp9: row_format 'fp9' is not one of fp8, bf16, f32; did "
         "you mean 'fp8'?"},
        {"[gather]\nvariant = potable\n",
         "t.sweep:2: [gather] variant = potable: variant 'potable' is not one of all, portable, "
         "fast; did you mean 'portable'?"},
        {"[gather]\nvariant = copy\n",
         "t.sweep:2: [gather] variant = copy: variant 'copy' is a roof: every block measures it "
         "without being asked"},
        {"[gather]\ncorpus = a b\n", "t.sweep:2: [gather] corpus = a b: corpus 'a b' has a "
                                     "character that no word may have"},
        {"[gather]\ntokens =\n", "t.sweep:2: [gather] tokens = : tokens has no value"},
        {"[gather]\ntokens = 1,,2\n",
         "t.sweep:2: [gather] tokens = 1,,2: tokens has an empty value in its list"},
        {"[gather]\ntokens = 1:8\n", "t.sweep:2: [gather] tokens = 1:8: tokens range '1:8' needs a "
                                     "step, as in 1:8:x2 or 1:8:+1"},
        {"[gather]\ntokens = 1:8:2\n",
         "t.sweep:2: [gather] tokens = 1:8:2: tokens range '1:8:2': the step must begin with x or "
         "+"},
        {"[gather]\ntokens = 8:1:x2\n",
         "t.sweep:2: [gather] tokens = 8:1:x2: tokens range '8:1:x2' ends below its start"},
        {"[gather]\ntokens = 1:8:x1\n",
         "t.sweep:2: [gather] tokens = 1:8:x1: tokens range '1:8:x1' needs a start above 0 and a "
         "factor above 1"},
        {"[gather]\ntokens = 1:8:+0\n",
         "t.sweep:2: [gather] tokens = 1:8:+0: tokens range '1:8:+0' needs a step above 0"},
        {"[gather]\ntokens = 1:y:x2\n",
         "t.sweep:2: [gather] tokens = 1:y:x2: range '1:y:x2': tokens 'y' is not an integer"},
        {"[gather]\ntokens = 1:1000000:+1\n",
         "t.sweep:2: [gather] tokens = 1:1000000:+1: tokens has more than 100000 values"},
        {"[gather]\ntokens = 1,2\nheads = 1\nzip = (tokens, heads)\n",
         "t.sweep:4: [gather] zip = (tokens, heads): axes of different lengths: tokens has 2 "
         "values, heads has 1"},
        {"[gather]\ntokens = 1,2\nzip = (tokens, heads)\n",
         "t.sweep:3: [gather] zip = (tokens, heads): axis heads has no list in this section"},
        {"[gather]\ntokens = 1,2\nzip = (tokens)\n",
         "t.sweep:3: [gather] zip = (tokens): a zip needs two axes or more"},
        {"[gather]\ntokens = 1\nheads = 2\nzip = (tokens, heads), (heads, tokens)\n",
         "t.sweep:4: [gather] zip = (tokens, heads), (heads, tokens): axis heads is zipped twice"},
        {"[gather]\ntokens = 1\nzip = tokens\n",
         "t.sweep:3: [gather] zip = tokens: expected (axis, axis) at 'tokens'"},
        {"[gather]\ntokens = 1\nvariant = all\nzip = (tokens, variant)\n",
         "t.sweep:4: [gather] zip = (tokens, variant): variant 'all' cannot be zipped"},
        {"[gather]\ncompare = tokns\n",
         "t.sweep:2: [gather] compare = tokns: unknown axis 'tokns' of experiment gather; did you "
         "mean 'tokens'?"},
        {"[reuse]\nmix = 1\n", "t.sweep:2: [reuse] mix = 1: experiment reuse has no axis 'mix', "
                               "which others have: gather"},
        {"[gather]\npairs = 0\n", "t.sweep:2: [gather] pairs = 0: must lie between 1 and 10000"},
        {"[gather]\npairs = many\n", "t.sweep:2: [gather] pairs = many: 'many' is not an integer"},
        {"[gather]\npairs = 5000\nsegments = 4\n",
         "t.sweep:2: [gather] pairs = 5000: pairs 5000 times segments 3 is above 10000 samples a "
         "point"},
        {"[gather]\nwhere = tokens >\n",
         "t.sweep:2: [gather] where = tokens >: column 9: something is missing at the end"},
        {"[gather:a-label-that-is-much-too-long-for-the-ini-reader]\n",
         "t.sweep:1: section heading longer than 47 characters"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        EngSweep *sweep;
        EngErr err = {0};
        EngStatus status = eng_sweep_parse(bad[i].text, "t.sweep", &catalog, NULL, 0, &sweep, &err);
        assert_string_equal(err.text, bad[i].says);
        assert_int_equal(status, ENG_USAGE);
        assert_null(sweep);
    }
}

static void test_override_errors(void **state)
{
    (void)state;
    static const Bad bad[] = {
        {"tokns=1", "-a tokns=1: no section takes it: unknown axis 'tokns' of experiment gather; "
                    "did you mean 'tokens'?"},
        {"tokens", "-a tokens: expected axis=values"},
        {"heads=0", "-a heads=0: [gather]: heads 0 is below its least value 1"},
        {"pairs=x", "-a pairs=x: 'x' is not an integer"},
        {"precision=x", "-a precision=x: 'x' is no share from 0% to 50% in steps of 0.01%, such as "
                        "1%"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        EngSweep *sweep;
        EngErr err = {0};
        EngStatus status = eng_sweep_parse("[gather]\n[reuse]\n", "t.sweep", &catalog, &bad[i].text,
                                           1, &sweep, &err);
        assert_string_equal(err.text, bad[i].says);
        assert_int_equal(status, ENG_USAGE);
    }
    EngSweep *sweep;
    EngErr err = {0};
    static const char *const twice[] = {"heads=8", "tokens=1", " heads = 16"};
    assert_int_equal(eng_sweep_adhoc("gather", &catalog, twice, 3, &sweep, &err), ENG_USAGE);
    assert_string_equal(err.text, "-a  heads = 16: heads was given before, as heads=8; write all "
                                  "its values as one list");
    assert_int_equal(eng_sweep_adhoc("gathr", &catalog, NULL, 0, &sweep, &err), ENG_USAGE);
    assert_string_equal(err.text, "unknown experiment 'gathr'; did you mean 'gather'?");
    assert_int_equal(eng_sweep_read("no/such.sweep", &catalog, NULL, 0, &sweep, &err),
                     ENG_BAD_DATA);
}

/* inih cuts long lines and names; nothing of that may pass unseen. */
static void test_long_lines(void **state)
{
    (void)state;
    EngStr text = {0};
    EngSweep *sweep;
    EngErr err = {0};
    eng_str_add(&text, "[gather]\ntokens = 1");
    for (int i = 2; i < 80; i++) eng_str_printf(&text, ",%d", i);
    eng_str_add(&text, "\n");
    assert_int_equal(eng_sweep_parse(text.text, "t.sweep", &catalog, NULL, 0, &sweep, &err),
                     ENG_USAGE);
    assert_string_equal(err.text, "t.sweep:2: line longer than 195 characters; go on in the next "
                                  "line, indented");
    eng_str_free(&text);
    /* As many values as one likes over several lines. */
    eng_str_add(&text, "[gather]\ntokens = 1001,\n");
    for (int i = 1002; i <= 3000; i++)
        eng_str_printf(&text, "%s%d,%s", i % 20 == 2 || i == 1002 ? "  " : " ", i,
                       i % 20 == 1 ? "\n" : "");
    eng_str_add(&text, "\n  3001\n");
    sweep = good_sweep(&catalog, text.text);
    assert_int_equal(axis_of(&sweep->sections[0], "tokens")->n, 2001);
    check_effective(sweep);
    eng_sweep_free(sweep);
    eng_str_free(&text);
}

static void test_allocation_failures(void **state)
{
    (void)state;
    const char *text = "[sweep]\nname = a\n[gather]\ntokens = 1:64:x2,\n  3\nheads = 1,2\n"
                       "where = tokens > 2 && row_format == 'fp8'\n[reuse:x]\n";
    const char *const set[] = {"mix=0.1,0.2"};
    uint64_t live = eng_mem_live_blocks();
    for (uint64_t n = 1;; n++) {
        EngSweep *sweep;
        EngErr err = {0};
        assert_true(n < 1000);
        eng_mem_fail_at(n);
        EngStatus status = eng_sweep_parse(text, "t", &catalog, set, 1, &sweep, &err);
        eng_mem_fail_at(0);
        eng_sweep_free(sweep);
        assert_int_equal(eng_mem_live_blocks(), live);
        if (!status) break;
        assert_int_equal(status, ENG_NO_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),          cmocka_unit_test(test_sections),
        cmocka_unit_test(test_effective_text), cmocka_unit_test(test_overrides),
        cmocka_unit_test(test_errors),         cmocka_unit_test(test_override_errors),
        cmocka_unit_test(test_long_lines),     cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
