"""FBGEMM's CPU embedding look-up for inference (IntNBitTableBatchedEmbeddingBags, no pooling, bf16 out).

It has no row format with e8m0 scales. The nearest:
  fp8   the same e4m3 bytes, decoded without scales: 256 B a row against our 264
  int8  256 B and an fp16 scale and bias for the row: other values, 260 B a row
  fp16  the decoded table in fp16, which is exact here: 512 B a row, compared with our bf16 rows

FBGEMM asks the cpuinfo library inside torch which instructions there are. Where that library knows
nothing (all flags zero, as with torch 2.14.1 on some virtual machines) it silently takes its scalar
reference code, 10 to 25 times slower. vector_kernels() then sets the flags by what Linux reports, so
that the peer is measured as its authors mean it; the version line says so.
"""
import ctypes
import glob
import os

import numpy as np
import torch
import fbgemm_gpu
from fbgemm_gpu.split_embedding_configs import SparseType
from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode
from fbgemm_gpu.split_table_batched_embeddings_ops_inference import IntNBitTableBatchedEmbeddingBagsCodegen

import inputs as data
from worker import Unsupported

INT8_SCALE, INT8_BIAS = 2.0**-6, -2.0


# Bytes of cpuinfo_isa that fbgemmHasAvx2Support() and fbgemmHasAvx512Support() of release 1.9 read.
AVX2_BYTE, AVX512_BYTES = 0x1C, (0x1D, 0x21, 0x22, 0x23)


def vector_kernels():
    """Makes FBGEMM use this processor's vectors; returns what it uses, in words."""
    library = ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(fbgemm_gpu.__file__), "fbgemm.so"))[0])
    has = lambda name: bool(getattr(library, f"_ZN6fbgemm{len(name)}{name}Ev")() & 255)
    avx2, avx512 = (lambda: has("fbgemmHasAvx2Support")), (lambda: has("fbgemmHasAvx512Support"))
    told = avx2()
    with open("/proc/cpuinfo", encoding="ascii") as file:
        flags = set(next(line for line in file if line.startswith("flags")).split())
    if not told and "avx2" in flags and fbgemm_gpu.__version__.startswith("1.9"):
        c10 = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libc10.so"))
        isa = (ctypes.c_uint8 * 64).in_dll(c10, "cpuinfo_isa")
        isa[AVX2_BYTE] = 1
        if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
            for byte in AVX512_BYTES:
                isa[byte] = 1
    kind = "AVX-512" if avx512() else "AVX2" if avx2() else "scalar"
    return kind + ("" if told or kind == "scalar" else ", forced")


class Side:
    def __init__(self, inputs, threads, kind):
        self.inputs, self.kind, self.kept = inputs, kind, None
        # Its fp8 look-up has no kernels for vectors: main.py asks for the one that the compiler vectorised.
        self.vectors = "autovec" if kind == "fp8" else vector_kernels()
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)

    def version(self):
        return f"fbgemm_gpu-cpu {fbgemm_gpu.__version__} {self.kind} ({self.vectors})"

    def variants(self, op, tokens):
        return [self.kind]

    def table(self):
        source = self.inputs.mapped("table_values")
        more = {"fp8_exponent_bits": 4, "fp8_exponent_bias": 7} if self.kind == "fp8" else {}
        lookup = IntNBitTableBatchedEmbeddingBagsCodegen(
            embedding_specs=[("table", len(source), data.DIMS, SparseType(self.kind), EmbeddingLocation.HOST)],
            pooling_mode=PoolingMode.NONE, output_dtype=SparseType.BF16, device="cpu", **more)
        # Room of our own, in huge pages like every other side's table.
        lookup.weights_host = torch.from_numpy(data.huge((self.bytes_of(lookup),), np.uint8))
        lookup.weight_initialized = True
        ((weights, affine),) = lookup.split_embedding_weights()
        if self.kind == "fp16":
            fp16 = self.inputs.bf16_table(lambda x: x.astype(np.float16), np.float16)
            weights.copy_(torch.from_numpy(fp16.view(np.uint8)))
        else:
            weights.copy_(torch.from_numpy(self.inputs.array("table_values")))
        if self.kind == "int8":
            pair = np.array([INT8_SCALE, INT8_BIAS], np.float16).view(np.uint8)
            affine.copy_(torch.from_numpy(pair).expand_as(affine))
        return lookup

    @staticmethod
    def bytes_of(lookup):
        lookup.initialize_weights()
        return lookup.weights_host.numel()

    def make(self, op, tokens, _variant):
        if op != ("gather-bf16" if self.kind == "fp16" else "gather-fp8"):
            raise Unsupported("compared at its nearest row format only")
        self.kept = self.kept or self.table()
        lookup, rows = self.kept, torch.from_numpy(self.inputs.array("rows"))
        offsets = torch.arange(tokens * data.COLUMNS + 1)
        ring = [rows[w:w + tokens].flatten() for w in self.inputs.windows(tokens, len(rows))]
        last, n = [None], len(ring)

        def call(i):
            last[0] = lookup(ring[i % n], offsets)
        return call, lambda: last[0].view(torch.int16).numpy().view(np.uint16)
