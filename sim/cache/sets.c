/* Recency lists of sets; see sets.h. */
#include "sim/cache/sets.h"

#include <string.h>

#include "base/mem.h"

EngStatus eng_sets_init(EngSets *sets, int64_t n_sets, int ways, EngErr *err)
{
    *sets = (EngSets){.sets = n_sets, .ways = ways};
    if (n_sets < 1 || ways < 1 || ways > ENG_SETS_MAX_WAYS)
        return ENG_FAIL(err, ENG_USAGE, "cache model: %lld sets of %d ways", (long long)n_sets,
                        ways);
    return eng_alloc_or((void **)&sets->rows, (size_t)n_sets, (size_t)ways * sizeof *sets->rows,
                        "sets of a cache model", err);
}

void eng_sets_fini(EngSets *sets)
{
    eng_free(sets->rows);
    *sets = (EngSets){0};
}

void eng_sets_add(EngSets *sets, int64_t row)
{
    int64_t *list = sets->rows + row % sets->sets * sets->ways;
    int depth = 0;
    while (depth < sets->ways && list[depth] != row + 1) depth++;
    sets->accesses++;
    if (depth < sets->ways)
        sets->at_depth[depth]++;
    else
        depth--; /* the least recent goes */
    memmove(list + 1, list, (size_t)depth * sizeof *list);
    list[0] = row + 1;
}

int64_t eng_sets_hits(const EngSets *sets, int ways)
{
    int64_t hits = 0;
    for (int d = 0; d < ways && d < sets->ways; d++) hits += sets->at_depth[d];
    return hits;
}
