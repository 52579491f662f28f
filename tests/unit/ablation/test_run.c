/* One run from text to result: the same whether it was stopped in between or not, and every way in
 * which it can go wrong. */
#include "tests/unit/experiments/points.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "bench/ablation/gates.h"
#include "bench/ablation/judge.h"
#include "bench/ablation/sweep.h"

static char g_folder[64];
static EngTrainData g_data;
static const char *const g_key = "0123456789abcdef0123456789abcdef";

#define POINT(...)                                                                                 \
    point_of(&eng_experiment_train, "rung", "tiny", "text", "synthetic", __VA_ARGS__, NULL)

static char *path_of(const char *ending)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s.%s", g_folder, g_key, ending);
    return path;
}

static int fresh(void **state)
{
    (void)state;
    snprintf(g_folder, sizeof g_folder, "test_run.%d", (int)getpid());
    const char *const endings[] = {"ckpt", "steps", "gates", "states", "json"};
    char lock[80];
    for (int i = 0; i < 5; i++) unlink(path_of(endings[i]));
    snprintf(lock, sizeof lock, "%s/lock", g_folder);
    unlink(lock);
    return 0;
}

static int done(void **state)
{
    fresh(state);
    eng_file_fail_after(-1);
    eng_mem_fail_at(0);
    rmdir(g_folder);
    return 0;
}

static int open_text(void **state)
{
    (void)state;
    EngErr err = {0};
    return eng_train_data_open("nowhere", "synthetic", 64, 8192, &g_data, &err) != ENG_OK;
}

static int close_text(void **state)
{
    (void)state;
    eng_train_data_close(&g_data);
    return 0;
}

static EngArm arm_of(const EngPoint *point)
{
    EngArm arm;
    EngErr err = {0};
    if (eng_arm_resolve(point, &arm, &err)) fail_msg("%s", err.text);
    arm.config.tokens = 40 * arm.config.batch_tokens;
    return arm;
}

static EngTrainRun run_of(const EngArm *arm)
{
    return (EngTrainRun){.arm = arm,
                         .data = &g_data,
                         .folder = g_folder,
                         .key = g_key,
                         .who = "rho=0.4",
                         .checkpoint_ns = INT64_MAX};
}

/* The result without its clock. */
static char *result_text(void)
{
    char *text;
    size_t n;
    EngErr err = {0};
    if (eng_file_read(path_of("json"), &text, &n, &err)) fail_msg("%s", err.text);
    json_t *root = json_loads(text, 0, NULL);
    eng_free(text);
    json_object_del(json_object_get(root, "metrics"), "cpu_s");
    json_object_del(json_object_get(root, "metrics"), "tokens_per_cpu_s");
    text = json_dumps(root, JSON_SORT_KEYS | JSON_COMPACT);
    json_decref(root);
    return text;
}

static double metric(const char *name)
{
    char *text = result_text();
    json_t *root = json_loads(text, 0, NULL);
    const json_t *value = json_object_get(json_object_get(root, "metrics"), name);
    double number = value ? json_number_value(value) : NAN;
    json_decref(root);
    free(text);
    return number;
}

/* At entry of the first layer a row is its token's embedding: rows are the same where ids are, of
 * sequences at equal distances over all held-out text. */
static void assert_spread(const EngTrainStates *states, int64_t length)
{
    int64_t all = (g_data.heldout.n - 1) / length, taken = ENG_TRAIN_LENS_TOKENS / length;
    if (taken > all) taken = all;
    size_t size = (size_t)states->columns * sizeof *states->values;
    int32_t *ids = calloc((size_t)states->rows, sizeof *ids);
    assert_int_equal(states->rows, taken * length / ENG_TRAIN_LENS_EVERY);
    for (int64_t r = 0; r < states->rows; r++) {
        int64_t at = r * ENG_TRAIN_LENS_EVERY + ENG_TRAIN_LENS_EVERY - 1;
        ids[r] = g_data.heldout.ids[at / length * all / taken * length + at % length];
        for (int64_t q = 0; q < r; q++) {
            const float *a = states->values + r * states->columns;
            const float *b = states->values + q * states->columns;
            assert_int_equal(memcmp(a, b, size) == 0, ids[r] == ids[q]);
        }
    }
    free(ids);
}

