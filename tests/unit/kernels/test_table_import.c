/* Import of checkpoint files: rows arrive bit for bit, whole, sharded and in every fp8 row format;
 * what does not fit is refused by name. The files are made by tests/oracle/safetensors_files.py,
 * and their bytes follow its formulas.
 */
#include "kernels_test.h"

#include "base/file.h"
#include "base/mem.h"
#include "kernels/store/table_import.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DATA ENG_SOURCE_DIR "/tests/data/safetensors/"
#define DIMS 64

static char g_dir[64], g_out[128];

static int make_dir(void **state)
{
    (void)state;
    strcpy(g_dir, "/tmp/table_import.XXXXXX");
    if (!mkdtemp(g_dir)) return -1;
    snprintf(g_out, sizeof g_out, "%s/table", g_dir);
    return 0;
}

static int remove_dir(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", g_dir);
    return system(command);
}

static uint8_t weight_byte(int64_t row, int i)
{
    return (uint8_t)(37 * row + 11 * i + row / 251);
}

static uint8_t scale_byte(int64_t row, int group)
{
    return (uint8_t)(112 + (row + group) % 12);
}

static EngTableImport ask(const char *const *from, int n, int layer, int format)
{
    return (EngTableImport){.from = from, .n_from = n, .layer = layer, .format = format};
}

static void import(const EngTableImport *import, EngTableFile *file)
{
    EngErr err = {0};
    unlink(g_out);
    if (eng_table_import(g_out, import, 2, NULL, &err)) fail_msg("%s", err.text);
    if (eng_table_file_open(g_out, file, &err)) fail_msg("%s", err.text);
    if (eng_table_file_verify(file, 1, &err)) fail_msg("%s", err.text);
}

static void check_rows(const EngTableFile *file, int64_t rows)
{
    EngErr err = {0};
    assert_int_equal(file->rows, rows);
    assert_int_equal(file->row_dims, DIMS);
    for (int64_t row = 0; row < rows; row++) {
        uint8_t bytes[512], *scales = bytes + DIMS;
        size_t n = eng_row_value_bytes(file->format, DIMS);
        assert_int_equal(eng_file_read_at(file->fd, file->path, bytes, n,
                                          file->values_offset + (uint64_t)row * file->stride_bytes,
                                          &err),
                         0);
        if (file->scale_bytes)
            assert_int_equal(
                eng_file_read_at(file->fd, file->path, scales, file->scale_bytes,
                                 file->scales_offset + (uint64_t)row * file->scale_bytes, &err),
                0);
        for (int i = 0; i < DIMS; i++) assert_int_equal(bytes[i], weight_byte(row, i));
        for (int g = 0; g < DIMS / 32; g++) assert_int_equal(scales[g], scale_byte(row, g));
    }
}

static void test_formats(void **state)
{
    static const char *const from[] = {DATA "whole.safetensors"};
    static const EngRowFormat formats[] = {ENG_ROW_FP8, ENG_ROW_FP8_PACKED, ENG_ROW_FP8_PAD272,
                                           ENG_ROW_FP8_PAD288};
    (void)state;
    for (int i = -1; i < 4; i++) {
        EngTableFile file;
        EngTableImport wanted = ask(from, 1, i & 1 ? 1 : 14, i < 0 ? -1 : (int)formats[i]);
        import(&wanted, &file);
        assert_int_equal(file.format, i < 0 ? ENG_ROW_FP8 : formats[i]);
        check_rows(&file, i & 1 ? 77 : 83);
        assert_non_null(strstr(file.description, "\"content\":\"safetensors\""));
        assert_non_null(strstr(file.description, "content_sha256"));
        eng_table_file_close(&file);
    }
}

