"""Folders that transformers saves now: it and this program make the same of them."""

import shutil

import numpy as np
import pytest

import gpt2
import huggingface
import utils
from tools.write_huggingface import TEXT, answers, random_model, small_tokenizer

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

SIZES = {"n_positions": 128, "n_embd": 24, "n_head": 4, "n_layer": 3}
PIECES = ["the", " and", "é", "日本", "\n", "  ", "'s", " 12", "🤗", "ab", "bc", "abcd", "x", " "]
PIECES += ["<|user|>", "<pad>", "<|us", "<|endoftext|>", "<|endoftext", "\u0130", "\x00", "\x85"]


def save(folder, dtype=None, n_vocab=None):
    """Saves a random model and a tokenizer with added tokens in one folder."""
    tokenizer = small_tokenizer()
    model = random_model(len(tokenizer), tokenizer.eos_token_id, **SIZES)
    if n_vocab is not None:
        model.resize_token_embeddings(n_vocab)
    model.to(dtype or torch.float32).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def load_theirs(folder):
    """The model in float32, and the tokenizer, as transformers reads them from the folder."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    return model, transformers.AutoTokenizer.from_pretrained(folder)


def load_ours(folder):
    return utils.load_encoder_hparams_and_params(folder.name, str(folder.parent))


def check_the_same(folder, text=TEXT, n_greedy=40):
    """Ids equal, logits within 2e-5 of the largest, greedy ids and their text equal."""
    model, tokenizer = load_theirs(folder)
    encoder, hparams, params = load_ours(folder)
    expected = answers(model, tokenizer, text, n_greedy)
    ids = encoder.encode(text)
    assert ids == expected["ids"].tolist()

    logits, _ = gpt2.gpt2(np.array([ids]), **params, n_head=hparams["n_head"])
    difference = np.abs(logits[0] - expected["logits"][-1]).max()
    assert difference <= 2e-5 * np.abs(expected["logits"]).max()

    generators = [np.random.default_rng(0)]
    steps = gpt2.generate(
        ids, params, hparams["n_head"], n_greedy, generators, stop_id=encoder.end_of_text
    )
    greedy = [int(id) for [id] in steps]
    theirs = expected["greedy"].tolist()
    assert greedy[: len(theirs)] == theirs
    assert len(theirs) == n_greedy or theirs[-1] == encoder.end_of_text
    assert encoder.decode(theirs) == tokenizer.decode(theirs)


@pytest.mark.parametrize("n_vocab", [None, 320], ids=["as many rows as tokens", "more rows"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_models_that_save_pretrained_writes(tmp_path, dtype, n_vocab):
    """In three precisions, with added tokens, and with a resized vocabulary."""
    save(tmp_path / "mine", getattr(torch, dtype), n_vocab)
    check_the_same(tmp_path / "mine")


def test_a_text_ends_where_theirs_does(tmp_path):
    """At the id in generation_config.json; without one, nowhere."""
    save(tmp_path / "mine")
    model, tokenizer = load_theirs(tmp_path / "mine")
    fifth = int(answers(model, tokenizer, TEXT, 40)["greedy"][5])
    for end in (fifth, [fifth], None, 5000):
        model.generation_config.eos_token_id = end
        model.generation_config.save_pretrained(tmp_path / "mine")
        check_the_same(tmp_path / "mine")
    (tmp_path / "mine" / "generation_config.json").unlink()
    check_the_same(tmp_path / "mine")


def test_base_model_without_a_head(tmp_path):
    """GPT2Model saves its weights without "transformer." in their names."""
    save(tmp_path / "mine")
    model, _ = load_theirs(tmp_path / "mine")
    model.transformer.save_pretrained(tmp_path / "mine")
    check_the_same(tmp_path / "mine")


@pytest.mark.parametrize("folder", ["with pytorch_model.bin", "in several files"])
def test_other_forms_of_weights_are_refused(tmp_path, folder):
    """What this program cannot read, it says so."""
    save(tmp_path / "mine")
    if folder == "in several files":
        (tmp_path / "mine" / "model.safetensors").unlink()
        model = random_model(271, 268, **SIZES)
        model.save_pretrained(tmp_path / "mine", max_shard_size="30KB")
    else:
        (tmp_path / "mine" / "model.safetensors").unlink()
        torch.save({}, tmp_path / "mine" / "pytorch_model.bin")
    with pytest.raises(huggingface.Unsupported):
        load_ours(tmp_path / "mine")


def test_head_of_its_own_is_refused(tmp_path):
    """tie_word_embeddings=False is another model."""
    config = transformers.GPT2Config(vocab_size=271, tie_word_embeddings=False, **SIZES)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "mine")
    small_tokenizer().save_pretrained(tmp_path / "mine")
    with pytest.raises(huggingface.Unsupported, match="tie_word_embeddings is False"):
        load_ours(tmp_path / "mine")


# ---- Tokenizers ----------------------------------------------------------------------------


def tokenizer_of(added, special, vocabulary=None):
    """GPT-2's tokenizer with further tokens, ordinary and special ones."""
    tokenizer = vocabulary or small_tokenizer()
    tokenizer.add_tokens(added)
    tokenizer.add_special_tokens({"additional_special_tokens": special})
    return tokenizer


