/* engram stream: import a token log, show one stream, list those of the data folder. Every stream
 * shown has been opened, that is checked against its digest. */
#include "bench/cli/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "bench/cli/verbs.h"
#include "bench/core/stream.h"
#include "bench/core/stream_import.h"

static const EngOption g_options[] = {
    {.name = "data",
     .value = "DIR",
     .def = ENG_SOURCE_DIR "/data/cache",
     .env = true,
     .help = "folder of the streams"},
    {.name = "name", .value = "NAME", .help = "import: corpus name, by default the file's name"},
    {.name = "format",
     .value = "FORMAT",
     .def = "auto",
     .help = "import: raw (uint32), npy, jsonl, or auto by the file's name"},
    {.name = "vocab",
     .value = "N",
     .def = "129280",
     .help = "import: ids of the tokenizer; every id must be below"},
};

/* Ids that occur at all; -1 when memory is short. */
static int64_t count_distinct(const EngStream *stream)
{
    uint8_t *seen = eng_alloc((size_t)stream->vocab_ids);
    if (!seen) return -1;
    int64_t n = 0;
    for (int64_t i = 0; i < stream->n_tokens; i++) {
        n += !seen[stream->ids[i]];
        seen[stream->ids[i]] = 1;
    }
    eng_free(seen);
    return n;
}

static void print_stream(const EngStream *stream)
{
    printf("corpus      %s\n", stream->corpus);
    printf("kind        %s\n", stream->kind);
    printf("label       %s\n", stream->label);
    printf("tokens      %" PRId64 "\n", stream->n_tokens);
    printf("documents   %" PRId64 "\n", stream->n_documents);
    printf("vocabulary  %" PRId64 "\n", stream->vocab_ids);
    printf("distinct    %" PRId64 "\n", count_distinct(stream));
    printf("tokenizer   %s\n", *stream->tokenizer_sha256 ? stream->tokenizer_sha256 : "unknown");
    printf("sha256      %s\n", stream->digest);
}

static EngStatus run_import(const EngCli *cli, const char *file, EngErr *err)
{
    EngStreamImport import = {
        .file = file, .name = eng_cli_text(cli, "name"), .data_dir = eng_cli_text(cli, "data")};
    const char *format = eng_cli_text(cli, "format");
    int parsed = eng_stream_format_parse(format);
    if (parsed < 0)
        return ENG_FAIL(err, ENG_USAGE, "--format=%s: not auto, raw, npy or jsonl", format);
    import.format = (EngStreamFormat)parsed;
    EngStatus status = eng_cli_int(cli, "vocab", 1, INT32_MAX, &import.vocab_ids, err);
    if (status) return status;
    EngStream stream;
    status = eng_stream_import(&import, &stream, err);
    if (status) return status;
    print_stream(&stream);
    eng_stream_close(&stream);
    return ENG_OK;
}

/* The operand is a header file when it looks like a path, else a corpus of the data folder. */
static EngStatus run_info(const EngCli *cli, const char *what, EngErr *err)
{
    EngStream stream;
    size_t n = strlen(what);
    bool is_path = strchr(what, '/') || (n > 5 && !strcmp(what + n - 5, ".json"));
    EngStatus status = is_path ? eng_stream_open(what, &stream, err)
                               : eng_stream_find(eng_cli_text(cli, "data"), what, &stream, err);
    if (is_path && status == ENG_NOT_FOUND)
        return ENG_FAIL(err, ENG_BAD_DATA, "%s: no such file", what);
    if (status) return status;
    print_stream(&stream);
    eng_stream_close(&stream);
    return ENG_OK;
}

static EngStatus run_list(EngCli *cli, EngErr *err)
{
    const char *dir = eng_cli_text(cli, "data");
    EngStreamNames list;
    EngStatus status = eng_stream_names(dir, &list, err);
    if (status) return status;
    printf("%-16s %-9s %12s %10s %11s  %s\n", "corpus", "kind", "tokens", "documents", "vocabulary",
           "sha256");
    for (int i = 0; i < list.n; i++) {
        EngStream stream;
        EngErr why = {0};
        if (eng_stream_find(dir, list.names[i], &stream, &why)) {
            eng_warn("stream", "%s", why.text);
            eng_cli_exit_with(cli, eng_status_exit_code(why.status));
            continue;
        }
        printf("%-16s %-9s %12" PRId64 " %10" PRId64 " %11" PRId64 "  %.16s\n", stream.corpus,
               stream.kind, stream.n_tokens, stream.n_documents, stream.vocab_ids, stream.digest);
        eng_stream_close(&stream);
    }
    if (list.n == 0) eng_warn("stream", "%s holds no stream; scripts/fetch_data makes some", dir);
    eng_stream_names_free(&list);
    return ENG_OK;
}

static EngStatus run(EngCli *cli, EngErr *err)
{
    const char *action = eng_cli_operand(cli, 0), *what = eng_cli_operand(cli, 1);
    if (!action) return ENG_FAIL(err, ENG_USAGE, "stream: say import, info or list");
    if (!strcmp(action, "list") && !what) return run_list(cli, err);
    if (!strcmp(action, "list"))
        return ENG_FAIL(err, ENG_USAGE, "stream list: unexpected argument '%s'", what);
    bool import = !strcmp(action, "import");
    if (!import && strcmp(action, "info"))
        return ENG_FAIL(err, ENG_USAGE, "stream: '%s' is not import, info or list", action);
    if (!what)
        return ENG_FAIL(err, ENG_USAGE, "stream %s: needs a %s", action, import ? "FILE" : "NAME");
    return import ? run_import(cli, what, err) : run_info(cli, what, err);
}

const EngVerb eng_verb_stream = {
    .name = "stream",
    .operands = "import FILE | info NAME|FILE | list",
    .summary = "import token logs; show and list token streams",
    .details =
        "A stream is NAME.ids (uint32 ids of the original tokenizer) and NAME.json. `import` "
        "makes one\nfrom raw ids, a one-dimensional .npy file or JSON lines (a list of ids, "
        "or an object with\n'ids' or 'tokens', one document a line); its name is then a "
        "value of the axis `corpus`.",
    .options = g_options,
    .n_options = sizeof g_options / sizeof *g_options,
    .max_operands = 2,
    .run = run,
};
