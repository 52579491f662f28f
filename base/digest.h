/* SHA-256 (libcrypto) as the identity of files, streams and points. Hex digests are 64 characters.
 */
#ifndef ENG_BASE_DIGEST_H
#define ENG_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>
#include <engram/status.h>

#define ENG_DIGEST_HEX   65 /* with the terminating zero */
#define ENG_KEY_HEX      33 /* content keys: the first 128 bits */
#define ENG_DIGEST_BYTES 32

EngStatus eng_digest(const void *bytes, size_t n, char hex[ENG_DIGEST_HEX], EngErr *err);
EngStatus eng_digest_raw(const void *bytes, size_t n, uint8_t sum[ENG_DIGEST_BYTES], EngErr *err);

/* Incremental form: create, update any number of times, finish (which frees; hex may be NULL). */
typedef struct EngDigest EngDigest;
EngStatus eng_digest_create(EngDigest **digest, EngErr *err);
EngStatus eng_digest_update(EngDigest *digest, const void *bytes, size_t n, EngErr *err);
EngStatus eng_digest_finish(EngDigest *digest, char hex[ENG_DIGEST_HEX], EngErr *err);

/* First 128 bits of the SHA-256 of a text: config keys, point keys. */
EngStatus eng_key_of(const char *text, char key[ENG_KEY_HEX], EngErr *err);
/* A random UUID as 32 hex characters: blocks and runs. */
EngStatus eng_uuid(char key[ENG_KEY_HEX], EngErr *err);

#endif
