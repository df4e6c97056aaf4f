"""How the files of a model are read: whole, as text, or mapped into memory."""

import errno
import io
import os

import numpy as np


def read_file(path):
    """The bytes of a file. Raises OSError if it cannot be read."""
    with open(path, "rb") as file:
        content = file.read()
    if content is None:  # what Python returns where the system has no data at the moment (EAGAIN)
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)
    return content


def read_text(path, errors="strict"):
    """The text of a file in UTF-8, with "\\n" at the end of each line, as `open` would give it.

    Raises OSError if it cannot be read, and UnicodeDecodeError, a ValueError, if it is not UTF-8
    and `errors` is "strict". (errors: as for `open`.)
    """
    return io.TextIOWrapper(io.BytesIO(read_file(path)), encoding="utf-8", errors=errors).read()


def map_file(path):
    """The bytes of a file, uint8 [size], mapped into memory; read where that is not possible."""
    try:
        return np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))  # slicing a memmap is slower
    except (OSError, ValueError):  # some file systems cannot map, and an empty file cannot be
        return np.fromfile(path, dtype=np.uint8)
