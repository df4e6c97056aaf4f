"""Fetches OpenAI's GPT-2, and reads with NumPy alone what TensorFlow saved of it.

    encoder, hparams, params = load_encoder_hparams_and_params("124M", "models")

    python utils.py download 355M    fetches a model ahead of its first use
    python utils.py verify 124M      checks every byte of a model that is here

A model is a folder of six files:

    checkpoint                        tells what the last two are called: "model.ckpt"
    hparams.json                      the sizes: n_vocab, n_ctx, n_embd, n_head, n_layer
    encoder.json, vocab.bpe           the vocabulary, see encoder.py
    model.ckpt.index                  tells where each weight lies in the next file
    model.ckpt.data-00000-of-00001    the weights, number after number, and nothing else

TensorFlow calls the last two a tensor bundle. The index is a sorted table in the format of
LevelDB, made to be read from its end:

    +------------+-----+------------+-----------+-------------+--------+
    | data block | ... | data block | metaindex | index block | footer |
    +------------+-----+------------+-----------+-------------+--------+
      ^                  ^             (empty)    |  |  ^           |
      +------------------+------------------------+--+  +-----------+

    footer   48 bytes: handle of the metaindex, handle of the index block, zeros, MAGIC
    handle   where a block begins and its size: two varints
    block    entries and a list of restarts; then one byte, 0: not compressed, and a CRC-32C
    entry    n_shared, n_new, n_value: three varints; n_new bytes of its key; n_value of value
             The key begins with n_shared bytes of the key before it.
    varint   a number, 7 bits a byte, lowest first; the highest bit says that more follow

In the index block, values are handles of data blocks. There, keys are names such as
"model/h0/attn/c_attn/w", and each value is a protobuf message that describes the tensor:
1 dtype, 2 shape, 3 shard_id, 4 offset, 5 size, 6 crc32c.

Sources: tensorflow/core/protobuf/tensor_bundle.proto and tensorflow/core/lib/io/table_format.txt
in github.com/tensorflow/tensorflow; src/model.py in github.com/openai/gpt-2 for the names.
"""

import contextlib
import functools
import hashlib
import itertools
import json
import math
import os
import re
import shutil
import sys
import time

import numpy as np

from encoder import get_encoder, read_merges, read_tokens

# ---- The models and their files ------------------------------------------------------------

MODELS_DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models")
MODEL_SIZES = ("124M", "355M", "774M", "1558M")  # from OpenAI
NEW_NAMES = {"117M": "124M", "345M": "355M"}  # OpenAI had miscounted the parameters at first
BUNDLED = ("tiny",)  # came with this file, in MODELS_DIR

BASE_URL = "https://openaipublic.blob.core.windows.net/gpt-2/models"
DATA = ".data-00000-of-00001"
SMALL_FILES = ("checkpoint", "hparams.json", "encoder.json", "vocab.bpe")
FILES = (*SMALL_FILES, "model.ckpt.index", f"model.ckpt{DATA}")

# What is published of OpenAI's files, in the order of FILES. Sizes: the tests of
# github.com/rasbt/LLMs-from-scratch. SHA-256: scripts/download_openai_gpt2.py of
# github.com/MontrealAI/AGI-Alpha-Agent-v0; for encoder.json and vocab.bpe also
# github.com/openai/tiktoken. Only of the index is that script the one source.
SIZES_124M = (77, 90, 1042301, 456318, 5215, 497759232)
SIZES_355M = (77, 91, 1042301, 456318, 10399, 1419292672)
SHA256_124M = (
    "dd1b025d2e155283f5e300ce95bf6d5b6bc0f7fe010db73daa6975eb896ab9cb",
    "d9d56e4121c427164e0c55c6f03c08e1daf9002b9b672825112d19097b680318",
    "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    "71916f763f9746f9b2a06b12d91996cf1084ae008d0424543d39391c5f2dc687",
    "2060c885360cc0cf41d7a6dbc4d24b5127aae20260c8b5ae521b5a6578407118",
)
PUBLISHED_SIZES = {"124M": dict(zip(FILES, SIZES_124M)), "355M": dict(zip(FILES, SIZES_355M))}
PUBLISHED_SHA256 = {"124M": dict(zip(FILES, SHA256_124M))}


