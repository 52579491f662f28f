/* Decode history as one ring per sequence; see history.h.
 *
 * Position p of a sequence lies at ring[p % capacity]. `peak` is the largest length the sequence
 * ever had: positions below peak - capacity have been overwritten, so a rollback may not need them.
 */
#include "kernels/address/history.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"

typedef struct Slot {
    int64_t length, peak;
} Slot;

struct EngHistory {
    int reach; /* ids a window holds: max_order - 1 */
    int64_t capacity, n_slots;
    Slot *slots;
    int32_t *rings; /* [n_slots, capacity] */
};

EngStatus eng_history_create(EngHistory **history, int max_order, int64_t n_slots, int max_rollback,
                             EngErr *err)
{
    EngHistory *made = NULL;
    EngStatus status = ENG_OK;
    size_t cells;
    *history = NULL;
    if (max_order < 1 || max_order > ENG_MAX_ORDER || n_slots < 1 || max_rollback < 0)
        return ENG_FAIL(err, ENG_USAGE,
                        "history: max order %d, %" PRId64 " slots and rollback %d are out of range",
                        max_order, n_slots, max_rollback);
    status = eng_alloc_or((void **)&made, 1, sizeof *made, "a decode history", err);
    if (status) goto out;
    made->reach = max_order - 1;
    made->n_slots = n_slots;
    made->capacity = (int64_t)made->reach + max_rollback;
    if (made->capacity == 0) made->capacity = 1;
    status = eng_alloc_or((void **)&made->slots, (size_t)n_slots, sizeof *made->slots,
                          "decode history slots", err);
    if (status) goto out;
    if (!eng_mul_size((size_t)n_slots, (size_t)made->capacity, &cells)) cells = SIZE_MAX;
    status =
        eng_alloc_or((void **)&made->rings, cells, sizeof *made->rings, "decode history ids", err);
    if (status) goto out;
    *history = made;
    made = NULL;
out:
    eng_history_destroy(made);
    return status;
}

void eng_history_destroy(EngHistory *history)
{
    if (!history) return;
    eng_free(history->slots);
    eng_free(history->rings);
    eng_free(history);
}

static EngStatus check_slot(const EngHistory *history, int64_t slot, EngErr *err)
{
    if (slot >= 0 && slot < history->n_slots) return ENG_OK;
    return ENG_FAIL(err, ENG_USAGE, "history: slot %" PRId64 " is not one of %" PRId64, slot,
                    history->n_slots);
}

static int32_t *ring_of(const EngHistory *history, int64_t slot)
{
    return history->rings + slot * history->capacity;
}

EngStatus eng_history_reset(EngHistory *history, int64_t slot, EngErr *err)
{
    EngStatus status = check_slot(history, slot, err);
    if (!status) history->slots[slot] = (Slot){0, 0};
    return status;
}

EngStatus eng_history_commit(EngHistory *history, int64_t slot, const int32_t *ids, int64_t n,
                             EngErr *err)
{
    EngStatus status = check_slot(history, slot, err);
    if (status) return status;
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < ENG_TOKEN_DEAD)
            return ENG_FAIL(err, ENG_BAD_DATA,
                            "history: position %" PRId64 " of a commit holds id %" PRId32, i,
                            ids[i]);
    Slot *kept = &history->slots[slot];
    int32_t *ring = ring_of(history, slot);
    for (int64_t i = 0; i < n; i++) ring[kept->length++ % history->capacity] = ids[i];
    if (kept->length > kept->peak) kept->peak = kept->length;
    return ENG_OK;
}

EngStatus eng_history_rollback(EngHistory *history, int64_t slot, int64_t n, EngErr *err)
{
    EngStatus status = check_slot(history, slot, err);
    if (status) return status;
    Slot *kept = &history->slots[slot];
    int64_t oldest_needed = kept->length - n - history->reach;
    bool gone = kept->peak > history->capacity && oldest_needed < kept->peak - history->capacity;
    if (n < 0 || n > kept->length || gone)
        return ENG_FAIL(err, ENG_USAGE,
                        "history: slot %" PRId64 " cannot roll back %" PRId64 " of %" PRId64 " ids",
                        slot, n, kept->length);
    kept->length -= n;
    return ENG_OK;
}

EngStatus eng_history_fork(EngHistory *history, int64_t from, int64_t to, EngErr *err)
{
    EngStatus status = check_slot(history, from, err);
    if (!status) status = check_slot(history, to, err);
    if (status || from == to) return status;
    history->slots[to] = history->slots[from];
    memcpy(ring_of(history, to), ring_of(history, from),
           (size_t)history->capacity * sizeof(int32_t));
    return ENG_OK;
}

EngStatus eng_history_window(const EngHistory *history, const int64_t *slots, int64_t n,
                             int32_t *out, EngErr *err)
{
    for (int64_t i = 0; i < n; i++) {
        EngStatus status = check_slot(history, slots[i], err);
        if (status) return status;
        const int32_t *ring = ring_of(history, slots[i]);
        int64_t first = history->slots[slots[i]].length - history->reach;
        for (int j = 0; j < history->reach; j++) {
            int64_t position = first + j;
            *out++ = position < 0 ? ENG_TOKEN_DEAD : ring[position % history->capacity];
        }
    }
    return ENG_OK;
}
