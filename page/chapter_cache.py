"""Chapter: what the cache saves."""

import math

import numpy as np

import gpt2
from page.markup import count, joined, opening, prose, sentences, short, table, tag
from page.run import layer_of, step_of

QUESTION = "Does each new token cost as much as the whole text before it?"


def chapter(run):
    """What the second step did not have to compute again."""
    L, C = run.hparams["n_layer"], run.hparams["n_embd"]
    ideas = [
        prose(
            "No. Because of the causal mask, nothing that the model computed for a token depends "
            "on later tokens. So what was computed stays right when the text grows. A new token’s "
            "queries need the keys and values of all tokens before it, in each layer. These are "
            "kept, in the *cache*. Queries are not kept, because no later token needs them."
        ),
        prose(
            f"For each token the cache keeps 2 × {L} × {C} numbers: in each of {L} layers a key "
            f"and a value, {C} numbers each for all heads together. At 4 bytes a number, that is "
            f"{8 * L * C:,} bytes."
        ),
        prose(
            f"And when the text has filled all {run.hparams['n_ctx']:,} positions? There is no row "
            "of wpe for one more token. Could the oldest token be dropped? Then all others would "
            "stand one position earlier. But their keys and values in the cache were computed for "
            "their old positions. They would all have to be computed again, for each new token. So "
            "the program begins again with an empty cache, and with the last half of the text as "
            "a new prompt. If it kept more than half, it would have to begin again sooner. If it "
            "kept less, the model would know less of its own text."
        ),
    ]
    if not run.is_cached:
        ideas.append(prose("In this run, no second step went on from the cache of the first."))
        return opening(QUESTION, ideas, [])
    counts = [work(run, step) for step in range(2)]
    names = ("tokens read in this step", "tokens so far",
             "multiplications with weights, in the layers",
             "multiplications with weights, for the logits",
             "multiplications in attention (queries with keys, attention weights with values)")
    T, n = len(run.ids), len(run.ids) + 1
    _, _, in_layers, for_logits, in_attention = counts[1]
    counts.append((n, n, n * in_layers, for_logits, n * in_attention))  # without the cache
    rows = [[name, *(f"{count[i]:,}" for count in counts)] for i, name in enumerate(names)]
    ids = np.array([run.ids + run.new_ids[:1]])
    whole, _ = gpt2.gpt2(ids, **run.params, n_head=run.hparams["n_head"])
    logits = run.find("sample", 1).first_argument.value
    findings = [
        sentences(
            f"The first step read {count(T, 'token')}. Then {{}} was new, and the second step read "
            "only this one. Without the cache, it would have to read "
            f"{'both' if T == 1 else f'all {n}'} tokens again, with {n} times as many "
            "multiplications in the layers. (The logits take equally many in each step, since they "
            "are computed for the last token only.)",
            run.token(run.new_ids[0]),
        ),
        sentences(
            f"To test that the cache changes nothing, {'both' if T == 1 else f'all {n}'} "
            "tokens were also given at once, without a cache. The logits are the same but for "
            f"rounding: the largest difference is {short(np.abs(whole - logits).max(), 2)}, where "
            f"the largest logit is {short(logits.max())}."
        ),
        sentences(
            "What does one more token cost, then? Besides the multiplications, every weight of "
            "the model has to be fetched from memory. (That includes all of wte, which the logits "
            "need. But of wpe, the table of positions, only one row is needed.) In a large model, "
            "this fetching takes most of the time of a step that reads one token. It takes equally "
            "long in every such step. Only attention takes longer as the text grows, because each "
            "new token looks at all those before it."
        ),
    ]
    head = ["", "first step", "second step", "second step, without cache"]
    figure = table("Work of two steps", head, rows, "work hidden-caption")
    return joined([opening(QUESTION, ideas, findings), tag("h3", "The work of two steps"), figure])


def work(run, step):
    """T, S and the products of two numbers in one step, counted from the shapes of its calls."""
    n_head, T, S = run.attention(step, 0).shape
    D = run.hparams["n_embd"] // n_head
    in_layers = for_logits = 0
    for call in run.calls:
        if call.function == "linear" and step_of(call) == step:
            n_products = math.prod(call.first_argument.shape) * call.returned.shape[-1]
            if layer_of(call) is None:
                for_logits += n_products
            else:
                in_layers += n_products
    return T, S, in_layers, for_logits, run.hparams["n_layer"] * n_head * T * S * D * 2
