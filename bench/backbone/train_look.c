/* Looking inside a trainer: held-out loss, LogitLens, parameters, rows; see train.h. */
#include <math.h>
#include <string.h>

#include "bench/backbone/grad_pointwise.h"
#include "bench/backbone/pointwise.h"
#include "bench/backbone/train_parts.h"

/* ---- held-out loss ---- */

/* One piece of at most lane 0's tokens, whole sequences; rows: theirs. */
static EngStatus evaluate_piece(EngTrainer *t, const int32_t *ids, int64_t n, int64_t position,
                                int64_t *rows, EngReal *losses, EngErr *err)
{
    EngLane *lane = &t->lanes[0];
    lane->tokens = lane->total = n;
    lane->ids = ids, lane->target = ids + 1;
    lane->rows = rows;
    lane->position = position, lane->losses = losses;
    return eng_lane_pass(lane, false, err);
}

EngStatus eng_trainer_evaluate(EngTrainer *t, const int32_t *ids, int64_t n,
                               const EngTrainEval *eval, float *losses, double *loss,
                               int64_t *predicted, EngErr *err)
{
    EngLane *lane = &t->lanes[0];
    int64_t length = t->config.seq_len, all = n > 0 ? (n - 1) / length * length : 0;
    int64_t batch = t->config.batch_tokens, width = t->address.n_layers * t->address.n_columns;
    int64_t ns[ENG_PART_COUNT];
    EngReal *own = lane->scratch.d_scale; /* [T], not used by a forward pass */
    EngStatus status = ENG_OK;
    double sum = 0;
    if (!all)
        return ENG_FAIL(err, ENG_USAGE, "held-out data: %lld ids; one sequence needs %lld",
                        (long long)n, (long long)length + 1);
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= t->config.model.vocab)
            return ENG_FAIL(err, ENG_BAD_DATA, "held-out data: id %d at %lld is not in [0, %d)",
                            ids[i], (long long)i, t->config.model.vocab);
    for (int64_t i = 0; losses && i < n; i++) losses[i] = NAN;
    memcpy(ns, lane->ns, sizeof ns); /* the account is of training */
    lane->suppress = eval && eval->suppress;
    lane->value = eval ? eval->value : NULL, lane->context = eval ? eval->context : NULL;
    int threads = eng_trainer_alone();
    for (int64_t at = 0, piece; at < all && !status; at += piece) {
        /* Hashed by the batch, so that what is shuffled does not depend on the lanes. */
        int64_t into = at % batch, left = all - at < batch - into ? all - at : batch - into;
        piece = left < lane->max_tokens ? left : lane->max_tokens;
        if (!into) status = eng_trainer_hash(t, ids + at, left, ~(uint64_t)at, t->batch_rows, err);
        if (status) break;
        status = evaluate_piece(t, ids + at, piece, at, t->batch_rows + into * width, own, err);
        sum += lane->loss;
        for (int64_t i = 0; losses && i < piece; i++) losses[at + i + 1] = (float)own[i];
    }
    eng_trainer_together(threads);
    memcpy(lane->ns, ns, sizeof ns);
    lane->suppress = false, lane->value = NULL, lane->losses = NULL;
    *loss = sum / (double)all;
    *predicted = all;
    return status;
}

EngStatus eng_trainer_logits(EngTrainer *t, const EngReal *streams, int64_t rows, EngReal *logits,
                             EngErr *err)
{
    EngLane *lane = &t->lanes[0];
    const EngBackboneConfig *c = &t->config.model;
    EngDense head = eng_dense(lane, c->tied_head ? ENG_W_EMBED : ENG_W_HEAD, 0, 0);
    int64_t n = c->streams, d = c->hidden;
    EngStatus status = ENG_OK;
    head.turned = c->tied_head, head.in = d, head.out = c->vocab;
    int threads = eng_trainer_alone();
    for (int64_t r = 0; r < rows && !status; r++) {
        EngReal *x = lane->scratch.a, *normed = lane->scratch.b, rstd;
        memcpy(x, streams + r * n * d, (size_t)d * sizeof *x);
        for (int64_t s = 1; s < n; s++) eng_add(x, streams + (r * n + s) * d, x, (size_t)d);
        eng_norm_forward(x, eng_value(lane, ENG_W_FINAL_NORM, 0), c->norm_eps, 1, d, &rstd, normed);
        status = eng_dense_forward(lane->products, &head, normed, 1, logits + r * c->vocab, err);
    }
    eng_trainer_together(threads);
    return status;
}

/* ---- parameters ---- */

bool eng_trainer_tensor(EngTrainer *t, int number, EngTrainTensor *tensor)
{
    if (number < 0 || number >= t->tensors.n) return false;
    const EngTensor *own = &t->tensors.list[number];
    eng_tensor_name(own, tensor->name, sizeof tensor->name);
    tensor->rows = own->rows, tensor->columns = own->columns;
    tensor->values = t->values + own->at;
    tensor->gradient = own->group == ENG_GROUP_TABLE ? NULL : t->lanes[0].gradient + own->at;
    return true;
}

EngStatus eng_trainer_table_gradient(const EngTrainer *t, int module, EngReal *gradient,
                                     EngErr *err)
{
    if (module < 0 || module >= t->config.engram_layers)
        return ENG_FAIL(err, ENG_USAGE, "training: no Engram module %d", module);
    int64_t columns = t->address.n_columns, dims = t->config.row_dims;
    int64_t stride = t->address.n_layers * columns, n = t->config.batch_tokens;
    const EngReal *d_e = t->d_e + module * n * columns * dims;
    memset(gradient, 0, (size_t)(t->address.rows[module] * dims) * sizeof *gradient);
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < columns; c++, d_e += dims)
            eng_add_scaled(gradient + t->batch_rows[i * stride + module * columns + c] * dims, d_e,
                           1, (size_t)dims);
    return ENG_OK;
}

EngStatus eng_trainer_rows(EngTrainer *t, int module, const int32_t *ids, int64_t n, int64_t *rows,
                           EngErr *err)
{
    if (module < 0 || module >= t->config.engram_layers)
        return ENG_FAIL(err, ENG_USAGE, "training: no Engram module %d", module);
    int64_t columns = t->address.n_columns, stride = t->address.n_layers * columns;
    int64_t most = t->config.batch_tokens, length = t->config.seq_len;
    EngStatus status = ENG_OK;
    if (n % length)
        return ENG_FAIL(err, ENG_USAGE, "training: %lld ids are no whole sequences of %lld",
                        (long long)n, (long long)length);
    for (int64_t at = 0; at < n && !status; at += most) {
        int64_t piece = n - at < most ? n - at : most;
        status = eng_trainer_hash(t, ids + at, piece, ~(uint64_t)at, t->batch_rows, err);
        for (int64_t i = 0; i < piece && !status; i++)
            memcpy(rows + (at + i) * columns, t->batch_rows + i * stride + module * columns,
                   (size_t)columns * sizeof *rows);
    }
    return status;
}
