"""An array as a picture: blue cells for numbers below 0, orange cells for numbers above 0."""

import base64
import itertools
import re

import numpy as np

from page import png
from page.markup import tag

SHADES = 24  # shades on each side of 0
HIDDEN, FREE = 2 * SHADES + 1, 2 * SHADES + 2  # the shades of -inf and of memory not yet used
COLOURS = {"less": (52, 120, 196), "more": (217, 95, 38), "grey": (128, 128, 128)}
WIDTH = 128  # the most columns that a picture has
LINE = 64  # cells in a line of one long row that is broken into lines
CELLS = 2048  # the most cells that a picture has; a larger array is drawn with half as many


def palette():
    """Red, green, blue and opacity of each shade: clear for 0, so that it suits any background."""
    shades = []
    for level in range(-SHADES, SHADES + 1):
        colour = COLOURS["less" if level < 0 else "more"]
        shades.append((*colour, round(255 * abs(level) / SHADES)))
    return shades + [(*COLOURS["grey"], 80), (*COLOURS["grey"], 30)]


def data_uri(matrix, limit):
    """The picture of a matrix as the address of an image; full colour from `limit` on."""
    with np.errstate(over="ignore"):  # what is too large to divide has the full colour anyway
        levels = np.rint(SHADES * np.clip(matrix / (limit or 1), -1, 1)) + SHADES
    levels = np.where(np.isnan(matrix), FREE, np.where(np.isneginf(matrix), HIDDEN, levels))
    data = png.encode(levels.astype(np.uint8), palette())
    return "data:image/png;base64," + base64.b64encode(data).decode()


def thinned(matrix, rows, columns):
    """The matrix with at most that many rows and columns.

    Each cell then stands for a group of cells, and has the number in it that is farthest from 0.
    """
    for axis, most in enumerate((rows, columns)):
        size = matrix.shape[axis]
        if size > most:
            starts = [i * size // most for i in range(most)]
            finite = np.where(np.isneginf(matrix), np.nan, matrix)
            low = np.fmin.reduceat(finite, starts, axis=axis)
            high = np.fmax.reduceat(finite, starts, axis=axis)
            farthest = np.where(-low > high, low, high)
            hidden = np.maximum.reduceat(np.isneginf(matrix), starts, axis=axis)
            matrix = np.where(np.isnan(farthest) & hidden, -np.inf, farthest)
    return matrix


def as_matrix(array):
    """The cells of a picture: the last two axes, with panels side by side for the other axes.

    Returns (matrix, (rows, columns, panels in a line)); the rows and columns are those of a panel.
    One long row is a single panel that is broken into lines, as a text is.
    """
    array = array if array.dtype.kind == "f" else array.astype(np.float32)
    panels = array.reshape(-1, *(1, 1, *array.shape)[-2:])[:16]
    n, rows, columns = panels.shape
    if n == rows == 1 and columns > LINE:
        row = thinned(panels[0], 1, CELLS)[0]
        return np.pad(row, (0, -row.size % LINE)).reshape(-1, LINE), (1, row.size, 1)
    per_line = min(n, 4)
    most = WIDTH // per_line
    if columns > most or n * rows * columns > CELLS:
        columns = min(columns, most if rows <= 8 else most // 2)
        rows = min(rows, max(CELLS // 2 // (n * columns), 4))
    panels = [np.pad(thinned(panel, rows, columns), ((0, 1), (0, 1))) for panel in panels]
    panels += [np.zeros_like(panels[0])] * (-n % per_line)  # a gap of one cell after each
    grid = [np.hstack(panels[i : i + per_line]) for i in range(0, len(panels), per_line)]
    return np.vstack(grid)[:-1, :-1], (rows, columns, per_line)


def picture(array, name, limit, most_pixels=262):
    """A small image of an array, at most so many pixels wide.

    limit: the number from which on cells have the full colour.
    """
    matrix, panel = as_matrix(array)
    rows, columns = matrix.shape
    width = columns * min(max(most_pixels // columns, 1), 12)
    height = rows * min(max(72 // rows, 2), 10)
    source = data_uri(matrix, limit)
    return tag("img", src=source, alt=f"picture of {name}", width=width, height=height,
               **readable_cells(matrix, name, array.shape, panel))


def scale(*more):
    """The colours of a picture, from numbers below 0 to numbers above 0, and what `more` adds."""
    ramp = tag("img", src=data_uri(np.linspace(-1, 1, 2 * SHADES + 1)[None], 1), width=196,
               height=14, alt="blue, clear, orange")
    return tag("p", "below 0 ", ramp, " above 0 ", *more, class_="scale")


def readable_cells(matrix, name, shape, panel):
    """Attributes from which the page's script reads the number in a cell of a picture."""
    if np.abs(matrix[np.isfinite(matrix)]).max(initial=0) > np.finfo(np.float16).max:
        return {}
    cells = base64.b64encode(matrix.astype("<f2").tobytes()).decode()
    return {"data_name": name, "data_shape": " ".join(map(str, shape)),
            "data_panel": " ".join(map(str, (*panel, matrix.shape[1]))), "data_cells": cells}


def full_colour(array):
    """The number from which on cells have the full colour: about 2% of them are that far from 0.

    For probabilities it is 1.
    """
    if adds_up(array):
        return 1.0
    matrix, _ = as_matrix(array)
    finite = np.abs(matrix[np.isfinite(matrix)])
    return float(np.quantile(finite, 0.98) or finite.max()) if finite.size else 1.0


def adds_up(array):
    """Whether an array holds probabilities: numbers from 0 that add up to 1 along each row."""
    return array.min() >= 0 and np.allclose(array.sum(axis=-1), 1, atol=1e-3)


def shared(source):
    """The page without repetitions: the same numbers are written once, and then only pointed at.

    data-cells="#7" stands for what the data-cells of the seventh such element say.
    """
    places, first_place = itertools.count(1), {}

    def once(found):
        place = next(places)
        first = first_place.setdefault(found[1], place)
        return found[0] if first == place else f'data-cells="#{first}"'

    return re.sub('data-cells="([^"]*)"', once, source)
