/* What a step is made of, from the axes of a point to stores, prefetcher and backbone; see
 * fetched_step.h. */
#include "bench/experiments/fetched_step.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "bench/experiments/stages.h"

#define HEAD_DIM         64
#define VOCAB            1024
#define VISION_LAYERS    4
#define VISION_PATCHES   64
#define EST_FLOPS_PER_NS 30.0
#define PACED            "paced:"
#define PACED_MOST_US    1e7

const char *const eng_words_phase[] = {"decode", "prefill", NULL};

/* ---- axes --------------------------------------------------------------------------------------
 */

static const EngValue *find_value(const EngPoint *point, const char *axis)
{
    for (int i = 0; i < point->experiment->n_axes; i++)
        if (!strcmp(point->experiment->axes[i].name, axis)) return &point->values[i];
    return NULL;
}

static int64_t int_or(const EngPoint *point, const char *axis, int64_t otherwise)
{
    const EngValue *value = find_value(point, axis);
    return value ? value->i : otherwise;
}

static bool is_word(const EngPoint *point, const char *axis, const char *word)
{
    const EngValue *value = find_value(point, axis);
    return value && !strcmp(value->text, word);
}

/* Nanoseconds of a paced layer, 0 where the backbone computes. */
static EngStatus read_window(const char *text, int64_t *paced_ns, EngErr *err)
{
    double us = 0;
    *paced_ns = 0;
    if (!strcmp(text, "backbone")) return ENG_OK;
    if (strncmp(text, PACED, strlen(PACED)) || !eng_parse_f64(text + strlen(PACED), &us) ||
        !(us >= 0.001 && us <= PACED_MOST_US))
        return ENG_FAIL(err, ENG_USAGE,
                        "window: \"%s\" is not backbone or paced:US, with US from 0.001 to %.0f",
                        text, PACED_MOST_US);
    *paced_ns = (int64_t)llround(us * 1e3);
    return ENG_OK;
}

static EngStatus read_modules(const EngPoint *point, EngStepSpec *spec, EngErr *why)
{
    EngStatus status = eng_shape_resolve(point, &spec->shapes[0], why);
    if (status) return status;
    const EngShape *first = &spec->shapes[0];
    spec->modules = (int)int_or(point, "modules", 1);
    spec->at[0] = (int)eng_point_int(point, "placement");
    spec->at[1] = spec->at[0] + (int)int_or(point, "apart", 1);
    int64_t last = spec->at[spec->modules - 1], layers = eng_point_int(point, "layers");
    if (spec->modules > first->preset.address.n_layers)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "preset %s has the table of one module only",
                        first->preset.name);
    if (last >= layers)
        return ENG_FAIL(why, ENG_UNSUPPORTED,
                        "rows needed before layer %" PRId64 " of %" PRId64 " (from 0)", last,
                        layers);
    spec->shapes[1] = *first;
    if (spec->modules == 1) return ENG_OK;
    spec->shapes[1].layer = first->preset.address.layer_ids[1];
    return eng_shape_address(&spec->shapes[1], first->preset.address.vocab,
                             &spec->shapes[1].address, why);
}

static EngStatus read_passes(const EngPoint *point, EngStepSpec *spec, EngErr *why)
{
    int64_t tokens = spec->shapes[0].tokens, chunk = int_or(point, "chunk", 0);
    spec->decode = !is_word(point, "phase", "prefill");
    if (spec->decode && chunk) return ENG_FAIL(why, ENG_UNSUPPORTED, "a decode step has no chunks");
    if (chunk > tokens)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "chunk: %" PRId64 " tokens of %" PRId64, chunk,
                        tokens);
    spec->chunk = chunk ? chunk : tokens;
    spec->passes = (tokens + spec->chunk - 1) / spec->chunk;
    spec->verified = int_or(point, "draft", 0) + 1;
    spec->text = spec->decode ? 1 : tokens;
    if (spec->verified == 1) return ENG_OK;
    spec->chunk = int_or(point, "sequences", tokens) * spec->verified;
    spec->text = (ENG_STEP_CHAIN + 1) * spec->verified;
    return ENG_OK;
}

