"""What the tests of Hugging Face's folders share: the small model, and ways to change it."""

import json
import shutil

import numpy as np
from conftest import ROOT

import gpt2
import utils
from huggingface import tensors

SMALL = ROOT / "tests" / "huggingface" / "small"
HPARAMS = {"n_vocab": 288, "n_ctx": 128, "n_embd": 20, "n_head": 5, "n_layer": 3}
END_OF_TEXT = 268


def copy_small(path):
    """Copies the small model into the folder `mine` of a path, for a test to change."""
    folder = path / "mine"
    shutil.copytree(SMALL, folder, ignore=shutil.ignore_patterns(utils.CHECKED_FILE))
    return folder


def load(folder):
    return utils.load_encoder_hparams_and_params(folder.name, str(folder.parent))


def read(folder, name):
    return json.loads((folder / name).read_text(encoding="utf-8"))


def write(folder, name, content):
    (folder / name).write_text(json.dumps(content), encoding="utf-8")


def change(folder, name, **values):
    """Sets values in a JSON file of a folder: model__type="x" sets "type" in its object "model"."""
    path = folder / name
    content = read(folder, name) if path.exists() else {}
    for key, value in values.items():
        *outer, last = key.split("__")
        inner = content
        for part in outer:
            inner = inner[part]
        inner[last] = value
    write(folder, name, content)


def arrays_of(folder):
    """The weights in model.safetensors: dict of name -> ("F32", array).

    The names begin with "transformer.".
    """
    path = str(folder / "model.safetensors")
    data = tensors.map_file(path)
    found = tensors.read_header(path)
    return {name: ("F32", tensors.weight_of(path, data, found[name]).copy()) for name in found}


def logits_of(params, ids):
    logits, _ = gpt2.gpt2(np.array([ids]), **params, n_head=HPARAMS["n_head"])
    return logits[0]
