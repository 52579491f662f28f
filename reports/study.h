/* What reports on trained models ask of a database beside its tables: every run as one row,
 * published numbers, and the statistics of bench/core/paired.h as SQL functions, so that a figure,
 * its sentence and a table cannot differ.
 *
 * Table v_train: a row per run of experiment `train` in the database, whatever run of the program
 * it belongs to (a run that several machines have, once): point_key, block_id, kind, outcome,
 * reason, arm (axes without seed and threads, JSON), family (those of them that say how it is
 * trained), seed, main (1: its family has most runs of its rung, text, budget and streams), every
 * axis, every metric.
 *
 * Aggregates over rows; results are JSON, NULL members where there are too few values:
 *   paired_test(difference)                 {n, mean, sd, lo, hi, p_greater, p_two}
 *   spread(x, seed, loss)                   {df, sigma, lo, hi}
 *   valley_fixed(x, seed, loss, low, valley, high) and
 *   valley_split(x, seed, loss)             {low, valley, high, p, claimed, left, right,
 * n_testing}; NULL when the curve lacks a place or seeds lowest(x, seed, loss) {best, lo, hi,
 * n_seeds, tied: [x, ..]} or NULL holm(name, p)                           {name: corrected p}
 * Function: claim(paired_test's JSON, corrected p, published difference): the verdict's words.
 */
#ifndef ENG_REPORTS_STUDY_H
#define ENG_REPORTS_STUDY_H

#include <engram/status.h>

struct sqlite3;

/* Adds functions and table to a connection. */
EngStatus eng_study_register(struct sqlite3 *sql, const char *path, EngErr *err);
/* Temporary table published(figure, series, x, y, note) from <folder>/published.csv, where a line
 * that begins with # is a comment; empty when there is no such file. */
EngStatus eng_study_published(struct sqlite3 *sql, const char *folder, EngErr *err);

#endif
