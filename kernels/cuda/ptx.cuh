/* Instructions that CUDA C has no name for: loads and stores of a chosen width and cache policy,
 * asynchronous copies into shared memory, and products of small matrices by a warp. On the host the
 * executor checks and does the same.
 */
#ifndef ENG_KERNELS_CUDA_PTX_CUH
#define ENG_KERNELS_CUDA_PTX_CUH

#include <stdint.h>

#include "kernels/cuda/launch.cuh"

/* The vector type of one load or store. */
template <int BYTES> struct EngWide;
template <> struct EngWide<16> {
    typedef uint4 type;
};
template <> struct EngWide<8> {
    typedef uint2 type;
};
template <> struct EngWide<4> {
    typedef uint32_t type;
};
template <> struct EngWide<2> {
    typedef uint16_t type;
};
template <> struct EngWide<1> {
    typedef uint8_t type;
};

#ifdef ENG_SIMT

template <class T>
__attribute__((noinline, no_sanitize_thread, no_sanitize_undefined)) T eng_load_once(const void *at)
{
    T value;
    simt::check_wide(at, sizeof value, false);
    memcpy(&value, at, sizeof value);
    return value;
}

template <class T>
__attribute__((noinline, no_sanitize_thread, no_sanitize_undefined)) void eng_store_once(void *at,
                                                                                         T value)
{
    simt::check_wide(at, sizeof value, true);
    memcpy(at, &value, sizeof value);
}

template <class T> T eng_load_wide(const void *at)
{
    return eng_load_once<T>(at);
}

inline void eng_copy_async_16(void *shared, const void *global)
{
    simt::async_copy(shared, global, 16);
}

inline void eng_copy_commit(void)
{
    simt::async_commit();
}

/* Until at most `in_flight` of this thread's newest groups are still on their way. */
template <int in_flight> void eng_copy_wait(void)
{
    simt::async_wait(in_flight);
}

inline void eng_mma_bf16(float sums[4], const uint32_t a[4], const uint32_t b[2], SIMT_HERE)
{
    simt::mma_bf16(sums, a, b, file, line);
}

#else

/* Read-only data that is used once: past the L1, sixteen bytes in one instruction. */
template <class T> __device__ __forceinline__ T eng_load_once(const void *at)
{
    return __ldg(static_cast<const T *>(at));
}

template <> __device__ __forceinline__ uint4 eng_load_once<uint4>(const void *at)
{
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(at));
    return v;
}

template <> __device__ __forceinline__ uint2 eng_load_once<uint2>(const void *at)
{
    uint2 v;
    asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
                 : "=r"(v.x), "=r"(v.y)
                 : "l"(at));
    return v;
}

/* One load through the caches: for data that is used again, or written by the same kernel. */
template <class T> __device__ __forceinline__ T eng_load_wide(const void *at)
{
    return *static_cast<const T *>(at);
}

/* Output that this kernel does not read again. */
template <class T> __device__ __forceinline__ void eng_store_once(void *at, T value)
{
    __stcs(static_cast<T *>(at), value);
}

__device__ __forceinline__ void eng_copy_async_16(void *shared, const void *global)
{
    uint32_t at = (uint32_t)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(global) : "memory");
}

__device__ __forceinline__ void eng_copy_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int in_flight> __device__ __forceinline__ void eng_copy_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(in_flight) : "memory");
}

/* sums [16, 8] += a [16, 16] . b [16, 8] by the whole warp, bf16 with f32 sums; who holds what is
 * in the PTX ISA under mma.m16n8k16. */
__device__ __forceinline__ void eng_mma_bf16(float sums[4], const uint32_t a[4],
                                             const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif

#endif
