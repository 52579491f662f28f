/* Presets: every one compiled in reads and addresses; what they say; mistakes in a file are found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "kernels/address/preset.h"

static void test_all(void **state)
{
    (void)state;
    static const char *const expected[] = {"engram-27b", "engram-40b", "engram-demo",
                                           "laptop",     "tiny",       "v41-flash"};
    const char *const *names = eng_preset_names();
    char digests[16][ENG_KEY_HEX];
    int n = 0;
    for (; names[n]; n++) {
        EngPreset preset;
        EngErr err = {0};
        assert_int_equal(eng_preset_find(names[n], &preset, &err), ENG_OK);
        assert_string_equal(preset.name, names[n]);
        assert_true(*preset.summary);
        memcpy(digests[n], preset.digest, ENG_KEY_HEX);
        for (int i = 0; i < n; i++) assert_string_not_equal(digests[i], digests[n]);
    }
    assert_int_equal(n, sizeof expected / sizeof *expected);
    for (int i = 0; i < n; i++) assert_string_equal(names[i], expected[i]);
}

static void test_fields(void **state)
{
    (void)state;
    EngPreset preset;
    EngErr err;
    assert_int_equal(eng_preset_find("v41-flash", &preset, &err), ENG_OK);
    assert_int_equal(preset.row_dims, 256);
    assert_int_equal(preset.row_format, ENG_ROW_FP8);
    assert_int_equal(preset.hidden, 5120);
    assert_int_equal(preset.streams, 4);
    assert_false(preset.conv);
    assert_true(preset.gate_eps == 1e-20f);
    assert_int_equal(preset.vocab_ids, 129280);
    assert_int_equal(preset.shared_ids, 128000);
    assert_string_equal(preset.tokmap_digest,
                        "c60a86322ec17b4142bfef3c57a8d81fb428550cdf487f88a4320cb59fe46481");
    assert_int_equal(eng_preset_find("engram-40b", &preset, &err), ENG_OK);
    assert_int_equal(preset.address.start, 7239680);
    assert_int_equal(preset.row_dims * preset.address.heads * 2, 1280); /* the paper's d_mem */
    assert_true(preset.conv);
    assert_int_equal(preset.conv_kernel, 4);
    assert_int_equal(eng_preset_find("tiny", &preset, &err), ENG_OK);
    assert_int_equal(preset.vocab_ids, 0);
    assert_string_equal(preset.tokmap_digest, "");
}

static void test_unknown_name(void **state)
{
    (void)state;
    EngPreset preset;
    EngErr err;
    assert_int_equal(eng_preset_find("v41_flash", &preset, &err), ENG_USAGE);
    assert_non_null(strstr(err.text, "\"v41_flash\", did you mean \"v41-flash\"?"));
    assert_int_equal(eng_preset_find("", &preset, &err), ENG_USAGE);
}

/* Replaces `from` by `to` in the text of the tiny preset and parses it. */
static EngStatus parse_edited(const char *from, const char *to, EngPreset *preset, EngErr *err)
{
    char *text;
    char edited[4096];
    size_t bytes;
    assert_int_equal(
        eng_file_read(ENG_SOURCE_DIR "/kernels/address/presets/tiny.json", &text, &bytes, err),
        ENG_OK);
    char *at = strstr(text, from);
    assert_non_null(at);
    *at = 0;
    snprintf(edited, sizeof edited, "%s%s%s", text, to, at + strlen(from));
    eng_free(text);
    return eng_preset_parse("edited", edited, preset, err);
}

static void test_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *names;
    } edits[] = {
        {"\"heads\"", "\"head\"", "edited: heads: missing"},
        {"\"heads\": 2", "\"heads\": 2, \"haeds\": 2",
         "haeds: unknown key, did you mean \"heads\"?"},
        {"\"heads\": 2", "\"heads\": \"2\"", "heads: not an integer"},
        {"\"heads\": 2", "\"heads\": 0", "heads: not an integer in range"},
        {"\"heads\": 2", "\"heads\": 2, \"heads\": 2", "duplicate"},
        {"\"row_dims\": 32", "\"row_dims\": 33", "row_dims: fp8"},
        {"\"fp8\"", "\"fp9\"", "row_format: unknown"},
        {"[1, 3]", "[1, 1]", "layers: id 1"},
        {"[1, 3]", "[]", "layers:"},
        {"1e-20", "0", "gate_eps:"},
        {"\"max_order\": 3", "\"max_order\": 1", "min-order: 2"},
        {"\"pad\": 2", "\"pad\": 97", "pad: 97"},
        {"1e-20", "1e-20, \"tokmap\": {\"ids\": 97}", "tokmap.sha256_i32le: missing"},
        {"1e-20",
         "1e-20, \"tokmap\": {\"ids\": 97, \"sha256_i32le\": \"\", \"shared_ids\": 0, "
         "\"other\": 1}",
         "tokmap.other: unknown key"},
        {"}", "", "edited: line"},
    };
    EngPreset preset;
    EngErr err;
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        EngStatus status = parse_edited(edits[i].from, edits[i].to, &preset, &err);
        assert_true(status == ENG_BAD_DATA || status == ENG_USAGE);
        if (!strstr(err.text, edits[i].names)) fail_msg("%s: %s", edits[i].names, err.text);
    }
    assert_int_equal(eng_preset_parse("x", "[]", &preset, &err), ENG_BAD_DATA);
}

/* The digest is of what the preset says: prose and layout do not count, every field does. */
static void test_digest(void **state)
{
    (void)state;
    EngPreset tiny, edited;
    EngErr err;
    assert_int_equal(eng_preset_find("tiny", &tiny, &err), ENG_OK);
    assert_int_equal(parse_edited("Smallest", "Least", &edited, &err), ENG_OK);
    assert_string_equal(tiny.digest, edited.digest);
    assert_int_equal(parse_edited("\"heads\": 2", "\"heads\"  :  2", &edited, &err), ENG_OK);
    assert_string_equal(tiny.digest, edited.digest);
    assert_int_equal(parse_edited("\"heads\": 2", "\"heads\": 3", &edited, &err), ENG_OK);
    assert_string_not_equal(tiny.digest, edited.digest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all), cmocka_unit_test(test_fields),
                                       cmocka_unit_test(test_unknown_name),
                                       cmocka_unit_test(test_mistakes),
                                       cmocka_unit_test(test_digest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
