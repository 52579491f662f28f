"""A known answer for the short convolution of the original variant, in numpy, written from the
published formula: y = v + SiLU(Conv1d(RMSNorm(v))), depthwise, causal, kernel 4, dilation 3.

The convolution is done by padding and slicing whole sequences, not tap by tap as in the C oracle.
Writes tests/data/conv_case.txt: one line `name count values...` per array, hexadecimal floats.
Needs: numpy. Usage: conv_case.py OUTPUT
"""
import sys

import numpy as np

TOKENS, STREAMS, HIDDEN, KERNEL, DILATION, EPS = 13, 2, 5, 4, 3, 1e-5


def main():
    rng = np.random.default_rng(11)
    as_f32 = lambda *shape: rng.normal(size=shape).astype(np.float32)
    value = as_f32(TOKENS, STREAMS, HIDDEN)
    norm_weight = 1 + 0.1 * as_f32(STREAMS, HIDDEN)
    norm_weight = norm_weight.astype(np.float32)
    conv_weight = as_f32(STREAMS * HIDDEN, KERNEL)
    v = value.astype(np.float64)
    normed = v / np.sqrt(np.mean(v * v, axis=-1, keepdims=True) + np.float64(np.float32(EPS)))
    normed = (normed * norm_weight).reshape(TOKENS, -1)
    padded = np.pad(normed, (((KERNEL - 1) * DILATION, 0), (0, 0)))
    windows = [padded[i * DILATION:i * DILATION + TOKENS] for i in range(KERNEL)]
    z = np.einsum("ktc,ck->tc", np.stack(windows), conv_weight.astype(np.float64))
    out = v.reshape(TOKENS, -1) + z / (1 + np.exp(-z))
    state = padded[-(KERNEL - 1) * DILATION:]
    with open(sys.argv[1], "w") as file:
        file.write("# made by tests/oracle/conv_case.py with numpy " + np.__version__ + "\n")
        for name, array in (("value", value), ("norm_weight", norm_weight),
                            ("conv_weight", conv_weight), ("out", out), ("state", state)):
            numbers = " ".join(float(x).hex() for x in array.reshape(-1))
            file.write(f"{name} {array.size} {numbers}\n")


main()
