/* engram audit: is a prompt or token stream an honest input for a benchmark of hash tables? */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "bench/cli/table.h"
#include "bench/cli/verbs.h"
#include "bench/core/stream.h"
#include "bench/core/stream_import.h"
#include "bench/experiments/audit.h"
#include "bench/experiments/shape.h"
#include "kernels/address/preset.h"
#include "kernels/address/tokmap.h"

#define GENERATED_TOKENS ((int64_t)1 << 16)
#define MAX_CORPORA      40
#define HEADER_BYTES     4096 /* of a .json that tell a stream's header from a log */

typedef struct Audit {
    EngCli *cli;
    EngPreset preset;
    EngAddress address, original;
    EngTokmap map; /* empty when the preset names none */
    EngStream stream;
    EngAudit counts;
    int size; /* index of the batch size that corpora are compared at */
    EngAuditCorpus corpora[MAX_CORPORA];
    EngAudit corpus_counts[MAX_CORPORA];
    int n_corpora;
    EngAuditVerdict verdict;
    char sentence[512];
} Audit;

/* ---- opening -----------------------------------------------------------------------------------
 */

static EngStatus open_preset(Audit *a, EngErr *err)
{
    const char *data = eng_cli_text(a->cli, "data");
    EngShape shape = {0};
    EngStr path = {0};
    EngStatus status = eng_preset_find(eng_cli_text(a->cli, "preset"), &a->preset, err);
    if (status) return status;
    const EngAddressSpec *spec = &a->preset.address;
    shape.preset = a->preset;
    shape.layer = spec->layer_ids[0];
    shape.min_order = spec->min_order;
    shape.max_order = spec->max_order;
    shape.heads = spec->heads;
    shape.rows_per_head = spec->start;
    status = eng_shape_address(&shape, spec->vocab, &a->address, err);
    if (status || !a->preset.tokmap_digest[0]) return status;
    status = eng_shape_address(&shape, a->preset.vocab_ids, &a->original, err);
    eng_str_printf(&path, "%s/tokenizer.json", data);
    if (!status) status = eng_str_status(&path, err);
    if (!status)
        status = eng_tokmap_load_checked(path.text, a->preset.tokmap_digest, a->preset.shared_ids,
                                         a->preset.vocab_ids, &a->map, err);
    if (status == ENG_NOT_FOUND)
        status =
            ENG_FAIL(err, ENG_BAD_DATA, "%s: no such file (scripts/fetch_data gets it)", path.text);
    eng_str_free(&path);
    return status;
}

/* A .json is a stream's header when its beginning names the format, else a log of JSON lines. */
static bool is_header(const char *path)
{
    char text[HEADER_BYTES + 1];
    size_t n = strlen(path);
    if (n < 5 || strcmp(path + n - 5, ".json")) return false;
    FILE *file = fopen(path, "rb");
    if (!file) return true; /* the stream reader words the error */
    text[fread(text, 1, HEADER_BYTES, file)] = 0;
    fclose(file);
    return strstr(text, ENG_STREAM_FORMAT) != NULL;
}

static EngStatus open_named(Audit *a, const char *name, EngStream *stream, EngErr *err)
{
    bool generated = !strcmp(name, "synthetic") || !strcmp(name, "uniform");
    if (generated)
        return eng_stream_synthetic(name, GENERATED_TOKENS, a->preset.address.vocab, 1, stream,
                                    err);
    return eng_stream_find(eng_cli_text(a->cli, "data"), name, stream, err);
}

static EngStatus open_input(Audit *a, const char *what, EngErr *err)
{
    bool is_path = strchr(what, '/') || strchr(what, '.') || eng_file_exists(what);
    if (!is_path) return open_named(a, what, &a->stream, err);
    if (is_header(what)) {
        EngStatus status = eng_stream_open(what, &a->stream, err);
        return status == ENG_NOT_FOUND ? ENG_FAIL(err, ENG_BAD_DATA, "%s: no such file", what)
                                       : status;
    }
    int format = eng_stream_format_parse(eng_cli_text(a->cli, "read"));
    if (format < 0)
        return ENG_FAIL(err, ENG_USAGE, "--read=%s: not auto, raw, npy or jsonl",
                        eng_cli_text(a->cli, "read"));
    int64_t vocab = a->preset.tokmap_digest[0] ? a->preset.vocab_ids : a->preset.address.vocab;
    EngStreamImport import = {
        .file = what, .format = (EngStreamFormat)format, .option = "--read", .vocab_ids = vocab};
    return eng_stream_read_log(&import, &a->stream, err);
}

