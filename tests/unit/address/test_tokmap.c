/* Token map: a small tokenizer that holds every known pitfall (its map computed by the Hugging Face
 * library), the published digests on the real one, the short cut, and malformed files.
 * skips: no shared data */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "kernels/address/normalize.h"
#include "kernels/address/tokmap.h"

#define PITFALLS ENG_SOURCE_DIR "/tests/data/tokenizer_pitfalls.json"
#define V3       ENG_SHARED_DIR "/data/deepseek_v3_tokenizer.json"

static const char g_v3[] = "cd48cb62d9cca1baaf08d9e7795ad3d4c22b6c56f0f070178b9e3a52694ea930";
static const char g_v41[] = "c60a86322ec17b4142bfef3c57a8d81fb428550cdf487f88a4320cb59fe46481";

/* ---- the small tokenizer ---- */

/* In groups: <bos>; space, newline, spaces; VT; BOM; two lone accents; a A _a a-acute a+Me a+Mc;
 * seven texts that are not UTF-8 or hold U+FFFD; fullwidth A; fi twice; I-dot and i; sigmas;
 * U+E000, space+accent, U+3000; NEL; U+2028; "a b" twice; sharp s twice; a-circumflex (its letter
 * spells the broken byte E2); blanks; NBSP a NBSP; emoji; x U+FFFD y; added tokens. */
static const int32_t g_pitfalls[] = {0,  1,  1,  1,  2,  3,  4,  5,  6,  6,  6,  6,  6,  6, 7,  8,
                                     9,  10, 11, 12, 13, 6,  14, 14, 15, 15, 16, 17, 16, 1, 1,  1,
                                     18, 19, 20, 20, 21, 21, 6,  1,  6,  22, 23, 24, 24, 1, 25, 26};
enum { N_PITFALLS = sizeof g_pitfalls / sizeof *g_pitfalls };

static void test_pitfalls(void **state)
{
    (void)state;
    EngTokmap map;
    EngErr err = {0};
    char hex[ENG_DIGEST_HEX];
    int64_t wide[N_PITFALLS];
    assert_int_equal(eng_tokmap_load(PITFALLS, &map, &err), ENG_OK);
    assert_int_equal(map.n_ids, N_PITFALLS);
    assert_int_equal(map.n_compressed, 27);
    for (int i = 0; i < N_PITFALLS; i++) {
        assert_int_equal(map.map[i], g_pitfalls[i]);
        wide[i] = g_pitfalls[i];
    }
    assert_int_equal(eng_digest(g_pitfalls, sizeof g_pitfalls, hex, &err), ENG_OK);
    assert_string_equal(map.sha256_i32le, hex);
    assert_int_equal(eng_digest(wide, sizeof wide, hex, &err), ENG_OK);
    assert_string_equal(map.sha256_i64le, hex);
    eng_tokmap_free(&map);
}

static void check_normal(const char *text, const char *want)
{
    EngCodepoints scratch = {0};
    EngStr out = {0};
    EngErr err;
    assert_int_equal(eng_normalize(text, strlen(text), &scratch, &out, &err), ENG_OK);
    assert_string_equal(out.text ? out.text : "", want);
    eng_codepoints_free(&scratch);
    eng_str_free(&out);
}

static void test_normalize(void **state)
{
    (void)state;
    check_normal("", "");
    check_normal(" ", " ");
    check_normal(" \t\r\n ", " ");
    check_normal("\v", "");
    check_normal("  The  END \n", "the end");
    check_normal("\xcc\x81", "");                         /* U+0301 alone */
    check_normal("\xc4\xb0", "i");                        /* I with dot */
    check_normal("\xce\x91\xce\xa3", "\xce\xb1\xcf\x83"); /* no final sigma */
    check_normal("\xef\xb7\xba", /* U+FDFA: 18 characters, grows the buffer */
                 "\xd8\xb5\xd9\x84\xd9\x89 \xd8\xa7\xd9\x84\xd9\x84\xd9\x87 "
                 "\xd8\xb9\xd9\x84\xd9\x8a\xd9\x87 \xd9\x88\xd8\xb3\xd9\x84\xd9\x85");
    check_normal("\xee\x80\x80", " ");   /* the sentinel itself */
    check_normal("a\xee\x80\x80", "a "); /* is no white space while the ends are cut */
}

