/* Shared, read-only resources of a run: table memory, weights, token streams, token maps, presets.
 * The runner opens what the plan's points need, once, before it forks workers; workers see the same
 * pages.
 *
 * One table arena is mapped at a time, of the format of the blocks being run; every table is a
 * prefix of it.
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
    const char *label;  /* for tables and plots */
    int64_t n_tokens;
    const uint32_t *ids;       /* original ids; NULL for generated streams, which are compressed */
    const int32_t *compressed; /* in [0, preset's vocab) */
    int64_t vocab_ids;         /* ids of the original tokenizer, 0 when ids is NULL */
    const char *digest;        /* of the stream, hex sha256 */
} EngTokens;

/* data_dir: where streams and tokenizer.json lie. The caller frees with eng_resources_destroy. */
EngStatus eng_resources_create(const char *data_dir, uint64_t seed, EngResources **resources,
                               EngErr *err);
void eng_resources_destroy(EngResources *resources); /* accepts NULL */
/* As given to eng_resources_create. */
const char *eng_resources_data_dir(const EngResources *resources);
uint64_t eng_resources_seed(const EngResources *resources);

/* What the workers of a run need do only once among them, by a key of their choice (not 0): whether
 * one has done it, and that this one has. A key that finds no room is done again. */
bool eng_resources_done(const EngResources *resources, uint64_t key);
void eng_resources_set_done(const EngResources *resources, uint64_t key);

/* Opens stream, token map and preset of one point, and remembers the most table and weight bytes
 * any point asked for; nothing large is allocated. */
EngStatus eng_resources_add(EngResources *resources, const EngNeed *need, EngErr *err);
/* Maps and fills the table arena for a format (releasing the arena of another) and the weights, as
 * large as the largest need added. ENG_NO_MEMORY before allocating, with the bytes needed. */
EngStatus eng_resources_map(EngResources *resources, EngRowFormat format, EngErr *err);
/* Lays the mapped table out for rows of so many dims, where its format keeps scales inside rows. */
EngStatus eng_resources_layout(EngResources *resources, int row_dims, EngErr *err);
EngStatus eng_resources_map_weights(EngResources *resources, EngErr *err);

/* Finds what was opened; each fails with ENG_NOT_FOUND when the plan did not ask for it. Memory
 * belongs to the resources and lives until they are destroyed. */
EngStatus eng_resources_table(const EngResources *resources, EngRowFormat format, int row_dims,
                              int64_t rows, EngTable *table, EngErr *err);
EngStatus eng_resources_tokens(const EngResources *resources, const char *preset,
                               const char *corpus, EngTokens *tokens, EngErr *err);
/* fp8 weights [n, k] with 32x32 e8m0 tiles: prefixes of one seeded arena, so that all points share
 * them. k and n are multiples of 32; values are [n, k], scales [n/32, k/32]. */
EngStatus eng_resources_weights(const EngResources *resources, int n, int k, const uint8_t **values,
                                const uint8_t **scales, EngErr *err);

/* Identity of a table arena: what a point's store digest is made of. */
EngStatus eng_resources_store_digest(const EngResources *resources, EngRowFormat format,
                                     char digest[ENG_KEY_HEX], EngErr *err);
/* The arena now mapped; huge_bytes tells what the pages are. NULL when none is. */
const EngTableArena *eng_resources_arena(const EngResources *resources);
/* false: a corpus that scripts/fetch_data would make is absent, and the synthetic stream may take
 * its place. Other names are for eng_resources_add to find or to refuse. */
bool eng_resources_has_corpus(const EngResources *resources, const char *corpus);
/* Every stream opened, for the ledger; header_json says where it came from. */
int eng_resources_streams(const EngResources *resources);
const EngTokens *eng_resources_stream(const EngResources *resources, int i);

#endif
