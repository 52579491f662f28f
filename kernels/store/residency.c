/* Page cache and process readings; see residency.h. */
#include "kernels/store/residency.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define PAGE       ((uint64_t)4096)
#define WINDOW     ((uint64_t)1 << 30) /* looked at in one mapping */
#define READ_BYTES ((size_t)4 << 20)
#define DROP_TRIES 3

static EngStatus open_file(const char *path, int *fd, uint64_t *size, EngErr *err)
{
    struct stat st;
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0 || fstat(*fd, &st)) {
        EngStatus status = errno == ENOENT ? ENG_NOT_FOUND : ENG_IO;
        ENG_FAIL(err, status, "%s: cannot open: %s", path, strerror(errno));
        if (*fd >= 0) close(*fd);
        return status;
    }
    *size = (uint64_t)st.st_size;
    return ENG_OK;
}

/* Pages of a window that are in the page cache. The mapping touches none. */
static EngStatus count_resident(const char *path, int fd, uint64_t from, uint64_t bytes,
                                uint8_t *flags, uint64_t *resident, EngErr *err)
{
    void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)from);
    if (map == MAP_FAILED)
        return ENG_FAIL(err, ENG_IO, "%s: cannot map to look at its pages: %s", path,
                        strerror(errno));
    int failed = mincore(map, bytes, flags) ? errno : 0;
    munmap(map, bytes);
    if (failed) return ENG_FAIL(err, ENG_IO, "%s: mincore: %s", path, strerror(failed));
    for (uint64_t i = 0; i < (bytes + PAGE - 1) / PAGE; i++) *resident += flags[i] & 1;
    return ENG_OK;
}

static EngStatus share_of(const char *path, int fd, uint64_t from, uint64_t to, double *share,
                          EngErr *err)
{
    uint8_t *flags;
    uint64_t resident = 0, pages = (to - from + PAGE - 1) / PAGE;
    EngStatus status = eng_alloc_or((void **)&flags, WINDOW / PAGE, 1, "page flags", err);
    for (uint64_t at = from; at < to && !status; at += WINDOW)
        status = count_resident(path, fd, at, to - at < WINDOW ? to - at : WINDOW, flags, &resident,
                                err);
    eng_free(flags);
    *share = status || !pages ? 0 : (double)resident / (double)pages;
    return status;
}

EngStatus eng_residency_share(const char *path, uint64_t offset, uint64_t bytes, double *share,
                              EngErr *err)
{
    int fd;
    uint64_t size, from = offset & ~(PAGE - 1);
    *share = 0;
    EngStatus status = open_file(path, &fd, &size, err);
    if (status) return status;
    uint64_t to = bytes ? offset + bytes : size;
    if (to > size || from > to)
        status =
            ENG_FAIL(err, ENG_USAGE, "%s: has %" PRIu64 " bytes, none at %" PRIu64, path, size, to);
    else
        status = share_of(path, fd, from, to, share, err);
    close(fd);
    return status;
}

EngStatus eng_residency_drop(const char *path, double most, double *share, EngErr *err)
{
    int fd;
    uint64_t size;
    double left = 1;
    EngStatus status = open_file(path, &fd, &size, err);
    if (status) return status;
    fdatasync(fd); /* pages still to be written are kept; a file opened for reading may be synced */
    for (int i = 0; i < DROP_TRIES && !status && left > most; i++) {
        int failed = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        status = failed ? ENG_FAIL(err, ENG_IO, "%s: posix_fadvise: %s", path, strerror(failed))
                        : share_of(path, fd, 0, size, &left, err);
    }
    close(fd);
    if (share) *share = left;
    if (!status && left > most)
        status = ENG_FAIL(err, ENG_UNSUPPORTED,
                          "%s: %.3g %% of it stays in the page cache, so it is not cold", path,
                          100 * left);
    return status;
}

EngStatus eng_residency_warm(const char *path, double *share, EngErr *err)
{
    int fd;
    uint64_t size;
    uint8_t *buffer;
    EngStatus status = open_file(path, &fd, &size, err);
    if (status) return status;
    status = eng_alloc_or((void **)&buffer, READ_BYTES, 1, "read buffer", err);
    for (uint64_t at = 0; at < size && !status;) {
        ssize_t got = pread(fd, buffer, READ_BYTES, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            status = ENG_FAIL(err, ENG_IO, "%s: cannot read at %" PRIu64 ": %s", path, at,
                              got ? strerror(errno) : "end of file");
        at += got > 0 ? (uint64_t)got : 0;
    }
    if (!status && share) status = share_of(path, fd, 0, size, share, err);
    eng_free(buffer);
    close(fd);
    return status;
}

/* The number after `key` at the start of a line, times `unit`; -1 when there is none. */
static int64_t read_field(const char *path, const char *key, int64_t unit)
{
    char line[256];
    int64_t value = -1;
    FILE *file = fopen(path, "re");
    if (!file) return -1;
    while (value < 0 && fgets(line, sizeof line, file))
        if (!strncmp(line, key, strlen(key)) &&
            sscanf(line + strlen(key), " %" SCNd64, &value) == 1)
            value *= unit;
    fclose(file);
    return value;
}

void eng_io_read(EngIoReading *reading)
{
    *reading = (EngIoReading){
        .device_bytes = read_field("/proc/self/io", "read_bytes:", 1),
        .rss_bytes = read_field("/proc/self/status", "VmRSS:", 1024),
        .file_rss_bytes = read_field("/proc/self/status", "RssFile:", 1024),
        .cached_bytes = read_field("/proc/meminfo", "Cached:", 1024),
    };
}
