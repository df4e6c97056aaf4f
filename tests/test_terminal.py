"""A person at a terminal sees the text as it comes, and how far a longer work has come."""

import subprocess

import pytest
from conftest import TINY, TWELVE

pytest.importorskip("pty", reason="there are no pseudo-terminals here")

from pseudo_terminal import CTRL_C, piped  # noqa: E402 - needs pty

# ---- Text as it comes ----------------------------------------------------------------------


def test_one_sample_is_printed_token_by_token(model):
    """Each token is on the screen before the model is asked for the next one."""
    terminal = model.start("hey", "x", "--n_tokens_to_generate", "3")
    for letter in "hey":
        model.let_say(1)
        assert terminal.read_until(letter) == letter
    assert terminal.read_to_end() == ("\n", 0)


def test_bytes_of_an_unfinished_character_are_held_back(model):
    """A character of three tokens appears whole. One that is never finished appears as U+FFFD."""
    terminal = model.start("你🤗", "x", "--n_tokens_to_generate", "5")
    model.let_say(3)
    assert terminal.read_until("你") == "你"
    model.let_say(2)
    assert terminal.read_to_end() == ("\ufffd\n", 0)


def test_streamed_text_is_the_piped_text(start):
    """A terminal and a pipe get the same characters."""
    words = ["ROMEO:", *TWELVE, "--temperature", "1", "--seed", "5"]
    streamed, status = start(*words, stderr=subprocess.DEVNULL).read_to_end()
    assert status == 0
    assert streamed == piped(*words)[0]


def test_ctrl_c_keeps_what_was_streamed(model):
    """Ctrl-C ends a streamed text after its last token. The exit status is 130."""
    terminal = model.start("hey", "x")
    model.let_say(2)
    assert terminal.read_until("he") == "he"
    terminal.type(CTRL_C)
    rest, status = terminal.read_to_end()
    assert rest in ("^C\n", "\n")  # ^C is the terminal's own echo
    assert status == 130


# ---- The bar -------------------------------------------------------------------------------


def test_bar_is_on_stderr_while_a_file_gets_the_text(start, tmp_path):
    """The terminal shows how many tokens are made. The file has nothing but the text."""
    with open(tmp_path / "text", "w+b") as file:
        bar, status = start("ROMEO:", *TWELVE, stdout=file).read_to_end()
        file.seek(0)
        assert file.read().decode() == piped("ROMEO:", *TWELVE)[0]
    assert status == 0
    assert "/12" in bar and "token" in bar


def test_no_bar_where_the_text_may_be_on_the_screen_too(start):
    """A pipe may lead to the same terminal, as with `| tee`. There, a bar would be in the way."""
    terminal = start("ROMEO:", *TWELVE, stdout=subprocess.PIPE)
    assert terminal.read_to_end() == ("", 0)
    assert terminal.process.stdout.read().decode() == piped("ROMEO:", *TWELVE)[0]


def test_several_samples_come_at_the_end_with_a_bar(start):
    """At a terminal, a batch shows the bar first, then every sample under its own line."""
    words = ["ROMEO:", *TWELVE, "--nsamples", "2"]
    printed, status = start(*words).read_to_end()
    bar, line, samples = printed.partition("=" * 40 + " SAMPLE 1 ")
    assert status == 0
    assert "/12" in bar
    assert line + samples == piped(*words)[0]


def test_no_bar_where_stderr_is_no_terminal(start):
    """If stderr goes into a log, the log gets no bar, even if stdout is a terminal."""
    words = ["ROMEO:", *TWELVE, "--temperature", "1", "--nsamples", "2"]
    terminal = start(*words, stderr=subprocess.PIPE)
    _, status = terminal.read_to_end()
    log = terminal.process.stderr.read().decode()
    assert status == 0
    assert "\r" not in log and len(log.splitlines()) == 1


def test_ctrl_c_under_the_bar_prints_what_there_is(model):
    """Ctrl-C in a batch prints the samples as far as they are made. The exit status is 130."""
    terminal = model.start("hey", "x", "--nsamples", "2", "--n_tokens_to_generate", "9")
    model.let_say(3)
    model.wait_until_it_asks()
    terminal.type(CTRL_C)
    printed, status = terminal.read_to_end()
    assert status == 130
    line = "=" * 40
    assert printed.endswith(f"{line} SAMPLE 1 {line}\nhey\n{line} SAMPLE 2 {line}\nhey\n")


# ---- What only a terminal gets -------------------------------------------------------------


def test_control_characters_are_shown(model):
    """A terminal would obey control characters in the text."""
    terminal = model.start("a\x1b\x07b\tc", "x", "--n_tokens_to_generate", "6")
    model.let_say(6)
    assert terminal.read_to_end() == ("a\\x1b\\x07b\tc\n", 0)


@pytest.mark.parametrize("words, n_notes", [([], 1), (["--n_tokens_to_generate", "1"], 0)])
def test_length_is_explained_if_it_was_not_chosen(start, words, n_notes):
    """Whoever sees a text end in the middle of a sentence may not know the option."""
    printed, status = start("x", *TINY, *words).read_to_end()
    assert status == 0
    assert printed.count("a text gets at most 40 tokens; to change this, use") == n_notes


def test_help_opens_no_pager(start):
    """At a terminal too, help is only printed."""
    printed, status = start("--help").read_to_end()
    assert status == 0
    assert printed == piped("--help")[0]
