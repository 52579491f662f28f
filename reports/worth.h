/* What a point should take, and what a kernel's ratio is worth for the chain, as SQL functions over
 * bench/core/db_expectation.h and bench/core/amdahl.h: so a page says what `engram run` says.
 *
 *   expected_us(point_key), expected_why(point_key)
 *                           of one call of a CPU's point of the run: its time, and the term that
 *                           limits it or explains the difference. NULL: nothing is known.
 *   chain_worth(stage, preset, tokens, threads, ratio)
 *                           "+2.4 %": how much faster the whole chain is with a kernel `ratio`
 *                           times as fast as a reference than with that reference, from the share
 *                           that the stage has in the best chain measured; " (nd)" where that is
 *                           within the chain's own noise, " (noise unknown)" where it has too
 *                           few samples. NULL: no such chain in the database.
 *
 * Rates and chains may come from other runs of the database, so they are asked of a connection of
 * their own, where v_summary (shadowed in a page's by that of its run) is whole; it is opened when
 * a query first asks. */
#ifndef ENG_REPORTS_WORTH_H
#define ENG_REPORTS_WORTH_H

#include <engram/status.h>

struct sqlite3;

/* Both strings are copied. ENG_NO_MEMORY, ENG_BAD_DATA. */
EngStatus eng_worth_register(struct sqlite3 *sql, const char *path, const char *run_id,
                             EngErr *err);

#endif
