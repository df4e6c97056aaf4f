"""One value of the run as HTML: its name, its shape and type, and what is in it."""

import os

import numpy as np

import checks
from page.markup import Markup, joined, short, tag
from page.pictures import full_colour, picture


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
    elif isinstance(value, list) and not all(isinstance(item, (int, np.integer)) for item in value):
        words = f"list of {len(value)} {type(value[0]).__name__}"
    elif name == "models_dir" and value:  # without the names of the folders above it
        words = f"= …/{os.path.basename(value)}"
    elif isinstance(value, list):
        words = f"= {checks.shown([int(item) for item in value])}"
    elif value is None or isinstance(value, (int, float, str, tuple, range)):
        words = f"= {checks.shown(value)}"
    else:
        words = type(value).__name__
    return tag("div", tag("b", name), f" {words}", class_="value short")


def contents(name, array):
    """What is in an array: all of it if it is small, else its range and a picture."""
    if array.size == 0:
        return ["nothing yet"]
    is_whole = array.dtype.kind == "i"
    if array.dtype == bool and array.size <= 6:
        return [f"{array.sum()} of {array.size} True"]
    if array.size <= (12 if is_whole else 6):
        return [", ".join(str(n) if is_whole else short(n) for n in array.ravel())]
    limit = full_colour(array)
    if array.dtype == bool:
        words = f"{array.sum():,} of {array.size:,} True"
    elif is_whole:
        words = f"{array.min()} to {array.max()}"
    else:
        words = spread(array, limit)
    return [tag("span", words), picture(array, name, limit)]


def spread(array, limit):
    """The range and mean of the numbers in an array, and how many are -inf or not yet written."""
    n_hidden, n_free = int(np.isneginf(array).sum()), int(np.isnan(array).sum())
    numbers = array if n_hidden + n_free == 0 else array[np.isfinite(array)]
    words = []
    if numbers.size:
        low, high = numbers.min(), numbers.max()
        with np.errstate(over="ignore"):  # at a temperature near 0, numbers are near 1e308
            mean = numbers.mean()
        words.append(f"{short(low)} to {short(high)}, mean {short(mean)}")
        words.append(f"full colour from ±{short(limit, 2)}")
        if low == high:
            words = [f"all {short(low)}" if n_hidden + n_free == 0 else f"{short(low)}"]
    if n_hidden:
        words.append(f"{n_hidden:,} of {array.size:,} are -inf")
    if n_free:
        words.append(f"{n_free:,} of {array.size:,} are free" if words else "nothing yet")
    return "; ".join(words)
