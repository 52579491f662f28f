/* Token streams: the real, generated or imported input of every experiment.
 *
 * A stream on disk is two files in one folder: NAME.ids holds little-endian uint32 ids of the
 * original tokenizer; NAME.json names corpus, kind, vocabulary, origin, document boundaries and the
 * sha256 of the ids. scripts/fetch_data and `engram stream import` write such pairs. The digest is
 * the stream's identity: it enters the key of every point measured on it.
 */
#ifndef ENG_BENCH_STREAM_H
#define ENG_BENCH_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <engram/status.h>
#include "base/digest.h"
#include "base/file.h"

#define ENG_STREAM_FORMAT "engram-stream-1"
#define ENG_STREAM_NAME   64  /* longest corpus name, with the terminating zero */
#define ENG_STREAM_LABEL  192 /* bytes of a label, with the terminating zero */

typedef struct EngStream {
    char corpus[ENG_STREAM_NAME]; /* the name it was asked for by */
    char kind[16];                /* "real", "filler", "imported", "synthetic" or "uniform" */
    char digest[ENG_DIGEST_HEX];  /* sha256 of the ids as little-endian uint32 */
    char label[ENG_STREAM_LABEL]; /* one line for tables and plots; says "synthetic" when it is */
    char tokenizer_sha256[ENG_DIGEST_HEX]; /* of the tokenizer file; "" when not known */
    int64_t n_tokens, vocab_ids;           /* every id is in [0, vocab_ids) */
    const uint32_t *ids;                   /* n_tokens, read-only */
    int64_t n_documents;
    const int64_t *document_starts; /* ascending token indices, the first is 0 */
    EngMapping mapping;             /* owner of ids when they lie in a file ... */
    uint32_t *owned_ids;            /* ... or when they were generated */
    int64_t *owned_starts;
} EngStream;

/* Opens NAME.json and the ids beside it, and checks all of it: fields, file size, sha256, order of
 * documents, range of every id. ENG_NOT_FOUND: no such header; ENG_BAD_DATA names file, key and
 * both values. On failure *stream is empty and needs no closing. */
EngStatus eng_stream_open(const char *header_path, EngStream *stream, EngErr *err);

/* The stream of a corpus in a data folder. ENG_NOT_FOUND when the folder has none of that name,
 * with the nearest name it has. */
EngStatus eng_stream_find(const char *data_dir, const char *corpus, EngStream *stream, EngErr *err);

/* Generates independent draws over the ids [0, vocab):
 *   "synthetic"  Zipf: the word of rank r = 1..vocab has probability proportional to 1/r; which id
 *                has which rank is a seeded permutation. Real text is more repetitive than this in
 *                pairs and triples, since no draw depends on the one before.
 *   "uniform"    every id equally likely: the worst case for reuse.
 * Both have documents of ENG_SYNTHETIC_DOCUMENT tokens. The same (kind, n_tokens, vocab, seed)
 * gives the same ids on every machine. ENG_USAGE for another kind, n_tokens < 1 or vocab < 1. */
#define ENG_SYNTHETIC_DOCUMENT 1024
EngStatus eng_stream_synthetic(const char *kind, int64_t n_tokens, int64_t vocab, uint64_t seed,
                               EngStream *stream, EngErr *err);

void eng_stream_close(EngStream *stream); /* accepts an empty or closed stream */

/* Whether a name belongs to a corpus made by scripts/fetch_data: only for those may a plan take a
 * synthetic stream when they are absent. Any other absent name is a mistake. */
bool eng_stream_name_fetched(const char *name);
/* The same or a generated one: an import may not take it. */
bool eng_stream_name_reserved(const char *name);
/* Letters, digits, '.', '_' and '-', not starting with '.' or '-', at most 63: safe as an axis
 * value and as a file name. */
bool eng_stream_name_valid(const char *name);

/* Names of the streams in a folder, sorted. The caller frees it with eng_stream_names_free. A
 * missing folder is an empty list. */
typedef struct EngStreamNames {
    char **names;
    int n;
} EngStreamNames;
EngStatus eng_stream_names(const char *data_dir, EngStreamNames *list, EngErr *err);
void eng_stream_names_free(EngStreamNames *list);

#endif
