"""Chapter: how each token's vector grows from layer to layer into an answer."""

import math

import numpy as np

import gpt2
from page.markup import (
    fold,
    joined,
    opening,
    ordinal,
    percent,
    prose,
    sentences,
    short,
    table,
    tag,
)
from page.pictures import full_colour, picture

MANY = 20  # a number this many times the size of its vector is worth a word


def chapter(run):
    V, C = run.params["wte"].shape
    L = run.hparams["n_layer"]
    ideas = [
        prose(
            f"A token’s vector goes through all {L} layers, and each layer adds to it twice. First "
            "comes what attention gathered from this token and those before it. Then comes what "
            "the mlp makes of this one vector alone. (Mlp is short for multi-layer perceptron: a "
            f"table of weights turns the {C} numbers into {4 * C}; a function named gelu moves "
            "negative numbers close to 0 and leaves large positive ones nearly as they are; a "
            f"second table turns the {4 * C} back into {C}. Without gelu between them, the two "
            "tables could be replaced by a single one.) Nothing else ever changes the vector. So "
            "it is a sum that grows from layer to layer. It is known as the *residual stream*, and "
            "in the program it is named x."
        ),
        prose(
            "Attention and the mlp do not read x itself but a copy brought to a standard scale. "
            f"For each token, the {C} numbers of its vector are shifted and divided so that their "
            f"mean is 0 and their variance 1. Then each of the {C} places has two weights of its "
            "own: one multiplies the number, the other is added. (With these, training could make "
            "some places count more than others.) This is the *norm*, or layer norm. x itself is "
            "not changed by it. So attention and the mlp read numbers on the same scale in every "
            "layer, although x grows. (Otherwise scores would grow too, and in later layers "
            "softmax would give nearly all of the attention weight to one token.)"
        ),
        prose(
            "After the last layer comes one more norm, and then the question: what comes next? The "
            f"vector of the last token is compared with each of the {V:,} rows of wte: the numbers "
            "of the two are multiplied pair by pair, and the products are added up. The sum is the "
            "logit of the token whose row it is. So wte is used twice: at the start it turns ids "
            "into vectors, at the end it tells which tokens a vector is like. (Why should the last "
            "vector be like the token that comes next? Because of training: it changed the weights "
            "so that the token that really came next got a higher logit.) Softmax turns the logits "
            "into probabilities, as it turned scores into attention weights."
        ),
        prose(
            "What if the model stopped after fewer layers? The table below answers that: norm, "
            "logits and softmax are applied to x after every layer, and the three likeliest tokens "
            "are given. (This is known as the logit lens.) Only the last row of the table is what "
            "the model says."
        ),
    ]
    reading = prose(
        f"In the pictures a row is a token, and a column is one of the {C} numbers of its vector: "
        "orange if it is above 0, and blue if it is below, as in the first chapter. "
        "“Size” is the root of the mean square of the numbers in the last token’s vector. The "
        "columns “attention” and “mlp” give the size of what each of them added to this vector."
    )
    parts = [
        opening("How do the vectors become an answer?", ideas, findings(run)),
        tag("h3", f"The first step: {tokens_read(run, 0)}"),
        reading, stream_table(run, 0),
    ]
    if len(run.new_ids) > 1:
        parts.append(fold(
            f"The second step: {tokens_read(run, 1)}", stream_table(run, 1), class_="later",
        ))
    return joined(parts)


def tokens_read(run, step):
    n = len(run.stream(step)[0])
    return "one token is read" if n == 1 else f"{n} tokens are read"


# ---- What is worth looking at ---------------------------------------------------------------


