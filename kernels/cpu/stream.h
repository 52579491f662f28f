/* Sequential passes over memory: what the machine's bandwidth is, for roofs and for comparison with
 * outside tools. 64-bit integers, so that results are exact; bytes counted are those the loop loads
 * and stores (no write-allocate), as likwid-bench counts them.
 */
#ifndef ENG_KERNELS_CPU_STREAM_H
#define ENG_KERNELS_CPU_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <engram/status.h>

typedef enum EngStreamOp {
    ENG_STREAM_READ = 0, /* sum of all words */
    ENG_STREAM_WRITE,    /* one value into all words */
    ENG_STREAM_COPY,     /* words into another array */
    ENG_STREAM_UPDATE,   /* each word plus a value, in place */
    ENG_STREAM_OP_COUNT
} EngStreamOp;

const char *eng_stream_op_name(EngStreamOp op); /* "read" ..; NULL, -1 when unknown */
int eng_stream_op_parse(const char *name);
/* Bytes moved per byte of an array: 1, or 2 where each word is loaded and stored. */
int eng_stream_op_factor(EngStreamOp op);

/* ENG_UNSUPPORTED: non-temporal stores where nothing is stored, or on another processor. */
EngStatus eng_stream_supports(EngStreamOp op, bool non_temporal, EngErr *why);

/* n: bytes, a multiple of 64; arrays at multiples of 64. to: the array that is changed (READ: the
 * one that is read); from: COPY only. READ returns the sum modulo 2^64, others 0. One thread. */
uint64_t eng_stream_pass(EngStreamOp op, bool non_temporal, uint8_t *to, const uint8_t *from,
                         size_t n, uint64_t value);

/* Threads pass over parts of their own: part t of [threads] covers the n bytes at offset[t]. */
uint64_t eng_stream_parts(EngStreamOp op, bool non_temporal, uint8_t *to, const uint8_t *from,
                          int threads, const size_t *offset, size_t n, uint64_t value);

#endif