static EngStatus read_backbone(const EngPoint *point, EngStepSpec *spec, EngErr *why)
{
    int hidden = (int)eng_point_int(point, "hidden");
    EngBackboneConfig *c = &spec->backbone;
    *c = eng_backbone_default();
    if (hidden % HEAD_DIM)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "hidden: %d is no multiple of %d", hidden, HEAD_DIM);
    c->layers = (int)eng_point_int(point, "layers");
    c->distinct_layers = 1;
    c->hidden = hidden;
    c->heads = hidden / HEAD_DIM;
    c->head_dim = HEAD_DIM;
    c->experts = 8;
    c->expert_width = hidden / 2;
    c->vocab = VOCAB;
    c->threads = spec->shapes[0].threads;
    c->max_tokens = spec->chunk;
    c->max_seqs = spec->decode ? (int)(spec->chunk / spec->verified) : 1;
    c->max_len = spec->decode ? spec->verified : spec->shapes[0].tokens;
    EngStatus status = read_window(eng_point_word(point, "window"), &c->paced_layer_ns, why);
    if (status || !is_word(point, "vision", "on")) return status;
    c->vision_layers = VISION_LAYERS;
    c->vision_patches = VISION_PATCHES;
    c->vision_hidden = hidden;
    c->vision_heads = c->heads;
    c->vision_width = 3 * hidden;
    c->paced_vision_ns = VISION_LAYERS * c->paced_layer_ns;
    return ENG_OK;
}

EngStatus eng_step_spec_read(const EngPoint *point, EngStepSpec *spec, EngErr *why)
{
    EngResidency residency;
    EngCores cores;
    memset(spec, 0, sizeof *spec);
    EngStatus status = read_modules(point, spec, why);
    if (!status) status = read_passes(point, spec, why);
    if (!status) status = read_backbone(point, spec, why);
    if (!status)
        status =
            eng_open_table_read(point, spec->shapes[0].row_format, &spec->store, &residency, why);
    if (!status)
        status =
            eng_cores_read(eng_point_word(point, "cores"), spec->backbone.threads, &cores, why);
    spec->delay_ns = (int64_t)llround(eng_point_real(point, "delay") * 1e3);
    return status;
}

bool eng_step_emulated(const EngStepSpec *spec)
{
    return spec->backbone.paced_layer_ns > 0 || spec->delay_ns > 0;
}

EngStatus eng_step_spec_bytes(const EngStepSpec *spec, size_t *bytes, EngErr *err)
{
    EngBackboneSize backbone;
    const EngShape *shape = &spec->shapes[0];
    size_t scale = eng_row_scale_bytes(shape->row_format, shape->row_dims);
    size_t pass = (size_t)spec->chunk * (size_t)shape->columns, modules = (size_t)spec->modules;
    EngStatus status = eng_backbone_size(&spec->backbone, &backbone, err);
    if (status) return status;
    size_t buffers = spec->verified > 1 ? 3 : 2, numbers = buffers + 3;
    *bytes = backbone.bytes +
             pass * modules * (buffers * shape->row_bytes + numbers * sizeof(int64_t)) +
             pass * (sizeof(int64_t) + 2 * (size_t)shape->row_dims);
    for (int m = 0; m < spec->modules; m++)
        *bytes += eng_store_spec_bytes(&spec->store, spec->shapes[m].address.rows[0],
                                       shape->row_bytes, scale);
    return ENG_OK;
}

double eng_step_spec_ns(const EngStepSpec *spec)
{
    const EngBackboneConfig *c = &spec->backbone;
    if (c->paced_layer_ns)
        return (double)spec->passes *
               (double)(c->paced_layer_ns * c->layers + c->paced_vision_ns + spec->delay_ns);
    return (double)spec->passes *
           (eng_backbone_flops(c, spec->chunk, 0) / EST_FLOPS_PER_NS / c->threads +
            (double)spec->delay_ns);
}

