/* Memory row store: mapped, filled by all processors with seeded content; see memory.h. */
#include "kernels/store/memory.h"

#include "base/mem.h"
#include "base/parallel.h"
#include "kernels/store/content.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

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

/* Of one call: a multiple of ENG_CONTENT_CHUNK_BYTES, for whole rows of inner scales large. */
#define PIECE_BYTES ((size_t)1 << 20)

typedef struct Fill {
    const EngContent *content;
    EngTableArena *arena;
    size_t value_pieces;
    int row_dims; /* of the scales inside rows to be written, 0: none */
    bool values;  /* write the values too */
} Fill;

static void fill_piece(void *context, int64_t index)
{
    const Fill *fill = context;
    bool is_scale = (size_t)index >= fill->value_pieces;
    size_t at = ((size_t)index - (is_scale ? fill->value_pieces : 0)) * PIECE_BYTES;
    size_t total = is_scale ? fill->arena->scale_bytes : fill->arena->value_bytes;
    size_t n = total - at < PIECE_BYTES ? total - at : PIECE_BYTES;
    if (is_scale) {
        eng_content_scales(fill->content, at, n, fill->arena->scales + at);
        return;
    }
    if (fill->values) eng_content_values(fill->content, at, n, fill->arena->values + at);
    if (fill->row_dims)
        eng_content_row_scales(fill->content, fill->row_dims, at, n, fill->arena->values + at);
}

static EngStatus fill_arena(EngTableArena *arena, int row_dims, bool values, EngErr *err)
{
    EngContent content;
    EngStatus status = eng_content_create(&content, arena->format, arena->seed, err);
    if (status) return status;
    Fill fill = {.content = &content,
                 .arena = arena,
                 .value_pieces = (arena->value_bytes + PIECE_BYTES - 1) / PIECE_BYTES,
                 .row_dims = row_dims,
                 .values = values};
    size_t scale_pieces = (arena->scale_bytes + PIECE_BYTES - 1) / PIECE_BYTES;
    eng_parallel_for((int64_t)(fill.value_pieces + scale_pieces), 0, fill_piece, &fill);
    eng_content_destroy(&content);
    return ENG_OK;
}

EngStatus eng_table_arena_layout(EngTableArena *arena, int row_dims, EngErr *err)
{
    size_t one;
    if (!eng_row_scale_offset(arena->format, ENG_SCALE_GROUP)) return ENG_OK;
    EngStatus status = eng_table_value_bytes(arena->format, row_dims, 1, &one, err);
    if (status || arena->row_dims == row_dims) return status;
    /* Values lie where the scales of an earlier layout were. */
    status = fill_arena(arena, row_dims, arena->row_dims != 0, err);
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

EngStatus eng_memory_check(size_t needed, const char *what, EngErr *err)
{
    size_t available = eng_memory_available_bytes();
    if (available && needed > available - available / 10)
        return ENG_FAIL(err, ENG_NO_MEMORY,
                        "%s needs %zu bytes; %zu are available, of which 10 %% are kept free", what,
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
    status = eng_memory_check(needed, "table", err);
    if (status) goto done;
    arena->values = map_bytes(arena->value_bytes);
    arena->scales = map_bytes(arena->scale_bytes);
    if ((arena->value_bytes && !arena->values) || (arena->scale_bytes && !arena->scales)) {
        status = ENG_FAIL(err, ENG_NO_MEMORY, "cannot map a table of %zu bytes", needed);
        goto done;
    }
    status = fill_arena(arena, 0, true, err);
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
