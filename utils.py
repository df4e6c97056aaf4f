"""Finds, fetches, checks and loads the models that gpt2.py runs.

    encoder, hparams, params = load_encoder_hparams_and_params("124M")

    python utils.py download 355M    fetches a model before its first use
    python utils.py verify 124M      checks all files of a model that is here

A model is a folder, in one of two formats: OpenAI's (openai_files.py) or Hugging Face's
(huggingface.py). Both modules have the same functions, and `reader_of` chooses between them.
"""

import contextlib
import gc
import json
import os
import sys

if __name__ == "__main__":  # Every program here begins like this: console.py says why.
    sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
    import console

    console.prepare()

import console
import huggingface
import openai_files
from files import read_text

# ---- Which models there are ----------------------------------------------------------------

MODELS_DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models")
MODEL_SIZES = ("124M", "355M", "774M", "1558M")  # OpenAI's, which can be downloaded
NEW_NAMES = {"117M": "124M", "345M": "355M"}  # OpenAI corrected its count of the parameters
BUNDLED = ("tiny",)  # the model that comes with this program, in MODELS_DIR


def check_model_size(model_size, models_dir):
    """Raises ValueError if `model_size` is neither one of OpenAI's nor a folder in `models_dir`."""
    models_dir = os.path.expanduser(models_dir)
    is_one_name = model_size not in ("", ".", "..") and not set(model_size) & set("/\\:")
    is_folder = is_one_name and os.path.isdir(os.path.join(models_dir, model_size))
    if is_folder or model_size in MODEL_SIZES:
        return
    if model_size in NEW_NAMES:
        raise ValueError(f"the model {model_size} is called {NEW_NAMES[model_size]} now")
    if model_size in BUNDLED:
        raise ValueError(f"the model {model_size} is in {MODELS_DIR}: leave out --models_dir")
    huggingface.check_no_hub_name(model_size, models_dir)

    names = sorted(os.listdir(models_dir)) if os.path.isdir(models_dir) else []
    here = [name for name in names if is_model(os.path.join(models_dir, name))]
    raise ValueError(
        f"there is no model {model_size!r}: {', '.join(MODEL_SIZES)} can be downloaded, "
        f"and in {models_dir} there is {', '.join(here) or 'none'}"
    )


def is_model(folder):
    """Whether a folder has the file by which a model of either format is recognised."""
    return os.path.isfile(os.path.join(folder, "checkpoint")) or huggingface.is_model(folder)


def folder_of(model_size, models_dir):
    """The absolute path of a model's folder. Raises ValueError if there is no such model."""
    check_model_size(model_size, models_dir)
    return os.path.join(os.path.abspath(os.path.expanduser(models_dir)), model_size)


def reader_of(folder):
    """The module that reads this folder's format."""
    return huggingface if huggingface.is_model(folder) else openai_files


def ensure_files(folder, names):
    """Fetches those of the files `names` that are missing. True if there were any.

    Raises ValueError if the model is not one of OpenAI's; OSError and ValueError as
    download.fetch does.
    """
    missing = [name for name in names if not os.path.isfile(os.path.join(folder, name))]
    if not missing:
        return False
    if os.path.basename(folder) not in MODEL_SIZES:
        raise ValueError(
            f"{folder} is not a whole model: it lacks {', '.join(missing)}; put what is missing "
            f"there, or choose another model_size"
        )
    import download  # only here, because the packages behind it take time to import

    download.fetch(
        folder,
        names,
        all_names=openai_files.files(folder),
        expected_size=lambda name: openai_files.expected_size(folder, name),
        check=lambda name, part: openai_files.check_fetched(folder, name, part),
        instead=f"--model_size {BUNDLED[0]} needs no download",
    )
    return True


# ---- Checking the weights once -------------------------------------------------------------
#
# Weights that were damaged on their way here, or on the disk, would make wrong text without a
# word. So they are checked before their first use, by their checksums. CHECKED_FILE beside them
# then holds their sizes and times, and while these stay the same they are not checked again.

CHECKED_FILE = "checked.json"
LARGE = 2**26  # bytes; to check more than that takes long enough to be announced


def stamps(paths):
    """What shows whether files were changed: dict of path -> [size, time of last change]."""
    status = {path: os.stat(path) for path in paths}
    return {path: [status[path].st_size, status[path].st_mtime_ns] for path in paths}


def are_checked(folder, paths):
    """Whether the files at `paths` are still those that were checked in this place."""
    try:
        return json.loads(read_text(os.path.join(folder, CHECKED_FILE))) == stamps(paths)
    except (OSError, ValueError, RecursionError):
        return False


