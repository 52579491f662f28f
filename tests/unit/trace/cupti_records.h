/* Activity buffers built by hand from the structs of the CUDA headers, for tests of the decoder. */
#ifndef ENG_TESTS_CUPTI_RECORDS_H
#define ENG_TESTS_CUPTI_RECORDS_H

#ifdef ENG_HAVE_CUPTI

#include <cupti.h>
#include <stdint.h>
#include <string.h>

#define BUFFER_BYTES 65536

typedef struct Buffer {
    uint8_t bytes[BUFFER_BYTES] __attribute__((aligned(64)));
    size_t n;
} Buffer;

static inline void put(Buffer *buffer, const void *record, size_t bytes)
{
    memcpy(buffer->bytes + buffer->n, record, bytes);
    buffer->n += bytes;
}
#define PUT(buffer, record) put((buffer), &(record), sizeof(record))

static inline CUpti_ActivityKernel10 kernel_of(uint64_t start, uint64_t end, uint32_t correlation,
                                               uint32_t stream, const char *name)
{
    CUpti_ActivityKernel10 k = {.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                .start = start,
                                .end = end,
                                .contextId = 1,
                                .streamId = stream,
                                .correlationId = correlation,
                                .name = name,
                                .gridX = 1,
                                .gridY = 1,
                                .gridZ = 1,
                                .blockX = 32,
                                .blockY = 1,
                                .blockZ = 1};
    return k;
}

static inline CUpti_ActivityAPI call_of(CUpti_ActivityKind kind, uint32_t cbid, uint64_t start,
                                        uint64_t end, uint32_t correlation)
{
    CUpti_ActivityAPI a = {.kind = kind,
                           .cbid = cbid,
                           .start = start,
                           .end = end,
                           .processId = 77,
                           .threadId = 78,
                           .correlationId = correlation};
    return a;
}

static inline CUpti_ActivityMemcpy6 copy_of(uint64_t start, uint64_t end, uint32_t correlation,
                                            uint32_t stream, uint64_t bytes)
{
    CUpti_ActivityMemcpy6 m = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY,
                               .copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
                               .srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED,
                               .dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                               .bytes = bytes,
                               .start = start,
                               .end = end,
                               .contextId = 1,
                               .streamId = stream,
                               .correlationId = correlation,
                               .copyCount = 1};
    return m;
}

#endif
#endif