/* ---- counting ----------------------------------------------------------------------------------
 */

/* Generated streams are drawn over compressed ids, and a preset without a tokenizer has no others.
 */
static EngStatus count(const Audit *a, const EngStream *stream, int only_size, EngAudit *counts,
                       EngErr *err)
{
    bool generated = !strcmp(stream->kind, "synthetic") || !strcmp(stream->kind, "uniform");
    bool mapped = !generated && a->map.n_ids > 0;
    int32_t *ids;
    EngStatus status =
        eng_alloc_or((void **)&ids, (size_t)stream->n_tokens, sizeof *ids, "compressed ids", err);
    if (status) return status;
    for (int64_t i = 0; !mapped && i < stream->n_tokens; i++) ids[i] = (int32_t)stream->ids[i];
    status = mapped ? eng_tokmap_apply(&a->map, stream->ids, stream->n_tokens, ids, err)
                    : eng_address_check_ids(&a->address, ids, stream->n_tokens, err);
    EngAuditInput input = {.compressed = ids,
                           .ids = mapped ? stream->ids : NULL,
                           .n_tokens = stream->n_tokens,
                           .address = &a->address,
                           .original = mapped ? &a->original : NULL};
    if (!status) status = eng_audit_count(&input, only_size, counts, err);
    eng_free(ids);
    return status ? eng_err_prefix(err, "%s", stream->corpus), status : ENG_OK;
}

/* A corpus that cannot be read is left out with a word; the audit goes on. */
static void add_corpus(Audit *a, const char *name)
{
    EngStream stream;
    EngErr why = {0};
    if (a->n_corpora == MAX_CORPORA) return;
    EngAudit *counts = &a->corpus_counts[a->n_corpora];
    if (open_named(a, name, &stream, &why)) {
        eng_warn("audit", "%s", why.text);
        return;
    }
    if (count(a, &stream, a->size, counts, &why)) {
        eng_warn("audit", "%s", why.text);
    } else if (counts->n_sizes > a->size) {
        EngAuditCorpus *c = &a->corpora[a->n_corpora++];
        snprintf(c->name, sizeof c->name, "%s", name);
        snprintf(c->kind, sizeof c->kind, "%s", stream.kind);
        c->distinct_all = counts->counts[a->size].distinct_all;
        c->repeat_prev = counts->counts[a->size].repeat_prev;
    }
    eng_stream_close(&stream);
}

/* The data folder's own corpora (imports of the user are compared only when they are the input),
 * and a uniform stream. */
static EngStatus add_corpora(Audit *a, EngErr *err)
{
    EngStreamNames names;
    EngStatus status = eng_stream_names(eng_cli_text(a->cli, "data"), &names, err);
    if (status) return status;
    bool has_tokens = a->map.n_ids > 0;
    for (int i = 0; i < names.n && has_tokens; i++)
        if (eng_stream_name_fetched(names.names[i])) add_corpus(a, names.names[i]);
    add_corpus(a, "uniform");
    eng_stream_names_free(&names);
    return ENG_OK;
}

/* ---- text --------------------------------------------------------------------------------------
 */

static void put_shares(EngTextTable *table, const EngAudit *counts, int size)
{
    const EngReuseCounts *c = &counts->counts[size];
    for (int order = counts->min_order; order <= counts->max_order; order++)
        eng_table_printf(table, "%.1f", 100 * c->distinct[order]);
    eng_table_printf(table, "%.1f", 100 * c->distinct_all);
    if (isnan(c->repeat_prev))
        eng_table_text(table, "");
    else
        eng_table_printf(table, "%.1f", 100 * c->repeat_prev);
}

/* first, the orders' columns, all, repeat, and `last` if it has a title. */
static EngStatus open_table(const EngAudit *counts, const char *first, const char *last,
                            EngTextTable **table, EngErr *err)
{
    static const char *const titles[] = {"",         "1-gram %", "2-gram %", "3-gram %", "4-gram %",
                                         "5-gram %", "6-gram %", "7-gram %", "8-gram %"};
    EngTableColumn columns[ENG_MAX_ORDER + 4];
    int n = 0;
    columns[n++] = (EngTableColumn){first, false};
    for (int order = counts->min_order; order <= counts->max_order; order++)
        columns[n++] = (EngTableColumn){titles[order], true};
    columns[n++] = (EngTableColumn){"all %", true};
    columns[n++] = (EngTableColumn){"in batch before %", true};
    if (last) columns[n++] = (EngTableColumn){last, true};
    return eng_table_create(table, columns, n, err);
}

