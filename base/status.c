/* Error text and the mapping from status to exit code (design section 3). */
#include <engram/status.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int exit_code;
} g_status[ENG_STATUS_COUNT] = {
    [ENG_OK] = {"ok", 0},
    [ENG_USAGE] = {"usage", 1},
    [ENG_BAD_DATA] = {"bad data", 6},
    [ENG_NOT_FOUND] = {"not found", 5},
    [ENG_UNSUPPORTED] = {"unsupported", 2},
    [ENG_NO_MEMORY] = {"no memory", 7},
    [ENG_IO] = {"input/output", 7},
    [ENG_DB] = {"database", 7},
    [ENG_NO_DEVICE] = {"no device", 77},
    [ENG_MISMATCH] = {"mismatch", 2},
    [ENG_INTERRUPTED] = {"interrupted", 130},
    [ENG_INTERNAL] = {"internal", 7},
};

EngStatus eng_err_set(EngErr *err, EngStatus status, const char *file, int line, const char *fmt,
                      ...)
{
    if (!err) return status;
    va_list ap;
    err->status = status;
    err->file = file;
    err->line = line;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    return status;
}

EngStatus eng_err_prefix(EngErr *err, const char *fmt, ...)
{
    if (!err) return ENG_INTERNAL;
    char rest[ENG_ERR_TEXT_BYTES], head[ENG_ERR_TEXT_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(head, sizeof head, fmt, ap);
    va_end(ap);
    snprintf(rest, sizeof rest, "%s", err->text);
    int n = snprintf(err->text, sizeof err->text, "%s: ", head);
    if (n >= 0 && (size_t)n < sizeof err->text)
        snprintf(err->text + n, sizeof err->text - (size_t)n, "%.*s",
                 (int)(sizeof err->text - 1 - (size_t)n), rest);
    return err->status;
}

const char *eng_status_name(EngStatus status)
{
    return (unsigned)status < ENG_STATUS_COUNT ? g_status[status].name : "unknown";
}

int eng_status_exit_code(EngStatus status)
{
    return (unsigned)status < ENG_STATUS_COUNT ? g_status[status].exit_code : 7;
}
