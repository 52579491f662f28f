/* What the parts of training share: parameters, one lane's activations, one forward and one
 * backward function per block. Internal to bench/backbone. Matrices are row-major; T tokens of a
 * lane, d hidden, n streams, D = n d, k top_k, w expert width.
 */
#ifndef ENG_BENCH_BACKBONE_TRAIN_PARTS_H
#define ENG_BENCH_BACKBONE_TRAIN_PARTS_H

#include "base/clock.h"
#include "bench/backbone/grad_product.h"
#include "bench/backbone/train.h"

/* ---- parameters (train_tensors.c) ---- */

/* Besides EngWeight, whose numbers and shapes these share. Of an Engram module: */
enum {
    ENG_W_ENGRAM_KV = ENG_W_COUNT, /* [d_mem, (n + 1) d]: keys stream-major, then value */
    ENG_W_ENGRAM_QUERY,            /* [n, d] gate weights */
    ENG_W_ENGRAM_KEY,              /* [n, d] */
    ENG_W_ENGRAM_CONV_NORM,        /* [n, d] */
    ENG_W_ENGRAM_CONV,             /* [n d, kernel], the last tap is the newest token */
    ENG_W_ENGRAM_KV_BIAS,          /* [1, (n + 1) d] */
    ENG_W_TABLE,                   /* [rows, row_dims] */
    ENG_W_TRAIN_COUNT
};

/* Which rule and decay a tensor gets. */
typedef enum EngTrainGroup {
    ENG_GROUP_VOCABULARY = 0, /* embedding, head */
    ENG_GROUP_MATRIX,
    ENG_GROUP_VECTOR, /* norms, gate weights, mixing biases, conv: AdamW without decay */
    ENG_GROUP_TABLE,
    ENG_GROUP_COUNT
} EngTrainGroup;

typedef struct EngTensor {
    int what, layer, expert; /* layer: of a block, or the Engram module's number */
    EngTrainGroup group;
    int64_t rows, columns;
    int64_t at; /* first element among all parameters; tables come last */
} EngTensor;

typedef struct EngTensors {
    EngTensor *list;
    int n;
    int64_t dense, all;            /* elements without and with tables */
    int *first[ENG_W_TRAIN_COUNT]; /* [layers or modules] number of expert 0's tensor, or NULL */
} EngTensors;

EngStatus eng_tensors_create(const EngTrainConfig *config, const EngAddress *address,
                             EngTensors *tensors, EngErr *err);
void eng_tensors_destroy(EngTensors *tensors);
void eng_tensors_fill(const EngTrainConfig *config, const EngAddress *address,
                      const EngTensors *tensors, EngReal *values);
void eng_tensor_name(const EngTensor *tensor, char *name, size_t size);
/* Elements of one tensor of a kind, 0 when the configuration has none; tables: of one row. */
void eng_train_shape(const EngTrainConfig *config, int what, int64_t *rows, int64_t *columns);
int eng_train_modules(const EngTrainConfig *config); /* Engram modules; over-encoding has one */
/* Streams of an Engram module: those of the residual, or 1 where it has one gate or none. */
int eng_train_module_streams(const EngTrainConfig *config);
int eng_train_d_mem(const EngTrainConfig *config);
/* The addressing of all modules; config has passed eng_train_check. */
EngStatus eng_train_address(const EngTrainConfig *config, EngAddress *address, EngErr *err);

/* ---- one lane ---- */

/* Of one half of a layer, kept for its backward. */
typedef struct EngHalfKept {
    EngReal *streams;   /* [T, D] at its entry (attention: after Engram) */
    EngReal *x;         /* [T, d] read; with one stream: streams */
    EngReal *rstd;      /* [T] of the norm */
    EngReal *normed;    /* [T, d] */
    EngReal *raw, *mix; /* [T, m] products with the mixing weights; pre, post, res */
    EngReal *scale;     /* [T] 1/rms of all streams */
    EngReal *y;         /* [T, d] */
} EngHalfKept;

typedef struct EngEngramKept {
    EngReal *streams; /* [T, n d] at entry, where the gate reads them (ENG_FUSION_STREAMS) */
    EngReal *e;       /* [T, d_mem] gathered rows */
    EngReal *kv;      /* [T, (n + 1) d] */
    EngReal *scores, *gates, *rx, *rk; /* [T, n] */
    EngReal *value;                    /* [T, n d] gated; with a conv, as what follows */
    EngReal *normed;                   /* [T, n d] */
    EngReal *conv_rstd;                /* [T, n] */
    EngReal *conv;                     /* [T, n d] before SiLU */
} EngEngramKept;

