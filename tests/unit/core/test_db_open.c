/* Opening: whose database, which version, who holds it, what a full disk does. */
#include "db_fixture.h"

#include <sys/wait.h>

#include "base/embedded.h"
#include "base/file.h"
#include "bench/core/db_merge.h"
#include "bench/core/db_runs.h"

static void check_refused(const Folder *folder, EngDbMode mode, EngStatus expected,
                          const char *says)
{
    EngDb *db;
    EngErr e = {0};
    EngStatus status = eng_db_open(folder->db, mode, &db, &e);
    if (!strstr(e.text, says)) fail_msg("'%s' does not hold '%s'", e.text, says);
    assert_non_null(strstr(e.text, folder->db)); /* every message names the database */
    assert_int_equal(status, expected);
    assert_null(db);
}

static void test_create(void **state)
{
    const Folder *folder = *state;
    check_refused(folder, ENG_DB_READ, ENG_BAD_DATA, "no such database");
    EngDb *db = open_db(folder, ENG_DB_WRITE);
    assert_int_equal(number(db, "PRAGMA application_id"), ENG_DB_APPLICATION_ID);
    assert_int_equal(number(db, "PRAGMA user_version"), ENG_DB_VERSION);
    assert_int_equal(number(db, "PRAGMA foreign_keys"), 1);
    assert_int_equal(number(db, "SELECT count(*) FROM median_ranks"), 10000);
    assert_int_equal(number(db, "SELECT lo * 1000 + hi FROM median_ranks WHERE n = 15"), 4012);
    assert_int_equal(number(db, "SELECT count(*) FROM median_ranks WHERE lo IS NULL"), 5);
    put_common(db);
    put_common(db); /* idempotent */
    eng_db_close(db);
    db = open_db(folder, ENG_DB_WRITE); /* nothing to migrate */
    assert_int_equal(number(db, "SELECT count(*) FROM machines"), 1);
    assert_int_equal(number(db, "SELECT count(*) FROM median_ranks"), 10000);
    eng_db_close(db);
    db = open_db(folder, ENG_DB_READ);
    assert_int_equal(number(db, "SELECT count(*) FROM v_summary"), 0);
    EngErr e = {0};
    assert_int_equal(eng_db_put_preset(db, "x", "x", "{}", &e), ENG_IO);
    eng_db_close(db);
}

