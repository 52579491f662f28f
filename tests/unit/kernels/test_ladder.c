/* The ladder: its cycle meets every slot once, walks and reads see what the cycle says; streams do
 * what they say to every word; pages and pinning. */
#include "kernels_test.h"

#include <sched.h>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/ladder.h"
#include "kernels/cpu/pin.h"
#include "kernels/cpu/stream.h"
#include "kernels/store/pages.h"

static const int64_t g_slots[] = {1, 2, 3, 5, 64, 1000, 4096, 4097};

typedef struct Set {
    EngPages pages;
    EngLadder ladder;
} Set;

static void open_set(Set *set, EngLadderLine line, int64_t slots)
{
    EngErr err = {0};
    size_t bytes = (size_t)slots * eng_ladder_bytes(line);
    if (eng_pages_map(&set->pages, bytes, ENG_PAGES_SMALL, &err)) fail_msg("%s", err.text);
    if (eng_ladder_init(&set->ladder, line, set->pages.bytes, bytes, 7, &err))
        fail_msg("%s", err.text);
    assert_int_equal(set->ladder.slots, slots);
    eng_ladder_fill(&set->ladder);
}

static int64_t slot_of(const EngLadder *ladder, const uint8_t *at)
{
    size_t offset = (size_t)(at - ladder->values);
    assert_true(at >= ladder->values && offset % ladder->stride == 0);
    assert_true(offset / ladder->stride < (size_t)ladder->slots);
    return (int64_t)(offset / ladder->stride);
}

/* Pointer by pointer, with the slots seen marked. */
static void test_cycle_meets_every_slot_once(void **unused)
{
    (void)unused;
    for (int line = 0; line < ENG_LADDER_LINE_COUNT; line++)
        for (int s = 0; s < LENGTH_OF(g_slots); s++) {
            Set set;
            int64_t n = g_slots[s];
            open_set(&set, (EngLadderLine)line, n);
            bool *seen = calloc((size_t)n, sizeof *seen);
            const EngLadder *l = &set.ladder;
            const uint8_t *at = l->values + (size_t)eng_ladder_slot_at(l, 0) * l->stride;
            const uint8_t *first = at;
            for (int64_t t = 0; t < n; t++) {
                int64_t slot = slot_of(l, at);
                assert_false(seen[slot]);
                seen[slot] = true;
                assert_int_equal(eng_ladder_slot_at(l, t), slot);
                assert_int_equal(eng_ladder_slot_at(l, t + n), slot);
                assert_int_equal(eng_ladder_place_of(l, slot), t);
                memcpy(&at, at, sizeof at);
            }
            assert_ptr_equal(at, first);
            free(seen);
            eng_pages_unmap(&set.pages);
        }
}

/* Successive places must not be neighbours, or the hardware would guess them. */
static void test_cycle_is_scattered(void **unused)
{
    (void)unused;
    Set set;
    int near = 0, n = 4096;
    open_set(&set, ENG_LADDER_LINE64, n);
    for (int t = 0; t < n; t++) {
        int64_t step = eng_ladder_slot_at(&set.ladder, t + 1) - eng_ladder_slot_at(&set.ladder, t);
        near += llabs(step) <= 64;
    }
    /* Of random pairs 3 % are so near. */
    assert_true(near < n / 20);
    eng_pages_unmap(&set.pages);
}

static uint64_t sum_of(const EngLadder *l, int64_t from, int64_t n)
{
    uint64_t sum = 0;
    for (int64_t t = from; t < from + n; t++)
        sum += eng_ladder_slot_sum(l, eng_ladder_slot_at(l, t));
    return sum;
}

static void test_walks(void **unused)
{
    (void)unused;
    for (int line = 0; line < ENG_LADDER_LINE_COUNT; line++) {
        Set set;
        open_set(&set, (EngLadderLine)line, 1000);
        const EngLadder *l = &set.ladder;
        for (int threads = 1; threads <= 3; threads++)
            for (int chains = 1; chains <= ENG_LADDER_MAX_CHAINS; chains *= 2) {
                const uint8_t *at[3 * ENG_LADDER_MAX_CHAINS] = {0};
                uint64_t want = 0;
                int64_t steps = 5;
                for (int i = 0; i < threads * chains; i++) {
                    at[i / chains * ENG_LADDER_MAX_CHAINS + i % chains] =
                        l->values + (size_t)eng_ladder_slot_at(l, i * steps) * l->stride;
                    want += sum_of(l, i * steps, steps);
                }
                assert_true(eng_ladder_walk(l, threads, chains, steps, at) == want);
                for (int i = 0; i < threads * chains; i++)
                    assert_int_equal(
                        slot_of(l, at[i / chains * ENG_LADDER_MAX_CHAINS + i % chains]),
                        eng_ladder_slot_at(l, (i + 1) * steps));
            }
        eng_pages_unmap(&set.pages);
    }
}

