"""Chapter: how the text becomes vectors, and the whole way to the next token."""

import re

from page.markup import count, joined, listed, opening, prose, sentences, table, tag
from page.pictures import full_colour, picture, scale
from page.quoting import readable

ROWS = 4  # how many tokens' vectors are drawn


def chapter(run):
    V, C = run.params["wte"].shape
    ideas = [
        prose(
            "Not letters. First, the file encoder.py cuts the text into *tokens*: words, parts of "
            "words, and punctuation marks, often with the space in front of them. The list of all "
            f"tokens is the *vocabulary*; this model’s vocabulary has {V:,} tokens. A word that is "
            "not in the vocabulary is put together from several tokens. A token’s number in the "
            "vocabulary is its *id*, and the id is all that the model is given."
        ),
        prose(
            "One number says little about a word. So the model has a *vector* for each token: a "
            f"list of {C} numbers, its *embedding*. The embeddings are the rows of a table named "
            "*wte*, and an id is the number of a row. A token’s embedding is the same wherever the "
            "token stands. But “the dog bites the man” has the same tokens as “the man bites the "
            "dog”. In the next chapter, each token will gather something from itself and the "
            "tokens before it, and add it up. A sum does not depend on the order of what is added. "
            "So each token’s vector itself has to say where the token stands. For this, the model "
            "adds a second vector to it: a row of a table named *wpe*, chosen by the token’s "
            f"position. The table has {run.hparams['n_ctx']:,} rows, so the model can read no more "
            "tokens than that at a time."
        ),
        prose(
            "Who filled in the tables? Nobody did: *training* found their numbers. The model was "
            "shown a great deal of text and had to guess each next token from those before it. "
            "After the guesses, all its numbers were changed a little, so that it would guess "
            "better. The numbers that a "
            "model has learned in this way are its *weights*. In this run they stay as they are."
        ),
    ]
    signs = prose(
        "In a token · stands for a space, ↵ for the end of a line, ⇥ for a tab. A rare character "
        "may be cut into several tokens: then something like \\xf0 stands for one of its bytes. "
        "Something like \\u200d stands for an invisible character."
    )
    return tag(
        "div",
        opening("What does the model read?", ideas, findings(run)),
        chips(run), signs,
        tag("h3", "From ids to vectors"), colours(run), vectors(run),
        tag("h3", "The whole way to one new token"), way(run),
    )


def colours(run):
    """How to read a picture of a vector, for the first pictures on the page."""
    words = prose(
        f"Each picture below is a vector: a cell for each of its {run.hparams['n_embd']} numbers, "
        "in lines of 64. A cell is orange if its number is above 0 and blue if it is below. The "
        "stronger the colour, the farther the number is from 0. All pictures of one table have "
        "the same scale of colours. Numbers beyond the ends of this scale (at most about 2% of "
        "all) have the full colour."
    )
    return joined([words, scale()])


def chips(run):
    """The tokens of the text with their ids, as a list."""
    items = []
    for position, id in enumerate(run.ids + run.new_ids):
        is_new = {"class_": "new"} if position >= len(run.ids) else {}
        items.append(tag("li", run.token(id), tag("small", id), **is_new))
    return tag("ol", *items, class_="tokens")


def findings(run):
    added = f"The model added {count(len(run.new_ids), 'token')}, in colour"
    added += ", one at a time." if len(run.new_ids) > 1 else "."
    if run.options["prompt"]:
        found = [sentences(
            f"The prompt, the text that was given, is {count(len(run.ids), 'token')} long. {added}"
        )]
    else:
        found = [sentences(
            f"An empty prompt is read as the one token {{}}, which stood between the texts in "
            f"training. {added}", run.token(run.ids[0]),
        )]
    word, parts = split_word(run)
    if word:
        slots = listed(["{}"] * len(parts))
        found.append(sentences(
            f"“{{}}” is not in the vocabulary: it is made of the tokens {slots}. (· stands for a "
            "space.)",
            word, *map(run.token, parts),
        ))
    twice = repeated(run)
    if twice:
        first, second = (i + 1 for i in twice)
        found.append(sentences(
            f"{{}} stands here more than once: first as number {first}, then as number {second}. "
            "In the table below it has the same row of wte each time, but another row of wpe, and "
            "so another sum.",
            run.token(run.ids_read[twice[0]]),
        ))
    else:
        found.append(sentences(
            "In the table below, the third picture of each row is the sum of the two before it. "
            "This sum, named `x` in the program, is what the model works on from here."
        ))
    return found


