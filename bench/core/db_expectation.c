/* See db_expectation.h. */
#include "bench/core/db_expectation.h"

#include <sqlite3.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "bench/core/db_sql.h"

typedef enum RateKind { RATE_LOAD_2M, RATE_LOAD_4K, RATE_STREAM, RATE_PRODUCT } RateKind;

typedef struct Rate {
    RateKind kind;
    const char *run_id;
    double bytes; /* working set, 0 for products */
    int threads;
    double value;
} Rate;

struct EngRateTable {
    Rate *rates;
    int n;
};

/* Loads: the best number of chains at each size, that is the rate of independent single lines.
 * Streams: reading, which most of these kernels do most. Products: the best of all, roofs included.
 * Medians come from the view, runs that own a point found twice give it twice. */
#define RATES                                                                                      \
    " FROM points p CROSS JOIN v_summary v ON v.point_key = p.point_key"                           \
    " WHERE p.machine_id = ?1 AND p.backend = 'cpu' AND p.kind = 'measured'"                       \
    " AND v.outcome = 'measured' AND ("                                                            \
    " (p.experiment = 'ladder' AND v.metric = 'ns_per_load'"                                       \
    "  AND p.axes_json ->> '$.access' GLOB 'chains*' AND p.axes_json ->> '$.line' = '64'"          \
    "  AND p.axes_json ->> '$.pages' IN ('2m', "                                                   \
    "'4k'))"                                                                                       \
    " OR (p.experiment = 'stream' AND v.metric = 'gbps'"                                           \
    "  AND coalesce(p.axes_json ->> '$.pass', 'read') = 'read')"                                   \
    " OR (p.experiment = 'project' AND v.metric = 'gflops'))"
#define RATE_ROWS                                                                                  \
    "SELECT CASE p.experiment WHEN 'stream' THEN 2 WHEN 'project' THEN 3"                          \
    "  ELSE p.axes_json ->> '$.pages' = '4k' END AS kind,"                                         \
    " iif(p.experiment = 'project', 0, CAST(p.axes_json ->> '$.bytes' AS REAL)) AS bytes,"         \
    " CAST(coalesce(p.axes_json ->> '$.threads', 1) AS INTEGER) AS threads,"                       \
    " iif(p.experiment = 'ladder', min(v.median), max(v.median)), v.run_id" RATES                  \
    " GROUP BY 1, 2, 3, 5"

EngStatus eng_db_rates(EngDb *db, const char *machine_id, EngArena *arena, EngRateTable **out,
                       EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    int64_t room = 0;
    EngRateTable *table = eng_arena_alloc(arena, sizeof *table);
    *out = table;
    EngStatus status =
        table ? eng_db_number(db, &room, err,
                              "SELECT count(*) FROM run_points JOIN points USING (point_key)"
                              " WHERE machine_id = ?1 AND experiment IN"
                              " ('ladder', 'stream', 'project')",
                              "s", machine_id)
              : ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory for rates", eng_db_path(db));
    if (status || !room) return status;
    table->rates = eng_arena_alloc(arena, (size_t)room * sizeof *table->rates);
    if (!table->rates)
        return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory for rates", eng_db_path(db));
    status = eng_db_query(db, &statement, err, RATE_ROWS, "s", machine_id);
    while (!status && !(status = eng_db_step(db, statement, &row, err)) && row) {
        Rate rate = {.kind = (RateKind)sqlite3_column_int(statement, 0),
                     .bytes = sqlite3_column_double(statement, 1),
                     .threads = sqlite3_column_int(statement, 2),
                     .value = sqlite3_column_double(statement, 3),
                     .run_id = eng_db_text(arena, statement, 4)};
        if (!rate.run_id) {
            sqlite3_reset(statement);
            return ENG_FAIL(err, ENG_NO_MEMORY, "%s: out of memory for rates", eng_db_path(db));
        }
        if (table->n < room && rate.value > 0) table->rates[table->n++] = rate;
    }
    return status;
}

static bool is_better(const Rate *a, const Rate *b)
{
    bool less = a->kind == RATE_LOAD_2M || a->kind == RATE_LOAD_4K;
    return a->bytes == b->bytes && (less ? a->value < b->value : a->value > b->value);
}

/* Of the most threads up to `threads`: between the two measured sets around `bytes`, linear in the
 * logarithm of the size; beyond them the nearest. run_id NULL: of any run; the best of equals. */
