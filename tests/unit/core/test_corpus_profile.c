/* Profiles of corpora: made once, kept beside the streams, made anew when the file is damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file.h"
#include "base/log.h"
#include "bench/core/corpus_profile.h"

static char g_dir[] = "/tmp/profile-XXXXXX";

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(g_dir) ? 0 : -1;
}

/* The one file of profiles/; false: there is none. */
static bool find_file(char *path, size_t size)
{
    char folder[64];
    bool found = false;
    snprintf(folder, sizeof folder, "%s/profiles", g_dir);
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (e->d_name[0] != '.') {
            snprintf(path, size, "%s/%s", folder, e->d_name);
            found = true;
        }
    if (dir) closedir(dir);
    return found;
}

static int remove_dir(void **state)
{
    (void)state;
    char path[400];
    while (find_file(path, sizeof path)) unlink(path);
    snprintf(path, sizeof path, "%s/profiles", g_dir);
    rmdir(path);
    return rmdir(g_dir);
}

static void test_kept(void **state)
{
    (void)state;
    EngErr err = {0};
    EngProfile made, kept;
    char path[400];
    if (eng_corpus_profile(g_dir, "v41-flash", "uniform", &made, &err)) fail_msg("%s", err.text);
    assert_true(made.tokens > 1000 && made.n_sizes > 0);
    assert_true(find_file(path, sizeof path));
    if (eng_corpus_profile(g_dir, "v41-flash", "uniform", &kept, &err)) fail_msg("%s", err.text);
    assert_string_equal(kept.digest, made.digest);
    assert_int_equal(kept.accesses, made.accesses);
    /* What is kept is what is read: a file of other counts is believed, a damaged one is not. */
    assert_int_equal(eng_file_write(path, "{", 1, &err), ENG_OK);
    if (eng_corpus_profile(g_dir, "v41-flash", "uniform", &kept, &err)) fail_msg("%s", err.text);
    assert_int_equal(kept.accesses, made.accesses);
    unlink(path);
}

/* A full disk costs the file, not the answer. */
static void test_full_disk(void **state)
{
    (void)state;
    EngErr err = {0};
    EngProfile profile;
    char path[400];
    eng_file_fail_after(10);
    EngStatus status = eng_corpus_profile(g_dir, "v41-flash", "uniform", &profile, &err);
    eng_file_fail_after(-1);
    if (status) fail_msg("%s", err.text);
    assert_true(profile.n_sizes > 0);
    assert_false(find_file(path, sizeof path));
}

static void test_refused(void **state)
{
    (void)state;
    EngErr err = {0};
    EngProfile profile;
    assert_int_equal(eng_corpus_profile(g_dir, "v41-flash", "prose", &profile, &err),
                     ENG_UNSUPPORTED);
    assert_non_null(strstr(err.text, "prose"));
    assert_int_equal(eng_corpus_profile(g_dir, "v41-flush", "uniform", &profile, &err), ENG_USAGE);
    assert_int_not_equal(eng_corpus_profile(g_dir, "v41-flash", "no-such", &profile, &err), ENG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
