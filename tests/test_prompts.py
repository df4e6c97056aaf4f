"""A prompt is the text that was typed or piped in, exactly, or it is refused in one line.

What is typed in a session is in test_session.py.
"""

import io
import sys
import time

import pytest
from conftest import TINY, TWELVE, pipe_in

import encoder
import gpt2
import model_names
import prompts
import utils

NO_TOKENS = [*TINY, "--n_tokens_to_generate=0"]


@pytest.fixture(scope="module")
def tiny():
    """The tokenizer of the model that comes with the program."""
    return encoder.get_encoder("tiny", model_names.MODELS_DIR)


# ---- From the command line -----------------------------------------------------------------


def test_empty_prompt_starts_from_end_of_text(call, monkeypatch):
    """`""` is OpenAI's unconditional sample: the model is asked what follows <|endoftext|>."""
    seen = []
    monkeypatch.setattr(gpt2, "generate", lambda ids, *_, **__: seen.append(ids) or iter([]))
    for words in [[""], ["--prompt="], ["--prompt", ""]]:
        assert call(*words, *TINY).status == 0
    n_vocab = len(encoder.get_encoder("tiny", model_names.MODELS_DIR).tokens)
    assert seen == [[n_vocab - 1]] * 3


@pytest.mark.parametrize("prompt", ["caf\udce9", "\ud800"])
def test_argument_that_is_no_text_is_refused(call, prompt):
    """Python makes a lone surrogate of a byte that is not UTF-8, such as 0xE9."""
    status, out, err = call(prompt, *TINY)
    assert (status, out) == (2, "")
    assert "not UTF-8" in err and err.count("\n") == 1


def test_typed_text_survives_a_locale_that_knows_ascii_only(process, call):
    """In the C locale Python cannot read the argument, but its bytes still arrive."""
    c_locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert process("café 🤗", *TWELVE, **c_locale) == call("café 🤗", *TWELVE)


# ---- How long it may be --------------------------------------------------------------------


def test_prompt_may_fill_the_window(call):
    """tiny accepts a prompt of 256 tokens and refuses one of 257."""
    words = [*TINY, "--n_tokens_to_generate", "2"]
    assert call("~" * 256, *words).status == 0
    assert call("~" * 257, *words).status == 2


def test_prompt_that_is_too_long_is_refused_before_the_weights_are_touched(call, monkeypatch):
    """The message has both numbers, and no note about an option comes before it."""
    monkeypatch.setattr(utils, "load_params", lambda *_: pytest.fail("loads the weights"))
    status, out, err = call("~" * 300, *TINY, "--top_k", "5")
    assert (status, out) == (2, "")
    assert "300" in err and "256" in err and err.count("\n") == 1


def test_bytes_are_counted_before_they_are_encoded(tiny, monkeypatch):
    """A prompt with more bytes than n_ctx tokens can have is refused at once.

    As many are accepted.
    """
    longest = max(tiny.tokens, key=len).decode()
    assert len(prompts.encode_prompt(longest * 3, tiny, n_ctx=40)) <= 40
    monkeypatch.setattr(encoder.Encoder, "encode", lambda *_: pytest.fail("encodes it"))
    with pytest.raises(ValueError, match="50,000,000 bytes long"):
        prompts.encode_prompt("x" * 50_000_000, tiny, n_ctx=1024)


def test_space_at_the_end_gets_a_note(call):
    """The prompt is used as it is, with the space."""
    assert "ends in a space" in call("ROMEO: ", *TWELVE).err
    assert call("ROMEO: ", *TWELVE).out != call("ROMEO:", *TWELVE).out
    assert call("ROMEO:\n", *TWELVE).err == ""


# ---- From standard input -------------------------------------------------------------------


@pytest.mark.parametrize(
    "data, prompt",
    [
        (b"ROMEO:", "ROMEO:"),
        (b"ROMEO:\n", "ROMEO:"),
        (b"ROMEO:\r\n", "ROMEO:"),
        (b"ROMEO:\n\n", "ROMEO:\n"),
        (b"a\r\nb\rc\n \n", "a\r\nb\rc\n "),
        (b" \n", " "),
        (b"a\0b\n", "a\0b"),
        ("café 🤗\n".encode(), "café 🤗"),
        ("\ufeffcafé 🤗\n".encode(), "café 🤗"),
        ("\ufeff\ufeffa".encode(), "\ufeffa"),
    ],
)
def test_piped_prompt_loses_no_more_than_a_mark_and_a_line_end(
    encoded, call, monkeypatch, data, prompt
):
    """All that is piped in is one prompt, without a byte order mark and `echo`'s line end."""
    pipe_in(monkeypatch, data)
    assert call(*NO_TOKENS).status == 0
    assert encoded == [prompt]


