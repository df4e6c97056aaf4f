"""A person at a terminal sees the text as it comes, and can have one prompt after another.

Every test starts the program in a pseudo-terminal, which it types into and reads from.
"""

import ctypes.util
import functools
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time

import pytest
from conftest import GPT2_PY, ROOT, TINY, TWELVE

pytest.importorskip("pty", reason="there are no pseudo-terminals here")

import fcntl  # noqa: E402 - where there is no pty, there are none of these
import pty  # noqa: E402
import struct  # noqa: E402
import termios  # noqa: E402

KING_SAID = "The king\nsaid"  # a prompt of two lines
QUESTION = "Model prompt >>> "
CTRL_C, CTRL_D = "\x03", "\x04"

# Makes standard input the terminal of the process, so that Ctrl-C reaches it; then starts it.
LAUNCH = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""

# gpt2.py with a model that says one text over and over, a byte a token. It asks a line for leave
# before each token, so that a test knows how far it has come.
SCRIPTED = """
import socket, sys
folder, line, text = sys.argv[1], socket.socket(fileno=int(sys.argv[2])), sys.argv[3].encode()
del sys.argv[1:4]
sys.path.insert(0, folder)
import console
console.prepare()
import numpy as np
import cli, encoder, gpt2, utils
byte_ids = encoder.get_encoder("tiny", utils.MODELS_DIR).ids

def scripted(inputs, wte, cache=None, **rest):
    line.send(b"?")
    line.recv(1)
    n_said = cache or 0
    logits = np.zeros((len(inputs), len(wte)), dtype=np.float32)
    logits[:, byte_ids[text[n_said % len(text)].to_bytes(1, "big")]] = 1
    return logits, n_said + 1

gpt2.gpt2 = scripted
cli.run(gpt2.main)
"""


class Terminal:
    """A process whose standard streams are a pseudo-terminal, or a pipe where one is given."""

    def __init__(self, arguments, stdout=None, stderr=None, pass_fds=(), **variables):
        self.master, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, sys.executable, *arguments],
            stdin=terminal,
            stdout=stdout or terminal,
            stderr=stderr or terminal,
            env={**os.environ, "TERM": "dumb", "PYTHONIOENCODING": "utf-8", **variables},
            start_new_session=True,
            pass_fds=pass_fds,
        )
        os.close(terminal)
        self.unread = b""

    def type(self, text):
        """Type a text; "\\n" is the Enter key."""
        os.write(self.master, text.encode("utf-8", "surrogateescape"))

    def read(self, seconds=60):
        """Add what was printed next to self.unread; False at the end."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            pytest.fail(f"nothing more came after {self.unread!r}")
        try:
            data = os.read(self.master, 65536)
        except OSError:  # as Linux tells that the other side was closed
            data = b""
        self.unread += data
        return data != b""

    def read_until(self, text):
        """All that is printed up to and with a text. Fails where it does not come."""
        wanted = text.replace("\n", "\r\n").encode()
        while wanted not in self.unread:
            if not self.read():
                pytest.fail(f"{text!r} did not come, but {self.unread!r}")
        end = self.unread.index(wanted) + len(wanted)
        printed, self.unread = self.unread[:end], self.unread[end:]
        return as_text(printed)

    def read_to_end(self):
        """All else that is printed, and the exit status."""
        while self.read():
            pass
        return as_text(self.unread), self.process.wait(60)


def as_text(printed):
    """Bytes that a terminal got, as the text that was printed: it makes \\r\\n of \\n."""
    return printed.decode("utf-8", "replace").replace("\r\n", "\n")


class ScriptedModel:
    """Starts gpt2.py with the model of SCRIPTED, and tells it when to go on."""

    def __init__(self, start_terminal):
        self.start_terminal = start_terminal
        self.line, self.far_end = socket.socketpair()
        self.line.settimeout(60)

    def start(self, text, *words, **streams):
        """A terminal in which the model says `text` over and over."""
        fd = self.far_end.fileno()
        arguments = ["-c", SCRIPTED, str(ROOT), str(fd), text, *words, *TINY]
        return self.start_terminal(arguments, pass_fds=[fd], **streams)

    def let_say(self, n):
        """Wait until the model wants to say something, and let it say n tokens."""
        for _ in range(n):
            self.wait_until_it_asks()
            self.line.send(b"!")

    def wait_until_it_asks(self):
        assert self.line.recv(1) == b"?"


@pytest.fixture
def start_terminal(tmp_path, monkeypatch):
    """A function that starts Python in a new terminal, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    terminals = []

    def start(arguments, **streams):
        terminals.append(Terminal(arguments, **streams))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.process.kill()
        terminal.process.communicate()
        os.close(terminal.master)


@pytest.fixture
def start(start_terminal):
    """A function that starts gpt2.py in a new terminal."""
    return lambda *words, **streams: start_terminal([GPT2_PY, *words], **streams)


