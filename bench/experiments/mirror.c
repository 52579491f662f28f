/* See mirror.h. */
#include "bench/experiments/mirror.h"

#include <string.h>

#include "base/mem.h"

struct EngMirror {
    const uint8_t *host;
    uint8_t *there;
    size_t bytes;
    EngCudaPlace place;
    int holders;
    EngMirror *next;
};

static EngMirror *g_mirrors;

/* ---- which pointers there are ------------------------------------------------------------------
 */

/* A pointer in EngProblem or EngArgs, by its offset. */
typedef struct Buffer {
    size_t at, bytes;
    bool written, table;
} Buffer;

enum { MAX_BUFFERS = 11 };

#define IN(type, member, size)  ((Buffer){offsetof(type, u.member), (size_t)(size), false, false})
#define OUT(type, member, size) ((Buffer){offsetof(type, u.member), (size_t)(size), true, false})
#define TABLE(member, size)     ((Buffer){offsetof(EngProblem, u.member), (size_t)(size), false, true})

static size_t value_bytes(const EngTable *table)
{
    return (size_t)table->rows * eng_row_stride_bytes(table->format, table->row_dims);
}

static size_t scale_bytes(const EngTable *table)
{
    return (size_t)table->rows * eng_row_scale_bytes(table->format, table->row_dims);
}

static size_t tile_bytes(int n, int k)
{
    return (size_t)(n / ENG_SCALE_GROUP) * (size_t)(k / ENG_SCALE_GROUP);
}

static int problem_buffers(const EngProblem *problem, Buffer out[MAX_BUFFERS])
{
    const EngTable *table = &problem->u.gather.table;
    const EngProjectProblem *project = &problem->u.project;
    const EngLookupProblem *lookup = &problem->u.lookup;
    const EngGateProblem *gate = &problem->u.gate;
    const EngConvProblem *conv = &problem->u.conv;
    size_t width;
    int n = 0;
    switch (problem->op) {
    case ENG_OP_GATHER:
        out[n++] = TABLE(gather.table.values, value_bytes(table));
        out[n++] = TABLE(gather.table.scales, scale_bytes(table));
        break;
    case ENG_OP_PROJECT:
        width = (size_t)project->n * (size_t)project->k;
        out[n++] = IN(EngProblem, project.w, eng_dtype_bytes(project->weights, width));
        out[n++] = IN(EngProblem, project.w_scales, tile_bytes(project->n, project->k));
        break;
    case ENG_OP_LOOKUP:
        table = &lookup->table;
        width = (size_t)lookup->n * (size_t)lookup->columns * (size_t)table->row_dims;
        out[n++] = TABLE(lookup.table.values, value_bytes(table));
        out[n++] = TABLE(lookup.table.scales, scale_bytes(table));
        out[n++] = IN(EngProblem, lookup.w, eng_dtype_bytes(lookup->weights, width));
        out[n++] = IN(EngProblem, lookup.w_scales,
                      tile_bytes(lookup->n, lookup->columns * table->row_dims));
        break;
    case ENG_OP_GATE:
        width = (size_t)gate->streams * (size_t)gate->hidden;
        out[n++] = IN(EngProblem, gate.q_weight, width * sizeof *gate->q_weight);
        out[n++] = IN(EngProblem, gate.k_weight, width * sizeof *gate->k_weight);
        break;
    case ENG_OP_CONV:
        width = (size_t)conv->streams * (size_t)conv->hidden;
        out[n++] = IN(EngProblem, conv.norm_weight, width * sizeof(float));
        out[n++] = IN(EngProblem, conv.conv_weight, width * (size_t)conv->kernel * sizeof(float));
        break;
    default: /* the address of a hash is read when its kernel is made */
        break;
    }
    return n;
}

static int hash_buffers(const EngAddress *address, const EngHashArgs *args, Buffer *out)
{
    int n = 0;
    int64_t sequences = args->starts ? args->n_seqs : 1;
    int64_t rows = args->n_tokens * address->n_layers * address->n_columns;
    out[n++] = IN(EngArgs, hash.tokens, args->n_tokens * (int64_t)sizeof(int32_t));
    out[n++] = IN(EngArgs, hash.starts, (sequences + 1) * (int64_t)sizeof(int64_t));
    out[n++] =
        IN(EngArgs, hash.history, sequences * (address->max_order - 1) * (int64_t)sizeof(int32_t));
    out[n++] = OUT(EngArgs, hash.rows, rows * (int64_t)sizeof(int64_t));
    return n;
}

