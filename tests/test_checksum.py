"""The checksum is CRC-32C, as the standard and the usual loop compute it, masked."""

import numpy as np
import pytest

import checksum


def masked(crc):
    """What TensorFlow stores for a CRC: the bits rotated by 15 places, plus a constant."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32


@pytest.mark.parametrize(
    "data, crc",
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(32))[::-1], 0x113FDB5C),
    ],
)
def test_crc32c_equals_the_published_examples(data, crc):
    """They are from RFC 3720, B.4.

    Two are added: no bytes, and "123456789" from catalogues of CRCs.
    """
    assert checksum.masked_crc32c(data) == masked(crc)


def test_crc32c_equals_the_usual_loop():
    """The lengths lie around 0, one row and two rows. masked_crc32c takes a row at a time."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> 1) ^ (table & 1) * np.uint32(0x82F63B78)
    table = table.tolist()
    row = 4 * checksum.ROW
    data = np.random.default_rng(0).integers(0, 256, 2 * row + 6, dtype=np.uint8)
    lengths = [*range(10), row - 5, row - 4, row - 1, row, row + 1, 2 * row, 2 * row + 5]
    crc, crcs = 0xFFFFFFFF, []
    for byte in data.tolist():
        crcs.append(crc ^ 0xFFFFFFFF)
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    for length in lengths:
        assert checksum.masked_crc32c(data[:length]) == masked(crcs[length])
        assert checksum.masked_crc32c(data[:length].tobytes()) == masked(crcs[length])
