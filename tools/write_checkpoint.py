"""Writes a GPT-2 checkpoint in TensorFlow's format, without TensorFlow, for tests and benchmarks.

    write_checkpoint("models/mine", hparams, tensors)    tensors: {variable name: array}
    write_checkpoint("models/shape", hparams)            all weights are 0, and the data file is
                                                         sparse: it takes no room on the disk

checkpoint.py reads such files, and explains the format.
"""

import json
import os

import numpy as np

import checkpoint
import checksum
import weights

DTYPES = {
    "float32": 1,
    "float64": 2,
    "int32": 3,
    "int8": 6,
    "int64": 9,
    "float16": 19,
}  # TensorFlow's numbers
RESTART_INTERVAL = 16


def varint(number):
    """A whole number in 7 bits per byte, the lowest bits first.

    The top bit says that more bytes follow.
    """
    encoded = b""
    while number >= 128:
        encoded += bytes([number & 127 | 128])
        number >>= 7
    return encoded + bytes([number])


def field(number, value):
    """One field of a protobuf message. An int becomes a varint. Bytes get their length in front."""
    if isinstance(value, int):
        return varint(number << 3 | checkpoint.VARINT) + varint(value)
    return varint(number << 3 | checkpoint.BYTES) + varint(len(value)) + value


def tensor_entry(dtype, shape, offset, size, crc32c, shard_id=0):
    """The message that describes a tensor (BundleEntryProto). Numbers that are 0 are left out."""
    dims = b"".join(field(2, field(1, n)) for n in shape)
    numbers = {3: shard_id, 4: offset, 5: size}
    return (
        field(1, dtype)
        + field(2, dims)
        + b"".join(field(number, value) for number, value in numbers.items() if value != 0)
        + varint(6 << 3 | checkpoint.FIXED32)
        + crc32c.to_bytes(4, "little")
    )


def block(entries):
    """A block of sorted (key, value) pairs. Every 16th key is written whole."""
    data, restarts, last_key = b"", [], b""
    for i, (key, value) in enumerate(entries):
        if i % RESTART_INTERVAL == 0:
            restarts.append(len(data))
            last_key = b""
        n_shared = len(os.path.commonprefix([last_key, key]))
        new = key[n_shared:]
        data += varint(n_shared) + varint(len(new)) + varint(len(value)) + new + value
        last_key = key
    restarts = restarts or [0]
    return data + np.array([*restarts, len(restarts)], dtype="<u4").tobytes()


def trailer(block, compression=0):
    """What follows a block: how it is compressed, and its checksum."""
    compression = bytes([compression])
    return compression + checksum.masked_crc32c(block + compression).to_bytes(4, "little")


def table(entries, block_size=2**18):
    """The bytes of an index with these sorted (key, value) pairs."""
    blocks, size = [[]], 0
    for key, value in entries:
        if size + len(key) + len(value) > block_size and blocks[-1]:
            blocks.append([])
            size = 0
        blocks[-1].append((key, value))
        size += len(key) + len(value)

    data, handles = b"", []
    for part in [*(block(pairs) for pairs in blocks), block([])]:
        handles.append(varint(len(data)) + varint(len(part)))
        data += part + trailer(part)
    *data_handles, metaindex = handles
    # The key beside a block's handle need not be a key of the block. It only must not come before
    # the block's last key. At the end of the table, LevelDB uses a short one, to save bytes.
    last_keys = [pairs[-1][0] for pairs in blocks]
    last_keys[-1] = bytes([last_keys[-1][0] + 1])
    index = block(list(zip(last_keys, data_handles)))
    footer = metaindex + varint(len(data)) + varint(len(index))
    return data + index + trailer(index) + footer.ljust(40, b"\0") + checkpoint.MAGIC


def write_checkpoint(folder, hparams, tensors=None, prefix="model.ckpt", block_size=2**18):
    """Writes hparams.json, checkpoint, <prefix>.index and the data file into `folder`.

    tensors: dict of variable name -> array, with matrices as [1, in, out]. Without `tensors`, every
    weight is 0, the data file is sparse, and the checksums are not computed.
    """
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "hparams.json"), "w", encoding="utf-8", newline="\n") as file:
        file.write(json.dumps(hparams, indent=2) + "\n")
    with open(os.path.join(folder, "checkpoint"), "w", encoding="utf-8", newline="\n") as file:
        file.write(f'model_checkpoint_path: "{prefix}"\nall_model_checkpoint_paths: "{prefix}"\n')

    header = field(1, 1) + field(3, field(1, 1))  # one data file; version 1
    entries = [(b"", header)]
    offset = 0
    shapes = dict(tensors or {})
    if tensors is None:

        def note(name, shape):
            shapes[name] = checkpoint.stored_shape(name, shape)

        weights.map_tree(note, weights.shapes_of(hparams))
    with open(os.path.join(folder, prefix + checkpoint.DATA), "wb") as file:
        for name in sorted(shapes):
            if tensors is None:
                dtype, shape, crc32c = "float32", shapes[name], 0
                size = 4 * int(np.prod(shape))
            else:
                array = np.asarray(tensors[name])
                dtype, shape, data = array.dtype.name, array.shape, array.tobytes()
                size, crc32c = len(data), checksum.masked_crc32c(data)
                file.write(data)
            entry = tensor_entry(DTYPES[dtype], shape, offset, size, crc32c)
            entries.append((name.encode(), entry))
            offset += size
        file.truncate(offset)
    with open(os.path.join(folder, f"{prefix}.index"), "wb") as file:
        file.write(table(entries, block_size))
