/* Launches and shared arrays, written once for nvcc and for the host executor of the tests (which
 * defines ENG_SIMT and runs the same sources on a CPU under checks).
 *
 * Sources here keep to what both know: no spin waits between blocks, full-mask warp collectives, no
 * cooperative groups, no TMA or mbarrier; all work on streams that do not block.
 */
#ifndef ENG_KERNELS_CUDA_LAUNCH_CUH
#define ENG_KERNELS_CUDA_LAUNCH_CUH

inline long eng_cuda_launched; /* by ENG_LAUNCH, and by whoever launches without it */

#ifdef ENG_SIMT
#include <simt.cuh>

/* kernel in parentheses when it is a template: ENG_LAUNCH((k<4>), ...). */
#define ENG_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                 \
    (eng_cuda_launched++,                                                                          \
     simt::launch_kernel(#kernel, kernel, grid, block, shared_bytes, stream, ##__VA_ARGS__))

/* ENG_SHARED(float, sums, [4][32]): a shared array of a kernel, 16-byte aligned. */
#define ENG_SHARED(type, name, dims)                                                               \
    static char name##_site;                                                                       \
    typedef type name##_type dims;                                                                 \
    name##_type &name =                                                                            \
        *static_cast<name##_type *>(simt::shared_array(&name##_site, sizeof(name##_type), 16))

/* The dynamic shared memory of the launch, 16-byte aligned. */
#define ENG_SHARED_DYNAMIC(type, name) type *name = static_cast<type *>(simt::shared_dynamic())

#else
#include <cuda_runtime.h>

#define ENG_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                 \
    (eng_cuda_launched++, kernel<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__))
#define ENG_SHARED(type, name, dims) __shared__ __align__(16) type name dims
#define ENG_SHARED_DYNAMIC(type, name)                                                             \
    extern __shared__ __align__(16) unsigned char eng_shared_dynamic[];                            \
    type *name = reinterpret_cast<type *>(eng_shared_dynamic)
#endif

#define ENG_FULL_WARP 0xffffffffu

#endif