def check_model_size(model_size, models_dir):
    """Raises ValueError if `model_size` is neither OpenAI's nor a folder in `models_dir`."""
    models_dir = os.path.expanduser(models_dir)
    is_one_name = model_size not in ("", ".", "..") and not set(model_size) & set("/\\:")
    is_folder = is_one_name and os.path.isdir(os.path.join(models_dir, model_size))
    if is_folder or model_size in MODEL_SIZES:
        return
    if model_size in NEW_NAMES:
        raise ValueError(f"the model {model_size} is called {NEW_NAMES[model_size]} now")
    if model_size in BUNDLED:
        raise ValueError(f"the model {model_size} lies in {MODELS_DIR}: leave out --models_dir")

    names = sorted(os.listdir(models_dir)) if os.path.isdir(models_dir) else []
    here = [name for name in names if size_of(os.path.join(models_dir, name, "checkpoint"))]
    raise ValueError(
        f"there is no model {model_size!r}: {', '.join(MODEL_SIZES)} can be fetched, "
        f"and in {models_dir} there is {', '.join(here) or 'none'}"
    )


def size_of(path):
    """The bytes of a file, 0 if there is none."""
    return os.path.getsize(path) if os.path.isfile(path) else 0


def read_prefix(path):
    """What the file `checkpoint` calls the index and the data file, without their endings.

    TensorFlow may have written a whole path, of another machine even: the last part counts.
    """
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    match = re.search(r'^model_checkpoint_path: *"(?:.*[/\\:])?([^"/\\:\0-\x1f]+)"', text, re.M)
    if match is None:
        raise ValueError(f'{path} has no line model_checkpoint_path: "..."')
    return match[1]


def model_files(folder):
    """The names of a model's six files, in the order in which they are fetched."""
    try:
        prefix = read_prefix(os.path.join(folder, "checkpoint"))
    except (OSError, ValueError):
        prefix = "model.ckpt"  # OpenAI's
    return [*SMALL_FILES, f"{prefix}.index", f"{prefix}{DATA}"]


def missing_files(folder, names):
    """Those of the files `names` that a model's folder does not have."""
    return [name for name in names if not os.path.isfile(os.path.join(folder, name))]


def read_hparams(path):
    """The sizes of a model: a dict of five whole numbers. Raises ValueError naming the file."""
    with open(path, encoding="utf-8") as file:
        try:
            hparams = dict(json.load(file))
        except (ValueError, TypeError, RecursionError):
            raise ValueError(f"{path} is not a JSON object") from None
    for name in ("n_vocab", "n_ctx", "n_embd", "n_head", "n_layer"):
        if type(hparams.get(name)) is not int or not 1 <= hparams[name] <= 10**6:
            raise ValueError(f"{path} gives no {name} from 1 to 1,000,000")
    if hparams["n_embd"] % hparams["n_head"] != 0:
        raise ValueError(f"{path} gives an n_embd that is no multiple of n_head")
    return hparams


# ---- TensorFlow's checksum -----------------------------------------------------------------
#
# A CRC takes the data as one polynomial, each bit a coefficient, and is its remainder on division
# by a fixed one. Going over it byte by byte takes minutes in Python. But remainders
# can be added (xor): here the data lies in rows of ROW words, and each row, shifted to where the
# next one lies, is added to that. In the end a single row has the remainder of all of them. It is
# folded in the middle, again and again, until one word is left.

ROW = 2**14  # words of 32 bits


