"""Chapter: attention, and which token looks at which in each head."""

import collections
import math

import numpy as np

from page.markup import Markup, fold, opening, percent, prose, sentences, short, table, tag
from page.pictures import data_uri, readable_cells

IN_NUMBERS = 12  # up to this many tokens, pictures are small, and are given as tables too


def chapter(run):
    n_head, C = run.hparams["n_head"], run.hparams["n_embd"]
    D = C // n_head
    squares = {layer: growing_attention(run, layer) for layer in run.layers}
    starts = next(iter(squares.values()))[1]
    found = habits(squares)
    notes = {place: note for place, _, note in found}
    seen = collections.defaultdict(list)  # what there is to say of a head
    for place, sentence in strongest(run, squares) + [(place, words) for place, words, _ in found]:
        seen[place] += [sentence, " "]
    reading = sentences(
        "In a picture of a head, a row is a token that looks, and a column is a token that it "
        "looks at. The stronger the colour, the larger the attention weight. (The colour follows "
        "the square root of the weight, so that small weights can be seen too.) Grey cells are "
        "later tokens, at which no token looks."
        + " In one step, the model is used once and makes one new token. Below a line across the "
        "picture, a new step begins: it reads the token that was just added." * bool(starts)
    )
    findings = [reading] + [
        tag("div", tag("span", tag("b", f"{named(layer, head)}. "), *said),
            drawn(run, *squares[layer], layer, head), class_="shown")
        for (layer, head), said in seen.items()
    ]
    ideas = [
        prose(
            "By attention, and by nothing else: everywhere else in the model, each token’s vector "
            f"is changed on its own. Each layer has {n_head} attention *heads*, which work side "
            "by side and independently."
        ),
        prose(
            "Attention does not read a token’s vector itself, but a copy that was brought to a "
            "standard scale, so that its numbers are neither very large nor very small. (The next "
            "chapter says how.) In each head, three tables of weights turn this copy into three "
            f"short vectors of {D} numbers: the *query* says what the token is looking for, the "
            "*key* says how other tokens can find it, and the *value* is what the token hands over "
            f"when it is found. (To get one of the {D} numbers, each of the {C} numbers of the "
            "copy is multiplied by a weight of its own. These products and one more weight are "
            "added up.)"
        ),
        prose(
            "Now each query is compared with each key. Their numbers are multiplied pair by pair, "
            f"the {D} products are added up, and the sum is divided by √{D}. This is the *score*: "
            "the better the key fits the query, the higher it is. (The product of two numbers with "
            "the same sign is positive, otherwise it is negative. So the sum is high if the two "
            "vectors are alike.)"
        ),
        prose(
            "*Softmax* turns the scores of one query into *attention weights*: it takes e to the "
            "power of each score, and divides each of these powers by their sum. So the weights "
            "are positive and add up to 1. With these attention weights the token gathers the "
            "values: each value is multiplied by its weight, and the products are added up. If a "
            "token has the weight 0.7, for example, 70% of what is gathered is its value. We say "
            "that the token with the query looks at this token."
        ),
        prose(
            f"Why is the sum divided by √{D}? Some of the {D} products are positive and some "
            "negative, so they partly cancel when they are added up. If their signs were random, "
            f"the sum would typically not be {D} times as large as one product, but only √{D} "
            f"times, about {short(math.sqrt(D), 2)}. (This is a rule of statistics.) Without the "
            "division, scores and the differences between them would be that much larger, and "
            "softmax would often give nearly all of the attention weight to one token. Then a "
            "token could hardly combine what several others hand over."
        ),
        prose(
            f"What all heads have gathered is put side by side, {n_head} × {D} = {C} numbers, and "
            "goes through one more table of learned weights."
        ),
        prose(
            "A token sees itself and the tokens before it, never a later one. This is the *causal "
            "mask*: the scores of later tokens are replaced by minus infinity, and so their "
            "weights are 0. In training, a whole text is given at once, and each token’s vector is "
            "used to guess the token after it. Without the mask, a token could simply look at the "
            "next one, which is the answer. When the model writes, no token stands after the last "
            "one. But the mask still matters for the earlier tokens: without it, they would "
            "gather from the tokens after them too. Then their vectors would be of a kind that the "
            "model did not meet in training, and would change with each token that is added."
        ),
    ]
    return tag(
        "div",
        opening("How does a token learn what stands before it?", [*ideas, example(run)],
                findings),
        tag("h3", "All heads"), steps(run, starts),
        *(pictures(run, layer, *square, notes) for layer, square in squares.items()),
    )


