/* Recordings of measurements; see recording.h. */
#include "sim/planner/recording.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"

#define FORMAT     "engram-recording-1"
#define COLUMNS    "experiment,key,axes,metric,median,lo,hi,n"
#define N_COLUMNS  8
#define MOST_LISTS 10

static const struct {
    const char *experiment;
    const char *axes[MOST_LISTS], *metrics[MOST_LISTS];
} g_recorded[] = {
    {"ladder", {"bytes", "access", "chains", "line", "pages", "threads"}, {"ns_per_load"}},
    {"gather",
     {"corpus", "rows", "row_format", "pages", "threads", "tokens"},
     {"cpu_us", "logical_bytes", "distinct_bytes"}},
    {"stream", {"pass", "store", "threads"}, {"gbps"}},
    {"populate", {"pages", "threads"}, {"wall_gbps"}},
    {"tier", {"store", "io", "depth", "tokens"}, {"wall_us", "batch_rows"}},
    {"project", {"tokens", "threads"}, {"gflops"}},
    {"interference",
     {"gatherers", "victim_tokens"},
     {"slowdown_percent", "gather_slowdown_percent"}},
    {"prefetch",
     {"store", "tokens", "window", "hidden"},
     {"step_us", "step_ready_us", "window_us", "fetch_us", "stall_us"}},
    {"cache", {"corpus", "cache_rows", "stream_tokens"}, {"hit_rate"}},
    {"reuse", {"corpus", "tokens"}, {"distinct_all"}},
};

#define N_RECORDED (sizeof g_recorded / sizeof *g_recorded)

const char *const *eng_recorded_axes(const char *experiment)
{
    for (size_t i = 0; i < N_RECORDED; i++)
        if (!strcmp(g_recorded[i].experiment, experiment)) return g_recorded[i].axes;
    return NULL;
}

const char *const *eng_recorded_metrics(const char *experiment)
{
    for (size_t i = 0; i < N_RECORDED; i++)
        if (!strcmp(g_recorded[i].experiment, experiment)) return g_recorded[i].metrics;
    return NULL;
}

/* ---- axes --------------------------------------------------------------------------------------
 */

/* Where an axis's value begins, NULL: it is not there. */
static const char *axis_at(const char *axes, const char *axis)
{
    size_t n = strlen(axis);
    for (const char *at = axes; *at; at += strcspn(at, " "), at += *at == ' ')
        if (!strncmp(at, axis, n) && at[n] == '=') return at + n + 1;
    return NULL;
}

void eng_recorded_axis(const char *axes, const char *axis, char out[32])
{
    const char *at = axis_at(axes, axis);
    snprintf(out, 32, "%.*s", at ? (int)strcspn(at, " ") : 0, at ? at : "");
}

double eng_recorded_number(const char *axes, const char *axis)
{
    double number;
    char text[32];
    eng_recorded_axis(axes, axis, text);
    return eng_parse_f64(text, &number) ? number : NAN;
}

/* "a=1 b=2": all axes of the experiment, in its order. */
static bool has_axes(const char *experiment, const char *text)
{
    for (const char *const *axis = eng_recorded_axes(experiment); *axis; axis++) {
        size_t n = strlen(*axis);
        if (strncmp(text, *axis, n) || text[n] != '=') return false;
        text += strcspn(text, " ");
        if (axis[1] && *text++ != ' ') return false;
    }
    return !*text;
}

/* ---- values ------------------------------------------------------------------------------------
 */

void eng_recording_free(EngRecording *recording)
{
    eng_free(recording->values);
    *recording = (EngRecording){0};
}

const EngRecordedValue *eng_recording_find(const EngRecording *recording, const char *experiment,
                                           const char *axes, const char *metric)
{
    for (int i = 0; i < recording->n; i++) {
        const EngRecordedValue *v = &recording->values[i];
        if (!strcmp(v->axes, axes) && !strcmp(v->metric, metric) &&
            !strcmp(v->experiment, experiment))
            return v;
    }
    return NULL;
}

EngStatus eng_recording_add(EngRecording *recording, const EngRecordedValue *value, EngErr *err)
{
    if (recording->n == recording->room) {
        int room = recording->room ? 2 * recording->room : 256;
        EngRecordedValue *more;
        EngStatus status =
            eng_alloc_or((void **)&more, (size_t)room, sizeof *more, "a recording", err);
        if (status) return status;
        if (recording->n) memcpy(more, recording->values, (size_t)recording->n * sizeof *more);
        eng_free(recording->values);
        recording->values = more;
        recording->room = room;
    }
    recording->values[recording->n++] = *value;
    return ENG_OK;
}

/* ---- text --------------------------------------------------------------------------------------
 */

typedef struct Reader {
    EngRecording *recording;
    int line;
    bool columns;
    EngErr *err;
} Reader;

#define WRONG(reader, format, ...)                                                                 \
    ENG_FAIL((reader)->err, ENG_BAD_DATA, "%s:%d: " format, (reader)->recording->name,             \
             (reader)->line, __VA_ARGS__)

