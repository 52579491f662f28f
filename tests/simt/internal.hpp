/* What the executor's files share: the shadow of memory, the running thread, and the order of
 * operations on streams. Not compiled with instrumentation, unlike the kernels and tests.
 *
 * Shadow: two stamps for each byte, of its last write and its last reads. A stamp names the
 * operation (launch, copy, or a stretch of host code), block, thread, and how many block and warp
 * barriers that thread had passed. An access races with a stamp that is not ordered before it.
 * Several readers are joined into one stamp that stands for all of them.
 */
#ifndef ENG_TESTS_SIMT_INTERNAL_H
#define ENG_TESTS_SIMT_INTERNAL_H

#include "control.hpp"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace simt
{
/* ---- faults.cpp ---- */

/* Notes a fault; inside a kernel the launch ends and this does not return. */
void report(Fault fault, const char *format, ...) __attribute__((format(printf, 2, 3)));

uint64_t random_bits(void);
uint64_t random_below(uint64_t n);

/* ---- shadow.cpp ---- */

enum class Readers : uint32_t { one, warp, block, grid };

struct Stamp {
    uint32_t op; /* 0: nobody */
    uint32_t block;
    uint32_t barriers; /* block barriers passed */
    uint32_t thread : 10, readers : 2, is_atomic : 1, warp_barriers : 19;
};

struct Shadow {
    Stamp write, read;
};

enum class Access { read, write, atomic };

struct Clash {
    bool found;
    Stamp with;
    bool reads; /* the other side reads */
};

/* Checks n bytes against their shadow and leaves the stamp of `now` in it. */
Clash note_access(Shadow *shadow, size_t n, Access access, const Stamp &now);

/* ---- memory.cpp ---- */

enum class Kind { device, pinned };

void memory_begin(size_t most_shadowed);
void *memory_allocate(size_t bytes, Kind kind);
bool memory_release(void *address, Kind kind); /* false: no such allocation */
long live_allocations(Kind kind);
/* Of making something: what the options have, or this one's failure by fail_allocation(). */
cudaError_t making_fails(void);
/* Whether the address lies in the simulated device or pinned memory, and in which. */
bool memory_known(const void *address, Kind *kind);

/* n bytes touched by the operation that `now` names; size tells the alignment wanted, 1: any. */
void memory_access(uintptr_t address, size_t n, Access access, size_t alignment, const Stamp &now,
                   bool by_host);

/* Shared window of the running block. */
void shared_begin(size_t dynamic_bytes);
bool shared_holds(uintptr_t address);
void shared_access(uintptr_t address, size_t n, Access access, size_t alignment, const Stamp &now);
void shared_in_flight(uintptr_t address, size_t n, bool in_flight, const Stamp &now);

bool arguments_hold(uintptr_t address);

/* ---- executor.cpp ---- */

struct Launch {
    const char *kernel;
    dim3 grid, block;
    size_t shared_bytes;
    void *arguments;
    void (*call)(void *);
};

void execute(const Launch &launch, uint32_t op, const Options &options);
bool in_kernel(void);
const Stamp &current_stamp(void);
bool own_stack_holds(uintptr_t address);
void abandon_launch(void); /* returns only when no thread runs */
/* "kernel<<<..>>> block 3 thread 17", or "host". */
const char *where(void);

/* ---- order.cpp ---- */

/* Whether everything of operation `before` is done before `after` starts, by streams, events and
 * waits alone (not by the schedule that happened). */
bool happens_before(uint32_t before, uint32_t after);
/* An operation that stands for both. */
uint32_t join_operations(uint32_t a, uint32_t b);
const char *operation_name(uint32_t op);
bool operation_is_host(uint32_t op);
/* The stretch of host code that runs now. */
Stamp host_stamp(void);

void order_begin(const Options &options);

/* ---- objects.cpp ---- */

void objects_begin(void); /* those of before are not left over */

/* ---- runtime.cpp ---- */

void streams_begin(void); /* those of before are empty */
} // namespace simt

#endif
