/* Merging another database into this one: a device's, a colleague's.
 *
 * Everything of the other database comes in by its content keys, in one transaction: all of it or
 * nothing. What both hold is compared. A run that is further along in one of them (done against
 * interrupted, say) is taken from there, with its blocks, segments and points; any other difference
 * under the same key is a conflict: ours stays, and it is counted and told. A segment in conflict
 * is left out with all its samples, so that two lifetimes never mix. Merging twice changes nothing.
 *
 * A run that was not finished there comes in as a kill would have left it ('interrupted', its open
 * segments broken), so it can be resumed here on the same machine. Files that artifacts name stay
 * where they are. */
#ifndef ENG_BENCH_DB_MERGE_H
#define ENG_BENCH_DB_MERGE_H

#include "bench/core/db.h"

#define ENG_MERGE_SHOWN 10 /* conflicts told in words */

typedef struct EngMergeCounts {
    int64_t added;   /* rows new here */
    int64_t updated; /* rows that were further along there */
    int64_t same;    /* rows both hold, ours being further along included */
    int64_t conflicts;
    int64_t runs, points, samples;    /* of the rows added */
    char shown[ENG_MERGE_SHOWN][192]; /* "points KEY: variant_digest differs" */
    int n_shown;
} EngMergeCounts;

/* `db` is open as ENG_DB_RUN, `other` as ENG_DB_READ, which is only read. ENG_BAD_DATA: rows of
 * the other database refer to rows it does not have. */
EngStatus eng_db_merge(EngDb *db, EngDb *other, EngMergeCounts *counts, EngErr *err);

#endif
