/* The fused look-up with AVX-512: rows of the table are decoded straight into the packed operand of
 * the product (project_avx512.c), without the [tokens, k] buffer between the two.
 *
 * Rows are visited in the order in which the operand wants them (token tile, column, token), so
 * that the up to 14 rows that share lines of it follow each other, and requested in bursts ahead of
 * use like any gather's (gather_loop.h). A row is decoded into the first-level cache and its pairs
 * go to their places between those of the tile's other tokens.
 */
#include "kernels/cpu/common.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lookup.h"
#include "kernels/cpu/project_avx512.h"

#include "base/mem.h"

#if ENG_X86
#include "kernels/cpu/gather_avx512.h"

#define BURST 48 /* rows; as the gather's */

/* ---- rows --------------------------------------------------------------------------------------
 */

#define ROW(name, TARGET, BODY)                                                                    \
    TARGET static void name(const EngGatherLoop *loop, const uint8_t *values,                      \
                            const uint8_t *scales, uint8_t *out, uint8_t *out_scales)              \
    {                                                                                              \
        (void)scales, (void)out_scales;                                                            \
        BODY;                                                                                      \
    }

ROW(fp8_row, ENG_TARGET_AVX512_VBMI, vbmi_row(values, scales, out, loop->groups, false, false))
ROW(eight_row, ENG_TARGET_AVX512_VBMI, (void)loop; vbmi_row(values, scales, out, 8, false, false))
ROW(bf16_row, ENG_TARGET_AVX512, copy_bytes(out, values, 2 * (int64_t)loop->dims, false))
ROW(f32_row, ENG_TARGET_AVX512, narrow_row(loop, values, out))
ROW(nibble_row, ENG_TARGET_AVX512, int4_row(values, scales, out, loop->groups, false, false))

static EngGatherRowFn *row_fn_of(const EngTable *table)
{
    switch (table->format) {
    case ENG_ROW_BF16:
        return bf16_row;
    case ENG_ROW_F32:
        return f32_row;
    case ENG_ROW_INT4:
        return nibble_row;
    default:
        return table->row_dims == 256 ? eight_row : fp8_row;
    }
}

/* ---- packing -----------------------------------------------------------------------------------
 */

/* One run(): what pack() and exact() need. */
typedef struct Lookup {
    EngGatherLoop loop;
    EngGatherRowFn *row_fn;
    bool fp8;
    const int64_t *rows;
    int64_t row_stride;
} Lookup;

/* A row's place in the order of packing. */
typedef struct Cursor {
    const EngTokenTile *tile;
    int column, token; /* of the tile */
} Cursor;

static Cursor cursor_at(const EngPackedX *x, int64_t slot, int columns)
{
    const EngTokenTile *tile = x->tiles;
    while (slot >= (tile->first + tile->count) * columns) tile++;
    int64_t within = slot - tile->first * columns;
    return (Cursor){tile, (int)(within / tile->count), (int)(within % tile->count)};
}

static void advance(Cursor *cursor, int columns)
{
    if (++cursor->token < cursor->tile->count) return;
    cursor->token = 0;
    if (++cursor->column < columns) return;
    cursor->column = 0;
    cursor->tile++;
}

/* Whether the scales alone say that a row is safe: its values are 2^-9 to 448 times them. */
static bool scales_are_safe(EngSafeRange range, const uint8_t *scales, int groups)
{
    int low = range.low + 9 > 10 ? range.low + 9 : 10;
    int high = range.high - 9 < 246 ? range.high - 9 : 246;
    bool safe = true;
    for (int g = 0; g < groups; g++) safe &= scales[g] >= low && scales[g] <= high;
    return safe;
}

static void pack_row(const Lookup *lookup, const EngPackedX *x, const Cursor *at, uint64_t row,
                     uint16_t *words)
{
    const EngGatherLoop *loop = &lookup->loop;
    const uint8_t *values = loop->values + row * loop->stride;
    const uint8_t *scales = loop->scales ? loop->scales + row * loop->scale_stride : NULL;
    size_t pairs = (size_t)loop->dims / 2;
    lookup->row_fn(loop, values, scales, (uint8_t *)words, NULL);
    bool safe = lookup->fp8 && scales_are_safe(x->safe, scales, loop->groups);
    if (!safe && !eng_project_is_safe(x->safe, words, loop->dims, lookup->fp8 ? values : NULL,
                                      lookup->fp8 ? scales : NULL))
        eng_packed_x_mark(x, at->tile->first + at->token);
    eng_packed_x_spread(words, pairs, (size_t)at->tile->count,
                        eng_packed_x_at(x, at->tile, (size_t)at->column * pairs, at->token));
}

