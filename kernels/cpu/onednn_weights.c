/* Expanded and packed weights with their cache; see onednn_weights.h and project.h.
 *
 * A production wkv is 25,600 x 6,144: 315 MB in bf16. create() runs once per problem, and a sweep
 * over tokens has many problems with the same weights, so packed copies stay until
 * eng_project_cache_clear. The row-major expansion is only a step on the way and is not kept.
 */
#include "kernels/cpu/onednn_weights.h"

#include "kernels/cpu/common.h"
#include "kernels/cpu/decode.h"
#include "kernels/cpu/project.h"
#include "kernels/cpu/project_tiles.h"

#include "base/mem.h"

#include <omp.h>
#include <pthread.h>

typedef struct Key {
    const uint8_t *w, *w_scales;
    int n, k;
    EngDtype from, type;
    uint64_t samples; /* digest: memory may have been freed and given to other weights */
} Key;

struct EngPackedWeights {
    EngPackedWeights *next;
    Key key;
    dnnl_memory_desc_t layout;
    dnnl_memory_t memory;
    void *bytes;
    int users;
};

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static EngPackedWeights *g_entries;
static dnnl_engine_t g_engine;

EngStatus eng_onednn_status(dnnl_status_t status, const char *step, EngErr *err)
{
    switch (status) {
    case dnnl_success:
        return ENG_OK;
    case dnnl_out_of_memory:
        return ENG_FAIL(err, ENG_NO_MEMORY, "oneDNN: out of memory in %s", step);
    case dnnl_unimplemented:
        return ENG_FAIL(err, ENG_UNSUPPORTED, "oneDNN has no implementation for %s", step);
    default:
        return ENG_FAIL(err, ENG_INTERNAL, "oneDNN: status %d in %s", (int)status, step);
    }
}

EngStatus eng_onednn_engine(dnnl_engine_t *engine, EngErr *err)
{
    dnnl_status_t status = dnnl_success;
    pthread_mutex_lock(&g_lock);
    if (!g_engine) status = dnnl_engine_create(&g_engine, dnnl_cpu, 0);
    *engine = g_engine;
    pthread_mutex_unlock(&g_lock);
    return eng_onednn_status(status, "engine", err);
}

int eng_onednn_set_threads(int threads)
{
    int before = omp_get_max_threads();
    if (before != threads) omp_set_num_threads(threads);
    return before;
}

EngStatus eng_onednn_bf16(EngErr *why)
{
    if ((dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core)
        return ENG_OK;
    return ENG_FAIL(why, ENG_UNSUPPORTED,
                    "oneDNN %d.%d offers bf16 products only with AVX-512, which this processor "
                    "lacks",
                    DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR);
}

/* ---- expansion ---------------------------------------------------------------------------------
 */

ENG_CLONES static void widen(const uint8_t *from, uint8_t *to, int n)
{
    for (size_t i = 0; i < (size_t)n; i++) {
        uint16_t bits;
        memcpy(&bits, from + 2 * i, sizeof bits);
        uint32_t wide = (uint32_t)bits << 16;
        memcpy(to + 4 * i, &wide, sizeof wide);
    }
}

void eng_onednn_expand_row(EngDtype from, const uint8_t *values, const uint8_t *scales, int k,
                           EngDtype type, uint8_t *out)
{
    if (from == ENG_BF16 && type == ENG_BF16)
        memcpy(out, values, 2 * (size_t)k);
    else if (from == ENG_BF16)
        widen(values, out, k);
    else if (type == ENG_BF16)
        eng_cpu_decode_bf16(values, scales, k / ENG_SCALE_GROUP, out);
    else
        eng_cpu_decode_f32(values, scales, k / ENG_SCALE_GROUP, out);
}

static void expand(const EngProjectProblem *p, int threads, EngDtype type, uint8_t *out)
{
    size_t k = (size_t)p->k;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int j = 0; j < p->n; j++) {
        const uint8_t *scales =
            p->w_scales ? p->w_scales + (size_t)j / ENG_SCALE_GROUP * (k / ENG_SCALE_GROUP) : NULL;
        eng_onednn_expand_row(p->weights, p->w + (size_t)j * eng_dtype_bytes(p->weights, k), scales,
                              p->k, type, out + (size_t)j * eng_dtype_bytes(type, k));
    }
}

/* ---- packing -----------------------------------------------------------------------------------
 */

static void free_weights(EngPackedWeights *weights)
{
    if (!weights) return;
    if (weights->memory) dnnl_memory_destroy(weights->memory);
    eng_free(weights->bytes);
    eng_free(weights);
}

static EngStatus reorder(dnnl_engine_t engine, const dnnl_memory_desc_t *from, void *bytes,
                         const dnnl_memory_desc_t *layout, dnnl_memory_t to, EngErr *err)
{
    dnnl_memory_t source = NULL;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t primitive = NULL;
    dnnl_stream_t stream = NULL;
    dnnl_status_t status = dnnl_memory_create(&source, from, engine, bytes);
    if (status) goto done;
    status = dnnl_reorder_primitive_desc_create(&desc, from, engine, layout, engine, NULL);
    if (status) goto done;
    status = dnnl_primitive_create(&primitive, desc);
    if (status) goto done;
    status = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
    if (status) goto done;
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, to}};
    status = dnnl_primitive_execute(primitive, stream, 2, args);
    if (!status) status = dnnl_stream_wait(stream);
