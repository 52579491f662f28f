/* The kernel interface: operations, problems (fixed shapes), arguments (buffers) and variants.
 *
 * A variant implements one operation on one backend. The harness asks supports(), calls create()
 * once per problem (weight packing, primitive creation, thread-private buffers), then run() many
 * times on arguments, then destroy(). run() allocates nothing and does not touch files. All buffers
 * belong to the caller; outputs never alias inputs unless the operation says so. Row indices must
 * lie in the table: they are checked at the border (hash output by construction), not per row in
 * the kernels.
 */
#ifndef ENGRAM_KERNELS_H
#define ENGRAM_KERNELS_H

#include <stdbool.h>
#include <engram/address.h>
#include <engram/status.h>
#include <engram/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum EngOp {
    ENG_OP_HASH = 0,
    ENG_OP_GATHER,
    ENG_OP_PROJECT,
    ENG_OP_GATE,
    ENG_OP_CONV,
    ENG_OP_LOOKUP, /* gather and project in one */
    /* Training, in f32: forwards that keep what their backwards need, backwards, optimizers. */
    ENG_OP_TRAIN_GATE,
    ENG_OP_TRAIN_CONV,
    ENG_OP_BACK_GATE,
    ENG_OP_BACK_PROJECT,
    ENG_OP_BACK_GATHER, /* scatter-add of row gradients */
    ENG_OP_BACK_CONV,
    ENG_OP_SGD,
    ENG_OP_ADAMW,
    ENG_OP_MUON,
    ENG_OP_SPARSE_ADAM,
    ENG_OP_SINKHORN,
    ENG_OP_COUNT
} EngOp;

typedef enum EngBackend { ENG_CPU = 0, ENG_CUDA, ENG_BACKEND_COUNT } EngBackend;

/* Which gate: V4.1's sigmoid(copysign(sqrt(max(|dot|,1e-6)),dot)); the demo's with sign() (0.5 at
 * dot 0); the paper's equation without root (facts sections 6 and 8.1-8.2). */
typedef enum EngGateFormula {
    ENG_GATE_COPYSIGN = 0,
    ENG_GATE_SIGN,
    ENG_GATE_PLAIN,
    ENG_GATE_FORMULA_COUNT
} EngGateFormula;

/* ---- problems ----------------------------------------------------------------------------------
 */

/* Rows of all layers of `address` for a batch of sequences. */
typedef struct EngHashProblem {
    const EngAddress *address;
    int64_t max_tokens; /* most positions a run() may see */
} EngHashProblem;

/* out[t, c*row_dims .. ] = decode(table[rows[t, c]]). */
typedef struct EngGatherProblem {
    EngTable table;
    int columns;    /* rows per token */
    int64_t tokens; /* T */
    EngDtype out;   /* F32, BF16, or FP8: values and scales copied undecoded */
} EngGatherProblem;

/* out[T, n] = x[T, k] . w[n, k]^T with f32 accumulation (facts section 6, step 2). */
typedef struct EngProjectProblem {
    int64_t tokens;          /* M */
    int n, k;                /* n = (streams + 1) * hidden, k = columns * row_dims */
    EngDtype x;              /* FP8 (with x_scales, 1x32) or BF16 */
    EngDtype weights;        /* FP8 (with w_scales, 32x32 tiles) or BF16 */
    EngDtype out;            /* BF16 or F32 */
    const uint8_t *w;        /* [n, k] row-major, e4m3fn bytes or bf16 */
    const uint8_t *w_scales; /* [n/32, k/32] e8m0, NULL for BF16 weights */
} EngProjectProblem;

/* streams += gate * value, gate from stream and key (facts section 6, steps 3-6). f32 maths, one
 * final rounding to bf16; a masked token's streams keep their bits. */
typedef struct EngGateProblem {
    int64_t tokens;
    int streams, hidden;
    EngGateFormula formula;
    float eps;
    const uint16_t *q_weight, *k_weight; /* [streams, hidden] bf16 */
} EngGateProblem;

/* Short causal depthwise convolution of the original variant: y = v + silu(conv(rmsnorm(v))), taps
 * t, t-d, .., t-(kernel-1)d; its state holds the last (kernel-1)*d normalised tokens (facts section
 * 6 A). */
typedef struct EngConvProblem {
    int64_t tokens;
    int streams, hidden;
    int kernel, dilation;
    float eps;
    const float *norm_weight; /* [streams, hidden] */
    const float *conv_weight; /* [streams * hidden, kernel], tap kernel-1 is the newest token */
} EngConvProblem;

