/* A table whose rows are made in the device's memory: the same rows as the run's table has, for
 * sizes that no host memory holds (one of V4.1's layers: 94.4 GiB). Made once per worker and shared
 * by the points that read it. */
#ifndef ENG_EXPERIMENTS_DEVICE_TABLE_H
#define ENG_EXPERIMENTS_DEVICE_TABLE_H

#include <engram/types.h>
#include "kernels/store/content.h"

typedef struct EngDeviceTable {
    struct EngDeviceTable *next;
    int users;
    EngTable table; /* device addresses */
    uint64_t seed;
} EngDeviceTable;

/* ENG_UNSUPPORTED: no device, or its memory is smaller than the table. */
EngStatus eng_device_table_fits(const EngTable *table, EngErr *why);
/* Of format, row_dims and rows of `like`. Given back with eng_device_table_drop. Not for threads.
 */
EngStatus eng_device_table_take(const EngTable *like, uint64_t seed, EngDeviceTable **out,
                                EngErr *err);
void eng_device_table_drop(EngDeviceTable *table); /* accepts NULL; the last user frees it */

/* n of its rows, made anew by the host: row i of `out`, whose memory is the caller's to free
 * (eng_free of values and scales, after a failure too). */
EngStatus eng_device_table_rows(const EngDeviceTable *table, const int64_t *rows, int64_t n,
                                EngTable *out, EngErr *err);

#endif
