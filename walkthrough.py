"""Writes walkthrough.html: gpt2.py, and beside each of its lines what it made of your prompt.

    python walkthrough.py "The king said"
    python walkthrough.py "The king said" --model_size 124M --layer 1,6,12

The page is made by running gpt2.py itself while Python tells a tracer of every line that runs.
So there is no second model here that could differ from the first. To read in this order:

    trace          runs a function and notes what each line of gpt2.py makes
    describe       turns a value into HTML: name, shape, type, range, and a small picture
    Run            one traced run of gpt2.main, and how to find something in it
    ..._chapter    the chapters of the page; the last one is gpt2.py line by line
"""

import ast
import base64
import collections
import contextlib
import dataclasses
import html
import io
import math
import os
import re
import shlex
import struct
import sys
import tokenize
import zlib
from unittest import mock

import numpy as np

import cli
import gpt2
import utils

MAX_TOKENS = 64  # of a prompt: the page shows each of them many times
MAX_NEW_TOKENS = 32

HELP = """\
usage: python walkthrough.py "PROMPT" [--OPTION VALUE ...]

Runs gpt2.py and writes a web page that shows what each of its lines made of PROMPT.

  --output {output}
      The file to write. It needs no network and no other file.
  --layer LAYERS
      Which layers to show in full: 1,6,12 for example, or all. Default: all of a model with up
      to six, else the first and the last.
  --model_size {model_size}
      tiny, which is there already; 124M, 355M, 774M or 1558M; or a folder in models_dir.
  --n_tokens_to_generate {n_tokens_to_generate}
  --temperature {temperature}, --top_k {top_k}, --top_p {top_p}, --seed {seed}
  --models_dir DIR
      As in gpt2.py, whose --help explains them. --temperature 0 leaves the other three idle.
"""

# ---- The tracer ----------------------------------------------------------------------------


@dataclasses.dataclass(eq=False)
class Call:
    """One call of a function: who called it, and what its lines made, in order."""

    function: str
    caller: "Call | None"
    line: int  # in the caller, 0 where there is none
    nth: int  # how many calls of the same function the same caller had made before
    made: list = dataclasses.field(default_factory=list)  # (line, name, summary)
    running: "ast.stmt | None" = None  # the statement that runs now
    returning: "ast.Return | None" = None  # the return statement that was reached

    def summaries(self, name):
        """The summaries of all values that got this name."""
        return [summary for _, made_name, summary in self.made if made_name == name]

    @property
    def first_argument(self):
        return self.made[0][2]

    @property
    def returned(self):
        return self.summaries("return")[0]


def statements_by_line(tree):
    """Which statement each line belongs to: dict line -> ast.stmt, the innermost.

    Of one with a body, such as `for`, only the lines before its body are its own.
    """
    owner = {}
    for node in ast.walk(tree):  # from the outside in, so that inner statements win
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno
            owner.update(dict.fromkeys(range(node.lineno, last + 1), node))
    return owner


