"""A sound checkpoint gives every weight bit for bit, a damaged one a clear ValueError."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import checkpoint
import model_names
import openai_files
import utils
from tools.fuzz_checkpoint import read_or_refuse, reseal
from tools.write_checkpoint import block as block_of
from tools.write_checkpoint import field, table, tensor_entry, trailer, varint, write_checkpoint

CHECKPOINTS = Path(__file__).parent / "checkpoints"
SMALL = CHECKPOINTS / "small"
INDEX = (SMALL / "model.ckpt.index").read_bytes()
DATA_FILE = f"model.ckpt{checkpoint.DATA}"
HPARAMS = openai_files.read_hparams(SMALL / "hparams.json")
TENSORS = dict(np.load(CHECKPOINTS / "small.npz"))
SIZES = {  # n_embd, n_head, n_layer, n_parameters
    "124M": (768, 12, 12, 124439808),
    "355M": (1024, 16, 24, 354823168),
    "774M": (1280, 20, 36, 774030080),
    "1558M": (1600, 25, 48, 1557611200),
}


def hparams_of(size):
    n_embd, n_head, n_layer, _ = SIZES[size]
    sizes = {"n_embd": n_embd, "n_head": n_head, "n_layer": n_layer}
    return {"n_vocab": 50257, "n_ctx": 1024, **sizes}


def flat(params):
    """The leaves of params by their names in the checkpoint."""
    leaves = {}

    def walk(node, name):
        if isinstance(node, np.ndarray):
            leaves[name] = node
        for key, child in node.items() if isinstance(node, dict) else ():
            if key == "blocks":
                for layer, block_params in enumerate(child):
                    walk(block_params, f"{name}/h{layer}")
            else:
                walk(child, f"{name}/{key}")

    walk(params, "model")
    return leaves


@pytest.fixture
def model(tmp_path):
    """A copy of the small model, to be damaged: tmp_path/small."""
    shutil.copytree(SMALL, tmp_path / "small")
    return tmp_path / "small"


def load(folder):
    return utils.load_encoder_hparams_and_params(folder.name, folder.parent)


# ---- What TensorFlow wrote -----------------------------------------------------------------


def test_reads_a_checkpoint_of_tensorflow_bit_for_bit():
    """Every weight equals the array that TensorFlow was given, and there is no other weight."""
    encoder, hparams, params = load(SMALL)
    leaves = flat(params)
    assert leaves.keys() == TENSORS.keys()
    for name, weight in leaves.items():
        expected = TENSORS[name]
        expected = expected[0] if expected.ndim == 3 else expected
        assert weight.shape == expected.shape
        assert weight.tobytes() == expected.tobytes(), name
    assert len(encoder.tokens) == hparams["n_vocab"]
    assert len(params["blocks"]) == hparams["n_layer"]


def test_the_small_checkpoint_also_has_what_training_leaves():
    """So the test above shows that the reader passes over variables that are not weights."""
    tensors = checkpoint.read_index(SMALL / "model.ckpt.index")
    assert tensors.keys() - TENSORS.keys() == {"global_step", "model/wte/Adam"}


def test_weights_are_plain_read_only_views_of_one_mapped_file():
    """No weight is copied, and none can be written to."""
    _, _, params = load(SMALL)
    mapped = set()
    for weight in flat(params).values():
        assert type(weight) is np.ndarray
        assert weight.dtype == np.float32
        assert not weight.flags.writeable
        while isinstance(weight.base, np.ndarray):
            weight = weight.base
        mapped.add(id(weight.base))
    assert len(mapped) == 1


def test_our_writer_writes_what_tensorflow_writes(tmp_path):
    """So the checkpoints that our writer makes for the tests below can stand for TensorFlow's."""
    data = (SMALL / DATA_FILE).read_bytes()
    adam = checkpoint.read_index(SMALL / "model.ckpt.index")["model/wte/Adam"]
    numbers = np.frombuffer(data, "<f4", offset=adam["offset"], count=adam["size"] // 4)
    extras = {
        "global_step": np.array(1000, np.int64),
        "model/wte/Adam": numbers.reshape(adam["shape"]),
    }
    write_checkpoint(tmp_path, HPARAMS, TENSORS | extras)
    assert (tmp_path / "model.ckpt.index").read_bytes() == INDEX
    assert (tmp_path / DATA_FILE).read_bytes() == data
    assert (tmp_path / "checkpoint").read_bytes() == (SMALL / "checkpoint").read_bytes()


@pytest.mark.parametrize("size", SIZES)
def test_a_model_of_each_size_loads_in_under_half_a_second(size, tmp_path):
    """The weights are mapped, not read. In the largest model, some lie beyond 4 GiB."""
    hparams = hparams_of(size)
    write_checkpoint(tmp_path / size, hparams)
    with open(tmp_path / size / DATA_FILE, "r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(np.float32(1.5).tobytes())
    utils.note_checked(str(tmp_path / size), openai_files.weight_files(str(tmp_path / size)))

    start = time.perf_counter()
    params = utils.load_params(size, tmp_path, hparams)
    seconds = time.perf_counter() - start

    leaves = flat(params)
    assert sum(weight.size for weight in leaves.values()) == SIZES[size][-1]
    assert len(leaves) == 4 + 12 * hparams["n_layer"]
    assert params["wte"][-1, -1] == 1.5  # the last tensor of the file
    assert seconds < 0.5  # about 0.01 on an idle machine, but machines that run tests are busy


def test_our_index_is_as_long_as_the_published_one(tmp_path):
    """So the names, shapes and offsets of 124M and 355M take as many bytes as in OpenAI's index."""
    for size in ("124M", "355M"):
        write_checkpoint(tmp_path, hparams_of(size))
        n_bytes = os.path.getsize(tmp_path / "model.ckpt.index")
        assert n_bytes == openai_files.PUBLISHED_SIZES[size]["model.ckpt.index"]


def test_reads_an_index_of_many_blocks(model):
    """TensorFlow begins a new block after 256 KiB. Here, one begins after 100 bytes."""
    write_checkpoint(model, HPARAMS, TENSORS, block_size=100)
    leaves = flat(load(model)[2])
    assert all(np.array_equal(leaves[name], TENSORS[name].squeeze()) for name in TENSORS)


def test_reads_weights_that_are_not_aligned(model):
    """A variable of one byte comes first, so no weight begins at a multiple of 4 bytes."""
    write_checkpoint(model, HPARAMS, {"a": np.zeros(1, np.int8)} | TENSORS)
    leaves = flat(load(model)[2])
    assert all(np.array_equal(leaves[name], TENSORS[name].squeeze()) for name in TENSORS)


def test_a_matrix_keeps_its_axes_of_length_1(model):
    """Only the first axis, which OpenAI's matrices have in addition, is removed."""
    hparams = HPARAMS | {"n_embd": 1, "n_head": 1, "n_layer": 1}
    write_checkpoint(model, hparams)
    utils.note_checked(str(model), openai_files.weight_files(str(model)))
    params = load(model)[2]
    assert params["blocks"][0]["attn"]["c_proj"]["w"].shape == (1, 1)
    assert params["wte"].shape == (HPARAMS["n_vocab"], 1)


@pytest.mark.parametrize(
    "path, prefix",
    [
        ("model.ckpt", "model.ckpt"),
        ("model-1000", "model-1000"),
        ("./run1/model-1000", "model-1000"),
        ("/home/jos\\303\\251/run1/model-1000", "model-1000"),
        (r"C:\\Users\\me\\run1\\model-1000", "model-1000"),
    ],
)
def test_the_file_checkpoint_names_the_other_files(path, prefix, model):
    """The name may be a path on the machine that saved the model. Only the last part counts."""
    text = f'model_checkpoint_path: "{path}"\nall_model_checkpoint_paths: "older"\n'
    (model / "checkpoint").write_text(text)
    for ending in (".index", checkpoint.DATA):
        (model / f"model.ckpt{ending}").rename(model / f"{prefix}{ending}")
    assert len(flat(load(model)[2])) == 40


def test_a_complete_model_loads_without_the_packages_for_downloads(model):
    """To import requests and tqdm would take 0.3 s. argparse is not imported either."""
    code = (
        "import sys, utils; utils.load_encoder_hparams_and_params(*sys.argv[1:]); "
        "print({'requests', 'tqdm', 'argparse'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code, model.name, str(model.parent)]
    result = subprocess.run(command, cwd=Path(utils.__file__).parent, capture_output=True)
    assert result.stdout.split() == [b"set()"], result.stderr


# ---- Damage --------------------------------------------------------------------------------


def table_with(tensors=TENSORS, header=field(1, 1), **changes):
    """The bytes of an index of the small model; `changes` are made to the entry of model/wte."""
    entries, offset = [(b"", header)], 0
    for name in sorted(tensors):
        array = tensors[name]
        entry = {"dtype": 1, "shape": array.shape, "offset": offset, "size": array.nbytes}
        entry["crc32c"] = 0
        if name == "model/wte":
            entry |= changes
        entries.append((name.encode(), tensor_entry(**entry)))
        offset += array.nbytes
    return table(entries)


def compressed(index):
    """The same index, but its data block claims to be compressed, with a checksum that fits."""
    metaindex, _ = checkpoint.read_varint(index[-48:], 0)  # which follows the one data block
    data_block = index[: metaindex - 5]
    return data_block + trailer(data_block, compression=1) + index[metaindex:]


without_wpe = {name: array for name, array in TENSORS.items() if name != "model/wpe"}
fourth_layer = {name.replace("h2", "h3"): array for name, array in TENSORS.items()} | TENSORS
html = b"<html><body>Please log in to this network</body></html>" * 9


@pytest.mark.parametrize(
    "index, what",
    [
        (b"", "not the index of a TensorFlow checkpoint"),
        (html, "not the index of a TensorFlow checkpoint"),
        (INDEX[:-1], "not the index of a TensorFlow checkpoint"),
        (INDEX[1:], "does not match its checksum"),
        (INDEX[:500] + b"\0" + INDEX[501:], "does not match its checksum"),
        (INDEX[-48:], "it refers to bytes beyond its end"),
        (compressed(INDEX), "is compressed"),
        (table_with(header=field(1, 2)), "several data files"),
        (table_with(header=b""), "several data files"),
        (table_with(shard_id=1), "several data files"),
        (table_with(header=field(1, 1) + field(2, 1)), "big-endian"),
        (table_with(without_wpe), "does not list the tensor model/wpe"),
        (table_with(fourth_layer), "more layers"),
        (table_with(dtype=19), "model/wte is of dtype 19"),
        (table_with(shape=(20, 269)), "model/wte has the shape (20, 269)"),
        (table_with(shape=()), "model/wte has the shape ()"),
        (table_with(size=4), "model/wte has 4 bytes"),
    ],
)
def test_each_kind_of_wrong_index_has_its_own_message(index, what, model):
    """The message is one line. It names the file, says what is wrong, and points to verify."""
    (model / "model.ckpt.index").write_bytes(index)
    with pytest.raises(ValueError) as error:
        load(model)
    message = str(error.value)
    assert what in message
    assert str(model / "model.ckpt.index") in message
    assert f'python utils.py verify small --models_dir="{model.parent}"' in message
    assert "\n" not in message


@pytest.mark.parametrize("change", [-1, +1, -4, -109048])
def test_a_data_file_of_the_wrong_size_is_refused(change, model):
    """The file must end where the last tensor of the index ends, be it a weight or not."""
    os.truncate(model / DATA_FILE, 109048 + change)
    size = f"{109048 + change:,}"
    with pytest.raises(ValueError, match=f"has {size} bytes, but its index says 109,048"):
        load(model)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "7", '"n_ctx"', "[" * 100000, "{", "\ufffd", "{}", '{"n_ctx": 1' + "0" * 5000 + "}"]
    + [json.dumps(HPARAMS | {name: value}) for name in HPARAMS for value in (0, -1, 1.0, "2", None)]
    + [
        json.dumps(HPARAMS | change)
        for change in ({"n_head": True}, {"n_head": 3}, {"n_ctx": 10**9})
    ],
)
def test_an_hparams_file_with_wrong_sizes_is_refused(text, model):
    """The file must hold five whole numbers, 1 to 1,000,000, that fit each other.

    The error names it.
    """
    (model / "hparams.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="hparams.json"):
        load(model)


@pytest.mark.parametrize("name", ["n_vocab", "n_ctx", "n_embd", "n_layer"])
def test_sizes_of_another_model_are_refused(name, model):
    """Each of these sizes shows in the vocabulary or in the weights. (n_head does not.)"""
    hparams = HPARAMS | {name: HPARAMS[name] + 5}
    (model / "hparams.json").write_text(json.dumps(hparams))
    with pytest.raises(ValueError, match="hparams.json|does not list"):
        load(model)


@pytest.mark.parametrize("text", ["", "model.ckpt", 'model_checkpoint_path: ""', "\0" * 99])
def test_a_checkpoint_file_that_names_nothing_is_refused(text, model):
    """The names of the other files are not guessed."""
    (model / "checkpoint").write_text(text)
    with pytest.raises(ValueError, match="model_checkpoint_path"):
        load(model)


@pytest.mark.parametrize("name", openai_files.FILES)
def test_an_incomplete_model_is_refused_with_what_is_missing(name, model):
    """A model that is not OpenAI's cannot be downloaded, so the message says which file to add."""
    (model / name).rename(model / f"{name}.part")
    with pytest.raises(ValueError, match=f"is incomplete: {name} is missing. Add it"):
        load(model)


# ---- Fuzzing: tools/fuzz_checkpoint.py does the same for longer -----------------------------


def mutate(index, changes, end):
    """The index with some bytes overwritten, by (position, byte), and cut off at `end`."""
    index = bytearray(index)
    for position, byte in changes:
        index[position % len(index)] = byte
    return bytes(index[:end])


changes = st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), max_size=6)
ends = st.one_of(st.none(), st.integers(0, len(INDEX)))


