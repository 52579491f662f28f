/* device.h and queue.h in a build without CUDA: there is no device, and nothing else is reached. */
#include "kernels/cuda/device.h"
#include "kernels/cuda/queue.h"

#ifndef ENG_HAVE_CUDA

static EngStatus no_device(EngErr *err)
{
    return ENG_FAIL(err, ENG_UNSUPPORTED, "no device (built without CUDA)");
}

EngStatus eng_cuda_device(EngErr *why)
{
    return no_device(why);
}

EngStatus eng_cuda_reachable(const void *at, const char *what, EngErr *err)
{
    (void)at, (void)what;
    return no_device(err);
}

EngStatus eng_cuda_stream_create(EngCudaStream **stream, EngErr *err)
{
    *stream = NULL;
    return no_device(err);
}

void eng_cuda_stream_destroy(EngCudaStream *stream)
{
    (void)stream;
}

EngStatus eng_cuda_wait(EngCudaStream *stream, EngErr *err)
{
    (void)stream;
    return no_device(err);
}

EngStatus eng_cuda_hash_create(const EngAddress *address, EngCudaHash **hash, EngErr *err)
{
    (void)address;
    *hash = NULL;
    return no_device(err);
}

void eng_cuda_hash_destroy(EngCudaHash *hash)
{
    (void)hash;
}

EngStatus eng_cuda_hash(const EngCudaHash *hash, const EngHashArgs *args, EngCudaStream *stream,
                        EngErr *err)
{
    (void)hash, (void)args, (void)stream;
    return no_device(err);
}

EngStatus eng_cuda_gather(const EngGatherProblem *problem, const EngGatherArgs *args,
                          EngCudaGrid grid, EngCudaStream *stream, EngErr *err)
{
    (void)problem, (void)args, (void)grid, (void)stream;
    return no_device(err);
}

EngStatus eng_cuda_staged_create(const EngGatherProblem *problem, EngCudaStaged **staged,
                                 EngErr *err)
{
    (void)problem;
    *staged = NULL;
    return no_device(err);
}

void eng_cuda_staged_destroy(EngCudaStaged *staged)
{
    (void)staged;
}

EngStatus eng_cuda_staged_pack(EngCudaStaged *staged, const int64_t *rows, int64_t row_stride,
                               EngErr *err)
{
    (void)staged, (void)rows, (void)row_stride;
    return no_device(err);
}

EngStatus eng_cuda_staged_send(EngCudaStaged *staged, const EngGatherArgs *args, EngCudaGrid grid,
                               EngCudaStream *stream, EngErr *err)
{
    (void)staged, (void)args, (void)grid, (void)stream;
    return no_device(err);
}

EngStatus eng_cuda_gate(const EngGateProblem *problem, const EngGateArgs *args,
                        EngCudaStream *stream, EngErr *err)
{
    (void)problem, (void)args, (void)stream;
    return no_device(err);
}

EngStatus eng_cuda_gather_roof_fits(const EngGatherProblem *problem, EngErr *why)
{
    (void)problem;
    return no_device(why);
}

EngStatus eng_cuda_gate_roof_fits(const EngGateProblem *problem, EngErr *why)
{
    (void)problem;
    return no_device(why);
}

EngStatus eng_cuda_gather_roof(const EngGatherProblem *problem, const EngGatherArgs *args,
                               EngCudaGrid grid, bool deep, EngCudaStream *stream, EngErr *err)
{
    (void)problem, (void)args, (void)grid, (void)deep, (void)stream;
    return no_device(err);
}

EngStatus eng_cuda_gate_roof(const EngGateProblem *problem, const EngGateArgs *args,
                             EngCudaStream *stream, EngErr *err)
{
    (void)problem, (void)args, (void)stream;
    return no_device(err);
}

EngStatus eng_cuda_project_roof(const EngProjectProblem *problem, const EngProjectArgs *args,
                                EngCudaStream *stream, EngErr *err)
{
    (void)problem, (void)args, (void)stream;
    return no_device(err);
}

EngStatus eng_cuda_project_fits(const EngProjectProblem *problem, EngErr *why)
{
    (void)problem;
    return no_device(why);
}

