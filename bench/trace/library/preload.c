/* The hook as a library for programs that are not ours: NVTX loads it by the name in
 * NVTX_INJECTION64_PATH at the program's first NVTX call. `engram trace record` sets that, and
 * ENG_TRACE_DIR, where each process writes a recording of its own (<pid>.<n>.rec): forked
 * children get theirs at fork, programs they start at their own first call. A process that is
 * killed leaves what it had stored.
 *
 * Nothing here prints or ends the program: without a folder, or when the disk is full, events are
 * not recorded. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/trace/hook.h"

#define DEFAULT_CHUNKS 1024 /* 256 MiB of a process, on disk only as far as used */

static EngRecordHead *g_head;

static uint32_t wanted_chunks(void)
{
    const char *text = getenv("ENG_TRACE_CHUNKS");
    long n = text ? strtol(text, NULL, 10) : 0;
    return n >= 1 && n <= 65536 ? (uint32_t)n : DEFAULT_CHUNKS;
}

/* A new file: a process may become another program under the same number. -1: none. */
static int create(const char *folder)
{
    char path[4096];
    int fd = -1;
    for (int i = 0; fd < 0 && i < 100; i++) {
        int n = snprintf(path, sizeof path, "%s/%ld.%d.rec", folder, (long)getpid(), i);
        if (n < 0 || n >= (int)sizeof path) return -1;
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) return -1;
    }
    return fd;
}

static void begin(void)
{
    const char *folder = getenv("ENG_TRACE_DIR");
    uint32_t n = wanted_chunks();
    size_t bytes = eng_record_region_bytes(n);
    int fd = folder ? create(folder) : -1;
    g_head = NULL;
    if (fd < 0) return;
    if (!ftruncate(fd, (off_t)bytes) && !fallocate(fd, 0, 0, 4096)) {
        void *region = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (region != MAP_FAILED) g_head = region;
    }
    close(fd);
    if (!g_head) return;
    eng_record_init(g_head, n);
    eng_hook_attach(g_head);
}

static void in_forked_child(void)
{
    eng_hook_forget_in_child();
    eng_record_unmap(g_head);
    begin();
}

__attribute__((constructor)) static void load(void)
{
    begin();
    pthread_atfork(NULL, NULL, in_forked_child);
}

__attribute__((destructor)) static void unload(void)
{
    if (g_head) eng_record_stop(g_head);
}
