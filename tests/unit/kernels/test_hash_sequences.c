/* Hash: the equivalences that serving relies on: prefill, decode, verify windows, rollback, fork,
 * packing, padding. */
#include "tests/unit/kernels/hash_cases.h"

#include "kernels/address/history.h"

static int setup(void **state)
{
    (void)state;
    find_variants();
    return 0;
}

enum { TEXT = 97, SLOTS = 3 };

/* Feeds `text` from `*at` on in windows of `width(rng)` ids for all sequences at once, each with
 * its own history, and compares with prefill. Every window holds `extra` rejected ids at its end
 * that are hashed and not committed. */
static void check_steps(const EngKernel *kernel, const EngAddress *address, EngRng *rng,
                        int64_t max_width, bool ragged)
{
    static int32_t text[SLOTS][TEXT];
    int64_t *want[SLOTS], at[SLOTS] = {0}, reach = address->max_order - 1;
    EngHistory *history;
    EngErr err;
    assert_int_equal(eng_history_create(&history, address->max_order, SLOTS, 8, &err), ENG_OK);
    for (int s = 0; s < SLOTS; s++) {
        random_ids(rng, address, true, text[s], TEXT);
        want[s] = prefill(address, text[s], TEXT);
    }
    for (bool more = true; more;) {
        int32_t tokens[SLOTS * 16], windows[SLOTS * ENG_MAX_ORDER];
        int64_t starts[SLOTS + 1] = {0}, slots[SLOTS], take[SLOTS];
        more = false;
        for (int s = 0; s < SLOTS; s++) {
            int64_t width =
                ragged ? (int64_t)eng_rng_below(rng, (uint64_t)max_width + 1) : max_width;
            if (width > TEXT - at[s]) width = TEXT - at[s];
            memcpy(tokens + starts[s], text[s] + at[s], (size_t)width * sizeof *tokens);
            starts[s + 1] = starts[s] + width;
            slots[s] = s;
            /* Speculation: only some of the window is accepted. */
            take[s] = ragged ? (int64_t)eng_rng_below(rng, (uint64_t)width + 1) : width;
        }
        assert_int_equal(eng_history_window(history, slots, SLOTS, windows, &err), ENG_OK);
        EngHashArgs args = {.tokens = tokens,
                            .n_tokens = starts[SLOTS],
                            .n_live = starts[SLOTS],
                            .starts = starts,
                            .n_seqs = SLOTS,
                            .history = reach ? windows : NULL};
        args.rows = new_rows(address, args.n_tokens);
        run_hash(kernel, address, 1, &args);
        for (int s = 0; s < SLOTS; s++) {
            assert_same_rows(address, args.rows + starts[s] * per_token(address),
                             want[s] + at[s] * per_token(address), starts[s + 1] - starts[s]);
            assert_int_equal(eng_history_commit(history, s, text[s] + at[s], take[s], &err),
                             ENG_OK);
            at[s] += take[s];
            more = more || at[s] < TEXT;
        }
        eng_free(args.rows);
    }
    for (int s = 0; s < SLOTS; s++) eng_free(want[s]);
    eng_history_destroy(history);
}

static void test_decode(void **state)
{
    (void)state;
    EngRng rng;
    eng_rng_seed(&rng, 4);
    for (int round = 0; round < 20; round++) {
        EngAddress address = random_address(&rng);
        for (int v = -1; v < g_n_variants; v++)
            check_steps(v < 0 ? NULL : g_variants[v], &address, &rng, 1, false);
    }
}

static void test_verify_windows(void **state)
{
    (void)state;
    EngRng rng;
    eng_rng_seed(&rng, 5);
    for (int round = 0; round < 20; round++) {
        EngAddress address = random_address(&rng);
        for (int v = -1; v < g_n_variants; v++) {
            const EngKernel *kernel = v < 0 ? NULL : g_variants[v];
            check_steps(kernel, &address, &rng, 4, false);
            check_steps(kernel, &address, &rng, 8, false);
            check_steps(kernel, &address, &rng, 6, true);
            check_steps(kernel, &address, &rng, 16, true);
        }
    }
}

