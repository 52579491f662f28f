/* CUDA errors as EngStatus, for the launchers. */
#ifndef ENG_KERNELS_CUDA_ERRORS_CUH
#define ENG_KERNELS_CUDA_ERRORS_CUH

#include <cuda_runtime.h>
#include <engram/status.h>

/* Seen: after it every call of the process fails. */
inline bool eng_cuda_error_stays;

static inline bool eng_cuda_stays(cudaError_t error)
{
    switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorUnknown:
        return true;
    default:
        return false;
    }
}

/* ENG_OK, ENG_NO_MEMORY, or ENG_INTERNAL naming what was tried and CUDA's own words. */
static inline EngStatus eng_cuda_check(cudaError_t error, const char *what, EngErr *err)
{
    if (error == cudaSuccess) return ENG_OK;
    if (eng_cuda_stays(error)) eng_cuda_error_stays = true;
    (void)cudaGetLastError(); /* else it would be taken for the next launch's */
    EngStatus status = error == cudaErrorMemoryAllocation ? ENG_NO_MEMORY : ENG_INTERNAL;
    return ENG_FAIL(err, status, "%s: %s (%s)", what, cudaGetErrorString(error),
                    cudaGetErrorName(error));
}

#endif
