#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_ns(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t eng_now_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

int64_t eng_thread_cpu_ns(void)
{
    return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

void eng_utc_now(char *out, size_t size)
{
    struct timespec ts;
    struct tm tm;
    char seconds[24];
    clock_gettime(CLOCK_REALTIME, &ts);
    gmtime_r(&ts.tv_sec, &tm);
    strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out, size, "%s.%03ldZ", seconds, ts.tv_nsec / 1000000);
}
