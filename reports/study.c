/* Statistics of trained arms as SQL functions; see study.h. */
#include "reports/study.h"

#include <jansson.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "bench/ablation/run.h"
#include "bench/core/paired.h"
#include "bench/core/verdict.h"

#define BOOTSTRAP_SEED 1

/* ---- results as JSON ---- */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *paired_json(const EngPaired *p)
{
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "n", p->n, "mean", number(p->mean),
                     "sd", number(p->sd), "lo", number(p->lo), "hi", number(p->hi), "p_greater",
                     number(p->p_greater), "p_two", number(p->p_two));
}

/* Takes the reference. */
static void give(sqlite3_context *context, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
    if (text)
        sqlite3_result_text(context, text, -1, SQLITE_TRANSIENT);
    else
        sqlite3_result_error_nomem(context);
    free(text);
    json_decref(json);
}

/* ---- differences ---- */

typedef struct Values {
    int n;
    double values[ENG_CURVE_MAX_SEEDS];
} Values;

static void paired_step(sqlite3_context *context, int n, sqlite3_value **arguments)
{
    Values *v = sqlite3_aggregate_context(context, sizeof *v);
    (void)n;
    if (!v || sqlite3_value_type(arguments[0]) == SQLITE_NULL) return;
    if (v->n == ENG_CURVE_MAX_SEEDS)
        sqlite3_result_error(context, "paired_test: too many values", -1);
    else
        v->values[v->n++] = sqlite3_value_double(arguments[0]);
}

static void paired_final(sqlite3_context *context)
{
    const Values *v = sqlite3_aggregate_context(context, sizeof *v);
    if (!v) {
        sqlite3_result_error_nomem(context);
        return;
    }
    EngPaired paired = eng_arm_mean(v->values, v->n);
    give(context, paired_json(&paired));
}

/* ---- curves ---- */

typedef struct Cells {
    int n;
    double at[3]; /* low, valley, high of valley_fixed */
    struct {
        double x, loss;
        int64_t seed;
    } cells[ENG_CURVE_MAX_X * ENG_CURVE_MAX_SEEDS];
} Cells;

static void curve_step(sqlite3_context *context, int n, sqlite3_value **arguments)
{
    Cells *c = sqlite3_aggregate_context(context, sizeof *c);
    if (!c || sqlite3_value_type(arguments[2]) == SQLITE_NULL) return;
    for (int i = 3; i < n; i++) c->at[i - 3] = sqlite3_value_double(arguments[i]);
    if (c->n == ENG_CURVE_MAX_X * ENG_CURVE_MAX_SEEDS) {
        sqlite3_result_error(context, "a curve of too many runs", -1);
        return;
    }
    c->cells[c->n].x = sqlite3_value_double(arguments[0]);
    c->cells[c->n].seed = sqlite3_value_int64(arguments[1]);
    c->cells[c->n++].loss = sqlite3_value_double(arguments[2]);
}

typedef struct Curve {
    EngCurve curve;
    double x[ENG_CURVE_MAX_X];
    double loss[ENG_CURVE_MAX_X * ENG_CURVE_MAX_SEEDS];
} Curve;

/* Place of a value in an ascending list, which grows by it; -1: no room. */
static int place(double *list, int *n, int most, double value)
{
    int at = 0;
    while (at < *n && list[at] < value) at++;
    if (at < *n && list[at] == value) return at;
    if (*n == most) return -1;
    memmove(list + at + 1, list + at, (size_t)(*n - at) * sizeof *list);
    list[at] = value;
    ++*n;
    return at;
}

/* Cells to a table of all x and seeds, NAN where a run is missing. */
static bool arrange(const Cells *c, Curve *out)
{
    double seeds[ENG_CURVE_MAX_SEEDS];
    int n_x = 0, n_seeds = 0;
    for (int i = 0; i < c->n; i++)
        if (place(out->x, &n_x, ENG_CURVE_MAX_X, c->cells[i].x) < 0 ||
            place(seeds, &n_seeds, ENG_CURVE_MAX_SEEDS, (double)c->cells[i].seed) < 0)
            return false;
    for (int i = 0; i < n_x * n_seeds; i++) out->loss[i] = NAN;
    for (int i = 0; i < c->n; i++) {
        int x = place(out->x, &n_x, ENG_CURVE_MAX_X, c->cells[i].x);
        int s = place(seeds, &n_seeds, ENG_CURVE_MAX_SEEDS, (double)c->cells[i].seed);
        out->loss[x * n_seeds + s] = c->cells[i].loss;
    }
    out->curve = (EngCurve){.n_x = n_x, .n_seeds = n_seeds, .x = out->x, .loss = out->loss};
    return true;
}

