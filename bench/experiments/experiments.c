/* The list; see experiments.h. Order is that of `engram list`: along the chain, the counts, the
 * machine, the stores, training. */
#include "bench/experiments/experiments.h"

static const EngExperiment *const g_items[] = {
    &eng_experiment_hash,         &eng_experiment_gather,       &eng_experiment_project,
    &eng_experiment_lookup,       &eng_experiment_gate,         &eng_experiment_conv,
    &eng_experiment_chain,        &eng_experiment_step,         &eng_experiment_reuse,
    &eng_experiment_collide,      &eng_experiment_cache,        &eng_experiment_ladder,
    &eng_experiment_stream,       &eng_experiment_populate,     &eng_experiment_tier,
    &eng_experiment_prefetch,     &eng_experiment_interference, &eng_experiment_speculate,
    &eng_experiment_split,        &eng_experiment_format,       &eng_experiment_back_gate,
    &eng_experiment_back_project, &eng_experiment_back_gather,  &eng_experiment_back_conv,
    &eng_experiment_sgd,          &eng_experiment_adamw,        &eng_experiment_muon,
    &eng_experiment_sparse_adam,  &eng_experiment_sinkhorn,
};

const EngExperimentList eng_experiments = {
    .items = g_items,
    .n = sizeof g_items / sizeof *g_items,
    .elsewhere = "train",
    .hint = "`engram train` trains it",
};
