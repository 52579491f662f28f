/* Memory row store: mapped, filled by all processors, seeded; see memory.h.
 *
 * Each 64 KiB chunk of values or scales is filled from its own random stream (seed, kind, chunk
 * number), which is what makes content independent of threads and of the arena's size.
 */
#include "kernels/store/memory.h"

#include "base/mem.h"
#include "base/parallel.h"
#include "base/rng.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK_BYTES     ((size_t)64 << 10)
#define HUGE_PAGE_BYTES ((size_t)2 << 20)
#define DEVIATION       0.1
#define QUANTILES       65536

/* ---- available memory --------------------------------------------------------------------------
 */

static bool read_u64(const char *path, uint64_t *value)
{
    FILE *file = fopen(path, "r");
    if (!file) return false;
    bool ok = fscanf(file, "%" SCNu64, value) == 1; /* "max" does not parse: no limit */
    fclose(file);
    return ok;
}

/* The number after `key` at the start of a line, in the file's own unit. */
static bool read_field(const char *path, const char *key, uint64_t *value)
{
    char line[256];
    bool found = false;
    FILE *file = fopen(path, "r");
    if (!file) return false;
    while (!found && fgets(line, sizeof line, file))
        if (!strncmp(line, key, strlen(key)))
            found = sscanf(line + strlen(key), " %" SCNu64, value) == 1;
    fclose(file);
    return found;
}

/* What a control group leaves: its limit less what is used and cannot be given back. */
static void limit_by_group(const char *folder, const char *limit_file, const char *usage_file,
                           const char *cache_key, uint64_t *available)
{
    char path[1200];
    uint64_t limit, used, cache = 0;
    snprintf(path, sizeof path, "%s/%s", folder, limit_file);
    if (!read_u64(path, &limit)) return;
    snprintf(path, sizeof path, "%s/%s", folder, usage_file);
    if (!read_u64(path, &used)) return;
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    read_field(path, cache_key, &cache);
    used -= cache < used ? cache : used;
    uint64_t left = limit > used ? limit - used : 0;
    if (left < *available) *available = left;
}

/* Version 2: every group from ours up to the root may have a limit. */
static void limit_by_groups(uint64_t *available)
{
    static const char root[] = "/sys/fs/cgroup";
    char line[1024], folder[1100];
    limit_by_group("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                   "total_inactive_file", available);
    limit_by_group(root, "memory.max", "memory.current", "inactive_file ", available);
    FILE *file = fopen("/proc/self/cgroup", "r");
    if (!file) return;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "0::/", 4)) continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(folder, sizeof folder, "%s%s", root, line + 3);
        for (char *cut; (cut = strrchr(folder, '/')) && cut >= folder + sizeof root - 1; *cut = 0)
            limit_by_group(folder, "memory.max", "memory.current", "inactive_file ", available);
    }
    fclose(file);
}

size_t eng_memory_available_bytes(void)
{
    uint64_t kib = 0;
    if (!read_field("/proc/meminfo", "MemAvailable:", &kib)) return 0;
    uint64_t available = kib * 1024, most;
    limit_by_groups(&available);
    const char *text = getenv("ENG_MEMORY_BYTES");
    if (text && sscanf(text, "%" SCNu64, &most) == 1 && most < available) available = most;
    return (size_t)available;
}

/* ---- content -----------------------------------------------------------------------------------
 */

typedef struct Fill {
    EngRowFormat format;
    uint64_t seed;
    uint8_t *values, *scales;
    size_t value_bytes, scale_bytes;
    size_t value_chunks;
    float *quantiles; /* [QUANTILES + 1] of the normal distribution, for bf16 and f32 */
} Fill;

/* Any byte but a NaN code: 0x7f and 0xff become 0x7e and 0xfe. */
static void fill_codes(EngRng *rng, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t x = eng_rng_u64(rng);
        uint64_t nan = (x & 0x7f7f7f7f7f7f7f7fu) + 0x0101010101010101u;
        x ^= (nan & 0x8080808080808080u) >> 7;
        memcpy(out + i, &x, n - i < 8 ? n - i : 8);
    }
}

