/* Two small experiments, four kernel variants and digests made of names: what the tests of sweeps,
 * plans and the ledger work on. */
#ifndef ENG_TESTS_LEDGER_FIXTURE_H
#define ENG_TESTS_LEDGER_FIXTURE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bench/core/plan.h"

static const EngKernel fast_kernel = {.op = ENG_OP_GATHER, .name = "fast"};
static const EngKernel plain_kernel = {.op = ENG_OP_GATHER, .name = "portable"};
static const EngKernel read_roof = {.op = ENG_OP_GATHER, .name = "read", .roof = true};
static const EngKernel copy_roof = {.op = ENG_OP_GATHER, .name = "copy", .roof = true};

static const EngKernel *const *fake_kernels(EngOp op, int *n)
{
    static const EngKernel *const list[] = {&plain_kernel, &fast_kernel, &read_roof, &copy_roof};
    *n = op == ENG_OP_GATHER ? 4 : 0;
    return list;
}

static const char *const formats[] = {"fp8", "bf16", "f32", NULL};

/* heads must divide 24; `fast` has no f32; tokens of 7 are refused by every machine. */
static EngStatus gather_check(const EngPoint *point, EngErr *why)
{
    int64_t heads = eng_point_int(point, "heads");
    if (24 % heads)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "heads %lld does not divide 24", (long long)heads);
    if (!strcmp(eng_point_word(point, "variant"), "fast") &&
        !strcmp(eng_point_word(point, "row_format"), "f32"))
        return ENG_FAIL(why, ENG_UNSUPPORTED, "fast has no f32");
    if (eng_point_int(point, "tokens") == 7)
        return ENG_FAIL(why, ENG_USAGE, "tokens 7 can never be");
    return ENG_OK;
}

static EngStatus gather_need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    (void)err;
    need->table = true;
    need->row_format = (EngRowFormat)eng_row_format_parse(eng_point_word(point, "row_format"));
    need->table_value_bytes = 1000;
    need->corpus = eng_point_word(point, "corpus");
    need->preset = "toy";
    return ENG_OK;
}

static double gather_estimate(const EngPoint *point)
{
    return 1000.0 * (double)eng_point_int(point, "tokens");
}

static const EngAxisDef gather_axes[] = {
    {"tokens", ENG_AXIS_INT, "64", "tokens", 1, 1 << 20, NULL, ""},
    {"heads", ENG_AXIS_INT, "8", "", 1, 64, NULL, ""},
    {"row_format", ENG_AXIS_WORD, "fp8", "", 0, 0, formats, ""},
    {"corpus", ENG_AXIS_WORD, "prose", "", 0, 0, NULL, ""},
    {"mix", ENG_AXIS_REAL, "0.3", "", 0, 1, NULL, ""},
    {"variant", ENG_AXIS_WORD, "all", "", 0, 0, NULL, ""},
};
/* The same with one more axis in front, at its default. */
static const EngAxisDef wider_axes[] = {
    {"hold", ENG_AXIS_WORD, "row_dims", "", 0, 0, NULL, ""},
    {"tokens", ENG_AXIS_INT, "64", "tokens", 1, 1 << 20, NULL, ""},
    {"row_format", ENG_AXIS_WORD, "fp8", "", 0, 0, formats, ""},
    {"heads", ENG_AXIS_INT, "8", "", 1, 64, NULL, ""},
    {"corpus", ENG_AXIS_WORD, "prose", "", 0, 0, NULL, ""},
    {"mix", ENG_AXIS_REAL, "0.3", "", 0, 1, NULL, ""},
    {"variant", ENG_AXIS_WORD, "all", "", 0, 0, NULL, ""},
};
/* The same with a preset axis. */
static const EngAxisDef preset_axes[] = {
    {"preset", ENG_AXIS_WORD, "large", "", 0, 0, NULL, ""},
    {"tokens", ENG_AXIS_INT, "64", "tokens", 1, 1 << 20, NULL, ""},
    {"heads", ENG_AXIS_INT, "8", "", 1, 64, NULL, ""},
    {"row_format", ENG_AXIS_WORD, "fp8", "", 0, 0, formats, ""},
    {"corpus", ENG_AXIS_WORD, "prose", "", 0, 0, NULL, ""},
    {"variant", ENG_AXIS_WORD, "all", "", 0, 0, NULL, ""},
};
static const EngMetricDef gather_metrics[] = {
    {"gbps", "GB/s", 1, "cpu", "bytes"},
    {"wall_us", "us", -1, "wall", "time"},
    {"bytes", "B", 0, "none", "size"},
};
static const EngExperiment gather = {.name = "gather",
                                     .question = "?",
                                     .axes = gather_axes,
                                     .n_axes = 6,
                                     .metrics = gather_metrics,
                                     .n_metrics = 3,
                                     .op = ENG_OP_GATHER,
                                     .check = gather_check,
                                     .need = gather_need,
                                     .estimate_ns = gather_estimate};
