"""Folders from Hugging Face: read to the same ids and weights, or refused in one line."""

import json
import math
import random
import shutil
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest
from conftest import ROOT

import gpt2
import huggingface
import utils
import weights
from huggingface import tensors
from huggingface.tokenizer import load_encoder
from tools.fuzz_checkpoint import damage
from tools.write_checkpoint import write_checkpoint
from tools.write_huggingface import write_safetensors

SMALL = ROOT / "tests" / "huggingface" / "small"
HPARAMS = {"n_vocab": 288, "n_ctx": 128, "n_embd": 20, "n_head": 5, "n_layer": 3}
END_OF_TEXT = 268


@pytest.fixture(scope="module")
def golden():
    """What transformers made of the small model: text, ids, logits, greedy ids and their text."""
    return np.load(f"{SMALL}.npz")


@pytest.fixture
def folder(tmp_path):
    """A copy of the small model, for a test to change."""
    names = [path for path in SMALL.iterdir() if path.name != utils.CHECKED_FILE]
    (tmp_path / "mine").mkdir()
    for path in names:
        shutil.copy(path, tmp_path / "mine")
    return tmp_path / "mine"


def load(folder):
    return utils.load_encoder_hparams_and_params(folder.name, str(folder.parent))


def read(folder, name):
    return json.loads((folder / name).read_text(encoding="utf-8"))


def write(folder, name, content):
    (folder / name).write_text(json.dumps(content), encoding="utf-8")


def change(folder, name, **values):
    """Sets values in a JSON file of a folder: "model__type" is the type in the object model."""
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
    """The weights in a folder's file: dict of name -> (dtype, array), with "transformer."."""
    path = str(folder / "model.safetensors")
    data = tensors.map_data(path)
    found = tensors.read_header(path)
    return {name: ("F32", tensors.weight_of(path, data, found[name]).copy()) for name in found}


@pytest.fixture(scope="module")
def expected():
    """The weights of the small model, as they are in its own file."""
    index = huggingface.read_index(str(SMALL), HPARAMS)
    return huggingface.load_params(str(SMALL), index, HPARAMS)


def logits_of(params, ids):
    logits, _ = gpt2.gpt2(np.array([ids]), **params, n_head=HPARAMS["n_head"])
    return logits[0]


# ---- The same as transformers --------------------------------------------------------------


def test_it_is_the_model_that_transformers_saved(folder, golden):
    """Ids, sizes, logits and 40 greedy ids are those of transformers."""
    encoder, hparams, params = load(folder)
    assert hparams == HPARAMS
    ids = encoder.encode(str(golden["text"]))
    assert ids == golden["ids"].tolist()
    difference = np.abs(logits_of(params, ids) - golden["logits"][-1]).max()
    assert difference <= 2e-5 * np.abs(golden["logits"]).max()
    generators = [np.random.default_rng(0)]
    greedy = [int(id) for [id] in gpt2.generate(ids, params, HPARAMS["n_head"], 40, generators)]
    assert greedy == golden["greedy"].tolist()
    assert encoder.decode(greedy) == str(golden["greedy_text"])


def test_the_programs_run_it(folder):
    """gpt2.py, walkthrough.py and verify take the folder like any other model."""
    place = ["--model_size", folder.name, "--models_dir", str(folder.parent)]
    page = ["--output", str(folder.parent / "page.html")]
    for words in (
        ["gpt2.py", "The hen", *place, "--n_tokens_to_generate", "3"],
        ["walkthrough.py", "The hen", *place, "--n_tokens_to_generate", "2", *page],
        ["utils.py", "verify", folder.name, *place[2:]],
    ):
        done = subprocess.run([sys.executable, str(ROOT / words[0]), *words[1:]], cwd=folder)
        assert done.returncode == 0
    assert (folder.parent / "page.html").stat().st_size > 10_000


def test_the_same_weights_in_both_formats_give_the_same_bits(folder):
    """A TensorFlow checkpoint of the same weights has bit-equal logits."""
    encoder, hparams, params = load(folder)
    stored = {}

    def note(name, shape):
        _, array = arrays["transformer." + tensors.stored_name(name)]
        stored[name] = array.reshape(1, *shape) if name.endswith("/w") else array

    arrays = arrays_of(folder)
    weights.map_tree(note, weights.shapes_of(hparams))
    other = folder.parent / "other"
    write_checkpoint(other, hparams, stored)
    shutil.copy(ROOT / "tests" / "checkpoints" / "small" / "vocab.bpe", other)
    index = utils.openai_files.read_index(str(other), hparams)
    their_params = utils.openai_files.load_params(str(other), index, hparams)
    ids = encoder.encode("The hen and the other thing")
    assert logits_of(params, ids).tobytes() == logits_of(their_params, ids).tobytes()


