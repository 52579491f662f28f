/* Safetensors files: sound ones read as they were written, each kind of unsound one is refused with
 * a line that names what is wrong, and thousands of mutated headers neither crash nor get through
 * with tensors that do not tile the file.
 */
#include "kernels_test.h"

#include "base/mem.h"
#include "kernels/store/safetensors.h"

#include <sys/mman.h>
#include <unistd.h>

typedef struct Made {
    char header[4096];
    size_t n;        /* of the header */
    uint64_t length; /* written before it */
    uint64_t data_bytes;
} Made;

static int g_fd;
static char g_path[64];

static int open_memory(void **state)
{
    (void)state;
    g_fd = memfd_create("safetensors", 0);
    snprintf(g_path, sizeof g_path, "/proc/self/fd/%d", g_fd);
    return g_fd < 0;
}

static void write_made(const Made *made)
{
    assert_int_equal(ftruncate(g_fd, 0), 0);
    assert_int_equal(pwrite(g_fd, &made->length, 8, 0), 8);
    assert_int_equal(pwrite(g_fd, made->header, made->n, 8), (ssize_t)made->n);
    assert_int_equal(ftruncate(g_fd, (off_t)(8 + made->n + made->data_bytes)), 0);
}

static Made make(const char *header, uint64_t data_bytes)
{
    Made made = {.n = strlen(header), .data_bytes = data_bytes};
    made.length = made.n;
    memcpy(made.header, header, made.n);
    return made;
}

/* What an opened file promises, whatever was in it. */
static void check_sound(const EngSafetensors *file)
{
    uint64_t at = file->file_bytes;
    if (file->n) at = file->tensors[0].offset;
    for (size_t i = 0; i < file->n; i++) {
        const EngTensor *tensor = &file->tensors[i];
        assert_int_equal(tensor->offset, at); /* neither overlap nor gap */
        at += tensor->bytes;
        assert_in_range(tensor->n_dims, 0, ENG_SAFETENSORS_MAX_DIMS);
        assert_non_null(tensor->name);
        assert_non_null(tensor->dtype);
        __uint128_t elements = 1;
        for (int d = 0; d < tensor->n_dims; d++) {
            assert_true(tensor->shape[d] >= 0);
            elements *= (uint64_t)tensor->shape[d];
            if (!elements) break;
            assert_true(elements < (__uint128_t)1 << 63);
        }
        assert_true(elements * 64 >= (__uint128_t)tensor->bytes); /* bits of the widest: 64 */
        assert_true(!elements == !tensor->bytes);
    }
    assert_int_equal(at, file->file_bytes);
}

static void expect(const Made *made, EngStatus status, const char *text)
{
    EngSafetensors file;
    EngErr err = {0};
    uint64_t live = eng_mem_live_blocks();
    write_made(made);
    EngStatus got = eng_safetensors_open(g_path, &file, &err);
    if (got != status) fail_msg("%s: status %d, %s", made->header, (int)got, err.text);
    if (!got) check_sound(&file);
    if (got && (!strstr(err.text, text) || !strstr(err.text, g_path)))
        fail_msg("no '%s' in: %s", text, err.text);
    eng_safetensors_close(&file);
    assert_int_equal(eng_mem_live_blocks(), live);
}

#define T(name, dtype, shape, begin, end)                                                          \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end \
    "]}"

