"""numpy: the hash as the original demo does it (a remainder by each head's prime), and the look-ups."""
import numpy as np

import inputs as data
from worker import Unsupported


class Side:
    def __init__(self, inputs, threads):
        self.inputs = inputs

    def version(self):
        return "numpy " + np.__version__

    def variants(self, op, tokens):
        return ["numpy"]

    def make(self, op, tokens, _variant):
        maker = getattr(self, "make_" + op.replace("-", "_"), None)
        if maker is None:
            raise Unsupported("not written for numpy")
        work, ring = maker(tokens)
        last, n = [None], len(ring)

        def call(i):
            last[0] = work(ring[i % n])
        return call, lambda: last[0]

    def windows(self, name, tokens):
        array = self.inputs.array(name)
        return [array[w:w + tokens] for w in self.inputs.windows(tokens, len(array))]

    def make_map(self, tokens):
        table = self.inputs.array("map")
        return table.take, self.windows("ids", tokens)

    def make_hash(self, tokens):
        address = self.inputs.facts["addresses"]["full"]

        def work(ids):
            padded = np.concatenate([np.full(3, data.PAD, np.int64), ids])
            out = np.empty((tokens, 2, data.COLUMNS), np.int64)
            for layer in range(2):
                m = address["multipliers"][layer]
                primes, offsets = address["primes"][layer], address["offsets"][layer]
                mix = ids * m[0]
                for order in range(2, 5):
                    mix = mix ^ padded[4 - order:4 - order + tokens] * m[order - 1]
                    for column in range((order - 2) * 8, (order - 1) * 8):
                        out[:, layer, column] = mix % primes[column] + offsets[column]
            return out
        return work, self.windows("compressed", tokens)

    def make_gather_bf16(self, tokens):
        table = self.inputs.bf16_table()
        return lambda rows: table.take(rows.reshape(-1), axis=0), self.windows("rows", tokens)
