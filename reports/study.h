/* What reports on trained models ask of a database beside its tables: every run as one row,
 * published numbers, and the statistics of bench/core/paired.h as SQL functions, so that a figure,
 * its sentence and a table cannot differ.
 *
 * Table v_train: a row per run of experiment `train` in the database, whatever run of the program
 * it belongs to (a run that several machines have, or that has several numbers of threads, once; of
 * a run that became another one when the program changed, the newest): point_key, block_id, kind,
 * outcome, reason, arm (axes without seed and threads, JSON; `data` in it: the text of that name
 * and rung is another one than most runs have), family (those of them that say how it is trained),
 * study (family in words, with rung and budget always: what a title or a series says of runs that
 * may be compared), label (arm in words), seed, main (1: its family has most runs of its rung,
 * text, budget and streams), again (1: the same model under another spelling of its axes, e.g. the
 * rung's learning rate as a number; the row with the shortest label has 0), note ("", " (imported)"
 * or " (partly imported)": where the runs of the database come from), every axis, every metric.
 *
 * Runs of different `arm` must never be pooled, but over the axis that is looked at: a group is
 * json_remove(arm, '$.axis'), and arm_label of it is its name.
 *
 * Aggregates over rows; results are JSON, NULL members where there are too few values:
 *   paired_test(difference)         {n, mean, sd, lo, hi, p_greater, p_two}
 *   spread(x, seed, loss)           {df, sigma, lo, hi}
 *   valley_fixed(x, seed, loss, low, valley, high) and
 *   valley_split(x, seed, loss)     {low, valley, high, p, claimed, left, right, n_choosing,
 *                                   n_testing}; NULL when the curve lacks a place or seeds
 *   lowest(x, seed, loss)           {best, lo, hi, n_seeds, tied: [x, ..]} or NULL
 *   holm(name, p)                   {name: corrected p}
 * Functions:
 *   claim_p(paired_test's JSON, published difference, margin)  {agrees, disagrees}: eng_claim_p
 *   claim(corrected agrees, corrected disagrees)               the verdict's words
 *   interval(mean, lo, hi)          "+0.0010 (+0.0002 to +0.0018)", without what is NULL
 *   arm_label(axes as JSON)         rung, budget, and what is not at its default, in words
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
