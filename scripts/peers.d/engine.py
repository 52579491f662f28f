"""Our kernels, called through the shared object `libengram_kernels.so` with ctypes.

The structures repeat include/engram/{status,types,address,kernels}.h and kernels/address/*.h; layout.c
tells their sizes, and a library that differs is refused.
"""
import ctypes as c
import os

import numpy as np

import inputs as data

LAYERS, ORDERS, MAX_COLUMNS, DIGEST = 8, 8, 256, 65
PACKED = ", rows packed"


def structure(name, *fields):
    return type(name, (c.Structure,), {"_fields_": list(fields)})


Err = structure("Err", ("status", c.c_int), ("file", c.c_char_p), ("line", c.c_int), ("text", c.c_char * 1024))
Spec = structure("Spec", ("n_layers", c.c_int), ("layer_ids", c.c_int * LAYERS), ("min_order", c.c_int),
                 ("max_order", c.c_int), ("heads", c.c_int), ("vocab", c.c_int64), ("pad", c.c_int32),
                 ("start", c.c_int64), ("seed", c.c_int64))
Address = structure("Address", ("n_layers", c.c_int), ("layer_ids", c.c_int * LAYERS), ("min_order", c.c_int),
                    ("max_order", c.c_int), ("heads", c.c_int), ("n_columns", c.c_int), ("vocab", c.c_int64),
                    ("pad", c.c_int32), ("start", c.c_int64), ("multipliers", c.c_int64 * ORDERS * LAYERS),
                    ("primes", c.c_int64 * MAX_COLUMNS * LAYERS), ("offsets", c.c_int64 * MAX_COLUMNS * LAYERS),
                    ("rows", c.c_int64 * LAYERS))
Tokmap = structure("Tokmap", ("n_ids", c.c_int64), ("n_compressed", c.c_int64), ("map", c.POINTER(c.c_int32)),
                   ("sha256_i32le", c.c_char * DIGEST), ("sha256_i64le", c.c_char * DIGEST))
Table = structure("Table", ("format", c.c_int), ("row_dims", c.c_int), ("rows", c.c_int64),
                  ("values", c.c_void_p), ("scales", c.c_void_p))
HashProblem = structure("HashProblem", ("address", c.POINTER(Address)), ("max_tokens", c.c_int64))
GatherProblem = structure("GatherProblem", ("table", Table), ("columns", c.c_int), ("tokens", c.c_int64),
                          ("out", c.c_int))
ProjectProblem = structure("ProjectProblem", ("tokens", c.c_int64), ("n", c.c_int), ("k", c.c_int),
                           ("x", c.c_int), ("weights", c.c_int), ("out", c.c_int), ("w", c.c_void_p),
                           ("w_scales", c.c_void_p))
GateProblem = structure("GateProblem", ("tokens", c.c_int64), ("streams", c.c_int), ("hidden", c.c_int),
                        ("formula", c.c_int), ("eps", c.c_float), ("q_weight", c.c_void_p),
                        ("k_weight", c.c_void_p))
ConvProblem = structure("ConvProblem", ("tokens", c.c_int64), ("streams", c.c_int), ("hidden", c.c_int),
                        ("kernel", c.c_int), ("dilation", c.c_int), ("eps", c.c_float),
                        ("norm_weight", c.c_void_p), ("conv_weight", c.c_void_p))
ProblemUnion = type("ProblemUnion", (c.Union,), {"_fields_": [
    ("hash", HashProblem), ("gather", GatherProblem), ("project", ProjectProblem), ("gate", GateProblem),
    ("conv", ConvProblem)]})
Problem = structure("Problem", ("op", c.c_int), ("threads", c.c_int), ("tuned", c.c_int * 4), ("u", ProblemUnion))
HashArgs = structure("HashArgs", ("tokens", c.c_void_p), ("n_tokens", c.c_int64), ("n_live", c.c_int64),
                     ("starts", c.c_void_p), ("n_seqs", c.c_int64), ("history", c.c_void_p), ("rows", c.c_void_p))
GatherArgs = structure("GatherArgs", ("rows", c.c_void_p), ("row_stride", c.c_int64), ("out", c.c_void_p),
                       ("out_scales", c.c_void_p))
ProjectArgs = structure("ProjectArgs", ("x", c.c_void_p), ("x_scales", c.c_void_p), ("out", c.c_void_p))
GateArgs = structure("GateArgs", ("streams_in", c.c_void_p), ("streams_out", c.c_void_p), ("kv", c.c_void_p),
                     ("dead", c.c_void_p), ("gates", c.c_void_p), ("scores", c.c_void_p))
ConvArgs = structure("ConvArgs", ("value", c.c_void_p), ("state", c.c_void_p), ("out", c.c_void_p))
Args = type("Args", (c.Union,), {"_fields_": [
    ("hash", HashArgs), ("gather", GatherArgs), ("project", ProjectArgs), ("gate", GateArgs), ("conv", ConvArgs)]})