done:
    if (stream) dnnl_stream_destroy(stream);
    if (primitive) dnnl_primitive_destroy(primitive);
    if (desc) dnnl_primitive_desc_destroy(desc);
    if (source) dnnl_memory_destroy(source);
    return eng_onednn_status(status, "packing of weights", err);
}

static EngStatus make(const EngProblem *problem, const Key *key, const dnnl_memory_desc_t *plain,
                      const dnnl_memory_desc_t *layout, EngPackedWeights **out, EngErr *err)
{
    const EngProjectProblem *p = &problem->u.project;
    EngPackedWeights *made = NULL;
    void *expanded = NULL;
    dnnl_engine_t engine;
    EngStatus status = eng_onednn_engine(&engine, err);
    if (status) goto done;
    status = eng_alloc_or((void **)&made, 1, sizeof *made, "packed weights", err);
    if (status) goto done;
    status = eng_alloc_or(&expanded, dnnl_memory_desc_get_size(plain), 1, "expanded weights", err);
    if (status) goto done;
    expand(p, problem->threads, key->type, expanded);
    made->key = *key;
    made->layout = *layout;
    if (dnnl_memory_desc_equal(plain, layout)) {
        made->bytes = expanded;
        expanded = NULL;
    } else {
        status =
            eng_alloc_or(&made->bytes, dnnl_memory_desc_get_size(layout), 1, "packed weights", err);
        if (status) goto done;
        eng_cpu_huge_pages(made->bytes, dnnl_memory_desc_get_size(layout));
    }
    status = eng_onednn_status(dnnl_memory_create(&made->memory, layout, engine, made->bytes),
                               "weights", err);
    if (!status && expanded) status = reorder(engine, plain, expanded, layout, made->memory, err);
done:
    eng_free(expanded);
    if (status) {
        free_weights(made);
        made = NULL;
    }
    *out = made;
    return status;
}

/* ---- cache -------------------------------------------------------------------------------------
 */

/* FNV-1a over up to 4,096 words spread over the bytes. */
static uint64_t digest_samples(uint64_t hash, const uint8_t *bytes, size_t n)
{
    size_t words = n / 8, step = words / 4096 + 1;
    for (size_t i = 0; i < words; i += step) {
        uint64_t word;
        memcpy(&word, bytes + 8 * i, sizeof word);
        hash = (hash ^ word) * 0x100000001b3u;
    }
    for (size_t i = 8 * words; i < n; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

static Key key_of(const EngProjectProblem *p, EngDtype type)
{
    size_t values = (size_t)p->n * (size_t)p->k;
    Key key = {.w = p->w, .w_scales = p->w_scales, .n = p->n, .k = p->k};
    key.from = p->weights;
    key.type = type;
    key.samples =
        digest_samples(0xcbf29ce484222325u, p->w, values * eng_dtype_bytes(p->weights, 1));
    if (p->w_scales)
        key.samples =
            digest_samples(key.samples, p->w_scales, values / (ENG_SCALE_GROUP * ENG_SCALE_GROUP));
    return key;
}

static bool same_key(const Key *a, const Key *b)
{
    return a->w == b->w && a->w_scales == b->w_scales && a->n == b->n && a->k == b->k &&
           a->from == b->from && a->type == b->type && a->samples == b->samples;
}

static EngPackedWeights *find(const Key *key, const dnnl_memory_desc_t *layout)
{
    for (EngPackedWeights *e = g_entries; e; e = e->next)
        if (same_key(&e->key, key) && dnnl_memory_desc_equal(&e->layout, layout)) return e;
    return NULL;
}

EngStatus eng_packed_weights_acquire(const EngProblem *problem, EngDtype type,
                                     const dnnl_memory_desc_t *plain,
                                     const dnnl_memory_desc_t *layout, EngPackedWeights **out,
                                     EngErr *err)
{
    Key key = key_of(&problem->u.project, type);
    pthread_mutex_lock(&g_lock);
    EngPackedWeights *found = find(&key, layout);
    if (found) found->users++;
    pthread_mutex_unlock(&g_lock);
    if (!found) {
        EngStatus status = make(problem, &key, plain, layout, &found, err);
        if (status) return status;
        found->users = 1;
        pthread_mutex_lock(&g_lock);
        found->next = g_entries;
        g_entries = found;
        pthread_mutex_unlock(&g_lock);
    }
    *out = found;
    return ENG_OK;
}

void eng_packed_weights_release(EngPackedWeights *weights)
{
    if (!weights) return;
    pthread_mutex_lock(&g_lock);
    weights->users--;
    pthread_mutex_unlock(&g_lock);
}

dnnl_memory_t eng_packed_weights_memory(const EngPackedWeights *weights)
{
    return weights->memory;
}

void eng_project_cache_clear(void)
{
    pthread_mutex_lock(&g_lock);
    for (EngPackedWeights **link = &g_entries; *link;) {
        EngPackedWeights *entry = *link;
        if (entry->users) {
            link = &entry->next;
            continue;
        }
        *link = entry->next;
        free_weights(entry);
    }
    pthread_mutex_unlock(&g_lock);
    eng_weight_tiles_clear();
}

int eng_project_cache_entries(void)
{
    int n = eng_weight_tiles_entries();
    pthread_mutex_lock(&g_lock);
    for (EngPackedWeights *e = g_entries; e; e = e->next) n++;
    pthread_mutex_unlock(&g_lock);
    return n;
}
