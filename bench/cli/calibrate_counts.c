/* Models of caches and batches against what was counted; see calibrate_parts.h. */
#include "bench/cli/calibrate_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "bench/cli/table.h"
#include "bench/core/db_recording.h"
#include "bench/core/session.h"
#include "bench/experiments/simulate_counts.h"

#define MOST_CACHES 32
#define WITHIN      0.01

enum { EXACT, SHARDS, AET, REUSE, MODELS };

/* Their names begin the keys of stored values (eng_db_put_simulated) and of their provenance. */
static const struct {
    const char *name;
    double within;
} g_models[MODELS] = {
    {"exact stack distances", 0}, {"SHARDS", WITHIN}, {"AET", WITHIN}, {"distinct rows", 0}};

typedef struct Values {
    EngSimulated *values;
    int n;
    double error, bias; /* sums of |simulated - counted| and of the difference */
    double worst;       /* largest mean of |..| over a corpus, or largest |..| of exact ones */
} Values;

typedef struct Counts {
    const EngRecording *measured;
    EngSession *session;
    EngArena *arena;
    Values models[MODELS];
    EngErr *err;
} Counts;

/* What was counted of a point; NAN: nothing. */
static double counted(const Counts *c, const EngPlanPoint *point, const char *metric)
{
    for (int i = 0; i < c->measured->n; i++) {
        const EngRecordedValue *v = &c->measured->values[i];
        if (!strcmp(v->metric, metric) && !strncmp(v->key, point->point_key, strlen(v->key)))
            return v->median;
    }
    return NAN;
}

static EngStatus add(Counts *c, int model, const EngPlanPoint *point, const char *metric,
                     double value, double *off)
{
    Values *m = &c->models[model];
    double was = counted(c, point, metric);
    *off = 0;
    if (isnan(was)) return ENG_OK;
    const char *provenance = eng_arena_printf(
        c->arena, "%s, sim/cache on corpus %s (%.12s)", g_models[model].name,
        eng_point_word(&point->point, "corpus"), point->stream_digest ? point->stream_digest : "");
    if (!provenance) return ENG_FAIL(c->err, ENG_NO_MEMORY, "out of memory for simulated points");
    m->values[m->n++] = (EngSimulated){point->point_key, metric, value, provenance};
    *off = value - was;
    /* A recording keeps six digits. */
    if (fabs(*off) <= 0.5e-5 * fabs(was)) *off = 0;
    m->error += fabs(*off);
    m->bias += *off;
    if (!g_models[model].within) m->worst = fmax(m->worst, fabs(*off));
    return ENG_OK;
}

/* All caches of the corpus that points[first] is of. */
static EngStatus simulate_caches(Counts *c, const EngPlan *plan, int first)
{
    const EngPlanPoint *of[MOST_CACHES];
    const EngPoint *points[MOST_CACHES];
    EngSimulatedHits hits[MOST_CACHES];
    const char *corpus = eng_point_word(&plan->points[first]->point, "corpus");
    double sums[MODELS] = {0};
    int n = 0;
    for (int i = first; i < plan->n_named && n < MOST_CACHES; i++) {
        const EngPlanPoint *p = plan->points[i];
        if (p->skip || strcmp(p->point.experiment->name, "cache") ||
            strcmp(eng_point_word(&p->point, "corpus"), corpus))
            continue;
        of[n] = p;
        points[n++] = &p->point;
    }
    EngStatus status = eng_simulate_cache(c->session->resources, points, n, hits, c->err);
    for (int i = 0; i < n && !status; i++) {
        const double values[] = {hits[i].exact, hits[i].sampled, hits[i].modelled};
        for (int m = EXACT; m <= AET && !status; m++) {
            double off;
            status = add(c, m, of[i], "hit_rate", values[m], &off);
            sums[m] += fabs(off) / n;
        }
    }
    for (int m = SHARDS; m <= AET; m++) c->models[m].worst = fmax(c->models[m].worst, sums[m]);
    return status;
}

static bool is_first_of_corpus(const EngPlan *plan, int at)
{
    const EngPoint *point = &plan->points[at]->point;
    for (int i = 0; i < at; i++)
        if (!strcmp(plan->points[i]->point.experiment->name, "cache") &&
            !strcmp(eng_point_word(&plan->points[i]->point, "corpus"),
                    eng_point_word(point, "corpus")))
            return false;
    return true;
}

static EngStatus simulate_all(Counts *c)
{
    const EngPlan *plan = eng_session_plan(c->session);
    EngStatus status = ENG_OK;
    for (int m = 0; m < MODELS && !status; m++)
        status = eng_alloc_or((void **)&c->models[m].values, (size_t)plan->n_named,
                              sizeof *c->models[m].values, "simulated points", c->err);
    for (int i = 0; i < plan->n_named && !status; i++) {
        const EngPlanPoint *p = plan->points[i];
        double share, off;
        if (p->skip) continue;
        if (!strcmp(p->point.experiment->name, "cache") && is_first_of_corpus(plan, i))
            status = simulate_caches(c, plan, i);
        if (strcmp(p->point.experiment->name, "reuse")) continue;
        status = eng_simulate_reuse(c->session->resources, &p->point, &share, c->err);
        if (!status) status = add(c, REUSE, p, "distinct_all", share, &off);
    }
    return status;
}

static EngStatus print_models(const Counts *c, int *beyond, EngErr *err)
{
    static const EngTableColumn columns[] = {
        {"counts", false}, {"points", true}, {"mean error", true}, {"signed", true},
        {"gate", true},    {"worst", true},  {"", false}};
    EngTextTable *table;
    EngStatus status = eng_table_create(&table, columns, 7, err);
    if (status) return status;
    for (int i = 0; i < MODELS; i++) {
        const Values *m = &c->models[i];
        bool missed = m->worst > g_models[i].within;
        eng_table_text(table, g_models[i].name);
        eng_table_printf(table, "%d", m->n);
        eng_table_printf(table, "%.4f", m->n ? m->error / m->n : NAN);
        eng_table_printf(table, "%+.4f", m->n ? m->bias / m->n : NAN);
        eng_table_printf(table, g_models[i].within > 0 ? "%.2f" : "equal", g_models[i].within);
        eng_table_printf(table, "%.4f", m->worst);
        eng_table_text(table, !m->n ? "nothing was counted" : missed ? "beyond its gate" : "");
        *beyond += missed || !m->n;
    }
    printf("\n");
    status = eng_table_print(table, stdout, err);
    eng_table_free(table);
    return status;
}

EngStatus eng_calibrate_counts(EngDb *db, const EngSweep *sweep, const char *data_dir,
                               const char *run_id, const EngRecording *measured, int *beyond,
                               EngErr *err)
{
    Counts c = {.measured = measured, .err = err};
    EngStatus status = eng_session_open(sweep, data_dir, &c.session, err);
    if (!status && !(c.arena = eng_arena_create()))
        status = ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for simulated points");
    if (!status) status = simulate_all(&c);
    for (int m = 0; m < MODELS && !status; m++) {
        char unused[ENG_KEY_HEX];
        if (c.models[m].n)
            status = eng_db_put_simulated(db, run_id, "validate, simulated", g_models[m].name,
                                          c.models[m].values, c.models[m].n, unused, err);
    }
    if (!status) status = print_models(&c, beyond, err);
    for (int m = 0; m < MODELS; m++) eng_free(c.models[m].values);
    eng_arena_destroy(c.arena);
    eng_session_free(c.session);
    return status;
}
