/* The option combinations of trained arms that gradients are checked for: against differences
 * (test_train_gradients.c) and against a PyTorch implementation (tests/oracle/twin.py,
 * test_train_twin.c); and parameters that hide nothing. */
#ifndef ENG_TESTS_TRAIN_CASES_H
#define ENG_TESTS_TRAIN_CASES_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "bench/backbone/train_parts.h"

typedef struct TrainCase {
    const char *name;
    const char *fields; /* "name=value ..": on top of the tiny rung */
} TrainCase;

static const TrainCase train_cases[] = {
    {"dense", "experts=0 top_k=0"},
    {"no_shared_experts", "shared_experts=0"},
    {"wider_shared_experts", "shared_extra=5"},
    {"plain_moe", ""},
    {"balance_loss", "balance_loss=0.3"},
    {"route_scale_top_3", "route_scale=2.5 top_k=3"},
    {"grouped_queries", "heads=4 kv_heads=2 head_dim=6"},
    {"tied_head", "tied_head=true"},
    {"two_lanes", "threads=2 engram_at=1"},
    {"two_streams", "streams=2 sinkhorn_iters=1"},
    {"four_streams_v41", "streams=4 engram_at=0,1 sinkhorn_iters=5"},
    {"five_streams_many_rounds", "streams=5 sinkhorn_iters=64"},
    {"one_stream_v41", "engram_at=1"},
    {"demo", "engram_at=0 gate=sign conv_kernel=4 streams=3 gate_eps=1e-6 kv_bias=true"},
    {"conv_one_stream", "engram_at=1 conv_kernel=3"},
    {"plain_gate", "engram_at=1 gate=plain streams=2"},
    {"no_gate", "engram_at=1 gate_off=true streams=2"},
    {"no_gate_conv", "engram_at=1 gate_off=true conv_kernel=4"},
    {"one_fusion", "engram_at=0,1 fusion=read streams=3"},
    {"one_fusion_one_stream_conv", "engram_at=1 fusion=read conv_kernel=4"},
    {"over_encoding", "engram_at=0 fusion=input"},
    {"over_encoding_streams_tied", "engram_at=0 fusion=input streams=2 tied_head=true"},
    {"over_encoding_bias", "engram_at=0 fusion=input kv_bias=true"},
    {"four_grams", "engram_at=1 max_order=4 engram_heads=2 row_dims=3"},
    {"size_1_table", "engram_at=1 rows=one"},
    {"shuffled_rows", "engram_at=1 rows=shuffled"},
};

enum { N_TRAIN_CASES = sizeof train_cases / sizeof *train_cases, CASE_IDS = 2 * 17 };

static inline EngStatus case_config(const TrainCase *c, EngTrainConfig *config, EngErr *err)
{
    char copy[256], *rest = copy;
    EngStatus status = eng_train_rung("tiny", config, err);
    snprintf(copy, sizeof copy, "%s", c->fields);
    for (char *one = strtok_r(copy, " ", &rest); one && !status; one = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(one, '=');
        *value++ = 0;
        status = eng_train_set(config, one, value, err);
    }
    config->batch_tokens = 2 * config->seq_len;
    return status;
}

/* All parameters drawn anew: none is one or zero, gates and mixing are in motion. */
static inline void case_values(EngTrainer *t)
{
    const EngBackboneConfig *c = &t->config.model;
    EngRng rng;
    eng_rng_seed(&rng, 5);
    for (int i = 0; i < t->tensors.n; i++) {
        const EngTensor *tensor = &t->tensors.list[i];
        double spread = 1 / sqrt((double)tensor->rows), middle = 0;
        if (tensor->group == ENG_GROUP_TABLE || tensor->what == ENG_W_EMBED) spread = 1;
        if (tensor->group == ENG_GROUP_VECTOR) spread = 0.2, middle = 1;
        if (tensor->what == ENG_W_ENGRAM_CONV) spread = 0.5, middle = 0;
        for (int64_t k = 0; k < tensor->rows * tensor->columns; k++)
            t->values[tensor->at + k] = (EngReal)(float)(middle + spread * eng_rng_normal(&rng));
    }
    for (int i = 0; i < c->layers * c->experts; i++)
        t->bias[i] = (EngReal)(float)(0.05 * eng_rng_normal(&rng));
    eng_trainer_refresh(t);
}

static inline void case_ids(int32_t ids[CASE_IDS])
{
    EngRng rng;
    eng_rng_seed(&rng, 9);
    for (int i = 0; i < CASE_IDS; i++) ids[i] = (int32_t)eng_rng_below(&rng, 64);
}

#endif
