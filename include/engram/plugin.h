/* The plugin interface: a shared object that brings kernels of its own.
 *
 * It exports one function, eng_plugin(), whose result names an array of variants. `engram run
 * --plugin=FILE.so` checks and measures them like the built-in ones; `engram ab` compares the same
 * variants of two such objects. A plugin needs nothing but these headers:
 *
 *     gcc -O3 -shared -fPIC -Iinclude -o mine.so mine.c
 *
 * docs/examples/gather_plugin.c is a whole one. The program refuses an object made for another
 * version: ENG_PLUGIN_ABI counts changes of meaning, the sizes catch changes of layout.
 */
#ifndef ENGRAM_PLUGIN_H
#define ENGRAM_PLUGIN_H

#include <stdint.h>
#include <stdio.h>
#include <engram/kernels.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ENG_PLUGIN_ABI    1
#define ENG_PLUGIN_SYMBOL "eng_plugin"

typedef struct EngPlugin {
    uint32_t abi;                                     /* stays the first field in every version */
    uint32_t kernel_bytes, problem_bytes, args_bytes; /* sizeof of the structs compiled against */
    const char *name;                                 /* one word or file name, for messages */
    /* Ends with NULL. Each has supports(), cost(), run() and a name that no other of its operation
     * has, fit for a sweep: printing characters without " ' , ; ( ) = \ @, and not cpu, cuda, all.
     */
    const EngKernel *const *kernels;
} EngPlugin;

/* What a plugin's result starts with: `EngPlugin p = {ENG_PLUGIN_VERSION, "mine", kernels};` */
#define ENG_PLUGIN_VERSION                                                                         \
    ENG_PLUGIN_ABI, (uint32_t)sizeof(EngKernel), (uint32_t)sizeof(EngProblem),                     \
        (uint32_t)sizeof(EngArgs)

/* Never NULL; the result and all it points to live as long as the object is loaded. */
__attribute__((visibility("default"))) const EngPlugin *eng_plugin(void);
typedef const EngPlugin *EngPluginFn(void);

/* For supports() and run() of a plugin, which has no ENG_FAIL: sets one line of text (err may be
 * NULL) and returns status. */
static inline EngStatus eng_plugin_refuse(EngErr *err, EngStatus status, const char *text)
{
    if (err) {
        err->status = status;
        err->file = "plugin";
        err->line = 0;
        snprintf(err->text, sizeof err->text, "%s", text);
    }
    return status;
}

#ifdef __cplusplus
}
#endif
#endif
