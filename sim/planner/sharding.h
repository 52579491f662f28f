/* Traffic and balance of a table that ranks share, and what a token costs. */
#ifndef ENG_SIM_PLANNER_SHARDING_H
#define ENG_SIM_PLANNER_SHARDING_H

#include "sim/planner/gather.h"

typedef enum EngSharding {
    ENG_SHARD_ALL_REDUCE = 0, /* row ranges; decoded rows of all ranks are summed (the reference) */
    ENG_SHARD_ALL_GATHER,     /* raw rows and scales to ranks that hold the same tokens */
    ENG_SHARD_ALL_TO_ALL,     /* the same to ranks that hold different tokens */
    ENG_SHARD_HEADS,          /* heads; the products with wkv are summed */
    ENG_SHARD_PEER_READ,      /* each rank reads the raw rows of its own tokens from who holds them,
                                 request by request: no collective */
    ENG_SHARD_COUNT
} EngSharding;

typedef struct EngShardShape {
    int ranks;
    double tokens;         /* of a step, over all ranks */
    int columns, row_dims; /* rows of a token, values of a row */
    EngRowLayout row;      /* raw, as it travels: without scales where every rank has all */
    int64_t projected;     /* outputs of wkv: (streams + 1) x hidden */
    double unique;         /* share of rows left after deduplication: ALL_TO_ALL, PEER_READ */
} EngShardShape;

/* Whether raw rows travel, so that scales may be left out, and to ranks of other tokens each. */
bool eng_sharding_is_raw(EngSharding scheme);
bool eng_sharding_splits_tokens(EngSharding scheme);
/* Bytes that each rank receives per layer. ENG_USAGE: fewer than 1 rank, shares outside (0, 1]. */
EngStatus eng_shard_bytes(EngSharding scheme, const EngShardShape *shape, double *bytes,
                          EngErr *err);
/* Seconds of the exchange of one layer by the usual model, steps x latency + bytes / rate: a ring
 * takes 2 (ranks - 1) steps to reduce and ranks - 1 to gather; all-to-all takes a message for each
 * peer, once with row numbers (8 B) and once with rows. A rank receives at the link's rate. Peers
 * read as a gather does (gather.h): latency + max(bytes / rate, requests / request rate, ...) for
 * what the others ask of the fullest. ENG_UNSUPPORTED: what is not known of the link. */
EngStatus eng_shard_time(EngSharding scheme, const EngShardShape *shape, const EngTier *link,
                         double *seconds, EngErr *err);
const char *eng_sharding_name(EngSharding scheme);

/* Rows that the fullest of `ranks` shards reads: exactly an equal part when ranks divide the
 * columns, since a range of rows is then a set of columns; otherwise the expected largest of so
 * many random loads, m + sqrt(2 m ln ranks) with mean m. */
double eng_shard_largest_load(int columns, int ranks, double tokens);

/* Price of a million tokens, in the currency of the hourly price. */
double eng_cost_per_million(double price_per_hour, double tokens_per_s);

#endif
