/* The library's own kernels as a plugin: part of libengram_kernels.so alone, which `engram ab`
 * compares with another build of it. */
#include <engram/plugin.h>

#include "kernels/cpu/cpu.h"

const EngPlugin *eng_plugin(void)
{
    static const EngPlugin plugin = {ENG_PLUGIN_VERSION, "engram", eng_cpu_kernels};
    return &plugin;
}
