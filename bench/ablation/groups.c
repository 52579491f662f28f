/* Groups of held-out tokens; see groups.h. */
#include "bench/ablation/groups.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

#define NONE 255

void eng_train_grouping_free(EngTrainGrouping *grouping)
{
    eng_free(grouping->group);
    *grouping = (EngTrainGrouping){0};
}

static EngStatus start(int64_t n, int n_groups, EngTrainGrouping *out, EngErr *err)
{
    *out = (EngTrainGrouping){.n_groups = n_groups};
    return eng_alloc_or((void **)&out->group, (size_t)n, 1, "groups of tokens", err);
}

EngStatus eng_train_by_source(const EngTrainData *data, int64_t n, EngTrainGrouping *out,
                              EngErr *err)
{
    EngStatus status = start(n, data->n_sources, out, err);
    for (int64_t i = 0; i < n && !status; i++) out->group[i] = data->heldout.source[i];
    return status;
}

EngStatus eng_train_by_class(const EngTrainData *data, int64_t n, EngTrainGrouping *out,
                             EngErr *err)
{
    EngStatus status = start(n, ENG_TOKEN_CLASS_COUNT, out, err);
    for (int64_t i = 0; i < n && !status; i++) out->group[i] = data->classes[data->heldout.ids[i]];
    return status;
}

/* Start of the document that holds token i; *document moves on with i. */
static int64_t document_start(const EngStream *stream, int64_t i, int64_t *document)
{
    while (*document + 1 < stream->n_documents && stream->document_starts[*document + 1] <= i)
        ++*document;
    return stream->document_starts[*document];
}

EngStatus eng_train_by_copy(const EngTrainData *data, int64_t n, EngTrainGrouping *out, EngErr *err)
{
    const int32_t *ids = data->heldout.ids;
    int64_t document = 0;
    EngStatus status = start(n, 2, out, err);
    for (int64_t i = 0; i < n && !status; i++) {
        int64_t least = document_start(&data->heldout.stream, i, &document) + 1;
        if (i - ENG_TRAIN_COPY_TOKENS > least) least = i - ENG_TRAIN_COPY_TOKENS;
        out->group[i] = 0;
        for (int64_t k = i - 1; k >= least && !out->group[i]; k--)
            out->group[i] = ids[k] == ids[i] && ids[k - 1] == ids[i - 1];
    }
    return status;
}

typedef struct Place {
    uint32_t count;
    int64_t at;
} Place;

static int by_count(const void *a, const void *b)
{
    const Place *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static EngStatus count_pairs(const EngTrainData *data, uint32_t **counts, EngErr *err)
{
    const EngTrainText *train = &data->train;
    const int32_t *map = data->map.map;
    size_t vocab = (size_t)data->map.n_compressed;
    EngStatus status =
        eng_alloc_or((void **)counts, vocab, vocab * sizeof **counts, "counts of pairs", err);
    for (int64_t i = 1; i < train->n && !status; i++)
        (*counts)[(size_t)map[train->ids[i - 1]] * vocab + (size_t)map[train->ids[i]]]++;
    return status;
}

EngStatus eng_train_by_frequency(const EngTrainData *data, int64_t n, EngTrainGrouping *out,
                                 double counts[ENG_TRAIN_DECILES], EngErr *err)
{
    const int32_t *ids = data->heldout.ids, *map = data->map.map;
    size_t vocab = (size_t)data->map.n_compressed;
    uint32_t *pairs = NULL;
    Place *places = NULL;
    int64_t n_places = 0, sizes[ENG_TRAIN_DECILES] = {0};
    EngStatus status = start(n, ENG_TRAIN_DECILES, out, err);
    if (!status) status = count_pairs(data, &pairs, err);
    if (!status) status = eng_alloc_or((void **)&places, (size_t)n, sizeof *places, "places", err);
    if (status) goto out;
    for (int64_t i = 0; i < n; i++) out->group[i] = NONE;
    for (int64_t i = 2; i < n; i++)
        places[n_places++] =
            (Place){pairs[(size_t)map[ids[i - 2]] * vocab + (size_t)map[ids[i - 1]]], i};
    qsort(places, (size_t)n_places, sizeof *places, by_count);
    for (int d = 0; d < ENG_TRAIN_DECILES; d++) counts[d] = 0;
    for (int64_t i = 0; i < n_places; i++) {
        int tenth = (int)(i * ENG_TRAIN_DECILES / n_places);
        out->group[places[i].at] = (uint8_t)tenth;
        counts[tenth] += places[i].count;
        sizes[tenth]++;
    }
    for (int d = 0; d < ENG_TRAIN_DECILES; d++) counts[d] /= (double)(sizes[d] ? sizes[d] : 1);
out:
    eng_free(pairs);
    eng_free(places);
    if (status) eng_train_grouping_free(out);
    return status;
}

void eng_train_group_means(const EngTrainGrouping *grouping, const float *losses, int64_t n,
                           double *means, int64_t *sizes)
{
    for (int g = 0; g < grouping->n_groups; g++) means[g] = 0, sizes[g] = 0;
    for (int64_t i = 0; i < n; i++) {
        int g = grouping->group[i];
        if (g >= grouping->n_groups || isnan(losses[i])) continue;
        means[g] += losses[i];
        sizes[g]++;
    }
    for (int g = 0; g < grouping->n_groups; g++)
        means[g] = sizes[g] ? means[g] / (double)sizes[g] : NAN;
}
