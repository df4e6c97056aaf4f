"""Reads the weights of a GPT-2, a language model, that TensorFlow saved, with NumPy alone.

    tensors = read_index("model.ckpt.index")
    check_tensors("model.ckpt.index", tensors, hparams)
    data = map_data("model.ckpt.data-00000-of-00001", tensors)
    params = build_params(data, tensors, hparams)

A checksum is a small number that was computed from some data and stored with it, so that a later
change can be noticed. The functions above do not compute the checksums of the weights, because that
takes long: all of the data has to be read. `check_data` does it.

hparams are the sizes of the model, from its file hparams.json. TensorFlow calls a saved model a
checkpoint. It consists of tensors, that is, arrays (nearly always of numbers): the weights of the
model, and perhaps others that only training needs. They are in two files, together called a tensor
bundle:

    model.ckpt.data-00000-of-00001   the bytes of all tensors, one after another, nothing between
    model.ckpt.index                 a table: for each tensor its type, its shape, and where its
                                     bytes are in the other file, the data file

TensorFlow also writes a small text file named `checkpoint`. It says what the names of the other two
files begin with, here "model.ckpt". All numbers of a fixed length in these files are little-endian:
their lowest byte comes first. (TensorFlow can also write big-endian tensors; they are refused.)


The index

The index is a sorted table of keys and values, in the file format of LevelDB, a key-value store:

    +------------+-----+------------+-----------+-------------+--------+
    | data block | ... | data block | metaindex | index block | footer |
    +------------+-----+------------+-----------+-------------+--------+

It is read from its end. The footer says where the index block is, the index block says where each
data block is, and the data blocks hold the table. (LevelDB calls them data blocks. They are all in
the index, not in the data file. The index of OpenAI's smallest GPT-2 has just one. The metaindex is
not needed here: TensorFlow leaves it empty.)

The parts, from the smallest up:

    varint   a whole number in as few bytes as it needs: each byte holds 7 bits of it, the lowest
             bits first, and the top bit says that another byte follows. For example, 384 is
             0 + 3 * 128, and is stored as the bytes 80 03, in hexadecimal. 80 is 1000 0000 in
             binary: another byte follows, and the lowest 7 bits are 0. 03 is 0000 0011: no other
             byte follows, and the next 7 bits are 3
    handle   two varints that say where a block is: its offset in the file and its size in bytes
    footer   the last 48 bytes of the index: the handle of the metaindex, the handle of the index
             block, zeros up to byte 40, and 8 bytes by which such a file is recognised, MAGIC
    entry    one key and its value. An entry begins with three varints, n_shared, n_new and n_value.
             Then come n_new bytes, and then the value, which has n_value bytes. The key consists of
             the first n_shared bytes of the key before it, followed by the n_new bytes
    block    entries, then some numbers of 4 bytes each (explained below), and then 4 bytes that say
             how many these numbers are. All this is counted in the block's size. Five more bytes
             follow, which are not counted: one says how the block is compressed (0: not at all),
             and 4 are the checksum of the block and this one byte. (checksum.py explains how the
             checksums in these files are computed)

Neighbouring keys are alike, so sharing saves space. After "model/h0/attn/c_attn/b", the entry of
"model/h0/attn/c_attn/w" has n_shared 21, n_new 1 and the single key byte "w". (A GPT-2 consists of
layers. All of them have weights with the same names and shapes, but with other numbers in them. h0
is the first layer.)

The first entry of a block shares nothing with the entry before it: it holds its whole key. So does
every 16th entry after it in a data block, and every entry in an index block. Such an entry is
called a restart. The numbers at the end of a block are the places of its restarts. LevelDB needs
them to find a key quickly, without reading all entries. The functions below do read all entries. So
they only need to know how many restarts there are, because that tells them where the entries end.

In a data block, a key is the name of a tensor, and its value is a message that describes the
tensor. (The very first key of the table is an exception: see below.) In the index block, a value is
the handle of a data block. (The keys of the index block are for LevelDB's search. They are not
needed here.)


The messages

Messages are in protobuf, a format for small records. A message is a list of fields. Each field has
a number, which says what it is: in the message of a tensor, field 2 is the shape, for example. (The
same number may come several times, as in a list.) A field begins with its tag, a varint: 8 times
its number, plus the kind of its value:

    0    a varint
    2    a length, which is a varint, and then that many bytes
    5    4 bytes

A field whose value is 0 is left out. A tensor's message, a BundleEntryProto, has these fields:

    1 dtype (1: float32)          2 shape           3 shard_id (which data file)
    4 offset in the data file     5 size in bytes   6 crc32c (a checksum)

A field may itself hold a message. The shape is such a message, and its fields have numbers of their
own: in the shape, every field has the number 2 and is a dimension. It holds a message, too, in
which field 1 is the length of the dimension.

For example, this is the message of "model/h0/attn/c_attn/w" in models/tiny, the small model that
comes with this program, in hexadecimal:

    08 01             08 is 8 * 1 + 0: field 1, a varint. dtype: 1
    12 0E             12, in decimal 18, is 8 * 2 + 2: field 2, a length and bytes. The shape, 14
                      bytes:
       12 02             field 2, a dimension, 2 bytes:
          08 01             field 1, its length: 1 (`stored_shape` explains this 1)
       12 03             field 2, the next dimension, 3 bytes:
          08 80 01          field 1, its length: 0 + 1 * 128
       12 03             field 2, the last dimension, 3 bytes:
          08 80 03          field 1, its length: 0 + 3 * 128
                      (Field 3, shard_id, is 0 and left out)
    20 80 0C          20, in decimal 32, is 8 * 4 + 0: field 4, a varint. Offset: 0 + 12 * 128. The
                      tensor begins at byte 1536 of the data file
    28 80 80 0C       28, in decimal 40, is 8 * 5 + 0: field 5, a varint. Size: 0 + 0 * 128 + 12 *
                      128 * 128 = 196608 bytes. These are 1 * 128 * 384 float32 numbers of 4 bytes
    35 0F 82 36 4D    35, in decimal 53, is 8 * 6 + 5: field 6, 4 bytes. crc32c: the checksum of the
                      tensor's bytes

The first entry of the table has an empty key. Its message, a BundleHeaderProto, describes the
checkpoint as a whole. Its field 1, num_shards, is the number of data files. (A large model may have
several. OpenAI's have one each, and nothing else is supported here.) Its field 2, endianness, is 0
for little-endian.


To find a tensor by hand

    1. Read the footer, the last 48 bytes of the index. Skip the first handle, which is two varints.
       The next two varints are the offset and the size of the index block.
    2. Read the entries of the index block. Their values are the handles of the data blocks.
    3. Read the entries of the data blocks one by one, and put each key together, until a key is the
       name of the tensor. (To search the file for the name may fail, because of shared bytes.)
    4. The message of this entry gives the offset and the size of the tensor in the data file. There
       its numbers stand row by row, as in a NumPy array.


What damage is noticed

    read_index      an index without MAGIC at its end, a block that does not match its checksum, and
                    bytes that cannot be read in the way described above
    check_tensors   a weight that is missing, or does not have the dtype, shape or size that a model
                    with these hparams needs; more layers than hparams says
    map_data        a data file that is longer or shorter than the index says
    check_data      a tensor of numbers that does not match its checksum, and a weight with numbers
                    in it that are infinite or NaN ("not a number")

So without check_data, a change inside the data file goes unnoticed, unless its length changes too.

Sources: tensorflow/core/protobuf/tensor_bundle.proto and tensorflow/core/lib/io/table_format.txt
in github.com/tensorflow/tensorflow; src/model.py in github.com/openai/gpt-2 for the names.
"""