def steps(run, starts):
    """What the lines in the pictures mean."""
    parts = []
    if starts:
        parts.append(
            "A line across a picture marks where a new step begins. The rows above the first line "
            "were computed together, when the model read the prompt. Each row below it is a new "
            "token, read in the step after the one that made it. The last token of the text has no "
            "row, because the model did not have to read it."
        )
    if len(starts) + 1 < len(run.new_ids):
        parts.append("When the window was full, the text went on from its last half. The steps "
                     "after that are not drawn.")
    return prose(" ".join(parts)) if parts else ""


# ---- What is worth looking at ---------------------------------------------------------------


def habits(squares):
    """The heads that do most clearly what heads often do, each as (place, sentence, note).

    A place is (layer, head). From the third token on, a row is looked at in three ways: how much
    goes to the token before, to the first token, and to the token itself.
    """
    heads = {
        (layer, head): rows
        for layer, (square, _) in squares.items() for head, rows in enumerate(square)
    }
    kinds = [
        ("the token before", "the token just before", "", lambda rows, i: rows[i, i - 1]),
        ("the first token", "the first token of the text",
         " (Heads often do this when no token fits: the weights of a row have to add up to 1 even "
         "then, and the first token can be seen from every row.)", lambda rows, i: rows[i, 0]),
        ("the token itself", "the token itself", "", lambda rows, i: rows[i, i]),
    ]
    found = []
    if len(next(iter(heads.values()))) < 4:
        return found  # in so short a text, nothing can be called a habit
    for note, where, remark, share in kinds:
        means = {place: np.mean([share(rows, i) for i in range(2, len(rows))])
                 for place, rows in heads.items()}
        place = max(means, key=means.get)
        rows = heads[place]
        if means[place] >= 0.4:
            is_largest = [share(rows, i) == rows[i].max() for i in range(2, len(rows))]
            how_often = f"in {sum(is_largest)} of {len(is_largest)} rows"
            if all(is_largest):
                how_often = "in every row"
            sentence = (f"Of the {len(heads)} heads shown under “All heads”, this one looks most "
                        f"at {where}. From the third row on (in the first two there is little "
                        f"choice), {where} gets {percent(means[place])} on average, and "
                        f"{how_often} the largest weight.{remark}")
            found.append((place, sentences(sentence), note))
    spread = {place: evenness(rows) for place, rows in heads.items()}
    place = max(spread, key=spread.get)
    if spread[place] >= 0.95:
        words = (f"Of these {len(heads)} heads, this one spreads its weight most evenly: what it "
                 "gathers is close to an average of all the tokens that it sees.")
        found.append((place, sentences(words), "most even"))
    return found


def named(layer, head):
    return f"Head {head + 1} of layer {layer + 1}"


def strongest(run, squares):
    """The largest weight that a token gives to another one, not the first: (place, sentence).

    A list, empty where the text is too short.
    """
    largest, where = 0, None
    for layer, (square, _) in squares.items():
        for head, rows in enumerate(square):
            others = np.tril(rows[:, 1:], -2)  # the columns from 1 on, left of the row's own token
            if others.size and others.max() > largest:
                i, j = np.unravel_index(others.argmax(), others.shape)
                largest, where = others[i, j], (layer, head, i, j + 1)
    if where is None:
        return []
    layer, head, i, j = where
    sentence = sentences(
        f"Row {{}}, column {{}}: of all that {{}} gathers, "
        f"{percent(largest)} is the value of {{}}.",
        *(run.token(run.ids_read[place]) for place in (i, j, i, j)),
    )
    return [((layer, head), sentence)]


def evenness(rows):
    """How evenly a head looks: 1 where all weights of a row are the same, 0 where one is 1."""
    entropies = [
        -(row * np.log(np.maximum(row, 1e-30))).sum() / math.log(row.size)
        for row in (rows[i, : i + 1] for i in range(1, len(rows)))
    ]
    return np.mean(entropies)


# ---- One row, worked out --------------------------------------------------------------------