@settings(max_examples=200, deadline=None)
@given(changes, ends, st.booleans())
def test_a_damaged_index_is_read_or_is_a_value_error(tmp_path_factory, changes, end, resealed):
    """Some indexes get right checksums again after the damage."""
    path = tmp_path_factory.getbasetemp() / "damaged.index"
    index = mutate(INDEX, changes, end)
    read_or_refuse(path, reseal(index, INDEX) if resealed else index, HPARAMS)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=20), st.binary(max_size=40)), min_size=1))
def test_any_table_is_read_or_is_a_value_error(tmp_path_factory, entries):
    """The tables are well-formed, but hold anything, such as messages that are not protobuf."""
    path = tmp_path_factory.getbasetemp() / "foreign.index"
    entries = [(b"", field(1, 1)), *((b"m" + key, value) for key, value in entries)]
    read_or_refuse(path, table(entries), HPARAMS)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_any_message_for_every_tensor_is_read_or_is_a_value_error(tmp_path_factory, message):
    """Every weight has the same message, whatever its bytes. The rest of the index is right."""
    path = tmp_path_factory.getbasetemp() / "message.index"
    entries = sorted({b"": field(1, 1), **{name.encode(): message for name in TENSORS}}.items())
    read_or_refuse(path, table(entries), HPARAMS)