# ---- The tokenizer -------------------------------------------------------------------------


def as_two_files(folder):
    """Puts vocab.json and merges.txt in the place of tokenizer.json; returns its added tokens."""
    content = read(folder, "tokenizer.json")
    write(folder, "vocab.json", content["model"]["vocab"])
    lines = ["#version: 0.2", *map(" ".join, content["model"]["merges"]), ""]
    (folder / "merges.txt").write_text("\n".join(lines), encoding="utf-8")
    (folder / "tokenizer.json").unlink()
    return {token["id"]: token for token in content["added_tokens"]}


def write_with_decoder(folder):
    """As transformers 4.34 and later write it without tokenizer.json."""
    change(folder, "tokenizer_config.json", added_tokens_decoder=as_two_files(folder))


def write_with_own_file(folder):
    """As earlier versions wrote it."""
    added = as_two_files(folder)
    write(folder, "added_tokens.json", {added[id]["content"]: id for id in added if id > 268})
    write(folder, "special_tokens_map.json", {"eos_token": "<|endoftext|>", "pad_token": "<pad>"})
    (folder / "tokenizer_config.json").unlink()


def write_old_tokenizer_json(folder):
    """As the folders of OpenAI's models on the Hub have it."""
    content = read(folder, "tokenizer.json")
    content["model"]["merges"] = [" ".join(merge) for merge in content["model"]["merges"]]
    for key in ("type", "byte_fallback", "ignore_merges"):
        del content["model"][key]
    del content["pre_tokenizer"]["use_regex"]
    write(folder, "tokenizer.json", content)
    write(folder, "tokenizer_config.json", {"model_max_length": 1024})


def write_without_version(folder):
    """A merges.txt without its first line, and with Windows' line ends."""
    write_with_decoder(folder)
    lines = (folder / "merges.txt").read_text(encoding="utf-8").split("\n")[1:]
    (folder / "merges.txt").write_bytes("\r\n".join(lines).encode())


@pytest.mark.parametrize(
    "rewrite",
    [write_with_decoder, write_with_own_file, write_old_tokenizer_json, write_without_version],
)
def test_every_way_to_write_the_tokenizer_is_read(folder, golden, rewrite):
    """The same tokens and the same ids, with the same end of a text."""
    expected = load_encoder(str(folder), 288, END_OF_TEXT)
    rewrite(folder)
    encoder, *_ = load(folder)
    assert encoder.tokens == expected.tokens and encoder.added == expected.added
    assert encoder.encode(str(golden["text"])) == golden["ids"].tolist()
    assert encoder.end_of_text == END_OF_TEXT


def test_vocabulary_without_any_other_file(folder):
    """vocab.json and merges.txt alone: <|endoftext|> is an added token all the same."""
    as_two_files(folder)
    (folder / "tokenizer_config.json").unlink()
    encoder, *_ = load(folder)
    assert encoder.added == {"<|endoftext|>": END_OF_TEXT}
    assert encoder.encode("a<|endoftext|><pad>")[:3] == [64, END_OF_TEXT, 27]


def test_token_without_an_id_gets_the_next_one(folder):
    """In the order in which transformers numbers them, after the ids that there are."""
    change(folder, "tokenizer_config.json", cls_token="<c>", sep_token="<s>")
    change(folder, "tokenizer_config.json", additional_special_tokens=["<x>", {"content": "<y>"}])
    encoder, *_ = load(folder)
    assert [encoder.added[text] for text in ("<s>", "<c>", "<x>", "<y>")] == [271, 272, 273, 274]


def test_unnormalized_added_tokens_come_first_and_long_ones_before_short_ones(folder):
    """As transformers cuts a text in which added tokens overlap."""
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
    """wte has 288 rows, and the tokenizer 271 tokens; an id beyond wte is an error."""
    encoder, *_ = load(folder)
    assert encoder.decode([64, 287, 65]) == "ab"
    with pytest.raises(ValueError, match="no token has the id 288"):
        encoder.decode([288])


