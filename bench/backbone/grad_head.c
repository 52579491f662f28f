/* Head and cross-entropy of training, some tokens at a time: logits of a chunk become its gradient
 * in place and are used up at once, so that [tokens, vocab] never exists. */
#include "bench/backbone/grad_pointwise.h"
#include "bench/backbone/pointwise.h"
#include "bench/backbone/train_parts.h"

/* Losses of the chunk; logits become d of `weight` times their sum, in bf16 in `rounded` unless
 * that is NULL. */
static void entropy(EngLane *lane, int64_t at, int64_t rows, EngReal *logits, EngReal weight,
                    uint16_t *rounded)
{
    int64_t vocab = lane->trainer->config.model.vocab;
    for (int64_t r = 0; r < rows; r++) {
        int32_t target = lane->target[at + r];
        EngReal *row = logits + r * vocab, own = row[target], lse;
        if (rounded) {
            uint16_t *to = rounded + r * vocab;
            lse = eng_softmax_rounded(row, weight, vocab, to);
            EngReal d = weight * ((EngReal)exp((double)(own - lse)) - 1);
            eng_to_bf16(&d, to + target, 1);
        } else {
            lse = eng_softmax_scaled(row, weight, vocab);
            row[target] -= weight;
        }
        lane->loss += (double)(lse - own);
        if (lane->losses) lane->losses[at + r] = lse - own;
    }
}

EngStatus eng_train_head(EngLane *lane, bool train, EngReal *d_final, EngErr *err)
{
    const EngBackboneConfig *c = &lane->trainer->config.model;
    EngDense head = eng_dense(lane, c->tied_head ? ENG_W_EMBED : ENG_W_HEAD, 0, 0);
    EngReal weight = train ? 1 / (EngReal)lane->total : 1;
    int64_t d = c->hidden;
    EngStatus status = ENG_OK;
    head.turned = c->tied_head;
    head.w_turned = lane->trainer->head_turned;
    head.in = d, head.out = c->vocab;
    for (int64_t at = 0; at < lane->tokens && !status; at += ENG_TRAIN_CHUNK) {
        int64_t rows = lane->tokens - at < ENG_TRAIN_CHUNK ? lane->tokens - at : ENG_TRAIN_CHUNK;
        EngReal *logits = lane->scratch.logits;
        const EngReal *x = lane->final + at * d;
        status = eng_dense_forward(lane->products, &head, x, rows, logits, err);
        if (status) break;
        uint16_t *rounded = train ? eng_dense_rounded(lane->products, &head) : NULL;
        entropy(lane, at, rows, logits, weight, rounded);
        if (!train) continue;
        status = eng_dense_backward(lane->products, &head, x, rounded ? NULL : logits, rows,
                                    d_final + at * d, false, err);
    }
    return status;
}
