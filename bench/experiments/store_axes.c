/* Store axes; see store_axes.h. */
#include "bench/experiments/store_axes.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "kernels/store/pages.h"

const char *const eng_words_store[] = {"memory", "mmap", "pread", "nowait", "uring", NULL};
const char *const eng_words_io[] = {"buffered", "direct", NULL};
const char *const eng_words_scales[] = {"disk", "memory", NULL};
const char *const eng_words_advice[] = {"normal", "random", "willneed", NULL};
const char *const eng_words_pages[] = {"4k", "2m", "1g", NULL};
const char *const eng_words_numa[] = {"default", "bind", "interleave", NULL};
const char *const eng_words_on_off[] = {"off", "on", NULL};
const char *const eng_words_policy[] = {"none", "lru", "sieve", "direct", "ways", NULL};

#define MAX_SHARDS 256

static bool is_word(const EngPoint *point, const char *axis, const char *word)
{
    return !strcmp(eng_point_word(point, axis), word);
}

static bool is_default(const EngPoint *point, const char *axis)
{
    for (int i = 0; i < point->experiment->n_axes; i++)
        if (!strcmp(point->experiment->axes[i].name, axis))
            return !strcmp(point->values[i].text, point->experiment->axes[i].def);
    return true;
}

/* Axes that only some stores know; others refuse any value but the default. */
static EngStatus check_known(const EngPoint *point, EngStoreKind kind, EngErr *why)
{
    static const struct {
        const char *axis;
        unsigned stores; /* a bit for each kind */
    } known[] = {
        {"readers", 1u << ENG_STORE_MMAP | 1u << ENG_STORE_PREAD | 1u << ENG_STORE_NOWAIT},
        {"depth", 1u << ENG_STORE_URING},
        {"io", 1u << ENG_STORE_PREAD | 1u << ENG_STORE_URING},
        {"advice", 1u << ENG_STORE_MMAP},
        {"pages", 1u << ENG_STORE_MEMORY},
        {"numa", 1u << ENG_STORE_MEMORY},
        {"scales", ~(1u << ENG_STORE_MEMORY)},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!(known[i].stores >> kind & 1) && !is_default(point, known[i].axis))
            return ENG_FAIL(why, ENG_UNSUPPORTED, "%s store: it has no %s",
                            eng_store_kind_name(kind), known[i].axis);
    return ENG_OK;
}

static EngStatus read_cache(const EngPoint *point, EngStoreSpec *spec, EngErr *why)
{
    spec->cached = !is_word(point, "policy", "none");
    /* Caches are compared with each other and with none: their axes are never refused. */
    if (!spec->cached) return ENG_OK;
    spec->cache = (EngCacheOptions){
        .policy = (EngCachePolicy)eng_cache_policy_parse(eng_point_word(point, "policy")),
        .rows = eng_point_int(point, "cache_rows"),
        .ways = (int)eng_point_int(point, "ways")};
    if (spec->cache.ways & (spec->cache.ways - 1))
        return ENG_FAIL(why, ENG_UNSUPPORTED, "ways: %d is none of 2, 4, 8, 16", spec->cache.ways);
    return ENG_OK;
}

EngStatus eng_store_spec_read(const EngPoint *point, EngRowFormat format, EngStoreSpec *spec,
                              EngErr *why)
{
    *spec = (EngStoreSpec){
        .kind = (EngStoreKind)eng_store_kind_parse(eng_point_word(point, "store")),
        .options = {.threads = (int)eng_point_int(point, "readers"),
                    .depth = (int)eng_point_int(point, "depth"),
                    .direct = is_word(point, "io", "direct"),
                    .block_bytes = (size_t)eng_point_int(point, "block"),
                    .scales_in_memory = is_word(point, "scales", "memory"),
                    .advice = (EngMapAdvice)eng_map_advice_parse(eng_point_word(point, "advice")),
                    .page_kind = eng_page_kind_parse(eng_point_word(point, "pages")),
                    .numa = (EngNumaPolicy)eng_numa_policy_parse(eng_point_word(point, "numa"))},
        .shards = (int)eng_point_int(point, "shards"),
        .dedup = is_word(point, "dedup", "on")};
    size_t block = spec->options.block_bytes;
    EngStatus status = check_known(point, spec->kind, why);
    if (!status && spec->options.scales_in_memory && format != ENG_ROW_FP8)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "%s rows keep no scales apart",
                        eng_row_format_name(format));
    if (!status && !spec->options.direct && !is_default(point, "block"))
        return ENG_FAIL(why, ENG_UNSUPPORTED, "buffered reads have no blocks");
    if (!status && block & (block - 1))
        return ENG_FAIL(why, ENG_UNSUPPORTED, "block: %zu is no power of two", block);
    return status ? status : read_cache(point, spec, why);
}

/* One handle; what could not be had as asked is a reason, not a measurement. */
static EngStatus open_one(const EngStoreSpec *spec, const char *path, EngStore **store, EngErr *err)
{
    const char *asked = eng_store_kind_name(spec->kind);
    EngStatus status = eng_store_open(path, spec->kind, &spec->options, store, err);
    if (status || !(*store)->note[0]) return status;
    if (!strcmp((*store)->ops->name, asked) && spec->options.numa == ENG_NUMA_DEFAULT) {
        eng_warn("store", "%s: %s", asked, (*store)->note);
        return ENG_OK;
    }
    status = ENG_FAIL(err, ENG_UNSUPPORTED, "%s store: %s", asked, (*store)->note);
    eng_store_destroy(*store);
    *store = NULL;
    return status;
}

static EngStatus open_shards(const EngStoreSpec *spec, const char *path, EngStore **out,
                             EngErr *err)
{
    EngStore *shards[MAX_SHARDS] = {0};
    int64_t starts[MAX_SHARDS + 1];
    EngStatus status = ENG_OK;
    for (int s = 0; s < spec->shards && !status; s++)
        status = open_one(spec, path, &shards[s], err);
    for (int s = 0; s <= spec->shards && !status; s++) {
        int64_t each = shards[0]->rows / spec->shards, rest = shards[0]->rows % spec->shards;
        starts[s] = each * s + (s < rest ? s : rest);
    }
    if (!status) status = eng_store_sharded(shards, starts, spec->shards, out, err);
    for (int s = 0; s < spec->shards && status; s++) eng_store_destroy(shards[s]);
    return status;
}

EngStatus eng_store_spec_open(const EngStoreSpec *spec, const char *path, EngStore **out,
                              EngErr *err)
{
    EngStore *inner = NULL, *outer = NULL;
    EngStatus status =
        spec->shards > 1 ? open_shards(spec, path, &inner, err) : open_one(spec, path, &inner, err);
    if (!status && spec->cached) {
        status = eng_store_cache(inner, &spec->cache, &outer, err);
        if (!status) inner = outer;
    }
    if (!status && spec->dedup) {
        status = eng_store_dedup(inner, &outer, err);
        if (!status) inner = outer;
    }
    if (status)
        eng_store_destroy(inner);
    else
        *out = inner;
    return status;
}

size_t eng_store_spec_bytes(const EngStoreSpec *spec, int64_t rows, size_t row_bytes,
                            size_t scale_bytes)
{
    const size_t index = 40; /* a cached row's place in the index, list policies */
    size_t held = 0, cache = 0;
    if (spec->kind == ENG_STORE_MEMORY)
        held = (size_t)rows * row_bytes;
    else if (spec->options.scales_in_memory)
        held = (size_t)rows * scale_bytes;
    if (spec->cached) cache = (size_t)spec->cache.rows * (row_bytes + index);
    return held * (size_t)spec->shards + cache;
}