@functools.cache
def shift_tables(n_words):
    """Tables for `shift`, uint32 [4, 256]: what each value of each byte of a word turns into."""
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    if n_words == 1:
        shifted = bits
        for _ in range(32):
            # The lowest bit is the highest power. Where it leaves the word, the divisor is added.
            shifted = (shifted >> 1) ^ (shifted & 1) * np.uint32(0x82F63B78)
    else:
        shifted = shift(shift(bits, n_words // 2), n_words // 2)

    tables = np.zeros((4, 1), dtype=np.uint32)
    for bit in shifted.reshape(4, 8).T:  # all values without the bit, then all with it
        tables = np.concatenate([tables, tables ^ bit[:, None]], axis=1)
    return tables


def shift(words, n_words):
    """The remainders of uint32 words that have n_words words of zeros behind them."""
    tables = shift_tables(n_words)
    low = tables[0].take(words & 255) ^ tables[1].take(words >> 8 & 255)
    high = tables[2].take(words >> 16 & 255) ^ tables[3].take(words >> 24)
    return low ^ high


def masked_crc32c(data):
    """The checksum of bytes, or of a uint8 array, as TensorFlow stores it: an int.

    CRC-32C is in RFC 3720, the mask in tensorflow/core/lib/hash/crc32c.h.
    """
    # The standard begins with 32 ones in the remainder, to which these four bytes lead. Zeros
    # before them do nothing, and fill the row.
    n_first = len(data) % (4 * ROW)
    first = b"\x54\x64\x1f\x64" + bytes(data[:n_first])
    first = first.rjust(2 * 4 * ROW, b"\0")

    remainder = np.zeros(ROW, dtype=np.uint32)
    for part in (first, data[n_first:]):
        for row in np.frombuffer(part, dtype="<u4").reshape(-1, ROW):
            remainder = shift(remainder, ROW) ^ row
    width = ROW
    while width > 1:
        width //= 2
        remainder = shift(remainder[:width], width) ^ remainder[width:]
    crc = int(shift(remainder, 1)[0]) ^ 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32


# ---- The index -----------------------------------------------------------------------------
#
# Any file may have come to lie here. Nothing in it is taken for granted: these functions raise
# ValueError with what is wrong, and need no more memory than a multiple of the file's size.

MAGIC = bytes.fromhex("57fb808b247547db")
VARINT, BYTES, FIXED32 = 0, 2, 5  # the ways in which protobuf writes a value
FLOAT32, STRING = 1, 7  # the numbers of two dtypes


def take(data, position, size):
    """The next `size` bytes, and the position after them."""
    end = position + size
    if end > len(data):
        raise ValueError("is damaged: it refers to bytes beyond its end")
    return data[position:end], end


def read_varint(data, position):
    """The next number, and the position after it."""
    number = 0
    for shift_by in range(0, 70, 7):
        (byte,), position = take(data, position, 1)
        number |= (byte & 127) << shift_by
        if byte < 128:
            return number, position
    raise ValueError("is damaged: it has a number of more than ten bytes")


def read_handle(data, position):
    """The offset and the size of a block, and the position after its handle."""
    offset, position = read_varint(data, position)
    size, position = read_varint(data, position)
    return offset, size, position


def read_block(data, offset, size):
    """The entries of one block: a list of (key, value), both bytes."""
    block, position = take(data, offset, size)
    trailer, _ = take(data, position, 5)
    if masked_crc32c(block + trailer[:1]) != int.from_bytes(trailer[1:], "little"):
        raise ValueError("is damaged: a block of it does not have its checksum")
    if trailer[0] != 0:
        raise ValueError("is compressed, which TensorFlow's checkpoints are not")

    # Restarts are the entries that share nothing, listed for those who search. Here all is read.
    n_restarts = int.from_bytes(block[-4:], "little")
    end = size - 4 * (n_restarts + 1)
    if end < 0:
        raise ValueError("is damaged: a block of it is shorter than its list of restarts")

    entries, key, n_key_bytes, position = [], b"", 0, 0
    while position < end:
        n_shared, position = read_varint(block, position)
        n_new, position = read_varint(block, position)
        n_value, position = read_varint(block, position)
        new, position = take(block, position, n_new)
        value, position = take(block, position, n_value)
        key = key[:n_shared] + new
        entries.append((key, value))
        # Every 16th entry is a restart, so that more than this cannot come of sharing. A damaged
        # file might make terabytes of it.
        n_key_bytes += len(key)
        if n_key_bytes > 16 * size:
            raise ValueError("is damaged: its keys share more than they can")
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
            raise ValueError("is damaged: it has a value written in no known way")
        fields.setdefault((number, way), []).append(value)
    return fields


def read_number(fields, number, way=VARINT):
    """The number in one field; protobuf leaves out a field that is 0."""
    return fields.get((number, way), [0])[-1]


def read_tensor(message):
    """What a message, a BundleEntryProto, says of one tensor: a dict."""
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
    """The table in the bytes of an index: dict of name -> message, both bytes."""
    footer = data[-48:]
    if len(footer) < 48 or footer[-8:] != MAGIC:
        raise ValueError("is not the index of a TensorFlow checkpoint, or not a whole one")
    _, _, position = read_handle(footer, 0)  # of the metaindex
    offset, size, _ = read_handle(footer, position)

    table, end = {}, 0
    for _, handle in read_block(data, offset, size):
        offset, size, _ = read_handle(handle, 0)
        if offset < end:
            raise ValueError("is damaged: its blocks overlap")
        end = offset + size
        table.update(read_block(data, offset, size))
    return table


def read_index(path):
    """Where each tensor lies: dict of name -> dict of dtype, shape, offset, size and crc32c.

    Raises ValueError naming the file if it is damaged, or nothing that TensorFlow saved.
    """
    with open(path, "rb") as file:
        data = file.read()
    try:
        table = read_table(data)
        header = read_fields(table.pop(b"", b""))  # a BundleHeaderProto: 1 num_shards, 2 endianness
        tensors = {name.decode("utf-8", "replace"): read_tensor(table[name]) for name in table}
        if read_number(header, 1) != 1 or any(tensor["shard_id"] for tensor in tensors.values()):
            raise ValueError("belongs to a checkpoint in several data files, which are not read")
        if read_number(header, 2) != 0:
            raise ValueError("belongs to a big-endian checkpoint, which is not read")
    except ValueError as error:
        raise ValueError(f"{path} {error}") from None
    return tensors


# ---- The weights ---------------------------------------------------------------------------


def shapes_of(hparams):
    """The tree of weights, with the shape that the checkpoint has for each in its place.

    OpenAI wrote the matrices as convolutions of width 1: hence the 1, and the "c_".
    """
    n_embd = hparams["n_embd"]
    norm = {"g": (n_embd,), "b": (n_embd,)}

    def matrix(n_in, n_out):
        return {"w": (1, n_in, n_out), "b": (n_out,)}

    block = {
        "ln_1": norm,
        "attn": {"c_attn": matrix(n_embd, 3 * n_embd), "c_proj": matrix(n_embd, n_embd)},
        "ln_2": norm,
        "mlp": {"c_fc": matrix(n_embd, 4 * n_embd), "c_proj": matrix(4 * n_embd, n_embd)},
    }
    return {
        "wte": (hparams["n_vocab"], n_embd),
        "wpe": (hparams["n_ctx"], n_embd),
        "blocks": [block] * hparams["n_layer"],
        "ln_f": norm,
    }


def map_tree(function, tree, name="model"):
    """The same tree with function(name in the checkpoint, shape) in the place of every shape."""
    if isinstance(tree, tuple):
        return function(name, tree)
    if isinstance(tree, list):
        return [map_tree(function, block, f"{name}{i}") for i, block in enumerate(tree)]
    names = {key: f"{name}/h" if key == "blocks" else f"{name}/{key}" for key in tree}
    return {key: map_tree(function, tree[key], names[key]) for key in tree}


def check_tensors(path, tensors, hparams):
    """Raises ValueError if the index at `path` does not list the weights of a model this size.

    tensors: what `read_index` returned. It may list others too, such as what training needed.
    """

    def check(name, shape):
        if name not in tensors:
            raise ValueError(f"{path} does not list the tensor {name}")
        dtype, tensor_shape, size = (tensors[name][key] for key in ("dtype", "shape", "size"))
        if dtype != FLOAT32:
            raise ValueError(
                f"{path}: {name} is of dtype {dtype}; only {FLOAT32}, float32, is read"
            )
        if tensor_shape != shape:
            raise ValueError(f"{path}: {name} is {tensor_shape}; by hparams.json it is {shape}")
        if size != 4 * math.prod(shape):
            raise ValueError(f"{path}: {name} has {size} bytes, which do not make {shape}")

    map_tree(check, shapes_of(hparams))
    if f"model/h{hparams['n_layer']}/ln_1/g" in tensors:
        raise ValueError(f"{path} lists more layers than n_layer in hparams.json")


def data_size(tensors):
    """The bytes of a data file: it ends where its last tensor ends."""
    return max((tensor["offset"] + tensor["size"] for tensor in tensors.values()), default=0)


def map_data(path, tensors):
    """The bytes of a data file, uint8, mapped into memory: read only when they are used."""
    size, expected_size = size_of(path), data_size(tensors)
    if size != expected_size:
        raise ValueError(f"{path} has {size} bytes; by its index it has {expected_size}")
    return np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))  # plain, as memmap is slower


