"""Reads the weights of a model from a file in the safetensors format, with NumPy alone.

    tensors = read_index("model.safetensors", hparams)
    params = build_params("model.safetensors", tensors, hparams)

The format:

    +-----------------+---------------+------------------------------------------------------+
    | 8 bytes: the    | the header, a | the data: the numbers of all tensors, one tensor     |
    | header's size   | JSON object   | after another, little-endian, nothing between them   |
    +-----------------+---------------+------------------------------------------------------+

The header gives each tensor's type and shape, and where its numbers begin and end. These two
places are counted in bytes from the beginning of the data. For example, this is a whole file with
a single tensor, the numbers 1 and -2:

    40 00 00 00 00 00 00 00   the size of the header: 0x40, which is 64 bytes
    {"ln_f.bias":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}   62 characters, and two spaces
    00 00 80 3F 00 00 00 C0   1.0 and -2.0 as float32: bytes 0 to 8 of the data

The two spaces make the data begin at a multiple of 8 bytes. Besides the tensors, the header may
have "__metadata__", notes of the program that wrote the file, such as {"format": "pt"}.

Numbers are float32 (F32), or take half the room as float16 (F16) or bfloat16 (BF16). A bfloat16
is the upper half of a float32: put 16 zero bits behind it, and it is a float32.

Source: "Format" in the README of github.com/huggingface/safetensors.
"""

import json
import math
import re

import numpy as np

from files import map_file
from huggingface.config import Unsupported, shown
from weights import map_tree, shapes_of

