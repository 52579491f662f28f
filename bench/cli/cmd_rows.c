/* engram rows: the table rows that tokens read, by the oracle. For people, and for checking another
 * implementation: the digest is over the int64 little-endian bytes [positions, layers, columns]. */
#include "bench/cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "bench/cli/verbs.h"
#include "kernels/address/preset.h"
#include "kernels/address/tokmap.h"
#include "kernels/ref/hash.h"

static const EngOption g_options[] = {
    {.name = "preset", .value = "NAME", .def = "v41-flash", .help = "where the addressing is from"},
    {.name = "tokens",
     .value = "IDS",
     .help = "ids such as 0,3; @FILE reads a file, - standard input (commas or white space)"},
    {.name = "compressed", .help = "the ids are compressed ones: no tokenizer is needed"},
    {.name = "dead",
     .value = "POS,...",
     .help = "positions, from 0, that hold no text (images): barriers for every window"},
    {.name = "layer", .value = "L", .help = "this layer only, by its number in the model, from 0"},
    {.name = "format",
     .value = "FORMAT",
     .def = "csv",
     .help = "csv (position,layer,column,order,head,row) or json ([position][layer][column])"},
    {.name = "digest", .help = "the sha256 of the rows instead of the rows"},
    {.name = "tokenizer",
     .value = "FILE",
     .help = "tokenizer.json of the ids (default: that of the data folder)"},
    {.name = "data",
     .value = "DIR",
     .def = ENG_SOURCE_DIR "/data/cache",
     .env = true,
     .help = "folder of the fetched data"},
    {.name = "layers", .value = "L,...", .help = "layer numbers, from 0; they enter the seeds"},
    {.name = "min-order", .value = "N", .help = "shortest n-gram"},
    {.name = "max-order", .value = "N", .help = "longest n-gram"},
    {.name = "heads", .value = "K", .help = "heads per order"},
    {.name = "start", .value = "ROWS", .help = "first candidate for a prime, itself included"},
    {.name = "vocab", .value = "V", .help = "compressed vocabulary size (multiplier bound)"},
    {.name = "pad", .value = "ID", .help = "compressed id that fills windows"},
};

typedef struct Rows {
    EngPreset preset;
    EngAddress address;
    int64_t n;
    uint32_t *ids;       /* as given */
    int32_t *compressed; /* DEAD at dead positions */
    int64_t *rows;       /* [n, n_layers, n_columns], n_layers after --layer */
} Rows;

/* ---- lists of numbers ---- */

typedef struct Numbers {
    int64_t *values;
    size_t n, size;
} Numbers;

static EngStatus push(Numbers *numbers, int64_t value, EngErr *err)
{
    if (numbers->n == numbers->size) {
        size_t size = numbers->size ? numbers->size * 2 : 64;
        int64_t *grown = eng_realloc(numbers->values, numbers->n * sizeof *numbers->values,
                                     size * sizeof *numbers->values);
        if (!grown) return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for %zu numbers", size);
        numbers->values = grown;
        numbers->size = size;
    }
    numbers->values[numbers->n++] = value;
    return ENG_OK;
}

static bool separates(char c)
{
    return c == ',' || isspace((unsigned char)c);
}

/* Whole numbers in [0, most] (INT64_MAX: any), set apart by commas or white space. `what` names the
 * list and `bad` is the status of a number that is none or lies outside. */
static EngStatus parse_numbers(const char *what, const char *text, size_t n, int64_t most,
                               EngStatus bad, Numbers *numbers, EngErr *err)
{
    EngStatus status = ENG_OK;
    const char *zero = n ? memchr(text, 0, n) : NULL;
    if (zero)
        return ENG_FAIL(err, bad, "%s: not a text file (zero byte at %zd)", what, zero - text);
    for (size_t i = 0; i < n && !status;) {
        char word[32];
        size_t length = 0;
        while (i < n && separates(text[i])) i++;
        while (i + length < n && !separates(text[i + length])) length++;
        if (!length) break;
        snprintf(word, sizeof word, "%.*s", (int)(length < 31 ? length : 31), text + i);
        char *end;
        errno = 0;
        int64_t value = strtoll(word, &end, 10);
        bool number = *end == 0 && length < 31 && !errno;
        if ((!number || value < 0) && most == INT64_MAX)
            return ENG_FAIL(err, bad, "%s: %s is not a whole number from 0 on", what, word);
        if (!number || value < 0 || value > most)
            return ENG_FAIL(err, bad,
                            "%s: position %zu: %s is not a whole number from 0 to %" PRId64, what,
                            numbers->n, word, most);
        status = push(numbers, value, err);
        i += length;
    }
    if (!status && !numbers->n) status = ENG_FAIL(err, bad, "%s: no numbers", what);
    return status;
}