def target_names(target):
    """The names that are bound, or whose array is changed, by assigning to `target`."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for element in target.elts for name in target_names(element)]
    if isinstance(target, ast.Name):
        return [target.id]
    return target_names(target.value)  # keys[...], *rest


def names_made(statement):
    """The names that a statement binds, or whose array it changes in place."""
    targets = list(getattr(statement, "targets", []))
    if isinstance(statement, (ast.For, ast.AugAssign, ast.AnnAssign)):
        targets.append(statement.target)
    if isinstance(statement, ast.With):
        targets += [item.optional_vars for item in statement.items if item.optional_vars]
    if not hasattr(statement, "body"):
        for node in ast.walk(statement):
            if isinstance(node, ast.keyword) and node.arg == "out":  # np.tanh(y, out=y)
                targets.append(node.value)
            if isinstance(node, ast.NamedExpr):
                targets.append(node.target)
    return list(dict.fromkeys(name for target in targets for name in target_names(target)))


def trace(run, path, summarize):
    """Call run(), and note what the lines of the file at `path` make: a list of Call.

    summarize(call, name, value) is asked for each argument, for each name that a line binds or
    whose array it changes, for what is returned ("return") and yielded ("yield"). It is asked at
    once, as a later line may overwrite the array. None means that there is nothing to note.
    """
    with open(path, encoding="utf-8") as file:
        owner = statements_by_line(ast.parse(file.read()))
    calls, call_of, times = [], {}, collections.Counter()

    def note(call, line, name, value):
        summary = summarize(call, name, value)
        if summary is not None:
            call.made.append((line, name, summary))

    def finish(call, frame, next_line):
        """Note what the statement made that has just run; the next to run is at next_line."""
        made = call.running
        if isinstance(made, ast.For) and not made.lineno < next_line <= made.end_lineno:
            return  # the loop is over, and its names were not bound again
        for name in names_made(made) if made else ():
            if name in frame.f_locals:
                note(call, made.lineno, name, frame.f_locals[name])

    def on_line(frame, event, value):  # "line" comes before a line runs
        call, statement = call_of[frame], owner.get(frame.f_lineno)
        if event == "exception":
            call.running = call.returning = None
        elif event == "line" and statement is not call.running:
            finish(call, frame, frame.f_lineno)
            call.running = statement
            call.returning = statement if isinstance(statement, ast.Return) else call.returning
        elif event == "return":
            if any(isinstance(node, ast.Yield) for node in own_expressions(call.running)):
                note(call, call.running.lineno, "yield", value)
                return on_line
            del call_of[frame]
            finish(call, frame, 0)
            if call.returning:
                note(call, call.returning.lineno, "return", value)
        return on_line

    def on_call(frame, event, _):
        code = frame.f_code
        if code.co_filename != path or code.co_name.startswith("<"):
            return None
        if frame not in call_of:  # else a generator that goes on
            outer = frame.f_back
            while outer and outer not in call_of:
                outer = outer.f_back
            caller, line = call_of.get(outer), outer.f_lineno if outer else 0
            nth = times[caller, code.co_name]
            times[caller, code.co_name] += 1
            call = call_of[frame] = Call(code.co_name, caller, line, nth)
            calls.append(call)
            for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
                note(call, code.co_firstlineno, name, frame.f_locals[name])
        return on_line

    previous = sys.gettrace()
    sys.settrace(on_call)
    try:
        run()
    finally:
        sys.settrace(previous)
    return calls


def own_expressions(statement):
    """The parts of a statement without a body, () for one that has a body or for None."""
    return ast.walk(statement) if statement and not hasattr(statement, "body") else ()


# ---- HTML ----------------------------------------------------------------------------------


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


# ---- A value and its picture ---------------------------------------------------------------

SHADES = 24  # shades on each side of 0
HIDDEN, FREE = 2 * SHADES + 1, 2 * SHADES + 2  # the shades of -inf and of memory not yet used
COLOURS = {"less": (52, 120, 196), "more": (217, 95, 38), "grey": (128, 128, 128)}
WIDTH, HEIGHT = 128, 64  # a picture's most columns and rows


def palette():
    """Red, green, blue and opacity of each shade: clear for 0, so that it suits any background."""
    shades = []
    for level in range(-SHADES, SHADES + 1):
        colour = COLOURS["less" if level < 0 else "more"]
        shades.append((*colour, round(255 * abs(level) / SHADES)))
    return shades + [(*COLOURS["grey"], 80), (*COLOURS["grey"], 30)]


def png(levels):
    """The bytes of a PNG file whose pixels are the shades `levels`, uint8 [rows, columns]."""

    def chunk(kind, data):
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checksum

    rows, columns = levels.shape
    shades = palette()
    lines = np.pad(levels, ((0, 0), (1, 0))).tobytes()  # each begins with a 0: no filter
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", struct.pack(">2I5B", columns, rows, 8, 3, 0, 0, 0)),
            chunk(b"PLTE", bytes(part for shade in shades for part in shade[:3])),
            chunk(b"tRNS", bytes(shade[3] for shade in shades)),
            chunk(b"IDAT", zlib.compress(lines, 9)),
            chunk(b"IEND", b""),
        ]
    )


def data_uri(matrix, limit):
    """The picture of a matrix as the address of an image; full colour from `limit` on."""
    levels = np.rint(SHADES * np.clip(matrix / (limit or 1), -1, 1)) + SHADES
    levels = np.where(np.isnan(matrix), FREE, np.where(np.isneginf(matrix), HIDDEN, levels))
    return "data:image/png;base64," + base64.b64encode(png(levels.astype(np.uint8))).decode()


def thinned(matrix, rows, columns):
    """A matrix of at most that many rows and columns: of a group of cells the farthest from 0."""
    for axis, most in enumerate((rows, columns)):
        if matrix.shape[axis] > most:
            starts = np.linspace(0, matrix.shape[axis], most, endpoint=False).astype(int)
            finite = np.where(np.isneginf(matrix), np.nan, matrix)
            low = np.fmin.reduceat(finite, starts, axis=axis)
            high = np.fmax.reduceat(finite, starts, axis=axis)
            farthest = np.where(-low > high, low, high)
            hidden = np.maximum.reduceat(np.isneginf(matrix), starts, axis=axis)
            matrix = np.where(np.isnan(farthest) & hidden, -np.inf, farthest)
    return matrix


def as_matrix(array):
    """The cells of a picture: the last two axes, with panels side by side for the others."""
    array = np.asarray(array, dtype=np.float32)
    panels = array.reshape(-1, *(1, 1, *array.shape)[-2:])[:16]
    n, rows, columns = panels.shape
    if n == 1 and rows == 1 and columns > WIDTH:  # one long row: in lines, as a text is
        row = thinned(panels[0], 1, WIDTH * HEIGHT // 2)[0]
        return np.pad(row, (0, -row.size % WIDTH)).reshape(-1, WIDTH)
    per_line = min(n, 4)
    lines = math.ceil(n / per_line)
    panels = [thinned(panel, max(HEIGHT // lines, 8), WIDTH // per_line) for panel in panels]
    panels = [np.pad(panel, ((0, 1), (0, 1))) for panel in panels]  # a gap of one cell
    panels += [np.zeros_like(panels[0])] * (per_line * lines - n)
    grid = [np.hstack(panels[i : i + per_line]) for i in range(0, len(panels), per_line)]
    return np.vstack(grid)[:-1, :-1]


def picture(array, alt, limit=None):
    """A small image of an array. limit: the number that gets the full colour."""
    matrix = as_matrix(array)
    rows, columns = matrix.shape
    width = columns * min(max(262 // columns, 1), 12)
    height = rows * min(max(72 // rows, 2), 10)
    source = data_uri(matrix, limit or (1 if adds_up(array) else full_colour(matrix)))
    return tag("img", src=source, alt=alt, width=width, height=height)


def full_colour(matrix):
    """The number that gets the full colour: 2 % of the cells are farther from 0."""
    finite = np.abs(matrix[np.isfinite(matrix)])
    return float(np.quantile(finite, 0.98) or finite.max()) if finite.size else 1.0


def adds_up(array):
    """Whether an array holds probabilities: numbers from 0 that add up to 1 along each row."""
    return array.min() >= 0 and np.allclose(array.sum(axis=-1), 1, atol=1e-3)


def describe(name, value):
    """The HTML of a value: its name, what it is, and what is in it; "" for a function."""
    if isinstance(value, tuple) and any(isinstance(item, (np.ndarray, tuple)) for item in value):
        return joined(describe(f"{name}[{i}]", item) for i, item in enumerate(value))
    if callable(value):
        return Markup()
    if isinstance(value, np.ndarray):
        return tag("div", tag("b", name), " ", tag("i", f"{list(value.shape)} {value.dtype}"), " ",
                   *contents(name, value), class_="value")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        words = f"dict: {', '.join(map(str, value))}"
    elif isinstance(value, list) and not all(isinstance(item, int) for item in value):
        words = f"list of {len(value)} {type(value[0]).__name__}"
    elif name == "models_dir" and value:  # not what the folders of this computer are called
        words = f"= …/{os.path.basename(value)}"
    elif value is None or isinstance(value, (int, float, str, list, tuple, range)):
        words = f"= {cli.shown(value)}"
    else:
        words = type(value).__name__
    return tag("div", tag("b", name), f" {words}", class_="value short")


def contents(name, array):
    """What is in an array: all of it if it is small, else its range, mean and picture."""
    if array.size == 0:
        return ["nothing yet"]
    if array.size <= 6 or array.dtype.kind == "i":
        numbers = [short(n) if array.dtype.kind == "f" else str(n) for n in array.ravel()[:12]]
        return [", ".join(numbers) + (", ..." if array.size > 12 else "")]
    words = "nothing yet"
    used = array[~np.isnan(array)] if np.isnan(array).any() else array
    if array.dtype == bool:
        words = f"{array.sum():,} of {array.size:,} True"
    elif used.size:
        words = f"{short(used.min())} to {short(used.max())}, mean {short(used.mean())}"
    if used.size < array.size:
        words += f"; {array.size - used.size:,} of {array.size:,} free"
    return [tag("span", words), picture(array, f"picture of {name}")]


# ---- One run -------------------------------------------------------------------------------


@dataclasses.dataclass
class Seen:
    """What is kept of a value that a line made."""

    shown: Markup  # "" for what the page does not show beside its line
    shape: "tuple | None"  # None for what is no array
    value: object  # a copy, None where it is not needed


KEPT = {"generate", "sample", "scale_by_temperature", "keep_top_k", "keep_top_p"}
KEPT |= {"block", "attention", "mlp", "softmax"}


def layer_of(call):
    """In which layer, counted from 0, a call was made; None for one outside `block`."""
    while call and call.function != "block":
        call = call.caller
    return call.nth if call else None


def step_of(call):
    """For which new token, counted from 0, a call was made; None for one outside `generate`."""
    while call and not (call.caller and call.caller.function == "generate"):
        call = call.caller
    return call.nth if call else None


class Run:
    """One traced run of gpt2.main, and the model that it ran."""

    def __init__(self, options, encoder, hparams, params, layers):
        """options: for gpt2.main. layers: which to show in full, a list of int from 0."""
        self.options, self.encoder, self.hparams, self.params = options, encoder, hparams, params
        self.layers = layers
        self.path = gpt2.main.__code__.co_filename
        with marked_memory(), contextlib.redirect_stdout(io.StringIO()) as printed:
            self.calls = trace(lambda: gpt2.main(**options), self.path, self.summarize)
        self.text = printed.getvalue().removesuffix("\n")

        generate = self.find("generate")
        self.ids = generate.first_argument.value  # the prompt
        self.new_ids = [int(seen.value[0]) for seen in generate.summaries("yield")]
        n_far = len(self.ids) + 1
        self.is_cached = len(self.new_ids) > 1 and self.attention(1, 0).shape[-1] == n_far

    def summarize(self, call, name, value):
        """What to keep of a value: the HTML only where the page shows it."""
        step, layer = step_of(call), layer_of(call)
        is_shown = (step or 0) < 2 and (layer is None or layer in self.layers)
        shown = describe(name, value) if is_shown else Markup()
        is_kept = call.function in KEPT and isinstance(value, (np.ndarray, list))
        shape = value.shape if isinstance(value, np.ndarray) else None
        return Seen(shown, shape, value.copy() if is_kept else None)

    def find(self, function, step=None, layer=None, caller=None):
        """The first such call, None if there is none."""
        for call in self.calls:
            if (function, step, layer) == (call.function, step_of(call), layer_of(call)):
                if caller in (None, call.caller.function if call.caller else None):
                    return call
        return None

    def result(self, *where, **more):
        """What the call that `find` finds returned."""
        return self.find(*where, **more).returned.value

    def attention(self, step, layer):
        """The attention weights of a layer in a step: [H, T, S]."""
        return self.result("softmax", step, layer, caller="attention")[0]

    def stream(self, step):
        """x before the first layer and after each: a list of L + 1 arrays [T, C]."""
        first = self.find("block", step, 0).first_argument.value[0]
        return [first] + [self.result("block", step, i)[0] for i in range(self.hparams["n_layer"])]

    def label(self, id):
        return label(self.encoder.tokens[id])

    def label_all(self, ids):
        return label(self.encoder.decode_bytes(ids))

    def token(self, id):
        """A token as it stands in the running text of the page."""
        return tag("bdi", self.label(id), class_="token")


@contextlib.contextmanager
def marked_memory():
    """Lets np.empty fill floats with nan, so that the page can tell what was never written."""

    def empty(*args, **kwargs):
        array = true_empty(*args, **kwargs)
        if array.dtype.kind == "f":
            array[...] = np.nan
        return array

    true_empty = np.empty
    with mock.patch.object(np, "empty", empty):
        yield


# ---- The chapters of the page --------------------------------------------------------------


def pair(words, *figures):
    """Words, and beside them what they are about."""
    return tag("div", tag("div", *words), tag("div", *figures), class_="pair")


def prose(*parts):
    return tag("p", *parts, class_="prose")


def tokens_chapter(run):
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


def attention_chapter(run):
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


def size_of(vector):
    """The size of a vector's numbers: the root of the mean of their squares."""
    return math.sqrt(float((vector * vector).mean()))


