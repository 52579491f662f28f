/* Blocks as fibers: every thread of a block has a stack and runs until it waits for others.
 *
 * Blocks run one after the other; a block's threads run in a chosen order between two waits. The
 * switch is a dozen instructions, since a production-width kernel makes millions of them.
 */
#include "internal.hpp"
#include "simt.cuh"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

extern "C" void simt_switch(void **save, void *load);
asm(R"(
.text
.globl simt_switch
.type simt_switch, @function
simt_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size simt_switch, .-simt_switch
)");

namespace simt
{
namespace
{
const unsigned max_threads = 1024;
const size_t stack_bytes = 256 << 10;

enum class State : uint8_t { ready, at_barrier, in_collective, ended };

struct Copy {
    void *dst;
    const void *src;
    size_t bytes;
};

struct Thread {
    void *sp;
    uint3 index;
    State state;
    const char *file;
    int line;
    uint32_t warp_barriers;
    std::vector<std::vector<Copy>> groups; /* committed, oldest first */
    std::vector<Copy> open;
};

/* A collective that some lanes of a mask have reached; one for each disjoint mask of a warp, kept
 * at the mask's lowest lane. */
struct Meeting {
    unsigned mask, arrived;
    const char *what, *file;
    int line;
    LaneFunction function;
    void *lanes[32];
};

Thread g_threads[max_threads];
Meeting g_meetings[max_threads];
uint8_t *g_stacks;
void *g_scheduler_sp;
unsigned g_n, g_current;
bool g_running, g_in_thread, g_abandoned;
long g_accesses_left;
const Launch *g_launch;
Stamp g_stamp;
char g_where[256];

uint8_t *stack_of(unsigned thread)
{
    return g_stacks + thread * stack_bytes;
}

unsigned block_number(void)
{
    return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
}

void yield(void)
{
    simt_switch(&g_threads[g_current].sp, g_scheduler_sp);
}

void end_thread(void)
{
    Thread &me = g_threads[g_current];
    if (!me.groups.empty() || !me.open.empty())
        report(Fault::copy_not_awaited, "the thread ends with copies in flight");
    me.state = State::ended;
}

void fiber_main(void)
{
    g_launch->call(g_launch->arguments);
    end_thread();
    yield();
    abort(); /* an ended thread is never resumed */
}

void prepare_thread(unsigned i)
{
    Thread &thread = g_threads[i];
    unsigned x = g_launch->block.x, y = g_launch->block.y;
    thread.index = {i % x, i / x % y, i / (x * y)};
    thread.state = State::ready;
    thread.warp_barriers = 0;
    thread.groups.clear();
    thread.open.clear();
    /* Tops at different places of a page, else all stacks fight for the same cache lines. */
    uintptr_t top = (uintptr_t)stack_of(i) + stack_bytes - 64 - (i % 61) * 64;
    void **sp = reinterpret_cast<void **>(top & ~(uintptr_t)15);
    *--sp = nullptr; /* where fiber_main would return to */
    *--sp = reinterpret_cast<void *>(fiber_main);
    sp -= 6;
    memset(sp, 0, 6 * sizeof *sp);
    thread.sp = sp;
}

void resume(unsigned i)
{
    g_current = i;
    threadIdx = g_threads[i].index;
    g_stamp.thread = i & 1023;
    g_stamp.warp_barriers = g_threads[i].warp_barriers & 0x7ffff;
    g_in_thread = true;
    simt_switch(&g_scheduler_sp, g_threads[i].sp);
    g_in_thread = false;
}

unsigned count(State state)
{
    unsigned n = 0;
    for (unsigned i = 0; i < g_n; i++) n += g_threads[i].state == state;
    return n;
}

unsigned first_of(State state)
{
    unsigned i = 0;
    while (i < g_n && g_threads[i].state != state) i++;
    return i;
}

/* Everyone waits: for a barrier that all reached, or for something that cannot come. */
void release_barrier(void)
{
    unsigned waiting = count(State::at_barrier), ended = count(State::ended);
    unsigned first = first_of(State::at_barrier);
    g_current = waiting ? first : first_of(State::in_collective);
    threadIdx = g_threads[g_current].index;
    const Thread &one = g_threads[g_current];
    if (!waiting)
        return report(Fault::divergent_collective, "waits at %s:%d for lanes that do not come",
                      one.file, one.line);
    if (waiting != g_n)
        return report(Fault::divergent_barrier, "%u of %u threads wait at %s:%d, %u have ended",
                      waiting, g_n, one.file, one.line, ended);
    for (unsigned i = 0; i < g_n; i++) {
        Thread &thread = g_threads[i];
        if (thread.line != one.line || strcmp(thread.file, one.file))
            return report(Fault::divergent_barrier, "at line %d, thread %u at line %d of %s",
                          one.line, i, thread.line, thread.file);
        thread.state = State::ready;
    }
    g_stamp.barriers++;
}

void order_threads(unsigned *order, Order how)
{
    std::iota(order, order + g_n, 0u);
    if (how == Order::reverse) std::reverse(order, order + g_n);
    for (unsigned i = g_n; how == Order::random && i > 1; i--)
        std::swap(order[i - 1], order[random_below(i)]);
}

void run_block(Order how)
{
    unsigned order[max_threads];
    shared_begin(g_launch->shared_bytes);
    for (unsigned i = 0; i < g_n; i++) prepare_thread(i);
    memset(g_meetings, 0, sizeof g_meetings);
    g_stamp.block = block_number();
    g_stamp.barriers = 0;
    order_threads(order, how);
    for (unsigned ended = 0; ended < g_n && !g_abandoned;) {
        unsigned ran = 0;
        for (unsigned k = 0; k < g_n && !g_abandoned; k++) {
            if (g_threads[order[k]].state != State::ready) continue;
            resume(order[k]);
            ended += g_threads[order[k]].state == State::ended;
            ran++;
        }
        if (g_abandoned || ran) continue;
        release_barrier();
        if (how == Order::random) order_threads(order, how);
    }
}

bool launch_is_possible(const Launch &launch)
{
    uint64_t threads = (uint64_t)launch.block.x * launch.block.y * launch.block.z;
    if (threads >= 1 && threads <= max_threads && launch.block.z <= 64 && launch.grid.x >= 1 &&
        launch.grid.y >= 1 && launch.grid.y <= 65535 && launch.grid.z >= 1 &&
        launch.grid.z <= 65535 && launch.grid.x <= 0x7fffffffu)
        return true;
    report(Fault::bad_launch, "%s: grid %u x %u x %u of %llu threads", launch.kernel, launch.grid.x,
           launch.grid.y, launch.grid.z, (unsigned long long)threads);
    return false;
}

Meeting &meeting_of(unsigned mask)
{
    return g_meetings[g_current / 32 * 32 + (unsigned)__builtin_ctz(mask)];
}

/* Lanes of the mask that can still come. */
void check_mask(unsigned mask, const char *what)
{
    unsigned warp = g_current / 32 * 32, lane = g_current % 32;
    if (!(mask >> lane & 1))
        report(Fault::inactive_lane, "%s: the mask %08x leaves out the caller, lane %u", what, mask,
               lane);
    for (unsigned i = 0; i < 32; i++)
        if (mask >> i & 1 && (warp + i >= g_n || g_threads[warp + i].state == State::ended))
            report(Fault::inactive_lane, "%s: the mask %08x names lane %u, which has ended", what,
                   mask, i);
}

struct ShuffleLane {
    uint64_t value, result;
    Shuffle kind;
    int operand, width;
    int bad; /* the lane read that takes no part, else -1 */
};

int source_lane(const ShuffleLane &lane, int me)
{
    int base = me / lane.width * lane.width, from = me;
    switch (lane.kind) {
    case Shuffle::index:
        return base + (lane.operand & (lane.width - 1));
    case Shuffle::up:
        from = me - lane.operand;
        return from < base ? me : from;
    case Shuffle::down:
        from = me + lane.operand;
        break;
    case Shuffle::exclusive_or:
        from = me ^ lane.operand;
        break;
    }
    return from >= base + lane.width ? me : from;
}

void do_shuffle(unsigned mask, void *const lanes[32])
{
    for (int i = 0; i < 32; i++) {
        if (!(mask >> i & 1)) continue;
        ShuffleLane &lane = *static_cast<ShuffleLane *>(lanes[i]);
        int from = source_lane(lane, i);
        lane.bad = mask >> from & 1 ? -1 : from;
        if (lane.bad < 0) lane.result = static_cast<ShuffleLane *>(lanes[from])->value;
    }
}

struct VoteLane {
    bool mine;
    unsigned ballot;
};

void do_vote(unsigned mask, void *const lanes[32])
{
    unsigned ballot = 0;
    for (int i = 0; i < 32; i++)
        if (mask >> i & 1 && static_cast<VoteLane *>(lanes[i])->mine) ballot |= 1u << i;
    for (int i = 0; i < 32; i++)
        if (mask >> i & 1) static_cast<VoteLane *>(lanes[i])->ballot = ballot;
}

void land(std::vector<Copy> &copies)
{
    for (const Copy &copy : copies) {
        memcpy(copy.dst, copy.src, copy.bytes);
        shared_in_flight((uintptr_t)copy.dst, copy.bytes, false, g_stamp);
    }
    copies.clear();
}
} // namespace

bool in_kernel(void)
{
    return g_running;
}

const Stamp &current_stamp(void)
{
    if (--g_accesses_left < 0) report(Fault::stuck, "too many accesses for one launch");
    return g_stamp;
}

bool own_stack_holds(uintptr_t address)
{
    return address - (uintptr_t)stack_of(g_current) < stack_bytes;
}

void abandon_launch(void)
{
    g_abandoned = true;
    if (!g_in_thread) return; /* found while all threads wait */
    void *unused;
    simt_switch(&unused, g_scheduler_sp);
    abort();
}

const char *where(void)
{
    if (!g_running) return "host";
    snprintf(g_where, sizeof g_where, "%s block %u thread %u", g_launch->kernel, block_number(),
             g_current);
    return g_where;
}

void execute(const Launch &launch, uint32_t op, const Options &options)
{
    if (!launch_is_possible(launch)) return;
    if (!g_stacks) {
        void *at = mmap(nullptr, max_threads * stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED) abort();
        g_stacks = static_cast<uint8_t *>(at);
    }
    g_launch = &launch;
    g_n = launch.block.x * launch.block.y * launch.block.z;
    g_stamp = Stamp{};
    g_stamp.op = op;
    g_abandoned = false;
    g_accesses_left = options.most_accesses;
    blockDim = launch.block, gridDim = launch.grid;
    uint64_t blocks = (uint64_t)gridDim.x * gridDim.y * gridDim.z;
    uint64_t shift = options.order == Order::random ? random_below(blocks) : 0;
    for (uint64_t i = 0; i < blocks && !g_abandoned; i++) {
        uint64_t at = options.order == Order::reverse ? blocks - 1 - i : (i + shift) % blocks;
        blockIdx = {(unsigned)(at % gridDim.x), (unsigned)(at / gridDim.x % gridDim.y),
                    (unsigned)(at / ((uint64_t)gridDim.x * gridDim.y))};
        g_running = true;
        run_block(options.order);
        g_running = false;
    }
}

void block_barrier(const char *file, int line)
{
    Thread &me = g_threads[g_current];
    me.state = State::at_barrier;
    me.file = file, me.line = line;
    yield();
}

void collective(unsigned mask, LaneFunction function, void *mine, const char *what,
                const char *file, int line)
{
    Thread &me = g_threads[g_current];
    check_mask(mask, what);
    Meeting &meeting = meeting_of(mask);
    if (!meeting.arrived) {
        meeting.mask = mask, meeting.what = what, meeting.file = file, meeting.line = line;
        meeting.function = function;
    } else if (meeting.mask != mask || meeting.line != line || strcmp(meeting.file, file)) {
        report(Fault::divergent_collective, "%s at line %d, other lanes at %s at line %d", what,
               line, meeting.what, meeting.line);
    }
    meeting.lanes[g_current % 32] = mine;
    meeting.arrived |= 1u << g_current % 32;
    me.file = file, me.line = line;
    if (meeting.arrived != mask) {
        me.state = State::in_collective;
        return yield();
    }
    if (function) function(mask, meeting.lanes);
    unsigned warp = g_current / 32 * 32;
    for (unsigned i = 0; i < 32; i++)
        if (mask >> i & 1) g_threads[warp + i].state = State::ready;
    meeting.arrived = 0;
}

void warp_barrier(unsigned mask, const char *file, int line)
{
    unsigned warp = g_current / 32 * 32, live = 0, there = 0;
    for (unsigned i = 0; i < 32 && warp + i < g_n; i++) {
        there |= 1u << i;
        if (g_threads[warp + i].state != State::ended) live |= 1u << i;
    }
    mask &= there; /* the default mask names lanes that a small block never had */
    collective(mask, nullptr, nullptr, "__syncwarp", file, line);
    if ((mask & live) != live) return;
    g_stamp.warp_barriers = ++g_threads[g_current].warp_barriers & 0x7ffff;
}

uint64_t shuffle(Shuffle kind, unsigned mask, uint64_t value, int operand, int width,
                 const char *file, int line)
{
    ShuffleLane lane = {value, 0, kind, operand, width, -1};
    collective(mask, do_shuffle, &lane, "shuffle", file, line);
    if (lane.bad >= 0)
        report(Fault::inactive_lane, "shuffle reads lane %d, which the mask %08x leaves out",
               lane.bad, mask);
    return lane.result;
}

unsigned vote(Vote kind, unsigned mask, bool mine, const char *file, int line)
{
    VoteLane lane = {mine, 0};
    collective(mask, do_vote, &lane, "vote", file, line);
    return kind == Vote::ballot ? lane.ballot
           : kind == Vote::any  ? lane.ballot != 0
                                : lane.ballot == mask;
}

void async_copy(void *dst, const void *src, size_t bytes)
{
    memory_access((uintptr_t)src, bytes, Access::read, bytes, current_stamp(), false);
    shared_in_flight((uintptr_t)dst, bytes, true, g_stamp);
    g_threads[g_current].open.push_back({dst, src, bytes});
}

void async_commit(void)
{
    Thread &me = g_threads[g_current];
    me.groups.push_back(me.open);
    me.open.clear();
}

void async_wait(int groups_in_flight)
{
    std::vector<std::vector<Copy>> &groups = g_threads[g_current].groups;
    while (groups.size() > (size_t)groups_in_flight) {
        land(groups.front());
        groups.erase(groups.begin());
    }
}
} // namespace simt
