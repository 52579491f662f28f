/* Windows of a stream and their rows; see windows.h. */
#include "bench/experiments/windows.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "bench/core/flush.h"
#include "bench/experiments/idset.h"
#include "kernels/ref/hash.h"

#define LINE_BYTES   64
#define MIN_WINDOWS  8
#define LONG_TOKENS  16384
#define LONG_WINDOWS 4
/* At 24 rows of 264 bytes a token this is 830 MB, of which real text repeats a third: far more than
 * a cache holds. */
#define ROTATED_TOKENS 131072

int64_t eng_windows_count(int64_t tokens)
{
    if (tokens > LONG_TOKENS) return LONG_WINDOWS;
    int64_t n = ROTATED_TOKENS / tokens;
    return n > MIN_WINDOWS ? n : MIN_WINDOWS;
}

int64_t eng_windows_of_point(const EngPoint *point, int64_t n)
{
    return eng_point_cache_is(point, ENG_CACHE_WARM) ? 1 : n;
}

EngStatus eng_windows_create(EngWindows *windows, const EngTokens *tokens, int64_t window_tokens,
                             int64_t n, int reach, uint64_t seed, const char *who, EngErr *err)
{
    EngRng rng;
    memset(windows, 0, sizeof *windows);
    if (tokens->n_tokens < window_tokens)
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "corpus %s has %" PRId64 " tokens, a window takes %" PRId64, tokens->corpus,
                        tokens->n_tokens, window_tokens);
    EngStatus status = eng_alloc_or((void **)&windows->at, (size_t)n, sizeof *windows->at,
                                    "window positions", err);
    if (status) return status;
    windows->stream = tokens->compressed;
    windows->tokens = window_tokens;
    windows->n = n;
    windows->history = tokens->n_tokens >= window_tokens + reach;
    int64_t first = windows->history ? reach : 0;
    eng_rng_seed(&rng, seed);
    for (int64_t i = 0; i < n; i++) {
        uint64_t room = (uint64_t)(tokens->n_tokens - window_tokens - first + 1);
        windows->at[i] = first + (int64_t)eng_rng_below(&rng, room);
    }
    uint64_t mark = 1469598103934665603u; /* FNV-1a of the name */
    for (const char *c = who; *c; c++) mark = (mark ^ (uint8_t)*c) * 1099511628211u;
    eng_rng_seed_at(&rng, seed, mark);
    windows->next = (int64_t)eng_rng_below(&rng, (uint64_t)n);
    return ENG_OK;
}

void eng_windows_destroy(EngWindows *windows)
{
    eng_free(windows->at);
    memset(windows, 0, sizeof *windows);
}

int64_t eng_windows_next(EngWindows *windows)
{
    int64_t window = windows->next;
    windows->next = window + 1 == windows->n ? 0 : window + 1;
    return window;
}

EngHashArgs eng_windows_hash_args(const EngWindows *windows, int64_t window, int reach,
                                  int64_t *rows)
{
    const int32_t *tokens = windows->stream + windows->at[window];
    return (EngHashArgs){.tokens = tokens,
                         .n_tokens = windows->tokens,
                         .n_live = windows->tokens,
                         .n_seqs = 1,
                         .history = windows->history ? tokens - reach : NULL,
                         .rows = rows};
}

EngStatus eng_windows_rows(const EngWindows *windows, const EngAddress *address, int64_t **rows,
                           EngErr *err)
{
    size_t per_window = (size_t)windows->tokens * (size_t)address->n_columns;
    EngStatus status = eng_alloc_or((void **)rows, (size_t)windows->n, per_window * sizeof **rows,
                                    "rows of the windows", err);
    for (int64_t i = 0; !status && i < windows->n; i++) {
        EngHashArgs args = eng_windows_hash_args(windows, i, address->max_order - 1,
                                                 *rows + (size_t)i * per_window);
        eng_ref_hash(address, &args);
    }
    return status;
}

/* ---- bytes touched ---- */

/* Adds the lines of [from, from + n) and returns how many were new. */
static int64_t add_lines(EngIdSet *lines, const uint8_t *from, size_t n)
{
    int64_t before = lines->n;
    uint64_t last = ((uint64_t)(uintptr_t)from + n - 1) / LINE_BYTES;
    for (uint64_t line = (uint64_t)(uintptr_t)from / LINE_BYTES; line <= last; line++)
        eng_idset_add(lines, line);
    return lines->n - before;
}

