/* Token streams: what is written is read back; every kind of damage is named; generated streams are
 * reproducible and have the distribution they claim; imports of all formats. */
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
#include "base/str.h"
#include "bench/core/stream.h"
#include "bench/core/stream_import.h"

static char g_dir[] = "/tmp/eng_stream_XXXXXX";

static const char *path_of(const char *name)
{
    static char paths[4][256];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", g_dir, name);
    return path;
}

static void put(const char *name, const void *bytes, size_t n)
{
    assert_int_equal(eng_file_write(path_of(name), bytes, n, NULL), ENG_OK);
}

static void put_text(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

static void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("'%s' does not contain '%s'", text, part);
}

static EngStatus import(const char *file, const char *name, EngStream *stream, EngErr *err)
{
    EngStreamImport order = {
        .file = path_of(file), .name = name, .data_dir = g_dir, .vocab_ids = 1000};
    return eng_stream_import(&order, stream, err);
}

/* Imports and expects these ids and document starts. */
static void assert_import(const char *file, const uint32_t *ids, int64_t n, const int64_t *starts,
                          int64_t n_documents)
{
    EngStream stream;
    EngErr err = {0};
    if (import(file, "log", &stream, &err)) fail_msg("%s", err.text);
    assert_int_equal(stream.n_tokens, n);
    assert_memory_equal(stream.ids, ids, (size_t)n * sizeof *ids);
    assert_int_equal(stream.n_documents, n_documents);
    assert_memory_equal(stream.document_starts, starts, (size_t)n_documents * sizeof *starts);
    assert_string_equal(stream.kind, "imported");
    assert_string_equal(stream.corpus, "log");
    eng_stream_close(&stream);
}

static void assert_import_fails(const char *file, EngStatus expected, const char *part)
{
    EngStream stream;
    EngErr err = {0};
    assert_int_equal(import(file, "log", &stream, &err), expected);
    assert_contains(err.text, part);
    assert_null(stream.ids);
}

/* --- Files ------------------------------------------------------------------------------------ */

static const uint32_t IDS[] = {7, 999, 0, 3, 3, 41};
static const int64_t STARTS[] = {0, 2, 5};

static void write_sample(void)
{
    EngStream stream;
    EngErr err = {0};
    put_text("sample.jsonl", "[7, 999]\n{\"ids\": [0, 3, 3]}\n\n{\"tokens\": [41]}\n[]\n");
    if (import("sample.jsonl", NULL, &stream, &err)) fail_msg("%s", err.text);
    eng_stream_close(&stream);
}

static void round_trip(void **state)
{
    (void)state;
    EngStream stream;
    EngErr err = {0};
    char digest[ENG_DIGEST_HEX];
    write_sample();
    assert_int_equal(eng_stream_find(g_dir, "sample", &stream, &err), ENG_OK);
    assert_int_equal(stream.n_tokens, 6);
    assert_int_equal(stream.vocab_ids, 1000);
    assert_memory_equal(stream.ids, IDS, sizeof IDS);
    assert_int_equal(stream.n_documents, 3);
    assert_memory_equal(stream.document_starts, STARTS, sizeof STARTS);
    assert_int_equal(eng_digest(IDS, sizeof IDS, digest, NULL), ENG_OK);
    assert_string_equal(stream.digest, digest);
    assert_string_equal(stream.label, "sample (imported)");
    eng_stream_close(&stream);
    eng_stream_close(&stream);
}

/* Replaces one text of sample's header by another and expects the failure to be named. */
static void assert_header_change(const char *from, const char *to, const char *part)
{
    char *text = NULL;
    EngStr changed = {0};
    EngStream stream;
    EngErr err = {0};
    write_sample();
    assert_int_equal(eng_file_read(path_of("sample.json"), &text, NULL, NULL), ENG_OK);
    char *at = strstr(text, from);
    if (!at) fail_msg("header has no '%s': %s", from, text);
    eng_str_add_n(&changed, text, (size_t)(at - text));
    eng_str_add(&changed, to);
    eng_str_add(&changed, at + strlen(from));
    put("sample.json", changed.text, changed.n);
    assert_int_equal(eng_stream_find(g_dir, "sample", &stream, &err), ENG_BAD_DATA);
    assert_contains(err.text, "sample.json");
    assert_contains(err.text, part);
    assert_null(stream.ids);
    eng_str_free(&changed);
    eng_free(text);
}

