"""Compares our kernels with peers: outputs first, then times in alternating turns.

Each side runs in a process of its own (worker.py). For every operation, size and thread count the
fastest of our kernels is chosen, outputs are compared, and then the two sides take turns: a round is
one turn of each in random order, a turn some milliseconds of calls on the same windows of input. The
ratio of a round is peer time over our time; the median of the rounds is printed with the interval of
order statistics that holds it with at least 95 % confidence. Times are of calls from Python, so both
sides pay for one such call: CPU time of the process on one thread, wall time on more.
"""
import argparse
import functools
import hashlib
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

import engine
import inputs as data

OPS = {"map": (1, 16, 256, 4096), "hash": (1, 16, 256, 4096), "gather-fp8": (1, 16, 256, 4096),
       "gather-bf16": (1, 16, 256, 4096), "project": (1, 16, 256), "gate": (1, 16, 256, 4096), "chain": (1, 16, 256)}
PEERS = {"torch": ("side_torch", "eager", "torch"), "torch-compile": ("side_torch", "compile", "torch"),
         "jax": ("side_jax", "", "jax"), "numpy": ("side_numpy", "", "numpy"),
         "fbgemm-fp8": ("side_fbgemm", "fp8", "fbgemm_gpu"), "fbgemm-int8": ("side_fbgemm", "int8", "fbgemm_gpu"),
         "fbgemm-fp16": ("side_fbgemm", "fp16", "fbgemm_gpu")}
NUMPY_OPS = ("map", "hash", "gather-bf16")
GOLDEN_ROWS = "f5a64799492bea90bc6d87f0cb8a67bb983441e1cd9c12ec2e7b8df6cbcfee1d"  # published, tokens 0 and 3
SETTLE_S = 0.006  # idle threads of the side that has run spin for some milliseconds
CHECK_TOKENS = 5


def say(text):
    print("peers: " + text, file=sys.stderr, flush=True)


# --- Workers --------------------------------------------------------------------------------------


class Failed(RuntimeError):
    pass


class Side:
    def __init__(self, name, module, kind, folder, threads):
        here = os.path.dirname(os.path.abspath(__file__))
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads),
                           CUDA_VISIBLE_DEVICES="")
        # Freed memory is kept and lies in huge pages: peers allocate each output, and page faults would be most of
        # the time of the large ones (80 % of eager torch's gate).
        environment["GLIBC_TUNABLES"] = ":".join("glibc.malloc." + x for x in (
            "mmap_max=0", "trim_threshold=17179869184", "hugetlb=1"))
        if name == "fbgemm-fp8":
            environment["FBGEMM_FORCE_AUTOVEC"] = "1"
        for key in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):  # where set they slow a current numpy
            environment.pop(key, None)
        self.name = name
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(here, "worker.py"), module, kind, folder, str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder,
            stderr=None if os.environ.get("ENG_PEERS_TRACE") else subprocess.DEVNULL)
        try:
            self.version = self.read()["version"]
        except Failed:
            self.close()
            raise

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise Failed(f"{self.name}: the process ended ({self.process.wait()})")
        message = json.loads(line)
        if "error" in message:
            raise Failed(message["error"])
        return message

    def ask(self, do, **arguments):
        try:
            self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(f"{self.name}: the process ended ({self.process.wait()})") from None
        return self.read()

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.stdout.close()
        self.process.wait()


def choose(side, op, tokens, threads):
    """Makes the fastest of a side's variants for a size; returns its name."""
    clock = "cpu_ns" if threads == 1 else "wall_ns"
    names, best = side.ask("variants", op=op, tokens=tokens)["variants"], None
    problem = "no variant"
    for name in names if len(names) > 1 else []:
        try:
            side.ask("make", op=op, tokens=tokens, variant=name)
            first = min(side.ask("time", first=1 + r, n=1)[clock] for r in range(2))
            if best and first > 4 * best[0] and first > 10e6:
                continue
            n = max(1, min(2000, int(4e6 / max(first, 1))))
            least = min(side.ask("time", first=2 + r * n, n=n)[clock] for r in range(5))
        except Failed as failure:
            problem = str(failure)
            continue
        if best is None or least < best[0]:
            best = (least, name)
    if len(names) > 1 and best is None:
        raise Failed(problem)
    return side.ask("make", op=op, tokens=tokens, variant=best[1] if best else names[0])["name"]


