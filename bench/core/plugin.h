/* Loading shared objects with kernels (engram/plugin.h). */
#ifndef ENG_BENCH_PLUGIN_H
#define ENG_BENCH_PLUGIN_H

#include <limits.h>
#include <stdbool.h>

#include <engram/plugin.h>
#include "base/digest.h"
#include "base/mem.h"

#define ENG_PLUGIN_FILE "libengram_kernels.so" /* what a build folder holds */

/* The object that `path` means: itself, or ENG_PLUGIN_FILE of a folder, which is made there when it
 * is missing from a build folder; as an absolute path into out[PATH_MAX]. ENG_BAD_DATA, naming the
 * path; else as eng_plugin_build. */
EngStatus eng_plugin_resolve(const char *path, char *out, EngErr *err);

/* Brings ENG_PLUGIN_FILE of a build folder up to date with its sources: `cmake --build FOLDER
 * --target engram_kernels`, with its messages on standard error. ENG_BAD_DATA: no build folder, or
 * what is in it does not compile; ENG_IO: no cmake. */
EngStatus eng_plugin_build(const char *folder, EngErr *err);
bool eng_plugin_can_build(const char *folder); /* it is a build folder */

/* Digest of the code and data that get loaded (ELF sections with SHF_ALLOC, notes left out): debug
 * information, comments and build ids change nothing. ENG_BAD_DATA: no 64-bit ELF file. */
EngStatus eng_plugin_digest(const char *path, char digest[ENG_KEY_HEX], EngErr *err);

/* Loads into this process, for good. ENG_BAD_DATA: it cannot be loaded, exports no eng_plugin, was
 * made for another version, or has a kernel that lacks what plugin.h of include/ asks for. */
EngStatus eng_plugin_open(const char *path, const EngPlugin **plugin, EngErr *err);

/* Joins a plugin's kernels to the registry, to be measured under their names; their digest enters
 * point keys (eng_plugin_digest_of). `path` as for eng_plugin_resolve. */
EngStatus eng_plugin_add(const char *path, EngErr *err);
/* Digest of the object a kernel came from; NULL: a built-in one. */
const char *eng_plugin_digest_of(const EngKernel *kernel);

/* Which kernels an object has, found out by a child process, so that this one stays as it is:
 * stand-ins with operation, name, backend, roof, checked and summary in `arena`, and no functions.
 * The array ends with NULL. */
EngStatus eng_plugin_list(const char *path, EngArena *arena, const EngKernel *const **kernels,
                          EngErr *err);

#endif
