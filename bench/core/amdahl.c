/* Worth of a kernel ratio for the chain; see amdahl.h. */
#include "bench/core/amdahl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/core/rounds.h"

double eng_amdahl_gain(double share, double speedup)
{
    return 1 / (1 - share + share / speedup) - 1;
}

double eng_amdahl_ceiling(double share)
{
    return share < 1 ? 1 / (1 - share) - 1 : INFINITY;
}

double eng_amdahl_pairs(double gain, double floor, int pairs)
{
    double ratio = floor / fabs(gain);
    return gain == 0 ? INFINITY : ceil(pairs * ratio * ratio);
}

/* The chain's floor on its wall time, which is what it is judged by. */
static EngStatus find_floor(const EngPairPoint *point, EngArena *arena, EngAmdahl *amdahl,
                            EngErr *err)
{
    double *times = eng_arena_alloc(arena, (size_t)point->n * sizeof *times);
    int *segments = eng_arena_alloc(arena, (size_t)point->n * sizeof *segments);
    if (!times || !segments) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the chain");
    for (int i = 0; i < point->n; i++) {
        times[i] = point->samples[i].wall_ns;
        segments[i] = point->samples[i].segment;
    }
    EngRounds rounds = {
        .n_rounds = point->n, .n_candidates = 1, .segments = segments, .times = times};
    amdahl->pairs = point->n;
    return eng_rounds_floor(&rounds, 0, &amdahl->floor, NULL, err);
}

EngStatus eng_amdahl_find(EngDb *db, const char *machine_id, const char *stage, const char *preset,
                          int64_t tokens, int64_t threads, EngAmdahl *amdahl, EngErr *err)
{
    EngChainRow chain;
    EngPairPoint *points;
    char metric[64];
    bool found;
    int n;
    *amdahl = (EngAmdahl){.floor = NAN, .tokens = tokens};
    EngStatus status =
        eng_db_find_chain(db, machine_id, preset, tokens, threads, &chain, &found, err);
    if (status || !found) return status;
    EngArena *arena = eng_arena_create();
    if (!arena) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the chain");
    snprintf(metric, sizeof metric, "share_%s", stage);
    amdahl->threads = chain.threads;
    status = eng_db_median(db, chain.run_id, chain.point_key, metric, &amdahl->share, err);
    if (!status)
        status =
            eng_db_median(db, chain.run_id, chain.point_key, "wall_us", &amdahl->chain_us, err);
    if (!status) status = eng_db_pairs(db, chain.run_id, chain.point_key, arena, &points, &n, err);
    if (!status && n == 1) status = find_floor(points, arena, amdahl, err);
    amdahl->found = !status && amdahl->share >= 0;
    eng_arena_destroy(arena);
    return status;
}

void eng_amdahl_text(const EngAmdahl *amdahl, const char *stage, double speedup, char *out,
                     size_t size)
{
    double gain = eng_amdahl_gain(amdahl->share, speedup);
    int used = snprintf(
        out, size, "x%.3g on %s = %+.2g %% of the chain at %lld tokens (%s is %.2g %% of it",
        speedup, stage, 100 * gain, (long long)amdahl->tokens, stage, 100 * amdahl->share);
    if (used < 0 || (size_t)used >= size) return;
    out += used;
    size -= (size_t)used;
    if (isnan(amdahl->floor))
        snprintf(out, size, "; too few chain samples to say whether that can be detected)");
    else if (fabs(gain) > amdahl->floor)
        snprintf(out, size, "; above the chain's A/A floor of %.2g %%: detectable)",
                 100 * amdahl->floor);
    else if (fabs(gain) < 1e-6)
        snprintf(out, size, "; nothing to detect)");
    else
        snprintf(out, size,
                 "; below the chain's A/A floor of %.2g %%: not detectable in %d pairs, about %.2g "
                 "would tell)",
                 100 * amdahl->floor, amdahl->pairs,
                 eng_amdahl_pairs(gain, amdahl->floor, amdahl->pairs));
}
