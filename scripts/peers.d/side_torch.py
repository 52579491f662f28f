"""PyTorch on the CPU: our own writing of the published mathematics, eager or through torch.compile.

The compiled kind hands the same functions to torch.compile with constant primes; its product has
frozen weights, which Inductor packs for oneDNN.
"""
import numpy as np
import torch

import inputs as data
from worker import Unsupported


def bf16_tensor(bits):
    return torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16)


class Hash(torch.nn.Module):
    """ids [T] compressed -> rows [T, layers, columns]; a remainder for each column at once."""

    def __init__(self, address, layers):
        super().__init__()
        self.multipliers = [address["multipliers"][layer] for layer in layers]
        shape = (len(layers), 3, 8)
        self.register_buffer("primes", torch.tensor([address["primes"][x] for x in layers]).view(shape))
        self.register_buffer("offsets", torch.tensor([address["offsets"][x] for x in layers]).view(shape))

    def forward(self, ids):
        lag = [ids] + [torch.nn.functional.pad(ids, (s, 0), value=data.PAD)[:ids.shape[0]] for s in (1, 2, 3)]
        mixes = []
        for m in self.multipliers:
            mix = lag[0] * m[0]
            for order in (1, 2, 3):
                mix = mix ^ lag[order] * m[order]
                mixes.append(mix)
        mixes = torch.stack(mixes, -1).view(-1, len(self.multipliers), 3, 1)
        return (mixes % self.primes + self.offsets).flatten(2)


class HashByHead(torch.nn.Module):
    """The same with each prime a constant of the program, as compilers like it."""

    def __init__(self, address, layers):
        super().__init__()
        self.parts = [(address["multipliers"][x], address["primes"][x], address["offsets"][x]) for x in layers]

    def forward(self, ids):
        lag = [ids] + [torch.nn.functional.pad(ids, (s, 0), value=data.PAD)[:ids.shape[0]] for s in (1, 2, 3)]
        out = []
        for m, primes, offsets in self.parts:
            mix = lag[0] * m[0]
            for order in (1, 2, 3):
                mix = mix ^ lag[order] * m[order]
                out += [mix % p + o for p, o in zip(primes[order * 8 - 8:order * 8], offsets[order * 8 - 8:order * 8])]
        return torch.stack(out, -1).view(-1, len(self.parts), data.COLUMNS)


class GatherFp8(torch.nn.Module):
    """rows [T, 24] -> bf16 [T, 6144]: look up bytes and scales, decode."""

    def __init__(self, values, scales):
        super().__init__()
        self.values, self.scales = values, scales

    def forward(self, rows):
        flat = rows.reshape(-1)
        values = self.values.index_select(0, flat).view(torch.float8_e4m3fn).to(torch.float32)
        scales = (self.scales.index_select(0, flat).to(torch.int32) << 23).view(torch.float32)
        return (values.view(-1, 8, 32) * scales.unsqueeze(-1)).to(torch.bfloat16).view(rows.shape[0], -1)


class GatherBf16(torch.nn.Module):
    def __init__(self, table):
        super().__init__()
        self.table = table

    def forward(self, rows):
        return torch.nn.functional.embedding(rows, self.table).flatten(1)


class Gate(torch.nn.Module):
    """streams [T, 4, hidden] and kv [T, 5 hidden] bf16 -> streams + gate * value."""

    def __init__(self, q_weight, k_weight):
        super().__init__()
        self.register_buffer("weight", q_weight.float() * k_weight.float())

    def forward(self, streams, kv):
        x = streams.float()
        k, v = kv.float().split([data.STREAMS * data.HIDDEN, data.HIDDEN], -1)
        k = k.view_as(x)
        rstd = torch.rsqrt(x.square().mean(-1) + data.EPS) * torch.rsqrt(k.square().mean(-1) + data.EPS)
        dot = (x * self.weight * k).sum(-1) * rstd * data.HIDDEN**-0.5
        gate = torch.sigmoid(torch.copysign(dot.abs().clamp_min(1e-6).sqrt(), dot))
        return (x + gate.unsqueeze(-1) * v.unsqueeze(1)).to(torch.bfloat16)


