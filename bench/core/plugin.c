/* Shared objects with kernels: checking, loading, listing; see plugin.h. */
#include "bench/core/plugin.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "bench/core/sweep.h"

#define MAX_PLUGINS 16
#define MAX_KERNELS 512 /* of one object: more is no array of kernels */

EngStatus eng_plugin_resolve(const char *path, char *out, EngErr *err)
{
    struct stat info;
    char joined[PATH_MAX];
    if (stat(path, &info)) return ENG_FAIL(err, ENG_BAD_DATA, "%s: no such file or folder", path);
    bool folder = S_ISDIR(info.st_mode);
    int n = snprintf(joined, sizeof joined, folder ? "%s/" ENG_PLUGIN_FILE : "%s", path);
    if (n >= (int)sizeof joined)
        return ENG_FAIL(err, ENG_BAD_DATA, "%.80s...: too long a path", path);
    if (realpath(joined, out)) return ENG_OK;
    if (!folder) return ENG_FAIL(err, ENG_BAD_DATA, "%s: %s", path, strerror(errno));
    if (!eng_plugin_can_build(path))
        return ENG_FAIL(
            err, ENG_BAD_DATA,
            "%s: neither " ENG_PLUGIN_FILE " nor CMakeCache.txt in it: not a build folder", path);
    EngStatus status = eng_plugin_build(path, err);
    if (status || realpath(joined, out)) return status;
    return ENG_FAIL(err, ENG_BAD_DATA, "%s: building engram_kernels made no " ENG_PLUGIN_FILE,
                    path);
}

/* ---- digest ------------------------------------------------------------------------------------
 */

static EngStatus bad_elf(const char *path, EngErr *err)
{
    return ENG_FAIL(err, ENG_BAD_DATA, "%s: no shared object of a 64-bit machine (ELF)", path);
}

static EngStatus digest_sections(const char *path, const EngMapping *file, EngDigest *digest,
                                 EngErr *err)
{
    Elf64_Ehdr header;
    const unsigned char *bytes = file->data;
    if (file->bytes < sizeof header) return bad_elf(path, err);
    memcpy(&header, bytes, sizeof header);
    size_t table = (size_t)header.e_shnum * sizeof(Elf64_Shdr);
    bool whole = !memcmp(header.e_ident, ELFMAG, SELFMAG) &&
                 header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_type == ET_DYN &&
                 header.e_shentsize == sizeof(Elf64_Shdr) && header.e_shoff <= file->bytes &&
                 table <= file->bytes - header.e_shoff;
    if (!whole || !table) return bad_elf(path, err);
    for (int i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, bytes + header.e_shoff + (size_t)i * sizeof section, sizeof section);
        if (!(section.sh_flags & SHF_ALLOC) || section.sh_type == SHT_NOTE) continue;
        size_t n = section.sh_type == SHT_NOBITS ? 0 : section.sh_size;
        if (section.sh_offset > file->bytes || n > file->bytes - section.sh_offset)
            return bad_elf(path, err);
        uint64_t about[3] = {section.sh_type, section.sh_flags, section.sh_size};
        EngStatus status = eng_digest_update(digest, about, sizeof about, err);
        if (!status) status = eng_digest_update(digest, bytes + section.sh_offset, n, err);
        if (status) return status;
    }
    return ENG_OK;
}

EngStatus eng_plugin_digest(const char *path, char key[ENG_KEY_HEX], EngErr *err)
{
    EngMapping file = {0};
    EngDigest *digest = NULL;
    char hex[ENG_DIGEST_HEX];
    EngStatus status = eng_file_map(path, &file, err);
    if (status) return status;
    status = eng_digest_create(&digest, err);
    if (!status) {
        status = digest_sections(path, &file, digest, err);
        EngStatus finished = eng_digest_finish(digest, status ? NULL : hex, status ? NULL : err);
        if (!status) status = finished;
    }
    if (!status) snprintf(key, ENG_KEY_HEX, "%.*s", ENG_KEY_HEX - 1, hex);
    eng_file_unmap(&file);
    return status;
}

