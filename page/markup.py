"""Small helpers that build HTML: tags, paragraphs, tables, and numbers as text."""

import html
import re


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


def sentences(text, *insertions):
    """The HTML of a text in which *word* is a term that is explained here, and `word` is code.

    Each {} in the text is replaced by the next of the insertions.
    """
    rest, parts = iter(insertions), []
    for part in re.split(r"(\*[^*]+\*|`[^`]+`|\{\})", text):
        if part == "{}":
            parts.append(next(rest))
        elif part[:1] == "*":
            parts.append(tag("dfn", part[1:-1]))
        elif part[:1] == "`":
            parts.append(tag("code", part[1:-1]))
        else:
            parts.append(part)
    return joined(parts)


def prose(text, *insertions):
    """A paragraph; see `sentences`."""
    return tag("p", sentences(text, *insertions), class_="prose")


def opening(question, ideas, findings, heading="Look at this run"):
    """How a chapter begins: its question, the ideas that answer it, and what to look at.

    ideas: paragraphs. findings: sentences about this run, each of them HTML.
    """
    items = [tag("li", finding) for finding in findings]
    look = [tag("div", tag("h3", heading), tag("ul", *items), class_="look")] if items else []
    return joined([
        tag("p", question, class_="question"),
        tag("div", tag("div", *ideas), *look, class_="pair"),
    ])


def table(caption, head, rows, class_=""):
    """A table whose rows each begin with the cell that names the row.

    A cell that begins with <td is taken as it is. Where a window is narrow, the style sheet turns
    the rows of some classes into cards, in which each cell stands beside the head of its column.
    """
    columns = tag("tr", *(tag("th", cell, scope="col") for cell in head))
    names = [re.sub("<.*?>", "", html.unescape(str(cell))) for cell in head]
    lines = []
    for first, *cells in rows:
        cells = [
            cell if cell.startswith("<td") else tag("td", cell, data_head=name)
            for name, cell in zip(names[1:], cells)
        ]
        lines.append(tag("tr", tag("th", first, scope="row"), *cells))
    made = tag("table", tag("caption", caption), tag("thead", columns), tag("tbody", *lines))
    return tag("div", made, class_=f"scroll {class_}".strip(), tabindex=0, role="group",
               aria_label=caption)


def fold(title, *parts, is_open=False, **attributes):
    """Parts of the page that are hidden until their title is clicked."""
    if is_open:
        attributes["open"] = "open"
    return tag("details", tag("summary", title), *parts, **attributes)


def label(token):
    """The bytes of a token as a reader can see them; the page explains the signs."""
    marks = {" ": "·", "\n": "↵", "\t": "⇥"}
    text = token.decode(errors="backslashreplace")
    return "".join(marks.get(c) or (c if c.isprintable() else ascii(c)[1:-1]) for c in text)


def short(value, digits=4):
    """A number in a few digits."""
    return f"{value:.{digits}g}"


def percent(share):
    """A probability or weight as text: 12.3%."""
    return f"{100 * share:.1f}%"


def count(n, noun):
    """How many there are: 1 token, 2 tokens."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def ordinal(n):
    """1st, 2nd, 3rd, 4th, ..."""
    last = n % 10 if n % 100 not in (11, 12, 13) else 0
    ending = {1: "st", 2: "nd", 3: "rd"}.get(last, "th")
    return f"{n}{ending}"


def listed(words):
    """Words as a list in a sentence: a, b and c."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last