static EngStatus print_sizes(const Audit *a, EngErr *err)
{
    EngTextTable *table;
    EngStatus status = open_table(&a->counts, "batch", NULL, &table, err);
    if (status) return status;
    for (int i = 0; i < a->counts.n_sizes; i++) {
        eng_table_printf(table, "%" PRId64, eng_audit_sizes[i]);
        put_shares(table, &a->counts, i);
    }
    status = eng_table_print(table, stdout, err);
    eng_table_free(table);
    return status;
}

static void put_top(EngTextTable *table, const EngAudit *counts)
{
    int order = counts->min_order;
    eng_table_printf(table, "%.2f", counts->n_top[order] ? 100 * counts->top[order][0].share : 0.0);
}

static EngStatus print_corpora(const Audit *a, EngErr *err)
{
    EngTextTable *table;
    EngStatus status = open_table(&a->counts, "stream", "top row %", &table, err);
    if (status) return status;
    eng_table_printf(table, "this: %s", a->stream.corpus);
    put_shares(table, &a->counts, a->size);
    put_top(table, &a->counts);
    for (int i = 0; i < a->n_corpora; i++) {
        eng_table_printf(table, "%s (%s)", a->corpora[i].name, a->corpora[i].kind);
        put_shares(table, &a->corpus_counts[i], a->size);
        put_top(table, &a->corpus_counts[i]);
    }
    status = eng_table_print(table, stdout, err);
    eng_table_free(table);
    return status;
}

static void print_ngrams(const Audit *a)
{
    printf(
        "\nmost frequent n-grams, by the ids of the input (share of all of that length: what one "
        "row of a column gets)\n");
    for (int order = a->counts.min_order; order <= a->counts.max_order; order++)
        for (int i = 0; i < a->counts.n_top[order]; i++) {
            const EngAuditNgram *g = &a->counts.top[order][i];
            printf("  %d-gram %6.2f %%  ", order, 100 * g->share);
            for (int k = 0; k < order; k++) printf(" %" PRIu32, a->stream.ids[g->at + k]);
            putchar('\n');
        }
}

static EngStatus print_text(const Audit *a, EngErr *err)
{
    const EngAudit *c = &a->counts;
    printf("%s: %" PRId64 " tokens (%s), preset %s\n\n", a->stream.corpus, c->n_tokens,
           a->stream.kind, a->preset.name);
    printf("distinct rows, as a share of rows looked up, in batches of so many tokens\n");
    EngStatus status = print_sizes(a, err);
    if (status) return status;
    print_ngrams(a);
    printf("\ndistinct ids: %" PRId64, c->distinct_ids);
    if (c->distinct_original) {
        printf(" compressed, %" PRId64 " of the tokenizer", c->distinct_original);
        if (!isnan(c->uncompressed))
            printf("; without compression %.1f %% of rows would be distinct at %" PRId64
                   " tokens, with it %.1f %%",
                   100 * c->uncompressed, eng_audit_sizes[c->n_sizes - 1],
                   100 * c->counts[c->n_sizes - 1].distinct_all);
    }
    printf("\n\nbatches of %" PRId64 " tokens beside the corpora of the data folder\n",
           eng_audit_sizes[a->size]);
    status = print_corpora(a, err);
    if (!status) printf("\nverdict: %s\n", a->sentence);
    return status;
}

/* ---- JSON --------------------------------------------------------------------------------------
 */