/* "12,13" | "@FILE" | "-". */
static EngStatus read_tokens(const char *text, Numbers *numbers, EngErr *err)
{
    EngStr input = {0};
    char *file = NULL;
    size_t n;
    EngStatus status;
    if (text[0] == '@') {
        status = eng_file_read(text + 1, &file, &n, err);
        if (status == ENG_NOT_FOUND)
            status = ENG_FAIL(err, ENG_BAD_DATA, "%s: no such file", text + 1);
        if (!status)
            status = parse_numbers(text + 1, file, n, UINT32_MAX, ENG_BAD_DATA, numbers, err);
    } else if (!strcmp(text, "-")) {
        char chunk[4096];
        while ((n = fread(chunk, 1, sizeof chunk, stdin)) > 0) eng_str_add_n(&input, chunk, n);
        status = ferror(stdin)
                     ? ENG_FAIL(err, ENG_IO, "standard input: cannot read: %s", strerror(errno))
                     : eng_str_status(&input, err);
        if (!status)
            status = parse_numbers("standard input", input.text, input.n, UINT32_MAX, ENG_BAD_DATA,
                                   numbers, err);
    } else {
        status =
            parse_numbers("--tokens", text, strlen(text), UINT32_MAX, ENG_BAD_DATA, numbers, err);
    }
    eng_free(file);
    eng_str_free(&input);
    return status;
}

/* ---- the addressing ---- */

static EngStatus override(const EngCli *cli, const char *option, int64_t *value, EngErr *err)
{
    if (!eng_cli_text(cli, option)) return ENG_OK;
    return eng_cli_int(cli, option, INT32_MIN, INT64_MAX, value, err);
}

static EngStatus override_int(const EngCli *cli, const char *option, int32_t *value, EngErr *err)
{
    int64_t wide = *value;
    if (!eng_cli_text(cli, option)) return ENG_OK;
    EngStatus status = eng_cli_int(cli, option, INT32_MIN, INT32_MAX, &wide, err);
    *value = (int32_t)wide;
    return status;
}

static EngStatus override_layers(const EngCli *cli, EngAddressSpec *spec, EngErr *err)
{
    const char *text = eng_cli_text(cli, "layers");
    Numbers numbers = {0};
    if (!text) return ENG_OK;
    EngStatus status =
        parse_numbers("--layers", text, strlen(text), INT32_MAX, ENG_USAGE, &numbers, err);
    if (!status && numbers.n > ENG_MAX_LAYERS)
        status =
            ENG_FAIL(err, ENG_USAGE, "--layers: %zu layers, at most %d", numbers.n, ENG_MAX_LAYERS);
    if (!status) {
        spec->n_layers = (int)numbers.n;
        for (size_t i = 0; i < numbers.n; i++) spec->layer_ids[i] = (int)numbers.values[i];
    }
    eng_free(numbers.values);
    return status;
}

static EngStatus build_address(const EngCli *cli, Rows *rows, EngErr *err)
{
    EngAddressSpec *spec = &rows->preset.address;
    EngStatus status = eng_preset_find(eng_cli_text(cli, "preset"), &rows->preset, err);
    if (!status) status = override_layers(cli, spec, err);
    if (!status) status = override_int(cli, "min-order", &spec->min_order, err);
    if (!status) status = override_int(cli, "max-order", &spec->max_order, err);
    if (!status) status = override_int(cli, "heads", &spec->heads, err);
    if (!status) status = override_int(cli, "pad", &spec->pad, err);
    if (!status) status = override(cli, "start", &spec->start, err);
    if (!status) status = override(cli, "vocab", &spec->vocab, err);
    return status ? status : eng_address_build(spec, &rows->address, err);
}

/* ---- the ids ---- */

static EngStatus load_map(const EngCli *cli, const EngPreset *preset, EngTokmap *map, EngErr *err)
{
    const char *given = eng_cli_text(cli, "tokenizer");
    EngStr path = {0};
    if (!given && !*preset->tokmap_digest)
        return ENG_FAIL(err, ENG_USAGE,
                        "preset %s names no tokenizer: give --compressed ids or --tokenizer=FILE",
                        preset->name);
    if (given)
        eng_str_add(&path, given);
    else
        eng_str_printf(&path, "%s/tokenizer.json", eng_cli_text(cli, "data"));
    EngStatus status = eng_str_status(&path, err);
    if (!status && !eng_file_exists(path.text))
        status = ENG_FAIL(err, ENG_BAD_DATA, "%s: no such file%s", path.text,
                          given ? "" : " (scripts/fetch_data gets it; --compressed needs none)");
    if (!status)
        status = eng_tokmap_load_checked(path.text, preset->tokmap_digest, preset->shared_ids,
                                         preset->vocab_ids, map, err);
    eng_str_free(&path);
    return status;
}

