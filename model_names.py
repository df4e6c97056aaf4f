"""Which models there are: their names, and the folders they are in.

A model is a folder, in one of two formats: OpenAI's (openai_files.py) or Hugging Face's
(huggingface/). Both modules have the same functions, and `reader_of` chooses between them. The name
of a model is the name of its folder. The folder around it is called models_dir.
"""

import difflib
import os
from pathlib import Path

import huggingface
import openai_files
from checks import CallError, shown

MODELS_DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models")
MODEL_SIZES = ("124M", "355M", "774M", "1558M")  # OpenAI's, which can be downloaded
BUNDLED = "tiny"  # the model that comes with this program, in MODELS_DIR
RESTORE = f'restore it with `git -C "{os.path.dirname(MODELS_DIR)}" checkout models/tiny`'

# OpenAI counted the parameters anew, and renamed its models.
OLD_NAMES = {"117M": "124M", "345M": "355M", "762M": "774M", "1542M": "1558M"}
# The same models have these names on the Hugging Face Hub and in articles.
OTHER_NAMES = {"gpt2": "124M", "gpt2-medium": "355M", "gpt2-large": "774M", "gpt2-xl": "1558M"}
OTHER_NAMES |= {"1.5b": "1558M"}


def check_model_size(model_size, models_dir):
    """Raises CallError unless `model_size` is one of OpenAI's models or a folder in `models_dir`.

    Raises OSError if the system forbids looking into that folder.
    """
    models_dir = os.path.abspath(os.path.expanduser(models_dir))
    is_one_name = model_size not in ("", ".", "..") and not set(model_size) & set("/\\:\0")
    folder = os.path.join(models_dir, model_size) if is_one_name else models_dir
    check_access(folder)
    if is_one_name and os.path.isdir(folder):
        return
    parent, last = os.path.split(models_dir)
    # (355M, say, may be meant as a new folder, even if models_dir happens to be a model.)
    if is_model(models_dir) and (last == model_size or model_size not in MODEL_SIZES):
        raise CallError(
            f"{models_dir} is itself the folder of a model, and --models_dir names the folder "
            f'that holds it: write --models_dir="{parent}", and choose the model {last}'
        )
    if model_size in MODEL_SIZES:
        return
    if model_size in OLD_NAMES:
        name = OLD_NAMES[model_size]
        raise CallError(f"the model {model_size} is now called {name}: use this name")
    if model_size.lower() in OTHER_NAMES:
        name = OTHER_NAMES[model_size.lower()]
        raise CallError(f"the model {model_size} is called {name} here: use this name")
    if model_size == BUNDLED:
        raise CallError(where_bundled_is(models_dir))
    path = os.path.abspath(os.path.expanduser(model_size))
    parent, last = os.path.split(path)
    if not is_one_name and (is_model(path) or parent == models_dir):
        raise CallError(
            f"{shown(model_size)} is a path, but a model is chosen by its name: choose the model "
            f'{last}, with --models_dir="{parent}"'
        )
    huggingface.check_no_hub_name(model_size, models_dir)
    which = which_there_are(model_size, models_dir)
    raise CallError(f"there is no model {shown(model_size)}: {which}")


def check_access(folder):
    """Raises CallError if a file is in the place of `folder` or of a folder around it.

    Raises OSError if the system forbids looking into `folder`. It need not exist.
    """
    for path in (folder, *map(str, Path(folder).parents)):
        if os.path.exists(path) and not os.path.isdir(path):
            where = "a model" if path == folder else "--models_dir"
            raise CallError(f"{path} is a file, but {where} has to be a folder: choose another")
    try:
        os.stat(os.path.join(folder, "checkpoint"))  # any name would do, to see if that is allowed
    except PermissionError as error:
        raise PermissionError(
            f"cannot look into the folder {folder}: {error.strerror}. Change its permissions, or "
            f"choose another folder with --models_dir"
        ) from None
    except (OSError, ValueError):
        pass  # there is no such file, or there cannot be one


def where_bundled_is(models_dir):
    """What to say if the bundled model is not in `models_dir`."""
    if not os.path.isdir(os.path.join(MODELS_DIR, BUNDLED)):
        return f"the model {BUNDLED} belongs in {MODELS_DIR}, but is missing there: {RESTORE}"
    if not os.path.isdir(models_dir):
        return f"the folder {models_dir} does not exist: correct --models_dir, or leave it out"
    return f"the model {BUNDLED} is in {MODELS_DIR}, not in {models_dir}: leave out --models_dir"


def which_there_are(model_size, models_dir):
    """Which models there are, in words that begin with the one that was probably meant."""
    here, place = [], f"the folder {models_dir} does not exist"
    if os.path.isdir(models_dir):
        try:
            names = sorted(os.listdir(models_dir))
            here = [name for name in names if is_model(os.path.join(models_dir, name))]
            place = f"in {models_dir} there is {', '.join(here) or 'none'}"
        except OSError as error:
            place = f"{models_dir} cannot be listed ({error.strerror})"
    lower = {name.lower(): name for name in (*MODEL_SIZES, *here)}
    near = difflib.get_close_matches(model_size.lower(), lower, n=1)
    guess = f"did you mean {lower[near[0]]}? " if near else ""
    return f"{guess}{', '.join(MODEL_SIZES)} can be downloaded, and {place}"


def is_model(folder):
    """Whether a folder has the file by which a model of either format is recognised."""
    return os.path.isfile(os.path.join(folder, "checkpoint")) or huggingface.is_model(folder)


def folder_of(model_size, models_dir):
    """The absolute path of a model's folder. Raises as `check_model_size` does."""
    check_model_size(model_size, models_dir)
    return os.path.join(os.path.abspath(os.path.expanduser(models_dir)), model_size)


def reader_of(folder):
    """The module that reads this folder's format."""
    return huggingface if huggingface.is_model(folder) else openai_files


def is_bundled(folder):
    """Whether this is the folder of the bundled model."""
    return folder == os.path.join(MODELS_DIR, BUNDLED)


def can_be_downloaded(folder):
    """Whether the missing files of a folder can be downloaded.

    A folder that is called 124M, but is in Hugging Face's format, is the user's own.
    """
    return os.path.basename(folder) in MODEL_SIZES and reader_of(folder) is openai_files
