"""The GAN once more, in float64 NumPy, apart from the plugin's code and from JAX.

Forward passes, both losses, both gradients by hand, and Adam, as the papers have them: the
convolutions as sums over kernel positions, so that what is tested here cannot share a mistake with
an im2col, a phase decomposition or an automatic derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Params = dict[str, dict[str, np.ndarray]]
KERNEL = 5


def padding(size: int, stride: int) -> tuple[int, int, int]:
    """SAME: outputs, and zeros before and after."""
    outputs = -(-size // stride)
    total = max(0, (outputs - 1) * stride + KERNEL - size)
    return outputs, total // 2, total - total // 2


def convolve(x: np.ndarray, w: np.ndarray, stride: int) -> np.ndarray:
    """[B, H, W, I] with [5, 5, I, O] to [B, H', W', O]."""
    (rows, top, bottom), (columns, left, right) = (padding(n, stride) for n in x.shape[1:3])
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    out = np.zeros((len(x), rows, columns, w.shape[3]))
    for i in range(KERNEL):
        for j in range(KERNEL):
            seen = padded[:, i : i + rows * stride : stride, j : j + columns * stride : stride]
            out += seen[:, :rows, :columns] @ w[i, j]
    return out


def convolve_back(
    x: np.ndarray, w: np.ndarray, stride: int, g: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gradients of a convolution's input and kernel, from that of its output."""
    (rows, top, bottom), (columns, left, right) = (padding(n, stride) for n in x.shape[1:3])
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    padded_g, w_g = np.zeros_like(padded), np.zeros_like(w)
    for i in range(KERNEL):
        for j in range(KERNEL):
            there = (
                slice(None),
                slice(i, i + (rows - 1) * stride + 1, stride),
                slice(j, j + (columns - 1) * stride + 1, stride),
            )
            w_g[i, j] = np.einsum("bhwi,bhwo->io", padded[there], g)
            padded_g[there] += g @ w[i, j].T
    height, width = x.shape[1:3]
    return padded_g[:, top : top + height, left : left + width], w_g


