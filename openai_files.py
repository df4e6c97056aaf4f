"""A model in OpenAI's format: its six files, what is known about them, how to check and read them.

    checkpoint                        says what the last two files are called: "model.ckpt"
    hparams.json                      the sizes: n_vocab, n_ctx, n_embd, n_head, n_layer
    encoder.json, vocab.bpe           the vocabulary: see encoder.py
    model.ckpt.index                  where each weight is in the next file: see checkpoint.py
    model.ckpt.data-00000-of-00001    the weights

huggingface/ has the same functions for its own format, and utils.py calls the one or the other.
A `folder` is the path of a model's folder.
"""

import hashlib
import json
import os

import checkpoint
import console
from checkpoint import DATA
from encoder import get_encoder, read_merges, read_tokens
from files import map_file, read_text

SMALL_FILES = ("checkpoint", "hparams.json", "encoder.json", "vocab.bpe")
FILES = (*SMALL_FILES, "model.ckpt.index", f"model.ckpt{DATA}")

# What is published about OpenAI's files, in the order of FILES. The sizes are from the tests of
# github.com/rasbt/LLMs-from-scratch. The SHA-256 are from scripts/download_openai_gpt2.py of
# github.com/MontrealAI/AGI-Alpha-Agent-v0; github.com/openai/tiktoken has the same ones for
# encoder.json and vocab.bpe. The SHA-256 of tiny are those of the files in models/tiny.
SIZES_124M = (77, 90, 1042301, 456318, 5215, 497759232)
SIZES_355M = (77, 91, 1042301, 456318, 10399, 1419292672)
SHA256_124M = (
    "dd1b025d2e155283f5e300ce95bf6d5b6bc0f7fe010db73daa6975eb896ab9cb",
    "d9d56e4121c427164e0c55c6f03c08e1daf9002b9b672825112d19097b680318",
    "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    "71916f763f9746f9b2a06b12d91996cf1084ae008d0424543d39391c5f2dc687",
    "2060c885360cc0cf41d7a6dbc4d24b5127aae20260c8b5ae521b5a6578407118",
)
SHA256_TINY = (
    "dd1b025d2e155283f5e300ce95bf6d5b6bc0f7fe010db73daa6975eb896ab9cb",
    "be2a51cf0abd814e25729661eb0c302a7c447a826ceeefe860dd1b551facc5f2",
    "8d8eba521e37d67d0576c9b4e327f5f2cd75d3f34703914e64883d21f6ba7447",
    "a421a256fe25313b2d7d7619875eae5c2e9ed5bd8ac181f75904f65dd4804e5a",
    "3c2b6707184c61b3296bed7c88995bedce5bd23cf696c9a261589891db2d209e",
    "c7f991c9f43fd870a4208bd56dc31e5afb5fdf06d957b5c70fcb9f0c7ba34714",
)
PUBLISHED_SIZES = {"124M": dict(zip(FILES, SIZES_124M)), "355M": dict(zip(FILES, SIZES_355M))}
PUBLISHED_SHA256 = {
    "124M": dict(zip(FILES, SHA256_124M)),
    "tiny": dict(zip(FILES, SHA256_TINY)),
}


# ---- The files -----------------------------------------------------------------------------


def files(folder):
    """The names of the six files of a model, in the order in which they are downloaded."""
    try:
        prefix = checkpoint.read_prefix(os.path.join(folder, "checkpoint"))
    except (OSError, ValueError):
        prefix = "model.ckpt"  # OpenAI's
    return [*SMALL_FILES, f"{prefix}.index", f"{prefix}{DATA}"]


def weight_files(folder):
    """The paths of the two files that hold the weights: the index and the data file."""
    return [os.path.join(folder, name) for name in files(folder)[-2:]]


def read_hparams(path):
    """The sizes of a model: a dict of five whole numbers. Raises ValueError naming the file."""
    try:
        hparams = dict(json.loads(read_text(path)))
    except (ValueError, TypeError, RecursionError):
        raise ValueError(f"{path} is not a JSON object") from None
    for name in ("n_vocab", "n_ctx", "n_embd", "n_head", "n_layer"):
        if type(hparams.get(name)) is not int or not 1 <= hparams[name] <= 10**6:
            raise ValueError(f"{path} gives no {name} from 1 to 1,000,000")
    if hparams["n_embd"] % hparams["n_head"] != 0:
        raise ValueError(f"{path} gives an n_embd that is not a multiple of n_head")
    return hparams


def load_encoder_and_hparams(folder):
    """The tokenizer and the sizes of a model. Raises ValueError naming the file that is damaged."""
    checkpoint.read_prefix(os.path.join(folder, "checkpoint"))  # raises ValueError if damaged
    hparams = read_hparams(os.path.join(folder, "hparams.json"))
    models_dir, model_size = os.path.split(folder)
    encoder = get_encoder(model_size, models_dir)
    check_n_vocab(os.path.join(folder, "encoder.json"), len(encoder.tokens), hparams)
    return encoder, hparams


def read_index(folder, hparams):
    """Where each weight is in the data file, as checkpoint.read_index returns it."""
    index_path, _ = weight_files(folder)
    index = checkpoint.read_index(index_path)
    checkpoint.check_tensors(index_path, index, hparams)
    return index


