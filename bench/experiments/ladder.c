/* ladder: what does a load from a random place cost, and how many lines a second can be had?
 *
 * Working sets from the first-level cache to memory; one dependent chain for latency, independent
 * chains for rate; lines of 64 bytes or table rows with all their lines. The same memory is read
 * with known row ids (`read24`) and by the roofs of the gather, so that those roofs can be compared
 * with the chains in one block (compare = access): random rows are limited by misses in flight, and
 * a roof far below the chains would flatter every kernel measured against it.
 */
#include "bench/experiments/experiments.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "bench/experiments/axes.h"
#include "bench/experiments/ladder_memory.h"
#include "bench/experiments/shape.h"
#include "bench/experiments/support.h"

#define ROW_DIMS       256
#define COLUMNS        24
#define LEAST_HOPS     1024 /* per thread and run: a quarter of the set between these */
#define MOST_HOPS      65536
#define WARM_BYTES     ((size_t)256 << 20) /* sets up to this are read once before they are timed */
#define MAX_IDS        (1 << 22)
#define VERIFIED_HOPS  (1 << 22) /* most hops compared with the computed cycle */
#define EST_NS_PER_HOP 120.0

static const char *const g_words_pages[] = {"4k", "2m", "1g", NULL};
static const char *const g_words_line[] = {"64", "256+8", "264", NULL};
static const char *const g_words_out[] = {"bf16", "f32", "fp8", NULL};

static const EngAxisDef g_axes[] = {
    {"bytes", ENG_AXIS_INT, "67108864", "bytes", 64, 0x1p46, NULL, "working set"},
    {"chains", ENG_AXIS_INT, "1", "", 1, ENG_LADDER_MAX_CHAINS, NULL,
     "independent chains per thread, a power of two: 1 gives the latency"},
    {"pages", ENG_AXIS_WORD, "2m", "", 0, 0, g_words_pages,
     "page size; 2m: transparent huge pages, as many as are granted (metric huge_share)"},
    {"line", ENG_AXIS_WORD, "64", "", 0, 0, g_words_line,
     "what a load brings in: a line, or the 5 lines of an fp8 row, split or packed"},
    {"access", ENG_AXIS_WORD, "chains", "", 0, 0, NULL,
     "chains; chains16: that many, whatever the axis says; read24: rows known in advance, "
     "requested "
     "in groups of 24; or a roof of gather"},
    {"tokens", ENG_AXIS_INT, "256", "tokens", 1, 65536, NULL,
     "per call, of 24 rows: for read and roofs"},
    {"out", ENG_AXIS_WORD, "bf16", "", 0, 0, g_words_out, "type of the output: for roofs"},
    ENG_AXIS_THREADS_DEF,
};

static const EngMetricDef g_metrics[] = {
    {"ns_per_load", "ns", -1, "cpu", "CPU time of a thread per line it loads"},
    {"gload_per_s", "G/s", +1, "cpu", "lines loaded per CPU time, all threads"},
    {"gbps", "GB/s", +1, "cpu", "64 bytes x lines per CPU time"},
    {"wall_gbps", "GB/s", +1, "wall", "64 bytes x lines per wall time"},
    {"ns_per_hop", "ns", -1, "cpu", "CPU time between two loads of one chain: latency under load"},
    {"huge_share", "", 0, "none", "share of the set that lies on pages larger than 4 KiB"},
    {"lines", "", 0, "none", "lines in the working set"},
};

static const EngTunableAxis g_tunables[] = {{"pages", "4k,2m"}, {"pin", NULL}, {NULL, NULL}};

typedef enum Access { ACCESS_CHAINS, ACCESS_READ, ACCESS_ROOF } Access;

typedef struct Config {
    size_t bytes;
    int chains, threads;
    EngPageKind pages;
    EngLadderLine line;
    Access access;
    const EngKernel *roof;
    int depth;    /* rows that read requests back to back */
    int64_t rows; /* per call, for read and roofs */
    EngDtype out;
} Config;