class Chain(torch.nn.Module):
    def __init__(self, token_map, hashing, gather, project, gate):
        super().__init__()
        self.map, self.hash, self.gather, self.project, self.gate = token_map, hashing, gather, project, gate

    def forward(self, ids, streams):
        return self.gate(streams, self.project(self.gather(self.hash(self.map[ids])[:, 0])))


class Side:
    def __init__(self, inputs, threads, kind):
        self.inputs, self.compiled, self.kept = inputs, kind == "compile", {}
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        if self.compiled:
            import torch._inductor.config as inductor
            inductor.freezing = True

    def version(self):
        return f"torch {torch.__version__} {'compile' if self.compiled else 'eager'}"

    def variants(self, op, tokens):
        return ["hash", "hash by head"] if op == "hash" and self.compiled else ["one"]

    def keep(self, name, make):
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]

    def tensor(self, name):
        return self.keep(name, lambda: torch.from_numpy(self.inputs.array(name)))

    def windows(self, name, tokens, bf16=False):
        array = self.keep("w " + name, lambda: self.inputs.table(name))
        whole = bf16_tensor(array) if bf16 else torch.from_numpy(array)
        return [whole[w:w + tokens] for w in self.inputs.windows(tokens, len(array))]

    def make(self, op, tokens, variant):
        module, ring = getattr(self, "make_" + op.replace("-", "_"))(tokens, variant)
        if isinstance(module, torch.nn.Module):
            module.eval()
        if self.compiled:
            torch._dynamo.reset()
            module = torch.compile(module, dynamic=False)
        last, n = [None], len(ring)

        def call(i):
            last[0] = module(*ring[i % n])

        def result():
            out = last[0]
            return (out.view(torch.int16).numpy().view(np.uint16) if out.dtype == torch.bfloat16 else out.numpy())
        return call, result

    def make_map(self, tokens, _variant):
        if self.compiled:
            raise Unsupported("one look-up: nothing to compile")
        table = self.tensor("map")
        return lambda ids: table[ids], [(w,) for w in self.windows("ids", tokens)]

    def make_hash(self, tokens, variant):
        module = (HashByHead if variant == "hash by head" else Hash)(self.inputs.facts["addresses"]["full"], (0, 1))
        return module, [(w,) for w in self.windows("compressed", tokens)]

    def gather_fp8(self):
        return GatherFp8(*self.keep("table fp8", lambda: tuple(
            torch.from_numpy(self.inputs.table(name)) for name in ("table_values", "table_scales"))))

    def make_gather_fp8(self, tokens, _variant):
        return self.gather_fp8(), [(w,) for w in self.windows("rows", tokens)]

    def make_gather_bf16(self, tokens, _variant):
        table = self.keep("table bf16", lambda: bf16_tensor(self.inputs.bf16_table()))
        return GatherBf16(table), [(w,) for w in self.windows("rows", tokens)]

    def project(self):
        def make():
            linear = torch.nn.Linear(data.K, data.N, bias=False, dtype=torch.bfloat16)
            w = data.decode_weights(self.inputs.array("wkv"), self.inputs.array("wkv_scales"))
            linear.weight.copy_(torch.from_numpy(w))
            return linear
        return self.keep("wkv", make)

    def make_project(self, tokens, _variant):
        rows, values, scales = (self.inputs.mapped(name) for name in ("rows", "table_values", "table_scales"))
        ring = []
        for w in self.inputs.windows(tokens, 4096)[:16]:
            picked = rows[w:w + tokens]
            x = data.decode_rows(values[picked], scales[picked]).reshape(tokens, data.K)
            ring.append((bf16_tensor(data.bf16_bits(x)),))
        return self.project(), ring

    def gate(self):
        return Gate(*(bf16_tensor(self.inputs.array(name)) for name in ("q_weight", "k_weight")))

    def make_gate(self, tokens, _variant):
        return self.gate(), list(zip(self.windows("streams", tokens, True), self.windows("kv", tokens, True)))

    def make_chain(self, tokens, _variant):
        hashing = (HashByHead if self.compiled else Hash)(self.inputs.facts["addresses"]["table"], (0,))
        module = Chain(self.tensor("map"), hashing, self.gather_fp8(), self.project(), self.gate())
        ids, streams = self.windows("ids", tokens), self.windows("streams", tokens, True)
        return module, [(ids[i], streams[i % len(streams)]) for i in range(len(ids))]
