/* The device's clocks by NVML, which the driver brings and no program need link; see queue.h. */
#include "kernels/cuda/queue.h"

#include <dlfcn.h>

#include "kernels/cuda/errors.cuh"

/* Of NVML's interface, which has kept these numbers since its first version. */
enum { NVML_OK = 0, NVML_SM = 1, NVML_MEMORY = 2 };
typedef struct NvmlDevice *Nvml;
typedef int (*Init)(void);
typedef int (*FindDevice)(const char *bus_id, Nvml *device);
typedef int (*ReadClock)(Nvml device, int which, unsigned *mhz);
typedef int (*ReadReasons)(Nvml device, unsigned long long *reasons);

static const char *g_missing; /* why there are no clocks */
static Nvml g_device;
static ReadClock g_read;
static ReadReasons g_reasons;
static bool g_sought;

static const char *seek(void)
{
    char bus_id[32];
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return "no libnvidia-ml.so.1";
    Init init = (Init)dlsym(library, "nvmlInit_v2");
    FindDevice find = (FindDevice)dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
    g_read = (ReadClock)dlsym(library, "nvmlDeviceGetClockInfo");
    g_reasons = (ReadReasons)dlsym(library, "nvmlDeviceGetCurrentClocksThrottleReasons");
    if (!init || !find || !g_read) return "libnvidia-ml.so.1 lacks functions";
    if (init() != NVML_OK) return "NVML does not start";
    if (cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, 0) != cudaSuccess ||
        find(bus_id, &g_device) != NVML_OK)
        return "NVML does not know the device";
    return nullptr;
}

EngStatus eng_cuda_clocks(EngCudaClocks *clocks, EngErr *err)
{
    unsigned mhz;
    *clocks = (EngCudaClocks){-1, -1, 0};
    if (!g_sought) g_missing = seek();
    g_sought = true;
    if (g_missing) return ENG_FAIL(err, ENG_UNSUPPORTED, "%s", g_missing);
    if (g_read(g_device, NVML_SM, &mhz) == NVML_OK) clocks->sm_mhz = (int)mhz;
    if (g_read(g_device, NVML_MEMORY, &mhz) == NVML_OK) clocks->memory_mhz = (int)mhz;
    if (g_reasons) (void)g_reasons(g_device, &clocks->slow);
    if (clocks->sm_mhz < 0) return ENG_FAIL(err, ENG_UNSUPPORTED, "NVML tells no clock");
    return ENG_OK;
}
