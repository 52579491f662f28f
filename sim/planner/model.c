/* Models by the shapes of their tensors; see model.h. */
#include "sim/planner/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embedded.h"
#include "base/file.h"
#include "base/mem.h"
#include "sim/machine/json.h"

#define GIB            0x1p30
#define CHECKPOINT_OFF 0.01 /* that shapes may be beside a published file: norms, biases */

extern const EngEmbedded eng_embedded_models[];

typedef struct Reader {
    const char *model, *tensor;
    EngErr *err;
} Reader;

#define WRONG(reader, ...) wrong(reader, ENG_FAIL((reader)->err, ENG_BAD_DATA, __VA_ARGS__))

/* Says where, of an error that has been set. */
static EngStatus wrong(const Reader *reader, EngStatus status)
{
    if (!status) return ENG_OK;
    if (reader->err) reader->err->status = status;
    eng_err_prefix(reader->err, "model %s%s%s", reader->model, reader->tensor ? ": " : "",
                   reader->tensor ? reader->tensor : "");
    return status;
}

static EngStatus check_keys(const Reader *reader, const json_t *object, const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        int k = 0;
        while (known[k] && strcmp(known[k], key)) k++;
        if (!known[k]) return WRONG(reader, "unknown key %s", key);
    }
    return ENG_OK;
}

/* A whole number above 0; `otherwise` where there is none. */
static EngStatus read_count(const Reader *reader, const json_t *object, const char *key,
                            int64_t otherwise, int64_t *value)
{
    const json_t *given = json_object_get(object, key);
    *value = given ? json_integer_value(given) : otherwise;
    if (given && (*value < 1 || *value > INT32_MAX))
        return WRONG(reader, "%s is not a whole number above 0", key);
    return ENG_OK;
}

/* What caches say besides. */
static EngStatus read_cache(const Reader *reader, const json_t *object, EngTensorShape *shape,
                            EngModelTensor *info)
{
    int64_t every, window;
    EngStatus status = read_count(reader, object, "every", 0, &every);
    if (!status) status = read_count(reader, object, "window", 0, &window);
    if (!status && every && window) status = WRONG(reader, "has both every and window");
    if (!status && json_object_get(object, "format"))
        status = wrong(reader, eng_json_text(object, "format", info->format, sizeof info->format,
                                             reader->err));
    if (status) return status;
    shape->every = (int)every;
    shape->window = (int)window;
    return ENG_OK;
}

static EngStatus read_tensor(Reader *reader, const json_t *object, const EngQuantity *whole,
                             bool cache, EngTensorShape *shape, EngModelTensor *info)
{
    static const char *const all[] = {"every", "window", "format", "name", "bits",   "dims",
                                      "count", "split",  "kind",   "date", "source", NULL};
    const char *const *keys = cache ? all : all + 3;
    EngStatus status =
        wrong(reader, eng_json_text(object, "name", info->name, sizeof info->name, reader->err));
    if (status) return status;
    reader->tensor = info->name;
    status = check_keys(reader, object, keys);
    if (status) return status;
    const json_t *dims = json_object_get(object, "dims");
    size_t n = json_array_size(dims);
    if (!n || n > 4) return WRONG(reader, "dims are not 1 to 4 numbers");
    const json_t *split = json_object_get(object, "split");
    if (split && !json_is_boolean(split)) return WRONG(reader, "split is neither true nor false");
    info->split = json_is_true(split);
    int64_t bits;
    status = read_count(reader, object, "bits", 0, &bits);
    if (status) return status;
    *shape = (EngTensorShape){.name = info->name, .bits = (int)bits, .n_dims = (int)n};
    for (size_t i = 0; i < n; i++) shape->dims[i] = json_integer_value(json_array_get(dims, i));
    status = read_count(reader, object, "count", 1, &shape->count);
    if (!status && cache) status = read_cache(reader, object, shape, info);
    if (status) return status;
    info->from = *whole;
    bool own = json_object_get(object, "source") || json_object_get(object, "kind") ||
               json_object_get(object, "date");
    if (own || !whole->origin)
        status = wrong(reader, eng_json_origin(object, &info->from, reader->err));
    uint64_t bytes;
    if (!status && eng_tensor_bytes(shape, &bytes, reader->err)) return wrong(reader, ENG_BAD_DATA);
    reader->tensor = NULL;
    return status;
}

