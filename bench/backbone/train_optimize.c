/* Updates of a trained arm's parameters through the optimizer kernels (engram/kernels.h): runs of
 * tensors that get the same rule, and the tables' rows, whose gradients were buffered. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "bench/backbone/grad_pointwise.h"
#include "bench/backbone/train_parts.h"

#define SINKHORN_GAMMA 0.18f /* engram_facts section 7 */
#define SINKHORN_TAU   1e-3f
#define SINKHORN_STEPS 11
#define MUON_RMS       0.18f
#define MUON_STEPS     5
#define LEAST_EPS      1e-20f

/* One kernel's share of the parameters. */
typedef struct Update {
    const EngKernel *kernel;
    void *state;
    EngProblem problem;
    int64_t at, n;     /* elements of all parameters */
    int64_t first_row; /* into row_steps and row_norms */
    int module;        /* of a table, else -1 */
    bool head;         /* to be turned, so that the vocabulary counts its rows */
} Update;

struct EngOptimizer {
    Update *updates;
    int n;
    float *first, *second; /* [all] mean and mean square, or momentum */
    float *row_norms;      /* [rows of tables, embedding and head] */
    int32_t *row_steps;
    int64_t all, rows;
    float *turned;           /* [vocab, d] gradient of the head */
    const EngKernel *gather; /* of tables' gradients, one state for each module */
    EngProblem gathers[ENG_MAX_LAYERS];
    void *gather_states[ENG_MAX_LAYERS];
    int64_t *touched, n_touched; /* [batch_tokens * columns] */
    float *d_rows;
};

/* ---- which kernel ---- */

static EngTrainRule rule_of(const EngTrainConfig *c, const EngTensor *tensor)
{
    switch (tensor->group) {
    case ENG_GROUP_VOCABULARY:
        return c->vocab_rule;
    case ENG_GROUP_TABLE:
        return c->table_rule;
    case ENG_GROUP_MATRIX:
        return c->rule;
    default:
        return c->rule == ENG_RULE_SGD ? ENG_RULE_SGD : ENG_RULE_ADAMW;
    }
}

static EngProblem sinkhorn_of(const EngTrainConfig *c, int64_t rows, int64_t dims, int64_t touched)
{
    EngProblem p = {.op = ENG_OP_SINKHORN, .threads = 1};
    if (touched > rows) touched = rows;
    p.u.sinkhorn = (EngSinkhornProblem){.rows = rows,
                                        .row_dims = (int)dims,
                                        .max_touched = touched,
                                        .beta = (float)c->momentum,
                                        .gamma = SINKHORN_GAMMA,
                                        .tau = SINKHORN_TAU,
                                        .eps = LEAST_EPS,
                                        .balance = SINKHORN_STEPS,
                                        .n_groups = 1};
    return p;
}

/* Of one tensor, decay for matrices alone. */
static EngProblem problem_of(const EngTrainer *t, const EngTensor *tensor)
{
    const EngTrainConfig *c = &t->config;
    int64_t n = tensor->rows * tensor->columns;
    bool table = tensor->group == ENG_GROUP_TABLE, head = tensor->what == ENG_W_HEAD;
    float decay = tensor->group == ENG_GROUP_MATRIX ? (float)c->weight_decay : 0;
    EngProblem p = {.threads = 1};
    switch (rule_of(c, tensor)) {
    case ENG_RULE_MUON:
        p.op = ENG_OP_MUON;
        p.u.muon = (EngMuonProblem){.count = 1,
                                    .rows = (int)tensor->rows,
                                    .cols = (int)tensor->columns,
                                    .momentum = (float)c->momentum,
                                    .decay = decay,
                                    .rms = MUON_RMS,
                                    .ns_steps = MUON_STEPS};
        return p;
    case ENG_RULE_SGD:
        p.op = ENG_OP_SGD;
        p.u.sgd = (EngSgdProblem){n, table ? 0 : (float)c->momentum, decay, false};
        return p;
    case ENG_RULE_SINKHORN:
        if (table)
            return sinkhorn_of(c, tensor->rows, tensor->columns,
                               c->batch_tokens * t->address.n_columns);
        return sinkhorn_of(c, head ? tensor->columns : tensor->rows,
                           head ? tensor->rows : tensor->columns, c->model.vocab);
    default:
        if (table) {
            p.op = ENG_OP_SPARSE_ADAM;
            p.u.sparse_adam =
                (EngSparseAdamProblem){tensor->rows, (int)tensor->columns, (float)c->beta1,
                                       (float)c->beta2, (float)c->adam_eps};
        } else {
            p.op = ENG_OP_ADAMW;
            p.u.adamw =
                (EngAdamWProblem){n, (float)c->beta1, (float)c->beta2, (float)c->adam_eps, decay};
        }
        return p;
    }
}