/* All 25 White_Space characters are cut at the ends; near misses are not. */
static void test_white_space(void **state)
{
    (void)state;
    static const char *const spaces[] = {"\t",           "\n",           "\v",
                                         "\f",           "\r",           " ",
                                         "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80",
                                         "\xe2\x80\x80", "\xe2\x80\x81", "\xe2\x80\x82",
                                         "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85",
                                         "\xe2\x80\x86", "\xe2\x80\x87", "\xe2\x80\x88",
                                         "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8",
                                         "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f",
                                         "\xe3\x80\x80"};
    static const char *const others[] = {"\x1c", "\xe1\xa0\x8e", "\xe2\x80\x8b", "\xe2\x81\xa0",
                                         "\xef\xbb\xbf"};
    char text[16];
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        snprintf(text, sizeof text, "%sa%s", spaces[i], spaces[i]);
        check_normal(text, "a");
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) check_normal(others[i], others[i]);
}

static void test_utf8(void **state)
{
    (void)state;
    static const char *const clean[] = {
        "", "a", "\xc2\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xf4\x8f\xbf\xbf", "\xef\xbf\xbe"};
    static const char *const broken[] = {"\x80",
                                         "\xc0\x80",
                                         "\xc1\xbf",
                                         "\xe0\x80\x80",
                                         "\xe2\x82",
                                         "\xed\xa0\x80",
                                         "\xef\xbf\xbd",
                                         "\xf0\x80\x80\x80",
                                         "\xf4\x90\x80\x80",
                                         "\xf8\x88\x80\x80\x80",
                                         "a\xff"};
    for (size_t i = 0; i < sizeof clean / sizeof *clean; i++)
        assert_true(eng_utf8_is_clean((const uint8_t *)clean[i], strlen(clean[i])));
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        assert_false(eng_utf8_is_clean((const uint8_t *)broken[i], strlen(broken[i])));
}

static void test_apply(void **state)
{
    (void)state;
    EngTokmap map;
    EngErr err;
    const uint32_t good[] = {47, 0, 9}, bad[] = {0, 1, 48}, negative[] = {(uint32_t)-1};
    int32_t out[3];
    assert_int_equal(eng_tokmap_load(PITFALLS, &map, &err), ENG_OK);
    assert_int_equal(eng_tokmap_apply(&map, good, 3, out, &err), ENG_OK);
    assert_int_equal(out[0], 26);
    assert_int_equal(out[1], 0);
    assert_int_equal(out[2], 6);
    assert_int_equal(eng_tokmap_apply(&map, bad, 3, out, &err), ENG_BAD_DATA);
    assert_non_null(strstr(err.text, "position 2: id 48"));
    assert_int_equal(eng_tokmap_apply(&map, negative, 1, out, &err), ENG_BAD_DATA);
    eng_tokmap_free(&map);
}

/* ---- digests ---- */

