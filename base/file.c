/* File reading, mapping and atomic writing; see file.h. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/kill_point.h"
#include "base/mem.h"

static pthread_mutex_t g_budget_lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t g_write_budget_bytes = -1;
static bool g_env_read;

void eng_file_fail_after(int64_t bytes)
{
    pthread_mutex_lock(&g_budget_lock);
    g_env_read = true;
    g_write_budget_bytes = bytes;
    pthread_mutex_unlock(&g_budget_lock);
}

/* True when the injected limit allows n more bytes. */
static bool charge_budget(size_t n)
{
    pthread_mutex_lock(&g_budget_lock);
    if (!g_env_read) {
        const char *text = getenv("ENG_FAIL_WRITE");
        g_env_read = true;
        g_write_budget_bytes = text ? strtoll(text, NULL, 10) : -1;
    }
    bool ok = g_write_budget_bytes < 0 || (uint64_t)g_write_budget_bytes >= n;
    if (ok && g_write_budget_bytes >= 0) g_write_budget_bytes -= (int64_t)n;
    pthread_mutex_unlock(&g_budget_lock);
    if (!ok) errno = ENOSPC;
    return ok;
}

#define READS_UNASKED INT64_MIN /* the environment was not looked at yet */

static _Atomic int64_t g_reads_left = READS_UNASKED; /* until the one that fails; 0: none will */

void eng_file_fail_read_at(int64_t n)
{
    atomic_store(&g_reads_left, n);
}

bool eng_file_read_fails(void)
{
    int64_t left = atomic_load_explicit(&g_reads_left, memory_order_relaxed);
    if (left == READS_UNASKED) {
        const char *text = getenv("ENG_FAIL_READ");
        int64_t n = text ? strtoll(text, NULL, 10) : 0;
        if (atomic_compare_exchange_strong(&g_reads_left, &left, n)) left = n;
    }
    if (left <= 0) return false;
    return atomic_fetch_sub(&g_reads_left, 1) == 1;
}

EngStatus eng_file_open_read(const char *path, int *fd, size_t *bytes, EngErr *err)
{
    struct stat st;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not wait for a writer */
    if (*fd < 0) {
        bool none = errno == ENOENT || errno == ENOTDIR;
        bool closed = errno == EACCES || errno == ELOOP || errno == ENAMETOOLONG;
        EngStatus status = none ? ENG_NOT_FOUND : closed ? ENG_BAD_DATA : ENG_IO;
        return ENG_FAIL(err, status, "%s: cannot open: %s", path, strerror(errno));
    }
    if (fstat(*fd, &st) == 0 && S_ISREG(st.st_mode)) {
        fcntl(*fd, F_SETFL, 0); /* io_uring would take the flag for an order */
        *bytes = (size_t)st.st_size;
        return ENG_OK;
    }
    close(*fd);
    *fd = -1;
    return ENG_FAIL(err, ENG_BAD_DATA, "%s: not a regular file", path);
}

EngStatus eng_file_read(const char *path, char **text, size_t *n, EngErr *err)
{
    int fd = -1;
    size_t bytes = 0, done = 0;
    *text = NULL;
    EngStatus status = eng_file_open_read(path, &fd, &bytes, err);
    if (status) return status;
    char *buffer = NULL;
    if (bytes > ENG_FILE_READ_MAX) {
        status =
            ENG_FAIL(err, ENG_BAD_DATA, "%s: %zu bytes, more than the %zu a file of text may have",
                     path, bytes, ENG_FILE_READ_MAX);
        goto out;
    }
    buffer = eng_alloc(bytes + 1);
    if (!buffer) {
        status = ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory for %zu bytes", path, bytes);
        goto out;
    }
    while (done < bytes) {
        ssize_t got = read(fd, buffer + done, bytes - done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            status =
                ENG_FAIL(err, ENG_IO, "%s: read stopped after %zu of %zu bytes", path, done, bytes);
            goto out;
        }
        done += (size_t)got;
    }
    *text = buffer;
    if (n) *n = bytes;
    buffer = NULL;
out:
    eng_free(buffer);
    close(fd);
    return status;
}

EngStatus eng_file_map(const char *path, EngMapping *mapping, EngErr *err)
{
    int fd = -1;
    size_t bytes = 0;
    *mapping = (EngMapping){0};
    EngStatus status = eng_file_open_read(path, &fd, &bytes, err);
    if (status) return status;
    if (bytes) {
        void *data = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED)
            status = ENG_FAIL(err, ENG_IO, "%s: cannot map: %s", path, strerror(errno));
        else
            *mapping = (EngMapping){data, bytes};
    }
    close(fd);
    return status;
}

void eng_file_unmap(EngMapping *mapping)
{
    if (mapping->data) munmap((void *)mapping->data, mapping->bytes);
    *mapping = (EngMapping){0};
}

#define TEMPORARY ".tmp" /* then the writer's process id */

char *eng_writer_temporary(const char *path)
{
    size_t size = strlen(path) + 32;
    char *name = eng_alloc(size);
    if (name) snprintf(name, size, "%s" TEMPORARY "%ld", path, (long)getpid());
    return name;
}

static EngStatus write_failed(const EngWriter *writer, EngErr *err)
{
    return ENG_FAIL(err, ENG_IO, "%s: cannot write: %s", writer->path, strerror(errno));
}

