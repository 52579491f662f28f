/* Table files: the rows are those of the memory arena, bit for bit, in every format; a killed
 * creation goes on and ends in the same file; damage of every kind is told with the place.
 */
#include "kernels_test.h"

#include "base/file.h"
#include "base/mem.h"
#include "kernels/store/memory.h"
#include "kernels/store/table_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK ENG_TABLE_FILE_BLOCK_BYTES

static const char *g_self;
static char g_dir[64];

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", g_dir, name);
    return path;
}

static int make_dir(void **state)
{
    (void)state;
    strcpy(g_dir, "/tmp/table_file.XXXXXX");
    return mkdtemp(g_dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", g_dir);
    return system(command);
}

static void create(const char *path, EngRowFormat format, int dims, int64_t rows, int threads)
{
    EngErr err = {0};
    unlink(path);
    if (eng_table_file_create_seeded(path, format, dims, rows, 7, threads, NULL, &err))
        fail_msg("%s", err.text);
}

static EngTableFile open_table(const char *path)
{
    EngTableFile file;
    EngErr err = {0};
    if (eng_table_file_open(path, &file, &err)) fail_msg("%s", err.text);
    return file;
}

static void expect_open(const char *path, EngStatus status, const char *text)
{
    EngTableFile file;
    EngErr err = {0};
    uint64_t live = eng_mem_live_blocks();
    assert_int_equal(eng_table_file_open(path, &file, &err), status);
    if (!strstr(err.text, text) || !strstr(err.text, path))
        fail_msg("no '%s' and file name in: %s", text, err.text);
    assert_int_equal(eng_mem_live_blocks(), live);
}

/* Flips one bit, again to flip it back. */
static void flip(const char *path, uint64_t at)
{
    uint8_t byte;
    int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
    byte ^= 4;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
}

static void compare_region(const EngTableFile *file, uint64_t offset, const uint8_t *want, size_t n)
{
    uint8_t *got = malloc(n + 1);
    EngErr err = {0};
    assert_int_equal(eng_file_read_at(file->fd, file->path, got, n, offset, &err), ENG_OK);
    assert_memory_equal(got, want, n);
    free(got);
}

/* Sizes that fill no last block, and rows that lie across blocks. */
static void test_content(void **state)
{
    static const int dims[] = {256, 96};
    (void)state;
    for (int f = 0; f < ENG_ROW_FORMAT_COUNT; f++)
        for (int d = 0; d < 2; d++) {
            const char *path = path_of("content");
            EngRowFormat format = (EngRowFormat)f;
            EngTableArena arena;
            EngErr err = {0};
            int64_t rows = (int64_t)(BLOCK / eng_row_stride_bytes(format, dims[d])) * 5 / 4 + 3;
            create(path, format, dims[d], rows, d ? 1 : 3);
            EngTableFile file = open_table(path);
            assert_int_equal(file.format, format);
            assert_int_equal(file.row_dims, dims[d]);
            assert_int_equal(file.rows, rows);
            assert_int_equal(file.value_blocks, 2);
            assert_int_equal(file.values_offset % ENG_TABLE_FILE_PAGE, 0);
            assert_int_equal(file.scales_offset % ENG_TABLE_FILE_PAGE, 0);
            assert_int_equal(file.values_bytes,
                             rows * (int64_t)eng_row_stride_bytes(format, dims[d]));
            assert_int_equal(eng_table_arena_create(&arena, format, file.values_bytes, 7, &err), 0);
            assert_int_equal(eng_table_arena_layout(&arena, dims[d], &err), 0);
            compare_region(&file, file.values_offset, arena.values, file.values_bytes);
            assert_int_equal(file.scales_bytes, arena.scale_bytes);
            if (file.scales_bytes)
                compare_region(&file, file.scales_offset, arena.scales, file.scales_bytes);
            assert_int_equal(eng_table_file_verify(&file, 2, &err), ENG_OK);
            eng_table_arena_destroy(&arena);
            eng_table_file_close(&file);
        }
}

/* The identity is that of the content: format, size and seed, not place or threads. */
static void test_digest(void **state)
{
    EngTableCreated one, two, three;
    EngErr err = {0};
    char key[ENG_KEY_HEX];
    (void)state;
    unlink(path_of("a")), unlink(path_of("b"));
    assert_int_equal(
        eng_table_file_create_seeded(path_of("a"), ENG_ROW_FP8, 64, 1000, 1, 1, &one, &err), 0);
    assert_int_equal(
        eng_table_file_create_seeded(path_of("b"), ENG_ROW_FP8, 64, 1000, 1, 4, &two, &err), 0);
    assert_int_equal(
        eng_table_file_create_seeded(path_of("c"), ENG_ROW_FP8, 64, 1000, 2, 1, &three, &err), 0);
    assert_string_equal(one.digest, two.digest);
    assert_string_not_equal(one.digest, three.digest);
    EngTableFile file = open_table(path_of("a"));
    assert_string_equal(file.digest, one.digest);
    assert_string_equal(file.description, "{\"content\":\"seeded random rows\",\"row_dims\":64,"
                                          "\"row_format\":\"fp8\",\"rows\":1000,\"seed\":1}");
    assert_int_equal(eng_key_of(file.description, key, &err), ENG_OK);
    assert_string_equal(file.digest, key);
    eng_table_file_close(&file);
}

static void test_truncated(void **state)
{
    const char *path = path_of("cut");
    char text[64];
    (void)state;
    create(path, ENG_ROW_FP8, 64, 70000, 2);
    EngTableFile file = open_table(path);
    uint64_t whole = file.file_bytes;
    eng_table_file_close(&file);
    const uint64_t sizes[] = {whole - 1, whole - 4096, whole / 2, 4096};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(truncate(path, (off_t)sizes[i]), 0);
        snprintf(text, sizeof text, "truncated: %llu bytes", (unsigned long long)sizes[i]);
        expect_open(path, ENG_BAD_DATA, text);
        snprintf(text, sizeof text, "take %llu", (unsigned long long)whole);
        expect_open(path, ENG_BAD_DATA, text);
    }
    assert_int_equal(truncate(path, (off_t)whole + 4096), 0);
    expect_open(path, ENG_BAD_DATA, "too long");
    assert_int_equal(truncate(path, 4095), 0);
    expect_open(path, ENG_BAD_DATA, "not a table file");
    assert_int_equal(truncate(path, 0), 0);
    expect_open(path, ENG_BAD_DATA, "not a table file");
    expect_open(path_of("nowhere"), ENG_BAD_DATA, "no such file");
    expect_open(g_dir, ENG_BAD_DATA, "not a regular file");
}

