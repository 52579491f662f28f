/* Plans: keys that hold, points that merge, blocks that group, and speed. */
#include "ledger_fixture.h"

#include "base/clock.h"

static EngPlan *plan_of(const EngCatalog *of, const char *text, EngSweep **sweep)
{
    *sweep = good_sweep(of, text);
    return good_plan(*sweep, &identity);
}

/* The named point whose label holds the text. */
static const EngPlanPoint *labelled(const EngPlan *plan, const char *label)
{
    for (int i = 0; i < plan->n_named; i++) {
        EngStr text = {0};
        assert_int_equal(eng_plan_label(plan->points[i], &text, NULL), ENG_OK);
        bool same = !strcmp(text.text, label);
        eng_str_free(&text);
        if (same) return plan->points[i];
    }
    fail_msg("no point %s", label);
    return NULL;
}

static void test_points(void **state)
{
    (void)state;
    EngSweep *sweep;
    EngPlan *plan = plan_of(&catalog, "[gather]\ntokens = 2^10, 1024, 1\nheads = 8, 5\n", &sweep);
    /* 2 tokens x 2 heads x 2 variants; heads 5 cannot run. */
    assert_int_equal(plan->n_named, 8);
    assert_int_equal(plan->n_skipped, 4);
    assert_int_equal(plan->n_merged, 0);
    assert_int_equal(plan->n_blocks, 4);
    /* Roofs only where something runs: 2 blocks x 2. */
    assert_int_equal(plan->n_points, 8 + 4);
    const EngPlanPoint *skipped = labelled(plan, "tokens=1024 heads=5 variant=fast");
    assert_string_equal(skipped->skip, "heads 5 does not divide 24");
    assert_string_equal(skipped->preset_digest ? skipped->preset_digest : "none", "none");
    assert_string_equal(skipped->stream_digest, "stream-prose");
    const EngPlanPoint *point = labelled(plan, "tokens=1024 variant=fast");
    assert_null(point->skip);
    assert_ptr_equal(point->kernel, &fast_kernel);
    assert_string_equal(point->backend, "cpu");
    assert_true(point->need.table && point->need.row_format == ENG_ROW_FP8);
    assert_true(point->estimate_ns == 1024000);
    assert_ptr_equal(eng_plan_find(plan, point->point_key), point);
    assert_null(eng_plan_find(plan, "0123"));
    EngStr json = {0};
    assert_int_equal(eng_plan_axes_json(point, &json, NULL), ENG_OK);
    assert_string_equal(json.text, "{\"corpus\":\"prose\",\"heads\":8,\"mix\":0.3,\"row_format\":"
                                   "\"fp8\",\"tokens\":1024,\"variant\":\"fast\"}");
    eng_str_free(&json);
    eng_plan_free(plan);
    eng_sweep_free(sweep);
}

static void test_roofs_join_blocks(void **state)
{
    (void)state;
    EngSweep *sweep;
    EngPlan *plan = plan_of(&catalog, "[gather]\ntokens = 1, 2\n", &sweep);
    for (int b = 0; b < plan->n_blocks; b++) {
        const EngPlanBlock *block = &plan->blocks[b];
        assert_int_equal(block->n_points, 4);
        assert_string_equal(block->compare_axis, "variant");
        for (int i = 0; i < 4; i++) {
            assert_int_equal(block->points[i]->is_roof, i >= 2);
            assert_int_equal(block->points[i]->shape, block->points[0]->shape);
            assert_true(eng_point_int(&block->points[i]->point, "tokens") ==
                        eng_point_int(&block->points[0]->point, "tokens"));
        }
        assert_string_equal(block->points[2]->variant, "read");
        assert_string_equal(block->points[3]->variant, "copy");
    }
    eng_plan_free(plan);
    eng_sweep_free(sweep);
    /* Comparing another axis: a block a variant, a roof a shape. */
    plan = plan_of(&catalog, "[gather]\ntokens = 1, 2, 4\ncompare = tokens\n", &sweep);
    assert_int_equal(plan->n_blocks, 2);
    assert_int_equal(plan->n_points, 6 + 6);
    for (int b = 0; b < 2; b++) {
        const EngPlanBlock *block = &plan->blocks[b];
        assert_int_equal(block->n_points, 3 + 6);
        for (int i = 0; i < 3; i++)
            assert_string_equal(block->points[i]->variant, block->points[0]->variant);
        for (int i = 0; i < 3; i++) assert_int_not_equal(block->points[i]->shape, (i + 1) % 3);
        assert_int_not_equal(block->points[0]->shape, block->points[1]->shape);
    }
    eng_plan_free(plan);
    eng_sweep_free(sweep);
    /* Counted experiments have no roofs, and without a variant axis a point is a block. */
    plan = plan_of(&catalog, "[reuse]\ntokens = 1, 2, 4\n", &sweep);
    assert_int_equal(plan->n_points, 3);
    assert_int_equal(plan->n_blocks, 3);
    assert_string_equal(plan->points[0]->variant, "");
    eng_plan_free(plan);
    eng_sweep_free(sweep);
}

