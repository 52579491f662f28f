/* Kernels with one planted fault each (planted.cu); `broken` false leaves it out: the control. */
#ifndef ENG_TESTS_SIMT_PLANTED_CUH
#define ENG_TESTS_SIMT_PLANTED_CUH

#include "kernels/cuda/ptx.cuh"

#include <cstdint>

__global__ void neighbour_sum(const int *in, int *out, bool broken);
__global__ void warp_neighbour(const int *in, int *out, bool broken);
__global__ void other_warp(const int *in, int *out, bool broken);
__global__ void written_while_read(const int *in, int *out, bool broken);
__global__ void early_exit(const int *in, int *out, bool broken);
__global__ void two_barriers(const int *in, int *out, bool broken);
__global__ void lane_from_outside(const int *in, int *out, bool broken);
__global__ void mask_without_caller(const int *in, int *out, bool broken);
__global__ void ended_lane(const int *in, int *out, bool broken);
__global__ void ended_last_lane(const int *in, int *out, bool broken);
__global__ void full_mask_in_branch(const int *in, int *out, bool broken);
__global__ void shared_past_end(const int *in, int *out, bool broken);
__global__ void shared_across_end(const int *in, int *out, bool broken);
__global__ void shared_before_start(const int *in, int *out, bool broken);
__global__ void shared_misaligned(const int *in, int *out, bool broken);
__global__ void shared_unwritten(const int *in, int *out, bool broken);
__global__ void global_past_end(const int *in, int *out, bool broken);
__global__ void global_far(const int *in, int *out, bool broken);
__global__ void global_misaligned(const int *in, int *out, bool broken);
__global__ void same_cell(const int *in, int *out, bool broken);
__global__ void cell_of_all_blocks(const int *in, int *out, bool broken);
__global__ void written_while_all_read(const int *in, int *out, bool broken);
__global__ void atomic_and_plain(const int *in, int *out, bool broken);
__global__ void atomic_then_read(const int *in, int *out, bool broken);
__global__ void copy_too_early(const int *in, int *out, bool broken);
__global__ void copy_without_barrier(const int *in, int *out, bool broken);
__global__ void copy_never_awaited(const int *in, int *out, bool broken);
__global__ void copy_over_readers(const int *in, int *out, bool broken);
__global__ void copy_landed_elsewhere(const int *in, int *out, bool broken);
__global__ void copy_to_global(const int *in, int *out, bool broken);
__global__ void copy_from_outside(const int *in, int *out, bool broken);
__global__ void endless(const int *in, int *out, bool broken);
__global__ void double_buffer(const int *in, int *out, bool broken);
__global__ void mma_in_branch(const int *in, int *out, bool broken);
__global__ void mma_of_ended_lane(const int *in, int *out, bool broken);
__global__ void mma_product(const uint16_t *a, const uint16_t *b, float *out);

/* Broken: 50,000 bytes of static shared memory. */
__global__ void large_static(const int *in, int *out, bool broken);

/* in and out of 64-thread blocks: out[i] = in[i] + 1. */
__global__ void add_one(const int *in, int *out);
/* out[0] = in[row * row_ints], with the product taken in 32 bits or not. */
__global__ void far_row(const int *in, int *out, int row, int row_ints, bool broken);

#endif
