/* See split_plan.h. */
#include "bench/experiments/split_plan.h"

#include <inttypes.h>
#include <math.h>

#include "bench/experiments/shape.h"

#define WIDTH_STEP 16 /* of an expert: a vector */
#define VOCAB      4096
#define ROW_PASSES 4 /* towards the rows per head whose primes add up to the target */

static EngBackboneConfig config_of(const EngPoint *point, const EngPreset *preset)
{
    EngBackboneConfig config = eng_backbone_default();
    config.layers = (int)eng_point_int(point, "layers");
    config.hidden = preset->hidden;
    config.streams = preset->streams;
    config.head_dim = preset->hidden % 128 ? preset->hidden : 128;
    config.heads = preset->hidden / config.head_dim;
    config.top_k = (int)eng_point_int(point, "top_k");
    config.experts = config.top_k;
    config.expert_width = WIDTH_STEP;
    config.vocab = VOCAB;
    config.threads = (int)eng_point_int(point, "threads");
    config.max_tokens = config.max_len = eng_point_int(point, "tokens");
    config.max_seqs = 1;
    return config;
}

/* The expert width that comes nearest to the active parameters asked for. */
static EngStatus solve_width(EngBackboneConfig *config, double active, EngErr *err)
{
    EngBackboneSize narrow, wide;
    EngBackboneConfig twice = *config;
    twice.expert_width = 2 * WIDTH_STEP;
    EngStatus status = eng_backbone_size(config, &narrow, err);
    if (!status) status = eng_backbone_size(&twice, &wide, err);
    if (status) return status;
    double step = (double)(wide.active - narrow.active);
    double steps = 1 + floor((active - (double)narrow.active) / step + 0.5);
    if (steps < 1)
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "active=%.0f: attention, router and the narrowest experts take %" PRId64,
                        active, narrow.active);
    if (steps > INT32_MAX / WIDTH_STEP)
        return ENG_FAIL(err, ENG_USAGE, "active=%.0f: experts would be too wide", active);
    config->expert_width = (int)steps * WIDTH_STEP;
    return ENG_OK;
}

/* The number of experts of the pure MoE, and what one adds (its router row included). */
static EngStatus solve_experts(EngBackboneConfig *config, double total, double *each, EngErr *err)
{
    EngBackboneSize fewest, one_more;
    EngBackboneConfig more = *config;
    more.experts++;
    EngStatus status = eng_backbone_size(config, &fewest, err);
    if (!status) status = eng_backbone_size(&more, &one_more, err);
    if (status) return status;
    *each = (double)(one_more.total - fewest.total);
    double extra = floor((total - (double)fewest.total) / *each + 0.5);
    if (extra < 1)
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "total=%.0f leaves no expert beside the %d that a token uses", total,
                        config->top_k);
    if (extra > 1 << 20) return ENG_FAIL(err, ENG_USAGE, "total=%.0f: too many experts", total);
    config->experts = config->top_k + (int)extra;
    return ENG_OK;
}

/* Heads are prime-sized, each module's after those of the one before: rows per head are moved until
 * the sum of all comes nearest to the target. */
static EngStatus solve_rows(EngAddressSpec *spec, double target, int64_t *rows, EngErr *err)
{
    EngAddress address;
    double columns = (double)spec->n_layers * spec->heads * (spec->max_order - spec->min_order + 1);
    double start = target / columns, nearest = INFINITY;
    EngStatus status = ENG_OK;
    for (int pass = 0; !status && pass < ROW_PASSES; pass++) {
        int64_t sum = 0;
        EngAddressSpec trial = *spec;
        trial.start = start < 2 ? 2 : (int64_t)start;
        status = eng_address_build(&trial, &address, err);
        if (status) break;
        for (int i = 0; i < address.n_layers; i++) sum += address.rows[i];
        if (fabs((double)sum - target) < nearest) {
            nearest = fabs((double)sum - target);
            spec->start = trial.start;
            *rows = sum;
        }
        start += (target - (double)sum) / columns;
    }
    return status;
}

static EngStatus fill_tables(const EngPoint *point, const EngPreset *preset, double freed,
                             EngSplit *split, EngErr *err)
{
    int64_t rows = 0;
    EngAddressSpec spec = preset->address;
    spec.heads = (int)eng_point_int(point, "heads");
    int64_t order_dims = eng_point_int(point, "order_dims");
    EngStatus status =
        eng_orders_parse(eng_point_word(point, "orders"), &spec.min_order, &spec.max_order, err);
    if (status) return status;
    if (order_dims % spec.heads)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "K = %d does not divide order_dims=%" PRId64,
                        spec.heads, order_dims);
    int64_t inputs = order_dims * (spec.max_order - spec.min_order + 1);
    int64_t outputs = (int64_t)(preset->streams + 1) * preset->hidden;
    split->modules = spec.n_layers;
    split->row_dims = (int)(order_dims / spec.heads);
    split->projections =
        spec.n_layers * (inputs * outputs + 2 * (int64_t)preset->streams * preset->hidden);
    double values = freed - (double)split->projections;
    if (values < 2.0 * (double)(spec.n_layers * inputs))
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "rho=%s frees %.0f parameters, of which the projections take %" PRId64
                        ": no table is left",
                        eng_point_word(point, "rho"), freed, split->projections);
    status = solve_rows(&spec, values / split->row_dims, &rows, err);
    split->rows_per_head = spec.start;
    split->tables = rows * split->row_dims;
    return status;
}

EngStatus eng_split_plan(const EngPoint *point, EngSplit *split, EngErr *err)
{
    EngPreset preset;
    EngBackboneSize size;
    double each, rho = eng_point_real(point, "rho");
    *split = (EngSplit){0};
    EngStatus status = eng_preset_find(eng_point_word(point, "preset"), &preset, err);
    if (status) return status;
    EngBackboneConfig *config = &split->backbone;
    *config = config_of(point, &preset);
    status = solve_width(config, eng_point_real(point, "active"), err);
    if (!status) status = solve_experts(config, eng_point_real(point, "total"), &each, err);
    if (!status) status = eng_backbone_size(config, &size, err);
    if (status) return status;
    split->experts_at_1 = config->experts;
    split->total_at_1 = size.total;
    split->active_at_1 = size.active;
    split->expert = size.expert * config->layers;
    config->experts = config->top_k + (int)lround(rho * (config->experts - config->top_k));
    int given_up = split->experts_at_1 - config->experts;
    if (rho < 1) status = fill_tables(point, &preset, each * given_up, split, err);
    if (!status) status = eng_backbone_size(config, &size, err);
    split->total = size.total + split->tables + split->projections;
    split->active = size.active + split->projections;
    return status;
}

double eng_split_rho(const EngSplit *split)
{
    const EngBackboneConfig *config = &split->backbone;
    double inactive = (double)(config->experts - config->top_k) * (double)split->expert;
    return inactive + (double)split->tables > 0 ? inactive / (inactive + (double)split->tables) : 1;
}