/* Makes `to` do the work of `next`, which follows it, as well. */
static bool merge(EngProblem *to, const EngProblem *next)
{
    if (to->op != next->op) return false;
    if (to->op == ENG_OP_ADAMW && to->u.adamw.decay == next->u.adamw.decay) {
        to->u.adamw.n += next->u.adamw.n;
        return true;
    }
    if (to->op == ENG_OP_SGD && to->u.sgd.decay == next->u.sgd.decay &&
        to->u.sgd.momentum == next->u.sgd.momentum) {
        to->u.sgd.n += next->u.sgd.n;
        return true;
    }
    if (to->op == ENG_OP_MUON && to->u.muon.rows == next->u.muon.rows &&
        to->u.muon.cols == next->u.muon.cols) {
        to->u.muon.count++;
        return true;
    }
    return false;
}

static void list_updates(const EngTrainer *t, struct EngOptimizer *o)
{
    const EngTrainConfig *c = &t->config;
    Update *last = NULL;
    for (int i = 0; i < t->tensors.n; i++) {
        const EngTensor *tensor = &t->tensors.list[i];
        bool table = tensor->group == ENG_GROUP_TABLE, head = tensor->what == ENG_W_HEAD;
        int64_t n = tensor->rows * tensor->columns;
        EngProblem problem = problem_of(t, tensor);
        bool by_row = table || problem.op == ENG_OP_SINKHORN;
        if (table && c->rows == ENG_ROWS_FROZEN) continue;
        if (!by_row && last && last->at + last->n == tensor->at && last->module < 0 &&
            merge(&last->problem, &problem)) {
            last->n += n;
            continue;
        }
        last = &o->updates[o->n++];
        *last = (Update){.problem = problem,
                         .at = tensor->at,
                         .n = n,
                         .first_row = o->rows,
                         .module = table ? tensor->layer : -1,
                         .head = head && problem.op == ENG_OP_SINKHORN};
        if (by_row) o->rows += head ? tensor->columns : tensor->rows;
    }
}

/* ---- life ---- */

static EngStatus make_gathers(const EngTrainer *t, struct EngOptimizer *o, EngErr *err)
{
    EngStatus status = ENG_OK;
    o->gather = eng_kernel_find(ENG_OP_BACK_GATHER, "sort");
    for (int m = 0; m < t->config.engram_layers && !status; m++) {
        EngProblem *p = &o->gathers[m];
        *p = (EngProblem){.op = ENG_OP_BACK_GATHER, .threads = 1};
        p->u.back_gather = (EngBackGatherProblem){t->address.rows[m], t->config.row_dims,
                                                  t->address.n_columns, t->config.batch_tokens};
        status = o->gather->supports(p, err);
        if (!status && o->gather->create) status = o->gather->create(p, &o->gather_states[m], err);
    }
    return status;
}