static void damaged_headers(void **state)
{
    (void)state;
    assert_header_change("engram-stream-1", "engram-stream-9", "'format' is 'engram-stream-9'");
    assert_header_change("\"kind\": \"imported\", ", "", "'kind' is missing");
    assert_header_change("\"imported\"", "\"guessed\"", "'kind' is 'guessed'");
    assert_header_change("\"n_tokens\": 6", "\"n_tokens\": -6", "'n_tokens' is -6");
    assert_header_change("\"n_tokens\": 6", "\"n_tokens\": \"6\"", "'n_tokens' is not an integer");
    assert_header_change("\"n_tokens\": 6", "\"n_tokens\": 7", "24 bytes");
    assert_header_change("\"vocab_ids\": 1000", "\"vocab_ids\": 0", "'vocab_ids' is 0");
    assert_header_change("[0, 2, 5]", "[0, 5, 2]", "entry 2 is 2");
    assert_header_change("[0, 2, 5]", "[1, 2, 5]", "entry 0 is 1");
    assert_header_change("[0, 2, 5]", "[0, 2, 6]", "entry 2 is 6");
    assert_header_change("[0, 2, 5]", "[]", "'document_starts'");
    assert_header_change("\"sample.ids\"", "\"../sample.ids\"", "'ids_file' is '../sample.ids'");
    assert_header_change("\"sample.ids\"", "\"gone.ids\"", "does not exist");
    assert_header_change("\"corpus\": \"sample\"", "\"corpus\": \"other\"", "'corpus' is 'other'");
    assert_header_change("}]", "", "not JSON");
}

static void damaged_ids(void **state)
{
    (void)state;
    EngStream stream;
    EngErr err = {0};
    char before[ENG_DIGEST_HEX], after[ENG_DIGEST_HEX];
    uint32_t ids[6];
    write_sample();
    memcpy(ids, IDS, sizeof ids);
    ids[4] = 4;
    assert_int_equal(eng_digest(IDS, sizeof ids, before, NULL), ENG_OK);
    assert_int_equal(eng_digest(ids, sizeof ids, after, NULL), ENG_OK);

    put("sample.ids", ids, sizeof ids);
    assert_int_equal(eng_stream_find(g_dir, "sample", &stream, &err), ENG_BAD_DATA);
    assert_contains(err.text, "sample.ids");
    assert_contains(err.text, "'sha256'");
    assert_contains(err.text, before);
    assert_contains(err.text, after);

    put("sample.ids", ids, sizeof ids - 3);
    assert_int_equal(eng_stream_find(g_dir, "sample", &stream, &err), ENG_BAD_DATA);
    assert_contains(err.text, "21 bytes");
}

static void id_out_of_vocabulary(void **state)
{
    (void)state;
    char *text = NULL;
    EngStream stream;
    EngErr err = {0};
    write_sample();
    assert_int_equal(eng_file_read(path_of("sample.json"), &text, NULL, NULL), ENG_OK);
    char *at = strstr(text, "1000");
    assert_non_null(at);
    memcpy(at, " 999", 4);
    put_text("sample.json", text);
    eng_free(text);
    assert_int_equal(eng_stream_find(g_dir, "sample", &stream, &err), ENG_BAD_DATA);
    assert_contains(err.text, "sample.ids: index 1: id 999");
}

static void names(void **state)
{
    (void)state;
    EngStream stream;
    EngErr err = {0};
    EngStreamNames list;
    write_sample();
    put_text("tokenizer.json", "{}");
    assert_int_equal(eng_stream_names(g_dir, &list, &err), ENG_OK);
    bool sample = false;
    for (int i = 0; i < list.n; i++) {
        sample |= !strcmp(list.names[i], "sample");
        assert_string_not_equal(list.names[i], "tokenizer");
    }
    assert_true(sample);
    eng_stream_names_free(&list);
    assert_int_equal(eng_stream_find(g_dir, "smaple", &stream, &err), ENG_NOT_FOUND);
    assert_contains(err.text, "did you mean 'sample'");
    assert_int_equal(eng_stream_find(g_dir, "../sample", &stream, &err), ENG_USAGE);
    assert_int_equal(eng_stream_names(path_of("none"), &list, &err), ENG_OK);
    assert_int_equal(list.n, 0);
}

/* --- Generated -------------------------------------------------------------------------------- */

