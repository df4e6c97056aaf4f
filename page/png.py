"""A PNG file from an array of small whole numbers, each of which stands for a colour."""

import struct
import zlib

import numpy as np


def encode(levels, colours):
    """The bytes of a PNG file with one pixel for each number of `levels`, uint8 [rows, columns].

    colours: for each number its (red, green, blue, opacity), each from 0 to 255; 256 at most.
    """
    rows, columns = levels.shape
    lines = np.pad(levels, ((0, 0), (1, 0)))  # each line of pixels begins with a 0: "no filter"
    header = struct.pack(">2I5B", columns, rows, 8, 3, 0, 0, 0)  # 8 bits a pixel, from a palette
    return b"".join([
        b"\x89PNG\r\n\x1a\n",
        chunk(b"IHDR", header),
        chunk(b"PLTE", bytes(part for colour in colours for part in colour[:3])),
        chunk(b"tRNS", bytes(colour[3] for colour in colours)),
        chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)),
        chunk(b"IEND", b""),
    ])


def chunk(kind, data):
    """One part of a PNG file: its length, its kind, what is in it, and a checksum."""
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)