@pytest.mark.parametrize(
    "data, message",
    [
        (b"", 'or "" to start'),
        (b"\n", 'or "" to start'),
        (b"\xef\xbb\xbf\r\n", 'or "" to start'),
        (b"caf\xe9\n", "not UTF-8"),
        (b"\x80" * 999, "not UTF-8"),
        (b"\xff\xfeR\0O\0", "UTF-16 text: save it as UTF-8"),
        (b"\xfe\xff\0R\0O", "UTF-16 text: save it as UTF-8"),
    ],
)
def test_piped_prompt_that_is_empty_or_no_text_is_refused(call, monkeypatch, data, message):
    """A line end alone is no prompt, and bytes that are not UTF-8 are no text."""
    pipe_in(monkeypatch, data)
    status, out, err = call(*TINY)
    assert (status, out) == (2, "")
    assert message in err and err.count("\n") == 1


def test_lone_dash_stands_for_standard_input(encoded, call, monkeypatch):
    """Many programs read it so. `--prompt=-` is a prompt of one hyphen."""
    for words in [["-"], ["--prompt", "-"]]:
        pipe_in(monkeypatch, b"ROMEO:")
        assert call(*words, *NO_TOKENS) == (0, "\n", "")
    assert call("--prompt=-", *NO_TOKENS) == (0, "\n", "")
    assert encoded == ["ROMEO:", "ROMEO:", "-"]


def test_endless_input_is_not_read_to_its_end(shell):
    """`yes` never ends.

    It is refused after half a megabyte, here with 4 GB of address space at most.
    """
    start = time.monotonic()
    status, out, err = shell("ulimit -v 4000000; yes | $GPT2 --model_size tiny")
    assert (status, out) == (2, "")
    assert f"longer than {prompts.MOST_BYTES:,} bytes" in err and err.count("\n") == 1
    assert time.monotonic() - start < 20


def test_text_that_is_piped_in_beside_a_prompt_gets_a_note(shell):
    """The note says that the text is ignored. Without such a text, there is no note."""
    words = "--model_size tiny --n_tokens_to_generate 1"
    (note,) = shell(f"echo 'The king' | $GPT2 said {words}").err.splitlines()
    assert "standard input is ignored" in note
    assert "ignored" in shell(f"echo text > text; $GPT2 said {words} < text").err
    assert shell(f"$GPT2 said {words} < /dev/null").err == ""
    assert shell(f"sleep 1 | $GPT2 said {words}").err == ""


def test_standard_input_of_a_shell_loop_is_left_alone(shell):
    """The loop reads prompts line by line. None of them is taken away, and there is no note."""
    loop = 'while read -r line; do $GPT2 "$line" --model_size tiny --n_tokens_to_generate 0; done'
    assert shell(f"printf 'a\\nb\\n' > lines; {loop} < lines") == (0, "\n\n", "")


def test_wait_for_input_is_announced(monkeypatch, capsys):
    """If the input does not end for a while, stderr says what the program waits for."""
    monkeypatch.setattr(prompts, "PATIENCE", 0.05)
    monkeypatch.setattr(sys, "stdin", slow := SlowInput())
    assert prompts.read_prompt(None) == "late"
    assert "waiting for the end of the prompt" in capsys.readouterr().err
    slow.pause = 0
    assert prompts.read_prompt(None) == "late"
    assert capsys.readouterr().err == ""


class SlowInput(io.StringIO):
    """A standard input that gives text instead of bytes, and gives it late."""

    pause = 0.5

    def read(self, n):
        time.sleep(self.pause)
        return "late\n"


@pytest.mark.parametrize("error", [IsADirectoryError(21, "Is a directory"), OSError(5, "I/O")])
def test_input_that_cannot_be_read_is_named(call, monkeypatch, error):
    """`python gpt2.py < folder` has such an input, for example."""

    def fail(n):
        raise error

    monkeypatch.setattr(sys, "stdin", stdin := io.StringIO())
    stdin.read = fail
    status, out, err = call(*TINY)
    assert (status, out) == (1, "")
    assert err == f"gpt2.py: standard input cannot be read: {error.strerror}\n"
