/* Roofs of the training operations. Internal to kernels/cpu. */
#ifndef ENG_KERNELS_CPU_TRAINING_ROOF_H
#define ENG_KERNELS_CPU_TRAINING_ROOF_H

#include "kernels/cpu/back_gather.h"
#include "kernels/cpu/optimizers.h"
#include "kernels/cpu/train_conv.h"
#include "kernels/cpu/train_gate.h"

extern const EngKernel eng_cpu_train_gate_roof, eng_cpu_back_gate_roof, eng_cpu_train_conv_roof,
    eng_cpu_back_conv_roof, eng_cpu_back_gather_roof, eng_cpu_sgd_roof, eng_cpu_adamw_roof,
    eng_cpu_sparse_adam_roof;

#endif
