"""Known answers for number formats, from the ml_dtypes package (independent of our code).

Writes tests/data/number_formats.txt: `e4m3 BYTE VALUE`, `e8m0 BYTE VALUE` (hexadecimal floats) and
`bf16 F32BITS BF16BITS` (rounding to nearest even, with ties, subnormals, overflow and NaN).
Needs: numpy, ml_dtypes. Usage: number_formats.py OUTPUT
"""
import sys

import ml_dtypes
import numpy as np


def text(value):
    return "nan" if np.isnan(value) else float(value).hex()


def rounding_inputs():
    rng = np.random.default_rng(7)
    random = rng.integers(0, 2**32, 400, dtype=np.uint64).astype(np.uint32)
    upper = rng.integers(0, 2**16, 200, dtype=np.uint64).astype(np.uint32) << 16
    ties = upper | 0x8000
    edges = np.array([0, 0x80000000, 1, 0x7fff, 0x8000, 0x8001, 0x18000, 0x7f7f7fff, 0x7f7f8000,
                      0x7f7fffff, 0x7f800000, 0xff800000, 0x7f800001, 0x7fc00000, 0xffffffff,
                      0x007fffff, 0x00800000, 0x3f808000, 0x3f818000], dtype=np.uint32)
    return np.concatenate([edges, random, ties, ties - 1, ties + 1])


def main():
    codes = np.arange(256, dtype=np.uint8)
    lines = ["# made by tests/oracle/number_formats.py with ml_dtypes " + ml_dtypes.__version__]
    for name, dtype in (("e4m3", ml_dtypes.float8_e4m3fn), ("e8m0", ml_dtypes.float8_e8m0fnu)):
        values = codes.view(dtype).astype(np.float64)
        lines += [f"{name} {code:#04x} {text(value)}" for code, value in zip(codes, values)]
    bits = rounding_inputs()
    rounded = bits.view(np.float32).astype(ml_dtypes.bfloat16).view(np.uint16)
    lines += [f"bf16 {a:#010x} {b:#06x}" for a, b in zip(bits, rounded)]
    with open(sys.argv[1], "w") as file:
        file.write("\n".join(lines) + "\n")


main()
