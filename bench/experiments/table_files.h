/* Table files for experiments: seeded tables, made when first asked for and kept for later runs,
 * and the truth to compare fetched rows with, which is computed from the seed and not read from a
 * file.
 */
#ifndef ENG_EXPERIMENTS_TABLE_FILES_H
#define ENG_EXPERIMENTS_TABLE_FILES_H

#include <engram/store.h>
#include "bench/core/resources.h"

#define ENG_TABLE_PATH_BYTES 1024

/* FOLDER/FORMAT-DIMS-ROWS-SEED.table, where FOLDER is ENG_TABLES of the environment or `tables` in
 * the data folder. Makes the file when there is none: seconds for each GiB. ENG_IO: the disk is
 * full, or another process is making it. ENG_BAD_DATA: the file there is no table, a damaged one,
 * or one of other rows than its name says. */
EngStatus eng_table_file_ready(const EngResources *resources, EngRowFormat format, int row_dims,
                               int64_t rows, char path[ENG_TABLE_PATH_BYTES], EngErr *err);

/* Compares every block of the file with its checksum, once in a run while device, inode, size and
 * times of the file stay as they are. What was read stays in the page cache: left out, with a
 * warning that says so, where it may not (`may_cache`) and where the file is larger than
 * ENG_VERIFY_BYTES of the environment (8 GiB). ENG_BAD_DATA naming file, block and rows; ENG_IO. */
EngStatus eng_table_file_sound(const EngResources *resources, const char *path, bool may_cache,
                               EngErr *err);

/* Compares slots 0..n-1 of a destination with rows[0..n) of the seeded table, bit for bit, padding
 * aside; *n_wrong counts rows that differ. */
EngStatus eng_table_rows_check(const EngResources *resources, EngRowFormat format, int row_dims,
                               const int64_t *rows, int64_t n, const EngRowsOut *out,
                               int64_t *n_wrong, EngErr *err);

#endif
