/* What a point should take, from the work of one call, what this machine was measured to do, and
 * the roof measured beside it: the number that says whether a time is normal, and what limits it.
 *
 * Three terms overlap, so the largest of them is the model's time:
 *   bytes    bytes moved (modelled from the shape) at the rate of the experiment `stream`
 *   flops    arithmetic (modelled) at the best rate of any product measured here
 *   latency  lines touched (counted) at the best rate of independent loads of the experiment
 *            `ladder` for that working set on 2 MiB pages; of memory on 4 KiB pages it is called
 *   pages    and the ladder's rate on such pages, page walks included
 * The roof bounds it: what the roof of the block was measured to do can be done, so the lesser of
 * both is expected. Where the measured time differs beyond a threshold the term that explains it is
 * named, which may be the page walks, or the arithmetic that a roof of the same bytes leaves out
 * (work, where flops or bytes are not known).
 */
#ifndef ENG_BENCH_EXPECTATION_H
#define ENG_BENCH_EXPECTATION_H

#include <stdbool.h>

/* Measured times this far from what is expected (as a ratio, either way) are explained. */
#define ENG_EXPECT_THRESHOLD 1.25
#define ENG_WHY_COLUMNS      56 /* no explanation is longer: it shares 100 columns with a name */

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
    double huge_share;         /* of that memory, on huge pages */
    int threads;
} EngWork;

/* What this machine does at the point's working set and threads; NAN: not measured. */
typedef struct EngRates {
    double gbps;           /* all threads */
    double gflops;         /* all threads */
    double ns_per_load;    /* of one thread, independent loads, 2 MiB pages */
    double ns_per_load_4k; /* the same on 4 KiB pages */
} EngRates;

/* Of the block's roof for the point's shape; NAN: none. */
typedef struct EngRoofWork {
    double ns, moved_bytes;
} EngRoofWork;

typedef struct EngExpectation {
    double expected_ns;              /* NAN: nothing is known */
    double ratio;                    /* measured / expected */
    EngTerm term;                    /* the largest, or the one that explains the rest */
    bool counted;                    /* the quantity behind it was counted, not modelled */
    double terms_ns[ENG_TERM_COUNT]; /* NAN: unknown */
    char why[96];                    /* "latency (counted)", "1.8 x bytes (modelled)", ... */
} EngExpectation;

/* Pure. */
void eng_expect(const EngWork *work, const EngRates *rates, double measured_ns,
                const EngRoofWork *roof, EngExpectation *out);

#endif
