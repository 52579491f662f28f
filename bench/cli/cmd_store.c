/* engram store: make table files, seeded or from a checkpoint, check them, show what they hold. */
#include "bench/cli/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "bench/cli/verbs.h"
#include "bench/core/runner.h"
#include "kernels/address/preset.h"
#include "kernels/store/table_file.h"
#include "kernels/store/table_import.h"

static const EngOption g_options[] = {
    {.name = "preset",
     .value = "NAME",
     .def = "v41-flash",
     .help = "create: row dims, format, and the layer's rows"},
    {.name = "layer", .value = "L", .help = "create: Engram layer, from 0 (default: the first)"},
    {.name = "rows", .value = "N", .help = "create: rows (default: all of the layer)"},
    {.name = "row-dims", .value = "N", .help = "create: values per row (default: the preset's)"},
    {.name = "format", .value = "FORMAT", .help = "create: row format (default: the preset's)"},
    {.name = "seed", .value = "N", .help = "create: seed of the rows (default: that of all runs)"},
    {.name = "from",
     .value = "FILE,...",
     .help = "create: rows of a safetensors checkpoint, its shards, or its index.json"},
    {.name = "tensor",
     .value = "NAME",
     .help = "create --from: the rows (default: layers.L.engram.embed.weight)"},
    {.name = "threads", .value = "N", .def = "0", .help = "threads, 0: all processors"},
};

static EngStatus optional_threads(const EngCli *cli, int64_t *threads, EngErr *err)
{
    return eng_cli_int(cli, "threads", 0, 256, threads, err);
}

/* ---- create ---- */

typedef struct Wanted {
    int layer, row_dims;
    int64_t rows, seed, threads;
    int format; /* -1: not asked for */
} Wanted;

/* An option that has no default: `value` stays when it is not given. */
static EngStatus optional(const EngCli *cli, const char *name, int64_t min, int64_t max,
                          int64_t *value, EngErr *err)
{
    return eng_cli_text(cli, name) ? eng_cli_int(cli, name, min, max, value, err) : ENG_OK;
}

/* Rows of the layer in the preset; the first layer when none is named. */
static EngStatus layer_rows(const EngCli *cli, const EngPreset *preset, Wanted *wanted, EngErr *err)
{
    EngAddress address;
    int64_t layer;
    EngStatus status = eng_address_build(&preset->address, &address, err);
    if (status) return status;
    layer = address.layer_ids[0];
    status = optional(cli, "layer", 0, INT32_MAX, &layer, err);
    wanted->layer = (int)layer;
    for (int i = 0; i < address.n_layers && !status; i++)
        if (address.layer_ids[i] == layer) {
            wanted->rows = address.rows[i];
            return ENG_OK;
        }
    /* A checkpoint has the layers that it has. */
    if (status || eng_cli_text(cli, "from")) return status;
    return ENG_FAIL(err, ENG_USAGE, "--layer=%d: no Engram layer of preset %s", wanted->layer,
                    preset->name);
}

static EngStatus read_wanted(const EngCli *cli, Wanted *wanted, EngErr *err)
{
    EngPreset preset;
    const char *format = eng_cli_text(cli, "format");
    *wanted = (Wanted){.format = -1, .seed = ENG_DATA_SEED};
    EngStatus status = eng_preset_find(eng_cli_text(cli, "preset"), &preset, err);
    if (!status) status = layer_rows(cli, &preset, wanted, err);
    if (!status) status = optional(cli, "rows", 1, INT64_MAX, &wanted->rows, err);
    if (!status) status = optional(cli, "seed", 0, INT64_MAX, &wanted->seed, err);
    if (!status) status = optional_threads(cli, &wanted->threads, err);
    int64_t dims = preset.row_dims;
    if (!status) status = optional(cli, "row-dims", 1, 1 << 20, &dims, err);
    if (status) return status;
    wanted->row_dims = (int)dims;
    if (format && (wanted->format = eng_row_format_parse(format)) < 0)
        return ENG_FAIL(err, ENG_USAGE, "--format=%s: no row format (fp8, fp8_packed, bf16, ...)",
                        format);
    if (!format && !eng_cli_text(cli, "from")) wanted->format = (int)preset.row_format;
    return ENG_OK;
}

/* Splits a,b,c in place. */
static int split(char *text, const char **parts, int most)
{
    int n = 0;
    for (char *rest = text, *part; n < most && (part = strsep(&rest, ","));)
        if (*part) parts[n++] = part;
    return n;
}

static EngStatus create_imported(const EngCli *cli, const char *path, const Wanted *wanted,
                                 EngTableCreated *created, EngErr *err)
{
    enum { MAX_FILES = 256 };
    const char *files[MAX_FILES];
    EngTableImport import = {.from = files,
                             .layer = wanted->layer,
                             .weight = eng_cli_text(cli, "tensor"),
                             .format = wanted->format,
                             .rows = eng_cli_text(cli, "rows") ? wanted->rows : 0};
    if (eng_cli_text(cli, "seed"))
        return ENG_FAIL(err, ENG_USAGE, "--seed and --from: imported rows have no seed");
    /* A tensor of another name may have other dims than the preset. */
    if (!import.weight || eng_cli_text(cli, "row-dims")) import.row_dims = wanted->row_dims;
    char *text = eng_strdup(eng_cli_text(cli, "from"));
    if (!text) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for file names");
    import.n_from = split(text, files, MAX_FILES);
    EngStatus status = import.n_from
                           ? eng_table_import(path, &import, (int)wanted->threads, created, err)
                           : ENG_FAIL(err, ENG_USAGE, "--from: needs a file");
    eng_free(text);
    return status;
}