def check_texts(folder, n_texts=300):
    """The ids and the text of random strings, many of them with added tokens, are theirs."""
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    ours, *_ = huggingface.load_encoder_and_hparams(str(folder))
    rng = np.random.default_rng(0)
    for _ in range(n_texts):
        text = "".join(rng.choice(PIECES, rng.integers(1, 12)))
        ids = theirs(text)["input_ids"]
        assert ours.encode(text) == ids
        assert ours.decode(ids) == theirs.decode(ids)
        drawn = rng.integers(0, len(ours.tokens), 20).tolist()
        assert ours.decode(drawn) == theirs.decode(drawn)


def write_model(folder, n_vocab):
    """A folder with all but the tokenizer; its weights are not read."""
    config = transformers.GPT2Config(vocab_size=n_vocab, **SIZES)
    config.save_pretrained(folder)
    (folder / "model.safetensors").write_bytes(b"")


@pytest.mark.parametrize(
    "added, special",
    [
        ([], []),
        (["<|x|>", "x", "日本", "é"], ["<|us"]),
        (["ab", "abcd"], ["bc"]),
        ([" and", "the\n", "  "], ["12 "]),
    ],
)
def test_added_tokens_are_found_where_theirs_are(tmp_path, added, special):
    """An added token in the text is that token; the longest, and the special ones, come first."""
    tokenizer = tokenizer_of(added, special)
    write_model(tmp_path, len(tokenizer) + 9)
    tokenizer.save_pretrained(tmp_path)
    check_texts(tmp_path)


def test_openais_vocabulary(tmp_path, vocabulary_folder):
    """From OpenAI's files under their other names, and as transformers saves it."""
    shutil.copy(vocabulary_folder / "encoder.json", tmp_path / "vocab.json")
    shutil.copy(vocabulary_folder / "vocab.bpe", tmp_path / "merges.txt")
    write_model(tmp_path, 50257)
    check_texts(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert huggingface.files(str(tmp_path))[-2] == "tokenizer.json"
    check_texts(tmp_path)


def test_tokenizer_trained_anew(tmp_path):
    """Its special token comes first, and the bytes after it."""
    text = [(PIECES[i % 13] + " the other hen and ") * 9 for i in range(50)]
    tokenizer = small_tokenizer().train_new_from_iterator(text, 300)
    write_model(tmp_path, len(tokenizer))
    tokenizer.save_pretrained(tmp_path)
    check_texts(tmp_path)


@pytest.mark.parametrize("setting", ["add_prefix_space", "add_bos_token"])
def test_tokenizer_that_adds_to_a_text_is_refused(tmp_path, setting):
    """With what to do instead."""
    small_tokenizer().save_pretrained(tmp_path)
    write_model(tmp_path, 288)
    tokenizer = transformers.GPT2Tokenizer.from_pretrained(tmp_path, **{setting: True})
    if setting == "add_bos_token":  # from_pretrained leaves it out where there is tokenizer.json
        tokenizer.add_bos_token = True
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(huggingface.Unsupported, match="begin prompts with"):
        huggingface.load_encoder_and_hparams(str(tmp_path))


def test_tokenizer_larger_than_the_model_is_refused(tmp_path):
    """A token was added, and the model not resized."""
    tokenizer = small_tokenizer()
    write_model(tmp_path, len(tokenizer) - 1)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(huggingface.Unsupported, match="resize_token_embeddings"):
        huggingface.load_encoder_and_hparams(str(tmp_path))
