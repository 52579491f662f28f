/* Parallel loop over plain threads, for set-up work only (filling tables): OpenMP must not be
 * started before the harness forks its workers, since its threads do not survive a fork. */
#ifndef ENG_BASE_PARALLEL_H
#define ENG_BASE_PARALLEL_H

#include <stdint.h>

/* Calls body(context, i) once for each i in [0, n), on up to `threads` threads (0: all processors).
 */
void eng_parallel_for(int64_t n, int threads, void (*body)(void *context, int64_t i),
                      void *context);
int eng_processor_count(void);

#endif
