/* Sinkhorn-balanced update of a table; see device.h and engram_facts section 7.
 *
 * As on the host, the matrix is not rewritten: U = diag(r) u diag(c), where u of a touched row
 * (momentum and gradient mixed) lies in a buffer and that of another is its stored momentum, whose
 * decay since is in r. A row step and the sums of the column step after it share a launch. Rows are
 * cut into parts by their number alone, and sums over rows are doubles added in order.
 */
#include "kernels/cuda/device.h"

#include "kernels/cuda/errors.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/queue.h"

#include <math.h>

extern "C" {
#include "base/mem.h"
}

#define WARPS      4
#define THREADS    (32 * WARPS)
#define MOST_PARTS 512
#define MOST_DIMS  1024 /* so that sums of a block's warps fit into shared memory */
#define POWERS     4096 /* beta^k beyond is taken as 0 */

typedef struct Table { /* what every kernel needs */
    EngSinkhornArgs args;
    int dims;
    float beta, tau, eps;
    float *ahead;  /* [max_touched, dims]: u of touched rows */
    float *norms;  /* [max_touched]: theirs */
    int32_t *slot; /* [rows]: of touched rows their place in the above, else -1 */
    float *r;      /* [rows]: row scales, 0 for rows that are left out */
    float *c;      /* [dims] */
    double *sums;  /* [parts, dims]: of columns; of norms the first of each */
    const float *powers;
    int64_t from, to; /* rows of the group */
} Table;

struct EngCudaSinkhorn {
    EngSinkhornProblem problem;
    int64_t *bounds; /* on the host: [n_groups + 1] */
    int n_groups;
    Table table;
    float *powers;
};

static __device__ __forceinline__ float power_of(const Table &table, int64_t k)
{
    return k < POWERS ? table.powers[k] : 0.0f;
}

static __device__ __forceinline__ float warp_sum(float sum)
{
#pragma unroll
    for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(ENG_FULL_WARP, sum, by);
    return sum;
}

/* m = beta^.. m + (1 - beta) g, u = beta m + (1 - beta) g; a warp for each touched row. */
__global__ void __launch_bounds__(THREADS) eng_sinkhorn_mix_kernel(Table table)
{
    const EngSinkhornArgs &args = table.args;
    int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (i >= args.n_touched) return;
    int lane = (int)threadIdx.x % 32;
    int64_t row = args.touched ? args.touched[i] : i;
    float decayed = power_of(table, args.step - args.row_steps[row]), rest = 1.0f - table.beta;
    float mm = 0, uu = 0;
    for (int j = lane; j < table.dims; j += 32) {
        float fresh = rest * args.grad[i * table.dims + j];
        float m = decayed * args.momentum[row * table.dims + j] + fresh;
        float u = table.beta * m + fresh;
        args.momentum[row * table.dims + j] = m;
        table.ahead[i * table.dims + j] = u;
        mm += m * m, uu += u * u;
    }
    mm = warp_sum(mm), uu = warp_sum(uu);
    __syncwarp(); /* every lane has read row_steps */
    if (lane) return;
    args.row_norms[row] = sqrtf(mm);
    args.row_steps[row] = (int32_t)args.step;
    table.norms[i] = sqrtf(uu);
    table.slot[row] = (int32_t)i;
}

/* Norm of a row's u, and the scale that u begins with. */
static __device__ __forceinline__ float norm_of(const Table &table, int64_t row, float *scale)
{
    int32_t slot = table.slot[row];
    *scale = 1.0f;
    if (slot >= 0) return table.norms[slot];
    *scale = table.beta * power_of(table, table.args.step - table.args.row_steps[row]);
    return *scale * table.args.row_norms[row];
}

static __device__ __forceinline__ void part_of(const Table &table, int64_t *from, int64_t *to)
{
    int64_t rows = table.to - table.from;
    *from = table.from + rows * blockIdx.x / gridDim.x;
    *to = table.from + rows * ((int64_t)blockIdx.x + 1) / gridDim.x;
}

