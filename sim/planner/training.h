/* Training with tables shared by groups of ranks (V4.1 report, section 3.1.3): rows are partitioned
 * over an Engram group, optimizer state over the group's replicas; the rows of a whole local batch
 * are fetched before its micro-batches and their gradients go back after the backbone's backward,
 * both behind the vision encoder; behind these, gradients of a shard's rows go to the replicas that
 * keep their state. A larger group holds less per rank and reaches further for a row; a smaller one
 * exchanges more between replicas. Not counted: updated values on their way back to replicas.
 */
#ifndef ENG_SIM_PLANNER_TRAINING_H
#define ENG_SIM_PLANNER_TRAINING_H

#include <stdint.h>

#include "kernels/address/preset.h"

typedef struct EngTrainingInput {
    const EngPreset *preset;
    int ranks, group;        /* of the run; that share the tables. group divides ranks */
    int ranks_per_node;      /* reached over the fast link; the others over the network */
    double local_tokens;     /* of a rank's batch */
    double unique;           /* share of rows left by deduplication, in (0, 1] */
    double state_bytes;      /* of optimizer state per value: 4 of momentum, 8 of Adam */
    double gradient_bytes;   /* of a returned gradient per value: 2 or 4 */
    double near_rate;        /* B/s between ranks of a node */
    double far_rate;         /* B/s of a rank's network */
    double vision, backward; /* s of the vision encoder before, and after, that can hide them */
} EngTrainingInput;

typedef struct EngTraining {
    int replicas;                     /* groups */
    double table_bytes;               /* of a rank: fp8 values and scales */
    double state_bytes;               /* of a rank, shared over replicas */
    double far_share;                 /* of rows that other ranks send, over the network */
    double fetch_bytes, return_bytes; /* of a rank and batch, both layers, received or sent */
    double sync_bytes;                /* of a rank: gradients of one table shard over replicas */
    double fetch, give_back, sync;    /* s */
    double exposed;                   /* s that the windows do not hide */
    double prefetch_buffer;           /* bytes: rows of the whole batch */
} EngTraining;

/* ENG_USAGE: a group that does not divide the ranks, shares outside (0, 1], rates or sizes below
 * or at 0. */
EngStatus eng_training_plan(const EngTrainingInput *input, EngTraining *training, EngErr *err);

/* Bytes of each of `stages` equal parts of a pipeline of n layers, of which the layers in `modules`
 * hold module_bytes besides: the largest stage over the mean, 1 is balanced. ENG_USAGE: stages
 * outside 1 .. n, a module outside the layers. */
EngStatus eng_stage_balance(int n, double layer_bytes, const int *modules, int n_modules,
                            double module_bytes, int stages, double *largest_over_mean,
                            EngErr *err);

#endif
