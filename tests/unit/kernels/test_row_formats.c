/* Row formats with scales inside rows, and int4: sizes, a vector worked out by hand, every gather
 * variant against the oracle and against the split format, all 65,536 pairs of code and scale,
 * streamed output, and the memory store's layout of such rows.
 */
#include "kernels_test.h"

#include "kernels/cpu/gather_loop.h"
#include "kernels/cpu/isa.h"
#include "kernels/ref/gather.h"
#include "kernels/store/memory.h"

#include <math.h>
#include <sys/mman.h>

typedef struct Case {
    EngRowFormat format;
    EngDtype out;
} Case;

static const Case g_cases[] = {
    {ENG_ROW_FP8, ENG_F32},         {ENG_ROW_FP8, ENG_BF16},        {ENG_ROW_FP8, ENG_FP8},
    {ENG_ROW_FP8_PACKED, ENG_F32},  {ENG_ROW_FP8_PACKED, ENG_BF16}, {ENG_ROW_FP8_PACKED, ENG_FP8},
    {ENG_ROW_FP8_PAD272, ENG_F32},  {ENG_ROW_FP8_PAD272, ENG_BF16}, {ENG_ROW_FP8_PAD272, ENG_FP8},
    {ENG_ROW_FP8_PAD288, ENG_BF16}, {ENG_ROW_FP8_PAD288, ENG_FP8},  {ENG_ROW_INT4, ENG_F32},
    {ENG_ROW_INT4, ENG_BF16},       {ENG_ROW_BF16, ENG_BF16},       {ENG_ROW_BF16, ENG_F32},
    {ENG_ROW_F32, ENG_F32},         {ENG_ROW_F32, ENG_BF16},
};

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        EngRowFormat format;
        const char *name;
        size_t value_256, stride_256, value_64, stride_64, scale_offset_256;
    } want[] = {
        {ENG_ROW_FP8_PACKED, "fp8_packed", 264, 264, 66, 66, 256},
        {ENG_ROW_FP8_PAD272, "fp8_pad272", 264, 272, 66, 80, 256},
        {ENG_ROW_FP8_PAD288, "fp8_pad288", 264, 288, 66, 96, 256},
        {ENG_ROW_INT4, "int4", 144, 144, 36, 36, 128},
        {ENG_ROW_FP8, "fp8", 256, 256, 64, 64, 0},
    };
    for (int i = 0; i < LENGTH_OF(want); i++) {
        EngRowFormat f = want[i].format;
        assert_string_equal(eng_row_format_name(f), want[i].name);
        assert_int_equal(eng_row_format_parse(want[i].name), f);
        assert_int_equal(eng_row_value_bytes(f, 256), want[i].value_256);
        assert_int_equal(eng_row_stride_bytes(f, 256), want[i].stride_256);
        assert_int_equal(eng_row_value_bytes(f, 64), want[i].value_64);
        assert_int_equal(eng_row_stride_bytes(f, 64), want[i].stride_64);
        assert_int_equal(eng_row_scale_offset(f, 256), want[i].scale_offset_256);
        assert_int_equal(eng_row_scale_bytes(f, 256), f == ENG_ROW_FP8 ? 8 : 0);
        assert_true(eng_row_has_groups(f));
        assert_int_equal(eng_row_is_fp8(f), f != ENG_ROW_INT4);
    }
    for (int f = 0; f < ENG_ROW_FORMAT_COUNT; f++) {
        assert_non_null(eng_row_format_name((EngRowFormat)f));
        assert_int_equal(eng_row_format_parse(eng_row_format_name((EngRowFormat)f)), f);
    }
}

