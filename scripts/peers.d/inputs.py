"""Inputs that every side of a comparison reads: made once from a seed, kept as .npy files in a folder.

The token stream is real text (data/cache/prose.ids) where it was fetched. The table, the weights and
the hidden states are seeded random numbers in the formats of the V4.1 memory: e4m3 values with e8m0
scales. Every scale is a small power of two, so a decoded value is exact in bf16 and in fp16 alike
and all sides hold the same numbers, whatever type they store.
"""
import json
import mmap
import os

import numpy as np

COLUMNS, DIMS, GROUP, HIDDEN, STREAMS = 24, 256, 32, 5120, 4
N, K = (STREAMS + 1) * HIDDEN, COLUMNS * DIMS
EPS, PAD = 1e-20, 2
CHUNK = 1 << 16  # table rows made at a time


# --- Number formats -------------------------------------------------------------------------------


def e4m3_values():
    """float32 [256] by definition (OCP e4m3fn)."""
    byte = np.arange(256)
    exponent, fraction = (byte >> 3) & 15, byte & 7
    value = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10))
    value = np.where((byte & 127) == 127, np.nan, value)
    return np.where(byte & 128, -value, value).astype(np.float32)


def bf16_bits(x):
    """float32 to bf16 bits, to nearest with ties to even; finite values only."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def bf16_floats(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def e8m0_floats(scales):
    return np.ldexp(np.float32(1), scales.astype(np.int32) - 127)


def decode_rows(values, scales):
    """fp8 rows [.., dims] with a scale for 32 values each, as float32."""
    grouped = e4m3_values()[values].reshape(*values.shape[:-1], -1, GROUP)
    return (grouped * e8m0_floats(scales)[..., None]).reshape(values.shape)


def decode_weights(values, scales):
    """wkv [n, k] with a scale for each 32x32 tile, as float32."""
    tiles = e4m3_values()[values].reshape(values.shape[0] // GROUP, GROUP, -1, GROUP)
    return (tiles * e8m0_floats(scales)[:, None, :, None]).reshape(values.shape)


# --- Memory ---------------------------------------------------------------------------------------


def huge(shape, dtype):
    """An array aligned to 2 MiB in anonymous memory that asks for huge pages, as our harness does."""
    size, page = int(np.prod(shape)) * np.dtype(dtype).itemsize, 2 << 20
    memory = mmap.mmap(-1, size + page)
    memory.madvise(mmap.MADV_HUGEPAGE)
    start = -np.frombuffer(memory, np.uint8).ctypes.data % page
    return np.frombuffer(memory, dtype, int(np.prod(shape)), start).reshape(shape)


class Inputs:
    """Reads the folder. `table` copies into huge pages; the rest is mapped."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "inputs.json"), encoding="ascii") as file:
            self.facts = json.load(file)

    def mapped(self, name):
        return np.load(os.path.join(self.folder, name + ".npy"), mmap_mode="r")

    def array(self, name):
        return np.array(self.mapped(name))

    def table(self, name):
        source = self.mapped(name)
        copy = huge(source.shape, source.dtype)
        copy[:] = source
        return copy

    def packed_table(self):
        """Rows of 256 values and 8 scales."""
        values, scales = self.mapped("table_values"), self.mapped("table_scales")
        table = huge((len(values), values.shape[1] + scales.shape[1]), np.uint8)
        table[:, :values.shape[1]], table[:, values.shape[1]:] = values, scales
        return table

    def bf16_table(self, decode=bf16_bits, dtype=np.uint16):
        """The fp8 table decoded, exactly, to another 16-bit type."""
        values, scales = self.mapped("table_values"), self.mapped("table_scales")
        table = huge(values.shape, dtype)
        for at in range(0, len(values), CHUNK):
            table[at:at + CHUNK] = decode(decode_rows(values[at:at + CHUNK], scales[at:at + CHUNK]))
        return table

    def windows(self, tokens, pool):
        """First positions of the windows, spread over a pool so that turns meet rows afresh."""
        count = max(1, min(8192, pool // tokens))
        return [i * (pool // count) for i in range(count)]


# --- Making them ----------------------------------------------------------------------------------


def address_rows(compressed, address, layers):
    """Rows [tokens, layers, columns] by the definition, in numpy; the start of the text is padding."""
    padded = np.concatenate([np.full(3, PAD, np.int64), compressed.astype(np.int64)])
    lag = [padded[3 - s:len(padded) - s] for s in range(4)]
    out = np.empty((len(compressed), len(layers), COLUMNS), np.int64)
    for place, layer in enumerate(layers):
        m, primes, offsets = (np.array(address[key][layer]) for key in ("multipliers", "primes", "offsets"))
        mix = lag[0] * m[0]
        for order in range(2, 5):
            mix = mix ^ lag[order - 1] * m[order - 1]
            part = slice((order - 2) * 8, (order - 1) * 8)
            out[:, place, part] = mix[:, None] % primes[part] + offsets[part]
    return out


def without_nan(rng, shape):
    """Random e4m3 bytes with |value| < 2, subnormals included: no NaN codes, sums stay tame."""
    out = rng.integers(0, 256, size=shape, dtype=np.uint8)
    return np.bitwise_and(out, 0xBF, out=out)


def make(folder, ids, compressed, token_map, addresses, start, gate_pool, seed=20260):
    """addresses: "full" and "table" (primes from `start`), each with multipliers, primes, offsets, rows of layers."""
    rng = np.random.default_rng(seed)
    save = lambda name, array: np.save(os.path.join(folder, name + ".npy"), array)
    rows = addresses["table"]["rows"][0]
    save("ids", ids.astype(np.int64))
    save("compressed", compressed.astype(np.int64))
    save("map", token_map.astype(np.int64))
    save("rows", address_rows(compressed, addresses["table"], [0])[:, 0])
    out = np.lib.format.open_memmap(os.path.join(folder, "table_values.npy"), "w+", np.uint8, (rows, DIMS))
    for at in range(0, rows, CHUNK):
        out[at:at + CHUNK] = without_nan(rng, out[at:at + CHUNK].shape)
    save("table_scales", rng.integers(122, 129, size=(rows, DIMS // GROUP), dtype=np.uint8))
    save("wkv", without_nan(rng, (N, K)))
    save("wkv_scales", rng.integers(121, 124, size=(N // GROUP, K // GROUP), dtype=np.uint8))
    normal = lambda *shape: rng.standard_normal(shape, np.float32)
    for name in ("q_weight", "k_weight"):
        save(name, bf16_bits(1 + 0.1 * normal(STREAMS, HIDDEN)))
    kv = normal(gate_pool, N)
    keys = kv[:, :STREAMS * HIDDEN].reshape(gate_pool, STREAMS, HIDDEN)
    save("streams", bf16_bits(0.3 * keys + 0.954 * normal(gate_pool, STREAMS, HIDDEN)))
    save("kv", bf16_bits(kv))
    with open(os.path.join(folder, "inputs.json"), "w", encoding="ascii") as file:
        json.dump({"seed": seed, "pool": len(ids), "gate_pool": gate_pool, "start": start, "addresses": addresses}, file)