static void generated_streams_are_reproducible(void **state)
{
    (void)state;
    const char *kinds[] = {"synthetic", "uniform"};
    /* Frozen, so that a stream made on one machine is the same on every other. */
    const char *digests[] = {"1a56e65710973c7be58e5ac29795f18814d8cb0c202d4eb2bc01f206e82beff0",
                             "ed60bebf4ffa1f66bf544dc8c16dda94dc6d720b824a199222700b5cb2fa4e5d"};
    for (int k = 0; k < 2; k++) {
        EngStream a, b, c;
        EngErr err = {0};
        assert_int_equal(eng_stream_synthetic(kinds[k], 5000, 129280, 1, &a, &err), ENG_OK);
        assert_int_equal(eng_stream_synthetic(kinds[k], 5000, 129280, 1, &b, &err), ENG_OK);
        assert_int_equal(eng_stream_synthetic(kinds[k], 5000, 129280, 2, &c, &err), ENG_OK);
        assert_string_equal(a.digest, b.digest);
        assert_string_not_equal(a.digest, c.digest);
        assert_string_equal(a.digest, digests[k]);
        assert_string_equal(a.kind, kinds[k]);
        assert_int_equal(a.n_documents, 5);
        assert_int_equal(a.document_starts[4], 4096);
        for (int i = 0; i < 5000; i++) assert_true(a.ids[i] < 129280);
        eng_stream_close(&a);
        eng_stream_close(&b);
        eng_stream_close(&c);
    }
    EngStream stream;
    EngErr err = {0};
    assert_int_equal(eng_stream_synthetic("real", 10, 10, 1, &stream, &err), ENG_USAGE);
    assert_int_equal(eng_stream_synthetic("uniform", 0, 10, 1, &stream, &err), ENG_USAGE);
    assert_int_equal(eng_stream_synthetic("uniform", 10, 0, 1, &stream, &err), ENG_USAGE);
}

static int descending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* Counts per id, most frequent first. */
static void sorted_counts(const char *kind, int64_t n, int64_t vocab, int64_t *counts)
{
    EngStream stream;
    assert_int_equal(eng_stream_synthetic(kind, n, vocab, 3, &stream, NULL), ENG_OK);
    memset(counts, 0, (size_t)vocab * sizeof *counts);
    for (int64_t i = 0; i < n; i++) counts[stream.ids[i]]++;
    qsort(counts, (size_t)vocab, sizeof *counts, descending);
    eng_stream_close(&stream);
}

static void generated_streams_have_their_distribution(void **state)
{
    (void)state;
    enum { VOCAB = 500, N = 200000 };
    int64_t counts[VOCAB];
    double harmonic = 0;
    for (int r = 1; r <= VOCAB; r++) harmonic += 1.0 / r;
    sorted_counts("synthetic", N, VOCAB, counts);
    for (int r = 1; r <= 16; r *= 2) {
        double expected = N / harmonic / r;
        assert_true(counts[r - 1] > 0.93 * expected && counts[r - 1] < 1.07 * expected);
    }
    sorted_counts("uniform", N, VOCAB, counts); /* 400 each, deviation 20 */
    assert_true(counts[0] < 500 && counts[VOCAB - 1] > 300);
}

static void reserved_names(void **state)
{
    (void)state;
    EngStream stream;
    EngErr err = {0};
    assert_true(eng_stream_name_fetched("prose") && eng_stream_name_reserved("prose"));
    assert_true(!eng_stream_name_fetched("uniform") && eng_stream_name_reserved("uniform"));
    assert_true(!eng_stream_name_fetched("chat") && !eng_stream_name_reserved("chat"));
    assert_int_equal(eng_stream_find(g_dir, "docs", &stream, &err), ENG_NOT_FOUND);
    assert_contains(err.text, "scripts/fetch_data");
    assert_int_equal(eng_stream_find(g_dir, "multilingul", &stream, &err), ENG_NOT_FOUND);
    assert_contains(err.text, "did you mean 'multilingual'");
}

/* --- Imports ---------------------------------------------------------------------------------- */

