/* engram size: does a model's Engram memory fit machines that we do not have, and does its fetch
 * hide? Everything a plan rests on is either a preset's value, with its source, or was given on the
 * command line; what is missing is asked for, never filled in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "bench/cli/verbs.h"
#include "sim/planner/ledger.h"
#include "sim/planner/plan.h"

#define MAX_BACKBONE 512

typedef struct Size {
    EngCli *cli;
    EngPreset preset;
    EngMachineModel machine; /* the tiers of all machines named */
    EngLedgerInput ledger;
    EngStepInput plan;
    double layers[MAX_BACKBONE];
} Size;

static EngStatus need_text(const Size *s, const char *option, const char *why, const char **text,
                           EngErr *err)
{
    *text = eng_cli_text(s->cli, option);
    return *text ? ENG_OK : ENG_FAIL(err, ENG_USAGE, "--%s is needed: %s", option, why);
}

static EngStatus need_int(const Size *s, const char *option, const char *why, int64_t max,
                          int64_t *value, EngErr *err)
{
    const char *text;
    EngStatus status = need_text(s, option, why, &text, err);
    return status ? status : eng_cli_int(s->cli, option, 1, max, value, err);
}

static EngStatus need_share(const Size *s, const char *option, const char *why, double *value,
                            EngErr *err)
{
    const char *text;
    EngStatus status = need_text(s, option, why, &text, err);
    if (!status && !eng_parse_f64(text, value))
        status = ENG_FAIL(err, ENG_USAGE, "--%s=%s: no number", option, text);
    return status;
}

/* Tiers of several machines side by side, such as an accelerator and its host. */
static EngStatus add_machine(Size *s, const char *name, EngErr *err)
{
    EngMachineModel *all = &s->machine, one;
    EngStatus status = eng_machine_open(name, &one, err);
    if (status == ENG_NOT_FOUND)
        return ENG_FAIL(err, ENG_BAD_DATA, "--machine=%s: no such file", name);
    for (int i = 0; !status && i < one.n_tiers; i++) {
        for (int j = 0; j < all->n_tiers; j++)
            if (!strcmp(all->tiers[j].name, one.tiers[i].name))
                return ENG_FAIL(err, ENG_USAGE, "--machine=%s: %s has a tier %s already", name,
                                all->name, one.tiers[i].name);
        if (all->n_tiers == ENG_MAX_TIERS)
            return ENG_FAIL(err, ENG_USAGE, "--machine=%s: more than %d tiers", name,
                            ENG_MAX_TIERS);
        all->tiers[all->n_tiers++] = one.tiers[i];
    }
    if (status) return status;
    size_t n = strlen(all->name);
    snprintf(all->name + n, sizeof all->name - n, "%s%s", n ? "+" : "", one.name);
    return ENG_OK;
}

static EngStatus open_machines(Size *s, EngErr *err)
{
    EngStatus status = ENG_OK;
    int n = eng_cli_repeats(s->cli, "machine");
    if (!n) return ENG_FAIL(err, ENG_USAGE, "--machine is needed: a preset or the path of a file");
    for (int i = 0; !status && i < n; i++)
        status = add_machine(s, eng_cli_repeat(s->cli, "machine", i), err);
    for (int i = 0; !status && i < eng_cli_repeats(s->cli, "assume"); i++)
        status = eng_machine_assume(&s->machine, eng_cli_repeat(s->cli, "assume", i), err);
    return status;
}

/* "dram,pcie": from where the rows lie to who reads them. */
static EngStatus read_path(Size *s, EngErr *err)
{
    const char *text;
    EngStatus status =
        need_text(s, "path", "tiers that rows come through, such as dram,pcie", &text, err);
    for (; !status && *text; text += strspn(text, ",")) {
        char name[32];
        size_t n = strcspn(text, ",");
        if (s->plan.n_path == ENG_MAX_STAGES)
            return ENG_FAIL(err, ENG_USAGE, "--path: more than %d tiers", ENG_MAX_STAGES);
        snprintf(name, sizeof name, "%.*s", (int)n, text);
        status = eng_machine_tier(&s->machine, name, &s->plan.path[s->plan.n_path++], err);
        text += n;
    }
    if (!status && !s->plan.n_path) status = ENG_FAIL(err, ENG_USAGE, "--path: names no tier");
    return status;
}

static EngStatus read_plan(Size *s, EngErr *err)
{
    EngStepInput *plan = &s->plan;
    int64_t tokens = 0, n_layers = 0;
    double layer = 0;
    const char *text;
    EngStatus status = read_path(s, err);
    if (!status) status = need_int(s, "tokens", "tokens of a step", INT32_MAX, &tokens, err);
    if (!status)
        status = need_int(s, "layers", "layers of the backbone", MAX_BACKBONE, &n_layers, err);
    if (!status) status = need_text(s, "layer-time", "of one layer, such as 800us", &text, err);
    if (!status) status = eng_quantity_parse(text, ENG_DIM_SECONDS, &layer, err);
    if (!status)
        status = need_share(s, "unique", "share of rows left by deduplication (1: none)",
                            &plan->unique, err);
    if (!status)
        status = need_share(s, "hits", "share of these that caches hold (0: no cache)", &plan->hits,
                            err);
    for (int i = 0; !status && i < n_layers; i++) s->layers[i] = layer;
    plan->preset = &s->preset;
    plan->format = s->preset.row_format;
    plan->tokens = (double)tokens;
    plan->layers = s->layers;
    plan->n_layers = (int)n_layers;
    s->ledger.batch_tokens = tokens;
    return status;
}

