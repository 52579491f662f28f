/* Our reader of CUPTI's buffers against the iterator of the library itself, where one lies on the
 * machine. skips: no CUPTI headers, no libcupti, another version of libcupti */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/rng.h"
#include "bench/trace/cupti_api.h"
#include "bench/trace/cupti_walk.h"
#include "tests/unit/trace/cupti_records.h"

#ifndef ENG_HAVE_CUPTI

int main(void)
{
    printf("skipped: no CUPTI headers\n");
    return 77;
}

#else

static bool have_library(EngCuptiApi *api)
{
    EngErr err = {0};
    if (eng_cupti_load(NULL, api, &err)) {
        print_message("skipped: no libcupti: %s\n", err.text);
        return false;
    }
    if (api->version == CUPTI_API_VERSION) return true;
    print_message("skipped: another version of libcupti\n"); /* which may append fields */
    return false;
}

static void test_sizes_of_library(void **state)
{
    (void)state;
    EngCuptiApi api;
    if (!have_library(&api)) skip();
    static uint64_t bytes[512];
    for (uint32_t kind = 1; kind < 64; kind++) {
        CUpti_Activity *record = NULL;
        for (int i = 0; i < 512; i++) bytes[i] = CUPTI_ACTIVITY_KIND_RUNTIME;
        bytes[0] = kind;
        CUptiResult result = api.ActivityGetNextRecord((uint8_t *)bytes, sizeof bytes, &record);
        if (result) {
            assert_int_equal(eng_cupti_record_bytes(kind), 0);
            continue;
        }
        assert_int_equal(api.ActivityGetNextRecord((uint8_t *)bytes, sizeof bytes, &record),
                         CUPTI_SUCCESS);
        size_t size = (size_t)((uint8_t *)record - (uint8_t *)bytes);
        if (eng_cupti_record_bytes(kind))
            assert_int_equal(eng_cupti_record_bytes(kind), size);
        else
            print_message("kind %u of %zu bytes is in the library alone\n", kind, size);
    }
}

static void test_walks_like_library(void **state)
{
    (void)state;
    EngCuptiApi api;
    if (!have_library(&api)) skip();
    EngRng rng;
    eng_rng_seed(&rng, 9);
    int ends[4] = {0};
    for (int round = 0; round < 500; round++) {
        Buffer buffer = {.n = 0};
        int n = (int)eng_rng_below(&rng, 60);
        for (int i = 0; i < n; i++) {
            uint32_t kind = (uint32_t)eng_rng_below(&rng, 60);
            if (eng_rng_below(&rng, 20) && !eng_cupti_record_bytes(kind)) kind = 10;
            memcpy(buffer.bytes + buffer.n, &kind, sizeof kind);
            buffer.n += eng_cupti_record_bytes(kind) ? eng_cupti_record_bytes(kind) : 24;
        }
        if (buffer.n && round % 2) buffer.n -= eng_rng_below(&rng, 200) % buffer.n;
        EngCuptiWalk ours, theirs;
        eng_cupti_walk_start(&ours, buffer.bytes, buffer.n, NULL, 0);
        eng_cupti_walk_start(&theirs, buffer.bytes, buffer.n, api.ActivityGetNextRecord,
                             api.version);
        CUpti_Activity *a, *b;
        do {
            a = eng_cupti_walk_next(&ours);
            b = eng_cupti_walk_next(&theirs);
            assert_ptr_equal(a, b);
        } while (a);
        assert_int_equal(ours.left_bytes, theirs.left_bytes);
        assert_int_equal(ours.end == ENG_CUPTI_END_WHOLE, theirs.end == ENG_CUPTI_END_WHOLE);
        ends[ours.end]++;
    }
    for (int i = 0; i < 4; i++) assert_true(ends[i] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_of_library),
        cmocka_unit_test(test_walks_like_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