static void import_raw(void **state)
{
    (void)state;
    const int64_t start = 0;
    const uint32_t bad[] = {1, 2, 1000};
    put("a.bin", IDS, sizeof IDS);
    assert_import("a.bin", IDS, 6, &start, 1);
    put("a.bin", IDS, sizeof IDS - 1);
    assert_import_fails("a.bin", ENG_BAD_DATA, "23 bytes");
    put("a.bin", bad, sizeof bad);
    assert_import_fails("a.bin", ENG_BAD_DATA, "a.bin: index 2: id 1000 is not in [0, 1000)");
    put("a.bin", "", 0);
    assert_import_fails("a.bin", ENG_BAD_DATA, "empty");
    assert_import_fails("gone.bin", ENG_BAD_DATA, "gone.bin");
    put("a.xyz", IDS, sizeof IDS);
    assert_import_fails("a.xyz", ENG_USAGE, "--format");
}

/* Writes a .npy file of this version, type and shape around the data given. */
static void put_npy(int version, const char *descr, const char *shape, const void *data, size_t n)
{
    EngStr file = {0}, header = {0};
    eng_str_printf(&header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr,
                   shape);
    char prefix[12] = "\x93NUMPY";
    prefix[6] = (char)version;
    prefix[8] = (char)header.n;
    eng_str_add_n(&file, prefix, version == 1 ? 10 : 12);
    eng_str_add_n(&file, header.text, header.n);
    eng_str_add_n(&file, data, n);
    put("a.npy", file.text, file.n);
    eng_str_free(&file);
    eng_str_free(&header);
}

static void import_npy(void **state)
{
    (void)state;
    const int64_t start = 0;
    const int64_t wide[] = {7, 999, 0, 3, 3, 41}, negative[] = {7, -1, 5};
    const int32_t narrow[] = {7, 999, 0, 3, 3, 41}, narrow_negative[] = {-2};
    const uint64_t huge[] = {7, UINT64_MAX};
    const uint16_t shorts[] = {7, 999, 0, 3, 3, 41};
    put_npy(1, "<u4", "(6,)", IDS, sizeof IDS);
    assert_import("a.npy", IDS, 6, &start, 1);
    put_npy(2, "<i8", "(6,)", wide, sizeof wide);
    assert_import("a.npy", IDS, 6, &start, 1);
    put_npy(1, "<i4", "(6,)", narrow, sizeof narrow);
    assert_import("a.npy", IDS, 6, &start, 1);
    put_npy(3, "<u8", "(6,)", wide, sizeof wide);
    assert_import("a.npy", IDS, 6, &start, 1);
    put_npy(1, "<u2", "(6,)", shorts, sizeof shorts);
    assert_import("a.npy", IDS, 6, &start, 1);

    put_npy(1, "<i8", "(3,)", negative, sizeof negative);
    assert_import_fails("a.npy", ENG_BAD_DATA, "a.npy: index 1: id -1 is not in");
    put_npy(1, "<i4", "(1,)", narrow_negative, sizeof narrow_negative);
    assert_import_fails("a.npy", ENG_BAD_DATA, "index 0: id -2");
    put_npy(1, "<u8", "(2,)", huge, sizeof huge);
    assert_import_fails("a.npy", ENG_BAD_DATA, "index 1: id 18446744073709551615");
    put_npy(1, "<f4", "(6,)", IDS, sizeof IDS);
    assert_import_fails("a.npy", ENG_BAD_DATA, "'descr' is '<f4'");
    put_npy(1, ">u4", "(6,)", IDS, sizeof IDS);
    assert_import_fails("a.npy", ENG_BAD_DATA, "'descr' is '>u4'");
    put_npy(1, "<u4", "(2, 3)", IDS, sizeof IDS);
    assert_import_fails("a.npy", ENG_BAD_DATA, "'shape' is (2, 3)");
    put_npy(1, "<u4", "(6,)", IDS, sizeof IDS - 4);
    assert_import_fails("a.npy", ENG_BAD_DATA, "'shape' promises 6");
    put_npy(1, "<u4", "(4611686018427387905,)", IDS, sizeof IDS);
    assert_import_fails("a.npy", ENG_BAD_DATA, "'shape' promises");
    put_npy(4, "<u4", "(6,)", IDS, sizeof IDS);
    assert_import_fails("a.npy", ENG_BAD_DATA, "version 4");
    put("a.npy", "\x93NUMPY\x01\x00\xff\xff{}", 12);
    assert_import_fails("a.npy", ENG_BAD_DATA, "truncated");
    put("a.npy", IDS, sizeof IDS);
    assert_import_fails("a.npy", ENG_BAD_DATA, "not a .npy file");
}

