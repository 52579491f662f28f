#include "kernels/cpu/libraries.h"

#include <dnnl.h>
#include <stdio.h>

void eng_cpu_onednn_version(char *out, size_t size)
{
    const dnnl_version_t *v = dnnl_version();
    snprintf(out, size, "%d.%d.%d %s", v->major, v->minor, v->patch, v->hash);
}
