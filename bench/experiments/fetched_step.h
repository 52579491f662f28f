/* A step of the backbone beside the fetch of its Engram rows: what the experiments prefetch and
 * speculate time.
 *
 * A step begins when its token ids are known: row numbers are hashed, handed to the prefetcher, and
 * the layers compute. Before the layer that a module is placed at, its rows are waited for and
 * gathered into dense bf16 activations. What Engram computes from them (projection, gate) is left
 * out: it comes after the wait, takes part in no window of the first module, and on a processor it
 * would outweigh everything else.
 *
 * decode: one token of each of `tokens` sequences, with no context cached. prefill: one sequence
 * in passes of `chunk` tokens; the rows of a pass are fetched while the pass before it computes.
 * A window is the backbone's own computing, or a paced wait on the same processor (emulated).
 */
#ifndef ENG_EXPERIMENTS_FETCHED_STEP_H
#define ENG_EXPERIMENTS_FETCHED_STEP_H

#include <engram/prefetch.h>
#include "bench/backbone/backbone.h"
#include "bench/experiments/cores.h"
#include "bench/experiments/delay_store.h"
#include "bench/experiments/open_table.h"
#include "bench/experiments/support.h"
#include "bench/experiments/windows.h"

#define ENG_STEP_MODULES 2
#define ENG_STEP_CHAIN   8 /* verify steps that one text is walked through */

extern const char *const eng_words_phase[]; /* decode prefill */

/* The address axes without `layer`: tables are those of the preset's first layers, wherever they
 * are placed. */
#define ENG_AXES_STEP                                                                              \
    ENG_AXIS_PRESET_DEF, ENG_AXIS_ORDERS_DEF, ENG_AXIS_HEADS_DEF, ENG_AXIS_ROWS_DEF,               \
        ENG_AXIS_ROW_DIMS_DEF, ENG_AXIS_HOLD_DEF, ENG_AXIS_ROW_FORMAT_DEF, ENG_AXIS_CORPUS_DEF,    \
        ENG_AXES_STORE, ENG_AXIS_RESIDENCY_DEF, ENG_AXIS_CORES_DEF,                                \
        {"delay",                                                                                  \
         ENG_AXIS_REAL,                                                                            \
         "0",                                                                                      \
         "us",                                                                                     \
         0,                                                                                        \
         1e7,                                                                                      \
         NULL,                                                                                     \
         "each read of up to 4096 rows takes so much longer: stands for a slower device; "         \
         "emulated"},                                                                              \
        {"layers", ENG_AXIS_INT, "4", "", 1, 1000, NULL, "layers of the backbone (V4.1: 40)"},     \
        {"hidden",                                                                                 \
         ENG_AXIS_INT,                                                                             \
         "512",                                                                                    \
         "values",                                                                                 \
         64,                                                                                       \
         65536,                                                                                    \
         NULL,                                                                                     \
         "width of the backbone, in multiples of 64; 8 experts and a shared one of half "          \
         "of it, 2 active; all layers have the same weights"},                                     \
        {"placement", ENG_AXIS_INT,                                                                \
         "1",         "",                                                                          \
         0,           999,                                                                         \
         NULL,        "0-based layer before which the first module's rows are needed"},            \
        {"window",                                                                                 \
         ENG_AXIS_WORD,                                                                            \
         "backbone",                                                                               \
         "",                                                                                       \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         "backbone: layers compute; paced:US: each takes US us (emulated; published steps of "     \
         "GPUs "                                                                                   \
         "are in docs/method.md)"},                                                                \
    {                                                                                              \
        "threads", ENG_AXIS_INT, "1", "", 1, 256, NULL, "threads that compute"                     \
    }

/* A point's step; `chunk` is the tokens of a pass. */
typedef struct EngStepSpec {
    EngShape shapes[ENG_STEP_MODULES];
    EngStoreSpec store; /* of each module */
    int modules;
    int at[ENG_STEP_MODULES]; /* layers before which rows are needed */
    bool decode;
    int64_t chunk, passes;
    int64_t verified; /* decode: tokens of each sequence, 1, or drafts and one more */
    int64_t text;     /* tokens of a window of the stream */
    int64_t delay_ns;
    EngBackboneConfig backbone; /* without hooks */
} EngStepSpec;

/* Axes that the experiment lacks: modules 1, apart 1, phase decode, chunk 0, vision off, sequences
 * as many as tokens, draft 0.
 * ENG_UNSUPPORTED with the reason; ENG_USAGE: a window of another form. */
EngStatus eng_step_spec_read(const EngPoint *point, EngStepSpec *spec, EngErr *why);
/* Memory besides shared resources. */
EngStatus eng_step_spec_bytes(const EngStepSpec *spec, size_t *bytes, EngErr *err);
/* Of one step, without the fetch. */
double eng_step_spec_ns(const EngStepSpec *spec);
bool eng_step_emulated(const EngStepSpec *spec);