/* 0x70 + uniform 0..11. */
static void fill_scales(EngRng *rng, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t x = eng_rng_u64(rng);
        uint64_t even = (x & 0x00ff00ff00ff00ffu) * 12 >> 8 & 0x00ff00ff00ff00ffu;
        uint64_t odd = (x >> 8 & 0x00ff00ff00ff00ffu) * 12 & 0xff00ff00ff00ff00u;
        x = (even | odd) + 0x7070707070707070u;
        memcpy(out + i, &x, n - i < 8 ? n - i : 8);
    }
}

static void fill_bf16(EngRng *rng, const float *quantiles, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t x = eng_rng_u64(rng);
        uint16_t four[4];
        for (int j = 0; j < 4; j++, x >>= 16) {
            uint32_t bits;
            memcpy(&bits, &quantiles[x & 0xffff], sizeof bits);
            four[j] = (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
        }
        memcpy(out + i, four, n - i < 8 ? n - i : 8);
    }
}

/* Between two quantiles, straight. */
static void fill_f32(EngRng *rng, const float *quantiles, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t x = eng_rng_u64(rng);
        float two[2];
        for (int j = 0; j < 2; j++, x >>= 32) {
            const float *q = &quantiles[x & 0xffff];
            two[j] = q[0] + (q[1] - q[0]) * ((float)(x >> 16 & 0xffff) * 0x1p-16f);
        }
        memcpy(out + i, two, n - i < 8 ? n - i : 8);
    }
}

static void fill_chunk(void *context, int64_t index)
{
    const Fill *fill = context;
    bool is_scale = (size_t)index >= fill->value_chunks;
    size_t chunk = (size_t)index - (is_scale ? fill->value_chunks : 0);
    size_t total = is_scale ? fill->scale_bytes : fill->value_bytes;
    size_t at = chunk * CHUNK_BYTES;
    size_t n = total - at < CHUNK_BYTES ? total - at : CHUNK_BYTES;
    EngRng rng;
    eng_rng_seed_at(&rng, fill->seed, 2 * (uint64_t)chunk + is_scale);
    if (is_scale)
        fill_scales(&rng, fill->scales + at, n);
    else if (fill->format == ENG_ROW_BF16)
        fill_bf16(&rng, fill->quantiles, fill->values + at, n);
    else if (fill->format == ENG_ROW_F32)
        fill_f32(&rng, fill->quantiles, fill->values + at, n);
    else /* nibbles too: any byte is good */
        fill_codes(&rng, fill->values + at, n);
}

/* Where the normal distribution passes (i + 1/2) / (QUANTILES + 1): Newton's method from the
 * neighbour towards the middle, mirrored. */
static void compute_quantiles(float *quantiles)
{
    double z = 0;
    for (int i = QUANTILES / 2; i <= QUANTILES; i++) {
        double above = (QUANTILES - i + 0.5) / (QUANTILES + 1); /* probability beyond z */
        for (int step = 0; step < 6; step++) {
            double density = exp(-z * z / 2) / sqrt(2 * M_PI);
            z += (0.5 * erfc(z / M_SQRT2) - above) / density;
        }
        quantiles[i] = (float)(DEVIATION * z);
        quantiles[QUANTILES - i] = -quantiles[i];
    }
}

static EngStatus fill_arena(EngTableArena *arena, EngErr *err)
{
    Fill fill = {
        .format = arena->format,
        .seed = arena->seed,
        .values = arena->values,
        .scales = arena->scales,
        .value_bytes = arena->value_bytes,
        .scale_bytes = arena->scale_bytes,
        .value_chunks = (arena->value_bytes + CHUNK_BYTES - 1) / CHUNK_BYTES,
    };
    if (arena->format == ENG_ROW_BF16 || arena->format == ENG_ROW_F32) {
        EngStatus status = eng_alloc_or((void **)&fill.quantiles, QUANTILES + 1,
                                        sizeof *fill.quantiles, "quantiles", err);
        if (status) return status;
        compute_quantiles(fill.quantiles);
    }
    size_t scale_chunks = (arena->scale_bytes + CHUNK_BYTES - 1) / CHUNK_BYTES;
    eng_parallel_for((int64_t)(fill.value_chunks + scale_chunks), 0, fill_chunk, &fill);
    eng_free(fill.quantiles);
    return ENG_OK;
}