/* However the rows are cut into files, it is the same table. */
static void test_shards(void **state)
{
    static const char *const whole[] = {DATA "whole.safetensors"},
                             *const index[] = {DATA "model.safetensors.index.json"},
                             *const both[] = {DATA "model-00047-of-00048.safetensors",
                                              DATA "model-00048-of-00048.safetensors"},
                             *const ranks[] = {
                                 DATA "model0-mp4.safetensors", DATA "model1-mp4.safetensors",
                                 DATA "model2-mp4.safetensors", DATA "model3-mp4.safetensors"};
    (void)state;
    for (int layer = 1; layer <= 14; layer += 13) {
        char digest[ENG_KEY_HEX];
        EngTableFile file;
        EngTableImport wanted = ask(whole, 1, layer, -1);
        import(&wanted, &file);
        memcpy(digest, file.digest, sizeof digest);
        eng_table_file_close(&file);
        for (int way = 0; way < (layer == 1 ? 3 : 2); way++) {
            wanted = way == 0   ? ask(index, 1, layer, -1)
                     : way == 1 ? ask(both, 2, layer, -1)
                                : ask(ranks, 4, layer, -1);
            wanted.rows = layer == 1 ? 77 : 83; /* the last rank ends with padding */
            import(&wanted, &file);
            check_rows(&file, wanted.rows);
            assert_string_equal(file.digest, digest);
            eng_table_file_close(&file);
        }
    }
    EngTableFile file;
    EngTableImport wanted = ask(ranks, 4, 1, ENG_ROW_FP8_PACKED);
    import(&wanted, &file); /* padding included: weight 0, scale 1 */
    assert_int_equal(file.rows, 80);
    uint8_t row[66];
    EngErr err = {0};
    assert_int_equal(
        eng_file_read_at(file.fd, file.path, row, 66, file.values_offset + 79 * 66, &err), 0);
    for (int i = 0; i < 66; i++) assert_int_equal(row[i], i < DIMS ? 0 : 127);
    eng_table_file_close(&file);
}

/* A file counts once, however its path is spelled. */
static void test_spellings(void **state)
{
    char link[128];
    const char *const from[] = {DATA "whole.safetensors", DATA "./whole.safetensors", link};
    EngTableFile file;
    EngTableImport wanted = ask(from, 3, 1, -1);
    (void)state;
    snprintf(link, sizeof link, "%s/link.safetensors", g_dir);
    assert_int_equal(symlink(DATA "whole.safetensors", link), 0);
    import(&wanted, &file);
    check_rows(&file, 77);
    eng_table_file_close(&file);
}

/* A tensor of just that name is meant, not one of another file whose name only ends so. */
static void test_whole_name(void **state)
{
    static const char *const from[] = {DATA "model-00047-of-00048.safetensors",
                                       DATA "model0-mp4.safetensors", DATA "model1-mp4.safetensors",
                                       DATA "model2-mp4.safetensors",
                                       DATA "model3-mp4.safetensors"};
    EngTableFile file;
    EngTableImport wanted = ask(from, 5, 1, -1);
    (void)state;
    wanted.weight = "layers.1.engram.embed.weight";
    wanted.rows = 77;
    import(&wanted, &file);
    check_rows(&file, 77);
    eng_table_file_close(&file);
}

static void test_bf16(void **state)
{
    static const char *const from[] = {DATA "bf16.safetensors"};
    uint16_t row[40];
    EngTableFile file;
    EngErr err = {0};
    EngTableImport wanted = {.from = from, .n_from = 1, .weight = "table.weight", .format = -1};
    (void)state;
    import(&wanted, &file);
    assert_int_equal(file.format, ENG_ROW_BF16);
    assert_int_equal(file.rows, 9);
    for (int r = 0; r < 9; r++) {
        assert_int_equal(eng_file_read_at(file.fd, file.path, row, sizeof row,
                                          file.values_offset + (uint64_t)r * sizeof row, &err),
                         0);
        for (int i = 0; i < 40; i++) assert_int_equal(row[i], 40 * r + i);
    }
    eng_table_file_close(&file);
}

static void expect(const EngTableImport *wanted, EngStatus status, const char *text)
{
    EngErr err = {0};
    uint64_t live = eng_mem_live_blocks();
    unlink(g_out);
    assert_int_equal(eng_table_import(g_out, wanted, 1, NULL, &err), status);
    if (!strstr(err.text, text)) fail_msg("no '%s' in: %s", text, err.text);
    assert_int_not_equal(access(g_out, F_OK), 0);
    assert_int_equal(eng_mem_live_blocks(), live);
}