static EngStatus compress(const EngCli *cli, Rows *rows, EngErr *err)
{
    EngTokmap map = {0};
    EngStatus status = ENG_OK;
    if (eng_cli_flag(cli, "compressed")) {
        for (int64_t i = 0; i < rows->n; i++) {
            if (rows->ids[i] >= rows->address.vocab || rows->ids[i] > INT32_MAX)
                return ENG_FAIL(err, ENG_BAD_DATA,
                                "position %" PRId64 ": id %" PRIu32
                                " is not in a vocabulary of %" PRId64,
                                i, rows->ids[i], rows->address.vocab);
            rows->compressed[i] = (int32_t)rows->ids[i];
        }
        return ENG_OK;
    }
    status = load_map(cli, &rows->preset, &map, err);
    if (!status) status = eng_tokmap_apply(&map, rows->ids, rows->n, rows->compressed, err);
    if (!status) status = eng_address_check_ids(&rows->address, rows->compressed, rows->n, err);
    eng_tokmap_free(&map);
    return status;
}

static EngStatus mark_dead(const EngCli *cli, Rows *rows, EngErr *err)
{
    const char *text = eng_cli_text(cli, "dead");
    Numbers dead = {0};
    if (!text) return ENG_OK;
    EngStatus status =
        parse_numbers("--dead", text, strlen(text), INT64_MAX, ENG_USAGE, &dead, err);
    for (size_t i = 0; i < dead.n && !status; i++) {
        if (dead.values[i] < rows->n)
            rows->compressed[dead.values[i]] = ENG_TOKEN_DEAD;
        else
            status = ENG_FAIL(err, ENG_USAGE,
                              "--dead=%s: no token at position %" PRId64 ": the %" PRId64
                              " tokens of --tokens have positions 0 to %" PRId64,
                              text, dead.values[i], rows->n, rows->n - 1);
    }
    eng_free(dead.values);
    return status;
}

static EngStatus read_ids(const EngCli *cli, Rows *rows, EngErr *err)
{
    const char *text = eng_cli_text(cli, "tokens");
    Numbers tokens = {0};
    if (!text) return ENG_FAIL(err, ENG_USAGE, "rows: --tokens is missing");
    EngStatus status = read_tokens(text, &tokens, err);
    if (status) goto out;
    rows->n = (int64_t)tokens.n;
    status = eng_alloc_or((void **)&rows->ids, tokens.n, sizeof *rows->ids, "ids", err);
    if (!status)
        status = eng_alloc_or((void **)&rows->compressed, tokens.n, sizeof *rows->compressed, "ids",
                              err);
    if (status) goto out;
    for (size_t i = 0; i < tokens.n; i++) rows->ids[i] = (uint32_t)tokens.values[i];
    status = compress(cli, rows, err);
    if (!status) status = mark_dead(cli, rows, err);
out:
    eng_free(tokens.values);
    return status;
}

/* ---- rows ---- */

/* Keeps one layer of the addressing; its primes stay those it has beside the others. */
static EngStatus select_layer(const EngCli *cli, EngAddress *address, EngErr *err)
{
    int64_t id;
    if (!eng_cli_text(cli, "layer")) return ENG_OK;
    EngStatus status = eng_cli_int(cli, "layer", 0, INT32_MAX, &id, err);
    if (status) return status;
    for (int i = 0; i < address->n_layers; i++) {
        if (address->layer_ids[i] != id) continue;
        address->n_layers = 1;
        address->layer_ids[0] = (int)id;
        memcpy(address->multipliers[0], address->multipliers[i], sizeof address->multipliers[0]);
        memcpy(address->primes[0], address->primes[i], sizeof address->primes[0]);
        memcpy(address->offsets[0], address->offsets[i], sizeof address->offsets[0]);
        address->rows[0] = address->rows[i];
        return ENG_OK;
    }
    EngStr list = {0};
    for (int i = 0; i < address->n_layers; i++)
        eng_str_printf(&list, "%s%d", i ? ", " : "", address->layer_ids[i]);
    status = ENG_FAIL(err, ENG_USAGE, "--layer=%" PRId64 ": the Engram layers are %s", id,
                      list.text ? list.text : "others");
    eng_str_free(&list);
    return status;
}

