"""Where a prompt comes from: the command line, standard input, or a person at the terminal."""

import codecs
import contextlib
import os
import re
import sys
import threading

import console
from checks import CallError, shown

MOST_BYTES = 2**19  # of a piped prompt; 1,024 tokens of GPT-2 have 131,072 bytes at most
PATIENCE = 1.0  # seconds, after which we say that we wait for the end of standard input
PASTE_PAUSE = 0.05  # seconds: the lines of a paste follow each other faster, typed lines do not
END_KEY = "Ctrl-Z and Enter" if os.name == "nt" else "Ctrl-D"
QUESTION = "Model prompt >>> "
NEXT_LINE = "... "

# A terminal passes on at most so many bytes of a line, and drops the rest without a word. Only a
# line editor, which reads key by key, gets all of them.
LONGEST_LINE = 1023 if sys.platform == "darwin" else 4095


def read_prompt(prompt):
    """The prompt as text: `prompt` if it is not None, else the text on standard input.

    If standard input is a terminal, returns None: prompts can be typed there, in a session.
    Raises CallError if there is no prompt, if it is not UTF-8, or if it is too long for any model.
    """
    if prompt is not None:
        if is_text_waiting():
            console.say("note: the text on standard input is ignored: the call has a prompt")
        return as_typed(prompt)
    if console.is_terminal(sys.stdin):
        return None
    return as_piped(read_standard_input())


def encode_prompt(prompt, encoder, n_ctx):
    """The ids of a prompt. Raises CallError if there are more than n_ctx of them.

    "" starts a new text: its one id is that of <|endoftext|>, which stands before every text.
    """
    # To encode 50 MB takes half a minute. So the bytes are counted first.
    n_bytes, most = len(prompt.encode()), n_ctx * max(map(len, encoder.tokens))
    if n_bytes > most:
        raise CallError(
            f"the prompt is {n_bytes:,} bytes long, but the model reads at most {n_ctx:,} tokens, "
            f"which are never more than {most:,} bytes: shorten it"
        )
    ids = encoder.encode(prompt) or [encoder.end_of_text]
    if ids == [None]:
        raise CallError("this model has no token to begin a new text with: give a prompt")
    if len(ids) > n_ctx:
        raise CallError(
            f"the prompt is {len(ids)} tokens long, but the model reads at most {n_ctx}: shorten it"
        )
    if prompt.endswith(" "):
        console.say(
            "note: the prompt ends in a space; better leave it out, because most words are tokens "
            "that include the space before them"
        )
    return ids


# ---- From the command line and from standard input -----------------------------------------


def as_typed(prompt):
    """The prompt from the command line or the terminal. Raises CallError if it is not UTF-8."""
    try:
        prompt.encode()
        return prompt
    except UnicodeEncodeError:
        pass  # bytes that Python could not decode are in it, as lone surrogates
    try:
        return os.fsencode(prompt).decode()
    except UnicodeError:
        raise CallError(f"the prompt {shown(prompt)} is not UTF-8 text") from None


def read_standard_input():
    """The bytes of standard input. Raises CallError if they are too many for any prompt."""
    if sys.stdin is None:  # closed by the caller
        return b""
    message = f"waiting for the end of the prompt on standard input (at a keyboard: {END_KEY})"
    reminder = threading.Timer(PATIENCE, console.say, [message])
    reminder.daemon = True
    with contextlib.suppress(RuntimeError):  # where no thread can be started, go without
        reminder.start()
    try:
        # What stands in for standard input in IDLE gives text, and has no bytes to give.
        data = getattr(sys.stdin, "buffer", sys.stdin).read(MOST_BYTES + 1)
    except OSError as error:
        reason = error.strerror or error
        raise OSError(f"standard input cannot be read: {reason}") from None
    finally:
        reminder.cancel()
    if data is None:
        raise OSError("standard input cannot be read: it is set not to wait")
    if len(data) > MOST_BYTES:
        raise CallError(
            f"the prompt on standard input is longer than {MOST_BYTES:,} bytes: shorten it"
        )
    return data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data


def as_piped(data):
    """The prompt in the bytes of standard input. Raises CallError if it is empty or not UTF-8.

    A byte order mark at the beginning is left out, since an editor put it there. One line end at
    the end is left out too, since `echo` adds it.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise CallError("the prompt on standard input is UTF-16 text: save it as UTF-8")
    try:
        text = re.sub(r"\r?\n\Z", "", data.removeprefix(codecs.BOM_UTF8).decode())
    except UnicodeDecodeError as error:
        raise CallError(
            f"the prompt on standard input is not UTF-8 text (byte number {error.start} is "
            f"0x{error.object[error.start]:02x}): save it as UTF-8"
        ) from None
    if text == "":
        raise CallError('there is no prompt: give one in quotes, or "" to start a new text')
    return text


def is_text_waiting():
    """Whether text has been piped in. The text is not touched.

    A file that somebody has begun to read does not count. It is not meant for this program, as in
    `while read -r line; do python gpt2.py "$line"; done < prompts.txt`.
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

    answer: a function that is called with the ids of each prompt. Ctrl-C stops an answer, and the
    next prompt is asked for. While a prompt is typed, Ctrl-C raises KeyboardInterrupt.
    """
    greeting = (
        f"Type some text, and the model will add up to {n_tokens_to_generate} tokens to it.\n"
        f"To go on in a new line, end a line with \\. Ctrl-C stops the model while it writes. "
        f"To leave, press {END_KEY}.\n"
    )
    console.write_to_stderr(greeting)
    prepare_readline()
    is_over = False
    while not is_over:
        try:
            prompt, is_over = ask()
            if prompt in ("exit", "quit"):
                console.say(f"to leave, press {END_KEY}; {how_to_continue(prompt)}")
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
    """How to give the model a word that the session itself answers."""
    return f'to have the model continue the word "{word}", start gpt2.py with it as the prompt'


def prepare_readline():
    """Gives input() line editing and a history, and pastes of several lines as one text."""
    try:
        import readline
    except ImportError:
        return  # as on Windows, where the console itself has an editor and a history
    # GNU readline then asks the terminal to mark what is pasted. A dumb terminal would print that
    # request. libedit, which some Pythons have instead, ignores the setting.
    if os.environ.get("TERM", "dumb") != "dumb":
        readline.parse_and_bind("set enable-bracketed-paste on")


def ask():
    """Asks for a prompt. Returns (prompt, is_over): is_over after Ctrl-D."""
    is_typed_ahead = is_line_waiting(0)  # typed while the last text was made, and so not pasted
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
    """A line that is typed at the terminal. Raises CallError if its end may be lost."""
    try:
        if console.is_terminal(sys.stdout):
            line = input(question)
        else:  # a file or a pipe gets the texts, and must not get the question
            console.write_to_stderr(question)
            line = input()
    except UnicodeDecodeError:
        raise CallError("the prompt is not UTF-8 text") from None
    has_editor = "readline" in sys.modules and console.is_terminal(sys.stdout)
    if os.name == "posix" and not has_editor and len(os.fsencode(line)) >= LONGEST_LINE:
        raise CallError(
            f"the end of the prompt may be lost: this terminal passes on no more than "
            f"{LONGEST_LINE} bytes of a line; pipe it in, as in `python gpt2.py < prompt.txt`"
        )
    return line.removesuffix("\n")  # with which a paste often ends


def is_line_waiting(seconds):
    """Whether a line is there to be read, or comes within some seconds. False if unknown."""
    try:
        import select

        return bool(select.select([sys.stdin], [], [], seconds)[0])
    except (AttributeError, OSError, ValueError):
        return False  # Windows, or a stream that is no file
