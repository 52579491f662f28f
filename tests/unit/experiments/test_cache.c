/* The axis `cache`: its values are points of their own, rotate stays the default, warm points read
 * one set of inputs, and no run allocates anything. */
#include "points.h"

#include "base/mem.h"
#include "bench/core/flush.h"
#include "bench/core/plan.h"
#include "bench/core/resources.h"

static EngPoint tiny(const EngExperiment *experiment, const char *cache)
{
    return point_of(experiment, "preset", "tiny", "orders", "2-3", "heads", "2", "rows", "101",
                    "row_dims", "32", "corpus", "synthetic", "hidden", "64", "tokens", "7", "cache",
                    cache, NULL);
}

static void run_point(const EngPoint *point, double *values)
{
    const EngExperiment *experiment = point->experiment;
    EngResources *resources;
    EngNeed need;
    EngErr err = {0};
    void *state = NULL;
    assert_int_equal(eng_resources_create("no-such-folder", 1, &resources, &err), ENG_OK);
    assert_int_equal(experiment->need(point, &need, &err), ENG_OK);
    assert_int_equal(eng_resources_add(resources, &need, &err), ENG_OK);
    if (need.table) assert_int_equal(eng_resources_map(resources, need.row_format, &err), ENG_OK);
    assert_int_equal(eng_resources_map_weights(resources, &err), ENG_OK);
    EngBench bench = {.resources = resources, .seed = 5};
    if (experiment->setup(&bench, point, &state, &err)) fail_msg("%s", err.text);
    assert_int_equal(experiment->run(state, &err), ENG_OK);
    eng_mem_fail_at(0);
    for (int i = 0; i < 5; i++) assert_int_equal(experiment->run(state, &err), ENG_OK);
    assert_int_equal(eng_mem_fail_at(0), 0); /* allocations since */
    EngTiming timing = {.inner = 6, .wall_ns = 6000, .cpu_ns = 6000};
    experiment->observe(state, &timing, values);
    experiment->teardown(state);
    eng_resources_destroy(resources);
}

static void test_runs(void **state)
{
    (void)state;
    static const EngExperiment *const with[] = {&eng_experiment_gather, &eng_experiment_project,
                                                &eng_experiment_gate, &eng_experiment_chain};
    static const char *const words[] = {ENG_CACHE_ROTATE, ENG_CACHE_WARM, ENG_CACHE_COLD};
    double values[ENG_MAX_METRICS];
    for (size_t e = 0; e < sizeof with / sizeof *with; e++)
        for (size_t w = 0; w < 3; w++) {
            EngPoint point = tiny(with[e], words[w]);
            run_point(&point, values);
        }
}

/* What a cache would have to hold: one call's rows, or those of all windows. */
static void test_working_set(void **state)
{
    (void)state;
    double values[3][ENG_MAX_METRICS], set[3], distinct[3];
    static const char *const words[] = {ENG_CACHE_ROTATE, ENG_CACHE_WARM, ENG_CACHE_COLD};
    for (int i = 0; i < 3; i++) {
        EngPoint point = tiny(&eng_experiment_gather, words[i]);
        run_point(&point, values[i]);
        set[i] = metric_of(&eng_experiment_gather, values[i], "working_set_bytes");
        distinct[i] = metric_of(&eng_experiment_gather, values[i], "distinct_bytes");
    }
    assert_true(set[1] == distinct[1]);
    assert_true(set[0] > 2 * distinct[0]);
    assert_true(set[2] == set[0]);
}

static void test_keys(void **state)
{
    (void)state;
    static const EngCatalog catalog = {&eng_experiments, eng_kernels};
    static const char *const axes[] = {"cache=rotate,warm,cold", "variant=portable"};
    static const EngIdentity identity = {.machine_id = "m"};
    EngSweep *sweep, *plain_sweep;
    EngPlan *plan, *plain;
    EngErr err = {0};
    if (eng_sweep_adhoc("gather", &catalog, axes, 2, &sweep, &err)) fail_msg("%s", err.text);
    if (eng_plan_expand(sweep, &identity, &plan, &err)) fail_msg("%s", err.text);
    assert_int_equal(plan->n_named, 3);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(plan->points[i]->point_key, plan->points[k]->point_key);
    assert_int_equal(eng_sweep_adhoc("gather", &catalog, axes + 1, 1, &plain_sweep, &err), ENG_OK);
    assert_int_equal(eng_plan_expand(plain_sweep, &identity, &plain, &err), ENG_OK);
    assert_string_equal(plain->points[0]->point_key, plan->points[0]->point_key);
    assert_true(eng_point_cache_is(&plan->points[1]->point, ENG_CACHE_WARM));
    eng_plan_free(plain);
    eng_sweep_free(plain_sweep);
    eng_plan_free(plan);
    eng_sweep_free(sweep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_working_set),
        cmocka_unit_test(test_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
