/* What is known of the device that a run's points were measured on: clocks, its L2 against working
 * sets, sizes of pinned tables. */
#ifndef ENG_CORE_DB_DEVICE_H
#define ENG_CORE_DB_DEVICE_H

#include "bench/core/db.h"

typedef struct EngDeviceFacts {
    bool used;                    /* some segment of the run ran on a device; else all is 0 */
    double l2_bytes, floor_ns;    /* floor: an empty kernel, the mean of the segments */
    int sm_mhz[2], memory_mhz[2]; /* least and most; -1: not told */
    int64_t slow;                 /* NVML's reasons, of a segment that had any */
    char why_no_clocks[96];       /* "": they were told */
    int sets, fitting;      /* device points with a working set, and those whose set the L2 holds */
    double set_bytes[2];    /* least and most */
    double pinned_bytes[2]; /* of tables in pinned host memory; 0: none */
} EngDeviceFacts;

EngStatus eng_db_device_facts(EngDb *db, const char *run_id, EngDeviceFacts *out, EngErr *err);

#endif
