/* Sizes of the structures that engine.py repeats, so that it can refuse a library it no longer
 * fits. Compiled into the shared object alone. */
#include <stddef.h>
#include <stdint.h>

#include "kernels/address/address.h"
#include "kernels/address/tokmap.h"
#include <engram/kernels.h>

extern const uint64_t eng_peers_layout[];

const uint64_t eng_peers_layout[] = {
    sizeof(EngErr),           sizeof(EngAddressSpec),    sizeof(EngAddress),
    sizeof(EngTokmap),        sizeof(EngTable),          sizeof(EngHashProblem),
    sizeof(EngGatherProblem), sizeof(EngProjectProblem), sizeof(EngGateProblem),
    sizeof(EngProblem),       offsetof(EngProblem, u),   sizeof(EngHashArgs),
    sizeof(EngGatherArgs),    sizeof(EngProjectArgs),    sizeof(EngGateArgs),
    sizeof(EngArgs),          sizeof(EngKernel),         offsetof(EngKernel, run),
};
