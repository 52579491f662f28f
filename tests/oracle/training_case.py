"""Known answers for backwards and optimizers, from PyTorch in double precision: gradients by
automatic differentiation of the published formulas, steps by torch.optim (Muon and the
Sinkhorn-balanced update, which double precision has not there, from their published definitions).

Inputs are f32 numbers. Writes tests/data/training_case.txt: one line `name count values...` per
array, hexadecimal floats. Needs: torch. Usage: training_case.py OUTPUT
"""
import sys

import torch

torch.set_default_dtype(torch.float64)
generator = torch.Generator().manual_seed(20)
lines = [f"# made by tests/oracle/training_case.py with torch {torch.__version__.split('+')[0]}"]


def normal(*shape, scale=1.0, mean=0.0):
    """Random f32 numbers as doubles."""
    x = torch.randn(*shape, generator=generator) * scale + mean
    return x.float().double()


def emit(name, tensor):
    values = " ".join(float(x).hex() for x in tensor.detach().reshape(-1))
    lines.append(f"{name} {tensor.numel()} {values}")


def gate(formula, x, kv, q_weight, k_weight, alive, eps):
    streams = x.shape[1]
    kv = kv.view(x.shape[0], streams + 1, x.shape[2])
    key, value = kv[:, :streams], kv[:, streams:]
    query = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * q_weight
    key = key * torch.rsqrt(key.square().mean(-1, keepdim=True) + eps) * k_weight
    score = (query * key).sum(-1, keepdim=True) / x.shape[2] ** 0.5
    root = score.abs().clamp_min(1e-6).sqrt()
    z = {"copysign": root * torch.where(score < 0, -1.0, 1.0), "sign": root * score.sign(),
         "plain": score}[formula]
    return x + torch.sigmoid(z) * alive * value


def gate_case():
    tokens, streams, hidden, eps = 4, 2, 5, float(torch.tensor(1e-6).float())
    x, kv = normal(tokens, streams, hidden), normal(tokens, (streams + 1) * hidden)
    x[3] = 0  # a score of 0: the clamp lets nothing through
    q, k = normal(streams, hidden, mean=1.0, scale=0.3), normal(streams, hidden, mean=1.0, scale=0.3)
    alive = torch.tensor([1.0, 0.0, 1.0, 1.0]).view(-1, 1, 1)
    d_out = normal(tokens, streams, hidden)
    for name, tensor in (("x", x), ("kv", kv), ("q", q), ("k", k), ("d_out", d_out)):
        emit("gate_" + name, tensor)
    for formula in ("copysign", "sign", "plain"):
        inputs = [t.clone().requires_grad_() for t in (x, kv, q, k)]
        out = gate(formula, *inputs, alive, eps)
        grads = torch.autograd.grad(out, inputs, d_out)
        emit(f"{formula}_out", out)
        for name, tensor in zip(("d_x", "d_kv", "d_q", "d_k"), grads):
            emit(f"{formula}_{name}", tensor)


def conv_case():
    tokens, streams, hidden, kernel, dilation = 9, 2, 3, 3, 2
    eps = float(torch.tensor(1e-5).float())
    starts = [0, 5, 6, 9]
    value = normal(tokens, streams, hidden)
    norm = normal(streams, hidden, mean=1.0, scale=0.2)
    weight = normal(streams * hidden, kernel)
    d_out = normal(tokens, streams, hidden)
    inputs = [t.clone().requires_grad_() for t in (value, norm, weight)]
    v, g, w = inputs
    pieces = []
    for first, end in zip(starts, starts[1:]):
        part = v[first:end]
        normed = torch.nn.functional.rms_norm(part, (hidden,), None, eps) * g
        flat = normed.reshape(1, end - first, -1).transpose(1, 2)
        padded = torch.nn.functional.pad(flat, ((kernel - 1) * dilation, 0))
        z = torch.nn.functional.conv1d(padded, w.unsqueeze(1), dilation=dilation,
                                       groups=streams * hidden)
        pieces.append(part + torch.nn.functional.silu(z)[0].t().reshape(part.shape))
    out = torch.cat(pieces)
    grads = torch.autograd.grad(out, inputs, d_out)
    for name, tensor in (("value", value), ("norm", norm), ("weight", weight), ("d_out", d_out),
                         ("out", out), ("d_value", grads[0]), ("d_norm", grads[1]),
                         ("d_weight", grads[2])):
        emit("conv_" + name, tensor)


def f32(x):
    return float(torch.tensor(x).float())


def optimizer_case():
    w0, grads = normal(6, 4), [normal(6, 4) for _ in range(3)]
    emit("opt_w", w0)
    emit("opt_grads", torch.stack(grads))

    def steps(name, make, sparse=None):
        w = torch.nn.Parameter(w0.clone())
        optimizer = make([w])
        for grad in grads:
            w.grad = grad.clone() if sparse is None else torch.sparse_coo_tensor(
                torch.tensor([sparse]), grad[:len(sparse)], w.shape)
            optimizer.step()
        emit(name, w)

    rate = f32(0.01)
    steps("opt_sgd", lambda p: torch.optim.SGD(p, lr=rate, momentum=f32(0.9), nesterov=True,
                                               weight_decay=f32(0.1)))
    steps("opt_adamw", lambda p: torch.optim.AdamW(p, lr=rate, betas=(f32(0.9), f32(0.95)),
                                                   eps=f32(1e-8), weight_decay=f32(0.1)))
    # torch adds eps before the bias correction here, after it in AdamW: too small to matter
    steps("opt_sparse", lambda p: torch.optim.SparseAdam(p, lr=rate, betas=(f32(0.9), f32(0.95)),
                                                         eps=f32(1e-20)), sparse=[0, 2, 5])
    muon_steps(w0, grads, rate)
    sinkhorn_steps(w0, grads, rate)


def muon_steps(w0, grads, rate):
    """Orthogonalised momentum: quintic Newton-Schulz, updates of root mean square .18 rate."""
    momentum, decay, rms = f32(0.95), f32(0.1), f32(0.18)
    w, buffer = w0.clone(), torch.zeros_like(w0)
    for grad in grads:
        buffer = momentum * buffer + grad
        x = (grad + momentum * buffer).t()
        x = x / (x.norm() + 1e-7)
        for _ in range(5):
            gram = x @ x.t()
            x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
        w = w * (1 - rate * decay) - rate * rms * max(w.shape) ** 0.5 * x.t()
    emit("opt_muon", w)


def sinkhorn_steps(w0, grads, rate):
    """As published, rows 1, 3 and 4 without gradient after the first step."""
    beta, gamma, tau, eps = f32(0.95), f32(0.18), f32(1e-3), f32(1e-20)
    w, momentum = w0.clone(), torch.zeros_like(w0)
    for step, grad in enumerate(grads):
        g = grad.clone()
        if step:
            g[[1, 3, 4]] = 0
        momentum = torch.lerp(g, momentum, beta)
        u = torch.lerp(g, momentum, beta)
        norms = u.norm(dim=1, keepdim=True)
        u = torch.where(norms <= tau * norms.mean(), 0.0, u)
        for q in range(11):
            u = u / (u.norm(dim=1 - q % 2, keepdim=True) + eps)
        w = w - gamma * rate * w.shape[1] ** 0.5 * u
    emit("opt_sinkhorn", w)


gate_case()
conv_case()
optimizer_case()
with open(sys.argv[1], "w") as file:
    file.write("\n".join(lines) + "\n")