static void test_refusals(void **state)
{
    static const struct {
        const char *header;
        uint64_t data_bytes;
        const char *text; /* NULL: sound */
    } cases[] = {
        {"{}", 0, NULL},
        {"{\"__metadata__\":{\"format\":\"pt\"}}", 0, NULL},
        {"{" T("a", "U8", "[3]", 0, 3) "," T("b", "F32", "[2,1]", 3, 11) "}", 11, NULL},
        {"{" T("b", "F32", "[2]", 3, 11) "," T("a", "U8", "[3]", 0, 3) "}   ", 11, NULL},
        {"{" T("a", "F32", "[]", 0, 4) "}", 4, NULL},
        {"{" T("a", "F4", "[2,3]", 0, 3) "}", 3, NULL},
        {"{" T("z", "F32", "[0,7]", 0, 0) "," T("a", "U8", "[2]", 0, 2) "}", 2, NULL},
        {"{" T("z", "F32", "[0,9223372036854775807,9223372036854775807]", 0, 0) "}", 0, NULL},
        {"", 8, "no JSON"},
        {"{", 0, "no JSON"},
        {"[]", 0, "no JSON object"},
        {"{} x", 0, "no JSON"},
        {"{\"a\":1}", 0, "'a': no object"},
        {"{" T("a", "U8", "[1]", 0, 1) "," T("a", "U8", "[1]", 0, 1) "}", 1, "no JSON"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "'a': no object of dtype"},
        {"{" T("a", "F7", "[1]", 0, 1) "}", 1, "'a': unknown dtype"},
        {"{\"a\":{\"dtype\":8,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "'a': unknown dtype"},
        {"{" T("a", "U8", "[-1]", 0, 1) "}", 1, "'a': shape"},
        {"{" T("a", "U8", "[1.0]", 0, 1) "}", 1, "'a': shape"},
        {"{" T("a", "U8", "1", 0, 1) "}", 1, "'a': shape"},
        {"{" T("a", "U8", "[1,1,1,1,1,1,1,1,1]", 0, 1) "}", 1, "'a': shape"},
        {"{" T("a", "U8", "[4294967296,4294967297]", 0, 4294967296) "}", 1, "'a': shape"},
        {"{" T("a", "F64", "[1152921504606846976,16]", 0, 0) "}", 0, "'a': shape"},
        {"{" T("a", "U8", "[2]", 0, 1) "}", 1, "'a': 1 bytes of data, but its shape"},
        {"{" T("a", "F32", "[1]", 0, 2) "}", 2, "dtype F32 take 4 bytes"},
        {"{" T("a", "F4", "[3]", 0, 1) "}", 1, "and a part of bytes"},
        {"{" T("a", "U8", "[2]", 0, 2) "}", 1, "'a': data_offsets"},
        {"{" T("a", "U8", "[2]", 2, 0) "}", 2, "'a': data_offsets"},
        {"{" T("a", "U8", "[1]", -1, 0) "}", 2, "'a': data_offsets"},
        {"{" T("a", "U8", "[1]", 9223372036854775807, 9223372036854775807) "}", 2, "data_offsets"},
        {"{" T("a", "U8", "[1]", 99999999999999999999, 0) "}", 2, "no JSON"},
        {"{" T("a", "U8", "[4]", 0, 4) "," T("b", "U8", "[4]", 3, 7) "}", 7,
         "overlaps that of 'a'"},
        {"{" T("a", "U8", "[4]", 0, 4) "," T("b", "U8", "[4]", 0, 4) "}", 4,
         "overlaps that of 'a'"},
        {"{" T("a", "U8", "[4]", 0, 4) "," T("b", "U8", "[2]", 5, 7) "}", 7,
         "'b': a gap of 1 bytes"},
        {"{" T("a", "U8", "[1]", 1, 2) "}", 2, "'a': a gap of 1 bytes"},
        {"{" T("a", "U8", "[1]", 0, 1) "}", 3, "2 bytes at its end belong to no tensor"},
        {"{}", 5, "5 bytes at its end"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Made made = make(cases[i].header, cases[i].data_bytes);
        expect(&made, cases[i].text ? ENG_BAD_DATA : ENG_OK, cases[i].text);
    }
}

/* The length before the header is compared with the file before it is believed. */
static void test_lengths(void **state)
{
    static const uint64_t lengths[] = {3,         1000,       100000001,     UINT32_MAX,
                                       INT64_MAX, UINT64_MAX, UINT64_MAX - 7};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        Made made = make("{}", 0);
        made.length = lengths[i];
        expect(&made, ENG_BAD_DATA, "truncated, or no safetensors file");
    }
    Made made = make("{}", 0);
    made.length = 1;
    expect(&made, ENG_BAD_DATA, "no JSON");
    for (int n = 0; n < 8; n++) {
        EngSafetensors file;
        EngErr err = {0};
        assert_int_equal(ftruncate(g_fd, n), 0);
        assert_int_equal(eng_safetensors_open(g_path, &file, &err), ENG_BAD_DATA);
        assert_non_null(strstr(err.text, "no safetensors file"));
    }
    EngSafetensors file;
    EngErr err = {0};
    assert_int_equal(eng_safetensors_open("/no/such/file", &file, &err), ENG_BAD_DATA);
    assert_int_equal(eng_safetensors_open("/tmp", &file, &err), ENG_BAD_DATA);
}

static void test_find(void **state)
{
    EngSafetensors file;
    EngErr err = {0};
    Made made = make("{" T("model.x.w", "U8", "[3]", 0, 3) "," T("w", "U8", "[1]", 3, 4) "," T(
                         "a.y.w", "U8", "[1]", 4, 5) "," T("b.y.w", "U8", "[1]", 5, 6) "}",
                     6);
    (void)state;
    write_made(&made);
    assert_int_equal(eng_safetensors_open(g_path, &file, &err), ENG_OK);
    assert_int_equal(eng_safetensors_find(&file, "x.w")->bytes, 3);
    assert_string_equal(eng_safetensors_find(&file, "w")->name, "w");
    assert_null(eng_safetensors_find(&file, "y.w")); /* two of them */
    assert_null(eng_safetensors_find(&file, "el.x.w"));
    assert_null(eng_safetensors_find(&file, "z"));
    eng_safetensors_close(&file);
}

/* A shard as V4.1 has it, 101 GB in a sparse file: offsets beyond 32 bits. */
static void test_production_size(void **state)
{
    static const char header[] =
        "{\"layers.14.engram.embed.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[384016682,256],"
        "\"data_offsets\":[0,98308270592]},\"layers.14.engram.embed.scale\":{\"dtype\":\"F8_E8M0\","
        "\"shape\":[384016682,8],\"data_offsets\":[98308270592,101380404048]}}";
    EngSafetensors file;
    EngErr err = {0};
    (void)state;
    Made made = make(header, 101380404048);
    write_made(&made);
    if (eng_safetensors_open(g_path, &file, &err)) fail_msg("%s", err.text);
    check_sound(&file);
    const EngTensor *scale = eng_safetensors_find(&file, "layers.14.engram.embed.scale");
    assert_int_equal(scale->offset, 8 + made.n + 98308270592);
    assert_int_equal(scale->bytes, 3072133456);
    eng_safetensors_close(&file);
    made.data_bytes--;
    expect(&made, ENG_BAD_DATA, "data_offsets: no [begin, end] within the 101380404047 bytes");
}

static void test_no_memory(void **state)
{
    Made made = make("{" T("a", "U8", "[3]", 0, 3) "," T("b", "U8", "[1]", 3, 4) "}", 4);
    int failures = 0;
    (void)state;
    write_made(&made);
    for (uint64_t n = 1;; n++) {
        EngSafetensors file;
        EngErr err = {0};
        uint64_t live = eng_mem_live_blocks();
        eng_mem_fail_at(n);
        EngStatus status = eng_safetensors_open(g_path, &file, &err);
        eng_mem_fail_at(0);
        eng_safetensors_close(&file);
        assert_int_equal(eng_mem_live_blocks(), live);
        if (!status) break;
        assert_int_equal(status, ENG_NO_MEMORY);
        failures++;
    }
    assert_in_range(failures, 3, 20);
}

/* ---- mutations ---- */

/* Up to six tensors that tile the data; the generator of headers that nearly hold. */
static Made random_header(EngRng *rng)
{
    static const struct {
        const char *name;
        int bytes;
    } types[] = {{"U8", 1}, {"BF16", 2}, {"F8_E4M3", 1}, {"F8_E8M0", 1}, {"F32", 4}, {"I64", 8}};
    Made made = {0};
    int n = 1 + (int)eng_rng_below(rng, 6), moved = (int)eng_rng_below(rng, 12);
    uint64_t at = 0;
    made.n = (size_t)snprintf(made.header, sizeof made.header, "{\"__metadata__\":{\"k\":\"v\"}");
    for (int i = 0; i < n; i++) {
        int type = (int)eng_rng_below(rng, 6);
        unsigned a = (unsigned)eng_rng_below(rng, 6), b = 1 + (unsigned)eng_rng_below(rng, 5);
        uint64_t bytes = (uint64_t)a * b * (uint64_t)types[type].bytes, begin = at,
                 end = at + bytes;
        if (moved == i) begin -= begin ? 1 + eng_rng_below(rng, begin) : 0, end = begin + bytes;
        made.n += (size_t)snprintf(made.header + made.n, sizeof made.header - made.n,
                                   ",\"t%d\":{\"dtype\":\"%s\",\"shape\":[%u,%u],"
                                   "\"data_offsets\":[%llu,%llu]}",
                                   i, types[type].name, a, b, (unsigned long long)begin,
                                   (unsigned long long)end);
        at += bytes;
    }
    made.n += (size_t)snprintf(made.header + made.n, sizeof made.header - made.n, "}");
    made.length = made.n;
    made.data_bytes = at;
    return made;
}

/* Puts `text` where `cut` bytes were. */
static void splice(Made *made, size_t at, size_t cut, const char *text)
{
    size_t n = strlen(text);
    if (cut > made->n - at) cut = made->n - at;
    if (made->n - cut + n > sizeof made->header) return;
    memmove(made->header + at + n, made->header + at + cut, made->n - at - cut);
    memcpy(made->header + at, text, n);
    made->n += n - cut;
}

static void mutate(Made *made, EngRng *rng)
{
    static const char *const words[] = {"0",
                                        "-1",
                                        "1",
                                        "9223372036854775807",
                                        "18446744073709551616",
                                        "4294967296",
                                        "1e3",
                                        "null",
                                        "[]",
                                        "{}",
                                        "\"\"",
                                        ",",
                                        ":",
                                        "[",
                                        "}",
                                        "\"t0\":",
                                        "true",
                                        "65535",
                                        "\\u0000",
                                        "\xff"};
    size_t at = (size_t)eng_rng_below(rng, made->n);
    switch (eng_rng_below(rng, 7)) {
    case 0:
        made->header[at] ^= (char)(1 << eng_rng_below(rng, 8));
        break;
    case 1: { /* a number, or what stands from here, by a word */
        size_t from = at, end;
        while (from < made->n && !(made->header[from] >= '0' && made->header[from] <= '9')) from++;
        for (end = from; end < made->n && made->header[end] >= '0' && made->header[end] <= '9';)
            end++;
        splice(made, from < made->n ? from : at, end - from,
               words[eng_rng_below(rng, sizeof words / sizeof *words)]);
        break;
    }
    case 2:
        splice(made, at, (size_t)eng_rng_below(rng, 8), "");
        break;
    case 3:
        splice(made, at, 0, words[eng_rng_below(rng, sizeof words / sizeof *words)]);
        break;
    case 4:
        made->data_bytes = eng_rng_below(rng, 2 * made->data_bytes + 2);
        return;
    case 5: { /* a digit more or less */
        char *digit = memchr(made->header + at, '1', made->n - at);
        if (digit) *digit = (char)('0' + eng_rng_below(rng, 10));
        break;
    }
    default:
        made->length =
            eng_rng_below(rng, 3) ? made->n + eng_rng_below(rng, 20) - 10 : eng_rng_u64(rng);
        return;
    }
    if (eng_rng_below(rng, 8)) made->length = made->n;
}

static void test_mutations(void **state)
{
    int64_t sound = 0, cases = 20000;
    EngRng rng;
    (void)state;
    eng_rng_seed(&rng, 20261129);
    for (int64_t i = 0; i < cases; i++) {
        EngSafetensors file;
        EngErr err = {0};
        uint64_t live = eng_mem_live_blocks();
        Made made = random_header(&rng);
        for (uint64_t n = eng_rng_below(&rng, 4); n > 0; n--) mutate(&made, &rng);
        write_made(&made);
        EngStatus status = eng_safetensors_open(g_path, &file, &err);
        if (!status)
            check_sound(&file);
        else
            assert_int_equal(status, ENG_BAD_DATA);
        if (status) assert_null(strchr(err.text, '\n'));
        eng_safetensors_close(&file);
        assert_int_equal(eng_mem_live_blocks(), live);
        sound += !status;
    }
    /* Both ends were reached: plenty hold, plenty do not. */
    assert_in_range(sound, cases / 20, cases * 19 / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),  cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_find),      cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_mutations), cmocka_unit_test(test_production_size),
    };
    return cmocka_run_group_tests(tests, open_memory, NULL);
}
