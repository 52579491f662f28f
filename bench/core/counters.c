/* See counters.h. */
#include "bench/core/counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TLB_MISSES                                                                                 \
    (PERF_COUNT_HW_CACHE_DTLB | PERF_COUNT_HW_CACHE_OP_READ << 8 |                                 \
     PERF_COUNT_HW_CACHE_RESULT_MISS << 16)

static const struct {
    const char *name;
    uint32_t type;
    uint64_t config;
} events[ENG_COUNTER_COUNT] = {
    [ENG_COUNTER_PAGE_FAULTS] = {"page_faults", 0, 0},
    [ENG_COUNTER_SWITCHES] = {"switches", 0, 0},
    [ENG_COUNTER_CYCLES] = {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    [ENG_COUNTER_INSTRUCTIONS] = {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    [ENG_COUNTER_CACHE_MISSES] = {"cache_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    [ENG_COUNTER_TLB_MISSES] = {"tlb_misses", PERF_TYPE_HW_CACHE, TLB_MISSES},
};

const char *eng_counter_name(EngCounter counter)
{
    return events[counter].name;
}

void eng_counters_open(EngCounters *counters)
{
    *counters = (EngCounters){.fds = {-1, -1}};
    for (int i = ENG_COUNTER_CYCLES; i < ENG_COUNTER_COUNT; i++) {
        struct perf_event_attr attr = {.type = events[i].type,
                                       .size = sizeof attr,
                                       .config = events[i].config,
                                       .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
                                                      PERF_FORMAT_TOTAL_TIME_RUNNING};
        attr.inherit = 1;
        attr.exclude_kernel = 1;
        attr.exclude_hv = 1;
        counters->fds[i] =
            (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
        if (counters->fds[i] < 0) counters->errors[i] = errno;
    }
}

void eng_counters_close(EngCounters *counters)
{
    for (int i = ENG_COUNTER_CYCLES; i < ENG_COUNTER_COUNT; i++) {
        if (counters->fds[i] >= 0) close(counters->fds[i]);
        counters->fds[i] = -1;
    }
}

/* *away_ns: how long it was wanted and not on the processor so far. */
static double read_event(int fd, double *away_ns)
{
    uint64_t value[3]; /* count, time enabled, time running */
    *away_ns = 0;
    if (fd < 0 || read(fd, value, sizeof value) != (ssize_t)sizeof value) return NAN;
    *away_ns = (double)(value[1] - value[2]);
    return (double)value[0];
}

static void read_all(const EngCounters *counters, double values[ENG_COUNTER_COUNT],
                     double away_ns[ENG_COUNTER_COUNT])
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    values[ENG_COUNTER_PAGE_FAULTS] = (double)(usage.ru_minflt + usage.ru_majflt);
    values[ENG_COUNTER_SWITCHES] = (double)(usage.ru_nvcsw + usage.ru_nivcsw);
    away_ns[ENG_COUNTER_PAGE_FAULTS] = away_ns[ENG_COUNTER_SWITCHES] = 0;
    for (int i = ENG_COUNTER_CYCLES; i < ENG_COUNTER_COUNT; i++)
        values[i] = read_event(counters->fds[i], &away_ns[i]);
}

void eng_counters_start(EngCounters *counters)
{
    read_all(counters, counters->start, counters->away_ns);
}

void eng_counters_stop(EngCounters *counters, double values[ENG_COUNTER_COUNT])
{
    double away_ns[ENG_COUNTER_COUNT];
    read_all(counters, values, away_ns);
    for (int i = 0; i < ENG_COUNTER_COUNT; i++)
        values[i] = away_ns[i] > counters->away_ns[i] ? NAN : values[i] - counters->start[i];
}

static const char *reason(int error)
{
    switch (error) {
    case ENOENT:
        return "ENOENT (no such counter here)";
    case EACCES:
    case EPERM:
        return "EACCES (perf_event_paranoid or a container forbids it)";
    case ENOSYS:
        return "ENOSYS (not in this kernel)";
    case EOPNOTSUPP:
        return "EOPNOTSUPP (the processor cannot)";
    default:
        return strerrorname_np(error);
    }
}

void eng_counters_json(const EngCounters *counters, char *out, size_t size)
{
    size_t used = 0;
    for (int i = ENG_COUNTER_CYCLES; i < ENG_COUNTER_COUNT && used < size; i++) {
        int error = counters->errors[i];
        const char *why = error ? reason(error) : "";
        int n = snprintf(out + used, size - used, "%s\"%s\":\"%s%s\"",
                         i == ENG_COUNTER_CYCLES ? "{" : ",", events[i].name,
                         error ? "perf_event_open: " : "counted", why ? why : "unknown error");
        used += n > 0 ? (size_t)n : 0;
    }
    if (used < size) snprintf(out + used, size - used, "}");
}
