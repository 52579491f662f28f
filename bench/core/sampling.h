/* Small pieces of sampling: CPU time of a thread team, inner iterations, shuffled order. */
#ifndef ENG_BENCH_SAMPLING_H
#define ENG_BENCH_SAMPLING_H

#include <stdint.h>
#include "base/rng.h"

#define ENG_TEAM_MAX 256

/* CPU clocks of all threads of the process. stop() gives the largest increase of any one since
 * start(): the team's time without what the machine stole from it. */
typedef struct EngTeamClock {
    int n;
    int ids[ENG_TEAM_MAX]; /* kernel thread ids */
    int64_t at_ns[ENG_TEAM_MAX];
} EngTeamClock;
void eng_team_clock_start(EngTeamClock *team);
int64_t eng_team_clock_stop(const EngTeamClock *team);

/* Least step of the calling thread's CPU clock, from reading it until it moves. */
int64_t eng_cpu_clock_step_ns(void);

/* What a timed window cannot resolve: the coarser step of its clocks, and what an empty window
 * reads on them (the median of several). */
typedef struct EngTimer {
    int64_t step_ns, empty_ns;
} EngTimer;
EngTimer eng_timer_measure(void);
/* Length of a sample: `wanted_ns`, or more, so that it is at least 500 times what the timer cannot
 * resolve; at most 20 ms. */
int64_t eng_sample_length_ns(const EngTimer *timer, int64_t wanted_ns);

/* Iterations that make a sample of about target_ns from runs of each_ns; at least 1. */
int64_t eng_inner_iterations(double each_ns, int64_t target_ns);

/* order becomes a random permutation of 0..n-1. */
void eng_shuffle(EngRng *rng, int *order, int n);

#endif
