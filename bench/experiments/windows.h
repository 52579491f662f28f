/* Windows of a token stream, and the rows they read: the inputs that timed experiments rotate
 * through.
 *
 * One window repeated would sit in a cache after the first run. A point therefore cycles through
 * many windows at seeded positions of the stream, each with the real history before it, so that its
 * rows are those of the whole stream.
 */
#ifndef ENG_EXPERIMENTS_WINDOWS_H
#define ENG_EXPERIMENTS_WINDOWS_H

#include "bench/core/resources.h"
#include <engram/kernels.h>

typedef struct EngWindows {
    const int32_t *stream; /* compressed ids; of the resources */
    int64_t tokens;        /* per window */
    int64_t n;             /* windows */
    int64_t *at;           /* [n] first token of each; owned */
    bool history;          /* the ids before a window are there; false: it starts a text */
    int64_t next;          /* of the rotation */
} EngWindows;

/* Windows for `tokens`: at least 8 (4 above 16,384 tokens, where one window's rows exceed any
 * cache), more when they are short, so that about 131,072 tokens are cycled through. */
int64_t eng_windows_count(int64_t tokens);
/* n, or 1 for a point whose cache is to stay warm. */
int64_t eng_windows_of_point(const EngPoint *point, int64_t n);

/* Seeded positions, `reach` = max_order - 1 ids of history before each. The rotation starts at a
 * window that depends on `who`: two variants measured in turn must not warm each other's rows.
 * ENG_UNSUPPORTED when the stream is shorter than a window. */
EngStatus eng_windows_create(EngWindows *windows, const EngTokens *tokens, int64_t window_tokens,
                             int64_t n, int reach, uint64_t seed, const char *who, EngErr *err);
void eng_windows_destroy(EngWindows *windows);
/* Index of the window to use now; the next call gives the next one. */
int64_t eng_windows_next(EngWindows *windows);

/* Hash arguments of a window; rows as in EngHashArgs. */
EngHashArgs eng_windows_hash_args(const EngWindows *windows, int64_t window, int reach,
                                  int64_t *rows);
/* Rows of all windows, [n, tokens, columns] of the address's one layer, by the hash oracle. The
 * caller frees with eng_free. */
EngStatus eng_windows_rows(const EngWindows *windows, const EngAddress *address, int64_t **rows,
                           EngErr *err);

/* Bytes that reading those rows touches. */
typedef struct EngRowBytes {
    double logical;     /* tokens * columns * row bytes, of one window */
    double distinct;    /* distinct rows * row bytes, mean over windows */
    double lines;       /* distinct 64-byte lines * 64, mean over windows */
    double working_set; /* distinct rows of all windows * row bytes */
} EngRowBytes;
EngStatus eng_windows_row_bytes(const EngTable *table, const int64_t *rows, int64_t per_window,
                                int64_t n_windows, EngRowBytes *bytes, EngErr *err);

/* Reads one byte of every page that the rows lie on: a process forked after the table was filled
 * pays for its own page tables here and not in the first sample. */
void eng_touch_rows(const EngTable *table, const int64_t *rows, int64_t n);

#endif
