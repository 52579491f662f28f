/* One line per message, written with one call so that lines of several processes stay whole. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static EngLogLevel g_level = ENG_LOG_INFO;

void eng_log_set_level(EngLogLevel level)
{
    g_level = level;
}

void eng_log(EngLogLevel level, const char *module, const char *fmt, ...)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    if (level > g_level) return;
    char line[2048];
    int n = snprintf(line, sizeof line, "%s %s: ", names[level], module);
    if (n < 0 || (size_t)n >= sizeof line - 2) return;
    va_list ap;
    va_start(ap, fmt);
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    va_end(ap);
    size_t used = (size_t)n + (m < 0 ? 0 : (size_t)m);
    if (used > sizeof line - 2) used = sizeof line - 2;
    /* Names from outside may hold anything: a message stays one line, and moves no terminal. */
    for (size_t i = 0; i < used; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f) line[i] = '?';
    line[used++] = '\n';
    ssize_t ignored = write(STDERR_FILENO, line, used);
    (void)ignored;
}
