/* Token map: decode each id alone, normalise, number the distinct keys; see tokmap.h. */
#include "kernels/address/tokmap.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/address/normalize.h"
#include "kernels/address/tokenizer_json.h"

/* ---- keys ---- */

typedef struct Key {
    size_t begin, n; /* in the pool */
    uint64_t hash;
    int32_t id; /* 1 + compressed id; 0 marks a free slot */
} Key;

/* Open addressing over at least twice as many slots as there can be keys. */
typedef struct KeySet {
    EngStr pool;
    Key *slots;
    size_t mask;
    int32_t n;
} KeySet;

static uint64_t hash_bytes(const char *bytes, size_t n)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < n; i++) hash = (hash ^ (uint8_t)bytes[i]) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

/* Compressed id of the bytes the pool holds from `begin` on; takes them back out when known. */
static int32_t intern(KeySet *keys, size_t begin)
{
    const char *bytes = keys->pool.text ? keys->pool.text + begin : "";
    size_t n = keys->pool.n - begin;
    uint64_t hash = hash_bytes(bytes, n);
    for (size_t i = hash & keys->mask;; i = (i + 1) & keys->mask) {
        Key *key = &keys->slots[i];
        if (!key->id) {
            *key = (Key){begin, n, hash, ++keys->n};
            return key->id - 1;
        }
        if (key->hash == hash && key->n == n && !memcmp(keys->pool.text + key->begin, bytes, n)) {
            keys->pool.n = begin;
            return key->id - 1;
        }
    }
}

/* Appends the key of a token to the pool: the vocabulary's spelling where the token alone is not
 * text, else the normalised text, or the text itself when nothing is left of it. */
static EngStatus add_key(const EngTokenText *token, EngStr *bytes, EngCodepoints *scratch,
                         EngStr *pool, EngErr *err)
{
    size_t begin = pool->n;
    bytes->n = 0;
    eng_token_decode(token, bytes);
    EngStatus status = eng_str_status(bytes, err);
    if (status) return status;
    if (!eng_utf8_is_clean((const uint8_t *)bytes->text, bytes->n)) {
        eng_str_add_n(pool, token->text, token->n);
        return eng_str_status(pool, err);
    }
    status = eng_normalize(bytes->text, bytes->n, scratch, pool, err);
    if (!status && pool->n == begin) eng_str_add_n(pool, bytes->text, bytes->n);
    return status ? status : eng_str_status(pool, err);
}

static EngStatus number_keys(const EngTokenizer *tokenizer, int32_t *map, int64_t *n_compressed,
                             EngErr *err)
{
    KeySet keys = {0};
    EngStr bytes = {0};
    EngCodepoints scratch = {0};
    size_t slots = 16;
    while (slots < (size_t)tokenizer->n_ids * 2) slots *= 2;
    keys.mask = slots - 1;
    EngStatus status =
        eng_alloc_or((void **)&keys.slots, slots, sizeof *keys.slots, "token map keys", err);
    for (int64_t id = 0; id < tokenizer->n_ids && !status; id++) {
        size_t begin = keys.pool.n;
        status = add_key(&tokenizer->tokens[id], &bytes, &scratch, &keys.pool, err);
        if (status) {
            eng_err_prefix(err, "token %" PRId64, id);
            break;
        }
        map[id] = intern(&keys, begin);
    }
    *n_compressed = keys.n;
    eng_free(keys.slots);
    eng_str_free(&keys.pool);
    eng_str_free(&bytes);
    eng_codepoints_free(&scratch);
    return status;
}

/* ---- digests ---- */

/* Digest of the map as little-endian integers of `width` (4 or 8) bytes. */
static EngStatus digest_map(const EngTokmap *map, size_t width, char hex[ENG_DIGEST_HEX],
                            EngErr *err)
{
    uint8_t *bytes;
    EngStatus status =
        eng_alloc_or((void **)&bytes, (size_t)map->n_ids, width, "a token map digest", err);
    if (status) return status;
    for (int64_t i = 0; i < map->n_ids; i++)
        for (size_t j = 0; j < 4; j++)
            bytes[(size_t)i * width + j] = (uint8_t)((uint32_t)map->map[i] >> 8 * j);
    status = eng_digest(bytes, (size_t)map->n_ids * width, hex, err);
    eng_free(bytes);
    return status;
}

