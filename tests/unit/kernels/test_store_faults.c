/* What can go wrong under a store: files cut short or damaged, devices that fail, too few
 * descriptors, io_uring forbidden, memory short. Each is one error that names the file, none gives
 * wrong rows, and none ends the process. */
#include "stores_test.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/file.h"
#include "kernels/store/pages.h"
#include "kernels/store/pool.h"

typedef struct Case {
    EngStoreKind kind;
    EngStoreOptions options;
} Case;

/* All that go to the file for every batch. */
static const Case g_on_disk[] = {
    {ENG_STORE_MMAP, {0}},
    {ENG_STORE_MMAP, {.threads = 3, .advice = ENG_ADVICE_WILLNEED}},
    {ENG_STORE_PREAD, {.threads = 1}},
    {ENG_STORE_PREAD, {.threads = 4}},
    {ENG_STORE_PREAD, {.threads = 4, .direct = true}},
    {ENG_STORE_NOWAIT, {.threads = 2}},
    {ENG_STORE_URING, {.depth = 8}},
    {ENG_STORE_URING, {.depth = 8, .direct = true}},
};

static EngStore *open_store(const char *path, const Case *c)
{
    EngStore *store;
    EngErr err = {0};
    EngStatus status = eng_store_open(path, c->kind, &c->options, &store, &err);
    if (status == ENG_UNSUPPORTED && c->options.direct) return NULL;
    if (status) fail_msg("%s", err.text);
    return store;
}

/* The batch fails with this status, and the error names the file. */
static void expect_failure(EngStore *store, const StoreTable *t, const int64_t *rows, int64_t n,
                           EngStatus want, const char *word)
{
    EngErr err = {0};
    EngRowsOut out = rows_out(&t->table, n);
    EngStatus status = eng_store_read(store, rows, n, &out, &err);
    if (status != want || !strstr(err.text, t->path) || !strstr(err.text, word))
        fail_msg("%s: status %d, \"%s\" lacks \"%s\"", store->ops->name, status, err.text, word);
    rows_out_free(&out);
}

static void test_truncated(void **state)
{
    (void)state;
    for (int i = 0; i < LENGTH_OF(g_on_disk); i++) {
        StoreTable t;
        store_table_open(&t, ENG_ROW_FP8);
        EngStore *store = open_store(t.path, &g_on_disk[i]);
        if (!store) {
            store_table_close(&t);
            continue;
        }
        const int64_t near[] = {0, 1, 2}, far[] = {3, 40000, 4, TEST_ROWS - 1};
        check_batch(store, &t.table, far, 4, "before");
        assert_int_equal(truncate(t.path, 1000000), 0); /* within a page of the values */
        expect_failure(store, &t, far, 4, ENG_BAD_DATA, "while open");
        /* Row 40000 lies beyond, and so do all scales. */
        expect_failure(store, &t, near, 3, ENG_BAD_DATA, "while open");
        assert_int_equal(truncate(t.path, 0), 0);
        expect_failure(store, &t, near, 3, ENG_BAD_DATA, "while open");
        eng_store_destroy(store);
        store_table_close(&t);
    }
}

/* The last page of a shortened file reads as zeros without a signal: the one row that would pass.
 */
static void test_truncated_within_page(void **state)
{
    (void)state;
    for (int i = 0; i < LENGTH_OF(g_on_disk); i++) {
        StoreTable t;
        EngErr err = {0};
        EngTableFile file;
        store_table_open(&t, ENG_ROW_BF16);
        assert_int_equal(eng_table_file_open(t.path, &file, &err), ENG_OK);
        EngStore *store = open_store(t.path, &g_on_disk[i]);
        const int64_t row = 100;
        uint64_t end = file.values_offset + (uint64_t)row * file.stride_bytes + 10;
        assert_int_equal(truncate(t.path, (off_t)end), 0);
        if (store) expect_failure(store, &t, &row, 1, ENG_BAD_DATA, "while open");
        eng_store_destroy(store);
        eng_table_file_close(&file);
        store_table_close(&t);
    }
}