def bytes_of(tensor, data):
    """The bytes of one tensor, a part of `data`."""
    return data[tensor["offset"] : tensor["offset"] + tensor["size"]]


def build_params(data, tensors, hparams):
    """The tree of weights: float32 arrays in the memory of `data`, the matrices [in, out]."""

    def weight(name, shape):
        array = bytes_of(tensors[name], data).view("<f4").reshape(shape)
        return array[0] if len(shape) == 3 else array

    return map_tree(weight, shapes_of(hparams))


# ---- Checking ------------------------------------------------------------------------------


def check_published(folder, name, path):
    """Compares a file with what is published of it. Returns what was compared, in words."""
    model_size = os.path.basename(folder)
    size = PUBLISHED_SIZES.get(model_size, {}).get(name)
    sha256 = PUBLISHED_SHA256.get(model_size, {}).get(name)
    if size is None:
        return ""
    if size_of(path) != size:
        raise ValueError(f"{path} has {size_of(path)} bytes; published are {size}")
    if sha256 is None:
        return ", published size"
    if hashlib.sha256(np.memmap(path, dtype=np.uint8, mode="r")).hexdigest() == sha256:
        return ", published SHA-256"
    if name.endswith(".index"):
        # This hash has one source only. An index whose own checksums hold, beside a data file of
        # which the hash is certain, is right all the same.
        doubt = "does not have the SHA-256 that a single source gives; its own checksums decide"
        print(f"note: {path} {doubt}", file=sys.stderr)
        return ", published size"
    raise ValueError(f"{path} does not have the published SHA-256")


