/* See histograms.h. */
#include "bench/experiments/histograms.h"

#include "base/mem.h"
#include "kernels/cuda/queue.h"

#define BINS        80
#define SCORE_RANGE 100.0 /* scores stay below 71.6 at width 5120 */

typedef int (*BinOf)(float value);

static int gate_bin(float gate)
{
    return eng_bin_of(gate, 0, 1, BINS);
}

static int score_bin(float score)
{
    double end = eng_signed_log(SCORE_RANGE);
    return eng_bin_of(eng_signed_log(score), -end, end, BINS);
}

static void count(const float *values, int64_t tokens, int streams, BinOf bin_of, int64_t *counts)
{
    for (int64_t t = 0; t < tokens; t++)
        for (int s = 0; s < streams; s++) counts[s * BINS + bin_of(values[t * streams + s])]++;
}

static EngStatus count_there(EngRunner *runner, const float *values, int64_t tokens, int streams,
                             BinOf bin_of, int64_t *counts, EngErr *err)
{
    float edges[BINS - 1];
    void *there_edges = NULL, *there_counts = NULL;
    const void *there;
    EngCudaStream *stream;
    size_t n = (size_t)streams * BINS * sizeof *counts;
    eng_cuda_histogram_edges(bin_of, BINS, edges);
    EngStatus status = eng_mirror_at(
        &runner->mirrors, values, (size_t)tokens * (size_t)streams * sizeof *values, &there, err);
    if (!status) status = eng_cuda_main(&stream, err);
    if (!status) status = eng_cuda_alloc(ENG_CUDA_DEVICE, sizeof edges, &there_edges, err);
    if (!status) status = eng_cuda_alloc(ENG_CUDA_DEVICE, n, &there_counts, err);
    if (!status) status = eng_cuda_copy(there_edges, edges, sizeof edges, err);
    if (!status) status = eng_cuda_copy(there_counts, counts, n, err);
    if (!status)
        status = eng_cuda_histogram(there, tokens, streams, there_edges, BINS, there_counts, stream,
                                    err);
    if (!status) status = eng_cuda_copy(counts, there_counts, n, err);
    eng_cuda_free(ENG_CUDA_DEVICE, there_edges);
    eng_cuda_free(ENG_CUDA_DEVICE, there_counts);
    return status;
}

typedef struct Kind {
    const char *name, *scale;
    double lo, hi;
    BinOf bin_of;
} Kind;

static EngStatus histograms(EngRunner *runner, const Kind *kind, const float *values,
                            int64_t tokens, int streams, int layer, EngHistogramSink sink,
                            void *context, EngErr *err)
{
    int64_t *counts = NULL;
    EngStatus status =
        eng_alloc_or((void **)&counts, (size_t)streams, BINS * sizeof *counts, "histograms", err);
    if (status) return status;
    if (runner && runner->kernel->backend == ENG_CUDA)
        status = count_there(runner, values, tokens, streams, kind->bin_of, counts, err);
    else
        count(values, tokens, streams, kind->bin_of, counts);
    for (int s = 0; s < streams && !status; s++)
        sink(context, kind->name, layer, s, kind->scale, kind->lo, kind->hi, counts + s * BINS,
             BINS);
    eng_free(counts);
    return status;
}

EngStatus eng_gate_histograms(EngRunner *runner, const float *gates, int64_t tokens, int streams,
                              int layer, EngHistogramSink sink, void *context, EngErr *err)
{
    static const Kind kind = {"gate", "linear", 0, 1, gate_bin};
    return histograms(runner, &kind, gates, tokens, streams, layer, sink, context, err);
}

EngStatus eng_score_histograms(EngRunner *runner, const float *scores, int64_t tokens, int streams,
                               int layer, EngHistogramSink sink, void *context, EngErr *err)
{
    static const Kind kind = {"score", "signed_log", -SCORE_RANGE, SCORE_RANGE, score_bin};
    return histograms(runner, &kind, scores, tokens, streams, layer, sink, context, err);
}
