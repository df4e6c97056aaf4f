"""Reads the tokenizer of a model in Hugging Face's format.

It is GPT-2's tokenizer, which encoder.py explains, in other files. The vocabulary is written in
one of two ways, and where a folder has both, tokenizer.json counts:

    tokenizer.json            {"model": {"vocab": {"!": 0, ...}, "merges": ["Ġ t", ...]}, ...}
    vocab.json, merges.txt    OpenAI's encoder.json and vocab.bpe, under other names

Added tokens

Merges do not make all tokens. Some were added to a vocabulary that was finished, often for a
fine-tuning: "<|user|>" say, with the id 50257. Where the text of an added token stands in a
prompt, it becomes this one token, and the text on either side of it is encoded on its own:

    "Hi <|user|>!"  ->  "Hi ", <|user|>, "!"  ->  17250 220 50257 0

The same holds for <|endoftext|> here. (In a prompt for one of OpenAI's models, "<|endoftext|>" is
ordinary text.) transformers does it this way, and a model should write the same here as it does
there.

tokenizer.json, tokenizer_config.json and added_tokens.json list added tokens with their ids.
tokenizer_config.json and special_tokens_map.json name the tokens that have a special use, such as
{"pad_token": "<pad>"}. Which of these files a folder has depends on the version of transformers.
"""

import os
import re

from encoder import Encoder, byte_alphabet
from files import read_text
from huggingface.config import (
    TOKENIZER_CLASSES,
    Unsupported,
    check_settings,
    read_json,
    read_json_if_there,
    section,
    shown,
)

OPTIONAL_FILES = ("tokenizer_config.json", "added_tokens.json", "special_tokens_map.json")
END_OF_TEXT = "<|endoftext|>"

# What these files have to say for the tokenizer to be GPT-2's. See config.check_settings.
TOKENIZER_JSON = {
    "normalizer": (None, (None,)),
    "pre_tokenizer.type": (None, ("ByteLevel",)),
    "pre_tokenizer.use_regex": (True, (True,)),
    "post_processor.type": (None, (None, "ByteLevel", "TemplateProcessing")),
    "decoder.type": (None, ("ByteLevel",)),
    "model.type": ("BPE", ("BPE",)),
    "model.dropout": (None, (None, 0)),
    "model.continuing_subword_prefix": (None, (None, "")),
    "model.end_of_word_suffix": (None, (None, "")),
    "model.byte_fallback": (False, (False,)),
    "model.ignore_merges": (False, (False,)),
}
TOKENIZER_CONFIG = {
    "tokenizer_class": (None, TOKENIZER_CLASSES),
    "split_special_tokens": (False, (False,)),
}
PREFIX_SPACE = "set it to false, and begin prompts with a space"
BEGIN_PROMPTS = f"set it to false, and begin prompts with {END_OF_TEXT}"


# ---- The encoder ---------------------------------------------------------------------------


class AddedTokensEncoder(Encoder):
    """An Encoder whose vocabulary has added tokens, and may have ids without a token.

    The embedding table of a model often has more rows than the tokenizer has tokens: it was made
    larger to a round number, which is faster. An id without a token is decoded to nothing.
    """

    def __init__(self, tokens, ids, ranks, added, end_of_text):
        """tokens: list of bytes, by id; b"" for an id without a token.
        ids: dict bytes -> id, of the tokens that merges make. ranks: as in `encoder.merge`.
        added: list of dicts, as `read_added_tokens` returns it.
        end_of_text: the id of the token that ends a text, or None.
        """
        super().__init__(tokens, ranks)
        self.ids = ids
        self.end_of_text = end_of_text
        self.added = {token["content"]: token["id"] for token in added}
        # transformers first looks in the whole text for the tokens that are not "normalized", and
        # then in what is left for the others. Of two that begin at the same place, the longer wins.
        self.patterns = []
        for normalized in (False, True):
            texts = [token["content"] for token in added if token["normalized"] is normalized]
            longest_first = map(re.escape, sorted(texts, key=len, reverse=True))
            if texts:
                self.patterns.append(re.compile(f"({'|'.join(longest_first)})"))

    def encode(self, text):
        """The ids of a text: a list of int, empty for "". An added token in it becomes its id."""
        return self._encode(text, self.patterns)

    def _encode(self, text, patterns):
        """The ids of a text in which the added tokens of these patterns are looked for."""
        if not patterns:
            return super().encode(text)
        ids = []
        for i, part in enumerate(patterns[0].split(text)):
            is_added = i % 2 == 1  # the parts alternate: text, added token, text, ...
            ids += [self.added[part]] if is_added else self._encode(part, patterns[1:])
        return ids