def test_added_text_outside_the_alphabet_stands_for_itself(folder):
    """"日本" is UTF-8; "café" is read as the alphabet's é, a single byte, as transformers does."""
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
        ("tokenizer.json", {"model__merges": ["a", "b"]}, "the merge ['a'] is not two tokens"),
        ("tokenizer.json", {"model__merges": None}, "the merge None is not two tokens"),
        ("tokenizer.json", {"model__merges": ["h e", "h e"]}, "lists a merge twice"),
        ("tokenizer.json", {"added_tokens": [1]}, "are not listed with their ids"),
        ("tokenizer.json", {"added_tokens": [{"id": 268}]}, "has no text"),
        ("tokenizer.json", {"added_tokens": [{"id": True, "content": "x"}]}, "has no clear id"),
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
    """In one line that names the file, the setting and its value, before the weights are read."""
    change(folder, name, **values)
    (folder / "model.safetensors").write_bytes(b"")
    with pytest.raises(ValueError) as caught:
        load(folder)
    message = str(caught.value)
    assert words in message and str(folder) in message and "\n" not in message


def test_add_bos_token_counts_without_a_tokenizer_json(folder):
    """As in transformers, which takes it from tokenizer.json where there is one."""
    change(folder, "tokenizer_config.json", add_bos_token=True)
    load(folder)
    as_two_files(folder)
    with pytest.raises(ValueError, match="add_bos_token is True.*begin prompts with"):
        load(folder)


# ---- The settings --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key, value",
    [
        ("model_type", "llama"),
        ("activation_function", "relu"),
        ("layer_norm_epsilon", 1e-6),
        ("scale_attn_weights", False),
        ("scale_attn_by_inverse_layer_idx", True),
        ("reorder_and_upcast_attn", True),
        ("add_cross_attention", True),
        ("n_inner", 40),
        ("tie_word_embeddings", False),
        ("quantization_config", {"load_in_8bit": True}),
        ("tokenizer_class", "BertTokenizer"),
        ("n_head", 3),
        ("n_head", True),
        ("num_attention_heads", 3),
        ("n_layer", 10**30),
        ("vocab_size", -1),
    ],
)
def test_another_model_is_refused(folder, key, value):
    """In one line that names the key, before anything else is read."""
    change(folder, "config.json", **{key: value})
    (folder / "model.safetensors").write_bytes(b"")
    (folder / "tokenizer.json").write_bytes(b"")
    with pytest.raises(ValueError) as caught:
        load(folder)
    message = str(caught.value)
    name = "n_head" if key == "num_attention_heads" else key
    assert f"{folder}/config.json" in message and name in message and "\n" not in message
    assert ("transformers" in message) == isinstance(caught.value, huggingface.Unsupported)


@pytest.mark.parametrize(
    "values",
    [{"activation_function": "gelu_pytorch_tanh"}, {"n_inner": 80}, {"unknown_key": [1, 2]}],
)
def test_another_word_for_the_same_model_is_read(folder, values):
    """What changes nothing is accepted."""
    change(folder, "config.json", **values)
    load(folder)