static int64_t row_number_bytes(int64_t tokens, int64_t stride, int columns)
{
    return ((tokens - 1) * stride + columns) * (int64_t)sizeof(int64_t);
}

static int gate_buffers(const EngGateProblem *p, Buffer *out)
{
    int n = 0;
    int64_t values = p->tokens * p->streams * p->hidden, gates = p->tokens * p->streams;
    int64_t keys = p->tokens * (p->streams + 1) * p->hidden;
    out[n++] = IN(EngArgs, gate.streams_in, 2 * values);
    out[n++] = OUT(EngArgs, gate.streams_out, 2 * values);
    out[n++] = IN(EngArgs, gate.kv, 2 * keys);
    out[n++] = IN(EngArgs, gate.dead, p->tokens);
    out[n++] = OUT(EngArgs, gate.gates, gates * (int64_t)sizeof(float));
    out[n++] = OUT(EngArgs, gate.scores, gates * (int64_t)sizeof(float));
    return n;
}

static int back_gate_buffers(const EngTrainGateProblem *p, Buffer *out)
{
    int n = 0;
    size_t each = sizeof(float), tokens = (size_t)p->tokens, hidden = (size_t)p->hidden;
    size_t width = (size_t)p->streams * hidden, gates = tokens * (size_t)p->streams;
    out[n++] = IN(EngArgs, back_gate.streams_in, tokens * width * each);
    out[n++] = IN(EngArgs, back_gate.kv, tokens * (width + hidden) * each);
    out[n++] = IN(EngArgs, back_gate.q_weight, width * each);
    out[n++] = IN(EngArgs, back_gate.k_weight, width * each);
    out[n++] = IN(EngArgs, back_gate.dead, tokens);
    out[n++] = IN(EngArgs, back_gate.kept, gates * ENG_GATE_KEPT * each);
    out[n++] = IN(EngArgs, back_gate.d_out, tokens * width * each);
    out[n++] = OUT(EngArgs, back_gate.d_streams, tokens * width * each);
    out[n++] = OUT(EngArgs, back_gate.d_kv, tokens * (width + hidden) * each);
    out[n++] = OUT(EngArgs, back_gate.d_q_weight, width * each);
    out[n++] = OUT(EngArgs, back_gate.d_k_weight, width * each);
    return n;
}

static int back_gather_buffers(const EngBackGatherProblem *p, const EngBackGatherArgs *args,
                               Buffer *out)
{
    int n = 0;
    size_t rows = (size_t)p->tokens * (size_t)p->columns;
    size_t values = rows * (size_t)p->row_dims;
    out[n++] =
        IN(EngArgs, back_gather.rows, row_number_bytes(p->tokens, args->row_stride, p->columns));
    out[n++] = IN(EngArgs, back_gather.d_out, values * sizeof(float));
    out[n++] = OUT(EngArgs, back_gather.touched, rows * sizeof(int64_t));
    out[n++] = OUT(EngArgs, back_gather.n_touched, sizeof(int64_t));
    out[n++] = OUT(EngArgs, back_gather.d_rows, values * sizeof(float));
    return n;
}

static int sinkhorn_buffers(const EngSinkhornProblem *p, const EngSinkhornArgs *args, Buffer *out)
{
    int n = 0;
    size_t rows = (size_t)p->rows, values = rows * (size_t)p->row_dims;
    size_t touched = (size_t)args->n_touched;
    out[n++] = OUT(EngArgs, sinkhorn.w, values * sizeof(float));
    out[n++] = IN(EngArgs, sinkhorn.touched, touched * sizeof(int64_t));
    out[n++] = IN(EngArgs, sinkhorn.grad, touched * (size_t)p->row_dims * sizeof(float));
    out[n++] = OUT(EngArgs, sinkhorn.momentum, values * sizeof(float));
    out[n++] = OUT(EngArgs, sinkhorn.row_norms, rows * sizeof(float));
    out[n++] = OUT(EngArgs, sinkhorn.row_steps, rows * sizeof(int32_t));
    return n;
}