static double capacity_of(const Size *s, const char *name)
{
    for (int i = 0; i < s->machine.n_tiers; i++)
        if (!strcmp(s->machine.tiers[i].name, name))
            return s->machine.tiers[i].fields[ENG_TIER_CAPACITY].value;
    return 0;
}

static const char *const g_places[ENG_PLACE_COUNT] = {"device", "host", "drive"};

static EngStatus read_ledger(Size *s, EngErr *err)
{
    EngLedgerInput *in = &s->ledger;
    const char *where;
    int place = 0;
    int64_t shards = 0, copies = 0;
    EngStatus status = need_text(s, "tables", "device, host or drive", &where, err);
    for (place = 0; !status && strcmp(where, g_places[place]); place++)
        if (place + 1 == ENG_PLACE_COUNT)
            return ENG_FAIL(err, ENG_USAGE, "--tables=%s: not device, host or drive", where);
    if (!status)
        status = need_int(s, "shards", "devices, hosts or drives that share each table", INT32_MAX,
                          &shards, err);
    if (!status)
        status = need_int(s, "copies", "of the tables on each, such as one a NUMA node", 1024,
                          &copies, err);
    if (status) return status;
    in->preset = &s->preset;
    in->format = s->preset.row_format;
    in->tables = (EngPlace)place;
    in->shards = (int)shards;
    in->numa_copies = (int)copies;
    in->replicas = 1;
    in->pinned = true;
    in->staging_buffers = 2;
    in->capacity[ENG_PLACE_DEVICE] = (uint64_t)capacity_of(s, "hbm");
    in->capacity[ENG_PLACE_HOST] = (uint64_t)capacity_of(s, "dram");
    in->capacity[place] = (uint64_t)s->plan.path[0]->fields[ENG_TIER_CAPACITY].value;
    return ENG_OK;
}

static void print_inputs(const Size *s)
{
    printf("machine %s, model %s: a mean of a model that is not calibrated for it (extrapolated)\n",
           s->machine.name, s->preset.name);
    for (int i = 0; i < s->plan.n_path; i++)
        for (int f = 0; f < ENG_TIER_FIELD_COUNT; f++) {
            const EngQuantity *q = &s->plan.path[i]->fields[f];
            if (!q->origin) continue;
            printf("  %s.%s = %.6g %s, %s%s%s: %s\n", s->plan.path[i]->name,
                   eng_tier_field_name((EngTierField)f), q->value,
                   eng_tier_field_unit((EngTierField)f), eng_origin_name(q->origin),
                   *q->date ? " " : "", q->date, q->source);
        }
}

static EngStatus run(EngCli *cli, EngErr *err)
{
    static Size size;
    Size *s = &size;
    EngLedger ledger;
    EngStepPlan plan;
    EngStr out = {0};
    *s = (Size){.cli = cli};
    EngStatus status = eng_preset_find(eng_cli_text(cli, "model"), &s->preset, err);
    if (!status) status = open_machines(s, err);
    if (!status) status = read_plan(s, err);
    if (!status) status = read_ledger(s, err);
    if (!status) status = eng_ledger_build(&s->ledger, &ledger, err);
    if (!status) status = eng_step_plan(&s->plan, &plan, err);
    if (!status) {
        eng_ledger_print(&ledger, &out);
        eng_str_add(&out, "(weights and caches of the backbone are not counted)\n");
        eng_step_print(&plan, &out);
        status = eng_str_status(&out, err);
    }
    if (!status) {
        print_inputs(s);
        fputs(out.text, stdout);
        bool known = s->ledger.capacity[s->ledger.tables] > 0;
        printf("verdict: %s, %s\n",
               !known                     ? "capacity not known"
               : eng_ledger_fits(&ledger) ? "fits"
                                          : "does not fit",
               eng_step_hidden(&plan) ? "hidden" : "not hidden");
    }
    eng_str_free(&out);
    return status;
}

static const EngOption g_options[] = {
    {.name = "machine",
     .value = "NAME|FILE",
     .repeat = true,
     .help = "a preset (h200, epyc-9005, ...) or a machine file; several add their tiers"},
    {.name = "assume",
     .value = "TIER.FIELD=VALUE",
     .repeat = true,
     .help = "a value that no source gives, with its unit: pcie.latency=1.5us"},
    {.name = "model", .value = "PRESET", .def = "v41-flash", .help = "an Engram preset"},
    {.name = "path", .value = "TIER[,TIER]", .help = "tiers that rows come through: dram,pcie"},
    {.name = "tokens", .value = "N", .help = "tokens of a step: streams x (drafted + 1)"},
    {.name = "layers", .value = "N", .help = "layers of the backbone"},
    {.name = "layer-time", .value = "TIME", .help = "of one of them: 800us"},
    {.name = "unique", .value = "SHARE", .help = "rows left by deduplication; 1: none is done"},
    {.name = "hits", .value = "SHARE", .help = "of these, rows that caches hold; 0: no cache"},
    {.name = "tables", .value = "device|host|drive", .help = "where the tables lie"},
    {.name = "shards", .value = "N", .help = "devices, hosts or drives that share each table"},
    {.name = "copies", .value = "N", .help = "copies on each of them"},
};

const EngVerb eng_verb_size = {
    .name = "size",
    .operands = "",
    .summary = "plan for a machine: what fits, and whether the fetch hides",
    .details =
        "Prints every input with its source, the bytes held where, and for each Engram layer the\n"
        "gather time term by term, its window and what would hide it. Means only.",
    .options = g_options,
    .n_options = sizeof g_options / sizeof *g_options,
    .run = run,
};
