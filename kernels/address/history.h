/* Decode history of sequences: the last compressed ids that a hash window can reach (facts section
 * 3, "Decode history"), with commit of accepted tokens only, rollback, replay and fork.
 *
 * A step hashes a window (EngHashArgs.history = eng_history_window) without changing anything;
 * commit then appends the accepted tokens. Rollback takes committed tokens back, up to the capacity
 * kept.
 */
#ifndef ENG_KERNELS_HISTORY_H
#define ENG_KERNELS_HISTORY_H

#include <engram/address.h>
#include <engram/status.h>

typedef struct EngHistory EngHistory;

/* n_slots sequences, each remembering max_order-1 ids plus up to max_rollback committed ones. */
EngStatus eng_history_create(EngHistory **history, int max_order, int64_t n_slots, int max_rollback,
                             EngErr *err);
void eng_history_destroy(EngHistory *history);
/* A fresh sequence: everything before it is DEAD. */
EngStatus eng_history_reset(EngHistory *history, int64_t slot, EngErr *err);
/* Appends n accepted ids (DEAD allowed). */
EngStatus eng_history_commit(EngHistory *history, int64_t slot, const int32_t *ids, int64_t n,
                             EngErr *err);
/* Takes back the last n committed ids; ENG_USAGE when more than are kept. */
EngStatus eng_history_rollback(EngHistory *history, int64_t slot, int64_t n, EngErr *err);
/* `to` continues from where `from` stands. */
EngStatus eng_history_fork(EngHistory *history, int64_t from, int64_t to, EngErr *err);
/* Copies the windows of some slots into out [n, max_order-1], oldest first: what
 * EngHashArgs.history wants. */
EngStatus eng_history_window(const EngHistory *history, const int64_t *slots, int64_t n,
                             int32_t *out, EngErr *err);

#endif
