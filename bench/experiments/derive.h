/* An experiment that measures part of its question with another experiment derives that one's point
 * from its own. */
#ifndef ENG_EXPERIMENTS_DERIVE_H
#define ENG_EXPERIMENTS_DERIVE_H

#include "bench/core/experiment.h"

/* A point of `to`: axes of the same name have the values of `from`, the others their defaults. */
void eng_point_derive(const EngPoint *from, const EngExperiment *to, EngPoint *out);
/* Gives an integer axis of a derived point another value. */
void eng_point_set_int(EngPoint *point, const char *axis, int64_t value);
/* Place of a metric in what observe() fills; the experiment must have it. */
int eng_metric_index(const EngExperiment *experiment, const char *metric);

#endif
