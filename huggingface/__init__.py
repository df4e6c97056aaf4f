"""A model in Hugging Face's format: a folder that the Python package transformers saved.

    config.json, generation_config.json    the sizes and other settings: see config.py
    tokenizer.json, or others              the vocabulary: see tokenizer.py
    model.safetensors                      the weights: see tensors.py

openai_files.py has the same functions for OpenAI's format, and utils.py calls the one or the
other. A `folder` is the path of a model's folder.
"""

import os
import re

from checks import CallError
from huggingface import tensors
from huggingface.config import (
    Unsupported,
    read_config,
    read_end_of_text,
    read_hparams,
    read_json,
)
from huggingface.tokenizer import load_encoder, tokenizer_files

WEIGHTS = "model.safetensors"
SEVERAL_FILES = "model.safetensors.index.json"  # lists the files that hold a part of the weights
LFS_POINTER = b"version https://git-lfs"  # how a file begins that Git LFS has not replaced yet
OTHER_WEIGHTS = (SEVERAL_FILES, "pytorch_model.bin", "tf_model.h5", "flax_model.msgpack")

HUB_NAMES = {"distilgpt2": "distilbert/distilgpt2"}  # models that the Hub also has by a short name


# ---- The files -----------------------------------------------------------------------------


def is_model(folder):
    """Whether a folder is in this format: it has a file that OpenAI's format has not."""
    names = ("config.json", "tokenizer.json", "vocab.json", WEIGHTS, *OTHER_WEIGHTS)
    return any(os.path.isfile(os.path.join(folder, name)) for name in names)


def files(folder):
    """The names of the files of a model that are used here, the one with the weights last."""
    def those_there(*names):
        return [name for name in names if os.path.isfile(os.path.join(folder, name))]

    weights = those_there(WEIGHTS, *OTHER_WEIGHTS) or [WEIGHTS]
    generation = those_there("generation_config.json")
    return ["config.json", *generation, *tokenizer_files(folder), weights[0]]


def weight_files(folder):
    """The path of the file that holds the weights, as a list of one.

    Raises Unsupported if the folder has the weights only in another form, or not at all yet.
    """
    name = files(folder)[-1]
    path = os.path.join(folder, name)
    if name == SEVERAL_FILES:
        raise Unsupported(
            f"{path}: the weights are in several files, and this program reads them from one: "
            f'load the model with transformers, and call model.save_pretrained(folder, '
            f'max_shard_size="100GB")'
        )
    if name in OTHER_WEIGHTS:
        raise Unsupported(
            f"{path}: this program reads weights from {WEIGHTS} only: load the model with "
            f"transformers, and call model.save_pretrained(folder)"
        )
    with open(path, "rb") as file:
        if file.read(len(LFS_POINTER)) == LFS_POINTER:
            raise Unsupported(
                f"{path} is a Git LFS pointer, not the weights: run `git lfs pull` in {folder}"
            )
    return [path]


def load_encoder_and_hparams(folder):
    """The tokenizer and the sizes of a model. Raises ValueError naming the file that is wrong.

    A model that this program cannot run is refused here, before anything that takes long.
    """
    config = read_config(folder)
    hparams = read_hparams(folder, config)
    weight_files(folder)
    return load_encoder(folder, hparams["n_vocab"], read_end_of_text(folder, config)), hparams


def read_index(folder, hparams):
    """Where each weight is in its file, as tensors.read_index returns it."""
    [path] = weight_files(folder)
    return tensors.read_index(path, hparams)


def load_params(folder, index, hparams):
    """The tree of weights that weights.py shows. index: what `read_index` returned."""
    [path] = weight_files(folder)
    return tensors.build_params(path, index, hparams)


# ---- Checking them -------------------------------------------------------------------------


def check_weights(folder, index, hparams):
    """Reads all weights. Raises ValueError if one is infinite or not a number."""
    [path] = weight_files(folder)
    tensors.check_numbers(path, index, hparams)


def checked_by(folder):
    """Which other files a file is checked by: dict of name -> list of names.

    While one of these others is wrong, nothing can be said about the file itself.
    """
    *_, vocabulary, weights = files(folder)
    others = [name for name in files(folder) if name not in (vocabulary, weights)]
    return {
        "generation_config.json": ["config.json"],
        vocabulary: others,
        weights: ["config.json"],
    }


def without_checksum(folder):
    """The names of the files that have no checksum, so that damage in them may go unnoticed."""
    return files(folder)


def check_file(folder, name):
    """Checks one of the files; returns what was checked, in words. Raises ValueError."""
    *_, vocabulary, weights = files(folder)
    if name not in (vocabulary, weights, "config.json", "generation_config.json"):
        read_json(folder, name)
        return "a JSON object"
    config = read_config(folder)
    hparams = read_hparams(folder, config)
    end_of_text = read_end_of_text(folder, config) if name != "config.json" else None
    if name == "config.json":
        return "sizes that fit together"
    if name == "generation_config.json":
        return f"a text ends at the id {end_of_text}"
    if name == vocabulary:
        encoder = load_encoder(folder, hparams["n_vocab"], end_of_text)
        return f"{len(encoder.tokens) - encoder.tokens.count(b'')} tokens"
    index = read_index(folder, hparams)
    check_weights(folder, index, hparams)
    return f"{len(index)} tensors, all weights finite"


# ---- Models that are elsewhere -------------------------------------------------------------


def check_no_hub_name(model_size, models_dir):
    """Raises CallError, with the command that downloads a model, if it may be one of the Hub's."""
    name = HUB_NAMES.get(model_size, model_size)
    if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", name) or os.path.isdir(os.path.expanduser(name)):
        return
    short = name.split("/")[1]
    folder = os.path.join(models_dir, short)
    place = f'"{folder}"' if " " in folder else folder
    # Given as names, not with --include: all versions of hf understand it so.
    wanted = f'{WEIGHTS} "*.json" "*.txt"'
    raise CallError(
        f"there is no model {model_size!r} in {models_dir}: download it from the Hugging Face Hub "
        f"with `hf download {name} {wanted} --local-dir {place}`, and choose --model_size {short} "
        f"(`pip install huggingface_hub` installs hf)"
    )
