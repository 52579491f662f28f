/* engram trace overlap: fetch, stall and hidden fraction per step and layer. A trace with ranges of
 * ours is read by them, any other by the names of its kernels. */
#include "bench/cli/trace_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* ---- options -----------------------------------------------------------------------------------
 */

/* A list of layers, "1,14": in the order of lookups within a step. */
static EngStatus parse_layers(const char *text, EngTraceEngineArgs *args, EngErr *err)
{
    for (const char *at = text, *next; at; at = next) {
        char item[24]; /* as long as any number */
        size_t n = strcspn(at, ",");
        next = at[n] ? at + n + 1 : NULL;
        if (args->options.n_layers == 16)
            return ENG_FAIL(err, ENG_USAGE, "--layers=%s: more than 16 layers", text);
        int64_t *layer = &args->layers[args->options.n_layers++];
        snprintf(item, sizeof item, "%.*s", (int)n, at);
        if (n >= sizeof item || !eng_parse_i64(item, layer) || *layer < 0)
            return ENG_FAIL(err, ENG_USAGE, "--layers=%s: '%.*s' is no layer", text, (int)n, at);
    }
    args->options.layers = args->layers;
    return ENG_OK;
}

EngStatus eng_trace_engine_args(const EngCli *cli, EngTraceEngineArgs *args, EngErr *err)
{
    int64_t columns = 0, row_bytes = 0;
    *args = (EngTraceEngineArgs){.options = {.tokens = -1}};
    for (int c = 0; c < ENG_CLASS_OTHER; c++)
        args->options.patterns[c] = eng_cli_text(cli, eng_class_name((EngKernelClass)c));
    args->options.step = eng_cli_text(cli, "step");
    EngStatus status = parse_layers(eng_cli_text(cli, "layers"), args, err);
    if (!status) status = eng_cli_int(cli, "columns", 1, 4096, &columns, err);
    if (!status) status = eng_cli_int(cli, "row-bytes", 1, 1 << 20, &row_bytes, err);
    if (!status && eng_cli_text(cli, "tokens"))
        status = eng_cli_int(cli, "tokens", 1, INT64_C(1) << 40, &args->options.tokens, err);
    args->options.bytes_per_token = columns * row_bytes;
    return status;
}

/* ---- printing ----------------------------------------------------------------------------------
 */

#define CAUSES "+read_us,+collective_us,+hash_us,+copy_us,+queue_us"

static void put_causes(EngTraceRows *rows, const int64_t *wait_ns, bool known)
{
    for (int c = 0; c < ENG_WAIT_COUNT; c++) eng_trace_rows_us(rows, wait_ns[c], known);
}

static void put_gbps(EngTraceRows *rows, int64_t bytes, int64_t ns)
{
    eng_trace_rows_real(rows, bytes < 0 || ns <= 0 ? NAN : (double)bytes / (double)ns);
}

static EngStatus print_layers(const EngCli *cli, const EngOverlap *overlap, EngErr *err)
{
    EngTraceRows rows;
    EngLayerOverlap *layers = NULL;
    int n = 0;
    EngStatus status = eng_overlap_by_layer(overlap, &layers, &n, err);
    if (!status)
        status = eng_trace_rows_begin(
            &rows, cli, "sums by layer; read to queue: what ran during the stall",
            "gpu,layer,+steps,+fetch_us,+stall_us,+hidden," CAUSES ",+gbps", err);
    for (int i = 0; i < n && !status; i++) {
        const EngLayerOverlap *l = &layers[i];
        char layer[32] = "all", device[32] = "";
        if (!l->all_layers) snprintf(layer, sizeof layer, "%lld", (long long)l->layer);
        if (!l->all_layers && l->layer < 0) layer[0] = 0;
        if (l->device >= 0) snprintf(device, sizeof device, "%lld", (long long)l->device);
        eng_trace_rows_text(&rows, l->all_layers ? "" : *device ? device : "host");
        eng_trace_rows_text(&rows, layer);
        eng_trace_rows_int(&rows, l->n_steps, true);
        eng_trace_rows_us(&rows, l->fetch_ns, true);
        eng_trace_rows_us(&rows, l->stall_ns, l->stall_ns >= 0);
        eng_trace_rows_real(&rows, l->hidden);
        put_causes(&rows, l->wait_ns, l->stall_ns >= 0);
        put_gbps(&rows, l->bytes, l->fetch_ns);
    }
    if (!status) status = eng_trace_rows_end(&rows);
    eng_free(layers);
    return status;
}

