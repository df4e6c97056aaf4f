"""Where a prompt comes from: the command line, standard input, or a person at the terminal."""

import os
import re
import sys

import console
from checks import CallError, shown


def read_prompt(prompt):
    """The prompt as text: what was typed if anything was, else what is piped in.

    None where there is neither, but a terminal to ask at. Raises CallError where the text is not
    UTF-8, or where nothing is piped in.
    """
    if prompt is not None:
        return as_typed(prompt)
    if sys.stdin is not None and sys.stdin.isatty():
        return None
    return as_piped(sys.stdin.buffer.read() if sys.stdin is not None else b"")


def as_typed(prompt):
    """The prompt from the command line or the terminal. Raises CallError if it is not UTF-8."""
    # Bytes that Python could not decode are lone surrogates in a str; fsencode gets them back.
    if not any("\ud800" <= character <= "\udfff" for character in prompt):
        return prompt
    try:
        return os.fsencode(prompt).decode("utf-8")
    except UnicodeError:
        raise CallError(f"the prompt {shown(prompt)} is not UTF-8 text") from None


def as_piped(data):
    """The prompt in the bytes of standard input: all but one line end, which is `echo`'s."""
    try:
        text = re.sub(r"\r?\n\Z", "", data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise CallError(f"the prompt on standard input is not UTF-8 text: {error}") from None
    if text == "":
        raise CallError('there is no prompt: give one in quotes, or "" to start a new text')
    return text


def encode_prompt(prompt, encoder, n_ctx):
    """The ids of a prompt; that of <|endoftext|> for "". Raises CallError above n_ctx of them."""
    ids = encoder.encode(prompt) or [end_of_text(encoder)]
    if len(ids) > n_ctx:
        raise CallError(
            f"the prompt is {len(ids)} tokens long, the model reads at most {n_ctx}: shorten it"
        )
    return ids


def end_of_text(encoder):
    """The id of <|endoftext|>, which stood between the texts of the training: the last id."""
    return len(encoder.tokens) - 1


def session(answer, encoder, n_ctx):
    """Ask for prompts at the terminal and answer each, until Ctrl-D.

    answer: called with the ids of each prompt. Ctrl-C ends an answer and asks again; at the
    prompt it is the caller's KeyboardInterrupt.
    """
    try:
        import readline  # noqa: F401 - gives input() line editing and a history
    except ImportError:
        pass  # on Windows, where the console itself has both

    while True:
        try:
            prompt = as_typed(ask("Model prompt >>> "))
            if prompt == "":
                continue
            ids = encode_prompt(prompt, encoder, n_ctx)
        except EOFError:
            print(file=sys.stderr)  # what comes next begins a line
            return
        except KeyboardInterrupt:
            print(file=sys.stderr)
            raise
        except (CallError, UnicodeDecodeError) as error:
            console.say(error)
            continue
        try:
            answer(ids)
        except KeyboardInterrupt:
            pass  # what there is of the text has been printed


def ask(question):
    """A line typed at the terminal. The question stays out of a redirected standard output."""
    if sys.stdout.isatty():
        return input(question)
    print(question, end="", file=sys.stderr, flush=True)
    return input()
