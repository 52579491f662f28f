/* What a row format does to rows and gates: nothing where it holds bf16, more for int4 than for
 * fp8, and the noise floor below both. */
#include "points.h"

#include <math.h>

#include "base/mem.h"
#include "bench/core/resources.h"
#include "kernels/cpu/project.h"

/* Each format is a block of its own, with a seed of its own. */
static void measure(const char *format, double *values)
{
    static uint64_t block;
    EngErr err = {0};
    EngNeed need;
    EngResources *resources;
    void *state = NULL;
    EngPoint point = point_of(&eng_experiment_format, "preset", "tiny", "orders", "2-3", "heads",
                              "4", "rows", "101", "row_dims", "64", "corpus", "synthetic",
                              "alignment", "0.3", "tokens", "16", "row_format", format, NULL);
    if (eng_experiment_format.check(&point, &err)) fail_msg("%s: %s", format, err.text);
    if (eng_resources_create("no-such-folder", 1, &resources, &err)) fail_msg("%s", err.text);
    assert_int_equal(eng_experiment_format.need(&point, &need, &err), ENG_OK);
    assert_int_equal(eng_resources_add(resources, &need, &err), ENG_OK);
    assert_int_equal(eng_resources_map(resources, need.row_format, &err), ENG_OK);
    assert_int_equal(eng_resources_layout(resources, need.row_dims, &err), ENG_OK);
    assert_int_equal(eng_resources_map_weights(resources, &err), ENG_OK);
    EngBench bench = {.resources = resources, .seed = ++block};
    EngTiming timing = {.inner = 1, .wall_ns = 1000, .cpu_ns = 1000};
    if (eng_experiment_format.setup(&bench, &point, &state, &err)) fail_msg("%s", err.text);
    eng_experiment_format.observe(state, &timing, values);
    eng_experiment_format.teardown(state);
    eng_project_cache_clear();
    eng_resources_destroy(resources);
}

static double of(const double *values, const char *metric)
{
    return metric_of(&eng_experiment_format, values, metric);
}

static void test_formats(void **unused)
{
    (void)unused;
    double bf16[ENG_MAX_METRICS], f32[ENG_MAX_METRICS], fp8[ENG_MAX_METRICS],
        packed[ENG_MAX_METRICS], int4[ENG_MAX_METRICS];
    measure("bf16", bf16);
    measure("f32", f32);
    measure("fp8", fp8);
    measure("fp8_packed", packed);
    measure("int4", int4);
    assert_true(of(bf16, "row_error") == 0 && of(f32, "row_error") == 0);
    assert_true(of(bf16, "gate_drift_max") == 0 && of(f32, "gate_drift_max") == 0);
    /* Normals in 4 significant bits, and in 15 levels of a group's largest. */
    assert_true(of(fp8, "row_error") > 0.02 && of(fp8, "row_error") < 0.035);
    assert_true(of(int4, "row_error") > 0.08 && of(int4, "row_error") < 0.12);
    assert_true(of(int4, "row_cosine") > 0.99 && of(int4, "row_cosine") < of(fp8, "row_cosine"));
    assert_true(of(int4, "gate_drift") > of(fp8, "gate_drift"));
    assert_true(of(fp8, "gate_drift") > of(fp8, "gate_noise"));
    /* The same values wherever the scales lie. */
    assert_true(of(packed, "row_error") == of(fp8, "row_error"));
    assert_true(of(packed, "gate_drift") == of(fp8, "gate_drift"));
    assert_true(of(int4, "row_bytes") == 36 && of(fp8, "row_bytes") == 66);
    assert_true(of(bf16, "row_bytes") == 128 && of(f32, "row_bytes") == 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_formats)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
