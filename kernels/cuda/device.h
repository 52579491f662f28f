/* The CUDA side behind plain C: devices, streams and one launcher for each operation.
 *
 * Launchers put work into a stream and return; nothing is waited for but by eng_cuda_wait(). Every
 * buffer that they are given lies where the device can reach it: device memory, or pinned host
 * memory through its own address. They check shapes and alignment, not contents: rows and starts
 * are the caller's word, as in engram/kernels.h. A build without CUDA has the same functions, which
 * say so (no_device.c).
 */
#ifndef ENG_KERNELS_CUDA_DEVICE_H
#define ENG_KERNELS_CUDA_DEVICE_H

#include <engram/kernels.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st EngCudaStream; /* a cudaStream_t points to one */

/* ENG_OK with a device to use; else ENG_UNSUPPORTED, "no device" and what is missing. Asked in a
 * child process, once: workers that are forked later can use the device. */
EngStatus eng_cuda_device(EngErr *why);
/* ENG_USAGE unless the device can reach the memory at `at`, naming it as `what`. */
EngStatus eng_cuda_reachable(const void *at, const char *what, EngErr *err);

/* A stream that does not wait for the default one. */
EngStatus eng_cuda_stream_create(EngCudaStream **stream, EngErr *err);
void eng_cuda_stream_destroy(EngCudaStream *stream); /* accepts NULL */
EngStatus eng_cuda_wait(EngCudaStream *stream, EngErr *err);

/* ---- hash: engram_facts section 3; all layers in one launch ---- */

/* The address's constants in device memory. */
typedef struct EngCudaHash EngCudaHash;
EngStatus eng_cuda_hash_create(const EngAddress *address, EngCudaHash **hash, EngErr *err);
void eng_cuda_hash_destroy(EngCudaHash *hash); /* accepts NULL */
/* All pointers of args are the device's. */
EngStatus eng_cuda_hash(const EngCudaHash *hash, const EngHashArgs *args, EngCudaStream *stream,
                        EngErr *err);

/* ---- gather + decode: section 5; any row format, out F32, BF16, or FP8 undecoded ---- */

/* How the work is cut: rows in a block's tile, and blocks that share the tiles; 0: chosen: tiles of
 * 2 rows up to 4,096 rows and of 16 beyond, and at most as many blocks as the multiprocessors hold
 * at once, which go on from tile to tile. Half the grid leaves room to what runs beside it. */
#define ENG_CUDA_HALF_GRID (-1) /* as blocks */
typedef struct EngCudaGrid {
    int row_tile, blocks;
} EngCudaGrid;
/* rows NULL: every row of the table in turn. */
EngStatus eng_cuda_gather(const EngGatherProblem *problem, const EngGatherArgs *args,
                          EngCudaGrid grid, EngCudaStream *stream, EngErr *err);

/* The same from a table that the host reads: it packs the rows into pinned memory, which is copied
 * as a whole and then decoded. Holds both buffers. ENG_UNSUPPORTED when the table is the device's.
 */
typedef struct EngCudaStaged EngCudaStaged;
EngStatus eng_cuda_staged_create(const EngGatherProblem *problem, EngCudaStaged **staged,
                                 EngErr *err);
void eng_cuda_staged_destroy(EngCudaStaged *staged); /* accepts NULL */
/* By the calling thread; rows are the host's, [tokens, columns] with row_stride. Waits until what
 * was sent last has left the pinned memory; of a captured send it cannot know. */
EngStatus eng_cuda_staged_pack(EngCudaStaged *staged, const int64_t *rows, int64_t row_stride,
                               EngErr *err);
/* A copy and a kernel into the stream; rows of args are not read. */
EngStatus eng_cuda_staged_send(EngCudaStaged *staged, const EngGatherArgs *args, EngCudaGrid grid,
                               EngCudaStream *stream, EngErr *err);

/* ---- project: section 6, step 2; up to 16 tokens, fp8 weights with 32x32 scales ---- */

/* Holds the problem and, with k cut among blocks, their sums. splits 0: chosen. ENG_UNSUPPORTED
 * with the reason where fits() has one. */
typedef struct EngCudaProject EngCudaProject;
EngStatus eng_cuda_project_fits(const EngProjectProblem *problem, EngErr *why);
EngStatus eng_cuda_project_create(const EngProjectProblem *problem, int splits,
                                  EngCudaProject **project, EngErr *err);
void eng_cuda_project_destroy(EngCudaProject *project); /* accepts NULL */
/* All pointers, the problem's too, are the device's; weights and x 16-byte aligned. Products of a
 * token's element, its scale and a weight's scale are exact while bf16 holds them: where the scales
 * multiply to 2^-117 .. 2^119, beyond which they become subnormal or infinite. What quantization
 * writes is far inside: a token's scale is 2^-22 or more by its rule (engram_facts section 5), and
 * scales of weights are their largest over 448. */
EngStatus eng_cuda_project(const EngCudaProject *project, const EngProjectArgs *args,
                           EngCudaStream *stream, EngErr *err);

/* ---- the same by cuBLASLt: any number of tokens and type, fp8 expanded to bf16 ---- */

/* Weights in bf16 and what cuBLASLt wants: create expands fp8 weights in the stream and waits. */
typedef struct EngCudaBlas EngCudaBlas;
EngStatus eng_cuda_blas_fits(const EngProjectProblem *problem, EngErr *why);
EngStatus eng_cuda_blas_create(const EngProjectProblem *problem, EngCudaStream *stream,
                               EngCudaBlas **blas, EngErr *err);
