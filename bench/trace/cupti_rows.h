/* Rows that CUPTI's activity records make, before they go into a trace file, and an account of
 * those that made none: nothing is lost in silence. Needs no CUPTI: a build without its headers has
 * these rows too, and none to put in. */
#ifndef ENG_TRACE_CUPTI_ROWS_H
#define ENG_TRACE_CUPTI_ROWS_H

#include <stdbool.h>
#include <stdint.h>
#include <engram/status.h>
#include "bench/trace/cupti_names.h"
#include "bench/trace/nsys_file.h"
#include "bench/trace/nsys_rows.h"

/* Why a record, or a part of a buffer, made no row. */
typedef enum EngCuptiDrop {
    ENG_CUPTI_DROP_KIND = 0,   /* a known kind that has no table */
    ENG_CUPTI_DROP_UNKNOWN,    /* a kind that the headers do not know */
    ENG_CUPTI_DROP_CUT,        /* the buffer ends within the record */
    ENG_CUPTI_DROP_UNFINISHED, /* CUPTI had not filled the record yet */
    ENG_CUPTI_DROP_ZERO,       /* start or end lost: 0 */
    ENG_CUPTI_DROP_BACKWARDS,  /* end before start */
    ENG_CUPTI_DROP_REPEATED,   /* the same (correlation, graph node, stream, start) again */
    ENG_CUPTI_DROP_MEMORY,     /* no memory for the row */
    ENG_CUPTI_DROP_LIBRARY,    /* libcupti says that it dropped it */
    ENG_CUPTI_DROP_REQUEST,    /* buffer requests refused: all were in use */
    ENG_CUPTI_DROP_LATE,       /* buffers that came back when no trace ran */
    ENG_CUPTI_DROP_BYTES,      /* bytes behind a record that could not be walked past */
    ENG_CUPTI_DROP_COUNT
} EngCuptiDrop;

const char *eng_cupti_drop_name(EngCuptiDrop drop); /* "cupti: end before start" */

/* A graph traced as a whole: the work of its nodes is hidden in it. */
typedef struct EngCuptiGraph {
    int64_t start, end, deviceId, contextId, streamId, correlationId, graphId;
} EngCuptiGraph;

typedef enum EngCuptiState {
    ENG_CUPTI_SPEED = 0,   /* SM clock MHz, memory clock MHz, throttle reasons (a bit set) */
    ENG_CUPTI_TEMPERATURE, /* degrees C */
    ENG_CUPTI_POWER,       /* mW, limit mW */
    ENG_CUPTI_FAN          /* percent */
} EngCuptiState;

/* A state of a device at a moment. */
typedef struct EngCuptiEnvironment {
    int64_t start, deviceId;
    EngCuptiState state;
    int64_t values[3];
} EngCuptiEnvironment;

#define ENG_CUPTI_TABLES(X)                                                                        \
    X(kernels, EngNsysKernel)                                                                      \
    X(memcpys, EngNsysMemcpy)                                                                      \
    X(memsets, EngNsysMemset)                                                                      \
    X(apis, EngNsysApi)                                                                            \
    X(syncs, EngNsysSync)                                                                          \
    X(overheads, EngNsysOverhead)                                                                  \
    X(environments, EngCuptiEnvironment)                                                           \
    X(graphs, EngCuptiGraph)                                                                       \
    X(externals, EngNsysExternal)                                                                  \
    X(gpus, EngNsysGpu)                                                                            \
    X(devices, EngNsysCudaDevice)                                                                  \
    X(contexts, EngNsysCudaContext)                                                                \
    X(streams, EngNsysCudaStream)

typedef struct EngCuptiRows {
#define ENG_CUPTI_TABLE(name, type)                                                                \
    struct {                                                                                       \
        type *items;                                                                               \
        int64_t n, room;                                                                           \
    } name;
    ENG_CUPTI_TABLES(ENG_CUPTI_TABLE)
#undef ENG_CUPTI_TABLE
    EngCuptiNames *names; /* owns all text of the rows that is no constant */
    int64_t n_records;    /* records walked: each made one row or one drop */
    int64_t n_made;       /* rows made of them */
    int64_t drops[ENG_CUPTI_DROP_COUNT];
    int64_t n_nameless;    /* kernels whose name was lost; they have rows */
    uint32_t unknown_kind; /* the first one met, 0: none */
} EngCuptiRows;

EngStatus eng_cupti_rows_init(EngCuptiRows *rows, EngErr *err); /* ENG_NO_MEMORY */
void eng_cupti_rows_free(EngCuptiRows *rows);

/* The clock of CUPTI beside CLOCK_MONOTONIC, read together; off by at most the uncertainty. */
typedef struct EngCuptiClock {
    int64_t cupti_ns, monotonic_ns, uncertainty_ns;
} EngCuptiClock;
/* A time of CUPTI on CLOCK_MONOTONIC, from the pairs at start and end of the trace: their offsets
 * are interpolated, so that a clock that was slewed between them stays in step; offsets that differ
 * by no more than the readings' uncertainty are one. Order is kept, durations to 1 ns. */
int64_t eng_cupti_to_monotonic(const EngCuptiClock pair[2], int64_t cupti_ns);

/* Once, when all buffers are decoded: puts times on CLOCK_MONOTONIC less origin_ns, sorts tables
 * by start (buffers of several threads come in any order), drops rows that repeat another, and says
 * which device a synchronization waited on. */
void eng_cupti_rows_finish(EngCuptiRows *rows, const EngCuptiClock pair[2], int64_t origin_ns);

/* Writes all rows, and a row for each kind of drop. */
EngStatus eng_cupti_rows_write(const EngCuptiRows *rows, EngNsys *nsys, EngErr *err);

/* Records that made no row, all causes but ENG_CUPTI_DROP_BYTES together. */
int64_t eng_cupti_dropped(const EngCuptiRows *rows);

#endif