def test_missing_settings_are_those_of_the_smallest_gpt2(folder):
    """transformers takes 124M's sizes for those that config.json does not give."""
    write(folder, "config.json", {"model_type": "gpt2"})
    hparams = {"n_vocab": 50257, "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12}
    assert huggingface.load_encoder_and_hparams(str(folder))[1] == hparams


@pytest.mark.parametrize(
    "generation, config, expected",
    [
        ({"eos_token_id": 5}, 6, 5),
        ({"eos_token_id": [5]}, 6, 5),
        ({"eos_token_id": [5, 50256]}, 6, 5),
        ({}, 6, None),
        (None, 6, 6),
        (None, None, None),
        (None, 50256, None),
    ],
)
def test_what_ends_a_text(folder, generation, config, expected):
    """generation_config.json decides, else config.json; an id beyond wte ends nothing."""
    (folder / "generation_config.json").unlink()
    if generation is not None:
        write(folder, "generation_config.json", generation)
    change(folder, "config.json", eos_token_id=config)
    assert load(folder)[0].end_of_text == expected


@pytest.mark.parametrize("value", [[5, 6], "5", [[5]], True])
def test_several_ends_of_a_text_are_refused(folder, value):
    """So is what is no id."""
    change(folder, "generation_config.json", eos_token_id=value)
    with pytest.raises(ValueError, match="generation_config.json: eos_token_id is"):
        load(folder)


def test_other_files_of_weights_are_refused(folder):
    """With what to do, whether there are several files or the older format."""
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    for name, words in {
        "pytorch_model.bin": "save_pretrained(folder)",
        "model.safetensors.index.json": "max_shard_size",
    }.items():
        write(folder, name, {})
        with pytest.raises(huggingface.Unsupported) as caught:
            load(folder)
        assert name in str(caught.value) and words in str(caught.value)
        assert "utils.py verify" not in str(caught.value)
        assert not utils.verify(folder.name, str(folder.parent))


def test_missing_weights_are_named(folder):
    """A folder without weights of any kind lacks model.safetensors."""
    (folder / "model.safetensors").unlink()
    with pytest.raises((ValueError, OSError), match="model.safetensors"):
        load(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match="lacks tokenizer.json"):
        load(folder)


# ---- The weights ---------------------------------------------------------------------------


def test_the_example_in_the_docstring_is_a_file(tmp_path):
    """The bytes drawn there are read as the two numbers that it says."""
    _, _, drawn = tensors.__doc__.partition("    40 00")
    first, header, last = ("40 00" + drawn).split("\n")[:3]
    data = bytes.fromhex(first.split("   ")[0])
    data += header.strip().split("   ")[0].encode() + b"  "
    data += bytes.fromhex(last.strip().split("   ")[0])
    path = tmp_path / "example"
    path.write_bytes(data)
    tensor = tensors.read_header(path)["ln_f.bias"]
    numbers = tensors.weight_of(path, tensors.map_data(path), tensor)
    assert tensor["offset"] == 72 and numbers.tolist() == [1.0, -2.0]


@pytest.mark.parametrize("n_spaces", [0, 1, 2, 3])
def test_float32_is_mapped_unless_that_is_slow(folder, expected, n_spaces):
    """Numbers that begin at a multiple of 4 bytes stay in the file; others are the same numbers."""
    path = folder / "model.safetensors"
    write_safetensors(path, arrays_of(SMALL), n_spaces)
    begin = min(tensor["offset"] for tensor in tensors.read_header(path).values())
    _, _, params = load(folder)
    for name in ("wte", "wpe"):
        array = params[name]
        assert np.array_equal(array, expected[name]) and array.dtype == np.float32
        assert array.flags.aligned and not array.flags.writeable
        assert isinstance(array.base.base, np.memmap) == (begin % 4 == 0)


@pytest.mark.parametrize("dtype", ["F16", "BF16"])
def test_half_precision_becomes_float32(folder, dtype):
    """Every number is the float32 of the same value."""
    arrays = {name: array for name, (_, array) in arrays_of(folder).items()}
    if dtype == "F16":
        stored = {name: array.astype(np.float16) for name, array in arrays.items()}
        widened = {name: array.astype(np.float32) for name, array in stored.items()}
    else:
        stored = {
            name: (array.view(np.uint32) >> 16).astype(np.uint16) for name, array in arrays.items()
        }
        widened = {
            name: (array.view(np.uint32) & 0xFFFF0000).view(np.float32)
            for name, array in arrays.items()
        }
    half = {name: (dtype, array) for name, array in stored.items()}
    write_safetensors(folder / "model.safetensors", half)
    _, _, params = load(folder)

    def check(name, leaf_shape):
        found = weights_by_name[name]
        assert found.dtype == np.float32
        assert np.array_equal(found, widened["transformer." + tensors.stored_name(name)])

    weights_by_name = named(params)
    weights.map_tree(check, weights.shapes_of(HPARAMS))


def named(params):
    """The leaves of a tree of weights, by their names."""
    found = {"model/wte": params["wte"], "model/wpe": params["wpe"]}
    found |= {f"model/ln_f/{leaf}": array for leaf, array in params["ln_f"].items()}
    for i, block in enumerate(params["blocks"]):
        for norm in ("ln_1", "ln_2"):
            found |= {f"model/h{i}/{norm}/{leaf}": block[norm][leaf] for leaf in "gb"}
        for part in ("attn", "mlp"):
            for name, linear in block[part].items():
                found |= {f"model/h{i}/{part}/{name}/{leaf}": linear[leaf] for leaf in "wb"}
    return found


def test_names_without_transformer_and_what_is_passed_over(folder, expected):
    """GPT2Model's names, the masks of old versions, and a head that is a copy of wte."""
    arrays = {name.removeprefix("transformer."): pair for name, pair in arrays_of(folder).items()}
    arrays["h.0.attn.bias"] = ("BOOL", np.ones((1, 1, 128, 128), bool))
    arrays["h.0.attn.masked_bias"] = ("F32", np.array(-np.inf, dtype=np.float32))
    arrays["lm_head.weight"] = arrays["wte.weight"]
    write_safetensors(folder / "model.safetensors", arrays)
    _, _, params = load(folder)
    array, expected_array = (tree["blocks"][2]["mlp"]["c_fc"]["w"] for tree in (params, expected))
    assert np.array_equal(array, expected_array)
    assert utils.verify(folder.name, str(folder.parent))


def nan(arrays):
    arrays["transformer.h.1.ln_2.bias"][1][3] = np.nan


def other_head(arrays):
    arrays["lm_head.weight"] = ("F32", arrays["transformer.wte.weight"][1] + 1)


def small_head(arrays):
    arrays["lm_head.weight"] = ("F32", arrays["transformer.wte.weight"][1][1:])


def one_less(arrays):
    del arrays["transformer.h.1.ln_2.bias"]


def more_layers(arrays):
    arrays["transformer.h.3.ln_1.weight"] = arrays["transformer.h.2.ln_1.weight"]


def twice(arrays):
    arrays["ln_f.bias"] = arrays["transformer.ln_f.bias"]


def other_shape(arrays):
    dtype, array = arrays["transformer.h.0.mlp.c_fc.weight"]
    arrays["transformer.h.0.mlp.c_fc.weight"] = (dtype, array.T)


def other_dtype(arrays):
    dtype, array = arrays["transformer.wpe.weight"]
    arrays["transformer.wpe.weight"] = ("F64", array.astype(np.float64))


@pytest.mark.parametrize(
    "damage, words",
    [
        (nan, "ln_2/b has numbers that are infinite or not numbers"),
        (other_head, "lm_head.weight is not the same as wte.weight"),
        (small_head, "lm_head.weight is (287, 20); by config.json it is (288, 20)"),
        (one_less, "does not have the tensor h.1.ln_2.bias"),
        (more_layers, "more layers than n_layer"),
        (twice, 'has a tensor twice, with and without "transformer."'),
        (other_shape, "h.0.mlp.c_fc.weight is (80, 20); by config.json it is (20, 80)"),
        (other_dtype, "wpe.weight is of dtype F64"),
    ],
)
def test_wrong_weights_are_refused(folder, capsys, damage, words):
    """In one line, when the model is loaded and by verify, which shows which file it is."""
    arrays = arrays_of(folder)
    damage(arrays)
    write_safetensors(folder / "model.safetensors", arrays)
    with pytest.raises(ValueError) as caught:
        load(folder)
    assert words in str(caught.value) and "\n" not in str(caught.value)
    assert not utils.verify(folder.name, str(folder.parent))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if "WRONG" in line] == ["model.safetensors"]
    assert lines[-1] == "mine: 4 of 5 files are right"


