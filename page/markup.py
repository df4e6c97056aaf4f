"""Small helpers that build HTML: tags, tables, paragraphs, and numbers as text."""

import html


class Markup(str):
    """Text that is HTML already; any other text is escaped on its way into a tag."""


def tag(element, /, *children, **attributes):
    """An HTML element. Attributes: class_ stands for class, aria_label for aria-label."""
    words = [f"<{element}"]
    for key, value in attributes.items():
        words.append(f'{key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"')
    if element in ("img", "input", "link", "meta", "image", "path"):
        return Markup(" ".join(words) + "/>")
    return Markup(f"{' '.join(words)}>{joined(children)}</{element}>")


def joined(children):
    """The HTML of several children one after the other."""
    return Markup("".join(
        child if isinstance(child, Markup) else html.escape(str(child), quote=False)
        for child in children
    ))


def table(caption, head, rows, class_=""):
    """A table that scrolls by itself where it is too wide. The first cell of a row names it."""
    columns = tag("tr", *(tag("th", cell, scope="col") for cell in head))
    lines = []
    for first, *cells in rows:
        cells = [cell if cell.startswith("<td") else tag("td", cell) for cell in cells]
        lines.append(tag("tr", tag("th", first, scope="row"), *cells))
    made = tag("table", tag("caption", caption), tag("thead", columns), tag("tbody", *lines))
    return tag("div", made, class_="scroll " + class_, tabindex=0, role="group",
               aria_label=caption)


def pair(words, *figures):
    """Words, and beside them what they are about."""
    return tag("div", tag("div", *words), tag("div", *figures), class_="pair")


def prose(*parts):
    return tag("p", *parts, class_="prose")



def label(token):
    """The bytes of a token as a reader can see them; the page explains the signs."""
    marks = {" ": "·", "\n": "↵", "\t": "⇥"}
    text = token.decode(errors="backslashreplace")
    return "".join(marks.get(c) or (c if c.isprintable() else ascii(c)[1:-1]) for c in text)


def short(value, digits=4):
    """A number in a few digits."""
    return f"{value:.{digits}g}"


def percent(share):
    return f"{100 * share:.1f}%"