def lens(x, params):
    """The probability of each token to come next if x [C] were the last layer's vector: [V]."""
    normed = gpt2.layer_norm(x[None], **params["ln_f"])
    return gpt2.softmax(gpt2.linear(normed, params["wte"].T))[0]


def stream_chapter(run):
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


def choices_chapter(run):
    words = prose(
        "The logits give every token of the vocabulary a probability, here those of the ten "
        "likeliest. Each option changes them: temperature below 1 favours the likely, top_k and "
        "top_p take tokens out (–), and what is left adds up to 1 again. Then a random number, "
        "the noise, is added to each tempered logit left, and the token with the largest sum is "
        "drawn. The noise is of the kind (Gumbel’s) that draws each token with just its "
        "probability."
    )
    steps = [choice(run, step) for step in range(len(run.new_ids))]
    return joined([pair([words]), *steps])


def choice(run, step):
    """One drawing: the likeliest tokens, what each option made of them, and which was drawn."""
    sample = run.find("sample", step)
    inner = {call.function: call for call in reversed(run.calls) if call.caller is sample}
    logits = tempered = kept = sample.first_argument.value[0]
    drawn, best = run.new_ids[step], int(logits.argmax())
    columns = {"probability": gpt2.softmax(logits)}
    options = {"scale_by_temperature": "temperature", "keep_top_k": "top_k", "keep_top_p": "top_p"}
    for function, option in options.items():
        if function in inner:
            kept = inner[function].returned.value[0]
            columns[f"{option} {run.options[option]}"] = gpt2.softmax(kept)
    if inner:
        tempered = inner["scale_by_temperature"].returned.value[0]
        noise = sample.summaries("noise")[-1].value[0]

    longest = max(probs.max() for probs in columns.values())
    likeliest = list(logits.argsort(kind="stable")[::-1][:10])
    rows = []
    for id in likeliest + [drawn] * (drawn not in likeliest):
        cells = [str(id), short(logits[id])]
        cells += [bar(probs[id], longest) for probs in columns.values()]
        if inner:
            is_left = not np.isneginf(kept[id])
            total = short(kept[id] + noise[id], 3) if is_left else "–"
            cells += [short(tempered[id], 3), short(noise[id], 3), total]
        mark = tag("strong", " drawn") if id == drawn else ""
        rows.append([joined([run.token(id), mark]), *cells])
    head = ["token", "id", "logit", *columns, *(["tempered", "noise", "sum"] if inner else [])]
    title = joined([f"Token {step + 1}: ", run.token(drawn)])
    words = reason(run, step, best, kept, list(columns.values()))
    return pair([tag("h3", title), words], table(f"Token {step + 1}", head, rows, "choice"))