/* out[T, n] = decode(table[rows]) . w[n, k]^T with k = columns * row_dims: gather and project as
 * one operation (facts sections 5 and 6, steps 1-2). Rows of fp8 formats and bf16 enter with their
 * exact values, others rounded to bf16; f32 accumulation. */
typedef struct EngLookupProblem {
    EngTable table;
    int columns;    /* rows per token */
    int64_t tokens; /* T */
    int n;
    EngDtype weights, out; /* and what follows, as in EngProjectProblem */
    const uint8_t *w;
    const uint8_t *w_scales;
} EngLookupProblem;

/* ---- training ----
 *
 * All data is f32. Weights change between runs, so they are arguments. Gradients of activations are
 * written; gradients of weights are added to what is there, so that micro-batches sum up and the
 * caller zeroes them. Results do not depend on the number of threads, but for products made by a
 * library, and where a variant says so.
 */

/* Gate and write-back (facts section 6, steps 3-6) without rounding, and its backward (section 7).
 */
typedef struct EngTrainGateProblem {
    int64_t tokens;
    int streams, hidden;
    EngGateFormula formula;
    float eps;
} EngTrainGateProblem;

/* Of out = x . w^T (+ bias): d_x = d_out . w, d_w += d_out^T . x, d_bias += sum of d_out. */
typedef struct EngBackProjectProblem {
    int64_t tokens; /* M */
    int n, k;       /* w is [n, k] */
    EngDtype type;  /* of the products' operands: F32, or BF16 (rounded inside, f32 sums) */
} EngBackProjectProblem;

/* Scatter-add: gradients of the distinct rows that a batch read, duplicates summed. */
typedef struct EngBackGatherProblem {
    int64_t rows; /* of the table; row ids lie below */
    int row_dims;
    int columns;    /* rows per token */
    int64_t tokens; /* T */
} EngBackGatherProblem;

/* The short convolution over whole sequences (facts section 6 A), and its backward. */
typedef struct EngTrainConvProblem {
    int64_t tokens;
    int streams, hidden;
    int kernel, dilation;
    float eps;
} EngTrainConvProblem;

/* buffer = momentum * buffer + g with g = grad + decay * w; w -= rate * buffer, or with nesterov
 * rate * (g + momentum * buffer). momentum 0 needs no buffer. */
typedef struct EngSgdProblem {
    int64_t n;
    float momentum, decay;
    bool nesterov;
} EngSgdProblem;

/* Adam with decoupled decay: w *= 1 - rate * decay; m and v are running means of grad and its
 * square; w -= rate * (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps). V4.1: 0.9, 0.95,
 * 1e-20, 0.1 (facts section 1). */
typedef struct EngAdamWProblem {
    int64_t n;
    float beta1, beta2, eps, decay;
} EngAdamWProblem;

/* For `count` matrices [rows, cols]: b = momentum * b + grad; o = orthogonalised momentum * b +
 * grad; w = (1 - rate * decay) w - rate * rms * sqrt(max(rows, cols)) * o, so that an update has
 * root mean square rate * rms. Orthogonalised: ns_steps of X = a X + (b A + c A A) X with A = X X^T
 * and (a, b, c) = (3.4445, -4.7750, 2.0315) from X divided by its Frobenius norm. V4.1: 0.95, decay
 * 0.1, rms 0.18 (facts section 7). */
typedef struct EngMuonProblem {
    int64_t count;
    int rows, cols;
    float momentum, decay, rms;
    int ns_steps; /* 5 */
} EngMuonProblem;

/* Adam on the touched rows of a table and nothing on the others; no decay. */
typedef struct EngSparseAdamProblem {
    int64_t rows;
    int row_dims;
    float beta1, beta2, eps;
} EngSparseAdamProblem;

/* The Sinkhorn-balanced update (paper.md 7.2, Algorithm 1 of the V4.1 report): m = beta m + (1 -
 * beta) g and u = beta m + (1 - beta) g over all rows; rows of norm <= tau * mean norm are zeroed;
 * `balance` (odd) steps divide rows, columns, .. rows by norm + eps; w -= gamma * rate *
 * sqrt(row_dims) * u. V4.1: beta 0.95, gamma 0.18, tau 1e-3, eps 1e-20, balance 11. Each group of
 * rows is balanced by itself. */
