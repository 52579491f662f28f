/* Devices and streams; see device.h. */
#include "kernels/cuda/device.h"

#include "kernels/cuda/errors.cuh"

EngStatus eng_cuda_device(EngErr *why)
{
    int n = 0;
    cudaError_t error = cudaGetDeviceCount(&n);
    if (error == cudaSuccess && n > 0) return ENG_OK;
    (void)cudaGetLastError(); /* else it would be taken for the next launch's */
    return ENG_FAIL(why, ENG_UNSUPPORTED, "no device");
}

EngStatus eng_cuda_reachable(const void *at, const char *what, EngErr *err)
{
    cudaPointerAttributes attributes;
    EngStatus status = eng_cuda_check(cudaPointerGetAttributes(&attributes, at), what, err);
    if (status || attributes.type != cudaMemoryTypeUnregistered) return status;
    return ENG_FAIL(err, ENG_USAGE, "%s lies in memory that the device cannot reach", what);
}

EngStatus eng_cuda_stream_create(EngCudaStream **stream, EngErr *err)
{
    return eng_cuda_check(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), "stream", err);
}

void eng_cuda_stream_destroy(EngCudaStream *stream)
{
    if (stream) cudaStreamDestroy(stream);
}

EngStatus eng_cuda_wait(EngCudaStream *stream, EngErr *err)
{
    return eng_cuda_check(cudaStreamSynchronize(stream), "wait", err);
}