# --- Outputs --------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4)
def reference(op, peer, tokens, window, folder):
    """What the first check compares with, from numpy in double precision; None where there is none."""
    source = data.Inputs(folder)
    facts = source.facts
    at = source.windows(tokens, facts["pool"])[window] if op not in ("project", "gate") else 0
    rows = source.mapped("rows")
    if op == "map":
        return source.mapped("map")[source.mapped("ids")[at:at + tokens]]
    if op == "hash":
        return data.address_rows(source.mapped("compressed")[at:at + tokens], facts["addresses"]["full"], (0, 1))
    if op.startswith("gather"):
        values = source.mapped("table_values")[rows[at:at + tokens]]
        if peer == "fbgemm-fp8":
            out = data.e4m3_values()[values]
        elif peer == "fbgemm-int8":
            out = (values * np.float32(2.0**-6) - np.float32(2)).astype(np.float32)
        else:
            out = data.decode_rows(values, source.mapped("table_scales")[rows[at:at + tokens]])
        return data.bf16_bits(out)
    if op == "project":
        at = source.windows(tokens, 4096)[:16][window % 16]
        picked = rows[at:at + tokens]
        x = data.decode_rows(source.mapped("table_values")[picked], source.mapped("table_scales")[picked])
        w = data.decode_weights(source.array("wkv"), source.array("wkv_scales"))
        return x.reshape(tokens, -1).astype(np.float64) @ w.T.astype(np.float64)
    if op == "gate":
        starts = source.windows(tokens, facts["gate_pool"])
        at = starts[window % len(starts)]
        x = data.bf16_floats(source.mapped("streams")[at:at + tokens]).astype(np.float64)
        kv = data.bf16_floats(source.mapped("kv")[at:at + tokens]).astype(np.float64)
        k, v = kv[:, :-data.HIDDEN].reshape(x.shape), kv[:, -data.HIDDEN:]
        q_weight, k_weight = (data.bf16_floats(source.array(n)).astype(np.float64) for n in ("q_weight", "k_weight"))
        dot = (x * k * q_weight * k_weight).sum(-1) / np.sqrt((x * x).mean(-1) * (k * k).mean(-1) * data.HIDDEN)
        gate = 1 / (1 + np.exp(-np.copysign(np.sqrt(np.maximum(np.abs(dot), 1e-6)), dot)))
        return x + gate[..., None] * v[:, None]
    return None


def compare(op, got, want):
    """(passes, words). Integers and decoded rows must be equal; sums may differ by their rounding."""
    got, want = got.reshape(-1), want.reshape(-1)
    if got.size != want.size:
        return False, f"{got.size} values, not {want.size}"
    if op in ("map", "hash") or op.startswith("gather"):
        if op.startswith("gather"):
            zero = int(((got != want) & (got & 0x7FFF == 0) & (want & 0x7FFF == 0)).sum())
            wrong = int((data.bf16_floats(got) != data.bf16_floats(want)).sum())
            return wrong == 0, f"{wrong} differ" if wrong else "equal, -0 as 0" if zero else "equal"
        wrong = int((got.astype(np.int64) != want.astype(np.int64)).sum())
        return wrong == 0, f"{wrong} differ" if wrong else "equal"
    got = data.bf16_floats(got).astype(np.float64)
    want = data.bf16_floats(want).astype(np.float64) if want.dtype == np.uint16 else want
    # Two roundings to bf16, and a sum in f32; in a chain a kv that rounds the other way moves the gate too.
    scale = float(np.sqrt(np.mean(want * want)))
    share = np.abs(got - want) / (2.0**-7 * np.abs(want) + (2.0**-6 if op == "chain" else 2.0**-12) * scale)
    worst = float(share.max()) if np.isfinite(share).all() else math.inf
    return worst <= 1, f"within {worst:.2f} of the limit"


def output(side, window, folder):
    file = os.path.join(folder, "out.npy")
    side.ask("output", window=window, file=file)
    return np.load(file)


