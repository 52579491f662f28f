/* The prefetcher: every row where it belongs, in any order of waits, keeps and cancels, with a
 * store that is slow or fails; errors reach the step that needed the rows and no other. Under the
 * thread sanitizer too. */
#include "stores_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include <engram/prefetch.h>

#define COLUMNS 5
#define LAYERS  3
#define TOKENS  40

/* A store over a table that can be told to fail, to be slow, or to stand still. */
typedef struct Troubled {
    EngStore base;
    EngStore *inner;
    _Atomic int fail_at; /* this read from now fails, 0: none */
    _Atomic int slow_us;
    _Atomic bool closed; /* reads wait until it opens */
    _Atomic int reads;
} Troubled;

static void nap(int us)
{
    struct timespec t = {0, us * 1000L};
    nanosleep(&t, NULL);
}

static EngStatus troubled_read(EngStore *base, const int64_t *rows, const int64_t *slots, int64_t n,
                               const EngRowsOut *out, EngErr *err)
{
    Troubled *t = (Troubled *)base;
    atomic_fetch_add(&t->reads, 1);
    while (atomic_load(&t->closed)) nap(50);
    if (t->slow_us) nap(t->slow_us);
    if (t->fail_at && atomic_fetch_sub(&t->fail_at, 1) == 1)
        return ENG_FAIL(err, ENG_IO, "device of row %d failed", (int)rows[0]);
    return eng_store_read_slots(t->inner, rows, slots, n, out, err);
}

static void troubled_stats(const EngStore *base, EngStoreStats *stats)
{
    eng_store_stats(((const Troubled *)base)->inner, stats);
}

static const EngStoreOps g_ops = {
    .name = "troubled", .read = troubled_read, .stats = troubled_stats};

typedef struct Fixture {
    StoreTable t;
    Troubled stores[LAYERS];
    EngPrefetcher *p;
    int64_t rows[8][TOKENS * LAYERS * COLUMNS]; /* of the steps in hand */
} Fixture;

static void open_fixture(Fixture *f, EngPrefetchOptions options)
{
    EngErr err = {0};
    EngStore *stores[LAYERS];
    memset(f, 0, sizeof *f);
    store_table_open(&f->t, ENG_ROW_FP8);
    for (int l = 0; l < LAYERS; l++) {
        assert_int_equal(eng_store_of_table(&f->t.table, &f->stores[l].inner, &err), ENG_OK);
        f->stores[l].base = *f->stores[l].inner;
        f->stores[l].base.ops = &g_ops;
        stores[l] = &f->stores[l].base;
    }
    options.columns = COLUMNS;
    options.max_tokens = TOKENS;
    if (eng_prefetch_create(stores, LAYERS, &options, &f->p, &err)) fail_msg("%s", err.text);
}

static void close_fixture(Fixture *f)
{
    eng_prefetch_destroy(f->p);
    for (int l = 0; l < LAYERS; l++) eng_store_destroy(f->stores[l].inner);
    store_table_close(&f->t);
}

static EngPrefetchTicket submit(Fixture *f, int place, int64_t tokens, EngRng *rng)
{
    EngErr err = {0};
    EngPrefetchTicket ticket;
    random_rows(rng, f->rows[place], tokens * LAYERS * COLUMNS, TEST_ROWS);
    if (eng_prefetch_submit(f->p, f->rows[place], LAYERS * COLUMNS, tokens, place, false, &ticket,
                            &err))
        fail_msg("%s", err.text);
    return ticket;
}

static void check_rows(Fixture *f, int place, int l, const EngPrefetchRows *got)
{
    EngRowsOut out = {(uint8_t *)(uintptr_t)got->table.values,
                      (uint8_t *)(uintptr_t)got->table.scales};
    for (int64_t t = 0; t < got->tokens; t++)
        for (int64_t c = 0; c < COLUMNS; c++)
            if (!slot_is_row(&f->t.table, &out, t * COLUMNS + c,
                             f->rows[place][(t * LAYERS + l) * COLUMNS + c]))
                fail_msg("step %d layer %d: token %d column %d is another row", place, l, (int)t,
                         (int)c);
}

