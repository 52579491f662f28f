/* Groups of held-out tokens against answers made by hand. skips: no training text
 * (scripts/fetch_data --training gets it) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "bench/ablation/groups.h"

enum { N = 12, VOCAB = 6 };

/* Two documents; ids 1 and 2 are one compressed id. */
static int32_t g_train[] = {0, 1, 3, 2, 3, 1, 3, 4};
static int32_t g_held[N] = {0, 1, 3, 4, 1, 3, 0, 1, 3, 5, 5, 5};
static int32_t g_map[VOCAB] = {0, 1, 1, 2, 3, 4};
static int64_t g_starts[] = {0, 6};
static uint8_t g_source[N] = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1};
static uint8_t g_classes[VOCAB] = {ENG_TOKEN_END,  ENG_TOKEN_WORD,  ENG_TOKEN_WORD,
                                   ENG_TOKEN_PART, ENG_TOKEN_SIGNS, ENG_TOKEN_DIGITS};

static EngTrainData data_of(void)
{
    EngTrainData data = {.n_sources = 2, .classes = g_classes};
    data.train.ids = g_train;
    data.train.n = sizeof g_train / sizeof *g_train;
    data.heldout.ids = g_held;
    data.heldout.n = N;
    data.heldout.source = g_source;
    data.heldout.stream.n_documents = 2;
    data.heldout.stream.document_starts = g_starts;
    data.map.map = g_map;
    data.map.n_compressed = 5;
    return data;
}

static void test_means_per_group(void **state)
{
    (void)state;
    EngTrainData data = data_of();
    EngTrainGrouping grouping;
    EngErr err = {0};
    float losses[N] = {NAN, 1, 2, 3, 4, 5, 6, 7, 8, 9, NAN, 11};
    double means[8];
    int64_t sizes[8];
    assert_int_equal(eng_train_by_source(&data, N, &grouping, &err), ENG_OK);
    eng_train_group_means(&grouping, losses, N, means, sizes);
    assert_true(means[0] == 3 && sizes[0] == 5);
    assert_true(means[1] == 41 / 5.0 && sizes[1] == 5);
    eng_train_grouping_free(&grouping);
    assert_int_equal(eng_train_by_class(&data, N, &grouping, &err), ENG_OK);
    eng_train_group_means(&grouping, losses, N, means, sizes);
    assert_true(means[ENG_TOKEN_WORD] == 4 && sizes[ENG_TOKEN_WORD] == 3);
    assert_true(means[ENG_TOKEN_DIGITS] == 10 && sizes[ENG_TOKEN_DIGITS] == 2);
    assert_true(isnan(means[ENG_TOKEN_SPACE]) && sizes[ENG_TOKEN_SPACE] == 0);
    eng_train_grouping_free(&grouping);
}

/* "1 3" comes twice in the first document, "5 5" twice in the second; across documents is no copy.
 */
static void test_copies(void **state)
{
    (void)state;
    static const uint8_t want[N] = {0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1};
    EngTrainData data = data_of();
    EngTrainGrouping grouping;
    EngErr err = {0};
    assert_int_equal(eng_train_by_copy(&data, N, &grouping, &err), ENG_OK);
    assert_memory_equal(grouping.group, want, N);
    eng_train_grouping_free(&grouping);
}

/* In training (compressed 0 1 2 1 2 1 2 3): (1,2) three times, (2,1) twice, (0,1) and (2,3) once.
 */
static void test_frequency(void **state)
{
    (void)state;
    EngTrainData data = data_of();
    EngTrainGrouping grouping;
    EngErr err = {0};
    double counts[ENG_TRAIN_DECILES];
    assert_int_equal(eng_train_by_frequency(&data, N, &grouping, counts, &err), ENG_OK);
    assert_int_equal(grouping.group[0], 255);
    assert_int_equal(grouping.group[1], 255);
    /* Ten tokens are left, one to a tenth: those after "1 3" (3, 6 and 9) come last, in order. */
    assert_int_equal(grouping.group[3], 7);
    assert_int_equal(grouping.group[6], 8);
    assert_int_equal(grouping.group[9], 9);
    assert_true(counts[9] == 3 && counts[7] == 3);
    /* After "0 1": 2 and 8, and after "3 4" (compressed 2 3): 4. */
    assert_true(counts[4] == 1 && counts[5] == 1 && counts[6] == 1 && counts[3] == 0);
    assert_int_equal(grouping.group[2], 4);
    eng_train_grouping_free(&grouping);
}

static void test_text(void **state)
{
    (void)state;
    EngTrainData data, again;
    EngErr err = {0};
    assert_int_equal(eng_train_data_open("nowhere", "synthetic", 64, 4096, &data, &err), ENG_OK);
    assert_int_equal(eng_train_data_open("nowhere", "synthetic", 64, 4096, &again, &err), ENG_OK);
    assert_string_equal(data.digest, again.digest);
    assert_int_equal(data.train.n, 4096);
    eng_train_data_close(&data);
    eng_train_data_close(&again);
    uint64_t live = eng_mem_live_blocks();
    for (uint64_t n = 1;; n++) {
        eng_mem_fail_at(n);
        EngStatus status = eng_train_data_open("nowhere", "synthetic", 64, 4096, &data, &err);
        eng_mem_fail_at(0);
        if (!status) break;
        assert_int_equal(status, ENG_NO_MEMORY);
        assert_int_equal(eng_mem_live_blocks(), live);
    }
    eng_train_data_close(&data);
    assert_int_equal(eng_train_data_open("nowhere", "training", 4096, 0, &data, &err),
                     ENG_NOT_FOUND);
    assert_non_null(strstr(err.text, "scripts/fetch_data --training"));
}

/* The fetched text, where it is: sources, bytes per token, classes. */
static void test_fetched_text(void **state)
{
    (void)state;
    EngTrainData data;
    EngErr err = {0};
    const char *folder = getenv("ENG_DATA") ? getenv("ENG_DATA") : ENG_SOURCE_DIR "/data/cache";
    EngStatus status = eng_train_data_open(folder, "training", 4096, 0, &data, &err);
    if (status == ENG_NOT_FOUND) {
        print_message("skipped: no training text: %s\n", err.text);
        skip();
    }
    if (status) fail_msg("%s", err.text);
    assert_true(data.train.n > 25000000 && data.heldout.n > 400000);
    assert_true(data.bytes_per_token > 2 && data.bytes_per_token < 4);
    assert_int_equal(data.map.n_ids, 4096);
    assert_true(data.map.n_compressed > 2500 && data.map.n_compressed < 4096);
    assert_int_equal(data.classes[0], ENG_TOKEN_END);
    int64_t sizes[ENG_TOKEN_CLASS_COUNT] = {0};
    for (int i = 0; i < 4096; i++) sizes[data.classes[i]]++;
    assert_true(sizes[ENG_TOKEN_END] == 1 && sizes[ENG_TOKEN_WORD] > 1000);
    eng_train_data_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_means_per_group), cmocka_unit_test(test_copies),
        cmocka_unit_test(test_frequency),       cmocka_unit_test(test_text),
        cmocka_unit_test(test_fetched_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
