/* The device and its streams; see device.h and queue.h. */
#include "kernels/cuda/device.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/cuda/errors.cuh"
#include "kernels/cuda/queue.h"

/* ---- which device: asked in a child, since a process that has spoken to the driver cannot fork
 * workers that do ---- */

#define OLDEST 9 /* compute capability that cmake/cuda.cmake builds code and PTX for */

typedef struct Answer {
    bool found;
    char why[128]; /* not */
    EngCudaInfo info;
} Answer;

static Answer g_answer;
static pthread_once_t g_asked = PTHREAD_ONCE_INIT;

static void describe(Answer *answer)
{
    int n = 0;
    cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceCount(&n);
    if (!error && n < 1) error = cudaErrorNoDevice;
    if (!error) error = cudaGetDeviceProperties(&properties, 0);
    if (error) {
        snprintf(answer->why, sizeof answer->why, "%.127s", cudaGetErrorString(error));
        return;
    }
    if (properties.major < OLDEST) {
        snprintf(answer->why, sizeof answer->why,
                 "%.63s is sm_%d%d, the kernels are for sm_%d0 and later", properties.name,
                 properties.major, properties.minor, OLDEST);
        return;
    }
    answer->found = true;
#ifdef ENG_SIMT
    answer->info.simulated = true;
#endif
    snprintf(answer->info.name, sizeof answer->info.name, "%.127s", properties.name);
    answer->info.processors = properties.multiProcessorCount;
    answer->info.major = properties.major, answer->info.minor = properties.minor;
    answer->info.l2_bytes = properties.l2CacheSize;
    answer->info.memory_bytes = (int64_t)properties.totalGlobalMem;
}

static void ask_in_child(void)
{
    int ends[2];
    Answer answer = {};
    snprintf(g_answer.why, sizeof g_answer.why, "the process that asks for it ended");
    if (pipe(ends)) return;
    pid_t child = fork();
    if (child == 0) {
        describe(&answer);
        ssize_t put = write(ends[1], &answer, sizeof answer); /* fits a pipe: whole or not */
        _exit(put != sizeof answer);
    }
    close(ends[1]);
    ssize_t got = -1;
    do got = child < 0 ? 0 : read(ends[0], &answer, sizeof answer);
    while (got < 0 && errno == EINTR);
    close(ends[0]);
    while (child > 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    if (got == sizeof answer) g_answer = answer;
}

EngStatus eng_cuda_info(EngCudaInfo *info, EngErr *err)
{
    pthread_once(&g_asked, ask_in_child);
    *info = g_answer.info;
    if (g_answer.found) return ENG_OK;
    return ENG_FAIL(err, ENG_UNSUPPORTED, "no device (%s)", g_answer.why);
}

EngStatus eng_cuda_device(EngErr *why)
{
    EngCudaInfo info;
    return eng_cuda_info(&info, why);
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
