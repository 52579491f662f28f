/* A temporary folder, and trace files in it. */
#ifndef ENG_TESTS_TRACE_FIXTURE_H
#define ENG_TESTS_TRACE_FIXTURE_H

#include <dirent.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "bench/trace/recording.h"

static inline int make_folder(void **state)
{
    char *path = strdup("/tmp/engram_trace_XXXXXX");
    *state = path;
    return path && mkdtemp(path) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    char path[512];
    DIR *dir = opendir(*state);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", (char *)*state, entry->d_name);
        unlink(path);
    }
    if (dir) closedir(dir);
    rmdir(*state);
    free(*state);
    return 0;
}

static inline void file_in(const char *folder, const char *name, char path[256])
{
    snprintf(path, 256, "%s/%s", folder, name);
}

#define OK(call)                                                                                   \
    do {                                                                                           \
        EngErr e_ = {0};                                                                           \
        EngErr *err = &e_;                                                                         \
        EngStatus s_ = (call);                                                                     \
        if (s_) fail_msg("%s:%d: %s", __FILE__, __LINE__, e_.text);                                \
    } while (0)

static inline EngNsysSession a_session(void)
{
    return (EngNsysSession){.start_ns = 1000, .utc_ns = 1764400000000000000, .version = "test"};
}

static inline void save_recording(const char *path, EngRecordHead *head, EngRecordingCounts *counts)
{
    EngNsys *nsys;
    EngNsysSession session = a_session();
    session.start_ns = head->start_ns;
    OK(eng_nsys_create(path, &session, &nsys, err));
    OK(eng_recording_put(nsys, &head, 1, session.start_ns, counts, err));
    OK(eng_nsys_commit(nsys, err));
}

static inline sqlite3 *open_trace(const char *path)
{
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL)) fail_msg("%s: cannot open", path);
    return db;
}

/* The first column of the first row; fails on a bad statement or without a row. */
static inline int64_t number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int64_t value = 0;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL))
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    if (sqlite3_step(statement) != SQLITE_ROW) fail_msg("%s: no row", sql);
    value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

#endif