/* One row of 64: nibbles 0..7 and -8..-1 low half first, scales -0.5 and 3 * 2^-3. */
static void test_int4_by_hand(void **state)
{
    (void)state;
    uint8_t row[36];
    for (int i = 0; i < 32; i++) row[i] = (uint8_t)((2 * i & 15) | (2 * i + 1) % 16 << 4);
    const uint8_t scales[] = {0x00, 0xbf, 0xc0, 0x3e}; /* bf16 0xbf00 and 0x3ec0, low byte first */
    memcpy(row + 32, scales, sizeof scales);
    static const float first[] = {-0.0f, -0.5f, -1, -1.5f, -2, -2.5f, -3, -3.5f,
                                  4,     3.5f,  3,  2.5f,  2,  1.5f,  1,  0.5f};
    static const float second[] = {0,  0.375f,  0.75f,  1.125f,  1.5f,  1.875f,  2.25f,  2.625f,
                                   -3, -2.625f, -2.25f, -1.875f, -1.5f, -1.125f, -0.75f, -0.375f};
    EngProblem problem = {.op = ENG_OP_GATHER, .threads = 1};
    problem.u.gather = (EngGatherProblem){{ENG_ROW_INT4, 64, 1, row, NULL}, 1, 1, ENG_F32};
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_GATHER, &n);
    const int64_t id = 0;
    for (int k = -1; k < n; k++) {
        float got[64];
        EngArgs args = {.u.gather = {&id, 1, got, NULL}};
        if (k < 0)
            eng_ref_gather(&problem.u.gather, &args.u.gather);
        else if (!kernels[k]->checked || !run_kernel(kernels[k], &problem, &args))
            continue;
        for (int i = 0; i < 64; i++) {
            float want = i < 32 ? first[i % 16] : second[i % 16];
            assert_true(got[i] == want && signbit(got[i]) == signbit(want));
        }
    }
}

/* ---- variants against the oracle ---- */

/* Any bytes, NaN scales and extreme ones among them; what is padding too. */
static EngTable random_table(EngRng *rng, EngRowFormat format, int dims, int64_t rows,
                             size_t offset, bool plain)
{
    size_t values = (size_t)rows * eng_row_stride_bytes(format, dims);
    size_t scales = (size_t)rows * eng_row_scale_bytes(format, dims);
    size_t at = eng_row_scale_offset(format, dims), stride = eng_row_stride_bytes(format, dims);
    uint8_t *v = malloc(values + offset), *s = malloc(scales + offset + 1);
    assert_true(v && s);
    for (size_t i = 0; i < values + offset; i++) v[i] = (uint8_t)eng_rng_u64(rng);
    for (size_t i = 0; i < scales + offset; i++)
        s[i] = (uint8_t)(plain ? 0x70 + eng_rng_below(rng, 12) : eng_rng_u64(rng));
    for (int64_t r = 0; at && plain && r < rows; r++)
        for (size_t i = at; i < eng_row_value_bytes(format, dims); i++)
            v[offset + (size_t)r * stride + i] =
                (uint8_t)(0x70 - 0x32 * (format == ENG_ROW_INT4) + eng_rng_below(rng, 12));
    return (EngTable){format, dims, rows, v + offset, scales ? s + offset : s};
}

static void free_table(EngTable *table, size_t offset)
{
    free((void *)(table->values - offset));
    free((void *)(table->scales -
                  (eng_row_scale_bytes(table->format, table->row_dims) ? offset : 0)));
}

typedef struct Shape {
    int dims, columns;
    int64_t tokens;
    int threads;
    size_t offset; /* of table and output */
    bool plain;    /* scales that fast paths take */
} Shape;

/* All variants on one problem, against one run of the oracle. */
static void check(Case c, Shape s)
{
    enum { ROWS = 67 };
    EngRng rng;
    int n_kernels;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_GATHER, &n_kernels);
    eng_rng_seed(&rng, (uint64_t)(s.dims * 131 + s.columns * 17 + s.tokens) + s.offset);
    EngTable table = random_table(&rng, c.format, s.dims, ROWS, s.offset, s.plain);
    EngProblem problem = {.op = ENG_OP_GATHER, .threads = s.threads};
    problem.u.gather = (EngGatherProblem){table, s.columns, s.tokens, c.out};
    int64_t slots = s.tokens * s.columns;
    size_t n = (size_t)slots * (size_t)s.dims, bytes = eng_dtype_bytes(c.out, n);
    size_t scale_bytes = c.out == ENG_FP8 ? n / 32 : 0;
    int64_t *rows = malloc((size_t)slots * sizeof *rows + 1);
    for (int64_t i = 0; i < slots; i++) rows[i] = (int64_t)eng_rng_below(&rng, ROWS);
    if (slots > 1) rows[0] = 0, rows[1] = ROWS - 1;
    uint8_t *aligned = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    Unaligned loose = unaligned_copy(NULL, bytes, s.offset), want = unaligned_copy(NULL, bytes, 0);
    Unaligned got_scales = unaligned_copy(NULL, scale_bytes, s.offset);
    Unaligned want_scales = unaligned_copy(NULL, scale_bytes, 0);
    uint8_t *got = s.offset ? loose.bytes : aligned;
    EngArgs args = {.u.gather = {rows, s.columns, got, got_scales.bytes}};
    EngGatherArgs oracle = {rows, s.columns, want.bytes, want_scales.bytes};
    eng_ref_gather(&problem.u.gather, &oracle);
    for (int k = 0; k < n_kernels; k++) {
        EngComparison comparison;
        memset(got, 0xa5, bytes);
        memset(got_scales.bytes, 0xa5, scale_bytes);
        if (!run_kernel(kernels[k], &problem, &args) || !kernels[k]->checked) continue;
        eng_compare_bits(&comparison, c.out, got, want.bytes, (int64_t)n);
        assert_int_equal(comparison.count, n);
        assert_residual(&comparison, kernels[k]->name);
        assert_memory_equal(got_scales.bytes, want_scales.bytes, scale_bytes);
    }
    free(aligned), free(loose.block), free(want.block);
    free(got_scales.block), free(want_scales.block), free(rows);
    free_table(&table, s.offset);
}

