"""Checkpoints that TensorFlow writes are read back right, and TensorFlow reads ours.

These tests are skipped without TensorFlow, which requirements-tensorflow.txt lists.
"""

import re

import numpy as np
import pytest
from conftest import ROOT

import checkpoint
import checksum
import openai_files
import utils
import weights
from tools.write_checkpoint import write_checkpoint
from tools.write_test_checkpoint import HPARAMS, random_tensors, save_with_tensorflow

pytest.importorskip("tensorflow")


@pytest.mark.parametrize("seed", range(3))
def test_reads_what_tensorflow_writes_today(seed, tmp_path):
    """The weights have random bits. NaNs, infinities and subnormal numbers are among them."""
    rng = np.random.default_rng(seed)
    tensors = random_tensors(HPARAMS, rng)
    for array in tensors.values():
        array[...] = rng.integers(0, 2**32, array.shape, dtype=np.uint32).view(np.float32)
    save_with_tensorflow(str(tmp_path), tensors)
    index = checkpoint.read_index(tmp_path / "model.ckpt.index")
    checkpoint.check_tensors("index", index, HPARAMS)
    data = checkpoint.map_data(tmp_path / f"model.ckpt{checkpoint.DATA}", index)
    assert index.keys() == tensors.keys()
    for name, tensor in index.items():
        assert checkpoint.bytes_of(tensor, data).tobytes() == tensors[name].tobytes()
        assert checksum.masked_crc32c(checkpoint.bytes_of(tensor, data)) == tensor["crc32c"]


def test_passes_over_variables_of_other_types(tmp_path):
    """Training may save such variables beside the weights: strings, flags, halves, long names."""
    tensors = random_tensors(HPARAMS, np.random.default_rng(0))
    others = {
        "a_flag": np.array(True),
        "comment": np.array([b"words", b"", b"more words"], dtype=object),
        "half": np.ones(3, np.float16),
        "empty": np.ones((0, 3), np.float32),
        "name/" * 40: np.array(1, np.int32),
        "model/wte/Adam_1": np.ones((2, 3)),
    }
    others = {name.rstrip("/"): array for name, array in others.items()}
    save_with_tensorflow(str(tmp_path), tensors | others)
    (tmp_path / "hparams.json").write_text(str(HPARAMS).replace("'", '"'))
    params = utils.load_params(tmp_path.name, tmp_path.parent, HPARAMS)
    assert params["wte"].tobytes() == tensors["model/wte"].tobytes()
    data_file = f"model.ckpt{checkpoint.DATA}"
    assert openai_files.check_content(tmp_path, data_file, tmp_path / data_file)


needs_124M = pytest.mark.skipif(
    not (ROOT / "models/124M/model.ckpt.index").exists(),
    reason="models/124M is not there: python utils.py download 124M",
)


@pytest.mark.parametrize(
    "folder",
    [
        "models/tiny",
        "tests/checkpoints/small",
        pytest.param("models/124M", marks=needs_124M),
    ],
)
def test_tensorflow_finds_the_same_arrays(folder):
    """TensorFlow's own reader finds the same tensors, and every weight is the same, bit for bit."""
    import tensorflow as tf

    folder = ROOT / folder
    _, hparams, params = utils.load_encoder_hparams_and_params(folder.name, folder.parent)
    reader = tf.train.load_checkpoint(str(folder / "model.ckpt"))
    index = checkpoint.read_index(folder / "model.ckpt.index")
    assert reader.get_variable_to_shape_map() == {
        name: list(tensor["shape"]) for name, tensor in index.items()
    }
    checked = []

    def check(name, shape):
        checked.append(name)
        path = name.replace("model/h", "blocks/", 1) if re.match("model/h[0-9]", name) else name
        array = params
        for key in path.removeprefix("model/").split("/"):
            array = array[int(key)] if isinstance(array, list) else array[key]
        assert reader.get_tensor(name).reshape(array.shape).tobytes() == array.tobytes()

    weights.map_tree(check, weights.shapes_of(hparams))
    assert len(checked) == 4 + 12 * hparams["n_layer"]


def test_tensorflow_reads_what_our_writer_writes(tmp_path):
    """TensorFlow also reads an index of many blocks."""
    import tensorflow as tf

    tensors = random_tensors(HPARAMS, np.random.default_rng(0))
    for block_size in (2**18, 200):
        write_checkpoint(tmp_path, HPARAMS, tensors, block_size=block_size)
        reader = tf.train.load_checkpoint(str(tmp_path / "model.ckpt"))
        assert reader.get_variable_to_shape_map().keys() == tensors.keys()
        for name, array in tensors.items():
            assert np.array_equal(reader.get_tensor(name), array)


@pytest.mark.parametrize("size, n_embd, n_layer", [("124M", 768, 12), ("355M", 1024, 24)])
def test_tensorflow_writes_files_of_the_published_sizes(size, n_embd, n_layer, tmp_path):
    """Given tensors of OpenAI's names and shapes, it writes an index and data of OpenAI's sizes.

    So the names and shapes that this project expects are OpenAI's, as far as sizes can show that.
    The numbers here are all 0. Their checksums differ from OpenAI's, but take as many bytes.
    """
    import tensorflow as tf

    hparams = {"n_vocab": 50257, "n_ctx": 1024, "n_embd": n_embd, "n_layer": n_layer}
    shapes = {}

    def note(name, shape):
        shapes[name] = checkpoint.stored_shape(name, shape)

    weights.map_tree(note, weights.shapes_of(hparams))
    names = sorted(shapes)  # TensorFlow's Saver, which OpenAI used, sorts them too
    zeros = {shape: tf.zeros(shape) for shape in shapes.values()}  # only one of each shape
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "model.ckpt"),
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[zeros[shapes[name]] for name in names],
    )
    n_bytes = {}
    for path in sorted(tmp_path.iterdir()):
        n_bytes[path.name] = path.stat().st_size
        if path.suffix != ".index":
            path.unlink()  # up to 1.4 GB, no longer needed
    published = openai_files.PUBLISHED_SIZES[size]
    assert n_bytes == {name: published[name] for name in published if name.startswith("model.")}

    index = checkpoint.read_index(tmp_path / "model.ckpt.index")
    assert {name: tensor["shape"] for name, tensor in index.items()} == shapes
    assert checkpoint.data_size(index) == published[f"model.ckpt{checkpoint.DATA}"]


def test_reads_an_index_of_tensorflow_that_has_many_blocks(tmp_path):
    """TensorFlow begins a new block after 256 KiB of entries, some 5,000 variables."""
    import tensorflow as tf

    tensors = random_tensors(HPARAMS, np.random.default_rng(0))
    tensors |= {f"other/{'long/' * 10}{i}": np.array(i, np.int32) for i in range(20_000)}
    tf.raw_ops.SaveV2(
        prefix=str(tmp_path / "model.ckpt"),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=list(tensors.values()),
    )
    index = checkpoint.read_index(tmp_path / "model.ckpt.index")
    assert (tmp_path / "model.ckpt.index").stat().st_size > 2**18
    assert index.keys() == tensors.keys()
    checkpoint.check_tensors("index", index, HPARAMS)