SUPPORTS = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p)
CREATE = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_void_p)
RUN = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_void_p, c.c_void_p)
DESTROY = c.CFUNCTYPE(None, c.c_void_p)
Kernel = structure("Kernel", ("op", c.c_int), ("name", c.c_char_p), ("backend", c.c_int), ("roof", c.c_bool),
                   ("checked", c.c_bool), ("summary", c.c_char_p),
                   ("tunables", c.c_void_p), ("supports", SUPPORTS), ("cost", c.c_void_p), ("create", CREATE), ("run", RUN),
                   ("destroy", DESTROY))
# In the order of layout.c.
LAYOUT = [*map(c.sizeof, (Err, Spec, Address, Tokmap, Table, HashProblem, GatherProblem, ProjectProblem, GateProblem,
                          Problem)), Problem.u.offset,
          *map(c.sizeof, (HashArgs, GatherArgs, ProjectArgs, GateArgs, Args, Kernel)), Kernel.run.offset]


class Library:
    """Loads the shared object; wraps what the controller and our side need of it."""

    def __init__(self, path=None):
        self.so = c.CDLL(path or os.environ["ENG_PEERS_LIBRARY"])
        self.so.eng_kernels.restype = c.POINTER(c.POINTER(Kernel))
        self.so.eng_tokmap_apply.argtypes = [c.c_void_p, c.c_void_p, c.c_int64, c.c_void_p, c.c_void_p]
        self.err = Err()
        if list((c.c_uint64 * len(LAYOUT)).in_dll(self.so, "eng_peers_layout")) != LAYOUT:
            raise RuntimeError("engine.py no longer fits the headers: see layout.c")

    def must(self, status):
        if status:
            raise RuntimeError(self.err.text.decode() or f"status {status}")

    def number(self, kind, name):
        """An enumeration's value by its name: op, dtype, row_format or gate_formula."""
        value = getattr(self.so, f"eng_{kind}_parse")(name.encode())
        if value < 0:
            raise RuntimeError(f"no {kind} named {name}")
        return value

    def address(self, start, layers=(1, 14)):
        spec = Spec(n_layers=len(layers), min_order=2, max_order=4, heads=8, vocab=99092, pad=data.PAD, start=start)
        spec.layer_ids[:len(layers)] = layers
        address = Address()
        self.must(self.so.eng_address_build(c.byref(spec), c.byref(address), c.byref(self.err)))
        return address

    def tokmap(self, tokenizer):
        """The V4.1 token map, digest checked."""
        out = Tokmap()
        digest = b"c60a86322ec17b4142bfef3c57a8d81fb428550cdf487f88a4320cb59fe46481"
        self.must(self.so.eng_tokmap_load_checked(tokenizer.encode(), digest, c.c_int64(128000), c.c_int64(129280),
                                                  c.byref(out), c.byref(self.err)))
        return out

    def kernels(self, op):
        """Kernels whose output is checked, product calls of libraries included."""
        n = c.c_int()
        found = self.so.eng_kernels(self.number("op", op), c.byref(n))
        return {k.name.decode(): k for k in (found[i].contents for i in range(n.value)) if k.checked}


def address_facts(address):
    layers = range(address.n_layers)
    part = lambda field, n: [list(getattr(address, field)[i][:n]) for i in layers]
    return {"multipliers": part("multipliers", 4), "primes": part("primes", data.COLUMNS),
            "offsets": part("offsets", data.COLUMNS), "rows": list(address.rows[:address.n_layers])}


class Call:
    """One kernel on one problem with a ring of arguments; call(i) runs on window i."""

    def __init__(self, library, kernel, problem, ring, result):
        self.library, self.kernel, self.problem, self.ring, self.result = library, kernel, problem, ring, result
        self.state = c.c_void_p()
        status = kernel.supports(c.byref(problem), c.byref(library.err)) if kernel.supports else 0
        if not status and kernel.create:
            status = kernel.create(c.byref(problem), c.byref(self.state), c.byref(library.err))
        library.must(status)
        pointers = [c.cast(c.pointer(args), c.c_void_p) for args in ring]
        problem_at, err_at = (c.cast(c.pointer(x), c.c_void_p) for x in (problem, library.err))
        run, state, n = kernel.run, self.state, len(ring)

        def call(i):
            if run(state, problem_at, pointers[i % n], err_at):
                raise RuntimeError(library.err.text.decode())
        call.owner = self  # whoever keeps the function keeps buffers and state
        self.call = call

    def __del__(self):
        if getattr(self, "state", None) is not None and self.kernel.destroy:
            self.kernel.destroy(self.state)


