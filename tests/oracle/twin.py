"""The trained backbone with Engram once more, in PyTorch: an independent check of loss and gradients,
and a yardstick of speed. Whole-batch operations, the library's attention, experts as one batched
product over tokens sorted by expert; formulas from bench/backbone/backbone.h and the fact sheet.

  twin.py check TOOL [FILE]   every case of tests/unit/backbone/train_cases.h, dumped by TOOL (train_tool):
                              loss and each gradient within 1e-4 of the largest element; with FILE, writes
                              what test_train_twin.c compares with
  twin.py rung TOOL rung=R0c [name=value ..]   the same at a rung's size, as norms and beside the twin's own
                              difference between f32 and f64: the root in the gate is so steep at score 0
                              that a few tokens' gradients are off by more than 1e-4 in any f32
  twin.py speed DUMP SECONDS eager|compile [bf16]   tokens per second of training steps
Needs: torch, numpy.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
import torch.nn.functional as F


def read_dump(path):
    raw = open(path, "rb").read()
    end = raw.index(b"\n") + 1
    head = json.loads(raw[:end])
    f = {k: number(v) for k, v in head["fields"].items()}
    sizes = [r * c for _, r, c in head["tensors"]]
    at = end

    def take(n, dtype):
        nonlocal at
        out = np.frombuffer(raw, dtype, n, at)
        at += out.nbytes
        return out

    def tensors():
        flat = take(sum(sizes), np.float32)
        parts = np.split(flat, np.cumsum(sizes)[:-1])
        return {name: p.reshape(r, c) for (name, r, c), p in zip(head["tensors"], parts)}

    values, gradients = tensors(), tensors()
    bias = take(f["layers"] * f["experts"], np.float32).reshape(f["layers"], -1)
    ids = take(head["ids"], np.int32).reshape(-1, f["seq_len"] + 1).astype(np.int64)
    rows = take(head["rows"], np.int64)
    f["engram_at"] = [] if f["engram_at"] == "none" else [int(x) for x in str(f["engram_at"]).split(",")]
    if f["engram_at"]:
        rows = rows.reshape(ids.shape[0] * f["seq_len"], len(f["engram_at"]), -1)
    return f, values, gradients, bias, ids, rows, head["loss"]


def number(text):
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


class Twin:
    """Parameters by the names that train_tool gives them; a layer's experts are stacked."""

    def __init__(self, f, values, bias, dtype=torch.float64, experts="bmm"):
        self.f, self.how = f, experts
        self.p = {}
        for name, value in values.items():
            if ".expert" not in name:
                self.p[name] = torch.tensor(value, dtype=dtype)
        for l in range(f["layers"] if f["experts"] else 0):
            for part in ("up", "down"):
                stack = np.stack([values[f"layer{l}.expert{e}.{part}"] for e in range(f["experts"])])
                self.p[f"layer{l}.{part}"] = torch.tensor(stack, dtype=dtype)
        for p in self.p.values():
            p.requires_grad_()
        self.bias = torch.tensor(bias, dtype=dtype)
        dim, half = f["head_dim"], f["head_dim"] // 2
        angle = torch.arange(f["seq_len"])[:, None] * f["rope_theta"] ** (-torch.arange(half).double() / half)
        self.cos, self.sin = angle.cos().to(dtype), angle.sin().to(dtype)

    def gradient(self, name):
        if ".expert" in name:
            layer, expert, part = name.split(".")
            return self.p[f"{layer}.{part}"].grad[int(expert[6:])]
        return self.p[name].grad

    # ---- blocks: x [B, L, d] ----

    def norm(self, x, weight, eps=None):
        return F.rms_norm(x, x.shape[-1:], None, self.f["norm_eps"] if eps is None else eps) * weight

    def rope(self, x):
        a, b = x.chunk(2, -1)
        return torch.cat((a * self.cos - b * self.sin, b * self.cos + a * self.sin), -1)

    def attention(self, x, l):
        f = self.f
        b, n, _ = x.shape
        heads, kv, dim = f["heads"], f["kv_heads"], f["head_dim"]
        qkv = (x @ self.p[f"layer{l}.qkv"]).view(b, n, heads + 2 * kv, dim).transpose(1, 2)
        q, k, v = qkv.split((heads, kv, kv), 1)
        y = F.scaled_dot_product_attention(self.rope(q), self.rope(k), v, is_causal=True, enable_gqa=heads != kv)
        return y.transpose(1, 2).reshape(b, n, heads * dim) @ self.p[f"layer{l}.out"]

    def feed(self, x, up, down):
        gate, value = (x @ up).chunk(2, -1)
        return (F.silu(gate) * value) @ down

    def moe(self, x, l):
        f = self.f
        flat = x.reshape(-1, x.shape[-1])
        y = 0
        if f"layer{l}.shared_up" in self.p:
            y = self.feed(flat, self.p[f"layer{l}.shared_up"], self.p[f"layer{l}.shared_down"])
        if not f["experts"]:
            return y.view_as(x)
        affinity = torch.sigmoid(flat @ self.p[f"layer{l}.router"])
        choice = (affinity.detach() + self.bias[l]).topk(f["top_k"], -1).indices
        weight = affinity.gather(1, choice)
        weight = weight / weight.sum(-1, keepdim=True) * f["route_scale"]
        if f["balance_loss"]:
            share = affinity / affinity.sum(-1, keepdim=True)
            per = share.view(x.shape[0], x.shape[1], -1).mean(1)
            counts = F.one_hot(choice, f["experts"]).sum(1).view(x.shape[0], x.shape[1], -1).sum(1)
            often = counts.to(x.dtype) * f["experts"] / (f["top_k"] * x.shape[1])
            self.balance = self.balance + (often * per).sum() / x.shape[0]
        order = choice.flatten().argsort(stable=True)
        token = order // f["top_k"]
        counts = torch.bincount(choice.flatten(), minlength=f["experts"])
        out = self.experts(flat[token], counts, order, choice.flatten()[order], l)
        out = out * weight.flatten()[order, None]
        return (y + torch.zeros_like(flat).index_add(0, token, out)).view_as(x)

    def experts(self, rows, counts, order, expert, l):
        up, down = self.p[f"layer{l}.up"], self.p[f"layer{l}.down"]
        if self.how == "grouped":
            ends = counts.cumsum(0).to(torch.int32)
            gate, value = F.grouped_mm(rows, up, offs=ends).chunk(2, -1)
            return F.grouped_mm(F.silu(gate) * value, down, offs=ends)
        # the fixed capacity is for compilation, which cannot follow the largest count
        place = torch.arange(len(order)) - (counts.cumsum(0) - counts)[expert]
        room = self.capacity if self.how == "fixed" else int(counts.max())
        place = place.clamp(max=room - 1)
        padded = rows.new_zeros(up.shape[0], room, rows.shape[1]).index_put((expert, place), rows)
        return self.feed(padded, up, down)[expert, place]

    def mixing(self, h, half, l):
        n = h.shape[2]
        flat = h.flatten(2)
        gain = self.p[f"layer{l}.{half}_mix_gain"][0].repeat_interleave(torch.tensor([n, n, n * n]))
        flat = flat * (flat.square().mean(-1, keepdim=True) + self.f["norm_eps"]).rsqrt()
        raw = (flat @ self.p[f"layer{l}.{half}_mix"]) * gain + self.p[f"layer{l}.{half}_mix_bias"][0]
        res = raw[..., 2 * n :].unflatten(-1, (n, n))
        res = (res - res.flatten(-2).amax(-1)[..., None, None]).exp()
        for _ in range(self.f["sinkhorn_iters"]):
            res = res / res.sum(-2, keepdim=True)
            res = res / res.sum(-1, keepdim=True)
        return raw[..., :n].sigmoid(), 2 * raw[..., n : 2 * n].sigmoid(), res

    def half(self, h, half, l, block):
        pre = None
        if h.shape[2] == 1:
            x = h[:, :, 0]
        else:
            pre, post, res = self.mixing(h, half, l)
            x = torch.einsum("bln,blnd->bld", pre, h)
        added = 0
        if half == "attn" and self.f["fusion"] == "read" and l in self.f["engram_at"]:
            added = self.engram(x[:, :, None], self.f["engram_at"].index(l))[:, :, 0]
        y = block(self.norm(x + added, self.p[f"layer{l}.{half}_norm"][0]), l) + added
        if pre is None:
            return h + y[:, :, None]
        return torch.einsum("blij,bljd->blid", res, h) + post[..., None] * y[:, :, None]

    # ---- Engram: what is added to x [B, L, n, d] ----

    def rows_of(self, module):
        table = self.p[f"engram{module}.table"]
        e = F.embedding(self.rows[:, module], table).flatten(1)
        kv = e @ self.p[f"engram{module}.kv"]
        if self.f["kv_bias"]:
            kv = kv + self.p[f"engram{module}.kv_bias"][0]
        return kv.view(self.shape[0], self.shape[1], -1)

    def engram(self, x, m):
        f = self.f
        n, d = x.shape[2:]
        kv = self.rows_of(m)
        key, value = kv[..., : n * d].unflatten(-1, (n, d)), kv[..., n * d :]
        if f["gate_off"]:
            gate = x.new_ones(x.shape[:3])
        else:
            root = lambda a: (a.square().mean(-1, keepdim=True) + f["gate_eps"]).rsqrt() * a
            score = (root(x) * self.p[f"engram{m}.q_weight"] * root(key) * self.p[f"engram{m}.k_weight"]).sum(-1)
            score = score / d**0.5
            if f["gate"] == "plain":
                gate = score.sigmoid()
            else:
                size = score.abs().clamp(min=1e-6).sqrt()
                gate = (size * score.sign() if f["gate"] == "sign" else size.copysign(score)).sigmoid()
        v = gate[..., None] * value[:, :, None]
        if not f["conv_kernel"]:
            return v
        lag = f["max_order"]
        normed = self.norm(v, self.p[f"engram{m}.conv_norm"], 1e-5).flatten(2).transpose(1, 2)
        normed = F.pad(normed, ((f["conv_kernel"] - 1) * lag, 0))
        out = F.conv1d(normed, self.p[f"engram{m}.conv"][:, None], dilation=lag, groups=n * d)
        return v + F.silu(out.transpose(1, 2)).unflatten(-1, (n, d))

    # ---- whole ----

    def loss(self, ids, rows):
        f, p = self.f, self.p
        self.rows, self.shape, self.balance = rows, ids[:, :-1].shape, 0
        x = F.embedding(ids[:, :-1], p["embed"])
        if f["fusion"] == "input" and f["engram_at"]:
            x = (x + self.rows_of(0)) / 2
        h = x[:, :, None].expand(-1, -1, f["streams"], -1)
        for l in range(f["layers"]):
            if f["fusion"] == "streams" and l in f["engram_at"]:
                h = h + self.engram(h, f["engram_at"].index(l))
            h = self.half(h, "attn", l, self.attention)
            h = self.half(h, "moe", l, self.moe)
        final = self.norm(h.sum(2), p["final_norm"][0])
        logits = final @ (p["embed"].T if f["tied_head"] else p["head"])
        return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def gradients_of(dump, dtype=torch.float64):
    f, values, got, bias, ids, rows, loss = read_dump(dump)
    twin = Twin(f, values, bias, dtype)
    own = twin.loss(torch.from_numpy(ids), torch.from_numpy(rows.copy()))
    (own + f["balance_loss"] * twin.balance).backward()
    zero = lambda g, like: np.zeros_like(like) if g is None else g.double().numpy()
    return own.item(), {n: zero(twin.gradient(n), g) for n, g in got.items()}, loss, got