static EngStatus read_list(Reader *reader, const json_t *list, const char *key,
                           const EngQuantity *whole, EngTensorShape *shapes, EngModelTensor *info,
                           int *n)
{
    size_t all = json_array_size(list);
    if (!json_is_array(list) || !all || all > ENG_MODEL_MAX_TENSORS)
        return WRONG(reader, "%s is not a list of 1 to %d tensors", key, ENG_MODEL_MAX_TENSORS);
    for (*n = 0; *n < (int)all; ++*n) {
        EngStatus status = read_tensor(reader, json_array_get(list, (size_t)*n), whole,
                                       !strcmp(key, "kv"), &shapes[*n], &info[*n]);
        if (status) return status;
    }
    return ENG_OK;
}

/* The published file, which tensors and tables must add up to. */
static EngStatus read_checkpoint(Reader *reader, const json_t *object, EngModel *model)
{
    static const char *const keys[] = {"value", "tables", "unit", "kind", "date", "source", NULL};
    const json_t *part = json_object_get(object, "tables");
    double tables = json_number_value(part);
    char unit[16];
    uint64_t bytes;
    reader->tensor = "checkpoint";
    EngStatus status = eng_json_origin(object, &model->checkpoint, reader->err);
    if (!status) status = eng_json_text(object, "unit", unit, sizeof unit, reader->err);
    if (status) return wrong(reader, status);
    status = check_keys(reader, object, keys);
    if (status) return status;
    if (!json_is_number(part) || !(tables >= 0))
        return WRONG(reader, "does not say how much of it are tables, 0 for none");
    if (eng_quantity_of(json_number_value(json_object_get(object, "value")), unit, ENG_DIM_BYTES,
                        &model->checkpoint.value, reader->err))
        return wrong(reader, ENG_BAD_DATA);
    if (tables > 0 && eng_quantity_of(tables, unit, ENG_DIM_BYTES, &tables, reader->err))
        return wrong(reader, ENG_BAD_DATA);
    status = eng_model_bytes(model, &bytes, reader->err);
    if (status) return wrong(reader, status);
    double sum = (double)bytes + tables;
    if (fabs(sum / model->checkpoint.value - 1) > CHECKPOINT_OFF)
        return WRONG(reader, "is %.4g GiB, tensors and tables are %.4g",
                     model->checkpoint.value / GIB, sum / GIB);
    reader->tensor = NULL;
    return ENG_OK;
}

static EngStatus read_model(Reader *reader, const json_t *root, EngModel *model)
{
    static const char *const keys[] = {"summary", "kind",    "date", "source", "checkpoint",
                                       "layers",  "weights", "kv",   NULL};
    EngQuantity whole = {0};
    const json_t *checkpoint = json_object_get(root, "checkpoint");
    EngStatus status = check_keys(reader, root, keys);
    if (!status)
        status = wrong(reader, eng_json_text(root, "summary", model->summary, sizeof model->summary,
                                             reader->err));
    if (!status && json_object_get(root, "source"))
        status = wrong(reader, eng_json_origin(root, &whole, reader->err));
    if (!status)
        status = read_list(reader, json_object_get(root, "weights"), "weights", &whole,
                           model->weights, model->weight_info, &model->n_weights);
    if (!status)
        status = read_list(reader, json_object_get(root, "kv"), "kv", &whole, model->kv,
                           model->kv_info, &model->n_kv);
    if (!status) status = read_count(reader, root, "layers", 0, &model->layers);
    if (!status && !model->layers) status = WRONG(reader, "does not say how many layers it has");
    return status || !checkpoint ? status : read_checkpoint(reader, checkpoint, model);
}

EngStatus eng_model_parse(const char *name, const char *text, EngModel *model, EngErr *err)
{
    json_error_t where;
    *model = (EngModel){0};
    snprintf(model->name, sizeof model->name, "%s", name);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    Reader reader = {.model = name, .err = err};
    EngStatus status = json_is_object(root)
                           ? read_model(&reader, root, model)
                           : ENG_FAIL(err, ENG_BAD_DATA, "model %s: line %d: %s", name, where.line,
                                      root ? "not an object" : where.text);
    if (!status) {
        char *canonical = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
        status = canonical ? eng_key_of(canonical, model->digest, err)
                           : ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for model %s", name);
        free(canonical);
    }
    json_decref(root);
    return status;
}