static void import_json_lines(void **state)
{
    (void)state;
    put_text("a.jsonl", "[7, 999]\r\n{\"ids\": [0, 3, 3]}\n \t\n[]\n{\"tokens\": [41], \"x\": 1}");
    assert_import("a.jsonl", IDS, 6, STARTS, 3);
    put_text("a.jsonl", "[1]\n[2, -5]\n");
    assert_import_fails("a.jsonl", ENG_BAD_DATA, "a.jsonl: line 2, element 1: id -5 is not in");
    put_text("a.jsonl", "[1]\n\n[1000]\n");
    assert_import_fails("a.jsonl", ENG_BAD_DATA, "line 3, element 0: id 1000");
    put_text("a.jsonl", "[1.5]\n");
    assert_import_fails("a.jsonl", ENG_BAD_DATA, "line 1, element 0: not an integer");
    put_text("a.jsonl", "[1]\n[2, 3\n");
    assert_import_fails("a.jsonl", ENG_BAD_DATA, "line 2: not JSON");
    put_text("a.jsonl", "{\"text\": \"hello\"}\n");
    assert_import_fails("a.jsonl", ENG_BAD_DATA, "line 1: neither");
    put_text("a.jsonl", "[]\n");
    assert_import_fails("a.jsonl", ENG_BAD_DATA, "no token");
}

static void import_names(void **state)
{
    (void)state;
    EngStream stream;
    EngErr err = {0};
    put("a.bin", IDS, sizeof IDS);
    assert_int_equal(import("a.bin", "prose", &stream, &err), ENG_USAGE);
    assert_contains(err.text, "'prose' is reserved");
    assert_int_equal(import("a.bin", "../x", &stream, &err), ENG_USAGE);
    put("two words.bin", IDS, sizeof IDS);
    assert_int_equal(import("two words.bin", NULL, &stream, &err), ENG_USAGE);
    assert_contains(err.text, "--name");
    assert_int_equal(import("two words.bin", "two-words", &stream, &err), ENG_OK);
    eng_stream_close(&stream);
}

/* A failed import leaves the earlier stream of that name readable and no temporary files. */
static void failed_import_changes_nothing(void **state)
{
    (void)state;
    EngStream stream;
    EngErr err = {0};
    put("a.bin", IDS, sizeof IDS);
    assert_int_equal(import("a.bin", "kept", &stream, &err), ENG_OK);
    eng_stream_close(&stream);
    put_text("a.jsonl", "[1, 2]\n[-1]\n");
    assert_int_equal(import("a.jsonl", "kept", &stream, &err), ENG_BAD_DATA);
    eng_file_fail_after(10);
    assert_int_equal(import("a.bin", "kept", &stream, &err), ENG_IO);
    eng_file_fail_after(-1);
    assert_contains(err.text, "kept.ids");
    assert_int_equal(eng_stream_find(g_dir, "kept", &stream, &err), ENG_OK);
    assert_memory_equal(stream.ids, IDS, sizeof IDS);
    eng_stream_close(&stream);
}

/* Every allocation of an import and of an open fails once; each is reported, none leaks. */
static void allocation_failures(void **state)
{
    (void)state;
    put("a.bin", IDS, sizeof IDS);
    uint64_t live = eng_mem_live_blocks();
    bool finished = false;
    for (uint64_t n = 1; n < 100 && !finished; n++) {
        EngStream stream;
        EngErr err = {0};
        eng_mem_fail_at(n);
        EngStatus status = import("a.bin", "log", &stream, &err);
        eng_mem_fail_at(0);
        finished = status == ENG_OK;
        if (!finished) assert_int_equal(status, ENG_NO_MEMORY);
        eng_stream_close(&stream);
        assert_int_equal(eng_mem_live_blocks(), live);
    }
    assert_true(finished);
}

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(g_dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", g_dir);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(damaged_headers),
        cmocka_unit_test(damaged_ids),
        cmocka_unit_test(id_out_of_vocabulary),
        cmocka_unit_test(names),
        cmocka_unit_test(generated_streams_are_reproducible),
        cmocka_unit_test(generated_streams_have_their_distribution),
        cmocka_unit_test(reserved_names),
        cmocka_unit_test(import_raw),
        cmocka_unit_test(import_npy),
        cmocka_unit_test(import_json_lines),
        cmocka_unit_test(import_names),
        cmocka_unit_test(failed_import_changes_nothing),
        cmocka_unit_test(allocation_failures),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
