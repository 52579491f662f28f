/* Row numbering by open addressing with linear probes; see row_ids.h. */
#include "sim/cache/row_ids.h"

#include "base/mem.h"

#define FIRST_SIZE 1024
#define MOST_IDS   (UINT32_MAX - 1)

/* Finalizer of splitmix64: row numbers of one column are near each other. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t place_of(const EngRowIds *ids, int64_t row)
{
    uint64_t at = mix((uint64_t)row) & ids->mask;
    while (ids->ids[at] && ids->rows[at] != row) at = (at + 1) & ids->mask;
    return at;
}

static EngStatus alloc_places(EngRowIds *ids, uint64_t size, EngErr *err)
{
    EngStatus status =
        eng_alloc_or((void **)&ids->rows, size, sizeof *ids->rows, "row numbers", err);
    if (!status)
        status = eng_alloc_or((void **)&ids->ids, size, sizeof *ids->ids, "row numbers", err);
    if (status) eng_row_ids_fini(ids);
    ids->mask = status ? 0 : size - 1;
    return status;
}

EngStatus eng_row_ids_init(EngRowIds *ids, EngErr *err)
{
    *ids = (EngRowIds){0};
    return alloc_places(ids, FIRST_SIZE, err);
}

void eng_row_ids_fini(EngRowIds *ids)
{
    eng_free(ids->rows);
    eng_free(ids->ids);
    *ids = (EngRowIds){0};
}

static EngStatus grow(EngRowIds *ids, EngErr *err)
{
    EngRowIds larger = {.n = ids->n};
    EngStatus status = alloc_places(&larger, 2 * (ids->mask + 1), err);
    if (status) return status;
    for (uint64_t at = 0; at <= ids->mask; at++) {
        if (!ids->ids[at]) continue;
        uint64_t to = place_of(&larger, ids->rows[at]);
        larger.rows[to] = ids->rows[at];
        larger.ids[to] = ids->ids[at];
    }
    eng_row_ids_fini(ids);
    *ids = larger;
    return ENG_OK;
}

EngStatus eng_row_ids_of(EngRowIds *ids, int64_t row, uint32_t *id, EngErr *err)
{
    uint64_t at = place_of(ids, row);
    if (!ids->ids[at]) {
        if (ids->n >= MOST_IDS)
            return ENG_FAIL(err, ENG_UNSUPPORTED, "cache model: more than %u distinct rows",
                            MOST_IDS);
        if (2 * ((uint64_t)ids->n + 1) > ids->mask + 1) {
            EngStatus status = grow(ids, err);
            if (status) return status;
            at = place_of(ids, row);
        }
        ids->rows[at] = row;
        ids->ids[at] = ++ids->n;
    }
    *id = ids->ids[at] - 1;
    return ENG_OK;
}

EngStatus eng_by_id_grow(void **array, uint64_t *have, uint64_t need, size_t size, EngErr *err)
{
    if (need <= *have) return ENG_OK;
    uint64_t want = *have ? *have : FIRST_SIZE;
    while (want < need) want *= 2;
    size_t bytes;
    void *larger =
        eng_mul_size(want, size, &bytes) ? eng_realloc(*array, *have * size, bytes) : NULL;
    if (!larger)
        return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for %llu rows of a cache model",
                        (unsigned long long)want);
    *array = larger;
    *have = want;
    return ENG_OK;
}