static EngStatus make_update(Update *u, EngErr *err)
{
    u->kernel =
        eng_kernel_find(u->problem.op, u->problem.op == ENG_OP_MUON ? "onednn" : "portable");
    if (!u->kernel) return ENG_FAIL(err, ENG_INTERNAL, "no kernel for an update");
    EngStatus status = u->kernel->supports(&u->problem, err);
    return status || !u->kernel->create ? status : u->kernel->create(&u->problem, &u->state, err);
}

EngStatus eng_optimizer_create(const EngTrainer *t, struct EngOptimizer **optimizer, EngErr *err)
{
    struct EngOptimizer *o = NULL;
    EngStatus status = eng_alloc_or((void **)&o, 1, sizeof *o, "an optimizer", err);
    *optimizer = o;
    if (status) return status;
    size_t touched = (size_t)(t->config.batch_tokens * t->address.n_columns);
    bool turns = t->config.vocab_rule == ENG_RULE_SINKHORN && t->head_turned;
    o->all = t->tensors.all;
    status = eng_alloc_or((void **)&o->updates, (size_t)t->tensors.n, sizeof *o->updates,
                          "an optimizer", err);
    if (status) return status;
    list_updates(t, o);
    const struct {
        void **at;
        size_t n, size;
    } blocks[] = {
        {(void **)&o->first, (size_t)o->all, sizeof *o->first},
        {(void **)&o->second, (size_t)o->all, sizeof *o->second},
        {(void **)&o->row_norms, (size_t)o->rows, sizeof *o->row_norms},
        {(void **)&o->row_steps, (size_t)o->rows, sizeof *o->row_steps},
        {(void **)&o->turned, turns ? (size_t)(t->config.model.vocab * t->config.model.hidden) : 0,
         sizeof *o->turned},
        {(void **)&o->touched, touched, sizeof *o->touched},
        {(void **)&o->d_rows, touched * (size_t)t->config.row_dims, sizeof *o->d_rows},
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks && !status; i++)
        status = eng_alloc_or(blocks[i].at, blocks[i].n, blocks[i].size, "an optimizer", err);
    for (int i = 0; i < o->n && !status; i++) status = make_update(&o->updates[i], err);
    return status ? status : make_gathers(t, o, err);
}

void eng_optimizer_destroy(struct EngOptimizer *o)
{
    if (!o) return;
    for (int i = 0; i < o->n; i++)
        if (o->updates[i].kernel && o->updates[i].kernel->destroy)
            o->updates[i].kernel->destroy(o->updates[i].state);
    for (int m = 0; m < ENG_MAX_LAYERS; m++)
        if (o->gather && o->gather->destroy) o->gather->destroy(o->gather_states[m]);
    void *blocks[] = {o->updates, o->first,  o->second, o->row_norms, o->row_steps, o->turned,
                      o->touched, o->d_rows, o};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) eng_free(blocks[i]);
}

bool eng_optimizer_block(struct EngOptimizer *o, int block, void **bytes, size_t *n)
{
    void *const blocks[] = {o->first, o->second, o->row_norms, o->row_steps};
    const size_t sizes[] = {(size_t)o->all * sizeof *o->first, (size_t)o->all * sizeof *o->second,
                            (size_t)o->rows * sizeof *o->row_norms,
                            (size_t)o->rows * sizeof *o->row_steps};
    if (block < 0 || block >= (int)(sizeof blocks / sizeof *blocks)) return false;
    *bytes = blocks[block];
    *n = sizes[block];
    return true;
}

/* ---- a step ---- */

static EngArgs dense_args(const EngTrainer *t, const Update *u, float rate)
{
    struct EngOptimizer *o = t->optimizer;
    float *w = t->values + u->at, *m = o->first + u->at, *v = o->second + u->at;
    const float *grad = t->lanes[0].gradient + u->at;
    switch (u->problem.op) {
    case ENG_OP_MUON:
        return (EngArgs){.u.muon = {w, grad, m, rate}};
    case ENG_OP_SGD:
        return (EngArgs){.u.sgd = {w, grad, m, rate}};
    case ENG_OP_SINKHORN:
        return (EngArgs){.u.sinkhorn = {.w = w,
                                        .grad = grad,
                                        .n_touched = u->problem.u.sinkhorn.rows,
                                        .momentum = m,
                                        .row_norms = o->row_norms + u->first_row,
                                        .row_steps = o->row_steps + u->first_row,
                                        .rate = rate,
                                        .step = t->step + 1}};
    default:
        return (EngArgs){.u.adamw = {w, grad, m, v, rate, t->step + 1}};
    }
}

