/* Windows and stalls; see window.h. */
#include "sim/timeline/window.h"

#include <math.h>
#include <stdbool.h>

EngStatus eng_window(const double *layers, int n, int layer, double scheduling, double *window,
                     EngErr *err)
{
    if (layer < 0 || layer >= n)
        return ENG_FAIL(err, ENG_USAGE, "window: layer %d of %d", layer, n);
    if (!(scheduling >= 0))
        return ENG_FAIL(err, ENG_USAGE, "window: %g s of scheduling", scheduling);
    *window = scheduling;
    for (int i = 0; i < layer; i++) {
        if (!(layers[i] >= 0))
            return ENG_FAIL(err, ENG_USAGE, "window: layer %d takes %g s", i, layers[i]);
        *window += layers[i];
    }
    return ENG_OK;
}

/* Work done so far, in seconds of each side running alone. */
typedef struct Progress {
    double time, computed, fetched;
} Progress;

/* Layers run until `window` of their work is done; fetches beside them, from `hash` on. */
static void run_layers(Progress *p, double window, double fetches, double hash,
                       const EngSlowdowns *slower)
{
    while (p->computed < window) {
        bool fetching = p->time >= hash && p->fetched < fetches;
        double left = window - p->computed, span = left;
        if (fetching)
            span = fmin(left * (1 + slower->compute), (fetches - p->fetched) * (1 + slower->fetch));
        else if (p->time < hash)
            span = fmin(left, hash - p->time);
        bool last = span == (fetching ? left * (1 + slower->compute) : left);
        bool drained = fetching && span == (fetches - p->fetched) * (1 + slower->fetch);
        p->computed = last ? window : p->computed + span / (fetching ? 1 + slower->compute : 1);
        if (fetching) p->fetched = drained ? fetches : p->fetched + span / (1 + slower->fetch);
        /* Sums may miss the moment by a rounding; it must be met, or the loop would creep. */
        p->time = p->time < hash && !last ? hash : p->time + span;
    }
}

EngStatus eng_queue_stalls(EngQueuedFetch *fetches, int n, double hash, const EngSlowdowns *slower,
                           double *added, EngErr *err)
{
    Progress p = {0};
    double total = 0, due = 0;
    if (!(hash >= 0 && slower->fetch >= 0 && slower->compute >= 0))
        return ENG_FAIL(err, ENG_USAGE, "stalls: hash %g s, interference %g and %g", hash,
                        slower->fetch, slower->compute);
    for (int k = 0; k < n; k++) {
        if (!(fetches[k].fetch >= 0 && fetches[k].window >= (k ? fetches[k - 1].window : 0)))
            return ENG_FAIL(err, ENG_USAGE, "stalls: fetch %d takes %g s, its window is %g s", k,
                            fetches[k].fetch, fetches[k].window);
        total += fetches[k].fetch;
    }
    for (int k = 0; k < n; k++) {
        EngQueuedFetch *f = &fetches[k];
        run_layers(&p, f->window, total, hash, slower);
        due += f->fetch;
        double wait = p.fetched < due ? fmax(0, hash - p.time) + due - p.fetched : 0;
        p.fetched = fmax(p.fetched, due);
        p.time += wait;
        f->stall = wait;
        f->hidden = f->fetch > 0 ? fmax(0, 1 - wait / f->fetch) : 1;
    }
    *added = n ? p.time - fetches[n - 1].window : 0;
    return ENG_OK;
}
