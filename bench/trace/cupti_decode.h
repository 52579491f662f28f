/* From CUPTI's activity buffers to rows. A pure function of the bytes: it needs the headers of the
 * CUDA toolkit, no library, no GPU, and follows no address in the buffer.
 *
 * Structs are those of the headers that the build found (CUDA 13: Kernel10, Memcpy6, Memset4, ...);
 * records of a newer 13.x library, which only appends fields, are read through its own iterator.
 * What each field becomes: harness notes 4.2; enumerations are translated to the export's values.
 * Kernels keep the name that CUPTI gives in all three columns: ours are extern "C", and those of
 * libraries stay as their compiler mangled them.
 */
#ifndef ENG_TRACE_CUPTI_DECODE_H
#define ENG_TRACE_CUPTI_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bench/trace/cupti_rows.h"

/* NULL when the decoder is built in, else why it is not ("no CUPTI headers"). */
const char *eng_cupti_not_built(void);

/* How to read buffers. */
typedef struct EngCuptiSource {
    int64_t pid; /* whose GPU work it is: records of kernels do not say */
    /* Whose iterator and call names are used (cupti_api.h); NULL: sizes of the headers, and names
     * such as "runtime_211". */
    const struct EngCuptiApi *library;
} EngCuptiSource;

/* While CUPTI still vouches for the addresses in the buffer: copies the names that records point
 * to into rows->names and puts their numbers in the place of the addresses. */
void eng_cupti_keep_names(EngCuptiRows *rows, const EngCuptiSource *source, uint8_t *bytes,
                          size_t n_bytes);

/* Adds the rows of a buffer that went through eng_cupti_keep_names. bytes: 8-byte aligned; any
 * content is safe. Never fails: every record makes a row or a drop in *rows. */
void eng_cupti_decode(EngCuptiRows *rows, const EngCuptiSource *source, uint8_t *bytes,
                      size_t n_bytes);

#endif
