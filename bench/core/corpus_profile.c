/* Profiles of corpora; see corpus_profile.h. */
#include "bench/core/corpus_profile.h"

#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "bench/core/resources.h"
#include "bench/core/runner.h"
#include "kernels/address/preset.h"

/* Files are named by what they depend on: stream, compressed ids and orders. */
static EngStatus path_of(const char *data_dir, const EngPreset *preset, const EngTokens *tokens,
                         EngStr *path, EngErr *err)
{
    char key[ENG_KEY_HEX];
    EngStr text = {0};
    eng_str_printf(&text, "%s %s %d %d", tokens->digest,
                   preset->tokmap_digest[0] ? preset->tokmap_digest : preset->name,
                   preset->address.min_order, preset->address.max_order);
    EngStatus status = eng_str_status(&text, err);
    if (!status) status = eng_key_of(text.text, key, err);
    if (!status) eng_str_printf(path, "%s/profiles/%s-%.12s.json", data_dir, tokens->corpus, key);
    eng_str_free(&text);
    return status ? status : eng_str_status(path, err);
}

static bool kept(const char *path, const EngTokens *tokens, EngProfile *profile)
{
    char *text;
    size_t n;
    if (eng_file_read(path, &text, &n, NULL)) return false;
    EngStatus status = eng_profile_parse(path, text, profile, NULL);
    eng_free(text);
    return !status && !strcmp(profile->digest, tokens->digest);
}

static void keep(const char *data_dir, const char *path, const EngProfile *profile)
{
    EngErr err = {0};
    EngStr text = {0}, folder = {0};
    eng_str_printf(&folder, "%s/profiles", data_dir);
    EngStatus status = eng_str_status(&folder, &err);
    if (!status) status = eng_make_dirs(folder.text, &err);
    if (!status) status = eng_profile_print(profile, &text, &err);
    if (!status) status = eng_file_write(path, text.text, text.n, &err);
    if (status) eng_warn("profile", "not kept: %s", err.text);
    eng_str_free(&text);
    eng_str_free(&folder);
}

static EngStatus make(const char *data_dir, const EngPreset *preset, const EngTokens *tokens,
                      EngProfile *profile, EngErr *err)
{
    EngStr path = {0};
    EngStatus status = path_of(data_dir, preset, tokens, &path, err);
    if (!status && !kept(path.text, tokens, profile)) {
        status =
            eng_profile_build(tokens->corpus, tokens->digest, tokens->compressed, tokens->n_tokens,
                              preset->address.min_order, preset->address.max_order, profile, err);
        if (!status) keep(data_dir, path.text, profile);
    }
    eng_str_free(&path);
    return status;
}

EngStatus eng_corpus_profile(const char *data_dir, const char *preset_name, const char *corpus,
                             EngProfile *profile, EngErr *err)
{
    EngResources *resources = NULL;
    EngPreset preset;
    EngTokens tokens;
    EngNeed need = {.corpus = corpus, .preset = preset_name};
    EngStatus status = eng_preset_find(preset_name, &preset, err);
    if (!status) status = eng_resources_create(data_dir, ENG_DATA_SEED, &resources, err);
    if (status) return status;
    if (!eng_resources_has_corpus(resources, corpus))
        status = ENG_FAIL(err, ENG_UNSUPPORTED,
                          "%s: no stream for corpus %s (scripts/fetch_data gets text)", data_dir,
                          corpus);
    if (!status) status = eng_resources_add(resources, &need, err);
    if (!status) status = eng_resources_tokens(resources, preset_name, corpus, &tokens, err);
    if (!status) status = make(data_dir, &preset, &tokens, profile, err);
    eng_resources_destroy(resources);
    return status;
}