import math
import os
import re

import numpy as np

from checksum import masked_crc32c  # the checksum; checksum.py explains both parts of the name
from files import map_file, read_file, read_text
from weights import map_tree, shapes_of  # the names and shapes of a model's weights

DATA = ".data-00000-of-00001"  # how the name of a data file ends; other modules use this
MAGIC = bytes.fromhex("57fb808b247547db")
VARINT, BYTES, FIXED32 = 0, 2, 5  # three kinds of value in protobuf: the low 3 bits of a tag
FLOAT32, STRING = 1, 7  # TensorFlow's codes for two dtypes


def read_prefix(path):
    """What the file `checkpoint` calls the two other files, such as "model.ckpt".

    TensorFlow may have written the whole path on the machine it ran on. Only the last part of it
    is used. Raises ValueError if the file gives no name.
    """
    text = read_text(path, errors="replace")
    # The line looks like this: model_checkpoint_path: "/home/me/model.ckpt"
    # Control characters (\0 to \x1f) are not allowed: error messages show the name, and they could
    # upset a terminal.
    match = re.search(r'^model_checkpoint_path: *"([^"\0-\x1f]+)"', text, re.M)
    prefix = re.split(r"[/\\:]", match[1])[-1] if match else ""  # ":" as in "C:model.ckpt"
    if prefix == "":
        raise ValueError(f'{path} has no line model_checkpoint_path: "..."')
    return prefix


