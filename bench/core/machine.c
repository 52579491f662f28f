/* Machine, build and evidence; see machine.h. Topology through hwloc, the rest from /proc and /sys.
 */
#include "bench/core/machine.h"

#include <dirent.h>
#include <hwloc.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "bench/core/objects.h"
#include "bench/core/plugin.h"
#include "kernels/cpu/libraries.h"
#include "kernels/cuda/queue.h"

/* First "key : value" line of a /proc file; false when there is none. */
static bool read_proc(const char *path, const char *key, char *value, size_t size)
{
    char line[4096];
    bool found = false;
    FILE *file = fopen(path, "re");
    if (!file) return false;
    while (!found && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (!colon) continue;
        *colon = 0;
        if (strcmp(eng_trim(line), key)) continue;
        snprintf(value, size, "%s", eng_trim(colon + 1));
        found = true;
    }
    fclose(file);
    return found;
}

static void read_first_line(const char *path, char *value, size_t size)
{
    FILE *file = fopen(path, "re");
    value[0] = 0;
    if (!file) return;
    if (fgets(value, (int)size, file)) {
        char *kept = eng_trim(value);
        memmove(value, kept, strlen(kept) + 1);
    }
    fclose(file);
}

/* Memory that is plugged in, from the kernel's list of blocks: what a hypervisor's balloon takes
 * for a while is missing from every other figure, and would make the same machine another one.
 * `fallback` without that list. */
static int64_t plugged_memory_bytes(int64_t fallback)
{
    const char *const folder = "/sys/devices/system/memory";
    char path[512], text[64];
    snprintf(path, sizeof path, "%s/block_size_bytes", folder);
    read_first_line(path, text, sizeof text);
    int64_t block_bytes = strtoll(text, NULL, 16), online = 0;
    DIR *blocks = opendir(folder);
    if (!blocks) return fallback;
    for (struct dirent *entry; (entry = readdir(blocks));) {
        if (strncmp(entry->d_name, "memory", 6)) continue;
        snprintf(path, sizeof path, "%s/%s/state", folder, entry->d_name);
        read_first_line(path, text, sizeof text);
        online += !strcmp(text, "online");
    }
    closedir(blocks);
    return online && block_bytes > 0 ? online * block_bytes : fallback;
}

/* Instruction sets that decide which kernels run. */
static json_t *instruction_sets(void)
{
    static const char *const wanted[] = {"avx2",        "fma",         "f16c",        "avx512f",
                                         "avx512bw",    "avx512vl",    "avx512_vbmi", "avx512vbmi",
                                         "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16",
                                         "avx_vnni",    "gfni"};
    char flags[8192];
    json_t *list = json_array();
    if (!read_proc("/proc/cpuinfo", "flags", flags, sizeof flags)) return list;
    for (char *save, *word = strtok_r(flags, " ", &save); word; word = strtok_r(NULL, " ", &save))
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
            if (!strcmp(word, wanted[i])) json_array_append_new(list, json_string(word));
    return list;
}

static json_t *caches(hwloc_topology_t topology, int64_t *last_level_bytes)
{
    static const hwloc_obj_type_t types[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE,
                                             HWLOC_OBJ_L3CACHE};
    json_t *list = json_array();
    for (int level = 1; level <= 3; level++) {
        int n = hwloc_get_nbobjs_by_type(topology, types[level - 1]);
        if (n <= 0) continue;
        hwloc_obj_t cache = hwloc_get_obj_by_type(topology, types[level - 1], 0);
        *last_level_bytes = (int64_t)cache->attr->cache.size;
        json_array_append_new(list, json_pack("{s:i, s:i, s:I}", "level", level, "count", n,
                                              "bytes", (json_int_t)cache->attr->cache.size));
    }
    return list;
}