/* ---- scales inside rows ------------------------------------------------------------------------
 */

#define LAYOUT_ROWS 4096 /* rows of one random stream */

typedef struct Layout {
    EngTableArena *arena;
    size_t stride, offset, scales; /* of a row, in bytes */
    int64_t rows;
} Layout;

/* bf16 scales of int4: 2^-7 to 2^-6. */
static void fill_bf16_scales(EngRng *rng, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i += 2) {
        uint16_t bits = (uint16_t)(0x3c00 + eng_rng_below(rng, 128));
        memcpy(out + i, &bits, sizeof bits);
    }
}

static void fill_row_scales(void *context, int64_t index)
{
    const Layout *layout = context;
    int64_t from = index * LAYOUT_ROWS, to = from + LAYOUT_ROWS;
    EngRng rng;
    eng_rng_seed_at(&rng, layout->arena->seed, 2 * (uint64_t)index + 1);
    for (int64_t row = from; row < to && row < layout->rows; row++) {
        uint8_t *at = layout->arena->values + (size_t)row * layout->stride + layout->offset;
        if (layout->arena->format == ENG_ROW_INT4)
            fill_bf16_scales(&rng, at, layout->scales);
        else
            fill_scales(&rng, at, layout->scales);
    }
}

EngStatus eng_table_arena_layout(EngTableArena *arena, int row_dims, EngErr *err)
{
    size_t one;
    if (!eng_row_scale_offset(arena->format, ENG_SCALE_GROUP)) return ENG_OK;
    EngStatus status = eng_table_value_bytes(arena->format, row_dims, 1, &one, err);
    if (status || arena->row_dims == row_dims) return status;
    Layout layout = {.arena = arena,
                     .stride = one,
                     .offset = eng_row_scale_offset(arena->format, row_dims),
                     .rows = (int64_t)(arena->value_bytes / one)};
    layout.scales = eng_row_value_bytes(arena->format, row_dims) - layout.offset;
    if (arena->row_dims) status = fill_arena(arena, err); /* where the old scales were */
    if (!status)
        eng_parallel_for((layout.rows + LAYOUT_ROWS - 1) / LAYOUT_ROWS, 0, fill_row_scales,
                         &layout);
    arena->row_dims = status ? 0 : row_dims;
    return status;
}

/* ---- mapping -----------------------------------------------------------------------------------
 */

/* Mapped at a multiple of the huge page, so that all of it but the end can be huge. */
static uint8_t *map_bytes(size_t bytes)
{
    size_t size;
    if (!bytes || !eng_add_size(bytes, HUGE_PAGE_BYTES, &size)) return NULL;
    uint8_t *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return NULL;
    size_t before = (HUGE_PAGE_BYTES - (uintptr_t)base % HUGE_PAGE_BYTES) % HUGE_PAGE_BYTES;
    size_t page = 4096, kept = (bytes + page - 1) / page * page;
    if (before) munmap(base, before);
    if (size - before > kept) munmap(base + before + kept, size - before - kept);
    madvise(base + before, bytes, MADV_HUGEPAGE); /* advice: small pages work too */
    return base + before;
}

/* Bytes of huge pages in the mappings that hold [from, from + bytes). */
static size_t count_huge_bytes(const uint8_t *from, size_t bytes)
{
    char line[512];
    size_t total = 0;
    uintptr_t begin, end, first = (uintptr_t)from, last = first + bytes;
    bool inside = false;
    FILE *file = fopen("/proc/self/smaps", "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) {
        size_t kib;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
            inside = begin < last && end > first;
        else if (inside && sscanf(line, "AnonHugePages: %zu kB", &kib) == 1)
            total += kib * 1024;
    }
    fclose(file);
    return total < bytes ? total : bytes; /* a mapping may be merged with a neighbour */
}

