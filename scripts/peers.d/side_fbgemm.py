"""FBGEMM's CPU embedding look-up for inference (IntNBitTableBatchedEmbeddingBags, no pooling, bf16 out).

It has no row format with e8m0 scales. The nearest:
  fp8   the same e4m3 bytes, decoded without scales: 256 B a row against our 264
  int8  256 B and an fp16 scale and bias for the row: other values, 260 B a row
  fp16  the decoded table in fp16, which is exact here: 512 B a row, compared with our bf16 rows
"""
import numpy as np
import torch
import fbgemm_gpu
from fbgemm_gpu.split_embedding_configs import SparseType
from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode
from fbgemm_gpu.split_table_batched_embeddings_ops_inference import IntNBitTableBatchedEmbeddingBagsCodegen

import inputs as data
from worker import Unsupported

INT8_SCALE, INT8_BIAS = 2.0**-6, -2.0


class Side:
    def __init__(self, inputs, threads, kind):
        self.inputs, self.kind, self.kept = inputs, kind, None
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)

    def version(self):
        return f"fbgemm_gpu-cpu {fbgemm_gpu.__version__} {self.kind}"

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
