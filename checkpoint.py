"""Reads the weights of a model that TensorFlow saved, with NumPy alone.

    tensors = read_index("model.ckpt.index")
    data = map_data("model.ckpt.data-00000-of-00001", tensors)
    params = build_params(data, tensors, hparams)

TensorFlow saves the weights of a model in two files, which it calls a tensor bundle:

    model.ckpt.data-00000-of-00001   the numbers of all weights, one after another, nothing else
    model.ckpt.index                 a table: for each weight its type, shape and place in the data

A third file, `checkpoint`, is text. It says what the other two are called, here "model.ckpt".


The index

The index is a sorted table of keys and values, in the file format of LevelDB, a key-value store:

    +------------+-----+------------+-----------+-------------+--------+
    | data block | ... | data block | metaindex | index block | footer |
    +------------+-----+------------+-----------+-------------+--------+

It is read from its end. The footer always has 48 bytes, and says where the index block is. The
index block says where each data block is. The data blocks hold the table. (124M has a single
data block. The metaindex is empty: LevelDB has a use for it, TensorFlow has none.)

    footer   the handle of the metaindex, the handle of the index block, zeros up to byte 40, and
             in the last 8 bytes a number that marks such files, MAGIC
    handle   where a block is: its offset in the file and its size in bytes, two varints
    varint   a whole number in as few bytes as it needs: each byte holds 7 bits, the lowest come
             first, and the top bit says that another byte follows. 384 is 80 03: 0 + 3 * 128.
    block    entries, then a list of restarts (see below), then, not counted in the block's size,
             one byte for the compression (0: none) and 4 bytes of checksum over all before them
    entry    n_shared, n_new, n_value, three varints; then n_new bytes of key, n_value of value

Neighbouring keys are alike, so an entry leaves out what its key shares with the key before it.
After "model/h0/attn/c_attn/b", the entry of "model/h0/attn/c_attn/w" has n_shared 21, n_new 1 and
the single key byte "w". Every 16th entry is a restart: it shares nothing, so that a search could
begin there, and the list at the end of the block says where it is.

In the index block a value is the handle of a data block. In a data block a key is the name of a
tensor, and the value is a message that describes the tensor.


The messages

Messages are in protobuf, a format for small records. A message is a list of fields, and a field
begins with a tag: 8 times the field's number, plus 0 where a varint follows, 2 where a length and
so many bytes follow, 5 where 4 bytes follow. A field whose value is 0 is left out. A tensor's
message, a BundleEntryProto, has these fields:

    1 dtype (1: float32)   2 shape   3 shard_id   4 offset   5 size in bytes   6 crc32c

For example, this is the message of "model/h0/attn/c_attn/b" in models/tiny:

    08 01                     field 1, dtype: 1
    12 05  12 03  08 80 03    field 2, shape, 5 bytes: a dimension of 3 bytes, whose size is 384
    28 80 0C                  field 5, size: 1536 bytes, which are 384 float32 numbers
    35 86 CD 4C 5C            field 6, crc32c: the checksum of those bytes

It has no field 4, so its offset is 0: its numbers are the first in the data file. The entry with
the empty key comes before all others. It describes the whole: a BundleHeaderProto, with the
fields 1 num_shards, the number of data files, and 2 endianness, 0 for little-endian.

Sources: tensorflow/core/protobuf/tensor_bundle.proto and tensorflow/core/lib/io/table_format.txt
in github.com/tensorflow/tensorflow; src/model.py in github.com/openai/gpt-2 for the names.
"""

import functools
import math
import os
import re

import numpy as np

from weights import map_tree, shapes_of

DATA = ".data-00000-of-00001"  # how the name of a data file ends
MAGIC = bytes.fromhex("57fb808b247547db")
VARINT, BYTES, FIXED32 = 0, 2, 5  # protobuf's ways of writing a value: the low 3 bits of a tag
FLOAT32, STRING = 1, 7  # TensorFlow's numbers of two dtypes