/* One step of one sequence from a slot's history. */
static void step_slot(const EngKernel *kernel, const EngAddress *address, const EngHistory *history,
                      int64_t slot, int32_t token, int64_t *row)
{
    int32_t window[ENG_MAX_ORDER];
    EngErr err;
    assert_int_equal(eng_history_window(history, &slot, 1, window, &err), ENG_OK);
    EngHashArgs args = {
        .tokens = &token, .n_tokens = 1, .n_live = 1, .history = window, .rows = row};
    run_hash(kernel, address, 1, &args);
}

/* Ids taken back and others put in their place read as if the first had never been. */
static void test_rollback(void **state)
{
    (void)state;
    EngAddress address = address_of("v41-flash");
    EngRng rng;
    EngErr err;
    int64_t row[2 * 24];
    eng_rng_seed(&rng, 6);
    for (int v = 0; v < g_n_variants; v++) {
        EngHistory *history;
        int32_t text[TEXT];
        assert_int_equal(eng_history_create(&history, 4, 1, 8, &err), ENG_OK);
        random_ids(&rng, &address, true, text, TEXT);
        int64_t *want = prefill(&address, text, TEXT);
        for (int64_t t = 0; t < TEXT;) {
            step_slot(g_variants[v], &address, history, 0, text[t], row);
            assert_true(same_row(&address, row, want + t * per_token(&address)));
            assert_int_equal(eng_history_commit(history, 0, &text[t++], 1, &err), ENG_OK);
            int32_t wrong[8];
            int64_t back = (int64_t)eng_rng_below(&rng, 4), n = (int64_t)eng_rng_below(&rng, 5);
            random_ids(&rng, &address, true, wrong, n);
            assert_int_equal(eng_history_commit(history, 0, wrong, n, &err), ENG_OK);
            if (back > t || eng_rng_below(&rng, 3)) back = 0;
            assert_int_equal(eng_history_rollback(history, 0, n + back, &err), ENG_OK);
            assert_int_equal(eng_history_commit(history, 0, text + t - back, back, &err), ENG_OK);
        }
        eng_free(want);
        eng_history_destroy(history);
    }
}

/* A fork goes on like its parent; a sequence that starts without the history does not. */
static void test_fork(void **state)
{
    (void)state;
    EngAddress address = address_of("v41-flash");
    const int32_t text[] = {11, 500, 42, 99091, 7, 8, 9, 10};
    int64_t *want = prefill(&address, text, 8), row[2 * 24];
    EngErr err;
    for (int v = 0; v < g_n_variants; v++) {
        EngHistory *history;
        assert_int_equal(eng_history_create(&history, 4, 3, 0, &err), ENG_OK);
        assert_int_equal(eng_history_commit(history, 0, text, 4, &err), ENG_OK);
        assert_int_equal(eng_history_fork(history, 0, 2, &err), ENG_OK);
        int32_t other = 77; /* the parent goes elsewhere */
        assert_int_equal(eng_history_commit(history, 0, &other, 1, &err), ENG_OK);
        for (int64_t t = 4; t < 8; t++) {
            const int64_t *expected = want + t * per_token(&address);
            step_slot(g_variants[v], &address, history, 2, text[t], row);
            assert_true(same_row(&address, row, expected));
            step_slot(g_variants[v], &address, history, 1, text[t], row);
            assert_int_equal(same_row(&address, row, expected), t - 4 >= 3); /* out of reach */
            assert_int_equal(eng_history_commit(history, 2, &text[t], 1, &err), ENG_OK);
            assert_int_equal(eng_history_commit(history, 1, &text[t], 1, &err), ENG_OK);
        }
        eng_history_destroy(history);
    }
    eng_free(want);
}