static void for_all(const Shape *shapes, int n_shapes)
{
    for (int c = 0; c < LENGTH_OF(g_cases); c++)
        for (int i = 0; i < n_shapes; i++) check(g_cases[c], shapes[i]);
}

/* Odd numbers of groups, more than eight, one row, counts around a burst. */
static void test_shapes(void **state)
{
    static const Shape shapes[] = {
        {256, 24, 0, 1, 0, true},  {256, 24, 1, 1, 0, true},  {256, 24, 2, 1, 0, false},
        {256, 1, 47, 1, 0, true},  {256, 1, 48, 1, 0, true},  {256, 1, 49, 1, 0, false},
        {256, 7, 14, 2, 0, true},  {256, 3, 65, 3, 0, false}, {32, 5, 13, 1, 0, true},
        {96, 4, 31, 1, 0, false},  {96, 4, 31, 3, 0, true},   {288, 3, 11, 1, 0, true},
        {544, 2, 17, 2, 0, false}, {64, 16, 23, 1, 0, true},
    };
    (void)state;
    for_all(shapes, LENGTH_OF(shapes));
}

/* More tokens than 16 bits count. */
static void test_many_tokens(void **state)
{
    static const Shape shape = {32, 1, 65537, 3, 0, true};
    (void)state;
    check((Case){ENG_ROW_FP8, ENG_BF16}, shape);
    check((Case){ENG_ROW_INT4, ENG_F32}, shape);
    check((Case){ENG_ROW_BF16, ENG_F32}, shape);
    check((Case){ENG_ROW_F32, ENG_BF16}, shape);
}

/* 1 to 16 heads of 1 to 4 orders (2-2 to 2-5), the formats by turns. */
static void test_heads_and_orders(void **state)
{
    (void)state;
    for (int heads = 1; heads <= 16; heads++)
        for (int orders = 1; orders <= 4; orders++)
            check(g_cases[(heads * 5 + orders) % LENGTH_OF(g_cases)],
                  (Shape){heads % 3 ? 64 : 256, heads * orders, 7, 1 + heads % 3, 0, heads % 2});
}

static void test_unaligned(void **state)
{
    static const Shape shapes[] = {
        {256, 6, 23, 1, 1, true}, {256, 6, 23, 3, 3, false}, {96, 5, 19, 2, 7, true}};
    (void)state;
    for_all(shapes, LENGTH_OF(shapes));
}

/* Large output is stored past the caches where it is aligned; here from half a megabyte on. */
static void test_streamed(void **state)
{
    static const Shape shapes[] = {{256, 24, 44, 1, 0, true}, {256, 24, 86, 2, 0, false}};
    static const Shape others[] = {{256, 24, 44, 1, 1, true}, {96, 24, 117, 1, 0, true}};
    size_t before = eng_cpu_gather_stream_from;
    (void)state;
    eng_cpu_gather_stream_from = (size_t)512 << 10;
    for_all(shapes, LENGTH_OF(shapes));
    for (int i = 0; i < LENGTH_OF(others); i++) {
        check((Case){ENG_ROW_FP8, ENG_BF16}, others[i]);
        check((Case){ENG_ROW_FP8_PACKED, ENG_F32}, others[i]);
        check((Case){ENG_ROW_INT4, ENG_BF16}, others[i]);
    }
    eng_cpu_gather_stream_from = before;
}