def reason(run, step, best, kept, columns):
    """Why the token was picked, in a few sentences."""
    before = run.label_all((run.ids + run.new_ids)[: len(run.ids) + step])
    before = before if len(before) <= 24 else "…" + before[-24:]
    drawn = run.new_ids[step]
    words = ["After ", tag("bdi", before, class_="token"), " the likeliest is ",
             run.token(best), f" with {percent(columns[0][best])}. "]
    if len(columns) == 1:
        return prose(*words, "Temperature 0 takes it, and leaves nothing to chance.")
    n_left = int(np.isfinite(kept).sum())
    words.append(f"Of {kept.size:,} tokens {n_left:,} may still be picked. ")
    share = columns[-1]
    if drawn == best:
        words.append(f"Its share is {percent(share[best])} by now, and its sum the largest.")
    else:
        rank = 1 + int((kept > kept[drawn]).sum())
        words += ["The largest sum is that of ", run.token(drawn), f", number {rank} of these: its "
                  f"share is {percent(share[drawn])}, that of the likeliest "
                  f"{percent(share[best])}, but its noise made up for that."]
    return prose(*words)


def bar(share, longest):
    """A table cell with a probability as number and as length."""
    if share == 0:
        return tag("td", "–")
    return tag("td", percent(share), class_="bar", style=f"--share:{100 * share / longest:.0f}%")