static void take(Fixture *f, EngPrefetchTicket ticket, int place, int l, int64_t tokens)
{
    EngErr err = {0};
    EngPrefetchRows got;
    if (eng_prefetch_wait(f->p, ticket, l, &got, &err)) fail_msg("%s", err.text);
    assert_int_equal(got.tokens, tokens);
    assert_true(got.fetch_end_ns >= got.fetch_begin_ns && got.ready_ns >= got.needed_ns);
    assert_true(got.ready_ns >= got.fetch_end_ns);
    check_rows(f, place, l, &got);
    eng_prefetch_release(f->p, ticket, l);
}

static void test_steps_in_order(void **state)
{
    (void)state;
    static Fixture f;
    EngRng rng;
    eng_rng_seed(&rng, 1);
    open_fixture(&f, (EngPrefetchOptions){.piece_rows = 7});
    for (int round = 0; round < 50; round++) {
        int64_t tokens[2] = {(int64_t)eng_rng_below(&rng, TOKENS + 1), TOKENS};
        EngPrefetchTicket a = submit(&f, 0, tokens[0], &rng), b = submit(&f, 1, tokens[1], &rng);
        assert_true(a && b);
        assert_int_equal(submit(&f, 2, 1, &rng), 0); /* full */
        for (int l = 0; l < LAYERS; l++) take(&f, a, 0, l, tokens[0]);
        for (int l = 0; l < LAYERS; l++) take(&f, b, 1, l, tokens[1]);
    }
    EngPrefetchStats stats;
    eng_prefetch_stats(f.p, &stats);
    assert_int_equal(stats.steps, 100);
    assert_int_equal(stats.rows_dropped, 0);
    assert_int_equal(stats.rows_in_vain, 0);
    close_fixture(&f);
}

/* Reads fail now and then: that layer has the error, once, and all others their rows. */
static void test_failing_reads(void **state)
{
    (void)state;
    static Fixture f;
    EngRng rng;
    eng_rng_seed(&rng, 2);
    open_fixture(&f, (EngPrefetchOptions){.piece_rows = 11});
    for (int round = 0; round < 60; round++) {
        int bad = (int)eng_rng_below(&rng, LAYERS);
        f.stores[bad].fail_at = 1 + (int)eng_rng_below(&rng, TOKENS * COLUMNS / 11);
        EngPrefetchTicket ticket = submit(&f, 0, TOKENS, &rng);
        for (int l = 0; l < LAYERS; l++) {
            EngErr err = {0};
            EngPrefetchRows got;
            if (l != bad) {
                take(&f, ticket, 0, l, TOKENS);
                continue;
            }
            assert_int_equal(eng_prefetch_wait(f.p, ticket, l, &got, &err), ENG_IO);
            assert_non_null(strstr(err.text, "failed"));
            assert_null(got.table.values);
            if (l < LAYERS - 1)
                assert_int_equal(eng_prefetch_wait(f.p, ticket, l, &got, NULL), ENG_NOT_FOUND);
        }
    }
    close_fixture(&f);
}

static void test_row_out_of_table(void **state)
{
    (void)state;
    static Fixture f;
    EngErr err = {0};
    EngPrefetchRows got;
    EngPrefetchTicket ticket;
    EngRng rng;
    eng_rng_seed(&rng, 3);
    open_fixture(&f, (EngPrefetchOptions){0});
    random_rows(&rng, f.rows[0], TOKENS * LAYERS * COLUMNS, TEST_ROWS);
    f.rows[0][COLUMNS] = TEST_ROWS; /* token 0, layer 1 */
    assert_int_equal(
        eng_prefetch_submit(f.p, f.rows[0], LAYERS * COLUMNS, TOKENS, 0, false, &ticket, &err),
        ENG_OK);
    take(&f, ticket, 0, 0, TOKENS);
    assert_int_equal(eng_prefetch_wait(f.p, ticket, 1, &got, &err), ENG_USAGE);
    take(&f, ticket, 0, 2, TOKENS);
    close_fixture(&f);
}