/* All codes with all scale bytes, in 256 rows of 256 codes. */
static void test_all_pairs(void **state)
{
    static uint8_t values[256 * 288], scales[256 * 8];
    static float got[256 * 256], want[256 * 256];
    static int64_t rows[256];
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_GATHER, &n);
    (void)state;
    for (int f = 0; f < ENG_ROW_FORMAT_COUNT; f++) {
        EngRowFormat format = (EngRowFormat)f;
        if (!eng_row_is_fp8(format)) continue;
        size_t stride = eng_row_stride_bytes(format, 256), at = eng_row_scale_offset(format, 256);
        for (size_t r = 0; r < 256; r++) {
            rows[r] = (int64_t)(r * 77 % 256);
            for (size_t i = 0; i < 256; i++) values[r * stride + i] = (uint8_t)(i * 37 + r);
            memset(at ? values + r * stride + at : scales + r * 8, (int)r, 8);
        }
        for (int out = ENG_F32; out <= ENG_BF16; out++)
            for (int k = -1; k < n; k++) {
                EngProblem problem = {.op = ENG_OP_GATHER, .threads = 1};
                problem.u.gather =
                    (EngGatherProblem){{format, 256, 256, values, scales}, 1, 256, (EngDtype)out};
                EngArgs args = {.u.gather = {rows, 1, got, NULL}};
                EngGatherArgs oracle = {rows, 1, want, NULL};
                EngComparison comparison;
                if (k < 0) eng_ref_gather(&problem.u.gather, &oracle);
                if (k < 0 || !kernels[k]->checked || !run_kernel(kernels[k], &problem, &args))
                    continue;
                eng_compare_bits(&comparison, (EngDtype)out, got, want, 65536);
                assert_residual(&comparison, kernels[k]->name);
            }
    }
}

/* A single odd scale or NaN among plain ones must not be lost by a fast path, wherever it lies. */
static void test_one_odd_element(void **state)
{
    static uint8_t values[288], scales[9];
    static const uint8_t odd[] = {0, 1, 9, 10, 246, 247, 254, 255};
    const int64_t row = 0;
    int n;
    const EngKernel *const *kernels = cpu_kernels(ENG_OP_GATHER, &n);
    (void)state;
    for (int i = 0; i < 288; i++) values[i] = (uint8_t)(i * 5 + 3) & 0xfe;
    for (int place = 0; place < 9 + 288; place += place < 9 ? 1 : 13)
        for (int o = 0; o < LENGTH_OF(odd); o++)
            for (int k = 0; k < n; k++)
                for (int out = ENG_F32; out <= ENG_BF16; out++) {
                    uint8_t v[288];
                    float got[288], want[288];
                    EngComparison comparison;
                    memcpy(v, values, sizeof v);
                    memset(scales, 0x74, sizeof scales);
                    if (place < 9)
                        scales[place] = odd[o];
                    else
                        v[place - 9] = o % 2 ? 0x7f : 0xff;
                    EngProblem problem = {.op = ENG_OP_GATHER, .threads = 1};
                    problem.u.gather =
                        (EngGatherProblem){{ENG_ROW_FP8, 288, 1, v, scales}, 1, 1, (EngDtype)out};
                    EngArgs args = {.u.gather = {&row, 1, got, NULL}};
                    EngGatherArgs oracle = {&row, 1, want, NULL};
                    if (!kernels[k]->checked || !run_kernel(kernels[k], &problem, &args)) continue;
                    eng_ref_gather(&problem.u.gather, &oracle);
                    eng_compare_bits(&comparison, (EngDtype)out, got, want, 288);
                    assert_residual(&comparison, kernels[k]->name);
                }
}

/* Packed and padded rows are the split ones moved: the outputs agree, whatever the oracle thinks.
 */
