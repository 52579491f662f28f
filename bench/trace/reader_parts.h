/* Between reader.c and reader_rows.c. */
#ifndef ENG_BENCH_TRACE_READER_PARTS_H
#define ENG_BENCH_TRACE_READER_PARTS_H

#include "bench/core/key_table.h"
#include "bench/trace/reader.h"

#define ENG_READER_OPEN INT64_MIN /* end of a range that was never closed */

typedef struct EngReader {
    struct sqlite3 *sql;
    EngTrace *t;
    EngErr *err;
    EngKeyTable texts;
    int n_track_room, last_track;
    bool no_memory; /* some text could not be kept */
} EngReader;

EngStatus eng_reader_fail(EngReader *r, const char *doing);
EngStatus eng_reader_no_memory(EngReader *r);
/* One copy of every text; NULL: out of memory. */
const char *eng_reader_intern(EngReader *r, const char *text);

/* The table of that name, or its newest "_V2", "_V3"; NULL: absent. */
const char *eng_reader_table(EngReader *r, const char *name);
bool eng_reader_has_table(EngReader *r, const char *table);
bool eng_reader_has_column(EngReader *r, const char *table, const char *column);

/* All tables of events into r->t, unordered. */
EngStatus eng_reader_rows(EngReader *r);

#endif
