/* Opening and sharing of a run's large inputs; see resources.h. */
#include "bench/core/resources.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "bench/core/stream.h"

#define MAX_OPEN         32
#define MAX_DONE         512
#define SYNTHETIC_TOKENS ((int64_t)1 << 20)
#define TOKENIZER_FILE   "tokenizer.json"

/* One (preset, corpus): the stream, its compressed ids and what getters hand out. */
typedef struct Opened {
    char preset[32];
    EngStream stream;
    int32_t *owned_compressed;
    EngTokens tokens;
} Opened;

typedef struct Map {
    char preset[32];
    EngTokmap map;
} Map;

struct EngResources {
    char *data_dir;
    uint64_t seed;
    Opened opened[MAX_OPEN];
    int n_opened;
    Map maps[MAX_OPEN];
    int n_maps;
    size_t table_bytes[ENG_ROW_FORMAT_COUNT]; /* most any point asked for */
    size_t weight_bytes;
    EngTableArena arena, weights;
    _Atomic uint64_t *done; /* [MAX_DONE], 0: free; the same memory in every worker */
};

EngStatus eng_resources_create(const char *data_dir, uint64_t seed, EngResources **resources,
                               EngErr *err)
{
    EngStatus status =
        eng_alloc_or((void **)resources, 1, sizeof **resources, "run resources", err);
    if (status) return status;
    (*resources)->seed = seed;
    (*resources)->data_dir = eng_strdup(data_dir);
    void *done = mmap(NULL, MAX_DONE * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    (*resources)->done = done == MAP_FAILED ? NULL : done;
    if ((*resources)->data_dir && (*resources)->done) return ENG_OK;
    eng_resources_destroy(*resources);
    *resources = NULL;
    return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for run resources");
}

const char *eng_resources_data_dir(const EngResources *resources)
{
    return resources->data_dir;
}

uint64_t eng_resources_seed(const EngResources *resources)
{
    return resources->seed;
}

void eng_resources_destroy(EngResources *resources)
{
    if (!resources) return;
    for (int i = 0; i < resources->n_opened; i++) {
        eng_stream_close(&resources->opened[i].stream);
        eng_free(resources->opened[i].owned_compressed);
    }
    for (int i = 0; i < resources->n_maps; i++) eng_tokmap_free(&resources->maps[i].map);
    eng_table_arena_destroy(&resources->arena);
    eng_table_arena_destroy(&resources->weights);
    if (resources->done) munmap((void *)resources->done, MAX_DONE * sizeof(uint64_t));
    eng_free(resources->data_dir);
    eng_free(resources);
}

bool eng_resources_done(const EngResources *resources, uint64_t key)
{
    for (int i = 0; i < MAX_DONE; i++) {
        uint64_t there = atomic_load(&resources->done[i]);
        if (there == key || !there) return there == key;
    }
    return false;
}

void eng_resources_set_done(const EngResources *resources, uint64_t key)
{
    for (int i = 0; i < MAX_DONE; i++) {
        uint64_t there = 0;
        if (atomic_compare_exchange_strong(&resources->done[i], &there, key) || there == key)
            return;
    }
}

/* ---- streams and token maps --------------------------------------------------------------------
 */

static EngStatus find_map(EngResources *resources, const EngPreset *preset, const EngTokmap **out,
                          EngErr *err)
{
    for (int i = 0; i < resources->n_maps; i++)
        if (!strcmp(resources->maps[i].preset, preset->name)) {
            *out = &resources->maps[i].map;
            return ENG_OK;
        }
    if (resources->n_maps == MAX_OPEN)
        return ENG_FAIL(err, ENG_USAGE, "more than %d presets", MAX_OPEN);
    char path[4096];
    snprintf(path, sizeof path, "%s/" TOKENIZER_FILE, resources->data_dir);
    Map *map = &resources->maps[resources->n_maps];
    EngStatus status = eng_tokmap_load_checked(path, preset->tokmap_digest, preset->shared_ids,
                                               preset->vocab_ids, &map->map, err);
    if (status) return status;
    snprintf(map->preset, sizeof map->preset, "%s", preset->name);
    resources->n_maps++;
    *out = &map->map;
    return ENG_OK;
}

/* Original ids go through the preset's token map; generated streams are drawn over compressed ids.
 */
static EngStatus compress(EngResources *resources, const EngPreset *preset, Opened *opened,
                          EngErr *err)
{
    const EngStream *stream = &opened->stream;
    const EngTokmap *map = NULL;
    EngTokens *tokens = &opened->tokens;
    bool generated = !strcmp(stream->kind, "synthetic") || !strcmp(stream->kind, "uniform");
    if (!generated && !preset->tokmap_digest[0])
        return ENG_FAIL(
            err, ENG_UNSUPPORTED,
            "preset %s has no token map: corpus %s needs one (use synthetic or uniform)",
            preset->name, stream->corpus);
    size_t n = (size_t)stream->n_tokens;
    EngStatus status =
        eng_alloc_or((void **)&opened->owned_compressed, n, sizeof(int32_t), "token ids", err);
    if (status) return status;
    if (generated) {
        for (size_t i = 0; i < n; i++) opened->owned_compressed[i] = (int32_t)stream->ids[i];
    } else {
        status = find_map(resources, preset, &map, err);
        if (!status)
            status =
                eng_tokmap_apply(map, stream->ids, stream->n_tokens, opened->owned_compressed, err);
        if (status) return eng_err_prefix(err, "corpus %s", stream->corpus), status;
    }
    *tokens = (EngTokens){.corpus = stream->corpus,
                          .kind = stream->kind,
                          .label = stream->label,
                          .n_tokens = stream->n_tokens,
                          .ids = generated ? NULL : stream->ids,
                          .compressed = opened->owned_compressed,
                          .vocab_ids = generated ? 0 : stream->vocab_ids,
                          .digest = stream->digest};
    return ENG_OK;
}

static const Opened *find_opened(const EngResources *resources, const char *preset,
                                 const char *corpus)
{
    for (int i = 0; i < resources->n_opened; i++)
        if (!strcmp(resources->opened[i].preset, preset) &&
            !strcmp(resources->opened[i].stream.corpus, corpus))
            return &resources->opened[i];
    return NULL;
}

static EngStatus open_tokens(EngResources *resources, const char *preset_name, const char *corpus,
                             EngErr *err)
{
    EngPreset preset;
    if (find_opened(resources, preset_name, corpus)) return ENG_OK;
    EngStatus status = eng_preset_find(preset_name, &preset, err);
    if (status) return status;
    if (resources->n_opened == MAX_OPEN)
        return ENG_FAIL(err, ENG_USAGE, "more than %d pairs of preset and corpus", MAX_OPEN);
    Opened *opened = &resources->opened[resources->n_opened];
    if (!strcmp(corpus, "synthetic") || !strcmp(corpus, "uniform"))
        status = eng_stream_synthetic(corpus, SYNTHETIC_TOKENS, preset.address.vocab,
                                      resources->seed, &opened->stream, err);
    else
        status = eng_stream_find(resources->data_dir, corpus, &opened->stream, err);
    if (!status) status = compress(resources, &preset, opened, err);
    if (!status) {
        snprintf(opened->preset, sizeof opened->preset, "%s", preset_name);
        resources->n_opened++;
        return ENG_OK;
    }
    eng_stream_close(&opened->stream);
    eng_free(opened->owned_compressed);
    *opened = (Opened){0};
    /* A corpus is named by a user: an unknown one is a slip, not a search without result. */
    return status == ENG_NOT_FOUND && err ? (err->status = ENG_USAGE) : status;
}

EngStatus eng_resources_add(EngResources *resources, const EngNeed *need, EngErr *err)
{
    if (need->corpus && need->preset) {
        EngStatus status = open_tokens(resources, need->preset, need->corpus, err);
        if (status) return status;
    }
    if (need->table && need->table_value_bytes > resources->table_bytes[need->row_format])
        resources->table_bytes[need->row_format] = need->table_value_bytes;
    if (need->weight_bytes > resources->weight_bytes) resources->weight_bytes = need->weight_bytes;
    return ENG_OK;
}

EngStatus eng_resources_tokens(const EngResources *resources, const char *preset,
                               const char *corpus, EngTokens *tokens, EngErr *err)
{
    const Opened *opened = find_opened(resources, preset, corpus);
    if (!opened)
        return ENG_FAIL(err, ENG_NOT_FOUND, "corpus %s was not opened for preset %s", corpus,
                        preset);
    *tokens = opened->tokens;
    return ENG_OK;
}

bool eng_resources_has_corpus(const EngResources *resources, const char *corpus)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.json", resources->data_dir, corpus);
    return !eng_stream_name_fetched(corpus) || eng_file_exists(path);
}

