/* See cupti_api.h. */
#include "bench/trace/cupti_api.h"

#ifdef ENG_HAVE_CUPTI

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *open_library(const char *library, EngCuptiApi *api, EngErr *err)
{
    static const char *const usual[] = {"libcupti.so.13", "libcupti.so",
                                        ENG_CUPTI_LIBRARY_DIR "/libcupti.so.13",
                                        ENG_CUPTI_LIBRARY_DIR "/libcupti.so"};
    const char *wanted = library ? library : getenv("ENG_CUPTI_LIBRARY");
    const char *const *names = wanted && *wanted ? &wanted : usual;
    size_t n = names == usual ? sizeof usual / sizeof *usual : 1;
    for (size_t i = 0; i < n; i++) {
        void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (!handle) continue;
        snprintf(api->path, sizeof api->path, "%s", names[i]);
        return handle;
    }
    ENG_FAIL(err, ENG_UNSUPPORTED, "no libcupti: %s", dlerror());
    return NULL;
}

static EngStatus check_version(EngCuptiApi *api, EngErr *err)
{
    CUptiResult result = api->GetVersion(&api->version);
    if (result)
        return ENG_FAIL(err, ENG_UNSUPPORTED, "%s: cuptiGetVersion: %s", api->path,
                        eng_cupti_result_name(api, result));
    if (api->version < CUPTI_API_VERSION)
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "%s: version %u is older than the headers of this build (%d)", api->path,
                        api->version, CUPTI_API_VERSION);
    if (api->version / 10000 != CUPTI_API_VERSION / 10000)
        return ENG_FAIL(err, ENG_UNSUPPORTED,
                        "%s: version %u is of another CUDA than the headers of this build (%d)",
                        api->path, api->version, CUPTI_API_VERSION);
    return ENG_OK;
}

EngStatus eng_cupti_load(const char *library, EngCuptiApi *api, EngErr *err)
{
    *api = (EngCuptiApi){0};
    void *handle = open_library(library, api, err), *symbol;
    if (!handle) return ENG_UNSUPPORTED;
#define LOOK_UP(name)                                                                              \
    symbol = dlsym(handle, "cupti" #name);                                                         \
    if (!symbol)                                                                                   \
        return ENG_FAIL(err, ENG_UNSUPPORTED, "%s: no function cupti%s", api->path, #name);        \
    api->name = (__typeof__(api->name))symbol;
    ENG_CUPTI_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    return check_version(api, err);
}

const char *eng_cupti_result_name(const EngCuptiApi *api, CUptiResult result)
{
    const char *text = NULL;
    if (api->GetResultString(result, &text) || !text) return "an unknown CUPTI error";
    return text;
}

#endif
