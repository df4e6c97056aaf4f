"""A folder that transformers saves gives the same ids, logits and texts here as in transformers."""

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
    """The ids, the greedy ids and their text are equal. Logits are within 2e-5 of the largest."""
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
def test_models_that_save_pretrained_writes_give_the_same(tmp_path, dtype, n_vocab):
    """Models in three precisions are tried, with added tokens, and with more rows than tokens."""
    save(tmp_path / "mine", getattr(torch, dtype), n_vocab)
    check_the_same(tmp_path / "mine")


def test_a_text_ends_where_theirs_does(tmp_path):
    """generation_config.json says at which id.

    If it gives none, or one beyond wte, no id ends a text.
    """
    save(tmp_path / "mine")
    model, tokenizer = load_theirs(tmp_path / "mine")
    fifth = int(answers(model, tokenizer, TEXT, 40)["greedy"][5])
    for end in (fifth, [fifth], None, 5000):
        model.generation_config.eos_token_id = end
        model.generation_config.save_pretrained(tmp_path / "mine")
        check_the_same(tmp_path / "mine")
    (tmp_path / "mine" / "generation_config.json").unlink()
    check_the_same(tmp_path / "mine")


def test_a_base_model_without_a_head_gives_the_same(tmp_path):
    """GPT2Model saves its weights without "transformer." in their names."""
    save(tmp_path / "mine")
    model, _ = load_theirs(tmp_path / "mine")
    model.transformer.save_pretrained(tmp_path / "mine")
    check_the_same(tmp_path / "mine")


@pytest.mark.parametrize("folder", ["with pytorch_model.bin", "in several files"])
def test_other_forms_of_weights_are_refused(tmp_path, folder):
    """The error says that this program does not support them."""
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


def test_a_head_with_weights_of_its_own_is_refused(tmp_path):
    """With tie_word_embeddings=False, the logits are not computed from wte."""
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
    """Random strings, many of them with added tokens, get the ids and texts of transformers."""
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
    """A folder with everything but the tokenizer. Its weights file is empty, and is not read."""
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
    """An added token in a text is one token.

    Special ones come first, and long ones before short ones.
    """
    tokenizer = tokenizer_of(added, special)
    write_model(tmp_path, len(tokenizer) + 9)
    tokenizer.save_pretrained(tmp_path)
    check_texts(tmp_path)


def test_openais_vocabulary_gives_the_same_ids(tmp_path, vocabulary_folder):
    """This holds for OpenAI's files under the Hub's names, and for what transformers saves."""
    shutil.copy(vocabulary_folder / "encoder.json", tmp_path / "vocab.json")
    shutil.copy(vocabulary_folder / "vocab.bpe", tmp_path / "merges.txt")
    write_model(tmp_path, 50257)
    check_texts(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert huggingface.files(str(tmp_path))[-2] == "tokenizer.json"
    check_texts(tmp_path)


def test_a_tokenizer_trained_anew_gives_the_same_ids(tmp_path):
    """In such a tokenizer the special token comes first, and the bytes come after it."""
    text = [(PIECES[i % 13] + " the other hen and ") * 9 for i in range(50)]
    tokenizer = small_tokenizer().train_new_from_iterator(text, 300)
    write_model(tmp_path, len(tokenizer))
    tokenizer.save_pretrained(tmp_path)
    check_texts(tmp_path)


@pytest.mark.parametrize("setting", ["add_prefix_space", "add_bos_token"])
def test_tokenizer_that_adds_to_a_text_is_refused(tmp_path, setting):
    """The error says what prompts should begin with instead."""
    small_tokenizer().save_pretrained(tmp_path)
    write_model(tmp_path, 288)
    tokenizer = transformers.GPT2Tokenizer.from_pretrained(tmp_path, **{setting: True})
    if setting == "add_bos_token":  # from_pretrained leaves it out where there is tokenizer.json
        tokenizer.add_bos_token = True
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(huggingface.Unsupported, match="begin prompts with"):
        huggingface.load_encoder_and_hparams(str(tmp_path))


def test_tokenizer_larger_than_the_model_is_refused(tmp_path):
    """A token was added here, but the model was not resized."""
    tokenizer = small_tokenizer()
    write_model(tmp_path, len(tokenizer) - 1)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(huggingface.Unsupported, match="resize_token_embeddings"):
        huggingface.load_encoder_and_hparams(str(tmp_path))
