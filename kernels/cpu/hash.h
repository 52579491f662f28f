/* Hash variants on the CPU, and what they share. Source: engram_facts section 3. */
#ifndef ENG_KERNELS_CPU_HASH_H
#define ENG_KERNELS_CPU_HASH_H

#include <engram/kernels.h>

extern const EngKernel eng_cpu_hash_naive, eng_cpu_hash_portable, eng_cpu_hash_avx2,
    eng_cpu_hash_avx512, eng_cpu_hash_avx512_ifma, eng_cpu_hash_roof_store;

/* ---- shared by the variants ---- */

EngStatus eng_cpu_hash_supports(const EngProblem *problem, EngErr *why);
/* flops 0 (integer work); reads the ids once, writes every row index. */
void eng_cpu_hash_cost(const EngProblem *problem, EngCost *cost);

/* Checked view of a batch: one sequence where starts is NULL, and `end` the first position that is
 * not written. */
typedef struct EngHashBatch {
    const EngHashArgs *args;
    const int64_t *starts; /* [n_seqs + 1] */
    int64_t n_seqs, end;
    int reach; /* max_order - 1 */
    int64_t whole[2];
} EngHashBatch;

/* ENG_USAGE naming the entry for starts that do not ascend from 0 or leave the batch, and for sizes
 * beyond the problem's. Entries of starts past n_seqs are never read: graph capture leaves stale
 * ones. The batch must stay where it is, since it may point into itself. */
EngStatus eng_cpu_hash_batch(const EngProblem *problem, const EngHashArgs *args,
                             EngHashBatch *batch, EngErr *err);

/* The sequence that holds `position` < end; empty sequences hold none. */
int64_t eng_cpu_hash_sequence_at(const EngHashBatch *batch, int64_t position);

/* Id at `position` of a sequence; positions before its start come from its history, or are dead. */
static inline int32_t eng_cpu_hash_id(const EngHashBatch *batch, int64_t sequence, int64_t position)
{
    int64_t ahead = position - batch->starts[sequence];
    if (ahead >= 0) return batch->args->tokens[position];
    if (!batch->args->history) return ENG_TOKEN_DEAD;
    return batch->args->history[(sequence + 1) * batch->reach + ahead];
}

#endif
