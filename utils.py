"""Finds, downloads, checks and loads the models that gpt2.py runs.

    encoder, hparams, params = load_encoder_hparams_and_params("124M")

    python utils.py download 355M    downloads a model before its first use
    python utils.py verify 124M      checks all files of a model that is here

A model is a folder in OpenAI's format or in Hugging Face's; model_names.py says which models there
are.
"""

if __name__ == "__main__":  # Every program here begins like this: console.py says why.
    import os
    import sys

    sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
    import console

    console.prepare()

import contextlib
import gc
import json
import os
import sys

import console
import huggingface
import openai_files
from checks import CallError, shown
from files import read_text
from model_names import (
    BUNDLED,
    MODELS_DIR,
    RESTORE,
    can_be_downloaded,
    folder_of,
    is_bundled,
    reader_of,
)

HELP = """\
usage: python utils.py download MODEL [--models_dir DIR]
       python utils.py verify MODEL [--models_dir DIR]

  download
      Downloads a model now, so that its first use need not wait. If it is here already, checks
      that it can be used.
  verify
      Checks all files of a model that is here.
  MODEL
      124M, 355M, 774M and 1558M are OpenAI's models, which can be downloaded (0.5, 1.4, 3.1 or
      6.2 GB; their licence is a modified MIT licence). To download from somewhere else, set the
      environment variable GPT2_BASE_URL. Any other name must be that of a folder in models_dir.
  --models_dir DIR
      The folder that holds the models. Default: the folder "models" beside utils.py.
  -h, --help
      Print this text.

examples:
  python utils.py download 355M
  python utils.py verify 124M
"""

# ---- The files of a model ------------------------------------------------------------------


def call_of(command, folder):
    """How to call this program: "`python utils.py verify 124M`", say."""
    models_dir, name = os.path.split(folder)
    option = "" if models_dir == MODELS_DIR else f' --models_dir="{models_dir}"'
    return f"`python utils.py {command} {name}{option}`"


def ensure_files(folder, names):
    """Downloads those of the files `names` that are missing. True if there were any.

    Raises ValueError if files are missing that cannot be downloaded; OSError and ValueError as
    download.fetch does.
    """
    missing = [name for name in names if not os.path.isfile(os.path.join(folder, name))]
    if not missing:
        return False
    if not can_be_downloaded(folder):
        are, them = ("is", "it") if len(missing) == 1 else ("are", "them")
        add = f"Add {them}, or choose another model"
        add = RESTORE[0].upper() + RESTORE[1:] if is_bundled(folder) else add
        raise ValueError(
            f"the model in {folder} is incomplete: {', '.join(missing)} {are} missing. {add}"
        )
    import download  # only here, because the packages behind it take time to import

    download.fetch(
        folder,
        names,
        all_names=openai_files.files(folder),
        expected_size=lambda name: openai_files.expected_size(folder, name),
        check=lambda name, part: openai_files.check_fetched(folder, name, part),
        instead=f"The model {BUNDLED} needs no download.",
    )
    return True


# ---- Checking the weights once -------------------------------------------------------------
#
# With weights that were damaged on their way here, or on the disk, the program would silently write
# wrong text. So they are checked before their first use: by their checksums, or, in Hugging Face's
# format, which has none, by whether any of them is infinite or not a number (NaN). CHECKED_FILE
# beside them then holds their absolute paths, sizes and times. While these stay the same, they are
# not checked again. Damage that changes neither size nor time is only found by `verify`.

CHECKED_FILE = "checked.json"
LARGE = 2**26  # bytes; to check more than that takes long enough to be announced


def stamps(paths):
    """What shows whether files were changed: dict of path -> [size, time of last change]."""
    status = {path: os.stat(path) for path in paths}
    return {path: [status[path].st_size, status[path].st_mtime_ns] for path in paths}


