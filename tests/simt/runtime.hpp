/* Operations on streams and the order between them, for the files that make the CUDA runtime. */
#ifndef ENG_TESTS_SIMT_RUNTIME_H
#define ENG_TESTS_SIMT_RUNTIME_H

#include "internal.hpp"

#include <functional>
#include <string>
#include <vector>

namespace simt
{
typedef std::function<void(uint32_t op)> Work;

/* What an operation would be in a trace, and how long the simulated clock takes it to run. */
struct Costs {
    ActivityKind kind = ActivityKind::none;
    uint64_t ns = 0, bytes = 0;
    uint32_t stream = 0;
};

/* A graph node before it becomes an operation. */
struct Node {
    std::string name;
    Work work;
    std::vector<uint32_t> after; /* nodes of the same graph */
    Costs costs;
    cudaEvent_t stamp; /* recorded when the node's place in the graph is reached, or NULL */
};

/* Adds an operation that may run when `after` (0: nothing) are done; may run others at once. */
uint32_t add_operation(const std::string &name, const std::vector<uint32_t> &after, Work work,
                       uint32_t priority, const Costs &costs = {});
void host_calls(void); /* the simulated clock goes on by one call of the host */
/* End on the simulated clock. */
uint64_t operation_end(uint32_t op);
bool operation_done(uint32_t op);
/* The host waits for one operation, or for all; lets others run as the policy has it. */
void wait_for(uint32_t op);
void wait_for_all(void);

/* ---- objects.cpp ---- */

enum class Object { stream, event, graph, executable, handle, description };
void made(Object kind, const void *at);
/* false, and a fault: there is no such object. */
bool destroyed(Object kind, const void *at);

uint32_t random_priority(void);
const Options &options(void);

/* Puts work into a stream, or into the graph that the stream is captured into. */
cudaError_t put(cudaStream_t stream, const std::string &name, Work work, Costs costs = {});
} // namespace simt

#endif