/* ---- loading -----------------------------------------------------------------------------------
 */

static bool name_valid(const char *name)
{
    return name && eng_word_valid(name) && strlen(name) < ENG_VARIANT_BYTES && !strchr(name, '@') &&
           !eng_variant_is_group(name);
}

static EngStatus check_kernels(const char *path, const EngPlugin *plugin, EngErr *err)
{
    int n = 0;
    if (!plugin->name || !plugin->kernels)
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: a plugin without name or kernels", path);
    for (; plugin->kernels[n]; n++) {
        const EngKernel *k = plugin->kernels[n];
        bool whole = n < MAX_KERNELS && (unsigned)k->op < ENG_OP_COUNT &&
                     (unsigned)k->backend < ENG_BACKEND_COUNT && k->supports && k->cost && k->run;
        if (!whole)
            return ENG_FAIL(
                err, ENG_BAD_DATA,
                "%s: kernel %d lacks a valid operation or backend, supports(), cost() or run()",
                path, n);
        if (!name_valid(k->name))
            return ENG_FAIL(err, ENG_BAD_DATA, "%s: kernel %d has no name that a sweep can say",
                            path, n);
        for (int i = 0; i < n; i++)
            if (plugin->kernels[i]->op == k->op && !strcmp(plugin->kernels[i]->name, k->name))
                return ENG_FAIL(err, ENG_BAD_DATA, "%s: two kernels of %s are called %s", path,
                                eng_op_name(k->op), k->name);
    }
    if (!n) return ENG_FAIL(err, ENG_BAD_DATA, "%s: a plugin without kernels", path);
    return ENG_OK;
}

EngStatus eng_plugin_open(const char *path, const EngPlugin **out, EngErr *err)
{
    const EngPlugin mine = {ENG_PLUGIN_VERSION, "", NULL};
    EngPluginFn *entry = NULL;
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object) return ENG_FAIL(err, ENG_BAD_DATA, "cannot load %s", dlerror());
    void *symbol = dlsym(object, ENG_PLUGIN_SYMBOL);
    memcpy(&entry, &symbol, sizeof entry);
    const EngPlugin *plugin = entry ? entry() : NULL;
    if (!entry) return ENG_FAIL(err, ENG_BAD_DATA, "%s: exports no " ENG_PLUGIN_SYMBOL "()", path);
    if (!plugin) return ENG_FAIL(err, ENG_BAD_DATA, "%s: eng_plugin() gave NULL", path);
    if (plugin->abi != mine.abi)
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: made for plugin version %u, this program has %u",
                        path, (unsigned)plugin->abi, (unsigned)mine.abi);
    if (plugin->kernel_bytes != mine.kernel_bytes || plugin->problem_bytes != mine.problem_bytes ||
        plugin->args_bytes != mine.args_bytes)
        return ENG_FAIL(err, ENG_BAD_DATA,
                        "%s: made for other headers (kernel, problem, arguments of %u, %u, %u "
                        "bytes, here %u, %u, %u): build it again",
                        path, (unsigned)plugin->kernel_bytes, (unsigned)plugin->problem_bytes,
                        (unsigned)plugin->args_bytes, (unsigned)mine.kernel_bytes,
                        (unsigned)mine.problem_bytes, (unsigned)mine.args_bytes);
    *out = plugin;
    return check_kernels(path, plugin, err);
}

/* ---- joining -----------------------------------------------------------------------------------
 */

static struct {
    const EngPlugin *plugin;
    char digest[ENG_KEY_HEX];
} g_added[MAX_PLUGINS];
static int g_n_added;

EngStatus eng_plugin_add(const char *path, EngErr *err)
{
    char file[PATH_MAX], digest[ENG_KEY_HEX];
    const EngPlugin *plugin;
    if (g_n_added == MAX_PLUGINS)
        return ENG_FAIL(err, ENG_USAGE, "%s: more than %d plugins", path, MAX_PLUGINS);
    EngStatus status = eng_plugin_resolve(path, file, err);
    if (!status) status = eng_plugin_digest(file, digest, err);
    if (!status) status = eng_plugin_open(file, &plugin, err);
    if (status) return status;
    status = eng_kernels_add(plugin->kernels, false, err);
    if (status) return eng_err_prefix(err, "%s", path), status;
    g_added[g_n_added].plugin = plugin;
    memcpy(g_added[g_n_added++].digest, digest, sizeof digest);
    return ENG_OK;
}

