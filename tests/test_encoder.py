"""The tokenizer: OpenAI's ids for every text, and a text for every list of ids."""

import random
import unicodedata

import numpy as np
import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken.load import data_gym_to_mergeable_bpe_ranks

import encoder

# Published ids, and those that OpenAI's own encoder.py gives.
KNOWN = {
    "": [],
    "Hello world": [15496, 995],
    "Hello, world": [15496, 11, 995],
    "Alan Turing theorized": [36235, 39141, 18765, 1143],
    " that computers would one day become": [326, 9061, 561, 530, 1110, 1716],
    "Not all heroes wear capes.": [3673, 477, 10281, 5806, 1451, 274, 13],
    "1984": [28296],
    "1234": [1065, 2682],
    "00000": [20483],
    "None": [14202],
    "I'm": [40, 1101],
    "I'll": [40, 1183],
    "I'LL": [40, 6, 3069],  # endings are known in lower case only
    "I’ll": [40, 447, 247, 297],  # and after a straight apostrophe only
    "don't": [9099, 470],
    " ": [220],
    "   ": [220, 220, 220],
    "\n": [198],
    "\n\n": [628],
    "a\r\nb": [64, 201, 198, 65],
    "\t\tx": [197, 197, 87],
    " Hello": [18435],
    "Hello  world": [15496, 220, 995],
    "today\n \n": [40838, 198, 220, 198],
    "a\u00a0b": [64, 1849, 65],
    "\x00": [188],
    "\x7f": [221],
    "\ufeffhi": [171, 119, 123, 5303],
    "é": [2634],
    "e\u0301": [68, 136, 223],  # the same letter in two parts is another text
    "naïve café": [2616, 38776, 40304],
    "\ufb01ne": [171, 105, 223, 710],
    "你": [19526, 254],
    "🤗": [8582, 97, 245],
    "hello 👋 world 🌍": [31373, 50169, 233, 995, 12520, 234, 235],
    "SolidGoldMagikarp": [46933, 42202],
    " SolidGoldMagikarp": [43453],
    "toString": [1462, 10100],
    "<|endoftext|>": [27, 91, 437, 1659, 5239, 91, 29],  # as plain characters
    "-5 degrees outside": [12, 20, 7370, 2354],
}


@pytest.fixture(scope="module")
def tiktoken_encoding(vocabulary_folder):
    """tiktoken's GPT-2, from the same two files."""
    ranks = data_gym_to_mergeable_bpe_ranks(
        vocab_bpe_file=str(vocabulary_folder / "vocab.bpe"),
        encoder_json_file=str(vocabulary_folder / "encoder.json"),
    )
    return tiktoken.Encoding(
        name="gpt2",
        pat_str=r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        mergeable_ranks=ranks,
        special_tokens={"<|endoftext|>": 50256},
    )


@pytest.mark.parametrize("text", KNOWN, ids=ascii)
def test_known_texts_have_openais_ids(real_encoder, text):
    """From these ids, the text comes back."""
    assert real_encoder.encode(text) == KNOWN[text]
    assert real_encoder.decode(KNOWN[text]) == text


# Only characters that this Python knows: libraries differ on which newer ones are letters.
ASSIGNED = st.characters().filter(lambda character: unicodedata.category(character) != "Cn")
TEXTS = st.text(st.one_of(ASSIGNED, st.sampled_from("  \n\t'aAbBsStT019.,-éñ你🤗\u0301\u2028\x1c")))


@given(TEXTS)
@settings(max_examples=1000, deadline=None)
def test_ids_are_those_of_tiktoken(real_encoder, tiktoken_encoding, text):
    """This holds for any text. A text without lone surrogates also comes back from its ids."""
    ids = real_encoder.encode(text)
    assert ids == tiktoken_encoding.encode_ordinary(text)
    if not any(0xD800 <= ord(character) < 0xE000 for character in text):
        assert real_encoder.decode(ids) == text


def test_every_character_has_the_ids_of_tiktoken(real_encoder, tiktoken_encoding):
    """All characters that Python knows are tried, each between a letter and a space."""
    assigned = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) != "Cn"]
    for start in range(0, len(assigned), 1000):
        text = " ".join("a" + character for character in assigned[start : start + 1000])
        assert real_encoder.encode(text) == tiktoken_encoding.encode_ordinary(text)


@pytest.mark.parametrize("length", [1, 2, 3, 17, 1000, 4000])
@pytest.mark.parametrize("letters", ["a", "-", "ab", "etaoin", "abcdefghijklmnopqrstuvwxyz"])
def test_text_without_spaces_has_the_ids_of_tiktoken(
    real_encoder, tiktoken_encoding, letters, length
):
    """Pieces of any length are merged by the same rule."""
    text = "".join(random.Random(length).choices(letters, k=length))
    assert real_encoder.encode(text) == tiktoken_encoding.encode_ordinary(text)