def load_params(folder, index, hparams):
    """The tree of weights that weights.py shows, mapped into memory.

    index: what `read_index` returned.
    """
    _, data_path = weight_files(folder)
    data = checkpoint.map_data(data_path, index)
    return checkpoint.build_params(data, index, hparams)


# ---- Checking them -------------------------------------------------------------------------


def check_weights(folder, index, hparams):
    """Checks every byte of the weights, by their checksums. Raises ValueError if one is wrong."""
    _, data_path = weight_files(folder)
    checkpoint.check_data(data_path, index, hparams)


def checked_by(folder):
    """Which other files are needed to check a file: dict of name -> list of names.

    While one of these others is wrong, nothing can be said about the file itself.
    """
    _, hparams, tokens, merges, index, data_file = files(folder)
    return {
        tokens: [hparams],
        merges: [hparams, tokens],
        index: [hparams],
        data_file: [hparams, index],
    }


def without_checksum(folder):
    """The names of the files that have no checksum, so that damage in them may go unnoticed."""
    *others, _, _ = files(folder)  # the index and the data file have checksums of their own
    published = PUBLISHED_SHA256.get(os.path.basename(folder), ())
    return [name for name in others if name not in published]


def check_file(folder, name):
    """Checks one of the six files; returns what was checked, in words. Raises ValueError."""
    path = os.path.join(folder, name)
    return check_content(folder, name, path) + check_published(folder, name, path)


def check_content(folder, name, path):
    """Checks what is in one of the six files; returns what was checked, in words.

    path: the path of the file; during a download, that of NAME.part. Raises ValueError if it is
    wrong.
    """
    if name == "checkpoint":
        return f"names {checkpoint.read_prefix(path)}"
    if name == "hparams.json":
        read_hparams(path)
        return "sizes that fit together"
    hparams = read_hparams(os.path.join(folder, "hparams.json"))
    if name == "encoder.json":
        n_tokens = len(read_tokens(path))
        check_n_vocab(path, n_tokens, hparams)
        return f"{n_tokens} tokens"
    if name == "vocab.bpe":
        tokens = read_tokens(os.path.join(folder, "encoder.json"))
        n_merges = len(read_merges(path, tokens))
        check_n_vocab(path, 256 + n_merges + 1, hparams)  # all bytes, the merges, <|endoftext|>
        return f"{n_merges} merges"
    if name.endswith(".index"):
        index = checkpoint.read_index(path)
        checkpoint.check_tensors(path, index, hparams)
        return f"{len(index)} tensors, CRC-32C of its blocks"
    index = checkpoint.read_index(os.path.join(folder, name.replace(DATA, ".index")))
    return f"CRC-32C of {checkpoint.check_data(path, index, hparams)} tensors"


def check_n_vocab(path, n_tokens, hparams):
    """Raises ValueError if a vocabulary does not have the size that hparams.json gives."""
    if n_tokens != hparams["n_vocab"]:
        raise ValueError(
            f"{path} makes {n_tokens:,} tokens, but hparams.json says {hparams['n_vocab']:,}"
        )


def check_published(folder, name, path):
    """Compares a file with what is published about it; returns what was compared, in words.

    path: the path of the file; during a download, that of NAME.part. Raises ValueError if it
    differs.
    """
    model_size = os.path.basename(folder)
    size = PUBLISHED_SIZES.get(model_size, {}).get(name)
    sha256 = PUBLISHED_SHA256.get(model_size, {}).get(name)
    n_bytes = os.path.getsize(path)
    if size is not None and n_bytes != size:
        raise ValueError(f"{path} has {n_bytes:,} bytes, but the published file has {size:,}")
    if sha256 is None:
        return "" if size is None else ", published size"
    if hashlib.sha256(map_file(path)).hexdigest() == sha256:
        return ", published SHA-256"
    if model_size == "124M" and name.endswith(".index"):
        # This hash has a single source. If it were wrong, the right index would be refused at every
        # download. The index has checksums of its own, so it is accepted if they are right. The
        # other files are not: `checkpoint` and hparams.json have no checksums, and those of the
        # data file are in the index, which would then be all that vouches for the weights.
        doubt = "does not have the SHA-256 that a single source gives; its own checksums decide"
        console.say(f"note: {path} {doubt}")
        return ", published size"
    raise ValueError(f"{path} does not have the published SHA-256")


# ---- What is downloaded --------------------------------------------------------------------


def expected_size(folder, name):
    """The size in bytes that a file has, or should have; None if nothing says it.

    For a file that is here, it is the size on the disk. The size of the data file is in the index.
    For the rest, it is the published size, if there is one.
    """
    path = os.path.join(folder, name)
    index_path = os.path.join(folder, name.replace(DATA, ".index"))
    if os.path.isfile(path):
        return os.path.getsize(path)
    if name.endswith(DATA) and os.path.isfile(index_path):
        return checkpoint.data_size(checkpoint.read_index(index_path))
    return PUBLISHED_SIZES.get(os.path.basename(folder), {}).get(name)


def check_fetched(folder, name, part):
    """Checks a file that was downloaded, before it gets its name. Raises ValueError if it is wrong.

    part: where the file is until then.
    """
    check_published(folder, name, part)
    has_hash = name in PUBLISHED_SHA256.get(os.path.basename(folder), ())
    # A data file that has the published SHA-256 is the right one, whatever the index says of it.
    if not (name.endswith(DATA) and has_hash):
        check_content(folder, name, part)
