/* Where computing and fetching run: on processors of their own, on the same ones, or anywhere. The
 * threads of a store and its prefetcher inherit the processors of the thread that makes them.
 */
#ifndef ENG_EXPERIMENTS_CORES_H
#define ENG_EXPERIMENTS_CORES_H

#include <stdbool.h>
#include <engram/status.h>

extern const char *const eng_words_cores[]; /* apart shared any */

#define ENG_AXIS_CORES_DEF                                                                         \
    {                                                                                              \
        "cores", ENG_AXIS_WORD, "apart", "", 0, 0, eng_words_cores,                                \
            "apart: a processor for each thread that computes, all others fetch; shared: both on " \
            "the former; any"                                                                      \
    }

#define ENG_MAX_CORES 1024

typedef struct EngCores {
    int cpus[ENG_MAX_CORES], n; /* that the process may use */
    int compute;                /* the first so many compute */
    bool bound, apart;
} EngCores;

/* ENG_UNSUPPORTED: fewer processors than threads that compute, or none left to fetch. */
EngStatus eng_cores_read(const char *word, int compute_threads, EngCores *cores, EngErr *err);
/* The calling thread and its OpenMP team compute. */
EngStatus eng_cores_compute(const EngCores *cores, EngErr *err);
/* The calling thread, and threads it makes from now on, fetch. */
EngStatus eng_cores_fetch(const EngCores *cores, EngErr *err);
/* The calling thread and its team may run anywhere again. */
void eng_cores_free(const EngCores *cores);

#endif