/* Speculation: keep and cancel at any moment, with slow reads, against what must still come. */
static void test_random_cancels(void **state)
{
    (void)state;
    static Fixture f;
    EngRng rng;
    eng_rng_seed(&rng, 4);
    open_fixture(&f, (EngPrefetchOptions){.piece_rows = 13, .steps = 3, .buffers = 2});
    for (int round = 0; round < 120; round++) {
        for (int l = 0; l < LAYERS; l++)
            f.stores[l].slow_us = eng_rng_below(&rng, 4) ? 0 : (int)eng_rng_below(&rng, 300);
        EngPrefetchTicket tickets[2];
        int64_t tokens[2];
        for (int s = 0; s < 2; s++) {
            tokens[s] = (int64_t)eng_rng_below(&rng, TOKENS + 1);
            /* A cancelled step may still be ending. */
            while (!(tickets[s] = submit(&f, s, tokens[s], &rng))) nap(20);
        }
        for (int s = 0; s < 2; s++) {
            int cancel_before = (int)eng_rng_below(&rng, 2 * LAYERS);
            for (int l = 0; l < LAYERS; l++) {
                if (l == cancel_before) eng_prefetch_cancel(f.p, tickets[s]);
                if (l >= cancel_before) {
                    EngPrefetchRows got;
                    assert_int_equal(eng_prefetch_wait(f.p, tickets[s], l, &got, NULL),
                                     ENG_NOT_FOUND);
                    continue;
                }
                if (!eng_rng_below(&rng, 3)) {
                    int64_t keep = (int64_t)eng_rng_below(&rng, TOKENS + 1);
                    eng_prefetch_keep(f.p, tickets[s], keep);
                    if (keep < tokens[s]) tokens[s] = keep;
                }
                take(&f, tickets[s], s, l, tokens[s]);
            }
        }
    }
    close_fixture(&f);
}

/* What was cancelled before it was read is never read. */
static void test_cancel_saves_reads(void **state)
{
    (void)state;
    static Fixture f;
    EngPrefetchStats stats;
    EngRng rng;
    eng_rng_seed(&rng, 5);
    open_fixture(&f, (EngPrefetchOptions){.piece_rows = 10});
    f.stores[0].closed = true;
    EngPrefetchTicket a = submit(&f, 0, TOKENS, &rng);
    while (!f.stores[0].reads) nap(20);
    EngPrefetchTicket b = submit(&f, 1, TOKENS, &rng);
    eng_prefetch_keep(f.p, a, 10); /* 50 of 200 rows a layer */
    eng_prefetch_cancel(f.p, b);
    f.stores[0].closed = false;
    for (int l = 0; l < LAYERS; l++) take(&f, a, 0, l, 10);
    eng_prefetch_stats(f.p, &stats);
    assert_int_equal(stats.rows_read, 3 * 50);
    assert_int_equal(stats.rows_dropped, 3 * 150 + 3 * 200);
    assert_int_equal(stats.rows_in_vain, 0);
    close_fixture(&f);
}

