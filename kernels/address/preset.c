/* Presets from the JSON files compiled in; see preset.h. A preset is checked whole when it is read
 * (unknown keys, types, the addressing it describes), so that a mistake in a file shows at once. */
#include "kernels/address/preset.h"

#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/embedded.h"
#include "base/str.h"

extern const EngEmbedded eng_embedded_presets[];

#define MAX_PRESETS 64

/* ---- names ---- */

static char g_name_text[MAX_PRESETS][32];
static const char *g_names[MAX_PRESETS + 1];
static size_t g_n_names;
static pthread_once_t g_names_once = PTHREAD_ONCE_INIT;

static void collect_names(void)
{
    for (; eng_embedded_presets[g_n_names].name && g_n_names < MAX_PRESETS; g_n_names++) {
        char *name = g_name_text[g_n_names];
        const char *file = eng_embedded_presets[g_n_names].name;
        size_t n = strcspn(file, ".");
        if (n >= sizeof g_name_text[0]) n = sizeof g_name_text[0] - 1;
        memcpy(name, file, n);
        g_names[g_n_names] = name;
    }
}

const char *const *eng_preset_names(void)
{
    pthread_once(&g_names_once, collect_names);
    return g_names;
}

/* ---- fields ---- */

/* One reading of a file: the first mistake sticks. Every getter notes its key as known, so that
 * what is left over is an unknown key. */
typedef struct Reader {
    const char *name; /* of the preset, for messages */
    const char *path; /* prefix of keys: "" or "tokmap." */
    const json_t *object;
    size_t n_read;
    EngStatus status;
    EngErr *err;
} Reader;

static void wrong(Reader *reader, const char *key, const char *what)
{
    if (reader->status) return;
    reader->status = ENG_FAIL(reader->err, ENG_BAD_DATA, "preset %s: %s%s: %s", reader->name,
                              reader->path, key, what);
}

static const json_t *field(Reader *reader, const char *key)
{
    const json_t *value = json_object_get(reader->object, key);
    if (value) reader->n_read++;
    return value;
}

static int64_t get_int(Reader *reader, const char *key, int64_t low, int64_t high)
{
    const json_t *value = field(reader, key);
    int64_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < low || number > high) {
        wrong(reader, key, value ? "not an integer in range" : "missing");
        return low;
    }
    return number;
}

static float get_float(Reader *reader, const char *key)
{
    const json_t *value = field(reader, key);
    if (!json_is_number(value) || json_number_value(value) <= 0)
        wrong(reader, key, value ? "not a positive number" : "missing");
    return (float)json_number_value(value);
}

static void get_text(Reader *reader, const char *key, char *out, size_t size)
{
    const char *text = json_string_value(field(reader, key));
    if (!text || strlen(text) >= size) {
        wrong(reader, key, text ? "too long" : "missing or not a string");
        return;
    }
    memcpy(out, text, strlen(text) + 1);
}

static void get_layers(Reader *reader, EngAddressSpec *spec)
{
    const json_t *list = field(reader, "layers");
    size_t n = json_array_size(list);
    if (n < 1 || n > ENG_MAX_LAYERS) {
        wrong(reader, "layers", "not a list of 1 to 8 layer numbers");
        return;
    }
    spec->n_layers = (int)n;
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(list, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > 9999)
            wrong(reader, "layers", "not a list of layer numbers");
        spec->layer_ids[i] = (int)json_integer_value(id);
    }
}

/* Names the first key that no getter asked for. `known` ends with NULL. */
static void refuse_unknown(Reader *reader, const char *const *known)
{
    if (reader->n_read == json_object_size(reader->object)) return;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)reader->object, key, value)
    {
        size_t n = 0;
        while (known[n] && strcmp(known[n], key)) n++;
        if (!known[n]) {
            const char *near = eng_nearest(key, known, n);
            char text[96] = "unknown key";
            if (near) snprintf(text, sizeof text, "unknown key, did you mean \"%s\"?", near);
            wrong(reader, key, text);
        }
    }
}

static const char *const g_keys[] = {"summary",  "source",     "layers", "min_order", "max_order",
                                     "heads",    "vocab",      "pad",    "start",     "seed",
                                     "row_dims", "row_format", "hidden", "streams",   "conv_kernel",
                                     "gate_eps", "tokmap",     NULL};
static const char *const g_tokmap_keys[] = {"ids", "sha256_i32le", "shared_ids", NULL};

