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

typedef struct EngArgs {
    union {
        EngHashArgs hash;
        EngGatherArgs gather;
        EngProjectArgs project;
        EngGateArgs gate;
        EngConvArgs conv;
        EngLookupArgs lookup;
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

/* Adds kernels (an array that ends with NULL, kept by reference) behind the built-in ones; replace:
 * one of the same operation and name takes the place of that, else it is an error and nothing is
 * added. Before anything is planned, and by one thread. ENG_USAGE, ENG_BAD_DATA. */
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
