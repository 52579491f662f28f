/* What the program has made of the runtime and the library and not destroyed: that a test leaves
 * nothing behind is asked by left_over().
 */
#include "runtime.hpp"

#include <map>
#include <string>

namespace simt
{
namespace
{
const char *const names[] = {"stream",           "event",          "graph",
                             "executable graph", "library handle", "library description"};
const int kinds = sizeof names / sizeof *names;

struct Existing {
    Object kind;
    bool before; /* the last begin() */
};

std::map<const void *, Existing> g_existing;
std::string g_text;

void add_text(long n, const char *name)
{
    if (!n) return;
    g_text += (g_text.empty() ? "" : ", ") + std::to_string(n) + " " + name + (n > 1 ? "s" : "");
}
} // namespace

void objects_begin(void)
{
    for (auto &object : g_existing) object.second.before = true;
}

void made(Object kind, const void *at)
{
    g_existing[at] = {kind, false};
}

bool destroyed(Object kind, const void *at)
{
    auto found = g_existing.find(at);
    if (found == g_existing.end() || found->second.kind != kind) {
        report(Fault::use_after_free, "destroys a %s that does not exist", names[(int)kind]);
        return false;
    }
    g_existing.erase(found);
    return true;
}

const char *left_over(void)
{
    long n[kinds] = {0};
    for (const auto &object : g_existing) n[(int)object.second.kind] += !object.second.before;
    g_text.clear();
    for (int kind = 0; kind < kinds; kind++) add_text(n[kind], names[kind]);
    add_text(live_allocations(Kind::device), "device allocation");
    add_text(live_allocations(Kind::pinned), "pinned allocation");
    return g_text.empty() ? nullptr : g_text.c_str();
}
} // namespace simt
