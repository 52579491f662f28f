/* See sampling.h. */
#include "bench/core/sampling.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "bench/core/stats.h"

/* The CPU-time clock of one thread of ours, as the kernel numbers it (see clock_getcpuclockid; the
 * low bits say "per thread" and "scheduler time"). pthread_getcpuclockid needs a pthread_t, which
 * OpenMP does not give. */
static clockid_t thread_clock(int tid)
{
    return (clockid_t)((~(unsigned)tid << 3) | 6u);
}

static int64_t thread_cpu_ns(int tid)
{
    struct timespec ts;
    if (clock_gettime(thread_clock(tid), &ts)) return -1;
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void eng_team_clock_start(EngTeamClock *team)
{
    team->n = 0;
    DIR *folder = opendir("/proc/self/task");
    if (!folder) return;
    for (struct dirent *entry; (entry = readdir(folder)) && team->n < ENG_TEAM_MAX;)
        if (entry->d_name[0] != '.') team->ids[team->n++] = atoi(entry->d_name);
    closedir(folder);
    for (int i = 0; i < team->n; i++) team->at_ns[i] = thread_cpu_ns(team->ids[i]);
}

int64_t eng_team_clock_stop(const EngTeamClock *team)
{
    int64_t most = 0;
    for (int i = 0; i < team->n; i++) {
        int64_t spent = thread_cpu_ns(team->ids[i]) - team->at_ns[i];
        if (team->at_ns[i] >= 0 && spent > most) most = spent;
    }
    return most;
}

int64_t eng_cpu_clock_step_ns(void)
{
    enum { TRIES = 200 };
    int64_t least = 0;
    for (int i = 0; i < TRIES; i++) {
        int64_t from = eng_thread_cpu_ns(), to = from;
        while (to == from) to = eng_thread_cpu_ns();
        if (!least || to - from < least) least = to - from;
    }
    return least;
}

EngTimer eng_timer_measure(void)
{
    enum { TRIES = 31 };
    double empty[TRIES];
    int64_t wall_step = 0;
    for (int i = 0; i < TRIES; i++) {
        EngTeamClock team;
        int64_t from = eng_now_ns(), to = from;
        while (to == from) to = eng_now_ns();
        if (!wall_step || to - from < wall_step) wall_step = to - from;
        eng_team_clock_start(&team);
        int64_t wall = eng_now_ns();
        wall = eng_now_ns() - wall;
        int64_t cpu = eng_team_clock_stop(&team);
        empty[i] = (double)(cpu > wall ? cpu : wall);
    }
    int64_t cpu_step = eng_cpu_clock_step_ns();
    return (EngTimer){.step_ns = cpu_step > wall_step ? cpu_step : wall_step,
                      .empty_ns = (int64_t)eng_median_in_place(empty, TRIES).median};
}

int64_t eng_sample_length_ns(const EngTimer *timer, int64_t wanted_ns)
{
    const int64_t times = 500, most = 20000000;
    int64_t unresolved = timer->step_ns > timer->empty_ns ? timer->step_ns : timer->empty_ns;
    int64_t least = unresolved > most / times ? most : unresolved * times;
    return wanted_ns > least ? wanted_ns : least;
}

int64_t eng_inner_iterations(double each_ns, int64_t target_ns)
{
    const int64_t most = 1000000;
    if (each_ns < 1) each_ns = 1;
    double n = ceil((double)target_ns / each_ns);
    return n < 1 ? 1 : n > (double)most ? most : (int64_t)n;
}

void eng_shuffle(EngRng *rng, int *order, int n)
{
    for (int i = 0; i < n; i++) order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = (int)eng_rng_below(rng, (uint64_t)i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}
