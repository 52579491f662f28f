/* Threads that fetch rows of real text without pause while they are let: the disturbance of the
 * experiment interference. Each has a handle of its own on the store, or gathers from a table in
 * memory with the ordinary kernel. */
#ifndef ENG_EXPERIMENTS_GATHERERS_H
#define ENG_EXPERIMENTS_GATHERERS_H

#include <pthread.h>
#include <stdatomic.h>

#include "bench/experiments/cores.h"
#include "bench/experiments/open_table.h"
#include "bench/experiments/oracle.h"
#include "bench/experiments/support.h"
#include "bench/experiments/windows.h"

#define ENG_MAX_GATHERERS 64

struct EngGatherers;

typedef struct EngGatherer {
    struct EngGatherers *all;
    pthread_t thread;
    bool started;
    EngOpenTable table;
    EngRunner runner; /* gathering from memory */
    EngRowsOut rows;  /* fetched from a store */
    void *gathered;
    int64_t window;            /* of the next batch */
    _Atomic int64_t batches;   /* that ended in the time that counts, but for the first */
    int64_t first_ns, last_ns; /* ends of these */
    EngStatus status;          /* under the lock */
    EngErr err;
} EngGatherer;

/* Sums over times that counted. */
typedef struct EngGathered {
    int64_t times;
    int64_t batches[ENG_MAX_GATHERERS], ns[ENG_MAX_GATHERERS];
} EngGathered;

typedef struct EngGatherers {
    EngShape shape;
    const EngResources *resources;
    bool from_store;
    EngWindows windows;
    int64_t *rows; /* [windows, tokens, columns] */
    EngGatherer *each;
    int n;
    pthread_mutex_t lock;
    pthread_cond_t go, idle;
    int n_idle, n_first; /* waiting; those that have done a batch since they were let */
    _Atomic bool running, over;
    _Atomic int64_t from_ns, to_ns; /* of the time that counts */
} EngGatherers;

/* shape.tokens a batch; threads on the fetching processors. The struct may not move. */
EngStatus eng_gatherers_create(EngGatherers *g, int n, const EngShape *shape, bool from_store,
                               const EngCores *cores, const EngBench *bench, const EngPoint *point,
                               EngErr *err);
void eng_gatherers_destroy(EngGatherers *g); /* accepts one of zeros, or half created */
EngStatus eng_gatherers_prepare(EngGatherers *g, EngErr *err);

/* Lets them run; returns when each has done a batch. From then on until the end is called, time
 * counts: of each gatherer from the end of a batch to the end of another, so that a batch of which
 * only a part falls into it shortens the time and not the rate. */
void eng_gatherers_start(EngGatherers *g);
void eng_gatherers_end(EngGatherers *g);
/* Returns when all are idle, and adds what counted to `sum` (may be NULL); the first error of any.
 */
EngStatus eng_gatherers_stop(EngGatherers *g, EngGathered *sum, EngErr *err);
/* Rows per ns of all; NAN where a gatherer got fewer than two batches a time, which is too few to
 * say how long one takes. */
double eng_gathered_rate(const EngGatherers *g, const EngGathered *sum);
/* The last batch of each against the seeded table, or the oracle's gather; when idle. */
EngStatus eng_gatherers_check(EngGatherers *g, EngCheck *check, EngErr *err);

#endif