/* Every read in turn fails: the batch is an error, and the store goes on after it. */
static void test_failing_device(void **state)
{
    (void)state;
    StoreTable t;
    store_table_open(&t, ENG_ROW_FP8);
    EngRng rng;
    int64_t rows[60];
    eng_rng_seed(&rng, 1);
    random_rows(&rng, rows, 60, TEST_ROWS);
    for (int i = 0; i < LENGTH_OF(g_on_disk); i++) {
        EngStore *store = open_store(t.path, &g_on_disk[i]);
        if (!store) continue;
        int reads = store->ops->name[0] == 'm' ? 60 : 120;
        for (int n = 1; n <= reads; n += 7) {
            eng_file_fail_read_at(n);
            expect_failure(store, &t, rows, 60, ENG_IO, strerror(EIO));
            eng_file_fail_read_at(0);
            check_batch(store, &t.table, rows, 60, "after a failure");
        }
        eng_store_destroy(store);
    }
    for (int threads = 1; threads <= 2; threads++) { /* while a store is loaded */
        EngErr err = {0};
        EngStore *store = NULL;
        const EngStoreOptions options = {.scales_in_memory = true};
        eng_file_fail_read_at(threads);
        EngStatus status = eng_store_open(t.path, threads == 1 ? ENG_STORE_PREAD : ENG_STORE_MEMORY,
                                          &options, &store, &err);
        eng_file_fail_read_at(0);
        assert_int_equal(status, ENG_IO);
        assert_null(store);
        assert_non_null(strstr(err.text, t.path));
    }
    store_table_close(&t);
}

static void test_damaged(void **state)
{
    (void)state;
    StoreTable t;
    EngErr err = {0};
    EngTableFile file;
    EngStore *store = NULL;
    store_table_open(&t, ENG_ROW_FP8);
    assert_int_equal(eng_table_file_open(t.path, &file, &err), ENG_OK);
    uint64_t places[2] = {file.values_offset + 4500000, file.scales_offset + 77};
    eng_table_file_close(&file);
    for (int place = 0; place < 2; place++) {
        int fd = open(t.path, O_RDWR);
        uint8_t byte;
        assert_int_equal(pread(fd, &byte, 1, (off_t)places[place]), 1);
        byte ^= 4;
        assert_int_equal(pwrite(fd, &byte, 1, (off_t)places[place]), 1);
        const EngStoreOptions verify = {.verify = true}, scales = {.scales_in_memory = true};
        assert_int_equal(eng_store_open(t.path, ENG_STORE_MEMORY, NULL, &store, &err),
                         ENG_BAD_DATA);
        assert_non_null(strstr(err.text, t.path));
        assert_int_equal(eng_store_open(t.path, ENG_STORE_URING, &verify, &store, &err),
                         ENG_BAD_DATA);
        EngStatus status = eng_store_open(t.path, ENG_STORE_PREAD, &scales, &store, &err);
        assert_int_equal(status, place ? ENG_BAD_DATA : ENG_OK); /* it loads the scales alone */
        if (!status) eng_store_destroy(store);
        byte ^= 4;
        assert_int_equal(pwrite(fd, &byte, 1, (off_t)places[place]), 1);
        close(fd);
    }
    assert_int_equal(eng_store_open(t.path, ENG_STORE_MEMORY, NULL, &store, &err), ENG_OK);
    eng_store_destroy(store);
    store_table_close(&t);
}

/* ---- in a child, which may be crippled ---- */

static void run_child(void (*body)(const StoreTable *t), const StoreTable *t)
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        body(t);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("child ended with %d (status), see above", status);
}

#define CHILD_CHECK(condition)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static bool is_right(EngStore *store, const EngTable *table)
{
    const int64_t rows[] = {1, TEST_ROWS - 1, 0, 1, 25000};
    EngErr err = {0};
    EngRowsOut out = rows_out(table, 5);
    bool right = eng_store_read(store, rows, 5, &out, &err) == ENG_OK;
    for (int i = 0; i < 5; i++) right = right && slot_is_row(table, &out, i, rows[i]);
    rows_out_free(&out);
    return right;
}

/* As container runtimes do: the system call gives EPERM. */
static void forbid_io_uring(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = LENGTH_OF(code), .filter = code};
    CHILD_CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    CHILD_CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static void open_without_io_uring(const StoreTable *t)
{
    EngErr err = {0};
    EngStore *store;
    const EngStoreOptions options = {.depth = 6, .scales_in_memory = true};
    forbid_io_uring();
    CHILD_CHECK(!eng_store_open(t->path, ENG_STORE_URING, &options, &store, &err));
    CHILD_CHECK(!strcmp(store->ops->name, "pread"));
    CHILD_CHECK(strstr(store->note, "io_uring is forbidden here"));
    CHILD_CHECK(strstr(store->note, "6 threads"));
    CHILD_CHECK(is_right(store, &t->table));
    eng_store_destroy(store);
}