static void test_merging(void **state)
{
    (void)state;
    EngSweep *sweep;
    EngPlan *plan = plan_of(&catalog,
                            "[gather:a]\ntokens = 1, 64\nvariant = portable\n"
                            "[gather:b]\ntokens = 64, 128\n"
                            "[gather:c]\nheads = 8, 4, 8\nmix = 0.3, 0.4, 0.30\n"
                            "zip = (heads, mix)\nvariant = fast\n",
                            &sweep);
    /* a: 2; b: 4, of which tokens 64 portable is known; c: (8, 0.3) is b's default, twice. */
    assert_int_equal(plan->n_named, 2 + 3 + 1);
    assert_int_equal(plan->n_merged, 1 + 2);
    /* a's and b's points of 64 tokens compare in one block. */
    assert_int_equal(plan->n_blocks, 4);
    eng_plan_free(plan);
    eng_sweep_free(sweep);
}

static void test_where(void **state)
{
    (void)state;
    EngSweep *sweep;
    EngErr err = {0};
    EngPlan *plan = plan_of(&catalog,
                            "[gather]\ntokens = 1:64:x2\nheads = 4, 8\n"
                            "where = tokens * heads <= 64 && variant != 'fast'\n",
                            &sweep);
    assert_int_equal(plan->n_named, 5 + 4);
    assert_int_equal(plan->n_excluded, 28 - 9);
    eng_plan_free(plan);
    eng_sweep_free(sweep);
    sweep = good_sweep(&catalog, "[gather]\nwhere = tokens < 1\n");
    assert_int_equal(eng_plan_expand(sweep, &identity, &plan, &err), ENG_NOT_FOUND);
    assert_string_equal(err.text, "test.sweep: `where` leaves none of 2 points");
    eng_sweep_free(sweep);
    sweep = good_sweep(&catalog, "[gather]\nwhere = tokens / (heads - 8) < 1\n");
    assert_int_equal(eng_plan_expand(sweep, &identity, &plan, &err), ENG_USAGE);
    assert_string_equal(err.text, "test.sweep: [gather] where = tokens / (heads - 8) < 1: column "
                                  "8: integer overflow or division by zero");
    assert_null(plan);
    eng_sweep_free(sweep);
    sweep = good_sweep(&catalog, "[gather]\ntokens = 7\nvariant = fast\n");
    assert_int_equal(eng_plan_expand(sweep, &identity, &plan, &err), ENG_USAGE);
    assert_string_equal(err.text, "gather tokens=7 variant=fast: tokens 7 can never be");
    eng_sweep_free(sweep);
}

static void test_missing_corpora(void **state)
{
    (void)state;
    EngSweep *sweep;
    EngPlan *plan = plan_of(
        &catalog, "[reuse]\ncorpus = absent, docs, gone, synthetic\ntokens = 1,2\n", &sweep);
    assert_int_equal(plan->n_named, 4); /* docs and synthetic */
    assert_int_equal(plan->n_merged, 4);
    assert_string_equal(plan->missing_corpora[0], "absent");
    assert_string_equal(plan->missing_corpora[1], "gone");
    assert_null(plan->missing_corpora[2]);
    labelled(plan, "tokens=1 corpus=synthetic");
    eng_plan_free(plan);
    eng_sweep_free(sweep);
}

/* ---- keys --------------------------------------------------------------------------------------
 */