static void test_learns(void **state)
{
    (void)state;
    EngPoint point = POINT("rho", "0.4");
    EngArm arm = arm_of(&point);
    EngTrainRun run = run_of(&arm);
    EngErr err = {0};
    if (eng_train_run(&run, &err)) fail_msg("%s", err.text);
    double loss = metric("loss");
    assert_true(loss > 1 && loss < log(64));
    assert_true(fabs(metric("bits_per_byte") - loss / log(2) / 3) < 1e-6);
    assert_true(metric("suppressed_loss") > 0);
    assert_true(metric("load_max") >= 1 && metric("dead_share") >= 0);
    assert_true(metric("tokens") == 40 * arm.config.batch_tokens);
    assert_false(eng_file_exists(path_of("ckpt")));
    /* Every series that reports draw. */
    char *text = result_text();
    static const char *const series[] = {"\"bits_source:synthetic-2\":[[",
                                         "\"train_loss\":[[",
                                         "\"loss_source:synthetic-1\":[[",
                                         "\"suppressed_source:synthetic-2\":[[",
                                         "\"loss_class:word\":[[",
                                         "\"loss_copied\":[[0,",
                                         "\"loss_decile\":[[0,",
                                         "\"suppressed_decile\":[[0,",
                                         "\"count_decile\":[[0,",
                                         "\"lens\":[[0,",
                                         "\"load_share:0\":[[0,",
                                         "\"grad_norm\":[[",
                                         "\"gate:slope:1:0\":[[0,",
                                         "\"gate_decile:mean:1:0\":[[0,",
                                         "\"rows_foreign:1\":[[0,",
                                         "\"gathered_bytes:1\":[[0,",
                                         "\"name\":\"gate_decile_score:9\"",
                                         "\"outcome\":\"measured\""};
    for (size_t i = 0; i < sizeof series / sizeof *series; i++)
        if (!strstr(text, series[i])) fail_msg("no %s in %.2000s", series[i], text);
    free(text);
    EngTrainStates states;
    assert_int_equal(eng_train_states_read(path_of("states"), &states, &err), ENG_OK);
    assert_int_equal(states.layers, arm.config.model.layers + 1);
    assert_spread(&states, arm.config.seq_len);
    eng_train_states_free(&states);
    assert_int_equal(eng_file_write(path_of("states"), "engram-states-1 3 4 5\nabc", 25, &err),
                     ENG_OK);
    assert_int_equal(eng_train_states_read(path_of("states"), &states, &err), ENG_BAD_DATA);
}

/* The sum over groups is the whole: losses are not lost on the way. */
static void test_groups_add_up(void **state)
{
    (void)state;
    EngPoint point = POINT("rho", "1");
    EngArm arm = arm_of(&point);
    EngTrainRun run = run_of(&arm);
    EngErr err = {0};
    if (eng_train_run(&run, &err)) fail_msg("%s", err.text);
    char *text = result_text();
    json_t *root = json_loads(text, 0, NULL), *values;
    const char *name;
    double sum = 0, n = 0;
    json_object_foreach(json_object_get(root, "series"), name, values)
    {
        if (strncmp(name, "loss_source:", 12)) continue;
        double size = json_number_value(json_array_get(json_array_get(values, 0), 0));
        sum += size * json_number_value(json_array_get(json_array_get(values, 0), 1));
        n += size;
    }
    assert_true(fabs(sum / n - metric("loss")) < 1e-4);
    assert_true(isnan(metric("suppressed_loss"))); /* pure MoE */
    json_decref(root);
    free(text);
}