def split_word(run):
    """The first word of the prompt that is more than one token, and its ids; else "" and []."""
    for word in re.findall(r" ?[^\W\d_]+", run.options["prompt"]):
        parts = run.encoder.encode(word)
        starts = range(len(run.ids))
        if len(parts) > 1 and any(run.ids[i : i + len(parts)] == parts for i in starts):
            return readable(word), parts
    return "", []


def repeated(run):
    """The first two places of a token that the model read more than once, [] if there is none."""
    for i, id in enumerate(run.ids_read):
        if id in run.ids_read[:i]:
            return [run.ids_read.index(id), i]
    return []


def vectors(run):
    """A few tokens: their rows of wte and wpe, and the sum."""
    places = list(dict.fromkeys([*repeated(run), *range(len(run.ids_read))]))
    shown = sorted(places[:ROWS])
    wte, wpe = run.params["wte"], run.params["wpe"]
    limit = full_colour(wte[[run.ids_read[i] for i in shown]] + wpe[shown])
    rows = []
    for i in shown:
        id = run.ids_read[i]
        pictures = [
            tag("td", picture(vector, name, limit), data_head=name)
            for name, vector in (
                (f"wte[{id}]", wte[id]), (f"wpe[{i}]", wpe[i]), ("sum", wte[id] + wpe[i])
            )
        ]
        rows.append([run.token(id), str(id), str(i), *pictures])
    head = ["token", "id", "position", "wte[id]", "wpe[position]", "sum"]
    return table("Two vectors are added for each token", head, rows, "cards vectors")


def way(run):
    """All that happens for one new token, from the text to the text, in this run's numbers."""
    T, C, L = len(run.ids), run.hparams["n_embd"], run.hparams["n_layer"]
    ids = ", ".join(map(str, run.ids[:8])) + (", …" if T > 8 else "")
    vectors = count(T, "vector")
    steps = [
        (count(T, "id"), ids, "The text, cut into tokens."),
        (f"{vectors} of {C} numbers", f"x [1, {T}, {C}]",
         "For each id, its row of `wte` plus the row of `wpe` for its position. The shape "
         f"[1, {T}, {C}] says: 1 text, {count(T, 'token')}, {C} numbers for each."),
        (f"{vectors} of {C} numbers", f"x [1, {T}, {C}]",
         f"{L} *layers* follow, one after the other. In each, *attention* lets each vector gather "
         "from itself and the vectors before it, and then the *mlp* works on each vector by "
         "itself. What attention and the mlp find is added to the vector. (See the next two "
         "chapters.)"),
        (f"{run.hparams['n_vocab']:,} numbers", f"logits [1, {run.hparams['n_vocab']}]",
         "The vector of the last token is compared with the row of `wte` of every token in the "
         "vocabulary. (Only the last vector is used, because only the token after the last one is "
         "unknown.) This gives a number for each token, its *logit*: the higher, the likelier the "
         "token is to come next. (See “The vectors, layer by layer”.)"),
        ("1 id", str(run.new_ids[0]),
         ("The token {} is drawn. (A higher logit makes a token likelier to be drawn.)"
          if run.chosen == "drawn" else "The token {} has the highest logit, and is taken.")
         + " It is put at the end of the text, and the next step reads it. (See “Why this word "
         "and not that one”.)"),
    ]
    items = []
    for what, value, how in steps:
        slot = [run.token(run.new_ids[0])] if "{}" in how else []
        items.append(tag("li", tag("span", sentences(how, *slot)), tag("code", value),
                         tag("small", what)))
    return tag("ol", *items, class_="way")
