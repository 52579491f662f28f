/* Digests through libcrypto's EVP interface; see digest.h. */
#include "base/digest.h"

#include <openssl/evp.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

static void to_hex(const uint8_t *bytes, size_t n, char *hex)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        hex[2 * i] = digits[bytes[i] >> 4];
        hex[2 * i + 1] = digits[bytes[i] & 15];
    }
    hex[2 * n] = 0;
}

EngStatus eng_digest_raw(const void *bytes, size_t n, uint8_t sum[ENG_DIGEST_BYTES], EngErr *err)
{
    if (EVP_Digest(bytes, n, sum, NULL, EVP_sha256(), NULL) == 1) return ENG_OK;
    return ENG_FAIL(err, ENG_INTERNAL, "libcrypto: sha256 failed");
}

EngStatus eng_digest(const void *bytes, size_t n, char hex[ENG_DIGEST_HEX], EngErr *err)
{
    uint8_t sum[ENG_DIGEST_BYTES];
    EngStatus status = eng_digest_raw(bytes, n, sum, err);
    if (!status) to_hex(sum, sizeof sum, hex);
    return status;
}

/* EngDigest is libcrypto's own context; the name only hides the library. */
static EVP_MD_CTX *context_of(EngDigest *digest)
{
    return (EVP_MD_CTX *)digest;
}

EngStatus eng_digest_create(EngDigest **digest, EngErr *err)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    *digest = (EngDigest *)context;
    if (!context) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a sha256 context");
    if (EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1) return ENG_OK;
    EVP_MD_CTX_free(context);
    *digest = NULL;
    return ENG_FAIL(err, ENG_INTERNAL, "libcrypto: sha256 is not available");
}

EngStatus eng_digest_update(EngDigest *digest, const void *bytes, size_t n, EngErr *err)
{
    if (EVP_DigestUpdate(context_of(digest), bytes, n) == 1) return ENG_OK;
    return ENG_FAIL(err, ENG_INTERNAL, "libcrypto: sha256 update failed");
}

EngStatus eng_digest_finish(EngDigest *digest, char hex[ENG_DIGEST_HEX], EngErr *err)
{
    if (!digest) return ENG_OK;
    uint8_t sum[ENG_DIGEST_BYTES];
    int ok = EVP_DigestFinal_ex(context_of(digest), sum, NULL);
    EVP_MD_CTX_free(context_of(digest));
    if (ok != 1) return ENG_FAIL(err, ENG_INTERNAL, "libcrypto: sha256 failed");
    if (hex) to_hex(sum, sizeof sum, hex);
    return ENG_OK;
}

EngStatus eng_key_of(const char *text, char key[ENG_KEY_HEX], EngErr *err)
{
    char hex[ENG_DIGEST_HEX];
    EngStatus status = eng_digest(text, strlen(text), hex, err);
    if (status) return status;
    memcpy(key, hex, ENG_KEY_HEX - 1);
    key[ENG_KEY_HEX - 1] = 0;
    return ENG_OK;
}

EngStatus eng_uuid(char key[ENG_KEY_HEX], EngErr *err)
{
    uint8_t bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return ENG_FAIL(err, ENG_IO, "getrandom gave no random bytes");
    bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x40); /* version 4 */
    bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
    to_hex(bytes, sizeof bytes, key);
    return ENG_OK;
}