/* Stopped after every few steps, and once more after the mark from which loads are counted. */
static volatile sig_atomic_t g_stop;

static void test_resume_is_exact(void **state)
{
    (void)state;
    EngPoint point = POINT("rho", "0.4");
    EngArm arm = arm_of(&point);
    EngTrainRun run = run_of(&arm);
    EngErr err = {0};
    if (eng_train_run(&run, &err)) fail_msg("%s", err.text);
    char *whole = result_text();
    fresh(NULL);
    int stops = 0;
    EngStatus status;
    g_stop = 1; /* stops after each step */
    run.stop = &g_stop;
    while ((status = eng_train_run(&run, &err)) == ENG_INTERRUPTED) {
        char at[48]; /* a step further each time: what was done is not done again */
        snprintf(at, sizeof at, "stopped at %d of 2560 tokens", 64 * ++stops);
        if (!strstr(err.text, at)) fail_msg("%s, not %s", err.text, at);
        if (stops == 37) g_stop = 0;
    }
    if (status) fail_msg("%s", err.text);
    assert_int_equal(stops, 37);
    char *parts = result_text();
    assert_string_equal(whole, parts);
    free(whole);
    free(parts);
}

static void stop_once(const EngTrainRun *run)
{
    EngTrainRun stopped = *run;
    EngErr err = {0};
    g_stop = 1;
    stopped.stop = &g_stop;
    assert_int_equal(eng_train_run(&stopped, &err), ENG_INTERRUPTED);
}

/* A checkpoint of a build that did not look at gates: the run goes on, and has looks from there. */
static void test_resume_without_gates(void **state)
{
    (void)state;
    EngPoint point = POINT("rho", "0.4");
    EngArm arm = arm_of(&point);
    EngTrainRun run = run_of(&arm);
    EngErr err = {0};
    stop_once(&run);
    assert_true(eng_file_exists(path_of("gates")));
    unlink(path_of("gates"));
    if (eng_train_run(&run, &err)) fail_msg("%s", err.text);
    assert_false(eng_file_exists(path_of("gates")));
    char *text = result_text();
    json_t *root = json_loads(text, 0, NULL);
    const json_t *looks = json_object_get(json_object_get(root, "series"), "gate:mean:1:0");
    /* 40 steps: 1 % is the first of them, where it was stopped; 0 is gone. */
    assert_int_equal(json_array_size(looks), ENG_GATE_POINTS - 1);
    assert_int_equal(json_integer_value(json_array_get(json_array_get(looks, 0), 0)), 1);
    json_decref(root);
    free(text);
}

/* A checkpoint every moment changes nothing either. */
static void test_checkpoints_change_nothing(void **state)
{
    (void)state;
    EngPoint point = POINT("rho", "0.4");
    EngArm arm = arm_of(&point);
    EngTrainRun run = run_of(&arm);
    EngErr err = {0};
    if (eng_train_run(&run, &err)) fail_msg("%s", err.text);
    char *whole = result_text();
    fresh(NULL);
    run.checkpoint_ns = 0;
    if (eng_train_run(&run, &err)) fail_msg("%s", err.text);
    char *often = result_text();
    assert_string_equal(whole, often);
    free(whole);
    free(often);
}

static void test_other_threads_are_recorded(void **state)
{
    (void)state;
    EngPoint point = POINT("rho", "0.4");
    EngArm arm = arm_of(&point);
    EngTrainRun run = run_of(&arm);
    EngErr err = {0};
    stop_once(&run);
    arm.config.model.threads = 2;
    if (eng_train_run(&run, &err)) fail_msg("%s", err.text);
    assert_true(metric("threads_used") == 2);
    assert_true(metric("other_threads") == 1);
}

