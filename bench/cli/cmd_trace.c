/* engram trace: what recorded intervals say. Any file in the shape of an Nsight Systems SQLite
 * export can be read, ours and those of serving engines. One file per word behind the verb. */
#include "bench/cli/cli.h"

#include <string.h>

#include "base/str.h"
#include "bench/cli/trace_parts.h"
#include "bench/cli/verbs.h"

static const struct {
    const char *name;
    EngStatus (*run)(EngCli *cli, const char *file, EngErr *err);
} g_parts[] = {
    {"summary", eng_trace_summary},       {"overlap", eng_trace_overlap},
    {"saturation", eng_trace_saturation}, {"export", eng_trace_export},
    {"import", eng_trace_import},
};
#define N_PARTS (sizeof g_parts / sizeof *g_parts)

static EngStatus run(EngCli *cli, EngErr *err)
{
    const char *word = eng_cli_operand(cli, 0), *file = eng_cli_operand(cli, 1);
    const char *names[N_PARTS + 1];
    for (size_t i = 0; i < N_PARTS; i++) names[i] = g_parts[i].name;
    names[N_PARTS] = "record";
    if (!word)
        return ENG_FAIL(err, ENG_USAGE,
                        "trace: say record, summary, overlap, saturation, export or import");
    if (!strcmp(word, "record")) return eng_trace_record(cli, err);
    if (eng_cli_operands(cli) > 2)
        return ENG_FAIL(err, ENG_USAGE, "trace: unexpected argument '%s'", eng_cli_operand(cli, 2));
    for (size_t i = 0; i < N_PARTS; i++) {
        if (strcmp(word, names[i])) continue;
        if (!file) return ENG_FAIL(err, ENG_USAGE, "trace %s: needs a FILE", word);
        return g_parts[i].run(cli, file, err);
    }
    const char *near = eng_nearest(word, names, N_PARTS + 1);
    return ENG_FAIL(err, ENG_USAGE, "trace: '%s' is not one of its words%s%s%s", word,
                    near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

static const EngOption g_options[] = {
    ENG_OPTION_DB,
    {.name = "format", .value = "FORMAT", .help = "table, csv or json; export: perfetto"},
    {.name = "out",
     .letter = 'o',
     .value = "FILE",
     .help = "of export (default standard output), of record (trace.sqlite)"},
    {.name = "buffer-mib", .value = "N", .def = "256", .help = "record: room for each process"},
    {.name = "overhead", .help = "record: measure what a range costs here, record nothing"},
    {.name = "streams", .help = "summary: streams and threads instead of names, as csv or json"},
    {.name = "slices", .value = "N", .def = "10", .help = "saturation: slices of time"},
    {.name = "hash", .value = "REGEX", .help = "kernels that compute row numbers"},
    {.name = "lookup", .value = "REGEX", .help = "kernels (or copies) that read rows"},
    {.name = "projection", .value = "REGEX", .help = "kernels that use rows"},
    {.name = "gate", .value = "REGEX", .help = "gate kernels"},
    {.name = "collective", .value = "REGEX", .help = "kernels that move rows between devices"},
    {.name = "step", .value = "REGEX", .help = "NVTX ranges that are steps; default: counted"},
    {.name = "layers",
     .value = "LIST",
     .def = "1,14",
     .help = "layers in the order of their lookups in a step"},
    {.name = "tokens", .value = "N", .help = "tokens of a lookup: gives bytes and bandwidth"},
    {.name = "columns", .value = "N", .def = "24", .help = "rows per token and layer"},
    {.name = "row-bytes", .value = "N", .def = "264", .help = "bytes of a row, scales included"},
};

const EngVerb eng_verb_trace = {
    .name = "trace",
    .operands = "record -- COMMAND | summary|overlap|saturation|export|import FILE",
    .summary = "record and read traces: what a fetch hides; import those of engines",
    .details =
        "FILE is a SQLite export of Nsight Systems (schema 3), or a trace of a point of ours.\n"
        "  record      runs COMMAND, writes the NVTX events of its processes; exits as it does\n"
        "  summary     streams and threads with busy time and gaps, then names\n"
        "  overlap     fetch, stall and hidden fraction per step and layer\n"
        "  saturation  share of saturated gates over time, per layer\n"
        "  export      --format=perfetto: JSON for https://ui.perfetto.dev\n"
        "  import      overlap by kernel names, stored beside measured points (kind `imported`)\n"
        "REGEX is a POSIX extended regular expression found anywhere in a kernel's name; defaults\n"
        "know vLLM, SGLang and FreeToken (docs/trace.md). A file that lost records, hides kernels\n"
        "inside graphs or is no export is refused with exit code 6.",
    .options = g_options,
    .n_options = sizeof g_options / sizeof *g_options,
    .max_operands = ENG_CLI_MAX_ARGS,
    .run = run,
};