/* Every byte of the header page counts. */
static void test_damaged_header(void **state)
{
    const char *path = path_of("header");
    (void)state;
    create(path, ENG_ROW_INT4, 64, 100, 1);
    for (uint64_t at = 0; at < ENG_TABLE_FILE_PAGE; at += at < 256 ? 1 : 97) {
        flip(path, at);
        expect_open(path, ENG_BAD_DATA,
                    at < 8    ? "not a table file"
                    : at < 12 ? "version"
                              : "header");
        flip(path, at);
    }
    EngTableFile file = open_table(path);
    uint64_t checks = file.file_bytes - ENG_TABLE_FILE_PAGE;
    eng_table_file_close(&file);
    flip(path, checks + 5);
    expect_open(path, ENG_BAD_DATA, "list of block checksums");
}

static void expect_verify(const EngTableFile *file, EngStatus status, const char *text)
{
    EngErr err = {0};
    assert_int_equal(eng_table_file_verify(file, 2, &err), status);
    if (status && (!strstr(err.text, text) || !strstr(err.text, file->path)))
        fail_msg("no '%s' in: %s", text, err.text);
}

/* The first bad block is named, with rows that contain the damaged one. */
static void test_damaged_blocks(void **state)
{
    const char *path = path_of("blocks");
    char text[64];
    (void)state;
    create(path, ENG_ROW_FP8, 256, 150000, 2); /* 38.4 MB of values: 10 blocks, and 2 of scales */
    EngTableFile file = open_table(path);
    assert_int_equal(file.value_blocks, 10);
    assert_int_equal(file.scale_blocks, 1);
    uint64_t at[] = {file.values_offset + 9 * BLOCK + 3, file.values_offset + 4 * BLOCK,
                     file.scales_offset + 17};
    for (int i = 0; i < 3; i++) flip(path, at[i]);
    snprintf(text, sizeof text, "block 4 (values of rows %zu to %zu,", 4 * BLOCK / 256,
             5 * BLOCK / 256 - 1);
    expect_verify(&file, ENG_BAD_DATA, text);
    flip(path, at[1]);
    expect_verify(&file, ENG_BAD_DATA, "block 9 (values of rows 147456 to 149999,");
    flip(path, at[0]);
    expect_verify(&file, ENG_BAD_DATA, "block 10 (scales of rows 0 to 149999,");
    flip(path, at[2]);
    expect_verify(&file, ENG_OK, "");
    /* Cut short while it is open. */
    assert_int_equal(truncate(path, (off_t)(file.values_offset + 3 * BLOCK + 100)), 0);
    snprintf(text, sizeof text, "ends at byte %llu",
             (unsigned long long)(file.values_offset + 3 * BLOCK + 100));
    expect_verify(&file, ENG_BAD_DATA, text);
    eng_table_file_close(&file);
}

