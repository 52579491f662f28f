/* All CUDA variants, for kernels/registry.c. They run where a device is and are skipped with "no
 * device" elsewhere. Tables, weights and arguments are given as addresses that the device reaches
 * (device.h); run() returns when the device is done, or in a measured window or a capture when its
 * work is in the main stream (queue.h).
 */
#ifndef ENG_KERNELS_CUDA_CUDA_H
#define ENG_KERNELS_CUDA_CUDA_H

#include <engram/kernels.h>

/* Ends with NULL. */
extern const EngKernel *const eng_cuda_kernels[];

#endif
