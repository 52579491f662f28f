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
    int64_t window;          /* of the next batch */
    _Atomic int64_t batches; /* done since the start */
    EngStatus status;        /* under the lock */
    EngErr err;
} EngGatherer;

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
} EngGatherers;

/* shape.tokens a batch; threads on the fetching processors. The struct may not move. */
EngStatus eng_gatherers_create(EngGatherers *g, int n, const EngShape *shape, bool from_store,
                               const EngCores *cores, const EngBench *bench, const EngPoint *point,
                               EngErr *err);
void eng_gatherers_destroy(EngGatherers *g); /* accepts one of zeros, or half created */
EngStatus eng_gatherers_prepare(EngGatherers *g, EngErr *err);

/* Lets them run; returns when each has done a batch. */
void eng_gatherers_start(EngGatherers *g);
/* Returns when all are idle; the first error of any. */
EngStatus eng_gatherers_stop(EngGatherers *g, EngErr *err);
/* Rows fetched since creation, by all. */
int64_t eng_gatherers_rows(const EngGatherers *g);
/* The last batch of each against the seeded table, or the oracle's gather; when idle. */
EngStatus eng_gatherers_check(EngGatherers *g, EngCheck *check, EngErr *err);

#endif