static EngStatus check_memory(size_t needed, EngErr *err)
{
    size_t available = eng_memory_available_bytes();
    if (available && needed > available - available / 10)
        return ENG_FAIL(err, ENG_NO_MEMORY,
                        "table needs %zu bytes; %zu are available, of which 10 %% are kept free",
                        needed, available);
    return ENG_OK;
}

EngStatus eng_table_arena_create(EngTableArena *arena, EngRowFormat format, size_t value_bytes,
                                 uint64_t seed, EngErr *err)
{
    EngStatus status;
    size_t needed;
    *arena = (EngTableArena){.format = format, .seed = seed, .value_bytes = value_bytes};
    if (format == ENG_ROW_FP8) arena->scale_bytes = value_bytes / ENG_SCALE_GROUP;
    if (!eng_add_size(value_bytes, arena->scale_bytes, &needed))
        return ENG_FAIL(err, ENG_NO_MEMORY, "table of %zu value bytes does not fit memory",
                        value_bytes);
    status = check_memory(needed, err);
    if (status) goto done;
    arena->values = map_bytes(arena->value_bytes);
    arena->scales = map_bytes(arena->scale_bytes);
    if ((arena->value_bytes && !arena->values) || (arena->scale_bytes && !arena->scales)) {
        status = ENG_FAIL(err, ENG_NO_MEMORY, "cannot map a table of %zu bytes", needed);
        goto done;
    }
    status = fill_arena(arena, err);
    if (!status && arena->values)
        arena->huge_bytes = count_huge_bytes(arena->values, arena->value_bytes);
done:
    if (status) eng_table_arena_destroy(arena);
    return status;
}

void eng_table_arena_destroy(EngTableArena *arena)
{
    if (arena->values) munmap(arena->values, arena->value_bytes);
    if (arena->scales) munmap(arena->scales, arena->scale_bytes);
    *arena = (EngTableArena){.format = arena->format};
}

EngStatus eng_table_value_bytes(EngRowFormat format, int row_dims, int64_t rows, size_t *bytes,
                                EngErr *err)
{
    if (row_dims < 1 || rows < 0)
        return ENG_FAIL(err, ENG_USAGE, "table of %" PRId64 " rows of %d dims: out of range", rows,
                        row_dims);
    if (eng_row_has_groups(format) && row_dims % ENG_SCALE_GROUP)
        return ENG_FAIL(err, ENG_USAGE, "%s rows need row dims that are a multiple of %d, not %d",
                        eng_row_format_name(format), ENG_SCALE_GROUP, row_dims);
    if (!eng_mul_size(eng_row_stride_bytes(format, row_dims), (size_t)rows, bytes))
        return ENG_FAIL(err, ENG_USAGE,
                        "table of %" PRId64 " rows of %d dims overflows the address space", rows,
                        row_dims);
    return ENG_OK;
}

EngStatus eng_table_arena_view(const EngTableArena *arena, int row_dims, int64_t rows,
                               EngTable *table, EngErr *err)
{
    size_t bytes;
    EngStatus status = eng_table_value_bytes(arena->format, row_dims, rows, &bytes, err);
    if (status) return status;
    if (bytes > arena->value_bytes)
        return ENG_FAIL(err, ENG_NO_MEMORY,
                        "table of %" PRId64 " rows of %d dims needs %zu bytes; the arena has %zu",
                        rows, row_dims, bytes, arena->value_bytes);
    if (eng_row_scale_offset(arena->format, row_dims) && arena->row_dims != row_dims)
        return ENG_FAIL(err, ENG_NOT_FOUND, "the %s table was laid out for rows of %d dims, not %d",
                        eng_row_format_name(arena->format), arena->row_dims, row_dims);
    *table = (EngTable){.format = arena->format,
                        .row_dims = row_dims,
                        .rows = rows,
                        .values = arena->values,
                        .scales = arena->scales};
    return ENG_OK;
}
