/* Expansion of a sweep into points and blocks; see plan.h. Three passes: named points from the
 * axes, blocks from the points, roofs into the blocks. Identity is by key throughout, so the order
 * in which a sweep names things only decides the order of the table. */
#include "bench/core/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "bench/core/plan_keys.h"
#include "bench/core/plan_walk.h"
#include "kernels/cuda/queue.h"

#define SYNTHETIC "synthetic"

/* Effective defaults of an experiment under one preset. */
typedef struct Defaults {
    struct Defaults *next;
    const char *preset;
    EngPoint point;
} Defaults;

typedef struct Expansion {
    EngPlan *plan;
    Defaults *defaults;
    EngKeyTable points, blocks, shapes;
    EngKeyText text;     /* scratch for keys */
    EngPlanPoint *spare; /* of a point that was there already */
    int points_size, blocks_size, n_shapes, n_missing;
    EngErr *err;
} Expansion;

static EngStatus no_memory(EngErr *err)
{
    return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the plan");
}

/* Doubles an arena array when `n` fills it; the old one stays in the arena. */
static void *grow(EngArena *arena, void *old, int n, int *size, size_t item)
{
    if (n < *size) return old;
    int larger = *size ? 2 * *size : 64;
    void *grown = eng_arena_alloc(arena, (size_t)larger * item);
    if (!grown) return NULL;
    if (n) memcpy(grown, old, (size_t)n * item);
    *size = larger;
    return grown;
}

/* What axes are that a sweep does not name: the preset's own values where it has some. */
static EngStatus defaults_under(Expansion *x, const EngExperiment *experiment, const char *preset,
                                const EngPoint **out)
{
    const EngIdentity *identity = x->plan->identity;
    Defaults *d = x->defaults;
    while (d && (d->point.experiment != experiment || strcmp(d->preset, preset))) d = d->next;
    if (d) {
        *out = &d->point;
        return ENG_OK;
    }
    d = eng_arena_alloc(x->plan->arena, sizeof *d);
    if (!d) return no_memory(x->err);
    EngStatus status =
        eng_plan_default_values(x->plan->sweep, experiment, x->plan->arena, &d->point, x->err);
    for (int i = 0; !status && *preset && identity->axis_default && i < experiment->n_axes; i++) {
        const char *text = NULL;
        status = identity->axis_default(identity->context, preset, experiment->axes[i].name, &text,
                                        x->err);
        if (!status && text)
            status = eng_axis_value(x->plan->sweep->catalog, experiment, i, text, x->plan->arena,
                                    &d->point.values[i], x->err);
    }
    if (status) return status;
    d->preset = preset;
    d->next = x->defaults;
    x->defaults = d;
    *out = &d->point;
    return ENG_OK;
}

/* ---- one point ---------------------------------------------------------------------------------
 */

/* Stands `synthetic` in for a corpus that is not there, and notes its name once. */
static EngStatus replace_corpus(Expansion *x, EngPoint *point)
{
    EngPlan *plan = x->plan;
    const EngIdentity *identity = plan->identity;
    int axis = eng_experiment_axis(point->experiment, ENG_AXIS_CORPUS);
    if (axis < 0 || !identity->corpus_exists) return ENG_OK;
    const char *corpus = point->values[axis].text;
    if (!strcmp(corpus, SYNTHETIC) || identity->corpus_exists(identity->context, corpus))
        return ENG_OK;
    point->values[axis].text = SYNTHETIC;
    for (int i = 0; i < x->n_missing; i++)
        if (!strcmp(plan->missing_corpora[i], corpus)) return ENG_OK;
    const char **names =
        eng_arena_alloc(plan->arena, ((size_t)x->n_missing + 2) * sizeof(const char *));
    if (!names) return no_memory(x->err);
    if (x->n_missing) memcpy(names, plan->missing_corpora, (size_t)x->n_missing * sizeof *names);
    names[x->n_missing++] = corpus;
    plan->missing_corpora = names;
    return ENG_OK;
}

