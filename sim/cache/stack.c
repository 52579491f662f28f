/* Stack distances over a Fenwick tree; see stack.h. */
#include "sim/cache/stack.h"

#include "base/mem.h"
#include "sim/cache/row_ids.h"

#define FIRST_SIZE 4096u
#define MOST_SIZE  (1u << 31)

static void tree_add(EngStack *stack, uint32_t moment, uint32_t by)
{
    for (uint64_t i = (uint64_t)moment + 1; i <= stack->size; i += i & -i) stack->tree[i] += by;
}

/* Rows last used before `moment`. */
static uint32_t tree_before(const EngStack *stack, uint32_t moment)
{
    uint32_t sum = 0;
    for (uint32_t i = moment; i; i &= i - 1) sum += stack->tree[i];
    return sum;
}

static EngStatus alloc_moments(EngStack *stack, uint32_t size, EngErr *err)
{
    EngStatus status =
        eng_alloc_or((void **)&stack->tree, (size_t)size + 1, sizeof *stack->tree, "moments", err);
    if (!status)
        status = eng_alloc_or((void **)&stack->owner, size, sizeof *stack->owner, "moments", err);
    stack->size = size;
    return status;
}

EngStatus eng_stack_init(EngStack *stack, EngErr *err)
{
    *stack = (EngStack){0};
    EngStatus status = alloc_moments(stack, FIRST_SIZE, err);
    if (status) eng_stack_fini(stack);
    return status;
}

void eng_stack_fini(EngStack *stack)
{
    eng_free(stack->tree);
    eng_free(stack->owner);
    eng_free(stack->last);
    eng_free(stack->counts);
    *stack = (EngStack){0};
}

/* Numbers the moments that still matter from 0 on, in order, with room for as many again. */
static EngStatus renumber(EngStack *stack, EngErr *err)
{
    EngStack fresh = {0};
    uint32_t size = stack->size;
    if (stack->distinct > size / 2) {
        if (size >= MOST_SIZE)
            return ENG_FAIL(err, ENG_UNSUPPORTED, "stack distances: more than %u distinct rows",
                            MOST_SIZE / 2);
        size *= 2;
    }
    EngStatus status = alloc_moments(&fresh, size, err);
    if (status) {
        eng_stack_fini(&fresh);
        return status;
    }
    uint32_t next = 0;
    for (uint32_t m = 0; m < stack->size; m++) {
        if (!stack->owner[m]) continue;
        fresh.owner[next] = stack->owner[m];
        fresh.tree[next + 1] = 1;
        stack->last[stack->owner[m] - 1] = next++;
    }
    for (uint64_t i = 1; i <= size; i++)
        if (i + (i & -i) <= size) fresh.tree[i + (i & -i)] += fresh.tree[i];
    eng_free(stack->tree);
    eng_free(stack->owner);
    stack->tree = fresh.tree;
    stack->owner = fresh.owner;
    stack->size = size;
    stack->next = next;
    return ENG_OK;
}

EngStatus eng_stack_add(EngStack *stack, uint32_t id, uint32_t *distance, EngErr *err)
{
    uint32_t found = 0;
    if (id > stack->distinct)
        return ENG_FAIL(err, ENG_INTERNAL, "stack distances: id %u before %u", id, stack->distinct);
    EngStatus status = eng_by_id_grow((void **)&stack->last, &stack->last_room, (uint64_t)id + 1,
                                      sizeof *stack->last, err);
    if (!status)
        status = eng_by_id_grow((void **)&stack->counts, &stack->counts_room, (uint64_t)id + 2,
                                sizeof *stack->counts, err);
    if (!status && stack->next == stack->size) status = renumber(stack, err);
    if (status) return status;
    if (id == stack->distinct) {
        stack->distinct++;
    } else {
        uint32_t moment = stack->last[id];
        found = stack->distinct - tree_before(stack, moment);
        tree_add(stack, moment, UINT32_MAX); /* minus one */
        stack->owner[moment] = 0;
        stack->counts[found]++;
    }
    tree_add(stack, stack->next, 1);
    stack->owner[stack->next] = id + 1;
    stack->last[id] = stack->next++;
    stack->accesses++;
    if (distance) *distance = found;
    return ENG_OK;
}

void eng_stack_hits(const EngStack *stack, const int64_t *capacities, int n, int64_t *hits)
{
    int64_t sum = 0, d = 1, most = stack->distinct;
    for (int i = 0; i < n; i++) {
        for (; d <= capacities[i] && d <= most; d++) sum += stack->counts[d];
        hits[i] = sum;
    }
}