EngStatus eng_cuda_project_create(const EngProjectProblem *problem, int splits,
                                  EngCudaProject **project, EngErr *err)
{
    (void)problem, (void)splits;
    *project = NULL;
    return no_device(err);
}

void eng_cuda_project_destroy(EngCudaProject *project)
{
    (void)project;
}

EngStatus eng_cuda_project(const EngCudaProject *project, const EngProjectArgs *args,
                           EngCudaStream *stream, EngErr *err)
{
    (void)project, (void)args, (void)stream;
    return no_device(err);
}

EngStatus eng_cuda_blas_fits(const EngProjectProblem *problem, EngErr *why)
{
    (void)problem;
    return no_device(why);
}

EngStatus eng_cuda_blas_create(const EngProjectProblem *problem, EngCudaStream *stream,
                               EngCudaBlas **blas, EngErr *err)
{
    (void)problem, (void)stream;
    *blas = NULL;
    return no_device(err);
}

void eng_cuda_blas_destroy(EngCudaBlas *blas)
{
    (void)blas;
}

EngCudaExpansion eng_cuda_blas_expansion(const EngCudaBlas *blas)
{
    (void)blas;
    return (EngCudaExpansion){0};
}

EngStatus eng_cuda_blas_project(EngCudaBlas *blas, const EngProjectArgs *args,
                                EngCudaStream *stream, EngErr *err)
{
    (void)blas, (void)args, (void)stream;
    return no_device(err);
}

EngStatus eng_cuda_conv_create(const EngConvProblem *problem, EngCudaConv **conv, EngErr *err)
{
    (void)problem;
    *conv = NULL;
    return no_device(err);
}

void eng_cuda_conv_destroy(EngCudaConv *conv)
{
    (void)conv;
}

EngStatus eng_cuda_conv(const EngCudaConv *conv, const EngConvArgs *args, EngCudaStream *stream,
                        EngErr *err)
{
    (void)conv, (void)args, (void)stream;
    return no_device(err);
}

EngStatus eng_cuda_histogram(const float *values, int64_t tokens, int streams, const float *edges,
                             int n_bins, int64_t *counts, EngCudaStream *stream, EngErr *err)
{
    (void)values, (void)tokens, (void)streams, (void)edges, (void)n_bins, (void)counts,
        (void)stream;
    return no_device(err);
}

EngStatus eng_cuda_fill(const EngTable *table, int64_t first, int64_t rows, uint64_t seed,
                        const float *quantiles, EngCudaStream *stream, EngErr *err)
{
    (void)table, (void)first, (void)rows, (void)seed, (void)quantiles, (void)stream;
    return no_device(err);
}

EngStatus eng_cuda_back_gate_create(const EngTrainGateProblem *problem, EngCudaBackGate **out,
                                    EngErr *err)
{
    (void)problem;
    *out = NULL;
    return no_device(err);
}

void eng_cuda_back_gate_destroy(EngCudaBackGate *state)
{
    (void)state;
}

EngStatus eng_cuda_back_gate(const EngCudaBackGate *state, const EngBackGateArgs *args,
                             EngCudaStream *stream, EngErr *err)
{
    (void)state, (void)args, (void)stream;
    return no_device(err);
}

EngStatus eng_cuda_back_gather_create(const EngBackGatherProblem *problem, EngCudaBackGather **out,
                                      EngErr *err)
{
    (void)problem;
    *out = NULL;
    return no_device(err);
}

void eng_cuda_back_gather_destroy(EngCudaBackGather *state)
{
    (void)state;
}

EngStatus eng_cuda_back_gather(const EngCudaBackGather *state, const EngBackGatherArgs *args,
                               EngCudaStream *stream, EngErr *err)
{
    (void)state, (void)args, (void)stream;
    return no_device(err);
}

EngStatus eng_cuda_sinkhorn_create(const EngSinkhornProblem *problem, EngCudaSinkhorn **out,
                                   EngErr *err)
{
    (void)problem;
    *out = NULL;
    return no_device(err);
}