static void turn_back(const float *from, int64_t rows, int64_t columns, float *to)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) to[c * rows + r] = from[r * columns + c];
}

static EngStatus update_dense(EngTrainer *t, const Update *u, float rate, EngErr *err)
{
    int64_t d = t->config.model.hidden, vocab = t->config.model.vocab;
    EngArgs args = dense_args(t, u, rate);
    if (u->head) { /* head_turned is the head the way that the rule wants it */
        turn_back(args.u.sinkhorn.grad, d, vocab, t->optimizer->turned);
        args.u.sinkhorn.grad = t->optimizer->turned;
        args.u.sinkhorn.w = t->head_turned;
    }
    EngStatus status = u->kernel->run(u->state, &u->problem, &args, err);
    if (u->head && !status) turn_back(t->head_turned, vocab, d, t->values + u->at);
    return status;
}

/* Plain descent on the rows that have a gradient. */
static void descend(float *w, const int64_t *touched, int64_t n, const float *grad, int64_t dims,
                    float rate)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < dims; k++) w[touched[i] * dims + k] -= rate * grad[i * dims + k];
}

static EngStatus update_table(EngTrainer *t, const Update *u, float rate, EngErr *err)
{
    struct EngOptimizer *o = t->optimizer;
    int64_t columns = t->address.n_columns, dims = t->config.row_dims;
    float *w = t->values + u->at, *m = o->first + u->at, *v = o->second + u->at;
    EngArgs args = {.u.back_gather = {t->batch_rows + u->module * columns,
                                      t->address.n_layers * columns,
                                      t->d_e + u->module * t->config.batch_tokens * columns * dims,
                                      o->touched, &o->n_touched, o->d_rows}};
    EngStatus status =
        o->gather->run(o->gather_states[u->module], &o->gathers[u->module], &args, err);
    if (status) return status;
    if (u->problem.op == ENG_OP_SGD) {
        descend(w, o->touched, o->n_touched, o->d_rows, dims, rate);
        return ENG_OK;
    }
    if (u->problem.op == ENG_OP_SINKHORN)
        args = (EngArgs){.u.sinkhorn = {w, o->touched, o->n_touched, o->d_rows, m,
                                        o->row_norms + u->first_row, o->row_steps + u->first_row,
                                        rate, t->step + 1}};
    else
        args = (EngArgs){.u.sparse_adam = {w, o->touched, o->n_touched, o->d_rows, m, v,
                                           o->row_steps + u->first_row, rate, t->step + 1}};
    return u->kernel->run(u->state, &u->problem, &args, err);
}

EngStatus eng_optimizer_step(EngTrainer *t, double lr, double *norm, EngErr *err)
{
    struct EngOptimizer *o = t->optimizer;
    float *gradient = t->lanes[0].gradient;
    EngStatus status = ENG_OK;
    *norm = sqrt((double)eng_dot(gradient, gradient, t->tensors.dense));
    if (!isfinite(*norm)) return ENG_OK; /* the run ends as failed */
    if (t->config.clip > 0 && *norm > t->config.clip)
        eng_scale(gradient, (float)(t->config.clip / *norm), t->tensors.dense);
    for (int i = 0; i < o->n && !status; i++) {
        const Update *u = &o->updates[i];
        if (u->module < 0)
            status = update_dense(t, u, (float)lr, err);
        else
            status = update_table(t, u, (float)(lr * t->config.table_lr), err);
    }
    return status;
}
