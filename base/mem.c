/* Counted, fault-injectable allocation over the C library; see mem.h. */
#include "base/mem.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_uint_fast64_t g_seen, g_fail_at, g_live;
static atomic_bool g_env_read;

static void read_environment(void)
{
    if (atomic_exchange(&g_env_read, true)) return;
    const char *text = getenv("ENG_FAIL_ALLOC");
    if (text) atomic_store(&g_fail_at, strtoull(text, NULL, 10));
}

void *eng_alloc(size_t bytes)
{
    read_environment();
    uint64_t seen = atomic_fetch_add(&g_seen, 1) + 1;
    if (seen == atomic_load(&g_fail_at)) return NULL;
    if (bytes > SIZE_MAX - 63) return NULL;
    size_t rounded = bytes ? (bytes + 63) / 64 * 64 : 64;
    void *block = aligned_alloc(64, rounded);
    if (!block) return NULL;
    memset(block, 0, rounded);
    atomic_fetch_add(&g_live, 1);
    return block;
}

void *eng_alloc_array(size_t n, size_t size)
{
    size_t bytes;
    return eng_mul_size(n, size, &bytes) ? eng_alloc(bytes) : NULL;
}

void *eng_realloc(void *block, size_t old_bytes, size_t new_bytes)
{
    void *grown = eng_alloc(new_bytes);
    if (!grown) return NULL;
    if (block) memcpy(grown, block, old_bytes < new_bytes ? old_bytes : new_bytes);
    eng_free(block);
    return grown;
}

void eng_free(void *block)
{
    if (!block) return;
    atomic_fetch_sub(&g_live, 1);
    free(block);
}

char *eng_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = eng_alloc(bytes);
    if (copy) memcpy(copy, text, bytes);
    return copy;
}

EngStatus eng_alloc_or(void **out, size_t n, size_t size, const char *what, EngErr *err)
{
    *out = eng_alloc_array(n, size);
    if (*out) return ENG_OK;
    return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for %s (%zu x %zu bytes)", what, n, size);
}

uint64_t eng_mem_fail_at(uint64_t n)
{
    read_environment();
    atomic_store(&g_fail_at, n);
    return atomic_exchange(&g_seen, 0);
}

uint64_t eng_mem_live_blocks(void)
{
    return atomic_load(&g_live);
}

bool eng_mul_size(size_t a, size_t b, size_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

bool eng_add_size(size_t a, size_t b, size_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

/* ---- arena -------------------------------------------------------------------------------------
 */

#define ARENA_CHUNK_BYTES ((size_t)64 << 10)

typedef struct Chunk {
    struct Chunk *next;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
} Chunk;

struct EngArena {
    Chunk *chunks;
};

EngArena *eng_arena_create(void)
{
    return eng_alloc(sizeof(EngArena));
}

void *eng_arena_alloc(EngArena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2) return NULL;
    size_t rounded = (bytes + 15) / 16 * 16;
    Chunk *chunk = arena->chunks;
    if (!chunk || chunk->size - chunk->used < rounded) {
        size_t size = rounded > ARENA_CHUNK_BYTES ? rounded : ARENA_CHUNK_BYTES;
        chunk = eng_alloc(sizeof *chunk + size);
        if (!chunk) return NULL;
        chunk->size = size;
        chunk->next = arena->chunks;
        arena->chunks = chunk;
    }
    void *block = chunk->bytes + chunk->used;
    chunk->used += rounded;
    return block;
}

char *eng_arena_strdup(EngArena *arena, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = eng_arena_alloc(arena, bytes);
    if (copy) memcpy(copy, text, bytes);
    return copy;
}

char *eng_arena_printf(EngArena *arena, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *text = n < 0 ? NULL : eng_arena_alloc(arena, (size_t)n + 1);
    if (text) vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(ap);
    return text;
}

void eng_arena_destroy(EngArena *arena)
{
    if (!arena) return;
    for (Chunk *chunk = arena->chunks; chunk;) {
        Chunk *next = chunk->next;
        eng_free(chunk);
        chunk = next;
    }
    eng_free(arena);
}
