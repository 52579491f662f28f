/* Trace files of a run as a temporary table, so that figures of time lines are SQL like all others.
 */
#ifndef ENG_REPORTS_TRACES_H
#define ENG_REPORTS_TRACES_H

#include <stdbool.h>
#include "base/str.h"

struct sqlite3;

/* Attaches the trace files of the run's points (at most 8; artifacts of kind "trace") and makes the
 * table trace_events of their ranges and marks of the domain "engram":
 *
 *   point_key, thread (id), thread_name, kind ('range' or 'mark'), name, start_ns, end_ns, step,
 *   layer, tokens, bytes (of a payload, NULL: not told), value (of a mark)
 *
 * Without trace files it is empty. A file that is gone, is not the one that was recorded or is no
 * trace is left out with a warning. sql receives the statements, for a page's reader. ENG_DB,
 * ENG_NO_MEMORY. */
EngStatus eng_traces_attach(struct sqlite3 *db, const char *db_path, const char *run_id,
                            EngStr *sql, EngErr *err);

#endif
