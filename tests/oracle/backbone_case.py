"""Known answers for the forward pass of the backbone, in numpy and double precision, written from the
formulas in bench/backbone/backbone.h: whole matrices where the C code goes by blocks, one causal mask,
a dense sum over all experts where it sorts tokens.

Weights follow a formula that the test repeats, so only results are stored. Writes
tests/data/backbone_case.txt: one line `name count values...` per array, hexadecimal floats.
Needs: numpy. Usage: backbone_case.py OUTPUT
"""
import sys

import numpy as np

# Order of EngWeight in backbone.h.
NAMES = """embed final_norm head attn_norm qkv out moe_norm router router_bias shared_up shared_down expert_up
expert_down attn_mix attn_mix_bias attn_mix_gain moe_mix moe_mix_bias moe_mix_gain patches vision_attn_norm
vision_qkv vision_out vision_mlp_norm vision_up vision_down""".split()

BASE = dict(layers=2, d=9, n=3, heads=3, kv=1, dim=6, shared=1, experts=5, top_k=2, w=7, scale=1.5, eps=1e-6,
            iters=20, theta=10000.0, vocab=11, tied=False, patches=5, vd=6, vheads=2, vw=13, vlayers=2)
CASES = {
    "streams": BASE,
    "single": BASE | dict(n=1, kv=3, tied=True, top_k=3, vlayers=0),
    "dense": BASE | dict(n=2, experts=0, top_k=0, shared=3, vlayers=0),
}
TOKENS = 7


def weight(name, shape, inputs, layer=0, expert=0):
    key = (NAMES.index(name) * 16 + layer) * 64 + expert
    x = ((np.arange(int(np.prod(shape)), dtype=np.uint64) + 1) * 2654435761 + key * 40503) & 0xFFFFFFFF
    x ^= x >> np.uint64(15)
    x = (x * 2246822519) & 0xFFFFFFFF
    x ^= x >> np.uint64(13)
    v = x.astype(np.float64) / 2**31 - 1
    if name.endswith("norm"):
        v = 1 + 0.3 * v
    elif name == "router_bias":
        v = 0.2 * v
    elif name.endswith("gain"):
        v = 0.5 + 0.3 * v
    elif not name.endswith("bias") and name not in ("embed", "patches"):
        v = v * np.sqrt(3 / inputs)
    return v.astype(np.float32).astype(np.float64).reshape(shape)


sigmoid = lambda x: 1 / (1 + np.exp(-x))
silu = lambda x: x * sigmoid(x)


def rms(x, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def mixing(c, h, half, layer):
    n, width = c["n"], c["n"] * c["d"]
    m = n * (n + 2)
    raw = rms(h.reshape(len(h), width), c["eps"]) @ weight(f"{half}_mix", (width, m), width, layer)
    gain = weight(f"{half}_mix_gain", (3,), 1, layer)
    raw = raw * np.repeat(gain, [n, n, n * n]) + weight(f"{half}_mix_bias", (m,), 1, layer)
    res = np.exp(raw[:, 2 * n:]).reshape(-1, n, n)
    for _ in range(c["iters"]):
        res = res / res.sum(axis=1, keepdims=True)
        res = res / res.sum(axis=2, keepdims=True)
    return sigmoid(raw[:, :n]), 2 * sigmoid(raw[:, n:2 * n]), res


def half_layer(c, h, half, layer, block):
    if c["n"] == 1:
        x = h[:, 0]
    else:
        pre, post, res = mixing(c, h, half, layer)
        x = np.einsum("tn,tnd->td", pre, h)
    y = block(c, rms(x, c["eps"]) * weight(f"{half}_norm", (c["d"],), 1, layer), layer)
    if c["n"] == 1:
        return h + y[:, None]
    return np.einsum("tij,tjd->tid", res, h) + post[:, :, None] * y[:, None]


def rotate(x, theta):
    """[T, heads, dim]"""
    half = x.shape[-1] // 2
    angle = np.arange(len(x))[:, None] * theta ** (-np.arange(half) / half)
    z = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angle)[:, None]
    return np.concatenate([z.real, z.imag], axis=-1)


