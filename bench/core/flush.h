/* The axis `cache` of timed experiments. rotate (the default) and warm choose what an experiment's
 * calls read; cold is done here: before every sample, outside the timed window, all caches are
 * filled with a buffer that the kernels never read. The buffer is written once, when it is made,
 * and only read afterwards, so that its lines need no write-back that the next sample would pay
 * for. A cold sample is a single call: a second one would be warm.
 */
#ifndef ENG_BENCH_FLUSH_H
#define ENG_BENCH_FLUSH_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/core/experiment.h"

#define ENG_AXIS_CACHE   "cache"
#define ENG_CACHE_ROTATE "rotate"
#define ENG_CACHE_WARM   "warm"
#define ENG_CACHE_COLD   "cold"

/* Whether the point has the axis and its value is this one. */
bool eng_point_cache_is(const EngPoint *point, const char *word);

/* Zeros: nothing is flushed. */
typedef struct EngFlush {
    const uint8_t *buffer; /* owned; twice the last-level cache, 64 MiB to 1 GiB */
    size_t bytes;
    cpu_set_t processors; /* of the process, whose private caches are filled in turn */
} EngFlush;

/* Bytes of the buffer that a flush here takes. */
size_t eng_flush_bytes(void);
EngStatus eng_flush_create(EngFlush *flush, EngErr *err);
/* Returns on the processors that the calling thread was bound to. */
void eng_flush_run(const EngFlush *flush);
void eng_flush_destroy(EngFlush *flush); /* accepts zeros */

#endif