typedef struct State {
    Config config;
    EngLadderMemory *memory;
    const uint8_t **at; /* [threads, ENG_LADDER_MAX_CHAINS] */
    int64_t hops;       /* per chain and run */
    int64_t *ids;       /* [n_ids], whole calls */
    int64_t n_ids, next_id;
    void *out;
    uint8_t *out_scales;
    EngRunner runner;
} State;

/* ---- the point ---------------------------------------------------------------------------------
 */

static EngStatus read_access(const EngPoint *point, Config *c, EngErr *err)
{
    const char *word = eng_point_word(point, "access");
    int64_t n;
    if (!strcmp(word, "chains")) return ENG_OK;
    if (!strncmp(word, "chains", 6) && eng_parse_i64(word + 6, &n) && n > 0) {
        c->chains = n > ENG_LADDER_MAX_CHAINS ? ENG_LADDER_MAX_CHAINS + 1 : (int)n;
        return ENG_OK;
    }
    if (!strncmp(word, "read", 4) && eng_parse_i64(word + 4, &n)) {
        c->access = ACCESS_READ;
        c->depth = (int)n;
        if (n > 0 && n <= ENG_LADDER_MAX_DEPTH) return ENG_OK;
        return ENG_FAIL(err, ENG_USAGE, "access '%s': groups of 1 to %d rows can be read", word,
                        ENG_LADDER_MAX_DEPTH);
    }
    c->access = ACCESS_ROOF;
    c->roof = eng_kernel_find(ENG_OP_GATHER, word);
    if (c->roof && c->roof->roof && c->roof->backend == ENG_CPU) return ENG_OK;
    return ENG_FAIL(err, ENG_USAGE,
                    "access '%s' is none of chains, chains8 .., read8 .., and roofs of gather",
                    word);
}

static EngProblem problem_of(const Config *c, const EngLadder *ladder)
{
    EngTable table = {.format = c->line == ENG_LADDER_PACKED ? ENG_ROW_FP8_PACKED : ENG_ROW_FP8,
                      .row_dims = ROW_DIMS,
                      .rows = (int64_t)(c->bytes / eng_ladder_bytes(c->line)),
                      .values = ladder ? ladder->values : NULL,
                      .scales = ladder ? ladder->side : NULL};
    return (EngProblem){
        .op = ENG_OP_GATHER,
        .threads = c->threads,
        .u.gather = {
            .table = table, .columns = COLUMNS, .tokens = c->rows / COLUMNS, .out = c->out}};
}

static EngStatus read_config(const EngPoint *point, Config *c, EngErr *err)
{
    *c = (Config){.bytes = (size_t)eng_point_int(point, "bytes"),
                  .chains = (int)eng_point_int(point, "chains"),
                  .threads = (int)eng_point_int(point, "threads"),
                  .pages = (EngPageKind)eng_page_kind_parse(eng_point_word(point, "pages")),
                  .line = (EngLadderLine)eng_ladder_line_parse(eng_point_word(point, "line")),
                  .rows = eng_point_int(point, "tokens") * COLUMNS,
                  .out = (EngDtype)eng_dtype_parse(eng_point_word(point, "out"))};
    EngStatus status = read_access(point, c, err);
    if (status) return status;
    if (c->chains > ENG_LADDER_MAX_CHAINS || c->chains & (c->chains - 1))
        return ENG_FAIL(err, ENG_USAGE, "chains in number must be a power of two up to %d",
                        ENG_LADDER_MAX_CHAINS);
    int64_t slots = (int64_t)(c->bytes / eng_ladder_bytes(c->line));
    int64_t least = c->access == ACCESS_CHAINS ? (int64_t)c->threads * c->chains : 1;
    if (slots < least)
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "%zu bytes are %" PRId64 " slots, too few for %d chains on %d threads",
                        c->bytes, slots, c->chains, c->threads);
    return ENG_OK;
}

