/* One pass, many capacities; see curve.h. */
#include "sim/cache/curve.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"

static EngStatus check(EngCachePolicy policy, const int64_t *capacities, int n, EngErr *err)
{
    if ((unsigned)policy >= ENG_CACHE_POLICY_COUNT)
        return ENG_FAIL(err, ENG_USAGE, "hit curve: no policy %d", (int)policy);
    if (n < 1) return ENG_FAIL(err, ENG_USAGE, "hit curve: no capacities");
    for (int i = 0; i < n; i++)
        if (capacities[i] <= (i ? capacities[i - 1] : 0))
            return ENG_FAIL(err, ENG_USAGE,
                            "hit curve: capacity %" PRId64 " after %" PRId64 ", they ascend from 1",
                            capacities[i], i ? capacities[i - 1] : 0);
    return ENG_OK;
}

static EngStatus open_sieves(EngCurve *curve, EngErr *err)
{
    EngStatus status = eng_alloc_or((void **)&curve->sieves, (size_t)curve->n,
                                    sizeof *curve->sieves, "hit curve", err);
    for (int i = 0; !status && i < curve->n; i++)
        status = eng_sieve_init(&curve->sieves[i], curve->capacities[i], err);
    return status;
}

static EngStatus open_sets(EngCurve *curve, EngErr *err)
{
    int ways = curve->ways;
    EngStatus status = eng_alloc_or((void **)&curve->sets, (size_t)curve->n, sizeof *curve->sets,
                                    "hit curve", err);
    for (int i = 0; !status && i < curve->n; i++) {
        int64_t sets = curve->capacities[i] / ways + (curve->capacities[i] % ways != 0);
        status = eng_sets_init(&curve->sets[i], sets, ways, err);
        curve->capacities[i] = sets * ways;
    }
    return status;
}

EngStatus eng_curve_open(EngCurve *curve, EngCachePolicy policy, int ways,
                         const int64_t *capacities, int n, EngErr *err)
{
    *curve = (EngCurve){.policy = policy};
    EngStatus status = check(policy, capacities, n, err);
    if (status) return status;
    if (policy == ENG_CACHE_DIRECT) curve->ways = 1;
    if (policy == ENG_CACHE_WAYS) curve->ways = ways;
    if (policy == ENG_CACHE_WAYS && (ways < 1 || ways > ENG_SETS_MAX_WAYS))
        return ENG_FAIL(err, ENG_USAGE, "hit curve: %d ways, 1 to %d are possible", ways,
                        ENG_SETS_MAX_WAYS);
    status = eng_alloc_or((void **)&curve->capacities, (size_t)n, sizeof *curve->capacities,
                          "hit curve", err);
    if (!status) {
        memcpy(curve->capacities, capacities, (size_t)n * sizeof *capacities);
        curve->n = n;
    }
    if (!status && !curve->ways) status = eng_row_ids_init(&curve->ids, err);
    if (!status && policy == ENG_CACHE_LRU) status = eng_stack_init(&curve->stack, err);
    if (!status && policy == ENG_CACHE_SIEVE) status = open_sieves(curve, err);
    if (!status && curve->ways) status = open_sets(curve, err);
    if (status) eng_curve_close(curve);
    return status;
}

void eng_curve_close(EngCurve *curve)
{
    for (int i = 0; i < curve->n; i++) {
        if (curve->sieves) eng_sieve_fini(&curve->sieves[i]);
        if (curve->sets) eng_sets_fini(&curve->sets[i]);
    }
    eng_stack_fini(&curve->stack);
    eng_row_ids_fini(&curve->ids);
    eng_free(curve->sieves);
    eng_free(curve->sets);
    eng_free(curve->capacities);
    *curve = (EngCurve){0};
}

static EngStatus add_row(EngCurve *curve, int64_t row, EngErr *err)
{
    uint32_t id;
    if (curve->ways) {
        for (int i = 0; i < curve->n; i++) eng_sets_add(&curve->sets[i], row);
        return ENG_OK;
    }
    EngStatus status = eng_row_ids_of(&curve->ids, row, &id, err);
    if (!status && curve->policy == ENG_CACHE_LRU)
        status = eng_stack_add(&curve->stack, id, NULL, err);
    for (int i = 0; !status && curve->sieves && i < curve->n; i++)
        status = eng_sieve_add(&curve->sieves[i], id, err);
    return status;
}

EngStatus eng_curve_add(EngCurve *curve, const int64_t *rows, int64_t n, EngErr *err)
{
    for (int64_t i = 0; i < n; i++) {
        if (rows[i] < 0)
            return ENG_FAIL(err, ENG_BAD_DATA, "hit curve: access %" PRId64 " to row %" PRId64,
                            curve->accesses, rows[i]);
        EngStatus status = add_row(curve, rows[i], err);
        if (status) return status;
        curve->accesses++;
    }
    curve->distinct = curve->ids.n;
    return ENG_OK;
}

void eng_curve_hits(const EngCurve *curve, int64_t *hits)
{
    if (curve->policy == ENG_CACHE_LRU)
        eng_stack_hits(&curve->stack, curve->capacities, curve->n, hits);
    for (int i = 0; i < curve->n; i++) {
        if (curve->sieves) hits[i] = curve->sieves[i].hits;
        if (curve->sets) hits[i] = eng_sets_hits(&curve->sets[i], curve->ways);
    }
}