/* ---- creation ----------------------------------------------------------------------------------
 */

/* The layers of a preset hash with multipliers and primes of their own, into tables of their own.
 */
static void join_addresses(EngStep *step)
{
    EngAddress *to = &step->address;
    *to = step->spec.shapes[0].address;
    to->n_layers = step->spec.modules;
    for (int m = 1; m < step->spec.modules; m++) {
        const EngAddress *from = &step->spec.shapes[m].address;
        to->layer_ids[m] = from->layer_ids[0];
        to->rows[m] = from->rows[0];
        memcpy(to->multipliers[m], from->multipliers[0], sizeof to->multipliers[m]);
        memcpy(to->primes[m], from->primes[0], sizeof to->primes[m]);
        memcpy(to->offsets[m], from->offsets[0], sizeof to->offsets[m]);
    }
}

static EngStatus allocate(EngStep *step, EngErr *err)
{
    const EngStepSpec *spec = &step->spec;
    const EngShape *shape = &spec->shapes[0];
    size_t chunk = (size_t)spec->chunk, columns = (size_t)shape->columns;
    size_t pass = columns * (size_t)spec->modules * sizeof(int64_t);
    size_t decoded = spec->decode ? chunk : 0, two = spec->passes > 1 || spec->verified > 1;
    size_t reach = (size_t)(shape->max_order - 1);
    struct {
        void **at;
        size_t n, size;
    } wanted[] = {
        {(void **)&step->rows[0], chunk, pass},
        {(void **)&step->rows[1], two ? chunk : 0, pass},
        {(void **)&step->identity, chunk, columns * sizeof(int64_t)},
        {(void **)&step->gathered, chunk, (size_t)shape->k * sizeof(uint16_t)},
        {(void **)&step->ids, spec->verified > 1 ? 2 * chunk : (size_t)shape->tokens,
         sizeof(int32_t)},
        {(void **)&step->tokens, decoded, sizeof(int32_t)},
        {(void **)&step->history, spec->decode ? chunk : 1, reach * sizeof(int32_t)},
        {(void **)&step->starts, spec->decode ? chunk + 1 : 0, sizeof(int64_t)},
    };
    EngStatus status = ENG_OK;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && !status; i++)
        if (wanted[i].n)
            status = eng_alloc_or(wanted[i].at, wanted[i].n, wanted[i].size, "step buffers", err);
    if (status) return status;
    for (int64_t i = 0; i < spec->chunk * shape->columns; i++) step->identity[i] = i;
    for (int64_t s = 0; spec->decode && s <= spec->chunk / spec->verified; s++)
        step->starts[s] = s * spec->verified;
    return ENG_OK;
}

static EngStatus open_runners(EngStep *step, EngErr *err)
{
    const EngKernel *kernel;
    const EngShape *shape = &step->spec.shapes[0];
    int threads = step->spec.backbone.threads;
    EngProblem hash = {.op = ENG_OP_HASH,
                       .threads = threads,
                       .u.hash = {.address = &step->address, .max_tokens = step->spec.chunk}};
    EngProblem gather = {.op = ENG_OP_GATHER,
                         .threads = threads,
                         .u.gather = {.table = eng_shape_table(shape),
                                      .columns = shape->columns,
                                      .tokens = step->spec.chunk,
                                      .out = ENG_BF16}};
    EngStatus status = eng_stage_best(&hash, &kernel, err);
    if (!status) status = eng_runner_open(&step->hash, kernel, &hash, err);
    if (!status) status = eng_stage_best(&gather, &kernel, err);
    if (!status) status = eng_runner_open(&step->gather, kernel, &gather, err);
    return status;
}