def load_encoder(folder, n_vocab, end_of_text):
    """The tokenizer of a folder, an AddedTokensEncoder. Raises ValueError naming what is wrong.

    n_vocab: how many rows the model's embedding table has. end_of_text: an id, or None.
    """
    *_, vocabulary = tokenizer_files(folder)
    tokenizer_json = {}
    if vocabulary == "tokenizer.json":
        tokenizer_json = read_json(folder, vocabulary)
        check_tokenizer_json(os.path.join(folder, vocabulary), tokenizer_json)
    names, merges = read_vocabulary(folder, tokenizer_json)
    added = read_added_tokens(folder, tokenizer_json, names, n_vocab)

    # The characters of a name stand for bytes. A name with a character that stands for none, such
    # as an added "<my token>" with its space, stands for itself, and merges do not make it.
    byte_of = {ord(character): byte for byte, character in enumerate(byte_alphabet())}
    alphabet = set(byte_alphabet())
    all_names = names | {token["content"]: token["id"] for token in added}
    in_bytes = {
        name: name.translate(byte_of).encode("latin-1")
        for name in all_names
        if alphabet.issuperset(name)
    }
    tokens = [b""] * n_vocab
    for name, id in all_names.items():
        if id >= n_vocab:
            raise Unsupported(
                f"{folder}: the tokenizer has the token {shown(name)} with the id {id}, and the "
                f"model has {n_vocab} ids, from 0 on: model.resize_token_embeddings"
                f"(len(tokenizer)), then save the model again"
            )
        tokens[id] = in_bytes[name] if name in in_bytes else name.encode("utf-8", "replace")

    ids = {in_bytes[name]: id for name, id in names.items() if name in in_bytes}
    lacking = {bytes([byte]) for byte in range(256)} - set(ids)
    if lacking:
        raise Unsupported(
            f"{folder}: the tokenizer has no token for the byte {min(lacking)!r}, and GPT-2's has "
            f"one for every byte: run this model with transformers"
        )
    ranks = rank_merges(os.path.join(folder, vocabulary), merges, in_bytes, ids)
    return AddedTokensEncoder(tokens, ids, ranks, added, end_of_text)


def rank_merges(path, merges, in_bytes, ids):
    """The merges as encoder.merge wants them: dict (bytes, bytes) -> rank.

    merges: list of "left right" or [left, right], from the file at `path`. in_bytes: dict of
    name -> bytes. ids: the tokens that merges make. Raises ValueError if a merge makes no token.
    """
    ranks = {}
    for rank, merge in enumerate(merges):
        try:
            left, right = merge.split(" ") if isinstance(merge, str) else merge
            pair = in_bytes[left], in_bytes[right]
        except (ValueError, TypeError, KeyError):
            pair = None
        if pair is None or pair[0] + pair[1] not in ids:
            raise ValueError(f"{path}: the merge {shown(merge)} is not two tokens that join")
        ranks[pair] = rank
    if len(ranks) < len(merges):
        raise ValueError(f"{path} lists a merge twice")
    return ranks


# ---- The vocabulary ------------------------------------------------------------------------


def tokenizer_files(folder):
    """The names of the files that make up a folder's tokenizer. The last one completes it."""
    def is_there(name):
        return os.path.isfile(os.path.join(folder, name))

    optional = [name for name in OPTIONAL_FILES if is_there(name)]
    in_two_files = is_there("vocab.json") and not is_there("tokenizer.json")
    return [*optional, *(["vocab.json", "merges.txt"] if in_two_files else ["tokenizer.json"])]


def read_vocabulary(folder, tokenizer_json):
    """The tokens that merges make, and the merges: (names, merges).

    tokenizer_json: what is in tokenizer.json, {} if the folder has none.
    names: dict name -> id. A name is a token, written in the alphabet of encoder.byte_alphabet.
    merges: list, whose elements `rank_merges` checks. Raises ValueError naming a damaged file.
    """
    if tokenizer_json:
        path = os.path.join(folder, "tokenizer.json")
        model = section(tokenizer_json, "model")
        names, merges = model.get("vocab"), model.get("merges")
    else:
        path = os.path.join(folder, "vocab.json")
        names = read_json(folder, "vocab.json")
        merges = read_lines(os.path.join(folder, "merges.txt"))

    if not isinstance(names, dict) or not all(type(id) is int and id >= 0 for id in names.values()):
        raise ValueError(f"{path} does not give every token an id, a whole number from 0 on")
    if len(set(names.values())) < len(names):
        raise ValueError(f"{path} gives two tokens the same id")
    if not isinstance(merges, list):
        raise ValueError(f"{path} has no list of merges")
    return names, merges


