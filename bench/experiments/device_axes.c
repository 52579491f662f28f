/* See device_axes.h. */
#include "bench/experiments/device_axes.h"

#include <string.h>

#include "bench/core/flush.h"
#include "bench/experiments/axes.h"

const char *const eng_words_table_at[] = {"local", "pinned", "staged", NULL};
const char *const eng_words_table_of_gather[] = {"local", "pinned", "staged", "made", NULL};
const char *const eng_words_graph[] = {"off", "on", NULL};

static const char *word_of(const EngPoint *point, const char *axis)
{
    for (int i = 0; point && i < point->experiment->n_axes; i++)
        if (!strcmp(point->experiment->axes[i].name, axis)) return point->values[i].text;
    return "";
}

EngTableAt eng_point_table_at(const EngPoint *point)
{
    const char *word = word_of(point, ENG_AXIS_TABLE_AT);
    return !strcmp(word, "pinned")   ? ENG_TABLE_PINNED
           : !strcmp(word, "staged") ? ENG_TABLE_STAGED
           : !strcmp(word, "made")   ? ENG_TABLE_MADE
                                     : ENG_TABLE_LOCAL;
}

bool eng_point_has_graph(const EngPoint *point)
{
    return !strcmp(word_of(point, ENG_AXIS_GRAPH), "on");
}

EngStatus eng_point_device_check(const EngPoint *point, const EngKernel *kernel, EngErr *why)
{
    EngTableAt at = eng_point_table_at(point);
    bool device = kernel->backend == ENG_CUDA, packs = !strcmp(kernel->name, "cuda_staged");
    if (!device && at != ENG_TABLE_LOCAL)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "table_at=%s is a device's; %s runs on the host",
                        eng_words_table_of_gather[at], kernel->name);
    if (!device && eng_point_has_graph(point))
        return ENG_FAIL(why, ENG_UNSUPPORTED, "graph=on is a device's; %s runs on the host",
                        kernel->name);
    if (kernel->op == ENG_OP_GATHER && packs != (at == ENG_TABLE_STAGED))
        return ENG_FAIL(why, ENG_UNSUPPORTED, "%s does not take a table at %s", kernel->name,
                        eng_words_table_of_gather[at]);
    if (packs && eng_point_has_graph(point))
        return ENG_FAIL(why, ENG_UNSUPPORTED, "graph=on: what the host packs is not in a graph");
    if (device && eng_point_cache_is(point, ENG_CACHE_COLD))
        return ENG_FAIL(why, ENG_UNSUPPORTED, "cache=cold flushes the host's caches alone");
    return ENG_OK;
}