typedef struct EngLayerKept {
    EngHalfKept attention, moe;
    EngReal *qkv;              /* [T, (heads + 2 kv_heads) head_dim] after RoPE */
    EngReal *context;          /* [T, heads head_dim] */
    EngReal *lse;              /* [T, heads] log of the sum of exponentials of scores */
    EngReal *affinity, *route; /* [T, experts], [T, k] */
    int32_t *choice, *order;   /* [T, k] experts; [T k] token * k + place, sorted by expert */
    int64_t *first;            /* [experts + 1] in order */
    EngReal *shared, *wide;    /* [T, 2 w_shared], [T k, 2 w] before SwiGLU */
} EngLayerKept;

typedef struct EngScratch {
    EngReal *streams;         /* [T, D] gradient of the streams */
    EngReal *a, *b;           /* [T, d] */
    EngReal *token;           /* [D] */
    EngReal *qkv, *context;   /* [T, qkv], [T, heads head_dim] */
    EngReal *scores;          /* 2 x [ENG_TRAIN_QUERIES, seq_len] */
    EngReal *affinity;        /* [T, experts] */
    EngReal *route, *share;   /* [T, k], [experts] */
    EngReal *act, *act2;      /* [T, widest of shared and routed] */
    EngReal *rows;            /* [T, d] of one expert */
    EngReal *scale, *d_scale; /* [T] */
    EngReal *mix;             /* [T, m] */
    EngReal *kv;              /* [T, (n + 1) d] */
    EngReal *weight, *taps;   /* 2 x [n d], 2 x [kernel, n d] */
    EngReal *gated;           /* [T, n d] */
    EngReal *logits;          /* [ENG_TRAIN_CHUNK, vocab] */
} EngScratch;

#define ENG_TRAIN_QUERIES 64  /* queries scored together */
#define ENG_TRAIN_CHUNK   128 /* tokens whose logits exist together */

typedef struct EngLane {
    EngTrainer *trainer;
    EngDenses *products;
    int64_t max_tokens, first;      /* of a batch; where in it this lane begins */
    int64_t tokens;                 /* T of this pass, whole sequences */
    int64_t total;                  /* tokens of all lanes, whose mean loss gradients are of */
    bool frozen_choice;             /* experts as in the pass before: for differences */
    const int32_t *ids, *target;    /* [T] */
    int64_t *rows;                  /* [T, modules, columns] */
    EngLayerKept *layers;           /* [layers] */
    EngEngramKept *engrams;         /* [modules] */
    EngReal *out_streams, *final_x; /* after the last layer; sum of streams */
    EngReal *final_rstd, *final;    /* what the head reads */
    EngReal *gradient;              /* [dense]; NULL: a lane for evaluation only */
    EngReal *d_e;    /* [modules][this lane's T of the batch, d_mem], of the trainer */
    double loss;     /* sum over tokens */
    double balance;  /* sum of the balance losses over sequences and layers */
    EngReal *losses; /* [T] of each token, or NULL */
    int64_t *load;   /* [layers, experts] of this pass */
    EngScratch scratch;
    void *memory; /* of all the above, one block */
    int64_t ns[ENG_PART_COUNT], since;
    /* Looking inside. */
    bool suppress;
    EngTrainValueFn value;
    void *context;
    int64_t position; /* of the first token, for the hook */
} EngLane;

struct EngTrainer {
    EngTrainConfig config;
    EngAddress address;
    EngTensors tensors;
    EngReal *values;                /* [all] */
    uint16_t *rounded;              /* [dense] bf16, for bf16 products */
    EngReal *bias;                  /* [layers, experts] of the routers */
    EngReal *cos, *sin;             /* [seq_len, head_dim / 2] */
    EngLane *lanes;                 /* [threads] */
    struct EngOptimizer *optimizer; /* train_optimize.c */
    int64_t *counts;                /* [layers, experts] since the last reset */
    EngReal *head_turned;           /* [vocab, d], the head the other way round; NULL when tied */
    EngReal *d_e;                   /* [modules][batch_tokens, d_mem] gradient of gathered rows */
    int32_t *batch;                 /* [batch_tokens] ids, then targets */
    int64_t *starts;                /* [sequences of a batch + 1] */
    int64_t *batch_rows;            /* [batch_tokens, modules, columns] */
    int32_t *hash_ids;              /* [batch_tokens] compressed */
    void *hash_state;
    const EngKernel *hash;
    const int32_t *ids;
    int64_t n_ids;
    int32_t *order; /* [sequences] of ids */
    int64_t n_sequences;
    int64_t step;
    int64_t ns[ENG_PART_COUNT]; /* of what is done for all lanes, or before a checkpoint */
    EngTrainPoint last;
    int other_threads; /* that an earlier part ran with, 0: none */
    char failed[160];
};

static inline void eng_part_begin(EngLane *lane)
{
    lane->since = eng_thread_cpu_ns();
}

/* What has passed since the last call belongs to `part`. */
static inline void eng_part_end(EngLane *lane, EngTrainPart part)
{
    int64_t now = eng_thread_cpu_ns();
    lane->ns[part] += now - lane->since;
    lane->since = now;
}

