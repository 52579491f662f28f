/* Comparisons within rounds, and the ladder of a search; see rounds.h. */
#include "bench/core/rounds.h"

#include <math.h>

#include "base/mem.h"

#define FIRST_ROUNDS 6  /* per candidate in the first stage, in two lifetimes */
#define MOST_ROUNDS  54 /* of any stage but the last */
#define FINALISTS    3

static double at(const EngRounds *rounds, int round, int candidate)
{
    return rounds->times[(size_t)round * (size_t)rounds->n_candidates + (size_t)candidate];
}

/* Median of a round's times; uses `scratch` [n_candidates]. A round that only one of several
 * candidates took part in compares nothing: NAN. */
static double round_median(const EngRounds *rounds, int round, double *scratch)
{
    size_t n = 0;
    for (int c = 0; c < rounds->n_candidates; c++)
        if (!isnan(at(rounds, round, c))) scratch[n++] = at(rounds, round, c);
    if (n == 1 && rounds->n_candidates > 1) return NAN;
    return eng_median_in_place(scratch, n).median;
}

EngStatus eng_rounds_scores(const EngRounds *rounds, double *scores, EngErr *err)
{
    double *middle = NULL, *scratch = NULL;
    int most = rounds->n_rounds > rounds->n_candidates ? rounds->n_rounds : rounds->n_candidates;
    EngStatus status =
        eng_alloc_or((void **)&scratch, (size_t)most, sizeof *scratch, "scores", err);
    if (!status)
        status =
            eng_alloc_or((void **)&middle, (size_t)rounds->n_rounds, sizeof *middle, "scores", err);
    for (int r = 0; !status && r < rounds->n_rounds; r++)
        middle[r] = round_median(rounds, r, scratch);
    for (int c = 0; !status && c < rounds->n_candidates; c++) {
        size_t n = 0;
        for (int r = 0; r < rounds->n_rounds; r++)
            if (!isnan(at(rounds, r, c)) && middle[r] > 0)
                scratch[n++] = at(rounds, r, c) / middle[r];
        scores[c] = eng_median_in_place(scratch, n).median;
    }
    eng_free(middle);
    eng_free(scratch);
    return status;
}

void eng_rounds_order(const double *scores, int n, int *order)
{
    for (int i = 0; i < n; i++) {
        int place = i;
        /* Insertion keeps equals in their order; NAN compares false and stays behind. */
        while (place > 0 && (scores[i] < scores[order[place - 1]] ||
                             (isnan(scores[order[place - 1]]) && !isnan(scores[i])))) {
            order[place] = order[place - 1];
            place--;
        }
        order[place] = i;
    }
}

EngStatus eng_rounds_ratio(const EngRounds *rounds, int a, int b, EngMedian *ratio, EngErr *err)
{
    double *ratios;
    size_t n = 0;
    *ratio = (EngMedian){0, NAN, NAN, NAN};
    EngStatus status = eng_alloc_or((void **)&ratios, (size_t)rounds->n_rounds, sizeof *ratios,
                                    "paired ratios", err);
    if (status) return status;
    for (int r = 0; r < rounds->n_rounds; r++) {
        double ta = at(rounds, r, a), tb = at(rounds, r, b);
        if (ta > 0 && tb > 0) ratios[n++] = tb / ta;
    }
    *ratio = eng_median_in_place(ratios, n);
    eng_free(ratios);
    return ENG_OK;
}

EngStatus eng_rounds_floor(const EngRounds *rounds, int c, double *floor, int *n_ratios,
                           EngErr *err)
{
    double *ratios;
    size_t n = 0;
    int before = -1;
    *floor = NAN;
    EngStatus status = eng_alloc_or((void **)&ratios, (size_t)rounds->n_rounds, sizeof *ratios,
                                    "ratios of a variant to itself", err);
    if (status) return status;
    for (int r = 0; r < rounds->n_rounds; r++) {
        if (!(at(rounds, r, c) > 0)) continue;
        if (before < 0 || rounds->segments[before] != rounds->segments[r]) {
            before = r;
            continue;
        }
        /* Turned every second time, so that a steady drift does not pass for a difference. */
        double ratio = at(rounds, r, c) / at(rounds, before, c);
        ratios[n] = n % 2 ? 1 / ratio : ratio;
        n++;
        before = -1;
    }
    EngMedian median = eng_median_in_place(ratios, n);
    if (!isnan(median.ci_lo)) *floor = fmax(fabs(median.ci_hi - 1), fabs(1 / median.ci_lo - 1));
    if (n_ratios) *n_ratios = (int)n;
    eng_free(ratios);
    return ENG_OK;
}

int eng_rounds_verdict(const EngMedian *ratio, double floor)
{
    if (isnan(ratio->ci_lo) || isnan(floor)) return 0;
    if (ratio->ci_lo > 1 && ratio->median - 1 > floor) return 1;
    if (ratio->ci_hi < 1 && 1 / ratio->median - 1 > floor) return -1;
    return 0;
}

/* ---- successive halving ------------------------------------------------------------------------
 */

int eng_tune_ladder(int n, EngTuneStage stages[ENG_TUNE_MAX_STAGES])
{
    int count = 0, rounds = FIRST_ROUNDS;
    while (n > FINALISTS && count < ENG_TUNE_MAX_STAGES - 1) {
        int keep = (n + 2) / 3;
        if (keep < FINALISTS) keep = FINALISTS;
        stages[count++] = (EngTuneStage){n, keep, 2, rounds / 2};
        rounds = 3 * rounds < MOST_ROUNDS ? 3 * rounds : MOST_ROUNDS;
        n = keep;
    }
    stages[count++] = (EngTuneStage){n, 1, 3, ENG_TUNE_FINAL_ROUNDS / 3};
    return count;
}