static EngStatus dump_json(json_t *json, char **text, EngErr *err)
{
    char *dumped = json ? json_dumps(json, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    *text = dumped ? eng_strdup(dumped) : NULL;
    free(dumped);
    json_decref(json);
    return *text ? ENG_OK : ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a description");
}

/* A machine without one has no such member, and the id that it always had. */
static void describe_gpu(EngMachine *machine, json_t *json)
{
    EngCudaInfo gpu;
    if (eng_cuda_info(&gpu, NULL)) return;
    snprintf(machine->gpu, sizeof machine->gpu, "%s", gpu.name);
    json_object_set_new(json, "gpu",
                        json_pack("{s:s, s:i, s:i, s:i, s:I, s:I}", "name", gpu.name,
                                  "multiprocessors", gpu.processors, "major", gpu.major, "minor",
                                  gpu.minor, "l2_bytes", (json_int_t)gpu.l2_bytes, "memory_gib",
                                  (json_int_t)((gpu.memory_bytes + (1 << 29)) >> 30)));
}

EngStatus eng_machine_describe(EngMachine *machine, EngErr *err)
{
    hwloc_topology_t topology;
    *machine = (EngMachine){0};
    if (!read_proc("/proc/cpuinfo", "model name", machine->cpu_model, sizeof machine->cpu_model))
        snprintf(machine->cpu_model, sizeof machine->cpu_model, "unknown");
    if (hwloc_topology_init(&topology)) return ENG_FAIL(err, ENG_NO_MEMORY, "hwloc: no topology");
    if (hwloc_topology_load(topology)) {
        hwloc_topology_destroy(topology);
        return ENG_FAIL(err, ENG_INTERNAL, "hwloc: cannot read the machine's topology");
    }
    machine->cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    hwloc_obj_t root = hwloc_get_root_obj(topology);
    machine->memory_bytes = plugged_memory_bytes((int64_t)root->total_memory);
    int nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
    int cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    json_t *json = json_pack("{s:s, s:i, s:i, s:i, s:I}", "cpu_model", machine->cpu_model,
                             "processors", machine->cores, "cores", cores, "numa_nodes", nodes,
                             "memory_gib", (json_int_t)((machine->memory_bytes + (1 << 29)) >> 30));
    json_object_set_new(json, "caches", caches(topology, &machine->cache_bytes));
    json_object_set_new(json, "instruction_sets", instruction_sets());
    describe_gpu(machine, json);
    hwloc_topology_destroy(topology);
    EngStatus status = dump_json(json, &machine->description_json, err);
    return status ? status : eng_key_of(machine->description_json, machine->machine_id, err);
}

void eng_machine_free(EngMachine *machine)
{
    eng_free(machine->description_json);
    machine->description_json = NULL;
}

/* ---- build -------------------------------------------------------------------------------------
 */

EngStatus eng_build_describe(EngBuild *build, EngErr *err)
{
    char onednn[128], all[ENG_KEY_HEX];
    *build = (EngBuild){.version = ENG_VERSION,
                        .compiler = ENG_COMPILER,
                        .flags = ENG_FLAGS,
                        .commit = eng_objects_commit};
    eng_cpu_onednn_version(onednn, sizeof onednn);
    EngStatus status = eng_variant_digest(NULL, NULL, all, err);
    if (status) return status;
    status = dump_json(json_pack("{s:s, s:s}", "onednn", onednn, "kernels", all),
                       &build->libraries_json, err);
    if (status) return status;
    EngStr text = {0};
    eng_str_printf(&text, "%s\n%s\n%s\n%s\n%s", build->version, build->compiler, build->flags,
                   build->commit, build->libraries_json);
    status = eng_str_status(&text, err);
    if (!status) status = eng_key_of(text.text, build->build_id, err);
    eng_str_free(&text);
    return status;
}

void eng_build_free(EngBuild *build)
{
    eng_free(build->libraries_json);
    build->libraries_json = NULL;
}

/* Lists of kernels and look-ups: what they hold is not what a variant runs. */
static bool is_list(const char *object)
{
    static const char *const lists[] = {"cpu.c.o", "registry.c.o", "libraries.c.o", "plugin.c.o"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (!strcmp(object, lists[i])) return true;
    return false;
}

/* Objects are named after the operation they serve; those that are not, serve all. A look-up is
 * made of gathers and products. */
static bool serves(const char *object, EngOp op)
{
    bool any = false;
    for (int i = 0; i < ENG_OP_COUNT; i++) {
        const char *name = eng_op_name((EngOp)i);
        if (strncmp(object, name, strlen(name))) continue;
        if (i == (int)op) return true;
        if (op == ENG_OP_LOOKUP && (i == ENG_OP_GATHER || i == ENG_OP_PROJECT)) return true;
        any = true;
    }
    return !any && !is_list(object);
}

static void add_experiment(EngStr *text, const char *experiment)
{
    char object[64];
    snprintf(object, sizeof object, "%s.c.o", experiment);
    for (const EngObject *o = eng_objects; o->name; o++)
        if (o->part == ENG_OBJECT_EXPERIMENT_SHARED ||
            (o->part == ENG_OBJECT_EXPERIMENT && !strcmp(o->name, object)))
            eng_str_printf(text, "%s %s\n", o->name, o->sha256);
}

static EngStatus take_key(EngStr *text, char digest[ENG_KEY_HEX], EngErr *err)
{
    EngStatus status = eng_str_status(text, err);
    if (!status) status = eng_key_of(text->text, digest, err);
    eng_str_free(text);
    return status;
}

EngStatus eng_experiment_digest(const char *experiment, char digest[ENG_KEY_HEX], EngErr *err)
{
    EngStr text = {0};
    eng_str_printf(&text, "%s\n%s\n", ENG_COMPILER, ENG_FLAGS);
    add_experiment(&text, experiment);
    return take_key(&text, digest, err);
}

EngStatus eng_variant_digest(const EngKernel *kernel, const char *experiment,
                             char digest[ENG_KEY_HEX], EngErr *err)
{
    char onednn[128];
    EngStr text = {0};
    const char *plugin = kernel ? eng_plugin_digest_of(kernel) : NULL;
    eng_cpu_onednn_version(onednn, sizeof onednn);
    eng_str_printf(&text, "%s\n%s\n%s\n", ENG_COMPILER, ENG_FLAGS, onednn);
    if (plugin) eng_str_printf(&text, "plugin %s\n", plugin);
    bool device = !kernel || kernel->backend == ENG_CUDA;
    for (const EngObject *o = eng_objects; o->name && !plugin; o++)
        if ((o->part == ENG_OBJECT_KERNEL || (o->part == ENG_OBJECT_DEVICE && device)) &&
            (!kernel || serves(o->name, kernel->op)))
            eng_str_printf(&text, "%s %s\n", o->name, o->sha256);
    if (experiment) add_experiment(&text, experiment);
    return take_key(&text, digest, err);
}

/* ---- evidence ----------------------------------------------------------------------------------
 */

EngStatus eng_environment_json(char **json, EngErr *err)
{
    struct utsname names;
    char load[128], thp[128], governor[64], host[128] = "";
    *json = NULL;
    if (uname(&names)) return ENG_FAIL(err, ENG_INTERNAL, "uname failed");
    gethostname(host, sizeof host - 1);
    read_first_line("/proc/loadavg", load, sizeof load);
    read_first_line("/sys/kernel/mm/transparent_hugepage/enabled", thp, sizeof thp);
    read_first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor,
                    sizeof governor);
    return dump_json(json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "host", host, "kernel",
                               names.release, "load", load, "transparent_hugepages", thp,
                               "governor", governor[0] ? governor : "unknown", "omp_wait_policy",
                               getenv("OMP_WAIT_POLICY") ? getenv("OMP_WAIT_POLICY") : ""),
                     json, err);
}
