/* Gather time by tier; see gather.h. */
#include "sim/planner/gather.h"

#include <math.h>

#include "sim/planner/knee.h"

const char *eng_gather_term_name(EngGatherTerm term)
{
    static const char *const names[ENG_GATHER_COUNT] = {"bandwidth", "request rate",
                                                        "outstanding requests", "latency"};
    return (unsigned)term < ENG_GATHER_COUNT ? names[term] : NULL;
}

EngRowLayout eng_row_layout(EngRowFormat format, int row_dims)
{
    double scale = (double)eng_row_scale_bytes(format, row_dims);
    return (EngRowLayout){.value_bytes = (double)eng_row_value_bytes(format, row_dims),
                          .value_stride = (double)eng_row_stride_bytes(format, row_dims),
                          .scale_bytes = scale,
                          .scale_stride = scale};
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Offsets in a block are the multiples of the common divisor of stride and granule, each as often:
 * an offset o touches ceil((o + bytes) / granule). */
double eng_blocks_touched(double bytes, double stride, double granule)
{
    int64_t g = (int64_t)granule, step = common_divisor((int64_t)stride, g), n = (int64_t)bytes;
    int64_t blocks = 0;
    if (bytes <= 0) return 0;
    for (int64_t o = 0; o < g; o += step) blocks += (o + n + g - 1) / g;
    return (double)blocks / (double)(g / step);
}

/* Requests and bytes of one row at this tier; without a granule, each piece is one request. */
static void count_row(const EngTier *tier, const EngRowLayout *layout, double *requests,
                      double *bytes)
{
    double scales = layout->scale_rows > 0 ? layout->scale_rows : 1;
    if (eng_tier_has(tier, ENG_TIER_GRANULE)) {
        double granule = tier->fields[ENG_TIER_GRANULE].value;
        *requests = eng_blocks_touched(layout->value_bytes, layout->value_stride, granule) +
                    eng_blocks_touched(layout->scale_bytes, layout->scale_stride, granule) * scales;
        *bytes = *requests * granule;
    } else {
        *requests = (layout->value_bytes > 0) + (layout->scale_bytes > 0) * scales;
        *bytes = layout->value_bytes + layout->scale_bytes * scales;
    }
    *bytes += *requests * tier->fields[ENG_TIER_REQUEST_OVERHEAD].value; /* 0 when not given */
}

/* What the tier's bandwidth is worth to random rows: a measured one is taken as it is. */
EngStatus eng_tier_rate(const EngTier *tier, double *bandwidth, EngErr *err)
{
    const EngQuantity *given = &tier->fields[ENG_TIER_BANDWIDTH];
    double efficiency = 1;
    EngStatus status = eng_tier_need(tier, ENG_TIER_BANDWIDTH, bandwidth, err);
    if (status) return status;
    if (given->origin == ENG_SPEC || eng_tier_has(tier, ENG_TIER_EFFICIENCY))
        status = eng_tier_need(tier, ENG_TIER_EFFICIENCY, &efficiency, err);
    *bandwidth = given->value * efficiency;
    return status;
}

static EngStatus plan_stage(const EngTier *tier, const EngRowLayout *layout, double rows,
                            EngStage *stage, EngErr *err)
{
    bool has_bandwidth = eng_tier_has(tier, ENG_TIER_BANDWIDTH);
    bool has_rate = eng_tier_has(tier, ENG_TIER_REQUEST_RATE);
    double requests, bytes, bandwidth, most = INFINITY;
    *stage = (EngStage){.tier = tier, .rows = rows, .crowd = 1};
    count_row(tier, layout, &requests, &bytes);
    stage->requests = requests * rows;
    stage->bytes = bytes * rows;
    double *latency = &stage->terms[ENG_GATHER_LATENCY];
    EngStatus status = eng_tier_need(tier, ENG_TIER_LATENCY, latency, err);
    if (!status && (has_bandwidth || !has_rate)) status = eng_tier_rate(tier, &bandwidth, err);
    if (status) return status;
    if (has_bandwidth) {
        stage->terms[ENG_GATHER_BANDWIDTH] = stage->bytes / bandwidth;
        most = bandwidth * requests / bytes;
    }
    if (has_rate) {
        double rate = tier->fields[ENG_TIER_REQUEST_RATE].value;
        stage->terms[ENG_GATHER_REQUEST_RATE] = stage->requests / rate;
        most = fmin(most, rate);
    }
    stage->time = stage->requests / most;
    if (eng_tier_has(tier, ENG_TIER_OUTSTANDING)) {
        double under_way = tier->fields[ENG_TIER_OUTSTANDING].value;
        /* No more are sent than the device is fastest with. */
        if (eng_tier_has(tier, ENG_TIER_KNEE_OUTSTANDING))
            under_way = fmin(under_way, tier->fields[ENG_TIER_KNEE_OUTSTANDING].value);
        /* Those sent at once share the one latency that is counted apart. */
        double behind = fmax(0, stage->requests - under_way);
        bool knee = eng_tier_has(tier, ENG_TIER_KNEE_EXPONENT);
        double exponent = knee ? tier->fields[ENG_TIER_KNEE_EXPONENT].value : INFINITY;
        stage->terms[ENG_GATHER_OUTSTANDING] = behind * *latency / under_way;
        stage->hard = behind > 0 && !knee;
        if (behind > 0)
            stage->time = stage->requests / eng_knee_rate(under_way * stage->requests / behind,
                                                          *latency, most, exponent);
    }
    for (int t = 1; t < ENG_GATHER_COUNT; t++)
        if (stage->terms[t] > stage->terms[stage->binding]) stage->binding = (EngGatherTerm)t;
    return ENG_OK;
}

void eng_gather_sum(EngGather *g)
{
    double path = 0, apart = 0;
    g->slowest = 0;
    for (int i = 0; i < g->n_path; i++) {
        if (g->stages[i].rows > 0) path += g->stages[i].terms[ENG_GATHER_LATENCY];
        if (g->stages[i].time > g->stages[g->slowest].time) g->slowest = i;
    }
    path += g->stages[g->slowest].time;
    if (g->n_stages > g->n_path && g->stages[g->n_path].rows > 0)
        apart = g->stages[g->n_path].time + g->stages[g->n_path].terms[ENG_GATHER_LATENCY];
    if (apart > path) g->slowest = g->n_path;
    g->time = fmax(path, apart) > 0 ? g->issue + fmax(path, apart) : 0;
}

EngStatus eng_gather_plan_rows(const EngTier *const *tiers, int n_tiers, const EngRowLayout *layout,
                               const double *rows, double issue, EngGather *gather, EngErr *err)
{
    *gather = (EngGather){.n_stages = n_tiers, .n_path = n_tiers, .issue = issue};
    if (n_tiers < 1 || n_tiers > ENG_MAX_STAGES)
        return ENG_FAIL(err, ENG_USAGE, "gather: %d tiers, 1 to %d are possible", n_tiers,
                        ENG_MAX_STAGES);
    EngRowLayout carried = *layout, values = *layout;
    values.scale_bytes = 0;
    int joins = 0; /* stage from which on scales come along */
    while (layout->scales && joins < n_tiers && tiers[joins] != layout->scales) joins++;
    if (layout->scales && joins == n_tiers) {
        if (n_tiers == ENG_MAX_STAGES)
            return ENG_FAIL(err, ENG_USAGE, "gather: %d tiers and scales in another", n_tiers);
        carried.value_bytes = 0;
        gather->n_stages = ++n_tiers;
    }
    for (int i = 0; i < n_tiers; i++) {
        if (!(rows[i] >= 0) || !(issue >= 0) || isinf(rows[i]) || isinf(issue))
            return ENG_FAIL(err, ENG_USAGE, "gather: %g rows, %g s to issue them", rows[i], issue);
        bool on_path = i < gather->n_path;
        bool bare = i < joins || (on_path && layout->values_from && i >= layout->values_from);
        EngStatus status = plan_stage(on_path ? tiers[i] : layout->scales,
                                      bare ? &values : &carried, rows[i], &gather->stages[i], err);
        if (status) return status;
    }
    eng_gather_sum(gather);
    return ENG_OK;
}

EngStatus eng_gather_plan(const EngTier *const *tiers, int n_tiers, const EngRowLayout *layout,
                          double rows, double issue, EngGather *gather, EngErr *err)
{
    double each[ENG_MAX_STAGES + 1];
    for (int i = 0; i <= ENG_MAX_STAGES; i++) each[i] = rows;
    return eng_gather_plan_rows(tiers, n_tiers, layout, each, issue, gather, err);
}
