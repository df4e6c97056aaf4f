"""Weights in a safetensors file are read to the right numbers, or are refused in one line."""

import json
import math
import random
import time
import tracemalloc

import numpy as np
import pytest
from huggingface_folders import HPARAMS, SMALL, arrays_of, copy_small, load

import huggingface
import utils
import weights
from huggingface import tensors
from tools.fuzz_checkpoint import damage
from tools.write_huggingface import write_safetensors


@pytest.fixture
def folder(tmp_path):
    """A copy of the small model, for a test to change."""
    return copy_small(tmp_path)


@pytest.fixture(scope="module")
def expected():
    """The weights of the small model, as they are in its own file."""
    index = huggingface.read_index(str(SMALL), HPARAMS)
    return huggingface.load_params(str(SMALL), index, HPARAMS)


def test_the_example_in_the_docstring_is_true(tmp_path):
    """The bytes drawn in tensors.py are read as the two numbers that it says."""
    _, _, drawn = tensors.__doc__.partition("    40 00")
    first, header, last = ("40 00" + drawn).split("\n")[:3]
    data = bytes.fromhex(first.split("   ")[0])
    data += header.strip().split("   ")[0].encode() + b"  "
    data += bytes.fromhex(last.strip().split("   ")[0])
    path = tmp_path / "example"
    path.write_bytes(data)
    tensor = tensors.read_header(path)["ln_f.bias"]
    numbers = tensors.weight_of(path, tensors.map_file(path), tensor)
    assert tensor["offset"] == 72 and numbers.tolist() == [1.0, -2.0]


@pytest.mark.parametrize("n_spaces", [0, 1, 2, 3])
def test_float32_is_mapped_if_it_is_aligned(folder, expected, n_spaces):
    """Weights that begin at a multiple of 4 bytes stay in the file.

    Others are copied, and are right.
    """
    path = folder / "model.safetensors"
    write_safetensors(path, arrays_of(SMALL), n_spaces)
    begin = min(tensor["offset"] for tensor in tensors.read_header(path).values())
    _, _, params = load(folder)
    for name in ("wte", "wpe"):
        array = params[name]
        assert np.array_equal(array, expected[name]) and array.dtype == np.float32
        assert array.flags.aligned and not array.flags.writeable
        assert isinstance(array.base.base, np.memmap) == (begin % 4 == 0)


@pytest.mark.parametrize("dtype", ["F16", "BF16"])
def test_half_precision_becomes_float32(folder, dtype):
    """Every float16 or bfloat16 number keeps its value."""
    arrays = {name: array for name, (_, array) in arrays_of(folder).items()}
    if dtype == "F16":
        stored = {name: array.astype(np.float16) for name, array in arrays.items()}
        widened = {name: array.astype(np.float32) for name, array in stored.items()}
    else:
        stored = {
            name: (array.view(np.uint32) >> 16).astype(np.uint16) for name, array in arrays.items()
        }
        widened = {
            name: (array.view(np.uint32) & 0xFFFF0000).view(np.float32)
            for name, array in arrays.items()
        }
    half = {name: (dtype, array) for name, array in stored.items()}
    write_safetensors(folder / "model.safetensors", half)
    _, _, params = load(folder)

    def check(name, leaf_shape):
        found = weights_by_name[name]
        assert found.dtype == np.float32
        assert np.array_equal(found, widened["transformer." + tensors.stored_name(name)])

    weights_by_name = named(params)
    weights.map_tree(check, weights.shapes_of(HPARAMS))


def named(params):
    """The leaves of a tree of weights, by their names."""
    found = {"model/wte": params["wte"], "model/wpe": params["wpe"]}
    found |= {f"model/ln_f/{leaf}": array for leaf, array in params["ln_f"].items()}
    for i, block in enumerate(params["blocks"]):
        for norm in ("ln_1", "ln_2"):
            found |= {f"model/h{i}/{norm}/{leaf}": block[norm][leaf] for leaf in "gb"}
        for part in ("attn", "mlp"):
            for name, linear in block[part].items():
                found |= {f"model/h{i}/{part}/{name}/{leaf}": linear[leaf] for leaf in "wb"}
    return found


