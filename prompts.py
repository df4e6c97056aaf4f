"""Where a prompt comes from: the command line, standard input, or a person at the terminal."""

import codecs
import contextlib
import os
import re
import sys
import threading

import console
from checks import CallError, shown

MOST_BYTES = 2**20  # read from standard input: eight times what the longest prompt of GPT-2 takes
PATIENCE = 1.0  # seconds without the end of the input, until the user is told what we wait for
PASTE_PAUSE = 0.05  # seconds at most between two lines of a paste, and far less than typing takes
END_KEY = "Ctrl-Z and Enter" if os.name == "nt" else "Ctrl-D"
QUESTION = "Model prompt >>> "
NEXT_LINE = "... "

# What a terminal hands over of one line, in bytes, where no line editor reads it key by key.
# It drops the rest without a word.
LONGEST_LINE = 1023 if sys.platform == "darwin" else 4095


def read_prompt(prompt):
    """The prompt as text: `prompt` where it is not None, else what standard input holds.

    None if there is neither, but a terminal where prompts can be typed. Raises CallError if there
    is no prompt, if it is not UTF-8, or if it is too long for any model.
    """
    if prompt is not None:
        if is_text_waiting():
            console.say("note: the text on standard input is not read: the call has a prompt")
        return as_typed(prompt)
    if console.is_terminal(sys.stdin):
        return None
    return as_piped(read_standard_input())


def encode_prompt(prompt, encoder, n_ctx):
    """The ids of a prompt. Raises CallError for more than n_ctx of them.

    "" stands for the beginning of a new text: its id is that of <|endoftext|>.
    """
    # A long text would take long to encode, just to be refused. So its bytes are counted first.
    n_bytes, most = len(prompt.encode()), n_ctx * max(map(len, encoder.tokens))
    if n_bytes > most:
        raise CallError(
            f"the prompt is {n_bytes} bytes long, and the model reads at most {n_ctx} tokens, "
            f"which are never more than {most} bytes: shorten it"
        )
    ids = encoder.encode(prompt) or [end_of_text(encoder)]
    if ids == [None]:
        raise CallError("this model has no token to begin a new text with: give a prompt")
    if len(ids) > n_ctx:
        raise CallError(
            f"the prompt is {len(ids)} tokens long, and the model reads at most {n_ctx}: shorten it"
        )
    if prompt.endswith(" "):
        console.say(
            "note: the prompt ends in a space; leave it out, since most tokens that begin a word "
            "begin with the space before it"
        )
    return ids


def end_of_text(encoder):
    """The id of <|endoftext|>, the token between two texts of the training; None without one."""
    return encoder.end_of_text


# ---- From the command line and from standard input -----------------------------------------


def as_typed(prompt):
    """The prompt from the command line or the terminal. Raises CallError if it is not UTF-8."""
    try:
        prompt.encode()
        return prompt
    except UnicodeEncodeError:
        pass  # Python could not decode some bytes, and keeps them as lone surrogates
    try:
        return os.fsencode(prompt).decode()
    except UnicodeError:
        raise CallError(f"the prompt {shown(prompt)} is not UTF-8 text") from None


def read_standard_input():
    """The bytes of standard input. Raises CallError if they are too many for any prompt."""
    if sys.stdin is None:  # closed by the caller
        return b""
    message = f"reading the prompt from standard input, until it ends ({END_KEY} at a keyboard)"
    reminder = threading.Timer(PATIENCE, console.say, [message])
    reminder.daemon = True
    with contextlib.suppress(RuntimeError):  # no thread can be started: then without a reminder
        reminder.start()
    try:
        # Some stand-ins for standard input have no bytes beneath, only text.
        data = getattr(sys.stdin, "buffer", sys.stdin).read(MOST_BYTES + 1)
    except OSError as error:
        raise OSError(f"standard input cannot be read: {error}") from None
    finally:
        reminder.cancel()
    if data is None:
        raise OSError("standard input cannot be read: it does not wait for its text")
    if len(data) > MOST_BYTES:
        raise CallError(f"the prompt on standard input is longer than {MOST_BYTES:,} bytes")
    return data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data


