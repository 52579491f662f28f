/* Byte ledger: what a deployment holds where, line by line, so that nothing is forgotten (scales,
 * staging, copies) and nothing is counted as parameters times bytes. Tables come from the
 * addressing of a preset, weights and caches from shapes of tensors. All figures are of the fullest
 * device and the fullest host.
 */
#ifndef ENG_SIM_PLANNER_LEDGER_H
#define ENG_SIM_PLANNER_LEDGER_H

#include <stdint.h>

#include "base/str.h"
#include "kernels/address/preset.h"
#include "sim/machine/machine.h"

#define ENG_LEDGER_MAX_LINES 96

/* One tensor as a file's header gives it, or `count` equal ones. */
typedef struct EngTensorShape {
    const char *name;
    int bits; /* of an element: 4, 8, 16, 32 */
    int n_dims;
    int64_t dims[4];
    int64_t count; /* 0: 1 */
    int split;     /* ranks that share it by its first dimension; 0 and 1: each holds all of it */
    /* Of caches, whose dims are those of one entry: */
    int every;  /* tokens of context that an entry stands for; 0: 1 */
    int window; /* entries that each stream keeps however long it is; 0: one for `every` tokens */
} EngTensorShape;

typedef struct EngLedgerLine {
    char name[64];
    int layer; /* of the model, from 0; -1: none */
    EngPlace place;
    uint64_t bytes;
    bool pinned;
} EngLedgerLine;

typedef struct EngLedgerInput {
    const EngPreset *preset;
    EngRowFormat format; /* of the tables; ENG_ROW_FP8 for those published */
    EngPlace tables;
    int shards;             /* devices, hosts or drives that share each table, by ranges of rows */
    bool scales_everywhere; /* every holder has all scales, so that only values travel */
    bool scales_apart;      /* all of them lie once in `scales` instead */
    EngPlace scales;
    int numa_copies;      /* host: copies on each host; elsewhere 1 */
    int replicas;         /* instances on a holder that share nothing */
    bool pinned;          /* host tables */
    int64_t batch_tokens; /* the largest batch, for staging */
    int staging_buffers;  /* of raw rows: 2 to fetch one layer while another is read */
    const EngTensorShape *weights, *kv;
    int n_weights, n_kv;
    int64_t kv_tokens, kv_streams; /* of context, over all streams; that keep windows of it */
    const EngLedgerLine *reserves; /* whatever else is known: graphs, indexer buffers */
    int n_reserves;
    uint64_t capacity[ENG_PLACE_COUNT]; /* usable bytes; 0: not asked */
    uint64_t pin_limit;                 /* of the host; 0: not asked */
    bool unified; /* devices have no memory of their own: what they hold is on the host */
} EngLedgerInput;

typedef struct EngLedger {
    int n;
    EngLedgerLine lines[ENG_LEDGER_MAX_LINES];
    uint64_t total[ENG_PLACE_COUNT], pinned;
    uint64_t table_bytes; /* of all tables once, scales included */
    double kv_per_token;  /* bytes of a device for each more, windows aside */
    uint64_t capacity[ENG_PLACE_COUNT], pin_limit;
    bool unified;
} EngLedger;

/* ENG_USAGE: counts below 1, more shards than rows, a shape without elements; ENG_UNSUPPORTED:
 * sizes beyond 64 bits, too many lines. */
EngStatus eng_ledger_build(const EngLedgerInput *input, EngLedger *ledger, EngErr *err);

/* Of one entry, for caches; of the rank that holds most, where it is split. */
EngStatus eng_tensor_bytes(const EngTensorShape *shape, uint64_t *bytes, EngErr *err);

/* What is left of a capacity; negative: it does not fit. */
int64_t eng_ledger_left(const EngLedger *ledger, EngPlace place);
bool eng_ledger_fits(const EngLedger *ledger); /* every capacity and limit that was asked */
/* Which do not: "device, host, pinned"; nothing where all fit. */
void eng_ledger_over(const EngLedger *ledger, EngStr *out);

/* The lines, their sums, and for what does not fit by how much and which lines are largest. */
void eng_ledger_print(const EngLedger *ledger, EngStr *out);

#endif