def test_verify_says_which_file_is_damaged(folder, capsys):
    """What depends on a damaged file is not checked."""
    (folder / "config.json").write_text("{", encoding="utf-8")
    assert not utils.verify(folder.name, str(folder.parent))
    results = [line[53:].split(":")[0].strip() for line in capsys.readouterr().out.splitlines()]
    assert results[:5] == ["WRONG", "not checked", "ok", "not checked", "not checked"]


# ---- A hostile header ----------------------------------------------------------------------

ENTRY = '"x":{"dtype":"F32","shape":[%s],"data_offsets":[%s]}'


@pytest.mark.parametrize(
    "header",
    [
        "",
        "[]",
        "{" * 100_000,
        '{"a":' * 100_000,
        "[" * 1_000_000,
        '{"x":' + "9" * 100_000 + "}",
        '{"x":1}',
        '{"x":{}}',
        "{%s}" % ENTRY % ("1", "0,4,8"),
        "{%s}" % ENTRY % ("-1", "0,-4"),
        "{%s}" % ENTRY % ("-1,-1", "0,4"),
        "{%s}" % ENTRY % ("true", "0,4"),
        "{%s}" % ENTRY % ("1.0", "0,4"),
        "{%s}" % ENTRY % ("NaN", "0,4"),
        "{%s}" % ENTRY % ("1", "4,8"),
        "{%s}" % ENTRY % ("1", "0,1e400"),
        "{%s}" % ENTRY % ("9" * 4000, "0,4"),
        "{%s}" % ENTRY % (",".join(["9" * 4000] * 100), "0,4"),
        "{%s}" % ENTRY % (",".join(["2"] * 100_000), "0,4"),
        "{%s}" % ENTRY % ("1", "0,4") + " x",
        "{%s,%s}" % ((ENTRY % ("1", "0,4"),) * 2),
        '{"x":{"dtype":["F32"],"shape":[1],"data_offsets":[0,4]}}',
        '{"x":{"dtype":"F3","shape":[1],"data_offsets":[0,4]}}',
        '{"\ud800":1}',
    ],
)
def test_hostile_header_is_refused(tmp_path, header):
    """Depth, huge numbers, double names, bools: one ValueError, soon and in little memory."""
    text = header.encode("utf-8", "surrogatepass")
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(4))
    assert read_or_refuse(path) is not None


