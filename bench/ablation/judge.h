/* What a trained arm is asked on held-out text. */
#ifndef ENG_ABLATION_JUDGE_H
#define ENG_ABLATION_JUDGE_H

#include "bench/ablation/result.h"
#include "bench/ablation/run.h"

/* Held-out tokens that representations are judged by: whole sequences, spread over all of the text.
 */
#define ENG_TRAIN_LENS_TOKENS 8192
#define ENG_TRAIN_LENS_EVERY  16 /* one in so many of these */

/* Losses, of the model and of one whose memory is silent, for all and per group; loads of experts;
 * LogitLens: KL(p_final || p_layer) at entry of each layer, streams collapsed as the head does it.
 * Fills metrics; series:
 *   bits_source:NAME (bits per byte), loss_source:NAME, loss_class:NAME, loss_copied, loss_decile
 * (step: the tenth, rarest 0), each also as suppressed_..; count_decile; lens (step: layer, from 0;
 * the last is the output); load_share:LAYER (step: expert, busiest first); those of
 *   gates.h. */
EngStatus eng_train_judge(EngTrainer *trainer, const EngTrainRun *run, const char *states_path,
                          double *metrics, EngTrainResultText *out, EngErr *err);

/* Of it, the part about loads since the trainer's last reset of counts: load_max, dead_share,
 * collapsed (run.h has the limits) and load_share:LAYER. */
EngStatus eng_train_judge_loads(EngTrainer *trainer, double *metrics, EngTrainResultText *out,
                                EngErr *err);

/* Residual streams of a run: [layers + 1][rows, columns], layer by layer. */
typedef struct EngTrainStates {
    int layers; /* entries: layers of the model + 1 */
    int64_t rows, columns;
    float *values;
} EngTrainStates;
EngStatus eng_train_states_read(const char *path, EngTrainStates *states, EngErr *err);
void eng_train_states_free(EngTrainStates *states);

#endif
