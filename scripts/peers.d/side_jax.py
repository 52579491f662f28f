"""JAX, compiled by XLA for the CPU: the same mathematics as side_torch.py, one jit per operation."""
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

import inputs as data
from worker import Unsupported

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_cpu_enable_async_dispatch", False)


def shared(array):
    """A device array over numpy's memory, without a copy (so that tables keep their huge pages)."""
    return jax.dlpack.from_dlpack(array)


def hash_by_head(address, layers):
    def work(ids):
        lag = [ids] + [jnp.pad(ids, (s, 0), constant_values=data.PAD)[:ids.shape[0]] for s in (1, 2, 3)]
        out = []
        for layer in layers:
            m, primes, offsets = (address[key][layer] for key in ("multipliers", "primes", "offsets"))
            mix = lag[0] * m[0]
            for order in (1, 2, 3):
                mix = mix ^ lag[order] * m[order]
                out += [mix % p + o for p, o in zip(primes[order * 8 - 8:order * 8], offsets[order * 8 - 8:order * 8])]
        return jnp.stack(out, -1).reshape(-1, len(layers), data.COLUMNS)
    return work


def hash_at_once(address, layers):
    primes, offsets = (np.array([address[key][x] for x in layers]).reshape(1, -1, 3, 8) for key in ("primes", "offsets"))

    def work(ids):
        lag = [ids] + [jnp.pad(ids, (s, 0), constant_values=data.PAD)[:ids.shape[0]] for s in (1, 2, 3)]
        mixes = []
        for layer in layers:
            m = address["multipliers"][layer]
            mix = lag[0] * m[0]
            for order in (1, 2, 3):
                mix = mix ^ lag[order] * m[order]
                mixes.append(mix)
        mixes = jnp.stack(mixes, -1).reshape(-1, len(layers), 3, 1)
        return (mixes % primes + offsets).reshape(-1, len(layers), data.COLUMNS)
    return work


def take(table, rows):
    return table.at[rows].get(mode="promise_in_bounds")


def gather_fp8(rows, values, scales):
    flat = rows.reshape(-1)
    decoded = jax.lax.bitcast_convert_type(take(values, flat), jnp.float8_e4m3fn).astype(jnp.float32)
    factor = jax.lax.bitcast_convert_type(take(scales, flat).astype(jnp.int32) << 23, jnp.float32)
    return (decoded.reshape(-1, 8, 32) * factor[..., None]).astype(jnp.bfloat16).reshape(rows.shape[0], -1)


def gather_fp8_table(rows, values, scales, decoded):
    """The same with the 256 values looked up."""
    flat = rows.reshape(-1)
    factor = jax.lax.bitcast_convert_type(take(scales, flat).astype(jnp.int32) << 23, jnp.float32)
    out = take(decoded, take(values, flat).astype(jnp.int32)).reshape(-1, 8, 32) * factor[..., None]
    return out.astype(jnp.bfloat16).reshape(rows.shape[0], -1)


def gate(streams, kv, weight):
    x, kv = streams.astype(jnp.float32), kv.astype(jnp.float32)
    k, v = kv[:, :data.STREAMS * data.HIDDEN].reshape(x.shape), kv[:, data.STREAMS * data.HIDDEN:]
    rstd = jax.lax.rsqrt((x * x).mean(-1) + data.EPS) * jax.lax.rsqrt((k * k).mean(-1) + data.EPS)
    dot = (x * weight * k).sum(-1) * rstd * np.float32(data.HIDDEN**-0.5)
    gates = jax.nn.sigmoid(jnp.copysign(jnp.sqrt(jnp.maximum(jnp.abs(dot), np.float32(1e-6))), dot))
    return (x + gates[..., None] * v[:, None]).astype(jnp.bfloat16)


def project(x, w):
    return jax.lax.dot_general(x, w, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32).astype(jnp.bfloat16)


