/* Files: read whole, map read-only, write through a temporary name and rename. Writing can be made
 * to fail on demand: ENG_FAIL_WRITE=N (environment) or eng_file_fail_after() cuts the N-th written
 * byte of the process off with "no space left", as a full disk would. Row stores ask before every
 * read whether it is to fail: ENG_FAIL_READ=N or eng_file_fail_read_at(). */
#ifndef ENG_BASE_FILE_H
#define ENG_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <engram/status.h>

/* The most eng_file_read takes: it is for text and JSON, which grow in memory when parsed. */
#define ENG_FILE_READ_MAX ((size_t)256 << 20)

/* Whole file with a zero byte appended; free with eng_free. Missing: ENG_NOT_FOUND; no regular
 * file, or one beyond ENG_FILE_READ_MAX: ENG_BAD_DATA. */
EngStatus eng_file_read(const char *path, char **text, size_t *n, EngErr *err);

/* A descriptor for reading, which the caller closes, and the size of the file; -1 after an error,
 * with the same statuses. Waits for nothing: a pipe is no regular file. */
EngStatus eng_file_open_read(const char *path, int *fd, size_t *bytes, EngErr *err);

/* Read-only mapping; empty files give data NULL and bytes 0. */
typedef struct EngMapping {
    const void *data;
    size_t bytes;
} EngMapping;
EngStatus eng_file_map(const char *path, EngMapping *mapping, EngErr *err);
void eng_file_unmap(EngMapping *mapping);

/* Temporary file beside path, renamed over it by commit; close without commit removes it. */
typedef struct EngWriter {
    FILE *file;
    char *path, *temporary;
} EngWriter;
EngStatus eng_writer_open(EngWriter *writer, const char *path, EngErr *err);
EngStatus eng_writer_put(EngWriter *writer, const void *bytes, size_t n, EngErr *err);
EngStatus eng_writer_printf(EngWriter *writer, EngErr *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts on disk what was given so far: then only the renaming can fail in commit. */
EngStatus eng_writer_flush(EngWriter *writer, EngErr *err);
EngStatus eng_writer_commit(EngWriter *writer, EngErr *err);
void eng_writer_close(EngWriter *writer);

/* The name under which this process writes what will be path: of no other process, and known to
 * eng_writer_sweep(). Free with eng_free; NULL: no memory. */
char *eng_writer_temporary(const char *path);

/* Removes the temporary files that writers of path left when they were killed: those of processes
 * that are no more. */
void eng_writer_sweep(const char *path);

EngStatus eng_file_write(const char *path, const void *bytes, size_t n, EngErr *err);

/* n bytes at an offset of an open file, for large files with many writers; path is for the error
 * text. A read that meets the end of the file: ENG_BAD_DATA, with the size the file has. */
EngStatus eng_file_read_at(int fd, const char *path, void *bytes, size_t n, uint64_t offset,
                           EngErr *err);
EngStatus eng_file_write_at(int fd, const char *path, const void *bytes, size_t n, uint64_t offset,
                            EngErr *err);

/* Creates path and its parents. */
EngStatus eng_make_dirs(const char *path, EngErr *err);
bool eng_file_exists(const char *path);

/* Bytes that may still be written before a full disk is reported; -1: no limit. */
void eng_file_fail_after(int64_t bytes);
/* The n-th read of a row store from now fails as a broken device's would (0: none). */
void eng_file_fail_read_at(int64_t n);
/* Counts one read; true when it is the one. From any thread. */
bool eng_file_read_fails(void);

#endif