@pytest.mark.parametrize("data", [b"", b"\0", bytes(8), b"\xff" * 100, b"<html>" * 100])
def test_what_is_no_such_file_is_refused(tmp_path, data):
    """Empty, cut short, a web page."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    assert read_or_refuse(path) is not None


def read_or_refuse(path):
    """Reads a header. Returns the message of the ValueError, None without one."""
    message, start = None, time.process_time()
    tracemalloc.start()
    try:
        found = tensors.read_index(str(path), HPARAMS)
    except ValueError as error:
        message = str(error)
        assert str(path) in message and "\n" not in message and len(message) < 500
    else:
        move = path.stat().st_size - (SMALL / "model.safetensors").stat().st_size
        for name, tensor in SMALL_INDEX.items():
            assert found[name] == {**tensor, "offset": tensor["offset"] + move}
    _, most_memory = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert time.process_time() - start < 5
    assert most_memory < 10 * path.stat().st_size + 2**17
    return message


SMALL_INDEX = tensors.read_index(str(SMALL / "model.safetensors"), HPARAMS)
HOSTILE = [None, True, -1, 0, 1, 2**31, 2**63, 10**1000, 1.5, math.nan, "", "F64", "x" * 1000]
HOSTILE += [[], [0, 4], [4, 0], [-4, 0], [[]], {}, {"dtype": "F32"}, [2**62, 2**62], [0] * 9]


def with_hostile_value(header, rng):
    """The header with one value of a tensor, a whole tensor or a name changed."""
    content = json.loads(header)
    name = rng.choice(list(content))
    kind, value = rng.randrange(4), rng.choice(HOSTILE)
    if kind == 0:
        content[name] = value
    elif kind == 1:
        content[rng.choice(["", "h.0", "lm_head.weight", "h.3.ln_1.weight"])] = value
    else:
        content[name][rng.choice(list(content[name]))] = value
    return json.dumps(content).encode()


def test_damaged_headers(tmp_path):
    """1,000 headers with damaged bytes or values: the right weights, or one ValueError."""
    rng = random.Random(0)
    data = (SMALL / "model.safetensors").read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    path = tmp_path / "model.safetensors"
    n_read = 0
    for i in range(1000):
        if i % 2 == 0:
            head = damage(data[:end], rng)
            if rng.random() < 0.8:  # the right length lets the damage come further
                head = (len(head) - 8).to_bytes(8, "little", signed=True) + head[8:]
        else:
            text = with_hostile_value(data[8:end], rng)
            head = len(text).to_bytes(8, "little") + text
        path.write_bytes(head + data[end:])
        n_read += read_or_refuse(path) is None
    assert 0 < n_read < 500


# ---- The Hub -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, full",
    [
        ("distilgpt2", "distilbert/distilgpt2"),
        ("gpt2-medium", "openai-community/gpt2-medium"),
        ("openai-community/gpt2", "openai-community/gpt2"),
        ("some.one/their-gpt_2", "some.one/their-gpt_2"),
    ],
)
def test_name_on_the_hub_is_answered_with_the_command_that_fetches_it(tmp_path, name, full):
    """Into the models_dir of this call, and in quotes if that has a space."""
    short = full.split("/")[1]
    with pytest.raises(ValueError, match=f"hf download {full} --local-dir {tmp_path}/{short}`"):
        utils.check_model_size(name, str(tmp_path))
    with pytest.raises(ValueError, match=f'--local-dir "{tmp_path}/a b/{short}"`.*{short}$'):
        utils.check_model_size(name, str(tmp_path / "a b"))


@pytest.mark.parametrize("name", ["mine", "a/b/c", "../gpt2", "/a/gpt2", "https://a/b", str(SMALL)])
def test_other_unknown_names_are_not_taken_for_the_hubs(tmp_path, name):
    """The general message answers them."""
    with pytest.raises(ValueError) as caught:
        utils.check_model_size(name, str(tmp_path))
    assert "hf download" not in str(caught.value)