EngStatus eng_model_open(const char *name, EngModel *model, EngErr *err)
{
    size_t n = strlen(name);
    if (strchr(name, '/') || (n > 5 && !strcmp(name + n - 5, ".json"))) {
        char *text;
        size_t length;
        EngStatus status = eng_file_read(name, &text, &length, err);
        if (status) return status;
        const char *base = strrchr(name, '/');
        status = eng_model_parse(base ? base + 1 : name, text, model, err);
        eng_free(text);
        return status;
    }
    for (const EngEmbedded *e = eng_embedded_models; e->name; e++)
        if (strlen(e->name) == n + 5 && !strncmp(e->name, name, n))
            return eng_model_parse(name, e->text, model, err);
    return ENG_FAIL(err, ENG_NOT_FOUND, "model: none is called \"%s\"", name);
}

/* Bytes of a token of context in one format. */
static double token_bytes(const EngModel *model, const char *format)
{
    double sum = 0;
    for (int i = 0; i < model->n_kv; i++) {
        const EngTensorShape *kv = &model->kv[i];
        uint64_t bytes = 0;
        if (kv->window || (*model->kv_info[i].format && strcmp(model->kv_info[i].format, format)))
            continue;
        (void)eng_tensor_bytes(kv, &bytes, NULL); /* was checked when it was read */
        sum += (double)bytes / (kv->every ? kv->every : 1);
    }
    return sum;
}

/* Whether tensor i is the first of its format. */
static bool names_format(const EngModel *model, int i)
{
    const char *format = model->kv_info[i].format;
    for (int j = 0; j < i; j++)
        if (!strcmp(model->kv_info[j].format, format)) return false;
    return *format != 0;
}

EngStatus eng_model_kv(EngModel *model, const char *format, EngErr *err)
{
    EngStr there = {0};
    bool known = !format, several = false;
    for (int i = 0; i < model->n_kv; i++) {
        if (!names_format(model, i)) continue;
        const char *name = model->kv_info[i].format;
        eng_str_printf(&there, "%s%s (%g B a token)", several ? ", " : "", name,
                       token_bytes(model, name));
        several = true;
        known = known || !strcmp(name, format);
    }
    EngStatus status = eng_str_status(&there, err);
    if (!status && several && (!format || !known))
        status = ENG_FAIL(err, ENG_USAGE, "model %s: caches are kept in one of %s%s%s", model->name,
                          there.text, format ? ", not in " : "", format ? format : "");
    if (!status && !several && format)
        status = ENG_FAIL(err, ENG_USAGE, "model %s: caches have no other format", model->name);
    eng_str_free(&there);
    int n = 0;
    for (int i = 0; i < model->n_kv && !status && format; i++) {
        const char *own = model->kv_info[i].format;
        if (*own && strcmp(own, format)) continue;
        model->kv[n] = model->kv[i];
        model->kv_info[n] = model->kv_info[i];
        model->kv[n].name = model->kv_info[n].name;
        n++;
    }
    if (!status && format) model->n_kv = n;
    return status;
}

EngStatus eng_model_split(EngModel *model, int ranks, EngErr *err)
{
    int64_t parts = 0; /* the most that a tensor has */
    for (int i = 0; i < model->n_weights; i++)
        if (model->weight_info[i].split && model->weights[i].dims[0] > parts)
            parts = model->weights[i].dims[0];
    if (ranks < 1) return ENG_FAIL(err, ENG_USAGE, "model %s: %d ranks", model->name, ranks);
    if (parts && ranks > parts)
        return ENG_FAIL(err, ENG_USAGE,
                        "model %s: %d ranks cannot share tensors of at most %" PRId64 " parts",
                        model->name, ranks, parts);
    for (int i = 0; i < model->n_weights; i++)
        model->weights[i].split = model->weight_info[i].split ? ranks : 1;
    for (int i = 0; i < model->n_kv; i++) model->kv[i].split = model->kv_info[i].split ? ranks : 1;
    return ENG_OK;
}

EngStatus eng_model_bytes(const EngModel *model, uint64_t *bytes, EngErr *err)
{
    *bytes = 0;
    for (int i = 0; i < model->n_weights; i++) {
        EngTensorShape whole = model->weights[i];
        uint64_t one;
        whole.split = 1;
        EngStatus status = eng_tensor_bytes(&whole, &one, err);
        if (status) return status;
        if (__builtin_add_overflow(*bytes, one, bytes))
            return ENG_FAIL(err, ENG_UNSUPPORTED, "model %s: its bytes do not fit 64 bits",
                            model->name);
    }
    return ENG_OK;
}