static EngStatus find_kernel(Expansion *x, EngPlanPoint *point)
{
    const EngExperiment *experiment = point->point.experiment;
    int axis = eng_experiment_axis(experiment, ENG_AXIS_VARIANT), n;
    point->variant = axis < 0 ? "" : point->point.values[axis].text;
    point->backend = eng_plan_backend(NULL);
    const EngKernel *const *kernels = eng_plan_kernels(x->plan->sweep, experiment, &n);
    for (int i = 0; axis >= 0 && i < n; i++)
        if (eng_kernel_is(kernels[i], point->variant)) point->kernel = kernels[i];
    point->backend = eng_plan_backend(point->kernel);
    static const EngKernel any = {.backend = ENG_CUDA}; /* of an experiment of several operations */
    axis = eng_experiment_axis(experiment, ENG_AXIS_BACKEND);
    const char *named = axis < 0 ? point->variant : point->point.values[axis].text;
    if (!point->kernel && !strcmp(named, eng_plan_backend(&any)))
        point->backend = eng_plan_backend(&any);
    EngCudaInfo device;
    if (point->backend == eng_plan_backend(&any) && !eng_cuda_info(&device, NULL) &&
        device.simulated) {
        point->kind = "simulated";
        point->provenance = "simulated device";
    }
    return ENG_OK;
}

static EngStatus find_digests(Expansion *x, EngPlanPoint *point)
{
    const EngIdentity *id = x->plan->identity;
    const EngPoint *p = &point->point;
    const char *preset = point->need.preset, *corpus = point->need.corpus;
    EngStatus status = ENG_OK;
    if (point->skip) { /* need() was not asked: what the axes say */
        int axis = eng_experiment_axis(p->experiment, ENG_AXIS_PRESET);
        preset = axis < 0 ? NULL : p->values[axis].text;
        axis = eng_experiment_axis(p->experiment, ENG_AXIS_CORPUS);
        corpus = axis < 0 ? NULL : p->values[axis].text;
    }
    if (preset && id->preset_digest)
        status = id->preset_digest(id->context, preset, &point->preset_digest, x->err);
    if (!status && corpus && id->stream_digest)
        status = id->stream_digest(id->context, preset, corpus, &point->stream_digest, x->err);
    if (!status && point->need.table && id->store_digest)
        status = id->store_digest(id->context, p, &point->need, &point->store_digest, x->err);
    if (!status && id->variant_digest)
        status = id->variant_digest(id->context, p->experiment, point->variant,
                                    &point->variant_digest, x->err);
    return status;
}

/* Everything about a point but its values. */
static EngStatus complete_point(Expansion *x, EngPlanPoint *point)
{
    const EngExperiment *experiment = point->point.experiment;
    EngErr why = {0};
    const EngPoint *defaults;
    int preset = eng_experiment_axis(experiment, ENG_AXIS_PRESET);
    EngStatus status = defaults_under(
        x, experiment, preset < 0 ? "" : point->point.values[preset].text, &defaults);
    if (!status) status = find_kernel(x, point);
    if (status) return status;
    point->at_default = 0;
    for (int i = 0; i < experiment->n_axes; i++)
        if (!strcmp(point->point.values[i].text, defaults->values[i].text))
            point->at_default |= ENG_AXIS_BIT(i);
    status = experiment->check ? experiment->check(&point->point, &why) : ENG_OK;
    if (status == ENG_UNSUPPORTED || status == ENG_NO_DEVICE) {
        point->skip = eng_arena_strdup(x->plan->arena, *why.text ? why.text : "not supported");
        if (!point->skip) return no_memory(x->err);
        status = ENG_OK;
    } else if (status) {
        if (x->err) *x->err = why;
        return eng_plan_blame(point, status, x->err);
    }
    if (!point->skip && experiment->need)
        status = experiment->need(&point->point, &point->need, x->err);
    if (!status) status = find_digests(x, point);
    if (status) return eng_plan_blame(point, status, x->err);
    if (!point->skip && experiment->estimate_ns)
        point->estimate_ns = experiment->estimate_ns(&point->point);
    return eng_plan_keys(point, x->plan->identity->machine_id, &x->text, x->err);
}

