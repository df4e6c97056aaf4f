"""What is printed is the text that the model made, whole, and nothing else."""

import io
import sys

import numpy as np
import pytest
from conftest import TINY

import encoder
import gpt2
import model_names
import printing

# ---- One text, and several -----------------------------------------------------------------------


def test_sample_is_its_text_and_one_newline(call, model_says):
    """The prompt is not repeated, and the line ends in the text are kept."""
    model_says(b"a\n\nb\n")
    assert call("x", *TINY) == (0, "a\n\nb\n\n", "")


def test_samples_are_numbered_across_batches(call, model_says):
    """Each sample stands under a line with its number, as in OpenAI's script."""
    model_says(b"a\nb", b"a\nc")
    line = "=" * 40
    texts = ["a\nb", "a\nc", "a\nb"]
    expected = [f"{line} SAMPLE {i} {line}\n{text}\n" for i, text in enumerate(texts, start=1)]
    result = call("x", *TINY, "--nsamples", "3", "--batch_size", "2", "--temperature", "1e-9")
    assert result.out == "".join(expected)


def test_text_ends_where_the_model_ends_it(call, model_says):
    """<|endoftext|> is not printed. In a batch, a sample that has ended waits for the others."""
    model_says(b"ab", b"abcd", b"a")
    out = call("x", *TINY, "--nsamples", "3").out
    assert [line for line in out.splitlines() if "=" not in line] == ["ab", "abcd", "a"]


def test_end_of_text_in_the_prompt_ends_nothing(call, model_says):
    """In a prompt, <|endoftext|> is thirteen ordinary characters."""
    model_says(b"ab")
    assert call("x <|endoftext|> y", *TINY).out == "ab\n"


def test_no_tokens_make_an_empty_text(call):
    """--n_tokens_to_generate 0 is a call like any other."""
    assert call("x", *TINY, "--n_tokens_to_generate", "0") == (0, "\n", "")


class Watched(io.StringIO):
    """A stream that counts how often it was flushed."""

    n_flushed = 0

    def flush(self):
        self.n_flushed += 1


def test_text_is_written_as_it_comes(monkeypatch):
    """Each token is written before the next one is made, even into a pipe or a file."""
    tiny = encoder.get_encoder("tiny", model_names.MODELS_DIR)
    monkeypatch.setattr(sys, "stdout", out := Watched())

    def steps():
        for i, id in enumerate(tiny.encode("hey!")):
            assert out.n_flushed == i
            yield np.array([id])

    printing.print_samples(steps(), 9, 1, 0, 1, tiny, n_prompt=1, n_ctx=256)
    assert out.getvalue() == "hey!\n"


@pytest.mark.parametrize(
    "said", ["hi 🤗 你", b"\xf0\x9f\xa4", b"\xff\xfe", b"\xe4\xbd\xe4\xbd\xa0\x80", b"\xf0\x9f\n"]
)
def test_text_that_comes_in_tokens_is_the_text_of_all_of_them(call, model_says, said):
    """A character that is spread over tokens comes whole.

    Bytes that are no character come as U+FFFD.
    """
    said = said if isinstance(said, bytes) else said.encode()
    model_says(said, said)
    words = ["x", *TINY, "--nsamples"]
    _, *samples = call(*words, "2").out.split("=" * 40 + " SAMPLE ")
    assert [text.partition("=\n")[2] for text in samples] == [call(*words, "1").out] * 2


def test_samples_without_a_token_get_no_heading(call, monkeypatch):
    """If memory runs out before the first token, there is no text to print."""

    def fails(*_, **__):
        raise MemoryError
        yield

    monkeypatch.setattr(gpt2, "generate", fails)
    status, out, err = call("ROMEO:", *TINY, "--nsamples", "3", "--temperature", "1", "--seed", "1")
    assert (status, out) == (1, "")
    assert "out of memory" in err and err.count("\n") == 1


# ---- Longer than the window ----------------------------------------------------------------


def test_outgrown_window_is_noted_after_ctrl_c_too(call, monkeypatch):
    """The text made so far is printed, and the exit status is 130."""

    def until_ctrl_c(*_, **__):
        yield from [np.array([64])] * 300
        raise KeyboardInterrupt

    monkeypatch.setattr(gpt2, "generate", until_ctrl_c)
    status, out, err = call("", *TINY, "--n_tokens_to_generate", "1000")
    assert (status, out) == (130, "a" * 300 + "\n")
    assert "at most 256 tokens" in err and err.count("\n") == 1


@pytest.mark.parametrize("n_tokens, n_notes", [(256, 0), (257, 1), (600, 1)])
def test_outgrown_window_is_noted_once(call, model_says, n_tokens, n_notes):
    """stderr has one line, however often the window was full. A text that just fits gets none."""
    model_says(b"a" * 1000)
    status, out, err = call("", *TINY, "--n_tokens_to_generate", str(n_tokens))
    assert (status, out) == (0, "a" * n_tokens + "\n")
    assert err.count("went on from its last 128") == err.count("\n") == n_notes
