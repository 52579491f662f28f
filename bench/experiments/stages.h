/* The operations of V4.1's forward pass as experiments chain them: packed fp8 rows are projected to
 * bf16 keys and values. */
#ifndef ENG_EXPERIMENTS_STAGES_H
#define ENG_EXPERIMENTS_STAGES_H

#include "bench/experiments/shape.h"

/* Without table, weights and gate weights, which set-up fills in; the point has an axis `formula`.
 */
EngProblem eng_stage_problem(const EngPoint *point, const EngShape *shape, EngOp op);
/* The kernel of the point's axis `variant`: portable, cuda (the first of that backend that fits),
 * or else the first of a list by preference. ENG_UNSUPPORTED with the last candidate's reason when
 * none fits. */
EngStatus eng_stage_kernel(const EngPoint *point, const EngShape *shape, EngOp op,
                           const EngKernel **kernel, EngErr *err);
/* The first kernel by preference, `portable` last, that takes this problem. */
EngStatus eng_stage_best(const EngProblem *problem, const EngKernel **kernel, EngErr *err);

#endif
