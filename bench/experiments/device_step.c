/* See device_step.h. */
#include "bench/experiments/device_step.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "bench/core/resources.h"
#include "bench/experiments/stages.h"
#include "kernels/store/memory.h"

#define MAX_SETS 64 /* of inputs: each has a graph */
#define WIDER    4  /* the hidden layer of a layer's products */

const char *const eng_words_backend[] = {"cpu", "cuda", NULL};

bool eng_point_on_device(const EngPoint *point)
{
    return !strcmp(eng_point_word(point, ENG_AXIS_BACKEND), eng_backend_name(ENG_CUDA));
}

/* ---- plan ---- */

static EngProblem product_of(const EngStepSpec *spec, int n, int k)
{
    return (EngProblem){.op = ENG_OP_PROJECT,
                        .threads = 1,
                        .u.project = {.tokens = spec->chunk,
                                      .n = n,
                                      .k = k,
                                      .x = ENG_BF16,
                                      .weights = ENG_FP8,
                                      .out = ENG_BF16}};
}

EngStatus eng_device_step_check(const EngPoint *point, EngErr *why)
{
    EngStepSpec spec;
    EngStatus status = eng_step_spec_read(point, &spec, why);
    if (!status) status = eng_cuda_device(why);
    if (status) return status;
    if (!spec.decode || spec.backbone.vision_layers || eng_step_emulated(&spec))
        return ENG_FAIL(why, ENG_UNSUPPORTED,
                        "backend=cuda: decode steps, without vision, pacing or delay");
    if (eng_point_has_graph(point) && eng_point_table_at(point) == ENG_TABLE_STAGED)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "graph=on: what the host packs is not in a graph");
    EngProblem product = product_of(&spec, spec.backbone.hidden, spec.backbone.hidden);
    const EngKernel *kernel = eng_kernel_find(ENG_OP_PROJECT, "cuda_cublaslt");
    if (!kernel) return ENG_FAIL(why, ENG_UNSUPPORTED, "no cuBLASLt in this build");
    return eng_kernel_supports(kernel, &product, why);
}

EngStatus eng_device_step_need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    EngStepSpec spec;
    EngStatus status = eng_step_spec_read(point, &spec, err);
    if (status) return status;
    const EngShape *shape = &spec.shapes[0];
    size_t hidden = (size_t)spec.backbone.hidden, bytes = 0;
    for (int m = 0; m < spec.modules && !status; m++) {
        size_t own;
        status = eng_table_value_bytes(shape->row_format, shape->row_dims,
                                       spec.shapes[m].address.rows[0], &own, err);
        if (!status && own > bytes) bytes = own;
    }
    if (status) return status;
    *need = eng_shape_need(point, shape);
    need->table_value_bytes = bytes;
    need->weight_bytes = WIDER * hidden * hidden;
    need->max_tokens = 1;
    need->private_bytes =
        (size_t)spec.chunk * (2 * (WIDER + 1) * hidden + 2 * (size_t)(shape->k * spec.modules));
    return ENG_OK;
}

double eng_device_step_ns(const EngStepSpec *spec)
{
    const double bytes_per_ns = 3000, flops_per_ns = 4e5; /* bf16 weights, which exceed the L2 */
    double hidden = spec->backbone.hidden, weights = 2 * WIDER * hidden * hidden;
    return spec->backbone.layers *
           fmax(2 * weights / bytes_per_ns, 2 * weights * (double)spec->chunk / flops_per_ns);
}

/* ---- set-up ---- */

static EngStatus make_events(EngDeviceStep *step, EngErr *err)
{
    EngStatus status = eng_cuda_event_create(&step->forked, err);
    if (!status) status = eng_cuda_event_create(&step->known, err);
    if (!status) status = eng_cuda_event_create(&step->over, err);
    for (int m = 0; m < step->spec.modules && !status; m++) {
        EngDeviceModule *module = &step->modules[m];
        EngCudaEvent **events[] = {&module->fetched, &module->begin, &module->end, &module->needed,
                                   &module->ready};
        for (size_t i = 0; i < sizeof events / sizeof *events && !status; i++)
            status = eng_cuda_event_create(events[i], err);
    }
    return status;
}

