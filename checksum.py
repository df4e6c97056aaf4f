"""The checksum that TensorFlow stores with tensors: CRC-32C, computed with NumPy.

A checksum is a small number that is computed from data and stored with it. If the data changes
later, computing it again almost certainly gives a different number. CRC-32C has 32 bits.

A CRC is the remainder of a division. The bits of the data are read as one long binary number, and
this number is divided by a fixed number of 33 bits, the divisor. The division is not the usual one:
plus and minus are both xor in it, so nothing is ever carried from bit to bit. It follows that the
remainder of a xor is the xor of the remainders:

    remainder(a xor b) = remainder(a) xor remainder(b)


Words

The data is taken in words of 32 bits: four bytes, the lowest first. (If the number of bytes is not
a multiple of four, zeros in front fill it up. Zeros in front of a number change nothing.)

The first bit of the long number, its highest, is the lowest bit of the first word. So a word stands
backwards in the long number: from right to left, compared with how Python shows it. For example,
the byte 0b00000011 begins the long number with the bits 11000000.


Many words at once

Bit by bit, this division would take Python far too long. But it can be cut up, because of the
equation above. 123 is 100 + 20 + 3. In the same way, write each word of the data with zeros in
place of the words after it: the xor of these numbers is the data. So the remainder of the data is
the xor of the remainders of these numbers.

Such a number is a word with n words of zeros after it. Taking its remainder is called here "to
shift the word by n words". So the remainder of the data is the xor of its words, each shifted by
the number of words after it. (The last word is shifted by none. It is shorter than the divisor, so
it is its own remainder.)

A shift can be done in steps: to shift by n words and then by m words is the same as to shift by
n + m words. For taking the remainder subtracts some multiple of the divisor. With m words of zeros
after it, this is still a multiple of the divisor, so it makes no difference to the second
remainder.

NumPy can shift thousands of words in one call. So the data is laid out in rows of ROW words. Each
word of the first row is shifted by ROW words and xor-ed with the word below it. The resulting row
is shifted and xor-ed with the third row, and so on until one row remains. Then each word of its
first half is shifted by the length of a half and xor-ed with its word in the second half, again and
again, until one word remains. With rows of 4 words, the rows "a b c d" and "e f g h" go like this
("+" is xor, and "a<4" is a, shifted by 4 words):

    a<4 + e   b<4 + f   c<4 + g   d<4 + h     one row: call it i j k l
    i<2 + k   j<2 + l                         half a row: m n
    m<1 + n                                   the remainder

In all, a was shifted by 4 + 2 + 1 words: the seven words after it. ROW is a power of two, so all
shifts are by 1, 2, 4, 8, ... words.


Three more rules

The standard of CRC-32C, RFC 3720, has three more rules. Before the division, the first 32 bits of
the data are inverted, that is, xor-ed with 0xFFFFFFFF. A word of zeros follows the data. And all
bits of the remainder are inverted.

The code does not invert the first 32 bits itself. Instead, it puts four bytes, START, directly in
front of the data. START is chosen so that START followed by 32 zero bits has the remainder
0xFFFFFFFF, which is 32 ones. So START has the same effect on the remainder as 32 ones that are
xor-ed into the 32 bits after it, and this inverts them. (If the data has fewer than four bytes,
these bits reach into the word of zeros that follows it.) All zeros that fill up a word or a row
stand in front of START, where they change nothing.
"""

import functools

import numpy as np

ROW = 2**14  # words
DIVISOR = 0x82F63B78  # without its top bit, and written backwards, like the words
START = b"\x54\x64\x1f\x64"
MASK = 0xA282EAD8  # from tensorflow/core/lib/hash/crc32c.h


@functools.cache
def shift_tables(n_words):
    """Tables for a shift by n_words, a power of two: uint32 [4, 256].

    tables[i][value] is what becomes of a word in which byte i is `value` and the other three bytes
    are 0. Every word is the xor of four such words.
    """
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)  # the 32 words with a single bit
    if n_words == 1:
        shifted = bits
        # Append 32 zeros to each word, one at a time. Words stand backwards, so the front of the
        # number is at the right: the bits move one place to the right. If a 1 falls out there, the
        # number has become as long as the divisor, which is then subtracted, by xor. (Its top bit
        # cancels the 1 that fell out.)
        for _ in range(32):
            shifted = (shifted >> 1) ^ (shifted & 1) * np.uint32(DIVISOR)
    else:  # two shifts by half as many words; their tables come from this function again
        shifted = shift(shift(bits, n_words // 2), n_words // 2)

    tables = np.zeros((4, 1), dtype=np.uint32)
    # Each table begins with its entry for the byte 0. It is doubled eight times, for the bits 0 to
    # 7. Before it is doubled for bit 3, say, it has entries for the values 0 to 7. The values 8 to
    # 15 are the values 0 to 7 with bit 3 set. So their entries are those of 0 to 7, each xor-ed
    # with what bit 3 alone becomes. `bit` holds, for each of the four tables, what this one bit
    # becomes.
    for bit in shifted.reshape(4, 8).T:
        tables = np.concatenate([tables, tables ^ bit[:, None]], axis=1)
    return tables


def shift(words, n_words):
    """Shifts each of `words`, uint32, by n_words words, as explained above."""
    tables = shift_tables(n_words)
    low = tables[0].take(words & 255) ^ tables[1].take(words >> 8 & 255)
    high = tables[2].take(words >> 16 & 255) ^ tables[3].take(words >> 24)
    return low ^ high


def masked_crc32c(data):
    """The checksum of bytes, or of a uint8 array, as TensorFlow stores it: an int.

    TensorFlow masks a CRC: it rotates the bits and adds MASK. The reason is that blocks of the
    index hold CRCs of tensors, and a CRC finds errors less reliably in data that contains CRCs.
    """
    # The data is cut in two, so that the second part consists of whole rows. The first part, less
    # than a row, gets START in front. With START, it may be a little longer than a row, so zeros in
    # front fill it up to two rows.
    n_first = len(data) % (4 * ROW)
    first = START + bytes(data[:n_first])
    first = first.rjust(2 * 4 * ROW, b"\0")

    row = np.zeros(ROW, dtype=np.uint32)
    for part in (first, data[n_first:]):
        for next_row in np.frombuffer(part, dtype="<u4").reshape(-1, ROW):
            row = shift(row, ROW) ^ next_row
    while len(row) > 1:
        half = len(row) // 2
        row = shift(row[:half], half) ^ row[half:]
    crc = int(shift(row, 1)[0]) ^ 0xFFFFFFFF  # a word of zeros follows; all bits are inverted
    return ((crc >> 15 | crc << 17) + MASK) % 2**32  # % 2**32 keeps the lowest 32 bits