/* Sums over steps since they were set to zero. */
typedef struct EngStepSums {
    int64_t steps, step_ns;
    int64_t fetch_ns[ENG_STEP_MODULES];  /* reads of a module's rows */
    int64_t stall_ns[ENG_STEP_MODULES];  /* from needed to ready */
    int64_t window_ns[ENG_STEP_MODULES]; /* from ids known to needed */
    int64_t wanted_ns[ENG_STEP_MODULES]; /* from ids known to read: the window that hides it */
} EngStepSums;

/* What the rows of a pass were asked for with: its first `kept` tokens with one ticket, those after
 * them, if any, with another. */
typedef struct EngStepTickets {
    EngPrefetchTicket first, rest; /* 0: none */
    int64_t kept;
} EngStepTickets;

typedef struct EngStep {
    EngStepSpec spec;
    const EngResources *resources;
    EngCores cores;
    EngAddress address; /* of all modules */
    EngOpenTable tables[ENG_STEP_MODULES];
    EngDelayStore delayed[ENG_STEP_MODULES];
    EngPrefetcher *prefetcher;
    EngBackbone *backbone;
    EngRunner hash, gather;
    EngWindows windows;
    /* of the step in hand */
    int64_t window;
    int64_t *rows[2];   /* row numbers of a pass and of the next, [chunk, modules, columns] */
    int64_t *identity;  /* [chunk * columns]: rows are dense once they are fetched */
    uint16_t *gathered; /* [chunk, k] */
    int32_t *ids;       /* [passes, chunk] of the backbone's vocabulary */
    int32_t *tokens;    /* decode: [chunk], of the pass to be hashed */
    int32_t *history;   /* decode: [sequences, reach] before them; else [reach], of a pass */
    int64_t *starts;    /* decode: [sequences + 1] */
    EngStepTickets tickets[2]; /* of a pass and of the next */
    int64_t known_ns[2];       /* when their ids were known */
    EngPrefetchRows held[ENG_STEP_MODULES];
    bool ahead; /* rows are in held */
    int64_t pass;
    EngStepSums *sums;
    EngResidual *residual; /* not NULL: outputs are compared */
} EngStep;

/* The state may not move. */
EngStatus eng_step_create(EngStep *step, const EngBench *bench, const EngPoint *point, EngErr *err);
void eng_step_destroy(EngStep *step); /* accepts one of zeros, or half created */

/* Before samples: residency, counters from zero, and the calling thread computes; after them it may
 * run anywhere again. */
EngStatus eng_step_prepare(EngStep *step, EngErr *err);
void eng_step_over(EngStep *step);

/* One step on the next tokens, beside its fetch; or with all rows there when the clock starts. */
EngStatus eng_step_fetch(EngStep *step, EngStepSums *sums, EngErr *err);
EngStatus eng_step_ready(EngStep *step, EngStepSums *sums, EngErr *err);
/* Parts of a step. submit: row numbers of a pass to the prefetcher; decode takes them from tokens
 * and history. forward: the layers, and the wait for rows unless they are held. hold: waits for all
 * rows of a pass. keep_ids: tokens as the backbone's. Two passes are in hand, `pass` modulo 2. */
EngStatus eng_step_submit(EngStep *step, int64_t pass, EngErr *err);
/* What a pass was submitted for was right in its first `tokens` tokens only (0: in none): the rest
 * is cancelled. submit_rest: asks for the right rows of those; all of them are hashed again. */
void eng_step_keep(EngStep *step, int64_t pass, int64_t tokens);
EngStatus eng_step_submit_rest(EngStep *step, int64_t pass, EngErr *err);
EngStatus eng_step_forward(EngStep *step, int64_t pass, EngErr *err);
EngStatus eng_step_hold(EngStep *step, int64_t pass, EngErr *err);
EngStatus eng_step_hash(EngStep *step, int64_t pass, EngErr *err);
/* decode: the tokens of a sequence from `at` of the stream on, and those before them. */
void eng_step_take_text(EngStep *step, int64_t sequence, int64_t at);
void eng_step_keep_ids(EngStep *step, int64_t at, const int32_t *tokens, int64_t n);

/* Both, with every row of the first 128 tokens of each pass compared with the seeded table, and
 * every gathered value with the oracle's. */
EngStatus eng_step_verify(EngStep *step, EngResidual *residual, EngErr *err);
/* The backbone's hook: waits for the rows of modules placed here and gathers them. */
EngStatus eng_step_before_layer(void *context, const EngBackboneStep *backbone_step, int layer,
                                void *streams, EngErr *err);
/* Sums over the modules' stores. */
void eng_step_store_stats(const EngStep *step, EngStoreStats *stats);

#endif
