/* Table files: one table of one layer on disk, what every file-backed row store reads.
 *
 *   bytes            content
 *   0                header page: magic, version, layout, JSON description, sha256 of the page
 *   values_offset    rows * stride_bytes
 *   scales_offset    rows * scale_bytes (formats that keep scales apart; else nothing)
 *   checks_offset    sha256 of each block of 4 MiB, those of the values first, then of the scales
 *
 * Regions begin at multiples of 4 KiB and the file ends at one, so that all of it can be read with
 * O_DIRECT; numbers are little-endian. A file under its own name is whole: it is written as
 * PATH.part, block by block, and renamed when all is on disk.
 */
#ifndef ENG_KERNELS_STORE_TABLE_FILE_H
#define ENG_KERNELS_STORE_TABLE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/digest.h"
#include <engram/status.h>
#include <engram/types.h>

#define ENG_TABLE_FILE_PAGE        4096
#define ENG_TABLE_FILE_BLOCK_BYTES ((size_t)4 << 20)
#define ENG_TABLE_FILE_CHECK_BYTES 32 /* sha256 */

typedef struct EngTableFile {
    char *path; /* owned */
    int fd;     /* O_RDONLY, owned; a store may open path again with O_DIRECT */
    EngRowFormat format;
    int row_dims;
    int64_t rows;
    size_t stride_bytes; /* distance of rows in the values region: eng_row_stride_bytes() */
    size_t scale_bytes;  /* distance of rows in the scales region, 0 when there is none */
    uint64_t values_offset, values_bytes;
    uint64_t scales_offset, scales_bytes; /* region empty: bytes 0 */
    uint64_t file_bytes;
    int64_t value_blocks, scale_blocks;
    uint8_t *checks;          /* [value_blocks + scale_blocks][ENG_TABLE_FILE_CHECK_BYTES], owned */
    char *description;        /* JSON, keys sorted: what the rows are; owned */
    char digest[ENG_KEY_HEX]; /* key of the description: the store's identity in the database */
} EngTableFile;

/* Checks the header, the size of the file and the sha256 of the checksums; reads no rows. No such
 * file, no table file, a damaged or truncated one: ENG_BAD_DATA naming the file and what it has
 * against what it should have. Too few descriptors, a device's error: ENG_IO. */
EngStatus eng_table_file_open(const char *path, EngTableFile *file, EngErr *err);
void eng_table_file_close(EngTableFile *file); /* accepts a closed or zeroed one */

/* Block b of value_blocks + scale_blocks: where it lies in the file, and the rows that it touches
 * (first inclusive, last exclusive). */
void eng_table_file_block(const EngTableFile *file, int64_t block, uint64_t *offset, size_t *bytes,
                          int64_t *first_row, int64_t *last_row);
/* Compares bytes just read of a block with its checksum. ENG_BAD_DATA naming file, block, rows. */
EngStatus eng_table_file_check(const EngTableFile *file, int64_t block, const void *bytes,
                               EngErr *err);
/* Reads every block (threads; 0: all processors) and reports the first bad one; a file cut short
 * while it was open is ENG_BAD_DATA too, a device's error ENG_IO. */
EngStatus eng_table_file_verify(const EngTableFile *file, int threads, EngErr *err);

/* ---- making one ---- */

/* Where the bytes of a new table come from. `read` is called from several threads. */
typedef struct EngTableSource {
    EngRowFormat format;
    int row_dims;
    int64_t rows;
    /* JSON text, an object that identifies the content, without the three above; with
     * `by_content` the key content_sha256 (digest over all checksums) is added. */
    const char *identity;
    bool by_content;
    /* What must be the same for a killed call to be gone on with, beyond the identity (versions of
     * source files); not kept in the table. NULL: nothing. */
    const char *state;
    /* n bytes from `at` of the values (scales: of the scales) region into out. at is a multiple of
     * ENG_TABLE_FILE_BLOCK_BYTES. */
    EngStatus (*read)(const void *context, bool scales, uint64_t at, size_t n, uint8_t *out,
                      EngErr *err);
    const void *context;
} EngTableSource;

typedef struct EngTableCreated {
    int64_t blocks, resumed; /* all blocks, and those an earlier, killed call had written */
    char digest[ENG_KEY_HEX];
} EngTableCreated;

/* Writes PATH.part and renames it. A killed call is resumed by the next one with the same source:
 * blocks whose checksum holds are kept, and the file becomes the same to the last byte. A PATH.part
 * of another table is started anew; one that another process is writing: ENG_IO. A path that holds
 * a table already or gets one meanwhile, or anything else, and a PATH.part that is no table's:
 * ENG_USAGE, nothing is overwritten. Full disk: ENG_IO, and PATH.part is removed. created may be
 * NULL. */
EngStatus eng_table_file_create(const char *path, const EngTableSource *source, int threads,
                                EngTableCreated *created, EngErr *err);

/* Seeded rows: bit for bit those of a memory arena (memory.h) of that format and seed, laid out for
 * these row dims. */
EngStatus eng_table_file_create_seeded(const char *path, EngRowFormat format, int row_dims,
                                       int64_t rows, uint64_t seed, int threads,
                                       EngTableCreated *created, EngErr *err);

#endif