/* A second process leaves a run to the first, and takes its result. */
static void test_two_processes(void **state)
{
    (void)state;
    EngPoint point = POINT("rho", "0.4");
    EngArm arm = arm_of(&point);
    EngTrainRun run = run_of(&arm), often = run;
    EngErr err = {0};
    int how;
    often.checkpoint_ns = 0;
    pid_t first = fork();
    if (!first) _exit(eng_train_run(&often, NULL) ? 1 : 0);
    while (!eng_file_exists(path_of("ckpt"))) {
        usleep(1000);
        if (waitpid(first, &how, WNOHANG))
            fail_msg("the first was over before it was seen: %d", how);
    }
    kill(first, SIGSTOP);
    assert_int_equal(eng_train_run(&run, &err), ENG_INTERRUPTED);
    assert_non_null(strstr(err.text, "another process trains it"));
    kill(first, SIGCONT);
    assert_int_equal(waitpid(first, &how, 0), first);
    assert_int_equal(how, 0);
    if (eng_train_run(&run, &err)) fail_msg("%s", err.text);
    assert_true(metric("tokens") == 40 * arm.config.batch_tokens);
}

static void test_bad_input(void **state)
{
    (void)state;
    EngPoint point = POINT("rho", "0.4"), other = POINT("rho", "0.4", "lr", "0.004");
    EngArm arm = arm_of(&point), changed = arm_of(&other);
    EngTrainRun run = run_of(&arm);
    EngErr err = {0};
    stop_once(&run);
    run.arm = &changed;
    assert_int_equal(eng_train_run(&run, &err), ENG_MISMATCH);
    assert_non_null(strstr(err.text, "lr"));
    run.arm = &arm;
    assert_int_equal(eng_file_write(path_of("steps"), "", 0, &err), ENG_OK);
    assert_int_equal(eng_train_run(&run, &err), ENG_BAD_DATA);
    assert_non_null(strstr(err.text, "too few"));
    fresh(NULL);
    stop_once(&run);
    assert_int_equal(eng_file_write(path_of("gates"), "[{", 2, &err), ENG_OK);
    assert_int_equal(eng_train_run(&run, &err), ENG_BAD_DATA);
    assert_non_null(strstr(err.text, "gates"));
    assert_int_equal(truncate(path_of("ckpt"), 100), 0);
    assert_int_equal(eng_train_run(&run, &err), ENG_BAD_DATA);
    fresh(NULL);
    arm.config.tokens = 9000 / arm.config.batch_tokens * arm.config.batch_tokens;
    assert_int_equal(eng_train_run(&run, &err), ENG_USAGE);
    if (!strstr(err.text, "8192")) fail_msg("%s", err.text);
    assert_false(eng_file_exists(path_of("json")));
}

/* A model that diverges is a result. */
static void test_divergence_is_a_result(void **state)
{
    (void)state;
    EngPoint point = POINT("rho", "0.4");
    EngArm arm = arm_of(&point);
    EngTrainRun run = run_of(&arm);
    EngErr err = {0};
    arm.config.lr = 100;
    arm.config.warmup_steps = 0;
    if (eng_train_run(&run, &err)) fail_msg("%s", err.text);
    char *text = result_text();
    if (!strstr(text, "\"outcome\":\"failed\"")) fail_msg("%.500s", text);
    assert_non_null(strstr(text, "\"reason\":\"loss"));
    assert_non_null(strstr(text, "\"train_loss\":[["));
    free(text);
}

/* A writer that was killed leaves its temporary file, and the run clears it away when it goes on;
 * one that lives, and other runs', stay. */