def check_content(folder, name, path):
    """Checks a file by what it says, and by what those before it say. Returns that in words."""

    def path_of(other):
        return path if other == name else os.path.join(folder, other)

    if name == "checkpoint":
        return f"names {read_prefix(path)}"
    hparams = read_hparams(path_of("hparams.json"))
    if name == "hparams.json":
        return "sizes that fit together"
    if name in ("encoder.json", "vocab.bpe"):
        tokens = read_tokens(path_of("encoder.json"))
        is_merges = name == "vocab.bpe"
        n_tokens = 256 + len(read_merges(path, tokens)) + 1 if is_merges else len(tokens)
        check_n_vocab(path, n_tokens, hparams)
        return f"{n_tokens} tokens"

    index_path = path_of(name.replace(DATA, ".index"))
    tensors = read_index(index_path)
    check_tensors(index_path, tensors, hparams)
    if path == index_path:
        return f"{len(tensors)} tensors, CRC-32C of its blocks"
    data = map_data(path, tensors)
    for tensor_name, tensor in tensors.items():
        # The checksum of strings is made in another way. They are not ours, nor is what is empty.
        has_crc = tensor["dtype"] != STRING and tensor["size"] > 0
        if has_crc and masked_crc32c(bytes_of(tensor, data)) != tensor["crc32c"]:
            raise ValueError(f"{path}: {tensor_name} does not have its checksum in {index_path}")
    return f"CRC-32C of {len(tensors)} tensors"


def check_n_vocab(path, n_tokens, hparams):
    """Raises ValueError if a vocabulary has another size than hparams.json says."""
    if n_tokens != hparams["n_vocab"]:
        raise ValueError(f"{path} makes {n_tokens} tokens, hparams.json {hparams['n_vocab']}")


# ---- Fetching ------------------------------------------------------------------------------
#
# A file grows as name.part, however often that breaks off. It gets its own name when it is whole
# and has been checked, and not before.

CONNECT_TIMEOUT = 3  # seconds
READ_TIMEOUT = 20  # seconds without a byte
PAUSES = (1, 2, 4, 8)  # seconds before each new try
UNREACHABLE = 10  # seconds for all tries together, while none of them gets an answer
START_OVER = (206, 416)  # the HTTP status of an answer that does not fit the part that is here
LOCK_FILE = "fetching.lock"


def expected_size(folder, name):
    """The bytes of a file: as it lies here, by the index, or as published; None if unknown."""
    path = os.path.join(folder, name)
    index_path = os.path.join(folder, name.replace(DATA, ".index"))
    if os.path.isfile(path):
        return size_of(path)
    if name.endswith(DATA) and os.path.isfile(index_path):
        return data_size(read_index(index_path))
    return PUBLISHED_SIZES.get(os.path.basename(folder), {}).get(name)