/* Every token of a set begins at a place of the stream of its own. */
static EngStatus make_inputs(EngDeviceStep *step, const EngBench *bench, const EngPoint *point,
                             EngErr *err)
{
    const EngShape *shape = &step->spec.shapes[0];
    EngTokens tokens;
    EngWindows windows = {0};
    int64_t n = step->spec.chunk, reach = shape->max_order - 1;
    step->sets = MAX_SETS;
    size_t all = (size_t)(step->sets * n);
    EngStatus status = eng_resources_tokens(bench->resources, shape->preset.name,
                                            eng_point_word(point, "corpus"), &tokens, err);
    if (!status)
        status = eng_windows_create(&windows, &tokens, 1, (int64_t)all, (int)reach, bench->seed,
                                    "device", err);
    if (!status) status = eng_alloc_or((void **)&step->tokens, all, sizeof(int32_t), "tokens", err);
    if (!status)
        status = eng_alloc_or((void **)&step->history, all * (size_t)reach, sizeof(int32_t),
                              "history", err);
    if (!status)
        status =
            eng_alloc_or((void **)&step->starts, (size_t)n + 1, sizeof(int64_t), "starts", err);
    for (int64_t i = 0; i < (int64_t)all && !status; i++) {
        const int32_t *text = windows.stream + windows.at[i];
        step->tokens[i] = text[0];
        for (int64_t r = 0; r < reach; r++)
            step->history[i * reach + r] = windows.history ? text[r - reach] : ENG_TOKEN_DEAD;
    }
    for (int64_t s = 0; s <= n && !status; s++) step->starts[s] = s;
    eng_windows_destroy(&windows);
    return status;
}

static EngStatus make_hash(EngDeviceStep *step, EngDeviceModule *module, const EngShape *shape,
                           bool on_host, EngErr *err)
{
    const EngKernel *kernel = eng_kernel_find(ENG_OP_HASH, "cuda_reciprocal");
    size_t all = (size_t)(step->sets * step->spec.chunk);
    EngProblem hash = {.op = ENG_OP_HASH,
                       .threads = 1,
                       .u.hash = {.address = &shape->address, .max_tokens = step->spec.chunk}};
    EngStatus status = on_host ? eng_stage_best(&hash, &kernel, err) : ENG_OK;
    if (!status) status = eng_runner_open(&module->hash, kernel, &hash, err);
    if (!status) status = eng_runner_cover(&module->hash, step->tokens, all * sizeof(int32_t), err);
    if (!status)
        status = eng_runner_cover(&module->hash, step->history,
                                  all * (size_t)(shape->max_order - 1) * sizeof(int32_t), err);
    return status;
}

static EngStatus make_module(EngDeviceStep *step, const EngBench *bench, EngTableAt at, int m,
                             EngErr *err)
{
    EngDeviceModule *module = &step->modules[m];
    const EngShape *shape = &step->spec.shapes[m];
    EngTable table;
    size_t n = (size_t)step->spec.chunk;
    EngStatus status = eng_resources_table(bench->resources, shape->row_format, shape->row_dims,
                                           shape->address.rows[0], &table, err);
    if (!status)
        status = eng_alloc_or((void **)&module->rows, n, (size_t)shape->columns * sizeof(int64_t),
                              "rows", err);
    if (!status)
        status = eng_alloc_or((void **)&module->gathered, n, (size_t)shape->k * sizeof(uint16_t),
                              "gathered rows", err);
    if (status) return status;
    module->gather = (EngProblem){.op = ENG_OP_GATHER,
                                  .threads = 1,
                                  .u.gather = {.table = table,
                                               .columns = shape->columns,
                                               .tokens = step->spec.chunk,
                                               .out = ENG_BF16}};
    module->args.u.gather = (EngGatherArgs){
        .rows = module->rows, .row_stride = shape->columns, .out = module->gathered};
    status = eng_mirror_problem(&module->mirrors, &module->gather, at, &module->there, err);
    if (!status)
        status = eng_mirror_args(&module->mirrors, &module->gather, &module->args,
                                 &module->args_there, err);
    if (!status && at == ENG_TABLE_STAGED)
        status = eng_cuda_staged_create(&module->there.u.gather, &module->staged, err);
    return status ? status : make_hash(step, module, shape, at == ENG_TABLE_STAGED, err);
}