EngStatus eng_writer_open(EngWriter *writer, const char *path, EngErr *err)
{
    *writer = (EngWriter){0};
    struct stat st;
    /* Renaming over a device, a pipe or a link would replace it. */
    if (!lstat(path, &st) && !S_ISREG(st.st_mode))
        return ENG_FAIL(err, ENG_IO, "%s: not a regular file, left alone", path);
    writer->path = eng_strdup(path);
    writer->temporary = eng_writer_temporary(path);
    if (!writer->path || !writer->temporary) {
        eng_writer_close(writer);
        return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", path);
    }
    writer->file = fopen(writer->temporary, "wbe");
    if (writer->file) return ENG_OK;
    EngStatus status = write_failed(writer, err);
    eng_writer_close(writer);
    return status;
}

EngStatus eng_writer_put(EngWriter *writer, const void *bytes, size_t n, EngErr *err)
{
    if (!charge_budget(n) || fwrite(bytes, 1, n, writer->file) != n)
        return write_failed(writer, err);
    eng_kill_point("write");
    return ENG_OK;
}

EngStatus eng_writer_printf(EngWriter *writer, EngErr *err, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    bool ok = n >= 0 && charge_budget((size_t)n) && vfprintf(writer->file, fmt, again) == n;
    va_end(again);
    va_end(ap);
    return ok ? ENG_OK : write_failed(writer, err);
}

EngStatus eng_writer_flush(EngWriter *writer, EngErr *err)
{
    bool failed = fflush(writer->file) || fsync(fileno(writer->file));
    return failed ? write_failed(writer, err) : ENG_OK;
}

EngStatus eng_writer_commit(EngWriter *writer, EngErr *err)
{
    /* Data must be on disk before the name points to it, else a crash could leave an empty file. */
    EngStatus status = eng_writer_flush(writer, err);
    if (fclose(writer->file) && !status) status = write_failed(writer, err);
    writer->file = NULL;
    eng_kill_point("rename");
    if (!status && rename(writer->temporary, writer->path)) status = write_failed(writer, err);
    if (!status) writer->temporary[0] = 0;
    eng_writer_close(writer);
    return status;
}

void eng_writer_close(EngWriter *writer)
{
    if (writer->file) fclose(writer->file);
    if (writer->temporary && writer->temporary[0]) unlink(writer->temporary);
    eng_free(writer->temporary);
    eng_free(writer->path);
    *writer = (EngWriter){0};
}

void eng_writer_sweep(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t n = strlen(name);
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        const char *tail = entry->d_name + n;
        char *end;
        if (strncmp(entry->d_name, name, n) || strncmp(tail, TEMPORARY, strlen(TEMPORARY)))
            continue;
        long pid = strtol(tail + strlen(TEMPORARY), &end, 10);
        if (pid > 0 && !*end && kill((pid_t)pid, 0) && errno == ESRCH)
            unlinkat(dirfd(dir), entry->d_name, 0);
    }
    if (dir) closedir(dir);
}

EngStatus eng_file_write(const char *path, const void *bytes, size_t n, EngErr *err)
{
    EngWriter writer;
    EngStatus status = eng_writer_open(&writer, path, err);
    if (status) return status;
    status = eng_writer_put(&writer, bytes, n, err);
    if (!status) return eng_writer_commit(&writer, err);
    eng_writer_close(&writer);
    return status;
}

EngStatus eng_file_read_at(int fd, const char *path, void *bytes, size_t n, uint64_t offset,
                           EngErr *err)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(fd, (char *)bytes + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return ENG_FAIL(err, ENG_IO, "%s: cannot read %zu bytes at %" PRIu64 ": %s", path, n,
                            offset, strerror(errno));
        if (!got)
            return ENG_FAIL(err, ENG_BAD_DATA,
                            "%s: ends at byte %" PRIu64 ", inside the %zu bytes at %" PRIu64, path,
                            offset + done, n, offset);
        done += (size_t)got;
    }
    return ENG_OK;
}

EngStatus eng_file_write_at(int fd, const char *path, const void *bytes, size_t n, uint64_t offset,
                            EngErr *err)
{
    bool ok = charge_budget(n);
    for (size_t done = 0; ok && done < n;) {
        ssize_t put = pwrite(fd, (const char *)bytes + done, n - done, (off_t)(offset + done));
        if (put < 0 && errno == EINTR) continue;
        ok = put > 0;
        if (ok) done += (size_t)put;
    }
    if (!ok)
        return ENG_FAIL(err, ENG_IO, "%s: cannot write %zu bytes at %" PRIu64 ": %s", path, n,
                        offset, strerror(errno));
    eng_kill_point("write");
    return ENG_OK;
}

EngStatus eng_make_dirs(const char *path, EngErr *err)
{
    char *copy = eng_strdup(path);
    if (!copy) return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", path);
    EngStatus status = ENG_OK;
    for (char *p = copy + 1; !status; p++) {
        if (*p && *p != '/') continue;
        char kept = *p;
        *p = 0;
        struct stat st;
        if (mkdir(copy, 0777) && !(errno == EEXIST && !stat(copy, &st) && S_ISDIR(st.st_mode)))
            status = ENG_FAIL(err, ENG_IO, "%s: cannot make the folder: %s", copy,
                              strerror(errno == EEXIST ? ENOTDIR : errno));
        *p = kept;
        if (!kept) break;
    }
    eng_free(copy);
    return status;
}

bool eng_file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}