static void test_leftovers(void **state)
{
    (void)state;
    EngPoint point = POINT("rho", "1");
    EngArm arm = arm_of(&point);
    EngTrainRun run = run_of(&arm);
    EngErr err = {0};
    char dead[160], alive[160], other[160];
    pid_t pid = fork();
    if (!pid) _exit(0);
    waitpid(pid, NULL, 0); /* reaped: nobody has this number now */
    assert_int_equal(eng_make_dirs(g_folder, &err), ENG_OK);
    snprintf(dead, sizeof dead, "%s.tmp%d", path_of("ckpt"), (int)pid);
    snprintf(alive, sizeof alive, "%s.tmp%d", path_of("ckpt"), (int)getppid());
    snprintf(other, sizeof other, "%s/other.ckpt.tmp%d", g_folder, (int)pid);
    const char *const all[] = {dead, alive, other};
    for (int i = 0; i < 3; i++) assert_int_equal(eng_file_write(all[i], "x", 1, &err), ENG_OK);
    arm.config.tokens = 4 * arm.config.batch_tokens;
    if (eng_train_run(&run, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(eng_file_exists(all[i]), i > 0);
        unlink(all[i]);
    }
}

/* Any allocation may fail: the run says so, keeps nothing, and goes through when there is memory.
 */
static void test_no_memory(void **state)
{
    (void)state;
    EngPoint point = POINT("rho", "0.4");
    EngArm arm = arm_of(&point);
    EngTrainRun run = run_of(&arm);
    EngErr err = {0};
    EngStatus status = ENG_NO_MEMORY;
    arm.config.tokens = 4 * arm.config.batch_tokens;
    uint64_t live = eng_mem_live_blocks(), n = 0;
    while (status) {
        fresh(NULL);
        eng_mem_fail_at(++n);
        status = eng_train_run(&run, &err);
        eng_mem_fail_at(0);
        if (status && status != ENG_NO_MEMORY) fail_msg("allocation %d: %s", (int)n, err.text);
        if (eng_mem_live_blocks() != live) fail_msg("allocation %d leaves blocks behind", (int)n);
    }
    assert_true(n > 40);
}

/* A full disk leaves a run that can go on. */
static void test_full_disk(void **state)
{
    (void)state;
    EngPoint point = POINT("rho", "0.4");
    EngArm arm = arm_of(&point);
    EngTrainRun run = run_of(&arm);
    EngErr err = {0};
    if (eng_train_run(&run, &err)) fail_msg("%s", err.text);
    char *whole = result_text();
    fresh(NULL);
    stop_once(&run);
    EngStatus status = ENG_IO;
    int failures = -1;
    for (int64_t bytes = 0; status; bytes += 9000, failures++) {
        eng_file_fail_after(bytes);
        status = eng_train_run(&run, &err);
        eng_file_fail_after(-1);
        if (status && (status != ENG_IO || !strstr(err.text, strerror(ENOSPC))))
            fail_msg("%d bytes: %s", (int)bytes, err.text);
        assert_int_equal(eng_file_exists(path_of("json")), !status);
    }
    assert_true(failures > 3);
    char *parts = result_text();
    assert_string_equal(whole, parts);
    free(whole);
    free(parts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_learns, fresh, done),
        cmocka_unit_test_setup_teardown(test_groups_add_up, fresh, done),
        cmocka_unit_test_setup_teardown(test_resume_is_exact, fresh, done),
        cmocka_unit_test_setup_teardown(test_resume_without_gates, fresh, done),
        cmocka_unit_test_setup_teardown(test_checkpoints_change_nothing, fresh, done),
        cmocka_unit_test_setup_teardown(test_other_threads_are_recorded, fresh, done),
        cmocka_unit_test_setup_teardown(test_two_processes, fresh, done),
        cmocka_unit_test_setup_teardown(test_bad_input, fresh, done),
        cmocka_unit_test_setup_teardown(test_divergence_is_a_result, fresh, done),
        cmocka_unit_test_setup_teardown(test_leftovers, fresh, done),
        cmocka_unit_test_setup_teardown(test_no_memory, fresh, done),
        cmocka_unit_test_setup_teardown(test_full_disk, fresh, done),
    };
    return cmocka_run_group_tests(tests, open_text, close_text);
}