class Side:
    def __init__(self, inputs, threads):
        self.inputs, self.kept = inputs, {}

    def version(self):
        return "jax " + jax.__version__

    def keep(self, name, make):
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]

    def variants(self, op, tokens):
        return {"hash": ["by head", "at once"], "gather-fp8": ["convert", "table"],
                "project": ["bf16", "f32"], "chain": ["bf16", "f32"]}.get(op, ["jit"])

    def make(self, op, tokens, variant):
        work, ring, fixed = getattr(self, "make_" + op.replace("-", "_"))(tokens, variant)
        work = jax.jit(work)
        last, n = [None], len(ring)

        def call(i):
            last[0] = work(*ring[i % n], *fixed).block_until_ready()

        def result():
            out = np.asarray(last[0])
            return out.view(np.uint16) if out.dtype == ml_dtypes.bfloat16 else out
        return call, result

    def windows(self, name, tokens, bf16=False):
        array = self.keep(name, lambda: self.inputs.table(name))
        parts = (array[w:w + tokens] for w in self.inputs.windows(tokens, len(array)))
        return [jnp.array(p.view(ml_dtypes.bfloat16) if bf16 else p) for p in parts]

    def make_map(self, tokens, _variant):
        return lambda ids, table: take(table, ids), [(w,) for w in self.windows("ids", tokens)], (
            jnp.array(self.inputs.array("map")),)

    def make_hash(self, tokens, variant):
        work = (hash_by_head if variant == "by head" else hash_at_once)(self.inputs.facts["addresses"]["full"], (0, 1))
        return work, [(w,) for w in self.windows("compressed", tokens)], ()

    def table_fp8(self):
        return self.keep("table fp8", lambda: tuple(
            shared(self.inputs.table(name)) for name in ("table_values", "table_scales")))

    def make_gather_fp8(self, tokens, variant):
        ring = [(w,) for w in self.windows("rows", tokens)]
        if variant == "convert":
            return gather_fp8, ring, self.table_fp8()
        return gather_fp8_table, ring, self.table_fp8() + (jnp.array(data.e4m3_values()),)

    def make_gather_bf16(self, tokens, _variant):
        table = self.keep("table bf16", lambda: shared(self.inputs.bf16_table()))

        def work(rows, table):
            return jax.lax.bitcast_convert_type(take(table, rows.reshape(-1)), jnp.bfloat16).reshape(tokens, -1)
        return work, [(w,) for w in self.windows("rows", tokens)], (table,)

    def weights(self, kind):
        def make():
            w = data.decode_weights(self.inputs.array("wkv"), self.inputs.array("wkv_scales"))
            return jnp.array(w.astype(ml_dtypes.bfloat16) if kind == "bf16" else w)
        return self.keep("wkv " + kind, make)

    def make_project(self, tokens, variant):
        rows, values, scales = (self.inputs.mapped(name) for name in ("rows", "table_values", "table_scales"))
        ring = []
        for w in self.inputs.windows(tokens, 4096)[:16]:
            picked = rows[w:w + tokens]
            x = data.decode_rows(values[picked], scales[picked]).reshape(tokens, data.K)
            ring.append((jnp.array(x.astype(ml_dtypes.bfloat16) if variant == "bf16" else x),))
        return project, ring, (self.weights(variant),)

    def gate_weight(self):
        q, k = (data.bf16_floats(self.inputs.array(name)) for name in ("q_weight", "k_weight"))
        return jnp.array(q * k)

    def make_gate(self, tokens, _variant):
        ring = list(zip(self.windows("streams", tokens, True), self.windows("kv", tokens, True)))
        return gate, ring, (self.gate_weight(),)

    def make_chain(self, tokens, variant):
        hashing = hash_by_head(self.inputs.facts["addresses"]["table"], (0,))

        def work(ids, streams, table, values, scales, w, weight):
            x = gather_fp8(hashing(take(table, ids))[:, 0], values, scales)
            return gate(streams, project(x.astype(w.dtype), w), weight)
        ids, streams = self.windows("ids", tokens), self.windows("streams", tokens, True)
        ring = [(ids[i], streams[i % len(streams)]) for i in range(len(ids))]
        return work, ring, (jnp.array(self.inputs.array("map")), *self.table_fp8(), self.weights(variant),
                            self.gate_weight())
