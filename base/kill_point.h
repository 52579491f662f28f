/* Moments to be killed at, for tests of crash safety. ENG_KILL_AT=<place>:<n> in the environment
 * ends the process with SIGKILL when it reaches that place for the n-th time (from 1), so that a
 * test reaches every moment for sure instead of by luck. Without the variable a call compares one
 * pointer.
 *
 * Places: plan (a point enters the ledger), sample (a sample is half written), commit (before and
 * after each commit of a transaction), merge (a row is brought in), write (a piece of a file is
 * written), rename (a whole file has not got its name yet), trace (in the writing of a trace file
 * and of its row). */
#ifndef ENG_BASE_KILL_POINT_H
#define ENG_BASE_KILL_POINT_H

void eng_kill_point(const char *place);

#endif