static EngStatus check(const EngPoint *point, EngErr *why)
{
    Config c;
    EngStatus status = read_config(point, &c, why);
    if (status || c.access != ACCESS_ROOF) return status;
    if (c.line == ENG_LADDER_LINE64)
        return ENG_FAIL(why, ENG_UNSUPPORTED, "roofs of gather read rows: line 256+8 or 264");
    EngProblem problem = problem_of(&c, NULL);
    return eng_kernel_supports(c.roof, &problem, why);
}

static int64_t count_ids(const Config *c)
{
    int64_t slots = (int64_t)(c->bytes / eng_ladder_bytes(c->line));
    int64_t n = slots < MAX_IDS ? slots : MAX_IDS;
    return n < c->rows ? c->rows : n - n % c->rows;
}

static EngStatus need(const EngPoint *point, EngNeed *need, EngErr *err)
{
    Config c;
    EngStatus status = read_config(point, &c, err);
    if (status) return status;
    *need =
        (EngNeed){.shared_bytes = c.bytes,
                  .shared_id = ((uint64_t)c.bytes << 8) + (uint64_t)(c.line * ENG_PAGE_KIND_COUNT) +
                               (uint64_t)c.pages + 1};
    if (c.access != ACCESS_CHAINS)
        need->private_bytes =
            (size_t)count_ids(&c) * sizeof(int64_t) + (size_t)c.rows * ROW_DIMS * sizeof(float);
    return ENG_OK;
}

/* Of each chain in one run: long enough that a set that fits a cache is met again while it is
 * timed, short enough for far memory. */
static int64_t hops_of(const Config *c)
{
    int64_t hops = (int64_t)(c->bytes / eng_ladder_bytes(c->line)) / 4 / c->threads;
    if (hops < LEAST_HOPS) hops = LEAST_HOPS;
    return (hops > MOST_HOPS ? MOST_HOPS : hops) / c->chains;
}

static double estimate_ns(const EngPoint *point)
{
    Config c;
    if (read_config(point, &c, NULL)) return 0;
    if (c.access != ACCESS_CHAINS) return EST_NS_PER_HOP / 4 * (double)c.rows / c.threads;
    return EST_NS_PER_HOP * (double)hops_of(&c);
}

/* ---- life --------------------------------------------------------------------------------------
 */

static void teardown(void *opaque)
{
    State *state = opaque;
    if (!state) return;
    eng_runner_close(&state->runner);
    eng_free(state->at);
    eng_free(state->ids);
    eng_free(state->out);
    eng_free(state->out_scales);
    eng_ladder_memory_drop(state->memory);
    eng_free(state);
}

/* Chains start evenly spaced: `hops` apart, one cycle is walked by all together but for the last
 * few slots. */
static int64_t spacing(const State *state)
{
    const Config *c = &state->config;
    return state->memory->ladder.slots / ((int64_t)c->threads * c->chains);
}

static void place_chains(State *state, int64_t first)
{
    const EngLadder *ladder = &state->memory->ladder;
    int64_t t = first, apart = spacing(state);
    for (int thread = 0; thread < state->config.threads; thread++)
        for (int i = 0; i < state->config.chains; i++, t += apart)
            state->at[thread * ENG_LADDER_MAX_CHAINS + i] =
                ladder->values + (size_t)eng_ladder_slot_at(ladder, t) * ladder->stride;
}

static EngStatus setup_chains(State *state, EngErr *err)
{
    const Config *c = &state->config;
    EngStatus status = eng_alloc_or((void **)&state->at, (size_t)c->threads * ENG_LADDER_MAX_CHAINS,
                                    sizeof *state->at, "ladder chains", err);
    if (status) return status;
    state->hops = hops_of(c);
    place_chains(state, 0);
    return ENG_OK;
}

