"""The page shows a text as it was typed, and its command makes the same text again."""

import os
import shlex
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT
from page_reader import text_of, write

from page.quoting import command, readable

INVISIBLE = "a\tb\rc\u00a0d\u3000e\u00adf\ufeffg\u202fh\u200ei\u2028j"
JOINED = "👨\u200d👩\u200d👧 نمی\u200cخواهم 🏴\U000e0067\U000e007f"
CONTROL = "\x01\x1b\x7f\x80\r\n"
SHELL = "it's \"so\" $HOME `id` \\n !! %d; # * ~ \\"
TYPED = ["The king sings", "naïve 🤗", "", " x ", "-5", "--seed", "\u2014seed", "two\nlines\n"]
TYPED += [SHELL, INVISIBLE, JOINED, INVISIBLE + SHELL, CONTROL, "\ufeff\u201cx\u201d"]
OPTIONS = {"n_tokens_to_generate": 4, "model_size": "tiny", "models_dir": None, "seed": 1}

BASH = None if os.name == "nt" else shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None, reason="there is no bash here")


def in_bash(python, lines):
    """What bash prints for these lines, in which `python` stands for another command."""
    script = f'python() {{ {python} "$@"; }}\n{lines}'
    done = subprocess.run([BASH, "-c", script], cwd=ROOT, capture_output=True, timeout=60)
    assert done.stderr == b""
    return done.stdout.decode()


@needs_bash
def test_bash_finds_the_prompt_in_the_command_unchanged():
    """This holds for characters of every kind: visible, invisible, or special to bash."""
    lines = [" ".join(command({"prompt": prompt, **OPTIONS})) for prompt in TYPED]
    words = in_bash('printf "%s\\0"', "\n".join(lines)).split("\0")
    prompts = [words[i].removeprefix("--prompt=") for i in range(1, len(words), 8)]
    assert prompts == TYPED


@needs_bash
@pytest.mark.parametrize("prompt", ["a\tb\r\u00a0\u3000\u00ad!'\n", "The\0 %s\\\n"], ids=ascii)
def test_the_command_as_it_stands_on_the_page_makes_the_text_of_the_page(tmp_path, prompt):
    """bash runs the command as copied from the page.

    A prompt with a NUL byte comes through a pipe.
    """
    page = write(tmp_path, prompt)
    shown = text_of(page.all("pre", "command")[0])
    assert shown.isprintable()
    printed = in_bash(shlex.quote(sys.executable), shown)
    assert text_of(page.root.find(".//h1/em")) == readable(printed[:-1])


def test_a_text_is_shown_as_typed(tmp_path):
    """Joiners, wide spaces, soft hyphens and the like are kept.

    The title in the tab has plain spaces.
    """
    prompt = "a\tb\u00a0c\u3000d\u00ade\ufefff\u200cg\u200d"
    page = write(tmp_path, prompt, n_tokens_to_generate=1)
    assert text_of(page.root.find(".//h1/bdi")) == prompt
    assert page.root.find("head/title").text.startswith("a b c d")
    assert "\ufffd" not in page.source


def test_only_what_a_page_may_not_hold_is_replaced():
    """A control character becomes its picture if there is one. All else becomes U+FFFD."""
    for character in map(chr, range(0x110000)):
        code = ord(character)
        is_control = code < 0x20 and character not in "\t\n" or 0x7F <= code <= 0x9F
        is_no_character = 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE
        is_forbidden = is_control or is_no_character or 0xD800 <= code <= 0xDFFF
        assert (readable(character) != character) == is_forbidden
    assert readable("a\0\r\n\x7f\x9f\ufffe") == "a␀␍\n␡\ufffd\ufffd"
