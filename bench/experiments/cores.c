/* See cores.h. */
#include "bench/experiments/cores.h"

#include <sched.h>
#include <string.h>

#include "kernels/cpu/pin.h"

const char *const eng_words_cores[] = {"apart", "shared", "any", NULL};

EngStatus eng_cores_read(const char *word, int compute_threads, EngCores *cores, EngErr *err)
{
    cpu_set_t set;
    *cores = (EngCores){.compute = compute_threads,
                        .bound = strcmp(word, "any") != 0,
                        .apart = !strcmp(word, "apart")};
    if (!cores->bound) return ENG_OK;
    if (sched_getaffinity(0, sizeof set, &set))
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "cores=%s: the processors of this process are not "
                        "known",
                        word);
    for (int cpu = 0; cpu < CPU_SETSIZE && cores->n < ENG_MAX_CORES; cpu++)
        if (CPU_ISSET((size_t)cpu, &set)) cores->cpus[cores->n++] = cpu;
    if (cores->n < compute_threads + cores->apart)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "cores=%s: %d processors for %d computing threads%s",
                        word, cores->n, compute_threads, cores->apart ? " and the fetch" : "");
    return ENG_OK;
}

EngStatus eng_cores_compute(const EngCores *cores, EngErr *err)
{
    return cores->bound ? eng_cpu_pin(cores->compute, cores->cpus, cores->compute, err) : ENG_OK;
}

EngStatus eng_cores_fetch(const EngCores *cores, EngErr *err)
{
    int from = cores->apart ? cores->compute : 0;
    int n = cores->apart ? cores->n - cores->compute : cores->compute;
    return cores->bound ? eng_cpu_unpin(1, cores->cpus + from, n, err) : ENG_OK;
}

void eng_cores_free(const EngCores *cores)
{
    if (cores->bound) (void)eng_cpu_unpin(cores->compute, cores->cpus, cores->n, NULL);
}