/* Ids from a random place of the cycle on; a set with fewer slots repeats them. */
static EngStatus setup_ids(State *state, uint64_t seed, EngErr *err)
{
    const EngLadder *ladder = &state->memory->ladder;
    EngRng rng;
    state->n_ids = count_ids(&state->config);
    EngStatus status = eng_alloc_or((void **)&state->ids, (size_t)state->n_ids, sizeof *state->ids,
                                    "ladder rows", err);
    if (status) return status;
    eng_rng_seed(&rng, seed);
    int64_t first = (int64_t)eng_rng_below(&rng, (uint64_t)ladder->slots);
    for (int64_t i = 0; i < state->n_ids; i++)
        state->ids[i] = eng_ladder_slot_at(ladder, first + i);
    return ENG_OK;
}

static EngStatus setup_roof(State *state, EngErr *err)
{
    EngProblem problem = problem_of(&state->config, &state->memory->ladder);
    size_t values = (size_t)state->config.rows * ROW_DIMS;
    EngStatus status = eng_alloc_or(&state->out, eng_dtype_bytes(state->config.out, values), 1,
                                    "ladder output", err);
    if (!status && state->config.out == ENG_FP8)
        status = eng_alloc_or((void **)&state->out_scales, values / ENG_SCALE_GROUP, 1,
                              "ladder output", err);
    return status ? status : eng_runner_open(&state->runner, state->config.roof, &problem, err);
}

/* A set that fits a cache is there from the start: a run sees but a quarter of it. */
static void warm(const EngLadderMemory *memory)
{
    const volatile uint8_t *bytes = memory->pages.bytes;
    if (memory->pages.n > WARM_BYTES) return;
    for (size_t i = 0; i < memory->pages.n; i += 64) (void)bytes[i];
}

static EngStatus setup(const EngBench *bench, const EngPoint *point, void **out, EngErr *err)
{
    State *state;
    EngStatus status = eng_alloc_or((void **)&state, 1, sizeof *state, "ladder", err);
    if (status) return status;
    Config *c = &state->config;
    status = read_config(point, c, err);
    if (!status) status = eng_ladder_memory_take(c->bytes, c->pages, c->line, &state->memory, err);
    if (!status)
        status = c->access == ACCESS_CHAINS ? setup_chains(state, err)
                                            : setup_ids(state, bench->seed, err);
    if (!status && c->access == ACCESS_ROOF) status = setup_roof(state, err);
    if (!status) warm(state->memory);
    if (status)
        teardown(state);
    else
        *out = state;
    return status;
}

static const int64_t *next_ids(State *state)
{
    const int64_t *ids = state->ids + state->next_id;
    state->next_id += state->config.rows;
    if (state->next_id >= state->n_ids) state->next_id = 0;
    return ids;
}

static EngStatus run(void *opaque, EngErr *err)
{
    State *state = opaque;
    const Config *c = &state->config;
    const EngLadder *ladder = &state->memory->ladder;
    if (c->access == ACCESS_CHAINS) {
        eng_ladder_walk(ladder, c->threads, c->chains, state->hops, state->at);
        return ENG_OK;
    }
    const int64_t *ids = next_ids(state);
    if (c->access == ACCESS_READ) {
        eng_ladder_read(ladder, c->threads, c->depth, ids, c->rows);
        return ENG_OK;
    }
    EngArgs args = {.u.gather = {.rows = ids,
                                 .row_stride = COLUMNS,
                                 .out = state->out,
                                 .out_scales = state->out_scales}};
    return eng_runner_run(&state->runner, &args, err);
}

/* ---- what the loads must have seen -------------------------------------------------------------
 */

/* Walks a whole cycle, or as much of it as VERIFIED_HOPS allow, and compares the sum of everything
 * loaded and the ends of all chains with the computed cycle. That the cycle meets every slot once
 * is arithmetic (and tested). */
