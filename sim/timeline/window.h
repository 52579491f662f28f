/* Prefetch windows and the waits of modules that share one queue of fetches.
 *
 * Ids of a step are known when it begins, so layer l may take the time of scheduling and of the
 * layers before it. Modules fetch one after the other; a wait at one gives the later ones as much
 * more time. Without interference that is
 *   stall_k = max(0, hash + sum of fetches up to k - window_k - sum of stalls before k).
 * While a fetch runs beside layers both may be slower, each by a factor measured beforehand; while
 * the layers wait, the fetch runs alone.
 */
#ifndef ENG_SIM_TIMELINE_WINDOW_H
#define ENG_SIM_TIMELINE_WINDOW_H

#include <engram/status.h>

/* Seconds until layer `layer` (from 0) needs its rows; layers: [n] s of each. ENG_USAGE: a layer
 * outside, a negative time. */
EngStatus eng_window(const double *layers, int n, int layer, double scheduling, double *window,
                     EngErr *err);

typedef struct EngQueuedFetch {
    double window, fetch; /* s; windows ascend */
    double stall, hidden; /* out: s, and the share of the fetch that is hidden */
} EngQueuedFetch;

typedef struct EngSlowdowns {
    double fetch, compute; /* slow-downs as shares, 0: none */
} EngSlowdowns;

/* hash: s before the first fetch can start; without fetches a hash delays nothing. *added: what the
 * step gets longer, stalls and slower layers together. ENG_USAGE: negative times, windows that do
 * not ascend. */
EngStatus eng_queue_stalls(EngQueuedFetch *fetches, int n, double hash, const EngSlowdowns *slower,
                           double *added, EngErr *err);

#endif