@pytest.fixture
def model(start_terminal):
    """A model that says what it is told, when it is told."""
    model = ScriptedModel(start_terminal)
    yield model
    model.line.close()
    model.far_end.close()


@functools.cache
def piped(*words):
    """What gpt2.py prints for these words where no terminal is: (stdout, stderr)."""
    command = [sys.executable, GPT2_PY, *words]
    result = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    return result.stdout.decode(), result.stderr.decode()


# ---- Text as it comes ----------------------------------------------------------------------


def test_one_sample_is_printed_token_by_token(model):
    """Each token is on the screen before the model is asked for the next one."""
    terminal = model.start("hey", "x", "--n_tokens_to_generate", "3")
    for letter in "hey":
        model.let_say(1)
        assert terminal.read_until(letter) == letter
    assert terminal.read_to_end() == ("\n", 0)


def test_bytes_of_an_unfinished_character_are_held_back(model):
    """A character of three tokens appears whole; one that is never finished, as U+FFFD."""
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
    """Ctrl-C ends a streamed text after its last token, in exit status 130."""
    terminal = model.start("hey", "x")
    model.let_say(2)
    assert terminal.read_until("he") == "he"
    terminal.type(CTRL_C)
    rest, status = terminal.read_to_end()
    assert rest in ("^C\n", "\n")  # ^C is the terminal's own echo
    assert status == 130


# ---- The bar -------------------------------------------------------------------------------


def test_bar_is_on_stderr_while_a_file_gets_the_text(start, tmp_path):
    """The terminal shows how many tokens are made, and the file has nothing but the text."""
    with open(tmp_path / "text", "w+b") as file:
        bar, status = start("ROMEO:", *TWELVE, stdout=file).read_to_end()
        file.seek(0)
        assert file.read().decode() == piped("ROMEO:", *TWELVE)[0]
    assert status == 0
    assert "/12" in bar and "token" in bar


def test_no_bar_where_the_text_may_be_on_the_screen_too(start):
    """A pipe may lead to the same terminal, as with `| tee`, where a bar would be in the way."""
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
    """A log file of stderr gets no bar, whatever stdout is."""
    words = ["ROMEO:", *TWELVE, "--temperature", "1", "--nsamples", "2"]
    terminal = start(*words, stderr=subprocess.PIPE)
    _, status = terminal.read_to_end()
    log = terminal.process.stderr.read().decode()
    assert status == 0
    assert "\r" not in log and len(log.splitlines()) == 1


def test_ctrl_c_under_the_bar_prints_what_there_is(model):
    """Ctrl-C in a batch prints the samples as far as they are, in exit status 130."""
    terminal = model.start("hey", "x", "--nsamples", "2", "--n_tokens_to_generate", "9")
    model.let_say(3)
    model.wait_until_it_asks()
    terminal.type(CTRL_C)
    printed, status = terminal.read_to_end()
    assert status == 130
    line = "=" * 40
    assert printed.endswith(f"{line} SAMPLE 1 {line}\nhey\n{line} SAMPLE 2 {line}\nhey\n")


# ---- The session ---------------------------------------------------------------------------


def test_session_asks_until_ctrl_d(start):
    """One prompt after another gets the text that a call of its own gives; Ctrl-D ends in 0."""
    terminal = start(*TWELVE)
    greeting = terminal.read_until(QUESTION)
    assert "up to 12 tokens" in greeting and "To leave: Ctrl-D" in greeting
    assert greeting.count("\n") == 2
    for prompt in ("Hello, world", "-apple pie"):
        terminal.type(prompt + "\n")
        printed = terminal.read_until(QUESTION)
        assert printed == f"{prompt}\n{piped(f'--prompt={prompt}', *TWELVE)[0]}{QUESTION}"
    terminal.type(CTRL_D)
    assert terminal.read_to_end() == ("\n", 0)


def test_session_asks_again_after_an_empty_line(model):
    """Enter alone makes no text, while a tab is a prompt like any other."""
    terminal = model.start("hey", "--n_tokens_to_generate", "3")
    terminal.read_until(QUESTION)
    terminal.type("\n")
    assert terminal.read_until(QUESTION) == f"\n{QUESTION}"
    terminal.type("\t\n")
    model.let_say(3)
    assert terminal.read_until(QUESTION).endswith(f"\nhey\n{QUESTION}")


def test_session_outlives_a_prompt_that_is_too_long(model):
    """What is wrong with a prompt is said, and the next prompt is asked for."""
    terminal = model.start("hey", "--n_tokens_to_generate", "3")
    terminal.read_until(QUESTION)
    terminal.type("~" * 300 + "\n")
    assert "at most 256" in terminal.read_until(QUESTION)
    terminal.type("x\n")
    model.let_say(3)
    assert terminal.read_until(QUESTION) == f"x\nhey\n{QUESTION}"