static bool verify_chains(State *state, int64_t *n_slots)
{
    const Config *c = &state->config;
    const EngLadder *ladder = &state->memory->ladder;
    int64_t all = (int64_t)c->threads * c->chains, apart = spacing(state), wrong = 0;
    int64_t steps = apart * all <= VERIFIED_HOPS ? apart : VERIFIED_HOPS / all;
    uint64_t want = 0;
    place_chains(state, 0);
    uint64_t got = eng_ladder_walk(ladder, c->threads, c->chains, steps, state->at);
    for (int64_t i = 0; i < all; i++) {
        for (int64_t t = 0; t < steps; t++)
            want += eng_ladder_slot_sum(ladder, eng_ladder_slot_at(ladder, i * apart + t));
        int64_t end = eng_ladder_slot_at(ladder, i * apart + steps);
        wrong += state->at[i / c->chains * ENG_LADDER_MAX_CHAINS + i % c->chains] !=
                 ladder->values + (size_t)end * ladder->stride;
    }
    *n_slots = steps * all;
    return got == want && !wrong;
}

static bool verify_read(State *state, int64_t *n_slots)
{
    const Config *c = &state->config;
    const EngLadder *ladder = &state->memory->ladder;
    const int64_t *ids = next_ids(state);
    uint64_t want = 0;
    for (int64_t i = 0; i < c->rows; i++) want += eng_ladder_slot_sum(ladder, ids[i]);
    *n_slots = c->rows;
    return eng_ladder_read(ladder, c->threads, c->depth, ids, c->rows) == want;
}

static EngStatus verify(void *opaque, EngResidual *residual, EngErr *err)
{
    State *state = opaque;
    int64_t n = 0;
    if (state->config.access == ACCESS_ROOF) {
        eng_residual_of_roof(residual);
        return run(state, err);
    }
    bool chains = state->config.access == ACCESS_CHAINS;
    bool pass = chains ? verify_chains(state, &n) : verify_read(state, &n);
    int lines = eng_ladder_lines(state->config.line);
    *residual = (EngResidual){.of = "exact",
                              .pass = pass,
                              .max_rel = pass ? 0 : 1,
                              .n_checked = n * lines,
                              .n_outputs = state->memory->ladder.slots * lines};
    snprintf(residual->note, sizeof residual->note, "sum of %" PRId64 " slots %s", n,
             pass ? "as computed" : "is not what the cycle gives");
    return ENG_OK;
}

static void observe(void *opaque, const EngTiming *timing, double *values)
{
    const State *state = opaque;
    const Config *c = &state->config;
    double cpu_ns = eng_cpu_ns(timing), wall_ns = eng_wall_ns(timing);
    bool chains = c->access == ACCESS_CHAINS;
    double slots = chains ? (double)state->hops * c->chains * c->threads : (double)c->rows;
    double lines = slots * eng_ladder_lines(c->line);
    values[0] = cpu_ns * c->threads / lines;
    values[1] = lines / cpu_ns;
    values[2] = 64 * lines / cpu_ns;
    values[3] = 64 * lines / wall_ns;
    values[4] = chains ? cpu_ns / (double)state->hops : NAN;
    values[5] = state->memory->huge_share;
    values[6] = (double)state->memory->ladder.slots * eng_ladder_lines(c->line);
}

const EngExperiment eng_experiment_ladder = {
    .name = "ladder",
    .question = "What does a load from a random place cost, by working set and page size?",
    .axes = g_axes,
    .n_axes = sizeof g_axes / sizeof *g_axes,
    .metrics = g_metrics,
    .n_metrics = sizeof g_metrics / sizeof *g_metrics,
    .op = -1,
    .tunables = g_tunables,
    .check = check,
    .need = need,
    .estimate_ns = estimate_ns,
    .setup = setup,
    .run = run,
    .verify = verify,
    .observe = observe,
    .teardown = teardown,
};
