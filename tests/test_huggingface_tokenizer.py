"""A tokenizer in Hugging Face's format gives the ids of transformers, or is refused."""

import numpy as np
import pytest
from huggingface_folders import END_OF_TEXT, SMALL, change, copy_small, load, read, write

from huggingface.tokenizer import load_encoder


@pytest.fixture(scope="module")
def golden():
    """What transformers made of the small model: text, ids, logits, greedy ids and their text."""
    return np.load(f"{SMALL}.npz")


@pytest.fixture
def folder(tmp_path):
    """A copy of the small model, for a test to change."""
    return copy_small(tmp_path)


def as_two_files(folder):
    """Puts vocab.json and merges.txt in the place of tokenizer.json; returns its added tokens."""
    content = read(folder, "tokenizer.json")
    write(folder, "vocab.json", content["model"]["vocab"])
    lines = ["#version: 0.2", *map(" ".join, content["model"]["merges"]), ""]
    (folder / "merges.txt").write_text("\n".join(lines), encoding="utf-8")
    (folder / "tokenizer.json").unlink()
    return {token["id"]: token for token in content["added_tokens"]}


def write_with_decoder(folder):
    """Writes the tokenizer as transformers 4.34 and later do without tokenizer.json."""
    change(folder, "tokenizer_config.json", added_tokens_decoder=as_two_files(folder))


def write_with_own_file(folder):
    """Writes the tokenizer as earlier versions of transformers did."""
    added = as_two_files(folder)
    write(folder, "added_tokens.json", {added[id]["content"]: id for id in added if id > 268})
    write(folder, "special_tokens_map.json", {"eos_token": "<|endoftext|>", "pad_token": "<pad>"})
    (folder / "tokenizer_config.json").unlink()


def write_old_tokenizer_json(folder):
    """Writes tokenizer.json as the folders of OpenAI's models on the Hub have it."""
    content = read(folder, "tokenizer.json")
    content["model"]["merges"] = [" ".join(merge) for merge in content["model"]["merges"]]
    for key in ("type", "byte_fallback", "ignore_merges"):
        del content["model"][key]
    del content["pre_tokenizer"]["use_regex"]
    write(folder, "tokenizer.json", content)
    write(folder, "tokenizer_config.json", {"model_max_length": 1024})


def write_without_version(folder):
    """Writes merges.txt without its first line, and with the line ends of Windows."""
    write_with_decoder(folder)
    lines = (folder / "merges.txt").read_text(encoding="utf-8").split("\n")[1:]
    (folder / "merges.txt").write_bytes("\r\n".join(lines).encode())


@pytest.mark.parametrize(
    "rewrite",
    [write_with_decoder, write_with_own_file, write_old_tokenizer_json, write_without_version],
)
def test_every_way_to_write_the_tokenizer_is_read(folder, golden, rewrite):
    """Each of them gives the same tokens, the same ids and the same end of a text."""
    expected = load_encoder(str(folder), 288, END_OF_TEXT)
    rewrite(folder)
    encoder, *_ = load(folder)
    assert encoder.tokens == expected.tokens and encoder.added == expected.added
    assert encoder.encode(str(golden["text"])) == golden["ids"].tolist()
    assert encoder.end_of_text == END_OF_TEXT


def test_vocabulary_needs_no_other_file(folder):
    """With vocab.json and merges.txt alone, <|endoftext|> is still an added token."""
    as_two_files(folder)
    (folder / "tokenizer_config.json").unlink()
    encoder, *_ = load(folder)
    assert encoder.added == {"<|endoftext|>": END_OF_TEXT}
    assert encoder.encode("a<|endoftext|><pad>")[:3] == [64, END_OF_TEXT, 27]


def test_added_tokens_without_ids_get_the_next_ones(folder):
    """They are numbered after the ids that there are, in the order of transformers."""
    change(folder, "tokenizer_config.json", cls_token="<c>", sep_token="<s>")
    change(folder, "tokenizer_config.json", additional_special_tokens=["<x>", {"content": "<y>"}])
    encoder, *_ = load(folder)
    assert [encoder.added[text] for text in ("<s>", "<c>", "<x>", "<y>")] == [271, 272, 273, 274]


def test_unnormalized_added_tokens_come_first_and_long_ones_before_short_ones(folder):
    """If added tokens overlap in a text, transformers finds them in this order."""
    content = read(folder, "tokenizer.json")
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "special"), False)
    for text, normalized in {"ab": True, "abcd": True, "bc": False}.items():
        id = END_OF_TEXT + len(content["added_tokens"])
        token = {"id": id, "content": text, "normalized": normalized, **flags}
        content["added_tokens"].append(token)
    write(folder, "tokenizer.json", content)
    encoder, *_ = load(folder)
    assert encoder.encode("abd") == [encoder.added["ab"], 67]
    assert encoder.encode("abcd") == [64, encoder.added["bc"], 67]