typedef struct EngSinkhornProblem {
    int64_t rows;
    int row_dims;
    int64_t max_touched; /* most rows with a gradient in one run */
    float beta, gamma, tau, eps;
    int balance;
    int n_groups;          /* 1: the whole table */
    const int64_t *bounds; /* [n_groups + 1] from 0 to rows, e.g. of the heads; NULL: one group */
} EngSinkhornProblem;

/* Parameters of a variant that a search may set (see EngTunable). */
#define ENG_MAX_TUNABLES 4

typedef struct EngProblem {
    EngOp op;
    int threads;                 /* >= 1 */
    int tuned[ENG_MAX_TUNABLES]; /* of the variant's tunables, in their order; 0: its default */
    union {
        EngHashProblem hash;
        EngGatherProblem gather;
        EngProjectProblem project;
        EngGateProblem gate;
        EngConvProblem conv;
        EngLookupProblem lookup;
        EngTrainGateProblem train_gate; /* of the backward, too */
        EngTrainConvProblem train_conv; /* of the backward, too */
        EngBackProjectProblem back_project;
        EngBackGatherProblem back_gather;
        EngSgdProblem sgd;
        EngAdamWProblem adamw;
        EngMuonProblem muon;
        EngSparseAdamProblem sparse_adam;
        EngSinkhornProblem sinkhorn;
    } u;
} EngProblem;

/* ---- arguments ---------------------------------------------------------------------------------
 */

/* A batch of sequences laid end to end; every mode (prefill, decode, verify windows, packed
 * documents, graph-padded tails) is a choice of starts, history and n_live. Sequence s covers
 * positions starts[s]
 * .. starts[s+1]-1. history[s] holds the max_order-1 compressed ids before it, oldest first, DEAD
 * before the start of the text; NULL means all DEAD. Positions >= n_live are padding: nothing is
 * written there. */
typedef struct EngHashArgs {
    const int32_t *tokens; /* [n_tokens] compressed ids, DEAD for image positions */
    int64_t n_tokens, n_live;
    const int64_t *starts; /* [n_seqs + 1], ascending, starts[0] = 0; NULL: one sequence */
    int64_t n_seqs;
    const int32_t *history; /* [n_seqs, max_order - 1] or NULL */
    int64_t *rows;          /* out [n_tokens, n_layers, n_columns] */
} EngHashArgs;

typedef struct EngGatherArgs {
    const int64_t *rows; /* row of (token t, column c) at rows[t * row_stride + c] */
    int64_t row_stride;  /* >= columns: lets a layer be picked out of hash output */
    void *out;           /* [tokens, columns * row_dims] of the problem's out type */
    uint8_t *out_scales; /* [tokens, columns * row_dims / 32], FP8 output only */
} EngGatherArgs;

typedef struct EngProjectArgs {
    const void *x;           /* [tokens, k] */
    const uint8_t *x_scales; /* [tokens, k/32], FP8 only */
    void *out;               /* [tokens, n] */
} EngProjectArgs;

typedef struct EngGateArgs {
    const uint16_t *streams_in; /* [tokens, streams, hidden] bf16 */
    uint16_t *streams_out;      /* same shape; may be streams_in itself */
    const uint16_t *kv;  /* [tokens, (streams + 1) * hidden] bf16: keys stream-major, then value */
    const uint8_t *dead; /* [tokens], 1 = masked; NULL: none */
    float *gates;        /* out [tokens, streams], may be NULL */
    float *scores;       /* out [tokens, streams]: dot before the root, may be NULL */
} EngGateArgs;

typedef struct EngConvArgs {
    const float *value; /* [tokens, streams, hidden] */
    float *state; /* in/out [(kernel-1)*dilation, streams, hidden] oldest first, zeros at start */
    float *out;   /* [tokens, streams, hidden] */
} EngConvArgs;

typedef struct EngLookupArgs {
    const int64_t *rows; /* as in EngGatherArgs */
    int64_t row_stride;
    void *out; /* [tokens, n] */
} EngLookupArgs;

/* ---- training ---- */

#define ENG_GATE_KEPT 4 /* score, gate, 1/rms of the stream, 1/rms of the key */

