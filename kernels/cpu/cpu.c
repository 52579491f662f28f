/* The CPU backend's variants in one array: a new one needs a line here. */
#include "kernels/cpu/cpu.h"

#include "kernels/cpu/back_gather.h"
#include "kernels/cpu/back_project.h"
#include "kernels/cpu/conv.h"
#include "kernels/cpu/gate.h"
#include "kernels/cpu/gather.h"
#include "kernels/cpu/hash.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/lookup.h"
#include "kernels/cpu/optimizers.h"
#include "kernels/cpu/project.h"
#include "kernels/cpu/train_conv.h"
#include "kernels/cpu/train_gate.h"
#include "kernels/cpu/training_roof.h"

const EngKernel *const eng_cpu_kernels[] = {
    &eng_cpu_hash_naive,
    &eng_cpu_hash_portable,
    &eng_cpu_hash_avx2,
    &eng_cpu_hash_avx512,
    &eng_cpu_hash_avx512_ifma,
    &eng_cpu_hash_roof_store,

    &eng_cpu_gather_naive,
    &eng_cpu_gather_portable,
    &eng_cpu_gather_avx2,
    &eng_cpu_gather_avx512,
    &eng_cpu_gather_avx512_vbmi,
    &eng_cpu_gather_avx512_vbmi_cached,
    &eng_cpu_gather_roof_d0,
    &eng_cpu_gather_roof_d16,
    &eng_cpu_gather_roof_d48,
    &eng_cpu_gather_roof_g12,
    &eng_cpu_gather_roof_g24,
    &eng_cpu_gather_roof_g48,
    &eng_cpu_gather_roof_g64,
    &eng_cpu_gather_roof_d48_nt,
    &eng_cpu_gather_roof_g4_nt,
    &eng_cpu_gather_roof_g12_nt,
    &eng_cpu_gather_roof_g16_nt,
    &eng_cpu_gather_roof_g24_nt,
    &eng_cpu_gather_roof_g4a96_nt,
    &eng_cpu_gather_roof_g48_nt,

    &eng_cpu_project_portable,
#if ENG_X86
    &eng_cpu_project_avx2,
    &eng_cpu_project_avx512,
#endif
    &eng_cpu_project_onednn_bf16,
    &eng_cpu_project_onednn_bf16_ip,
    &eng_cpu_project_onednn_f32,

    &eng_cpu_gate_portable,
#if ENG_X86
    &eng_cpu_gate_avx2,
    &eng_cpu_gate_avx512,
#endif
    &eng_cpu_gate_roof_inplace,
    &eng_cpu_gate_roof_ahead,

    &eng_cpu_conv_portable,

    &eng_cpu_lookup_portable,
#if ENG_X86
    &eng_cpu_lookup_avx2,
    &eng_cpu_lookup_avx512,
    &eng_cpu_lookup_avx512_fused,
#endif
    &eng_cpu_lookup_onednn_bf16,
    &eng_cpu_lookup_onednn_bf16_ip,
    &eng_cpu_lookup_onednn_f32,

    &eng_cpu_train_gate_portable,
    &eng_cpu_train_gate_roof,

    &eng_cpu_train_conv_portable,
    &eng_cpu_train_conv_roof,

    &eng_cpu_back_gate_portable,
    &eng_cpu_back_gate_roof,

    &eng_cpu_back_project_portable,
    &eng_cpu_back_project_onednn,

    &eng_cpu_back_gather_sort,
    &eng_cpu_back_gather_owner,
    &eng_cpu_back_gather_atomic,
    &eng_cpu_back_gather_roof,

    &eng_cpu_back_conv_portable,
    &eng_cpu_back_conv_roof,

    &eng_cpu_sgd_portable,
    &eng_cpu_sgd_roof,

    &eng_cpu_adamw_portable,
    &eng_cpu_adamw_roof,

    &eng_cpu_muon_onednn,

    &eng_cpu_sparse_adam_portable,
    &eng_cpu_sparse_adam_roof,

    &eng_cpu_sinkhorn_portable,

    NULL,
};
