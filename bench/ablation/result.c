/* The result of a run; see result.h. */
#include "bench/ablation/result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "bench/ablation/run.h"

static EngStatus no_memory(EngErr *err)
{
    return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a result");
}

EngStatus eng_train_result_begin(EngTrainResultText *out, EngErr *err)
{
    out->series = json_object();
    out->histograms = json_array();
    return out->series && out->histograms ? ENG_OK : no_memory(err);
}

void eng_train_result_free(EngTrainResultText *out)
{
    json_decref(out->series);
    json_decref(out->histograms);
    *out = (EngTrainResultText){0};
}

static json_t *series_of(EngTrainResultText *out, const char *name)
{
    json_t *series = json_object_get(out->series, name);
    if (series) return series;
    series = json_array();
    return json_object_set_new(out->series, name, series) ? NULL : series;
}

EngStatus eng_train_put(EngTrainResultText *out, const char *name, int64_t step, double value,
                        EngErr *err)
{
    if (!isfinite(value)) return ENG_OK;
    json_t *series = series_of(out, name);
    if (!series) return no_memory(err);
    /* Six digits tell what a curve or a table shows. */
    char text[32];
    snprintf(text, sizeof text, "%.6g", value);
    json_t *pair = json_pack("[If]", (json_int_t)step, atof(text));
    return json_array_append_new(series, pair) ? no_memory(err) : ENG_OK;
}

EngStatus eng_train_put_histogram(EngTrainResultText *out, const char *name, int layer, int stream,
                                  const char *scale, double lo, double hi, const int64_t *counts,
                                  int n_bins, EngErr *err)
{
    json_t *bins = json_array();
    bool whole = bins != NULL;
    for (int i = 0; i < n_bins && whole; i++)
        whole = !json_array_append_new(bins, json_integer(counts[i]));
    json_t *histogram =
        json_pack("{s:s, s:i, s:i, s:s, s:f, s:f, s:o}", "name", name, "layer", layer, "stream",
                  stream, "scale", scale, "lo", lo, "hi", hi, "counts", bins);
    if (!histogram) return no_memory(err);
    if (json_array_append_new(out->histograms, histogram)) whole = false;
    return whole ? ENG_OK : no_memory(err);
}

EngStatus eng_train_result_add(EngTrainResultText *out, const json_t *part, EngErr *err)
{
    json_t *all = json_object_get(part, "series"), *values;
    json_t *histograms = json_object_get(part, "histograms");
    const char *name;
    json_object_foreach(all, name, values)
    {
        json_t *series = series_of(out, name);
        if (!series || json_array_extend(series, values)) return no_memory(err);
    }
    if (histograms && json_array_extend(out->histograms, histograms)) return no_memory(err);
    return ENG_OK;
}

EngStatus eng_train_result_write(const EngTrainResultText *out, const char *failed,
                                 const double *metrics, const char *path, EngErr *err)
{
    json_t *values = json_object();
    bool whole = values != NULL;
    for (int i = 0; i < ENG_TM_COUNT && whole; i++)
        if (isfinite(metrics[i]))
            whole = !json_object_set_new(values, eng_train_metrics[i].name, json_real(metrics[i]));
    json_t *root = json_pack("{s:s, s:s, s:o, s:O, s:O}", "outcome",
                             failed[0] ? "failed" : "measured", "reason", failed, "metrics", values,
                             "series", out->series, "histograms", out->histograms);
    char *text = whole && root ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    EngStatus status = text ? eng_file_write(path, text, strlen(text), err) : no_memory(err);
    free(text);
    json_decref(root);
    return status;
}
