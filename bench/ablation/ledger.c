/* The CSV of training runs; see ledger.h. */
#include "bench/ablation/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "bench/core/rows_text.h"

enum { TEXTS_BEFORE = 4, TEXTS_AFTER = 6, COLUMNS = TEXTS_BEFORE + ENG_TM_COUNT + TEXTS_AFTER };

static const char *const g_before[TEXTS_BEFORE] = {"key", "axes", "outcome", "reason"};
static const char *const g_after[TEXTS_AFTER] = {"finished_utc", "machine",  "build",
                                                 "data",         "manifest", "series"};

static const char *column_name(int i)
{
    if (i < TEXTS_BEFORE) return g_before[i];
    if (i < TEXTS_BEFORE + ENG_TM_COUNT) return eng_train_metrics[i - TEXTS_BEFORE].name;
    return g_after[i - TEXTS_BEFORE - ENG_TM_COUNT];
}

/* Where the text of a column belongs. */
static const char **text_of(EngTrainRecord *record, int column)
{
    const char **const before[TEXTS_BEFORE] = {&record->key, &record->axes, &record->outcome,
                                               &record->reason};
    const char **const after[TEXTS_AFTER] = {&record->finished_utc, &record->machine,
                                             &record->build,        &record->data,
                                             &record->manifest,     &record->series};
    if (column < TEXTS_BEFORE) return before[column];
    return after[column - TEXTS_BEFORE - ENG_TM_COUNT];
}

static bool is_metric(int column)
{
    return column >= TEXTS_BEFORE && column < TEXTS_BEFORE + ENG_TM_COUNT;
}

/* ---- reading ---- */

/* Takes a cell (RFC 4180, lines may end with LF alone) off *at, in place; *end: the character
 * behind it (',' '\n' or 0). NULL: a quote that is not closed. */
static char *take_cell(char **at, char *end)
{
    char *start = *at, *out = start, *in = start;
    bool quoted = *in == '"';
    if (quoted) in++;
    while (*in && (quoted || (*in != ',' && *in != '\n'))) {
        if (quoted && *in == '"') {
            if (in[1] != '"') break;
            in++;
        }
        *out++ = *in++;
    }
    if (quoted && *in++ != '"') return NULL;
    if (quoted && *in == '\r' && in[1] == '\n') in++;
    if (!quoted && *in == '\n' && out > start && out[-1] == '\r') out--;
    *end = *in;
    *at = *in ? in + 1 : in;
    *out = 0;
    return start;
}

static EngStatus bad_cell(const EngTrainLedger *ledger, int line, int column, EngErr *err)
{
    return ENG_FAIL(err, ENG_BAD_DATA, "%s:%d: column %d (%s) is missing or cannot be read",
                    ledger->path, line, column + 1, column_name(column));
}

static EngStatus read_header(const EngTrainLedger *ledger, char **at, EngErr *err)
{
    for (int i = 0; i < COLUMNS; i++) {
        char end = 0, *cell = take_cell(at, &end);
        if (!cell || strcmp(cell, column_name(i)) || end != (i + 1 < COLUMNS ? ',' : '\n'))
            return ENG_FAIL(
                err, ENG_BAD_DATA,
                "%s:1: column %d is '%s', expected '%s': no ledger of training runs, or "
                "one of another version",
                ledger->path, i + 1, cell ? cell : "", column_name(i));
    }
    return ENG_OK;
}

static EngStatus check_outcome(const EngTrainRecord *record, EngErr *err)
{
    bool measured = !strcmp(record->outcome, "measured");
    if (!measured && strcmp(record->outcome, "failed") && strcmp(record->outcome, "likeness"))
        return ENG_FAIL(err, ENG_BAD_DATA, "outcome '%s' is not measured, failed or likeness",
                        record->outcome);
    if (measured && !isfinite(record->metrics[ENG_TM_LOSS]))
        return ENG_FAIL(err, ENG_BAD_DATA, "a measured run without a loss");
    return ENG_OK;
}