static void write_file(const char *name, const char *header, size_t data)
{
    char path[128];
    uint8_t bytes[4096] = {0};
    EngErr err = {0};
    uint64_t n = strlen(header);
    snprintf(path, sizeof path, "%s/%s", g_dir, name);
    memcpy(bytes, &n, 8);
    memcpy(bytes + 8, header, n);
    assert_int_equal(eng_file_write(path, bytes, 8 + n + data, &err), 0);
}

#define W "\"layers.1.engram.embed.weight\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[0,%d]}"
#define S "\"layers.1.engram.embed.scale\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%d,%d]}"

static void test_refusals(void **state)
{
    static const char *const whole[] = {DATA "whole.safetensors"},
                             *const none[] = {"/none.safetensors"},
                             *const mixed[] = {DATA "whole.safetensors", DATA "bf16.safetensors"},
                             *const two[] = {DATA "model0-mp4.safetensors",
                                             DATA "model-00047-of-00048.safetensors"};
    static const struct {
        const char *w_type, *w_shape, *s_type, *s_shape;
        int w, s;
        const char *text;
    } cases[] = {
        {"F8_E4M3", "[2,64]", "F8_E8M0", "[2,1]", 128, 2, "need F8_E8M0 of one scale for 32"},
        {"F8_E4M3", "[2,64]", "F8_E8M0", "[3,2]", 128, 6, "need F8_E8M0"},
        {"F8_E4M3", "[2,64]", "U8", "[2,2]", 128, 4, "is U8 [2, 2]"},
        {"F8_E4M3", "[2,40]", "F8_E8M0", "[2,1]", 80, 2, "need F8_E8M0"},
        {"F8_E4M3", "[128]", "F8_E8M0", "[2,2]", 128, 4, "not [rows, columns]"},
        {"F8_E4M3", "[0,64]", "F8_E8M0", "[0,2]", 0, 0, "not [rows, columns]"},
        {"F8_E5M2", "[2,64]", "F8_E8M0", "[2,2]", 128, 4, "is F8_E5M2; rows are"},
    };
    char path[128], header[512];
    const char *made[] = {path};
    (void)state;
    EngTableImport wanted = ask(whole, 1, 2, -1);
    expect(&wanted, ENG_BAD_DATA, "whole.safetensors: no tensor 'layers.2.engram.embed.weight'");
    wanted = ask(none, 1, 1, -1);
    expect(&wanted, ENG_BAD_DATA, "/none.safetensors: no such file");
    wanted = ask(whole, 1, 1, ENG_ROW_INT4);
    expect(&wanted, ENG_USAGE, "is F8_E4M3: rows of format int4 would have other values");
    wanted = ask(whole, 1, 1, -1);
    wanted.rows = 78;
    expect(&wanted, ENG_USAGE, "has 77 rows, not 78");
    wanted.rows = 0, wanted.row_dims = 256;
    expect(&wanted, ENG_BAD_DATA, "rows of 64 dims, not 256");
    wanted = ask(mixed, 2, 1, -1);
    wanted.weight = "q_weight";
    expect(&wanted, ENG_BAD_DATA, "and the other files: no tensor 'q_weight'"); /* two of them */
    wanted = ask(two, 2, 1, -1);
    wanted.weight = "1.engram.embed.weight";
    expect(&wanted, ENG_BAD_DATA,
           "00048.safetensors: tensors 'layers.1.engram.embed.weight' and "
           "'model.layers.1.engram.embed.weight' are two");
    snprintf(path, sizeof path, "%s/made.safetensors", g_dir);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(header, sizeof header, "{" W "," S "}", cases[i].w_type, cases[i].w_shape,
                 cases[i].w, cases[i].s_type, cases[i].s_shape, cases[i].w,
                 cases[i].w + cases[i].s);
        write_file("made.safetensors", header, (size_t)(cases[i].w + cases[i].s));
        wanted = ask(made, 1, 1, -1);
        expect(&wanted, ENG_BAD_DATA, cases[i].text);
        expect(&wanted, ENG_BAD_DATA, path);
    }
    snprintf(header, sizeof header, "{" W "}", "F8_E4M3", "[2,64]", 128);
    write_file("made.safetensors", header, 128);
    expect(&wanted, ENG_BAD_DATA, "there is no 'layers.1.engram.embed.scale'");
}

