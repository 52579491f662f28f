/* Where the threads of the kernels run. The kernels' teams are OpenMP teams of one pool, so that
 * pinning them once holds for every later parallel region of the same size. */
#ifndef ENG_KERNELS_CPU_PIN_H
#define ENG_KERNELS_CPU_PIN_H

#include <engram/status.h>

/* Thread i of a team of `threads` may run on processor cpus[i % n] only (numbers of the operating
 * system). ENG_UNSUPPORTED: the system refuses one, or the team came out smaller. */
EngStatus eng_cpu_pin(int threads, const int *cpus, int n, EngErr *err);
/* Threads of a team of `threads` may run on any of the processors cpus[0..n). */
EngStatus eng_cpu_unpin(int threads, const int *cpus, int n, EngErr *err);

#endif
