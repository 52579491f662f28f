/* Parts of `engram size`: its inputs, the rates it takes from a token stream, its figures, and
 * their way into a database. */
#ifndef ENG_BENCH_CLI_SIZE_PARTS_H
#define ENG_BENCH_CLI_SIZE_PARTS_H

#include "bench/cli/cli.h"
#include "bench/cli/size_reuse.h"
#include "sim/planner/fleet.h"
#include "sim/planner/ledger.h"
#include "sim/planner/model.h"
#include "sim/planner/sharding.h"
#include "sim/planner/startup.h"
#include "sim/planner/training.h"

#define ENG_SIZE_MAX_BACKBONE 512
#define ENG_SIZE_MAX_PATHS    8
#define ENG_SIZE_MAX_TRAFFIC  4
#define ENG_SIZE_MAX_RESERVES 8

/* What one kind of step does. */
typedef struct EngTraffic {
    char name[32]; /* "decode 128", with a number where there are several of one size */
    bool decode;
    double streams, drafted, accepted; /* decode; accepted: tokens that a step yields per stream */
    double acceptance;                 /* of each draft, whose mean that is; 1 without drafts */
    double tokens, yield;              /* looked up in a step of a replica; that it yields */
    double layer;                      /* s of one layer of the backbone */
    double rate;                       /* tokens/s wanted of all hosts; 0: not given */
    double slo;                        /* s of a mean step; 0: not asked */
    double unique, hits;               /* shares, from options, corpus or Zipf's law */
    char rests_on[320];                /* where these two are from */
    double times[ENG_SIZE_MAX_BACKBONE];
} EngTraffic;

/* Where the rows lie and how they travel to who reads them. */
typedef struct EngSizePath {
    char name[96]; /* "dram,pcie" */
    int n;
    const EngTier *tiers[ENG_MAX_STAGES];
    EngPlace place; /* of the tables */
    int cache;      /* which tier holds the row cache; 0: there is none */
    /* What its figures are worth, owned: whether all values were measured; which are and which are
     * specifications or assumptions; and both. */
    char *standing, *values, *basis;
} EngSizePath;

typedef struct EngSizeTraining {
    bool given;
    EngTrainingInput input;
    int stages;
} EngSizeTraining;

typedef struct EngSize {
    EngCli *cli;
    EngPreset preset;
    EngModel model;          /* origin of weights; n_weights 0: none are known */
    EngMachineModel machine; /* the tiers of all machines named, then those that are assumed */
    int n_given_tiers;
    int tier_from[ENG_MAX_TIERS]; /* which of the machines, from 1; 0: of none, it was assumed */
    char machine_digests[ENG_MAX_TIERS * ENG_KEY_HEX];
    int n_paths, n_traffic, n_layers, n_corpora;
    EngSizePath paths[ENG_SIZE_MAX_PATHS];
    EngTraffic traffic[ENG_SIZE_MAX_TRAFFIC];
    EngSizeCorpus corpora[ENG_SIZE_MAX_TRAFFIC];
    int shards, copies, readers, ranks, host_devices; /* the last three 0: not given */
    double slo, years, cache_bytes, power_price;      /* 0: not given; USD/kWh */
    const EngTier *cache;                             /* that holds the row cache, or NULL */
    const char *policy;                               /* "lru", "ways", "admission"; "" */
    double zipf;                                      /* exponent of synthetic hits; 0: not given */
    char zipf_label[48];                              /* "synthetic: Zipf 0.8, Che"; "" */
    EngSharding scheme;                               /* of the exchange */
    const EngTier *link;                              /* NULL: none is planned */
    const EngTier *scales;                            /* NULL: beside the values ... */
    bool scales_everywhere;                           /* ... all of them with every holder */
    double kv_tokens; /* of context that a device holds; 0: not given */
    EngLedgerLine reserves[ENG_SIZE_MAX_RESERVES];
    int n_reserves;
    double scheduling, hash, issue; /* s; 0: not given */
    EngSlowdowns interference;
    bool interference_given; /* else what a calibration measured */
    EngSizeTraining training;
} EngSize;

/* One path under one kind of traffic. */
typedef struct EngSizeResult {
    const EngSizePath *path;
    const EngTraffic *traffic;
    EngStepInput input; /* that the step is of; valid as long as size, path and traffic are */
    EngStepPlan step;
    bool has_fleet;
    EngFleet fleet;
    EngBill bill;
} EngSizeResult;

