"""Chapter: the text, cut into tokens."""

from page.markup import pair, prose, tag


def chapter(run):
    chips = []
    for position, id in enumerate(run.ids + run.new_ids):
        is_new = {"class_": "new"} if position >= len(run.ids) else {}
        chips.append(tag("li", run.token(id), tag("small", id), **is_new))
    words = prose(
        "A token is a run of bytes that was frequent in the training text: a word, a piece of one, "
        "or a single byte. The model knows it only by its number, its id. First come the tokens "
        f"of the prompt, {len(run.ids)}, then, in colour, the {len(run.new_ids)} that were added."
    )
    signs = prose(
        "In a token · stands for a space, ↵ for the end of a line, ⇥ for a tab, and \\xf0 or the "
        "like for what cannot be shown: a byte that is only a part of a character, or an invisible "
        "character."
    )
    tokens = tag("ol", *chips, class_="tokens")
    return pair([words, signs], tokens)