static void pack(const void *context, const EngPackedX *x, int parts, int index)
{
    const Lookup *lookup = context;
    const EngRowKind kind = eng_gather_kind(&lookup->loop);
    int columns = lookup->loop.columns;
    uint16_t *words = x->rows + (size_t)index * (size_t)x->k;
    uint64_t ids[ENG_GATHER_MAX_AHEAD]; /* a ring: slot modulo its size */
    int64_t from, to;
    eng_cpu_share(x->tokens * columns, parts, index, &from, &to);
    if (from == to) return;
    Cursor asked = cursor_at(x, from, columns), used = asked;
    int64_t requested = from;
    for (int64_t at = from; at < to;) {
        int64_t first = requested, goal = at + 2 * BURST < to ? at + 2 * BURST : to;
        for (; requested < goal; requested++, advance(&asked, columns))
            ids[requested % ENG_GATHER_MAX_AHEAD] =
                (uint64_t)lookup
                    ->rows[(asked.tile->first + asked.token) * lookup->row_stride + asked.column];
        eng_gather_request_rows(&lookup->loop, ids, (uint64_t)first, (uint64_t)requested, kind);
        int64_t stop = at + BURST < to ? at + BURST : to;
        for (; at < stop; at++, advance(&used, columns))
            pack_row(lookup, x, &used, ids[at % ENG_GATHER_MAX_AHEAD], words);
    }
}

static void exact(const void *context, int64_t t, double *x)
{
    const Lookup *lookup = context;
    const EngGatherLoop *loop = &lookup->loop;
    for (int c = 0; c < loop->columns; c++, x += loop->dims) {
        uint64_t row = (uint64_t)lookup->rows[t * lookup->row_stride + c];
        const uint8_t *values = loop->values + row * loop->stride;
        const uint8_t *scales = loop->scales ? loop->scales + row * loop->scale_stride : NULL;
        if (lookup->fp8) {
            eng_project_widen_fp8(values, scales, loop->dims, x);
            continue;
        }
        /* As bf16 words in the upper half of their own doubles' place: widened from the front. */
        uint8_t *words = (uint8_t *)(x + loop->dims) - 2 * (size_t)loop->dims;
        lookup->row_fn(loop, values, scales, words, NULL);
        eng_project_widen_bf16(words, loop->dims, x);
    }
}

/* ---- variant -----------------------------------------------------------------------------------
 */

static EngStatus supports(const EngProblem *problem, EngErr *why)
{
    EngStatus status = eng_cpu_lookup_supports(problem, why);
    if (status) return status;
    if (problem->u.lookup.table.row_dims % 2)
        return ENG_FAIL(why, ENG_UNSUPPORTED,
                        "rows of %d values: inputs are packed in pairs, which must not cross rows",
                        problem->u.lookup.table.row_dims);
    EngProblem project = eng_cpu_lookup_project(problem, ENG_BF16);
    return eng_project_avx512_supports(&project, why);
}

static EngStatus create(const EngProblem *problem, void **state, EngErr *err)
{
    EngProblem project = eng_cpu_lookup_project(problem, ENG_BF16);
    return eng_project_avx512_create(&project, state, err);
}

static EngStatus run(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err)
{
    const EngLookupProblem *p = &problem->u.lookup;
    const EngLookupArgs *a = &args->u.lookup;
    EngProblem project = eng_cpu_lookup_project(problem, ENG_BF16);
    Lookup lookup = {.loop = eng_cpu_gather_loop(&p->table, p->columns),
                     .row_fn = row_fn_of(&p->table),
                     .fp8 = eng_row_is_fp8(p->table.format),
                     .rows = a->rows,
                     .row_stride = a->row_stride};
    EngInputSource source = {.pack = pack, .exact = exact, .context = &lookup};
    (void)err;
    eng_project_avx512_run(state, &project, &source, a->out);
    return ENG_OK;
}

const EngKernel eng_cpu_lookup_avx512_fused = {
    .op = ENG_OP_LOOKUP,
    .name = "avx512_fused",
    .backend = ENG_CPU,
    .checked = true,
    .summary = "rows decoded straight into the packed operand of the AVX-512 product",
    .tunables = eng_project_avx512_tunables,
    .supports = supports,
    .cost = eng_cpu_lookup_cost,
    .create = create,
    .run = run,
    .destroy = eng_project_avx512_destroy,
};
#endif
