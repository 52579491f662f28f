/* Placement: the axis `pin` of timed experiments, applied to the threads of a point.
 *
 * none: wherever the system puts them; compact: neighbouring processors, hardware threads of a core
 * together; scatter: as far apart as the machine allows. Only processors that the process may use
 * count. Set-up runs unpinned, so that tables are filled by all processors.
 */
#ifndef ENG_BENCH_PLACEMENT_H
#define ENG_BENCH_PLACEMENT_H

#include "bench/core/experiment.h"

#define ENG_AXIS_PIN     "pin"
#define ENG_AXIS_THREADS "threads"

/* What the teams of the calling process are bound to; zeros to begin with. */
typedef struct EngPlacement {
    void *topology;  /* read when a point first wants to be pinned */
    int *cpus, n;    /* [n] processors that we may use, neighbours together */
    int *chosen;     /* [n] scratch */
    const char *pin; /* of the team bound now, NULL or "none": unbound */
    int threads;     /* of that team */
    int largest;     /* team bound so far */
} EngPlacement;

/* Binds the team of the point; a point without the axis counts as none. ENG_UNSUPPORTED: fewer
 * processors than threads, or the system refuses. Cheap when nothing changes. */
EngStatus eng_placement_apply(EngPlacement *placement, const EngPoint *point, EngErr *err);
void eng_placement_free(EngPlacement *placement);

#endif