def root_cause(error):
    """What is behind an error of requests, which wraps it in several others: a line of text."""
    while cause := error.__cause__ or (None if error.__suppress_context__ else error.__context__):
        error = cause
    return " ".join(str(error).split()) or type(error).__name__


def read_headers(response, asked_from):
    """The first byte that a response brings, and the size of the whole file, None if not said.

    Raises requests.HTTPError if it does not bring the file from its start or from `asked_from`.
    """
    import requests

    # Encoded, as with gzip, the bytes that are counted are not those of the file.
    is_encoded = response.headers.get("Content-Encoding", "identity") != "identity"
    if response.status_code == 200:
        length = response.headers.get("Content-Length", "")
        return 0, int(length) if length.isdecimal() and not is_encoded else None

    content_range = response.headers.get("Content-Range", "")
    match = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", content_range)
    if response.status_code == 206 and match and not is_encoded:
        first, last, size = map(int, match.groups())
        if (first, last) == (asked_from, size - 1):
            return first, size
    reason = f"the server answered {response.status_code} {response.reason} {content_range}"
    raise requests.HTTPError(reason, response=response)


def receive(url, part, ask_from, size, bar):
    """Adds to the file `part` the bytes of the file at `url` from `ask_from` on: one request.

    size: the bytes of the whole file, None if unknown. bar: counts the bytes of the part.
    Raises requests.RequestException, or ValueError if it cannot be the right file.
    """
    import requests

    if ask_from == size:
        return
    headers = {"Accept-Encoding": "identity"}
    if ask_from > 0:
        headers["Range"] = f"bytes={ask_from}-"
    timeout = (CONNECT_TIMEOUT, READ_TIMEOUT)
    with requests.get(url, headers=headers, stream=True, timeout=timeout) as response:
        if response.headers.get("Content-Range") == f"bytes */{ask_from}":
            return  # status 416: the part is whole, nothing comes after it
        n_bytes, full_size = read_headers(response, ask_from)
        if None not in (size, full_size) and size != full_size:
            raise ValueError(f"it has {full_size} bytes, not {size}")
        size = size or full_size

        bar.update(n_bytes - size_of(part))
        with open(part, "ab" if n_bytes > 0 else "wb") as file:
            try:
                for chunk in response.iter_content(2**12):  # one that breaks off is lost
                    file.write(chunk)
                    bar.update(len(chunk))
                    n_bytes += len(chunk)
                    if size and n_bytes > size:
                        raise ValueError(f"it has more than {size} bytes")
                if size and n_bytes < size:
                    raise requests.ConnectionError("it ended")
            except requests.RequestException as error:
                reason = f"{root_cause(error)} after {n_bytes} of {size or 'unknown'} bytes"
                raise requests.ConnectionError(reason, response=response) from None
            file.flush()
            os.fsync(file.fileno())


def download(url, part, size, bar):
    """Brings the file at `url` to the file `part`, in as many requests as that takes.

    Raises OSError if the network or the disk fails, ValueError as `receive` does.
    """
    import requests

    ask_from = n_first = n_most = size_of(part)
    start, pauses = time.monotonic(), [*PAUSES]
    while True:
        try:
            return receive(url, part, ask_from, size, bar)
        except requests.RequestException as error:
            # Without such a status, the connection broke, or never was.
            is_status = isinstance(error, requests.HTTPError)
            status = error.response.status_code if is_status else 500
            is_no_address = isinstance(error, ValueError)
            if is_no_address or status < 500 and status not in START_OVER:
                raise
            if size_of(part) > n_most:  # it goes on, so patience begins anew
                n_most, pauses = size_of(part), [*PAUSES]
            if not pauses:
                raise
            pause = pauses.pop(0)
            end_of_next_try = time.monotonic() + pause + CONNECT_TIMEOUT
            is_unanswered = isinstance(error, requests.ConnectionError) and error.response is None
            if is_unanswered and n_most == n_first and end_of_next_try > start + UNREACHABLE:
                raise
            ask_from = 0 if status in START_OVER else size_of(part)
            time.sleep(pause)


