/* `where` expressions of sweeps: a point is kept when its expression is true.
 *
 *   tokens * heads <= 4096 && (row_format == "fp8" || !(threads > 1))
 *
 * Integers, reals, words in single or double quotes, axis names; || && ! == != < <= > >= + - * / %
 * and parentheses, binding as in C. Integer arithmetic is 64-bit and checked; "2^20" is a number.
 * A word compares only with a word, by == and != alone. Everything but overflow and division by
 * zero is checked when the text is read.
 */
#ifndef ENG_BENCH_WHERE_H
#define ENG_BENCH_WHERE_H

#include <stdbool.h>

#include "base/mem.h"
#include "bench/core/experiment.h"

typedef struct EngWhere EngWhere;

/* The expression lives in the arena. ENG_USAGE names the column (from 1) and what is wrong there.
 */
EngStatus eng_where_parse(const char *text, const EngExperiment *experiment, EngArena *arena,
                          EngWhere **where, EngErr *err);

/* keep: whether the point stays. ENG_USAGE on overflow or division by zero. */
EngStatus eng_where_eval(const EngWhere *where, const EngPoint *point, bool *keep, EngErr *err);

#endif
