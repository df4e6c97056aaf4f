"""Chapter: which token looks at which, in each attention head."""

import math

import numpy as np

from page.markup import pair, percent, prose, table, tag
from page.pictures import data_uri


def chapter(run):
    figures = []
    for layer in run.layers:
        square, starts = growing_attention(run, layer)
        labels = [run.label(id) for id in (run.ids + run.new_ids)[: square.shape[1]]]
        heads, tables = [], []
        for head, weights in enumerate(square):
            name = f"Layer {layer + 1}, head {head + 1}"
            drawn = head_picture(weights, labels, starts, name)
            heads.append(tag("figure", drawn, tag("figcaption", f"head {head + 1}")))
            rows = [
                [text, *(f"{weight:.3f}" if weight >= 0 else "" for weight in row)]
                for text, row in zip(labels, weights)
            ]
            tables.append(table(f"{name}: row looks at column", ["", *labels], rows))
        figures += [tag("h3", f"Layer {layer + 1}"), tag("div", *heads, class_="heads")]
        if len(labels) <= 12:
            summary = tag("summary", f"Layer {layer + 1} in numbers")
            figures.append(tag("details", summary, *tables))
    words = [
        "In each layer, every head lets each token gather from itself and from those before it. "
        "Row: the token that looks. Column: the token looked at. The stronger the colour, the "
        "larger the share of that token’s value in what is gathered; the shares of a row add up "
        "to 1. (The colour goes with the square root, so that small shares are seen.) Grey is "
        "later than the token that looks, and hidden from it."
    ]
    if starts:
        words.append(
            "A line marks where a new step began. The rows above the first line were computed "
            "together. Each row below was computed by itself, with the keys and values of the "
            "others from the cache. The last token has no row: the model was not run on it."
        )
    if len(starts) + 1 < len(run.new_ids):
        words.append("Then the window was full. Steps after that are not drawn.")
    return pair(map(prose, words), *figures)


def growing_attention(run, layer):
    """The attention weights of all steps as one square [H, n, n]; and where each step begins."""
    steps, n = [], 0
    for step in range(len(run.new_ids)):
        weights = run.attention(step, layer)
        if weights.shape[2] != n + weights.shape[1]:
            break  # the window was full, and the text went on from a part of it
        steps.append(weights)
        n = weights.shape[2]
    square = np.full((len(steps[0]), n, n), -np.inf)
    start = 0
    for weights in steps:
        _, T, S = weights.shape
        square[:, start:S, :S] = np.where(np.tri(T, S, S - T, dtype=bool), weights, -np.inf)
        start = S
    return square, [weights.shape[2] for weights in steps[:-1]]


def head_picture(square, labels, starts, name):
    """One head's attention as a picture with the tokens at its sides, and lines between steps."""
    cell = 20 if len(labels) <= 12 else 14 if len(labels) <= 24 else 9
    size = min(cell - 1, 12)  # of the letters
    cut = [text if len(text) <= 9 else text[:8] + "…" for text in labels]
    edge = max(map(len, cut)) * size * 0.62 + 6
    side = len(labels) * cell
    colour = np.where(square > 0, np.sqrt(np.abs(square)), square)  # so that small ones are seen
    parts = [tag("image", href=data_uri(colour, 1), x=edge, y=edge, width=side, height=side)]
    for i, text in enumerate(cut):
        middle = edge + (i + 0.5) * cell + size / 3
        parts.append(tag("text", text, x=edge - 5, y=middle, text_anchor="end"))
        turned = f"translate({middle} {edge - 5}) rotate(-90)"
        parts.append(tag("text", text, transform=turned))
    for start in starts:
        parts.append(tag("path", d=f"M{edge} {edge + start * cell}h{side}"))
    said = "; ".join(
        f"“{text}” looks most at “{labels[row.argmax()]}”, {percent(row.max())}"
        for text, row in zip(labels[-12:], square[-12:])
    )
    whole = math.ceil(edge + side + 1)
    return tag(
        "svg", *parts, viewBox=f"0 0 {whole} {whole}", width=whole, height=whole, role="img",
        font_size=size, aria_label=f"{name}. {said}.",
    )