static json_t *spread_json(const Curve *c)
{
    EngSpread spread = eng_spread(&c->curve);
    return json_pack("{s:i, s:o, s:o, s:o}", "df", spread.df, "sigma", number(spread.sigma), "lo",
                     number(spread.lo), "hi", number(spread.hi));
}

static json_t *valley_json(const Curve *c, const EngValley *v)
{
    bool at_end = v->valley < 0;
    return json_pack("{s:f, s:o, s:f, s:f, s:b, s:o, s:o, s:i, s:i}", "low", c->x[v->low], "valley",
                     at_end ? json_null() : json_real(c->x[v->valley]), "high", c->x[v->high], "p",
                     v->p, "claimed", v->claimed, "left",
                     at_end ? json_null() : paired_json(&v->left), "right",
                     at_end ? json_null() : paired_json(&v->right), "n_choosing", v->n_choosing,
                     "n_testing", v->n_testing);
}

static json_t *argmin_json(const Curve *c, const EngArgmin *a)
{
    json_t *tied = json_array();
    for (int i = 0; tied && i < c->curve.n_x; i++)
        if (a->tied[i]) json_array_append_new(tied, json_real(c->x[i]));
    return json_pack("{s:f, s:o, s:o, s:i, s:o}", "best", c->x[a->best], "lo", number(a->lo), "hi",
                     number(a->hi), "n_seeds", a->n_seeds, "tied", tied);
}

typedef enum Asked { SPREAD, FIXED, SPLIT, LOWEST } Asked;

static void curve_final(sqlite3_context *context)
{
    Asked asked = (Asked)(intptr_t)sqlite3_user_data(context);
    const Cells *c = sqlite3_aggregate_context(context, sizeof *c);
    Curve *curve = c ? eng_alloc(sizeof *curve) : NULL;
    EngValley valley;
    EngArgmin argmin;
    if (!curve) {
        sqlite3_result_error_nomem(context);
        return;
    }
    if (!arrange(c, curve))
        sqlite3_result_error(context, "a curve of too many places or seeds", -1);
    else if (asked == SPREAD)
        give(context, spread_json(curve));
    else if (asked == FIXED &&
             !eng_valley_fixed(&curve->curve, c->at[0], c->at[1], c->at[2], &valley, NULL))
        give(context, valley_json(curve, &valley));
    else if (asked == SPLIT && !eng_valley_split(&curve->curve, &valley, NULL))
        give(context, valley_json(curve, &valley));
    else if (asked == LOWEST && !eng_argmin(&curve->curve, BOOTSTRAP_SEED, &argmin, NULL))
        give(context, argmin_json(curve, &argmin));
    eng_free(curve);
}

/* ---- several tests ---- */

typedef struct Tests {
    json_t *names, *p; /* arrays of as many */
} Tests;

static void holm_step(sqlite3_context *context, int n, sqlite3_value **arguments)
{
    Tests *t = sqlite3_aggregate_context(context, sizeof *t);
    (void)n;
    if (t && sqlite3_value_type(arguments[1]) == SQLITE_NULL) return;
    if (t && !t->names) *t = (Tests){json_array(), json_array()};
    if (!t || json_array_append_new(t->p, json_real(sqlite3_value_double(arguments[1]))) ||
        json_array_append_new(t->names,
                              json_string((const char *)sqlite3_value_text(arguments[0]))))
        sqlite3_result_error_nomem(context);
}

static void holm_final(sqlite3_context *context)
{
    Tests *t = sqlite3_aggregate_context(context, sizeof *t);
    size_t n = t ? json_array_size(t->names) : 0;
    double *p = eng_alloc(n * sizeof *p);
    for (size_t i = 0; p && i < n; i++) p[i] = json_real_value(json_array_get(t->p, i));
    json_t *json = p && !eng_holm(p, (int)n, p, NULL) ? json_object() : NULL;
    for (size_t i = 0; i < n && json; i++)
        json_object_set_new(json, json_string_value(json_array_get(t->names, i)), number(p[i]));
    give(context, json);
    eng_free(p);
    if (!t) return;
    json_decref(t->names);
    json_decref(t->p);
}

