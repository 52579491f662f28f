/* The answers of a run as they grow, and the file they go to. */
#ifndef ENG_ABLATION_RESULT_H
#define ENG_ABLATION_RESULT_H

#include <jansson.h>
#include <engram/status.h>

/* Named series of (step, value), and histograms as the database keeps them. */
typedef struct EngTrainResultText {
    json_t *series;     /* {name: [[step, value], ..]} */
    json_t *histograms; /* [{name, layer, stream, scale, lo, hi, counts}, ..] */
} EngTrainResultText;
EngStatus eng_train_result_begin(EngTrainResultText *out, EngErr *err);
/* A value that is not finite is left out. */
EngStatus eng_train_put(EngTrainResultText *out, const char *name, int64_t step, double value,
                        EngErr *err);
/* scale: as in EngHistogramSink. */
EngStatus eng_train_put_histogram(EngTrainResultText *out, const char *name, int layer, int stream,
                                  const char *scale, double lo, double hi, const int64_t *counts,
                                  int n_bins, EngErr *err);
/* Adds all of {series, histograms} to out: series of the same name go on. */
EngStatus eng_train_result_add(EngTrainResultText *out, const json_t *part, EngErr *err);
/* failed: why the run was given up, or "". metrics [ENG_TM_COUNT]; those that are NaN are left out.
 */
EngStatus eng_train_result_write(const EngTrainResultText *out, const char *failed,
                                 const double *metrics, const char *path, EngErr *err);
void eng_train_result_free(EngTrainResultText *out);

#endif
