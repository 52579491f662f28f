/* A results database with invented numbers, for tests of the reports only: what it holds looks like
 * a quickstart run, and nothing of it was measured. */
#ifndef ENG_TESTS_REPORTS_FIXTURE_H
#define ENG_TESTS_REPORTS_FIXTURE_H

#include <math.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/core/db.h"

typedef struct Fixture {
    EngDb *db;
    sqlite3 *sql;
    const char *run;
    int n_points, n_blocks, samples;
    uint32_t state;
    char block[16], key[40]; /* of the block and the point made last */
} Fixture;

static inline void fixture_sql(Fixture *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = sqlite3_vmprintf(fmt, ap);
    va_end(ap);
    if (sqlite3_exec(f->sql, text, NULL, NULL, NULL))
        fail_msg("%s: %s", text, sqlite3_errmsg(f->sql));
    sqlite3_free(text);
}

/* Between -1 and 1. */
static inline double fixture_noise(Fixture *f)
{
    f->state = f->state * 1664525u + 1013904223u;
    return (double)(f->state >> 8) / 8388608.0 - 1;
}

static inline void fixture_open(Fixture *f, const char *path)
{
    EngErr err = {0};
    *f = (Fixture){.samples = 8, .state = 1};
    if (eng_db_open(path, ENG_DB_WRITE, &f->db, &err)) fail_msg("%s", err.text);
    f->sql = eng_db_handle(f->db);
    fixture_sql(f, "BEGIN");
    fixture_sql(f, "INSERT INTO machines VALUES ('machine', 'Invented CPU <3 GHz> & co', 2, "
                   "8589934592, 33554432, "
                   "NULL, '{}')");
    fixture_sql(f, "INSERT INTO builds VALUES ('build', '0.1.0', 'abcdef0123456789', 'GNU 12.2', "
                   "'Release', '{}')");
    static const char *const corpora[] = {"prose",        "docs",    "code",
                                          "multilingual", "uniform", "filler"};
    for (int i = 0; i < 6; i++)
        fixture_sql(f, "INSERT INTO streams VALUES ('%064d', '%q', '%q', 1000000, '{}')", i,
                    corpora[i], i < 4 ? "real" : corpora[i]);
    fixture_sql(f, "INSERT INTO streams VALUES ('%064d', 'synthetic', 'synthetic', 1000000, '{}')",
                9);
}

static inline void fixture_close(Fixture *f)
{
    fixture_sql(f, "COMMIT");
    eng_db_close(f->db);
}

static inline void fixture_run(Fixture *f, const char *run, const char *started)
{
    f->run = run;
    fixture_sql(f,
                "INSERT INTO runs VALUES ('%q', '%q', NULL, 'done', 'machine', 'build', 1, "
                "'[\"engram\",\"run\"]', "
                "'quickstart', '[gather]', 'plan', '{}')",
                run, started);
}

static inline void fixture_block(Fixture *f, const char *experiment)
{
    snprintf(f->block, sizeof f->block, "b%d", ++f->n_blocks);
    fixture_sql(f,
                "INSERT INTO blocks VALUES ('%q', '%q', %d, '%q', 'variant', 1, 1, 1, %d, 'done')",
                f->block, f->run, f->n_blocks, experiment, f->samples);
    fixture_sql(
        f, "INSERT INTO segments VALUES ('%q', 0, '2026-01-01T00:00:00Z', NULL, 'done', 1, '{}')",
        f->block);
}

/* A point of the current block. corpus_index is that of fixture_open, -1: no stream. reason:
 * skipped. */
static inline void fixture_point(Fixture *f, const char *experiment, const char *variant, bool roof,
                                 int corpus_index, const char *reason, const char *axes_fmt, ...)
{
    char axes[512];
    va_list ap;
    va_start(ap, axes_fmt);
    vsnprintf(axes, sizeof axes, axes_fmt, ap);
    va_end(ap);
    snprintf(f->key, sizeof f->key, "%032d", ++f->n_points);
    char digest[80];
    snprintf(digest, sizeof digest, "%064d", corpus_index);
    fixture_sql(f,
                "INSERT INTO points VALUES ('%q', 'c%d', '%q', '%q', 'cpu', 'measured', %d, 'v', "
                "'machine', %Q, NULL, "
                "NULL, json('{%s%s\"variant\":\"%s\"}'), '')",
                f->key, f->n_points, experiment, variant, (int)roof,
                corpus_index < 0 ? NULL : digest, axes, axes[0] ? "," : "", variant);
    fixture_sql(f, "INSERT INTO axis_values VALUES ('%q', 'variant', '%q', NULL, 0)", f->key,
                variant);
    fixture_sql(f, "INSERT INTO block_points VALUES ('%q', '%q', %d, 'done', '%q', %Q, NULL)",
                f->block, f->key, f->n_points, reason ? "skipped" : "measured", reason);
    fixture_sql(f, "INSERT INTO run_points VALUES ('%q', '%q', '%q')", f->run, f->key, f->block);
    for (int i = 0; i < f->samples && !reason; i++)
        fixture_sql(f, "INSERT INTO samples VALUES ('%q', '%q', 0, %d, %d, 1, 1000, 1000, 0)",
                    f->block, f->key, i, i);
}

