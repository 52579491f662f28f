/* Training of the backbone with Engram in it: one arm of an ablation from first to last token.
 *
 * The model is that of backbone.h (same weights, same formulas), with Engram modules that write
 * back to the residual streams before the layer's read operator. Loss: mean cross-entropy in nats
 * per token. A trainer holds parameters, gradients, optimizer state and the position in the data;
 * its state after n steps is a function of configuration, data and threads alone, and survives
 * eng_trainer_save / eng_trainer_load to the last bit.
 *
 * Each of `threads` lanes takes its share of a batch's sequences; gradients are added in the order
 * of lanes. Nothing is allocated in a step but what oneDNN takes. One thread at a time may use a
 * trainer.
 */
#ifndef ENG_BENCH_BACKBONE_TRAIN_H
#define ENG_BENCH_BACKBONE_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <engram/address.h>
#include <engram/kernels.h>
#include <engram/status.h>
#include "bench/backbone/backbone.h"
#include "bench/backbone/real.h"

/* ---- configuration ---- */

/* What a table's rows are. All but the first are controls: they keep shapes and operations. */
typedef enum EngTrainRows {
    ENG_ROWS_HASHED = 0,
    ENG_ROWS_ONE,      /* one row per head: a size-1 table */
    ENG_ROWS_SHUFFLED, /* those of another position of the batch: same rows, no information */
    ENG_ROWS_FROZEN,   /* hashed, but never updated */
    ENG_ROWS_KIND_COUNT
} EngTrainRows;

/* Where Engram's output enters. */
typedef enum EngTrainFusion {
    ENG_FUSION_STREAMS = 0, /* gate of each stream, value added to the streams (both variants) */
    ENG_FUSION_READ,  /* one gate, on the vector that attention reads: no multi-branch fusion */
    ENG_FUSION_INPUT, /* over-encoding: no gate, averaged into the input embedding */
    ENG_FUSION_COUNT
} EngTrainFusion;

typedef enum EngTrainRule {
    ENG_RULE_ADAMW = 0, /* of tables: sparse, only rows that have a gradient */
    ENG_RULE_MUON,      /* matrices of the blocks only */
    ENG_RULE_SGD,
    ENG_RULE_SINKHORN, /* embedding, head and tables */
    ENG_RULE_COUNT
} EngTrainRule;

typedef enum EngTrainSchedule {
    ENG_SCHEDULE_COSINE = 0, /* to final_lr of the peak */
    ENG_SCHEDULE_CONSTANT,
    ENG_SCHEDULE_STEP, /* x 0.316 at 80 % and at 90 % of the tokens */
    ENG_SCHEDULE_COUNT
} EngTrainSchedule;

typedef struct EngTrainConfig {
    /* layers .. tied_head, dtype (of products), threads, seed; distinct_layers, stream_dtype,
     * max_*, vision, paced and hooks stay 0. The seed draws start values and data order. */
    EngBackboneConfig model;

    /* Engram; engram_layers 0: none. */
    int engram_layers;
    int engram_at[ENG_MAX_LAYERS]; /* from 0, ascending */
    int min_order, max_order, engram_heads;
    int row_dims;      /* of one row: d_mem = (max_order - min_order + 1) * heads * row_dims */
    int64_t row_start; /* first candidate for a head's number of rows, which are primes */
    EngTrainRows rows;
    EngTrainFusion fusion;
    EngGateFormula gate;
    bool gate_off;            /* gate = 1 */
    bool compress;            /* n-grams of ids mapped by token_map, else of ids as they are */
    bool kv_bias;             /* keys and values have biases, as in the demo; they start at 0 */
    int conv_kernel;          /* 0: no short conv; its dilation is max_order */
    bool conv_random;         /* start values of the conv: random instead of zero (tests) */
    float gate_eps;           /* of the norms inside the gate: 1e-20 */
    float table_scale;        /* deviation of the rows' start values */
    float embed_scale;        /* of the token embedding's */
    float head_scale;         /* of the head's, times sqrt(hidden) */
    int64_t vocab_compressed; /* of token_map */
    int32_t pad;              /* compressed id that stands before the start of a sequence */

    /* Run. */
    int64_t tokens; /* to train on; a whole number of batches, rounded down */
    int64_t batch_tokens, seq_len;
    double lr, final_lr; /* peak; fraction of it at the end */
    int64_t warmup_steps;
    EngTrainSchedule schedule;
    EngTrainRule rule, vocab_rule, table_rule; /* blocks; embedding and head; tables */
    double table_lr;                           /* times lr */
    double beta1, beta2, adam_eps, weight_decay, momentum;
    double clip;         /* largest norm of the gradient of all but tables; 0: as it is */
    double bias_step;    /* of the router's loss-free balancing */
    double bias_decay;   /* of bias_step with the learning rate: 0 constant, 1 proportional */
    double balance_loss; /* weight of the sequence-wise balance loss (V4.1: 1e-4) */
    double blow_up;      /* a loss above blow_up * log(vocab) ends the run as failed */

    /* Not part of the identity: held by the caller while a trainer lives. */
    const int32_t *token_map; /* [vocab] compressed ids; needed by compress */
} EngTrainConfig;