static void test_new_axis_keeps_keys(void **state)
{
    (void)state;
    const char *text = "[gather]\ntokens = 4, 64\nheads = 8, 4\nmix = 0.3, 0.6\n";
    const char *turned = "[gather]\nmix = 0.60, 0.3\ncorpus = prose\nheads = 4, 8\n"
                         "tokens = 2^6, 4\nvariant = fast, portable\n";
    EngSweep *sweep, *wider_sweep, *turned_sweep;
    EngPlan *plan = plan_of(&catalog, text, &sweep);
    EngPlan *wider = plan_of(&wider_catalog, text, &wider_sweep);
    EngPlan *other = plan_of(&catalog, turned, &turned_sweep);
    assert_int_equal(plan->n_points, wider->n_points);
    assert_int_equal(plan->n_points, other->n_points);
    for (int i = 0; i < plan->n_points; i++) {
        const EngPlanPoint *same = eng_plan_find(wider, plan->points[i]->point_key);
        assert_non_null(same);
        assert_string_equal(same->config_key, plan->points[i]->config_key);
        assert_non_null(eng_plan_find(other, plan->points[i]->point_key));
    }
    assert_string_equal(plan->plan_key, other->plan_key);
    /* Off its default, the new axis makes another point. */
    EngSweep *moved_sweep;
    EngPlan *moved = plan_of(
        &wider_catalog, "[gather]\nhold = embed_dims\ntokens = 4\nvariant = fast\n", &moved_sweep);
    assert_null(eng_plan_find(plan, moved->points[0]->point_key));
    eng_plan_free(plan);
    eng_plan_free(wider);
    eng_plan_free(other);
    eng_plan_free(moved);
    eng_sweep_free(sweep);
    eng_sweep_free(wider_sweep);
    eng_sweep_free(turned_sweep);
    eng_sweep_free(moved_sweep);
}

/* A block has one table: points that would need another are refused, and say why. */
static void test_one_table_in_a_block(void **state)
{
    (void)state;
    EngSweep *sweep;
    EngPlan *plan = plan_of(&catalog,
                            "[gather]\nrow_format = fp8, bf16\nvariant = fast\n"
                            "compare = row_format\n",
                            &sweep);
    assert_int_equal(plan->n_named, 2);
    assert_int_equal(plan->n_skipped, 1);
    assert_null(labelled(plan, "variant=fast")->skip);
    const char *why = labelled(plan, "row_format=bf16 variant=fast")->skip;
    assert_non_null(why);
    assert_non_null(strstr(why, "its block has a table of fp8 rows"));
    assert_non_null(strstr(why, "compare=row_format"));
    eng_plan_free(plan);
    eng_sweep_free(sweep);
    plan = plan_of(&catalog, "[gather]\nrow_format = fp8, bf16\nvariant = fast\n", &sweep);
    assert_int_equal(plan->n_skipped, 0);
    assert_int_equal(plan->n_blocks, 2);
    eng_plan_free(plan);
    eng_sweep_free(sweep);
}

/* "small" has 4 heads and bf16 rows; other presets keep the axes' own defaults. */
static EngStatus small_default(void *context, const char *preset, const char *axis,
                               const char **text, EngErr *err)
{
    (void)context;
    (void)err;
    *text = strcmp(preset, "small")       ? NULL
            : !strcmp(axis, "heads")      ? "4"
            : !strcmp(axis, "row_format") ? "bf16"
                                          : NULL;
    return ENG_OK;
}

/* Axes that a sweep does not name are the preset's, and naming the same value is the same point. */
static void test_preset_defaults(void **state)
{
    (void)state;
    EngIdentity with_presets = identity;
    with_presets.axis_default = small_default;
    EngSweep *sweep =
        good_sweep(&preset_catalog, "[gather]\npreset = large, small\nvariant = fast\n"
                                    "[gather:named]\npreset = small\nheads = 4\n"
                                    "row_format = bf16\nvariant = fast\n");
    EngPlan *plan = good_plan(sweep, &with_presets);
    assert_int_equal(plan->n_named, 2);
    assert_int_equal(plan->n_merged, 1);
    assert_string_equal(eng_point_word(&plan->points[0]->point, "row_format"), "fp8");
    assert_int_equal(eng_point_int(&plan->points[0]->point, "heads"), 8);
    assert_string_equal(eng_point_word(&plan->points[1]->point, "row_format"), "bf16");
    assert_int_equal(eng_point_int(&plan->points[1]->point, "heads"), 4);
    EngStr label = {0};
    assert_int_equal(eng_plan_label(plan->points[1], &label, NULL), ENG_OK);
    assert_string_equal(label.text, "preset=small variant=fast");
    eng_str_free(&label);
    EngErr err = {0}; /* met while its block is made ready, too */
    EngStatus status = ENG_FAIL(&err, ENG_USAGE, "out of range");
    assert_int_equal(eng_plan_blame(plan->points[1], status, &err), ENG_USAGE);
    assert_non_null(strstr(err.text, " preset=small variant=fast: out of range"));
    eng_plan_free(plan);
    eng_sweep_free(sweep);
}