void eng_cuda_blas_destroy(EngCudaBlas *blas); /* accepts NULL */
/* Of the weights: bytes of the bf16 ones and the time it took; 0 when they were bf16. */
typedef struct EngCudaExpansion {
    size_t bytes;
    double ns;
} EngCudaExpansion;
EngCudaExpansion eng_cuda_blas_expansion(const EngCudaBlas *blas);
/* Works in blas's own buffers: one stream at a time. Buffers 16-byte aligned. */
EngStatus eng_cuda_blas_project(EngCudaBlas *blas, const EngProjectArgs *args,
                                EngCudaStream *stream, EngErr *err);

/* ---- gate + write-back: section 6, steps 3-6; each stream is read once ---- */

EngStatus eng_cuda_gate(const EngGateProblem *problem, const EngGateArgs *args,
                        EngCudaStream *stream, EngErr *err);

/* ---- short convolution of the original variant: section 6 A, with its decode state ---- */

/* Holds the problem, whose weights are the device's, and room for 1/rms of its tokens. */
typedef struct EngCudaConv EngCudaConv;
EngStatus eng_cuda_conv_create(const EngConvProblem *problem, EngCudaConv **conv, EngErr *err);
void eng_cuda_conv_destroy(EngCudaConv *conv); /* accepts NULL */
EngStatus eng_cuda_conv(const EngCudaConv *conv, const EngConvArgs *args, EngCudaStream *stream,
                        EngErr *err);

/* ---- roofs: the same bytes read and stored, nothing computed; outputs mean nothing ---- */

/* ENG_UNSUPPORTED where rows (values) are no whole loads. */
EngStatus eng_cuda_gather_roof_fits(const EngGatherProblem *problem, EngErr *why);
EngStatus eng_cuda_gate_roof_fits(const EngGateProblem *problem, EngErr *why);
/* row_tile above 0; blocks 0: one for each tile. deep: eight loads in flight a thread instead of
 * four. */
EngStatus eng_cuda_gather_roof(const EngGatherProblem *problem, const EngGatherArgs *args,
                               EngCudaGrid grid, bool deep, EngCudaStream *stream, EngErr *err);
/* Streams keep their bits. */
EngStatus eng_cuda_gate_roof(const EngGateProblem *problem, const EngGateArgs *args,
                             EngCudaStream *stream, EngErr *err);
EngStatus eng_cuda_project_roof(const EngProjectProblem *problem, const EngProjectArgs *args,
                                EngCudaStream *stream, EngErr *err);

/* ---- histograms of gates and scores, for traced passes ---- */

#define ENG_CUDA_MOST_BINS 256
/* The smallest value of each bin but the first, into edges [n_bins - 1] on the host; a NaN where no
 * value gets that far. bin_of must not fall when its value rises. */
void eng_cuda_histogram_edges(int (*bin_of)(float value), int n_bins, float *edges);
/* Adds to counts [streams, n_bins]; values [tokens, streams]. All pointers are the device's. */
EngStatus eng_cuda_histogram(const float *values, int64_t tokens, int streams, const float *edges,
                             int n_bins, int64_t *counts, EngCudaStream *stream, EngErr *err);

/* ---- table content ---- */

/* Writes rows first .. first + rows of a table in device memory, 16-byte aligned: bit for bit what
 * kernels/store/content.h gives for the seed. quantiles: that content's, on the device, for bf16
 * and f32 tables; NULL for others. */
EngStatus eng_cuda_fill(const EngTable *table, int64_t first, int64_t rows, uint64_t seed,
                        const float *quantiles, EngCudaStream *stream, EngErr *err);

/* ---- training: engram_facts section 7; f32, all pointers of args the device's ---- */

/* Each holds its problem and room for what lies between its launches; one stream at a time. Results
 * depend on the shapes alone: sums are made in one order on every device. */

/* Up to 8 streams. */
typedef struct EngCudaBackGate EngCudaBackGate;
EngStatus eng_cuda_back_gate_create(const EngTrainGateProblem *problem, EngCudaBackGate **back,
                                    EngErr *err);
void eng_cuda_back_gate_destroy(EngCudaBackGate *back); /* accepts NULL */
EngStatus eng_cuda_back_gate(const EngCudaBackGate *back, const EngBackGateArgs *args,
                             EngCudaStream *stream, EngErr *err);

typedef struct EngCudaBackGather EngCudaBackGather;
EngStatus eng_cuda_back_gather_create(const EngBackGatherProblem *problem, EngCudaBackGather **back,
                                      EngErr *err);
void eng_cuda_back_gather_destroy(EngCudaBackGather *back); /* accepts NULL */
EngStatus eng_cuda_back_gather(const EngCudaBackGather *back, const EngBackGatherArgs *args,
                               EngCudaStream *stream, EngErr *err);

/* Up to 1024 dims. The problem's bounds are the host's, and copied. */
typedef struct EngCudaSinkhorn EngCudaSinkhorn;
EngStatus eng_cuda_sinkhorn_create(const EngSinkhornProblem *problem, EngCudaSinkhorn **state,
                                   EngErr *err);
void eng_cuda_sinkhorn_destroy(EngCudaSinkhorn *state); /* accepts NULL */
EngStatus eng_cuda_sinkhorn(const EngCudaSinkhorn *state, const EngSinkhornArgs *args,
                            EngCudaStream *stream, EngErr *err);

#ifdef __cplusplus
}
#endif
#endif
