/* See flush.h. */
#include "bench/core/flush.h"

#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define MIB         ((size_t)1 << 20)
#define LEAST_BYTES (64 * MIB)
#define MOST_BYTES  (1024 * MIB)
#define PRIVATE_BYTES                                                                              \
    (8 * MIB) /* read on every processor: twice the largest private caches of today */
#define LINE_BYTES 64

bool eng_point_cache_is(const EngPoint *point, const char *word)
{
    const EngExperiment *experiment = point->experiment;
    for (int i = 0; i < experiment->n_axes; i++)
        if (!strcmp(experiment->axes[i].name, ENG_AXIS_CACHE))
            return !strcmp(point->values[i].text, word);
    return false;
}

size_t eng_flush_bytes(void)
{
    long last = sysconf(_SC_LEVEL3_CACHE_SIZE);
    size_t bytes = last > 0 ? 2 * (size_t)last : LEAST_BYTES;
    return bytes < LEAST_BYTES ? LEAST_BYTES : bytes > MOST_BYTES ? MOST_BYTES : bytes;
}

EngStatus eng_flush_create(EngFlush *flush, EngErr *err)
{
    void *buffer;
    *flush = (EngFlush){.bytes = eng_flush_bytes()};
    EngStatus status = eng_alloc_or(&buffer, flush->bytes, 1, "a buffer to flush caches", err);
    if (status) return status;
    memset(buffer, 1, flush->bytes); /* untouched pages would all be one page of zeros */
    flush->buffer = buffer;
    if (sched_getaffinity(0, sizeof flush->processors, &flush->processors))
        CPU_ZERO(&flush->processors);
    return ENG_OK;
}

static void read_lines(const uint8_t *bytes, size_t n)
{
    const volatile uint8_t *at = bytes;
    for (size_t i = 0; i < n; i += LINE_BYTES) (void)at[i];
}

void eng_flush_run(const EngFlush *flush)
{
    cpu_set_t before;
    if (!flush->buffer) return;
    bool movable = !sched_getaffinity(0, sizeof before, &before);
    for (size_t cpu = 0; movable && cpu < CPU_SETSIZE; cpu++) {
        cpu_set_t one;
        if (!CPU_ISSET(cpu, &flush->processors)) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (!sched_setaffinity(0, sizeof one, &one)) read_lines(flush->buffer, PRIVATE_BYTES);
    }
    if (movable) sched_setaffinity(0, sizeof before, &before);
    /* Twice: replacement is not strictly by age. */
    for (int pass = 0; pass < 2; pass++) read_lines(flush->buffer, flush->bytes);
}

void eng_flush_destroy(EngFlush *flush)
{
    eng_free((void *)(uintptr_t)flush->buffer);
    *flush = (EngFlush){0};
}