static EngStatus shape_of(Expansion *x, EngPlanPoint *point)
{
    char key[ENG_KEY_HEX];
    int variant = eng_experiment_axis(point->point.experiment, ENG_AXIS_VARIANT);
    EngStatus status = eng_plan_axes_key(point, variant < 0 ? 0 : ENG_AXIS_BIT(variant), "",
                                         &x->text, key, x->err);
    if (status) return status;
    void *found = eng_key_table_get(&x->shapes, key);
    if (!found) {
        char *copy = eng_arena_strdup(x->plan->arena, key);
        x->n_shapes++;
        found = (void *)(intptr_t)x->n_shapes;
        if (!copy || !eng_key_table_put(&x->shapes, copy, found)) return no_memory(x->err);
    }
    point->shape = (int)(intptr_t)found - 1;
    return ENG_OK;
}

static EngStatus append_point(Expansion *x, EngPlanPoint *point)
{
    EngPlan *plan = x->plan;
    EngPlanPoint **points =
        grow(plan->arena, plan->points, plan->n_points, &x->points_size, sizeof *points);
    if (!points || !eng_key_table_put(&x->points, point->point_key, point))
        return no_memory(x->err);
    plan->points = points;
    plan->points[plan->n_points++] = point;
    return ENG_OK;
}

/* ---- blocks ------------------------------------------------------------------------------------
 */

/* Blocks under construction keep their growth state behind the public part. */
typedef struct Block {
    EngPlanBlock block;
    int size;
    uint64_t place; /* random, from seed and key: the order of blocks */
} Block;

static EngStatus block_of(Expansion *x, const EngSweepSection *section, const EngPlanPoint *point,
                          Block **out)
{
    const EngExperiment *experiment = section->experiment;
    const EngSweepSettings *s = &section->settings;
    char key[ENG_KEY_HEX], rest[384];
    const char *compare = section->compare_text;
    int length = snprintf(
        rest, sizeof rest, "compare=%s\npairs=%d\nsegments=%d\nbudget_ms=%lld\nseed=%llu\n",
        compare, s->pairs, s->segments, (long long)s->budget_ms, (unsigned long long)s->seed);
    if (s->precision) /* named only then: block seeds of older sweeps stay */
        snprintf(rest + length, sizeof rest - (size_t)length, "precision=%d\nsettled=%d\n",
                 s->precision, s->settled);
    EngStatus status = eng_plan_axes_key(point, section->compare_mask, rest, &x->text, key, x->err);
    if (status) return status;
    Block *block = eng_key_table_get(&x->blocks, key);
    if (!block) {
        char *copy = eng_arena_strdup(x->plan->arena, key);
        block = eng_arena_alloc(x->plan->arena, sizeof *block);
        if (!copy || !block || !eng_key_table_put(&x->blocks, copy, block))
            return no_memory(x->err);
        EngRng rng;
        eng_rng_seed_at(&rng, s->seed, strtoull(key + 16, NULL, 16));
        *block = (Block){.block = {.experiment = experiment,
                                   .compare_axis = compare,
                                   .settings = *s,
                                   .seed = eng_rng_u64(&rng) >> 1}}; /* fits SQLite's integers */
        block->place = eng_rng_u64(&rng);
    }
    *out = block;
    return ENG_OK;
}

static EngStatus join_block(Expansion *x, Block *block, EngPlanPoint *point)
{
    EngPlanBlock *b = &block->block;
    EngPlanPoint **points =
        grow(x->plan->arena, b->points, b->n_points, &block->size, sizeof *points);
    if (!points) return no_memory(x->err);
    b->points = points;
    b->points[b->n_points++] = point;
    b->estimate_ns += point->estimate_ns;
    if (point->need.table && !point->skip) {
        b->table = true;
        b->row_format = point->need.row_format;
        b->row_dims = point->need.row_dims;
    }
    return ENG_OK;
}

