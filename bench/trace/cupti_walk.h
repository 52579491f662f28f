/* Walking the records of one activity buffer. libcupti's own iterator is used when it is loaded:
 * only it knows the sizes that a newer library writes. Without it the sizes are those of the
 * headers, which is what tests and stored buffers need. Internal to the decoder; empty without the
 * CUPTI headers. */
#ifndef ENG_TRACE_CUPTI_WALK_H
#define ENG_TRACE_CUPTI_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef ENG_HAVE_CUPTI

#include <cupti.h>

typedef __typeof__(&cuptiActivityGetNextRecord) EngCuptiNext;

/* Why a walk ended before the end of its bytes. */
typedef enum EngCuptiEnd {
    ENG_CUPTI_END_WHOLE = 0,  /* it did not */
    ENG_CUPTI_END_UNFINISHED, /* a record of kind 0: CUPTI has not filled it yet */
    ENG_CUPTI_END_UNKNOWN,    /* a kind without a size: what lies behind it cannot be found */
    ENG_CUPTI_END_CUT         /* the bytes end within a record */
} EngCuptiEnd;

typedef struct EngCuptiWalk {
    uint8_t *bytes; /* 8-byte aligned, [n_bytes] */
    size_t n_bytes;
    EngCuptiNext next; /* NULL: sizes of the headers */
    bool newer;        /* next may pass fields that the headers do not know */
    size_t at;         /* where the record after *record begins, as far as the headers tell */
    CUpti_Activity *record;
    EngCuptiEnd end;
    size_t left_bytes; /* behind the last record returned, once the walk has ended */
} EngCuptiWalk;

/* version: of the library that next belongs to. */
void eng_cupti_walk_start(EngCuptiWalk *walk, uint8_t *bytes, size_t n_bytes, EngCuptiNext next,
                          uint32_t version);
/* The next record, wholly within the bytes for every kind that has a size; NULL: ended. */
CUpti_Activity *eng_cupti_walk_next(EngCuptiWalk *walk);

/* Bytes of a record of this kind in the headers; 0: unknown to them. */
size_t eng_cupti_record_bytes(uint32_t kind);

#endif
#endif