def attention(c, x, layer):
    heads, kv, dim, t = c["heads"], c["kv"], c["dim"], len(x)
    qkv = (x @ weight("qkv", (c["d"], (heads + 2 * kv) * dim), c["d"], layer)).reshape(t, -1, dim)
    q, k, v = np.split(qkv, [heads, heads + kv], axis=1)
    q, k = rotate(q, c["theta"]), rotate(k, c["theta"])
    k, v = (np.repeat(a, heads // kv, axis=1) for a in (k, v))
    scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(dim)
    scores = np.where(np.tril(np.ones((t, t), bool)), scores, -np.inf)
    context = np.einsum("hqk,khd->qhd", softmax(scores), v).reshape(t, -1)
    return context @ weight("out", (heads * dim, c["d"]), heads * dim, layer)


def feed(x, up, down):
    gate, value = np.split(x @ up, 2, axis=-1)
    return (silu(gate) * value) @ down


def moe(c, x, layer):
    d, w, shared, experts = c["d"], c["w"], c["shared"] * c["w"], c["experts"]
    y = feed(x, weight("shared_up", (d, 2 * shared), d, layer), weight("shared_down", (shared, d), shared, layer))
    if not experts:
        return y
    affinity = sigmoid(x @ weight("router", (d, experts), d, layer))
    biased = affinity + weight("router_bias", (experts,), 1, layer)
    chosen = np.argsort(-biased, axis=1, kind="stable")[:, :c["top_k"]]
    gates = np.zeros_like(affinity)
    np.put_along_axis(gates, chosen, np.take_along_axis(affinity, chosen, 1), 1)
    gates *= c["scale"] / gates.sum(axis=1, keepdims=True)
    outs = [feed(x, weight("expert_up", (d, 2 * w), d, layer, e), weight("expert_down", (w, d), w, layer, e))
            for e in range(experts)]
    return y + np.einsum("te,etd->td", gates, np.stack(outs))


def vision(c):
    d, heads, w = c["vd"], c["vheads"], c["vw"]
    x = weight("patches", (c["patches"], d), 1)
    for layer in range(c["vlayers"]):
        a = rms(x, c["eps"]) * weight("vision_attn_norm", (d,), 1, layer)
        q, k, v = ((a @ weight("vision_qkv", (d, 3 * d), d, layer)).reshape(-1, 3, heads, d // heads)
                   .transpose(1, 2, 0, 3))
        p = softmax(q @ k.transpose(0, 2, 1) / np.sqrt(d // heads))
        x = x + (p @ v).transpose(1, 0, 2).reshape(-1, d) @ weight("vision_out", (d, d), d, layer)
        u = (rms(x, c["eps"]) * weight("vision_mlp_norm", (d,), 1, layer)) @ weight("vision_up", (d, w), d, layer)
        u = 0.5 * u * (1 + np.tanh(np.sqrt(2 / np.pi) * (u + 0.044715 * u**3)))
        x = x + u @ weight("vision_down", (w, d), w, layer)
    return x


def forward(c, ids):
    embed = weight("embed", (c["vocab"], c["d"]), 1)
    h = np.repeat(embed[ids][:, None], c["n"], axis=1)
    for layer in range(c["layers"]):
        h = half_layer(c, h, "attn", layer, attention)
        h = half_layer(c, h, "moe", layer, moe)
    final = rms(h.sum(axis=1), c["eps"]) * weight("final_norm", (c["d"],), 1)
    return h, final @ (embed.T if c["tied"] else weight("head", (c["d"], c["vocab"]), c["d"]))


def main():
    with open(sys.argv[1], "w") as file:
        file.write("# made by tests/oracle/backbone_case.py with numpy " + np.__version__ + "\n")

        def write(name, array):
            numbers = " ".join(float(x).hex() for x in array.reshape(-1))
            file.write(f"{name} {array.size} {numbers}\n")

        for name, case in CASES.items():
            streams, logits = forward(case, np.array([(5 * i + 3) % case["vocab"] for i in range(TOKENS)]))
            write(f"{name}_streams", streams)
            write(f"{name}_logits", logits)
            if case["vlayers"]:
                write(f"{name}_vision", vision(case))


main()