int eng_resources_streams(const EngResources *resources)
{
    return resources->n_opened;
}

const EngTokens *eng_resources_stream(const EngResources *resources, int i)
{
    return &resources->opened[i].tokens;
}

/* ---- table and weights -------------------------------------------------------------------------
 */

EngStatus eng_resources_map(EngResources *resources, EngRowFormat format, EngErr *err)
{
    size_t bytes = resources->table_bytes[format];
    if (!bytes || (resources->arena.values && resources->arena.format == format)) return ENG_OK;
    eng_table_arena_destroy(&resources->arena);
    return eng_table_arena_create(&resources->arena, format, bytes, resources->seed, err);
}

EngStatus eng_resources_layout(EngResources *resources, int row_dims, EngErr *err)
{
    return resources->arena.values ? eng_table_arena_layout(&resources->arena, row_dims, err)
                                   : ENG_OK;
}

EngStatus eng_resources_map_weights(EngResources *resources, EngErr *err)
{
    if (!resources->weight_bytes || resources->weights.values) return ENG_OK;
    return eng_table_arena_create(&resources->weights, ENG_ROW_FP8, resources->weight_bytes,
                                  resources->seed + 1, err);
}

EngStatus eng_resources_table(const EngResources *resources, EngRowFormat format, int row_dims,
                              int64_t rows, EngTable *table, EngErr *err)
{
    if (!resources->arena.values || resources->arena.format != format)
        return ENG_FAIL(err, ENG_NOT_FOUND, "no %s table is mapped", eng_row_format_name(format));
    return eng_table_arena_view(&resources->arena, row_dims, rows, table, err);
}