static EngStatus print_steps(const EngCli *cli, const EngOverlap *overlap, int64_t most,
                             EngErr *err)
{
    EngTraceRows rows;
    bool table;
    EngStatus status = eng_trace_is_table(cli, &table, err);
    if (!status)
        status = eng_trace_rows_begin(&rows, cli, "steps",
                                      "+step,+gpu,+layer,+tokens,+bytes,+step_us,+fetch_us,"
                                      "+stall_us,+hidden," CAUSES,
                                      err);
    if (status) return status;
    int64_t n = table && overlap->n > most ? most : overlap->n;
    for (int64_t i = 0; i < n; i++) {
        const EngFetch *f = &overlap->fetches[i];
        eng_trace_rows_int(&rows, f->step, f->step >= 0);
        eng_trace_rows_int(&rows, f->device, f->device >= 0);
        eng_trace_rows_int(&rows, f->layer, f->layer >= 0);
        eng_trace_rows_int(&rows, f->tokens, f->tokens >= 0);
        eng_trace_rows_int(&rows, f->bytes, f->bytes >= 0);
        eng_trace_rows_us(&rows, f->step_ns, f->step_ns >= 0);
        eng_trace_rows_us(&rows, f->fetch_ns, true);
        eng_trace_rows_us(&rows, f->stall_ns, f->stall_ns >= 0);
        eng_trace_rows_real(&rows, f->hidden);
        put_causes(&rows, f->wait_ns, f->stall_ns >= 0);
    }
    status = eng_trace_rows_end(&rows);
    if (!status && table && n < overlap->n)
        printf("%lld more; --format=csv has all\n", (long long)(overlap->n - n));
    if (!status && table && overlap->n_without_consumer)
        printf("%lld of %lld fetches have no consumer in the trace: no stall, and in no sum that "
               "has\n",
               (long long)overlap->n_without_consumer, (long long)overlap->n);
    return status;
}

EngStatus eng_trace_print_overlap(const EngCli *cli, const EngOverlap *overlap, int64_t most,
                                  EngErr *err)
{
    bool table;
    EngStatus status = eng_trace_is_table(cli, &table, err);
    if (!status && table) status = print_layers(cli, overlap, err);
    return status ? status : print_steps(cli, overlap, most, err);
}

static EngStatus print_victims(const EngTrace *trace, EngErr *err)
{
    EngVictim victims[4];
    int n = 0;
    EngStatus status = eng_overlap_victims(trace, victims, &n, err);
    for (int i = 0; i < n && !status; i++) {
        const EngInterference *e = &victims[i].effect;
        printf("%s%s ranges: %.4g us beside fetches", i ? "" : "\ninterference\n", victims[i].name,
               (double)e->window_ns * 1e-3);
        if (isnan(e->slowdown))
            printf("; %lld wholly inside one and %lld apart, too few to compare\n",
                   (long long)e->n_inside, (long long)e->n_apart);
        else
            printf("; median %.4g us inside (%lld), %.4g us apart (%lld): %+.1f %%\n",
                   e->inside_ns * 1e-3, (long long)e->n_inside, e->apart_ns * 1e-3,
                   (long long)e->n_apart, 100 * e->slowdown);
    }
    return status;
}

EngStatus eng_trace_overlap(EngCli *cli, const char *file, EngErr *err)
{
    EngTrace *trace = NULL;
    EngOverlap overlap = {0};
    EngEngine engine = {0};
    EngTraceEngineArgs args;
    bool table, ranges = true;
    EngStatus status = eng_trace_is_table(cli, &table, err);
    if (!status) status = eng_trace_engine_args(cli, &args, err);
    if (!status) status = eng_trace_open(file, &trace, err);
    if (status) return status;
    eng_trace_headline(trace, table ? stdout : stderr);
    status = eng_overlap_from_ranges(trace, &overlap, err);
    if (!status && !overlap.n) {
        ranges = false;
        status = eng_engine_read(trace, &args.options, &engine, err);
        overlap = engine.overlap;
    }
    if (!status && !overlap.n)
        status = ENG_FAIL(
            err, ENG_NOT_FOUND,
            "%s: no ranges `fetch` of the domain engram and no kernel that --lookup=%s "
            "matches",
            file,
            args.options.patterns[ENG_CLASS_LOOKUP] ? args.options.patterns[ENG_CLASS_LOOKUP]
                                                    : eng_class_pattern(ENG_CLASS_LOOKUP));
    if (!status) status = eng_trace_print_overlap(cli, &overlap, 40, err);
    if (!status && table && ranges) status = print_victims(trace, err);
    if (ranges)
        eng_overlap_free(&overlap);
    else
        eng_engine_free(&engine);
    eng_trace_close(trace);
    return status;
}
