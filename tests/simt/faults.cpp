/* The list of faults found and the seeded random numbers of a run; see control.hpp. */
#include "internal.hpp"

#include <cstdarg>
#include <cstdio>
#include <string>
#include <vector>

namespace simt
{
namespace
{
struct Found {
    Fault fault;
    std::string text;
};

std::vector<Found> g_found;
uint64_t g_random = 1;
} // namespace

const char *fault_name(Fault fault)
{
    static const char *const names[] = {
        "none",
        "out of bounds",
        "shared memory out of bounds",
        "use after free",
        "misaligned access",
        "memory of the other side",
        "uninitialised memory",
        "race inside a block",
        "race between blocks",
        "race between streams",
        "race with the host",
        "asynchronous copy in flight",
        "asynchronous copy never awaited",
        "divergent barrier",
        "divergent collective",
        "inactive lane",
        "bad launch",
        "pageable memory in an asynchronous copy",
        "legacy default stream",
        "capture ends with an unjoined stream",
        "wait during capture",
        "captured work depends on work outside",
        "wrong call of a library",
        "stuck",
        "planted fault",
    };
    return names[(int)fault];
}

void report(Fault fault, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    g_found.push_back({fault, std::string(fault_name(fault)) + ": " + where() + ": " + text});
    if (in_kernel()) abandon_launch();
}

int faults(void)
{
    return (int)g_found.size();
}

Fault fault(int i)
{
    return i < faults() ? g_found[(size_t)i].fault : Fault::none;
}

const char *fault_text(int i)
{
    return i < faults() ? g_found[(size_t)i].text.c_str() : "no fault";
}

uint64_t random_bits(void) /* splitmix64 */
{
    uint64_t z = g_random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t random_below(uint64_t n)
{
    return random_bits() % n;
}

void begin(const Options &options)
{
    g_found.clear();
    g_random = options.seed * 2 + 1;
    memory_begin(options.most_shadowed);
    order_begin(options);
    streams_begin();
    objects_begin();
}
} // namespace simt
