/* One verb per cmd_<verb>.c. */
#ifndef ENG_BENCH_CLI_VERBS_H
#define ENG_BENCH_CLI_VERBS_H

#include "bench/cli/cli.h"

/* Options that several verbs share. */
#define ENG_OPTION_DB                                                                              \
    {                                                                                              \
        .name = "db", .value = "FILE", .def = "out/engram.db", .env = true,                        \
        .help = "results database"                                                                 \
    }
#define ENG_OPTION_DATA                                                                            \
    {                                                                                              \
        .name = "data", .value = "DIR", .def = ENG_SOURCE_DIR "/data/cache", .env = true,          \
        .help = "token streams and tokenizer"                                                      \
    }

extern const EngVerb eng_verb_list, eng_verb_run, eng_verb_status, eng_verb_report, eng_verb_doctor,
    eng_verb_stream, eng_verb_tokmap, eng_verb_rows, eng_verb_export, eng_verb_merge, eng_verb_tune,
    eng_verb_audit, eng_verb_ab, eng_verb_compare, eng_verb_runs, eng_verb_store, eng_verb_trace,
    eng_verb_size, eng_verb_calibrate, eng_verb_train;

#endif
