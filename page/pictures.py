"""An array as a picture: blue cells for numbers below 0, orange cells for numbers above 0."""

import base64
import math

import numpy as np

from page import png
from page.markup import tag

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



def data_uri(matrix, limit):
    """The picture of a matrix as the address of an image; full colour from `limit` on."""
    with np.errstate(over="ignore"):  # what is too large to divide has the full colour anyway
        levels = np.rint(SHADES * np.clip(matrix / (limit or 1), -1, 1)) + SHADES
    levels = np.where(np.isnan(matrix), FREE, np.where(np.isneginf(matrix), HIDDEN, levels))
    data = png.encode(levels.astype(np.uint8), palette())
    return "data:image/png;base64," + base64.b64encode(data).decode()


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
    array = array if array.dtype.kind == "f" else array.astype(np.float32)
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

