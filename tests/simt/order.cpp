/* Operations, what is ordered before what, and in which order they are carried out.
 *
 * Each operation keeps the set of all that are ordered before it: by its stream, by events, or
 * because the host had waited before it added the operation. Races are judged by these sets, so a
 * missing wait is found whatever the schedule; the schedule turns it into wrong results as well.
 */
#include "runtime.hpp"

#include <map>
#include <memory>
#include <utility>

namespace simt
{
namespace
{
typedef std::vector<uint64_t> Set;

struct Operation {
    std::string name;
    std::vector<uint32_t> after;
    std::vector<uint32_t> members; /* of a joined operation */
    Set before;
    Work work;
    uint32_t priority, correlation;
    bool host, done;
    Costs costs;
    uint64_t start_ns, end_ns; /* on the simulated clock */
};

std::vector<std::unique_ptr<Operation>> g_operations; /* [0] is nobody */
std::vector<uint32_t> g_pending;
std::map<std::pair<uint32_t, uint32_t>, uint32_t> g_joined;
Set g_host_knows; /* what the host has waited for */
uint32_t g_host;  /* its present stretch, 0: no access yet */
Options g_options;
uint64_t g_clock_ns; /* the host's */
uint32_t g_calls;
uint32_t g_all_known = 1; /* the host knows of all before this one */
std::vector<uint32_t> g_activities;

bool has(const Set &set, uint32_t op)
{
    return op / 64 < set.size() && set[op / 64] >> op % 64 & 1;
}

void add(Set *set, uint32_t op)
{
    if (set->size() <= op / 64) set->resize(op / 64 + 1);
    (*set)[op / 64] |= (uint64_t)1 << op % 64;
}

void add_all(Set *set, const Set &other)
{
    if (set->size() < other.size()) set->resize(other.size());
    for (size_t i = 0; i < other.size(); i++) (*set)[i] |= other[i];
}

uint32_t append(Operation operation)
{
    g_operations.push_back(std::make_unique<Operation>(std::move(operation)));
    return (uint32_t)g_operations.size() - 1;
}

bool ready(uint32_t op)
{
    for (uint32_t before : g_operations[op]->after)
        if (!g_operations[before]->done) return false;
    return true;
}

void carry_out(uint32_t op)
{
    for (size_t i = 0; i < g_pending.size(); i++)
        if (g_pending[i] == op) g_pending.erase(g_pending.begin() + (long)i);
    if (g_operations[op]->work) g_operations[op]->work(op);
    g_operations[op]->done = true;
}

/* The next operation to carry out on the way to `target`, which is pending. */
uint32_t choose(uint32_t target)
{
    std::vector<uint32_t> can;
    for (uint32_t op : g_pending) {
        bool needed = op == target || has(g_operations[target]->before, op);
        if (ready(op) && (needed || g_options.policy != Policy::lazy)) can.push_back(op);
    }
    uint32_t best = can.back(); /* lazy: the one that was added last */
    if (g_options.policy == Policy::random) best = can[random_below(can.size())];
    if (g_options.policy == Policy::eager) best = can.front();
    if (g_options.policy == Policy::priority)
        for (uint32_t op : can)
            if (g_operations[op]->priority > g_operations[best]->priority) best = op;
    return best;
}

void run_early(uint32_t added)
{
    if (g_options.policy == Policy::eager) carry_out(added);
    if (g_options.policy != Policy::random) return;
    while (!g_pending.empty() && random_below(4) == 0) carry_out(choose(g_pending.back()));
}
} // namespace

void order_begin(const Options &options)
{
    g_options = options;
    g_operations.clear();
    g_operations.push_back(nullptr);
    g_pending.clear();
    g_joined.clear();
    g_host_knows.clear();
    g_host = 0;
    g_clock_ns = 0;
    g_calls = 0;
    g_all_known = 1;
    g_activities.clear();
}

const Options &options(void)
{
    return g_options;
}

uint32_t random_priority(void)
{
    return (uint32_t)random_bits();
}

bool happens_before(uint32_t before, uint32_t after)
{
    const Operation &first = *g_operations[before];
    for (uint32_t member : first.members)
        if (!has(g_operations[after]->before, member)) return false;
    return !first.members.empty() || has(g_operations[after]->before, before);
}

uint32_t join_operations(uint32_t a, uint32_t b)
{
    uint32_t &joined = g_joined[{a, b}];
    if (joined) return joined;
    Operation both = {};
    for (uint32_t op : {a, b}) {
        const std::vector<uint32_t> &members = g_operations[op]->members;
        if (members.empty()) both.members.push_back(op);
        both.members.insert(both.members.end(), members.begin(), members.end());
        both.host = both.host || g_operations[op]->host;
    }
    both.name = g_operations[a]->name + " and " + g_operations[b]->name;
    both.done = true;
    return joined = append(std::move(both));
}

const char *operation_name(uint32_t op)
{
    return g_operations[op]->name.c_str();
}

bool operation_is_host(uint32_t op)
{
    return g_operations[op]->host;
}

Stamp host_stamp(void)
{
    if (!g_host) {
        Operation host = {};
        host.name = "the host";
        host.before = g_host_knows;
        host.host = host.done = true;
        g_host = append(std::move(host));
        add(&g_host_knows, g_host);
    }
    Stamp stamp = {};
    stamp.op = g_host;
    return stamp;
}

uint32_t add_operation(const std::string &name, const std::vector<uint32_t> &after, Work work,
                       uint32_t priority, const Costs &costs)
{
    Operation operation = {};
    operation.name = name;
    operation.work = std::move(work);
    operation.priority = priority;
    operation.correlation = g_calls;
    operation.before = g_host_knows;
    operation.costs = costs;
    operation.start_ns = g_clock_ns;
    for (uint32_t op : after) {
        if (!op) continue;
        operation.after.push_back(op);
        add(&operation.before, op);
        add_all(&operation.before, g_operations[op]->before);
        if (operation.start_ns < g_operations[op]->end_ns)
            operation.start_ns = g_operations[op]->end_ns;
    }
    operation.end_ns = operation.start_ns + costs.ns;
    g_host = 0;
    uint32_t op = append(std::move(operation));
    if (costs.kind != ActivityKind::none) g_activities.push_back(op);
    g_pending.push_back(op);
    run_early(op);
    return op;
}

void host_calls(void)
{
    g_clock_ns += call_ns;
    g_calls++;
}

uint64_t operation_end(uint32_t op)
{
    return op ? g_operations[op]->end_ns : 0;
}

uint64_t clock_ns(void)
{
    return g_clock_ns;
}

size_t activities(void)
{
    return g_activities.size();
}

Activity activity(size_t i)
{
    const Operation &op = *g_operations[g_activities[i]];
    return {op.costs.kind,  op.name.c_str(), op.start_ns,   op.end_ns,
            op.costs.bytes, op.costs.stream, op.correlation};
}

bool operation_done(uint32_t op)
{
    return op == 0 || g_operations[op]->done;
}

void wait_for(uint32_t op)
{
    if (!op) return;
    while (!g_operations[op]->done) carry_out(choose(op));
    if (g_clock_ns < g_operations[op]->end_ns) g_clock_ns = g_operations[op]->end_ns;
    add(&g_host_knows, op);
    add_all(&g_host_knows, g_operations[op]->before);
    g_host = 0;
}

void wait_for_all(void)
{
    while (!g_pending.empty()) wait_for(g_pending.back());
    for (uint32_t op = g_all_known; op < g_operations.size(); op++) {
        add(&g_host_knows, op);
        if (g_clock_ns < g_operations[op]->end_ns) g_clock_ns = g_operations[op]->end_ns;
    }
    g_all_known = (uint32_t)g_operations.size();
    g_host = 0;
}
} // namespace simt
