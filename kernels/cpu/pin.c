/* Pinning of OpenMP teams; see pin.h. */
#include "kernels/cpu/pin.h"

#include <omp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/* The calling thread alone: one processor, or (i < 0) all of them. */
static bool bind_self(const int *cpus, int n, int i)
{
    size_t size = 0;
    int most = 0;
    for (int k = 0; k < n; k++) most = cpus[k] > most ? cpus[k] : most;
    cpu_set_t *set = CPU_ALLOC((size_t)most + 1);
    if (!set) return false;
    size = CPU_ALLOC_SIZE((size_t)most + 1);
    CPU_ZERO_S(size, set);
    for (int k = 0; k < n; k++)
        if (i < 0 || k == i % n) CPU_SET_S((size_t)cpus[k], size, set);
    bool ok = !sched_setaffinity(0, size, set);
    CPU_FREE(set);
    return ok;
}

static EngStatus bind_team(int threads, const int *cpus, int n, bool each, EngErr *err)
{
    int bound = 0;
    if (threads == 1) {
        bound = bind_self(cpus, n, each ? 0 : -1);
    } else {
#pragma omp parallel num_threads(threads) reduction(+ : bound)
        bound += bind_self(cpus, n, each ? omp_get_thread_num() : -1);
    }
    if (bound == threads) return ENG_OK;
    return ENG_FAIL(err, ENG_UNSUPPORTED, "cannot pin: only %d of %d threads took their processor",
                    bound, threads);
}

EngStatus eng_cpu_pin(int threads, const int *cpus, int n, EngErr *err)
{
    return bind_team(threads, cpus, n, true, err);
}

EngStatus eng_cpu_unpin(int threads, const int *cpus, int n, EngErr *err)
{
    return bind_team(threads, cpus, n, false, err);
}