def worst_of(got, want, size):
    """The largest relative difference of a gradient, and whose it is."""
    worst, where = 0, "none"
    for tensor in want:
        error = size(got[tensor] - want[tensor]) / max(size(want[tensor]), 1e-7)
        if error > worst:
            worst, where = error, tensor
    return worst, where


def compare(name, dump, write=None):
    want_loss, want, loss, got = gradients_of(dump)
    worst, where = worst_of(got, want, lambda a: np.abs(a).max())
    print(f"{name:28s} loss {loss:.6f}  worst relative difference {worst:.1e} ({where})")
    if write:
        write.write(f"{name} loss {want_loss.hex()}\n")
        for tensor, gradient in want.items():
            norm, weighed = summary(gradient)
            write.write(f"{name} {tensor} {norm.hex()} {weighed.hex()}\n")
    return worst <= 1e-4 and abs(loss / want_loss - 1) <= 1e-4


def compare_rung(name, dump):
    want_loss, want, loss, got = gradients_of(dump)
    worst, where = worst_of(got, want, np.linalg.norm)
    twins, its = worst_of(gradients_of(dump, torch.float32)[1], want, np.linalg.norm)
    print(f"{name}: loss {loss:.6f}, ours {worst:.1e} ({where}), the twin in f32 {twins:.1e} ({its})")
    return worst <= max(1e-4, 2 * twins) and abs(loss / want_loss - 1) <= 1e-4