static void open_without_descriptors(const StoreTable *t)
{
    static const EngStoreKind kinds[] = {ENG_STORE_MEMORY, ENG_STORE_MMAP, ENG_STORE_PREAD,
                                         ENG_STORE_NOWAIT, ENG_STORE_URING};
    EngStoreOptions options = {.direct = false};
    for (int k = 0; k < LENGTH_OF(kinds); k++)
        for (int direct = 0; direct < 2; direct++) {
            if (direct && kinds[k] != ENG_STORE_PREAD && kinds[k] != ENG_STORE_URING) continue;
            options.direct = direct;
            int opened = -1;
            /* With ever more descriptors: errors that say so, then a store that works. */
            for (int allowed = 0; opened < 0; allowed++) {
                EngErr err = {0};
                EngStore *store = NULL;
                int next = dup(0);
                CHILD_CHECK(next >= 0 && allowed < 8);
                close(next);
                struct rlimit limit = {(rlim_t)(next + allowed), 4096};
                CHILD_CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
                EngStatus status = eng_store_open(t->path, kinds[k], &options, &store, &err);
                limit.rlim_cur = 256;
                CHILD_CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
                int after = dup(0);
                close(after);
                if (!status || status == ENG_UNSUPPORTED) {
                    opened = allowed;
                    if (!status) CHILD_CHECK(is_right(store, &t->table));
                    eng_store_destroy(store);
                    continue;
                }
                CHILD_CHECK(status == ENG_IO && !store);
                CHILD_CHECK(strstr(err.text, t->path) && strstr(err.text, strerror(EMFILE)));
                CHILD_CHECK(after == next); /* nothing stayed open */
            }
            CHILD_CHECK(opened > 0);
        }
}

static void test_io_uring_forbidden(void **state)
{
    StoreTable t;
    (void)state;
    store_table_open(&t, ENG_ROW_FP8);
    run_child(open_without_io_uring, &t);
    store_table_close(&t);
}

static void test_too_few_descriptors(void **state)
{
    StoreTable t;
    (void)state;
    store_table_open(&t, ENG_ROW_FP8);
    run_child(open_without_descriptors, &t);
    store_table_close(&t);
}

static void test_memory_limit(void **state)
{
    (void)state;
    StoreTable t;
    EngErr err = {0};
    EngStore *store = NULL, *inner;
    const EngStoreOptions scales = {.scales_in_memory = true};
    const EngCacheOptions cache = {.policy = ENG_CACHE_DIRECT, .rows = 100000};
    store_table_open(&t, ENG_ROW_FP8);
    setenv("ENG_MEMORY_BYTES", "100000", 1);
    assert_int_equal(eng_store_open(t.path, ENG_STORE_MEMORY, NULL, &store, &err), ENG_NO_MEMORY);
    assert_non_null(strstr(err.text, "available"));
    assert_int_equal(eng_store_open(t.path, ENG_STORE_MMAP, &scales, &store, &err), ENG_NO_MEMORY);
    assert_int_equal(eng_store_open(t.path, ENG_STORE_MMAP, NULL, &inner, &err), ENG_OK);
    assert_int_equal(eng_store_cache(inner, &cache, &store, &err), ENG_NO_MEMORY);
    assert_null(store);
    unsetenv("ENG_MEMORY_BYTES");
    assert_int_equal(eng_store_cache(inner, &cache, &store, &err), ENG_OK);
    eng_store_destroy(store);
    store_table_close(&t);
}

