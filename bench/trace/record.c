/* See record.h. */
#include "bench/trace/record.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int64_t clock_ns(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void eng_record_init(EngRecordHead *head, uint32_t n_chunks)
{
    memcpy(head->magic, ENG_RECORD_MAGIC, sizeof head->magic);
    head->chunk_bytes = ENG_RECORD_CHUNK_BYTES;
    head->n_chunks = n_chunks;
    head->pid = (int32_t)getpid();
    head->parent = (int32_t)getppid();
    head->start_ns = clock_ns(CLOCK_MONOTONIC);
    head->utc_ns = clock_ns(CLOCK_REALTIME);
    head->stop_ns = 0;
    atomic_store(&head->claimed, 0);
    atomic_store(&head->dropped, 0);
    strncpy(head->name, program_invocation_short_name, sizeof head->name - 1);
}

void eng_record_stop(EngRecordHead *head)
{
    head->stop_ns = clock_ns(CLOCK_MONOTONIC);
}

EngRecordHead *eng_record_map(uint32_t n_chunks)
{
    void *region = mmap(NULL, eng_record_region_bytes(n_chunks), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED) return NULL;
    EngRecordHead *head = region;
    head->n_chunks = n_chunks;
    return head;
}

void eng_record_unmap(EngRecordHead *head)
{
    if (head) munmap(head, eng_record_region_bytes(head->n_chunks));
}