static EngStatus open_windows(EngStep *step, const EngBench *bench, const EngPoint *point,
                              EngErr *err)
{
    EngTokens tokens;
    const EngStepSpec *spec = &step->spec;
    const EngShape *shape = &spec->shapes[0];
    int64_t n = eng_windows_count(spec->decode ? spec->chunk : shape->tokens) *
                (spec->decode ? spec->chunk / spec->verified : 1);
    EngStatus status = eng_resources_tokens(bench->resources, shape->preset.name,
                                            eng_point_word(point, "corpus"), &tokens, err);
    return status ? status
                  : eng_windows_create(&step->windows, &tokens, spec->text, n, shape->max_order - 1,
                                       bench->seed, eng_point_word(point, "store"), err);
}

/* The threads of stores and prefetcher are made here and inherit the fetching processors. */
static EngStatus open_fetch(EngStep *step, const EngPoint *point, EngErr *err)
{
    EngStepSpec *spec = &step->spec;
    EngStore *stores[ENG_STEP_MODULES];
    EngStatus status = eng_cores_fetch(&step->cores, err);
    for (int m = 0; m < spec->modules && !status; m++) {
        status = eng_open_table(&step->tables[m], step->resources, &spec->shapes[m], point, err);
        if (status) break;
        stores[m] = step->tables[m].store;
        if (!spec->delay_ns) continue;
        eng_delay_store_init(&step->delayed[m], stores[m], spec->delay_ns);
        stores[m] = &step->delayed[m].base;
    }
    /* A pass, perhaps in two parts, and the next; one more step may be cancelled and still read. */
    int parts = spec->verified > 1 ? 2 : 1;
    EngPrefetchOptions options = {.columns = spec->shapes[0].columns,
                                  .max_tokens = spec->chunk,
                                  .buffers = (parts + 1) * spec->modules,
                                  .steps = parts + 2,
                                  .layer_ids = spec->at};
    if (!status)
        status = eng_prefetch_create(stores, spec->modules, &options, &step->prefetcher, err);
    eng_cores_free(&step->cores);
    return status;
}

/* A row cache as it is after a while: rows of the text, as many as fill it twice. */
static EngStatus fill_caches(EngStep *step, EngErr *err)
{
    EngStepSums unused = {0};
    EngStatus status = ENG_OK;
    int64_t each = step->spec.passes * step->spec.chunk * step->spec.shapes[0].columns;
    int64_t most = step->spec.store.cached ? 2 * step->spec.store.cache.rows : 0;
    int64_t steps =
        step->windows.n / (step->spec.decode ? step->spec.chunk / step->spec.verified : 1);
    for (int64_t s = 0; s < steps && s * each < most && !status; s++)
        status = eng_step_fetch(step, &unused, err);
    return status;
}

EngStatus eng_step_create(EngStep *step, const EngBench *bench, const EngPoint *point, EngErr *err)
{
    step->resources = bench->resources;
    EngStatus status = eng_step_spec_read(point, &step->spec, err);
    if (!status)
        status = eng_cores_read(eng_point_word(point, "cores"), step->spec.backbone.threads,
                                &step->cores, err);
    if (!status) join_addresses(step);
    if (!status) status = open_windows(step, bench, point, err);
    if (!status) status = allocate(step, err);
    if (!status) status = open_runners(step, err);
    if (!status) status = open_fetch(step, point, err);
    step->spec.backbone.hooks =
        (EngBackboneHooks){.context = step, .before_layer = eng_step_before_layer};
    step->spec.backbone.seed = bench->seed;
    if (!status) status = eng_backbone_create(&step->spec.backbone, &step->backbone, err);
    if (!status) status = fill_caches(step, err);
    return status;
}

void eng_step_destroy(EngStep *step)
{
    void *buffers[] = {step->rows[0], step->rows[1], step->identity, step->gathered,
                       step->ids,     step->tokens,  step->history,  step->starts};
    eng_step_over(step);
    eng_prefetch_destroy(step->prefetcher);
    for (int m = 0; m < ENG_STEP_MODULES; m++) eng_open_table_close(&step->tables[m]);
    eng_backbone_destroy(step->backbone);
    eng_runner_close(&step->hash);
    eng_runner_close(&step->gather);
    eng_windows_destroy(&step->windows);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) eng_free(buffers[i]);
    memset(step, 0, sizeof *step);
}