def as_piped(data):
    """The prompt in the bytes of standard input.

    Left out are a byte order mark, with which some editors begin a file, and one line end, with
    which `echo` ends its text. Raises CallError for text that is empty or not UTF-8.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise CallError("the prompt on standard input is UTF-16 text: save it as UTF-8")
    try:
        text = re.sub(r"\r?\n\Z", "", data.removeprefix(codecs.BOM_UTF8).decode())
    except UnicodeDecodeError as error:
        raise CallError(f"the prompt on standard input is not UTF-8 text: {error}") from None
    if text == "":
        raise CallError('there is no prompt: give one in quotes, or "" to start a new text')
    return text


def is_text_waiting():
    """Whether standard input, a pipe or a file, holds text at this moment.

    The text is left there. A file of which something was read already belongs to somebody else,
    as in `while read -r line; do python gpt2.py "$line"; done < prompts.txt`.
    """
    try:
        import fcntl
        import termios

        fd = sys.stdin.fileno()
        if os.isatty(fd):
            return False
        with contextlib.suppress(OSError):  # a pipe has no position
            if os.lseek(fd, 0, os.SEEK_CUR) > 0:
                return False
        n_bytes = fcntl.ioctl(fd, termios.FIONREAD, bytes(4))
        return any(n_bytes)
    except (ImportError, AttributeError, OSError, ValueError):
        return False  # Windows, a closed stream, a stream that is no file, /dev/null


# ---- At the terminal -----------------------------------------------------------------------


def session(answer, encoder, n_ctx, n_tokens_to_generate):
    """Asks for prompts at the terminal and answers each, until Ctrl-D.

    answer: called with the ids of each prompt. Ctrl-C stops an answer, and the next prompt is
    asked for. At the prompt, Ctrl-C is the caller's KeyboardInterrupt.
    """
    greeting = (
        f"Type a text, and the model adds up to {n_tokens_to_generate} tokens to it.\n"
        f"A line that ends in \\ goes on in the next. Ctrl-C stops a text. {END_KEY} ends it all.\n"
    )
    console.write_to_stderr(greeting)
    prepare_readline()
    is_over = False
    while not is_over:
        try:
            prompt, is_over = ask()
            if prompt in ("exit", "quit"):
                console.say(f"{END_KEY} ends the session; {how_to_continue(prompt)}")
            elif prompt == "help":
                console.write_to_stderr(greeting)
                console.say(f"`python gpt2.py --help` lists the options; {how_to_continue(prompt)}")
            elif prompt != "":
                ids = encode_prompt(as_typed(prompt), encoder, n_ctx)
                with contextlib.suppress(KeyboardInterrupt):  # what was made has been printed
                    answer(ids)
        except CallError as error:
            console.say(error)
        except KeyboardInterrupt:
            console.write_to_stderr("\n")  # what comes next begins a line
            raise
    console.write_to_stderr("\n")


def how_to_continue(word):
    """How to give the model a word that the session takes for a command."""
    return f"to have the model continue that word, run `python gpt2.py {word}`"


def prepare_readline():
    """Gives input() line editing and a history, and pastes of several lines as one text."""
    try:
        import readline
    except ImportError:
        return  # as on Windows, where the console itself has an editor and a history
    # With this, GNU readline asks the terminal to mark what is pasted. libedit, which stands in
    # for it in some Pythons, ignores the words. A dumb terminal would print the request.
    if os.environ.get("TERM", "dumb") != "dumb":
        readline.parse_and_bind("set enable-bracketed-paste on")


def ask():
    """Asks for a prompt; returns (prompt, whether Ctrl-D ended the input)."""
    is_typed_ahead = is_line_waiting(0)  # while the last text was made: such lines are no paste
    lines, question, is_over = [], QUESTION, False
    while not is_over:
        try:
            lines.append(ask_line(question))
        except EOFError:
            is_over = True
            continue
        if not is_typed_ahead and is_line_waiting(PASTE_PAUSE):
            question = ""
        elif lines[-1].endswith("\\"):
            lines[-1] = lines[-1].removesuffix("\\")
            question = NEXT_LINE
        else:
            break
    return "\n".join(lines), is_over


def ask_line(question):
    """A line that is typed at the terminal. Raises CallError if its end may be missing."""
    try:
        if console.is_terminal(sys.stdout):
            line = input(question)
        else:  # the question stays out of the file or the pipe that gets the texts
            console.write_to_stderr(question)
            line = input()
    except UnicodeDecodeError:
        raise CallError("the prompt is not UTF-8 text") from None
    has_editor = "readline" in sys.modules and console.is_terminal(sys.stdout)
    if os.name == "posix" and not has_editor and len(os.fsencode(line)) >= LONGEST_LINE:
        raise CallError(
            f"the prompt has lost its end: a terminal passes on {LONGEST_LINE} bytes of a line; "
            f"put the text into a file and pipe it in, as in `python gpt2.py < prompt.txt`"
        )
    return line.removesuffix("\n")  # which a paste often ends with


def is_line_waiting(seconds):
    """Whether a line has been typed, or comes within some seconds. False if nobody can tell."""
    try:
        import select

        return bool(select.select([sys.stdin], [], [], seconds)[0])
    except (AttributeError, OSError, ValueError):
        return False  # Windows, or a stream that is no file