def read_prefix(path):
    """What the file `checkpoint` calls the two other files, such as "model.ckpt".

    TensorFlow may have written the whole path of the machine it ran on. Only the last part of it
    is used. Raises ValueError if there is none.
    """
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    match = re.search(r'^model_checkpoint_path: *"(?:.*[/\\:])?([^"/\\:\0-\x1f]+)"', text, re.M)
    if match is None:
        raise ValueError(f'{path} has no line model_checkpoint_path: "..."')
    return match[1]


# ---- The index, from its smallest part up --------------------------------------------------
#
# The bytes may be anything: a damaged index, a web page, another program's file. The functions
# below trust none of them. They raise ValueError with what is wrong, and use no more memory than
# a small multiple of the file's size.


def take(data, position, size):
    """The next `size` bytes of some data, and the position after them."""
    end = position + size
    if end > len(data):
        raise ValueError("it refers to bytes beyond its end")
    return data[position:end], end


def read_varint(data, position):
    """The varint at a position, and the position after it."""
    number = 0
    for n_bits in range(0, 70, 7):
        (byte,), position = take(data, position, 1)
        number |= (byte & 127) << n_bits
        if byte < 128:
            return number, position
    raise ValueError("it has a number of more than ten bytes")


def read_handle(data, position):
    """The offset and the size in the handle at a position, and the position after it."""
    offset, position = read_varint(data, position)
    size, position = read_varint(data, position)
    return offset, size, position


def read_block(data, offset, size):
    """The entries of one block: a list of (key, value), both bytes."""
    block, position = take(data, offset, size)
    trailer, _ = take(data, position, 5)
    if masked_crc32c(block + trailer[:1]) != int.from_bytes(trailer[1:], "little"):
        raise ValueError("a block of it does not have its checksum")
    if trailer[0] != 0:
        raise ValueError("it is compressed, and TensorFlow's checkpoints are not")

    # The last 4 bytes are the number of restarts. The restarts before them take 4 bytes each.
    n_restarts = int.from_bytes(block[-4:], "little")
    end = size - 4 * (n_restarts + 1)
    if end < 0:
        raise ValueError("a block of it is shorter than its list of restarts")

    entries, key, n_key_bytes, position = [], b"", 0, 0
    while position < end:
        n_shared, position = read_varint(block, position)
        n_new, position = read_varint(block, position)
        n_value, position = read_varint(block, position)
        new, position = take(block, position, n_new)
        value, position = take(block, position, n_value)
        key = key[:n_shared] + new
        entries.append((key, value))
        # A key that is stored once can be shared by 15 entries after it, up to the next restart.
        # So whole keys take at most 16 times the bytes of the block. In a damaged block they
        # could take terabytes.
        n_key_bytes += len(key)
        if n_key_bytes > 16 * size:
            raise ValueError("its keys share more than they can")
    return entries


def read_fields(message):
    """The fields of a protobuf message: dict of (number, way of writing) -> list of values."""
    fields, position = {}, 0
    while position < len(message):
        tag, position = read_varint(message, position)
        number, way = tag >> 3, tag & 7
        if way == VARINT:
            value, position = read_varint(message, position)
        elif way == BYTES:
            size, position = read_varint(message, position)
            value, position = take(message, position, size)
        elif way == FIXED32:
            value, position = take(message, position, 4)
            value = int.from_bytes(value, "little")
        else:
            raise ValueError("it has a value written in no known way")
        fields.setdefault((number, way), []).append(value)
    return fields


def read_number(fields, number, way=VARINT):
    """The value of one field, an int: 0 if the message does not have the field."""
    return fields.get((number, way), [0])[-1]


def read_tensor(message):
    """What a BundleEntryProto says of one tensor: a dict."""
    fields = read_fields(message)
    shapes = [read_fields(shape) for shape in fields.get((2, BYTES), [])]
    dims = [read_fields(dim) for shape in shapes for dim in shape.get((2, BYTES), [])]
    return {
        "dtype": read_number(fields, 1),
        "shape": tuple(read_number(dim, 1) for dim in dims),
        "shard_id": read_number(fields, 3),
        "offset": read_number(fields, 4),
        "size": read_number(fields, 5),
        "crc32c": read_number(fields, 6, FIXED32),
    }


