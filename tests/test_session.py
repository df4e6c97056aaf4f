"""A session at the terminal takes one prompt after another, and each gets the text of a call."""

import ctypes.util
import re
import signal
import subprocess
import time

import pytest
from conftest import TINY, TWELVE

pytest.importorskip("pty", reason="there are no pseudo-terminals here")

from pseudo_terminal import CTRL_C, CTRL_D, QUESTION, piped  # noqa: E402 - needs pty

KING_SAID = "The king\nsaid"  # a prompt of two lines


def test_session_asks_until_ctrl_d(start):
    """Each prompt gets the text that a call of its own gives.

    Ctrl-D ends the session with status 0.
    """
    terminal = start(*TWELVE)
    greeting = terminal.read_until(QUESTION)
    assert "up to 12 tokens" in greeting and "To leave, press Ctrl-D" in greeting
    assert greeting.count("\n") == 2
    for prompt in ("Hello, world", "-apple pie"):
        terminal.type(prompt + "\n")
        printed = terminal.read_until(QUESTION)
        assert printed == f"{prompt}\n{piped(f'--prompt={prompt}', *TWELVE)[0]}{QUESTION}"
    terminal.type(CTRL_D)
    assert terminal.read_to_end() == ("\n", 0)


def test_session_asks_again_after_an_empty_line(model):
    """Enter alone makes no text. A tab is a prompt like any other."""
    terminal = model.start("hey", "--n_tokens_to_generate", "3")
    terminal.read_until(QUESTION)
    terminal.type("\n")
    assert terminal.read_until(QUESTION) == f"\n{QUESTION}"
    terminal.type("\t\n")
    model.let_say(3)
    assert terminal.read_until(QUESTION).endswith(f"\nhey\n{QUESTION}")


def test_session_outlives_a_prompt_that_is_too_long(model):
    """The session says what is wrong with it, and asks for the next prompt."""
    terminal = model.start("hey", "--n_tokens_to_generate", "3")
    terminal.read_until(QUESTION)
    terminal.type("~" * 300 + "\n")
    assert "at most 256" in terminal.read_until(QUESTION)
    terminal.type("x\n")
    model.let_say(3)
    assert terminal.read_until(QUESTION) == f"x\nhey\n{QUESTION}"


@pytest.mark.parametrize("word", ["exit", "quit", "help"])
def test_session_answers_words_that_are_meant_for_it(start, word):
    """These words are not prompts. The answer says how to leave, and how to make them prompts."""
    terminal = start(*TWELVE)
    terminal.read_until(QUESTION)
    terminal.type(f"{word}\n")
    answer = terminal.read_until(QUESTION)
    assert "leave" in answer and "Ctrl-D" in answer
    assert f'the word "{word}", start gpt2.py' in answer
    assert answer.count("\n") <= 4


@pytest.mark.parametrize("editor", ["readline", "libedit", None])
def test_lines_that_come_in_one_go_are_one_prompt(start, editor):
    """Nobody types that fast, so they are a paste.

    (Many Pythons have libedit instead of readline.)
    """
    libedit = ctypes.util.find_library("edit")
    if editor == "libedit" and not libedit:
        pytest.skip("there is no libedit here")
    preload = {"LD_PRELOAD": libedit} if editor == "libedit" else {}
    terminal = start(*TWELVE, stdout=None if editor else subprocess.PIPE, **preload)
    terminal.read_until(QUESTION)
    terminal.type("The king\nsaid\n")
    printed = terminal.read_until(QUESTION)
    if editor is None:
        terminal.type(CTRL_D)
        terminal.read_to_end()
        printed = terminal.process.stdout.read().decode()
    assert printed.removesuffix(QUESTION).endswith(piped(KING_SAID, *TWELVE)[0])
    assert printed.count("\n") < 8


def test_line_that_ends_in_a_backslash_goes_on(start):
    """With a backslash, several lines can be typed at any terminal."""
    terminal = start(*TWELVE)
    terminal.read_until(QUESTION)
    terminal.type("The king\\\n")
    assert terminal.read_until("... ") == "The king\\\n... "
    terminal.type("said\n")
    assert terminal.read_until(QUESTION) == f"said\n{piped(KING_SAID, *TWELVE)[0]}{QUESTION}"


def test_paste_that_the_terminal_marks_is_one_prompt(start):
    """GNU readline asks a terminal to mark what is pasted, if the terminal can do that."""
    readline = pytest.importorskip("readline")
    if "libedit" in readline.__doc__ or readline._READLINE_RUNTIME_VERSION < 0x801:
        pytest.skip("this Python has another line editor")
    terminal = start(*TWELVE, TERM="xterm")
    assert "\x1b[?2004h" in terminal.read_until(QUESTION)
    terminal.type("\x1b[200~The king\r")  # what comes later belongs to the paste all the same
    time.sleep(0.3)
    terminal.type("said\r\x1b[201~")
    terminal.type("\r")
    printed = terminal.read_until("\x1b[?2004h")
    assert piped(KING_SAID, *TWELVE)[0] in printed