/* Lines of one row. Whole, aligned rows share no line with others, so they need no look-up. */
static int64_t row_lines(const EngTable *table, EngIdSet *lines, int64_t row)
{
    size_t values = eng_row_value_bytes(table->format, table->row_dims);
    size_t scales = eng_row_scale_bytes(table->format, table->row_dims);
    size_t stride = eng_row_stride_bytes(table->format, table->row_dims);
    const uint8_t *at = table->values + (size_t)row * stride;
    bool whole =
        stride == values && values % LINE_BYTES == 0 && (uintptr_t)table->values % LINE_BYTES == 0;
    int64_t n = whole ? (int64_t)(values / LINE_BYTES) : add_lines(lines, at, values);
    return scales ? n + add_lines(lines, table->scales + (size_t)row * scales, scales) : n;
}

static EngStatus count_row_bytes(const EngTable *table, const int64_t *rows, int64_t per_window,
                                 int64_t n_windows, EngRowBytes *bytes, EngErr *err)
{
    EngIdSet seen = {0}, all = {0}, lines = {0};
    size_t row_bytes = eng_row_value_bytes(table->format, table->row_dims) +
                       eng_row_scale_bytes(table->format, table->row_dims);
    int64_t lines_per_row = (int64_t)(row_bytes / LINE_BYTES) + 4;
    int64_t distinct = 0, touched = 0;
    EngStatus status = eng_idset_create(&seen, per_window, err);
    int64_t most = per_window * n_windows < table->rows ? per_window * n_windows : table->rows;
    if (!status) status = eng_idset_create(&all, most, err);
    if (!status) status = eng_idset_create(&lines, per_window * lines_per_row, err);
    if (status) goto out;
    for (int64_t w = 0; w < n_windows; w++) {
        eng_idset_clear(&seen);
        eng_idset_clear(&lines);
        for (int64_t i = 0; i < per_window; i++) {
            int64_t row = rows[w * per_window + i];
            if (!eng_idset_add(&seen, (uint64_t)row)) continue;
            eng_idset_add(&all, (uint64_t)row);
            touched += row_lines(table, &lines, row);
        }
        distinct += seen.n;
    }
    *bytes = (EngRowBytes){
        .logical = (double)per_window * (double)row_bytes,
        .distinct = (double)distinct * (double)row_bytes / (double)n_windows,
        .lines = (double)touched * LINE_BYTES / (double)n_windows,
        .working_set = (double)all.n * (double)row_bytes,
    };
out:
    eng_idset_destroy(&seen);
    eng_idset_destroy(&all);
    eng_idset_destroy(&lines);
    return status;
}

/* The last count of this process. All variants of a block read the same rows, millions of them;
 * counting once is enough. */
static struct {
    EngTable table;
    uint64_t sum;
    int64_t per_window, n_windows;
    EngRowBytes bytes;
} g_counted;

static uint64_t sum_of(const int64_t *rows, int64_t n)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++) sum = (sum ^ (uint64_t)rows[i]) * 0x9e3779b97f4a7c15u;
    return sum;
}

EngStatus eng_windows_row_bytes(const EngTable *table, const int64_t *rows, int64_t per_window,
                                int64_t n_windows, EngRowBytes *bytes, EngErr *err)
{
    uint64_t sum = sum_of(rows, per_window * n_windows);
    bool known = g_counted.table.values == table->values &&
                 g_counted.table.format == table->format &&
                 g_counted.table.row_dims == table->row_dims &&
                 g_counted.table.rows == table->rows && g_counted.sum == sum &&
                 g_counted.per_window == per_window && g_counted.n_windows == n_windows;
    EngStatus status =
        known ? ENG_OK : count_row_bytes(table, rows, per_window, n_windows, bytes, err);
    if (status) return status;
    if (known) {
        *bytes = g_counted.bytes;
        return ENG_OK;
    }
    g_counted.table = *table;
    g_counted.sum = sum;
    g_counted.per_window = per_window;
    g_counted.n_windows = n_windows;
    g_counted.bytes = *bytes;
    return ENG_OK;
}

void eng_touch_rows(const EngTable *table, const int64_t *rows, int64_t n)
{
    enum { PAGE_BYTES = 4096 };
    size_t values = eng_row_value_bytes(table->format, table->row_dims);
    size_t scales = eng_row_scale_bytes(table->format, table->row_dims);
    size_t stride = eng_row_stride_bytes(table->format, table->row_dims);
    volatile uint8_t sink = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *at = table->values + (size_t)rows[i] * stride;
        for (size_t b = 0; b < values; b += PAGE_BYTES) sink = (uint8_t)(sink + at[b]);
        sink = (uint8_t)(sink + at[values - 1]);
        if (scales) sink = (uint8_t)(sink + table->scales[(size_t)rows[i] * scales]);
    }
}