static double rate_of_run(const EngRateTable *table, const char *run_id, RateKind kind,
                          double bytes, int threads)
{
    const Rate *below = NULL, *above = NULL;
    int most = 0;
    for (int i = 0; i < table->n; i++) {
        const Rate *r = &table->rates[i];
        if (run_id && strcmp(r->run_id, run_id)) continue;
        if (r->kind == kind && r->threads <= threads && r->threads > most) most = r->threads;
    }
    for (int i = 0; i < table->n; i++) {
        const Rate *r = &table->rates[i];
        if (r->kind != kind || r->threads != most || (run_id && strcmp(r->run_id, run_id)))
            continue;
        if (r->bytes >= bytes && (!above || r->bytes < above->bytes || is_better(r, above)))
            above = r;
        if (r->bytes < bytes && (!below || r->bytes > below->bytes || is_better(r, below)))
            below = r;
    }
    if (!below || !above) return below ? below->value : above ? above->value : NAN;
    double part = log(bytes / below->bytes) / log(above->bytes / below->bytes);
    return below->value + (above->value - below->value) * part;
}

static double find_rate(const EngRateTable *table, const char *run_id, RateKind kind, double bytes,
                        int threads)
{
    double own = rate_of_run(table, run_id, kind, bytes, threads);
    return isnan(own) ? rate_of_run(table, NULL, kind, bytes, threads) : own;
}

const EngPointFacts eng_no_facts = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, 1};

void eng_point_facts_add(EngPointFacts *facts, const char *metric, double median,
                         double percent_of_roof)
{
    static const char *const names[] = {
        "flops",      "moved_bytes", "line_bytes", "working_set_bytes",
        "huge_share", "cpu_us",      "wall_us"};
    double *values[] = {
        &facts->flops,      &facts->moved_bytes, &facts->line_bytes, &facts->working_set_bytes,
        &facts->huge_share, &facts->cpu_us,      &facts->wall_us};
    for (int i = 0; metric && i < 7; i++)
        if (!strcmp(names[i], metric)) *values[i] = median;
    if (!isnan(percent_of_roof)) facts->percent_of_roof = percent_of_roof;
}

int eng_threads_of(const char *axes_json)
{
    json_t *axes = json_loads(axes_json, 0, NULL);
    json_int_t threads = json_integer_value(json_object_get(axes, "threads"));
    json_decref(axes);
    return threads > 0 && threads < 100000 ? (int)threads : 1;
}

EngStatus eng_db_roof_moved_bytes(EngDb *db, const char *run_id, const char *point_key,
                                  double *bytes, EngErr *err)
{
    sqlite3_stmt *statement;
    bool row;
    *bytes = NAN;
    EngStatus status = eng_db_query(
        db, &statement, err,
        "SELECT max(v.value) FROM run_points l JOIN points p USING (point_key)"
        " JOIN roofs f ON f.block_id = l.block_id JOIN points fp ON fp.point_key = f.roof_point_key"
        " JOIN sample_values v ON v.block_id = f.block_id AND v.point_key = f.roof_point_key"
        "  AND v.metric = 'moved_bytes' WHERE l.run_id = ?1 AND l.point_key = ?2"
        " AND json_remove(fp.axes_json, '$.variant') = json_remove(p.axes_json, '$.variant')"
        " AND fp.backend = p.backend",
        "ss", run_id, point_key);
    while (!status && !(status = eng_db_step(db, statement, &row, err)) && row)
        if (sqlite3_column_type(statement, 0) != SQLITE_NULL)
            *bytes = sqlite3_column_double(statement, 0);
    return status;
}

void eng_expect_point(const EngRateTable *table, const char *run_id, const EngPointFacts *facts,
                      EngExpectation *out)
{
    double us = isnan(facts->cpu_us) ? facts->wall_us : facts->cpu_us;
    double set = isnan(facts->working_set_bytes) ? facts->moved_bytes : facts->working_set_bytes;
    const EngWork work = {facts->flops, facts->moved_bytes, facts->line_bytes, facts->huge_share,
                          facts->threads};
    const EngRates rates = {find_rate(table, run_id, RATE_STREAM, set, facts->threads),
                            find_rate(table, run_id, RATE_PRODUCT, 0, facts->threads),
                            find_rate(table, run_id, RATE_LOAD_2M, set, facts->threads),
                            find_rate(table, run_id, RATE_LOAD_4K, set, facts->threads)};
    const EngRoofWork roof = {us * 1e3 * facts->percent_of_roof / 100, facts->roof_moved_bytes};
    eng_expect(&work, &rates, us * 1e3, &roof, out);
}