/* A word of any line of any slot that is not what it was must change the sum. */
static void test_sum_sees_every_line(void **unused)
{
    (void)unused;
    for (int line = 0; line < ENG_LADDER_LINE_COUNT; line++) {
        Set set;
        int64_t n = 37, ids[37];
        open_set(&set, (EngLadderLine)line, n);
        EngLadder *l = &set.ladder;
        uint64_t want = 0;
        for (int64_t i = 0; i < n; i++) {
            ids[i] = eng_ladder_slot_at(l, i);
            want += eng_ladder_slot_sum(l, ids[i]);
        }
        assert_true(eng_ladder_read(l, 1, 8, ids, n) == want);
        for (int64_t slot = 0; slot < n; slot += 9)
            for (int k = 0; k < eng_ladder_lines((EngLadderLine)line); k++) {
                bool side = l->side && k == 4;
                uint8_t *word =
                    side ? l->side + slot * 8 : l->values + (size_t)slot * l->stride + 64 * k;
                *word ^= 1;
                assert_true(eng_ladder_read(l, 1, 8, ids, n) != want);
                *word ^= 1;
            }
        eng_pages_unmap(&set.pages);
    }
}

static void test_reads(void **unused)
{
    (void)unused;
    static const int64_t counts[] = {0, 1, 23, 24, 25, 300};
    static const int depths[] = {1, 24, ENG_LADDER_MAX_DEPTH};
    for (int line = 0; line < ENG_LADDER_LINE_COUNT; line++) {
        Set set;
        int64_t ids[300];
        open_set(&set, (EngLadderLine)line, 101);
        for (int i = 0; i < 300; i++) ids[i] = eng_ladder_slot_at(&set.ladder, i);
        for (int c = 0; c < LENGTH_OF(counts); c++)
            for (int d = 0; d < LENGTH_OF(depths); d++)
                for (int threads = 1; threads <= 3; threads++)
                    assert_true(eng_ladder_read(&set.ladder, threads, depths[d], ids, counts[c]) ==
                                sum_of(&set.ladder, 0, counts[c]));
        eng_pages_unmap(&set.pages);
    }
}

static void test_names_and_refusals(void **unused)
{
    (void)unused;
    EngLadder ladder;
    EngErr err = {0};
    uint8_t memory[64];
    for (int i = 0; i < ENG_LADDER_LINE_COUNT; i++)
        assert_int_equal(eng_ladder_line_parse(eng_ladder_line_name((EngLadderLine)i)), i);
    assert_int_equal(eng_ladder_line_parse("65"), -1);
    assert_int_equal(eng_ladder_init(&ladder, ENG_LADDER_PACKED, memory, 263, 1, &err), ENG_USAGE);
    assert_non_null(strstr(err.text, "263"));
}

/* ---- streams ---- */

static void run_stream(EngStreamOp op, bool non_temporal, int threads, size_t lines)
{
    size_t n = lines * 64, part = n + 128, total = part * (size_t)threads;
    uint8_t *to = eng_alloc(total), *from = eng_alloc(total), *was = eng_alloc(total);
    size_t offset[3];
    uint64_t sum = 0, value = 0x123456789abcdefu;
    for (size_t i = 0; i < total; i++) {
        was[i] = to[i] = (uint8_t)(i * 7 + i / 251);
        from[i] = (uint8_t)(i * 13 + 5);
    }
    for (int t = 0; t < threads; t++) offset[t] = (size_t)t * part + 64;
    uint64_t got = eng_stream_parts(op, non_temporal, to, from, threads, offset, n, value);
    for (size_t i = 0; i < total; i += 8) {
        bool inside = i % part >= 64 && i % part < 64 + n;
        uint64_t before, now, source, want;
        memcpy(&before, was + i, 8);
        memcpy(&now, to + i, 8);
        memcpy(&source, from + i, 8);
        want = !inside || op == ENG_STREAM_READ ? before
               : op == ENG_STREAM_WRITE         ? value
               : op == ENG_STREAM_COPY          ? source
                                                : before + value;
        assert_true(now == want);
        if (inside) sum += before;
    }
    if (op == ENG_STREAM_READ) assert_true(got == sum);
    eng_free(was);
    eng_free(from);
    eng_free(to);
}

