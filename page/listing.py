"""Chapter: gpt2.py line by line, with what each line made beside it."""

import ast
import collections
import io
import re
import tokenize

import numpy as np

from page.markup import Markup, fold, joined, listed, opening, prose, sentences, tag
from page.pictures import data_uri, scale
from page.run import layer_of, step_of
from page.tracer import statements_by_line


def chapter(run):
    buttons = []
    for layer in run.layers:
        checked = {"checked": "checked"} if layer == run.layers[0] else {}
        button = tag("input", type="radio", name="layer", id=f"layer-{layer + 1}", **checked)
        buttons.append(tag("label", button, f" {layer + 1}"))
    chooser = tag("fieldset", tag("legend", "layer shown"), *buttons)
    second = "second step, from the cache" if run.is_cached else "second step"
    names = ["first step", second][: len(run.new_ids)]
    heads = [tag("span", name) for name in names]
    ideas = [
        prose(
            "This is the whole program. Beside each line (in a narrow window, below it) you see "
            "what the line made in this run: the name, the shape and type, the smallest and the "
            "largest number, the mean, and a picture. Single numbers and short arrays are given in "
            "full. The arguments of a function are shown at its head, and what it returned is "
            "named “return”. Click on the name of a function to unfold it."
        ),
        prose(
            "The first step reads the prompt and makes the first new token. "
            + ("The second step reads this one token, with the cache of the first. "
               if run.is_cached else "")
            + ("Later steps go on in the same way and are not shown. "
               if len(run.new_ids) > 2 else "")
            + "The comments give the sizes of OpenAI’s smallest GPT-2, 124M; the numbers beside "
            "the lines are those of this run."
        ),
    ]
    reading = [
        sentences(
            "In a picture, the last axis of the array runs from left to right, and the one before "
            "it runs downwards. If there are more axes, several such panels are drawn, 16 at "
            "most. A single long row is broken into lines."
        ),
        sentences(
            "Each picture has its own scale of colours. “Full colour from ±0.5” means that all "
            "cells with numbers above 0.5 look alike, and so do all with numbers below -0.5. "
            "Together these are about 2% of the cells. In pictures of probabilities, only 1 has "
            "the full colour."
        ),
        sentences(
            "If an array is too large to draw every number, each cell stands for several "
            "neighbours and shows the one that is farthest from 0."
        ),
    ]
    hidden, free = (
        tag("img", src=data_uri(np.array([[value]]), 1), width=28, height=14, alt=name)
        for value, name in ((-np.inf, "grey"), (np.nan, "pale grey"))
    )
    free_means = " free: a place of the cache that is not in use yet"
    legend = scale("\u2003", hidden, " -inf \u2003", free, free_means)
    unfold = tag("button", "Unfold all functions", type="button", id="unfold", hidden="hidden")
    heading = tag("div", tag("div", chooser, unfold), *heads, class_="heading")
    return joined([
        opening("Which line of the program does what?", ideas, reading, "How to read the pictures"),
        legend, heading, Listing(run).html(),
    ])


def times(n):
    return "once" if n == 1 else f"{n} times"


UNFOLDED = {"attention"}  # the functions that are open at first