def read_lines(path):
    """The lines of a merges.txt, such as "Ġ t", without the first one if that is a version."""
    try:
        lines = read_text(path).split("\n")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text") from None
    return [line for i, line in enumerate(lines) if line and (i or not line.startswith("#version"))]


def check_tokenizer_json(path, tokenizer_json):
    """Raises Unsupported if a tokenizer.json does not describe GPT-2's tokenizer."""
    check_settings(path, tokenizer_json, TOKENIZER_JSON)
    prefix_space = {"pre_tokenizer.add_prefix_space": (True, (False,))}
    check_settings(path, tokenizer_json, prefix_space, PREFIX_SPACE)
    if "SpecialToken" in str(section(tokenizer_json, "post_processor").get("single")):
        raise Unsupported(
            f"{path}: post_processor adds tokens to every text, and this program adds none: save "
            f"the tokenizer with add_bos_token=False, and begin prompts with {END_OF_TEXT}"
        )


# ---- The added tokens ----------------------------------------------------------------------


def read_added_tokens(folder, tokenizer_json, names, n_vocab):
    """The added tokens of a folder: a list of dicts with content (the text), id and normalized.

    tokenizer_json, names: as in `read_vocabulary`. A token with a special use that has no id in
    any file gets the next free one, as transformers does it.
    """
    path = os.path.join(folder, "tokenizer_config.json")
    config = read_json_if_there(folder, "tokenizer_config.json")
    check_settings(path, config, TOKENIZER_CONFIG)
    check_settings(path, config, {"add_prefix_space": (False, (False,))}, PREFIX_SPACE)
    if not tokenizer_json:  # which would say so itself: see check_tokenizer_json
        check_settings(path, config, {"add_bos_token": (False, (False,))}, BEGIN_PROMPTS)

    in_json = tokenizer_json.get("added_tokens") or []
    in_config = config.get("added_tokens_decoder") or {}
    in_own_file = read_json_if_there(folder, "added_tokens.json")
    try:
        listed = [(token["id"], token) for token in in_json]
        listed += [(int(id), token) for id, token in in_config.items()]
    except (TypeError, KeyError, ValueError, AttributeError):
        raise ValueError(f"{folder}: its added tokens are not listed with their ids") from None
    listed += [(id, {"content": text, "normalized": True}) for text, id in in_own_file.items()]

    added = {}
    for id, token in listed:
        token = read_added_token(folder, token)
        known = added.setdefault(token["content"], {**token, "id": id})
        is_id = type(id) is int and id >= 0
        if not is_id or not id == known["id"] == names.get(token["content"], id):
            raise ValueError(f"{folder}: the added token {shown(token['content'])} has no clear id")

    next_id = 1 + max([-1, *names.values(), *(token["id"] for token in added.values())])
    for token in read_special_tokens(folder, config, names, next_id < n_vocab):
        text = token["content"]
        if text not in added:
            added[text] = {**token, "id": names.get(text, next_id)}
            next_id += text not in names
    return [token for token in added.values() if token["content"]]


def read_added_token(folder, token):
    """One added token as a dict with content and normalized. token: its text, or a dict."""
    token = {"content": token} if isinstance(token, str) else token
    if not isinstance(token, dict) or not isinstance(token.get("content"), str):
        raise ValueError(f"{folder}: the added token {shown(token)} has no text")
    for flag in ("lstrip", "rstrip", "single_word"):
        if token.get(flag):
            raise Unsupported(
                f"{folder}: the added token {shown(token['content'])} has {flag} set, which "
                f"this program does not support: run this model with transformers"
            )
    return {"content": token["content"], "normalized": token.get("normalized") is True}


def read_special_tokens(folder, config, names, has_free_id):
    """The tokens that have a special use: a list of dicts, as `read_added_token` returns them.

    config: what is in tokenizer_config.json. has_free_id: whether the model has an unused id.
    """
    special = read_json_if_there(folder, "special_tokens_map.json") | config
    # In transformers, GPT-2's tokenizer has <|endoftext|> for three uses where no file says so.
    is_gpt2 = "GPT2" in str(config.get("tokenizer_class") or "GPT2Tokenizer")
    if is_gpt2 and (END_OF_TEXT in names or has_free_id):
        special = {f"{use}_token": END_OF_TEXT for use in ("bos", "eos", "unk")} | special

    uses = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
    tokens = [special.get(f"{use}_token") for use in uses]
    for key in ("additional_special_tokens", "extra_special_tokens"):
        more = special.get(key)
        tokens += more if isinstance(more, list) else section(special, key).values()
    return [read_added_token(folder, token) for token in tokens if token is not None]