/* A worker has one table in memory, laid out for rows of one size where they hold their scales. */
static EngStatus refuse_other_table(Expansion *x, const EngPlanBlock *b, EngPlanPoint *point)
{
    const EngNeed *need = &point->need;
    if (point->skip || !need->table || !b->table) return ENG_OK;
    bool same_layout =
        !eng_row_scale_offset(need->row_format, ENG_SCALE_GROUP) || need->row_dims == b->row_dims;
    if (need->row_format == b->row_format && same_layout) return ENG_OK;
    point->skip =
        eng_arena_printf(x->plan->arena,
                         "its block has a table of %s rows of %d dims: compare=%s would "
                         "need another one, compare another axis",
                         eng_row_format_name(b->row_format), b->row_dims, b->compare_axis);
    x->plan->n_skipped++;
    point->estimate_ns = 0;
    return point->skip ? ENG_OK : no_memory(x->err);
}

static EngStatus add_point(Expansion *x, const EngSweepSection *section, const EngPoint *values)
{
    EngPlan *plan = x->plan;
    EngPlanPoint *point = x->spare ? x->spare : eng_arena_alloc(plan->arena, sizeof *point);
    Block *block = NULL;
    if (!point) return no_memory(x->err);
    *point = (EngPlanPoint){.point = *values};
    x->spare = NULL;
    EngStatus status = replace_corpus(x, &point->point);
    if (!status) status = complete_point(x, point);
    if (status) return status;
    if (eng_key_table_get(&x->points, point->point_key)) {
        plan->n_merged++;
        x->spare = point;
        return ENG_OK;
    }
    plan->n_skipped += point->skip != NULL;
    status = shape_of(x, point);
    if (!status) status = append_point(x, point);
    if (!status) status = block_of(x, section, point, &block);
    if (!status) status = refuse_other_table(x, &block->block, point);
    if (!status) status = join_block(x, block, point);
    return status;
}

static EngStatus expand_section(Expansion *x, const EngSweepSection *section)
{
    EngPlanWalk *walk = eng_arena_alloc(x->plan->arena, sizeof *walk);
    if (!walk) return no_memory(x->err);
    EngStatus status = eng_plan_walk_open(x->plan->sweep, section, x->plan->arena, walk, x->err);
    if (status) return status;
    do {
        EngPoint point;
        const EngPoint *defaults;
        bool keep = true;
        status = defaults_under(x, section->experiment, eng_plan_walk_preset(walk), &defaults);
        if (status) return status;
        eng_plan_walk_point(walk, defaults, &point);
        if (section->where) {
            status = eng_where_eval(section->where, &point, &keep, x->err);
            if (status)
                return eng_err_prefix(x->err, "%s: [%s] where = %s", x->plan->sweep->source,
                                      section->experiment->name, section->where_text),
                       status;
        }
        if (keep)
            status = add_point(x, section, &point);
        else
            x->plan->n_excluded++;
        if (status) return status;
    } while (eng_plan_walk_step(walk));
    return ENG_OK;
}

/* ---- roofs -------------------------------------------------------------------------------------
 */

/* The roof variant for the shape of `of`; nothing when it cannot run there. */
static EngStatus join_roof(Expansion *x, Block *block, const EngPlanPoint *of,
                           const EngKernel *kernel)
{
    int axis = eng_experiment_axis(of->point.experiment, ENG_AXIS_VARIANT);
    EngPlanPoint *roof = eng_arena_alloc(x->plan->arena, sizeof *roof);
    if (!roof) return no_memory(x->err);
    roof->point = of->point;
    roof->point.values[axis] = (EngValue){.text = kernel->name};
    roof->is_roof = true;
    roof->shape = of->shape;
    EngStatus status = complete_point(x, roof);
    if (status || roof->skip) return status;
    EngPlanPoint *known = eng_key_table_get(&x->points, roof->point_key);
    if (known) return join_block(x, block, known);
    status = append_point(x, roof);
    return status ? status : join_block(x, block, roof);
}

