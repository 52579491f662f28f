/* device.h in a build without CUDA: there is no device, and nothing else is reached. */
#include "kernels/cuda/device.h"

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

EngStatus eng_cuda_gate(const EngGateProblem *problem, const EngGateArgs *args,
                        EngCudaStream *stream, EngErr *err)
{
    (void)problem, (void)args, (void)stream;
    return no_device(err);
}

#endif