static EngStatus read_head(Reader *r, const char *text)
{
    EngRecording *recording = r->recording;
    if (sscanf(text, "# date: %16[0-9: -]", recording->date) == 1) return ENG_OK;
    if (sscanf(text, "# machine: %95[^\n]", recording->machine) == 1) return ENG_OK;
    if (sscanf(text, "# load: %lf", &recording->load) == 1) return ENG_OK;
    return WRONG(r, "\"%s\" is none of date, machine and load", text);
}

/* A field that is to be a number; "" is NAN where that is allowed. */
static bool read_number(const char *text, bool none, double *number)
{
    if (!*text) *number = NAN;
    return *text ? eng_parse_f64(text, number) && isfinite(*number) : none;
}

static EngStatus read_value(Reader *r, char *line)
{
    char *fields[N_COLUMNS], *rest = line;
    double n;
    EngRecordedValue v = {0};
    for (int i = 0; i < N_COLUMNS; i++) {
        fields[i] = rest;
        rest += strcspn(rest, ",");
        if ((*rest == ',') != (i + 1 < N_COLUMNS)) return WRONG(r, "has not %d columns", N_COLUMNS);
        *rest++ = 0;
    }
    if (strlen(fields[0]) >= sizeof v.experiment || !eng_recorded_axes(fields[0]))
        return WRONG(r, "nothing is recorded of experiment \"%s\"", fields[0]);
    if (strlen(fields[1]) >= sizeof v.key || strlen(fields[2]) >= sizeof v.axes ||
        !has_axes(fields[0], fields[2]))
        return WRONG(r, "\"%s\" are not the axes of %s", fields[2], fields[0]);
    const char *const *metric = eng_recorded_metrics(fields[0]);
    while (*metric && strcmp(*metric, fields[3])) metric++;
    if (!*metric) return WRONG(r, "no metric \"%s\" is recorded of %s", fields[3], fields[0]);
    snprintf(v.experiment, sizeof v.experiment, "%s", fields[0]);
    snprintf(v.key, sizeof v.key, "%s", fields[1]);
    snprintf(v.axes, sizeof v.axes, "%s", fields[2]);
    snprintf(v.metric, sizeof v.metric, "%s", fields[3]);
    if (!read_number(fields[4], false, &v.median) || !read_number(fields[5], true, &v.lo) ||
        !read_number(fields[6], true, &v.hi) || !read_number(fields[7], false, &n) || n < 1)
        return WRONG(r, "median, lo, hi or n of %s is no number", v.metric);
    v.n = (int)n;
    if (eng_recording_find(r->recording, v.experiment, v.axes, v.metric))
        return WRONG(r, "%s of %s %s is there twice", v.metric, v.experiment, v.axes);
    return eng_recording_add(r->recording, &v, r->err);
}

static EngStatus read_line(Reader *r, char *line)
{
    if (r->line == 1)
        return strcmp(line, "# " FORMAT) ? WRONG(r, "is not a recording (\"# %s\")", FORMAT)
                                         : ENG_OK;
    if (*line == '#') return read_head(r, line);
    if (r->columns) return read_value(r, line);
    r->columns = true;
    return strcmp(line, COLUMNS) ? WRONG(r, "columns are not %s", COLUMNS) : ENG_OK;
}

EngStatus eng_recording_parse(const char *name, const char *text, EngRecording *recording,
                              EngErr *err)
{
    Reader r = {.recording = recording, .err = err};
    EngStatus status = ENG_OK;
    char *copy = eng_strdup(text), *line = copy;
    *recording = (EngRecording){0};
    const char *base = strrchr(name, '/');
    snprintf(recording->name, sizeof recording->name, "%s", base ? base + 1 : name);
    if (!copy) return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory", name);
    while (!status && *line) {
        size_t n = strcspn(line, "\n");
        bool last = !line[n];
        line[n] = 0;
        r.line++;
        status = read_line(&r, line);
        line += last ? n : n + 1;
    }
    if (!status && (!recording->n || !recording->date[0] || !recording->machine[0]))
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: has no values, no date or no machine", name);
    eng_free(copy);
    if (status) eng_recording_free(recording);
    return status;
}

EngStatus eng_recording_open(const char *path, EngRecording *recording, EngErr *err)
{
    char *text;
    size_t n;
    *recording = (EngRecording){0};
    EngStatus status = eng_file_read(path, &text, &n, err);
    if (status) return status;
    if (strlen(text) == n)
        status = eng_recording_parse(path, text, recording, err);
    else
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: not a text file (zero byte at %zu)", path,
                          strlen(text));
    eng_free(text);
    return status;
}

static void print_number(EngStr *out, double value)
{
    if (isnan(value))
        eng_str_add(out, ",");
    else
        eng_str_printf(out, ",%.6g", value);
}

EngStatus eng_recording_print(const EngRecording *recording, EngStr *out, EngErr *err)
{
    eng_str_printf(out, "# " FORMAT "\n# date: %s\n# machine: %s\n# load: %.2f\n" COLUMNS "\n",
                   recording->date, recording->machine, recording->load);
    for (int i = 0; i < recording->n; i++) {
        const EngRecordedValue *v = &recording->values[i];
        eng_str_printf(out, "%s,%s,%s,%s", v->experiment, v->key, v->axes, v->metric);
        print_number(out, v->median);
        print_number(out, v->lo);
        print_number(out, v->hi);
        eng_str_printf(out, ",%d\n", v->n);
    }
    return eng_str_status(out, err);
}