static void test_streams(void **unused)
{
    (void)unused;
    static const size_t lines[] = {1, 3, 4, 129};
    static const unsigned sets[] = {ENG_ISA_ALL, 0}; /* the machine's own stores, and the base's */
    EngErr err = {0};
    for (int op = 0; op < ENG_STREAM_OP_COUNT; op++)
        for (int nt = 0; nt < 2; nt++)
            for (int i = 0; i < LENGTH_OF(lines); i++)
                for (int threads = 1; threads <= 3; threads++)
                    for (int s = 0; s < 2; s++) {
                        if (eng_stream_supports((EngStreamOp)op, nt, &err)) continue;
                        eng_isa_limit(sets[s]);
                        run_stream((EngStreamOp)op, nt, threads, lines[i]);
                        eng_isa_limit(ENG_ISA_ALL);
                    }
    assert_int_equal(eng_stream_supports(ENG_STREAM_READ, true, &err), ENG_UNSUPPORTED);
    for (int op = 0; op < ENG_STREAM_OP_COUNT; op++)
        assert_int_equal(eng_stream_op_parse(eng_stream_op_name((EngStreamOp)op)), op);
    assert_int_equal(eng_stream_op_parse("triad"), -1);
}

/* ---- pages ---- */

static void test_pages(void **unused)
{
    (void)unused;
    static const size_t sizes[] = {1, 4096, 4097, (size_t)5 << 20};
    static const size_t page[] = {4096, (size_t)2 << 20};
    EngErr err = {0};
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0; i < LENGTH_OF(sizes); i++) {
            EngPages pages;
            if (eng_pages_map(&pages, sizes[i], (EngPageKind)kind, &err)) fail_msg("%s", err.text);
            assert_int_equal((uintptr_t)pages.bytes % page[kind], 0);
            for (size_t k = 0; k < sizes[i]; k++) assert_int_equal(pages.bytes[k], 0);
            memset(pages.bytes, 1, sizes[i]);
            double share = eng_pages_huge_share(&pages), there;
            assert_int_equal(eng_pages_resident(&pages, &there, &err), ENG_OK);
            assert_true(there == 1);
            assert_true(share >= 0 && share <= 1);
            if (kind == ENG_PAGES_SMALL) assert_true(share == 0);
            assert_int_equal(eng_pages_drop(&pages, &err), ENG_OK);
            assert_int_equal(eng_pages_resident(&pages, &there, &err), ENG_OK);
            assert_true(there == 0);
            for (size_t k = 0; k < sizes[i]; k += 999) assert_int_equal(pages.bytes[k], 0);
            eng_pages_unmap(&pages);
            assert_null(pages.bytes);
            eng_pages_unmap(&pages);
        }
    EngPages giant;
    EngStatus status = eng_pages_map(&giant, 1, ENG_PAGES_GIANT, &err);
    if (!status) {
        giant.bytes[0] = 1;
        assert_true(eng_pages_huge_share(&giant) == 1);
        eng_pages_unmap(&giant);
    } else {
        assert_int_equal(status, ENG_UNSUPPORTED);
        assert_non_null(strstr(err.text, "no 1 GiB pages"));
    }
    assert_int_equal(eng_pages_map(&giant, SIZE_MAX, ENG_PAGES_SMALL, &err), ENG_NO_MEMORY);
    for (int i = 0; i < ENG_PAGE_KIND_COUNT; i++)
        assert_int_equal(eng_page_kind_parse(eng_page_kind_name((EngPageKind)i)), i);
    assert_int_equal(eng_page_kind_parse("4m"), -1);
}

/* ---- pinning ---- */

static void test_pin(void **unused)
{
    (void)unused;
    cpu_set_t before, now;
    int cpus[CPU_SETSIZE], n = 0, none[] = {CPU_SETSIZE - 1};
    EngErr err = {0};
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &before)) cpus[n++] = i;
    for (int threads = 1; threads <= 3; threads++) {
        assert_int_equal(eng_cpu_pin(threads, cpus, n, &err), ENG_OK);
        assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
        assert_int_equal(CPU_COUNT(&now), 1);
        assert_true(CPU_ISSET(cpus[0], &now));
        assert_int_equal(eng_cpu_unpin(threads, cpus, n, &err), ENG_OK);
        assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
        assert_true(CPU_EQUAL(&now, &before));
    }
    if (CPU_ISSET(none[0], &before)) return; /* a machine that has all of them */
    assert_int_equal(eng_cpu_pin(1, none, 1, &err), ENG_UNSUPPORTED);
    assert_non_null(strstr(err.text, "0 of 1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cycle_meets_every_slot_once),
        cmocka_unit_test(test_cycle_is_scattered),
        cmocka_unit_test(test_walks),
        cmocka_unit_test(test_sum_sees_every_line),
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_names_and_refusals),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_pin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
