/* A libcupti for tests: the functions that the collector uses, driven by a test that loads the same
 * shared object and sets what it answers. Slots stand for threads, each with a buffer of its own,
 * as CUPTI 13 does. */
#ifndef ENG_TESTS_FAKE_CUPTI_H
#define ENG_TESTS_FAKE_CUPTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_SLOTS 8

typedef struct FakeCupti {
    /* what it answers */
    uint32_t version;
    int refused_kind; /* ActivityEnable of this kind fails with `refusal` */
    int refusal;
    bool refuse_callbacks, refuse_time;
    size_t extra_bytes; /* behind every record, as fields that a newer library appends */
    bool hold_buffers;  /* flushes give nothing back */
    int64_t ahead_ns;   /* its clock less CLOCK_MONOTONIC */
    size_t dropped;     /* what the next question about drops is answered with, once */
    /* what it saw */
    uint64_t enabled; /* a bit per kind */
    int thread_id_type, n_requests, n_refused, n_completed, n_flushes, depth[2];
    uint64_t ids[2]; /* last external id pushed to CUSTOM0, CUSTOM1 */
    /* A record from a thread; a name (kernels, devices) lies in memory that is overwritten once its
     * buffer was handed over. */
    void (*emit)(int slot, const void *record, size_t bytes, const char *name);
} FakeCupti;

/* The symbol "fake_cupti" is a function of this type. */
typedef FakeCupti *FakeCuptiGet(void);

#endif
