/* Status codes and error text: the one way every fallible function of the workbench reports
 * failure.
 *
 * A function returns EngStatus and, when it fails, fills the caller's EngErr with one line that
 * names file, key and value as far as they are known. The caller owns the EngErr; passing NULL is
 * allowed.
 */
#ifndef ENGRAM_STATUS_H
#define ENGRAM_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum EngStatus {
    ENG_OK = 0,
    ENG_USAGE,       /* the user's command, sweep or option is wrong */
    ENG_BAD_DATA,    /* an input file is malformed, truncated or has the wrong digest */
    ENG_NOT_FOUND,   /* nothing of that name */
    ENG_UNSUPPORTED, /* this shape, type or machine cannot: a skip with a reason */
    ENG_NO_MEMORY,
    ENG_IO,          /* a file could not be read or written (disk full included) */
    ENG_DB,          /* SQLite refused: busy, foreign, newer, corrupt */
    ENG_NO_DEVICE,   /* a device-only command without a device */
    ENG_MISMATCH,    /* a result differs from the oracle */
    ENG_INTERRUPTED, /* a signal asked us to stop; the run can be resumed */
    ENG_INTERNAL,    /* a broken invariant of ours */
    ENG_STATUS_COUNT
} EngStatus;

#define ENG_ERR_TEXT_BYTES 1024

typedef struct EngErr {
    EngStatus status;
    const char *file; /* source file and line where the error was first set */
    int line;
    char text[ENG_ERR_TEXT_BYTES];
} EngErr;

/* Sets err (may be NULL) and returns status, so that callers write `return ENG_FAIL(err, ...)`. */
#define ENG_FAIL(err, status, ...) eng_err_set((err), (status), __FILE__, __LINE__, __VA_ARGS__)

EngStatus eng_err_set(EngErr *err, EngStatus status, const char *file, int line, const char *fmt,
                      ...) __attribute__((format(printf, 5, 6)));

/* Puts "text: " in front of an error already set; returns its status. */
EngStatus eng_err_prefix(EngErr *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Short stable word for a status ("bad data"), and the process exit code the design gives it. */
const char *eng_status_name(EngStatus status);
int eng_status_exit_code(EngStatus status);

#ifdef __cplusplus
}
#endif
#endif
