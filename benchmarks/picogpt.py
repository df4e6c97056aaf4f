"""GPT-2 computed as picoGPT (github.com/jaymody/picoGPT) computes it, for comparison.

There is no cache, so the whole text is computed again for each new token. The heads are computed
one by one, every layer makes a mask of -1e10, gelu computes x**3 as a power, and there are logits
at every position. np.sqrt returns a float64 number. With NumPy 2, such a number turns each array
that it meets into float64. From then on, each product first makes a float64 copy of its weights.
"""

import numpy as np


def generate(ids, params, n_head, n_tokens):
    """The next n_tokens ids, each the one with the largest logit."""
    text = list(ids)
    for _ in range(n_tokens):
        text.append(int(logits_of(text, **params, n_head=n_head)[-1].argmax()))
    return text[len(ids) :]


def logits_of(ids, wte, wpe, blocks, ln_f, n_head):
    """The logits [T, V] after each of the T ids."""
    x = wte[ids] + wpe[: len(ids)]
    for layer in blocks:
        qkv = linear(norm(x, **layer["ln_1"]), **layer["attn"]["c_attn"])
        q, k, v = [np.split(part, n_head, axis=-1) for part in np.split(qkv, 3, axis=-1)]
        heads = [head(*one) for one in zip(q, k, v)]
        x = x + linear(np.hstack(heads), **layer["attn"]["c_proj"])
        y = gelu(linear(norm(x, **layer["ln_2"]), **layer["mlp"]["c_fc"]))
        x = x + linear(y, **layer["mlp"]["c_proj"])
    return norm(x, **ln_f) @ wte.T


def head(q, k, v):
    mask = (1 - np.tri(len(q), dtype=np.float32)) * -1e10
    return softmax(q @ k.T / np.sqrt(q.shape[-1]) + mask) @ v


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def softmax(x):
    exps = np.exp(x - x.max(axis=-1, keepdims=True))
    return exps / exps.sum(axis=-1, keepdims=True)


def norm(x, g, b):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return g * (x - mean) / np.sqrt(variance + 1e-5) + b


def linear(x, w, b):
    return x @ w + b