static double member(const json_t *json, const char *name)
{
    const json_t *value = json_object_get(json, name);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static json_t *json_of(sqlite3_value *value)
{
    const char *text = (const char *)sqlite3_value_text(value);
    return text ? json_loads(text, 0, NULL) : NULL;
}

static double real_of(sqlite3_value *value)
{
    return sqlite3_value_type(value) == SQLITE_NULL ? NAN : sqlite3_value_double(value);
}

static void claim_p(sqlite3_context *context, int n, sqlite3_value **arguments)
{
    json_t *json = json_of(arguments[0]);
    (void)n;
    EngPaired ours = {.n = (int)json_integer_value(json_object_get(json, "n")),
                      .mean = member(json, "mean"),
                      .sd = member(json, "sd")};
    EngClaimP p = eng_claim_p(&ours, real_of(arguments[1]), real_of(arguments[2]));
    json_decref(json);
    give(context,
         json_pack("{s:o, s:o}", "agrees", number(p.agrees), "disagrees", number(p.disagrees)));
}

static void claim(sqlite3_context *context, int n, sqlite3_value **arguments)
{
    (void)n;
    EngClaimWord word = eng_claim_judge(
        (EngClaimP){.agrees = real_of(arguments[0]), .disagrees = real_of(arguments[1])});
    sqlite3_result_text(context, eng_claim_name(word), -1, SQLITE_STATIC);
}

/* ---- text ---- */

static void give_text(sqlite3_context *context, EngStr *text)
{
    if (text->failed)
        sqlite3_result_error_nomem(context);
    else
        sqlite3_result_text(context, text->text ? text->text : "", -1, SQLITE_TRANSIENT);
    eng_str_free(text);
}

static void interval(sqlite3_context *context, int n, sqlite3_value **arguments)
{
    double mean = real_of(arguments[0]), lo = real_of(arguments[1]), hi = real_of(arguments[2]);
    EngStr text = {0};
    (void)n;
    if (!isnan(mean)) eng_str_printf(&text, "%+.4f", mean);
    if (!isnan(mean) && !isnan(lo)) eng_str_printf(&text, " (%+.4f to %+.4f)", lo, hi);
    give_text(context, &text);
}

/* "-1" of an axis and the number that it stands for are different texts, and stay so. */
static bool is_default(const EngAxisDef *axis, const json_t *value)
{
    double number = 0;
    if (json_is_string(value)) return !strcmp(json_string_value(value), axis->def);
    return eng_parse_f64(axis->def, &number) && json_number_value(value) == number;
}

static void add_axis(EngStr *text, const EngAxisDef *axis, const json_t *value)
{
    const char *name = axis->name;
    const char *word = json_is_string(value) ? json_string_value(value) : NULL;
    bool always = !strcmp(name, "rung") || !strcmp(name, "budget");
    if (!value || (!always && is_default(axis, value))) return;
    eng_str_add(text, text->n ? ", " : "");
    if (!strcmp(name, "budget"))
        eng_str_printf(text, "%.6g tokens per parameter", json_number_value(value));
    else if (!strcmp(name, "memory"))
        eng_str_printf(text, "memory of %.3g million", json_number_value(value) * 1e-6);
    else if (!strcmp(name, "streams"))
        eng_str_printf(text, "%g streams", json_number_value(value));
    else if (word && !strcmp(name, "rung"))
        eng_str_add(text, word);
    else if (word && !strcmp(name, "text"))
        eng_str_printf(text, "%s text", word);
    else if (word)
        eng_str_printf(text, "%s = %s", name, word);
    else
        eng_str_printf(text, "%s = %.6g", name, json_number_value(value));
}

static void arm_label(sqlite3_context *context, int n, sqlite3_value **arguments)
{
    json_t *arm = json_of(arguments[0]);
    EngStr text = {0};
    (void)n;
    for (int i = 0; i < ENG_ARM_AXES; i++)
        add_axis(&text, &eng_arm_axes[i], json_object_get(arm, eng_arm_axes[i].name));
    const char *data = json_string_value(json_object_get(arm, "data"));
    if (data) eng_str_printf(&text, "%sother text %s", text.n ? ", " : "", data);
    json_decref(arm);
    give_text(context, &text);
}

/* ---- connection ---- */

static int add_functions(sqlite3 *sql)
{
    static const struct {
        const char *name;
        int arguments;
        Asked asked;
        void (*step)(sqlite3_context *, int, sqlite3_value **);
        void (*final)(sqlite3_context *);
    } list[] = {{"paired_test", 1, SPREAD, paired_step, paired_final},
                {"spread", 3, SPREAD, curve_step, curve_final},
                {"valley_fixed", 6, FIXED, curve_step, curve_final},
                {"valley_split", 3, SPLIT, curve_step, curve_final},
                {"lowest", 3, LOWEST, curve_step, curve_final},
                {"holm", 2, SPREAD, holm_step, holm_final}};
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    static const struct {
        const char *name;
        int arguments;
        void (*of)(sqlite3_context *, int, sqlite3_value **);
    } plain[] = {{"claim_p", 3, claim_p},
                 {"claim", 2, claim},
                 {"interval", 3, interval},
                 {"arm_label", 1, arm_label}};
    int rc = SQLITE_OK;
    for (size_t i = 0; i < sizeof plain / sizeof *plain && !rc; i++)
        rc = sqlite3_create_function(sql, plain[i].name, plain[i].arguments, flags, NULL,
                                     plain[i].of, NULL, NULL);
    for (size_t i = 0; i < sizeof list / sizeof *list && !rc; i++)
        rc = sqlite3_create_function(sql, list[i].name, list[i].arguments, flags,
                                     (void *)(intptr_t)list[i].asked, NULL, list[i].step,
                                     list[i].final);
    return rc;
}

/* Every result: axes are those that make a run another one. Of several texts under one name, all
 * but the one that most runs of the rung have are named in them. Results that several machines,
 * blocks or numbers of threads have are one, of the newest program. */
#define RESULTS                                                                                    \
    "WITH done AS (SELECT p.*, json_remove(p.axes_json, '$.threads') AS axes, b.block_id,"         \
    " b.outcome, b.reason, r.started_utc, p.axes_json ->> '$.rung' AS of_rung,"                    \
    " p.axes_json ->> '$.text' AS of_text"                                                         \
    " FROM points p JOIN block_points b USING (point_key) JOIN blocks k USING (block_id)"          \
    " JOIN runs r USING (run_id)"                                                                  \
    " WHERE p.experiment = 'train' AND b.outcome IN ('measured', 'failed')"                        \
    "), texts AS (SELECT of_rung, of_text, stream_digest, row_number() OVER"                       \
    " (PARTITION BY of_rung, of_text ORDER BY count(*) DESC, stream_digest) AS place"              \
    " FROM done WHERE stream_digest IS NOT NULL GROUP BY of_rung, of_text, stream_digest"          \
    "), named AS (SELECT d.*,"                                                                     \
    " iif(t.place > 1, json_set(axes, '$.data', substr(d.stream_digest, 1, 8)), axes) AS own"      \
    " FROM done d LEFT JOIN texts t USING (of_rung, of_text, stream_digest)"                       \
    "), dated AS (SELECT *, max(started_utc) OVER (PARTITION BY own, variant_digest) AS newest"    \
    " FROM named"                                                                                  \
    "), results AS (SELECT *, row_number() OVER (PARTITION BY own ORDER BY newest DESC,"           \
    " outcome = 'measured' DESC, kind = 'measured' DESC, point_key, block_id) AS place"            \
    " FROM dated)"

static void add_table(EngStr *sql)
{
    eng_str_add(sql, "CREATE TEMP TABLE v_train AS " RESULTS
                     " SELECT point_key, block_id, kind, outcome, reason,"
                     " json_remove(own, '$." ENG_ARM_AXIS_SEED "') AS arm, json_remove(own,"
                     " '$." ENG_ARM_AXIS_SEED "'");
    for (int i = 0; i < ENG_ARM_AXES; i++)
        if (!eng_arm_is_training(eng_arm_axes[i].name))
            eng_str_printf(sql, ", '$.%s'", eng_arm_axes[i].name);
    eng_str_add(sql, ") AS family, 0 AS main, '' AS study, '' AS label, 0 AS again, '' AS note");
    eng_str_add(sql, ", axes_json ->> '$." ENG_ARM_AXIS_SEED "' AS seed");
    for (int i = 0; i < ENG_ARM_AXES; i++)
        eng_str_printf(sql, ", axes_json ->> '$.%1$s' AS \"%1$s\"", eng_arm_axes[i].name);
    for (int i = 0; i < ENG_TM_COUNT; i++)
        eng_str_printf(sql,
                       ", (SELECT v.value FROM sample_values v WHERE v.block_id = t.block_id AND"
                       " v.point_key = t.point_key AND v.metric = '%1$s' LIMIT 1) AS \"%1$s\"",
                       eng_train_metrics[i].name);
    eng_str_add(sql, " FROM results t WHERE place = 1;"
                     "UPDATE temp.v_train SET main = family IN (SELECT family FROM (SELECT family,"
                     " row_number() OVER (PARTITION BY rung, text, family ->> '$.data', budget,"
                     " streams ORDER BY count(*) DESC, family) AS place FROM temp.v_train"
                     " GROUP BY family) WHERE place = 1),"
                     " study = arm_label(family), label = arm_label(arm),"
                     " note = (SELECT CASE WHEN max(kind) = 'measured' AND min(kind) = 'measured'"
                     " THEN '' WHEN min(kind) = max(kind) THEN ' (imported)'"
                     " ELSE ' (partly imported)' END FROM temp.v_train);");
    /* Arms that come out as one model are trained once: their rows are equal down to the time. */
    eng_str_add(sql, "UPDATE temp.v_train AS t SET again = EXISTS (SELECT 1 FROM temp.v_train o"
                     " WHERE (o.main, -length(o.label), -o.rowid) > (t.main, -length(t.label),"
                     " -t.rowid) AND o.seed = t.seed"
                     " AND o.loss = t.loss AND o.cpu_s = t.cpu_s AND o.p_total = t.p_total)");
}

EngStatus eng_study_register(sqlite3 *sql, const char *path, EngErr *err)
{
    EngStr text = {0};
    add_table(&text);
    EngStatus status = eng_str_status(&text, err);
    int rc = status ? SQLITE_OK : add_functions(sql);
    if (!rc && !status) rc = sqlite3_exec(sql, text.text, NULL, NULL, NULL);
    if (rc) status = ENG_FAIL(err, ENG_BAD_DATA, "%s: %s", path, sqlite3_errmsg(sql));
    eng_str_free(&text);
    return status;
}

/* figure,series,x,y,note: no quotes, the note may hold commas. */
static int put_line(sqlite3_stmt *insert, char *line)
{
    char *fields[5], *at = line;
    for (int i = 0; i < 5; i++) {
        fields[i] = at;
        char *comma = i < 4 ? strchr(at, ',') : NULL;
        if (i < 4 && !comma) return SQLITE_MISMATCH;
        if (comma) *comma = 0;
        at = comma ? comma + 1 : at;
    }
    for (int i = 0; i < 5; i++) {
        double value;
        bool is_number = (i == 2 || i == 3) && eng_parse_f64(fields[i], &value);
        if (i == 3 && !is_number) return SQLITE_MISMATCH;
        if (is_number)
            sqlite3_bind_double(insert, i + 1, value);
        else
            sqlite3_bind_text(insert, i + 1, fields[i], -1, SQLITE_TRANSIENT);
    }
    int rc = sqlite3_step(insert);
    sqlite3_reset(insert);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

EngStatus eng_study_published(sqlite3 *sql, const char *folder, EngErr *err)
{
    static const char create[] = "DROP TABLE IF EXISTS temp.published;"
                                 "CREATE TEMP TABLE published (figure, series, x, y, note)";
    char path[4096], *text = NULL;
    sqlite3_stmt *insert = NULL;
    int line = 0;
    snprintf(path, sizeof path, "%s/published.csv", folder);
    int rc = sqlite3_exec(sql, create, NULL, NULL, NULL);
    if (!rc)
        rc = sqlite3_prepare_v2(sql, "INSERT INTO published VALUES (?, ?, ?, ?, ?)", -1, &insert,
                                NULL);
    EngStatus status =
        rc ? ENG_FAIL(err, ENG_BAD_DATA, "%s: %s", path, sqlite3_errmsg(sql)) : ENG_OK;
    if (!status && eng_file_exists(path)) status = eng_file_read(path, &text, NULL, err);
    char *rest = NULL;
    for (char *at = text ? strtok_r(text, "\n", &rest) : NULL; at && !status;
         at = strtok_r(NULL, "\n", &rest)) {
        line++;
        if (*at == '#') continue;
        rc = put_line(insert, at);
        if (rc)
            status = ENG_FAIL(err, ENG_BAD_DATA, "%s: line %d is not figure,series,x,y,note", path,
                              line);
    }
    sqlite3_finalize(insert);
    eng_free(text);
    return status;
}