/* Sums of norms, a block for each part; column scales begin as 1. */
__global__ void __launch_bounds__(THREADS) eng_sinkhorn_norms_kernel(Table table)
{
    ENG_SHARED(double, own, [THREADS]);
    int64_t from, to;
    double sum = 0;
    part_of(table, &from, &to);
    for (int64_t row = from + threadIdx.x; row < to; row += THREADS) {
        float scale;
        sum += norm_of(table, row, &scale);
    }
    own[threadIdx.x] = sum;
    __syncthreads();
    for (int j = (int)threadIdx.x; blockIdx.x == 0 && j < table.dims; j += THREADS)
        table.c[j] = 1.0f;
    if (threadIdx.x) return;
    for (int t = 1; t < THREADS; t++) sum += own[t];
    table.sums[(int64_t)blockIdx.x * table.dims] = sum;
}

/* Row scales: 0 at or below tau times the mean norm. */
__global__ void __launch_bounds__(THREADS) eng_sinkhorn_choose_kernel(Table table)
{
    int64_t from, to;
    double sum = 0;
    for (unsigned part = 0; part < gridDim.x; part++) sum += table.sums[(int64_t)part * table.dims];
    double threshold = table.tau * (sum / (double)(table.to - table.from));
    part_of(table, &from, &to);
    for (int64_t row = from + threadIdx.x; row < to; row += THREADS) {
        float scale, norm = norm_of(table, row, &scale);
        table.r[row] = norm > threshold ? scale : 0.0f;
    }
}

static __device__ __forceinline__ const float *u_of(const Table &table, int64_t row)
{
    int32_t slot = table.slot[row];
    return slot >= 0 ? table.ahead + (int64_t)slot * table.dims
                     : table.args.momentum + row * table.dims;
}

/* The row step, by a warp: r / (norm of r * u * c + eps). */
static __device__ __forceinline__ float balanced(const Table &table, const float *u, float r)
{
    float squares = 0;
    for (int j = (int)threadIdx.x % 32; j < table.dims; j += 32) {
        float x = u[j] * table.c[j];
        squares += x * x;
    }
    return r / (r * sqrtf(warp_sum(squares)) + table.eps);
}

/* A row step and the sums of the columns; every lane keeps its columns' in shared memory. */
__global__ void __launch_bounds__(THREADS) eng_sinkhorn_rows_kernel(Table table)
{
    ENG_SHARED_DYNAMIC(double, sums); /* [WARPS, dims] */
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int64_t from, to;
    double *own = sums + warp * table.dims;
    for (int j = lane; j < table.dims; j += 32) own[j] = 0;
    part_of(table, &from, &to);
    for (int64_t row = from + warp; row < to; row += WARPS) {
        const float *u = u_of(table, row);
        float r = table.r[row];
        if (r == 0) continue; /* the same for the whole warp */
        r = balanced(table, u, r);
        for (int j = lane; j < table.dims; j += 32) {
            float x = r * u[j];
            own[j] += (double)x * x;
        }
        __syncwarp(); /* every lane has read the old scale */
        if (lane == 0) table.r[row] = r;
    }
    __syncthreads();
    for (int j = (int)threadIdx.x; j < table.dims; j += THREADS) {
        double sum = sums[j];
        for (int w = 1; w < WARPS; w++) sum += sums[w * table.dims + j];
        table.sums[(int64_t)blockIdx.x * table.dims + j] = sum;
    }
}

/* The column step. A column of zeros keeps its scale: dividing it by eps would overflow. */
__global__ void __launch_bounds__(THREADS) eng_sinkhorn_columns_kernel(Table table, int parts)
{
    int j = (int)blockIdx.x * THREADS + (int)threadIdx.x;
    if (j >= table.dims) return;
    double sum = 0;
    for (int part = 0; part < parts; part++) sum += table.sums[(int64_t)part * table.dims + j];
    double norm = table.c[j] * sqrt(sum);
    if (norm > 0) table.c[j] = (float)(table.c[j] / (norm + table.eps));
}