/* A rung of the ladder (paper.md 8.3) at rho = 1: "R0", "R0c", "R1", "R2", or "tiny" for tests. All
 * fields are set; Engram ones for when engram_layers becomes > 0. ENG_NOT_FOUND. */
EngStatus eng_train_rung(const char *name, EngTrainConfig *config, EngErr *err);

/* The fields that make a run what it is, by name: for manifests, for "which variable differs" and
 * for the header of a checkpoint. Values are text: numbers, "true"/"false", names of enumerators,
 * lists with commas (engram_at). */
int eng_train_fields(void);
const char *eng_train_field_name(int field);
EngStatus eng_train_field_get(const EngTrainConfig *config, int field, char *text, size_t size,
                              EngErr *err);
/* Whether a field is part of what a run is: all but the number of threads, which only rounds
 * differently, and fields that came after the first recorded runs while they are at their default.
 */
bool eng_train_field_counts(const EngTrainConfig *config, int field);
/* ENG_USAGE: no such field (with the nearest name), or a value that it cannot have. */
EngStatus eng_train_set(EngTrainConfig *config, const char *name, const char *value, EngErr *err);
/* Shapes and numbers together: layer out of range, fewer experts than top_k, ... ENG_USAGE names
 * the field. */
EngStatus eng_train_check(const EngTrainConfig *config, EngErr *err);

/* ---- accounting (paper.md 1.1, 8.2) ---- */

/* Parameters without token embedding and head. */
typedef struct EngTrainAccount {
    int64_t total, active;  /* active = total - experts that a token does not use - tables */
    int64_t expert;         /* one routed expert, all layers together */
    int64_t tables;         /* rows * row_dims, all modules together */
    int64_t table_rows;     /* all modules and heads together */
    int64_t engram_dense;   /* projections, gate weights, conv: part of active */
    int64_t vocabulary;     /* embedding and head, not in total */
    double flops_per_token; /* forward and backward, head and attention included */
} EngTrainAccount;
EngStatus eng_train_account(const EngTrainConfig *config, EngTrainAccount *account, EngErr *err);

/* Sets experts and row_start of `arm`, a configuration with Engram, so that it has the parameters
 * of `base` (rho = 1, no Engram) of which a share rho of the sparse ones is experts:
 * E = k + rho (E_base - k) rounded, rows from all that this frees. residual = total / total of base
 * - 1. ENG_USAGE: fewer experts than top_k, or no parameters left for rows. */
EngStatus eng_train_allocate(const EngTrainConfig *base, double rho, EngTrainConfig *arm,
                             double *residual, EngErr *err);
/* Sets row_start so that all tables together hold about `parameters` (memory-size sweeps). */
EngStatus eng_train_size_tables(EngTrainConfig *config, int64_t parameters, EngErr *err);

/* ---- running ---- */

typedef struct EngTrainer EngTrainer;

/* ENG_USAGE as eng_train_check; ENG_UNSUPPORTED: bf16 products without AVX-512; ENG_NO_MEMORY. */
EngStatus eng_trainer_create(const EngTrainConfig *config, EngTrainer **trainer, EngErr *err);
void eng_trainer_destroy(EngTrainer *trainer); /* accepts NULL */
const EngTrainConfig *eng_trainer_config(const EngTrainer *trainer);

/* What a run is trained on: sequences of seq_len tokens cut from ids (the token after the last is
 * its last target), in an order drawn from the seed, each at most once. The same ids, seq_len and
 * seed give the same batches whatever the model is. ids are held, not copied. ENG_USAGE: too short
 * for a single pass, with tokens needed and there; ENG_BAD_DATA: an id outside [0, vocab). */
EngStatus eng_trainer_data(EngTrainer *trainer, const int32_t *ids, int64_t n, EngErr *err);

/* After a step. */
typedef struct EngTrainPoint {
    int64_t step, tokens; /* done */
    double loss;          /* of the step's batch, before its update */
    double lr, grad_norm; /* norm of the gradient of all but tables, before clipping */
    double load_max;      /* largest load of an expert over the mean, worst layer of this batch */
    int unused;           /* experts without a token in this batch, all layers */
    double cpu_s;         /* CPU time of training so far, all lanes */
} EngTrainPoint;

typedef struct EngTrainResult {
    EngTrainPoint last;
    bool finished;    /* all tokens done */
    char failed[160]; /* why the run was given up ("loss is nan at step 7"), or "" */
} EngTrainResult;

/* Runs until all tokens are done, until `until` tokens are (0: all), until `point` (after each
 * step; may be NULL) says false, or until the run fails; data must have been given. A failed run
 * stays failed. */
typedef bool (*EngTrainPointFn)(void *context, const EngTrainPoint *point);
EngStatus eng_trainer_run(EngTrainer *trainer, int64_t until, EngTrainPointFn point, void *context,
                          EngTrainResult *result, EngErr *err);

/* Loads of the routed experts since the last reset (they survive checkpoints), and what the router
 * adds to affinities now. NULL out: not wanted. */
