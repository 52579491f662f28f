/* The header page of a table file and where its regions lie; see table_file.h. Internal to
 * kernels/store. */
#ifndef ENG_KERNELS_STORE_TABLE_HEADER_H
#define ENG_KERNELS_STORE_TABLE_HEADER_H

#include "kernels/store/table_file.h"

/* What ends a header page and begins it; a file still being written says so. */
#define ENG_TABLE_MAGIC      "engtable"
#define ENG_TABLE_MAGIC_PART "engtpart"

/* Fills the layout (offsets, sizes, numbers of blocks) from format, row_dims and rows: ENG_USAGE
 * when no such table can be. */
EngStatus eng_table_layout(EngTableFile *file, EngErr *err);
size_t eng_table_checks_bytes(const EngTableFile *file);
uint64_t eng_table_checks_offset(const EngTableFile *file);

/* The page for a description (JSON) and the checksums; ENG_USAGE when the description is too long.
 */
EngStatus eng_table_header_write(const char *magic, const char *description,
                                 const uint8_t checks_sum[ENG_DIGEST_BYTES],
                                 uint8_t page[ENG_TABLE_FILE_PAGE], EngErr *err);
/* Reads the page of a whole file: format, row_dims, rows, description (new), digest. checks_sum
 * points into the page. ENG_BAD_DATA naming what is wrong; path is for the text. */
EngStatus eng_table_header_read(const char *path, const uint8_t page[ENG_TABLE_FILE_PAGE],
                                EngTableFile *file, const uint8_t **checks_sum, EngErr *err);

#endif