def example(run):
    """How the attention weights of one row come from its scores, as a table."""
    T = len(run.ids)
    if T < 3:
        return Markup()
    row = T - 2  # so that there is a later token, which is masked
    places = range(max(0, T - 8), T)
    layer, head = max(
        ((layer, head) for layer in run.layers for head in range(run.hparams["n_head"])),
        key=lambda place: run.attention(0, place[0])[place[1], row, 1:].max(),
    )
    call = run.find("attention", 0, layer)
    scores, weights = (
        call.summaries(name)[0].value[0, head, row] for name in ("scores", "weights")
    )
    largest = scores[: row + 1].max()
    rows = []
    for i in places:
        is_hidden = i > row
        masked = -np.inf if is_hidden else scores[i]
        power = 0 if is_hidden else math.exp(scores[i] - largest)
        rows.append([run.token(run.ids[i]), short(scores[i], 3), short(masked, 3),
                     f"{power:.3f}", f"{weights[i]:.3f}"])
    total = np.exp(scores[: row + 1] - largest).sum()
    words = prose(
        f"Here the token {{}} looks, in {named(layer, head).lower()}. Each line of the table is a "
        "token that it might look at. Softmax takes the powers of e. Before that, it subtracts the "
        "largest score from every score, so that no power gets too large. (This divides every "
        "power by the same number, so it does not change the weights.) The powers add up to "
        f"{total:.3f}; each divided by this sum is a weight. Later tokens of the prompt have a "
        "score too, but the mask hides it. (All numbers are rounded.)",
        run.token(run.ids[row]),
    )
    head = ["looks at", "score", "after the mask", "e^(masked − largest)", "weight"]
    caption = f"Scores and weights of “{run.label(run.ids[row])}”"
    return tag("div", tag("h3", "The attention weights of one token"), words,
               table(caption, head, rows, "work hidden-caption"))


# ---- The pictures ---------------------------------------------------------------------------


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


def pictures(run, layer, square, starts, notes):
    """The heads of one layer, two by two, so that none stands in a row alone; and as tables.

    notes: what to say of a head under its picture, dict (layer, head) -> str.
    """
    labels = [run.label(id) for id in run.ids_read[: square.shape[1]]]
    figures, tables = [], []
    for head, weights in enumerate(square):
        name = f"Layer {layer + 1}, head {head + 1}"
        note = notes.get((layer, head))
        caption = f"head {head + 1}" + f": {note}" * bool(note)
        picture = drawn(run, square, starts, layer, head)
        figures.append(tag("figure", picture, tag("figcaption", caption)))
        rows = [
            [text, *(f"{weight:.3f}" if weight >= 0 else "" for weight in row)]
            for text, row in zip(labels, weights)
        ]
        tables.append(table(f"{name}: row looks at column", ["", *labels], rows))
    twos = [tag("div", *figures[i : i + 2]) for i in range(0, len(figures), 2)]
    is_small = len(labels) <= IN_NUMBERS
    parts = [
        tag("h4", f"Layer {layer + 1}"),
        tag("div", *twos, class_="heads small" if is_small else "heads"),
    ]
    if is_small:
        parts.append(fold(f"Layer {layer + 1} in numbers", *tables))
    return tag("div", *parts)


def drawn(run, squares, starts, layer, head):
    """One head's attention as a picture with the tokens at its sides, and lines between steps."""
    square, name = squares[head], f"Layer {layer + 1}, head {head + 1}"
    labels = [run.label(id) for id in run.ids_read[: len(square)]]
    cell = 26 if len(labels) <= 8 else 20 if len(labels) <= 12 else 14 if len(labels) <= 24 else 9
    size = min(cell - 1, 12)  # of the letters
    cut = [text if len(text) <= 9 else text[:8] + "…" for text in labels]
    edge = max(map(len, cut)) * size * 0.62 + 6
    side = len(labels) * cell
    colour = np.where(square > 0, np.sqrt(np.abs(square)), square)  # so that small ones are seen
    cells = readable_cells(square, name, square.shape, (*square.shape, 1))
    parts = [tag("image", href=data_uri(colour, 1), x=edge, y=edge, width=side, height=side,
                 data_labels=" ".join(labels), **cells)]
    for i, text in enumerate(cut):
        middle = edge + (i + 0.5) * cell + size / 3
        parts.append(tag("text", text, x=edge - 5, y=middle, text_anchor="end"))
        if len(text) == 1:  # a comma on its side would not be known
            parts.append(tag("text", text, x=middle - size / 3, y=edge - 5, text_anchor="middle"))
        else:
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
