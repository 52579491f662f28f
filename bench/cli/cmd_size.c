/* engram size: does a model's Engram memory fit machines that we do not have, does its fetch hide,
 * how many hosts does a rate take, and what does a million tokens cost? Everything a plan rests on
 * is a preset's value, with its source, or was given on the command line; what is missing is asked
 * for, never filled in. */
#include <stdio.h>

#include "base/log.h"
#include "bench/cli/size_parts.h"
#include "bench/cli/verbs.h"

static EngStatus run(EngCli *cli, EngErr *err)
{
    static EngSize size;
    EngStr out = {0};
    const char *db = eng_cli_text(cli, "db");
    size = (EngSize){.cli = cli};
    EngStatus status = eng_size_read(&size, err);
    if (!status) status = eng_size_print(&size, &out, err);
    if (!status && db) status = eng_size_store(&size, db, err);
    /* Nothing is measured here that a machine may not be able to do: what a plan lacks, or asks too
     * much of, is the command's. */
    if (status == ENG_UNSUPPORTED) status = err->status = ENG_USAGE;
    /* What was counted for minutes is kept, also when a database could not take the plan. */
    for (int i = 0; i < size.n_corpora && status != ENG_USAGE; i++) {
        EngStatus kept = eng_size_counts_keep(size.corpora[i].counts, status ? NULL : err);
        if (!status) status = kept;
    }
    if (!status) fputs(out.text, stdout);
    eng_str_free(&out);
    eng_size_free(&size);
    return status;
}

static const EngOption g_options[] = {
    {.name = "machine",
     .value = "NAME|FILE",
     .repeat = true,
     .help = "a preset (h200, epyc-9005, ...) or a machine file; several add their tiers"},
    {.name = "assume",
     .value = "TIER.FIELD=VALUE",
     .repeat = true,
     .help = "a value that no source gives, with its unit: pcie.latency=1.5us"},
    {.name = "model", .value = "PRESET", .help = "an Engram preset, such as v41-flash"},
    {.name = "weights",
     .value = "FILE",
     .help = "shapes of the backbone's tensors; else the model's"},
    {.name = "path",
     .value = "TIER[,TIER]",
     .repeat = true,
     .help = "tiers that rows come through: dram,pcie; several are planned one by one"},
    {.name = "traffic",
     .value = "KIND,KEY=VALUE",
     .repeat = true,
     .help = "decode,streams=N[,drafted=N,accepted=N],layer=TIME[,rate=N/s] or "
             "prefill,tokens=N,layer=TIME[,rate=N/s]"},
    {.name = "layers", .value = "N", .help = "layers of the backbone"},
    {.name = "slo",
     .value = "TIME",
     .help = "mean time of a step that is asked for: 25ms, or decode=25ms,prefill=1s"},
    {.name = "shards", .value = "N", .help = "devices, hosts or drives that share each table"},
    {.name = "copies", .value = "N", .help = "copies on each of them, such as one a NUMA node"},
    {.name = "readers", .value = "N", .help = "devices that each fetch a part of a step's rows"},
    {.name = "exchange",
     .value = "SCHEME,TIER",
     .help =
         "of rows among holders: all-reduce, all-gather, all-to-all or heads behind the gather, "
         "or peer-read in it, over a link: all-gather,nvlink"},
    {.name = "scales",
     .value = "TIER|everywhere",
     .help = "that holds all scales instead, such as dram with values on nvme: a read less a row; "
             "everywhere: with each of --shards, so that only values travel"},
    {.name = "ranks", .value = "N", .help = "devices of a replica of the model"},
    {.name = "host-devices", .value = "N", .help = "devices of a host"},
    {.name = "context", .value = "N", .help = "tokens of context that a device holds"},
    {.name = "kv",
     .value = "FORMAT",
     .help = "that these are kept in, where a model has several: fp8 or fp4"},
    {.name = "reserve",
     .value = "NAME=BYTES",
     .repeat = true,
     .help = "whatever else a device holds: graphs=22GiB"},
    {.name = "unique", .value = "SHARE", .help = "rows left by deduplication; 1: none is done"},
    {.name = "hits", .value = "SHARE", .help = "of these, rows that caches hold; 0: no cache"},
    {.name = "corpus",
     .value = "NAME",
     .repeat = true,
     .help = "a token stream that gives both; more are for the report"},
    {.name = "cache",
     .value = "BYTES@TIER",
     .help = "row cache of both tables for a replica, and a tier of each path that holds it: "
             "4GB@dram"},
    {.name = "zipf",
     .value = "EXPONENT",
     .help = "instead of --hits or --corpus: SYNTHETIC hits of the cache, as if a head's rows were "
             "drawn by a Zipf law (Che's approximation); text is not"},
    {.name = "policy", .value = "lru|ways|admission", .help = "of the cache; ways: 16"},
    {.name = "hash", .value = "TIME", .help = "from token ids to row numbers"},
    {.name = "issue", .value = "TIME", .help = "to issue a fetch"},
    {.name = "scheduling", .value = "TIME", .help = "from token ids to the first layer"},
    {.name = "interference",
     .value = "fetch=SHARE,compute=SHARE",
     .help = "how much slower each is beside the other"},
    {.name = "years", .value = "N", .help = "that bought things are used for, for the cost"},
    {.name = "power-price",
     .value = "PRICE",
     .help = "of what TIER.power says that is drawn, for the cost: 0.1USD/kWh"},
    {.name = "training",
     .value = "KEY=VALUE,...",
     .help = "ranks, group, node, tokens, unique, state, gradient, near, far, stages[, vision, "
             "backward]"},
    {.name = "db",
     .value = "FILE",
     .help = "also store the plan there, for engram report capacity"},
    ENG_OPTION_DATA,
};

const EngVerb eng_verb_size = {
    .name = "size",
    .operands = "",
    .summary = "plan for a machine: what fits, whether the fetch hides, hosts and cost",
    .details =
        "Prints every input with its source, the bytes held where, and for each path, kind of\n"
        "traffic and Engram layer the gather time term by term, its window and what would hide "
        "it;\n"
        "then hosts and cost. Means only: a percentile is refused. docs/size.md walks through one.",
    .options = g_options,
    .n_options = sizeof g_options / sizeof *g_options,
    .run = run,
};
