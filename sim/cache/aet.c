/* Average eviction time; see aet.h. */
#include "sim/cache/aet.h"

#include "base/mem.h"
#include "sim/cache/row_ids.h"

/* Times below ENG_AET_STEPS have a bin each; after that each doubling is cut into as many. */
static int bin_of(uint64_t time)
{
    int shift = 0;
    while (time >> shift >= 2 * ENG_AET_STEPS) shift++;
    return shift * ENG_AET_STEPS + (int)(time >> shift);
}

/* First time of a bin. */
static double time_of(int bin)
{
    int shift = bin < 2 * ENG_AET_STEPS ? 0 : bin / ENG_AET_STEPS - 1;
    return (double)((uint64_t)(bin - shift * ENG_AET_STEPS) << shift);
}

EngStatus eng_aet_init(EngAet *aet, EngErr *err)
{
    *aet = (EngAet){0};
    return eng_alloc_or((void **)&aet->bins, ENG_AET_BINS, sizeof *aet->bins, "reuse times", err);
}

void eng_aet_fini(EngAet *aet)
{
    eng_free(aet->last);
    eng_free(aet->bins);
    *aet = (EngAet){0};
}

EngStatus eng_aet_add(EngAet *aet, uint32_t id, EngErr *err)
{
    EngStatus status = eng_by_id_grow((void **)&aet->last, &aet->last_room, (uint64_t)id + 1,
                                      sizeof *aet->last, err);
    if (status) return status;
    int64_t now = ++aet->accesses;
    if (aet->last[id]) {
        aet->bins[bin_of((uint64_t)(now - aet->last[id]))]++;
        aet->reuses++;
    }
    aet->last[id] = now;
    return ENG_OK;
}

void eng_aet_rates(const EngAet *aet, const int64_t *capacities, int n, double *rates)
{
    double filled = 0, all = (double)aet->accesses;
    int64_t longer = aet->accesses; /* reuse times not below this bin's, first uses included */
    int i = 0;
    for (int bin = 0; bin < ENG_AET_BINS - ENG_AET_STEPS && i < n; bin++) {
        double width = time_of(bin + 1) - time_of(bin);
        int64_t after = longer - aet->bins[bin];
        /* P(reuse > t): exact where a time has a bin of its own, else the mean over the bin. */
        double slope = (width == 1 ? (double)after : ((double)longer + (double)after) / 2) / all;
        for (; i < n && filled + slope * width > (double)capacities[i]; i++) {
            double part = width == 1 ? 1 : ((double)capacities[i] - filled) / (slope * width);
            rates[i] = ((double)(aet->accesses - longer) + part * (double)aet->bins[bin]) / all;
        }
        filled += slope * width;
        longer = after;
        if (longer == aet->accesses - aet->reuses) break;
    }
    for (; i < n; i++) rates[i] = aet->accesses ? (double)aet->reuses / all : 0;
}
