"""Checkpoints that TensorFlow writes now, read back; needs TensorFlow (tools/requirements.txt)."""

import re

import numpy as np
import pytest
from conftest import ROOT

import utils
from tools.write_checkpoint import write_checkpoint
from tools.write_test_checkpoint import HPARAMS, random_tensors, save_with_tensorflow

pytest.importorskip("tensorflow")


@pytest.mark.parametrize("seed", range(3))
def test_reads_what_tensorflow_writes_today(seed, tmp_path):
    """Weights of any bits: also NaNs, infinities and subnormal numbers."""
    rng = np.random.default_rng(seed)
    tensors = random_tensors(HPARAMS, rng)
    for array in tensors.values():
        array[...] = rng.integers(0, 2**32, array.shape, dtype=np.uint32).view(np.float32)
    save_with_tensorflow(str(tmp_path), tensors)
    index = utils.read_index(tmp_path / "model.ckpt.index")
    utils.check_tensors("index", index, HPARAMS)
    data = utils.map_data(tmp_path / f"model.ckpt{utils.DATA}", index)
    assert index.keys() == tensors.keys()
    for name, tensor in index.items():
        assert utils.bytes_of(tensor, data).tobytes() == tensors[name].tobytes()
        assert utils.masked_crc32c(utils.bytes_of(tensor, data)) == tensor["crc32c"]


def test_passes_over_variables_of_other_types(tmp_path):
    """Whatever training saved beside the weights: strings, flags, halves, long names."""
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
    data_file = f"model.ckpt{utils.DATA}"
    assert utils.check_content(tmp_path, data_file, tmp_path / data_file)


@pytest.mark.parametrize("folder", ["models/tiny", "tests/checkpoints/small"])
def test_tensorflow_finds_the_same_arrays(folder):
    """In the committed checkpoints: every weight of the tree, bit for bit."""
    import tensorflow as tf

    folder = ROOT / folder
    _, hparams, params = utils.load_encoder_hparams_and_params(folder.name, folder.parent)
    reader = tf.train.load_checkpoint(str(folder / "model.ckpt"))
    checked = []

    def check(name, shape):
        checked.append(name)
        path = name.replace("model/h", "blocks/", 1) if re.match("model/h[0-9]", name) else name
        array = params
        for key in path.removeprefix("model/").split("/"):
            array = array[int(key)] if isinstance(array, list) else array[key]
        assert reader.get_tensor(name).reshape(array.shape).tobytes() == array.tobytes()

    utils.map_tree(check, utils.shapes_of(hparams))
    assert len(checked) == 4 + 12 * hparams["n_layer"]


def test_tensorflow_reads_what_our_writer_writes(tmp_path):
    """Also an index of many blocks."""
    import tensorflow as tf

    tensors = random_tensors(HPARAMS, np.random.default_rng(0))
    for block_size in (2**18, 200):
        write_checkpoint(tmp_path, HPARAMS, tensors, block_size=block_size)
        reader = tf.train.load_checkpoint(str(tmp_path / "model.ckpt"))
        assert reader.get_variable_to_shape_map().keys() == tensors.keys()
        for name, array in tensors.items():
            assert np.array_equal(reader.get_tensor(name), array)


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
    index = utils.read_index(tmp_path / "model.ckpt.index")
    assert utils.size_of(tmp_path / "model.ckpt.index") > 2**18
    assert index.keys() == tensors.keys()
    utils.check_tensors("index", index, HPARAMS)
