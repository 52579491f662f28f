/* Clocks: wall time, and CPU time of a thread, in nanoseconds. */
#ifndef ENG_BASE_CLOCK_H
#define ENG_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

int64_t eng_now_ns(void);        /* monotonic */
int64_t eng_thread_cpu_ns(void); /* calling thread */
/* "2026-11-29T20:01:18.123Z" into out (>= 32 bytes). */
void eng_utc_now(char *out, size_t size);

#endif