static void read_tokmap(Reader *reader, EngPreset *preset)
{
    const json_t *object = field(reader, "tokmap");
    if (!object || reader->status) return;
    Reader inner = {reader->name, "tokmap.", object, 0, ENG_OK, reader->err};
    preset->vocab_ids = get_int(&inner, "ids", 1, INT32_MAX);
    get_text(&inner, "sha256_i32le", preset->tokmap_digest, sizeof preset->tokmap_digest);
    preset->shared_ids = get_int(&inner, "shared_ids", 0, preset->vocab_ids);
    refuse_unknown(&inner, g_tokmap_keys);
    reader->status = inner.status;
}

static void read_fields(Reader *reader, EngPreset *preset)
{
    EngAddressSpec *spec = &preset->address;
    char format[16] = "", source[512];
    get_text(reader, "summary", preset->summary, sizeof preset->summary);
    get_text(reader, "source", source, sizeof source);
    get_layers(reader, spec);
    spec->min_order = (int)get_int(reader, "min_order", 1, ENG_MAX_ORDER);
    spec->max_order = (int)get_int(reader, "max_order", 1, ENG_MAX_ORDER);
    spec->heads = (int)get_int(reader, "heads", 1, ENG_MAX_HEADS);
    spec->vocab = get_int(reader, "vocab", 1, INT32_MAX);
    spec->pad = (int32_t)get_int(reader, "pad", 0, INT32_MAX);
    spec->start = get_int(reader, "start", 2, INT64_MAX);
    spec->seed = get_int(reader, "seed", 0, INT64_MAX);
    preset->row_dims = (int)get_int(reader, "row_dims", 1, 1 << 20);
    get_text(reader, "row_format", format, sizeof format);
    int row_format = eng_row_format_parse(format);
    if (row_format < 0)
        wrong(reader, "row_format", "unknown format");
    else
        preset->row_format = (EngRowFormat)row_format;
    if (preset->row_format == ENG_ROW_FP8 && preset->row_dims % ENG_SCALE_GROUP)
        wrong(reader, "row_dims", "fp8 rows need a multiple of 32");
    preset->hidden = (int)get_int(reader, "hidden", 1, 1 << 20);
    preset->streams = (int)get_int(reader, "streams", 1, 64);
    preset->conv_kernel = (int)get_int(reader, "conv_kernel", 0, 64);
    preset->conv = preset->conv_kernel > 0;
    preset->gate_eps = get_float(reader, "gate_eps");
    read_tokmap(reader, preset);
    refuse_unknown(reader, g_keys);
}

/* Key of what the preset says, whatever the layout of its file; its prose is no part of it. */
static EngStatus digest_of(json_t *root, EngPreset *preset, EngErr *err)
{
    json_object_del(root, "summary");
    json_object_del(root, "source");
    char *canonical = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
    if (!canonical)
        return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for preset %s", preset->name);
    EngStatus status = eng_key_of(canonical, preset->digest, err);
    free(canonical);
    return status;
}

EngStatus eng_preset_parse(const char *name, const char *text, EngPreset *preset, EngErr *err)
{
    json_error_t where;
    EngAddress address;
    *preset = (EngPreset){0};
    snprintf(preset->name, sizeof preset->name, "%s", name);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    if (!json_is_object(root)) {
        json_decref(root);
        return ENG_FAIL(err, ENG_BAD_DATA, "preset %s: line %d: %s", name, where.line,
                        root ? "not an object" : where.text);
    }
    Reader reader = {name, "", root, 0, ENG_OK, err};
    read_fields(&reader, preset);
    EngStatus status = reader.status;
    if (!status) {
        status = eng_address_build(&preset->address, &address, err);
        if (status) eng_err_prefix(err, "preset %s", name);
    }
    if (!status) status = digest_of(root, preset, err);
    json_decref(root);
    return status;
}

EngStatus eng_preset_find(const char *name, EngPreset *preset, EngErr *err)
{
    const char *const *names = eng_preset_names();
    for (size_t i = 0; i < g_n_names; i++)
        if (!strcmp(names[i], name))
            return eng_preset_parse(name, eng_embedded_presets[i].text, preset, err);
    const char *near = eng_nearest(name, names, g_n_names);
    return ENG_FAIL(err, ENG_USAGE, "preset: no preset is called \"%s\"%s%s%s", name,
                    near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}