static void test_ownership(void **state)
{
    (void)state;
    static Fixture f;
    EngErr err = {0};
    EngPrefetchRows first, second, third;
    EngRng rng;
    eng_rng_seed(&rng, 6);
    open_fixture(&f, (EngPrefetchOptions){0});
    EngPrefetchTicket ticket = submit(&f, 0, TOKENS, &rng), next = submit(&f, 1, TOKENS, &rng);
    assert_int_equal(eng_prefetch_wait(f.p, ticket, 0, &first, &err), ENG_OK);
    assert_int_equal(eng_prefetch_wait(f.p, ticket, 0, &second, &err), ENG_NOT_FOUND); /* held */
    assert_int_equal(eng_prefetch_wait(f.p, ticket, 1, &second, &err), ENG_OK);
    /* Both buffers are ours: the third layer cannot come, and that is said instead of hanging. */
    assert_int_equal(eng_prefetch_wait(f.p, ticket, 2, &third, &err), ENG_USAGE);
    assert_non_null(strstr(err.text, "all 2 buffers"));
    check_rows(&f, 0, 0, &first); /* untouched although two more layers are wanted */
    check_rows(&f, 0, 1, &second);
    eng_prefetch_release(f.p, ticket, 0);
    eng_prefetch_release(f.p, ticket, 0); /* once is enough */
    take(&f, ticket, 0, 2, TOKENS);
    check_rows(&f, 0, 1, &second);
    eng_prefetch_cancel(f.p, ticket); /* gives the held one back */
    for (int l = 0; l < LAYERS; l++) take(&f, next, 1, l, TOKENS);
    assert_int_equal(eng_prefetch_wait(f.p, next, 0, &first, &err), ENG_NOT_FOUND);
    assert_int_equal(eng_prefetch_wait(f.p, next, LAYERS, &first, &err), ENG_USAGE);
    close_fixture(&f);
}

static void *submit_many(void *opaque)
{
    Fixture *f = opaque;
    EngErr err = {0};
    EngPrefetchTicket ticket;
    for (int s = 0; s < 40; s++)
        if (eng_prefetch_submit(f->p, f->rows[s % 8], LAYERS * COLUMNS, TOKENS, s, true, &ticket,
                                &err) ||
            ticket != (EngPrefetchTicket)s + 1)
            return f;
    return NULL;
}

/* A submitting thread is held back while the consumer lags. Tickets count up from 1. */
static void test_back_pressure(void **state)
{
    (void)state;
    static Fixture f;
    pthread_t id;
    void *failed;
    EngRng rng;
    eng_rng_seed(&rng, 7);
    open_fixture(&f, (EngPrefetchOptions){.buffers = 1});
    for (int s = 0; s < 8; s++) random_rows(&rng, f.rows[s], TOKENS * LAYERS * COLUMNS, TEST_ROWS);
    assert_int_equal(pthread_create(&id, NULL, submit_many, &f), 0);
    for (int s = 0; s < 40; s++)
        for (int l = 0; l < LAYERS; l++) {
            EngPrefetchRows got;
            /* The step may not have been submitted yet. */
            while (eng_prefetch_wait(f.p, (EngPrefetchTicket)s + 1, l, &got, NULL)) nap(20);
            check_rows(&f, s % 8, l, &got);
            eng_prefetch_release(f.p, (EngPrefetchTicket)s + 1, l);
        }
    pthread_join(id, &failed);
    assert_null(failed);
    close_fixture(&f);
}

