"""Checks of what a caller asks for, the same for the command line and for Python.

A value that is not allowed raises CallError, which names the argument and says what is allowed:

    top_p must be above 0 and at most 1, such as 0.9, not 90
"""

import math
import operator
import re


class CallError(ValueError):
    """The caller asked for something that cannot be done. Says what is allowed instead."""

    exit_status = 2  # of the program; see console.py


def shown(value):
    """A value on one line, text in quotes, cut if it is long."""
    text = repr(value) if isinstance(value, str) else " ".join(str(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def integer(name, value, lowest):
    """The value as an int, `lowest` or more. It may be given as a number or as its digits."""
    if not re.fullmatch("[0-9]{1,18}", str(value)) or int(value) < lowest:
        raise CallError(
            f"{name} must be a whole number, {lowest} or more, in plain digits (at most 18), "
            f"not {shown(value)}"
        )
    return int(value)


def number(name, value):
    """The value as a float, 0 or more. It may be given as a number or as text such as "0.7"."""
    result = as_float(name, value)
    if not 0 <= result < math.inf:
        raise CallError(f"{name} must be a number, 0 or more, such as 0.7, not {shown(value)}")
    return result


def fraction(name, value):
    """The value as a float above 0 and at most 1. It may be given as a number or as text."""
    result = as_float(name, value)
    if not 0 < result <= 1:
        raise CallError(f"{name} must be above 0 and at most 1, such as 0.9, not {shown(value)}")
    return result


def sampling_options(temperature, top_k, top_p):
    """The options that change the choice of a token, each checked, as a float, an int, a float."""
    return (
        number("temperature", temperature),
        integer("top_k", top_k, lowest=0),
        fraction("top_p", top_p),
    )


def as_float(name, value):
    """A number, or plain decimal text such as "0.7" or "1e-3", as a float; nan for all else."""
    text = str(value)
    if not re.fullmatch(r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        return math.nan
    result = float(text)
    if result == 0 and re.match("[0.]*[1-9]", text):
        raise CallError(f"{name} {shown(value)} is too small: the least above 0 is 5e-324")
    return result


def check_generate(
    inputs, n_vocab, n_ctx, n_tokens_to_generate, temperature, top_k, top_p, stop_id=None
):
    """Checks what gpt2.generate was given. Raises CallError, a ValueError, for what is wrong."""
    ids = list(inputs)
    if not 1 <= len(ids) <= n_ctx:
        raise CallError(f"inputs must be 1 to {n_ctx} ids, not {len(ids)}")
    for id in ids:
        check_id("inputs", id, n_vocab)
    if stop_id is not None:
        check_id("stop_id", stop_id, n_vocab)
    integer("n_tokens_to_generate", n_tokens_to_generate, lowest=0)
    sampling_options(temperature, top_k, top_p)


def check_id(name, id, n_vocab):
    """Raises CallError unless `id` is a whole number from 0 to n_vocab - 1."""
    try:
        is_id = not isinstance(id, bool) and 0 <= operator.index(id) < n_vocab
    except TypeError:  # not a whole number
        is_id = False
    if not is_id:
        highest = n_vocab - 1
        raise CallError(f"{name}: an id must be a whole number, 0 to {highest}, not {shown(id)}")