def check_small(ours, peer, op, folder):
    """Both against the reference on few tokens: all variants of the peer, and of ours with the first peer."""
    for side in (peer,) if ours.checked else (ours, peer):
        for name in side.ask("variants", op=op, tokens=CHECK_TOKENS)["variants"]:
            try:
                side.ask("make", op=op, tokens=CHECK_TOKENS, variant=name)
            except Failed:
                if side is peer:
                    raise
                continue
            want = reference(op, side.name if side.name.startswith("fbgemm") else "", CHECK_TOKENS, 3, folder)
            if want is None:
                continue
            passes, words = compare(op, output(side, 3, folder), want)
            if not passes:
                raise Failed(f"{side.name} {name}: wrong output of {op}: {words}")
    ours.checked = True


# --- Times ----------------------------------------------------------------------------------------


def median_interval(values):
    """Median and the order statistics that hold it with at least 95 % confidence (exact binomial)."""
    ordered, n = sorted(values), len(values)
    below, rank = 0.5**n, 0
    while below <= 0.025:
        rank += 1
        below += math.comb(n, rank) * 0.5**n
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    if rank == 0:
        return middle, math.nan, math.nan
    return middle, ordered[rank - 1], ordered[n - rank]


def alternate(ours, peer, options, rng):
    """Rounds of one turn each; the same windows for both within a round."""
    sides, calls = (ours, peer), []
    for side in sides:
        once = side.ask("time", first=0, n=1)["wall_ns"]
        n = max(1, min(4096, int(options.turn_ms * 1e6 / once)))
        better = side.ask("time", first=1, n=n)["wall_ns"]
        calls.append((max(1, min(8192, int(options.turn_ms * 1e6 / better))), better))
    round_s = sum(n * each for n, each in calls) / 1e9 + 2 * SETTLE_S + sum(each for _, each in calls) / 1e9
    rounds = max(7, min(options.rounds, int(options.cell_s / round_s)))
    times, first = {"ours_wall": [], "peer_wall": [], "ours_cpu": [], "peer_cpu": []}, 0
    for _ in range(rounds):
        order = [0, 1] if rng.random() < 0.5 else [1, 0]
        for which in order:
            time.sleep(SETTLE_S)
            answer = sides[which].ask("time", first=first, n=calls[which][0])
            name = ("ours", "peer")[which]
            times[name + "_wall"].append(answer["wall_ns"])
            times[name + "_cpu"].append(answer["cpu_ns"])
        first += max(n for n, _ in calls)
    return times


# --- The whole ------------------------------------------------------------------------------------


def prepare(folder, options):
    """Inputs from the stream, the map and the addressing of our tool; the published rows must come out."""
    library = engine.Library()
    tokmap = library.tokmap(os.environ["ENG_PEERS_TOKENIZER"])
    token_map = np.ctypeslib.as_array(tokmap.map, (tokmap.n_ids,)).copy()
    full, table = (library.address(start) for start in (16_000_000, options.rows))
    addresses = {"full": engine.address_facts(full), "table": engine.address_facts(table)}
    for place, layer in enumerate((1, 14)):  # numpy's own generator defines the multipliers
        bound = (2**63 - 1) // 99092 // 2
        drawn = np.random.default_rng(10007 * layer).integers(0, bound, size=4, dtype=np.int64) * 2 + 1
        if list(drawn) != addresses["full"]["multipliers"][place]:
            raise Failed("multipliers differ from numpy's")
    golden = data.address_rows(token_map[[0, 3]], addresses["full"], (0, 1))
    if hashlib.sha256(golden.astype("<i8").tobytes()).hexdigest() != GOLDEN_ROWS:
        raise Failed("rows differ from the published ones")
    stream = os.environ["ENG_PEERS_STREAM"]
    if os.path.exists(stream):
        ids, corpus = np.fromfile(stream, "<u4"), os.path.basename(stream)
    else:
        ids, corpus = (np.random.default_rng(1).zipf(1.1, 1 << 20) - 1) % 129280, "synthetic (Zipf)"
    ids = ids[:options.pool]
    options.rows_made = addresses["table"]["rows"][0]
    say(f"inputs: {len(ids)} tokens of {corpus}, table of {options.rows_made} rows x {data.DIMS} + 8 B")
    data.make(folder, ids, token_map[ids], token_map, addresses, options.rows, options.gate_pool)
    return corpus


