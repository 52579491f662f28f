/* The training side; see training.h. */
#include "sim/planner/training.h"

#include <math.h>

#include "base/mem.h"

static EngStatus check(const EngTrainingInput *in, EngErr *err)
{
    if (in->group < 1 || in->ranks < 1 || in->ranks % in->group || in->ranks_per_node < 1)
        return ENG_FAIL(err, ENG_USAGE,
                        "training: groups of %d in %d ranks, %d to a node: a group must divide the "
                        "ranks",
                        in->group, in->ranks, in->ranks_per_node);
    if (!(in->unique > 0 && in->unique <= 1))
        return ENG_FAIL(err, ENG_USAGE, "training: a unique share of %g, not in (0, 1]",
                        in->unique);
    if (!(in->local_tokens > 0 && in->near_rate > 0 && in->far_rate > 0 && in->state_bytes >= 0 &&
          in->gradient_bytes > 0 && in->vision >= 0 && in->backward >= 0))
        return ENG_FAIL(err, ENG_USAGE,
                        "training: %g tokens a rank, links of %g and %g B/s, %g and %g B a value",
                        in->local_tokens, in->near_rate, in->far_rate, in->state_bytes,
                        in->gradient_bytes);
    return ENG_OK;
}

/* Both at once, the slower one counts. */
static double over_links(const EngTrainingInput *in, double bytes, double far)
{
    return bytes * fmax(far / in->far_rate, (1 - far) / in->near_rate);
}

EngStatus eng_training_plan(const EngTrainingInput *in, EngTraining *t, EngErr *err)
{
    EngAddress address;
    EngStatus status = check(in, err);
    if (!status) status = eng_address_build(&in->preset->address, &address, err);
    if (status) return status;
    double rows = 0, dims = in->preset->row_dims, group = in->group;
    double row_bytes = (double)(eng_row_value_bytes(in->preset->row_format, in->preset->row_dims) +
                                eng_row_scale_bytes(in->preset->row_format, in->preset->row_dims));
    for (int l = 0; l < address.n_layers; l++) rows += (double)address.rows[l];
    double read = in->local_tokens * address.n_columns * address.n_layers * in->unique;
    double node = in->ranks_per_node, near = fmin(group, node);
    *t = (EngTraining){.replicas = in->ranks / in->group,
                       .table_bytes = rows / group * row_bytes,
                       .state_bytes = rows / group * dims * in->state_bytes,
                       .far_share = group > 1 ? (group - near) / (group - 1) : 0,
                       .prefetch_buffer = read * row_bytes};
    t->state_bytes /= t->replicas;
    double away = (group - 1) / group;
    t->fetch_bytes = read * away * row_bytes;
    t->return_bytes = read * away * dims * in->gradient_bytes;
    /* Rows of its shard that the batch of its group touched, to the replicas that keep their
     * state. */
    t->sync_bytes =
        fmin(rows / group, read) * dims * in->gradient_bytes * (t->replicas - 1) / t->replicas;
    t->fetch = over_links(in, t->fetch_bytes, t->far_share);
    t->give_back = over_links(in, t->return_bytes, t->far_share);
    /* Replicas of a shard are a group apart: so many of the others are on its node. */
    double beside = fmin(t->replicas, fmax(1, floor(node / group))) - 1;
    t->sync = over_links(in, t->sync_bytes, 1 - beside / fmax(1, t->replicas - 1));
    t->exposed = fmax(0, t->fetch - in->vision) + fmax(0, t->give_back + t->sync - in->backward);
    return ENG_OK;
}

EngStatus eng_stage_balance(int n, double layer_bytes, const int *modules, int n_modules,
                            double module_bytes, int stages, double *largest_over_mean, EngErr *err)
{
    if (n < 1 || stages < 1 || stages > n || !(layer_bytes > 0) || !(module_bytes >= 0))
        return ENG_FAIL(err, ENG_USAGE, "stages: %d of %d layers", stages, n);
    double largest = 0, all = n * layer_bytes + n_modules * module_bytes;
    for (int m = 0; m < n_modules; m++)
        if (modules[m] < 0 || modules[m] >= n)
            return ENG_FAIL(err, ENG_USAGE, "stages: a module at layer %d of %d", modules[m], n);
    for (int s = 0; s < stages; s++) {
        int from = (int)((int64_t)s * n / stages), to = (int)((int64_t)(s + 1) * n / stages);
        double bytes = (to - from) * layer_bytes;
        for (int m = 0; m < n_modules; m++)
            if (modules[m] >= from && modules[m] < to) bytes += module_bytes;
        largest = fmax(largest, bytes);
    }
    *largest_over_mean = largest / (all / stages);
    return ENG_OK;
}