LARGEST_HEADER = 2**20  # bytes; the header of the largest GPT-2, with 580 tensors, has about 60,000
BITS = {"BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "U16": 16, "I16": 16, "F16": 16}
BITS |= {"BF16": 16, "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64}
SUPPORTED = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}  # with the dtype that NumPy reads


# ---- The header ----------------------------------------------------------------------------
#
# The bytes may be anything: a damaged file, a web page, another program's file. The functions
# below trust none of them. They raise ValueError with what is wrong.


def distinct(pairs):
    """A dict of the pairs (name, value) of a JSON object. Raises ValueError for a double name."""
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("its header has a name twice")
    return content


def are_sizes(value):
    """Whether something from the header is a list of whole numbers that can be sizes.

    The limits keep the product of the numbers small. bool is excluded: True is an int in Python.
    """
    is_short = isinstance(value, list) and len(value) <= 8
    return is_short and all(type(number) is int and 0 <= number < 2**48 for number in value)


def read_tensor(name, entry, begin):
    """What the header says of one tensor: a dict. begin: where the data begins in the file."""
    entry = entry if isinstance(entry, dict) else {}
    dtype, shape, place = (entry.get(key) for key in ("dtype", "shape", "data_offsets"))
    if not (isinstance(dtype, str) and are_sizes(shape) and are_sizes(place) and len(place) == 2):
        raise ValueError(f"its header has no dtype, shape and data_offsets for {shown(name)}")
    if dtype not in BITS:
        raise ValueError(f"{shown(name)} is of the unknown dtype {shown(dtype)}")
    size = math.prod(shape) * BITS[dtype] // 8
    if place[1] - place[0] != size:
        raise ValueError(f"the data_offsets of {shown(name)} do not fit its dtype and shape")
    return {"dtype": dtype, "shape": tuple(shape), "offset": begin + place[0], "size": size}


def read_header(path):
    """The tensors in a file: dict of name -> dict of dtype, shape, offset and size.

    The offset counts bytes from the beginning of the file, the size is in bytes.
    """
    data = map_file(path)
    n_bytes = len(data)
    size = int.from_bytes(data[:8].tobytes(), "little")
    begin = 8 + size
    if begin > n_bytes or size > LARGEST_HEADER:
        raise ValueError("it does not begin with the size of a safetensors header")
    text = data[8:begin].tobytes()
    try:
        header = json.loads(text.decode(), object_pairs_hook=distinct)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise ValueError("its header is not a JSON object")

    header.pop("__metadata__", None)
    tensors = {name: read_tensor(name, entry, begin) for name, entry in header.items()}
    end = begin
    for tensor in sorted(tensors.values(), key=lambda tensor: (tensor["offset"], tensor["size"])):
        if tensor["offset"] != end:
            raise ValueError("its tensors overlap, or leave bytes between them")
        end += tensor["size"]
    if end != n_bytes:
        raise ValueError(f"it has {n_bytes:,} bytes, but its header says {end:,}")
    return tensors


# ---- The tensors of a GPT-2 ----------------------------------------------------------------


def stored_name(name):
    """What transformers calls a weight: "h.0.attn.c_attn.weight" for "model/h0/attn/c_attn/w"."""
    *parts, last = name.split("/")[1:]
    last = {"w": "weight", "g": "weight", "b": "bias"}.get(last, f"{last}.weight")
    return ".".join([re.sub(r"^h(\d+)$", r"h.\1", part) for part in parts] + [last])


def read_index(path, hparams):
    """Where each tensor is in the file: dict of name -> dict, as `read_header` returns it.

    GPT2LMHeadModel saves its weights as "transformer.wte.weight" and so on, GPT2Model without
    "transformer.". Here all names are without it. The file may have more than the weights, such
    as the masks that older versions saved ("h.0.attn.bias").
    Raises ValueError naming the file if it is damaged or does not hold a model of this size.
    """
    try:
        header = read_header(path)
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    tensors = {name.removeprefix("transformer."): tensor for name, tensor in header.items()}
    if len(tensors) < len(header):
        raise ValueError(f'{path} has a tensor twice, with and without "transformer."')

    def check(name, shape):
        name = stored_name(name) if "/" in name else name
        if name not in tensors:
            raise ValueError(f"{path} does not have the tensor {name}")
        tensor = tensors[name]
        if tensor["dtype"] not in SUPPORTED:
            raise Unsupported(
                f"{path}: {name} is of dtype {tensor['dtype']}, but this program supports only "
                f"{', '.join(SUPPORTED)}: convert the model with transformers"
            )
        if tensor["shape"] != shape:
            raise ValueError(
                f"{path}: {name} is {tensor['shape']}, but config.json says {shape}"
            )

    shapes = shapes_of(hparams)
    map_tree(check, shapes)
    if "lm_head.weight" in tensors:  # a copy of wte, see check_numbers
        check("lm_head.weight", shapes["wte"])
    if f"h.{hparams['n_layer']}.ln_1.weight" in tensors:
        raise ValueError(f"{path} has more layers than n_layer in config.json")
    return tensors


def weight_of(path, data, tensor):
    """The numbers of one tensor: a read-only float32 array, in the memory of `data` if possible."""
    begin, dtype, shape = tensor["offset"], tensor["dtype"], tensor["shape"]
    if dtype == "F32" and begin % 4 == 0:
        return data[begin : begin + tensor["size"]].view("<f4").reshape(shape)
    # Files written before 2023 have no spaces at the end of the header, so their data may begin
    # anywhere; openai-community/gpt2 and distilbert/distilgpt2 are such files. NumPy multiplies
    # with float32 that does not begin at a multiple of 4 bytes 30 times slower, so it is copied.
    numbers = np.fromfile(path, SUPPORTED[dtype], count=math.prod(shape), offset=begin)
    if dtype == "BF16":
        numbers = (numbers.astype("<u4") << 16).view("<f4")
    numbers = numbers.astype("<f4", copy=False).reshape(shape)
    numbers.flags.writeable = False
    return numbers


def build_params(path, tensors, hparams):
    """The tree of weights that weights.py shows. tensors: what `read_index` returned."""
    data = map_file(path)

    def weight(name, shape):
        return weight_of(path, data, tensors[stored_name(name)])

    return map_tree(weight, shapes_of(hparams))


def check_numbers(path, tensors, hparams):
    """Reads all weights. Raises ValueError if one is infinite or not a number.

    The format has no checksums, so other damage cannot be found. Raises Unsupported if the logits
    are made with another matrix than wte.
    """
    data = map_file(path)

    def check(name, shape):
        if not np.isfinite(weight_of(path, data, tensors[stored_name(name)])).all():
            raise ValueError(f"{path}: {name} has numbers that are infinite or not numbers")

    map_tree(check, shapes_of(hparams))
    if "lm_head.weight" in tensors:
        head, wte = (tensors[f"{name}.weight"] for name in ("lm_head", "wte"))
        if not np.array_equal(weight_of(path, data, head), weight_of(path, data, wte)):
            raise Unsupported(
                f"{path}: lm_head.weight is not the same as wte.weight, but this program has one "
                f"matrix for both: run this model with transformers"
            )
