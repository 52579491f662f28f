/* The simulated device of programs and tests in C; see control.hpp. */
#ifndef ENG_TESTS_SIMT_PROGRAM_H
#define ENG_TESTS_SIMT_PROGRAM_H

#ifdef __cplusplus
extern "C" {
#endif

/* A fresh device. order: 0 forward, 1 reverse, 2 random; policy: 0 lazy, 1 random, 2 priority,
 * 3 eager. failing_launch: that launch is a fault, 0: none. After any fault all calls fail. */
void simt_begin(int order, int policy, unsigned long seed, long failing_launch);
/* Of every simt_begin() from now on: how many devices there are, the cudaError_t of asking for
 * them, and that of making anything on one, its compute capability; 1, 0, 0, 90 otherwise. */
void simt_pretend(int devices, int device_error, int use_error, int capability);
/* Of every simt_begin() from now on: control.hpp's work that graphs leave out, and how often. */
void simt_leave_out(int nth);
long simt_left_out(void);
/* Faults since then, and the first one's text. */
int simt_faults(void);
const char *simt_fault_text(void);
long simt_launches(void); /* that ran to their end */
long simt_graphs(void);   /* that were launched, each counted once */
/* control.hpp's: the nth allocation or object from now on fails, once; and those that are not
 * released; what was made since simt_begin() and not destroyed, in words, or NULL. */
void simt_fail_allocation(long nth);
long simt_live_allocations(void);
const char *simt_left_over(void);

/* The device's own account, on the simulated clock (control.hpp). */
typedef struct SimtActivity {
    int kind; /* 1 kernel, 2 copy, 3 set */
    const char *name;
    unsigned long start_ns, end_ns, bytes;
    unsigned stream, correlation;
} SimtActivity;
long simt_activities(void);
SimtActivity simt_activity(long i);

#ifdef __cplusplus
}
#endif
#endif
