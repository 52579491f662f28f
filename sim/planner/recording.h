/* Recordings: medians of one occasion's measurements as a small text file, kept with the sources so
 * that models can be held against machines and days that are not at hand. A file is CSV below a few
 * "# name: value" lines:
 *
 *     # engram-recording-1
 *     # date: 2026-11-30 02:21
 *     # machine: AMD EPYC 9B45, 2 processors
 *     # load: 0.41
 *     experiment,key,axes,metric,median,lo,hi,n
 *     tier,1f0c2a9b,store=uring io=direct depth=8 tokens=16,wall_us,912,905,921,11
 *
 * Axes are those that models read, always all of them and in one order (eng_recorded_axes), so a
 * point is found by its text. key: first characters of its point key. Counts have lo = hi = median.
 */
#ifndef ENG_SIM_PLANNER_RECORDING_H
#define ENG_SIM_PLANNER_RECORDING_H

#include <stdbool.h>
#include <engram/status.h>

#include "base/str.h"

#define ENG_RECORDED_KEY 9 /* with the terminating zero */

typedef struct EngRecordedValue {
    char experiment[16], key[ENG_RECORDED_KEY], axes[160], metric[32];
    double median, lo, hi; /* 95 % interval; NAN: too few samples for one */
    int n;
} EngRecordedValue;

typedef struct EngRecording {
    char name[64];              /* of the file */
    char date[17], machine[96]; /* date: YYYY-MM-DD hh:mm, UTC */
    double load;                /* of the machine when it began */
    EngRecordedValue *values;
    int n, room;
} EngRecording;

/* What is recorded of an experiment: axes and metrics, NULL-terminated; NULL: nothing. */
const char *const *eng_recorded_axes(const char *experiment);
const char *const *eng_recorded_metrics(const char *experiment);

/* ENG_BAD_DATA names file, line and what is wrong: other columns, numbers that are none, unknown
 * experiments or metrics, axes that are not the experiment's, a value recorded twice. Free with
 * eng_recording_free. */
EngStatus eng_recording_parse(const char *name, const char *text, EngRecording *recording,
                              EngErr *err);
EngStatus eng_recording_open(const char *path, EngRecording *recording, EngErr *err);
void eng_recording_free(EngRecording *recording); /* accepts zeros */
EngStatus eng_recording_add(EngRecording *recording, const EngRecordedValue *value, EngErr *err);
EngStatus eng_recording_print(const EngRecording *recording, EngStr *out, EngErr *err);

/* NULL: not recorded. axes: the whole text. */
const EngRecordedValue *eng_recording_find(const EngRecording *recording, const char *experiment,
                                           const char *axes, const char *metric);
/* The text of one axis in out, "" when there is none. */
void eng_recorded_axis(const char *axes, const char *axis, char out[32]);
/* Its number; NAN: none. */
double eng_recorded_number(const char *axes, const char *axis);

#endif
