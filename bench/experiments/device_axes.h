/* Axes that only kernels of a device have: where their table lies, and whether runs are replayed as
 * graphs (replay.h). */
#ifndef ENG_EXPERIMENTS_DEVICE_AXES_H
#define ENG_EXPERIMENTS_DEVICE_AXES_H

#include "bench/core/experiment.h"

/* local: the memory of the processor that runs the kernel; pinned: host memory that a device reads
 * itself; staged: host memory from which the host packs the rows that are then copied; made: the
 * device's memory, filled there (device_table.h), which `gather` alone has. */
typedef enum EngTableAt {
    ENG_TABLE_LOCAL = 0,
    ENG_TABLE_PINNED,
    ENG_TABLE_STAGED,
    ENG_TABLE_MADE
} EngTableAt;
/* Of the axis `table_at`; without it, or without a point, local. */
EngTableAt eng_point_table_at(const EngPoint *point);
bool eng_point_has_graph(const EngPoint *point); /* the axis `graph` is on */

/* ENG_UNSUPPORTED with the reason: a value of table_at, graph or cache that the kernel does not
 * have. Axes that the experiment lacks are at their default. */
EngStatus eng_point_device_check(const EngPoint *point, const EngKernel *kernel, EngErr *why);

#endif
