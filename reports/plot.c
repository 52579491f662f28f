/* Running gnuplot; see plot.h. */
#include "reports/plot.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

extern char **environ;

/* The last of what gnuplot says, made one line: warnings come first, the error that stopped it
 * comes last. All is read, since a full pipe would stop gnuplot. */
static void read_words(int fd, char *words, size_t size)
{
    size_t n = 0;
    char block[512];
    ssize_t got;
    while ((got = read(fd, block, sizeof block)) > 0 || (got < 0 && errno == EINTR))
        for (ssize_t i = 0; i < got; i++) {
            bool space = (unsigned char)block[i] <= ' ';
            if (space && (!n || words[n - 1] == ' ')) continue;
            if (n + 1 == size) memmove(words, words + size / 2, n -= size / 2);
            words[n++] = space ? ' ' : block[i];
        }
    while (n && words[n - 1] == ' ') n--;
    words[n] = 0;
}

static int spawn_in(const char *dir, char *const argv[], int output, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc) return rc;
    rc = posix_spawn_file_actions_addchdir_np(&actions, dir);
    if (!rc) rc = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!rc) rc = posix_spawn_file_actions_adddup2(&actions, output, 1);
    if (!rc) rc = posix_spawn_file_actions_adddup2(&actions, output, 2);
    if (!rc) rc = posix_spawnp(pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

/* Runs the program to its end; words receive its output. */
static EngStatus run_gnuplot(const char *dir, const char *settings, const char *script, char *words,
                             size_t size, int *code, EngErr *err)
{
    const char *chosen = getenv("ENG_GNUPLOT"), *program = chosen && *chosen ? chosen : "gnuplot";
    char *argv[] = {(char *)program, "-d", "-e", (char *)settings, (char *)script, NULL};
    int ends[2], state = 0;
    pid_t pid;
    if (pipe2(ends, O_CLOEXEC))
        return ENG_FAIL(err, ENG_IO, "cannot make a pipe: %s", strerror(errno));
    int rc = spawn_in(dir, argv, ends[1], &pid);
    close(ends[1]);
    if (!rc) read_words(ends[0], words, size);
    close(ends[0]);
    if (rc == ENOENT)
        return ENG_FAIL(err, ENG_IO, "%s: not found; plots need it (Debian package gnuplot-nox)",
                        program);
    if (rc) return ENG_FAIL(err, ENG_IO, "%s: cannot start: %s", program, strerror(rc));
    while (waitpid(pid, &state, 0) < 0 && errno == EINTR) {
    }
    *code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    return ENG_OK;
}

/* gnuplot ends with 0 on a full disk: a picture is whole when its format's last bytes are there.
 * ENG_NO_MEMORY: it could not be looked at. */
static EngStatus look_at(const char *path, const char *target, bool *whole, EngErr *err)
{
    static const char svg_end[] = "</svg>", png_end[] = "IEND\xae\x42\x60\x82";
    const char *end = strcmp(target, "svg") ? png_end : svg_end;
    size_t n = 0, length = strlen(end);
    char *bytes = NULL;
    *whole = false;
    EngStatus status = eng_file_read(path, &bytes, &n, err);
    if (status) return status == ENG_NO_MEMORY ? status : ENG_OK;
    while (n && bytes[n - 1] == '\n') n--;
    *whole = n >= length && !memcmp(bytes + n - length, end, length);
    eng_free(bytes);
    return ENG_OK;
}

static EngStatus draw(const char *dir, const char *name, const char *target, EngErr *err)
{
    EngStr settings = {0}, script = {0}, temporary = {0}, path = {0};
    char words[600] = "";
    int code = 0;
    eng_str_printf(&settings, "target='%s'; out='%s.%s.tmp'", target, name, target);
    eng_str_printf(&script, "%s.gp", name);
    eng_str_printf(&temporary, "%s/%s.%s.tmp", dir, name, target);
    eng_str_printf(&path, "%s/%s.%s", dir, name, target);
    EngStatus status = ENG_OK;
    if (settings.failed || script.failed || temporary.failed || path.failed) {
        status = ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", name);
        goto out;
    }
    status = run_gnuplot(dir, settings.text, script.text, words, sizeof words, &code, err);
    bool whole = false;
    if (!status) status = look_at(temporary.text, target, &whole, err);
    if (status) goto out;
    if (code || !whole)
        status = ENG_FAIL(err, ENG_IO, "%s/%s: gnuplot failed (exit %d)%s%s", dir, script.text,
                          code, words[0] ? ": " : ", no picture written", words);
    else if (rename(temporary.text, path.text))
        status = ENG_FAIL(err, ENG_IO, "%s: cannot write: %s", path.text, strerror(errno));
out:
    if (status && temporary.text) unlink(temporary.text);
    eng_str_free(&settings);
    eng_str_free(&script);
    eng_str_free(&temporary);
    eng_str_free(&path);
    return status;
}

EngStatus eng_plot(const char *dir, const char *name, EngErr *err)
{
    EngStatus status = draw(dir, name, "svg", err);
    return status ? status : draw(dir, name, "png", err);
}