/* ENG_USAGE naming the option: everything a plan rests on must be given. */
EngStatus eng_size_read(EngSize *size, EngErr *err);
void eng_size_free(EngSize *size);
/* Parts of that (size_traffic.c), in this order: one --traffic, means for all of them, shares. */
EngStatus eng_size_read_traffic(EngSize *s, const char *text, EngErr *err);
EngStatus eng_size_read_slo(EngSize *s, EngErr *err);
EngStatus eng_size_read_shares(EngSize *s, EngErr *err);

/* Fills a path's standing, values and basis. */
EngStatus eng_size_basis(const EngSize *size, EngSizePath *path, EngErr *err);

/* Shared by the replicas of a host: not of a device, as its memory and links are, and what links
 * devices that hold the tables. */
bool eng_size_of_host(const EngSize *size, const EngSizePath *path, const EngTier *tier);
/* Replicas of a full host; 1 where that is not known, or a replica is of several hosts. */
int eng_size_replicas_of_host(const EngSize *size);
/* That the devices of a replica are of; 1 where that is not known. */
int eng_size_hosts_of_replica(const EngSize *size);
/* Of a tier that this plan's fetches go through in a host with so many replicas: one that they
 * share, or the memories or links of all that read. */
int eng_size_carriers(const EngSize *size, const EngSizeResult *result, const EngTier *tier,
                      int replicas);

EngStatus eng_size_ledger(const EngSize *size, const EngSizePath *path, EngLedger *ledger,
                          EngErr *err);
/* That holds the bytes of a place, whose capacity, pin limit and price they have: of tables, cache,
 * scales, or what passes it. A plan counts one memory of each; NULL: none is known. */
const EngTier *eng_size_memory(const EngSize *size, const EngSizePath *path, EngPlace place);
/* "fits", "does not fit", or "capacity not known" of what holds the tables. */
const char *eng_size_fit(const EngSizePath *path, const EngLedger *ledger);
/* Step, fleet and bill of one path and traffic. */
EngStatus eng_size_result(const EngSize *size, const EngSizePath *path, const EngTraffic *traffic,
                          EngSizeResult *result, EngErr *err);
/* Parts of it, for traffic with a rate: from the step the hosts, from both the bill. */
EngStatus eng_size_hosts(const EngSize *size, EngSizeResult *result, EngErr *err);
EngStatus eng_size_bill(const EngSize *size, EngSizeResult *result, EngErr *err);
void eng_size_print_hosts(const EngSize *size, const EngSizeResult *result, EngStr *out);
/* Rent or price of a device, named by any of its tiers; origin ENG_UNKNOWN: not known. */
const EngQuantity *eng_size_device_price(const EngSize *size, EngTierField field);
/* Paid with a device: what is of the machine that has its memory or its price, and links, which
 * come with their ends. */
bool eng_size_comes_with_device(const EngSize *size, const EngTier *tier);
void eng_size_print_usd(const EngBill *bill, EngStr *out); /* and what it is without */
/* What calibration measured of a fetch beside compute; none where it did not. */
EngSlowdowns eng_size_beside(const EngSizePath *path);
void eng_size_print_inputs(const EngSize *size, EngStr *out);
/* Nothing for tables on drives. */
EngStatus eng_size_print_startup(const EngSize *size, const EngSizePath *path,
                                 const EngLedger *ledger, EngStr *out, EngErr *err);
/* All of it as text. */
EngStatus eng_size_print(const EngSize *size, EngStr *out, EngErr *err);

/* The figures of reports/capacity, stored as simulated points. */
EngStatus eng_size_store(const EngSize *size, const char *db_path, EngErr *err);

/* What a row costs beyond its bytes: the blocks a memory or link reads, the messages of an adapter.
 * ENG_UNSUPPORTED: not known; it would look faster than a tier of which it is. */
EngStatus eng_size_need_requests(const EngTier *tier, EngErr *err);

/* Of the preset's tables among `ranks`; and s that their exchange takes over the link, which must
 * be given. ENG_UNSUPPORTED: its latency or rate, or for peers its requests, are not known. */
EngStatus eng_size_shape(const EngSize *size, const EngTraffic *traffic, int ranks,
                         EngShardShape *shape, EngErr *err);
EngStatus eng_size_exchange(const EngSize *size, EngSharding scheme, const EngShardShape *shape,
                            double *seconds, EngErr *err);

#endif
