/* Table files from the rows of safetensors checkpoints (V4.1 names and shapes: engram_facts
 * section 5). */
#ifndef ENG_KERNELS_STORE_TABLE_IMPORT_H
#define ENG_KERNELS_STORE_TABLE_IMPORT_H

#include "kernels/store/table_file.h"

typedef struct EngTableImport {
    /* Files, or index files (.json with a "weight_map" of tensor names to files beside it). Several
     * files that hold the same tensor hold consecutive rows of it, in this order; a file named
     * twice counts once. */
    const char *const *from;
    int n_from;
    int layer;          /* of layers.N.engram.embed.weight and .scale */
    const char *weight; /* another tensor's name, its scales end with .scale; NULL: the above.
                         * Where no file has just that name it may have more before it ("model."),
                         * but of one tensor only */
    int format;         /* EngRowFormat; -1: that of the tensor (fp8 split, bf16 or f32) */
    int row_dims;       /* that the tensor must have; 0: any */
    int64_t rows;       /* its first so many rows (shards may end with padding); 0: all */
} EngTableImport;

/* Weights of F8_E4M3 [rows, dims] with scales F8_E8M0 [rows, dims / 32] become any of the fp8
 * formats, BF16 and F32 their own; bytes are kept as they are. ENG_BAD_DATA: a file
 * or tensor is missing or unfit, named; ENG_USAGE: a format that would change the values, more rows
 * than there are. Else as eng_table_file_create. */
EngStatus eng_table_import(const char *path, const EngTableImport *import, int threads,
                           EngTableCreated *created, EngErr *err);

#endif
