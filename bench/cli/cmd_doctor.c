/* engram doctor: this machine and its libraries, what is missing and what that costs. */
#include <jansson.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "bench/cli/verbs.h"
#include "bench/core/db_knee.h"
#include "bench/core/evidence.h"
#include "bench/core/machine.h"
#include "bench/core/stream.h"
#include "bench/trace/cupti.h"
#include "bench/trace/hook.h"
#include "kernels/address/preset.h"
#include "kernels/address/tokmap.h"
#include "kernels/store/memory.h"
#include "kernels/cuda/queue.h"

/* "ok" or "missing", what, and for missing things what that costs. */
static int check(bool ok, const char *what, const char *cost)
{
    printf("  %-8s %s%s%s\n", ok ? "ok" : "missing", what, ok ? "" : ": ", ok ? "" : cost);
    return ok ? 0 : 1;
}

static bool line_says(const char *path, const char *word)
{
    char line[256] = "";
    FILE *file = fopen(path, "re");
    if (!file) return false;
    bool found = fgets(line, sizeof line, file) && strstr(line, word);
    fclose(file);
    return found;
}

static bool on_path(const char *program)
{
    char path[4096];
    const char *dirs = getenv("PATH");
    for (const char *p = dirs; p && *p;) {
        size_t n = strcspn(p, ":");
        snprintf(path, sizeof path, "%.*s/%s", (int)n, p, program);
        if (!access(path, X_OK)) return true;
        p += n + (p[n] == ':');
    }
    return false;
}

/* The cache as the ladder of an earlier run saw it: others may share what the system reports. */
static void print_knee(const char *db_path, const char *machine_id)
{
    EngDb *db = NULL;
    EngCacheKnee knee;
    EngStatus status = eng_db_open(db_path, ENG_DB_READ, &db, NULL);
    if (!status) status = eng_db_cache_knee(db, machine_id, &knee, NULL);
    eng_db_close(db);
    if (status)
        printf("  knee of the latency ladder: not measured (sweeps/quickstart.sweep has one)\n");
    else
        printf("  knee of the latency ladder: %.3g MiB; a load takes %.3g ns below, %.3g ns far "
               "beyond (%s pages, %d working sets)\n",
               (double)knee.bytes / (1 << 20), knee.near_ns, knee.far_ns, knee.pages, knee.points);
}

static void print_machine(const EngMachine *machine, const EngBuild *build, const char *db)
{
    printf("machine  %s\n", machine->cpu_model);
    printf("  id %.8s, %d processors, %.1f GiB of memory (%.1f free), last-level cache %.0f MiB "
           "(operating system)\n",
           machine->machine_id, machine->cores, (double)machine->memory_bytes / (1 << 30),
           (double)eng_memory_available_bytes() / (1 << 30),
           (double)machine->cache_bytes / (1 << 20));
    print_knee(db, machine->machine_id);
    json_t *json = json_loads(machine->description_json, 0, NULL), *word;
    size_t i;
    printf("  topology: %lld cores, %lld NUMA nodes\n",
           (long long)json_integer_value(json_object_get(json, "cores")),
           (long long)json_integer_value(json_object_get(json, "numa_nodes")));
    printf("  instruction sets:");
    json_array_foreach(json_object_get(json, "instruction_sets"), i, word)
        printf(" %s", json_string_value(word));
    json_decref(json);
    printf("\n\nbuild    engram %s, %s, %s\n", build->version, build->compiler, build->flags);
    printf("  libraries %s\n\n", build->libraries_json);
}

static int check_cpu(const EngMachine *machine)
{
    int missing = 0;
    printf("speed\n");
    missing += check(strstr(machine->description_json, "avx512_bf16") != NULL, "AVX-512 with bf16",
                     "oneDNN products run in f32, about half as fast, with twice the weight bytes");
    missing += check(!line_says("/sys/kernel/mm/transparent_hugepage/enabled", "[never]"),
                     "transparent huge pages", "random rows pay a page walk each (4 KiB pages)");
    missing += check(line_says("/proc/sys/kernel/perf_event_paranoid", "-1") ||
                         line_says("/proc/sys/kernel/perf_event_paranoid", "0") ||
                         line_says("/proc/sys/kernel/perf_event_paranoid", "1"),
                     "hardware counters (perf_event_paranoid <= 1)",
                     "bytes and misses are modelled, not counted");
    EngCudaInfo gpu;
    EngErr no_gpu = {0};
    if (eng_cuda_info(&gpu, &no_gpu))
        missing += check(false, "an NVIDIA GPU", no_gpu.text);
    else
        printf("  ok       %s: %d multiprocessors, L2 of %.0f MiB, %.0f GiB\n", gpu.name,
               gpu.processors, (double)gpu.l2_bytes / 0x1p20, (double)gpu.memory_bytes / 0x1p30);
    const char *refusal = eng_hook_refusal();
    missing += check(!refusal, "ranges in traces (NVTX)", refusal ? refusal : "");
    char text[600];
    EngErr err = {0};
    EngStatus status = eng_cupti_probe(text, sizeof text, &err);
    if (!status) printf("  ok       traces of GPU work: CUPTI %s\n", text);
    return missing + (status ? check(false, "traces of GPU work", err.text) : 0);
}