/* The last row step and the update. */
__global__ void __launch_bounds__(THREADS) eng_sinkhorn_update_kernel(Table table, float scale)
{
    int64_t from, to;
    part_of(table, &from, &to);
    for (int64_t row = from + threadIdx.x / 32; row < to; row += WARPS) {
        const float *u = u_of(table, row);
        float r = table.r[row];
        if (r == 0) continue;
        float step = scale * balanced(table, u, r);
        for (int j = (int)threadIdx.x % 32; j < table.dims; j += 32)
            table.args.w[row * table.dims + j] -= step * (u[j] * table.c[j]);
    }
}

__global__ void __launch_bounds__(THREADS) eng_sinkhorn_forget_kernel(Table table)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < table.args.n_touched) table.slot[table.args.touched ? table.args.touched[i] : i] = -1;
}

/* ---- launching ---- */

static EngStatus check(const EngSinkhornProblem *p, EngErr *err)
{
    if (p->balance < 1 || p->balance % 2 == 0)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "balance = %d: must be odd", p->balance);
    if (p->rows < 1 || p->row_dims < 1 || p->row_dims > MOST_DIMS || p->max_touched < 0 ||
        p->max_touched > p->rows || p->max_touched > INT32_MAX / 32)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "Sinkhorn: %lld of %lld rows of %d",
                        (long long)p->max_touched, (long long)p->rows, p->row_dims);
    for (int g = 0; p->bounds && g < p->n_groups; g++)
        if (p->bounds[0] != 0 || p->bounds[p->n_groups] != p->rows ||
            p->bounds[g] > p->bounds[g + 1])
            return ENG_FAIL(err, ENG_UNSUPPORTED, "group %d: bounds do not ascend from 0 to rows",
                            g);
    return ENG_OK;
}

static EngStatus upload_powers(EngCudaSinkhorn *state, EngErr *err)
{
    float *powers = NULL;
    size_t bytes = POWERS * sizeof *powers;
    EngStatus status = eng_alloc_or((void **)&powers, POWERS, sizeof *powers, "Sinkhorn", err);
    for (int k = 0; !status && k < POWERS; k++) powers[k] = (float)pow(state->problem.beta, k);
    if (!status) status = eng_cuda_copy(state->powers, powers, bytes, err);
    state->table.powers = state->powers;
    eng_free(powers);
    return status;
}

static EngStatus allocate(EngCudaSinkhorn *state, EngErr *err)
{
    const EngSinkhornProblem *p = &state->problem;
    Table *table = &state->table;
    size_t dims = (size_t)p->row_dims, rows = (size_t)p->rows, touched = (size_t)p->max_touched;
    struct {
        void **at;
        size_t bytes;
    } wanted[] = {{(void **)&table->ahead, touched * dims * sizeof(float)},
                  {(void **)&table->norms, touched * sizeof(float)},
                  {(void **)&table->slot, rows * sizeof(int32_t)},
                  {(void **)&table->r, rows * sizeof(float)},
                  {(void **)&table->c, dims * sizeof(float)},
                  {(void **)&table->sums, MOST_PARTS * dims * sizeof(double)},
                  {(void **)&state->powers, POWERS * sizeof(float)}};
    EngStatus status = ENG_OK;
    for (size_t i = 0; !status && i < sizeof wanted / sizeof *wanted; i++)
        if (wanted[i].bytes)
            status = eng_cuda_check(cudaMalloc(wanted[i].at, wanted[i].bytes), "Sinkhorn", err);
    if (!status)
        status =
            eng_cuda_check(cudaMemset(table->slot, 0xff, rows * sizeof(int32_t)), "Sinkhorn", err);
    /* The copy is behind it in the same stream, and waited for. */
    return status ? status : upload_powers(state, err);
}

