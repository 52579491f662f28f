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

/* A graph node before it becomes an operation. */
struct Node {
    std::string name;
    Work work;
    std::vector<uint32_t> after; /* nodes of the same graph */
};

/* Adds an operation that may run when `after` (0: nothing) are done; may run others at once. */
uint32_t add_operation(const std::string &name, const std::vector<uint32_t> &after, Work work,
                       uint32_t priority);
bool operation_done(uint32_t op);
/* The host waits for one operation, or for all; lets others run as the policy has it. */
void wait_for(uint32_t op);
void wait_for_all(void);

uint32_t random_priority(void);
const Options &options(void);

/* Puts work into a stream, or into the graph that the stream is captured into. */
cudaError_t put(cudaStream_t stream, const std::string &name, Work work);
} // namespace simt

#endif