void eng_trainer_load_counts(const EngTrainer *trainer, int layer, int64_t *counts /* [experts] */,
                             float *bias /* [experts] */);
void eng_trainer_reset_counts(EngTrainer *trainer);

/* ---- checkpoints ---- */

/* Written beside path and renamed. */
EngStatus eng_trainer_save(const EngTrainer *trainer, const char *path, EngErr *err);
/* Into a trainer of the same configuration, data given or not. ENG_MISMATCH names the first field
 * that differs and both values; another number of threads is no mismatch but is told in
 * *other_threads (the last other number that it ran with, else 0): sums then round differently.
 * ENG_BAD_DATA: truncated or no checkpoint. On failure the trainer is as it was. */
EngStatus eng_trainer_load(EngTrainer *trainer, const char *path, int *other_threads, EngErr *err);

/* ---- looking inside ---- */

/* Values of forward passes, given to a hook for `tokens` tokens from token `first` of the ids on,
 * row-major [tokens, columns]. d hidden, n streams. */
typedef enum EngTrainValue {
    ENG_TV_STREAMS = 0, /* [T, n d] at entry of layer `layer`, before Engram; layer = layers: out */
    ENG_TV_SCORE,       /* [T, n] of the Engram module at `layer`: dot before the root */
    ENG_TV_GATE,        /* [T, n] */
    ENG_TV_AFFINITY,    /* [T, experts] of the router */
    ENG_TV_FINAL,       /* [T, d] collapsed and normalised, what the head reads */
    ENG_TV_COUNT
} EngTrainValue;
typedef void (*EngTrainValueFn)(void *context, int layer, EngTrainValue what, int64_t first,
                                const EngReal *data, int64_t tokens, int64_t columns);

typedef struct EngTrainEval {
    bool suppress;         /* Engram's output is zero: what the backbone knows without its memory */
    EngTrainValueFn value; /* from the calling thread, tokens ascending; NULL: none */
    void *context;
} EngTrainEval;

/* Loss on held-out ids: cut as for training, every token but the first predicted once, the tokens
 * after the last whole sequence left out. *loss: mean in nats; *predicted: how many; losses[i] (may
 * be NULL): of predicting ids[i], NaN where it was not. The router's counts do not move. */
EngStatus eng_trainer_evaluate(EngTrainer *trainer, const int32_t *ids, int64_t n,
                               const EngTrainEval *eval, float *losses /* [n] */, double *loss,
                               int64_t *predicted, EngErr *err);

/* LogitLens: what the head makes of streams [rows, n d] as ENG_TV_STREAMS gives them, collapsed and
 * normalised as at the end; logits [rows, vocab]. */
EngStatus eng_trainer_logits(EngTrainer *trainer, const EngReal *streams, int64_t rows,
                             EngReal *logits, EngErr *err);

/* Parameters by number, in one order for any configuration of the same shapes: name
 * ("layer1.expert3.up"), rows x columns as they lie (row-major), values. NULL beyond the last. */
typedef struct EngTrainTensor {
    char name[48];
    int64_t rows, columns;
    EngReal *values, *gradient; /* gradient: of the last step, NULL for tables */
} EngTrainTensor;
bool eng_trainer_tensor(EngTrainer *trainer, int number, EngTrainTensor *tensor);
/* Loss and gradients of a batch without an update: for tests and the twin. ids: sequences of
 * seq_len + 1 tokens, batch_tokens / seq_len of them. Gradients of tables: eng_trainer_table_grad.
 */
EngStatus eng_trainer_gradient(EngTrainer *trainer, const int32_t *ids, double *loss, EngErr *err);
/* Dense gradient [rows, row_dims] of Engram module `module` after eng_trainer_gradient. */
EngStatus eng_trainer_table_gradient(const EngTrainer *trainer, int module, EngReal *gradient,
                                     EngErr *err);
/* The rows that Engram module `module` reads: [n, columns] for n ids in sequences of seq_len, as
 * global rows of the table (collisions, frequency deciles). */
EngStatus eng_trainer_rows(EngTrainer *trainer, int module, const int32_t *ids, int64_t n,
                           int64_t *rows, EngErr *err);

/* ---- time ---- */

typedef enum EngTrainPart {
    ENG_PART_EMBED = 0,
    ENG_PART_STREAMS, /* norms, mixing, residuals */
    ENG_PART_ATTENTION,
    ENG_PART_ROUTER,
    ENG_PART_SHARED,
    ENG_PART_EXPERTS,
    ENG_PART_ENGRAM,
    ENG_PART_HEAD,   /* with cross-entropy */
    ENG_PART_REDUCE, /* gradients: zeroed, summed over lanes */
    ENG_PART_OPTIMIZER,
    ENG_PART_COUNT
} EngTrainPart;
const char *eng_train_part_name(EngTrainPart part);
/* Nanoseconds of each part since create, forward and backward together, all lanes added. */
void eng_trainer_times(const EngTrainer *trainer, int64_t ns[ENG_PART_COUNT]);

#endif