/* Documents laid end to end hash as if each were alone. */
static void test_packed(void **state)
{
    (void)state;
    EngRng rng;
    eng_rng_seed(&rng, 7);
    for (int round = 0; round < 40; round++) {
        EngAddress address = random_address(&rng);
        int32_t tokens[TEXT];
        int64_t starts[] = {0, 1, 1, 4, 30, 33, TEXT, 5, 0}; /* one empty, two stale entries */
        random_ids(&rng, &address, true, tokens, TEXT);
        for (int v = -1; v < g_n_variants; v++) {
            EngHashArgs args = {
                .tokens = tokens, .n_tokens = TEXT, .n_live = TEXT, .starts = starts, .n_seqs = 6};
            args.rows = new_rows(&address, TEXT);
            run_hash(v < 0 ? NULL : g_variants[v], &address, v > 0 ? 3 : 1, &args);
            for (int s = 0; s < 6; s++) {
                int64_t n = starts[s + 1] - starts[s];
                int64_t *alone = prefill(&address, tokens + starts[s], n);
                assert_same_rows(&address, args.rows + starts[s] * per_token(&address), alone, n);
                eng_free(alone);
            }
            eng_free(args.rows);
        }
    }
}

/* After an image at p every order sees p+1, p+2, ... as the start of a text, although the places
 * before p are alive: the latch holds for all reaches. The image itself reads as pads. */
static void test_dead_latch(void **state)
{
    (void)state;
    EngRng rng;
    eng_rng_seed(&rng, 8);
    for (int round = 0; round < 40; round++) {
        EngAddress address = random_address(&rng);
        int32_t tokens[16];
        random_ids(&rng, &address, false, tokens, 16);
        for (int64_t p = 0; p < 16; p++) {
            int32_t kept = tokens[p];
            tokens[p] = ENG_TOKEN_DEAD;
            int64_t *before = prefill(&address, tokens, p);
            int64_t *after = prefill(&address, tokens + p + 1, 15 - p);
            int64_t *pads = prefill(&address, &address.pad, 1);
            for (int v = -1; v < g_n_variants; v++) {
                EngHashArgs args = {.tokens = tokens, .n_tokens = 16, .n_live = 16};
                args.rows = new_rows(&address, 16);
                run_hash(v < 0 ? NULL : g_variants[v], &address, 1, &args);
                assert_same_rows(&address, args.rows, before, p);
                assert_same_rows(&address, args.rows + p * per_token(&address), pads, 1);
                assert_same_rows(&address, args.rows + (p + 1) * per_token(&address), after,
                                 15 - p);
                eng_free(args.rows);
            }
            eng_free(before);
            eng_free(after);
            eng_free(pads);
            tokens[p] = kept;
        }
    }
}

/* A text token that is the pad token blocks nothing. */
static void test_pad_is_no_barrier(void **state)
{
    (void)state;
    EngAddress address = address_of("v41-flash");
    const int32_t pad[] = {5, 6, 2, 7}, dead[] = {5, 6, -1, 7}, fresh[] = {2, 7};
    int64_t *with_pad = prefill(&address, pad, 4), *with_dead = prefill(&address, dead, 4);
    int64_t *alone = prefill(&address, fresh, 2), stride = per_token(&address);
    assert_false(same_row(&address, with_pad + 3 * stride, with_dead + 3 * stride));
    assert_false(same_row(&address, with_pad + 3 * stride, alone + stride));
    /* 2-grams reach the pad only: the first 8 columns agree, the 4-grams see beyond it. */
    assert_memory_equal(with_pad + 3 * stride, with_dead + 3 * stride, 8 * sizeof *with_pad);
    eng_free(with_pad);
    eng_free(with_dead);
    eng_free(alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_verify_windows),
        cmocka_unit_test(test_rollback),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_dead_latch),
        cmocka_unit_test(test_pad_is_no_barrier),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