static int args_buffers(const EngProblem *problem, const EngArgs *args, Buffer out[MAX_BUFFERS])
{
    const EngGatherProblem *gather = &problem->u.gather;
    const EngProjectProblem *project = &problem->u.project;
    const EngLookupProblem *lookup = &problem->u.lookup;
    const EngConvProblem *conv = &problem->u.conv;
    size_t values;
    int n = 0;
    switch (problem->op) {
    case ENG_OP_HASH:
        return hash_buffers(problem->u.hash.address, &args->u.hash, out);
    case ENG_OP_GATHER:
        values = (size_t)gather->tokens * (size_t)gather->columns * (size_t)gather->table.row_dims;
        out[n++] = IN(EngArgs, gather.rows,
                      row_number_bytes(gather->tokens, args->u.gather.row_stride, gather->columns));
        out[n++] = OUT(EngArgs, gather.out, eng_dtype_bytes(gather->out, values));
        out[n++] = OUT(EngArgs, gather.out_scales, values / ENG_SCALE_GROUP);
        return n;
    case ENG_OP_PROJECT:
        values = (size_t)project->tokens * (size_t)project->k;
        out[n++] = IN(EngArgs, project.x, eng_dtype_bytes(project->x, values));
        out[n++] = IN(EngArgs, project.x_scales, values / ENG_SCALE_GROUP);
        values = (size_t)project->tokens * (size_t)project->n;
        out[n++] = OUT(EngArgs, project.out, eng_dtype_bytes(project->out, values));
        return n;
    case ENG_OP_GATE:
        return gate_buffers(&problem->u.gate, out);
    case ENG_OP_CONV:
        values = (size_t)conv->streams * (size_t)conv->hidden * sizeof(float);
        out[n++] = IN(EngArgs, conv.value, (size_t)conv->tokens * values);
        out[n++] =
            OUT(EngArgs, conv.state, (size_t)(conv->kernel - 1) * (size_t)conv->dilation * values);
        out[n++] = OUT(EngArgs, conv.out, (size_t)conv->tokens * values);
        return n;
    case ENG_OP_LOOKUP:
        values = (size_t)lookup->tokens * (size_t)lookup->n;
        out[n++] = IN(EngArgs, lookup.rows,
                      row_number_bytes(lookup->tokens, args->u.lookup.row_stride, lookup->columns));
        out[n++] = OUT(EngArgs, lookup.out, eng_dtype_bytes(lookup->out, values));
        return n;
    case ENG_OP_BACK_GATE:
        return back_gate_buffers(&problem->u.train_gate, out);
    case ENG_OP_BACK_GATHER:
        return back_gather_buffers(&problem->u.back_gather, &args->u.back_gather, out);
    case ENG_OP_SINKHORN:
        return sinkhorn_buffers(&problem->u.sinkhorn, &args->u.sinkhorn, out);
    default: /* the device has no variant of others */
        return 0;
    }
}

/* ---- mirrors -----------------------------------------------------------------------------------
 */

static bool holds(const EngMirror *m, const uint8_t *host, size_t bytes, EngCudaPlace place)
{
    return host >= m->host && host + bytes <= m->host + m->bytes && m->place == place;
}

static EngStatus make(const uint8_t *host, size_t bytes, EngCudaPlace place, EngMirror **out,
                      EngErr *err)
{
    void *there = NULL;
    EngMirror *mirror = NULL;
    EngStatus status = eng_alloc_or((void **)&mirror, 1, sizeof *mirror, "mirror", err);
    if (!status) status = eng_cuda_alloc(place, bytes, &there, err);
    if (!status) status = eng_cuda_copy(there, host, bytes, err);
    if (status) {
        eng_cuda_free(place, there);
        eng_free(mirror);
        return status;
    }
    *mirror = (EngMirror){
        .host = host, .there = there, .bytes = bytes, .place = place, .next = g_mirrors};
    *out = g_mirrors = mirror;
    return ENG_OK;
}

/* The mirror that holds the bytes: one of ours, anybody's, or a new one. */
static EngStatus find(EngMirrors *mirrors, const uint8_t *host, size_t bytes, EngCudaPlace place,
                      EngMirror **out, EngErr *err)
{
    for (int i = 0; i < mirrors->n; i++) {
        *out = mirrors->held[i];
        if (holds(*out, host, bytes, place)) return ENG_OK;
    }
    if (mirrors->n == ENG_MAX_MIRRORS)
        return ENG_FAIL(err, ENG_INTERNAL, "more than %d buffers of one kernel", ENG_MAX_MIRRORS);
    EngStatus status = ENG_OK;
    *out = g_mirrors;
    while (*out && !holds(*out, host, bytes, place)) *out = (*out)->next;
    if (!*out) status = make(host, bytes, place, out, err);
    if (status) return status;
    (*out)->holders++;
    mirrors->held[mirrors->n++] = *out;
    return ENG_OK;
}

