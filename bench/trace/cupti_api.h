/* libcupti, found when a trace starts and never linked: the program runs where there is none.
 * Internal to the collector; empty in a build without the CUPTI headers. */
#ifndef ENG_TRACE_CUPTI_API_H
#define ENG_TRACE_CUPTI_API_H

#include <stddef.h>
#include <engram/status.h>

#ifdef ENG_HAVE_CUPTI

#include <cupti.h>

/* Every function used, without its prefix "cupti". */
#define ENG_CUPTI_FUNCTIONS(X)                                                                     \
    X(GetVersion)                                                                                  \
    X(GetResultString)                                                                             \
    X(GetTimestamp)                                                                                \
    X(GetCallbackName)                                                                             \
    X(SetThreadIdType)                                                                             \
    X(ActivityRegisterCallbacks)                                                                   \
    X(ActivityEnable)                                                                              \
    X(ActivityDisable)                                                                             \
    X(ActivityFlushAll)                                                                            \
    X(ActivityGetNextRecord)                                                                       \
    X(ActivityGetNumDroppedRecords)                                                                \
    X(ActivityPushExternalCorrelationId)                                                           \
    X(ActivityPopExternalCorrelationId)

typedef struct EngCuptiApi {
#define ENG_CUPTI_POINTER(name) __typeof__(&cupti##name) name;
    ENG_CUPTI_FUNCTIONS(ENG_CUPTI_POINTER)
#undef ENG_CUPTI_POINTER
    char path[512]; /* what the loader found */
    uint32_t version;
} EngCuptiApi;

/* Loads `library`; NULL: ENG_CUPTI_LIBRARY of the environment, else libcupti.so.13 and libcupti.so
 * where the loader looks, then beside the headers of the build. ENG_UNSUPPORTED with the reason:
 * none found, a function missing, or records of another shape than the headers say (older, or of
 * another major version; a newer minor one only appends fields). The library stays loaded: it
 * cannot be unloaded safely. */
EngStatus eng_cupti_load(const char *library, EngCuptiApi *api, EngErr *err);

/* "CUPTI_ERROR_UNKNOWN" */
const char *eng_cupti_result_name(const EngCuptiApi *api, CUptiResult result);

#endif
#endif
