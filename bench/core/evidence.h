/* Evidence about a stretch of time: was the machine disturbed, and what did the worker meet?
 * Nothing is judged by it; it is stored with each segment so that an odd number can be understood
 * later. */
#ifndef ENG_BENCH_EVIDENCE_H
#define ENG_BENCH_EVIDENCE_H

#include <stddef.h>
#include <stdint.h>

#define ENG_EVIDENCE_BYTES 1536 /* room that eng_evidence_delta_json needs */

typedef struct EngEvidence {
    int64_t steal_ticks; /* of the machine, -1: the kernel does not show them */
    /* Of ended and awaited child processes: read before a worker starts and after it was awaited,
     * the difference is that worker's. */
    int64_t minor_faults, major_faults, voluntary_switches, involuntary_switches;
    int64_t user_us, system_us;
    double mhz;        /* mean clock of the processors as the kernel tells it, NAN: it does not */
    int64_t throttles; /* thermal events over all cores, -1: the kernel does not show them */
    double load;       /* runnable processes, mean of a minute */
} EngEvidence;
void eng_evidence_read(EngEvidence *evidence);
/* now - then, and clock and load at both ends, as JSON, or the reason in place of what the kernel
 * does not show; with it, from whichever process asks, which processor counters can be had and why
 * others cannot. A buffer that is too small gets "{}".
 */
void eng_evidence_delta_json(const EngEvidence *then, const EngEvidence *now, char *out,
                             size_t size);

#endif
