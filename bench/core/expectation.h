/* What a point should take, from the work of one call and what this machine was measured to do: the
 * number beside a measured one that says whether it is normal, and what limits it.
 *
 * Three terms overlap, so the largest is expected:
 *   bytes    bytes moved (modelled from the shape) at the rate of the experiment `stream`
 *   flops    arithmetic (modelled) at the best rate of any product measured here
 *   latency  lines touched (counted) at the best rate of independent loads of the experiment
 *            `ladder` for that working set on 2 MiB pages
 * and one more may explain what is beyond them:
 *   pages    page walks: the same lines at the ladder's cost on 4 KiB pages
 * Without such measurements in the database the block's roof is what is expected. */
#ifndef ENG_BENCH_EXPECTATION_H
#define ENG_BENCH_EXPECTATION_H

#include <stdbool.h>

/* Measured times this far from what is expected (as a ratio, either way) are explained. */
#define ENG_EXPECT_THRESHOLD 1.25

typedef enum EngTerm {
    ENG_TERM_NONE = 0, /* nothing is known */
    ENG_TERM_ROOF,
    ENG_TERM_BYTES,
    ENG_TERM_FLOPS,
    ENG_TERM_LATENCY,
    ENG_TERM_PAGES,
    ENG_TERM_COUNT
} EngTerm;
const char *eng_term_name(EngTerm term); /* "bytes"; "" for none */

/* Of one call; NAN: not known. */
typedef struct EngWork {
    double flops, moved_bytes; /* modelled: from the shape */
    double line_bytes;         /* counted: 64 bytes x lines touched at random */
    int threads;
} EngWork;

/* What this machine does at the point's working set and threads; NAN: not measured. */
typedef struct EngRates {
    double gbps;           /* all threads */
    double gflops;         /* all threads */
    double ns_per_load;    /* of one thread, independent loads, 2 MiB pages */
    double ns_per_load_4k; /* the same on 4 KiB pages */
} EngRates;

typedef struct EngExpectation {
    double expected_ns;              /* NAN: nothing is known */
    double ratio;                    /* measured / expected */
    EngTerm term;                    /* the largest, or the one that explains the rest */
    bool counted;                    /* the quantity behind it was counted, not modelled */
    double terms_ns[ENG_TERM_COUNT]; /* NAN: unknown */
    char why[96];                    /* "latency (counted)", "1.8 x bytes (modelled)", ... */
} EngExpectation;

/* roof_ns: time of the block's roof, NAN without. Pure. */
void eng_expect(const EngWork *work, const EngRates *rates, double measured_ns, double roof_ns,
                EngExpectation *out);

#endif