def read_table(data):
    """The table in the bytes of an index: dict of key -> value, both bytes."""
    footer = data[-48:]
    if len(footer) < 48 or footer[-8:] != MAGIC:
        raise ValueError("it is not the index of a TensorFlow checkpoint, or not a whole one")
    _, _, position = read_handle(footer, 0)  # the metaindex
    offset, size, _ = read_handle(footer, position)

    table, end = {}, 0
    for _, handle in read_block(data, offset, size):
        offset, size, _ = read_handle(handle, 0)
        if offset < end:
            raise ValueError("its blocks overlap")
        end = offset + size
        table.update(read_block(data, offset, size))
    return table


def read_index(path):
    """Where each tensor is in the data file, and what it is.

    Returns a dict of name -> dict of dtype, shape, shard_id, offset, size and crc32c. Offset and
    size count bytes. Raises ValueError naming the file if TensorFlow did not write it so.
    """
    with open(path, "rb") as file:
        data = file.read()
    try:
        table = read_table(data)
        header = read_fields(table.pop(b"", b""))
        tensors = {name.decode("utf-8", "replace"): read_tensor(table[name]) for name in table}
        if read_number(header, 1) != 1 or any(tensor["shard_id"] for tensor in tensors.values()):
            raise ValueError("its checkpoint has several data files; only one is supported")
        if read_number(header, 2) != 0:
            raise ValueError("its checkpoint is big-endian; only little-endian is supported")
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    return tensors


# ---- The weights ---------------------------------------------------------------------------


def stored_shape(name, shape):
    """The shape of a weight in OpenAI's checkpoints, where a matrix is [1, in, out].

    OpenAI wrote a linear layer as a convolution of width 1. Hence the 1, and the "c_" in names.
    """
    return (1, *shape) if name.endswith("/w") else shape


def check_tensors(path, tensors, hparams):
    """Raises ValueError if the index at `path` does not list the weights of a model this size.

    tensors: what `read_index` returned. It may list more, such as what only training needs.
    """

    def check(name, shape):
        if name not in tensors:
            raise ValueError(f"{path} does not list the tensor {name}")
        dtype, tensor_shape, size = (tensors[name][key] for key in ("dtype", "shape", "size"))
        shape = stored_shape(name, shape)
        if dtype != FLOAT32:
            raise ValueError(
                f"{path}: {name} is of dtype {dtype}; only {FLOAT32}, float32, is supported"
            )
        if tensor_shape != shape:
            raise ValueError(f"{path}: {name} is {tensor_shape}; by hparams.json it is {shape}")
        if size != 4 * math.prod(shape):
            raise ValueError(f"{path}: {name} has {size} bytes, which do not make {shape}")

    map_tree(check, shapes_of(hparams))
    if f"model/h{hparams['n_layer']}/ln_1/g" in tensors:
        raise ValueError(f"{path} lists more layers than n_layer in hparams.json")


def data_size(tensors):
    """The size of the data file in bytes: it ends where its last tensor ends."""
    return max((tensor["offset"] + tensor["size"] for tensor in tensors.values()), default=0)


def map_data(path, tensors):
    """The bytes of a data file, uint8 [size], mapped into memory: read only when they are used.

    Raises ValueError if the file does not have the size that its index gives.
    """
    size, expected_size = os.path.getsize(path), data_size(tensors)
    if size != expected_size:
        raise ValueError(f"{path} has {size} bytes; by its index it has {expected_size}")
    return np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))  # a plain array is faster


def bytes_of(tensor, data):
    """The bytes of one tensor: uint8 [size], a part of `data`."""
    return data[tensor["offset"] : tensor["offset"] + tensor["size"]]


def build_params(data, tensors, hparams):
    """The tree of weights that weights.py draws: float32 arrays, in the memory of `data`."""

    def weight(name, shape):
        return bytes_of(tensors[name], data).view("<f4").reshape(shape)

    return map_tree(weight, shapes_of(hparams))


