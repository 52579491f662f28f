"""Checkpoint files with Engram tables as V4.1 has them, written by the `safetensors` package: what the
importer of `engram store create --from` is tested with. tests/data/safetensors/ holds its output.

Weights are F8_E4M3 [rows, dims], scales F8_E8M0 [rows, dims / 32], among other tensors. Their bytes
follow formulas that the tests repeat: weight byte i of row r is 37 r + 11 i + r // 251, scale byte g
is 112 + (r + g) % 12.

Needs: safetensors 0.6 or newer, numpy. Usage: safetensors_files.py FOLDER
"""
import json
import sys
from pathlib import Path

import numpy as np
from safetensors import TensorSpec, serialize_file

ROWS, DIMS, GROUP = {1: 77, 14: 83}, 64, 32


def weight(rows):
    r, i = np.arange(rows)[:, None], np.arange(DIMS)[None, :]
    return "float8_e4m3fn", (37 * r + 11 * i + r // 251).astype(np.uint8)


def scale(rows):
    r, g = np.arange(rows)[:, None], np.arange(DIMS // GROUP)[None, :]
    return "float8_e8m0fnu", (112 + (r + g) % 12).astype(np.uint8)


def bf16(*shape):
    return "bfloat16", np.arange(int(np.prod(shape)), dtype=np.uint16).reshape(shape)


def write(path, tensors):
    """tensors: name -> (dtype, array of its bytes or of 16-bit patterns)."""
    arrays = {name: np.ascontiguousarray(array) for name, (_, array) in tensors.items()}
    specs = {name: TensorSpec(dtype=tensors[name][0], shape=list(array.shape),
                              data_ptr=array.ctypes.data, data_len=array.nbytes)
             for name, array in arrays.items()}
    serialize_file(specs, path, {"format": "pt"})


def layer(number, rows):
    stem = f"layers.{number}.engram."
    return {stem + "embed.weight": weight(rows), stem + "embed.scale": scale(rows),
            stem + "q_weight": bf16(4, 24), stem + "k_weight": bf16(4, 24)}


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    both = {**layer(1, ROWS[1]), **layer(14, ROWS[14]), "norm.weight": bf16(5)}
    write(folder / "whole.safetensors", both)
    # Shards with an index, under the prefix that converted checkpoints have; a layer's weights and
    # scales may lie in different ones.
    shards = ["model-00047-of-00048.safetensors", "model-00048-of-00048.safetensors"]
    index = {}
    for shard, name in enumerate(shards):
        chosen = {f"model.{key}": tensor for key, tensor in both.items()
                  if (("layers.1." in key) == (shard == 0)) != (key == "layers.14.engram.embed.scale")}
        index |= dict.fromkeys(chosen, name)
        write(folder / name, chosen)
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 1}, "weight_map": index}, indent=1, sort_keys=True))
    # Model-parallel shards: each rank has ceil(rows / ranks) rows, the last ones of the last rank
    # are padding with weight 0 and scale 1 (byte 127).
    ranks = 4
    per_rank = -(-ROWS[1] // ranks)
    padding = per_rank * ranks - ROWS[1]
    w = np.pad(weight(ROWS[1])[1], ((0, padding), (0, 0)))
    s = np.pad(scale(ROWS[1])[1], ((0, padding), (0, 0)), constant_values=127)
    for rank in range(ranks):
        part = slice(rank * per_rank, (rank + 1) * per_rank)
        write(folder / f"model{rank}-mp{ranks}.safetensors",
              {"layers.1.engram.embed.weight": ("float8_e4m3fn", w[part]),
               "layers.1.engram.embed.scale": ("float8_e8m0fnu", s[part])})
    write(folder / "bf16.safetensors", {"table.weight": bf16(9, 40)})


main()
