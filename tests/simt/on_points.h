/* What tests of experiments on the simulated device share. */
#ifndef ENG_TESTS_SIMT_ON_POINTS_H
#define ENG_TESTS_SIMT_ON_POINTS_H

#include "tests/unit/experiments/points.h"

#include "bench/core/resources.h"
#include "kernels/cuda/queue.h"
#include "program.h"

#define TINY                                                                                       \
    "preset", "tiny", "orders", "2-3", "heads", "2", "rows", "101", "row_dims", "32", "corpus",    \
        "synthetic", "hidden", "64"

static EngErr g_err;

static inline void ok(EngStatus status)
{
    if (status) fail_msg("%s", g_err.text);
}

/* What the process makes once is there: the main stream and the events of a window. */
static inline void fresh_device(int order, int policy, unsigned long seed)
{
    EngCudaStream *stream;
    EngCudaWindow window;
    simt_begin(order, policy, seed, 0);
    ok(eng_cuda_main(&stream, &g_err));
    ok(eng_cuda_window_open(&g_err));
    ok(eng_cuda_window_close(&window, &g_err));
    simt_begin(order, policy, seed, 0);
}

/* Neither a fault nor anything that was made is left. */
static inline void clean(const char *what)
{
    if (simt_faults()) fail_msg("%s: %s", what, simt_fault_text());
    if (simt_left_over()) fail_msg("%s: left over: %s", what, simt_left_over());
}

static inline EngResources *open_for(const EngPoint *point)
{
    EngNeed need;
    EngResources *resources;
    ok(eng_resources_create("no-such-folder", 1, &resources, &g_err));
    ok(point->experiment->need(point, &need, &g_err));
    ok(eng_resources_add(resources, &need, &g_err));
    if (need.table) {
        ok(eng_resources_map(resources, need.row_format, &g_err));
        ok(eng_resources_layout(resources, need.row_dims, &g_err));
    }
    ok(eng_resources_map_weights(resources, &g_err));
    return resources;
}

#endif