def cache_chapter(run):
    """What the second step did not have to compute again."""
    if not run.is_cached:
        return prose("No second step went on from the cache of the first.")
    counts = [work(run, step) for step in range(2)]
    names = ("tokens given, T", "tokens so far, S", "multiplications in linear",
             "multiplications in attention")
    rows = [[name, *(f"{count[i]:,}" for count in counts)] for i, name in enumerate(names)]
    ids = np.array([run.ids + run.new_ids[:1]])
    whole, _ = gpt2.gpt2(ids, **run.params, n_head=run.hparams["n_head"])
    logits = run.find("sample", 1).first_argument.value[0]
    L, C = run.hparams["n_layer"], run.hparams["n_embd"]
    words = (
        "The first step reads the whole prompt. The second is given one token, the one just "
        "drawn, and finds the keys and values of all others in the cache. Keys and values depend "
        "on no later token, so they are still right.",
        f"The cache keeps 2 × {L} × {C} numbers for each token: a key and a value of {C} numbers "
        f"in each of {L} layers, {8 * L * C:,} bytes.",
        f"Without the cache, with all {ids.size} tokens given at once, the second step gives the "
        "same logits but for rounding: none differs by more than "
        f"{short(np.abs(whole - logits).max(), 2)}, where the largest is {short(logits.max())}.",
    )
    figure = table("Work of two steps", ["", "first step", "second step"], rows, "work")
    return pair(map(prose, words), figure)


def work(run, step):
    """T, S and the products of two numbers in one step, counted from the shapes of its calls."""
    n_head, T, S = run.attention(step, 0).shape
    D = run.hparams["n_embd"] // n_head
    in_linear = sum(
        math.prod(call.first_argument.shape) * call.returned.shape[-1]
        for call in run.calls
        if call.function == "linear" and step_of(call) == step
    )
    return T, S, in_linear, run.hparams["n_layer"] * n_head * T * S * D * 2


# ---- gpt2.py, line by line -----------------------------------------------------------------


def highlighted(source, functions):
    """The lines of a program as HTML: comments marked, names of functions linked."""
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
    """Where the lines of a statement end that stand beside its values, before any body."""
    if isinstance(statement, ast.FunctionDef):
        first = statement.body[0]  # a docstring stays with the arguments
        return first.end_lineno if isinstance(first, ast.Expr) else first.lineno - 1
    return statement.iter.end_lineno if isinstance(statement, ast.For) else statement.end_lineno