def fetch_file(url, folder, name, bar):
    """Fetches one file and checks it. Raises as `download` does, and ValueError if it is wrong."""
    path = os.path.join(folder, name)
    part = f"{path}.part"
    was_begun = size_of(part) > 0
    bar.set_description(f"fetching {name}")
    download(url, part, expected_size(folder, name), bar)

    bar.set_description(f"checking {name}")
    problem = None
    try:
        check_published(folder, name, part)
        if not (name.endswith(DATA) and name in PUBLISHED_SHA256.get(os.path.basename(folder), ())):
            check_content(folder, name, part)  # the index may be less certain than the data is
    except ValueError as error:
        problem = str(error)
    if problem is None:
        os.replace(part, path)
        return

    # Windows removes no file that is mapped into memory, as the part is while that error lives.
    bar.update(-size_of(part))
    os.remove(part)
    if not was_begun:
        raise ValueError(problem)
    fetch_file(url, folder, name, bar)  # what an earlier run had left may have been wrong


def fetch(folder, names):
    """Fetches the files `names` of one of OpenAI's models. Raises OSError or ValueError."""
    from tqdm import tqdm

    sizes = [expected_size(folder, name) for name in model_files(folder)]
    paths = [os.path.join(folder, name) for name in model_files(folder)]
    n_here = sum(size_of(path) or size_of(f"{path}.part") for path in paths)
    n_missing = sum(size or 0 for size in sizes) - n_here
    n_free = shutil.disk_usage(folder).free
    if n_missing > n_free:
        raise OSError(
            f"{folder} needs {n_missing} bytes more, but its disk has {n_free}: make room, or "
            f"name a folder on another disk as models_dir"
        )

    missing = ", ".join(missing_files(folder, model_files(folder)))
    advice = (
        f"try again, set GPT2_BASE_URL to a mirror, or put {missing} into {folder} by hand; "
        f"--model_size {BUNDLED[0]} needs no download"
    )
    base_url = os.environ.get("GPT2_BASE_URL") or BASE_URL
    total = None if None in sizes else sum(sizes)
    options = {"unit": "B", "unit_scale": True, "leave": False, "disable": None}
    with tqdm(total=total, initial=n_here, **options) as bar:
        for name in names:
            url = f"{base_url.rstrip('/')}/{os.path.basename(folder)}/{name}"
            try:
                fetch_file(url, folder, name, bar)
            except OSError as error:
                raise OSError(f"cannot fetch {url}: {root_cause(error)}; {advice}") from None
            except ValueError as error:
                raise ValueError(f"{url} is not the right file: {error}; {advice}") from None


@contextlib.contextmanager
def lock(folder):
    """Waits until no other process fetches into `folder`, and keeps others from doing so.

    It is a lock of the operating system, which ends with the process, even one that is killed.
    The file that it is held on is empty, and means nothing when it is left behind.
    """
    with open(os.path.join(folder, LOCK_FILE), "ab") as file:
        for n_tries in itertools.count():
            try:
                if os.name == "nt":
                    import msvcrt

                    msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
                else:
                    import fcntl

                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except (BlockingIOError, PermissionError):  # another process holds it
                if n_tries == 0:
                    print(f"waiting for another process, which fetches {folder}", file=sys.stderr)
                time.sleep(1)
            except OSError:  # a network drive without locks; what is fetched is checked anyway
                break
        yield


def ensure_files(folder, names):
    """Fetches those of the files `names` that are missing; ValueError if they are not OpenAI's."""
    missing = missing_files(folder, names)
    if not missing:
        return
    if os.path.basename(folder) not in MODEL_SIZES:
        raise ValueError(
            f"{folder} is not a whole model: it lacks {', '.join(missing)}; put what is missing "
            f"there, or take another model_size"
        )
    os.makedirs(folder, exist_ok=True)
    with lock(folder):
        fetch(folder, missing_files(folder, names))  # without those that another process fetched
    if not missing_files(folder, model_files(folder)):
        with contextlib.suppress(OSError):  # another process has it open, or removed it
            os.remove(os.path.join(folder, LOCK_FILE))


# ---- Loading -------------------------------------------------------------------------------


def folder_of(model_size, models_dir):
    """The absolute path of a model's folder. Raises ValueError if there is no such model."""
    check_model_size(model_size, models_dir)
    return os.path.join(os.path.abspath(os.path.expanduser(models_dir)), model_size)


