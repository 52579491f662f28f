/* One verb per cmd_<verb>.c. */
#ifndef ENG_BENCH_CLI_VERBS_H
#define ENG_BENCH_CLI_VERBS_H

#include "bench/cli/cli.h"

extern const EngVerb eng_verb_list, eng_verb_run, eng_verb_status, eng_verb_report, eng_verb_doctor,
    eng_verb_stream, eng_verb_tokmap, eng_verb_rows;

#endif
