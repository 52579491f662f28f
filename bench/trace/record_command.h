/* Recording the NVTX events of any command: the hook library is injected, every process of the
 * command writes a recording of its own, and all of them become one trace file. */
#ifndef ENG_BENCH_TRACE_RECORD_COMMAND_H
#define ENG_BENCH_TRACE_RECORD_COMMAND_H

#include "bench/trace/recording.h"

typedef struct EngRecordOptions {
    const char *out;         /* the trace file; recordings lie beside it until then */
    const char *hook;        /* the hook library, NULL: ENG_NVTX_HOOK, else beside the program */
    int64_t process_bytes;   /* room of each process, 0: 256 MiB */
    const char *const *argv; /* NULL-terminated */
    const char *version;     /* of this program, for the file */
} EngRecordOptions;

typedef struct EngRecordResult {
    EngRecordingCounts counts;
    int processes; /* that made NVTX calls */
    int killed;    /* of them, ended without saying so */
    int exit_code; /* the command's, 128 + signal when killed */
} EngRecordResult;

/* ENG_NOT_FOUND: the command made no NVTX call (no file is written); ENG_USAGE: another tool is
 * injected already, or the command cannot be started; ENG_UNSUPPORTED: built without NVTX. */
EngStatus eng_record_command(const EngRecordOptions *options, EngRecordResult *result, EngErr *err);

#endif