def cell(ours, peer, op, tokens, threads, options, folder, rng):
    our_name = choose(ours, op, tokens, threads) if ours.chosen != (op, tokens) else ours.chosen_name
    ours.chosen, ours.chosen_name = (op, tokens), our_name
    peer_name = choose(peer, op, tokens, threads)
    want = output(ours, 0, folder)
    if peer.name in ("fbgemm-fp8", "fbgemm-int8"):
        want = reference(op, peer.name, tokens, 0, folder)
    passes, words = compare(op, output(peer, 0, folder), want)
    if not passes:
        raise Failed(f"outputs differ at {tokens} tokens: {words}")
    times = alternate(ours, peer, options, rng)
    clock = "cpu" if threads == 1 else "wall"
    mine, theirs = times["ours_" + clock], times["peer_" + clock]
    ratio, low, high = median_interval([p / o for p, o in zip(theirs, mine)])
    middle = lambda values: median_interval(values)[0] / 1e3
    return {"op": op, "tokens": tokens, "threads": threads, "peer": peer.name, "version": peer.version,
            "peer_variant": peer_name, "our_variant": our_name, "clock": clock, "peer_us": middle(theirs), "our_us": middle(mine),
            "ratio": ratio, "ratio_low": low, "ratio_high": high, "rounds": len(mine),
            "outputs": words, "load": os.getloadavg()[0], "times_ns": times}


def save(options, corpus, cells, skipped):
    """All cells so far; with --add also the older ones that were not measured again."""
    key = lambda x: (x["op"], x["tokens"], x["threads"], x["peer"])
    new = {key(x) for x in cells}
    kept = [x for x in options.older if key(x) not in new]
    ordered = sorted(kept + cells, key=lambda x: (x["threads"], list(OPS).index(x["op"]), list(PEERS).index(x["peer"]),
                                                  x["tokens"]))
    with open(options.out + ".tmp", "w", encoding="ascii") as file:
        json.dump({"machine": machine(), "versions": sorted({x["version"] for x in ordered}), "corpus": corpus,
                   "rows": options.rows_made, "skipped": skipped, "cells": ordered}, file)
    os.replace(options.out + ".tmp", options.out)
    return ordered


def run(options, folder, corpus):
    rng, cells, skipped = random.Random(7), [], []

    def skip(text):
        if text not in skipped:
            skipped.append(text)
            say("skipped: " + text)
    for threads in options.threads:
        for op in options.ops:
            ours = Side("ours", "engine", "", folder, threads)
            ours.chosen, ours.checked = None, False
            for name in options.peers:
                if name == "numpy" and (op not in NUMPY_OPS or threads > 1):
                    continue
                if name.startswith("fbgemm") and op != ("gather-bf16" if name.endswith("16") else "gather-fp8"):
                    continue
                module, kind, _ = PEERS[name]
                peer = None
                try:
                    peer = Side(name, module, kind, folder, threads)
                    ours.chosen = None
                    check_small(ours, peer, op, folder)
                    for tokens in [t for t in OPS[op] if t <= options.most_tokens]:
                        cells.append(cell(ours, peer, op, tokens, threads, options, folder, rng))
                        last = cells[-1]
                        say("{op} {tokens} tokens, {threads} threads: {version} {peer_us:.4g} us, {our_variant} "
                            "{our_us:.4g} us, {ratio:.2f} [{ratio_low:.2f}, {ratio_high:.2f}], {outputs}".format(**last))
                except Failed as failure:
                    skip(f"{name}, {op}: {failure}")
                finally:
                    if peer:
                        peer.close()
                    save(options, corpus, cells, skipped)
            ours.close()
    return cells, skipped


def table(cells):
    lines = ["| operation | tokens | threads | peer | peer, us | ours, us | our kernel | peer / ours | outputs |",
             "|---|---|---|---|---|---|---|---|---|"]
    for x in cells:
        variant = "" if x["peer_variant"] in ("one", "jit", "numpy", x["peer"].rsplit("-", 1)[-1]) else f" ({x['peer_variant']})"
        lines.append(f"| {x['op']} | {x['tokens']} | {x['threads']} | {x['version']}{variant} | {x['peer_us']:.4g} | "
                     f"{x['our_us']:.4g} | {x['our_variant']} | {x['ratio']:.2f} [{x['ratio_low']:.2f}, "
                     f"{x['ratio_high']:.2f}] | {x['outputs']} |")
    return lines


