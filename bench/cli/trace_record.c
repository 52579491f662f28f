/* engram trace record: NVTX events of any command into a trace file. */
#include "bench/cli/trace_parts.h"

#include <stdio.h>

#include "base/log.h"
#include "bench/trace/overhead.h"
#include "bench/trace/record_command.h"

#define DEFAULT_FILE "trace.sqlite"

static EngStatus print_overhead(EngErr *err)
{
    EngTraceOverhead o;
    EngStatus status = eng_trace_overhead(&o, err);
    if (status) return status;
    printf("one range (push and pop), median of %d rounds of %d:\n"
           "  nobody listens  %6.1f ns\n"
           "  hook records    %6.1f ns, of which two clock reads %.1f ns\n",
           o.rounds, o.ranges, o.off_ns, o.hook_ns, 2 * o.clock_ns);
    return ENG_OK;
}

EngStatus eng_trace_record(EngCli *cli, EngErr *err)
{
    const char *argv[ENG_CLI_MAX_ARGS + 1] = {NULL};
    int64_t mib = 0;
    EngRecordResult result;
    if (eng_cli_flag(cli, "overhead")) return print_overhead(err);
    for (int i = 1; i < eng_cli_operands(cli); i++) argv[i - 1] = eng_cli_operand(cli, i);
    if (!argv[0])
        return ENG_FAIL(err, ENG_USAGE, "trace record: name a command: engram trace record -- CMD");
    EngStatus status = eng_cli_int(cli, "buffer-mib", 1, 16384, &mib, err);
    if (status) return status;
    const char *out = eng_cli_text(cli, "out");
    if (out && !*out) return ENG_FAIL(err, ENG_USAGE, "--out= names no file");
    const EngRecordOptions options = {.out = out ? out : DEFAULT_FILE,
                                      .process_bytes = mib << 20,
                                      .argv = argv,
                                      .version = ENG_VERSION};
    status = eng_record_command(&options, &result, err);
    if (status == ENG_NOT_FOUND &&
        result.exit_code) { /* why there is nothing is the command's to say */
        eng_warn("trace", "%s", err->text);
        eng_cli_exit_with(cli, result.exit_code);
        return ENG_OK;
    }
    if (status) return status;
    eng_info("trace", "%s: %lld ranges and %lld marks of %lld threads in %d processes", options.out,
             (long long)result.counts.ranges, (long long)result.counts.marks,
             (long long)result.counts.threads, result.processes);
    if (result.killed)
        eng_warn("trace", "%d of the processes were killed: ranges open then have no end",
                 result.killed);
    if (result.counts.dropped)
        eng_warn("trace", "%lld events were dropped: --buffer-mib=%lld was too small",
                 (long long)result.counts.dropped, (long long)mib);
    if (result.exit_code) eng_cli_exit_with(cli, result.exit_code);
    return ENG_OK;
}
