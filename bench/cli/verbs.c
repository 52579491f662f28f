/* The verbs, in the order of `engram --help`. */
#include "bench/cli/cli.h"

#include <stddef.h>

#include "bench/cli/verbs.h"

const EngVerb *const eng_verbs[] = {
    &eng_verb_list,    &eng_verb_run,    &eng_verb_train,
    &eng_verb_tune,    &eng_verb_audit,  &eng_verb_ab,
    &eng_verb_compare, &eng_verb_runs,   &eng_verb_status,
    &eng_verb_report,  &eng_verb_trace,  &eng_verb_calibrate,
    &eng_verb_size,    &eng_verb_doctor, &eng_verb_stream,
    &eng_verb_store,   &eng_verb_tokmap, &eng_verb_rows,
    &eng_verb_export,  &eng_verb_merge,  NULL,
};