def are_checked(folder, paths):
    """Whether the files at `paths` are still those that were checked."""
    try:
        return json.loads(read_text(os.path.join(folder, CHECKED_FILE))) == stamps(paths)
    except (OSError, ValueError, RecursionError):
        return False


def note_checked(folder, paths):
    """Notes that the files at `paths` are right. False where the folder cannot be written to."""
    path = os.path.join(folder, CHECKED_FILE)
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(stamps(paths), file)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.remove(temporary)
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
        console.say(
            f"note: cannot write into {folder}, so every start will check the weights again"
        )


# ---- Loading -------------------------------------------------------------------------------


@contextlib.contextmanager
def advising_to_verify(folder):
    """Adds advice to an error about a file."""
    try:
        yield
    except huggingface.Unsupported:
        raise  # nothing is damaged, and the message says what to do
    except OSError as error:
        # An error of the disk, while a file that is already open is read, does not name the file.
        path, reason = error.filename or f"a file in {folder}", error.strerror or error
        advice = "Fix that, or choose another model"
        raise OSError(f"cannot read {path}: {reason}. {advice}") from None
    except ValueError as error:
        if is_bundled(folder):
            raise ValueError(f"{error}; {RESTORE}") from None
        verify = call_of("verify", folder)
        then = "the next run downloads it" if can_be_downloaded(folder) else "put a good one there"
        advice = f"{verify} checks all files: delete what is damaged, and {then}"
        raise ValueError(f"{error}; {advice}") from None


@contextlib.contextmanager
def without_garbage_collection():
    """For speed only: Python does not look for garbage while a vocabulary is read.

    It would look several times, each time at all objects made so far, 150,000 at the end. None of
    them is garbage.
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

    Missing files of OpenAI's models are downloaded, all but the data file, which is large. Raises
    ValueError for an unknown model and for a missing or damaged file, OSError if a file cannot be
    downloaded or read.
    """
    folder = folder_of(model_size, models_dir)
    reader = reader_of(folder)
    *others, data_file = reader.files(folder)
    # The data file is downloaded later, in load_params, so that a prompt that is too long is
    # refused before a large download. If it cannot be downloaded, it has to be here now.
    ensure_files(folder, others if can_be_downloaded(folder) else [*others, data_file])
    with advising_to_verify(folder), without_garbage_collection():
        return reader.load_encoder_and_hparams(folder)


def load_params(model_size, models_dir, hparams):
    """The weights of a model: the tree that weights.py shows.

    Its leaves are read-only float32 arrays, mapped into memory if the format allows that: a weight
    is read from the file when it is first used. (Before the first use of a model, all of them are
    read once, to be checked.) Raises as `load_encoder_and_hparams` does.
    """
    folder = folder_of(model_size, models_dir)
    reader = reader_of(folder)
    *_, data_file = reader.files(folder)
    with advising_to_verify(folder):
        index = reader.read_index(folder, hparams)
    is_downloaded = ensure_files(folder, [data_file])
    with advising_to_verify(folder):
        params = reader.load_params(folder, index, hparams)
        paths = reader.weight_files(folder)
        if is_downloaded:  # and checked on the way, so that check_once has nothing to do
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
    """Checks all files of a model; prints a line for each, and a total. True if all passed.

    The lines say what was checked. In OpenAI's format, the index and the weights have checksums. In
    Hugging Face's format, nothing has: no weight may be infinite or NaN. The settings and the
    vocabulary have no checksums in either format: they have to fit each other. For 124M and tiny,
    the published SHA-256 of all files are compared as well. For 355M, the lengths are.
    """
    folder = folder_of(model_size, models_dir)
    reader = reader_of(folder)
    names, checked_by = reader.files(folder), reader.checked_by(folder)
    check_has_files(folder, names)
    failed = {}  # name of a file -> what is the matter with it
    for name in names:
        n_bytes = 0
        failed_before = [other for other in checked_by.get(name, []) if other in failed]
        try:
            n_bytes = os.path.getsize(os.path.join(folder, name))
            if failed_before:
                reason = f"because {failed_before[0]} {failed[failed_before[0]]}"
                failed[name], result = "was not checked", f"not checked, {reason}"
            else:
                result = f"ok: {reader.check_file(folder, name)}"
        except FileNotFoundError:
            failed[name], result = "is missing", "WRONG: missing"
        except OSError as error:
            failed[name], result = "cannot be read", f"not checked: {console.in_words(error)}"
        except ValueError as error:
            failed[name], result = "is wrong", f"WRONG: {error}"
        write_line(f"{name:<31}{n_bytes:>14,} bytes  {result}")
    if failed:
        total = failed_line(folder, list(failed), len(names))
    else:
        total = passed_line(names, reader.without_checksum(folder))
    write_line(f"{model_size}: {total}")
    return not failed


