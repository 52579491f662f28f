/* The stores over a table file, each made by a file of its own; eng_store_open() chooses. */
#ifndef ENG_KERNELS_STORE_STORES_H
#define ENG_KERNELS_STORE_STORES_H

#include <engram/store.h>

#define ENG_STORE_MAX_THREADS 256
#define ENG_STORE_MAX_DEPTH   4096

EngStatus eng_memory_store_open(const char *path, const EngStoreOptions *options, EngStore **store,
                                EngErr *err);
EngStatus eng_mmap_store_open(const char *path, const EngStoreOptions *options, EngStore **store,
                              EngErr *err);
EngStatus eng_pread_store_open(const char *path, const EngStoreOptions *options, EngStore **store,
                               EngErr *err);
EngStatus eng_nowait_store_open(const char *path, const EngStoreOptions *options, EngStore **store,
                                EngErr *err);
EngStatus eng_uring_store_open(const char *path, const EngStoreOptions *options, EngStore **store,
                               EngErr *err);

#endif
