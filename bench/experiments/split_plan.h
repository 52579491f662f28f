/* The split of a parameter budget between routed experts and Engram tables, counted as the paper
 * does (arXiv 2601.07372 section 3.1): without embedding and head; P_active holds what a token
 * uses, but no table rows; P_MoE_inactive = rho (P_total - P_active). The Engram projections and
 * gate weights count in P_total and, as a stated extra, in P_active; so do the router's rows.
 */
#ifndef ENG_EXPERIMENTS_SPLIT_PLAN_H
#define ENG_EXPERIMENTS_SPLIT_PLAN_H

#include "bench/backbone/backbone.h"
#include "bench/core/experiment.h"

typedef struct EngSplit {
    EngBackboneConfig backbone; /* of the whole model at this rho */
    int experts_at_1;           /* of the pure MoE, rho = 1 */
    int modules;                /* with a table and a projection each; 0 at rho = 1 */
    int row_dims;
    int64_t rows_per_head;               /* first candidate for a prime; 0 at rho = 1 */
    int64_t total_at_1, active_at_1;     /* of the pure MoE, nearest to what the point asks for */
    int64_t total, active;               /* of this split */
    int64_t tables, projections, expert; /* values of all tables; of an expert over all layers */
} EngSplit;

/* From the axes preset, orders, heads, order_dims, layers, top_k, total, active, rho, threads and
 * tokens. ENG_UNSUPPORTED: no width left for an expert, fewer experts than are chosen, projections
 * that take more than the experts gave up. */
EngStatus eng_split_plan(const EngPoint *point, EngSplit *split, EngErr *err);

/* Share of the sparse parameters that are experts': rho as it came out. */
double eng_split_rho(const EngSplit *split);

#endif
