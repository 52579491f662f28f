/* See evidence.h. */
#include "bench/core/evidence.h"

#include <dirent.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/core/counters.h"

#define NOT_SHOWN "\"not shown by the kernel\""

static bool read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "re");
    if (!file) return false;
    bool ok = fgets(line, (int)size, file) != NULL;
    fclose(file);
    return ok;
}

static int64_t steal_ticks(void)
{
    char line[512];
    long long steal;
    bool shown = read_line("/proc/stat", line, sizeof line) &&
                 sscanf(line, "cpu %*d %*d %*d %*d %*d %*d %*d %lld", &steal) == 1;
    return shown ? steal : -1;
}

/* "cpu0", not "cpufreq". */
static bool is_processor(const char *name)
{
    return !strncmp(name, "cpu", 3) && name[3] >= '0' && name[3] <= '9';
}

/* Sum over processors of a number in a file of /sys; *n: how many have it. */
static double sum_of(const char *file, int *n)
{
    static const char folder[] = "/sys/devices/system/cpu";
    double sum = 0;
    *n = 0;
    DIR *processors = opendir(folder);
    for (struct dirent *entry; processors && (entry = readdir(processors));) {
        char path[512], line[64];
        if (!is_processor(entry->d_name)) continue;
        snprintf(path, sizeof path, "%s/%.64s/%s", folder, entry->d_name, file);
        if (!read_line(path, line, sizeof line)) continue;
        sum += strtod(line, NULL);
        ++*n;
    }
    if (processors) closedir(processors);
    return sum;
}

/* The governor's file where there is one (kHz), else /proc/cpuinfo, which may be the nominal clock
 * in a virtual machine. */
static double mean_mhz(void)
{
    int n;
    double sum = sum_of("cpufreq/scaling_cur_freq", &n) / 1000;
    if (n) return sum / n;
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[4096];
    sum = 0;
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strncmp(line, "cpu MHz", 7) ? NULL : strchr(line, ':');
        if (!colon) continue;
        sum += strtod(colon + 1, NULL);
        n++;
    }
    if (file) fclose(file);
    return n ? sum / n : NAN;
}

void eng_evidence_read(EngEvidence *evidence)
{
    struct rusage usage;
    char load[128];
    int n;
    getrusage(RUSAGE_CHILDREN, &usage);
    *evidence = (EngEvidence){
        .steal_ticks = steal_ticks(),
        .minor_faults = usage.ru_minflt,
        .major_faults = usage.ru_majflt,
        .voluntary_switches = usage.ru_nvcsw,
        .involuntary_switches = usage.ru_nivcsw,
        .user_us = usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec,
        .system_us = usage.ru_stime.tv_sec * 1000000 + usage.ru_stime.tv_usec,
        .mhz = mean_mhz(),
        .load = read_line("/proc/loadavg", load, sizeof load) ? strtod(load, NULL) : NAN};
    double throttles = sum_of("thermal_throttle/core_throttle_count", &n);
    evidence->throttles = n ? (int64_t)throttles : -1;
}

static void number_text(double value, char out[32])
{
    if (isnan(value))
        snprintf(out, 32, "null");
    else
        snprintf(out, 32, "%.6g", value);
}

void eng_evidence_delta_json(const EngEvidence *then, const EngEvidence *now, char *out,
                             size_t size)
{
    EngCounters counters;
    char mhz[2][32], load[2][32], allowed[512];
    char throttles[32] = NOT_SHOWN, steal[32] = NOT_SHOWN, clock[80] = NOT_SHOWN;
    const EngEvidence *ends[] = {then, now};
    for (int i = 0; i < 2; i++) {
        number_text(ends[i]->mhz, mhz[i]);
        number_text(ends[i]->load, load[i]);
    }
    if (now->throttles >= 0)
        snprintf(throttles, sizeof throttles, "%lld",
                 (long long)(now->throttles - then->throttles));
    if (then->steal_ticks >= 0)
        snprintf(steal, sizeof steal, "%lld", (long long)(now->steal_ticks - then->steal_ticks));
    if (!isnan(then->mhz) && !isnan(now->mhz))
        snprintf(clock, sizeof clock, "[%s,%s]", mhz[0], mhz[1]);
    eng_counters_open(&counters);
    eng_counters_json(&counters, allowed, sizeof allowed);
    eng_counters_close(&counters);
    int n = snprintf(out, size,
                     "{\"steal_ticks\":%s,\"minor_faults\":%lld,\"major_faults\":%lld,"
                     "\"voluntary_switches\":%lld,\"involuntary_switches\":%lld,\"user_us\":%lld,"
                     "\"system_us\":%lld,\"mhz\":%s,\"throttles\":%s,\"load\":[%s,%s],"
                     "\"counters\":%s}",
                     steal, (long long)(now->minor_faults - then->minor_faults),
                     (long long)(now->major_faults - then->major_faults),
                     (long long)(now->voluntary_switches - then->voluntary_switches),
                     (long long)(now->involuntary_switches - then->involuntary_switches),
                     (long long)(now->user_us - then->user_us),
                     (long long)(now->system_us - then->system_us), clock, throttles, load[0],
                     load[1], allowed);
    if (n < 0 || (size_t)n >= size) snprintf(out, size, "{}");
}
