/* Reader of safetensors files: 8 bytes with the header's length, the header (JSON), then the data
 * of all tensors without gaps (format: github.com/huggingface/safetensors, README).
 *
 * A file that opens is sound: lengths within the file, known dtypes, shapes whose bytes are exactly
 * those of their offsets, data that begin at 0, overlap nowhere, leave no byte out and end with the
 * file. Lengths from the file are compared with its size before anything is allocated.
 */
#ifndef ENG_KERNELS_STORE_SAFETENSORS_H
#define ENG_KERNELS_STORE_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>
#include <engram/status.h>

#define ENG_SAFETENSORS_HEADER_MAX 100000000 /* bytes; the format's own limit */
#define ENG_SAFETENSORS_MAX_DIMS   8

typedef struct EngTensor {
    const char *name;
    const char *dtype; /* "F8_E4M3", "F8_E8M0", "BF16", ... */
    int n_dims;
    int64_t shape[ENG_SAFETENSORS_MAX_DIMS];
    uint64_t offset, bytes; /* in the file */
} EngTensor;

typedef struct EngSafetensors {
    char *path; /* owned, as all of it */
    int fd;
    uint64_t file_bytes;
    EngTensor *tensors; /* in the order of their data */
    size_t n;
    struct EngArena *arena; /* names */
} EngSafetensors;

/* ENG_BAD_DATA, no such file among it: one line naming file, tensor and what is wrong. */
EngStatus eng_safetensors_open(const char *path, EngSafetensors *file, EngErr *err);
void eng_safetensors_close(EngSafetensors *file); /* accepts a closed or zeroed one */

/* The tensor of that name, or else the only one whose name ends with "." and it; NULL when there is
 * none. */
const EngTensor *eng_safetensors_find(const EngSafetensors *file, const char *name);

#endif