def index_of(block, n_handles):
    """The bytes of an index whose index block refers n_handles times to the same data block."""
    handle = varint(0) + varint(len(block))
    handles = block_of([(b"%06d" % i, handle) for i in range(n_handles)])
    data = block + trailer(block)
    footer = varint(0) + varint(0) + varint(len(data)) + varint(len(handles))
    return data + handles + trailer(handles) + footer.ljust(40, b"\0") + checkpoint.MAGIC


def test_a_small_index_cannot_make_a_large_table(tmp_path):
    """One index has long keys, 100,000 bytes for each of its own.

    The other has one block read 20,000 times.
    """
    key = b"k" * 500_000
    next_entry = varint(len(key)) + varint(1) + varint(0) + b"l"
    long_keys = block_of([(key, b"")])[:-8] + next_entry * 50_000 + block_of([])
    (tmp_path / "keys.index").write_bytes(index_of(long_keys, n_handles=1))
    repeated = block_of([(key, b"")])
    (tmp_path / "blocks.index").write_bytes(index_of(repeated, n_handles=20_000))

    start = time.perf_counter()
    with pytest.raises(ValueError, match="keys are longer than its size allows"):
        checkpoint.read_index(tmp_path / "keys.index")
    with pytest.raises(ValueError, match="overlap"):
        checkpoint.read_index(tmp_path / "blocks.index")
    assert time.perf_counter() - start < 5