static void test_indexes(void **state)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"{", "no index"},
        {"{\"weight_map\":[]}", "no index"},
        {"{\"weight_map\":{}}", "no tensor 'layers.1"},
        {"{\"weight_map\":{\"layers.1.engram.embed.weight\":\"gone.safetensors\"}}",
         "gone.safetensors: no such file"},
        {"{\"weight_map\":{\"layers.1.engram.embed.weight\":\"../x\"}}", "not a file beside it"},
        {"{\"weight_map\":{\"a.layers.1.engram.embed.weight\":\"x\","
         "\"b.layers.1.engram.embed.weight\":\"y\"}}",
         "x.index.json: tensors 'a.layers.1.engram.embed.weight' and 'b.layers.1.engram"},
        {"{\"weight_map\":{\"layers.1.engram.embed.weight\":3}}", "no tensor 'layers.1"},
        {"{\"weight_map\":{\"layers.1.engram.embed.weight\":\"\"}}", "not a regular file"},
    };
    char path[128];
    const char *from[] = {path};
    EngErr err = {0};
    (void)state;
    snprintf(path, sizeof path, "%s/x.index.json", g_dir);
    EngTableImport wanted = ask(from, 1, 1, -1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(eng_file_write(path, cases[i].text, strlen(cases[i].text), &err), 0);
        expect(&wanted, ENG_BAD_DATA, cases[i].said);
    }
    unlink(path);
    expect(&wanted, ENG_BAD_DATA, "no such file");
}

static void test_no_memory(void **state)
{
    static const char *const from[] = {DATA "model.safetensors.index.json"};
    int failures = 0;
    (void)state;
    for (uint64_t n = 1;; n++) {
        EngErr err = {0};
        EngTableImport wanted = ask(from, 1, 14, ENG_ROW_FP8_PACKED);
        uint64_t live = eng_mem_live_blocks();
        unlink(g_out);
        eng_mem_fail_at(n);
        EngStatus status = eng_table_import(g_out, &wanted, 1, NULL, &err);
        eng_mem_fail_at(0);
        assert_int_equal(eng_mem_live_blocks(), live);
        if (!status) break;
        assert_int_equal(status, ENG_NO_MEMORY);
        assert_int_not_equal(access(g_out, F_OK), 0);
        failures++;
    }
    assert_in_range(failures, 15, 200);
}

/* A killed import is not gone on with when a source has changed meanwhile. */
static void test_changed_source(void **state)
{
    char path[128];
    const char *from[] = {path};
    EngErr err = {0};
    EngMapping whole;
    EngTableCreated created;
    int code;
    (void)state;
    for (int changed = 0; changed < 2; changed++) {
        snprintf(path, sizeof path, "%s/source%d.safetensors", g_dir, changed);
        assert_int_equal(eng_file_map(DATA "whole.safetensors", &whole, &err), 0);
        assert_int_equal(eng_file_write(path, whole.data, whole.bytes, &err), 0);
        EngTableImport wanted = ask(from, 1, 1, -1);
        unlink(g_out);
        pid_t child = fork();
        if (!child) { /* header, block, checksum */
            execl("/proc/self/exe", "test_table_import", path, g_out, (char *)NULL);
            _exit(127);
        }
        waitpid(child, &code, 0);
        assert_true(WIFSIGNALED(code));
        if (changed) {
            struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
            assert_int_equal(utimensat(-1, path, times, 0), 0);
        }
        assert_int_equal(eng_table_import(g_out, &wanted, 1, &created, &err), 0);
        assert_int_equal(created.resumed, changed ? 0 : 1);
        eng_file_unmap(&whole);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        const char *from[] = {argv[1]};
        EngTableImport wanted = ask(from, 1, 1, -1);
        setenv("ENG_KILL_AT", "write:3", 1);
        return eng_table_import(argv[2], &wanted, 1, NULL, NULL);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_spellings),      cmocka_unit_test(test_whole_name),
        cmocka_unit_test(test_bf16),           cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_indexes),        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_changed_source),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
