/* engram trace export: a trace for Perfetto. */
#include "bench/cli/trace_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "bench/trace/perfetto.h"

static EngStatus put_stdout(void *context, const char *text, size_t n, EngErr *err)
{
    (void)context;
    if (fwrite(text, 1, n, stdout) == n) return ENG_OK;
    return ENG_FAIL(err, ENG_IO, "standard output: cannot write");
}

static EngStatus put_file(void *context, const char *text, size_t n, EngErr *err)
{
    return eng_writer_put(context, text, n, err);
}

static EngStatus write_file(const EngTrace *trace, const EngOverlap *overlap, const char *path,
                            EngErr *err)
{
    EngWriter writer;
    EngStatus status = eng_writer_open(&writer, path, err);
    if (status) return status;
    status = eng_perfetto_write(trace, overlap, put_file, &writer, err);
    if (!status) return eng_writer_commit(&writer, err);
    eng_writer_close(&writer);
    return status;
}

EngStatus eng_trace_export(EngCli *cli, const char *file, EngErr *err)
{
    const char *format = eng_cli_text(cli, "format"), *out = eng_cli_text(cli, "out");
    EngTrace *trace = NULL;
    EngOverlap overlap = {0};
    EngEngine engine = {0};
    EngTraceEngineArgs args;
    if (!format || strcmp(format, "perfetto"))
        return ENG_FAIL(err, ENG_USAGE, "trace export: --format=perfetto is the one there is");
    if (out && !*out) return ENG_FAIL(err, ENG_USAGE, "--out= names no file");
    EngStatus status = eng_trace_engine_args(cli, &args, err);
    if (!status) status = eng_trace_open(file, &trace, err);
    if (status) return status;
    status = eng_overlap_from_ranges(trace, &overlap, err);
    if (!status && !overlap.n) status = eng_engine_read(trace, &args.options, &engine, err);
    if (status) goto out;
    const EngOverlap *flows = overlap.n ? &overlap : &engine.overlap;
    if (!out || !strcmp(out, "-"))
        status = eng_perfetto_write(trace, flows, put_stdout, NULL, err);
    else
        status = write_file(trace, flows, out, err);
    if (!status && out && strcmp(out, "-"))
        eng_info("trace", "%s: open it at https://ui.perfetto.dev", out);
out:
    eng_overlap_free(&overlap);
    eng_engine_free(&engine);
    eng_trace_close(trace);
    return status;
}