/* Training: the whole batch first, then its micro-batches. */
static void test_whole_batch(void **state)
{
    (void)state;
    static Fixture f;
    EngErr err = {0};
    EngPrefetchRows got[LAYERS];
    EngRng rng;
    eng_rng_seed(&rng, 8);
    open_fixture(&f, (EngPrefetchOptions){0});
    EngPrefetchTicket ticket = submit(&f, 0, TOKENS, &rng);
    assert_int_equal(eng_prefetch_wait_all(f.p, ticket, got, &err), ENG_USAGE); /* 2 buffers */
    close_fixture(&f);

    open_fixture(&f, (EngPrefetchOptions){.buffers = LAYERS});
    ticket = submit(&f, 0, TOKENS, &rng);
    assert_int_equal(eng_prefetch_wait_all(f.p, ticket, got, &err), ENG_OK);
    for (int l = 0; l < LAYERS; l++)
        for (int64_t first = 0; first < TOKENS; first += 16) {
            int64_t n = TOKENS - first < 16 ? TOKENS - first : 16;
            EngTable slice = eng_prefetch_slice(f.p, &got[l], first, n);
            EngRowsOut out = {(uint8_t *)(uintptr_t)slice.values,
                              (uint8_t *)(uintptr_t)slice.scales};
            assert_int_equal(slice.rows, n * COLUMNS);
            for (int64_t i = 0; i < n * COLUMNS; i++)
                assert_true(slot_is_row(
                    &f.t.table, &out, i,
                    f.rows[0][((first + i / COLUMNS) * LAYERS + l) * COLUMNS + i % COLUMNS]));
        }
    eng_prefetch_cancel(f.p, ticket);
    f.stores[1].fail_at = 1;
    ticket = submit(&f, 0, TOKENS, &rng);
    assert_int_equal(eng_prefetch_wait_all(f.p, ticket, got, &err), ENG_IO);
    assert_int_equal(eng_prefetch_wait(f.p, ticket, 0, got, &err), ENG_NOT_FOUND);
    close_fixture(&f);
}

static void test_refusals(void **state)
{
    (void)state;
    static Fixture f;
    EngErr err = {0};
    EngPrefetcher *p;
    EngPrefetchTicket ticket;
    open_fixture(&f, (EngPrefetchOptions){0});
    EngStore *stores[LAYERS];
    for (int l = 0; l < LAYERS; l++) stores[l] = &f.stores[l].base;
    const EngPrefetchOptions good = {.columns = COLUMNS, .max_tokens = TOKENS};
    EngPrefetchOptions bad = good;
    bad.columns = 0;
    assert_int_equal(eng_prefetch_create(stores, LAYERS, &bad, &p, &err), ENG_USAGE);
    bad = good;
    bad.buffers = -1;
    assert_int_equal(eng_prefetch_create(stores, LAYERS, &bad, &p, &err), ENG_USAGE);
    bad = good;
    bad.max_tokens = INT64_MAX;
    assert_int_equal(eng_prefetch_create(stores, LAYERS, &bad, &p, &err), ENG_USAGE);
    bad = good;
    bad.pin = true;
    bad.core = 1 << 20;
    assert_int_equal(eng_prefetch_create(stores, LAYERS, &bad, &p, &err), ENG_UNSUPPORTED);
    assert_int_equal(eng_prefetch_create(stores, 0, &good, &p, &err), ENG_USAGE);
    stores[1]->row_dims++;
    assert_int_equal(eng_prefetch_create(stores, LAYERS, &good, &p, &err), ENG_USAGE);
    stores[1]->row_dims--;
    assert_int_equal(
        eng_prefetch_submit(f.p, f.rows[0], LAYERS * COLUMNS, TOKENS + 1, 0, false, &ticket, &err),
        ENG_USAGE);
    assert_int_equal(eng_prefetch_submit(f.p, f.rows[0], COLUMNS, 1, 0, false, &ticket, &err),
                     ENG_USAGE);
    for (uint64_t n = 1;; n++) { /* every allocation of the creation */
        uint64_t before = eng_mem_live_blocks();
        eng_mem_fail_at(n);
        EngStatus status = eng_prefetch_create(stores, LAYERS, &good, &p, &err);
        eng_mem_fail_at(0);
        if (!status) break;
        assert_int_equal(status, ENG_NO_MEMORY);
        assert_int_equal(eng_mem_live_blocks(), before);
    }
    eng_prefetch_destroy(p);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_in_order),     cmocka_unit_test(test_failing_reads),
        cmocka_unit_test(test_row_out_of_table),   cmocka_unit_test(test_random_cancels),
        cmocka_unit_test(test_cancel_saves_reads), cmocka_unit_test(test_ownership),
        cmocka_unit_test(test_back_pressure),      cmocka_unit_test(test_whole_batch),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