static EngStatus add_roofs(Expansion *x, Block *block)
{
    const EngExperiment *experiment = block->block.experiment;
    int n_kernels, n_named = block->block.n_points;
    const EngKernel *const *kernels = eng_plan_kernels(x->plan->sweep, experiment, &n_kernels);
    if (experiment->counted || eng_experiment_axis(experiment, ENG_AXIS_VARIANT) < 0) return ENG_OK;
    for (int i = 0; i < n_named; i++) {
        const EngPlanPoint *point = block->block.points[i];
        bool first = !point->skip; /* of its shape and backend, among those that can run */
        for (int k = 0; first && k < i; k++) {
            const EngPlanPoint *other = block->block.points[k];
            first = other->skip || other->shape != point->shape || other->backend != point->backend;
        }
        for (int k = 0; first && k < n_kernels; k++) {
            if (!kernels[k]->roof || eng_plan_backend(kernels[k]) != point->backend) continue;
            EngStatus status = join_roof(x, block, point, kernels[k]);
            if (status) return status;
        }
    }
    return ENG_OK;
}

/* ---- the whole ---------------------------------------------------------------------------------
 */

/* Blocks of one row format lie together, since the table memory holds one format at a time. */
static int compare_blocks(const void *a, const void *b)
{
    const Block *x = *(Block *const *)a, *y = *(Block *const *)b;
    int fx = x->block.table ? 1 + (int)x->block.row_format : 0;
    int fy = y->block.table ? 1 + (int)y->block.row_format : 0;
    if (fx != fy) return fx - fy;
    return (x->place > y->place) - (x->place < y->place);
}

static EngStatus finish_blocks(Expansion *x)
{
    EngPlan *plan = x->plan;
    size_t n = x->blocks.n;
    void *memory;
    EngStatus status = eng_alloc_or(&memory, n, sizeof(Block *), "the plan's blocks", x->err);
    if (status) return status;
    Block **order = memory;
    eng_key_table_values(&x->blocks, memory);
    qsort(order, n, sizeof *order, compare_blocks);
    plan->blocks = eng_arena_alloc(plan->arena, n * sizeof *plan->blocks);
    if (!plan->blocks) status = no_memory(x->err);
    for (size_t i = 0; !status && i < n; i++) {
        status = add_roofs(x, order[i]);
        plan->blocks[i] = order[i]->block;
    }
    plan->n_blocks = (int)n;
    eng_free(memory);
    return status;
}

static EngStatus expand(Expansion *x)
{
    EngPlan *plan = x->plan;
    EngStatus status = ENG_OK;
    for (int i = 0; !status && i < plan->sweep->n_sections; i++)
        status = expand_section(x, &plan->sweep->sections[i]);
    if (status) return status;
    plan->n_named = plan->n_points;
    if (!plan->n_named)
        return ENG_FAIL(x->err, ENG_NOT_FOUND, "%s: `where` leaves none of %d points",
                        plan->sweep->source, plan->n_excluded);
    status = finish_blocks(x);
    return status ? status : eng_plan_settings_key(plan, x->err);
}

EngStatus eng_plan_expand(const EngSweep *sweep, const EngIdentity *identity, EngPlan **out,
                          EngErr *err)
{
    EngArena *arena = eng_arena_create();
    EngPlan *plan = arena ? eng_arena_alloc(arena, sizeof *plan) : NULL;
    const char **none = plan ? eng_arena_alloc(arena, sizeof *none) : NULL;
    *out = NULL;
    if (!none) {
        eng_arena_destroy(arena);
        return no_memory(err);
    }
    *plan =
        (EngPlan){.arena = arena, .sweep = sweep, .identity = identity, .missing_corpora = none};
    Expansion x = {.plan = plan, .err = err};
    EngStatus status = expand(&x);
    plan->index = x.points; /* for eng_plan_find */
    eng_key_table_free(&x.blocks);
    eng_key_table_free(&x.shapes);
    eng_key_text_free(&x.text);
    if (status)
        eng_plan_free(plan);
    else
        *out = plan;
    return status;
}

void eng_plan_free(EngPlan *plan)
{
    if (!plan) return;
    eng_key_table_free(&plan->index);
    eng_arena_destroy(plan->arena);
}

const EngPlanPoint *eng_plan_find(const EngPlan *plan, const char *point_key)
{
    return eng_key_table_get(&plan->index, point_key);
}
