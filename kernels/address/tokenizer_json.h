/* Reading a Hugging Face tokenizer.json: the text of every id, and what an id alone decodes to. */
#ifndef ENG_KERNELS_TOKENIZER_JSON_H
#define ENG_KERNELS_TOKENIZER_JSON_H

#include <stddef.h>
#include <stdint.h>
#include "base/str.h"
#include <engram/status.h>

typedef struct EngTokenText {
    const char *text; /* as the vocabulary spells it: bytes in the byte-level alphabet */
    size_t n;
} EngTokenText;

typedef struct EngTokenizer {
    int64_t n_ids;
    EngTokenText *tokens; /* [n_ids], texts owned by the tokenizer */
    void *json;           /* parsed file that owns the texts */
} EngTokenizer;

/* Ids must be 0 .. n_ids-1 without gaps; an added token may repeat the text of its id. Only
 * byte-level BPE is read: everything else, and every malformed file, is ENG_BAD_DATA naming file
 * and key. */
EngStatus eng_tokenizer_read(const char *path, EngTokenizer *tokenizer, EngErr *err);
void eng_tokenizer_free(EngTokenizer *tokenizer);

/* Appends the bytes a token stands for; a token with a character outside the byte-level alphabet
 * (most added tokens) stands for its own text. The bytes need not be valid UTF-8. */
void eng_token_decode(const EngTokenText *token, EngStr *bytes);

#endif
