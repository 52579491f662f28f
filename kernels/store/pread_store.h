/* The pread pool, of which the nowait store is made too. */
#ifndef ENG_KERNELS_STORE_PREAD_STORE_H
#define ENG_KERNELS_STORE_PREAD_STORE_H

#include "kernels/store/file_store.h"
#include "kernels/store/pool.h"

typedef struct EngPreadStore {
    EngFileStore file;
    EngPool *pool;
    EngPages bounce; /* one buffer per thread, direct reads only */
} EngPreadStore;

/* Opens file, pool and buffers into a zeroed store. On failure nothing stays open. */
EngStatus eng_pread_store_init(EngPreadStore *store, const EngStoreOps *ops, const char *path,
                               const EngStoreOptions *options, int default_threads, EngErr *err);
void eng_pread_store_fini(EngPreadStore *store);

#endif