static EngStatus hash(Rows *rows, EngErr *err)
{
    size_t cells = (size_t)rows->address.n_layers * (size_t)rows->address.n_columns;
    if (!eng_mul_size(cells, (size_t)rows->n, &cells)) cells = SIZE_MAX;
    EngStatus status = eng_alloc_or((void **)&rows->rows, cells, sizeof *rows->rows, "rows", err);
    if (status) return status;
    EngHashArgs args = {
        .tokens = rows->compressed, .n_tokens = rows->n, .n_live = rows->n, .rows = rows->rows};
    eng_ref_hash(&rows->address, &args);
    return ENG_OK;
}

static void print_csv(const Rows *rows)
{
    const EngAddress *address = &rows->address;
    const int64_t *row = rows->rows;
    printf("position,layer,column,order,head,row\n");
    for (int64_t t = 0; t < rows->n; t++)
        for (int layer = 0; layer < address->n_layers; layer++)
            for (int column = 0; column < address->n_columns; column++)
                printf("%" PRId64 ",%d,%d,%d,%d,%" PRId64 "\n", t, address->layer_ids[layer],
                       column, address->min_order + column / address->heads,
                       column % address->heads, *row++);
}

/* The opening fields of both JSON forms. */
static void print_json_head(const Rows *rows)
{
    const EngAddress *address = &rows->address;
    printf("{\"preset\": \"%s\", \"layers\": [", rows->preset.name);
    for (int i = 0; i < address->n_layers; i++)
        printf("%s%d", i ? ", " : "", address->layer_ids[i]);
    printf("], \"columns\": %d, \"positions\": %" PRId64, address->n_columns, rows->n);
}

static void print_json(const Rows *rows)
{
    const EngAddress *address = &rows->address;
    const int64_t *row = rows->rows;
    print_json_head(rows);
    printf(", \"rows\": [");
    for (int64_t t = 0; t < rows->n; t++) {
        printf("%s\n  [", t ? "," : "");
        for (int layer = 0; layer < address->n_layers; layer++) {
            printf("%s[", layer ? ", " : "");
            for (int column = 0; column < address->n_columns; column++)
                printf("%s%" PRId64, column ? ", " : "", *row++);
            printf("]");
        }
        printf("]");
    }
    printf("\n]}\n");
}

static EngStatus print_digest(const Rows *rows, bool json, EngErr *err)
{
    char hex[ENG_DIGEST_HEX];
    EngDigest *digest = NULL;
    int64_t n = rows->n * rows->address.n_layers * rows->address.n_columns;
    EngStatus status = eng_digest_create(&digest, err);
    for (int64_t i = 0; i < n && !status; i++) {
        uint8_t bytes[8];
        for (int j = 0; j < 8; j++) bytes[j] = (uint8_t)((uint64_t)rows->rows[i] >> 8 * j);
        status = eng_digest_update(digest, bytes, sizeof bytes, err);
    }
    EngStatus finished = eng_digest_finish(digest, hex, status ? NULL : err);
    if (!status) status = finished;
    if (status) return status;
    if (json) print_json_head(rows);
    printf(json ? ", \"sha256_i64le\": \"%s\"}\n" : "%s\n", hex);
    return ENG_OK;
}

static EngStatus run(EngCli *cli, EngErr *err)
{
    const char *format = eng_cli_text(cli, "format");
    bool json = !strcmp(format, "json");
    Rows *rows = NULL;
    if (!json && strcmp(format, "csv"))
        return ENG_FAIL(err, ENG_USAGE, "--format=%s: not csv or json", format);
    EngStatus status = eng_alloc_or((void **)&rows, 1, sizeof *rows, "rows", err);
    if (!status) status = build_address(cli, rows, err);
    if (!status) status = select_layer(cli, &rows->address, err);
    if (!status) status = read_ids(cli, rows, err);
    if (!status) status = hash(rows, err);
    if (!status) {
        if (eng_cli_flag(cli, "digest"))
            status = print_digest(rows, json, err);
        else if (json)
            print_json(rows);
        else
            print_csv(rows);
    }
    if (rows) {
        eng_free(rows->ids);
        eng_free(rows->compressed);
        eng_free(rows->rows);
    }
    eng_free(rows);
    return status;
}

const EngVerb eng_verb_rows = {
    .name = "rows",
    .operands = "",
    .summary = "table rows that tokens read, or their digest",
    .details = "Rows are global rows of a layer's table. Columns are order-major, then head.\n"
               "Positions and layers count from 0. The digest is the sha256 of the int64\n"
               "little-endian bytes in shape [positions, layers, columns].",
    .options = g_options,
    .n_options = sizeof g_options / sizeof *g_options,
    .run = run,
};
