"""Chapter: how each token's vector grows from layer to layer."""

import math

import numpy as np

import gpt2
from page.markup import joined, pair, percent, prose, short, table, tag
from page.pictures import as_matrix, full_colour, picture


def chapter(run):
    words = (
        "Each token’s vector goes through all layers, and attention and mlp of each layer add to "
        f"it. A row is a token, a column one of the {run.hparams['n_embd']} numbers of its "
        "vector; all pictures of a table share one scale of colour. “Size” is that of the last "
        "token’s vector, the root of the mean square of its numbers; then come the sizes of what "
        "attention and mlp added to it.",
        "What if the model stopped there? On the right the final norm, and the comparison with "
        "every token’s vector, are applied to x as it is after each layer (the “logit lens”). "
        "After the last layer this is the model’s own answer. The first row compares wte with "
        "little but itself: x is there a row of wte with a row of wpe added.",
    )
    tables = [stream_table(run, step) for step in range(min(2, len(run.new_ids)))]
    return pair(map(prose, words), *tables)


def stream_table(run, step):
    """How the vectors of one step grow, and what the model would say after each layer."""
    stream = run.stream(step)
    limit = full_colour(as_matrix(np.concatenate(stream)))
    drawn = run.new_ids[step]
    rows = []
    for i, x in enumerate(stream):
        name, added = "wte + wpe", ["", ""]
        if i > 0:
            name = f"layer {i}"
            results = [run.result(part, step, i - 1)[0, -1] for part in ("attention", "mlp")]
            added = [short(size_of(result), 3) for result in results]
        probs = lens(x[-1], run.params)
        best = probs.argsort()[::-1][:3]
        likeliest = [tag("td", run.token(id), tag("small", percent(probs[id]))) for id in best]
        image = tag("td", picture(x, f"picture of x after {name}", limit))
        rows.append([name, image, short(size_of(x[-1]), 3), *added, *likeliest,
                     percent(probs[drawn])])
    head = ["x after", "", "size", "attention", "mlp", "likeliest", "second", "third",
            joined([run.token(drawn), " drawn"])]
    tokens = f"{len(stream[0])} tokens" if len(stream[0]) > 1 else "one token"
    return table(f"Step {step + 1}: {tokens}", head, rows, "stream")


def size_of(vector):
    """The size of a vector's numbers: the root of the mean of their squares."""
    return math.sqrt(float((vector * vector).mean()))


def lens(x, params):
    """The probability of each token to come next if x [C] were the last layer's vector: [V]."""
    normed = gpt2.layer_norm(x[None], **params["ln_f"])
    return gpt2.softmax(gpt2.linear(normed, params["wte"].T))[0]