class Side:
    """Our side of the comparison; see worker.py for what a side offers."""

    def __init__(self, inputs, threads):
        self.inputs, self.threads, self.library = inputs, threads, Library()
        self.kept = {}
        for kind, names in (("dtype", ("bf16", "fp8")), ("row_format", ("fp8", "fp8_packed", "bf16"))):
            for name in names:
                setattr(self, f"{kind}_{name}", self.library.number(kind, name))

    def version(self):
        return "this tree"

    def keep(self, name, make):
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]

    def variants(self, op, tokens):
        if op == "map":
            return ["tokmap_apply"]
        if op == "chain":
            return ["chain"]
        names = list(self.library.kernels(op.split("-")[0]))
        # The same fp8 rows with the scales beside the values: 264 B in one piece.
        return names + [name + PACKED for name in names] if op == "gather-fp8" else names

    def make(self, op, tokens, variant):
        made = getattr(self, "make_" + op.replace("-", "_"))(tokens, variant)
        return made.call, made.result

    def kernel_call(self, op, problem, ring, result, variant):
        whole = Problem(op=self.library.number("op", op), threads=self.threads)
        setattr(whole.u, op, problem)
        kernel = self.library.kernels(op)[variant]
        return Call(self.library, kernel, whole, [Args(**{op: args}) for args in ring], result)

    # A result is a function that gives the last call's output as an array.

    def make_map(self, tokens, _variant):
        ids = self.keep("ids32", lambda: self.inputs.array("ids").astype(np.uint32))
        tokmap = self.keep("tokmap", lambda: self.library.tokmap(os.environ["ENG_PEERS_TOKENIZER"]))
        out = np.empty(tokens, np.int32)
        at = [ids.ctypes.data + 4 * w for w in self.inputs.windows(tokens, self.inputs.facts["pool"])]
        apply, map_at, out_at, n = self.library.so.eng_tokmap_apply, c.addressof(tokmap), out.ctypes.data, len(at)
        err_at = c.addressof(self.library.err)

        def call(i):
            if apply(map_at, at[i % n], tokens, out_at, err_at):
                raise RuntimeError("a token id is out of range")
        call.call, call.result = call, lambda: out
        return call

    def make_hash(self, tokens, variant):
        ids = self.keep("compressed32", lambda: self.inputs.array("compressed").astype(np.int32))
        address = self.keep("address", lambda: self.library.address(16_000_000))
        out = np.empty((tokens, 2, data.COLUMNS), np.int64)
        ring = [HashArgs(tokens=ids.ctypes.data + 4 * w, n_tokens=tokens, n_live=tokens, n_seqs=1,
                         rows=out.ctypes.data) for w in self.inputs.windows(tokens, self.inputs.facts["pool"])]
        problem = HashProblem(address=c.pointer(address), max_tokens=tokens)
        return self.kernel_call("hash", problem, ring, lambda: out, variant)

    def table(self, row_format):
        make = {"fp8": lambda: (self.inputs.table("table_values"), self.inputs.table("table_scales")),
                "fp8_packed": lambda: (self.inputs.packed_table(), None),
                "bf16": lambda: (self.inputs.bf16_table(), None)}[row_format]
        values, scales = self.keep("table " + row_format, make)
        return Table(format=getattr(self, "row_format_" + row_format), row_dims=data.DIMS, rows=len(values),
                     values=values.ctypes.data, scales=scales.ctypes.data if scales is not None else None)

    def gather(self, tokens, variant, row_format):
        rows = self.keep("rows", lambda: self.inputs.array("rows"))
        out = data.huge((tokens, data.K), np.uint16)
        ring = [GatherArgs(rows=rows[w:].ctypes.data, row_stride=data.COLUMNS, out=out.ctypes.data)
                for w in self.inputs.windows(tokens, len(rows))]
        problem = GatherProblem(table=self.table(row_format), columns=data.COLUMNS, tokens=tokens,
                                out=self.dtype_bf16)
        return self.kernel_call("gather", problem, ring, lambda: out, variant)

    def make_gather_fp8(self, tokens, variant):
        packed = variant.endswith(PACKED)
        return self.gather(tokens, variant.removesuffix(PACKED), "fp8_packed" if packed else "fp8")

    def make_gather_bf16(self, tokens, variant):
        return self.gather(tokens, variant, "bf16")

    def project_problem(self, tokens):
        w, scales = self.keep("wkv", lambda: (self.inputs.array("wkv"), self.inputs.array("wkv_scales")))
        return ProjectProblem(tokens=tokens, n=data.N, k=data.K, x=self.dtype_fp8, weights=self.dtype_fp8,
                              out=self.dtype_bf16, w=w.ctypes.data, w_scales=scales.ctypes.data)

    def make_project(self, tokens, variant):
        starts = self.inputs.windows(tokens, 4096)[:16]
        rows, values, scales = (self.inputs.mapped(name) for name in ("rows", "table_values", "table_scales"))
        xs = self.keep(("x", tokens), lambda: [(values[rows[w:w + tokens]], scales[rows[w:w + tokens]])
                                               for w in starts])
        out = np.empty((tokens, data.N), np.uint16)
        ring = [ProjectArgs(x=x.ctypes.data, x_scales=s.ctypes.data, out=out.ctypes.data) for x, s in xs]
        return self.kernel_call("project", self.project_problem(tokens), ring, lambda: out, variant)

    def gate_problem(self, tokens):
        q, k = self.keep("gate weights", lambda: (self.inputs.array("q_weight"), self.inputs.array("k_weight")))
        return GateProblem(tokens=tokens, streams=data.STREAMS, hidden=data.HIDDEN, formula=0, eps=data.EPS,
                           q_weight=q.ctypes.data, k_weight=k.ctypes.data)

    def make_gate(self, tokens, variant):
        streams, kv = self.keep("gate inputs", lambda: (self.inputs.table("streams"), self.inputs.table("kv")))
        out = data.huge((tokens, data.STREAMS, data.HIDDEN), np.uint16)
        ring = [GateArgs(streams_in=streams[w:].ctypes.data, streams_out=out.ctypes.data, kv=kv[w:].ctypes.data)
                for w in self.inputs.windows(tokens, len(kv))]
        return self.kernel_call("gate", self.gate_problem(tokens), ring, lambda: out, variant)

    def fastest(self, op, tokens, exclude=()):
        """A quick choice inside the chain: the least of a few calls."""
        from worker import clock_calls
        best = None
        for variant in self.variants(op, tokens):
            try:
                made = getattr(self, "make_" + op.replace("-", "_"))(tokens, variant)
            except RuntimeError:
                continue
            times = [clock_calls(made.call, i, 1)[0] for i in range(4)]
            if best is None or min(times) < best[0]:
                best = (min(times), variant)
        return best[1]

    def make_chain(self, tokens, _variant):
        """ids -> map -> hash -> gather (packed fp8) -> project -> gate, for one layer."""
        address = self.keep("table address", lambda: self.library.address(self.inputs.facts["start"]))
        names = {op: self.fastest(op, tokens) for op in ("hash", "gather-fp8", "project", "gate")}
        packed = names["gather-fp8"].endswith(PACKED)
        compressed, rows = np.empty(tokens, np.int32), np.empty((tokens, 2, data.COLUMNS), np.int64)
        x, scales = np.empty((tokens, data.K), np.uint8), np.empty((tokens, data.K // data.GROUP), np.uint8)
        kv, out = np.empty((tokens, data.N), np.uint16), np.empty((tokens, data.STREAMS, data.HIDDEN), np.uint16)
        streams = self.keep("streams", lambda: self.inputs.table("streams"))
        tokmap = self.make_map(tokens, "")
        ids, err_at = self.kept["ids32"], c.addressof(self.library.err)
        at = [ids.ctypes.data + 4 * w for w in self.inputs.windows(tokens, self.inputs.facts["pool"])]
        apply, map_at = self.library.so.eng_tokmap_apply, c.addressof(self.kept["tokmap"])
        hashing = self.kernel_call("hash", HashProblem(address=c.pointer(address), max_tokens=tokens), [HashArgs(
            tokens=compressed.ctypes.data, n_tokens=tokens, n_live=tokens, n_seqs=1, rows=rows.ctypes.data)],
            None, names["hash"])
        gathering = self.kernel_call("gather", GatherProblem(
            table=self.table("fp8_packed" if packed else "fp8"), columns=data.COLUMNS, tokens=tokens,
            out=self.dtype_fp8), [GatherArgs(
                rows=rows.ctypes.data, row_stride=2 * data.COLUMNS, out=x.ctypes.data, out_scales=scales.ctypes.data)],
            None, names["gather-fp8"].removesuffix(PACKED))
        projecting = self.kernel_call("project", self.project_problem(tokens), [ProjectArgs(
            x=x.ctypes.data, x_scales=scales.ctypes.data, out=kv.ctypes.data)], None, names["project"])
        gating = self.kernel_call("gate", self.gate_problem(tokens), [
            GateArgs(streams_in=streams[w:].ctypes.data, streams_out=out.ctypes.data, kv=kv.ctypes.data)
            for w in self.inputs.windows(tokens, len(streams))], None, names["gate"])
        stages = (hashing.call, gathering.call, projecting.call, gating.call)

        def call(i):
            apply(map_at, at[i % len(at)], tokens, compressed.ctypes.data, err_at)
            for stage in stages:
                stage(i)
        call.call, call.result = call, lambda: out
        call.keep = (tokmap, hashing, gathering, projecting, gating, rows, x, scales, kv)
        call.name = " + ".join(names.values())
        return call
