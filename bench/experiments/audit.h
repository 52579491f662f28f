/* How honest is a token stream as the input of a benchmark of hash tables? A repeated phrase reads
 * few rows, and caches then flatter every number; ids without any structure read more than text
 * does. Counted exactly on the stream; `engram audit` prints it beside the corpora of the data
 * folder.
 */
#ifndef ENG_EXPERIMENTS_AUDIT_H
#define ENG_EXPERIMENTS_AUDIT_H

#include <stddef.h>
#include <engram/address.h>
#include "bench/experiments/reuse_count.h"

#define ENG_AUDIT_SIZES 4 /* batches of 64, 256, 1024 and 4096 tokens */
#define ENG_AUDIT_TOP   3 /* n-grams named of an order */
extern const int64_t eng_audit_sizes[ENG_AUDIT_SIZES];

typedef struct EngAuditNgram {
    int64_t at;   /* first place of it in the stream: tokens at .. at + order - 1 */
    double share; /* of all n-grams of the order, so of the look-ups of a column */
} EngAuditNgram;

typedef struct EngAudit {
    int64_t n_tokens;
    int64_t distinct_ids;      /* of the compressed ids */
    int64_t distinct_original; /* of the tokenizer's own, 0 when there are none */
    int n_sizes;               /* leading sizes that the stream has two batches of, at
                                  least the first that it has one of */
    EngReuseCounts counts[ENG_AUDIT_SIZES];
    double uncompressed; /* distinct_all at the last size without compression, NAN */
    int min_order, max_order;
    /* The most frequent n-grams; [ENG_MAX_ORDER + 1] by order. */
    int n_top[ENG_MAX_ORDER + 1];
    EngAuditNgram top[ENG_MAX_ORDER + 1][ENG_AUDIT_TOP];
} EngAudit;

typedef struct EngAuditInput {
    const int32_t *compressed; /* [n_tokens] */
    const uint32_t *ids;       /* the tokenizer's own, NULL: there are none */
    int64_t n_tokens;
    const EngAddress *address;  /* of one layer */
    const EngAddress *original; /* the same over the tokenizer's vocabulary; NULL: not counted */
} EngAuditInput;

/* only_size >= 0: counts that size alone and no n-grams but the most frequent (for the corpora that
 * a stream is compared with). ENG_UNSUPPORTED: shorter than the smallest batch. */
EngStatus eng_audit_count(const EngAuditInput *input, int only_size, EngAudit *audit, EngErr *err);

/* A corpus to compare with. */
typedef struct EngAuditCorpus {
    char name[64], kind[16];
    double distinct_all, repeat_prev;
} EngAuditCorpus;

typedef enum EngAuditVerdict {
    ENG_AUDIT_TEXT = 0,  /* within what real corpora do */
    ENG_AUDIT_FILLER,    /* as few distinct rows as a repeated phrase, or less than half of text */
    ENG_AUDIT_REPLAYED,  /* batches read again what the batch before read */
    ENG_AUDIT_REPEATING, /* fewer distinct rows than any real corpus */
    ENG_AUDIT_RANDOM,    /* more distinct rows than any real corpus: hardly anything comes back */
    ENG_AUDIT_UNKNOWN    /* no real corpus to compare with */
} EngAuditVerdict;

/* The verdict on shares at one batch size, against real corpora (kind "real"; prose is named where
 * it is one of them). One sentence into out. */
EngAuditVerdict eng_audit_judge(double distinct_all, double repeat_prev, int64_t batch,
                                const EngAuditCorpus *corpora, int n, char *out, size_t size);
const char *eng_audit_verdict_name(EngAuditVerdict verdict);

#endif