static json_t *number(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

static json_t *shares_json(const EngAudit *counts, int size)
{
    const EngReuseCounts *c = &counts->counts[size];
    json_t *out =
        json_pack("{s:I, s:o, s:o}", "batch", (json_int_t)eng_audit_sizes[size], "distinct_all",
                  number(c->distinct_all), "repeat_prev", number(c->repeat_prev));
    for (int order = counts->min_order; order <= counts->max_order; order++) {
        char key[32];
        snprintf(key, sizeof key, "distinct_%d", order);
        json_object_set_new(out, key, number(c->distinct[order]));
    }
    return out;
}

static json_t *ngrams_json(const Audit *a)
{
    json_t *out = json_array();
    for (int order = a->counts.min_order; order <= a->counts.max_order; order++)
        for (int i = 0; i < a->counts.n_top[order]; i++) {
            const EngAuditNgram *g = &a->counts.top[order][i];
            json_t *ids = json_array();
            for (int k = 0; k < order; k++)
                json_array_append_new(ids, json_integer(a->stream.ids[g->at + k]));
            json_array_append_new(
                out, json_pack("{s:i, s:o, s:f}", "order", order, "ids", ids, "share", g->share));
        }
    return out;
}

static EngStatus print_json(const Audit *a, EngErr *err)
{
    const EngAudit *c = &a->counts;
    json_t *sizes = json_array(), *corpora = json_array();
    for (int i = 0; i < c->n_sizes; i++) json_array_append_new(sizes, shares_json(c, i));
    for (int i = 0; i < a->n_corpora; i++) {
        json_t *one = shares_json(&a->corpus_counts[i], a->size);
        json_object_set_new(one, "corpus", json_string(a->corpora[i].name));
        json_object_set_new(one, "kind", json_string(a->corpora[i].kind));
        json_array_append_new(corpora, one);
    }
    json_t *root =
        json_pack("{s:s, s:s, s:s, s:I, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:s, s:s}", "stream",
                  a->stream.corpus, "kind", a->stream.kind, "sha256", a->stream.digest, "tokens",
                  (json_int_t)c->n_tokens, "preset", a->preset.name, "distinct_ids",
                  (json_int_t)c->distinct_ids, "distinct_original_ids",
                  (json_int_t)c->distinct_original, "distinct_all_uncompressed",
                  number(c->uncompressed), "batches", sizes, "ngrams", ngrams_json(a), "corpora",
                  corpora, "verdict", eng_audit_verdict_name(a->verdict), "sentence", a->sentence);
    char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    if (!text)
        return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for JSON, or a name is not UTF-8");
    puts(text);
    free(text);
    return ENG_OK;
}

/* ---- verb --------------------------------------------------------------------------------------
 */

static EngStatus run(EngCli *cli, EngErr *err)
{
    const char *what = eng_cli_operand(cli, 0), *format = eng_cli_text(cli, "format");
    Audit *a;
    bool json = !strcmp(format, "json");
    if (!what) return ENG_FAIL(err, ENG_USAGE, "audit: name a file of tokens or a corpus");
    if (!json && strcmp(format, "text"))
        return ENG_FAIL(err, ENG_USAGE, "--format=%s: not text or json", format);
    EngStatus status = eng_alloc_or((void **)&a, 1, sizeof *a, "an audit", err);
    if (status) return status;
    a->cli = cli;
    status = open_preset(a, err);
    if (!status) status = open_input(a, what, err);
    if (!status) status = count(a, &a->stream, -1, &a->counts, err);
    if (status == ENG_UNSUPPORTED && err) status = err->status = ENG_BAD_DATA;
    if (!status) {
        a->size = a->counts.n_sizes - 1;
        status = add_corpora(a, err);
    }
    if (!status) {
        const EngReuseCounts *c = &a->counts.counts[a->size];
        a->verdict = eng_audit_judge(c->distinct_all, c->repeat_prev, eng_audit_sizes[a->size],
                                     a->corpora, a->n_corpora, a->sentence, sizeof a->sentence);
        status = json ? print_json(a, err) : print_text(a, err);
    }
    eng_tokmap_free(&a->map);
    eng_stream_close(&a->stream);
    eng_free(a);
    return status;
}

static const EngOption g_options[] = {
    {.name = "preset", .value = "NAME", .def = "v41-flash", .help = "whose rows are counted"},
    {.name = "format", .value = "FORMAT", .def = "text", .help = "text or json"},
    {.name = "read",
     .value = "FORMAT",
     .def = "auto",
     .help = "how to read FILE: raw (uint32), npy, jsonl, or auto by its name"},
    ENG_OPTION_DATA,
};

const EngVerb eng_verb_audit = {
    .name = "audit",
    .operands = "FILE | CORPUS",
    .summary = "how honest a prompt or token stream is as a benchmark input",
    .details =
        "FILE holds token ids as `engram stream import` takes them, or is a stream's header. "
        "Counted are distinct rows by n-gram order and batch size, repeats, and the most frequent "
        "n-grams, beside "
        "the corpora of the data folder: a repeated phrase reads few rows and flatters by caches.",
    .options = g_options,
    .n_options = sizeof g_options / sizeof *g_options,
    .max_operands = 1,
    .run = run,
};