static void test_packed_equals_split(void **state)
{
    enum { DIMS = 256, ROWS = 50, TOKENS = 9, COLUMNS = 5 };
    static uint8_t moved[ROWS * 288];
    static uint16_t want[TOKENS * COLUMNS * DIMS], got[TOKENS * COLUMNS * DIMS];
    EngRng rng;
    int64_t rows[TOKENS * COLUMNS];
    (void)state;
    eng_rng_seed(&rng, 5);
    EngTable split = random_table(&rng, ENG_ROW_FP8, DIMS, ROWS, 0, true);
    for (int i = 0; i < TOKENS * COLUMNS; i++) rows[i] = (int64_t)eng_rng_below(&rng, ROWS);
    EngProblem problem = {.op = ENG_OP_GATHER, .threads = 1};
    problem.u.gather = (EngGatherProblem){split, COLUMNS, TOKENS, ENG_BF16};
    EngArgs args = {.u.gather = {rows, COLUMNS, want, NULL}};
    assert_true(run_kernel(&eng_cpu_gather_naive, &problem, &args));
    static const size_t strides[] = {264, 272, 288};
    for (int i = 0; i < 3; i++) {
        EngRowFormat format = (EngRowFormat)(ENG_ROW_FP8_PACKED + i);
        memset(moved, 0xff, sizeof moved);
        for (size_t r = 0; r < ROWS; r++) {
            memcpy(moved + r * strides[i], split.values + r * DIMS, DIMS);
            memcpy(moved + r * strides[i] + DIMS, split.scales + r * 8, 8);
        }
        problem.u.gather.table = (EngTable){format, DIMS, ROWS, moved, NULL};
        int n;
        const EngKernel *const *kernels = cpu_kernels(ENG_OP_GATHER, &n);
        for (int k = 0; k < n; k++) {
            args.u.gather.out = got;
            memset(got, 0, sizeof got);
            if (!kernels[k]->checked || !run_kernel(kernels[k], &problem, &args)) continue;
            EngComparison comparison;
            eng_compare_bits(&comparison, ENG_BF16, got, want, TOKENS * COLUMNS * DIMS);
            assert_residual(&comparison, kernels[k]->name);
        }
    }
    free_table(&split, 0);
}

/* Rows beyond 4 GiB, where the stride is no power of two. */
static void test_far_rows(void **state)
{
    static const EngRowFormat formats[] = {ENG_ROW_FP8_PACKED, ENG_ROW_INT4};
    (void)state;
    for (int f = 0; f < 2; f++) {
        size_t stride = eng_row_stride_bytes(formats[f], 256), bytes = (size_t)9 << 30;
        int64_t rows = (int64_t)(bytes / stride), ids[3] = {0, 0, rows - 1};
        uint8_t *values = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        assert_true(values != MAP_FAILED);
        ids[1] = (int64_t)(((size_t)1 << 32) / stride); /* its low 32 bits are those of row 0 */
        for (int i = 0; i < 3; i++) memset(values + (size_t)ids[i] * stride, 0x41 + i, stride);
        EngProblem problem = {.op = ENG_OP_GATHER, .threads = 1};
        problem.u.gather = (EngGatherProblem){{formats[f], 256, rows, values, NULL}, 3, 1, ENG_F32};
        float got[3 * 256], want[3 * 256];
        EngArgs args = {.u.gather = {ids, 3, got, NULL}};
        EngGatherArgs oracle = {ids, 3, want, NULL};
        int n;
        const EngKernel *const *kernels = cpu_kernels(ENG_OP_GATHER, &n);
        eng_ref_gather(&problem.u.gather, &oracle);
        assert_true(want[0] != want[256] && want[256] != want[512]);
        for (int k = 0; k < n; k++)
            if (kernels[k]->checked && run_kernel(kernels[k], &problem, &args))
                assert_memory_equal(got, want, sizeof want);
        munmap(values, bytes);
    }
}

static void test_refusals(void **state)
{
    EngProblem p = {.op = ENG_OP_GATHER, .threads = 1};
    EngErr why;
    (void)state;
    p.u.gather = (EngGatherProblem){{ENG_ROW_INT4, 80, 10, NULL, NULL}, 2, 1, ENG_BF16};
    assert_int_equal(eng_cpu_gather_portable.supports(&p, &why), ENG_UNSUPPORTED);
    assert_non_null(strstr(why.text, "int4 rows need row dims that are a multiple of 32"));
    p.u.gather = (EngGatherProblem){{ENG_ROW_INT4, 64, 10, NULL, NULL}, 2, 1, ENG_FP8};
    assert_int_equal(eng_cpu_gather_portable.supports(&p, &why), ENG_UNSUPPORTED);
    assert_non_null(strstr(why.text, "fp8 table, not int4"));
    p.u.gather.out = ENG_BF16;
    eng_isa_limit(0);
    assert_int_equal(eng_cpu_gather_portable.supports(&p, &why), ENG_OK);
    assert_int_equal(eng_cpu_gather_avx2.supports(&p, &why), ENG_UNSUPPORTED);
    assert_int_equal(eng_cpu_gather_avx512.supports(&p, &why), ENG_UNSUPPORTED);
    eng_isa_limit(ENG_ISA_ALL & ~ENG_ISA_VBMI);
    assert_int_equal(eng_cpu_gather_avx512_vbmi.supports(&p, &why), ENG_UNSUPPORTED);
    if (eng_isa_present() & ENG_ISA_AVX512) assert_non_null(strstr(why.text, "VBMI"));
    eng_isa_limit(ENG_ISA_ALL);
}