@pytest.mark.parametrize("word", ["exit", "quit", "help"])
def test_session_answers_words_that_are_meant_for_it(start, word):
    """They are no prompts, and the answer says how to leave, and how to make them prompts."""
    terminal = start(*TWELVE)
    terminal.read_until(QUESTION)
    terminal.type(f"{word}\n")
    answer = terminal.read_until(QUESTION)
    assert "leave" in answer and "Ctrl-D" in answer and f"`python gpt2.py {word}`" in answer
    assert answer.count("\n") <= 4


@pytest.mark.parametrize("editor", ["readline", "libedit", None])
def test_lines_that_come_in_one_go_are_one_prompt(start, editor):
    """Nobody types that fast, so they are a paste. Many Pythons have libedit for readline."""
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
    """A way to type several lines that works everywhere."""
    terminal = start(*TWELVE)
    terminal.read_until(QUESTION)
    terminal.type("The king\\\n")
    assert terminal.read_until("... ") == "The king\\\n... "
    terminal.type("said\n")
    assert terminal.read_until(QUESTION) == f"said\n{piped(KING_SAID, *TWELVE)[0]}{QUESTION}"


def test_paste_that_the_terminal_marks(start):
    """GNU readline asks a terminal that can do so to mark what is pasted."""
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
    """What is typed while a text is made is no paste."""
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
    """Without an editor, a terminal drops what exceeds 4,095 bytes of a line, in silence."""
    terminal = start(*TWELVE, stdout=subprocess.PIPE)
    terminal.read_until(QUESTION)
    terminal.type("~" * 5000 + "\n")
    assert "the end of the prompt may be lost" in terminal.read_until(QUESTION)


def test_control_characters_are_shown(model):
    """A terminal would obey what the model says."""
    terminal = model.start("a\x1b\x07b\tc", "x", "--n_tokens_to_generate", "6")
    model.let_say(6)
    assert terminal.read_to_end() == ("a\\x1b\\x07b\tc\n", 0)


@pytest.mark.parametrize("words, n_notes", [([], 1), (["--n_tokens_to_generate", "1"], 0)])
def test_length_is_explained_to_who_did_not_choose_it(start, words, n_notes):
    """Somebody who sees a text end in the middle of a sentence may not know the option."""
    printed, status = start("x", *TINY, *words).read_to_end()
    assert status == 0
    assert printed.count("a text gets 40 tokens unless --n_tokens_to_generate says") == n_notes


@pytest.mark.parametrize("signum, status", [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_end_a_session(model, signum, status):
    """At the question, and while a text is made: the whole session ends, and no text is lost."""
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


def test_session_outlives_a_prompt_that_is_not_utf_8(start):
    """Bytes that are no text are refused where readline, which drops them, is not in use."""
    terminal = start(*TWELVE, stdout=subprocess.PIPE)
    terminal.read_until(QUESTION)
    terminal.type("caf\udce9\n")
    assert "UTF-8" in terminal.read_until(QUESTION).upper()
    terminal.type("ROMEO:\n")
    terminal.read_until(QUESTION)
    terminal.type(CTRL_D)
    _, status = terminal.read_to_end()
    assert status == 0
    assert terminal.process.stdout.read().decode() == piped("ROMEO:", *TWELVE)[0]


def test_ctrl_c_ends_one_text_of_a_session(model):
    """While a text is made, Ctrl-C ends that text, and the next prompt is asked for."""
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
    """Where there is no text to end, Ctrl-C ends the session, in exit status 130."""
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
    """The same prompt twice: two seeds are told, and each makes its text again."""
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
    """With --seed the same prompt makes the same text each time, as in single calls."""
    words = [*TWELVE, "--temperature", "1", "--seed", "5"]
    terminal = start(*words)
    terminal.read_until(QUESTION)
    terminal.type("ROMEO:\n")
    first = terminal.read_until(QUESTION)
    terminal.type("ROMEO:\n")
    assert terminal.read_until(QUESTION) == first
    assert first == f"ROMEO:\n{piped('ROMEO:', *words)[0]}{QUESTION}"


def test_session_keeps_the_question_out_of_a_redirected_stdout(start):
    """With stdout in a file, the questions are at the terminal and the texts in the file."""
    terminal = start(*TWELVE, stdout=subprocess.PIPE)
    terminal.read_until(QUESTION)
    terminal.type("ROMEO:\n")
    terminal.read_until(QUESTION)
    terminal.type(CTRL_D)
    _, status = terminal.read_to_end()
    assert status == 0
    assert terminal.process.stdout.read().decode() == piped("ROMEO:", *TWELVE)[0]


def test_a_wrong_call_is_refused_before_the_first_question(start):
    """No session starts with options that are wrong."""
    printed, status = start(*TINY, "--temperature", "hot").read_to_end()
    assert status == 2
    assert QUESTION not in printed and "temperature" in printed


def test_help_opens_no_pager(start):
    """At a terminal too, help is printed and done."""
    printed, status = start("--help").read_to_end()
    assert status == 0
    assert printed == piped("--help")[0]