# ---- The index, from its smallest part up --------------------------------------------------
#
# The bytes may be anything: a damaged index, some other file, a file made to do harm. The functions
# below trust no byte. Whatever the bytes are, the memory that these functions use stays in
# proportion to the size of the file, and ValueError is raised if something is wrong. Their error
# messages call the file "it"; `read_index` puts its path in front.


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
        [byte], position = take(data, position, 1)  # the only element of these bytes: an int
        number |= (byte & 127) << n_bits
        if byte < 128:
            return number, position
    raise ValueError("it has a number of more than ten bytes")  # numbers have at most 64 bits


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
        raise ValueError("one of its blocks does not match its checksum")
    if trailer[0] != 0:
        raise ValueError("it is compressed, and TensorFlow's checkpoints are not")

    # The last 4 bytes are the number of restarts. The places of the restarts, before them, take 4
    # bytes each.
    n_restarts = int.from_bytes(block[-4:], "little")
    end = size - 4 * (n_restarts + 1)
    if end < 0:
        raise ValueError("one of its blocks is shorter than its list of restarts")

    block = block[:end]
    entries, key, n_key_bytes, position = [], b"", 0, 0
    while position < end:
        n_shared, position = read_varint(block, position)
        n_new, position = read_varint(block, position)
        n_value, position = read_varint(block, position)
        if n_shared > len(key):
            raise ValueError("a key shares more bytes than the key before it has")
        new, position = take(block, position, n_new)
        value, position = take(block, position, n_value)
        key = key[:n_shared] + new
        entries.append((key, value))
        # In a block made to do harm, every entry could share the whole key of the entry before it,
        # so that all keys together would fill terabytes. In a good block, every 16th key is stored
        # whole. So a byte of the block is part of at most 16 keys, and all keys together have at
        # most 16 times as many bytes as the block.
        n_key_bytes += len(key)
        if n_key_bytes > 16 * size:
            raise ValueError("its keys are longer than its size allows")
    return entries


def read_fields(message):
    """The fields of a protobuf message: dict of (number, kind of value) -> list of values."""
    fields, position = {}, 0
    while position < len(message):
        tag, position = read_varint(message, position)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, position = read_varint(message, position)
        elif kind == BYTES:
            size, position = read_varint(message, position)
            value, position = take(message, position, size)
        elif kind == FIXED32:
            value, position = take(message, position, 4)
            value = int.from_bytes(value, "little")
        else:
            raise ValueError("it has a value of an unknown kind")
        fields.setdefault((number, kind), []).append(value)
    return fields


def read_number(fields, number, kind=VARINT):
    """The value of one field, an int: 0 if the message does not have the field."""
    return fields.get((number, kind), [0])[-1]  # of several numbers, protobuf takes the last


def read_tensor(message):
    """What a BundleEntryProto says of one tensor: a dict."""
    fields = read_fields(message)
    # There should be one shape. If there are several, protobuf's rule is to take the dimensions of
    # all of them, one after another.
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
        # Without this, thousands of handles could point to the same block, and reading it again and
        # again could take very long.
        if offset < end:
            raise ValueError("its blocks overlap or are out of order")
        end = offset + size
        table.update(read_block(data, offset, size))
    return table


def read_index(path):
    """Where each tensor is in the data file, and what it is.

    Returns a dict of name -> dict of dtype, shape, shard_id, offset, size and crc32c. Offset and
    size count bytes. Raises ValueError, naming the file, if it is not the index of a TensorFlow
    checkpoint, or is of a kind that is not supported.
    """
    data = read_file(path)
    try:
        table = read_table(data)
        header = read_fields(table.pop(b"", b""))
        tensors = {name.decode("utf-8", "replace"): read_tensor(table[name]) for name in table}
        # (If there is no header, the number of data files is read as 0, which is refused too.)
        if read_number(header, 1) != 1 or any(tensor["shard_id"] for tensor in tensors.values()):
            raise ValueError("its checkpoint may have several data files; only one is supported")
        if read_number(header, 2) != 0:
            raise ValueError("its checkpoint is big-endian; only little-endian is supported")
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    return tensors