def machine():
    with open("/proc/cpuinfo", encoding="ascii") as file:
        info = dict(line.split(":", 1) for line in file.read().split("\n\n")[0].splitlines() if ":" in line)
    info = {key.strip(): value.strip() for key, value in info.items()}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    wide = [f for f in ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "avx512_vbmi", "amx_bf16")
            if f in info.get("flags", "").split()]
    return f"{info.get('model name')} (family {info.get('cpu family')}), {os.cpu_count()} cores, {memory:.0f} GiB, {' '.join(wide)}"


def words(known):
    def parse(text):
        chosen = [w for w in text.split(",") if w]
        for word in chosen:
            if word not in known:
                raise argparse.ArgumentTypeError(f"'{word}' is none of {', '.join(known)}")
        return chosen
    return parse


def main():
    parser = argparse.ArgumentParser(prog="scripts/peers", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="smoke run: few sizes, rounds and rows")
    parser.add_argument("--ops", type=words(OPS), default=list(OPS), help="of " + ",".join(OPS))
    parser.add_argument("--peers", type=words(PEERS), default=list(PEERS), help="of " + ",".join(PEERS))
    parser.add_argument("--threads", type=lambda t: [int(x) for x in t.split(",")],
                        default=sorted({1, os.cpu_count()}), help="1 and all by default")
    parser.add_argument("--rounds", type=int, default=31, help="most rounds of a comparison")
    parser.add_argument("--turn-ms", type=float, default=12, help="least time of a turn")
    parser.add_argument("--cell-s", type=float, default=12, help="rounds are fewer where they would take longer")
    parser.add_argument("--rows", type=int, default=1 << 17, help="rows per head of the table")
    parser.add_argument("--out", default=os.path.join(os.environ["ENG_PEERS_ROOT"], "out", "peers.json"))
    parser.add_argument("--add", action="store_true", help="keep what the output file holds of other comparisons")
    options = parser.parse_args()
    os.makedirs(os.path.dirname(os.path.abspath(options.out)), exist_ok=True)
    options.older = []
    if options.add and os.path.exists(options.out):
        with open(options.out, encoding="ascii") as file:
            options.older = json.load(file)["cells"]
    options.pool, options.gate_pool, options.most_tokens = 1 << 20, 4096, 4096
    if options.quick:
        options.rounds, options.turn_ms, options.cell_s, options.rows = 7, 2, 2, 4096
        options.pool, options.gate_pool, options.most_tokens, options.threads = 1 << 14, 16, 16, [1]
    absent = []
    for name in list(options.peers):
        if subprocess.run([sys.executable, "-c", f"import {PEERS[name][2]}"], capture_output=True, check=False).returncode:
            absent.append(f"{name}: not installed")
            options.peers.remove(name)
    for line in absent:
        say("skipped: " + line)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))  # so that the inputs are removed
    folder = tempfile.mkdtemp(prefix="peers.", dir=os.environ["ENG_PEERS_CACHE"])
    began, load = time.time(), os.getloadavg()
    try:
        corpus = prepare(folder, options)
        cells, skipped = run(options, folder, corpus)
    except KeyboardInterrupt:
        return 130
    except RuntimeError as problem:
        say(str(problem))
        return 7
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    ordered = save(options, corpus, cells, absent + skipped)
    head = [f"machine: {machine()}",
            "versions: " + "; ".join(sorted({x["version"] for x in ordered})) + f"; Python {sys.version.split()[0]}",
            f"load: {load[0]:.1f} at the start, {os.getloadavg()[0]:.1f} at the end; {time.time() - began:.0f} s; "
            f"{corpus}, {options.rows_made} rows"]
    print("\n".join(head) + "\n\n" + "\n".join(table(ordered)))
    for line in absent + skipped:
        print("skipped: " + line)
    return 0 if cells and not any("wrong" in s or "differ" in s for s in skipped) else 2


if __name__ == "__main__":
    sys.exit(main())