def test_id_without_a_token_is_decoded_to_nothing(folder):
    """wte has 288 rows, but the tokenizer only 271 tokens. An id beyond wte is an error."""
    encoder, *_ = load(folder)
    assert encoder.decode([64, 287, 65]) == "ab"
    with pytest.raises(ValueError, match="no token has the id 288"):
        encoder.decode([288])


def test_added_text_outside_the_alphabet_stands_for_itself(folder):
    """"日本" is kept as UTF-8.

    But "é" is in the alphabet, where it stands for one byte, so "café" comes back changed.
    transformers does the same.
    """
    change(folder, "tokenizer_config.json", cls_token="日本", sep_token="café", mask_token=" the")
    encoder, *_ = load(folder)
    assert encoder.decode(encoder.encode("日本")) == "日本"
    assert encoder.decode(encoder.encode("café")) == "caf\ufffd"
    assert encoder.encode(" then") == [encoder.added[" the"], 77]


@pytest.mark.parametrize(
    "name, values, words",
    [
        ("tokenizer.json", {"normalizer": {"type": "NFC"}}, "normalizer is {'type': 'NFC'}"),
        ("tokenizer.json", {"pre_tokenizer__type": "Whitespace"}, "type is 'Whitespace'"),
        ("tokenizer.json", {"pre_tokenizer": None}, "pre_tokenizer.type is None"),
        ("tokenizer.json", {"pre_tokenizer__use_regex": False}, "use_regex is False"),
        ("tokenizer.json", {"pre_tokenizer__add_prefix_space": True}, "begin prompts with a space"),
        ("tokenizer.json", {"decoder": None}, "decoder.type is None"),
        ("tokenizer.json", {"model__type": "Unigram"}, "model.type is 'Unigram'"),
        ("tokenizer.json", {"model__dropout": 0.1}, "model.dropout is 0.1"),
        ("tokenizer.json", {"model__ignore_merges": True}, "model.ignore_merges is True"),
        ("tokenizer.json", {"model": 1}, "does not give every token an id"),
        ("tokenizer.json", {"model__vocab": {"a": "b"}}, "does not give every token an id"),
        ("tokenizer.json", {"model__vocab": {"a": 0, "b": 0}}, "two tokens the same id"),
        ("tokenizer.json", {"model__vocab": {"a": 0}, "model__merges": []}, "no token for"),
        ("tokenizer.json", {"model__merges": ["a", "b"]}, "the merge 'a' is not two tokens"),
        ("tokenizer.json", {"model__merges": None}, "has no list of merges"),
        ("tokenizer.json", {"model__merges": [1]}, "the merge 1 is not two tokens"),
        ("tokenizer.json", {"model__merges": [["h", "\u0120"]]}, "is not two tokens"),
        ("tokenizer.json", {"model__merges": ["h e", "h e"]}, "lists a merge twice"),
        ("tokenizer.json", {"added_tokens": [1]}, "are not listed with their ids"),
        ("tokenizer.json", {"added_tokens": [{"id": 268}]}, "has no text"),
        ("tokenizer.json", {"added_tokens": [{"id": True, "content": "x"}]}, "has no clear id"),
        ("tokenizer.json", {"added_tokens": [{"id": 269, "content": "x"}]}, "has no clear id"),
        ("tokenizer.json", {"added_tokens": [{"id": 288, "content": "<x>"}]}, "resize_token_emb"),
        ("tokenizer_config.json", {"tokenizer_class": "BertTokenizer"}, "is 'BertTokenizer'"),
        ("tokenizer_config.json", {"add_prefix_space": True}, "begin prompts with a space"),
        ("tokenizer_config.json", {"split_special_tokens": True}, "split_special_tokens is True"),
        ("tokenizer_config.json", {"added_tokens_decoder": [1]}, "are not listed with their ids"),
        (
            "tokenizer_config.json",
            {"mask_token": {"content": "<mask>", "lstrip": True}},
            "the added token '<mask>' has lstrip set",
        ),
        (
            "tokenizer.json",
            {"post_processor__single": [{"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}}]},
            "begin prompts with <|endoftext|>",
        ),
    ],
)
def test_another_tokenizer_is_refused(folder, name, values, words):
    """One line names the folder and what is wrong, before the weights are read."""
    change(folder, name, **values)
    (folder / "model.safetensors").write_bytes(b"")
    with pytest.raises(ValueError) as caught:
        load(folder)
    message = str(caught.value)
    assert words in message and str(folder) in message and "\n" not in message


def test_add_bos_token_counts_only_without_a_tokenizer_json(folder):
    """If there is a tokenizer.json, transformers takes the setting from there."""
    change(folder, "tokenizer_config.json", add_bos_token=True)
    load(folder)
    as_two_files(folder)
    with pytest.raises(ValueError, match="add_bos_token is True.*begin prompts with"):
        load(folder)


def test_empty_tokenizer_json_is_refused(folder):
    """An empty JSON object is not taken for a missing file."""
    write(folder, "tokenizer.json", {})
    with pytest.raises(ValueError, match="tokenizer.json: pre_tokenizer.type is None"):
        load(folder)