def test_a_long_unbroken_text_takes_no_square_time(real_encoder):
    """200,000 letters without a space would take minutes if each merge searched the whole list."""
    assert len(real_encoder.encode("a" * 200_000)) == 50_000


@given(st.lists(st.integers(0, 50256)))
@settings(max_examples=500, deadline=None)
def test_any_ids_have_a_text(real_encoder, ids):
    """Their bytes need not be characters."""
    assert isinstance(real_encoder.decode(ids), str)
    assert isinstance(real_encoder.decode(np.array(ids, dtype=int)), str)


def test_every_single_id_has_a_text(real_encoder):
    """All 50,257 ids are tried."""
    for id in range(50257):
        real_encoder.decode([id])


def test_a_character_cut_short_is_replaced(real_encoder):
    """The emoji takes three tokens. Fewer of them make U+FFFD."""
    assert real_encoder.decode([8582, 97, 245]) == "🤗"
    assert set(real_encoder.decode([8582, 97])) == {"\ufffd"}


def test_end_of_text_is_written_out(real_encoder):
    """The last id has a text, but no text has this id."""
    assert real_encoder.decode([50256]) == "<|endoftext|>"


@pytest.mark.parametrize("id", [-1, 50257, 10**9])
def test_an_unknown_id_is_named(real_encoder, id):
    """The error also says which ids there are."""
    with pytest.raises(ValueError, match=f"no token has the id {id}: ids go from 0 to 50256"):
        real_encoder.decode([0, id])


def test_lone_surrogates_become_replacement_characters(real_encoder):
    """UTF-8 cannot hold a lone surrogate. Two that match are joined into their character."""
    assert real_encoder.encode("caf\udce9") == real_encoder.encode("caf\ufffd")
    assert real_encoder.encode("\ud83e\udd17") == [8582, 97, 245]


def test_the_cache_is_bounded(real_encoder):
    """Otherwise a process that runs for long would keep every word it ever met."""
    assert real_encoder.cached_encode_piece.cache_info().maxsize == 2**16


# ---- Damaged files -------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """A model's folder with the smallest vocabulary: 256 bytes, one merge, <|endoftext|>."""
    names = sorted(encoder.byte_alphabet())
    tokens = [*names, "ab", "<|endoftext|>"]
    lines = ", ".join(f'"{name}": {id}' for id, name in enumerate(map(escaped, tokens)))
    write(tmp_path / "encoder.json", "{" + lines + "}")
    write(tmp_path / "vocab.bpe", "#version: 0.2\na b\n")
    return tmp_path


def escaped(name):
    return name.replace("\\", "\\\\").replace('"', '\\"')


def write(path, text):
    path.write_bytes(text.encode("utf-8"))


def load(folder):
    return encoder.get_encoder(folder.name, folder.parent)


def test_a_small_vocabulary_works(folder):
    """Nothing depends on the size of OpenAI's vocabulary."""
    small = load(folder)
    assert len(small.encode("abab é")) == 5
    assert small.decode(small.encode("abab é")) == "abab é"


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("encoder.json", "{", "[", "is not a JSON object that gives every token an id"),
        ("encoder.json", '": 7', '": "7"', "is not a JSON object that gives every token an id"),
        ("encoder.json", '": 257', '": 300', "does not number its 258 tokens 0, 1, 2"),
        ("encoder.json", '"ab"', '"a b"', "has a token with ' ', which stands for no byte"),
        ("encoder.json", '"ab"', '"aば"', "has a token with 'ば', which stands for no byte"),
        ("encoder.json", '"x"', '"xx"', "has no token for the byte b'x'"),
        ("vocab.bpe", "a b", "a", "line 2: 'a' does not make a token"),
        ("vocab.bpe", "a b", "a b c", "line 2: 'a b c' does not make a token"),
        ("vocab.bpe", "a b\n", "", "258 tokens, but 256 bytes, the 0 merges"),
        ("vocab.bpe", "a b", "a c", "line 2: 'a c' does not make a token"),
        ("vocab.bpe", "a b\n", "a b\na b\n", "lists a merge twice"),
    ],
)
def test_damage_is_named(folder, name, old, new, message):
    """The ValueError names the file and says what is wrong with it."""
    path = folder / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    write(path, text.replace(old, new, 1))
    with pytest.raises(ValueError, match=name) as caught:
        load(folder)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["encoder.json", "vocab.bpe"])
def test_a_vocabulary_that_is_not_utf_8_is_named(folder, name):
    """The ValueError names the file."""
    (folder / name).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=name):
        load(folder)
