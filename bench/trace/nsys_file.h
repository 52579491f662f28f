/* Writing a trace file in the shape of an Nsight Systems SQLite export, schema 3.25.0, so that its
 * readers open it. Tables of nsys hold nothing of ours; ours begin with ENGRAM_. CUPTI tables are
 * made when their first row comes (as in a lazy export), NVTX_EVENTS, StringIds, the META_DATA and
 * TARGET_INFO tables and all enumerations always.
 *
 * The file is written under a temporary name of this process and gets its own at commit: there is
 * no half file after a kill or on a full disk, and of two writers at once the last one's stays
 * whole. ENG_DB_MAX_PAGES limits its size in tests.
 */
#ifndef ENG_BENCH_TRACE_NSYS_FILE_H
#define ENG_BENCH_TRACE_NSYS_FILE_H

#include <stdbool.h>
#include <engram/status.h>
#include "bench/trace/nsys_rows.h"

#define ENG_NSYS_PRODUCT "Engram workbench"
#define ENG_NSYS_SCHEMA  "3.25.0"

typedef struct EngNsysSession {
    int64_t start_ns;        /* CLOCK_MONOTONIC at the session's start: time 0 of all rows */
    int64_t utc_ns;          /* CLOCK_REALTIME at that moment */
    int64_t duration_ns;     /* of the session */
    const char *version;     /* of this program */
    const char *const *argv; /* what was recorded, NULL-terminated */
    int64_t pid;             /* of argv's process, 0: unknown */
    bool cuda;               /* GPU work was recorded too */
} EngNsysSession;

typedef struct EngNsys EngNsys;

/* Begins the file. ENG_IO, ENG_DB, ENG_NO_MEMORY. */
EngStatus eng_nsys_create(const char *path, const EngNsysSession *session, EngNsys **out,
                          EngErr *err);
/* Gives the file its name. On failure nothing is left. Frees. */
EngStatus eng_nsys_commit(EngNsys *nsys, EngErr *err);
/* Removes what was written and frees; accepts NULL. */
void eng_nsys_abort(EngNsys *nsys);

/* One row each; *row's text is copied. */
EngStatus eng_nsys_put_nvtx(EngNsys *nsys, const EngNsysNvtx *row, EngErr *err);
EngStatus eng_nsys_put_kernel(EngNsys *nsys, const EngNsysKernel *row, EngErr *err);
EngStatus eng_nsys_put_memcpy(EngNsys *nsys, const EngNsysMemcpy *row, EngErr *err);
EngStatus eng_nsys_put_memset(EngNsys *nsys, const EngNsysMemset *row, EngErr *err);
EngStatus eng_nsys_put_api(EngNsys *nsys, const EngNsysApi *row, EngErr *err);
EngStatus eng_nsys_put_sync(EngNsys *nsys, const EngNsysSync *row, EngErr *err);
EngStatus eng_nsys_put_overhead(EngNsys *nsys, const EngNsysOverhead *row, EngErr *err);
EngStatus eng_nsys_put_graph_node(EngNsys *nsys, const EngNsysGraphNode *row, EngErr *err);
EngStatus eng_nsys_put_environment(EngNsys *nsys, const EngNsysEnvironment *row, EngErr *err);
EngStatus eng_nsys_put_gpu(EngNsys *nsys, const EngNsysGpu *row, EngErr *err);
EngStatus eng_nsys_put_cuda_device(EngNsys *nsys, const EngNsysCudaDevice *row, EngErr *err);
EngStatus eng_nsys_put_cuda_context(EngNsys *nsys, const EngNsysCudaContext *row, EngErr *err);
EngStatus eng_nsys_put_cuda_stream(EngNsys *nsys, const EngNsysCudaStream *row, EngErr *err);
EngStatus eng_nsys_put_external(EngNsys *nsys, const EngNsysExternal *row, EngErr *err);
EngStatus eng_nsys_put_drops(EngNsys *nsys, const EngNsysDrops *row, EngErr *err);
EngStatus eng_nsys_put_process(EngNsys *nsys, int64_t pid, const char *name, EngErr *err);
EngStatus eng_nsys_put_thread(EngNsys *nsys, int64_t pid, int64_t tid, const char *name,
                              EngErr *err);

#endif
