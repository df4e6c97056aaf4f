"""Text in two foreign grammars: a command line for a shell, and characters for a web page."""

import shlex


def command(options):
    """The command line that makes gpt2.py print the same text."""
    prompt = options["prompt"]
    words = [f"--prompt={shlex.quote(prompt)}" if prompt[:1] == "-" else shlex.quote(prompt)]
    for name, value in options.items():
        if name != "prompt" and value is not None:
            words.append(f"--{name} {shlex.quote(str(value))}")
    return "python gpt2.py " + " ".join(words)


def readable(text):
    """A text without the control characters that a page may not hold."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)