/* A wrong digest is an error, with and without a short cut to try; one merged token is seen. */
static void test_checked(void **state)
{
    (void)state;
    EngTokmap map;
    EngErr err;
    char right[ENG_DIGEST_HEX], extended[ENG_DIGEST_HEX];
    int32_t ids[N_PITFALLS + 2];
    uint64_t live = eng_mem_live_blocks();
    assert_int_equal(eng_digest(g_pitfalls, sizeof g_pitfalls, right, &err), ENG_OK);
    assert_int_equal(eng_tokmap_load_checked(PITFALLS, right, 0, 0, &map, &err), ENG_OK);
    eng_tokmap_free(&map);
    assert_int_equal(eng_tokmap_load_checked(PITFALLS, "", 0, 0, &map, &err), ENG_OK);
    eng_tokmap_free(&map);
    assert_int_equal(eng_tokmap_load_checked(PITFALLS, g_v3, 0, 0, &map, &err), ENG_BAD_DATA);
    assert_non_null(strstr(err.text, "tokenizer_pitfalls.json"));
    assert_non_null(strstr(err.text, right));
    assert_non_null(strstr(err.text, g_v3));
    assert_int_equal(eng_tokmap_load_checked(PITFALLS, g_v41, 43, 50, &map, &err), ENG_BAD_DATA);

    memcpy(ids, g_pitfalls, sizeof g_pitfalls);
    for (int i = 43; i < N_PITFALLS + 2; i++) ids[i] = 24 + i - 43;
    assert_int_equal(eng_digest(ids, sizeof ids, extended, &err), ENG_OK);
    assert_int_equal(eng_tokmap_load_checked(PITFALLS, extended, 43, N_PITFALLS + 2, &map, &err),
                     ENG_OK);
    assert_int_equal(map.n_ids, N_PITFALLS + 2);
    assert_int_equal(map.n_compressed, 24 + 7);
    assert_string_equal(map.sha256_i32le, extended);
    eng_tokmap_free(&map);

    ids[9] = 7; /* "A" no longer with "a" */
    assert_int_equal(eng_digest(ids, sizeof g_pitfalls, extended, &err), ENG_OK);
    assert_int_equal(eng_tokmap_load_checked(PITFALLS, extended, 0, 0, &map, &err), ENG_BAD_DATA);
    assert_int_equal(eng_mem_live_blocks(), live);
}

static void test_v3(void **state)
{
    (void)state;
    if (!eng_file_exists(V3)) {
        print_message("skipped: no shared data\n");
        skip();
    }
    EngTokmap map;
    EngErr err;
    static int64_t group[98627];
    assert_int_equal(eng_tokmap_load_checked(V3, g_v3, 0, 0, &map, &err), ENG_OK);
    assert_int_equal(map.n_ids, 128815);
    assert_int_equal(map.n_compressed, 98627);
    assert_string_equal(map.sha256_i64le,
                        "0e84461b633329215755b30226757dc28a1c49772f351048fe3b4c2070fb7649");
    for (int i = 0; i < 4; i++) assert_int_equal(map.map[i], i);
    assert_int_equal(map.map[270], 237); /* " the" */
    int64_t largest = 0, shared = 0;
    for (int64_t i = 0; i < map.n_ids; i++) {
        group[map.map[i]]++;
        if (group[map.map[i]] > largest) largest = group[map.map[i]];
        if (i < 128000 && map.map[i] >= shared) shared = map.map[i] + 1;
    }
    assert_int_equal(largest, 163); /* white space */
    assert_int_equal(shared, 97812);
    eng_tokmap_free(&map);

    /* V4.1 from the V3 file. */
    assert_int_equal(eng_tokmap_load_checked(V3, g_v41, 128000, 129280, &map, &err), ENG_OK);
    assert_int_equal(map.n_ids, 129280);
    assert_int_equal(map.n_compressed, 99092);
    assert_string_equal(map.sha256_i64le,
                        "26b9be2936d236a124ba318a998c417bc7032e3e92a3107fe98deee49f1dc496");
    eng_tokmap_free(&map);
    assert_int_equal(eng_tokmap_load_checked(V3, g_v41, 0, 0, &map, &err), ENG_BAD_DATA);
}

/* ---- bad files ---- */

static char g_path[] = "/tmp/eng_tokenizer_XXXXXX";

static void load_text(const char *text, const char *names)
{
    EngTokmap map;
    EngErr err;
    assert_int_equal(eng_file_write(g_path, text, strlen(text), &err), ENG_OK);
    assert_int_equal(eng_tokmap_load(g_path, &map, &err), ENG_BAD_DATA);
    assert_non_null(strstr(err.text, g_path));
    if (!strstr(err.text, names)) fail_msg("expected \"%s\" in: %s", names, err.text);
    assert_null(strchr(err.text, '\n'));
    assert_null(map.map);
}

