/* Checkpoints of training: resume to the last bit, kills, faults, foreign files. */
#include "tests/unit/backbone/train_test.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/file.h"

#define PATH "test_train_checkpoint.bin"

static void check_resume(const char *fields)
{
    EngTrainConfig config = tiny(fields);
    EngTrainer *whole = new_trainer(&config), *first = new_trainer(&config),
               *second = new_trainer(&config);
    EngErr err = {0};
    int threads;
    EngTrainResult want = run_until(whole, 0);
    run_until(first, config.tokens / 2);
    if (eng_trainer_save(first, PATH, &err)) fail_msg("%s", err.text);
    if (eng_trainer_load(second, PATH, &threads, &err)) fail_msg("%s", err.text);
    assert_int_equal(threads, 0);
    EngTrainResult got = run_until(second, 0);
    assert_true(got.finished && !*got.failed);
    if (got.last.loss != want.last.loss || got.last.grad_norm != want.last.grad_norm)
        fail_msg("%s: loss %.9g, resumed %.9g", fields, want.last.loss, got.last.loss);
    assert_same_values(whole, second);
    assert_memory_equal(whole->counts, second->counts, 12 * sizeof *whole->counts);
    eng_trainer_destroy(whole);
    eng_trainer_destroy(first);
    eng_trainer_destroy(second);
}

static void test_resume_to_the_last_bit(void **state)
{
    (void)state;
    check_resume("engram_at=1");
    check_resume("engram_at=0,1 streams=2 conv_kernel=4 threads=2 rows=shuffled");
    check_resume("engram_at=1 rule=muon vocab_rule=sinkhorn table_rule=sinkhorn");
    check_resume("engram_at=1 rule=sgd vocab_rule=sgd table_rule=sgd lr=0.1");
}

/* A run that is killed anywhere goes on from its last checkpoint. */
static void test_resume_after_a_kill(void **state)
{
    (void)state;
    EngTrainConfig config = tiny("engram_at=1");
    EngErr err = {0};
    int threads;
    unlink(PATH);
    pid_t child = fork();
    if (!child) {
        EngTrainer *t = new_trainer(&config);
        for (int64_t at = 64; at <= config.tokens; at += 64) {
            run_until(t, at);
            if (eng_trainer_save(t, PATH, &err)) _exit(1);
        }
        _exit(0);
    }
    while (!eng_file_exists(PATH)) usleep(1000);
    usleep(3000);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    eng_writer_sweep(PATH); /* what it was writing, and what tests that were killed left */
    EngTrainer *whole = new_trainer(&config), *rest = new_trainer(&config);
    if (eng_trainer_load(rest, PATH, &threads, &err)) fail_msg("%s", err.text);
    assert_true(run_until(rest, 0).last.loss == run_until(whole, 0).last.loss);
    assert_same_values(whole, rest);
    eng_trainer_destroy(whole);
    eng_trainer_destroy(rest);
}

static void expect_refused(const EngTrainConfig *config, EngStatus status, const char *words)
{
    EngTrainer *t = new_trainer(config);
    EngErr err = {0};
    int threads;
    run_until(t, 64);
    double loss = run_until(t, 64).last.loss;
    assert_int_equal(eng_trainer_load(t, PATH, &threads, &err), status);
    if (!strstr(err.text, words)) fail_msg("%s: no \"%s\"", err.text, words);
    assert_true(t->step == 1 && t->last.loss == loss); /* as it was */
    eng_trainer_destroy(t);
}

static void spoil(int64_t at, int64_t length)
{
    FILE *file = fopen(PATH, "r+b");
    assert_non_null(file);
    if (at >= 0) {
        fseek(file, at, SEEK_SET);
        int c = fgetc(file);
        fseek(file, at, SEEK_SET);
        fputc(c ^ 1, file);
    }
    fclose(file);
    if (length >= 0) assert_int_equal(truncate(PATH, length), 0);
}

static void test_foreign_and_damaged_files(void **state)
{
    (void)state;
    EngTrainConfig config = tiny("engram_at=1"), other = config;
    EngTrainer *t = new_trainer(&config);
    EngErr err = {0};
    run_until(t, 640);
    assert_int_equal(eng_trainer_save(t, PATH, &err), ENG_OK);
    other.model.seed = 77;
    expect_refused(&other, ENG_MISMATCH, "made with seed=1, this run has seed=77");
    other = config, other.model.experts = 5;
    expect_refused(&other, ENG_MISMATCH, "made with experts=6, this run has experts=5");
    spoil(60000, -1);
    expect_refused(&config, ENG_BAD_DATA, "digest");
    spoil(-1, 50000);
    expect_refused(&config, ENG_BAD_DATA, "truncated");
    spoil(-1, 100);
    expect_refused(&config, ENG_BAD_DATA, "not a checkpoint");
    unlink(PATH);
    expect_refused(&config, ENG_NOT_FOUND, PATH);
    eng_trainer_destroy(t);
}

static void test_other_thread_count_is_told(void **state)
{
    (void)state;
    EngTrainConfig config = tiny("engram_at=1"), other = config;
    other.model.threads = 2;
    EngTrainer *a = new_trainer(&config), *b = new_trainer(&other);
    EngErr err = {0};
    int threads = -1;
    run_until(a, 640);
    assert_int_equal(eng_trainer_save(a, PATH, &err), ENG_OK);
    assert_int_equal(eng_trainer_load(b, PATH, &threads, &err), ENG_OK);
    assert_int_equal(threads, 1);
    threads = -1; /* and is still told after another save */
    assert_int_equal(eng_trainer_save(b, PATH, &err), ENG_OK);
    assert_int_equal(eng_trainer_load(b, PATH, &threads, &err), ENG_OK);
    assert_int_equal(threads, 1);
    assert_true(fabs(run_until(a, 0).last.loss - run_until(b, 0).last.loss) < 0.05);
    eng_trainer_destroy(a);
    eng_trainer_destroy(b);
}

static void test_full_disk_keeps_the_old_one(void **state)
{
    (void)state;
    EngTrainConfig config = tiny("engram_at=1");
    EngTrainer *t = new_trainer(&config);
    EngErr err = {0};
    int threads;
    run_until(t, 640);
    assert_int_equal(eng_trainer_save(t, PATH, &err), ENG_OK);
    run_until(t, 1280);
    eng_file_fail_after(20000);
    assert_int_equal(eng_trainer_save(t, PATH, &err), ENG_IO);
    eng_file_fail_after(-1);
    assert_int_equal(eng_trainer_load(t, PATH, &threads, &err), ENG_OK);
    assert_int_equal(t->step, 10);
    eng_trainer_destroy(t);
    unlink(PATH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume_after_a_kill),
        cmocka_unit_test(test_resume_to_the_last_bit),
        cmocka_unit_test(test_foreign_and_damaged_files),
        cmocka_unit_test(test_other_thread_count_is_told),
        cmocka_unit_test(test_full_disk_keeps_the_old_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
