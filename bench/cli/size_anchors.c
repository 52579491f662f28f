/* Anchors: published numbers whose inputs were not published, beside ours, which rest on inputs
 * that are assumed here and named with each point. */
#include <math.h>
#include <stdio.h>

#include "bench/cli/size_points.h"

#define GIB 0x1p30

static void anchor(EngSizePoints *p, const char *name, const char *unit, double published,
                   const char *source, double ours, const char *assumed)
{
    for (int mine = 0; mine < 2; mine++) {
        if (mine)
            eng_size_point(p, "anchor");
        else
            eng_size_published(p, "anchor", source);
        eng_size_word(p, "anchor", name);
        eng_size_word(p, "unit", unit);
        eng_size_word(p, "side", mine ? "ours" : "published");
        eng_size_value(p, ENG_SIZE_VALUE, mine ? ours : published);
        if (mine) eng_size_rests(p, "assumed: %s", assumed);
    }
}

/* GiB of weights on a rank, by shape. */
static EngStatus rank_weights(int ranks, double *gib, EngErr *err)
{
    EngModel model;
    EngStatus status = eng_model_open("v41-flash", &model, err);
    if (!status) status = eng_model_split(&model, ranks, err);
    *gib = 0;
    for (int i = 0; !status && i < model.n_weights; i++) {
        uint64_t bytes;
        status = eng_tensor_bytes(&model.weights[i], &bytes, err);
        *gib += status ? 0 : (double)bytes / GIB;
    }
    return status;
}

static EngStatus memory_anchors(EngSizePoints *p, EngErr *err)
{
    static const struct {
        int ranks;
        double gib;
    } weights[] = {{8, 49.6}, {4, 81.2}, {2, 145.2}};
    /* One run's figure is cited for two machines, of which one cannot have been short. */
    static const struct {
        const char *name, *source, *assumed;
        double free, gib, buffer; /* GiB; buffer of logits: 32 for 16384 batched tokens */
    } kv[] = {
        {"left for context, 2 ranks of MI300X", "InferenceX pull request 3336",
         "90 % of 192 GiB, an indexer buffer of 8 GiB for 4096 tokens, graphs of 22 GiB, tables on "
         "the host",
         -13.51, 0.9 * 192, 8},
        {"left for context, 2 ranks of GB200", "InferenceX pull request 3320, run 35528745995",
         "all of 185 GiB, an indexer buffer of 32 GiB, graphs of 22 GiB, tables on the host", -5.34,
         189471 / 1024.0, 32},
        {"left for context, 2 ranks of GB300",
         "InferenceX pull request 3321, which cites the run of 3320",
         "all of 277 GiB, an indexer buffer of 32 GiB, graphs of 22 GiB, tables on the host: that "
         "a "
         "GPU of this size was short does not follow from what is published, so the run was "
         "likely GB200's, or a rank's half of the tables (94 GiB) lay on it",
         -5.34, 277, 32},
    };
    double gib = 0;
    EngStatus status = ENG_OK;
    for (int i = 0; i < 3 && !status; i++) {
        char name[64];
        snprintf(name, sizeof name, "weights of a rank of %d", weights[i].ranks);
        status = rank_weights(weights[i].ranks, &gib, err);
        anchor(p, name, "GiB", weights[i].gib,
               "InferenceX pull request 3337: a fit of 256 GiB / ranks + 17.2 GiB; runs measured "
               "81 to 99 (4 ranks) and 145 to 175 (2)",
               gib, "experts are split over ranks, all else is on each");
    }
    for (int i = 0; i < 3 && !status; i++)
        anchor(p, kv[i].name, "GiB", kv[i].free, kv[i].source, kv[i].gib - gib - kv[i].buffer - 22,
               kv[i].assumed);
    return status;
}

/* Caches of a token of context on each rank. */
static EngStatus context_anchors(EngSizePoints *p, EngErr *err)
{
    static const struct {
        const char *format, *source;
        double bytes;
    } kept[] = {{"fp4", "arXiv 2609.19969, abstract", 890},
                {"fp8", "MiaAI-Lab DeepSeek-v4.1-Flash-DGX-Sparks, README: on each rank", 1670.75}};
    EngStatus status = ENG_OK;
    for (int i = 0; i < 2 && !status; i++) {
        EngModel model;
        char name[64];
        double ours = 0;
        status = eng_model_open("v41-flash", &model, err);
        if (!status) status = eng_model_kv(&model, kept[i].format, err);
        for (int k = 0; k < model.n_kv && !status; k++) {
            uint64_t bytes;
            status = eng_tensor_bytes(&model.kv[k], &bytes, err);
            if (!status && !model.kv[k].window)
                ours += (double)bytes / (model.kv[k].every ? model.kv[k].every : 1);
        }
        snprintf(name, sizeof name, "a token of context, %s", kept[i].format);
        anchor(p, name, "B", kept[i].bytes, kept[i].source, ours,
               "entries of four layers, three of them for two tokens each; without what pages "
               "leave empty and without windows");
    }
    return status;
}

/* The paper's offload over PCIe: a step of 512 sequences, the module in its second layer. */
static EngStatus offload_anchors(EngSizePoints *p, EngErr *err)
{
    static const struct {
        const char *name;
        double tokens_per_s, change;
    } runs[] = {{"cost of offload, 4B", 9031.62, -1.92}, {"cost of offload, 8B", 6315.52, -2.78}};
    EngTier pcie = {.name = "pcie"};
    const EngTier *path[] = {&pcie};
    EngRowLayout layout = {.value_bytes = 5120.0 / 16, .value_stride = 5120.0 / 16};
    pcie.fields[ENG_TIER_BANDWIDTH] = (EngQuantity){.value = 53e9, .origin = ENG_ASSUMED};
    pcie.fields[ENG_TIER_LATENCY] = (EngQuantity){.value = 1.5e-6, .origin = ENG_ASSUMED};
    for (int i = 0; i < 2; i++) {
        EngGather gather;
        char assumed[320];
        double step = 512 / runs[i].tokens_per_s, window = step / 36;
        EngStatus status = eng_gather_plan(path, 1, &layout, 512 * 16, 0, &gather, err);
        if (status) return status;
        snprintf(assumed, sizeof assumed,
                 "decode steps of 512 tokens, 36 equal layers, 5 KB a token and layer, 53 GB/s and "
                 "1.5 us of PCIe, no interference: the fetch takes %.1f %% of its window%s",
                 100 * gather.time / window,
                 gather.time < window ? ", so the published cost is not a wait for rows" : "");
        anchor(p, runs[i].name, "%", runs[i].change, "arXiv 2601.07372, table 4",
               -100 * fmax(0, gather.time - window) / step, assumed);
    }
    return ENG_OK;
}

EngStatus eng_size_anchor_points(const EngSize *s, EngSizePoints *p, EngErr *err)
{
    (void)s;
    EngStatus status = memory_anchors(p, err);
    if (!status) status = context_anchors(p, err);
    return status ? status : offload_anchors(p, err);
}
