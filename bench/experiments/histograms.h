/* Histograms of gates and scores: 80 bins for each stream, in the sink that the ledger keeps. What
 * a device's kernel wrote is counted there, by a kernel, into the same bins. */
#ifndef ENG_EXPERIMENTS_HISTOGRAMS_H
#define ENG_EXPERIMENTS_HISTOGRAMS_H

#include "bench/core/experiment.h"
#include "bench/experiments/support.h"

/* values [tokens, streams] on the host, filled by runs of `runner`; NULL: by nobody in particular.
 * "gate": linear over [0, 1]. "score": signed_log over [-100, 100]. */
EngStatus eng_gate_histograms(EngRunner *runner, const float *gates, int64_t tokens, int streams,
                              int layer, EngHistogramSink sink, void *context, EngErr *err);
EngStatus eng_score_histograms(EngRunner *runner, const float *scores, int64_t tokens, int streams,
                               int layer, EngHistogramSink sink, void *context, EngErr *err);

#endif