static EngStatus digest_both(EngTokmap *map, EngErr *err)
{
    EngStatus status = digest_map(map, 4, map->sha256_i32le, err);
    return status ? status : digest_map(map, 8, map->sha256_i64le, err);
}

/* ---- public ---- */

EngStatus eng_tokmap_load(const char *tokenizer_json, EngTokmap *map, EngErr *err)
{
    EngTokenizer tokenizer;
    *map = (EngTokmap){0};
    EngStatus status = eng_tokenizer_read(tokenizer_json, &tokenizer, err);
    if (status) return status;
    map->n_ids = tokenizer.n_ids;
    status =
        eng_alloc_or((void **)&map->map, (size_t)map->n_ids, sizeof *map->map, "a token map", err);
    if (status) goto out;
    status = number_keys(&tokenizer, map->map, &map->n_compressed, err);
    if (status) {
        eng_err_prefix(err, "%s", tokenizer_json);
        goto out;
    }
    status = digest_both(map, err);
out:
    eng_tokenizer_free(&tokenizer);
    if (status) eng_tokmap_free(map);
    return status;
}

/* The facts' short cut: keep the shared ids, give every later id a key of its own. */
static EngStatus extend_shared(const EngTokmap *from, int64_t shared_ids, int64_t n_ids,
                               EngTokmap *to, EngErr *err)
{
    int32_t next = 0;
    *to = (EngTokmap){.n_ids = n_ids};
    EngStatus status =
        eng_alloc_or((void **)&to->map, (size_t)n_ids, sizeof *to->map, "a token map", err);
    if (status) return status;
    for (int64_t i = 0; i < shared_ids; i++) {
        to->map[i] = from->map[i];
        if (to->map[i] >= next) next = to->map[i] + 1;
    }
    for (int64_t i = shared_ids; i < n_ids; i++) to->map[i] = next++;
    to->n_compressed = next;
    status = digest_both(to, err);
    if (status) eng_tokmap_free(to);
    return status;
}

EngStatus eng_tokmap_load_checked(const char *tokenizer_json, const char *digest,
                                  int64_t shared_ids, int64_t n_ids, EngTokmap *map, EngErr *err)
{
    EngTokmap extended;
    EngStatus status = eng_tokmap_load(tokenizer_json, map, err);
    if (status || !digest || !*digest || !strcmp(digest, map->sha256_i32le)) return status;
    if (shared_ids > 0 && shared_ids <= map->n_ids && shared_ids <= n_ids && n_ids <= INT32_MAX) {
        status = extend_shared(map, shared_ids, n_ids, &extended, err);
        if (!status && !strcmp(digest, extended.sha256_i32le)) {
            eng_tokmap_free(map);
            *map = extended;
            return ENG_OK;
        }
        if (!status) eng_tokmap_free(&extended);
    }
    if (!status)
        status = ENG_FAIL(err, ENG_BAD_DATA,
                          "%s: its token map has the digest %s, but %s is needed: another "
                          "tokenizer, or another version of it",
                          tokenizer_json, map->sha256_i32le, digest);
    eng_tokmap_free(map);
    return status;
}

EngStatus eng_tokmap_apply(const EngTokmap *map, const uint32_t *ids, int64_t n,
                           int32_t *compressed, EngErr *err)
{
    for (int64_t i = 0; i < n; i++) {
        if (ids[i] >= map->n_ids)
            return ENG_FAIL(err, ENG_BAD_DATA,
                            "position %" PRId64 ": id %" PRIu32
                            " is not one of the tokenizer's %" PRId64 " ids",
                            i, ids[i], map->n_ids);
        compressed[i] = map->map[ids[i]];
    }
    return ENG_OK;
}

void eng_tokmap_free(EngTokmap *map)
{
    eng_free(map->map);
    *map = (EngTokmap){0};
}