static EngStatus read_record(const EngTrainLedger *ledger, int line, char **at,
                             EngTrainRecord *record, EngErr *err)
{
    for (int i = 0; i < COLUMNS; i++) {
        char end = 0, *cell = take_cell(at, &end);
        if (!cell || end != (i + 1 < COLUMNS ? ',' : '\n')) return bad_cell(ledger, line, i, err);
        if (!is_metric(i)) {
            *text_of(record, i) = cell;
            continue;
        }
        double *value = &record->metrics[i - TEXTS_BEFORE];
        *value = NAN;
        if (cell[0] && !eng_parse_f64(cell, value)) return bad_cell(ledger, line, i, err);
    }
    if (strlen(record->key) != ENG_KEY_HEX - 1) return bad_cell(ledger, line, 0, err);
    EngStatus status = check_outcome(record, err);
    if (status) eng_err_prefix(err, "%s:%d", ledger->path, line);
    return status;
}

/* The same run twice, as two machines give it that share no file, is one. Two results of one key
 * are a fault, and a person has to choose. */
static EngStatus check_again(const EngTrainLedger *ledger, int line, const EngTrainRecord *first,
                             const EngTrainRecord *again, EngErr *err)
{
    double a = first->metrics[ENG_TM_LOSS], b = again->metrics[ENG_TM_LOSS];
    if (!strcmp(first->outcome, again->outcome) && (a == b || (isnan(a) && isnan(b))))
        return ENG_OK;
    return ENG_FAIL(err, ENG_BAD_DATA,
                    "%s:%d: run %.8s (%s) is there already with another result: %s %.9g, here %s "
                    "%.9g; delete one of both rows",
                    ledger->path, line, again->key, again->axes, first->outcome, a, again->outcome,
                    b);
}

static EngStatus parse(EngTrainLedger *ledger, char *text, EngErr *err)
{
    int lines = 0, line = 2;
    for (const char *p = text; *p; p++) lines += *p == '\n';
    ledger->records = eng_arena_alloc(ledger->arena, ((size_t)lines + 1) * sizeof *ledger->records);
    if (!ledger->records) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for %s", ledger->path);
    char *at = text;
    EngStatus status = *at ? read_header(ledger, &at, err) : ENG_OK;
    for (; *at && !status; line++) {
        EngTrainRecord *record = &ledger->records[ledger->n];
        status = read_record(ledger, line, &at, record, err);
        if (status) break;
        const EngTrainRecord *first = eng_train_ledger_find(ledger, record->key);
        if (first)
            status = check_again(ledger, line, first, record, err);
        else
            ledger->n++;
    }
    return status;
}

EngStatus eng_train_ledger_open(const char *path, EngTrainLedger *ledger, EngErr *err)
{
    char *text = NULL, *kept;
    size_t n = 0;
    *ledger = (EngTrainLedger){.path = path, .arena = eng_arena_create()};
    EngStatus status = ledger->arena ? eng_file_read(path, &text, &n, err)
                                     : ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for %s", path);
    if (status == ENG_NOT_FOUND) return ENG_OK;
    if (!status && strlen(text) != n)
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: holds a zero byte", path);
    if (!status && !(kept = eng_arena_strdup(ledger->arena, text)))
        status = ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for %s", path);
    if (!status) status = parse(ledger, kept, err);
    eng_free(text);
    if (status) eng_train_ledger_close(ledger);
    return status;
}

void eng_train_ledger_close(EngTrainLedger *ledger)
{
    eng_arena_destroy(ledger->arena);
    *ledger = (EngTrainLedger){.path = ledger->path};
}

const EngTrainRecord *eng_train_ledger_find(const EngTrainLedger *ledger, const char *key)
{
    for (int i = 0; i < ledger->n; i++)
        if (!strcmp(ledger->records[i].key, key)) return &ledger->records[i];
    return NULL;
}

/* ---- writing ---- */

static EngStatus to_writer(void *context, const char *text, size_t n, EngErr *err)
{
    return eng_writer_put(context, text, n, err);
}

static EngStatus put_record(EngRowsText *rows, const EngTrainRecord *record, EngErr *err)
{
    EngTrainRecord copy = *record;
    for (int i = 0; i < COLUMNS; i++)
        if (is_metric(i))
            eng_rows_real(rows, record->metrics[i - TEXTS_BEFORE]);
        else
            eng_rows_text(rows, *text_of(&copy, i));
    return eng_rows_end_row(rows, err);
}

