/* Shared, read-only resources of a run: table memory, token streams, token maps, presets. The
 * runner opens what the plan's points need, once, before it forks workers; workers see the same
 * pages.
 */
#ifndef ENG_BENCH_RESOURCES_H
#define ENG_BENCH_RESOURCES_H

#include "bench/core/experiment.h"
#include "kernels/address/preset.h"
#include "kernels/address/tokmap.h"
#include "kernels/store/memory.h"

/* A corpus as one preset sees it. */
typedef struct EngTokens {
    const char *corpus; /* as asked for */
    const char *kind;   /* "real", "synthetic", "uniform", "filler", "imported" */
    int64_t n_tokens;
    const uint32_t *ids; /* original ids; NULL for streams that are compressed already */
    const int32_t *compressed;
    char digest[65]; /* of the stream */
} EngTokens;

/* Finds what was opened; each fails with ENG_NOT_FOUND when the plan did not ask for it. Memory
 * belongs to the resources and lives until the run ends. */
EngStatus eng_resources_table(const EngResources *resources, EngRowFormat format, int row_dims,
                              int64_t rows, EngTable *table, EngErr *err);
EngStatus eng_resources_tokens(const EngResources *resources, const char *preset,
                               const char *corpus, EngTokens *tokens, EngErr *err);
/* 32-byte-scale fp8 weights [n, k] with 32x32 e8m0 tiles: prefixes of one seeded arena, so that all
 * points share them. k and n are multiples of 32; the matrix is laid out for the k asked for. */
EngStatus eng_resources_weights(const EngResources *resources, int n, int k, const uint8_t **values,
                                const uint8_t **scales, EngErr *err);

#endif
