/* Candidates of a search, the sweeps of its stages, settings of variants, and the pairs that the
 * database gives back. */
#include "db_fixture.h"

#include "base/str.h"
#include "bench/core/db_pairs.h"
#include "bench/core/tune.h"

static const EngTunable fast_tunables[] = {
    {.name = "burst", .min = 1, .max = 64, .def = 16, .values = "8,16", .help = "rows"},
    {.name = "ahead", .min = 1, .max = 64, .values = "4:16:x2", .help = "rows"},
    {.name = NULL},
};
static const EngKernel tuned_kernel = {
    .op = ENG_OP_GATHER, .name = "fast", .tunables = fast_tunables};

static const EngKernel *const *tuned_kernels(EngOp op, int *n)
{
    static const EngKernel *const list[] = {&plain_kernel, &tuned_kernel, &read_roof};
    *n = op == ENG_OP_GATHER ? 3 : 0;
    return list;
}

static const EngTunableAxis axes[] = {
    {"heads", ENG_TUNE_CORES}, {"row_format", NULL}, {NULL, NULL}};
static EngExperiment searched;
static const EngExperiment *const items[] = {&searched, &reuse};
static const EngExperimentList list = {.items = items, .n = 2};
static const EngCatalog tuned_catalog = {&list, tuned_kernels};

static int prepare(void **state)
{
    (void)state;
    searched = gather;
    searched.tunables = axes;
    return 0;
}

static EngSweep *adhoc(const char *first, const char *second)
{
    const char *assignments[] = {first, second};
    EngSweep *sweep;
    OK(eng_sweep_adhoc("gather", &tuned_catalog, assignments, !!first + (first && second), &sweep,
                       err));
    return sweep;
}

