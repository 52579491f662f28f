/* What a kernel source sees when it is compiled for the host: thread indices, barriers, warp
 * collectives, atomics and launches, all carried out and checked by the executor.
 *
 * kernels/cuda/launch.cuh includes this in place of the compiler's own definitions when ENG_SIMT is
 * defined. Loads and stores need no wrapper: such sources are compiled with -fsanitize=thread, and
 * hooks.cpp receives every access. Not modelled: spin waits between blocks, partial-mask
 * collectives as an order of memory accesses (only a __syncwarp of all live lanes orders), the
 * legacy default stream, TMA, mbarrier, wgmma, cooperative groups. Not seen: what a call of memcpy
 * touches whose size is not known when it is compiled.
 */
#ifndef ENG_TESTS_SIMT_SIMT_H
#define ENG_TESTS_SIMT_SIMT_H

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <tuple>
#include <type_traits>

#define __launch_bounds__(...)

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace simt
{
enum class Shuffle { index, up, down, exclusive_or };
enum class Vote { ballot, any, all };

void block_barrier(const char *file, int line);
void warp_barrier(unsigned mask, const char *file, int line);
uint64_t shuffle(Shuffle kind, unsigned mask, uint64_t value, int operand, int width,
                 const char *file, int line);
unsigned vote(Vote kind, unsigned mask, bool mine, const char *file, int line);

/* One result per warp, computed from what all named lanes brought when the last of them arrives. */
typedef void (*LaneFunction)(unsigned mask, void *const lanes[32]);
void collective(unsigned mask, LaneFunction function, void *mine, const char *what,
                const char *file, int line);

/* mma.sync m16n8k16, bf16 with f32 sums: by all 32 lanes, sums truncated as tensor cores may. */
void mma_bf16(float sums[4], const uint32_t a[4], const uint32_t b[2], const char *file, int line);

/* A shared array of the current block: the same storage for every thread that names `site`. */
void *shared_array(const void *site, size_t bytes, size_t alignment);
void *shared_dynamic(void);

/* dst in shared memory, src in global memory; lands when the thread waits for its group. */
void async_copy(void *dst, const void *src, size_t bytes);
void async_commit(void);
void async_wait(int groups_in_flight);

/* A load or store that the source makes in one instruction: checked for its whole width. */
void check_wide(const void *address, size_t bytes, bool write);
void atomic_access(const void *address, size_t bytes);

void *launch_arguments(size_t bytes);
void launch(const char *kernel, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
            void *arguments, void (*call)(void *arguments));

template <class... Parameters> struct Call {
    void (*kernel)(Parameters...);
    std::tuple<Parameters...> values;
    static void run(void *self)
    {
        Call *call = static_cast<Call *>(self);
        std::apply(call->kernel, call->values);
    }
};

/* Arguments are evaluated and copied here, as a real launch does, and used when the stream gets
 * there. */
template <class... Parameters, class... Values>
void launch_kernel(const char *name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
                   size_t shared_bytes, cudaStream_t stream, Values... values)
{
    using Kept = Call<Parameters...>;
    void *memory = launch_arguments(sizeof(Kept));
    new (memory) Kept{kernel, std::tuple<Parameters...>(static_cast<Parameters>(values)...)};
    launch(name, grid, block, shared_bytes, stream, memory, Kept::run);
}

template <class T>
T shuffled(Shuffle kind, unsigned mask, T value, int operand, int width, const char *file, int line)
{
    static_assert(sizeof(T) <= 8, "shuffles move up to 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = shuffle(kind, mask, bits, operand, width, file, line);
    memcpy(&value, &bits, sizeof value);
    return value;
}

template <class T, class F>
__attribute__((noinline, no_sanitize_thread)) T atomic(T *address, F next)
{
    atomic_access(address, sizeof *address);
    T old;
    memcpy(&old, address, sizeof old);
    T value = next(old);
    memcpy(address, &value, sizeof value);
    return old;
}
} // namespace simt

#define SIMT_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(SIMT_HERE)
{
    simt::block_barrier(file, line);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, SIMT_HERE)
{
    simt::warp_barrier(mask, file, line);
}
template <class T> T __shfl_sync(unsigned mask, T value, int lane, int width = 32, SIMT_HERE)
{
    return simt::shuffled(simt::Shuffle::index, mask, value, lane, width, file, line);
}
template <class T> T __shfl_up_sync(unsigned mask, T value, int by, int width = 32, SIMT_HERE)
{
    return simt::shuffled(simt::Shuffle::up, mask, value, by, width, file, line);
}
template <class T> T __shfl_down_sync(unsigned mask, T value, int by, int width = 32, SIMT_HERE)
{
    return simt::shuffled(simt::Shuffle::down, mask, value, by, width, file, line);
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, SIMT_HERE)
{
    return simt::shuffled(simt::Shuffle::exclusive_or, mask, value, bits, width, file, line);
}
inline unsigned __ballot_sync(unsigned mask, int mine, SIMT_HERE)
{
    return simt::vote(simt::Vote::ballot, mask, mine != 0, file, line);
}
inline int __any_sync(unsigned mask, int mine, SIMT_HERE)
{
    return (int)simt::vote(simt::Vote::any, mask, mine != 0, file, line);
}
inline int __all_sync(unsigned mask, int mine, SIMT_HERE)
{
    return (int)simt::vote(simt::Vote::all, mask, mine != 0, file, line);
}

template <class T> T atomicAdd(T *address, T value)
{
    return simt::atomic(address, [=](T old) { return (T)(old + value); });
}
template <class T> T atomicMax(T *address, T value)
{
    return simt::atomic(address, [=](T old) { return old > value ? old : value; });
}
template <class T> T atomicExch(T *address, T value)
{
    return simt::atomic(address, [=](T) { return value; });
}

inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
template <class T> T __ldg(const T *address)
{
    return *address;
}
inline void __threadfence(void) {}
inline float __fadd_rn(float a, float b)
{
    return a + b;
}
inline float __fmul_rn(float a, float b)
{
    return a * b;
}
inline float __uint_as_float(unsigned bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
inline unsigned __float_as_uint(float value)
{
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

#endif