def test_lines_typed_ahead_are_prompts_of_their_own(model):
    """Lines that are typed while a text is made are not taken for a paste."""
    terminal = model.start("hey", "--n_tokens_to_generate", "1")
    terminal.read_until(QUESTION)
    terminal.type("a\n")
    model.wait_until_it_asks()
    terminal.type("b\nc\n")
    time.sleep(0.2)
    model.line.send(b"!")
    model.let_say(2)
    assert [terminal.read_until(f"{line}\nh\n{QUESTION}") for line in "bc"]


def test_line_that_the_terminal_cuts_is_refused(start):
    """Without an editor, a terminal silently drops what exceeds 4,095 bytes of a line."""
    terminal = start(*TWELVE, stdout=subprocess.PIPE)
    terminal.read_until(QUESTION)
    terminal.type("~" * 5000 + "\n")
    assert "the end of the prompt may be lost" in terminal.read_until(QUESTION)


@pytest.mark.parametrize("signum, status", [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_end_a_session(model, signum, status):
    """A signal ends the session at the question and while a text is made. No text is lost."""
    terminal = model.start("hey", "--n_tokens_to_generate", "3")
    terminal.read_until(QUESTION)
    time.sleep(0.2)  # a signal that comes just before readline begins to wait, waits for a key
    terminal.process.send_signal(signum)
    assert terminal.read_to_end()[1] == status

    terminal = model.start("hey", "--n_tokens_to_generate", "3")
    terminal.read_until(QUESTION)
    terminal.type("x\n")
    model.let_say(2)
    terminal.read_until("x\nhe")
    model.wait_until_it_asks()
    terminal.process.send_signal(signum)
    assert terminal.read_to_end() == ("\n", status)


def check_answer_in_pipe(terminal):
    """Types a prompt and ends the session: its standard output, a pipe, got just the text."""
    terminal.type("ROMEO:\n")
    terminal.read_until(QUESTION)
    terminal.type(CTRL_D)
    _, status = terminal.read_to_end()
    assert status == 0
    assert terminal.process.stdout.read().decode() == piped("ROMEO:", *TWELVE)[0]


def test_session_outlives_a_prompt_that_is_not_utf_8(start):
    """The prompt is refused. (readline would drop such bytes, so it is not in use here.)"""
    terminal = start(*TWELVE, stdout=subprocess.PIPE)
    terminal.read_until(QUESTION)
    terminal.type("caf\udce9\n")
    assert "UTF-8" in terminal.read_until(QUESTION).upper()
    check_answer_in_pipe(terminal)


def test_ctrl_c_ends_one_text_of_a_session(model):
    """After Ctrl-C, the session asks for the next prompt."""
    terminal = model.start("hey", "--n_tokens_to_generate", "3")
    terminal.read_until(QUESTION)
    terminal.type("x\n")
    model.let_say(2)
    terminal.read_until("x\nhe")
    terminal.type(CTRL_C)
    assert terminal.read_until(QUESTION).removeprefix("^C") == f"\n{QUESTION}"
    terminal.type("y\n")
    model.let_say(3)
    assert terminal.read_until(QUESTION) == f"y\nhey\n{QUESTION}"


def test_ctrl_c_at_the_prompt_ends_the_session(start):
    """No text is being made, so Ctrl-C ends the session, with exit status 130."""
    terminal = start(*TINY)
    terminal.read_until(QUESTION)
    terminal.type("half a prompt")
    terminal.read_until("half a prompt")
    time.sleep(0.2)  # as in test_signals_end_a_session
    terminal.type(CTRL_C)
    printed, status = terminal.read_to_end()
    assert status == 130
    assert printed.endswith("\n") and "Traceback" not in printed


def test_session_draws_a_fresh_seed_for_each_prompt(start):
    """The same prompt, typed twice, gets two seeds.

    A call with such a seed makes its text again.
    """
    words = [*TWELVE, "--temperature", "1"]
    terminal = start(*words)
    terminal.read_until(QUESTION)
    seeds = []
    for _ in range(2):
        terminal.type("ROMEO:\n")
        printed = terminal.read_until(QUESTION)
        [seed] = re.findall("--seed ([0-9]+)", printed)
        text, note = piped("ROMEO:", *words, "--seed", seed)
        assert note == ""
        assert printed.endswith(text + QUESTION)
        seeds.append(seed)
    assert seeds[0] != seeds[1]


def test_session_with_a_seed_repeats_itself(start):
    """With --seed, the same prompt gets the same text each time, and the same as in a call."""
    words = [*TWELVE, "--temperature", "1", "--seed", "5"]
    terminal = start(*words)
    terminal.read_until(QUESTION)
    terminal.type("ROMEO:\n")
    first = terminal.read_until(QUESTION)
    terminal.type("ROMEO:\n")
    assert terminal.read_until(QUESTION) == first
    assert first == f"ROMEO:\n{piped('ROMEO:', *words)[0]}{QUESTION}"


def test_session_keeps_the_question_out_of_a_redirected_stdout(start):
    """The questions are at the terminal, and stdout gets only the texts."""
    terminal = start(*TWELVE, stdout=subprocess.PIPE)
    terminal.read_until(QUESTION)
    check_answer_in_pipe(terminal)


def test_a_wrong_call_is_refused_before_the_first_question(start):
    """No session starts with options that are wrong."""
    printed, status = start(*TINY, "--temperature", "hot").read_to_end()
    assert status == 2
    assert QUESTION not in printed and "temperature" in printed
