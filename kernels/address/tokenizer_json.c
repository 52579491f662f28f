/* tokenizer.json by jansson; see tokenizer_json.h. */
#include "kernels/address/tokenizer_json.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"

/* ---- the byte-level alphabet ---- */

/* Bytes that print stand for themselves; the other 68 are U+0100, U+0101, ... in byte order. */
static bool prints(int byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

/* Byte of a character of the alphabet, -1 for any other character. */
static int byte_of(uint32_t point)
{
    if (point < 256) return prints((int)point) ? (int)point : -1;
    uint32_t hidden = point - 256;
    for (int byte = 0; byte < 256; byte++)
        if (!prints(byte) && hidden-- == 0) return byte;
    return -1;
}

/* jansson has checked the UTF-8: the alphabet ends at U+0143, so longer forms are never in it. */
static uint32_t next_point(const char *text, size_t *i)
{
    uint8_t lead = (uint8_t)text[*i];
    if (lead < 0x80) return (uint8_t)text[(*i)++];
    if (lead < 0xe0) {
        uint32_t point = (lead & 0x1fu) << 6 | ((uint8_t)text[*i + 1] & 0x3fu);
        *i += 2;
        return point;
    }
    *i += lead < 0xf0 ? 3 : 4;
    return UINT32_MAX;
}

void eng_token_decode(const EngTokenText *token, EngStr *bytes)
{
    size_t begin = bytes->n;
    eng_str_add_n(bytes, "", 0); /* an empty token gives an empty text, not NULL */
    for (size_t i = 0; i < token->n;) {
        uint32_t point = next_point(token->text, &i);
        int byte = point == UINT32_MAX ? -1 : byte_of(point);
        if (byte < 0) {
            bytes->n = begin;
            eng_str_add_n(bytes, token->text, token->n);
            return;
        }
        char c = (char)byte;
        eng_str_add_n(bytes, &c, 1);
    }
}

/* ---- the file ---- */

static EngStatus check_decoder(const char *path, const json_t *decoder, EngErr *err)
{
    const char *type = json_string_value(json_object_get(decoder, "type"));
    if (type && !strcmp(type, "ByteLevel")) return ENG_OK;
    const json_t *steps = json_object_get(decoder, "decoders");
    if (type && !strcmp(type, "Sequence") && json_array_size(steps) == 1)
        return check_decoder(path, json_array_get(steps, 0), err);
    return ENG_FAIL(err, ENG_BAD_DATA, "%s: decoder: %s is not supported, only ByteLevel", path,
                    type ? type : "none");
}

static EngStatus check_model(const char *path, const json_t *root, EngErr *err)
{
    const json_t *model = json_object_get(root, "model");
    if (!json_is_object(root)) return ENG_FAIL(err, ENG_BAD_DATA, "%s: not a JSON object", path);
    if (!json_is_object(model))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: model: missing or not an object", path);
    const char *type = json_string_value(json_object_get(model, "type"));
    if (type ? strcmp(type, "BPE") : !json_object_get(model, "merges"))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: model.type: %s is not supported, only BPE", path,
                        type ? type : "none");
    if (json_is_true(json_object_get(model, "byte_fallback")))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: model.byte_fallback: not supported", path);
    if (json_object_size(json_object_get(model, "vocab")) == 0)
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: model.vocab: missing or empty", path);
    const json_t *added = json_object_get(root, "added_tokens");
    if (added && !json_is_null(added) && !json_is_array(added))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: added_tokens: not an array", path);
    return check_decoder(path, json_object_get(root, "decoder"), err);
}

/* Puts one token at its id. There are never more ids than tokens, which bounds the table. */
static EngStatus place(const char *path, const char *key, const json_t *id, EngTokenText token,
                       EngTokenizer *tokenizer, int64_t n_slots, EngErr *err)
{
    int64_t value = json_integer_value(id);
    if (!json_is_integer(id))
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: %s: id of \"%.60s\" is not an integer", path, key,
                        token.text);
    if (value < 0 || value >= n_slots)
        return ENG_FAIL(err, ENG_BAD_DATA,
                        "%s: %s: id %" PRId64 " of \"%.60s\" is out of range (%" PRId64 " tokens)",
                        path, key, value, token.text, n_slots);
    EngTokenText *slot = &tokenizer->tokens[value];
    bool same = slot->n == token.n && slot->text && !memcmp(slot->text, token.text, token.n);
    if (slot->text && !same)
        return ENG_FAIL(err, ENG_BAD_DATA,
                        "%s: %s: id %" PRId64 " belongs to \"%.60s\" and to \"%.60s\"", path, key,
                        value, slot->text, token.text);
    if (!slot->text) tokenizer->n_ids++;
    *slot = token;
    return ENG_OK;
}

static EngStatus fill(const char *path, const json_t *root, EngTokenizer *tokenizer,
                      int64_t n_slots, EngErr *err)
{
    EngStatus status = ENG_OK;
    json_t *vocab = json_object_get(json_object_get(root, "model"), "vocab");
    for (void *it = json_object_iter(vocab); it && !status; it = json_object_iter_next(vocab, it)) {
        const char *text = json_object_iter_key(it);
        status = place(path, "model.vocab", json_object_iter_value(it),
                       (EngTokenText){text, strlen(text)}, tokenizer, n_slots, err);
    }
    const json_t *added = json_object_get(root, "added_tokens");
    for (size_t i = 0; i < json_array_size(added) && !status; i++) {
        const json_t *entry = json_array_get(added, i);
        const json_t *content = json_object_get(entry, "content");
        if (!json_is_string(content))
            return ENG_FAIL(err, ENG_BAD_DATA, "%s: added_tokens[%zu].content: not a string", path,
                            i);
        EngTokenText token = {json_string_value(content), json_string_length(content)};
        status = place(path, "added_tokens", json_object_get(entry, "id"), token, tokenizer,
                       n_slots, err);
    }
    for (int64_t i = 0; i < tokenizer->n_ids && !status; i++)
        if (!tokenizer->tokens[i].text)
            status = ENG_FAIL(err, ENG_BAD_DATA, "%s: model.vocab: id %" PRId64 " has no token",
                              path, i);
    return status;
}

EngStatus eng_tokenizer_read(const char *path, EngTokenizer *tokenizer, EngErr *err)
{
    char *text = NULL;
    size_t n = 0;
    json_error_t where;
    *tokenizer = (EngTokenizer){0};
    EngStatus status = eng_file_read(path, &text, &n, err);
    if (status) return status;
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);
    eng_free(text);
    if (!root)
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: line %d, column %d: %s", path, where.line,
                        where.column, where.text);
    tokenizer->json = root;
    status = check_model(path, root, err);
    if (status) goto out;
    size_t slots = json_object_size(json_object_get(json_object_get(root, "model"), "vocab")) +
                   json_array_size(json_object_get(root, "added_tokens"));
    if (slots > INT32_MAX) {
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: model.vocab: %zu tokens", path, slots);
        goto out;
    }
    status = eng_alloc_or((void **)&tokenizer->tokens, slots, sizeof *tokenizer->tokens,
                          "token texts", err);
    if (!status) status = fill(path, root, tokenizer, (int64_t)slots, err);
out:
    if (status) eng_tokenizer_free(tokenizer);
    return status;
}

void eng_tokenizer_free(EngTokenizer *tokenizer)
{
    eng_free(tokenizer->tokens);
    json_decref(tokenizer->json);
    *tokenizer = (EngTokenizer){0};
}
