/* Allocation: aligned, counted, and able to fail on demand, so that every out-of-memory path can be
 * tested. Blocks are 64-byte aligned and zeroed. ENG_FAIL_ALLOC=N in the environment makes the N-th
 * allocation of the process fail (1-based); eng_mem_fail_at() does the same from a test.
 */
#ifndef ENG_BASE_MEM_H
#define ENG_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <engram/status.h>

/* NULL when memory is short; bytes == 0 gives a valid pointer. Free with eng_free. */
void *eng_alloc(size_t bytes);
/* n * size with overflow checked. */
void *eng_alloc_array(size_t n, size_t size);
/* Grows or shrinks to new_bytes, keeping the first old_bytes; on NULL the old block stays. */
void *eng_realloc(void *block, size_t old_bytes, size_t new_bytes);
void eng_free(void *block);
char *eng_strdup(const char *text);

/* As eng_alloc_array, filling err with `what` and the bytes asked for. */
EngStatus eng_alloc_or(void **out, size_t n, size_t size, const char *what, EngErr *err);

/* The n-th allocation from now fails (0: none). Returns allocations seen since the last call. */
uint64_t eng_mem_fail_at(uint64_t n);
uint64_t eng_mem_live_blocks(void);

/* false when a * b does not fit size_t. */
bool eng_mul_size(size_t a, size_t b, size_t *product);
bool eng_add_size(size_t a, size_t b, size_t *sum);

/* Arena: many small blocks freed together (parse and plan lifetimes). */
typedef struct EngArena EngArena;
EngArena *eng_arena_create(void);
void *eng_arena_alloc(EngArena *arena, size_t bytes); /* zeroed, 16-byte aligned; NULL: no memory */
char *eng_arena_strdup(EngArena *arena, const char *text);
char *eng_arena_printf(EngArena *arena, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void eng_arena_destroy(EngArena *arena);

#endif