void eng_cuda_sinkhorn_destroy(EngCudaSinkhorn *state)
{
    (void)state;
}

EngStatus eng_cuda_sinkhorn(const EngCudaSinkhorn *state, const EngSinkhornArgs *args,
                            EngCudaStream *stream, EngErr *err)
{
    (void)state, (void)args, (void)stream;
    return no_device(err);
}

/* ---- queue.h ---- */

EngStatus eng_cuda_main(EngCudaStream **stream, EngErr *err)
{
    *stream = NULL;
    return no_device(err);
}

EngStatus eng_cuda_settle(EngCudaStream *stream, EngErr *err)
{
    (void)stream;
    return no_device(err);
}

bool eng_cuda_used(void)
{
    return false;
}

bool eng_cuda_hurries(void)
{
    return false;
}

bool eng_cuda_lost(void)
{
    return false;
}

EngStatus eng_cuda_alloc(EngCudaPlace place, size_t bytes, void **at, EngErr *err)
{
    (void)place, (void)bytes;
    *at = NULL;
    return no_device(err);
}

void eng_cuda_free(EngCudaPlace place, void *at)
{
    (void)place, (void)at;
}

EngStatus eng_cuda_copy(void *to, const void *from, size_t bytes, EngErr *err)
{
    (void)to, (void)from, (void)bytes;
    return no_device(err);
}

EngStatus eng_cuda_copy_async(void *to, const void *from, size_t bytes, EngCudaStream *stream,
                              EngErr *err)
{
    (void)to, (void)from, (void)bytes, (void)stream;
    return no_device(err);
}

EngStatus eng_cuda_event_create(EngCudaEvent **event, EngErr *err)
{
    *event = NULL;
    return no_device(err);
}

void eng_cuda_event_destroy(EngCudaEvent *event)
{
    (void)event;
}

EngStatus eng_cuda_event_record(EngCudaEvent *event, EngCudaStream *stream, EngErr *err)
{
    (void)event, (void)stream;
    return no_device(err);
}

EngStatus eng_cuda_event_stamp(EngCudaEvent *event, EngCudaStream *stream, EngErr *err)
{
    (void)event, (void)stream;
    return no_device(err);
}

EngStatus eng_cuda_event_order(EngCudaStream *stream, EngCudaEvent *event, EngErr *err)
{
    (void)stream, (void)event;
    return no_device(err);
}

EngStatus eng_cuda_event_wait(EngCudaEvent *event, EngErr *err)
{
    (void)event;
    return no_device(err);
}

EngStatus eng_cuda_event_ns(EngCudaEvent *from, EngCudaEvent *to, double *ns, EngErr *err)
{
    (void)from, (void)to;
    *ns = 0;
    return no_device(err);
}

EngStatus eng_cuda_capture_begin(EngCudaStream *stream, EngErr *err)
{
    (void)stream;
    return no_device(err);
}

EngStatus eng_cuda_capture_end(EngCudaStream *stream, EngCudaGraph **graph, EngErr *err)
{
    (void)stream;
    *graph = NULL;
    return no_device(err);
}

EngStatus eng_cuda_graph_launch(EngCudaGraph *graph, EngCudaStream *stream, EngErr *err)
{
    (void)graph, (void)stream;
    return no_device(err);
}

void eng_cuda_graph_destroy(EngCudaGraph *graph)
{
    (void)graph;
}

EngStatus eng_cuda_window_open(EngErr *err)
{
    (void)err;
    return ENG_OK;
}

EngStatus eng_cuda_window_close(EngCudaWindow *window, EngErr *err)
{
    (void)err;
    *window = (EngCudaWindow){0};
    return ENG_OK;
}

EngStatus eng_cuda_floor_ns(double *ns, EngErr *err)
{
    *ns = 0;
    return no_device(err);
}

EngStatus eng_cuda_info(EngCudaInfo *info, EngErr *err)
{
    *info = (EngCudaInfo){0};
    return no_device(err);
}

EngStatus eng_cuda_clocks(EngCudaClocks *clocks, EngErr *err)
{
    *clocks = (EngCudaClocks){-1, -1, 0};
    return no_device(err);
}

#endif
