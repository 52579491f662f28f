/* What a kernel on a device sees of an experiment's buffers, which lie on the host.
 *
 * Experiments fill, pass and check host memory whatever the backend. For a variant of a device,
 * every buffer of a problem and its arguments has a mirror: device memory of the same size (pinned
 * host memory for a table that is to be read from there). A mirror is made, and filled from the
 * host, when its buffer is first seen; after that, timed runs touch mirrors alone, and what one
 * kernel writes the next one reads. push and pull copy the arguments of one call: a run between
 * them is as if the kernel had worked on the host's memory.
 *
 * A pointer into a larger buffer (a window of many) finds the mirror of the whole when that was
 * covered before. Mirrors are shared by all that see the same buffer, and go with the last of them.
 * One thread of a process uses them.
 */
#ifndef ENG_EXPERIMENTS_MIRROR_H
#define ENG_EXPERIMENTS_MIRROR_H

#include <engram/kernels.h>
#include "bench/experiments/device_axes.h"
#include "kernels/cuda/queue.h"

typedef struct EngMirror EngMirror;

/* Of one runner; zeros: none. */
#define ENG_MAX_MIRRORS 24
typedef struct EngMirrors {
    EngMirror *held[ENG_MAX_MIRRORS];
    int n;
} EngMirrors;

/* Mirrors of a whole buffer, for pointers into it. `host` has its content already. */
EngStatus eng_mirror_cover(EngMirrors *mirrors, const void *host, size_t bytes, EngErr *err);
/* problem and args with the addresses of mirrors. A staged table has none, nor has one made on the
 * device. */
EngStatus eng_mirror_problem(EngMirrors *mirrors, const EngProblem *problem, EngTableAt table,
                             EngProblem *there, EngErr *err);
EngStatus eng_mirror_args(EngMirrors *mirrors, const EngProblem *problem, const EngArgs *args,
                          EngArgs *there, EngErr *err);
/* Where the device has these bytes. */
EngStatus eng_mirror_at(EngMirrors *mirrors, const void *host, size_t bytes, const void **there,
                        EngErr *err);
/* All buffers of args to their mirrors; those that the operation writes, back from them. */
EngStatus eng_mirror_push(EngMirrors *mirrors, const EngProblem *problem, const EngArgs *args,
                          EngErr *err);
EngStatus eng_mirror_pull(EngMirrors *mirrors, const EngProblem *problem, const EngArgs *args,
                          EngErr *err);
void eng_mirror_drop(EngMirrors *mirrors); /* before the buffers are freed; accepts zeros */

#endif