static EngStatus make_products(EngDeviceStep *step, const EngBench *bench, EngErr *err)
{
    int hidden = step->spec.backbone.hidden, wide = WIDER * hidden;
    size_t n = (size_t)step->spec.chunk;
    EngProblem up = product_of(&step->spec, wide, hidden);
    EngProblem down = product_of(&step->spec, hidden, wide);
    const EngKernel *kernel = eng_kernel_find(ENG_OP_PROJECT, "cuda_cublaslt");
    EngStatus status = eng_resources_weights(bench->resources, wide, hidden, &up.u.project.w,
                                             &up.u.project.w_scales, err);
    if (!status)
        status = eng_resources_weights(bench->resources, hidden, wide, &down.u.project.w,
                                       &down.u.project.w_scales, err);
    if (!status)
        status = eng_alloc_or((void **)&step->narrow, n, (size_t)hidden * 2, "activations", err);
    if (!status)
        status = eng_alloc_or((void **)&step->wide, n, (size_t)wide * 2, "activations", err);
    if (!status) status = eng_runner_open(&step->up, kernel, &up, err);
    if (!status) status = eng_runner_open(&step->down, kernel, &down, err);
    step->up_args.u.project = (EngProjectArgs){.x = step->narrow, .out = step->wide};
    step->down_args.u.project = (EngProjectArgs){.x = step->wide, .out = step->narrow};
    return status;
}

EngStatus eng_device_step_create(EngDeviceStep *step, const EngBench *bench, const EngPoint *point,
                                 EngErr *err)
{
    EngStatus status = eng_step_spec_read(point, &step->spec, err);
    step->grid.blocks = (int)eng_point_int(point, "blocks");
    if (!status) status = eng_cuda_main(&step->main, err);
    if (!status) status = eng_cuda_stream_create(&step->side, err);
    if (!status) status = make_events(step, err);
    if (!status) status = make_inputs(step, bench, point, err);
    for (int m = 0; m < step->spec.modules && !status; m++)
        status = make_module(step, bench, eng_point_table_at(point), m, err);
    if (!status) status = make_products(step, bench, err);
    if (!status) status = eng_replay_open(&step->beside, point, step->sets, err);
    if (!status) status = eng_replay_open(&step->ready, point, step->sets, err);
    return status;
}

void eng_device_step_destroy(EngDeviceStep *step)
{
    eng_replay_close(&step->beside);
    eng_replay_close(&step->ready);
    if (step->side) (void)eng_cuda_wait(step->side, NULL);
    eng_runner_close(&step->up);
    eng_runner_close(&step->down);
    for (int m = 0; m < ENG_STEP_MODULES; m++) {
        EngDeviceModule *module = &step->modules[m];
        EngCudaEvent *events[] = {module->fetched, module->begin, module->end, module->needed,
                                  module->ready};
        eng_runner_close(&module->hash);
        eng_cuda_staged_destroy(module->staged);
        eng_mirror_drop(&module->mirrors);
        for (size_t i = 0; i < sizeof events / sizeof *events; i++)
            eng_cuda_event_destroy(events[i]);
        eng_free(module->rows);
        eng_free(module->gathered);
    }
    eng_cuda_event_destroy(step->forked);
    eng_cuda_event_destroy(step->known);
    eng_cuda_event_destroy(step->over);
    eng_cuda_stream_destroy(step->side);
    void *buffers[] = {step->narrow, step->wide, step->tokens, step->history, step->starts};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) eng_free(buffers[i]);
}