/* Every allocation of opening and of the first batch fails in turn. */
static void test_no_memory(void **state)
{
    (void)state;
    StoreTable t;
    store_table_open(&t, ENG_ROW_FP8);
    uint64_t live = eng_mem_live_blocks();
    for (int kind = 0; kind < ENG_STORE_KIND_COUNT; kind++)
        for (uint64_t n = 1;; n++) {
            EngErr err = {0};
            EngStore *store = NULL, *outer = NULL;
            const EngStoreOptions options = {.scales_in_memory = true, .threads = 3};
            const int64_t rows[] = {4, 3, 4};
            EngRowsOut out = rows_out(&t.table, 3);
            assert_true(n < 100);
            eng_mem_fail_at(n);
            EngStatus status = eng_store_open(t.path, (EngStoreKind)kind, &options, &store, &err);
            if (!status && !(status = eng_store_dedup(store, &outer, &err))) store = outer;
            if (!status) status = eng_store_read(store, rows, 3, &out, &err);
            bool all_seen = eng_mem_fail_at(0) < n;
            for (int i = 0; !status && i < 3; i++)
                assert_true(slot_is_row(&t.table, &out, i, rows[i]));
            eng_store_destroy(store);
            rows_out_free(&out);
            assert_int_equal(eng_mem_live_blocks(), live);
            assert_int_equal(status, all_seen ? ENG_OK : ENG_NO_MEMORY);
            if (all_seen) break;
        }
    store_table_close(&t);
}

static void test_options(void **state)
{
    (void)state;
    StoreTable t;
    EngErr err = {0};
    EngStore *store = NULL;
    store_table_open(&t, ENG_ROW_INT4);
    static const Case bad[] = {
        {ENG_STORE_PREAD, {.threads = 1000}},
        {ENG_STORE_PREAD, {.threads = -1}},
        {ENG_STORE_URING, {.depth = 100000}},
        {ENG_STORE_URING, {.direct = true, .block_bytes = 1000}},
        {ENG_STORE_PREAD, {.direct = true, .block_bytes = 256}},
        {ENG_STORE_MMAP, {.direct = true}},
        {ENG_STORE_NOWAIT, {.direct = true}},
        {ENG_STORE_MEMORY, {.page_kind = 17}},
        {(EngStoreKind)99, {0}},
    };
    for (int i = 0; i < LENGTH_OF(bad); i++) {
        assert_int_equal(eng_store_open(t.path, bad[i].kind, &bad[i].options, &store, &err),
                         ENG_USAGE);
        assert_null(store);
    }
    assert_int_equal(eng_store_open("no-such.table", ENG_STORE_MMAP, NULL, &store, &err),
                     ENG_BAD_DATA);
    assert_int_equal(
        eng_store_open(ENG_SOURCE_DIR "/README.md", ENG_STORE_URING, NULL, &store, &err),
        ENG_BAD_DATA);
    const EngStoreOptions giant = {.page_kind = ENG_PAGES_GIANT};
    EngStatus status = eng_store_open(t.path, ENG_STORE_MEMORY, &giant, &store, &err);
    if (status) {
        assert_int_equal(status, ENG_UNSUPPORTED);
        assert_non_null(strstr(err.text, "no 1 GiB pages"));
    } else {
        eng_store_destroy(store);
    }
    store_table_close(&t);
}

/* ---- the pool ---- */

typedef struct Tally {
    _Atomic int seen[1000];
    int64_t bad;
} Tally;

static EngStatus tally(void *context, int thread, int64_t i, EngErr *err)
{
    Tally *t = context;
    assert_true(thread >= 0 && thread < 4);
    if (i == t->bad) return ENG_FAIL(err, ENG_MISMATCH, "item %d", (int)i);
    t->seen[i]++;
    return ENG_OK;
}

static void test_pool(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4; threads += 3) {
        EngPool *pool;
        EngErr err = {0};
        assert_int_equal(eng_pool_create(threads, &pool, &err), ENG_OK);
        for (int n = 0; n < 1000; n += 37) {
            Tally t = {.bad = -1};
            assert_int_equal(eng_pool_run(pool, n, 1 + n % 5, tally, &t, &err), ENG_OK);
            for (int i = 0; i < 1000; i++) assert_int_equal(t.seen[i], i < n);
            if (!n) continue;
            t.bad = n / 2;
            assert_int_equal(eng_pool_run(pool, n, 1, tally, &t, &err), ENG_MISMATCH);
            assert_non_null(strstr(err.text, "item"));
        }
        eng_pool_destroy(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_truncated_within_page),
        cmocka_unit_test(test_failing_device),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_io_uring_forbidden),
        cmocka_unit_test(test_too_few_descriptors),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