def check_data(path, tensors, hparams):
    """Compares all tensors of a data file with their checksums; returns how many there were.

    Raises ValueError if one differs, or if a weight of the model is infinite or not a number.
    Strings, which TensorFlow may have saved beside the weights, have another kind of checksum
    and are left out.
    """
    data = map_data(path, tensors)
    numeric = {name: tensors[name] for name in tensors if tensors[name]["dtype"] != STRING}
    for name, tensor in numeric.items():
        content = bytes_of(tensor, data)
        if content.size > 0 and masked_crc32c(content) != tensor["crc32c"]:
            raise ValueError(f"{path} is damaged: {name} does not have its checksum")

    def check(name, shape):
        if not np.isfinite(bytes_of(tensors[name], data).view("<f4")).all():
            raise ValueError(f"{path}: {name} has numbers that are infinite or not numbers")

    map_tree(check, shapes_of(hparams))
    return len(numeric)


# ---- The checksum --------------------------------------------------------------------------
#
# A checksum is a small number computed from data and stored beside it. If the data changes, the
# checksum computed again is another one. TensorFlow uses CRC-32C, which has 32 bits.
#
# A CRC is the remainder of a division. The bits of the data are read as one long binary number and
# divided by a fixed number, but with xor in the place of plus and minus: there are no carries. Two
# facts about such remainders let NumPy work on thousands of words (of 32 bits) at once:
#
#     remainder(a xor b)       = remainder(a) xor remainder(b)
#     remainder(a, then zeros) depends on remainder(a) only; `shift` computes it
#
# The data is laid out in rows of ROW words. To go from one row to the next, all words are shifted
# by a row (as if zeros followed) and the next row is added, with xor. After the last row, the left
# half of the row that is left is shifted onto the right half, again and again, until one word is
# left. With rows of 4 words, eight words go like this ("+" is xor, "a<4" is a shifted by 4 words):
#
#     a b c d  e f g h   ->   a<4 + e   b<4 + f   c<4 + g   d<4 + h     one row: call it i j k l
#     i j k l            ->   i<2 + k   j<2 + l                         half a row: m n
#     m n                ->   m<1 + n                                   the remainder
#
# (This shift is always by 1, 2, 4, 8, ... words, since ROW is a power of two.)

ROW = 2**14  # words
DIVISOR = 0x82F63B78  # of CRC-32C, in RFC 3720; like the data, with the lowest bit first
START = b"\x54\x64\x1f\x64"  # leaves the remainder 0xFFFFFFFF, with which the standard begins
MASK = 0xA282EAD8  # added to a rotated checksum in tensorflow/core/lib/hash/crc32c.h


@functools.cache
def shift_tables(n_words):
    """Tables for `shift`: uint32 [4, 256], what a word with only one byte other than 0 becomes.

    tables[i][value] is for the word in which byte i is `value`. A word of four bytes is the xor of
    four such words. n_words is a power of two.
    """
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)  # the 32 words with a single bit
    if n_words == 1:
        shifted = bits
        for _ in range(32):  # one step of the division for each bit of a word
            shifted = (shifted >> 1) ^ (shifted & 1) * np.uint32(DIVISOR)
    else:
        shifted = shift(shift(bits, n_words // 2), n_words // 2)

    tables = np.zeros((4, 1), dtype=np.uint32)
    for bit in shifted.reshape(4, 8).T:  # double the tables: values without this bit, then with it
        tables = np.concatenate([tables, tables ^ bit[:, None]], axis=1)
    return tables


def shift(words, n_words):
    """What the remainders `words`, uint32, become when n_words words of zeros follow."""
    tables = shift_tables(n_words)
    low = tables[0].take(words & 255) ^ tables[1].take(words >> 8 & 255)
    high = tables[2].take(words >> 16 & 255) ^ tables[3].take(words >> 24)
    return low ^ high


def masked_crc32c(data):
    """The checksum of bytes, or of a uint8 array, as TensorFlow stores it: an int."""
    # The first part is what does not fill a row, after START. Zeros in front change nothing.
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
    # By the standard, a word of zeros follows the data, and all bits are inverted at the end.
    crc = int(shift(row, 1)[0]) ^ 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + MASK) % 2**32
