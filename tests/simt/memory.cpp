/* The simulated device's memory: allocations in one sparse reservation with red zones between them,
 * never reused, so that a late access is told from a valid one; and the shared window of a block.
 */
#include "runtime.hpp"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "simt.cuh"

namespace simt
{
namespace
{
const size_t device_bytes = (size_t)120 << 30; /* address space: pages come when touched */
const size_t shared_window = 256 << 10, shared_limit = 227 << 10, static_limit = 48 << 10;
const size_t arguments_bytes = 16 << 20;
const size_t red_zone = 512, shared_red_zone = 64;

struct Allocation {
    size_t bytes;
    Kind kind;
    bool freed, shadowed;
};

struct SharedArray {
    const void *site;
    uintptr_t at;
    size_t bytes;
};

enum : uint8_t { empty, written, in_flight };

uint8_t *g_device, *g_arguments;
size_t g_most_shadowed;
long g_failing; /* allocation, counted down */
Shadow *g_shadow;
size_t g_used, g_arguments_used;
std::map<uintptr_t, Allocation> g_allocations;
std::map<uintptr_t, Allocation>::iterator g_last; /* most accesses follow another to it */

alignas(256) uint8_t g_shared[shared_window];
Shadow g_shared_shadow[shared_window];
uint8_t g_shared_state[shared_window];
size_t g_shared_used;
std::vector<SharedArray> g_arrays;
SharedArray *g_last_array;
void *g_dynamic;

uint8_t *reserve(size_t bytes)
{
    void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        perror("simt: address space");
        exit(1);
    }
    return static_cast<uint8_t *>(at);
}

bool in_device(uintptr_t address)
{
    return g_device && address - (uintptr_t)g_device < device_bytes;
}

Allocation *allocation_at(uintptr_t address, uintptr_t *start)
{
    if (g_last == g_allocations.end() || address < g_last->first ||
        address >= g_last->first + g_last->second.bytes) {
        g_last = g_allocations.upper_bound(address);
        if (g_last == g_allocations.begin()) return nullptr;
        --g_last;
    }
    *start = g_last->first;
    return &g_last->second;
}

const char *verb(Access access)
{
    return access == Access::read ? "reads" : access == Access::write ? "writes" : "updates";
}

void report_clash(const Clash &clash, Access access, uintptr_t offset, const Stamp &now,
                  bool by_host)
{
    Fault fault = Fault::race_between_streams;
    if (by_host || (clash.with.op != now.op && operation_is_host(clash.with.op)))
        fault = Fault::race_with_host;
    else if (clash.with.op == now.op)
        fault = (Readers)clash.with.readers == Readers::grid || clash.with.block != now.block
                    ? Fault::race_between_blocks
                    : Fault::race_in_block;
    report(fault, "%s byte %zu that %s (block %u, thread %u) %s without an order between them",
           verb(access), (size_t)offset, operation_name(clash.with.op), clash.with.block,
           (unsigned)clash.with.thread, clash.reads ? "reads" : "writes");
}

/* Whether the access lies in one live allocation, of a kind its side may touch. */
bool check_place(uintptr_t address, size_t n, bool by_host, Access access, Kind *kind,
                 uintptr_t *start)
{
    Allocation *allocation = allocation_at(address, start);
    if (!allocation || address + n > *start + allocation->bytes) {
        size_t past = allocation ? address + n - (*start + allocation->bytes) : 0;
        report(Fault::bounds, "%s %zu bytes, up to %zu past the end of an allocation of %zu",
               verb(access), n, past, allocation ? allocation->bytes : 0);
        return false;
    }
    *kind = allocation->kind;
    if (allocation->freed) {
        report(Fault::use_after_free, "%s %zu bytes", verb(access), n);
        return false;
    }
    if (by_host && allocation->kind == Kind::device) {
        report(Fault::foreign_memory, "%s device memory", verb(access));
        return false;
    }
    return true;
}

void check_alignment(uintptr_t address, size_t alignment, Access access)
{
    if (alignment > 1 && address % alignment)
        report(Fault::misaligned, "%s %zu bytes at an address that is %zu modulo them",
               verb(access), alignment, (size_t)(address % alignment));
}

SharedArray *array_at(uintptr_t address)
{
    if (g_last_array && address - g_last_array->at < g_last_array->bytes) return g_last_array;
    for (SharedArray &array : g_arrays)
        if (address - array.at < array.bytes) return g_last_array = &array;
    return nullptr;
}

void *add_array(const void *site, size_t bytes, size_t alignment, size_t limit)
{
    size_t sum = bytes;
    for (const SharedArray &array : g_arrays) sum += array.bytes;
    if (sum > limit) {
        report(Fault::bad_launch, "%zu bytes of shared memory, the limit is %zu", sum, limit);
        return nullptr; /* before any thread runs */
    }
    size_t at = (g_shared_used + alignment - 1) / alignment * alignment;
    g_shared_used = at + bytes + shared_red_zone;
    memset(g_shared + at, 0xff, bytes);
    memset(g_shared_state + at, empty, bytes);
    memset(static_cast<void *>(g_shared_shadow + at), 0, bytes * sizeof(Shadow));
    g_arrays.push_back({site, (uintptr_t)g_shared + at, bytes});
    g_last_array = nullptr;
    return g_shared + at;
}
} // namespace

void memory_begin(size_t most_shadowed)
{
    if (!g_device) {
        g_device = reserve(device_bytes);
        g_shadow = reinterpret_cast<Shadow *>(reserve(device_bytes * sizeof(Shadow)));
        g_arguments = reserve(arguments_bytes);
    }
    madvise(g_device, g_used, MADV_DONTNEED);
    madvise(g_shadow, g_used * sizeof(Shadow), MADV_DONTNEED);
    g_used = red_zone;
    g_arguments_used = 0;
    g_allocations.clear();
    g_last = g_allocations.end();
    g_most_shadowed = most_shadowed;
    g_failing = 0;
}

