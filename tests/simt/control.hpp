/* What a test controls and asks: how the executor schedules, and which faults it found.
 *
 * One process holds one simulated device. begin() starts it afresh. A fault inside a kernel ends
 * that launch (the threads are dropped); faults of the runtime are noted and the call returns its
 * CUDA error. Everything is reproducible from (order, policy, seed).
 */
#ifndef ENG_TESTS_SIMT_CONTROL_H
#define ENG_TESTS_SIMT_CONTROL_H

#include <cstddef>
#include <cstdint>

namespace simt
{
/* In which order the threads of a block run between two barriers, and the blocks of a grid. */
enum class Order { forward, reverse, random };

/* When work in streams is carried out: only when somebody waits for it; in random order among what
 * is ready, also before anyone waits; by random priorities of streams; at once. */
enum class Policy { lazy, random, priority, eager };

struct Options {
    Order order = Order::forward;
    Policy policy = Policy::lazy;
    uint64_t seed = 1;
    long most_accesses = 4000000000; /* of one launch: more is an endless loop */
    /* Bytes of an allocation of which every byte's history is kept, at 32 bytes each; races and
     * unwritten bytes are not found in larger ones. */
    size_t most_shadowed = SIZE_MAX;
    bool faults_stay = false; /* after a fault every call fails, as on a device */
    long failing_launch = 0;  /* this one, counted from 1, is a fault; 0: none */
    int capability = 90;      /* of the device */
    int devices = 1;          /* that the driver lists; 0: none, without an error */
    int device_error = 0;     /* a cudaError_t: of asking for devices */
    int use_error = 0;        /* of making anything on the one that there is */
    /* Of the work of every graph that is launched, counted from 1, this is not done; 0: all is,
     * -1: none. */
    int left_out = 0;
};

enum class Fault {
    none,
    bounds,        /* outside every allocation, or outside the one it began in */
    shared_bounds, /* in the shared window but outside every array of the block */
    use_after_free,
    misaligned,
    foreign_memory, /* a kernel touches host memory, or the host device memory */
    uninitialised,  /* reads shared or device memory that nobody wrote */
    race_in_block,
    race_between_blocks,
    race_between_streams,
    race_with_host,   /* the host touches pinned memory that an operation in flight uses */
    copy_in_flight,   /* a thread touches the target of its block's copy before the wait */
    copy_not_awaited, /* a thread ends with asynchronous copies nobody waited for */
    divergent_barrier,
    divergent_collective,
    inactive_lane, /* a collective names or reads a lane that does not take part */
    bad_launch,    /* sizes the device refuses */
    pageable_copy, /* an asynchronous copy from or to memory that is not pinned */
    legacy_stream,
    capture_unjoined,
    capture_sync,      /* waiting for the device while a stream is being captured */
    capture_isolation, /* captured work depends on work outside the graph */
    library_call,      /* cuBLASLt called with what its manual forbids */
    stuck,             /* more accesses than Options::most_accesses */
    planted,           /* Options::failing_launch */
};

const char *fault_name(Fault fault);

void begin(const Options &options);

/* ---- the simulated clock ----
 *
 * It knows streams, events and graphs but not the schedule that the policy chose: an operation
 * starts when the host has given it and all that it comes after has ended. A call takes the host
 * call_ns; a kernel runs kernel_ns and one more for each of its threads (a product: for each
 * of its outputs); a copy copy_ns and one for
 * each 16 bytes.
 */
const uint64_t call_ns = 100, kernel_ns = 2000, copy_ns = 1000;

enum class ActivityKind { none, kernel, copy, set };

/* One line of the device's own account, in the order in which it was given. */
struct Activity {
    ActivityKind kind;
    const char *name; /* of the kernel or the call; until the next begin() */
    uint64_t start_ns, end_ns, bytes;
    uint32_t stream, correlation;
};
size_t activities(void);
Activity activity(size_t i);
uint64_t clock_ns(void); /* the host's now */

/* The nth from now on of what takes memory fails, once: allocations, and the making of streams,
 * events, graphs and the library's objects; 0: none does. */
void fail_allocation(long nth);
/* Allocations since begin() that are not released. */
long live_allocations(void);
/* What was made since begin() and not destroyed or released, in words: streams, events, graphs,
 * handles and descriptions of the library, memory. NULL: nothing. */
const char *left_over(void);

/* Faults since begin(). */
int faults(void);
Fault fault(int i);
const char *fault_text(int i);

/* How many launches ran to their end, for tests that must know that something ran. */
long launches_done(void);
/* How many graphs were launched, each counted once. */
long graphs_launched(void);
/* How often something of a graph was left out. */
long work_left_out(void);
} // namespace simt

#endif