static EngStatus show(const char *path, EngErr *err)
{
    EngTableFile file;
    EngStatus status = eng_table_file_open(path, &file, err);
    if (status) return status;
    printf("file        %s\n", path);
    printf("format      %s\n", eng_row_format_name(file.format));
    printf("row_dims    %d\n", file.row_dims);
    printf("rows        %" PRId64 "\n", file.rows);
    printf("bytes       %" PRIu64 "\n", file.file_bytes);
    printf("values      %" PRIu64 " at %" PRIu64 ", a row every %zu\n", file.values_bytes,
           file.values_offset, file.stride_bytes);
    if (file.scales_bytes)
        printf("scales      %" PRIu64 " at %" PRIu64 ", a row every %zu\n", file.scales_bytes,
               file.scales_offset, file.scale_bytes);
    printf("blocks      %" PRId64 "\n", file.value_blocks + file.scale_blocks);
    printf("content     %s\n", file.description);
    printf("digest      %s\n", file.digest);
    eng_table_file_close(&file);
    return ENG_OK;
}

static EngStatus run_create(const EngCli *cli, const char *path, EngErr *err)
{
    Wanted wanted;
    EngTableCreated created;
    EngStatus status = read_wanted(cli, &wanted, err);
    if (status) return status;
    if (eng_cli_text(cli, "from"))
        status = create_imported(cli, path, &wanted, &created, err);
    else if (eng_cli_text(cli, "tensor"))
        status = ENG_FAIL(err, ENG_USAGE, "--tensor needs --from");
    else
        status = eng_table_file_create_seeded(path, (EngRowFormat)wanted.format, wanted.row_dims,
                                              wanted.rows, (uint64_t)wanted.seed,
                                              (int)wanted.threads, &created, err);
    if (status) return status;
    if (created.resumed)
        eng_info("store", "%s: %" PRId64 " of %" PRId64 " blocks were there from an earlier call",
                 path, created.resumed, created.blocks);
    return show(path, err);
}

/* ---- verify ---- */

/* Every file is read; the first bad block of each is told, and the last error is the verb's. */
static EngStatus run_verify(EngCli *cli, EngErr *err)
{
    int64_t threads;
    EngStatus status = optional_threads(cli, &threads, err);
    for (int i = 1; i < eng_cli_operands(cli) && !status; i++) {
        EngTableFile file;
        EngErr why = {0};
        const char *path = eng_cli_operand(cli, i);
        if (!eng_table_file_open(path, &file, &why)) {
            if (!eng_table_file_verify(&file, (int)threads, &why))
                printf("%s: %" PRId64 " blocks hold\n", path,
                       file.value_blocks + file.scale_blocks);
            eng_table_file_close(&file);
        }
        if (!why.status) continue;
        eng_error("store", "%s", why.text);
        eng_cli_exit_with(cli, eng_status_exit_code(why.status));
    }
    return status;
}

static EngStatus run(EngCli *cli, EngErr *err)
{
    const char *action = eng_cli_operand(cli, 0), *path = eng_cli_operand(cli, 1);
    int n = eng_cli_operands(cli);
    if (!action) return ENG_FAIL(err, ENG_USAGE, "store: say create, verify or info");
    bool create = !strcmp(action, "create"), verify = !strcmp(action, "verify");
    if (!create && !verify && strcmp(action, "info"))
        return ENG_FAIL(err, ENG_USAGE, "store: '%s' is not create, verify or info", action);
    if (!path) return ENG_FAIL(err, ENG_USAGE, "store %s: needs a FILE", action);
    if (!verify && n > 2)
        return ENG_FAIL(err, ENG_USAGE, "store %s: unexpected argument '%s'", action,
                        eng_cli_operand(cli, 2));
    if (verify) return run_verify(cli, err);
    return create ? run_create(cli, path, err) : show(path, err);
}

const EngVerb eng_verb_store = {
    .name = "store",
    .operands = "create FILE | verify FILE... | info FILE",
    .summary = "make, check and show table files, which row stores read from disk",
    .details =
        "A table file holds the rows of one layer with a checksum for every 4 MiB. `create` makes\n"
        "seeded rows, the same as those of runs in memory, or imports those of a checkpoint; "
        "killed,\n"
        "the same command goes on. Nothing is overwritten, and a file under its name is whole.\n"
        "The digest says what the rows are: equal digests, equal rows.",
    .options = g_options,
    .n_options = sizeof g_options / sizeof *g_options,
    .max_operands = ENG_CLI_MAX_ARGS,
    .run = run,
};
