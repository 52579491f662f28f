/* Versions of the libraries that CPU kernels call: part of what a measured point ran on. */
#ifndef ENG_KERNELS_CPU_LIBRARIES_H
#define ENG_KERNELS_CPU_LIBRARIES_H

#include <stddef.h>

/* "2.6.3 <hash>" into out. */
void eng_cpu_onednn_version(char *out, size_t size);

#endif