@contextlib.contextmanager
def advising_to_verify(folder):
    """Adds to a ValueError what can be done about a damaged file."""
    try:
        yield
    except ValueError as error:
        models_dir, name = os.path.split(folder)
        option = "" if models_dir == MODELS_DIR else f' --models_dir="{models_dir}"'
        remedy = "the next run fetches it" if name in MODEL_SIZES else "put a good one there"
        advice = f"`python utils.py verify {name}{option}` checks all files"
        raise ValueError(f"{error}; {advice}: delete what is damaged, and {remedy}") from None


def load_encoder_and_hparams(model_size, models_dir):
    """The tokenizer and the sizes of a model: (encoder, hparams), an Encoder and a dict of int.

    OpenAI's models are fetched, all but the weights, if files are missing. Raises ValueError for
    an unknown model and for a missing or damaged file, OSError if one cannot be fetched or read.
    """
    folder = folder_of(model_size, models_dir)
    *small_files, _ = model_files(folder)
    ensure_files(folder, small_files)
    with advising_to_verify(folder):
        read_prefix(os.path.join(folder, "checkpoint"))
        hparams = read_hparams(os.path.join(folder, "hparams.json"))
        encoder = get_encoder(model_size, models_dir)
        check_n_vocab(os.path.join(folder, "encoder.json"), len(encoder.tokens), hparams)
    return encoder, hparams


def load_params(model_size, models_dir, hparams):
    """The weights of a model, which are fetched if need be: the tree in `shapes_of`.

    Its leaves are read-only float32 arrays, the matrices [in, out]. They are mapped into memory,
    which takes no time: a weight is read from the file when it is first used. Checked are names,
    shapes, sizes, and the checksums of the index; those of the weights are left to `verify`.
    Raises as `load_encoder_and_hparams` does.
    """
    folder = folder_of(model_size, models_dir)
    *_, index, data_file = model_files(folder)
    index_path = os.path.join(folder, index)
    ensure_files(folder, [index])
    with advising_to_verify(folder):
        tensors = read_index(index_path)
        check_tensors(index_path, tensors, hparams)
    ensure_files(folder, [data_file])
    with advising_to_verify(folder):
        data = map_data(os.path.join(folder, data_file), tensors)
    return build_params(data, tensors, hparams)


def load_encoder_hparams_and_params(model_size, models_dir):
    """All of a model, (encoder, hparams, params), as the two functions above return them."""
    encoder, hparams = load_encoder_and_hparams(model_size, models_dir)
    params = load_params(model_size, models_dir, hparams)
    return encoder, hparams, params


# ---- The command line ----------------------------------------------------------------------


def verify(model_size, models_dir):
    """Checks every byte of a model; prints a line a file and a total. True if all is right."""
    folder = folder_of(model_size, models_dir)
    names = model_files(folder)
    n_right = 0
    for name in names:
        path = os.path.join(folder, name)
        try:
            if not os.path.isfile(path):
                raise ValueError("missing")
            content = check_content(folder, name, path)
            result = f"ok: {content}{check_published(folder, name, path)}"
            n_right += 1
        except (OSError, ValueError) as error:
            # The fault may be in another file, by which this one is checked.
            is_here = str(error) == "missing" or path in str(error).split(": ")[0]
            result = f"WRONG: {error}" if is_here else f"not checked: {error}"
        print(f"{name:<31}{size_of(path):>14,} bytes  {result}")
    print(f"{model_size}: {n_right} of {len(names)} files are right")
    return n_right == len(names)


def main():
    import argparse

    parser = argparse.ArgumentParser(
        usage=argparse.SUPPRESS,  # a wrong call is answered in one line
        description="download: fetches a model ahead of its first use. "
        "verify: checks every byte of a model that is here.",
    )
    parser.add_argument("command", choices=["download", "verify"])
    parser.add_argument("model_size", help=f"{', '.join(MODEL_SIZES)} or a folder in models_dir")
    parser.add_argument("--models_dir", default=MODELS_DIR, help="default: %(default)s")
    args = parser.parse_args()
    try:
        folder = folder_of(args.model_size, args.models_dir)
    except ValueError as error:
        parser.error(str(error))

    try:
        if args.command == "verify":
            sys.exit(not verify(args.model_size, args.models_dir))
        load_encoder_hparams_and_params(args.model_size, args.models_dir)
        print(f"{args.model_size} is in {folder}")
    except (OSError, ValueError) as error:
        sys.exit(f"utils.py: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
