/* What the page cache holds of a file, and what a process has read: so that "cold" and "warm" are
 * measured and not claimed. None of this belongs into a timed window: looking at a large file costs
 * milliseconds (mincore visits every page).
 */
#ifndef ENG_KERNELS_STORE_RESIDENCY_H
#define ENG_KERNELS_STORE_RESIDENCY_H

#include <stddef.h>
#include <stdint.h>
#include <engram/status.h>

/* Share of the pages of [offset, offset + bytes) that the page cache holds (mincore), 0..1. bytes
 * 0: to the end of the file. Counts only when this process may write to the file or owns it; the
 * kernel calls all pages of others' files resident. */
EngStatus eng_residency_share(const char *path, uint64_t offset, uint64_t bytes, double *share,
                              EngErr *err);

/* Drops the file from the page cache: written back, then posix_fadvise(DONTNEED), and looked at
 * again. ENG_UNSUPPORTED when more than `most` of it stays (another process has it mapped, or the
 * file system keeps it), naming the share. *share may be NULL. */
EngStatus eng_residency_drop(const char *path, double most, double *share, EngErr *err);

/* Reads the whole file, so that the page cache holds it; *share as looked at afterwards, which is
 * below 1 where memory is short. May be NULL. */
EngStatus eng_residency_warm(const char *path, double *share, EngErr *err);

/* Readings of this process and the machine; -1 where the kernel does not tell. */
typedef struct EngIoReading {
    int64_t device_bytes;   /* read from devices by this process (/proc/self/io read_bytes) */
    int64_t rss_bytes;      /* its resident set, mapped files included */
    int64_t file_rss_bytes; /* of that, pages of files */
    int64_t cached_bytes;   /* page cache of the whole machine (/proc/meminfo Cached) */
} EngIoReading;
void eng_io_read(EngIoReading *reading);

#endif
