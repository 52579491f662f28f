/* Token map: original token id -> compressed id (engram_facts section 2), from any Hugging Face
 * byte-level BPE tokenizer.json. */
#ifndef ENG_KERNELS_TOKMAP_H
#define ENG_KERNELS_TOKMAP_H

#include "base/digest.h"
#include <stdint.h>

typedef struct EngTokmap {
    int64_t n_ids;        /* ids of the tokenizer */
    int64_t n_compressed; /* distinct keys: V */
    int32_t *map;         /* [n_ids], owned */
    char sha256_i32le[ENG_DIGEST_HEX], sha256_i64le[ENG_DIGEST_HEX];
} EngTokmap;

/* Malformed, truncated or unsupported tokenizers give ENG_BAD_DATA naming file and key. */
EngStatus eng_tokmap_load(const char *tokenizer_json, EngTokmap *map, EngErr *err);

/* As load, and the int32 digest must be `digest`. When it is not and shared_ids > 0, the facts'
 * short cut is tried: ids below shared_ids keep their map, ids from there to n_ids-1 are each a key
 * of their own. A digest that still differs is ENG_BAD_DATA naming file and both digests. digest ""
 * or NULL: not checked. */
EngStatus eng_tokmap_load_checked(const char *tokenizer_json, const char *digest,
                                  int64_t shared_ids, int64_t n_ids, EngTokmap *map, EngErr *err);

/* compressed[i] = map[ids[i]]; an id outside [0, n_ids) gives ENG_BAD_DATA with position and value.
 */
EngStatus eng_tokmap_apply(const EngTokmap *map, const uint32_t *ids, int64_t n,
                           int32_t *compressed, EngErr *err);
void eng_tokmap_free(EngTokmap *map);

#endif
