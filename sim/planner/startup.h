/* Start-up: the time from an empty host to tables that devices can read. Reading the file, touching
 * the pages and pinning them go through all bytes once each; the first two overlap where the file
 * is read into the pages it stays in. */
#ifndef ENG_SIM_PLANNER_STARTUP_H
#define ENG_SIM_PLANNER_STARTUP_H

#include <engram/status.h>

typedef struct EngStartupInput {
    double bytes;         /* of tables on the host, copies included */
    double copies;        /* that are made from one reading of the file, at least 1 */
    double read_rate;     /* B/s of the file, read in order; 0: not known */
    double populate_rate; /* B/s; 0: not known */
    double pin_rate;      /* B/s; 0: not known, not asked when nothing is pinned */
    double pinned;        /* bytes */
} EngStartupInput;

typedef struct EngStartup {
    double read, populate, pin; /* s; NAN: a rate is not known */
    double total;               /* s: max(read, populate) + pin; NAN: one is not known */
} EngStartup;

/* ENG_USAGE: negative bytes or rates, fewer than 1 copy, more pinned than there is. */
EngStatus eng_startup_plan(const EngStartupInput *input, EngStartup *startup, EngErr *err);

#endif