class Listing:
    """gpt2.py in reading order with the values of a run."""

    def __init__(self, run):
        self.run = run
        with open(run.path, encoding="utf-8") as file:
            source = file.read()
        tree = ast.parse(source)
        self.lines = source.split("\n")
        self.functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
        self.marked = list(highlighted(source, self.functions))
        self.owner = statements_by_line(tree)

    def html(self):
        """The whole file: what stands between functions, and each function in its own fold."""
        parts, line = [], 1
        for name, node in self.functions.items():
            parts += [*self.between(line, node.lineno), self.fold(name, node)]
            line = node.end_lineno + 1
        return joined([*parts, *self.between(line, len(self.lines) + 1)])

    def between(self, first, end):
        """Lines that belong to no function; ruled comments become headings."""
        for line in range(first, end):
            ruled = re.match(r"# -{4} (.*?) -+$", self.lines[line - 1])
            if ruled:
                yield from self.rows(first, line)
                yield tag("h3", ruled[1])
                first = line + 1
        yield from self.rows(first, end)

    def rows(self, first, end, values=()):
        """Lines of the program, with values beside them: one row, none if all lines are blank."""
        if not any(line.strip("# ") for line in self.lines[first - 1 : end - 1]):
            return
        numbered = (
            tag("span", self.marked[i - 1], "\n", data_n=i, id=f"L{i}") for i in range(first, end)
        )
        columns = [self.column(values, step) for step in (0, 1)] if values else []
        yield tag("div", tag("pre", tag("code", *numbered)), *columns, class_="row")

    def column(self, values, step):
        """What lines made in one step, layer by layer."""
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
        """A function: how often it was called, and its lines with what they made."""
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
        summary = tag("summary", tag("h4", name), tag("span", *self.counted(name)))
        return tag("details", summary, *rows, id=name, open="open", class_="function")

    def collect(self, name, values):
        """Put what the calls of a function made into values[line][step, layer]: list of HTML.

        Of the calls in one step and one layer the first is taken, and of a function that layers
        call only those calls.
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
        """How often a function was called, and which call is shown."""
        calls = [call for call in self.run.calls if call.function == name]
        if not calls:
            return ["not called in this run"]
        steps = collections.Counter(step_of(call) for call in calls)
        if None in steps:
            return ["called once" if len(calls) == 1 else f"called {len(calls)} times"]
        if set(steps.values()) == {1}:
            return ["called once in each step"]
        link = tag("a", f"line {calls[0].line}", href=f"#L{calls[0].line}")
        each = " in each layer" if layer_of(calls[0]) is not None else ""
        return [
            f"called {steps[0]} times in the first step, {steps[1]} times in the second; ",
            f"shown is the first call{each}, from ", link,
        ]


def listing_chapter(run):
    buttons = []
    for layer in run.layers:
        checked = {"checked": "checked"} if layer == run.layers[0] else {}
        button = tag("input", type="radio", name="layer", id=f"layer-{layer + 1}", **checked)
        buttons.append(tag("label", button, f" {layer + 1}"))
    chooser = tag("fieldset", tag("legend", "layer shown"), *buttons)
    second = "second step, from the cache" if run.is_cached else "second step"
    heads = [tag("span", text) for text in ("first step", second)]
    words = (
        "This is the program itself. With each line stands what it made: the name, the shape and "
        "type, the range and mean of the numbers (or all of them, where there are few), and a "
        "picture. At the head of a function these are its arguments; “return” is what it "
        "returned. The first step reads the prompt"
        + (", the second one more token." if run.is_cached else "."),
        "In a picture, the last axis runs from left to right and the one before it downwards; "
        "others stand as panels side by side, 16 at most. A single long row is broken into lines. "
        "Of an array too large to be drawn whole, each cell shows, of a few neighbours, the one "
        "farthest from 0. The 2 % of cells farthest from 0 have the full colour; of "
        "probabilities, 1 has.",
    )
    ramp = tag("img", src=data_uri(np.linspace(-1, 1, 2 * SHADES + 1)[None], 1), width=196,
               height=14, alt="blue, clear, orange")
    hidden, free = (
        tag("img", src=data_uri(np.array([[value]]), 1), width=28, height=14, alt=name)
        for value, name in ((-np.inf, "grey"), (np.nan, "pale grey"))
    )
    legend = tag("p", "below 0 ", ramp, " above 0 ", hidden, " -inf ", free,
                 " free: memory that nothing was written to yet", class_="scale")
    columns = tag("div", *map(prose, words), class_="columns")
    heading = tag("div", chooser, *heads, class_="heading")
    return joined([columns, legend, heading, Listing(run).html()])


# ---- The page ------------------------------------------------------------------------------


CHAPTERS = (
    ("text", "The text, cut into tokens", tokens_chapter),
    ("heads", "Who looks at whom", attention_chapter),
    ("layers", "The vectors, layer by layer", stream_chapter),
    ("words", "Why this word and not that one", choices_chapter),
    ("cached", "What the cache saves", cache_chapter),
    ("program", "gpt2.py, line by line", listing_chapter),
)


def page(run):
    """The whole page as text."""
    title = run.label_all(run.ids)
    title = title if len(title) <= 60 else title[:57] + "..."
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"  # no network at all
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("link", rel="icon", href="data:,"),
        tag("title", f"{title} – gpt2.py line by line"),
        tag("style", Markup(STYLE + layer_rules(run.layers))),
    )
    links = [tag("li", tag("a", title, href=f"#{id}")) for id, title, _ in CHAPTERS]
    header = tag(
        "header",
        tag("p", "gpt2.py, line by line, with what each line made of this text", class_="kicker"),
        tag("h1", tag("bdi", readable(run.options["prompt"])), tag("em", readable(run.text))),
        prose("The same text from gpt2.py alone:"),
        tag("pre", tag("code", readable(command(run.options))), class_="command"),
        tag("nav", tag("ol", *links), aria_label="Chapters"),
    )
    chapters = [
        tag("section", tag("h2", title), chapter(run), id=id, aria_label=title)
        for id, title, chapter in CHAPTERS
    ]
    body = tag("body", header, tag("main", *chapters))
    return "<!DOCTYPE html>\n" + tag("html", head, body, lang="en") + "\n"


def layer_rules(layers):
    """The part of the style sheet that shows the values of the chosen layer only."""
    shown = [
        f"body:has(#layer-{i + 1}:checked) .layer-{i + 1} {{ display: block }}" for i in layers
    ]
    return "@supports selector(:has(a)) { .layer { display: none } " + " ".join(shown) + " }"


def command(options):
    """The command line that makes gpt2.py print the same text."""
    prompt = options["prompt"]
    words = [f"--prompt={shlex.quote(prompt)}" if prompt[:1] == "-" else shlex.quote(prompt)]
    for name, value in options.items():
        if name != "prompt" and value is not None:
            words.append(f"--{name} {shlex.quote(str(value))}")
    return "python gpt2.py " + " ".join(words)


def readable(text):
    """A text without the control characters that a page may not hold."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)