def test_a_file_system_that_cannot_map_is_no_obstacle(monkeypatch):
    """If a file cannot be mapped into memory, it is read, and the weights are the same."""

    def memmap(*args, **options):
        raise OSError(19, "No such device")

    expected = flat(load(SMALL)[2])
    monkeypatch.setattr(np, "memmap", memmap)
    read = flat(load(SMALL)[2])
    assert all(read[name].tobytes() == expected[name].tobytes() for name in expected)


def test_the_example_in_the_docstring_is_true():
    """The message shown byte by byte is in the index of tiny, and means what is said beside it."""
    example = re.search("(?s)\n    08 01 .*(?=The first entry)", checkpoint.__doc__)[0]
    pairs = re.findall(r"(?m)^ *((?:[0-9A-F]{2} )*[0-9A-F]{2})  ", example)
    message = bytes.fromhex(" ".join(pairs))
    index = (Path(model_names.MODELS_DIR) / "tiny" / "model.ckpt.index").read_bytes()
    assert checkpoint.read_table(index)[b"model/h0/attn/c_attn/w"] == message
    tensor = checkpoint.read_tensor(message)
    assert (tensor["dtype"], tensor["shape"]) == (1, (1, 128, 384))
    assert (tensor["offset"], tensor["size"]) == (1536, 196608)
