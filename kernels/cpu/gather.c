/* Sets up each thread's part of a gather; see gather_loop.h. */
#include "kernels/cpu/gather_loop.h"

#include <omp.h>

/* Together they may not exceed the ring of eng_gather_bursts. */
const EngTunable eng_cpu_gather_tunables[] = {
    {.name = "burst",
     .min = 1,
     .max = ENG_GATHER_MAX_AHEAD / 2,
     .values = "4,12,24,48",
     .help = "rows requested back to back (default: by row size and kernel, 24 or 48 for 256 fp8 "
             "values)"},
    {.name = "ahead",
     .min = 1,
     .max = ENG_GATHER_MAX_AHEAD / 2,
     .values = "24,64",
     .help = "rows that requests are ahead of use (default: a burst)"},
    {.name = NULL},
};

/* What a shared last-level cache leaves to one of its readers (the knee of the ladder was 8 MiB
 * where this was measured): smaller output is overwritten there by the next call before it reaches
 * memory. Stores through the caches took 0.46 to 1.04 of the time of those past them at 0.75 to
 * 3 MiB a thread, 0.9 to 1.15 at 6 MiB, 1.02 to 1.4 from 12 MiB on. */
size_t eng_cpu_gather_stream_from = (size_t)8 << 20;

/* Whether n bytes at multiples of `stride` from base can reach beyond the lines of their bytes 0,
 * 64, 128 and so on: rows start at multiples of the largest power of two that divides all of base,
 * stride and a line. */
static bool crosses(const uint8_t *base, size_t stride, size_t n)
{
    size_t bits = (uintptr_t)base | stride | 64, unit = bits & (~bits + 1);
    return n && 64 - unit + (n - 1) % 64 >= 64;
}

/* Rows of output start at multiples of a line, as streaming stores need it. */
static bool streams(const EngGatherLoop *loop, size_t stream_from)
{
    size_t bytes = (size_t)(loop->to - loop->from) * loop->out_bytes;
    return bytes >= stream_from && loop->out_bytes % 64 == 0 && (uintptr_t)loop->out % 64 == 0;
}

EngGatherLoop eng_cpu_gather_loop(const EngTable *table, int columns)
{
    int dims = table->row_dims;
    size_t offset = eng_row_scale_offset(table->format, dims);
    EngGatherLoop loop = {
        .values = table->values,
        .scales = table->scales,
        .stride = eng_row_stride_bytes(table->format, dims),
        .scale_stride = eng_row_scale_bytes(table->format, dims),
        .row_bytes = eng_row_value_bytes(table->format, dims),
        .scale_bytes = eng_row_scale_bytes(table->format, dims),
        .columns = columns,
        .dims = dims,
        .groups = eng_row_has_groups(table->format) ? dims / ENG_SCALE_GROUP : 0,
    };
    loop.lines = (int)((loop.row_bytes + 63) / 64);
    loop.tail = crosses(table->values, loop.stride, loop.row_bytes) ||
                crosses(table->scales, loop.scale_bytes, loop.scale_bytes);
    if (offset) {
        loop.scales = table->values + offset;
        loop.scale_stride = loop.stride;
    } else if (!loop.scale_bytes) {
        loop.scales = NULL;
    }
    return loop;
}

void eng_cpu_gather_parts(const EngProblem *problem, const EngGatherArgs *args,
                          EngGatherPartFn *part, const void *state, size_t stream_from)
{
    const EngGatherProblem *p = &problem->u.gather;
    int threads = problem->threads;
    EngGatherLoop shared = eng_cpu_gather_loop(&p->table, p->columns);
    shared.rows = args->rows;
    shared.row_stride = args->row_stride;
    shared.out = args->out;
    shared.out_bytes = eng_dtype_bytes(p->out, (size_t)p->table.row_dims);
    shared.state = state;
    shared.burst = (unsigned)problem->tuned[0];
    shared.ahead = (unsigned)problem->tuned[1];
    if (p->out == ENG_FP8) {
        shared.out_scales = args->out_scales;
        shared.out_scale_bytes = (size_t)shared.groups;
    }
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        EngGatherLoop loop = shared;
        eng_cpu_share(p->tokens * p->columns, omp_get_num_threads(), omp_get_thread_num(),
                      &loop.from, &loop.to);
        loop.stream = streams(&loop, stream_from);
        if (loop.from < loop.to) part(&loop);
    }
}
