/* See device_beside.h. */
#include "bench/experiments/device_beside.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "bench/core/resources.h"

#define PHASE_NS    3e6 /* at least one of each; more until a phase has this length */
#define MOST        256 /* launches of a phase: rows of 64 tokens each, 100 MB, exceed the L2 */
#define MAX_WINDOWS 256

/* ---- set-up ---- */

static EngStatus make_events(EngDeviceBeside *b, EngErr *err)
{
    EngCudaEvent **events[] = {&b->forked,  &b->joined, &b->from[0],
                               &b->from[1], &b->to[0],  &b->to[1]};
    EngStatus status = ENG_OK;
    for (size_t i = 0; i < sizeof events / sizeof *events && !status; i++)
        status = eng_cuda_event_create(events[i], err);
    return status;
}

static EngStatus make_rows(EngDeviceBeside *b, const EngBench *bench, const EngPoint *point,
                           EngErr *err)
{
    EngTokens tokens;
    int64_t n = eng_windows_count(b->shape.tokens);
    EngStatus status = eng_resources_tokens(bench->resources, b->shape.preset.name,
                                            eng_point_word(point, "corpus"), &tokens, err);
    if (!status)
        status = eng_windows_create(&b->windows, &tokens, b->shape.tokens,
                                    n < MAX_WINDOWS ? n : MAX_WINDOWS, b->shape.max_order - 1,
                                    bench->seed, "device", err);
    return status ? status : eng_windows_rows(&b->windows, &b->shape.address, &b->rows, err);
}

static EngStatus make_gather(EngDeviceBeside *b, const EngBench *bench, const EngPoint *point,
                             EngErr *err)
{
    EngTable table;
    const EngShape *shape = &b->shape;
    EngTableAt at = eng_point_table_at(point);
    size_t n = (size_t)(shape->tokens * shape->columns);
    EngStatus status = eng_resources_table(bench->resources, shape->row_format, shape->row_dims,
                                           shape->address.rows[0], &table, err);
    if (!status) status = make_rows(b, bench, point, err);
    if (!status)
        status = eng_alloc_or((void **)&b->gathered, (size_t)(shape->tokens * shape->k),
                              sizeof(uint16_t), "gathered rows", err);
    if (status) return status;
    b->gather = (EngProblem){
        .op = ENG_OP_GATHER,
        .threads = 1,
        .u.gather = {
            .table = table, .columns = shape->columns, .tokens = shape->tokens, .out = ENG_BF16}};
    status = eng_mirror_problem(&b->mirrors, &b->gather, at, &b->there, err);
    if (!status)
        status =
            eng_mirror_cover(&b->mirrors, b->rows, (size_t)b->windows.n * n * sizeof *b->rows, err);
    if (status || at != ENG_TABLE_STAGED) return status;
    status = eng_cuda_staged_create(&b->there.u.gather, &b->staged, err);
    return status ? status : eng_cuda_staged_pack(b->staged, b->rows, shape->columns, err);
}

/* The second of each is timed: the first chooses algorithms and makes mirrors. */
static EngStatus size_phases(EngDeviceBeside *b, EngErr *err)
{
    EngBesideSums once = {0};
    b->products = b->gathers = 1;
    EngStatus status = eng_device_beside_run(b, ENG_PHASE_BESIDE, &once, err);
    once = (EngBesideSums){0};
    if (!status) status = eng_device_beside_run(b, ENG_PHASE_ALONE, &once, err);
    if (!status && b->any) status = eng_device_beside_run(b, ENG_PHASE_QUIET, &once, err);
    b->products = (int64_t)fmin(fmax(PHASE_NS / fmax((double)once.products_ns, 1), 1), MOST);
    b->gathers = (int64_t)fmin(fmax(PHASE_NS / fmax((double)once.gathers_ns, 1), 1), MOST);
    return status;
}

EngStatus eng_device_beside_create(EngDeviceBeside *b, const EngBench *bench, const EngPoint *point,
                                   const EngProblem *product, const EngArgs *args, EngErr *err)
{
    const EngKernel *kernel = eng_kernel_find(ENG_OP_PROJECT, "cuda_cublaslt");
    b->args = args;
    b->any = eng_point_int(point, "gatherers") > 0;
    b->grid.blocks = (int)eng_point_int(point, "blocks");
    EngStatus status = eng_shape_resolve(point, &b->shape, err);
    if (!status) status = eng_cuda_main(&b->main, err);
    if (!status) status = eng_cuda_stream_create(&b->side, err);
    if (!status) status = make_events(b, err);
    if (!status) status = eng_runner_open(&b->product, kernel, product, err);
    if (!status && b->any) status = make_gather(b, bench, point, err);
    if (!status) status = size_phases(b, err);
    return status ? status : eng_replay_open(&b->replay, point, ENG_PHASES, err);
}

