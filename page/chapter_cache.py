"""Chapter: what the cache saves."""

import math

import numpy as np

import gpt2
from page.markup import pair, prose, short, table
from page.run import step_of


def chapter(run):
    """What the second step did not have to compute again."""
    if not run.is_cached:
        return prose("No second step went on from the cache of the first.")
    counts = [work(run, step) for step in range(2)]
    names = ("tokens given, T", "tokens so far, S", "multiplications in linear",
             "multiplications in attention")
    rows = [[name, *(f"{count[i]:,}" for count in counts)] for i, name in enumerate(names)]
    ids = np.array([run.ids + run.new_ids[:1]])
    whole, _ = gpt2.gpt2(ids, **run.params, n_head=run.hparams["n_head"])
    logits = run.find("sample", 1).first_argument.value[0]
    L, C = run.hparams["n_layer"], run.hparams["n_embd"]
    words = (
        "The first step reads the whole prompt. The second is given one token, the one just "
        "drawn, and finds the keys and values of all others in the cache. Keys and values depend "
        "on no later token, so they are still right.",
        f"The cache keeps 2 × {L} × {C} numbers for each token: a key and a value of {C} numbers "
        f"in each of {L} layers, {8 * L * C:,} bytes.",
        f"Without the cache, with all {ids.size} tokens given at once, the second step gives the "
        "same logits but for rounding: none differs by more than "
        f"{short(np.abs(whole - logits).max(), 2)}, where the largest is {short(logits.max())}.",
    )
    figure = table("Work of two steps", ["", "first step", "second step"], rows, "work")
    return pair(map(prose, words), figure)


def work(run, step):
    """T, S and the products of two numbers in one step, counted from the shapes of its calls."""
    n_head, T, S = run.attention(step, 0).shape
    D = run.hparams["n_embd"] // n_head
    in_linear = sum(
        math.prod(call.first_argument.shape) * call.returned.shape[-1]
        for call in run.calls
        if call.function == "linear" and step_of(call) == step
    )
    return T, S, in_linear, run.hparams["n_layer"] * n_head * T * S * D * 2