def note_checked(folder, paths):
    """Notes that the files at `paths` are right. False where the folder cannot be written to."""
    path = os.path.join(folder, CHECKED_FILE)
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "w", encoding="utf-8") as file:
            json.dump(stamps(paths), file)
        os.replace(part, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.remove(part)
        return False
    return True


def check_once(folder, paths, check):
    """Calls check(), which raises ValueError for wrong weights, unless it has passed before."""
    if are_checked(folder, paths):
        return
    is_large = sum(os.path.getsize(path) for path in paths) > LARGE
    if is_large:
        console.say(f"note: checking the weights in {folder}, once before their first use ...")
    check()
    if not note_checked(folder, paths) and is_large:
        console.say(f"note: {folder} is read-only, so every start will check the weights again")


# ---- Loading -------------------------------------------------------------------------------


@contextlib.contextmanager
def advising_to_verify(folder):
    """Adds to an error of a file what can be done about it."""
    try:
        yield
    except huggingface.Unsupported:
        raise  # nothing is damaged, and the message says what to do
    except OSError as error:
        if error.filename is not None:
            raise
        reason = error.strerror or error  # such as an error of the disk while a file is read
        raise OSError(f"a file in {folder} cannot be read: {reason}") from None
    except ValueError as error:
        models_dir, name = os.path.split(folder)
        option = "" if models_dir == MODELS_DIR else f' --models_dir="{models_dir}"'
        remedy = "the next run downloads it" if name in MODEL_SIZES else "put a good one there"
        advice = f"`python utils.py verify {name}{option}` checks all files"
        raise ValueError(f"{error}; {advice}: delete what is damaged, and {remedy}") from None


@contextlib.contextmanager
def without_garbage_collection():
    """For speed only: Python does not look for garbage while a vocabulary is read.

    It would look several times, each time at all of the 150,000 objects made so far, none of which
    is garbage.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def load_encoder_and_hparams(model_size, models_dir=MODELS_DIR):
    """The tokenizer and the sizes of a model: (encoder, hparams), an Encoder and a dict of int.

    OpenAI's models are fetched, all but the weights, if files are missing. Raises ValueError for
    an unknown model and for a missing or damaged file, OSError if one cannot be fetched or read.
    """
    folder = folder_of(model_size, models_dir)
    reader = reader_of(folder)
    ensure_files(folder, reader.files(folder)[:-1])  # the last one holds the weights
    with advising_to_verify(folder), without_garbage_collection():
        return reader.load_encoder_and_hparams(folder)


def load_params(model_size, models_dir, hparams):
    """The weights of a model: the tree that weights.py shows.

    Its leaves are read-only float32 arrays, mapped into memory, which takes no time: a weight is
    read from the file when it is first used. Raises as `load_encoder_and_hparams` does.
    """
    folder = folder_of(model_size, models_dir)
    reader = reader_of(folder)
    *_, data_file = reader.files(folder)
    with advising_to_verify(folder):
        index = reader.read_index(folder, hparams)
    is_fetched = ensure_files(folder, [data_file])
    with advising_to_verify(folder):
        params = reader.load_params(folder, index, hparams)
        paths = reader.weight_files(folder)
        if is_fetched:  # and so checked already
            note_checked(folder, paths)
        check_once(folder, paths, lambda: reader.check_weights(folder, index, hparams))
    return params


def load_encoder_hparams_and_params(model_size, models_dir=MODELS_DIR):
    """All of a model, (encoder, hparams, params), as the two functions above return them."""
    encoder, hparams = load_encoder_and_hparams(model_size, models_dir)
    params = load_params(model_size, models_dir, hparams)
    return encoder, hparams, params


# ---- The command line ----------------------------------------------------------------------


def verify(model_size, models_dir=MODELS_DIR):
    """Checks all files of a model; prints a line for each, and a total. True if all are right.

    The lines say what was checked. Weights have checksums, and so has OpenAI's index. The sizes
    and the vocabulary have none: they are read, and have to fit each other. Of OpenAI's 124M the
    published SHA-256 are compared too, of 355M the published sizes.
    """
    folder = folder_of(model_size, models_dir)
    reader = reader_of(folder)
    names, checked_by = reader.files(folder), reader.checked_by(folder)
    wrong = []
    for name in names:
        path = os.path.join(folder, name)
        n_bytes = os.path.getsize(path) if os.path.isfile(path) else 0
        doubtful = [other for other in checked_by.get(name, []) if other in wrong]
        try:
            if not os.path.isfile(path):
                result = "WRONG: missing"
            elif doubtful:
                result = f"not checked: that needs {doubtful[0]}"
            else:
                result = f"ok: {reader.check_file(folder, name)}"
        except (OSError, ValueError) as error:
            result = f"WRONG: {error}"
        if not result.startswith("ok"):
            wrong.append(name)
        console.write(f"{name:<31}{n_bytes:>14,} bytes  {result}\n")
    console.write(f"{model_size}: {len(names) - len(wrong)} of {len(names)} files are right\n")
    return not wrong


def main():
    import argparse

    parser = argparse.ArgumentParser(
        usage=argparse.SUPPRESS,  # a wrong call is answered in one line
        description="download: fetches a model before its first use. "
        "verify: checks all files of a model that is here.",
    )
    parser.add_argument("command", choices=["download", "verify"])
    parser.add_argument("model_size", help=f"{', '.join(MODEL_SIZES)} or a folder in models_dir")
    parser.add_argument("--models_dir", default=MODELS_DIR, help="default: %(default)s")
    args = parser.parse_args()
    try:
        folder = folder_of(args.model_size, args.models_dir)
    except ValueError as error:
        parser.error(str(error))

    if args.command == "verify":
        sys.exit(not verify(args.model_size, args.models_dir))
    load_encoder_hparams_and_params(args.model_size, args.models_dir)
    console.write(f"{args.model_size} is in {folder}\n")


if __name__ == "__main__":
    console.run(main)