static void test_settings(void **state)
{
    (void)state;
    int tuned[ENG_MAX_TUNABLES];
    char text[ENG_VARIANT_BYTES];
    EngErr err;
    assert_true(eng_kernel_is(&tuned_kernel, "fast"));
    assert_true(eng_kernel_is(&tuned_kernel, "fast@burst=8"));
    assert_false(eng_kernel_is(&tuned_kernel, "faster"));
    assert_false(eng_kernel_is(&tuned_kernel, "fas"));
    assert_int_equal(eng_kernel_settings(&tuned_kernel, "fast@ahead=3@burst=8", tuned, &err),
                     ENG_OK);
    assert_int_equal(tuned[0], 8);
    assert_int_equal(tuned[1], 3);
    assert_int_equal(tuned[2], 0);
    assert_int_equal(eng_kernel_variant(&tuned_kernel, tuned, text, sizeof text, &err), ENG_OK);
    assert_string_equal(text, "fast@burst=8@ahead=3");
    tuned[0] = 16; /* the default is left out */
    assert_int_equal(eng_kernel_variant(&tuned_kernel, tuned, text, sizeof text, &err), ENG_OK);
    assert_string_equal(text, "fast@ahead=3");
    assert_int_equal(eng_kernel_variant(&tuned_kernel, tuned, text, 8, &err), ENG_USAGE);
    static const char *const bad[][2] = {
        {"fast@burst", "'burst' is not parameter=value"},
        {"fast@bursts=8", "no parameter 'bursts'; did you mean 'burst'"},
        {"fast@burst=0", "burst is not a whole number from 1 to 64"},
        {"fast@burst=65", "burst is not a whole number from 1 to 64"},
        {"fast@burst=x", "burst is not a whole number"},
        {"fast@burst=8@burst=8", "burst is given twice"},
        {"fast@", "'' is not parameter=value"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(eng_kernel_settings(&tuned_kernel, bad[i][0], tuned, &err), ENG_USAGE);
        if (!strstr(err.text, bad[i][1])) fail_msg("%s: %s", bad[i][0], err.text);
    }
    assert_int_equal(eng_kernel_settings(&plain_kernel, "portable@burst=8", tuned, &err),
                     ENG_USAGE);
}

/* A sweep takes settings, in one spelling. */
static void test_axis_values(void **state)
{
    (void)state;
    EngSweep *sweep = adhoc("variant=fast@ahead=3@burst=8,fast@burst=16", NULL);
    const EngSweepAxis *axis = &sweep->sections[0].axes[0];
    assert_int_equal(axis->n, 2);
    assert_string_equal(axis->values[0].text, "fast@burst=8@ahead=3");
    assert_string_equal(axis->values[1].text, "fast");
    eng_sweep_free(sweep);
}

static void test_candidates(void **state)
{
    (void)state;
    EngTuneSpace *space;
    EngSweep *sweep = adhoc("tokens=64", NULL);
    OK(eng_tune_space_open(sweep, 6, &space, err));
    /* portable, fast, fast with 2 x 3 settings of which burst=16 is the default's spelling; times
     * 1, 2, 4, 6 heads. */
    assert_int_equal(space->n_axes, 2);
    assert_int_equal(space->n, (1 + 1 + 6) * 4);
    assert_string_equal(space->fixed, "tokens = 64\n");
    assert_string_equal(space->clock, "cpu");
    char label[128];
    eng_tune_label(space, 0, label, sizeof label);
    assert_string_equal(label, "portable heads=1");
    eng_tune_label(space, space->n - 1, label, sizeof label);
    assert_string_equal(label, "fast@ahead=16 heads=6");
    eng_tune_space_free(space);
    eng_sweep_free(sweep);
    /* Settings stand as they are; one value fixes a tunable axis. */
    sweep = adhoc("variant=fast@burst=8,portable", "heads=4");
    OK(eng_tune_space_open(sweep, 6, &space, err));
    assert_int_equal(space->n, 2);
    assert_string_equal(space->fixed, "heads = 4\n");
    eng_tune_space_free(space);
    eng_sweep_free(sweep);
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const bad[][3] = {
        {"tokens=1,2", NULL, "tokens has 2 values; a search is for one shape"},
        {"pairs=3", NULL, "a search sets pairs"},
        {"where=tokens<5", NULL, "zip, where and compare"},
        {"compare=tokens", NULL, "zip, where and compare"},
        {"heads=1:64:+1", NULL, "more than 384 candidates"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        EngErr err = {0};
        EngTuneSpace *space;
        EngSweep *sweep = adhoc(bad[i][0], bad[i][1]);
        assert_int_equal(eng_tune_space_open(sweep, 2, &space, &err), ENG_USAGE);
        if (!strstr(err.text, bad[i][2])) fail_msg("%s: %s", bad[i][0], err.text);
        assert_null(space);
        eng_sweep_free(sweep);
    }
    EngErr why = {0};
    EngTuneSpace *space;
    EngSweep *sweep;
    OK(eng_sweep_adhoc("reuse", &tuned_catalog, NULL, 0, &sweep, err));
    assert_int_equal(eng_tune_space_open(sweep, 2, &space, &why), ENG_USAGE);
    assert_non_null(strstr(why.text, "reuse counts"));
    eng_sweep_free(sweep);
}

/* A stage is one block of exactly the chosen candidates, whatever their number. */
static void test_stage_is_one_block(void **state)
{
    (void)state;
    EngTuneSpace *space;
    EngSweep *sweep = adhoc("tokens=64", NULL), *stage_sweep;
    OK(eng_tune_space_open(sweep, 8, &space, err));
    for (int n = 1; n <= space->n; n += 5) {
        EngStr text = {0};
        EngPlan *plan;
        int chosen[64];
        const EngTuneStage stage = {n, 1, 2, 7};
        for (int i = 0; i < n; i++) chosen[i] = (i * 7) % space->n;
        OK(eng_tune_stage_text(space, chosen, n, &stage, 0, &text, err));
        OK(eng_sweep_parse(text.text, "tune", &tuned_catalog, NULL, 0, &stage_sweep, err));
        OK(eng_plan_expand(stage_sweep, &identity, &plan, err));
        assert_int_equal(plan->n_named, n);
        assert_int_equal(plan->n_blocks, 1);
        assert_int_equal(plan->blocks[0].settings.pairs, 7);
        assert_int_equal(plan->blocks[0].settings.segments, 2);
        assert_string_equal(plan->blocks[0].compare_axis, "variant,heads");
        for (int i = 0; i < n; i++) {
            const EngPlanPoint *p = plan->points[i];
            assert_string_equal(p->variant, space->items[chosen[i]].values[0]);
            assert_non_null(p->kernel);
        }
        eng_plan_free(plan);
        eng_sweep_free(stage_sweep);
        eng_str_free(&text);
    }
    eng_tune_space_free(space);
    eng_sweep_free(sweep);
}

static void test_pairs(void **state)
{
    EngDb *db = open_db(*state, ENG_DB_RUN);
    char found[ENG_KEY_HEX];
    bool finished;
    put_common(db);
    Run run = begin_run(db, "[gather]\ntokens = 1\n", false);
    OK(eng_db_find_run(db, run.plan->plan_key, "machine-1", "build-1", found, &finished, err));
    assert_string_equal(found, run.run_id);
    assert_false(finished);
    OK(eng_db_find_run(db, run.plan->plan_key, "machine-1", "build-2", found, &finished, err));
    assert_string_equal(found, ""); /* an unfinished run belongs to its build */
    measure_all(db, &run, 5);
    OK(eng_db_find_run(db, run.plan->plan_key, "machine-1", "build-2", found, &finished, err));
    assert_true(finished);
    EngPairPoint *points;
    int n;
    OK(eng_db_pairs(db, run.run_id, NULL, run.arena, &points, &n, err));
    assert_int_equal(n, 4); /* two variants, two roofs */
    int roofs = 0;
    for (int i = 0; i < n; i++) {
        assert_int_equal(points[i].n, 5);
        roofs += points[i].is_roof;
        assert_int_equal(points[i].outcome, ENG_OUTCOME_MEASURED);
        for (int j = 0; j < 5; j++) {
            assert_int_equal(points[i].samples[j].pair, j);
            assert_true(points[i].samples[j].wall_ns == (100 + j) / 2.0); /* inner is 2 */
            assert_true(points[i].samples[j].cpu_ns == (107 + j) / 2.0);
            assert_int_equal(points[i].samples[j].block, 1);
        }
    }
    assert_int_equal(roofs, 2);
    OK(eng_db_pairs(db, run.run_id, points[0].point_key, run.arena, &points, &n, err));
    assert_int_equal(n, 1);
    OK(eng_db_pairs(db, "no such run", NULL, run.arena, &points, &n, err));
    assert_int_equal(n, 0);
    EngChainRow chain;
    bool is_there;
    OK(eng_db_find_chain(db, "machine-1", "toy", 1, 1, &chain, &is_there, err));
    assert_false(is_there);
    free_run(&run);
    eng_db_close(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_axis_values),
        cmocka_unit_test(test_candidates),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_stage_is_one_block),
        cmocka_unit_test_setup_teardown(test_pairs, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