static void test_malformed(void **state)
{
    (void)state;
    int fd = mkstemp(g_path);
    assert_true(fd >= 0);
    close(fd);
#define DECODER "\"decoder\":{\"type\":\"ByteLevel\"}"
    uint64_t live = eng_mem_live_blocks();
    load_text("", "line 1");
    load_text("{", "line 1");
    load_text("[]", "not a JSON object");
    load_text("\xff\xfe", "line 1");
    load_text("{\"model\":3}", "model: missing");
    load_text("{\"model\":{\"type\":\"Unigram\",\"vocab\":{\"a\":0}}}", "model.type: Unigram");
    load_text("{\"model\":{\"type\":\"BPE\"}}", "model.vocab: missing");
    load_text("{\"model\":{\"type\":\"BPE\",\"vocab\":[\"a\"]}}", "model.vocab: missing");
    load_text("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}}}", "decoder: none");
    load_text("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}},\"decoder\":{\"type\":\"Fuse\"}}",
              "decoder: Fuse");
    load_text("{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"a\":0}}," DECODER
              "}",
              "model.byte_fallback");
    load_text("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":\"0\"}}," DECODER "}",
              "model.vocab: id of \"a\" is not an integer");
    load_text("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1}}," DECODER "}", "id -1 of \"a\"");
    load_text("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":4000000000}}," DECODER "}",
              "id 4000000000 of \"a\"");
    load_text("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0}}," DECODER "}",
              "id 0 belongs to");
    load_text("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"a\":1}}," DECODER "}",
              "duplicate");
    load_text("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":1}},\"added_tokens\":[{\"id\":1,"
              "\"content\":\"a\"}]," DECODER "}",
              "id 0 has no token");
    load_text(
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}},\"added_tokens\":[{\"id\":1}]," DECODER
        "}",
        "added_tokens[0].content");
    load_text("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}},\"added_tokens\":{}," DECODER "}",
              "added_tokens: not an array");
#undef DECODER
    assert_int_equal(eng_mem_live_blocks(), live);
    unlink(g_path);
    EngTokmap map;
    EngErr err;
    assert_int_equal(eng_tokmap_load(g_path, &map, &err), ENG_NOT_FOUND);
}

/* The real shape of a file, cut at many places: always an error, never a crash or a leak. */
static void test_truncated(void **state)
{
    (void)state;
    char *text, path[] = "/tmp/eng_tokenizer_XXXXXX";
    size_t n;
    EngErr err;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(eng_file_read(PITFALLS, &text, &n, &err), ENG_OK);
    uint64_t live = eng_mem_live_blocks();
    for (size_t cut = 0; cut + 2 < n; cut += 37) {
        EngTokmap map;
        assert_int_equal(eng_file_write(path, text, cut, &err), ENG_OK);
        assert_int_equal(eng_tokmap_load(path, &map, &err), ENG_BAD_DATA);
        assert_non_null(strstr(err.text, path));
    }
    assert_int_equal(eng_mem_live_blocks(), live);
    eng_free(text);
    unlink(path);
}

/* Every allocation of a load fails once: an error each time, and nothing leaks. */
static void test_no_memory(void **state)
{
    (void)state;
    EngTokmap map;
    EngErr err;
    uint64_t live = eng_mem_live_blocks();
    eng_mem_fail_at(0);
    assert_int_equal(eng_tokmap_load(PITFALLS, &map, &err), ENG_OK);
    uint64_t needed = eng_mem_fail_at(0);
    eng_tokmap_free(&map);
    assert_true(needed > 3);
    for (uint64_t n = 1; n <= needed; n++) {
        eng_mem_fail_at(n);
        assert_int_equal(eng_tokmap_load(PITFALLS, &map, &err), ENG_NO_MEMORY);
        assert_int_equal(eng_mem_live_blocks(), live);
    }
    eng_mem_fail_at(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pitfalls),    cmocka_unit_test(test_normalize),
        cmocka_unit_test(test_white_space), cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_apply),       cmocka_unit_test(test_checked),
        cmocka_unit_test(test_v3),          cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_truncated),   cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
