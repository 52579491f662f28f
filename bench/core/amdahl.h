/* What a faster kernel is worth for the whole forward (Amdahl): a stage with share f of the chain's
 * time that becomes r times as fast makes the chain 1 / (1 - f + f / r) times as fast. Shares come
 * from a measured chain point of the same machine, preset and tokens, and what cannot be told from
 * the chain's own noise is called so.
 */
#ifndef ENG_BENCH_AMDAHL_H
#define ENG_BENCH_AMDAHL_H

#include "bench/core/db_pairs.h"

/* Gain of the chain's speed as a share (0.003: 0.3 % faster); speedup > 0. */
double eng_amdahl_gain(double share, double speedup);
/* The most that any speed-up of the stage can give; INFINITY when the stage is all of the chain. */
double eng_amdahl_ceiling(double share);
/* About how many pairs would tell a gain from noise, when `pairs` pairs had that A/A floor: an
 * interval shrinks with the square root of its pairs. INFINITY for no gain. */
double eng_amdahl_pairs(double gain, double floor, int pairs);

typedef struct EngAmdahl {
    bool found;      /* a chain point is there, and it has this stage */
    double share;    /* of the stage in the chain's wall time */
    double chain_us; /* wall time of one call of the chain */
    double floor;    /* A/A floor of the chain point, NAN when it has too few samples */
    int pairs;       /* samples of the chain point */
    int64_t tokens, threads;
} EngAmdahl;

/* stage: name of the experiment ("gather"); found is false for those that are no stage. */
EngStatus eng_amdahl_find(EngDb *db, const char *machine_id, const char *stage, const char *preset,
                          int64_t tokens, int64_t threads, EngAmdahl *amdahl, EngErr *err);

/* "x1.8 on gather = +0.3 % of the chain at 64 tokens (gather is 0.7 % of it; below the chain's A/A
 * floor of 0.9 %: not detectable in 30 pairs, about 270 would tell)". */
void eng_amdahl_text(const EngAmdahl *amdahl, const char *stage, double speedup, char *out,
                     size_t size);

#endif