void eng_device_beside_destroy(EngDeviceBeside *b)
{
    EngCudaEvent *events[] = {b->forked, b->joined, b->from[0], b->from[1], b->to[0], b->to[1]};
    eng_replay_close(&b->replay);
    if (b->side) (void)eng_cuda_wait(b->side, NULL);
    eng_runner_close(&b->product);
    eng_cuda_staged_destroy(b->staged);
    eng_mirror_drop(&b->mirrors);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) eng_cuda_event_destroy(events[i]);
    eng_cuda_stream_destroy(b->side);
    eng_windows_destroy(&b->windows);
    eng_free(b->rows);
    eng_free(b->gathered);
}

/* ---- phases ---- */

static EngArgs gather_args(const EngDeviceBeside *b, int64_t i)
{
    EngArgs args;
    int64_t window = i % b->windows.n;
    args.u.gather = (EngGatherArgs){.rows = b->rows + window * b->shape.tokens * b->shape.columns,
                                    .row_stride = b->shape.columns,
                                    .out = b->gathered};
    return args;
}

static EngStatus gather(EngDeviceBeside *b, int64_t i, EngErr *err)
{
    EngArgs args = gather_args(b, i), there;
    EngStatus status = eng_mirror_args(&b->mirrors, &b->gather, &args, &there, err);
    if (status) return status;
    if (b->staged) return eng_cuda_staged_send(b->staged, &there.u.gather, b->grid, b->side, err);
    return eng_cuda_gather(&b->there.u.gather, &there.u.gather, b->grid, b->side, err);
}

/* The host hands work to both streams in turn, so that neither waits for it. */
static EngStatus phase(void *opaque, int64_t which, EngErr *err)
{
    EngDeviceBeside *b = opaque;
    int64_t products = which == ENG_PHASE_QUIET ? 0 : b->products;
    int64_t gathers = which == ENG_PHASE_ALONE || !b->any ? 0 : b->gathers;
    EngStatus status = eng_cuda_event_record(b->forked, b->main, err);
    if (!status) status = eng_cuda_event_order(b->side, b->forked, err);
    if (!status) status = eng_cuda_event_stamp(b->from[0], b->main, err);
    if (!status) status = eng_cuda_event_stamp(b->from[1], b->side, err);
    for (int64_t i = 0; (i < products || i < gathers) && !status; i++) {
        if (i < products) status = eng_runner_run(&b->product, b->args, err);
        if (i < gathers && !status) status = gather(b, i, err);
    }
    if (!status) status = eng_cuda_event_stamp(b->to[0], b->main, err);
    if (!status) status = eng_cuda_event_stamp(b->to[1], b->side, err);
    if (!status) status = eng_cuda_event_record(b->joined, b->side, err);
    return status ? status : eng_cuda_event_order(b->main, b->joined, err);
}

EngStatus eng_device_beside_run(EngDeviceBeside *b, EngBesidePhase which, EngBesideSums *sums,
                                EngErr *err)
{
    double ns[2] = {0, 0};
    EngStatus status = eng_replay_run(&b->replay, phase, b, which, err);
    for (int i = 0; i < 2 && !status; i++)
        status = eng_cuda_event_ns(b->from[i], b->to[i], &ns[i], err);
    if (which != ENG_PHASE_QUIET) sums->products_ns += (int64_t)ns[0];
    if (which == ENG_PHASE_ALONE || !b->any) return status;
    sums->gathers_ns += (int64_t)ns[1];
    sums->rows += b->gathers * b->shape.tokens * b->shape.columns;
    return status;
}

EngStatus eng_device_beside_verify(EngDeviceBeside *b, EngCheck *sum, EngErr *err)
{
    EngBesideSums unused = {0};
    EngArgs args = {0};
    EngStatus status = eng_replay_capture(&b->replay, phase, b, ENG_PHASE_BESIDE, err);
    if (!status) status = eng_runner_push(&b->product, b->args, err);
    if (!status && b->any) {
        /* What the host packed are the rows of the first window. */
        args = gather_args(b, b->staged ? 0 : b->gathers - 1);
        memset(b->gathered, 0xff, (size_t)(b->shape.tokens * b->shape.k) * sizeof *b->gathered);
        status = eng_mirror_push(&b->mirrors, &b->gather, &args, err);
    }
    if (!status) status = eng_device_beside_run(b, ENG_PHASE_BESIDE, &unused, err);
    if (!status) status = eng_runner_pull(&b->product, b->args, err);
    if (status || !b->any) return status;
    status = eng_mirror_pull(&b->mirrors, &b->gather, &args, err);
    return status ? status : eng_check_gather(&b->gather.u.gather, &args.u.gather, sum, err);
}
