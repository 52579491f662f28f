/* Counts of a token stream, kept beside it as JSON; see size_reuse.h. The file names the stream and
 * the preset by content, and carries a digest of its own counts: one that is stale, cut or edited
 * is counted anew and replaced. */
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
#include "bench/cli/size_reuse.h"

#define FORMAT "engram-counts-1" /* the next number where a model of caches or windows changes */
#define FLAGS  (JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17))

struct EngSizeCounts {
    char corpus[64], stream[ENG_DIGEST_HEX], preset[ENG_KEY_HEX];
    char *folder, *path;
    json_t *entries; /* what -> {"values": [...], "seconds": s} */
    int found, added;
    double spared; /* s */
};

static EngStatus no_memory(EngErr *err)
{
    return ENG_FAIL(err, ENG_NO_MEMORY, "out of memory for counts of a stream");
}

/* Of the counts alone. */
static EngStatus digest_of(const json_t *entries, char key[ENG_KEY_HEX], EngErr *err)
{
    char *text = json_dumps(entries, FLAGS);
    EngStatus status = text ? eng_key_of(text, key, err) : no_memory(err);
    free(text);
    return status;
}

static bool says(const json_t *root, const char *key, const char *value)
{
    const char *text = json_string_value(json_object_get(root, key));
    return text && !strcmp(text, value);
}

/* Why a file is not used; NULL: it is, and its counts are taken. */
static const char *take(EngSizeCounts *c, const json_t *root)
{
    char key[ENG_KEY_HEX];
    json_t *entries = json_object_get(root, "counts");
    if (!says(root, "format", FORMAT)) return "of another version";
    if (!says(root, "stream", c->stream)) return "of another stream of that name";
    if (!says(root, "preset", c->preset)) return "of another preset of that name";
    if (!json_is_object(entries) || digest_of(entries, key, NULL) || !says(root, "digest", key))
        return "damaged";
    json_decref(c->entries);
    c->entries = json_incref(entries);
    return NULL;
}

static EngStatus load(EngSizeCounts *c, EngErr *err)
{
    char *text = NULL;
    size_t n;
    EngErr why = {0};
    EngStatus status = eng_file_read(c->path, &text, &n, &why);
    if (status == ENG_NOT_FOUND) return ENG_OK;
    if (status == ENG_NO_MEMORY) return no_memory(err);
    json_t *root = status ? NULL : json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
    const char *reason = status ? why.text : !json_is_object(root) ? "damaged" : take(c, root);
    if (reason) eng_info("size", "counts in %s are not used, counted again: %s", c->path, reason);
    json_decref(root);
    eng_free(text);
    return ENG_OK;
}

EngStatus eng_size_counts_open(const EngSizeCorpus *corpus, EngSizeCounts **out, EngErr *err)
{
    EngSizeCounts *c;
    EngStr folder = {0}, path = {0};
    EngStatus status = eng_alloc_or((void **)&c, 1, sizeof *c, "counts", err);
    *out = NULL;
    if (status) return status;
    snprintf(c->corpus, sizeof c->corpus, "%s", corpus->name);
    snprintf(c->stream, sizeof c->stream, "%s", corpus->digest);
    snprintf(c->preset, sizeof c->preset, "%s", corpus->preset->digest);
    eng_str_printf(&folder, "%s/counts", corpus->data);
    eng_str_printf(&path, "%s/counts/%s-%s.json", corpus->data, corpus->name, corpus->preset->name);
    c->folder = folder.text;
    c->path = path.text;
    c->entries = json_object();
    status = eng_str_status(&folder, err);
    if (!status) status = eng_str_status(&path, err);
    if (!status && !c->entries) status = no_memory(err);
    if (!status) status = load(c, err);
    if (status)
        eng_size_counts_close(c);
    else
        *out = c;
    return status;
}

void eng_size_counts_close(EngSizeCounts *c)
{
    if (!c) return;
    eng_free(c->folder);
    eng_free(c->path);
    json_decref(c->entries);
    eng_free(c);
}

bool eng_size_counts_find(EngSizeCounts *c, const char *what, double *values, int n)
{
    const json_t *entry = json_object_get(c->entries, what);
    const json_t *list = json_object_get(entry, "values");
    if (!entry || json_array_size(list) != (size_t)n) return false;
    for (int i = 0; i < n; i++) {
        const json_t *value = json_array_get(list, (size_t)i);
        values[i] = json_is_real(value) ? json_real_value(value) : NAN;
    }
    c->found++;
    c->spared += json_number_value(json_object_get(entry, "seconds"));
    return true;
}

EngStatus eng_size_counts_add(EngSizeCounts *c, const char *what, const double *values, int n,
                              double seconds, EngErr *err)
{
    json_t *list = json_array(), *entry = json_object();
    bool failed = !list || !entry;
    for (int i = 0; i < n && !failed; i++)
        failed =
            json_array_append_new(list, isnan(values[i]) ? json_null() : json_real(values[i])) != 0;
    failed = failed || json_object_set(entry, "values", list) ||
             json_object_set_new(entry, "seconds", json_real(seconds)) ||
             json_object_set(c->entries, what, entry);
    json_decref(list);
    json_decref(entry);
    c->added++;
    return failed ? no_memory(err) : ENG_OK;
}

static EngStatus write_counts(const EngSizeCounts *c, EngErr *err)
{
    char key[ENG_KEY_HEX];
    EngStatus status = digest_of(c->entries, key, err);
    if (status) return status;
    json_t *root =
        json_pack("{ss, ss, ss, ss, ss, sO}", "format", FORMAT, "corpus", c->corpus, "stream",
                  c->stream, "preset", c->preset, "digest", key, "counts", c->entries);
    char *text = root ? json_dumps(root, FLAGS) : NULL;
    status = text ? eng_make_dirs(c->folder, err) : no_memory(err);
    if (!status) status = eng_file_write(c->path, text, strlen(text), err);
    json_decref(root);
    free(text);
    return status;
}

EngStatus eng_size_counts_keep(EngSizeCounts *c, EngErr *err)
{
    EngErr why = {0};
    const json_t *keys = json_object_get(c->entries, ENG_SIZE_COUNTS_KEYS);
    bool hashed = c->added > 0;
    double spared = c->spared;
    if (!hashed) spared += json_number_value(json_object_get(keys, "seconds"));
    if (c->found)
        eng_info("size", "counts of %s: %d were kept, %.2g s of counting saved; %d counted now",
                 c->corpus, c->found, spared, c->added - (hashed ? 1 : 0));
    if (!c->added) return ENG_OK;
    EngStatus status = write_counts(c, &why);
    if (status == ENG_NO_MEMORY) return no_memory(err);
    if (status) eng_info("size", "counts of %s are not kept: %s", c->corpus, why.text);
    c->added = 0;
    return ENG_OK;
}
