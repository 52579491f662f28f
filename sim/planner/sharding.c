/* Sharding schemes; see sharding.h. */
#include "sim/planner/sharding.h"

#include <math.h>
#include <stddef.h>

#define BF16_BYTES 2
#define ID_BYTES   8

const char *eng_sharding_name(EngSharding scheme)
{
    static const char *const names[ENG_SHARD_COUNT] = {"all-reduce", "all-gather", "all-to-all",
                                                       "heads", "peer-read"};
    return (unsigned)scheme < ENG_SHARD_COUNT ? names[scheme] : NULL;
}

bool eng_sharding_splits_tokens(EngSharding scheme)
{
    return scheme == ENG_SHARD_ALL_TO_ALL || scheme == ENG_SHARD_PEER_READ;
}

bool eng_sharding_is_raw(EngSharding scheme)
{
    return scheme == ENG_SHARD_ALL_GATHER || eng_sharding_splits_tokens(scheme);
}

/* That a rank gets from the others for its own tokens. */
static double rows_of_others(const EngShardShape *s)
{
    return (double)(s->ranks - 1) / s->ranks * s->tokens / s->ranks * s->columns * s->unique;
}

static double row_bytes(const EngShardShape *s)
{
    return s->row.value_bytes + s->row.scale_bytes;
}

EngStatus eng_shard_bytes(EngSharding scheme, const EngShardShape *s, double *bytes, EngErr *err)
{
    if (s->ranks < 1 || !(s->tokens >= 0) || s->columns < 1 || s->row_dims < 1 ||
        !(row_bytes(s) > 0))
        return ENG_FAIL(err, ENG_USAGE, "sharding: %d ranks, %g tokens, %d columns of %d dims",
                        s->ranks, s->tokens, s->columns, s->row_dims);
    double others = (double)(s->ranks - 1) / s->ranks, rows = s->tokens * s->columns;
    switch (scheme) {
    case ENG_SHARD_ALL_REDUCE:
        *bytes = 2 * others * rows * s->row_dims * BF16_BYTES;
        return ENG_OK;
    case ENG_SHARD_ALL_GATHER:
        *bytes = others * rows * row_bytes(s);
        return ENG_OK;
    case ENG_SHARD_ALL_TO_ALL:
    case ENG_SHARD_PEER_READ:
        if (!(s->unique > 0 && s->unique <= 1))
            return ENG_FAIL(err, ENG_USAGE, "sharding: a unique share of %g", s->unique);
        *bytes = rows_of_others(s) * row_bytes(s);
        return ENG_OK;
    case ENG_SHARD_HEADS:
        *bytes = 2 * others * s->tokens * (double)s->projected * BF16_BYTES;
        return ENG_OK;
    default:
        return ENG_FAIL(err, ENG_USAGE, "sharding: no scheme %d", (int)scheme);
    }
}

/* Of the fullest, who is asked for more than others where ranks do not divide the columns. */
static EngStatus peer_time(const EngShardShape *s, const EngTier *link, double *seconds,
                           EngErr *err)
{
    EngGather gather;
    double fullest = eng_shard_largest_load(s->columns, s->ranks, s->tokens);
    double rows = fmin(fullest, s->tokens * s->columns) * s->unique * (s->ranks - 1) / s->ranks;
    EngStatus status = eng_gather_plan(&link, 1, &s->row, rows, 0, &gather, err);
    *seconds = gather.time;
    return status;
}

EngStatus eng_shard_time(EngSharding scheme, const EngShardShape *s, const EngTier *link,
                         double *seconds, EngErr *err)
{
    double bytes = 0, steps = s->ranks - 1, latency, rate;
    EngStatus status = eng_shard_bytes(scheme, s, &bytes, err);
    if (!status && scheme == ENG_SHARD_PEER_READ) return peer_time(s, link, seconds, err);
    if (!status) status = eng_tier_need(link, ENG_TIER_LATENCY, &latency, err);
    if (!status) status = eng_tier_rate(link, &rate, err);
    if (status) return status;
    if (scheme != ENG_SHARD_ALL_GATHER) steps *= 2;
    if (scheme == ENG_SHARD_ALL_TO_ALL) bytes *= 1 + ID_BYTES / row_bytes(s);
    *seconds = steps * latency + bytes / rate;
    return ENG_OK;
}

double eng_shard_largest_load(int columns, int ranks, double tokens)
{
    double mean = tokens * columns / ranks;
    if (columns % ranks == 0) return mean;
    return mean + sqrt(2 * mean * log(ranks));
}

double eng_cost_per_million(double price_per_hour, double tokens_per_s)
{
    return price_per_hour / (3600 * tokens_per_s) * 1e6;
}