def write_line(line):
    """Writes a line to standard output. If its reader, such as `head`, has gone, nothing fails."""
    try:
        console.write(line + "\n")
    except BrokenPipeError:
        console.drop(sys.stdout)


def check_has_files(folder, names):
    """Raises ValueError if a model that can be downloaded has none of its files yet."""
    def is_here(name):
        return os.path.isfile(os.path.join(folder, name))

    if not can_be_downloaded(folder) or any(map(is_here, names)):
        return
    parts = list(filter(is_here, (f"{name}.part" for name in names)))
    begun = f" (only begun: {folder} has {', '.join(parts)})" if parts else ""
    raise ValueError(
        f"{os.path.basename(folder)} has not been downloaded yet{begun}: "
        f"{call_of('download', folder)} downloads it"
    )


def passed_line(names, unsure):
    """The last line of `verify` if no file failed. It claims no more than was checked.

    unsure: those of the files `names` that have no checksum, so that damage may go unnoticed.
    """
    if not unsure:
        return f"{len(names)} of {len(names)} files are right"
    which = f"{', '.join(unsure[:-1])} and {unsure[-1]} have no checksum"
    which = "none of them has a checksum" if unsure == names else which
    return f"no damage found in {len(names)} of {len(names)} files ({which})"


def failed_line(folder, failed, n_files):
    """The last line of `verify` if some files failed: which ones, and what to do."""
    found = f"{len(failed)} of {n_files} files did not pass: {', '.join(failed)}"
    if is_bundled(folder):
        return f"{found}; {RESTORE}"
    remedy = "put good ones in their place"
    if can_be_downloaded(folder):
        remedy = f"delete what is wrong; {call_of('download', folder)} downloads what is missing"
    return f"{found}; {remedy}"


def main(command=None, model_size=None, models_dir=None):
    """Downloads or verifies a model. `python utils.py --help` explains the options.

    Raises ValueError for a wrong call and for what is wrong with the model, OSError if a file
    cannot be read or downloaded.
    """
    if command not in ("download", "verify"):
        wrong = "" if command is None else f"there is no command {shown(command)}: "
        raise CallError(
            f"{wrong}write download or verify, and the name of a model, as in `python utils.py "
            "verify 124M`"
        )
    if model_size is None:
        raise CallError(f"{command} which model? Write `python utils.py {command} 124M`, say")
    models_dir = MODELS_DIR if models_dir is None else models_dir
    folder = folder_of(model_size, models_dir)
    if command == "verify":
        sys.exit(not verify(model_size, models_dir))
    # To load a model is to download what is missing, and to check that gpt2.py can run it. What was
    # loaded is not needed here. The small files may have been here already, so they are compared
    # with what is published, too.
    load_encoder_hparams_and_params(model_size, models_dir)
    reader = reader_of(folder)
    with advising_to_verify(folder):
        for name in reader.files(folder)[:-1]:
            reader.check_file(folder, name)
    console.write(f"{model_size} is in {folder}\n")


if __name__ == "__main__":
    import cli

    cli.run(main, HELP, positional=("command", "model_size"))