EngStatus eng_cuda_sinkhorn_create(const EngSinkhornProblem *problem, EngCudaSinkhorn **out,
                                   EngErr *err)
{
    EngCudaSinkhorn *state = NULL;
    *out = NULL;
    EngStatus status = check(problem, err);
    if (!status) status = eng_alloc_or((void **)&state, 1, sizeof *state, "Sinkhorn", err);
    if (status) return status;
    state->problem = *problem;
    state->n_groups = problem->bounds ? problem->n_groups : 1;
    state->table.dims = problem->row_dims;
    state->table.beta = problem->beta, state->table.tau = problem->tau;
    state->table.eps = problem->eps;
    status = eng_alloc_or((void **)&state->bounds, (size_t)state->n_groups + 1,
                          sizeof *state->bounds, "Sinkhorn", err);
    if (!status) {
        state->bounds[0] = 0, state->bounds[state->n_groups] = problem->rows;
        for (int g = 0; problem->bounds && g <= state->n_groups; g++)
            state->bounds[g] = problem->bounds[g];
        status = allocate(state, err);
    }
    if (status) {
        eng_cuda_sinkhorn_destroy(state);
        state = NULL;
    }
    *out = state;
    return status;
}

void eng_cuda_sinkhorn_destroy(EngCudaSinkhorn *state)
{
    if (!state) return;
    const Table &table = state->table;
    cudaFree(table.ahead), cudaFree(table.norms), cudaFree(table.slot), cudaFree(table.r);
    cudaFree(table.c), cudaFree(table.sums), cudaFree(state->powers);
    eng_free(state->bounds);
    eng_free(state);
}

static void update_group(const EngSinkhornProblem *p, const Table &table, EngCudaStream *stream)
{
    int64_t rows = table.to - table.from;
    int parts = rows < 16 * MOST_PARTS ? (int)((rows + 15) / 16) : MOST_PARTS;
    dim3 blocks((unsigned)parts), threads(THREADS);
    dim3 columns((unsigned)((table.dims + THREADS - 1) / THREADS));
    size_t shared = WARPS * (size_t)table.dims * sizeof(double);
    float scale = (float)((double)p->gamma * table.args.rate * sqrt(table.dims));
    ENG_LAUNCH(eng_sinkhorn_norms_kernel, blocks, threads, 0, stream, table);
    ENG_LAUNCH(eng_sinkhorn_choose_kernel, blocks, threads, 0, stream, table);
    for (int q = 1; q < p->balance; q += 2) {
        ENG_LAUNCH(eng_sinkhorn_rows_kernel, blocks, threads, shared, stream, table);
        ENG_LAUNCH(eng_sinkhorn_columns_kernel, columns, threads, 0, stream, table, parts);
    }
    ENG_LAUNCH(eng_sinkhorn_update_kernel, blocks, threads, 0, stream, table, scale);
}

EngStatus eng_cuda_sinkhorn(const EngCudaSinkhorn *state, const EngSinkhornArgs *args,
                            EngCudaStream *stream, EngErr *err)
{
    const EngSinkhornProblem *p = &state->problem;
    Table table = state->table;
    table.args = *args;
    if (args->n_touched < 0 || args->n_touched > p->max_touched)
        return ENG_FAIL(err, ENG_USAGE, "%lld rows touched, room for %lld",
                        (long long)args->n_touched, (long long)p->max_touched);
    if (args->n_touched)
        ENG_LAUNCH(eng_sinkhorn_mix_kernel, dim3((unsigned)((args->n_touched + WARPS - 1) / WARPS)),
                   dim3(THREADS), 0, stream, table);
    for (int g = 0; g < state->n_groups; g++) {
        table.from = state->bounds[g], table.to = state->bounds[g + 1];
        if (table.from < table.to) update_group(p, table, stream);
    }
    if (args->n_touched)
        ENG_LAUNCH(eng_sinkhorn_forget_kernel,
                   dim3((unsigned)((args->n_touched + THREADS - 1) / THREADS)), dim3(THREADS), 0,
                   stream, table);
    return eng_cuda_check(cudaGetLastError(), "Sinkhorn", err);
}