/* ---- creation ---- */

static void assert_same_file(const char *a, const char *b)
{
    EngMapping one, two;
    EngErr err = {0};
    assert_int_equal(eng_file_map(a, &one, &err), ENG_OK);
    assert_int_equal(eng_file_map(b, &two, &err), ENG_OK);
    assert_int_equal(one.bytes, two.bytes);
    assert_memory_equal(one.data, two.data, one.bytes);
    eng_file_unmap(&one);
    eng_file_unmap(&two);
}

#define KILL_ROWS 70001 /* 18 MB: 5 blocks of values, 1 of scales */

/* This program again, in its own process, killed at a place. */
static bool killed_at(const char *where, const char *path)
{
    int status;
    pid_t child = fork();
    if (!child) {
        setenv("ENG_KILL_AT", where, 1);
        execl(g_self, g_self, "--create", path, (char *)NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status));
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void test_resume(void **state)
{
    char want[128], path[128], part[160], where[32];
    EngErr err = {0};
    (void)state;
    snprintf(want, sizeof want, "%s/whole", g_dir);
    snprintf(path, sizeof path, "%s/killed", g_dir);
    snprintf(part, sizeof part, "%s.part", path);
    create(want, ENG_ROW_FP8, 256, KILL_ROWS, 1);
    int kills = 0;
    for (int n = 1;; n++) { /* the header, 6 blocks with their checksums, the header, the name */
        unlink(path);
        snprintf(where, sizeof where, n <= 14 ? "write:%d" : "rename:1", n);
        bool killed = killed_at(where, path);
        assert_true(killed);
        kills++;
        assert_int_not_equal(access(path, F_OK), 0);
        assert_int_equal(access(part, F_OK), 0);
        if (n > 2 && n < 14) expect_open(part, ENG_BAD_DATA, "still being written");
        EngTableCreated created;
        assert_int_equal(
            eng_table_file_create_seeded(path, ENG_ROW_FP8, 256, KILL_ROWS, 7, 2, &created, &err),
            ENG_OK);
        assert_int_equal(created.blocks, 6);
        int done = n > 14 ? 6 : (n - 1) / 2; /* whose checksum was written */
        assert_int_equal(created.resumed, done);
        assert_same_file(want, path);
        assert_int_not_equal(access(part, F_OK), 0);
        if (n > 14) break;
    }
    assert_int_equal(kills, 15);
}

/* What lies in PATH.part is not trusted: a damaged block, another table, a header that a crash kept
 * from the disk. */
static void test_resume_distrusts(void **state)
{
    char want[128], path[128], part[160];
    EngTableCreated created;
    EngErr err = {0};
    (void)state;
    snprintf(want, sizeof want, "%s/whole2", g_dir);
    snprintf(path, sizeof path, "%s/distrust", g_dir);
    snprintf(part, sizeof part, "%s.part", path);
    create(want, ENG_ROW_FP8, 256, KILL_ROWS, 1);
    assert_true(killed_at("write:9", path));
    flip(part, ENG_TABLE_FILE_PAGE + BLOCK + 5);
    assert_int_equal(
        eng_table_file_create_seeded(path, ENG_ROW_FP8, 256, KILL_ROWS, 7, 1, &created, &err),
        ENG_OK);
    assert_int_equal(created.resumed, 3); /* of four */
    assert_same_file(want, path);
    unlink(path);
    assert_true(killed_at("write:9", path)); /* the same size, another seed */
    assert_int_equal(
        eng_table_file_create_seeded(path, ENG_ROW_FP8, 256, KILL_ROWS, 8, 1, &created, &err),
        ENG_OK);
    assert_int_equal(created.resumed, 0);
    unlink(path);
    static const char zeros[10000];
    assert_int_equal(eng_file_write(part, zeros, sizeof zeros, &err), ENG_OK);
    create(path, ENG_ROW_FP8, 256, KILL_ROWS, 1);
    assert_same_file(want, path);
}

/* At any moment: nothing under the name, nothing left beside it, and an error that says so. */
static void test_disk_full(void **state)
{
    static const int64_t budgets[] = {
        0, 4096, 4096 + BLOCK, 4096 + BLOCK + 32, 3 * BLOCK, 4096 + 70000 * 264 + 6 * 32};
    const char *path = path_of("full");
    char part[160];
    (void)state;
    snprintf(part, sizeof part, "%s.part", path);
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
        EngErr err = {0};
        eng_file_fail_after(budgets[i]);
        EngStatus status =
            eng_table_file_create_seeded(path, ENG_ROW_FP8, 256, 70000, 7, 2, NULL, &err);
        eng_file_fail_after(-1);
        assert_int_equal(status, ENG_IO);
        if (!strstr(err.text, path) || !strstr(err.text, "No space left")) fail_msg("%s", err.text);
        assert_int_not_equal(access(path, F_OK), 0);
        assert_int_not_equal(access(part, F_OK), 0);
    }
    /* Refused by the system before anything is written. */
    struct rlimit old, limit;
    EngErr err = {0};
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    limit = (struct rlimit){1 << 20, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    EngStatus status =
        eng_table_file_create_seeded(path, ENG_ROW_FP8, 256, 70000, 7, 2, NULL, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(status, ENG_IO);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_not_equal(access(part, F_OK), 0);
}

static void assert_holds(const char *path, const char *text)
{
    char *found;
    EngErr err = {0};
    assert_int_equal(eng_file_read(path, &found, NULL, &err), ENG_OK);
    assert_string_equal(found, text);
    eng_free(found);
}

/* Rows, and while they are asked for another file at the table's path. */
static EngStatus read_late(const void *context, bool scales, uint64_t at, size_t n, uint8_t *out,
                           EngErr *err)
{
    (void)scales, (void)at;
    memset(out, 0, n);
    return eng_file_write(context, "mine", 4, err);
}

/* What stands at PATH.part and is no table's, or comes to PATH while the table is made, stays. */
static void test_foreign_files(void **state)
{
    const char *path = path_of("foreign");
    char part[160];
    EngErr err = {0};
    EngTableSource source = {.format = ENG_ROW_BF16,
                             .row_dims = 64,
                             .rows = 10,
                             .identity = "{}",
                             .read = read_late,
                             .context = path};
    (void)state;
    snprintf(part, sizeof part, "%s.part", path);
    assert_int_equal(eng_file_write(part, "notes", 5, &err), ENG_OK);
    assert_int_equal(eng_table_file_create(path, &source, 1, NULL, &err), ENG_USAGE);
    assert_non_null(strstr(err.text, "foreign.part: no part of a table, and is left alone"));
    assert_holds(part, "notes");
    assert_int_not_equal(access(path, F_OK), 0);
    unlink(part);
    assert_int_equal(eng_table_file_create(path, &source, 1, NULL, &err), ENG_USAGE);
    assert_non_null(strstr(err.text, "foreign: exists, and is left alone"));
    assert_holds(path, "mine");
    assert_int_not_equal(access(part, F_OK), 0);
}

static void test_refusals(void **state)
{
    const char *path = path_of("refused");
    char part[160];
    EngErr err = {0};
    (void)state;
    snprintf(part, sizeof part, "%s.part", path);
    assert_int_equal(eng_file_write(path, "mine", 4, &err), ENG_OK);
    assert_int_equal(eng_table_file_create_seeded(path, ENG_ROW_FP8, 64, 10, 7, 1, NULL, &err),
                     ENG_USAGE);
    assert_non_null(strstr(err.text, "left alone"));
    unlink(path);
    int fd = open(part, O_RDWR | O_CREAT, 0600);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(eng_table_file_create_seeded(path, ENG_ROW_FP8, 64, 10, 7, 1, NULL, &err),
                     ENG_IO);
    assert_non_null(strstr(err.text, "another process"));
    assert_int_equal(access(part, F_OK), 0); /* the other's */
    close(fd);
    static const struct {
        int dims;
        int64_t rows;
    } bad[] = {{64, 0}, {64, -1}, {0, 10}, {33, 10}, {256, INT64_MAX / 64}, {256, INT64_MAX}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(eng_table_file_create_seeded(path, ENG_ROW_FP8, bad[i].dims, bad[i].rows,
                                                      7, 1, NULL, &err),
                         ENG_USAGE);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void test_no_memory(void **state)
{
    const char *path = path_of("memory");
    int failures = 0;
    (void)state;
    for (int step = 0; step < 3; step++) { /* create, open, verify */
        if (step == 1) create(path, ENG_ROW_BF16, 64, 1000, 1);
        for (uint64_t n = 1;; n++) {
            EngErr err = {0};
            EngTableFile file = {.fd = -1};
            uint64_t live = eng_mem_live_blocks();
            if (step == 2) file = open_table(path);
            eng_mem_fail_at(n);
            EngStatus status = step == 0   ? eng_table_file_create_seeded(path, ENG_ROW_BF16, 64,
                                                                          1000, 7, 1, NULL, &err)
                               : step == 1 ? eng_table_file_open(path, &file, &err)
                                           : eng_table_file_verify(&file, 2, &err);
            eng_mem_fail_at(0);
            if (status) assert_int_equal(status, ENG_NO_MEMORY);
            if (status && step == 0) assert_int_not_equal(access(path, F_OK), 0);
            eng_table_file_close(&file);
            assert_int_equal(eng_mem_live_blocks(), live);
            failures += status != ENG_OK;
            if (!status) break;
        }
    }
    assert_in_range(failures, 8, 60);
}

static void test_few_descriptors(void **state)
{
    const char *path = path_of("few");
    struct rlimit old, limit;
    (void)state;
    create(path, ENG_ROW_FP8, 64, 10, 1);
    getrlimit(RLIMIT_NOFILE, &old);
    limit = (struct rlimit){0, old.rlim_max};
    setrlimit(RLIMIT_NOFILE, &limit);
    EngTableFile file;
    EngErr err = {0};
    EngStatus status = eng_table_file_open(path, &file, &err);
    setrlimit(RLIMIT_NOFILE, &old);
    assert_int_equal(status, ENG_IO);
    assert_non_null(strstr(err.text, path));
}

int main(int argc, char **argv)
{
    g_self = argv[0];
    if (argc == 3) {
        EngErr err = {0};
        return eng_table_file_create_seeded(argv[2], ENG_ROW_FP8, 256, KILL_ROWS, 7, 1, NULL, &err);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_content),          cmocka_unit_test(test_digest),
        cmocka_unit_test(test_truncated),        cmocka_unit_test(test_damaged_header),
        cmocka_unit_test(test_damaged_blocks),   cmocka_unit_test(test_resume),
        cmocka_unit_test(test_resume_distrusts), cmocka_unit_test(test_disk_full),
        cmocka_unit_test(test_foreign_files),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_memory),        cmocka_unit_test(test_few_descriptors),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