# ---- The weights ---------------------------------------------------------------------------


def stored_shape(name, shape):
    """The shape that a weight has in OpenAI's checkpoints.

    shape: the shape that it has in this program (see weights.py). The two are the same, with one
    exception: a matrix whose name ends in "/w", as in "c_attn/w", is [n_in, n_out] in this program,
    and [1, n_in, n_out] in a checkpoint. OpenAI's code multiplies by such a matrix in a function
    named conv1d (hence the "c_"), and conv1d wants the 1. The numbers and their order are the same
    with and without it. So `build_params` just leaves it out.
    """
    return (1, *shape) if name.endswith("/w") else shape


def check_tensors(path, tensors, hparams):
    """Raises ValueError if the index at `path` does not list the weights of a model of this size.

    tensors: what `read_index` returned. It may list more tensors, such as those that only training
    needs.
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
            raise ValueError(
                f"{path}: {name} has the shape {tensor_shape}, but hparams.json says {shape}"
            )
        if size != 4 * math.prod(shape):
            raise ValueError(f"{path}: {name} has {size:,} bytes, which do not fit {shape}")

    map_tree(check, shapes_of(hparams))  # calls check with the name and the shape of each weight
    # Layers are numbered from 0. So with n_layer layers, there should be no weight like this one,
    # which every layer has.
    if f"model/h{hparams['n_layer']}/ln_1/g" in tensors:
        raise ValueError(f"{path} lists more layers than n_layer in hparams.json")


def data_size(tensors):
    """The size of the data file in bytes: it ends where its last tensor ends."""
    return max((tensor["offset"] + tensor["size"] for tensor in tensors.values()), default=0)


def map_data(path, tensors):
    """The bytes of a data file, uint8 [size], mapped into memory.

    A byte is read from the disk when it is first used. Raises ValueError if the file does not have
    the size that its index gives.
    """
    size, expected_size = os.path.getsize(path), data_size(tensors)
    if size != expected_size:
        raise ValueError(f"{path} has {size:,} bytes, but its index says {expected_size:,}")
    return map_file(path)


def bytes_of(tensor, data):
    """The bytes of one tensor: uint8 [size], a part of `data`."""
    return data[tensor["offset"] : tensor["offset"] + tensor["size"]]


def build_params(data, tensors, hparams):
    """The weights: dicts and lists of float32 arrays (see weights.py) that use the bytes of `data`.

    `shapes_of` returns the same dicts and lists, but with the shape of each weight in its place.
    `map_tree` calls `weight` with the name and the shape of each, and puts the array that `weight`
    returns in the place of the shape.

    No numbers are copied: the file already holds them as little-endian float32, which is "<f4" in
    NumPy. So `view` and `reshape`, below, only say how the bytes are to be read: as float32, and in
    the shape that this program uses, without the 1 of the stored shape.
    """

    def weight(name, shape):
        return bytes_of(tensors[name], data).view("<f4").reshape(shape)

    return map_tree(weight, shapes_of(hparams))


def check_data(path, tensors, hparams):
    """Compares the tensors of a data file with their checksums; returns how many it looked at.

    tensors must have passed `check_tensors`. Raises ValueError if a checksum differs, or if a
    weight of the model has numbers in it that are infinite or NaN. A checkpoint may also hold
    tensors of strings. They have another kind of checksum, and are left out. An empty tensor, with
    a 0 in its shape, is counted, but there is nothing to compare.
    """
    data = map_data(path, tensors)
    numeric = {name: tensors[name] for name in tensors if tensors[name]["dtype"] != STRING}
    for name, tensor in numeric.items():
        content = bytes_of(tensor, data)
        if content.size > 0 and masked_crc32c(content) != tensor["crc32c"]:
            raise ValueError(f"{path} is damaged: {name} does not match its checksum")

    def check(name, shape):
        if not np.isfinite(bytes_of(tensors[name], data).view("<f4")).all():
            raise ValueError(f"{path}: {name} has numbers that are infinite or not numbers")

    map_tree(check, shapes_of(hparams))
    return len(numeric)
