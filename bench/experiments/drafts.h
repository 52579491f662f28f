/* Drafted tokens of a verify step: how many are accepted, and what a rejected one is. The
 * experiment `speculate` and the planner's counts (bench/cli/size_reuse.c) take them from here, so
 * that both read the rows of the same tokens. */
#ifndef ENG_EXPERIMENTS_DRAFTS_H
#define ENG_EXPERIMENTS_DRAFTS_H

#include "base/rng.h"

/* A prime, so that the tokens of neighbouring places lie apart and are seldom the same. */
#define ENG_SCATTER_DRAFT 7919

/* Drafts up to the first that is rejected; each is accepted with this probability. */
static inline int eng_drafts_accepted(EngRng *rng, int64_t drafted, double acceptance)
{
    int n = 0;
    while (n < drafted && eng_rng_unit(rng) < acceptance) n++;
    return n;
}

/* In place of the token at `at` of a text, another one of its first `known`: no model drafts. */
static inline int32_t eng_drafts_rejected(const int32_t *stream, int64_t known, int64_t at)
{
    return stream[at * ENG_SCATTER_DRAFT % known];
}

#endif