static inline void eng_show(const EngLane *lane, int layer, EngTrainValue what, const EngReal *data,
                            int64_t columns)
{
    if (lane->value)
        lane->value(lane->context, layer, what, lane->position, data, lane->tokens, columns);
}

/* The weights [rows, columns] of one tensor with their gradient in this lane. */
EngDense eng_dense(const EngLane *lane, int what, int layer, int expert);
const EngReal *eng_value(const EngLane *lane, int what, int layer);
EngReal *eng_gradient(const EngLane *lane, int what, int layer);

/* ---- blocks ---- */

/* grad_streams.c: streams -> x, normed; y, streams -> next [T, D]. Backwards: d_streams [T, D] is
 * the gradient of what the half gave; write_back makes it that of the streams without the branch
 * and gives d_y [T, d]; read_back adds what comes through the branch, from d_x [T, d]. */
EngStatus eng_streams_read(EngLane *lane, int layer, bool moe, EngErr *err);
void eng_streams_norm(EngLane *lane, int layer, bool moe);
void eng_streams_write(EngLane *lane, int layer, bool moe, EngReal *next);
void eng_streams_write_back(EngLane *lane, int layer, bool moe, EngReal *d_streams, EngReal *d_y);
void eng_streams_norm_back(EngLane *lane, int layer, bool moe, const EngReal *d_normed,
                           EngReal *d_x);
EngStatus eng_streams_read_back(EngLane *lane, int layer, bool moe, const EngReal *d_x,
                                EngReal *d_streams, EngErr *err);

/* grad_attention.c: normed -> y; d_y -> d_normed (written). */
EngStatus eng_train_attention(EngLane *lane, int layer, EngErr *err);
EngStatus eng_train_attention_back(EngLane *lane, int layer, const EngReal *d_y, EngReal *d_normed,
                                   EngErr *err);

/* grad_moe.c: likewise. */
EngStatus eng_train_moe(EngLane *lane, int layer, EngErr *err);
EngStatus eng_train_moe_back(EngLane *lane, int layer, const EngReal *d_y, EngReal *d_normed,
                             EngErr *err);

/* grad_engram.c: gathers the module's rows; out [T, n, d] = x + what it writes back, n of the
 * module; out may be x. Backward: d_out, the gradient of out, becomes that of x. Gradients of rows
 * go to lane->d_e. */
EngStatus eng_train_engram(EngLane *lane, int module, const EngReal *x, EngReal *out, EngErr *err);
EngStatus eng_train_engram_back(EngLane *lane, int module, const EngReal *x, EngReal *d_out,
                                EngErr *err);
/* Over-encoding: x [T, d] becomes the average of it and the projected rows; and its backward. */
EngStatus eng_train_over_encode(EngLane *lane, EngReal *x, EngErr *err);
EngStatus eng_train_over_encode_back(EngLane *lane, EngReal *d_x, EngErr *err);

/* grad_head.c: from final [T, d] to the loss; with train also gradients, d_final [T, d] too. */
EngStatus eng_train_head(EngLane *lane, bool train, EngReal *d_final, EngErr *err);

/* ---- train_lane.c ---- */

EngStatus eng_lane_create(EngTrainer *trainer, int64_t tokens, EngLane *lane, EngErr *err);
void eng_lane_destroy(EngLane *lane);
/* Loss of lane->tokens tokens; with train, also gradients of its mean over lane->total tokens,
 * added to lane->gradient and written to lane->d_e. */
EngStatus eng_lane_pass(EngLane *lane, bool train, EngErr *err);

/* ---- train.c ---- */

/* Copies of the parameters in other forms, after these have changed. */
void eng_trainer_refresh(EngTrainer *trainer);
/* Rows [n, modules, columns] of whole sequences; number seeds the shuffled control. */
EngStatus eng_trainer_hash(EngTrainer *trainer, const int32_t *ids, int64_t n, uint64_t number,
                           int64_t *rows, EngErr *err);
/* Products of the calling thread on one core; together() takes back what alone() gave. */
int eng_trainer_alone(void);
void eng_trainer_together(int threads);

/* ---- train_optimize.c ---- */

struct EngOptimizer;
EngStatus eng_optimizer_create(const EngTrainer *trainer, struct EngOptimizer **optimizer,
                               EngErr *err);
void eng_optimizer_destroy(struct EngOptimizer *optimizer);
/* From the summed gradient in lane 0 and all lanes' d_e. *norm: of the gradient without tables. */
EngStatus eng_optimizer_step(EngTrainer *trainer, double lr, double *norm, EngErr *err);
/* State as a list of blocks, for checkpoints: false beyond the last. */
bool eng_optimizer_block(struct EngOptimizer *optimizer, int block, void **bytes, size_t *n);

#endif
