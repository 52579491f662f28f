/* Parameters of an arm, counted as the paper does, and arms of equal budgets; see train.h. */
#include <inttypes.h>
#include <math.h>

#include "bench/backbone/train_parts.h"
#include "kernels/address/primes.h"

EngStatus eng_train_account(const EngTrainConfig *config, EngTrainAccount *account, EngErr *err)
{
    const EngBackboneConfig *c = &config->model;
    EngAddress address;
    EngStatus status = eng_train_check(config, err);
    if (!status) status = eng_train_address(config, &address, err);
    if (status) return status;
    *account = (EngTrainAccount){0};
    int64_t matrices = 0; /* elements that a token multiplies with, without the head */
    for (int what = 0; what < ENG_W_TRAIN_COUNT; what++) {
        int64_t rows, columns;
        eng_train_shape(config, what, &rows, &columns);
        int64_t n = rows * columns;
        if (what == ENG_W_EMBED || what == ENG_W_HEAD) {
            account->vocabulary += n;
        } else if (what == ENG_W_TABLE) {
            for (int m = 0; m < config->engram_layers; m++) account->table_rows += address.rows[m];
            account->tables = account->table_rows * columns;
        } else if (what > ENG_W_COUNT - 1) {
            account->engram_dense += n * config->engram_layers;
        } else if (what == ENG_W_EXPERT_UP || what == ENG_W_EXPERT_DOWN) {
            account->expert += n * c->layers;
        } else if (what != ENG_W_ROUTER_BIAS) { /* a rule sets it, not the gradient */
            account->active += what == ENG_W_FINAL_NORM ? n : n * c->layers;
        }
    }
    account->active += account->engram_dense + account->expert * c->top_k;
    account->total = account->active + account->expert * (c->experts - c->top_k) + account->tables;
    matrices = account->active + (int64_t)c->vocab * c->hidden;
    double keys = ((double)config->seq_len + 1) / 2;
    account->flops_per_token =
        6 * (double)matrices + 12.0 * c->layers * c->heads * c->head_dim * keys;
    return ENG_OK;
}

/* Rows of all modules when heads start at `start`. */
static EngStatus rows_from(const EngTrainConfig *config, int64_t start, int64_t *rows, EngErr *err)
{
    EngTrainConfig c = *config;
    EngAddress address;
    c.row_start = start;
    EngStatus status = eng_train_address(&c, &address, err);
    *rows = 0;
    for (int m = 0; m < c.engram_layers && !status; m++) *rows += address.rows[m];
    return status;
}

EngStatus eng_train_size_tables(EngTrainConfig *config, int64_t parameters, EngErr *err)
{
    if (!config->engram_layers)
        return ENG_FAIL(err, ENG_USAGE, "training: no Engram layers to give rows to");
    int heads = (config->max_order - config->min_order + 1) * config->engram_heads;
    int64_t wanted = parameters / config->row_dims, rows, low = 2;
    int64_t high = wanted / (heads > 0 ? heads * config->engram_layers : 1) + 1;
    EngStatus status = rows_from(config, low, &rows, err);
    if (status) return status;
    if (wanted < rows)
        return ENG_FAIL(err, ENG_USAGE,
                        "training: %" PRId64
                        " parameters left for tables; the smallest have %" PRId64,
                        parameters, rows * config->row_dims);
    while (low < high && !status) { /* the largest start that keeps within */
        int64_t middle = low + (high - low + 1) / 2;
        status = rows_from(config, middle, &rows, err);
        if (rows <= wanted)
            low = middle;
        else
            high = middle - 1;
    }
    if (status) return status;
    int64_t below, above;
    status = rows_from(config, low, &below, err);
    if (!status) status = rows_from(config, low + 1, &above, err);
    config->row_start = above - wanted < wanted - below ? low + 1 : low;
    return status;
}

EngStatus eng_train_allocate(const EngTrainConfig *base, double rho, EngTrainConfig *arm,
                             double *residual, EngErr *err)
{
    EngTrainAccount whole, own;
    if (!(rho >= 0 && rho <= 1))
        return ENG_FAIL(err, ENG_USAGE, "training: rho=%g: not from 0 to 1", rho);
    EngTrainConfig moe = *base;
    moe.engram_layers = 0;
    EngStatus status = eng_train_account(&moe, &whole, err);
    if (status) return status;
    int top_k = base->model.top_k;
    arm->model.experts = top_k + (int)lround(rho * (base->model.experts - top_k));
    arm->row_start = 2;
    status = eng_train_account(arm, &own, err);
    if (status) return status;
    if (arm->engram_layers && arm->rows != ENG_ROWS_ONE) {
        status = eng_train_size_tables(arm, whole.total - (own.total - own.tables), err);
        if (status) return eng_err_prefix(err, "rho=%g with %d experts", rho, arm->model.experts);
        status = eng_train_account(arm, &own, err);
    }
    *residual = (double)own.total / (double)whole.total - 1;
    return status;
}