/* Values of a metric around `value` for the point made last; cpu_ns when not 0 sets the times of
 * the samples. */
static inline void fixture_metric(Fixture *f, const char *experiment, const char *metric,
                                  const char *unit, const char *clock, double value, double spread,
                                  double ns)
{
    fixture_sql(f, "INSERT OR IGNORE INTO metrics VALUES ('%q', '%q', '%q', 0, '%q', '')",
                experiment, metric, unit, clock);
    for (int i = 0; i < f->samples; i++) {
        double factor = 1 + spread * fixture_noise(f);
        fixture_sql(f, "INSERT INTO sample_values VALUES ('%q', '%q', 0, %d, '%q', %!.17g)",
                    f->block, f->key, i, metric, value * factor);
        if (ns > 0)
            fixture_sql(f,
                        "UPDATE samples SET cpu_ns = %lld, wall_ns = %lld WHERE block_id = '%q' "
                        "AND point_key = '%q' "
                        "AND pair = %d",
                        (long long)(ns / factor), (long long)(ns / factor), f->block, f->key, i);
    }
}

/* ---- a whole invented quickstart run
 * ---------------------------------------------------------------- */

static inline void fixture_gather(Fixture *f, double scale, int corpus)
{
    static const char axes[] =
        "\"heads\":%d,\"rows\":%d,\"tokens\":%d,\"corpus\":\"%s\",\"row_format\":\"fp8\",\"out\":"
        "\"bf16\",\"hold\":\"row_dims\",\"threads\":1";
    const char *name = corpus == 9 ? "synthetic" : "prose";
    for (int heads = 2; heads <= 16; heads *= 2)
        for (int log_rows = 10; log_rows <= 20; log_rows += 2) {
            int rows = 1 << log_rows;
            double set = rows * 264.0 * heads * 3,
                   gbps = scale * (9 - 3.5 / (1 + exp(-(log2(set) - 26)))), ns = 1e6 / gbps;
            fixture_block(f, "gather");
            fixture_point(f, "gather", "portable", false, corpus, NULL, axes, heads, rows, 1024,
                          name);
            fixture_metric(f, "gather", "gather_gbps", "GB/s", "cpu", gbps, 0.08, ns);
            fixture_metric(f, "gather", "ns_per_token", "ns", "cpu", heads * 3 * 264 / gbps, 0.08,
                           0);
            fixture_metric(f, "gather", "working_set_bytes", "bytes", "none", set, 0, 0);
            fixture_point(f, "gather", "roof_read", true, corpus, NULL, axes, heads, rows, 1024,
                          name);
            fixture_metric(f, "gather", "gather_gbps", "GB/s", "cpu", gbps * 1.5, 0.05, ns / 1.5);
            fixture_sql(f, "INSERT INTO roofs VALUES ('%q', '%q', 'cpu', '{}')", f->block, f->key);
        }
    fixture_block(f, "gather");
    fixture_point(f, "gather", "avx512", false, corpus, "no avx512f", axes, 8, 131072, 1024, name);
}

static inline void fixture_latency(Fixture *f)
{
    static const struct {
        const char *experiment, *metric, *unit, *clock;
        double per_token, per_call;
    } ops[] = {{"hash", "ns_per_token", "ns", "cpu", 60, 200},
               {"gather", "ns_per_token", "ns", "cpu", 900, 500},
               {"project", "us_per_token", "us", "cpu", 900, 3500},
               {"gate", "ns_per_token", "ns", "cpu", 21000, 2000},
               {"chain", "us_per_token", "us", "wall", 960, 3600}};
    for (int k = 0; k < 5; k++)
        for (int tokens = 1; tokens <= (k == 2 || k == 4 ? 256 : 4096); tokens *= 4) {
            fixture_block(f, ops[k].experiment);
            fixture_point(f, ops[k].experiment, "portable", false, 0, NULL,
                          "\"heads\":8,\"rows\":131072,\"tokens\":%d,\"corpus\":\"prose\"%s",
                          tokens, k == 1 ? ",\"hold\":\"row_dims\",\"row_format\":\"fp8\"" : "");
            double value = ops[k].per_token + ops[k].per_call / tokens;
            fixture_metric(f, ops[k].experiment, ops[k].metric, ops[k].unit, ops[k].clock, value,
                           0.1, 0);
            if (k != 4) continue;
            double hash = 0.02 + 0.05 / tokens, gather = 0.05 + 0.05 / tokens, gate = 0.05;
            fixture_metric(f, "chain", "wall_us", "us", "wall", value * tokens, 0.05, 0);
            fixture_metric(f, "chain", "share_hash", "share", "none", hash, 0.02, 0);
            fixture_metric(f, "chain", "share_gather", "share", "none", gather, 0.02, 0);
            fixture_metric(f, "chain", "share_gate", "share", "none", gate, 0.02, 0);
            fixture_metric(f, "chain", "share_project", "share", "none", 1 - hash - gather - gate,
                           0, 0);
        }
}

