/* A calibration as a machine file; see calibration.h. */
#include "sim/planner/calibration.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/machine/machine.h"

typedef struct File {
    const EngCalibration *c;
    json_t *tier;
} File;

static void put(const File *f, EngTierField field, double value, const char *unit,
                const char *basis)
{
    char day[11];
    if (!(value > 0) || !isfinite(value)) return;
    snprintf(day, sizeof day, "%.10s", f->c->date);
    json_object_set_new(f->tier, eng_tier_field_name(field),
                        json_pack("{sf, ss, ss, ss, ss}", "value", value, "unit", unit, "kind",
                                  "measured", "date", day, "source", basis));
}

static const EngMeasuredCurve *find(const EngMeasuredCurve *curves, int n, int threads)
{
    const EngMeasuredCurve *found = NULL;
    for (int i = 0; i < n; i++)
        if (!strcmp(curves[i].pages, "2m") && (threads < 0 || curves[i].threads == threads) &&
            (!found || curves[i].threads > found->threads))
            found = &curves[i];
    return found;
}

/* Random rows of the largest table, by all threads, beside the read stream of as many. */
static void put_dram(const File *f, const EngMachineFacts *facts)
{
    const EngCalibration *c = f->c;
    const EngMeasuredCurve *latency = find(c->latency, c->n_latency, 1);
    const EngMeasuredCurve *lines = find(c->lines, c->n_lines, -1);
    put(f, ENG_TIER_CAPACITY, facts->memory_bytes / 0x1p30, "GiB", "operating system");
    put(f, ENG_TIER_NUMA_NODES, facts->numa_nodes, "nodes", "operating system");
    put(f, ENG_TIER_GRANULE, 64, "B", "cache line, by which the ladder counts");
    put(f, ENG_TIER_BANDWIDTH, c->read_bandwidth / 1e9, "GB/s", c->read_basis);
    put(f, ENG_TIER_POPULATE_RATE, c->populate_rate / 1e9, "GB/s", c->populate_basis);
    put(f, ENG_TIER_COPY_BANDWIDTH, c->copy_bandwidth / 1e9, "GB/s", c->copy_basis);
    if (latency && latency->n)
        put(f, ENG_TIER_LATENCY, latency->values[latency->n - 1] * 1e9, "ns", latency->basis);
    if (lines && lines->n && c->read_bandwidth > 0)
        put(f, ENG_TIER_EFFICIENCY, 100 * lines->values[lines->n - 1] * 64 / c->read_bandwidth, "%",
            lines->basis);
    if (lines) put(f, ENG_TIER_MEASURED_BYTES, c->table_bytes / 0x1p30, "GiB", lines->basis);
    put(f, ENG_TIER_FETCH_SLOWDOWN, 100 * c->slowdowns.fetch, "%", c->slowdown_basis);
    put(f, ENG_TIER_COMPUTE_SLOWDOWN, 100 * c->slowdowns.compute, "%", c->slowdown_basis);
    put(f, ENG_TIER_FLOPS, c->flops / 1e9, "GFLOP/s", c->flops_basis);
}

static void put_drive(const File *f, const EngMachineFacts *facts)
{
    const EngKnee *k = &f->c->drive;
    if (!(k->latency > 0)) return;
    put(f, ENG_TIER_CAPACITY, facts->drive_bytes / 0x1p30, "GiB", "operating system");
    put(f, ENG_TIER_GRANULE, 4096, "B", k->basis);
    put(f, ENG_TIER_LATENCY, k->latency * 1e6, "us", k->basis);
    put(f, ENG_TIER_REQUEST_RATE, k->most / 1e3, "k/s", k->basis);
    put(f, ENG_TIER_OUTSTANDING, k->tried, "requests", k->basis);
    put(f, ENG_TIER_KNEE_EXPONENT, k->exponent, "1", k->basis);
    put(f, ENG_TIER_KNEE_OUTSTANDING, k->best, "requests", k->basis);
    put(f, ENG_TIER_MEASURED_BYTES, f->c->file_bytes / 0x1p30, "GiB", k->basis);
}

EngStatus eng_calibration_machine(const EngCalibration *calibration, const EngMachineFacts *facts,
                                  EngStr *out, EngErr *err)
{
    json_t *dram = json_object(), *file = json_object(), *tiers = json_object(), *root;
    EngStr summary = {0};
    put_dram(&(File){calibration, dram}, facts);
    put_drive(&(File){calibration, file}, facts);
    json_object_set_new(tiers, "dram", dram);
    if (json_object_size(file))
        json_object_set_new(tiers, "file", file);
    else
        json_decref(file);
    eng_str_printf(&summary, "%s, measured with %d threads by engram calibrate",
                   calibration->machine, calibration->threads);
    root = json_pack("{ss, so}", "summary", summary.text ? summary.text : "", "tiers", tiers);
    char *text = root ? json_dumps(root, JSON_INDENT(4) | JSON_REAL_PRECISION(6)) : NULL;
    if (text) eng_str_printf(out, "%s\n", text);
    free(text);
    json_decref(root);
    eng_str_free(&summary);
    if (!text) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for a machine file");
    return eng_str_status(out, err);
}