/* What must, and must not, change the keys of one point. */
static void test_key_parts(void **state)
{
    (void)state;
    EngSweep *sweep;
    EngPlan *plan = plan_of(&catalog, "[gather]\nvariant = fast\n", &sweep);
    const EngPlanPoint *base = plan->points[0];
    EngIdentity build = identity, machine = identity;
    build.context = (char[]){"build-2"};
    machine.machine_id = "machine-2";
    EngPlan *rebuilt = good_plan(sweep, &build), *moved = good_plan(sweep, &machine);
    assert_string_equal(rebuilt->points[0]->config_key, base->config_key);
    assert_string_equal(moved->points[0]->config_key, base->config_key);
    assert_string_not_equal(rebuilt->points[0]->point_key, base->point_key);
    assert_string_not_equal(moved->points[0]->point_key, base->point_key);
    assert_string_not_equal(moved->plan_key, plan->plan_key);
    eng_plan_free(rebuilt);
    eng_plan_free(moved);
    static const char *const others[] = {"[gather]\nvariant = portable\n",
                                         "[gather]\nvariant = fast\ntokens = 65\n",
                                         "[gather]\nvariant = fast\ncorpus = docs\n"};
    for (size_t i = 0; i < 3; i++) {
        EngSweep *other_sweep;
        EngPlan *other = plan_of(&catalog, others[i], &other_sweep);
        assert_string_not_equal(other->points[0]->config_key, base->config_key);
        eng_plan_free(other);
        eng_sweep_free(other_sweep);
    }
    /* Settings change the plan, not the points. */
    EngSweep *longer_sweep;
    EngPlan *longer = plan_of(&catalog, "[gather]\nvariant = fast\npairs = 11\n", &longer_sweep);
    assert_string_equal(longer->points[0]->point_key, base->point_key);
    assert_string_not_equal(longer->plan_key, plan->plan_key);
    eng_plan_free(longer);
    eng_sweep_free(longer_sweep);
    EngSweep *precise_sweep;
    EngPlan *precise =
        plan_of(&catalog, "[gather]\nvariant = fast\npairs = 11\nprecision = 1%\n", &precise_sweep);
    assert_string_equal(precise->points[0]->point_key, base->point_key);
    assert_string_not_equal(precise->plan_key, plan->plan_key);
    eng_plan_free(precise);
    eng_sweep_free(precise_sweep);
    eng_plan_free(plan);
    eng_sweep_free(sweep);
}

static void test_block_order(void **state)
{
    (void)state;
    const char *text = "[sweep]\nseed = %d\n[gather]\nrow_format = f32, fp8, bf16\n"
                       "tokens = 10:100:+1\nvariant = portable\n";
    char a[256], b[256];
    snprintf(a, sizeof a, text, 1);
    snprintf(b, sizeof b, text, 2);
    EngSweep *sweep_a, *sweep_b, *sweep_c;
    EngPlan *plan = plan_of(&catalog, a, &sweep_a);
    EngPlan *same = plan_of(&catalog, a, &sweep_b), *other = plan_of(&catalog, b, &sweep_c);
    int changes = 0, moved = 0, ascending = 0;
    for (int i = 0; i < plan->n_blocks; i++) {
        const EngPlanPoint *point = plan->blocks[i].points[0];
        assert_string_equal(same->blocks[i].points[0]->point_key, point->point_key);
        assert_true(same->blocks[i].seed == plan->blocks[i].seed);
        moved += strcmp(other->blocks[i].points[0]->point_key, point->point_key) != 0;
        if (!i) continue;
        changes += plan->blocks[i].row_format != plan->blocks[i - 1].row_format;
        ascending += eng_point_int(&point->point, "tokens") >
                     eng_point_int(&plan->blocks[i - 1].points[0]->point, "tokens");
    }
    assert_int_equal(plan->n_blocks, 273);
    assert_int_equal(changes, 2); /* one stretch per row format */
    assert_in_range(moved, 200, 273);
    assert_in_range(ascending, 80, 190); /* neither in order nor against it */
    eng_plan_free(plan);
    eng_plan_free(same);
    eng_plan_free(other);
    eng_sweep_free(sweep_a);
    eng_sweep_free(sweep_b);
    eng_sweep_free(sweep_c);
}