def summary(g):
    """Norm, and a sum in which every element counts differently."""
    g = g.flatten().astype(np.float64)
    i = np.arange(len(g), dtype=np.uint64)
    weight = ((i * np.uint64(2654435761)) & np.uint64(0xFFFFFFFF)).astype(np.float64) / 2**31 - 1
    return float(np.sqrt((g * g).sum())), float((g * weight).sum())


def check(tool, out):
    names = subprocess.run([tool, "cases", "-"], check=True, capture_output=True, text=True).stdout.split()
    good = True
    write = open(out, "w") if out else None
    if write:
        write.write(f"# made by tests/oracle/twin.py with torch {torch.__version__}: case, tensor, norm, weighed sum\n")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            dump = os.path.join(folder, "dump")
            subprocess.run([tool, "case", dump, name], check=True)
            good &= compare(name, dump, write)
    return 0 if good else 1


def check_rung(tool, fields):
    with tempfile.TemporaryDirectory() as folder:
        dump = os.path.join(folder, "dump")
        subprocess.run([tool, "dump", dump, *fields], check=True)
        return 0 if compare_rung(" ".join(fields), dump) else 1


def speed(dump, seconds, how, experts):
    f, values, _, bias, ids, rows, _ = read_dump(dump)
    torch.set_num_threads(f["threads"])
    twin = Twin(f, values, bias, torch.float32, experts)
    # three times the mean load: what a balanced router stays below
    twin.capacity = 3 * ids.shape[0] * f["seq_len"] * f["top_k"] // max(f["experts"], 1)
    ids, rows = torch.from_numpy(ids), torch.from_numpy(rows.copy())
    params = list(twin.p.values())
    matrices = [p for n, p in twin.p.items() if "table" not in n]
    tables = [p for n, p in twin.p.items() if "table" in n]
    groups = [{"params": matrices}] + ([{"params": tables, "lr": 5e-3, "weight_decay": 0}] if tables else [])
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    loss_of = torch.compile(twin.loss) if how == "compile" else twin.loss

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss_of(ids, rows).backward()
        optimizer.step()

    began = time.time()
    for _ in range(3):
        step()
    print(f"warm_up_s {time.time() - began:.1f}")
    rates, began = [], time.time()
    while time.time() - began < seconds:
        t, cpu = time.perf_counter(), time.process_time()
        step()
        rates.append((time.perf_counter() - t, time.process_time() - cpu))
    tokens = ids.shape[0] * f["seq_len"]
    wall, cpu = np.median([r[0] for r in rates]), np.median([r[1] for r in rates])
    print(f"tokens_per_s {tokens / wall:.0f}\ncpu_tokens_per_s {tokens / cpu:.0f}")
    return 0


def main():
    what = sys.argv[1]
    if what == "check":
        return check(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)
    if what == "rung":
        return check_rung(sys.argv[2], sys.argv[3:])
    return speed(sys.argv[2], float(sys.argv[3]), sys.argv[4], sys.argv[5] if len(sys.argv) > 5 else "bmm")


if __name__ == "__main__":
    sys.exit(main())