const char *eng_plugin_digest_of(const EngKernel *kernel)
{
    for (int i = 0; i < g_n_added; i++)
        for (const EngKernel *const *k = g_added[i].plugin->kernels; *k; k++)
            if (*k == kernel) return g_added[i].digest;
    return NULL;
}

/* ---- listing -----------------------------------------------------------------------------------
 */

typedef struct Row {
    EngStatus status; /* of the whole: then only text counts */
    EngKernel kernel; /* its pointers mean nothing outside the child */
    char name[ENG_VARIANT_BYTES];
    char text[ENG_ERR_TEXT_BYTES]; /* summary, or the error */
} Row;

static void put_row(int fd, const Row *row)
{
    if (write(fd, row, sizeof *row) != (ssize_t)sizeof *row) _exit(7);
}

static void list_in_child(const char *path, int fd)
{
    EngErr err = {0};
    const EngPlugin *plugin;
    Row row = {.status = eng_plugin_open(path, &plugin, &err)};
    if (row.status) {
        snprintf(row.text, sizeof row.text, "%s", err.text);
        put_row(fd, &row);
        _exit(0);
    }
    for (const EngKernel *const *k = plugin->kernels; *k; k++) {
        row.kernel = **k;
        snprintf(row.name, sizeof row.name, "%s", (*k)->name);
        snprintf(row.text, sizeof row.text, "%s", (*k)->summary ? (*k)->summary : "");
        put_row(fd, &row);
    }
    _exit(0);
}

static EngKernel *stand_in(EngArena *arena, const Row *row)
{
    EngKernel *k = eng_arena_alloc(arena, sizeof *k);
    if (!k) return NULL;
    *k = (EngKernel){.op = row->kernel.op,
                     .name = eng_arena_strdup(arena, row->name),
                     .backend = row->kernel.backend,
                     .roof = row->kernel.roof,
                     .checked = row->kernel.checked,
                     .summary = eng_arena_strdup(arena, row->text)};
    return k->name && k->summary ? k : NULL;
}

static EngStatus read_rows(const char *path, int fd, EngArena *arena,
                           const EngKernel *const **kernels, EngErr *err)
{
    const EngKernel **list = eng_arena_alloc(arena, (MAX_KERNELS + 1) * sizeof(EngKernel *));
    Row row;
    size_t have = 0;
    if (!list) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the kernels of %s", path);
    for (int n = 0; n < MAX_KERNELS;) {
        ssize_t got = read(fd, (char *)&row + have, sizeof row - have);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        have += (size_t)got;
        if (have < sizeof row) continue;
        have = 0;
        if (row.status) return ENG_FAIL(err, row.status, "%s", row.text);
        list[n] = stand_in(arena, &row);
        if (!list[n++])
            return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for the kernels of %s", path);
    }
    *kernels = list;
    return ENG_OK;
}

EngStatus eng_plugin_list(const char *path, EngArena *arena, const EngKernel *const **kernels,
                          EngErr *err)
{
    int fds[2], how = 0;
    if (pipe(fds)) return ENG_FAIL(err, ENG_IO, "cannot make a pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[0]);
        list_in_child(path, fds[1]);
    }
    close(fds[1]);
    EngStatus status = pid < 0 ? ENG_FAIL(err, ENG_NO_MEMORY, "cannot fork: %s", strerror(errno))
                               : read_rows(path, fds[0], arena, kernels, err);
    close(fds[0]);
    while (pid > 0 && waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    if (!status && WIFSIGNALED(how))
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: crashed while it was loaded: %s", path,
                          strsignal(WTERMSIG(how)));
    return status;
}