typedef struct EngTrainGateArgs {
    const float *streams_in;          /* [tokens, streams, hidden] */
    const float *kv;                  /* [tokens, (streams + 1) * hidden]: keys, then value */
    const float *q_weight, *k_weight; /* [streams, hidden] */
    const uint8_t *dead;              /* [tokens], 1 = masked; NULL: none */
    float *streams_out;               /* [tokens, streams, hidden], not streams_in */
    float *kept; /* out [tokens, streams, ENG_GATE_KEPT]: for the backward, or statistics */
} EngTrainGateArgs;

typedef struct EngBackGateArgs {
    const float *streams_in, *kv, *q_weight, *k_weight; /* as given to the forward */
    const uint8_t *dead;
    const float *kept;              /* what the forward kept */
    const float *d_out;             /* [tokens, streams, hidden]: gradient of streams_out */
    float *d_streams;               /* out, same shape; may be d_out itself */
    float *d_kv;                    /* out [tokens, (streams + 1) * hidden] */
    float *d_q_weight, *d_k_weight; /* [streams, hidden], added to */
} EngBackGateArgs;

typedef struct EngBackProjectArgs {
    const float *x;     /* [tokens, k] */
    const float *w;     /* [n, k] */
    const float *d_out; /* [tokens, n] */
    float *d_x;         /* out [tokens, k]; NULL: not wanted */
    float *d_w;         /* [n, k], added to */
    float *d_bias;      /* [n], added to; NULL: there is none */
} EngBackProjectArgs;

typedef struct EngBackGatherArgs {
    const int64_t *rows; /* row of (token t, column c) at rows[t * row_stride + c] */
    int64_t row_stride;
    const float *d_out; /* [tokens, columns * row_dims] */
    /* out, with room for tokens * columns rows: each distinct row once, ascending, and its sum */
    int64_t *touched;
    int64_t *n_touched; /* out [1] */
    float *d_rows;      /* [n_touched, row_dims] */
} EngBackGatherArgs;

/* Sequence s covers tokens starts[s] .. starts[s+1]-1; before each of them lie zeros. */
typedef struct EngTrainConvArgs {
    const float *value;       /* [tokens, streams, hidden] */
    const float *norm_weight; /* [streams, hidden] */
    const float *conv_weight; /* [streams * hidden, kernel], tap kernel-1 is the newest token */
    const int64_t *starts;    /* [n_seqs + 1], ascending from 0 to tokens; NULL: one sequence */
    int64_t n_seqs;
    float *out; /* [tokens, streams, hidden] */
} EngTrainConvArgs;

typedef struct EngBackConvArgs {
    const float *value, *norm_weight, *conv_weight; /* as given to the forward */
    const int64_t *starts;
    int64_t n_seqs;
    const float *d_out;   /* [tokens, streams, hidden] */
    float *d_value;       /* out, same shape; not d_out */
    float *d_norm_weight; /* [streams, hidden], added to */
    float *d_conv_weight; /* [streams * hidden, kernel], added to */
} EngBackConvArgs;

/* Optimizers. rate is the learning rate of this step with the parameter's multiplier in it (5 for
 * Engram tables); step counts from 1. State begins as zeros and is the caller's, so that it can go
 * into a checkpoint. */
typedef struct EngSgdArgs {
    float *w;
    const float *grad;
    float *buffer; /* [n]; NULL when momentum is 0 */
    float rate;
} EngSgdArgs;

typedef struct EngAdamWArgs {
    float *w;
    const float *grad;
    float *m, *v;
    float rate;
    int64_t step;
} EngAdamWArgs;

typedef struct EngMuonArgs {
    float *w; /* [count, rows, cols] */
    const float *grad;
    float *buffer;
    float rate;
} EngMuonArgs;

typedef struct EngSparseAdamArgs {
    float *w;               /* [rows, row_dims] */
    const int64_t *touched; /* [n_touched] distinct rows */
    int64_t n_touched;
    const float *grad;  /* [n_touched, row_dims] */
    float *m, *v;       /* [rows, row_dims] */
    int32_t *row_steps; /* [rows]: corrections count each row's own updates; NULL: step does */
    float rate;
    int64_t step;
} EngSparseAdamArgs;

typedef struct EngSinkhornArgs {
    float *w;               /* [rows, row_dims] */
    const int64_t *touched; /* [n_touched] distinct rows, ascending; NULL: every row */
    int64_t n_touched;
    const float *grad;  /* [n_touched, row_dims] */
    float *momentum;    /* [rows, row_dims], of row i as of step row_steps[i] */
    float *row_norms;   /* [rows]: norm of that momentum */
    int32_t *row_steps; /* [rows]: step that wrote it; later ones only decay it */
    float rate;
    int64_t step;
} EngSinkhornArgs;

