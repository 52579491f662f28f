/* Preloaded by kills.sh: the n-th write (ENG_TORN_WRITE=n) to a database or its write-ahead log
 * stops half-way, and the process dies there, as in a crash in the middle of a commit. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef ssize_t (*PwriteFunction)(int, const void *, size_t, off_t);

static long g_left = -1;

static int is_database(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0) return 0;
    path[n] = 0;
    return strstr(path, ".db") && !strstr(path, ".db.lock");
}

static ssize_t torn(PwriteFunction real, int fd, const void *bytes, size_t n, off_t offset)
{
    if (g_left < 0) {
        const char *text = getenv("ENG_TORN_WRITE");
        g_left = text ? strtol(text, NULL, 10) : 0;
    }
    if (g_left > 0 && is_database(fd) && --g_left == 0) {
        real(fd, bytes, n / 2, offset);
        kill(getpid(), SIGKILL);
    }
    return real(fd, bytes, n, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t offset)
{
    static PwriteFunction real;
    if (!real) real = (PwriteFunction)dlsym(RTLD_NEXT, "pwrite");
    return torn(real, fd, bytes, n, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off_t offset)
{
    static PwriteFunction real;
    if (!real) real = (PwriteFunction)dlsym(RTLD_NEXT, "pwrite64");
    return torn(real, fd, bytes, n, offset);
}