/* What each worker lifetime can note about its surroundings. */
static int check_evidence(void)
{
    EngEvidence now;
    unsigned cpu, node;
    int missing = 0;
    eng_evidence_read(&now);
    printf("\nevidence stored with numbers\n");
    missing += check(!isnan(now.mhz), "clock frequency", "a slower clock looks like slower code");
    missing += check(now.throttles >= 0, "thermal throttling",
                     "the kernel does not show it: a hot processor looks like slower code");
    missing += check(now.steal_ticks >= 0, "stolen time",
                     "what other guests take of wall time is not told");
    missing += check(!getcpu(&cpu, &node), "NUMA node of a worker", "remote memory is not told");
    return missing;
}

static int check_tokmap(const char *data_dir)
{
    char path[4096];
    EngPreset preset;
    EngTokmap map = {0};
    EngErr err = {0};
    snprintf(path, sizeof path, "%s/tokenizer.json", data_dir);
    EngStatus status = eng_preset_find("v41-flash", &preset, &err);
    if (!status)
        status = eng_tokmap_load_checked(path, preset.tokmap_digest, preset.shared_ids,
                                         preset.vocab_ids, &map, &err);
    eng_tokmap_free(&map);
    if (status)
        printf("  missing  token map: %s\n", err.text);
    else
        printf("  ok       token map of v41-flash (digest matches)\n");
    return status != ENG_OK;
}

static int check_data(const char *data_dir)
{
    int missing = 0;
    printf("\ndata     %s\n", data_dir);
    missing += check_tokmap(data_dir);
    static const char *const corpora[] = {"prose", "docs", "code", "multilingual", "filler", NULL};
    for (const char *const *corpus = corpora; *corpus; corpus++) {
        EngStream stream = {0};
        EngErr err = {0};
        EngStatus status = eng_stream_find(data_dir, *corpus, &stream, &err);
        if (status)
            printf("  missing  corpus %s: points use the synthetic stream (scripts/fetch_data gets "
                   "text)\n",
                   *corpus);
        else
            printf("  ok       corpus %s, %lld tokens\n", *corpus, (long long)stream.n_tokens);
        missing += status != ENG_OK;
        eng_stream_close(&stream);
    }
    return missing;
}

static int check_tools(const char *db)
{
    struct statvfs disk;
    int missing = 0;
    printf("\ntools\n");
    missing += check(on_path("gnuplot"), "gnuplot", "`engram report` cannot draw");
    missing += check(on_path("sqlite3"), "sqlite3", "databases can only be read through engram");
    if (!statvfs(".", &disk)) {
        double gib = (double)disk.f_bavail * (double)disk.f_frsize / (1 << 30);
        printf("  %-8s %.1f GiB of disk free here\n", gib > 1 ? "ok" : "low", gib);
    }
    printf("  %-8s %s\n", eng_file_exists(db) ? "ok" : "none yet", db);
    return missing;
}

static EngStatus run(EngCli *cli, EngErr *err)
{
    EngMachine machine = {0};
    EngBuild build = {0};
    int missing = 0;
    EngStatus status = eng_machine_describe(&machine, err);
    if (!status) status = eng_build_describe(&build, err);
    if (!status) {
        print_machine(&machine, &build, eng_cli_text(cli, "db"));
        missing += check_cpu(&machine);
        missing += check_evidence();
        missing += check_data(eng_cli_text(cli, "data"));
        missing += check_tools(eng_cli_text(cli, "db"));
        if (missing)
            printf("\n%d things are missing; each line says what that costs.\n", missing);
        else
            printf("\nNothing is missing.\n");
    }
    eng_build_free(&build);
    eng_machine_free(&machine);
    return status;
}

static const EngOption g_options[] = {
    ENG_OPTION_DATA,
    ENG_OPTION_DB,
};

const EngVerb eng_verb_doctor = {
    .name = "doctor",
    .operands = "",
    .summary = "this machine, libraries and data: what is missing and what that costs",
    .options = g_options,
    .n_options = 2,
    .max_operands = 0,
    .run = run,
};
