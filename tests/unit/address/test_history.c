/* Decode history against a plain list of all committed ids: random commits, rollbacks, forks and
 * resets, and the limits of what may be taken back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "kernels/address/history.h"

enum { SLOTS = 3, LONGEST = 4096 };

typedef struct Model {
    int32_t ids[LONGEST];
    int64_t n, peak;
} Model;

static void check_window(const EngHistory *history, int max_order, const Model *models)
{
    EngErr err;
    const int64_t order[SLOTS] = {2, 0, 1}; /* not the natural order: slots are looked up */
    int32_t windows[SLOTS * ENG_MAX_ORDER];
    int reach = max_order - 1;
    assert_int_equal(eng_history_window(history, order, SLOTS, windows, &err), ENG_OK);
    for (int i = 0; i < SLOTS; i++)
        for (int j = 0; j < reach; j++) {
            const Model *model = &models[order[i]];
            int64_t position = model->n - reach + j;
            int32_t want = position < 0 ? ENG_TOKEN_DEAD : model->ids[position];
            assert_int_equal(windows[i * reach + j], want);
        }
}

static void churn(int max_order, int max_rollback, uint64_t seed)
{
    static Model models[SLOTS];
    EngHistory *history;
    EngErr err;
    EngRng rng;
    memset(models, 0, sizeof models);
    eng_rng_seed(&rng, seed);
    assert_int_equal(eng_history_create(&history, max_order, SLOTS, max_rollback, &err), ENG_OK);
    for (int turn = 0; turn < 600; turn++) {
        int64_t slot = (int64_t)eng_rng_below(&rng, SLOTS);
        Model *model = &models[slot];
        uint64_t what = eng_rng_below(&rng, 10);
        if (what < 6) {
            int32_t ids[6];
            int64_t n = (int64_t)eng_rng_below(&rng, 7);
            for (int64_t i = 0; i < n; i++) ids[i] = (int32_t)eng_rng_below(&rng, 50) - 1;
            assert_int_equal(eng_history_commit(history, slot, ids, n, &err), ENG_OK);
            memcpy(model->ids + model->n, ids, (size_t)n * sizeof *ids);
            model->n += n;
            if (model->n > model->peak) model->peak = model->n;
        } else if (what < 8) {
            int64_t n = (int64_t)eng_rng_below(&rng, (uint64_t)max_rollback + 1);
            EngStatus status = eng_history_rollback(history, slot, n, &err);
            /* What is promised: max_rollback ids below the longest the sequence ever was. */
            if (n <= model->n && model->peak - (model->n - n) <= max_rollback)
                assert_int_equal(status, ENG_OK);
            if (n > model->n) assert_int_equal(status, ENG_USAGE);
            if (!status) model->n -= n;
        } else if (what == 8) {
            int64_t to = (int64_t)eng_rng_below(&rng, SLOTS);
            assert_int_equal(eng_history_fork(history, slot, to, &err), ENG_OK);
            models[to] = *model;
        } else if (eng_rng_below(&rng, 10) == 0) {
            assert_int_equal(eng_history_reset(history, slot, &err), ENG_OK);
            memset(model, 0, sizeof *model);
        }
        check_window(history, max_order, models);
    }
    eng_history_destroy(history);
}

static void test_churn(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int max_order = 1; max_order <= ENG_MAX_ORDER; max_order++)
        for (int rollback = 0; rollback < 10; rollback += 3) churn(max_order, rollback, seed++);
}

/* A rollback beyond what is kept is refused and changes nothing. */
static void test_rollback_limit(void **state)
{
    (void)state;
    EngHistory *history;
    EngErr err;
    int32_t ids[20], window[3];
    int64_t slot = 0;
    for (int i = 0; i < 20; i++) ids[i] = i;
    assert_int_equal(eng_history_create(&history, 4, 1, 5, &err), ENG_OK);
    assert_int_equal(eng_history_commit(history, 0, ids, 20, &err), ENG_OK);
    assert_int_equal(eng_history_rollback(history, 0, 6, &err), ENG_USAGE);
    assert_int_equal(eng_history_rollback(history, 0, -1, &err), ENG_USAGE);
    assert_int_equal(eng_history_window(history, &slot, 1, window, &err), ENG_OK);
    assert_int_equal(window[2], 19);
    assert_int_equal(eng_history_rollback(history, 0, 5, &err), ENG_OK);
    assert_int_equal(eng_history_window(history, &slot, 1, window, &err), ENG_OK);
    assert_int_equal(window[0], 12);
    assert_int_equal(window[2], 14);
    assert_int_equal(eng_history_rollback(history, 0, 1, &err), ENG_USAGE);
    eng_history_destroy(history);
}

static void test_bad_arguments(void **state)
{
    (void)state;
    EngHistory *history;
    EngErr err;
    int32_t id = -2;
    uint64_t live = eng_mem_live_blocks();
    assert_int_equal(eng_history_create(&history, 0, 1, 0, &err), ENG_USAGE);
    assert_int_equal(eng_history_create(&history, 4, 0, 0, &err), ENG_USAGE);
    assert_int_equal(eng_history_create(&history, 4, INT64_MAX, 1 << 30, &err), ENG_NO_MEMORY);
    for (uint64_t n = 1; n <= 3; n++) {
        eng_mem_fail_at(n);
        assert_int_equal(eng_history_create(&history, 4, 2, 2, &err), ENG_NO_MEMORY);
        assert_null(history);
    }
    eng_mem_fail_at(0);
    assert_int_equal(eng_mem_live_blocks(), live);
    assert_int_equal(eng_history_create(&history, 4, 2, 2, &err), ENG_OK);
    assert_int_equal(eng_history_commit(history, 2, &id, 1, &err), ENG_USAGE);
    assert_int_equal(eng_history_commit(history, 0, &id, 1, &err), ENG_BAD_DATA);
    assert_int_equal(eng_history_fork(history, 0, -1, &err), ENG_USAGE);
    assert_int_equal(eng_history_rollback(history, 0, 1, &err), ENG_USAGE);
    eng_history_destroy(history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_churn),
                                       cmocka_unit_test(test_rollback_limit),
                                       cmocka_unit_test(test_bad_arguments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
