/* Files that tests/oracle/nsys_fixtures.py makes, in a folder of the test's own. */
#ifndef ENG_TESTS_TRACE_FIXTURES_H
#define ENG_TESTS_TRACE_FIXTURES_H

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

#include "base/file.h"
#include "base/mem.h"
#include "bench/trace/reader.h"

/* The test that includes this defines them: folders of the sources and of the shared data. */
extern const char fixtures_source[], fixtures_shared[];

static char g_folder[64];

static inline int fixtures_make(void **state)
{
    (void)state;
    char command[256];
    snprintf(g_folder, sizeof g_folder, "/tmp/test_trace_XXXXXX");
    if (!mkdtemp(g_folder)) return -1;
    snprintf(command, sizeof command, "python3 %s/tests/oracle/nsys_fixtures.py %s",
             fixtures_source, g_folder);
    return system(command);
}

static inline int fixtures_remove(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", g_folder);
    return system(command);
}

static inline const char *fixture_path(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, 256, "%s/%s", g_folder, name);
    return path;
}

static inline void copy_file(const char *from, const char *to)
{
    EngErr err = {0};
    EngMapping map;
    if (eng_file_map(from, &map, &err)) fail_msg("%s", err.text);
    if (eng_file_write(to, map.data, map.bytes, &err)) fail_msg("%s", err.text);
    eng_file_unmap(&map);
}

/* A changed copy: statements run on it, each must work. Returns its path. */
static inline const char *changed(const char *from, const char *name, const char *sql)
{
    sqlite3 *db;
    char *why = NULL;
    const char *path = fixture_path(name);
    copy_file(from, path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &why)) fail_msg("%s: %s", sql, why);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return path;
}

static inline EngTrace *opened(const char *path)
{
    EngTrace *trace;
    EngErr err = {0};
    if (eng_trace_open(path, &trace, &err)) fail_msg("%s", err.text);
    return trace;
}

/* The real export, NULL (and the test skipped) where the shared folder is not beside the clone. */
static inline const char *real_export(void)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/data/nsys/h100_2gpu_train.sqlite", fixtures_shared);
    if (eng_file_exists(path)) return path;
    print_message("skipped: no shared data\n");
    return NULL;
}

#endif
