/* What the gates of a trained model do: how many are saturated, on which text, in which stream, and
 * for which rows (design section 4, "gate saturation").
 *
 * Gates are looked at on held-out text: a fixed sample at a few points of training, and at the end
 * by frequency of the n-gram and by how much of a row belongs to other n-grams. A position's gates
 * belong to the n-grams that end there; its tenth is that of the token predicted next. Layers are
 * counted from 0.
 */
#ifndef ENG_ABLATION_GATES_H
#define ENG_ABLATION_GATES_H

#include "bench/ablation/result.h"
#include "bench/ablation/run.h"

#define ENG_GATE_BINS          80
#define ENG_GATE_SCORE_LIMIT   100.0  /* of the histogram; what lies outside counts into the ends */
#define ENG_GATE_SAMPLE_TOKENS 16384  /* at points of training */
#define ENG_GATE_TOKENS        131072 /* at the end: the first of the held-out text */
#define ENG_GATE_FOREIGN_BINS  10
#define ENG_GATE_MAX_LAYERS    64 /* of a model; deeper ones are not looked at */

/* Whether an arm has gates at all. */
bool eng_train_has_gates(const EngTrainConfig *config);

/* ---- counting ---- */

/* Gates of one module, stream and group. */
typedef struct EngGateTally {
    int64_t n, n_scores;
    int64_t at_05, at_10, closed; /* beyond [.05, .95], [.1, .9]; at most .05 */
    double gate, score, slope;    /* sums: gate, |score|, d gate / d score */
    int64_t gate_bins[ENG_GATE_BINS], score_bins[ENG_GATE_BINS];
} EngGateTally;

/* Tallies of all modules and streams by group of the position. */
typedef struct EngGateView {
    const EngTrainConfig *config;
    int n_groups, streams;
    bool brief; /* of a group mean, closed, n and unused alone, no histograms */
    const uint8_t *group[ENG_MAX_LAYERS]; /* [n] of each module; a number >= n_groups: none.
                                             NULL: all positions are group 0 */
    int64_t n;
    EngGateTally *tallies; /* [modules][streams][groups] */
    int64_t *unused;       /* [modules][groups] positions whose gates are all at most .05 */
} EngGateView;
EngStatus eng_gate_view_open(EngGateView *view, const EngTrainConfig *config, int n_groups,
                             EngErr *err);
void eng_gate_view_close(EngGateView *view); /* accepts an empty one */
/* Values as eng_trainer_evaluate gives them; those of other kinds are passed over. */
void eng_gate_view_take(EngGateView *view, int layer, EngTrainValue what, int64_t first,
                        const EngReal *data, int64_t tokens, int64_t columns);
/* Series PREFIX:WHAT:LAYER:STREAM (WHAT: mean, saturated05, saturated10, closed, slope, score) and
 * PREFIX:unused:LAYER, PREFIX:n:LAYER; histograms "PREFIX:STEP" and "PREFIX_score:STEP". The step
 * of group g is step + g. */
EngStatus eng_gate_view_put(const EngGateView *view, const char *prefix, int64_t step,
                            EngTrainResultText *out, EngErr *err);

/* How alike streams are at entry of each layer, and their gates. */
typedef struct EngStreamTally {
    const EngTrainConfig *config;
    int64_t n[ENG_GATE_MAX_LAYERS + 1], n_gates[ENG_MAX_LAYERS];
    double cosine[ENG_GATE_MAX_LAYERS + 1][ENG_BACKBONE_MAX_STREAMS][ENG_BACKBONE_MAX_STREAMS];
    double sum[ENG_MAX_LAYERS][ENG_BACKBONE_MAX_STREAMS]; /* of gates */
    double product[ENG_MAX_LAYERS][ENG_BACKBONE_MAX_STREAMS][ENG_BACKBONE_MAX_STREAMS];
} EngStreamTally;
void eng_stream_tally_take(EngStreamTally *tally, int layer, EngTrainValue what,
                           const EngReal *data, int64_t tokens, int64_t columns);
/* Series stream_cosine:A-B (step: layer; the last is the output), gate_cosine:A-B and
 * gate_correlation:A-B (step: layer; no value where a gate never moves). */
EngStatus eng_stream_tally_put(const EngStreamTally *tally, EngTrainResultText *out, EngErr *err);

/* ---- looking ---- */

/* In per cent of training. */
#define ENG_GATE_POINTS 6
extern const int eng_gate_points[ENG_GATE_POINTS];

/* Series and histograms `gate` of the sample, at step `percent`. */
EngStatus eng_train_gates_at(EngTrainer *trainer, const EngTrainData *data, int percent,
                             EngTrainResultText *out, EngErr *err);
/* At the end: gate_decile, gate_foreign (step: tenth of the mean foreign share of a position's
 * rows), rows_foreign:LAYER, rows_collided:LAYER, rows_unread:LAYER (step: tenth by frequency),
 * gathered_bytes:LAYER (of a token, step 0), streams' likeness, phrases (phrases.h). */
EngStatus eng_train_judge_gates(EngTrainer *trainer, const EngTrainData *data,
                                EngTrainResultText *out, EngErr *err);

#endif