EngStatus eng_resources_weights(const EngResources *resources, int n, int k, const uint8_t **values,
                                const uint8_t **scales, EngErr *err)
{
    size_t bytes;
    if (n <= 0 || k <= 0 || n % ENG_SCALE_GROUP || k % ENG_SCALE_GROUP)
        return ENG_FAIL(err, ENG_USAGE, "weights [%d, %d]: both sizes must be multiples of %d", n,
                        k, ENG_SCALE_GROUP);
    if (!eng_mul_size((size_t)n, (size_t)k, &bytes) || bytes > resources->weights.value_bytes)
        return ENG_FAIL(err, ENG_NOT_FOUND, "weights [%d, %d] were not mapped", n, k);
    *values = resources->weights.values;
    *scales = resources->weights.scales; /* n*k/1024 of at least n*k/32 */
    return ENG_OK;
}

EngStatus eng_resources_store_digest(const EngResources *resources, EngRowFormat format,
                                     char digest[ENG_KEY_HEX], EngErr *err)
{
    char text[128];
    snprintf(text, sizeof text, "memory %s seed %llu", eng_row_format_name(format),
             (unsigned long long)resources->seed);
    return eng_key_of(text, digest, err);
}

const EngTableArena *eng_resources_arena(const EngResources *resources)
{
    return resources->arena.values ? &resources->arena : NULL;
}
