/* Number formats in registers, exact unless said otherwise (engram_facts section 5). */
#ifndef ENG_KERNELS_CUDA_CONVERT_CUH
#define ENG_KERNELS_CUDA_CONVERT_CUH

#include <stdint.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "kernels/cuda/launch.cuh"

static __device__ __forceinline__ float eng_e8m0(uint8_t byte)
{
    /* 0 is the subnormal 2^-127, 255 NaN: neither is a plain shift. */
    uint32_t bits = byte == 0 ? 0x00400000u : byte == 255 ? 0x7fc00000u : (uint32_t)byte << 23;
    return __uint_as_float(bits);
}

static __device__ __forceinline__ float eng_bf16(uint32_t bits)
{
    return __uint_as_float(bits << 16);
}

/* One rounding, to nearest with ties to even. */
static __device__ __forceinline__ uint16_t eng_bf16_rounded(float value)
{
    return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}

static __device__ __forceinline__ uint32_t eng_bf16_pair(float low, float high)
{
    return eng_bf16_rounded(low) | (uint32_t)eng_bf16_rounded(high) << 16;
}

/* Two e4m3fn codes. Every value is a normal number of f16 too. */
static __device__ __forceinline__ float2 eng_e4m3_pair(uint32_t codes)
{
    return __half22float2(
        __half2(__nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t)codes, __NV_E4M3)));
}

#endif