static const EngExperiment wider_gather = {.name = "gather",
                                           .question = "?",
                                           .axes = wider_axes,
                                           .n_axes = 7,
                                           .metrics = gather_metrics,
                                           .n_metrics = 3,
                                           .op = ENG_OP_GATHER,
                                           .check = gather_check,
                                           .need = gather_need,
                                           .estimate_ns = gather_estimate};
static const EngExperiment preset_gather = {.name = "gather",
                                            .question = "?",
                                            .axes = preset_axes,
                                            .n_axes = 6,
                                            .metrics = gather_metrics,
                                            .n_metrics = 3,
                                            .op = ENG_OP_GATHER,
                                            .check = gather_check,
                                            .need = gather_need,
                                            .estimate_ns = gather_estimate};

static const EngAxisDef reuse_axes[] = {
    {"tokens", ENG_AXIS_INT, "64", "tokens", 1, 1 << 20, NULL, ""},
    {"corpus", ENG_AXIS_WORD, "prose", "", 0, 0, NULL, ""},
};
static const EngMetricDef reuse_metrics[] = {{"distinct", "", 0, "none", ""}};
static const EngExperiment reuse = {.name = "reuse",
                                    .question = "?",
                                    .axes = reuse_axes,
                                    .n_axes = 2,
                                    .metrics = reuse_metrics,
                                    .n_metrics = 1,
                                    .op = -1,
                                    .counted = true};

static const EngExperiment *const fake_items[] = {&gather, &reuse};
static const EngExperimentList fake_list = {.items = fake_items, .n = 2};
static const EngCatalog catalog = {&fake_list, fake_kernels};
static const EngExperiment *const preset_items[] = {&preset_gather};
static const EngExperimentList preset_list = {.items = preset_items, .n = 1};
static const EngCatalog preset_catalog = {&preset_list, fake_kernels};
static const EngExperiment *const wider_items[] = {&reuse, &wider_gather};
static const EngExperimentList wider_list = {.items = wider_items, .n = 2};
static const EngCatalog wider_catalog = {&wider_list, fake_kernels};

static EngStatus fake_stream(void *context, const char *preset, const char *corpus,
                             const char **digest, EngErr *err)
{
    (void)context, (void)preset, (void)err;
    *digest = strcmp(corpus, "prose") ? "stream-other" : "stream-prose";
    return ENG_OK;
}

static EngStatus fake_preset(void *context, const char *preset, const char **digest, EngErr *err)
{
    (void)context, (void)preset, (void)err;
    *digest = "preset-toy";
    return ENG_OK;
}

static EngStatus fake_store(void *context, const EngPoint *point, const EngNeed *need,
                            const char **digest, EngErr *err)
{
    (void)context, (void)point, (void)err, (void)need;
    *digest = "store-memory";
    return ENG_OK;
}

/* context: a build name, NULL for "build-1". */
static EngStatus fake_variant(void *context, const EngExperiment *experiment, const char *variant,
                              const char **digest, EngErr *err)
{
    (void)experiment, (void)variant, (void)err;
    *digest = context ? context : "build-1";
    return ENG_OK;
}

static bool fake_corpus(void *context, const char *corpus)
{
    (void)context;
    return strcmp(corpus, "absent") != 0 && strcmp(corpus, "gone") != 0;
}

static const EngIdentity identity = {.machine_id = "machine-1",
                                     .stream_digest = fake_stream,
                                     .preset_digest = fake_preset,
                                     .store_digest = fake_store,
                                     .variant_digest = fake_variant,
                                     .corpus_exists = fake_corpus};

/* A sweep of a text, asserted to be good. */
static inline EngSweep *good_sweep(const EngCatalog *of, const char *text)
{
    EngSweep *sweep = NULL;
    EngErr err = {0};
    EngStatus status = eng_sweep_parse(text, "test.sweep", of, NULL, 0, &sweep, &err);
    if (status) fail_msg("%s", err.text);
    return sweep;
}

static inline EngPlan *good_plan(const EngSweep *sweep, const EngIdentity *id)
{
    EngPlan *plan = NULL;
    EngErr err = {0};
    EngStatus status = eng_plan_expand(sweep, id, &plan, &err);
    if (status) fail_msg("%s", err.text);
    return plan;
}

#endif