def findings(run):
    """Sentences about the first step: what x resembles, where the answer turns up, outliers."""
    stream = run.stream(0)
    last, drawn = run.token(run.ids[-1]), run.token(run.new_ids[0])
    probs = [lens(x[-1], run.params) for x in stream]
    rank = 1 + int((probs[0] > probs[0][run.ids[-1]]).sum())
    found = [sentences(
        "The first row of the table below is taken before any layer. There x is only a row of wte "
        f"plus a row of wpe, so it is still {'most' if rank == 1 else 'much'} like {{}} itself, "
        f"which is the {'' if rank == 1 else ordinal(rank) + ' '}likeliest token there, with "
        f"{percent(probs[0][run.ids[-1]])}.", last,
    )] if rank <= 3 else []
    of_drawn = [p[run.new_ids[0]] for p in probs]
    jump = int(np.diff(of_drawn).argmax())
    end = f" In the end it is {percent(of_drawn[-1])}."
    if of_drawn[jump + 1] <= of_drawn[jump]:
        gain = f"Before any layer it has {percent(of_drawn[0])}, and no layer gives it more.{end}"
    else:
        gain = (f"It gains most in layer {jump + 1}: there its probability goes from "
                f"{percent(of_drawn[jump])} to {percent(of_drawn[jump + 1])}.")
        gain += end * (jump + 1 < run.hparams["n_layer"])
    found.append(sentences(f"{{}} is the token that was {run.chosen}. {gain}", drawn))
    sizes = [size_of(x[-1]) for x in stream]
    found.append(sentences(
        "The numbers in the last token’s vector get larger, as each layer adds to them: their size "
        f"(the root of the mean of their squares) goes from {short(sizes[0], 2)} to "
        f"{short(sizes[-1], 2)}. (The table below also gives the size of "
        "what each layer added. These sizes do not add up to the size of the vector, because "
        "positive and negative numbers partly cancel.)"
    ))
    return found + outlier(run)


def outlier(run):
    """A sentence about the number farthest from 0 that a layer added, where it stands out."""
    added = {
        (part, layer): run.result(part, 0, layer)[0]
        for layer in range(run.hparams["n_layer"]) for part in ("attention", "mlp")
    }
    part, layer = max(added, key=lambda place: np.abs(added[place]).max())
    values = added[part, layer]
    i, j = np.unravel_index(np.abs(values).argmax(), values.shape)
    times = abs(values[i, j]) / np.median(np.abs(values))
    if times < MANY:
        return []
    middle = short(np.median(np.abs(values)), 2)
    return [sentences(
        f"The number farthest from 0 that any layer adds is {short(values[i, j], 3)}. The {part} "
        f"of layer {layer + 1} adds it to the vector of {{}}, at place {j}. For comparison: half "
        f"of all numbers that this {part} adds lie between -{middle} and {middle}. Trained models "
        "often have such outliers. (In the pictures below, you cannot see how far out they are, "
        f"since the full colour begins at ±{short(stream_limit(run, 0), 2)}.)",
        run.token(run.ids_read[i]),
    )]


# ---- The table ------------------------------------------------------------------------------


def size_of(vector):
    """The size of a vector's numbers: the root of the mean of their squares."""
    return math.sqrt(float((vector * vector).mean()))


def lens(x, params):
    """The probability of each token to come next if x [C] were the last layer's vector: [V]."""
    normed = gpt2.layer_norm(x[None], **params["ln_f"])
    return gpt2.softmax(gpt2.linear(normed, params["wte"].T))[0]


def stream_limit(run, step):
    """The number that has the full colour in the pictures of a step."""
    return full_colour(np.concatenate(run.stream(step)))


def stream_table(run, step):
    """How the vectors of one step grow, and what the model would say after each layer."""
    stream, limit, drawn = run.stream(step), stream_limit(run, step), run.new_ids[step]
    rows = []
    for i, x in enumerate(stream):
        name, added = "before layer 1", ["–", "–"]
        if i > 0:
            name = f"after layer {i}"
            results = [run.result(part, step, i - 1)[0, -1] for part in ("attention", "mlp")]
            added = [short(size_of(result), 3) for result in results]
        probs = lens(x[-1], run.params)
        best = probs.argsort()[::-1][:3]
        likeliest = [joined([run.token(id), tag("small", percent(probs[id]))]) for id in best]
        image = tag("td", picture(x, "x", limit, most_pixels=400), class_="wide", data_head="x")
        rows.append([name, image, short(size_of(x[-1]), 3), *added, *likeliest,
                     percent(probs[drawn])])
    head = ["", "x", "size", "attention", "mlp", "likeliest", "second", "third",
            joined([run.token(drawn), f" ({run.chosen})"])]
    return table(f"Step {step + 1}", head, rows, "cards stream hidden-caption")