STYLE = """
:root {
  color-scheme: light dark; --paper: #fffdf8; --ink: #26231f; --quiet: #6b665d; --rule: #e6e0d4;
  --accent: #b0431a; --wash: rgb(217 95 38 / 0.14); --panel: #f8f4ea;
  --serif: Charter, "Bitstream Charter", "Iowan Old Style", Georgia, Cambria, serif;
  --mono: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root { --paper: #191817; --ink: #e4dfd6; --quiet: #9c958a; --rule: #35322e;
          --accent: #ee8a5a; --wash: rgb(217 95 38 / 0.28); --panel: #24211f }
}
* { box-sizing: border-box }
html { scroll-padding-top: 4rem }
body { margin: 0 auto; padding: 0 clamp(1rem, 3vw, 3rem) 6rem; max-width: 104rem;
       background: var(--paper); color: var(--ink); font: 1.0625rem/1.55 var(--serif) }
a { color: inherit; text-decoration-color: var(--accent); text-underline-offset: 0.2em }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
header { padding: 4rem 0 1rem }
.kicker, nav, small, figcaption, th, legend, label, caption, .scale, .heading, summary span
  { color: var(--quiet); font-size: 0.875rem; font-weight: normal }
h1 { margin: 0.5rem 0 2rem; font-size: clamp(1.75rem, 5vw, 3rem); line-height: 1.2;
     font-weight: normal; white-space: pre-wrap; overflow-wrap: anywhere }
h1 em { font-style: normal; color: var(--accent) }
h2 { margin: 5rem 0 1.25rem; font-size: 1.75rem; font-weight: normal; line-height: 1.2 }
h3 { margin: 2.5rem 0 0.5rem; font-size: 1.125rem; font-weight: 600 }
.prose { max-width: 40rem; margin: 0 0 0.75rem }
.pair { display: grid; grid-template-columns: 22rem minmax(0, 1fr); gap: 0 4rem }
.pair > div > :first-child { margin-top: 0 }
.pair + .pair { margin-top: 2.5rem }
.columns { columns: 2; column-gap: 4rem; max-width: 84rem }
nav ol { display: flex; flex-wrap: wrap; gap: 0.25rem 1.5rem; margin: 2rem 0 0; padding: 0;
         list-style: none }
pre, code, .token, .value, table, text { font-family: var(--mono); font-variant-ligatures: none }
pre { margin: 0; font-size: 0.75rem; line-height: 1.6 }
.command { max-width: 64rem; white-space: pre-wrap; overflow-wrap: anywhere;
           padding: 0.75rem 1rem; background: var(--panel); border-radius: 4px }
.token { background: var(--panel); border-radius: 3px; padding: 0 0.3em; font-size: 0.875em;
         color: var(--ink); overflow-wrap: anywhere }
.tokens { display: flex; flex-wrap: wrap; gap: 0.75rem 0.5rem; padding: 0; margin: 0;
          list-style: none }
.tokens li { display: grid; justify-items: center }
.tokens .token { padding: 0.25em 0.6em; font-size: 1rem }
.tokens .new .token { background: var(--wash) }
.heads { display: flex; flex-wrap: wrap; gap: 1rem 1.5rem }
figure { margin: 0; max-width: 100% }
figcaption { text-align: center }
svg { max-width: 100%; height: auto; fill: currentColor }
svg path { stroke: var(--ink) }
image, img { image-rendering: pixelated }
img { max-width: 100%; vertical-align: middle; border: 1px solid var(--rule) }
.scroll { overflow-x: auto; margin-bottom: 1.5rem }
table { border-collapse: collapse; font-size: 0.8125rem; font-variant-numeric: tabular-nums }
caption { text-align: left; font-family: var(--serif); padding-bottom: 0.25rem }
.choice caption { position: absolute; clip-path: inset(50%) }
th, td { padding: 0.25rem 0.8rem 0.25rem 0; text-align: left; white-space: nowrap;
         border-bottom: 1px solid var(--rule) }
th { font-family: var(--serif) }
.choice :is(td, thead th + th), .work :is(td, thead th) { text-align: right; padding-left: 1rem }
.choice .bar { min-width: 6.5rem; padding-right: 0.8rem; background: no-repeat left 1rem center
  linear-gradient(var(--wash), var(--wash)); background-size: calc(var(--share) * 0.85) 72% }
.stream img { max-width: none }
.stream small { font-family: var(--mono); font-size: 0.75rem; margin-left: 0.4em }
tr:has(strong) { background: var(--panel) }
strong { color: var(--accent); font-weight: normal }
summary { cursor: pointer; color: var(--quiet) }
summary h4 { display: inline; font: 1rem var(--mono); color: var(--accent); margin-right: 1rem }
.function { margin: 2rem 0; border-top: 1px solid var(--rule); padding-top: 0.75rem }
.function[open] > summary { margin-bottom: 0.75rem }
.row, .heading { display: grid; gap: 0 1.5rem;
                 grid-template-columns: minmax(0, 48.5rem) minmax(0, 1fr) minmax(0, 1fr) }
.row { padding: 0.15rem 0 }
.row:has(.seen):hover { background: var(--panel) }
.heading { position: sticky; top: 0; z-index: 1; align-items: center; padding: 0.5rem 0;
           background: var(--paper); border-bottom: 1px solid var(--rule) }
pre span[id] { display: block; padding-left: 3rem }
pre span[id]::before { content: attr(data-n); position: absolute; margin-left: -3rem;
  width: 2.2rem; text-align: right; color: var(--quiet); opacity: 0.6; font-size: 0.6875rem }
pre span[id]:target { background: var(--wash) }
.comment { color: var(--quiet) } .shape { color: var(--accent) }
pre a { text-decoration: underline dotted var(--quiet) }
.seen { font-size: 0.75rem; line-height: 1.6; min-width: 0; overflow-wrap: anywhere }
.value { margin-bottom: 0.4rem } .short { display: inline-block; margin-right: 1.2em }
.value b { font-weight: 600 } .value i { font-style: normal; color: var(--quiet) }
.value span, .value img { display: block }
fieldset { border: 0; padding: 0; margin: 0; min-width: 0 }
legend { float: left; margin-right: 1rem }
label { margin-right: 0.75rem; white-space: nowrap }
input { accent-color: var(--accent); vertical-align: -0.1em }
@media (max-width: 80rem) {
  .pair, .columns { display: block } .pair > div + div { margin-top: 1.5rem }
  .row, .heading { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr) }
  .row pre, fieldset { grid-column: 1 / -1 }
  .seen, .heading span { padding-left: 3rem }
}
@media (max-width: 46rem) {
  header { padding-top: 2rem } h2 { margin-top: 3.5rem }
  pre { font-size: 0.6875rem; white-space: pre-wrap; overflow-wrap: anywhere }
  pre span[id] { padding-left: 1.75rem }
  pre span[id]::before { margin-left: -1.75rem; width: 1.25rem; font-size: 0.5625rem }
  .heads { display: grid; grid-template-columns: 1fr 1fr }
  .row { grid-template-columns: minmax(0, 1fr) } .heading span { display: none }
  .seen { padding: 0.25rem 0 0.25rem 1.75rem }
  .seen + .seen:not(:empty)::before { content: "second step"; color: var(--quiet);
                                      font-family: var(--serif) }
}
@media print {
  @page { margin: 14mm }
  :root { --paper: #fff }
  body { padding: 0; font-size: 10pt } .heading { position: static }
  .row, figure, tr { break-inside: avoid } h2, h3, summary { break-after: avoid }
  pre { white-space: pre-wrap } .scroll { overflow: visible }
  * { print-color-adjust: exact }
}
"""


