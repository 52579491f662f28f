/* Every fault planted in a kernel is found, whatever the order of threads and the seed; and nothing
 * is reported when the fault is left out.
 */
#include "planted_helpers.hpp"

namespace
{
/* ---- faults of kernels ---- */

void run_planted(const char *name, Planted kernel, Fault want, bool broken,
                 const simt::Options &options)
{
    simt::begin(options);
    cudaStream_t stream = new_stream();
    const int *in = counted(n_in);
    int *out = new_ints(n_out, false);
    long done = simt::launches_done();
    cudaMemsetAsync(out, 0, n_out * sizeof(int), stream);
    ENG_LAUNCH(kernel, dim3(blocks), dim3(threads), 1024, stream, in, out, broken);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    finish(name);
    expect(broken ? want : Fault::none, name, options);
    assert_int_equal(simt::launches_done() - done, broken ? 0 : 1);
}

#define KERNEL(name, fault)                                                                        \
    {                                                                                              \
#name, name, Fault::fault                                                                  \
    }

void test_kernels(void **)
{
    static const struct {
        const char *name;
        Planted kernel;
        Fault fault;
    } all[] = {
        KERNEL(neighbour_sum, race_in_block),
        KERNEL(warp_neighbour, race_in_block),
        KERNEL(other_warp, race_in_block),
        KERNEL(written_while_read, race_in_block),
        KERNEL(early_exit, divergent_barrier),
        KERNEL(two_barriers, divergent_barrier),
        KERNEL(lane_from_outside, inactive_lane),
        KERNEL(mask_without_caller, inactive_lane),
        KERNEL(full_mask_in_branch, divergent_collective),
        KERNEL(shared_past_end, shared_bounds),
        KERNEL(shared_across_end, shared_bounds),
        KERNEL(shared_before_start, shared_bounds),
        KERNEL(shared_misaligned, misaligned),
        KERNEL(shared_unwritten, uninitialised),
        KERNEL(global_past_end, bounds),
        KERNEL(global_far, foreign_memory),
        KERNEL(global_misaligned, misaligned),
        KERNEL(same_cell, race_in_block),
        KERNEL(cell_of_all_blocks, race_between_blocks),
        KERNEL(written_while_all_read, race_between_blocks),
        KERNEL(atomic_and_plain, race_in_block),
        KERNEL(atomic_then_read, race_in_block),
        KERNEL(copy_too_early, copy_in_flight),
        KERNEL(copy_to_global, shared_bounds),
        KERNEL(copy_from_outside, bounds),
        KERNEL(copy_never_awaited, copy_not_awaited),
        KERNEL(mma_in_branch, divergent_collective),
    };
    for (const auto &one : all)
        for (Order order : {Order::forward, Order::reverse, Order::random})
            for (int seed = 1; seed <= (order == Order::random ? seeds : 1); seed++)
                for (bool broken : {false, true})
                    run_planted(one.name, one.kernel, one.fault, broken,
                                {order, Policy::lazy, (uint64_t)seed, 1000000});
}

/* The fault's name depends on who comes first; that there is one does not. */
void test_kernels_of_several_names(void **)
{
    static const struct {
        Planted kernel;
        Fault in_order, others[2];
    } all[] = {
        {ended_lane, Fault::inactive_lane, {Fault::divergent_collective}},
        {ended_last_lane, Fault::divergent_collective, {Fault::inactive_lane}},
        {mma_of_ended_lane, Fault::inactive_lane, {Fault::divergent_collective}},
        {copy_without_barrier, Fault::uninitialised, {Fault::copy_in_flight, Fault::race_in_block}},
        {copy_over_readers, Fault::race_in_block, {Fault::copy_in_flight}},
        {copy_landed_elsewhere, Fault::race_in_block, {Fault::copy_in_flight}},
        {double_buffer, Fault::race_in_block, {Fault::copy_in_flight, Fault::uninitialised}},
    };
    for (const auto &one : all)
        for (Order order : {Order::forward, Order::reverse, Order::random}) {
            const simt::Options options = {order, Policy::lazy, 1, 1000000};
            run_planted("control", one.kernel, one.in_order, false, options);
            simt::begin(options);
            cudaStream_t stream = new_stream();
            const int *in = counted(n_in);
            int *out = new_ints(n_out, false);
            ENG_LAUNCH(one.kernel, dim3(blocks), dim3(threads), 1024, stream, in, out, true);
            cudaStreamSynchronize(stream);
            cudaStreamDestroy(stream);
            finish("several names");
            assert_int_equal(simt::faults(), 1);
            bool other = simt::fault(0) == one.others[0] || simt::fault(0) == one.others[1];
            if (order == Order::forward || !other) expect(one.in_order, "several names", options);
        }
}

/* The product that lanes make together, with fragments where the instruction wants them. */
void test_mma(void **)
{
    uint16_t a[16 * 16], b[16 * 8];
    float out[16 * 8];
    simt::begin({Order::random, Policy::lazy, 3, 1000000});
    cudaStream_t stream = new_stream();
    for (int i = 0; i < 256; i++) a[i] = (uint16_t)(0x3f80 + i * 37 % 256); /* 1 to 4 */
    for (int i = 0; i < 128; i++) b[i] = (uint16_t)(0xbf80 + i * 29 % 128); /* -1 to -2 */
    uint16_t *a_there = reinterpret_cast<uint16_t *>(new_ints(16 * 8, false));
    uint16_t *b_there = reinterpret_cast<uint16_t *>(new_ints(8 * 8, false));
    float *out_there = reinterpret_cast<float *>(new_ints(16 * 8, false));
    cudaMemcpy(a_there, a, sizeof a, cudaMemcpyHostToDevice);
    cudaMemcpy(b_there, b, sizeof b, cudaMemcpyHostToDevice);
    cudaStreamSynchronize(cudaStreamLegacy);
    ENG_LAUNCH(mma_product, dim3(1), dim3(32), 0, stream, a_there, b_there, out_there);
    cudaStreamSynchronize(stream);
    cudaMemcpy(out, out_there, sizeof out, cudaMemcpyDeviceToHost);
    expect(Fault::none, "mma", {});
    for (int row = 0; row < 16; row++)
        for (int column = 0; column < 8; column++) {
            double sum = 0;
            for (int k = 0; k < 16; k++) {
                uint32_t left = (uint32_t)a[16 * row + k] << 16;
                uint32_t right = (uint32_t)b[8 * k + column] << 16;
                float x, y;
                memcpy(&x, &left, 4), memcpy(&y, &right, 4);
                sum += (double)x * y;
            }
            assert_true(out[8 * row + column] <= sum * (1 - 0x1p-22));
            assert_true(out[8 * row + column] >= sum * (1 + 0x1p-22));
        }
    cudaStreamDestroy(stream);
    finish("mma");
}

void test_stuck(void **)
{
    const simt::Options options = {Order::forward, Policy::lazy, 1, 1000000};
    run_planted("endless", endless, Fault::stuck, true, options);
    run_planted("endless", endless, Fault::stuck, false, options);
}

void test_texts_name_the_place(void **)
{
    run_planted("global_past_end", global_past_end, Fault::bounds, true,
                {Order::forward, Policy::lazy, 1, 1000000});
    assert_non_null(strstr(simt::fault_text(0), "block 2 thread 63"));
}
} // namespace

int main(void)
{
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_mma),
        cmocka_unit_test(test_kernels_of_several_names),
        cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_texts_name_the_place),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
