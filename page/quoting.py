"""The prompt in two foreign grammars: as text of a web page, and as a word of a shell command."""

import re
import shlex

import cli

# What a page may not hold: control characters but tab and line feed, surrogates, and the code
# points that are no characters. A carriage return is among them: browsers read it as a line feed.
LAST_TWO = "".join(chr(last - 1) + chr(last) for last in range(0xFFFF, 0x110000, 0x10000))
FORBIDDEN = re.compile(f"[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef{LAST_TWO}]")

ESCAPES = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def readable(text):
    """The text as a page can show it, with a sign such as ␀ for each forbidden character."""
    return FORBIDDEN.sub(lambda found: sign_of(found[0]), text)


def sign_of(character):
    """Unicode's picture of a control character, � for the other forbidden characters."""
    code = ord(character)
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


def command(options):
    """The command line that makes gpt2.py print the same text again.

    options: the arguments of gpt2.main, a dict.
    Returns a list of its parts: what comes up to the prompt, and each flag with its value.
    """
    prompt = options["prompt"]
    if "\0" in prompt:  # no word of a command can hold this byte, but a pipe can
        start = f"printf '{escaped(prompt).replace('%', '%%')}\\n' | python gpt2.py"
    elif prompt[:1] in ("-", *cli.DASHES):
        start = f"python gpt2.py --prompt={quoted(prompt)}"
    else:
        start = f"python gpt2.py {quoted(prompt)}"
    flags = [
        f"--{name} {quoted(str(value))}"
        for name, value in options.items()
        if name != "prompt" and value is not None
    ]
    return [start, *flags]


def quoted(text):
    """The text as one word of a shell command.

    A character that cannot be seen does not survive being copied and pasted: a browser copies a
    no-break space as a space, and a terminal takes a tab for a request to complete the word. A
    text with such characters is written as $'a\\tb', which bash, zsh and ksh understand.
    """
    if all(character.isprintable() or character == "\n" for character in text):
        return shlex.quote(text)
    return f"$'{escaped(text)}'"


def escaped(text):
    """The text with a backslash and digits for all that is invisible or means something to a shell.

    The digits are the octal numbers of the UTF-8 bytes, which every shell reads alike.
    """
    return "".join(
        character
        if character.isprintable() and character not in "'\\!"
        else ESCAPES.get(character) or "".join(f"\\{byte:03o}" for byte in character.encode())
        for character in text
    )