static void test_cost(void **state)
{
    static const struct {
        EngRowFormat format;
        double read;
    } want[] = {{ENG_ROW_FP8_PACKED, 264},
                {ENG_ROW_FP8_PAD272, 264}, /* what is read, not what it takes */
                {ENG_ROW_INT4, 144}};
    (void)state;
    for (int i = 0; i < LENGTH_OF(want); i++) {
        EngProblem p = {.op = ENG_OP_GATHER, .threads = 1};
        EngCost cost;
        p.u.gather = (EngGatherProblem){{want[i].format, 256, 10, NULL, NULL}, 24, 10, ENG_BF16};
        eng_cpu_gather_portable.cost(&p, &cost);
        assert_true(cost.read_bytes == want[i].read * 240 && cost.write_bytes == 512. * 240);
        assert_true(cost.flops == 256. * 240);
    }
}

/* ---- memory store ---- */

/* Rows are a function of their number; their scales lie where the layout says and are sensible. */
static void test_store(void **state)
{
    static const EngRowFormat formats[] = {ENG_ROW_FP8_PACKED, ENG_ROW_FP8_PAD272,
                                           ENG_ROW_FP8_PAD288, ENG_ROW_INT4};
    EngErr err;
    (void)state;
    for (int f = 0; f < LENGTH_OF(formats); f++) {
        EngTableArena small, large;
        EngTable table;
        size_t stride = eng_row_stride_bytes(formats[f], 256), at;
        assert_int_equal(eng_table_value_bytes(formats[f], 256, 5000, &at, &err), ENG_OK);
        assert_int_equal(at, 5000 * stride);
        assert_int_equal(eng_table_arena_create(&small, formats[f], 5000 * stride, 3, &err), 0);
        assert_int_equal(eng_table_arena_create(&large, formats[f], 20000 * stride, 3, &err), 0);
        assert_int_equal(eng_table_arena_view(&small, 256, 5000, &table, &err), ENG_NOT_FOUND);
        assert_int_equal(eng_table_arena_layout(&large, 64, &err), ENG_OK); /* and again: */
        assert_int_equal(eng_table_arena_layout(&small, 256, &err), ENG_OK);
        assert_int_equal(eng_table_arena_layout(&large, 256, &err), ENG_OK);
        assert_memory_equal(small.values, large.values, 5000 * stride);
        assert_int_equal(eng_table_arena_view(&small, 64, 10, &table, &err), ENG_NOT_FOUND);
        assert_non_null(strstr(err.text, "256 dims, not 64"));
        assert_int_equal(eng_table_arena_view(&large, 256, 20000, &table, &err), ENG_OK);
        int64_t different = 0;
        for (int64_t r = 0; r < 20000; r++) {
            const uint8_t *row = table.values + (size_t)r * stride;
            double last = eng_ref_table_value(&table, r, 255);
            assert_true(fabs(last) < 32 && isfinite(last));
            for (int g = 0; g < 8; g++)
                if (formats[f] != ENG_ROW_INT4)
                    assert_in_range(row[256 + g], 0x70, 0x7b);
                else
                    assert_int_equal(row[128 + 2 * g + 1], 0x3c);
            different += memcmp(row, table.values, stride) != 0;
        }
        assert_int_equal(different, 19999);
        eng_table_arena_destroy(&small);
        eng_table_arena_destroy(&large);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_int4_by_hand),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_unaligned),
        cmocka_unit_test(test_streamed),
        cmocka_unit_test(test_all_pairs),
        cmocka_unit_test(test_far_rows),
        cmocka_unit_test(test_packed_equals_split),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_one_odd_element),
        cmocka_unit_test(test_store),
        cmocka_unit_test(test_heads_and_orders),
        cmocka_unit_test(test_many_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