def test_other_names_and_needless_tensors_are_no_obstacle(folder, expected):
    """GPT2Model's names have no "transformer." in front.

    The masks of old versions, and a head that is a copy of wte, are passed over.
    """
    arrays = {name.removeprefix("transformer."): pair for name, pair in arrays_of(folder).items()}
    arrays["h.0.attn.bias"] = ("BOOL", np.ones((1, 1, 128, 128), bool))
    arrays["h.0.attn.masked_bias"] = ("F32", np.array(-np.inf, dtype=np.float32))
    arrays["lm_head.weight"] = arrays["wte.weight"]
    write_safetensors(folder / "model.safetensors", arrays)
    _, _, params = load(folder)
    array, expected_array = (tree["blocks"][2]["mlp"]["c_fc"]["w"] for tree in (params, expected))
    assert np.array_equal(array, expected_array)
    assert utils.verify(folder.name, str(folder.parent))


def nan(arrays):
    arrays["transformer.h.1.ln_2.bias"][1][3] = np.nan


def other_head(arrays):
    arrays["lm_head.weight"] = ("F32", arrays["transformer.wte.weight"][1] + 1)


def small_head(arrays):
    arrays["lm_head.weight"] = ("F32", arrays["transformer.wte.weight"][1][1:])


def one_less(arrays):
    del arrays["transformer.h.1.ln_2.bias"]


def more_layers(arrays):
    arrays["transformer.h.3.ln_1.weight"] = arrays["transformer.h.2.ln_1.weight"]


def twice(arrays):
    arrays["ln_f.bias"] = arrays["transformer.ln_f.bias"]


def other_shape(arrays):
    dtype, array = arrays["transformer.h.0.mlp.c_fc.weight"]
    arrays["transformer.h.0.mlp.c_fc.weight"] = (dtype, array.T)


def other_dtype(arrays):
    dtype, array = arrays["transformer.wpe.weight"]
    arrays["transformer.wpe.weight"] = ("F64", array.astype(np.float64))


@pytest.mark.parametrize(
    "damage, words",
    [
        (nan, "ln_2/b has numbers that are infinite or not numbers"),
        (other_head, "lm_head.weight is not the same as wte.weight"),
        (small_head, "lm_head.weight is (287, 20), but config.json says (288, 20)"),
        (one_less, "does not have the tensor h.1.ln_2.bias"),
        (more_layers, "more layers than n_layer"),
        (twice, 'has a tensor twice, with and without "transformer."'),
        (other_shape, "h.0.mlp.c_fc.weight is (80, 20), but config.json says (20, 80)"),
        (other_dtype, "wpe.weight is of dtype F64"),
    ],
)
def test_wrong_weights_are_refused(folder, capsys, damage, words):
    """The error is one line. verify shows which file is wrong."""
    arrays = arrays_of(folder)
    damage(arrays)
    write_safetensors(folder / "model.safetensors", arrays)
    with pytest.raises(ValueError) as caught:
        load(folder)
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert not utils.verify(folder.name, str(folder.parent))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if "WRONG" in line] == ["model.safetensors"]
    assert lines[-1].startswith("mine: 1 of 5 files did not pass: model.safetensors; ")


def test_verify_says_which_file_is_damaged(folder, capsys):
    """A file that depends on the damaged one is not checked."""
    (folder / "config.json").write_text("{", encoding="utf-8")
    assert not utils.verify(folder.name, str(folder.parent))
    results = [line[53:].split(":")[0].strip() for line in capsys.readouterr().out.splitlines()]
    unchecked = "not checked, because config.json is wrong"
    assert results[:5] == ["WRONG", unchecked, "ok", unchecked, unchecked]


# ---- A hostile header ----------------------------------------------------------------------

ENTRY = '"x":{"dtype":"F32","shape":[%s],"data_offsets":[%s]}'