static inline void fixture_counts(Fixture *f)
{
    static const char *const corpora[] = {"prose",        "docs",    "code",
                                          "multilingual", "uniform", "filler"};
    int samples = f->samples;
    f->samples = 1;
    for (int c = 0; c < 6; c++)
        for (int tokens = 64; tokens <= 65536; tokens *= 4)
            for (int on = 0; on < 2; on++) {
                fixture_block(f, "reuse");
                fixture_point(f, "reuse", "", false, c, NULL,
                              "\"heads\":8,\"rows\":131072,\"tokens\":%d,\"corpus\":\"%s\","
                              "\"compress\":\"%s\"",
                              tokens, corpora[c], on ? "on" : "off");
                for (int order = 2; order <= 4; order++) {
                    char metric[32];
                    snprintf(metric, sizeof metric, "distinct_%d", order);
                    double share =
                        c == 4 ? 1 - tokens / 4e5
                               : (c == 5 ? 8.0 / tokens
                                         : pow(tokens / 8.0, -0.16 / (order - 1) - 0.02 * c)) *
                                     (on ? 0.96 : 1);
                    fixture_metric(f, "reuse", metric, "share", "none", share, 0, 0);
                }
            }
    for (int c = 0; c < 4; c++)
        for (int order = 2; order <= 4; order++)
            for (int heads = 1; heads <= 16; heads *= 2) {
                fixture_block(f, "collide");
                fixture_point(f, "collide", "", false, c, NULL,
                              "\"heads\":%d,\"rows\":131072,\"tokens\":1000000,\"corpus\":\"%s\","
                              "\"order\":%d",
                              heads, corpora[c], order);
                double ngrams = (order - 1) * 2.1e5;
                fixture_metric(f, "collide", "ngrams", "n-grams", "none", ngrams, 0, 0);
                fixture_metric(f, "collide", "ngrams_per_row", "n-grams", "none",
                               ngrams / 131072 / (1 - exp(-ngrams / 131072)), 0, 0);
                fixture_metric(f, "collide", "rows_used", "share", "none",
                               1 - exp(-ngrams / 131072), 0, 0);
                fixture_metric(f, "collide", "heads_shared_max", "heads", "none",
                               heads < 3 ? heads : 3, 0, 0);
                fixture_metric(f, "collide", "heads_shared_bound", "heads", "none", 3, 0, 0);
                fixture_metric(f, "collide", "pairs_all_heads", "pairs", "none",
                               heads == 1 ? 345678 : 0, 0, 0);
                fixture_metric(f, "collide", "equal_mixes", "pairs", "none", 0, 0, 0);
                fixture_metric(f, "collide", "direct_table_bytes", "bytes", "none",
                               pow(99092, order) * 264, 0, 0);
                fixture_metric(f, "collide", "alone_share", "share", "none",
                               0.2 * exp(-heads / 8.0), 0, 0);
            }
    f->samples = samples;
}

static inline void fixture_gate(Fixture *f)
{
    static const char *const formulas[] = {"copysign", "sign", "plain"};
    static const double alignments[] = {0, 0.1, 0.3, 0.9};
    for (int k = 0; k < 3; k++)
        for (int a = 0; a < 4; a++) {
            char counts[1024] = "[";
            double total = 0, sat = 0;
            fixture_block(f, "gate");
            fixture_point(f, "gate", "portable", false, 0, NULL,
                          "\"tokens\":256,\"corpus\":\"prose\",\"formula\":\"%s\",\"alignment\":%g",
                          formulas[k], alignments[a]);
            for (int i = 0; i < 80; i++) {
                double gate = (i + 0.5) / 80, score = log(gate / (1 - gate));
                if (k < 2) score = score * fabs(score);
                double z = score - 71.5 * alignments[a];
                int64_t n = (int64_t)(20000 * exp(-z * z / 2));
                if (i == 79 && alignments[a] > 0.05) n = 81920;
                total += (double)n;
                sat += i < 4 || i >= 76 ? (double)n : 0;
                snprintf(counts + strlen(counts), sizeof counts - strlen(counts), "%s%lld",
                         i ? "," : "", (long long)n);
            }
            strcat(counts, "]");
            fixture_metric(f, "gate", "sat_05", "share", "none", sat / total, 0, 0);
            fixture_metric(f, "gate", "sat_10", "share", "none", sat / total, 0, 0);
            for (int stream = 0; stream < 4; stream++)
                fixture_sql(f,
                            "INSERT INTO histograms VALUES ('%q', '%q', 0, 0, 'gate', 1, %d, "
                            "'linear', 0.0, 1.0, '%s')",
                            f->block, f->key, stream, counts);
        }
}

/* scale multiplies the gather's bandwidth; corpus 0 is prose, 9 synthetic. */
static inline void fixture_quickstart(Fixture *f, const char *run, const char *started,
                                      double scale, int corpus)
{
    fixture_run(f, run, started);
    fixture_gather(f, scale, corpus);
    fixture_latency(f);
    fixture_counts(f);
    fixture_gate(f);
}

#endif