class Listing:
    """The lines of gpt2.py in order, with the values that they made in a run beside them."""

    def __init__(self, run):
        self.run = run
        with open(run.path, encoding="utf-8") as file:
            source = file.read()
        tree = ast.parse(source)
        self.lines = source.split("\n")
        self.functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
        self.marked = list(highlighted(source, self.functions))
        self.owner = statements_by_line(tree)
        self.start = tree.body[0].end_lineno + 1  # the first line after the docstring

    def html(self):
        """The whole file; each function can be folded, and what is between them cannot."""
        parts, line = [*self.rows(1, self.start, class_="row verbatim")], self.start
        for name, node in self.functions.items():
            parts += [*self.between(line, node.lineno), self.fold(name, node)]
            line = node.end_lineno + 1
        return joined([*parts, *self.between(line, len(self.lines) + 1)])

    def between(self, first, end):
        """Lines outside all functions, where a ruled comment becomes a heading."""
        for line in range(first, end):
            ruled = re.match(r"# -{4} (.*?) -+$", self.lines[line - 1])
            if ruled:
                yield from self.rows(first, line)
                yield tag("h3", ruled[1])
                first = line + 1
        yield from self.rows(first, end)

    def rows(self, first, end, values=(), class_="row"):
        """One row: lines of the program and the values beside them. No row for blank lines."""
        if not any(line.strip("# ") for line in self.lines[first - 1 : end - 1]):
            return
        numbered = (
            tag("span", self.marked[i - 1], "\n", data_n=i, id=f"L{i}") for i in range(first, end)
        )
        columns = [self.column(values, step) for step in (0, 1)] if values else []
        yield tag("div", tag("pre", tag("code", *numbered)), *columns, class_=class_)

    def column(self, values, step):
        """What the lines of a row made in one step, layer by layer."""
        shown = []
        for (made_step, layer), parts in values.items():
            if made_step != step:
                continue
            before = values.get((0, layer), []) if step else []
            old = [name for part in parts if part in before
                   for name in re.findall("<b>(.*?)</b>", part)]
            parts = [part for part in parts if part not in before]
            if old:
                parts.append(tag("div", tag("i", "as in the first step: ", Markup(", ".join(old))),
                                 class_="value"))
            kind = {} if layer is None else {"class_": f"layer layer-{layer + 1}"}
            shown.append(tag("div", *parts, **kind))
        name = ("first step", "second step")[step]
        return tag("div", *shown, class_="seen", role="group", aria_label=name)

    def fold(self, name, node):
        """A function that can be unfolded; its title says how often it was called."""
        values = collections.defaultdict(lambda: collections.defaultdict(list))
        for inner in ast.walk(node):
            if isinstance(inner, ast.FunctionDef):
                self.collect(inner.name, values)
        rows, line = [], node.lineno
        for start in sorted(values):
            end = last_line(self.owner[start]) + 1
            rows += [*self.rows(line, start), *self.rows(start, end, values[start])]
            line = end
        rows += self.rows(line, node.end_lineno + 1)
        title = joined([tag("h4", name), tag("span", *self.counted(name))])
        return fold(title, *rows, is_open=name in UNFOLDED, id=name, class_="function")

    def collect(self, name, values):
        """Adds the HTML of what a function's calls made to the lists values[line][step, layer].

        If a function was called several times in a step and a layer, the first call is shown. If
        layers call it, its calls from elsewhere are not shown.
        """
        calls = [call for call in self.run.calls if call.function == name]
        in_layers = any(layer_of(call) is not None for call in calls)
        taken = set()
        for call in calls:
            step, layer = step_of(call), layer_of(call)
            if (step, layer) in taken or in_layers and layer is None:
                continue
            taken.add((step, layer))
            made = [(line, name) for line, name, _ in call.made]
            for i, (line, _, seen) in enumerate(call.made):
                nth = made[:i].count(made[i])
                place = (step or 0, layer)
                if name == "generate":  # its loop makes the steps
                    place = (nth, None)
                elif name == "gpt2" and made.count(made[i]) > 1:  # its loop goes through layers
                    place = (step, nth)
                if place[0] < 2 and place[1] in (None, *self.run.layers) and seen.shown:
                    values[line][place].append(seen.shown)

    def counted(self, name):
        """How often a function was called and by whom, and which of the calls is shown."""
        calls = [call for call in self.run.calls if call.function == name]
        if not calls:
            return ["not called in this run"]
        if step_of(calls[0]) is None:
            return [f"called {times(len(calls))}"]
        first = [call for call in calls if step_of(call) == 0]
        callers = collections.Counter(call.caller.function for call in first)
        if len(first) == 1:
            return [f"called once in each step, by {first[0].caller.function}"]
        link = tag("a", f"line {first[0].line}", href=f"#L{first[0].line}")
        words = f"by {first[0].caller.function}"
        if len(first) == len({layer_of(call) for call in first} - {None}):
            return [f"called once in each layer, {words}, from ", link]
        if len(callers) > 1:
            words = listed([f"{times(n)} by {caller}" for caller, n in callers.items()])
        which = "the first call in each layer" if layer_of(first[0]) is not None else "the first"
        return [f"called {len(first)} times in the first step, {words}; shown is {which}, from ",
                link]


def highlighted(source, functions):
    """Yields each line of a program as HTML, with comments marked and functions linked."""
    lines = source.split("\n")
    marks, before = [[] for _ in lines], ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        (first, start), (last, end), text = token.start, token.end, token.string
        kind = None
        if token.type == tokenize.COMMENT:
            kind = {"class_": "shape" if text.startswith("# [") else "comment"}
        elif token.type == tokenize.STRING and text.startswith('"""'):
            kind = {"class_": "comment"}
        elif text in functions and before != "def":
            kind = {"href": f"#{text}"}
        for i in range(first, last + 1) if kind else ():
            stop = end if i == last else len(lines[i - 1])
            marks[i - 1].append((start if i == first else 0, stop, kind))
        before = text

    for line, line_marks in zip(lines, marks):
        parts, done = [], 0
        for start, stop, kind in line_marks:
            marked = tag("a" if "href" in kind else "span", line[start:stop], **kind)
            parts += [line[done:start], marked]
            done = stop
        yield joined([*parts, line[done:]])


def last_line(statement):
    """The last line of a statement's head: what it makes stands beside its lines up to there."""
    if isinstance(statement, ast.FunctionDef):
        first = statement.body[0]  # a docstring stays with the arguments
        return first.end_lineno if isinstance(first, ast.Expr) else first.lineno - 1
    return statement.iter.end_lineno if isinstance(statement, ast.For) else statement.end_lineno