static EngStatus translate(EngMirrors *mirrors, void *structure, const Buffer *buffer,
                           EngCudaPlace place, EngErr *err)
{
    EngMirror *mirror;
    uint8_t *pointer;
    memcpy(&pointer, (char *)structure + buffer->at, sizeof pointer);
    if (!pointer || !buffer->bytes) return ENG_OK;
    EngStatus status = find(mirrors, pointer, buffer->bytes, place, &mirror, err);
    if (status) return status;
    pointer = mirror->there + (pointer - mirror->host);
    memcpy((char *)structure + buffer->at, &pointer, sizeof pointer);
    return ENG_OK;
}

EngStatus eng_mirror_cover(EngMirrors *mirrors, const void *host, size_t bytes, EngErr *err)
{
    EngMirror *mirror;
    return find(mirrors, host, bytes, ENG_CUDA_DEVICE, &mirror, err);
}

EngStatus eng_mirror_at(EngMirrors *mirrors, const void *host, size_t bytes, const void **there,
                        EngErr *err)
{
    EngMirror *mirror;
    EngStatus status = find(mirrors, host, bytes, ENG_CUDA_DEVICE, &mirror, err);
    if (!status) *there = mirror->there + ((const uint8_t *)host - mirror->host);
    return status;
}

EngStatus eng_mirror_problem(EngMirrors *mirrors, const EngProblem *problem, EngTableAt table,
                             EngProblem *there, EngErr *err)
{
    Buffer buffers[MAX_BUFFERS];
    EngStatus status = ENG_OK;
    EngCudaPlace place = table == ENG_TABLE_PINNED ? ENG_CUDA_PINNED : ENG_CUDA_DEVICE;
    int n = problem_buffers(problem, buffers);
    *there = *problem;
    for (int i = 0; i < n && !status; i++) {
        if (buffers[i].table && (table == ENG_TABLE_STAGED || table == ENG_TABLE_MADE)) continue;
        status =
            translate(mirrors, there, &buffers[i], buffers[i].table ? place : ENG_CUDA_DEVICE, err);
    }
    return status;
}

EngStatus eng_mirror_args(EngMirrors *mirrors, const EngProblem *problem, const EngArgs *args,
                          EngArgs *there, EngErr *err)
{
    Buffer buffers[MAX_BUFFERS];
    EngStatus status = ENG_OK;
    int n = args_buffers(problem, args, buffers);
    *there = *args;
    for (int i = 0; i < n && !status; i++)
        status = translate(mirrors, there, &buffers[i], ENG_CUDA_DEVICE, err);
    return status;
}

/* Copies the buffers of args one way. */
static EngStatus copy_all(EngMirrors *mirrors, const EngProblem *problem, const EngArgs *args,
                          bool back, EngErr *err)
{
    Buffer buffers[MAX_BUFFERS];
    EngArgs there;
    int n = args_buffers(problem, args, buffers);
    EngStatus status = eng_mirror_args(mirrors, problem, args, &there, err);
    for (int i = 0; i < n && !status; i++) {
        void *host, *device;
        memcpy(&host, (const char *)args + buffers[i].at, sizeof host);
        memcpy(&device, (const char *)&there + buffers[i].at, sizeof device);
        if (!host || !buffers[i].bytes || (back && !buffers[i].written)) continue;
        status = back ? eng_cuda_copy(host, device, buffers[i].bytes, err)
                      : eng_cuda_copy(device, host, buffers[i].bytes, err);
    }
    return status;
}

EngStatus eng_mirror_push(EngMirrors *mirrors, const EngProblem *problem, const EngArgs *args,
                          EngErr *err)
{
    return copy_all(mirrors, problem, args, false, err);
}

EngStatus eng_mirror_pull(EngMirrors *mirrors, const EngProblem *problem, const EngArgs *args,
                          EngErr *err)
{
    return copy_all(mirrors, problem, args, true, err);
}

void eng_mirror_drop(EngMirrors *mirrors)
{
    for (int i = 0; i < mirrors->n; i++) {
        EngMirror *mirror = mirrors->held[i], **at = &g_mirrors;
        if (--mirror->holders) continue;
        while (*at != mirror) at = &(*at)->next;
        *at = mirror->next;
        eng_cuda_free(mirror->place, mirror->there);
        eng_free(mirror);
    }
    mirrors->n = 0;
}