typedef struct EngArgs {
    union {
        EngHashArgs hash;
        EngGatherArgs gather;
        EngProjectArgs project;
        EngGateArgs gate;
        EngConvArgs conv;
        EngLookupArgs lookup;
        EngTrainGateArgs train_gate;
        EngTrainConvArgs train_conv;
        EngBackGateArgs back_gate;
        EngBackProjectArgs back_project;
        EngBackGatherArgs back_gather;
        EngBackConvArgs back_conv;
        EngSgdArgs sgd;
        EngAdamWArgs adamw;
        EngMuonArgs muon;
        EngSparseAdamArgs sparse_adam;
        EngSinkhornArgs sinkhorn;
    } u;
} EngArgs;

/* ---- variants ----------------------------------------------------------------------------------
 */

/* Work of one run(), computed from shapes alone. Bytes are logical: what the algorithm must move.
 */
typedef struct EngCost {
    double flops;
    double read_bytes, write_bytes;
} EngCost;

/* A parameter that changes how fast a variant is and not what it computes: `engram tune` searches
 * it, and anyone may name it as in "portable@group=24" (variant@name=value, several in a row). */
typedef struct EngTunable {
    const char *name;
    int min, max;       /* whole numbers, inclusive; min >= 1 */
    int def;            /* what the plain variant uses; 0: depends on the shape */
    const char *values; /* what a search tries, a list as in a sweep: "8,16,24", "16:64:x2" */
    const char *help;
} EngTunable;

typedef struct EngKernel {
    EngOp op;
    const char *name; /* e.g. "portable", unique per operation */
    EngBackend backend;
    bool roof;    /* a limit to compare with: its output is not checked unless checked is set */
    bool checked; /* output is compared with the oracle (true for every non-roof) */
    const char *summary;        /* one line for `engram list` */
    const EngTunable *tunables; /* at most ENG_MAX_TUNABLES, then one without a name; NULL: none */

    /* ENG_OK, or ENG_UNSUPPORTED with the reason. */
    EngStatus (*supports)(const EngProblem *problem, EngErr *why);
    void (*cost)(const EngProblem *problem, EngCost *cost);
    EngStatus (*create)(const EngProblem *problem, void **state, EngErr *err); /* may be NULL */
    EngStatus (*run)(void *state, const EngProblem *problem, const EngArgs *args, EngErr *err);
    void (*destroy)(void *state); /* accepts NULL; may be NULL */
} EngKernel;

/* All variants of an operation, roofs included, in registry order. */
const EngKernel *const *eng_kernels(EngOp op, int *n);
/* NULL when there is none of that name; settings ("@name=value") are passed over. */
const EngKernel *eng_kernel_find(EngOp op, const char *name);

/* Adds kernels (an array that ends with NULL, kept by reference, no two of one operation and name)
 * behind the built-in ones; replace: one of the same operation and name takes the place of that,
 * else it is an error. After an error nothing is added. Before anything is planned, and by one
 * thread. ENG_USAGE, ENG_BAD_DATA. */
EngStatus eng_kernels_add(const EngKernel *const *kernels, bool replace, EngErr *err);

/* Whether `variant`, settings passed over, names this kernel. */
bool eng_kernel_is(const EngKernel *kernel, const char *variant);
/* Settings of a variant that names this kernel, 0 where it says nothing. ENG_USAGE: a parameter the
 * kernel lacks, one given twice, a value that is no number or out of range. */
EngStatus eng_kernel_settings(const EngKernel *kernel, const char *variant,
                              int tuned[ENG_MAX_TUNABLES], EngErr *err);
/* The one spelling of kernel and settings: in the order of the tunables, defaults left out.
 * ENG_USAGE when it has more than size - 1 characters. */
#define ENG_VARIANT_BYTES 64
EngStatus eng_kernel_variant(const EngKernel *kernel, const int tuned[ENG_MAX_TUNABLES], char *out,
                             size_t size, EngErr *err);

const char *eng_op_name(EngOp op);
int eng_op_parse(const char *name);
const char *eng_backend_name(EngBackend backend);
/* Whether kernels of a backend can run here: "all variants" leaves the others out. */
bool eng_backend_present(EngBackend backend);
const char *eng_gate_formula_name(EngGateFormula formula);
int eng_gate_formula_parse(const char *name);

#ifdef __cplusplus
}
#endif
#endif
