"""A folder in Hugging Face's format is a model like any other, or is refused in one line."""

import shutil
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT
from huggingface_folders import (
    HPARAMS,
    SMALL,
    arrays_of,
    change,
    copy_small,
    load,
    logits_of,
    write,
)

import gpt2
import huggingface
import model_names
import openai_files
import prompts
import utils
import weights
from huggingface import tensors
from tools.write_checkpoint import write_checkpoint


@pytest.fixture(scope="module")
def golden():
    """What transformers made of the small model: text, ids, logits, greedy ids and their text."""
    return np.load(f"{SMALL}.npz")


@pytest.fixture
def folder(tmp_path):
    """A copy of the small model, for a test to change."""
    return copy_small(tmp_path)


# ---- The same as transformers --------------------------------------------------------------


def test_it_is_the_model_that_transformers_saved(folder, golden):
    """Ids, sizes, logits and 40 greedy ids are the same as in transformers."""
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


def test_the_same_weights_in_both_formats_give_the_same_logits(folder):
    """A TensorFlow checkpoint with the same weights gives the same logits, bit for bit."""
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
    index = openai_files.read_index(str(other), hparams)
    their_params = openai_files.load_params(str(other), index, hparams)
    ids = encoder.encode("The hen and the other thing")
    assert logits_of(params, ids).tobytes() == logits_of(their_params, ids).tobytes()


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
    """One line names the file and the key, before the vocabulary and the weights are read."""
    change(folder, "config.json", **{key: value})
    (folder / "model.safetensors").write_bytes(b"")
    (folder / "tokenizer.json").write_bytes(b"")
    with pytest.raises(ValueError) as caught:
        load(folder)
    message = str(caught.value)
    name = "n_head" if key == "num_attention_heads" else key
    assert str(folder / "config.json") in message and name in message and "\n" not in message
    assert ("transformers" in message) == isinstance(caught.value, huggingface.Unsupported)


@pytest.mark.parametrize(
    "values",
    [{"activation_function": "gelu_pytorch_tanh"}, {"n_inner": 80}, {"unknown_key": [1, 2]}],
)
def test_another_word_for_the_same_model_is_read(folder, values):
    """Such settings change nothing, so they are accepted."""
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
def test_the_settings_say_what_ends_a_text(folder, generation, config, expected):
    """generation_config.json decides if it is there, otherwise config.json.

    An id beyond wte ends nothing.
    """
    (folder / "generation_config.json").unlink()
    if generation is not None:
        write(folder, "generation_config.json", generation)
    change(folder, "config.json", eos_token_id=config)
    assert load(folder)[0].end_of_text == expected


def test_empty_prompt_needs_a_token_to_begin_with(folder):
    """The token that ends a text also begins one. The message says so if a model has none."""
    assert prompts.encode_prompt("", load(folder)[0], n_ctx=128) == [268]
    write(folder, "generation_config.json", {})
    with pytest.raises(ValueError, match="give a prompt"):
        prompts.encode_prompt("", load(folder)[0], n_ctx=128)


@pytest.mark.parametrize("value", [[5, 6], "5", [[5]], True])
def test_a_wrong_end_of_a_text_is_refused(folder, value):
    """eos_token_id may not be several ids, or something that is no id."""
    change(folder, "generation_config.json", eos_token_id=value)
    with pytest.raises(ValueError, match="generation_config.json: eos_token_id is"):
        load(folder)


def test_other_files_of_weights_are_refused(folder):
    """There may be several files, or one in an older format. The message says what to do."""
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
    """A folder without any weights lacks model.safetensors."""
    (folder / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="is incomplete: model.safetensors is missing. Add it"):
        load(folder)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match="tokenizer.json, model.safetensors are missing"):
        load(folder)


def test_a_folder_with_only_a_tokenizer_lacks_files_of_this_format(folder):
    """Not those of OpenAI's format, which nobody with such a folder has."""
    for name in ("config.json", "generation_config.json", "model.safetensors"):
        (folder / name).unlink(missing_ok=True)
    with pytest.raises(ValueError, match="incomplete: config.json, model.safetensors are missing"):
        load(folder)


def test_a_folder_with_openais_name_is_not_completed_by_a_download(folder, monkeypatch):
    """A folder 124M in this format is the user's own: OpenAI's files would not fit it."""
    monkeypatch.setenv("GPT2_BASE_URL", "http://127.0.0.1:9")
    folder = folder.rename(folder.parent / "124M")
    load(folder)
    for name in ("model.safetensors", "tokenizer.json"):
        (folder / name).unlink()
        with pytest.raises(ValueError, match=f"is incomplete: .*{name}.* missing"):
            load(folder)


def test_a_git_lfs_pointer_is_not_called_damaged(folder):
    """`git clone` leaves such a pointer where Git LFS is not installed.

    The message says what to do.
    """
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 548105171\n"
    (folder / "model.safetensors").write_text(pointer)
    with pytest.raises(huggingface.Unsupported, match="is a Git LFS pointer.*`git lfs pull`"):
        load(folder)
    assert not utils.verify(folder.name, str(folder.parent))


# ---- The Hub -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, full",
    [
        ("distilgpt2", "distilbert/distilgpt2"),
        ("openai-community/gpt2", "openai-community/gpt2"),
        ("some.one/their-gpt_2", "some.one/their-gpt_2"),
    ],
)
def test_name_on_the_hub_is_answered_with_the_command_that_downloads_it(tmp_path, name, full):
    """The command downloads into the models_dir of this call, in quotes if that has a space."""
    short = full.split("/")[1]
    for models_dir, quote in {tmp_path: "", tmp_path / "a b": '"'}.items():
        with pytest.raises(ValueError) as caught:
            model_names.check_model_size(name, str(models_dir))
        place = f"{quote}{models_dir / short}{quote}"
        files = 'model.safetensors "*.json" "*.txt"'
        assert f"`hf download {full} {files} --local-dir {place}`" in str(caught.value)
        assert f"--model_size {short} (`pip install huggingface_hub`" in str(caught.value)


@pytest.mark.parametrize("name", ["mine", "a/b/c", "../gpt2", "/a/gpt2", "https://a/b", str(SMALL)])
def test_other_unknown_names_are_not_taken_for_names_on_the_hub(tmp_path, name):
    """The message has no command that would download them from there."""
    with pytest.raises(ValueError) as caught:
        model_names.check_model_size(name, str(tmp_path))
    assert "hf download" not in str(caught.value)