static void test_many_points(void **state)
{
    (void)state;
    EngSweep *sweep;
    int64_t start = eng_now_ns();
    EngPlan *plan = plan_of(&catalog,
                            "[gather]\ntokens = 10:2093:+1\nheads = 1,2,3,4,6,8\nmix = 0:0.7:+0.1\n"
                            "variant = portable\n",
                            &sweep);
    double seconds = (double)(eng_now_ns() - start) / 1e9;
    assert_int_equal(plan->n_named, 2084 * 6 * 8);
    print_message("%d points and %d roofs in %.2f s\n", plan->n_named,
                  plan->n_points - plan->n_named, seconds);
    assert_true(seconds < 30); /* sanitizers included; about a second without */
    eng_plan_free(plan);
    eng_sweep_free(sweep);
}

static void test_allocation_failures(void **state)
{
    (void)state;
    EngSweep *sweep =
        good_sweep(&catalog, "[gather]\ntokens = 10:80:+1\nheads = 5, 8\ncorpus = absent, docs\n"
                             "[reuse]\ntokens = 1,2\n");
    uint64_t live = eng_mem_live_blocks();
    for (uint64_t n = 1;; n++) {
        EngPlan *plan;
        EngErr err = {0};
        assert_true(n < 1000);
        eng_mem_fail_at(n);
        EngStatus status = eng_plan_expand(sweep, &identity, &plan, &err);
        eng_mem_fail_at(0);
        eng_plan_free(plan);
        assert_int_equal(eng_mem_live_blocks(), live);
        if (!status) break;
        assert_int_equal(status, ENG_NO_MEMORY);
    }
    eng_sweep_free(sweep);
}

/* The last axis of as many as there may be is an axis like the others: in keys, labels, blocks. */
static void test_most_axes(void **state)
{
    (void)state;
    static char names[ENG_MAX_AXES][8];
    static EngAxisDef axes[ENG_MAX_AXES];
    EngExperiment wide = reuse;
    const EngExperiment *items[] = {&wide};
    EngExperimentList list = {.items = items, .n = 1};
    EngCatalog many = {&list, fake_kernels};
    EngSweep *sweep;
    for (int i = 0; i < ENG_MAX_AXES; i++) {
        snprintf(names[i], sizeof names[i], "axis%02d", i);
        axes[i] = i < reuse.n_axes
                      ? reuse.axes[i]
                      : (EngAxisDef){names[i], ENG_AXIS_INT, "0", "", 0, 9, NULL, "an axis"};
    }
    wide.axes = axes;
    wide.n_axes = ENG_MAX_AXES;
    char text[64];
    snprintf(text, sizeof text, "[reuse]\n%s = 0, 1, 2\ncompare = %s\n", names[ENG_MAX_AXES - 1],
             names[ENG_MAX_AXES - 1]);
    EngPlan *plan = plan_of(&many, text, &sweep);
    assert_int_equal(plan->n_named, 3);
    assert_int_equal(plan->n_merged, 0);
    assert_int_equal(plan->n_blocks, 1);
    snprintf(text, sizeof text, "%s=2", names[ENG_MAX_AXES - 1]);
    assert_non_null(labelled(plan, text));
    eng_plan_free(plan);
    eng_sweep_free(sweep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points),
        cmocka_unit_test(test_roofs_join_blocks),
        cmocka_unit_test(test_merging),
        cmocka_unit_test(test_where),
        cmocka_unit_test(test_missing_corpora),
        cmocka_unit_test(test_new_axis_keeps_keys),
        cmocka_unit_test(test_one_table_in_a_block),
        cmocka_unit_test(test_preset_defaults),
        cmocka_unit_test(test_key_parts),
        cmocka_unit_test(test_block_order),
        cmocka_unit_test(test_most_axes),
        cmocka_unit_test(test_many_points),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