void fail_allocation(long nth)
{
    g_failing = nth;
}

cudaError_t making_fails(void)
{
    if (options().use_error) return (cudaError_t)options().use_error;
    return g_failing && --g_failing == 0 ? cudaErrorMemoryAllocation : cudaSuccess;
}

long live_allocations(Kind kind)
{
    long n = 0;
    for (const auto &allocation : g_allocations)
        n += !allocation.second.freed && allocation.second.kind == kind;
    return n;
}

long live_allocations(void)
{
    return live_allocations(Kind::device) + live_allocations(Kind::pinned);
}

void *memory_allocate(size_t bytes, Kind kind)
{
    size_t need = (bytes + red_zone + 255) / 256 * 256;
    if (bytes > device_bytes || g_used + need > device_bytes) return nullptr;
    uint8_t *at = g_device + g_used;
    g_used += need;
    g_last =
        g_allocations.insert({(uintptr_t)at, {bytes, kind, false, bytes <= g_most_shadowed}}).first;
    if (bytes <= (64 << 20)) memset(at, 0xff, bytes); /* a NaN in every format; big ones stay 0 */
    return at;
}

bool memory_release(void *address, Kind kind)
{
    auto found = g_allocations.find((uintptr_t)address);
    if (found == g_allocations.end() || found->second.freed) return false;
    if (found->second.kind != kind) return false;
    found->second.freed = true;
    return true;
}

bool memory_known(const void *address, Kind *kind)
{
    uintptr_t start;
    if (!in_device((uintptr_t)address)) return false;
    Allocation *allocation = allocation_at((uintptr_t)address, &start);
    if (!allocation) return false;
    *kind = allocation->kind;
    return true;
}

void memory_access(uintptr_t address, size_t n, Access access, size_t alignment, const Stamp &now,
                   bool by_host)
{
    Kind kind;
    uintptr_t start;
    if (!in_device(address)) {
        if (!by_host) report(Fault::foreign_memory, "%s %zu bytes of host memory", verb(access), n);
        return;
    }
    if (!check_place(address, n, by_host, access, &kind, &start)) return;
    check_alignment(address, alignment, access);
    if (!g_last->second.shadowed) return; /* where check_place found it */
    Shadow *shadow = g_shadow + (address - (uintptr_t)g_device);
    if (access == Access::read && kind == Kind::device)
        for (size_t i = 0; i < n; i++)
            if (!shadow[i].write.op)
                return report(Fault::uninitialised, "reads byte %zu of device memory",
                              (size_t)(address + i - start));
    Clash clash = note_access(shadow, n, access, now);
    if (clash.found) report_clash(clash, access, address - start, now, by_host);
}

void *launch_arguments(size_t bytes)
{
    size_t at = (g_arguments_used + 15) / 16 * 16;
    if (at + bytes > arguments_bytes) {
        fprintf(stderr, "simt: more launches than one begin() holds\n");
        exit(1);
    }
    g_arguments_used = at + bytes;
    return g_arguments + at;
}

bool arguments_hold(uintptr_t address)
{
    return g_arguments && address - (uintptr_t)g_arguments < arguments_bytes;
}

/* ---- shared memory ---- */

void shared_begin(size_t dynamic_bytes)
{
    g_shared_used = shared_red_zone;
    g_arrays.clear();
    g_last_array = nullptr;
    g_dynamic = dynamic_bytes ? add_array(nullptr, dynamic_bytes, 16, shared_limit) : nullptr;
}

void *shared_array(const void *site, size_t bytes, size_t alignment)
{
    for (const SharedArray &array : g_arrays)
        if (array.site == site) return reinterpret_cast<void *>(array.at);
    return add_array(site, bytes, alignment, g_dynamic ? shared_limit : static_limit);
}

void *shared_dynamic(void)
{
    if (!g_dynamic) report(Fault::bad_launch, "no dynamic shared memory was asked for");
    return g_dynamic;
}

bool shared_holds(uintptr_t address)
{
    return address - (uintptr_t)g_shared < shared_window;
}

void shared_access(uintptr_t address, size_t n, Access access, size_t alignment, const Stamp &now)
{
    SharedArray *array = array_at(address);
    if (!array || address + n > array->at + array->bytes)
        report(Fault::shared_bounds, "%s %zu bytes %s", verb(access), n,
               array ? "across the end of an array" : "outside every array");
    check_alignment(address, alignment, access);
    size_t at = address - (uintptr_t)g_shared;
    for (size_t i = at; i < at + n; i++) {
        if (g_shared_state[i] == in_flight)
            report(Fault::copy_in_flight, "%s byte %zu of a shared array", verb(access),
                   i - (array->at - (uintptr_t)g_shared));
        if (access != Access::write && g_shared_state[i] == empty)
            report(Fault::uninitialised, "%s byte %zu of a shared array", verb(access),
                   i - (array->at - (uintptr_t)g_shared));
        if (access != Access::read) g_shared_state[i] = written;
    }
    Clash clash = note_access(g_shared_shadow + at, n, access, now);
    if (clash.found) report_clash(clash, access, address - array->at, now, false);
}

void shared_in_flight(uintptr_t address, size_t n, bool flying, const Stamp &now)
{
    size_t at = address - (uintptr_t)g_shared;
    if (flying) /* as a write: whoever still uses the place races with the copy */
        shared_access(address, n, Access::write, n, now);
    memset(g_shared_state + at, flying ? in_flight : written, n);
    if (!flying) (void)note_access(g_shared_shadow + at, n, Access::write, now);
}
} // namespace simt
