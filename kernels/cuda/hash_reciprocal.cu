/* Hash of all layers in one launch; see device.h and engram_facts section 3.
 *
 * A block takes a tile of positions: first the windows of ids (one thread a position), then the
 * mixes of each order (one thread a position and layer), then one remainder a thread in the order
 * of the output, so that stores are contiguous. Mixes are below 2^63, and with inverse =
 * floor((2^64 - 1) / prime) the high half of mix * inverse is the quotient or one less.
 */
#include "kernels/cuda/device.h"

#include "kernels/cuda/errors.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/queue.h"

extern "C" {
#include "base/mem.h"
}

#define TILE    16
#define THREADS 256

typedef struct HashColumn {
    uint64_t inverse, prime;
    int64_t offset;
} HashColumn;

struct EngCudaHash {
    int n_layers, min_order, max_order, heads, n_columns;
    int32_t pad;
    uint64_t multipliers[ENG_MAX_LAYERS][ENG_MAX_ORDER];
    HashColumn *columns; /* [n_layers, n_columns], device */
};

/* The sequence that holds `position`; empty sequences hold none. */
static __device__ int64_t sequence_at(const EngHashArgs &args, int64_t position)
{
    int64_t low = 0, high = args.starts ? args.n_seqs : 1;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (args.starts[middle] <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static __device__ int32_t id_before(const EngCudaHash &hash, const EngHashArgs &args,
                                    int64_t sequence, int64_t start, int64_t position)
{
    int64_t ahead = position - start;
    if (ahead >= 0) return args.tokens[position];
    if (!args.history) return ENG_TOKEN_DEAD;
    return args.history[(sequence + 1) * (hash.max_order - 1) + ahead];
}

/* Ids at lags 0, 1, ..: from the first dead one on, all read as the pad token. */
static __device__ void read_window(const EngCudaHash &hash, const EngHashArgs &args,
                                   int64_t position, int32_t *window)
{
    int64_t sequence = sequence_at(args, position);
    int64_t start = args.starts ? args.starts[sequence] : 0;
    bool blocked = false;
    for (int lag = 0; lag < hash.max_order; lag++) {
        int32_t id = blocked ? 0 : id_before(hash, args, sequence, start, position - lag);
        blocked = blocked || id == ENG_TOKEN_DEAD;
        window[lag] = blocked ? hash.pad : id;
    }
}

static __device__ int64_t row_of(const HashColumn &column, uint64_t mix)
{
    uint64_t rest = mix - __umul64hi(mix, column.inverse) * column.prime;
    if (rest >= column.prime) rest -= column.prime;
    return (int64_t)rest + column.offset;
}

__global__ void __launch_bounds__(THREADS) eng_hash_kernel(EngCudaHash hash, EngHashArgs args)
{
    ENG_SHARED(int32_t, windows, [TILE][ENG_MAX_ORDER]);
    ENG_SHARED(uint64_t, mixes, [TILE][ENG_MAX_LAYERS][ENG_MAX_ORDER]);
    int64_t first = (int64_t)blockIdx.x * TILE, end = args.n_live;
    if (args.starts && args.starts[args.n_seqs] < end) end = args.starts[args.n_seqs];
    int n = end - first < TILE ? (int)(end - first) : TILE; /* below 1: nothing to do */
    int thread = (int)threadIdx.x;

    if (thread < n) read_window(hash, args, first + thread, windows[thread]);
    __syncthreads();
    for (int i = thread; i < n * hash.n_layers; i += THREADS) {
        int at = i / hash.n_layers, layer = i % hash.n_layers;
        uint64_t mix = 0;
        for (int lag = 0; lag < hash.max_order; lag++) {
            mix ^= (uint64_t)windows[at][lag] * hash.multipliers[layer][lag];
            mixes[at][layer][lag] = mix;
        }
    }
    __syncthreads();
    int per_token = hash.n_layers * hash.n_columns;
    for (int i = thread; i < n * per_token; i += THREADS) {
        int at = i / per_token, slot = i % per_token;
        int layer = slot / hash.n_columns, column = slot % hash.n_columns;
        int lag = column / hash.heads + hash.min_order - 1;
        args.rows[first * per_token + i] = row_of(hash.columns[slot], mixes[at][layer][lag]);
    }
}

static void fill(const EngAddress *address, EngCudaHash *hash, HashColumn *columns)
{
    hash->n_layers = address->n_layers, hash->n_columns = address->n_columns;
    hash->min_order = address->min_order, hash->max_order = address->max_order;
    hash->heads = address->heads, hash->pad = address->pad;
    for (int layer = 0; layer < address->n_layers; layer++) {
        for (int lag = 0; lag < address->max_order; lag++)
            hash->multipliers[layer][lag] = (uint64_t)address->multipliers[layer][lag];
        for (int c = 0; c < address->n_columns; c++) {
            HashColumn *column = &columns[layer * address->n_columns + c];
            column->prime = (uint64_t)address->primes[layer][c];
            column->inverse = UINT64_MAX / column->prime;
            column->offset = address->offsets[layer][c];
        }
    }
}

EngStatus eng_cuda_hash_create(const EngAddress *address, EngCudaHash **out, EngErr *err)
{
    size_t n = (size_t)address->n_layers * (size_t)address->n_columns;
    size_t bytes = n * sizeof(HashColumn);
    EngCudaHash *hash = NULL;
    HashColumn *columns = NULL;
    EngStatus status = eng_alloc_or((void **)&hash, 1, sizeof *hash, "hash: constants", err);
    if (!status)
        status = eng_alloc_or((void **)&columns, n, sizeof *columns, "hash: constants", err);
    if (status) goto done;
    fill(address, hash, columns);
    status = eng_cuda_check(cudaMalloc((void **)&hash->columns, bytes), "hash: constants", err);
    if (!status) status = eng_cuda_copy(hash->columns, columns, bytes, err);
done:
    eng_free(columns);
    if (status) {
        eng_cuda_hash_destroy(hash);
        hash = NULL;
    }
    *out = hash;
    return status;
}

void eng_cuda_hash_destroy(EngCudaHash *hash)
{
    if (hash) cudaFree(hash->columns);
    eng_free(hash);
}

EngStatus eng_cuda_hash(const EngCudaHash *hash, const EngHashArgs *args, EngCudaStream *stream,
                        EngErr *err)
{
    if (args->n_live < 0 || args->n_live > args->n_tokens)
        return ENG_FAIL(err, ENG_USAGE, "hash: %lld live positions of %lld",
                        (long long)args->n_live, (long long)args->n_tokens);
    if (args->n_live > (int64_t)TILE << 30)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "hash: %lld positions", (long long)args->n_live);
    if (!args->n_live) return ENG_OK;
    unsigned blocks = (unsigned)((args->n_live + TILE - 1) / TILE);
    ENG_LAUNCH(eng_hash_kernel, dim3(blocks), dim3(THREADS), 0, stream, *hash, *args);
    return eng_cuda_check(cudaGetLastError(), "hash", err);
}
