/* engram tokmap: the token map of a tokenizer as sizes and digests, one JSON line. */
#include "bench/cli/cli.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/file.h"
#include "base/str.h"
#include "bench/cli/verbs.h"
#include "kernels/address/tokmap.h"

static const EngOption g_options[] = {
    {.name = "tokenizer",
     .value = "FILE",
     .help = "a byte-level BPE tokenizer.json (default: tokenizer.json of the data folder)"},
    {.name = "data",
     .value = "DIR",
     .def = ENG_SOURCE_DIR "/data/cache",
     .env = true,
     .help = "folder of the fetched data"},
};

static EngStatus run(EngCli *cli, EngErr *err)
{
    const char *path = eng_cli_text(cli, "tokenizer");
    EngStr in_data = {0};
    EngTokmap map;
    if (!path) {
        eng_str_printf(&in_data, "%s/tokenizer.json", eng_cli_text(cli, "data"));
        EngStatus status = eng_str_status(&in_data, err);
        if (status) return status;
        path = in_data.text;
    }
    EngStatus status = ENG_OK;
    if (!eng_file_exists(path))
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: no such file%s", path,
                          in_data.text ? " (scripts/fetch_data gets it)" : "");
    if (!status) status = eng_tokmap_load(path, &map, err);
    if (!status) {
        printf("{\"ids\": %" PRId64 ", \"compressed\": %" PRId64
               ", \"sha256_i32le\": \"%s\", \"sha256_i64le\": \"%s\"}\n",
               map.n_ids, map.n_compressed, map.sha256_i32le, map.sha256_i64le);
        eng_tokmap_free(&map);
    }
    eng_str_free(&in_data);
    return status;
}

const EngVerb eng_verb_tokmap = {
    .name = "tokmap",
    .operands = "",
    .summary = "size and digests of a tokenizer's compressed id map",
    .details = "Every id is decoded alone, normalised and numbered by first appearance. The\n"
               "digests are over the map as 32-bit and 64-bit little-endian integers.",
    .options = g_options,
    .n_options = sizeof g_options / sizeof *g_options,
    .run = run,
};
