/* The experiments of the workbench: one file per question, listed in experiments.c. */
#ifndef ENG_EXPERIMENTS_H
#define ENG_EXPERIMENTS_H

#include "bench/core/experiment.h"

extern const EngExperiment eng_experiment_hash, eng_experiment_gather, eng_experiment_project,
    eng_experiment_lookup, eng_experiment_gate, eng_experiment_conv, eng_experiment_chain,
    eng_experiment_step, eng_experiment_reuse, eng_experiment_collide, eng_experiment_cache,
    eng_experiment_ladder, eng_experiment_stream, eng_experiment_populate, eng_experiment_tier,
    eng_experiment_prefetch, eng_experiment_interference, eng_experiment_speculate,
    eng_experiment_split, eng_experiment_format, eng_experiment_back_gate,
    eng_experiment_back_project, eng_experiment_back_gather, eng_experiment_back_conv,
    eng_experiment_sgd, eng_experiment_adamw, eng_experiment_muon, eng_experiment_sparse_adam,
    eng_experiment_sinkhorn;

extern const EngExperimentList eng_experiments;

#endif