def scatter(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """A stride-2 SAME transposed convolution: each input pixel paints w over its neighbourhood.

    w is [5, 5, O, I] and correlated, as Haiku has it: input pixel h reaches output 2h + 3 - k by
    w[k], since JAX pads the dilated input with (3, 2) zeros for kernel 5 and stride 2.
    """
    height, width = x.shape[1:3]
    canvas = np.zeros((len(x), 2 * height + 4, 2 * width + 4, w.shape[2]))
    for i in range(KERNEL):
        for j in range(KERNEL):
            painted = x @ w[KERNEL - 1 - i, KERNEL - 1 - j].T
            canvas[:, i : i + 2 * height : 2, j : j + 2 * width : 2] += painted
    return canvas[:, 1 : 1 + 2 * height, 1 : 1 + 2 * width]


def scatter_back(x: np.ndarray, w: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradients of `scatter`'s input and kernel."""
    height, width = x.shape[1:3]
    canvas = np.zeros((len(x), 2 * height + 4, 2 * width + 4, w.shape[2]))
    canvas[:, 1 : 1 + 2 * height, 1 : 1 + 2 * width] = g
    x_g, w_g = np.zeros_like(x), np.zeros_like(w)
    for i in range(KERNEL):
        for j in range(KERNEL):
            seen = canvas[:, i : i + 2 * height : 2, j : j + 2 * width : 2]
            k, m = KERNEL - 1 - i, KERNEL - 1 - j
            x_g += seen @ w[k, m]
            w_g[k, m] = np.einsum("bhwo,bhwi->oi", seen, x)
    return x_g, w_g


def generate(params: Params, latents: np.ndarray) -> tuple[np.ndarray, Any]:
    """Images, and what the way back needs."""
    dense, first, second = (
        params["generator/linear"],
        params["generator/conv2_d_transpose"],
        params["generator/conv2_d_transpose_1"],
    )
    a0 = (latents @ dense["w"] + dense["b"]).reshape(len(latents), 7, 7, -1)
    h0 = np.maximum(a0, 0)
    a1 = scatter(h0, first["w"]) + first["b"]
    h1 = np.maximum(a1, 0)
    images = np.tanh(scatter(h1, second["w"]) + second["b"])
    return images, (latents, a0, h0, a1, h1, images)


def generate_back(params: Params, kept: Any, g: np.ndarray) -> Params:
    """The gradient of the generator's parameters, from that of its images."""
    latents, a0, h0, a1, h1, images = kept
    g = g * (1 - images**2)
    h1_g, w2 = scatter_back(h1, params["generator/conv2_d_transpose_1"]["w"], g)
    b2 = g.sum((0, 1, 2))
    g = h1_g * (a1 > 0)
    h0_g, w1 = scatter_back(h0, params["generator/conv2_d_transpose"]["w"], g)
    b1 = g.sum((0, 1, 2))
    g = (h0_g * (a0 > 0)).reshape(len(latents), -1)
    return {
        "generator/linear": {"w": latents.T @ g, "b": g.sum(0)},
        "generator/conv2_d_transpose": {"w": w1, "b": b1},
        "generator/conv2_d_transpose_1": {"w": w2, "b": b2},
    }


def layers(params: Params) -> list[str]:
    count = sum("conv2_d" in name for name in params)
    return ["discriminator/conv2_d" + (f"_{k}" if k else "") for k in range(count)]


def discriminate(params: Params, images: np.ndarray) -> tuple[np.ndarray, Any]:
    """Logits [B, 2], and what the way back needs."""
    x, kept = images, []
    for layer, name in enumerate(layers(params)):
        a = convolve(x, params[name]["w"], 1 if layer % 2 else 2) + params[name]["b"]
        kept.append((x, a))
        x = np.where(a > 0, a, 0.2 * a)
    flat = x.reshape(len(x), -1)
    dense = params["discriminator/linear"]
    return flat @ dense["w"] + dense["b"], (kept, flat, x.shape)


def discriminate_back(params: Params, kept: Any, g: np.ndarray) -> tuple[Params, np.ndarray]:
    """Gradients of the discriminator's parameters and of its images, from that of its logits."""
    activations, flat, shape = kept
    found: Params = {"discriminator/linear": {"w": flat.T @ g, "b": g.sum(0)}}
    g = (g @ params["discriminator/linear"]["w"].T).reshape(shape)
    for layer, name in reversed(list(enumerate(layers(params)))):
        x, a = activations[layer]
        g = np.where(a > 0, g, 0.2 * g)
        b_g = g.sum((0, 1, 2))
        g, w_g = convolve_back(x, params[name]["w"], 1 if layer % 2 else 2, g)
        found[name] = {"w": w_g, "b": b_g}
    return found, g


def cross_entropy(logits: np.ndarray, truth: int) -> tuple[float, np.ndarray]:
    """Mean of -log softmax(logits)[truth], and its gradient."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    g = np.exp(log_p)
    g[:, truth] -= 1
    return float(-log_p[:, truth].mean()), g / len(logits)


class Adam:
    """Kingma & Ba 2014, algorithm 1, with its epsilon of 1e-8."""

    def __init__(self, rate: float, b1: float, b2: float) -> None:
        self.rate, self.b1, self.b2 = rate, b1, b2
        self.t = 0
        self.m: dict[tuple[str, str], np.ndarray] = {}
        self.v: dict[tuple[str, str], np.ndarray] = {}

    def update(self, params: Params, gradient: Params) -> Params:
        self.t += 1
        moved: Params = {}
        for name, leaves in params.items():
            moved[name] = {}
            for leaf, value in leaves.items():
                g, at = gradient[name][leaf], (name, leaf)
                self.m[at] = self.b1 * self.m.get(at, 0.0) + (1 - self.b1) * g
                self.v[at] = self.b2 * self.v.get(at, 0.0) + (1 - self.b2) * g**2
                m_hat = self.m[at] / (1 - self.b1**self.t)
                v_hat = self.v[at] / (1 - self.b2**self.t)
                moved[name][leaf] = value - self.rate * m_hat / (np.sqrt(v_hat) + 1e-8)
        return moved