# ---- The command line ----------------------------------------------------------------------


def chosen_layers(layer, n_layer):
    """Which layers to show in full, counted from 0. Raises cli.CallError for what is none."""
    if layer is None:
        return list(range(n_layer)) if n_layer <= 6 else [0, n_layer - 1]
    if str(layer) == "all":
        return list(range(n_layer))
    words = str(layer).split(",")
    if not all(re.fullmatch("[0-9]{1,4}", w) and 1 <= int(w) <= n_layer for w in words):
        raise cli.CallError(
            f"--layer names layers from 1 to {n_layer}, such as 1,{n_layer}, or all, "
            f"not {cli.shown(layer)}"
        )
    return sorted({int(word) - 1 for word in words})


def main(
    prompt=None,
    n_tokens_to_generate=4,
    model_size="tiny",
    models_dir=None,
    temperature=0.7,
    top_k=40,
    top_p=0.9,
    seed=1,
    layer=None,
    output="walkthrough.html",
):
    """Write the page; `python walkthrough.py --help` tells what the options mean.

    Raises cli.CallError where the call is wrong, and what gpt2.main raises.
    """
    n_tokens = cli.integer("n_tokens_to_generate", n_tokens_to_generate, lowest=1)
    if n_tokens > MAX_NEW_TOKENS:
        raise cli.CallError(f"--n_tokens_to_generate is at most {MAX_NEW_TOKENS} here")
    if cli.number("temperature", temperature) == 0:
        top_k, top_p, seed = 0, 1.0, None
    where = utils.MODELS_DIR if models_dir is None else models_dir
    cli.check_model(model_size, where)
    if not os.path.isdir(os.path.dirname(os.path.abspath(output))):
        raise cli.CallError(f"--output {cli.shown(output)} is in no folder that exists")
    prompt = cli.read_prompt(prompt)
    if prompt is None:
        raise cli.CallError("there is no prompt: give one in quotes")

    encoder, hparams = utils.load_encoder_and_hparams(model_size, where)
    n_ids = len(cli.encode_prompt(prompt, encoder, hparams["n_ctx"]))
    if n_ids > MAX_TOKENS:
        raise cli.CallError(f"the prompt has {n_ids} tokens, a page shows at most {MAX_TOKENS}")
    layers = chosen_layers(layer, hparams["n_layer"])
    options = {
        "prompt": prompt,
        "n_tokens_to_generate": n_tokens,
        "model_size": model_size,
        "models_dir": models_dir,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
    }
    params = utils.load_params(model_size, where, hparams)
    text = page(Run(options, encoder, hparams, params, layers))
    with open(output, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"{output} is written, {len(text.encode()) / 1e6:.1f} MB: open it in a browser")


if __name__ == "__main__":
    cli.run(main, HELP)