/* ---- a step ---- */

static EngArgs hash_args(const EngDeviceStep *step, int m, int64_t set)
{
    int64_t n = step->spec.chunk, reach = step->spec.shapes[0].max_order - 1;
    EngArgs args;
    args.u.hash = (EngHashArgs){.tokens = step->tokens + set * n,
                                .n_tokens = n,
                                .n_live = n,
                                .starts = step->starts,
                                .n_seqs = n,
                                .history = step->history + set * n * reach,
                                .rows = step->modules[m].rows};
    return args;
}

static EngStatus hash(EngDeviceStep *step, int m, int64_t set, EngErr *err)
{
    EngArgs args = hash_args(step, m, set);
    return eng_runner_run(&step->modules[m].hash, &args, err);
}

/* Into the second stream. What it overwrites was last used before `forked`. */
static EngStatus fetch(EngDeviceStep *step, int m, int64_t set, EngErr *err)
{
    EngDeviceModule *module = &step->modules[m];
    const EngGatherArgs *args = &module->args_there.u.gather;
    EngStatus status = ENG_OK;
    if (module->staged) {
        status = hash(step, m, set, err);
        if (!status)
            status = eng_cuda_staged_pack(module->staged, module->rows,
                                          module->args.u.gather.row_stride, err);
    }
    if (!status) status = eng_cuda_event_stamp(module->begin, step->side, err);
    if (!status)
        status = module->staged
                     ? eng_cuda_staged_send(module->staged, args, step->grid, step->side, err)
                     : eng_cuda_gather(&module->there.u.gather, args, step->grid, step->side, err);
    if (!status) status = eng_cuda_event_stamp(module->end, step->side, err);
    return status ? status : eng_cuda_event_record(module->fetched, step->side, err);
}

static EngStatus wait_for_rows(EngDeviceStep *step, int m, EngErr *err)
{
    EngDeviceModule *module = &step->modules[m];
    EngStatus status = eng_cuda_event_stamp(module->needed, step->main, err);
    if (!status) status = eng_cuda_event_order(step->main, module->fetched, err);
    return status ? status : eng_cuda_event_stamp(module->ready, step->main, err);
}

static EngStatus layer(EngDeviceStep *step, EngErr *err)
{
    EngStatus status = eng_runner_run(&step->up, &step->up_args, err);
    return status ? status : eng_runner_run(&step->down, &step->down_args, err);
}

static EngStatus beside(void *opaque, int64_t set, EngErr *err)
{
    EngDeviceStep *step = opaque;
    const EngStepSpec *spec = &step->spec;
    EngStatus status = eng_cuda_event_stamp(step->known, step->main, err);
    for (int m = 0; m < spec->modules && !status; m++)
        if (!step->modules[m].staged) status = hash(step, m, set, err);
    if (!status) status = eng_cuda_event_record(step->forked, step->main, err);
    if (!status) status = eng_cuda_event_order(step->side, step->forked, err);
    for (int m = 0; m < spec->modules && !status; m++)
        if (!step->modules[m].staged) status = fetch(step, m, set, err);
    for (int l = 0; l < spec->backbone.layers && !status; l++) {
        for (int m = 0; m < spec->modules && !status; m++) {
            if (spec->at[m] != l) continue;
            /* The layers before are under way while the host hashes and packs. */
            if (step->modules[m].staged) status = fetch(step, m, set, err);
            if (!status) status = wait_for_rows(step, m, err);
        }
        if (!status) status = layer(step, err);
    }
    return status ? status : eng_cuda_event_stamp(step->over, step->main, err);
}