@pytest.mark.parametrize(
    "header",
    [
        "",
        "[]",
        "{" * 100_000,
        '{"a":' * 100_000,
        "[" * 1_000_000,
        '{"x":' + "9" * 100_000 + "}",
        '{"x":1}',
        '{"x":{}}',
        "{%s}" % ENTRY % ("1", "0,4,8"),
        "{%s}" % ENTRY % ("-1", "0,-4"),
        "{%s}" % ENTRY % ("-1,-1", "0,4"),
        "{%s}" % ENTRY % ("true", "0,4"),
        "{%s}" % ENTRY % ("1.0", "0,4"),
        "{%s}" % ENTRY % ("NaN", "0,4"),
        "{%s}" % ENTRY % ("1", "4,8"),
        "{%s}" % ENTRY % ("1", "0,1e400"),
        "{%s}" % ENTRY % ("9" * 4000, "0,4"),
        "{%s}" % ENTRY % (",".join(["9" * 4000] * 100), "0,4"),
        "{%s}" % ENTRY % (",".join(["2"] * 100_000), "0,4"),
        "{%s}" % ENTRY % ("1", "0,4") + " x",
        "{%s,%s}" % ((ENTRY % ("1", "0,4"),) * 2),
        '{"x":{"dtype":["F32"],"shape":[1],"data_offsets":[0,4]}}',
        '{"x":{"dtype":"F3","shape":[1],"data_offsets":[0,4]}}',
        '{"\ud800":1}',
    ],
)
def test_hostile_header_is_refused(tmp_path, header):
    """The header is nested deeply, or has huge numbers, a name twice, or wrong types.

    The ValueError comes soon and takes little memory.
    """
    text = header.encode("utf-8", "surrogatepass")
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(4))
    assert read_or_refuse(path) is not None


@pytest.mark.parametrize("data", [b"", b"\0", bytes(8), b"\xff" * 100, b"<html>" * 100])
def test_a_file_that_is_not_safetensors_is_refused(tmp_path, data):
    """The file may be empty, cut short, or a web page."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    assert read_or_refuse(path) is not None


def read_or_refuse(path):
    """Reads a header, soon and in little memory. Returns the message of the ValueError, or None."""
    message, start = None, time.process_time()
    tracemalloc.start()
    try:
        found = tensors.read_index(str(path), HPARAMS)
    except ValueError as error:
        message = str(error)
        assert str(path) in message and "\n" not in message and len(message) < 500
    else:
        move = path.stat().st_size - (SMALL / "model.safetensors").stat().st_size
        for name, tensor in SMALL_INDEX.items():
            assert found[name] == {**tensor, "offset": tensor["offset"] + move}
    _, most_memory = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert time.process_time() - start < 5
    assert most_memory < 10 * path.stat().st_size + 2**17
    return message


SMALL_INDEX = tensors.read_index(str(SMALL / "model.safetensors"), HPARAMS)
HOSTILE = [None, True, -1, 0, 1, 2**31, 2**63, 10**1000, 1.5, math.nan, "", "F64", "x" * 1000]
HOSTILE += [[], [0, 4], [4, 0], [-4, 0], [[]], {}, {"dtype": "F32"}, [2**62, 2**62], [0] * 9]


def with_hostile_value(header, rng):
    """The header with one value of a tensor, a whole tensor or a name changed."""
    content = json.loads(header)
    name = rng.choice(list(content))
    kind, value = rng.randrange(4), rng.choice(HOSTILE)
    if kind == 0:
        content[name] = value
    elif kind == 1:
        content[rng.choice(["", "h.0", "lm_head.weight", "h.3.ln_1.weight"])] = value
    else:
        content[name][rng.choice(list(content[name]))] = value
    return json.dumps(content).encode()


def test_a_damaged_header_is_read_right_or_is_a_value_error(tmp_path):
    """1,000 headers are tried, with damaged bytes or values."""
    rng = random.Random(0)
    data = (SMALL / "model.safetensors").read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    path = tmp_path / "model.safetensors"
    n_read = 0
    for i in range(1000):
        if i % 2 == 0:
            head = damage(data[:end], rng)
            if rng.random() < 0.8:  # the right length lets the damage come further
                head = (len(head) - 8).to_bytes(8, "little", signed=True) + head[8:]
        else:
            text = with_hostile_value(data[8:end], rng)
            head = len(text).to_bytes(8, "little") + text
        path.write_bytes(head + data[end:])
        n_read += read_or_refuse(path) is None
    assert 0 < n_read < 500
