/* Opening the database: whose file it is, its version, migrations, and the run lock; see db.h. */
#include "bench/core/db_sql.h"

#include <sqlite3.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/embedded.h"
#include "base/file.h"
#include "bench/core/stats.h"

#define BUSY_TIMEOUT_MS 5000
#define MAX_RANKS       10000

extern const EngEmbedded eng_embedded_schema[]; /* the .sql files of this folder */

/* Step i takes version i to i + 1; views are made anew after the last one. */
static const char *const migrations[ENG_DB_VERSION] = {"schema.sql", "schema_2.sql"};

static EngStatus run_script(EngDb *db, const char *sql, const char *doing, EngErr *err)
{
    int rc = sqlite3_exec(db->sql, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? ENG_OK : eng_db_fail(db, rc, doing, err);
}

EngStatus eng_db_run_embedded(EngDb *db, const char *name, EngErr *err)
{
    for (const EngEmbedded *file = eng_embedded_schema; file->name; file++)
        if (!strcmp(file->name, name)) return run_script(db, file->text, "create the tables", err);
    return ENG_FAIL(err, ENG_INTERNAL, "%s is not compiled in", name);
}

static EngStatus fill_ranks(EngDb *db, EngErr *err)
{
    EngRankWalk walk = {0};
    EngStatus status = ENG_OK;
    while (!status && walk.n < MAX_RANKS) {
        int lo, hi;
        eng_rank_walk_next(&walk);
        if (eng_rank_walk_ranks(&walk, &lo, &hi))
            status = eng_db_exec(db, err, "INSERT INTO median_ranks VALUES (?, ?, ?)", "iii",
                                 (int64_t)walk.n, (int64_t)lo, (int64_t)hi);
        else
            status = eng_db_exec(db, err, "INSERT INTO median_ranks VALUES (?, NULL, NULL)", "i",
                                 (int64_t)walk.n);
    }
    return status;
}

/* One transaction from the version found to ours. */
static EngStatus migrate(EngDb *db, EngErr *err)
{
    char pragma[96];
    int64_t version;
    EngStatus status = eng_db_begin(db, err);
    if (status) return status;
    /* Another program may have migrated while we waited for the write lock. */
    status = eng_db_number(db, &version, err, "PRAGMA user_version", "");
    if (!status && version == ENG_DB_VERSION) {
        eng_db_rollback(db);
        return ENG_OK;
    }
    for (int64_t v = version; !status && v < ENG_DB_VERSION; v++) {
        status = eng_db_run_embedded(db, migrations[v], err);
        if (!status && v == 0) status = fill_ranks(db, err);
    }
    if (!status) status = eng_db_run_embedded(db, "views.sql", err);
    snprintf(pragma, sizeof pragma, "PRAGMA application_id = %d; PRAGMA user_version = %d",
             ENG_DB_APPLICATION_ID, ENG_DB_VERSION);
    if (!status) status = run_script(db, pragma, "mark the database", err);
    return eng_db_end(db, true, status, err);
}

/* Whose database is it? *fresh: an empty file, or none. */
static EngStatus identify(EngDb *db, bool *fresh, int64_t *version, EngErr *err)
{
    int64_t id, tables;
    EngStatus status = eng_db_number(db, &tables, err, "SELECT count(*) FROM sqlite_master", "");
    if (!status) status = eng_db_number(db, &id, err, "PRAGMA application_id", "");
    if (!status) status = eng_db_number(db, version, err, "PRAGMA user_version", "");
    if (status) return status;
    *fresh = !tables && !id && !*version;
    if (*fresh) return ENG_OK;
    if (id != ENG_DB_APPLICATION_ID)
        return ENG_FAIL(err, ENG_DB,
                        "%s: a database of another program (application id 0x%08llx), left alone",
                        db->path, (unsigned long long)id);
    if (*version > ENG_DB_VERSION)
        return ENG_FAIL(err, ENG_DB,
                        "%s: database version %lld is newer than version %d of this program",
                        db->path, (long long)*version, ENG_DB_VERSION);
    return ENG_OK;
}

/* ---- the run lock ------------------------------------------------------------------------------
 */

/* The lock's file holds "PROCESS RUN": whose it was last; the run is missing until it begins. */
#define OWNER_BYTES 64

static void read_owner(int fd, char owner[OWNER_BYTES])
{
    ssize_t n = pread(fd, owner, OWNER_BYTES - 1, 0);
    owner[n > 0 ? n : 0] = 0;
    owner[strcspn(owner, "\n")] = 0;
}

/* Only text for others' messages: failing to write it does no harm. */
void eng_db_lock_name(EngDb *db, const char *run_id)
{
    char owner[OWNER_BYTES];
    if (db->lock_fd < 0) return;
    int n = snprintf(owner, sizeof owner, "%ld %.36s\n", (long)getpid(), run_id);
    bool written = pwrite(db->lock_fd, owner, (size_t)n, 0) == n && !ftruncate(db->lock_fd, n);
    (void)written;
}

bool eng_db_run_is_alive(const EngDb *db, const char *run_id)
{
    char path[4096], owner[OWNER_BYTES];
    int64_t pid = 0;
    if (snprintf(path, sizeof path, "%s.lock", db->path) >= (int)sizeof path) return false;
    /* The owner's number, not the lock: trying that could get in the way of a run that starts. */
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    read_owner(fd, owner);
    close(fd);
    char *run = owner + strcspn(owner, " ");
    bool told = *run != 0; /* earlier builds wrote the process alone */
    if (told) *run++ = 0;
    return (!told || !strcmp(run, run_id)) && eng_parse_i64(owner, &pid) && pid > 0 &&
           (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

static EngStatus lock_run(EngDb *db, EngErr *err)
{
    char path[4096], owner[OWNER_BYTES];
    if (snprintf(path, sizeof path, "%s.lock", db->path) >= (int)sizeof path)
        return ENG_FAIL(err, ENG_IO, "%s: path too long", db->path);
    db->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (db->lock_fd < 0)
        return ENG_FAIL(err, ENG_IO, "%s: cannot write: %s", path, strerror(errno));
    if (flock(db->lock_fd, LOCK_EX | LOCK_NB) == 0) {
        eng_db_lock_name(db, "");
        return ENG_OK;
    }
    read_owner(db->lock_fd, owner);
    close(db->lock_fd);
    db->lock_fd = -1;
    owner[strcspn(owner, " ")] = 0;
    return ENG_FAIL(err, ENG_DB, "%s: another run is active on this database (process %s)",
                    db->path, *owner ? owner : "unknown");
}

void eng_db_forget_in_child(EngDb *db)
{
    if (!db || db->lock_fd < 0) return;
    close(db->lock_fd); /* the parent's copy keeps the lock */
    db->lock_fd = -1;
}

/* ---- opening -----------------------------------------------------------------------------------
 */

static EngStatus make_parent(const char *path, EngErr *err)
{
    char *copy = eng_strdup(path);
    if (!copy) return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", path);
    char *slash = strrchr(copy, '/');
    EngStatus status = ENG_OK;
    if (slash && slash != copy) {
        *slash = 0;
        status = eng_make_dirs(copy, err);
    }
    eng_free(copy);
    return status;
}

/* SQLite does not wait for its busy time-out here when two programs create a database at once. */
static EngStatus switch_to_wal(EngDb *db, EngErr *err)
{
    static const char sql[] = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL";
    int rc = SQLITE_BUSY;
    for (int waited_ms = 0; waited_ms < BUSY_TIMEOUT_MS; waited_ms += 10) {
        rc = sqlite3_exec(db->sql, sql, NULL, NULL, NULL);
        if ((rc & 0xff) != SQLITE_BUSY) break;
        usleep(10 * 1000);
    }
    return rc == SQLITE_OK ? ENG_OK : eng_db_fail(db, rc, "write", err);
}

/* Settings of a connection that may write; max_page_count is a test's small disk. */
static EngStatus prepare_writing(EngDb *db, EngErr *err)
{
    char pragma[96];
    const char *pages = getenv("ENG_DB_MAX_PAGES");
    int64_t n;
    if (sqlite3_db_readonly(db->sql, "main") == 1)
        return ENG_FAIL(err, ENG_IO, "%s: the file is read-only", db->path);
    EngStatus status = switch_to_wal(db, err);
    if (status || !pages || !eng_parse_i64(pages, &n)) return status;
    snprintf(pragma, sizeof pragma, "PRAGMA max_page_count = %lld", (long long)n);
    return run_script(db, pragma, "limit its size", err);
}

/* What lies at the path must be nothing, an empty file or SQLite's: it takes any file shorter than
 * its header for an empty database and would write over it. */
static EngStatus check_file(EngDb *db, EngErr *err)
{
    static const char magic[] = "SQLite format 3"; /* with its zero byte, 16 bytes */
    char head[sizeof magic];
    struct stat st;
    if (stat(db->path, &st)) return ENG_OK; /* opening it says why */
    if (S_ISDIR(st.st_mode))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: a folder, not a database", db->path);
    if (!S_ISREG(st.st_mode))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: not a regular file, so no database", db->path);
    int fd = st.st_size ? open(db->path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return ENG_OK;
    ssize_t n = read(fd, head, sizeof head);
    close(fd);
    if (n == (ssize_t)sizeof head && !memcmp(head, magic, sizeof head)) return ENG_OK;
    return ENG_FAIL(err, ENG_BAD_DATA, "%s: not a database", db->path);
}

/* Readers of a WAL database make files beside it. In a folder where we cannot, and where no log of
 * a writer lies, the file is taken as it is. */
static bool is_immutable(const EngDb *db)
{
    char path[4096];
    struct stat st;
    const char *slash = strrchr(db->path, '/');
    int n = slash ? (int)(slash - db->path) + 1 : 2;
    if (db->mode != ENG_DB_READ) return false;
    if (snprintf(path, sizeof path, "%s-wal", db->path) >= (int)sizeof path) return false;
    if (!stat(path, &st) && st.st_size) return false;
    snprintf(path, sizeof path, "%.*s", n, slash ? db->path : "./");
    return access(path, W_OK) != 0;
}

/* As a URI, quoted: ":memory:" and "file:x?mode=..." are names of files like others. */
static void put_uri(EngStr *uri, const EngDb *db)
{
    eng_str_add(uri, db->path[0] == '/' ? "file:" : "file:./");
    for (const char *p = db->path; *p; p++)
        if (strchr("%?#", *p))
            eng_str_printf(uri, "%%%02x", (unsigned)(unsigned char)*p);
        else
            eng_str_add_n(uri, p, 1);
    if (is_immutable(db)) eng_str_add(uri, "?immutable=1");
}

static EngStatus open_file(EngDb *db, EngErr *err)
{
    int flags =
        db->mode == ENG_DB_READ ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    EngStr name = {0};
    put_uri(&name, db);
    EngStatus status = eng_str_status(&name, err);
    if (status) return status;
    int rc =
        sqlite3_open_v2(name.text, &db->sql, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, NULL);
    eng_str_free(&name);
    if (rc != SQLITE_OK) return eng_db_fail(db, rc, "open", err);
    sqlite3_extended_result_codes(db->sql, 1);
    sqlite3_busy_timeout(db->sql, BUSY_TIMEOUT_MS);
    return run_script(db, "PRAGMA foreign_keys = ON", "open", err);
}

static EngStatus open_checked(EngDb *db, EngErr *err)
{
    bool fresh;
    int64_t version;
    EngStatus status = ENG_OK;
    if (!*db->path) return ENG_FAIL(err, ENG_USAGE, "--db= names no file");
    if (db->mode == ENG_DB_READ && !eng_file_exists(db->path))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: no such database", db->path);
    if (db->mode != ENG_DB_READ) status = make_parent(db->path, err);
    if (!status) status = check_file(db, err);
    if (!status) status = open_file(db, err);
    if (!status) status = identify(db, &fresh, &version, err);
    if (status) return status;
    if (db->mode == ENG_DB_READ) {
        if (fresh)
            return ENG_FAIL(err, ENG_BAD_DATA, "%s: an empty file, not a database", db->path);
        db->version = (int)version;
        return ENG_OK;
    }
    if (db->mode == ENG_DB_RUN && (status = lock_run(db, err))) return status;
    status = prepare_writing(db, err);
    if (!status && version < ENG_DB_VERSION) status = migrate(db, err);
    db->version = ENG_DB_VERSION;
    return status;
}

EngStatus eng_db_open(const char *path, EngDbMode mode, EngDb **out, EngErr *err)
{
    *out = NULL;
    EngDb *db = eng_alloc(sizeof *db);
    if (!db) return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", path);
    db->lock_fd = -1;
    db->mode = mode;
    db->path = eng_strdup(path);
    EngStatus status =
        db->path ? open_checked(db, err) : ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", path);
    if (status)
        eng_db_close(db);
    else
        *out = db;
    return status;
}

void eng_db_close(EngDb *db)
{
    if (!db) return;
    for (int i = 0; i < db->n_statements; i++) sqlite3_finalize(db->statements[i]);
    sqlite3_close(db->sql);
    if (db->lock_fd >= 0) close(db->lock_fd);
    eng_free(db->path);
    eng_free(db);
}

const char *eng_db_path(const EngDb *db)
{
    return db->path;
}

struct sqlite3 *eng_db_handle(EngDb *db)
{
    return db->sql;
}