/* Row numbers are hashed within the clock, as where rows are fetched; by the host they are not. */
static EngStatus with_rows(void *opaque, int64_t set, EngErr *err)
{
    EngDeviceStep *step = opaque;
    EngStatus status = eng_cuda_event_stamp(step->known, step->main, err);
    for (int m = 0; m < step->spec.modules && !status; m++)
        if (!step->modules[m].staged) status = hash(step, m, set, err);
    for (int l = 0; l < step->spec.backbone.layers && !status; l++) status = layer(step, err);
    return status ? status : eng_cuda_event_stamp(step->over, step->main, err);
}

static EngStatus add_ns(EngCudaEvent *from, EngCudaEvent *to, int64_t *sum, EngErr *err)
{
    double ns = 0;
    EngStatus status = eng_cuda_event_ns(from, to, &ns, err);
    *sum += (int64_t)ns;
    return status;
}

static int64_t next_set(EngDeviceStep *step)
{
    int64_t set = step->next;
    step->next = (set + 1) % step->sets;
    return set;
}

EngStatus eng_device_step_fetch(EngDeviceStep *step, EngStepSums *sums, EngErr *err)
{
    EngStatus status = eng_replay_run(&step->beside, beside, step, next_set(step), err);
    if (!status) status = add_ns(step->known, step->over, &sums->step_ns, err);
    for (int m = 0; m < step->spec.modules && !status; m++) {
        EngDeviceModule *module = &step->modules[m];
        status = add_ns(module->begin, module->end, &sums->fetch_ns[m], err);
        if (!status) status = add_ns(module->needed, module->ready, &sums->stall_ns[m], err);
        if (!status) status = add_ns(step->known, module->needed, &sums->window_ns[m], err);
        if (!status) status = add_ns(step->known, module->end, &sums->wanted_ns[m], err);
    }
    sums->steps++;
    return status;
}

EngStatus eng_device_step_ready(EngDeviceStep *step, EngStepSums *sums, EngErr *err)
{
    EngStatus status = eng_replay_run(&step->ready, with_rows, step, next_set(step), err);
    if (!status) status = add_ns(step->known, step->over, &sums->step_ns, err);
    sums->steps++;
    return status;
}

EngStatus eng_device_step_verify(EngDeviceStep *step, EngResidual *residual, EngErr *err)
{
    EngStepSums unused = {0};
    EngCheck sum = {0};
    int64_t set = step->next;
    EngStatus status =
        eng_replay_capture(&step->beside, beside, step, (set ? set : step->sets) - 1, err);
    for (int m = 0; m < step->spec.modules && !status; m++) { /* what is not written is a NaN */
        EngDeviceModule *module = &step->modules[m];
        size_t n = (size_t)step->spec.chunk;
        memset(module->rows, 0, n * (size_t)step->spec.shapes[m].columns * sizeof *module->rows);
        memset(module->gathered, 0xff, n * (size_t)step->spec.shapes[m].k * sizeof(uint16_t));
        status = eng_mirror_push(&module->mirrors, &module->gather, &module->args, err);
    }
    if (!status) status = eng_device_step_fetch(step, &unused, err);
    for (int m = 0; m < step->spec.modules && !status; m++) {
        EngDeviceModule *module = &step->modules[m];
        EngArgs args = hash_args(step, m, set);
        status = eng_runner_pull(&module->hash, &args, err);
        if (!status)
            status = eng_check_hash(&step->spec.shapes[m].address, &args.u.hash, &sum, err);
        if (!status)
            status = eng_mirror_pull(&module->mirrors, &module->gather, &module->args, err);
        if (!status)
            status = eng_check_gather(&module->gather.u.gather, &module->args.u.gather, &sum, err);
    }
    if (!status) status = eng_device_step_ready(step, &unused, err);
    eng_residual_of_check(&sum, "exact", residual);
    return status;
}