static EngStatus write_all(const EngTrainLedger *ledger, const EngTrainRecord *added, EngErr *err)
{
    const char *columns[COLUMNS];
    EngWriter writer;
    EngRowsText rows = {.format = ENG_ROWS_CSV,
                        .columns = columns,
                        .n_columns = COLUMNS,
                        .sink = to_writer,
                        .context = &writer};
    for (int i = 0; i < COLUMNS; i++) columns[i] = column_name(i);
    EngStatus status = eng_writer_open(&writer, ledger->path, err);
    if (status) return status;
    status = eng_rows_begin(&rows, err);
    for (int i = 0; i < ledger->n && !status; i++)
        status = put_record(&rows, &ledger->records[i], err);
    if (!status) status = put_record(&rows, added, err);
    if (!status) status = eng_rows_end(&rows, err);
    eng_rows_free(&rows);
    if (!status) return eng_writer_commit(&writer, err);
    eng_writer_close(&writer);
    return status;
}

/* A lock on the file itself would be lost with the rename. */
static EngStatus lock_folder(const char *path, int *fd, EngErr *err)
{
    char folder[1024];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
    EngStatus status = eng_make_dirs(folder, err);
    if (status) return status;
    *fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd >= 0 && !flock(*fd, LOCK_EX)) return ENG_OK;
    status = ENG_FAIL(err, ENG_IO, "%s: cannot be locked: %s", folder, strerror(errno));
    if (*fd >= 0) close(*fd);
    return status;
}

EngStatus eng_train_ledger_append(EngTrainLedger *ledger, const EngTrainRecord *record, EngErr *err)
{
    int fd;
    EngTrainLedger now = {0};
    EngStatus status = lock_folder(ledger->path, &fd, err);
    if (status) return status;
    status = eng_train_ledger_open(ledger->path, &now, err);
    if (!status && !eng_train_ledger_find(&now, record->key)) {
        status = write_all(&now, record, err);
        eng_train_ledger_close(&now);
        if (!status) status = eng_train_ledger_open(ledger->path, &now, err);
    }
    close(fd);
    if (status) {
        eng_train_ledger_close(&now);
        return status;
    }
    eng_train_ledger_close(ledger);
    *ledger = now;
    return ENG_OK;
}

/* ---- one run's result ---- */

EngStatus eng_train_result_read(const char *path, EngArena *arena, EngTrainRecord *record,
                                EngErr *err)
{
    char *text = NULL, *series = NULL, *histograms = NULL;
    size_t n = 0;
    EngStatus status = eng_file_read(path, &text, &n, err);
    if (status) return status;
    json_t *root = json_loadb(text, n, 0, NULL);
    eng_free(text);
    const json_t *metrics = json_object_get(root, "metrics");
    const char *outcome = json_string_value(json_object_get(root, "outcome"));
    const char *reason = json_string_value(json_object_get(root, "reason"));
    const json_t *values = json_object_get(root, "series");
    if (json_is_object(values))
        series = json_dumps(values, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(6));
    const json_t *shapes = json_object_get(root, "histograms"); /* an earlier build wrote none */
    if (json_is_array(shapes)) histograms = json_dumps(shapes, JSON_COMPACT);
    if (!json_is_object(metrics) || !outcome || !reason || !series) {
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: no result of a training run", path);
    } else {
        record->outcome = eng_arena_strdup(arena, outcome);
        record->reason = eng_arena_strdup(arena, reason);
        record->series = eng_arena_strdup(arena, series);
        record->histograms = histograms ? eng_arena_strdup(arena, histograms) : NULL;
        if (!record->outcome || !record->reason || !record->series ||
            (histograms && !record->histograms))
            status = ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a result");
        for (int i = 0; i < ENG_TM_COUNT; i++) {
            const json_t *value = json_object_get(metrics, eng_train_metrics[i].name);
            record->metrics[i] = json_is_number(value) ? json_number_value(value) : NAN;
        }
        if (!status && (status = check_outcome(record, err))) eng_err_prefix(err, "%s", path);
    }
    free(series);
    free(histograms);
    json_decref(root);
    return status;
}