static void test_makes_folders(void **state)
{
    const Folder *folder = *state;
    char path[160], parent[128];
    EngDb *db = NULL;
    snprintf(parent, sizeof parent, "%s/new", folder->path);
    snprintf(path, sizeof path, "%s/a.db", parent);
    OK(eng_db_open(path, ENG_DB_WRITE, &db, err));
    eng_db_close(db);
    unlink(path);
    assert_int_equal(rmdir(parent), 0); /* and closing leaves no side files */
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *raw;
    assert_int_equal(sqlite3_open(path, &raw), SQLITE_OK);
    assert_int_equal(sqlite3_exec(raw, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(raw);
}

static void test_not_ours(void **state)
{
    const Folder *folder = *state;
    EngErr e = {0};
    assert_int_equal(eng_file_write(folder->db, "just a text, no database at all\n", 32, &e),
                     ENG_OK);
    check_refused(folder, ENG_DB_READ, ENG_BAD_DATA, "not a database");
    check_refused(folder, ENG_DB_RUN, ENG_BAD_DATA, "not a database");
    char *text;
    assert_int_equal(eng_file_read(folder->db, &text, NULL, &e), ENG_OK);
    assert_string_equal(text, "just a text, no database at all\n");
    eng_free(text);
    unlink(folder->db);
    run_sql(folder->db, "CREATE TABLE contacts (name TEXT)");
    check_refused(folder, ENG_DB_WRITE, ENG_DB, "a database of another program");
    unlink(folder->db);
    run_sql(folder->db, "PRAGMA application_id = 7");
    check_refused(folder, ENG_DB_WRITE, ENG_DB, "application id 0x00000007");
    unlink(folder->db);
    assert_int_equal(eng_file_write(folder->db, "", 0, &e), ENG_OK);
    check_refused(folder, ENG_DB_READ, ENG_BAD_DATA, "an empty file");
    eng_db_close(open_db(folder, ENG_DB_WRITE)); /* an empty file may become a database */
}

static void test_versions(void **state)
{
    const Folder *folder = *state;
    eng_db_close(open_db(folder, ENG_DB_WRITE));
    run_sql(folder->db, "PRAGMA user_version = 9");
    check_refused(folder, ENG_DB_READ, ENG_DB,
                  "database version 9 is newer than version 2 of this program");
    check_refused(folder, ENG_DB_RUN, ENG_DB, "version 9 is newer");
    run_sql(folder->db, "PRAGMA user_version = 2");
    eng_db_close(open_db(folder, ENG_DB_RUN));
}

extern const EngEmbedded eng_embedded_schema[];

static const char *script(const char *name)
{
    for (const EngEmbedded *file = eng_embedded_schema; file->name; file++)
        if (!strcmp(file->name, name)) return file->text;
    fail_msg("%s is not compiled in", name);
    return NULL;
}

/* A file as a program of version 1 left it, with a run in it. */
static void make_version_1(const Folder *folder)
{
    char pragma[96];
    snprintf(pragma, sizeof pragma, "PRAGMA application_id = %d; PRAGMA user_version = 1",
             ENG_DB_APPLICATION_ID);
    run_sql(folder->db, script("schema.sql"));
    run_sql(folder->db, script("views.sql"));
    run_sql(folder->db, pragma);
    run_sql(folder->db,
            "INSERT INTO machines VALUES ('m', 'cpu', 2, 1, NULL, NULL, '{}');"
            "INSERT INTO builds VALUES ('b', '0', NULL, 'cc', '', '{}');"
            "INSERT INTO runs VALUES ('r', '2026-01-01T00:00:00Z', NULL, 'done', 'm', 'b', 1, '[]',"
            " 's', '', 'key', '{}')");
}

static void test_version_1(void **state)
{
    const Folder *folder = *state;
    EngErr e = {0};
    make_version_1(folder);
    /* Reading leaves it as it is. */
    EngDb *db = open_db(folder, ENG_DB_READ);
    assert_int_equal(number(db, "SELECT count(*) FROM v_summary"), 0);
    assert_int_equal(number(db, "PRAGMA user_version"), 1);
    /* It can be brought in, and its runs be listed. */
    char path[160];
    EngDb *into;
    EngMergeCounts counts;
    snprintf(path, sizeof path, "%s/into.db", folder->path);
    OK(eng_db_open(path, ENG_DB_RUN, &into, err));
    OK(eng_db_merge(into, db, &counts, err));
    assert_int_equal(counts.runs, 1);
    eng_db_close(into);
    EngArena *arena = eng_arena_create();
    EngRunRow *rows;
    int n;
    OK(eng_db_runs(db, arena, &rows, &n, err));
    assert_true(n == 1 && rows[0].verdicts == 0);
    eng_arena_destroy(arena);
    eng_db_close(db);
    /* A disk that fills up on the way leaves it as it was. */
    db = open_db(folder, ENG_DB_READ);
    int64_t pages = number(db, "PRAGMA page_count");
    eng_db_close(db);
    char limit[32];
    snprintf(limit, sizeof limit, "%lld", (long long)pages);
    setenv("ENG_DB_MAX_PAGES", limit, 1);
    assert_int_equal(eng_db_open(folder->db, ENG_DB_WRITE, &db, &e), ENG_IO);
    assert_non_null(strstr(e.text, "disk full"));
    unsetenv("ENG_DB_MAX_PAGES");
    db = open_db(folder, ENG_DB_READ);
    assert_int_equal(number(db, "PRAGMA user_version"), 1);
    eng_db_close(db);
    /* Writing brings it up to date, with what it held. */
    db = open_db(folder, ENG_DB_RUN);
    assert_int_equal(number(db, "PRAGMA user_version"), ENG_DB_VERSION);
    assert_int_equal(number(db, "SELECT count(*) FROM runs WHERE run_id = 'r'"), 1);
    assert_int_equal(number(db, "SELECT count(*) FROM verdicts"), 0);
    eng_db_close(db);
    eng_db_close(open_db(folder, ENG_DB_RUN));
}

static void test_damaged(void **state)
{
    const Folder *folder = *state;
    eng_db_close(open_db(folder, ENG_DB_WRITE));
    FILE *file = fopen(folder->db, "r+b");
    assert_non_null(file);
    fseek(file, 100, SEEK_SET);
    for (int i = 0; i < 3000; i++) fputc(0xA5, file);
    fclose(file);
    EngDb *db;
    EngErr e = {0};
    assert_int_equal(eng_db_open(folder->db, ENG_DB_WRITE, &db, &e), ENG_BAD_DATA);
    assert_non_null(strstr(e.text, "damaged"));
}

static void test_two_runs(void **state)
{
    const Folder *folder = *state;
    EngDb *first = open_db(folder, ENG_DB_RUN), *reader, *writer;
    check_refused(folder, ENG_DB_RUN, ENG_DB, "another run is active on this database (process ");
    reader = open_db(folder, ENG_DB_READ);
    writer = open_db(folder, ENG_DB_WRITE);
    put_common(writer);
    assert_int_equal(number(reader, "SELECT count(*) FROM machines"), 1);
    /* Two writing transactions: the second gives up after the busy time-out. */
    sqlite3_busy_timeout(eng_db_handle(writer), 10);
    OK(eng_db_begin(first, err));
    EngErr e = {0};
    assert_int_equal(eng_db_begin(writer, &e), ENG_DB);
    assert_non_null(strstr(e.text, "another program is writing it"));
    eng_db_rollback(first);
    OK(eng_db_begin(writer, err));
    OK(eng_db_commit(writer, err));
    eng_db_close(writer);
    eng_db_close(reader);
    eng_db_close(first);
    eng_db_close(open_db(folder, ENG_DB_RUN));
}

/* Of two runs that a database calls running, the one that the lock is for lives. */
static void test_alive(void **state)
{
    const Folder *folder = *state;
    for (int round = 0; round < 2; round++) { /* the second time, the file names a run */
        EngDb *db = open_db(folder, ENG_DB_RUN), *reader = open_db(folder, ENG_DB_READ);
        put_common(db);
        Run killed = begin_run(db, "[gather]\ntokens = 1\n", false);
        assert_true(eng_db_run_is_alive(reader, killed.run_id));
        eng_db_close(db);
        db = open_db(folder, ENG_DB_RUN);
        assert_false(eng_db_run_is_alive(reader, killed.run_id));
        check_refused(folder, ENG_DB_RUN, ENG_DB, "(process ");
        Run run = begin_run(db, "[gather]\ntokens = 2\n", false);
        assert_int_equal(number(db, "SELECT count(*) FROM runs WHERE state = 'running'"), 2);
        assert_false(eng_db_run_is_alive(reader, killed.run_id));
        assert_true(eng_db_run_is_alive(reader, run.run_id));
        char wanted[64];
        snprintf(wanted, sizeof wanted, "(process %ld)", (long)getpid());
        check_refused(folder, ENG_DB_RUN, ENG_DB, wanted);
        free_run(&killed);
        free_run(&run);
        eng_db_close(reader);
        eng_db_close(db);
    }
}

/* A worker that outlives its run must not hold the lock. */
static void test_child_forgets(void **state)
{
    const Folder *folder = *state;
    for (int forget = 0; forget <= 1; forget++) {
        int ready[2], stop[2];
        char byte = 0;
        assert_int_equal(pipe(ready) | pipe(stop), 0);
        EngDb *db = open_db(folder, ENG_DB_RUN);
        pid_t pid = fork();
        if (pid == 0) {
            if (forget) eng_db_forget_in_child(db);
            if (write(ready[1], "x", 1) != 1 || read(stop[0], &byte, 1) < 0) _exit(1);
            _exit(0);
        }
        assert_int_equal(read(ready[0], &byte, 1), 1);
        eng_db_close(db);
        if (forget)
            eng_db_close(open_db(folder, ENG_DB_RUN));
        else
            check_refused(folder, ENG_DB_RUN, ENG_DB, "another run is active");
        assert_int_equal(write(stop[1], "x", 1), 1);
        waitpid(pid, NULL, 0);
        for (int i = 0; i < 2; i++) {
            close(ready[i]);
            close(stop[i]);
        }
    }
}

/* Many programs may meet at a database that is not there yet: one makes it, the others wait. */
static void test_created_at_once(void **state)
{
    const Folder *folder = *state;
    enum { CHILDREN = 8, ROUNDS = 5 };
    for (int round = 0; round < ROUNDS; round++) {
        pid_t pids[CHILDREN];
        int gate[2], failed = 0;
        assert_int_equal(pipe(gate), 0);
        for (int i = 0; i < CHILDREN; i++) {
            pids[i] = fork();
            if (pids[i]) continue;
            char byte;
            EngDb *db;
            EngErr e = {0};
            close(gate[1]);
            if (read(gate[0], &byte, 1) < 0) _exit(1); /* end of file lets all go at once */
            EngStatus status = eng_db_open(folder->db, ENG_DB_WRITE, &db, &e);
            if (status) fprintf(stderr, "%s\n", e.text);
            eng_db_close(db);
            _exit(status != ENG_OK);
        }
        close(gate[0]);
        close(gate[1]);
        for (int i = 0; i < CHILDREN; i++) {
            int result;
            waitpid(pids[i], &result, 0);
            failed += result != 0;
        }
        assert_int_equal(failed, 0);
        EngDb *db = open_db(folder, ENG_DB_WRITE); /* closing it takes the log away */
        assert_int_equal(number(db, "SELECT count(*) FROM median_ranks"), 10000);
        eng_db_close(db);
        unlink(folder->db);
    }
}

static void test_unwritable(void **state)
{
    const Folder *folder = *state;
    EngDb *db;
    EngErr e = {0};
    char path[160];
    EngErr ignored;
    assert_int_equal(eng_file_write(folder->db, "", 0, &ignored), ENG_OK);
    snprintf(path, sizeof path, "%s/sub.db", folder->db); /* a file is no folder, root or not */
    assert_int_equal(eng_db_open(path, ENG_DB_WRITE, &db, &e), ENG_IO);
    assert_non_null(strstr(e.text, folder->db));
    assert_int_equal(eng_db_open(folder->path, ENG_DB_WRITE, &db, &e), ENG_BAD_DATA);
    if (geteuid() == 0) return; /* root may write everything */
    eng_db_close(open_db(folder, ENG_DB_WRITE));
    chmod(folder->db, 0444);
    check_refused(folder, ENG_DB_WRITE, ENG_IO, "read-only");
}

static void test_full_disk(void **state)
{
    const Folder *folder = *state;
    EngErr e = {0};
    EngStatus status = ENG_OK;
    eng_db_close(open_db(folder, ENG_DB_WRITE));
    EngDb *db = open_db(folder, ENG_DB_WRITE);
    int64_t pages = number(db, "PRAGMA page_count");
    eng_db_close(db);
    char limit[32];
    snprintf(limit, sizeof limit, "%lld", (long long)pages + 4);
    setenv("ENG_DB_MAX_PAGES", limit, 1);
    db = open_db(folder, ENG_DB_RUN);
    put_common(db);
    int written = 0;
    for (; !status && written < 10000; written += !status) {
        char name[32], big[1000] = {0};
        memset(big, 'x', sizeof big - 1);
        snprintf(name, sizeof name, "preset-%d", written);
        status = eng_db_put_preset(db, name, "toy", big, &e);
    }
    assert_int_equal(status, ENG_IO);
    assert_non_null(strstr(e.text, "disk full, cannot write results"));
    assert_in_range(written, 1, 100);
    /* A transaction that meets the end takes back all of itself and says so. */
    int64_t before = number(db, "SELECT count(*) FROM presets");
    OK(eng_db_begin(db, err));
    OK(eng_db_put_build(db, &(EngBuildRow){"b2", "0", NULL, "", "", "{}"}, err));
    char big[20000] = {0};
    memset(big, 'x', sizeof big - 1);
    assert_int_equal(eng_db_put_preset(db, "too-big", "toy", big, &e), ENG_IO);
    eng_db_rollback(db);
    assert_int_equal(number(db, "SELECT count(*) FROM presets"), before);
    assert_int_equal(number(db, "SELECT count(*) FROM builds"), 1);
    eng_db_close(db);
    unsetenv("ENG_DB_MAX_PAGES");
    /* Usable again once there is room. */
    db = open_db(folder, ENG_DB_RUN);
    assert_int_equal(number(db, "SELECT count(*) FROM presets"), before);
    OK(eng_db_put_preset(db, "too-big", "toy", big, err));
    eng_db_close(db);
    /* No room for the tables themselves. */
    unlink(folder->db);
    setenv("ENG_DB_MAX_PAGES", "3", 1);
    check_refused(folder, ENG_DB_WRITE, ENG_IO, "disk full");
    unsetenv("ENG_DB_MAX_PAGES");
    eng_db_close(open_db(folder, ENG_DB_WRITE));
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_create),     IN_FOLDER(test_makes_folders), IN_FOLDER(test_not_ours),
        IN_FOLDER(test_versions),   IN_FOLDER(test_damaged),       IN_FOLDER(test_two_runs),
        IN_FOLDER(test_alive),      IN_FOLDER(test_child_forgets), IN_FOLDER(test_created_at_once),
        IN_FOLDER(test_unwritable), IN_FOLDER(test_full_disk),     IN_FOLDER(test_version_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
