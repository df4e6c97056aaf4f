"""Things that stand in two places of the project say the same in both."""

import re

from conftest import ROOT


def test_gpt2_lists_the_requirements_for_uv():
    """The block at the foot of gpt2.py, which `uv run gpt2.py` reads, is requirements.txt."""
    block = re.search(r"^# /// script\n(.*?)^# ///$", read("gpt2.py"), re.M | re.S)[1]
    listed = re.search(r"^# dependencies = \[(.*)\]$", block, re.M)[1]
    assert listed == ", ".join(f'"{line}"' for line in read("requirements.txt").split())
    assert '# requires-python = ">=3.10"' in block


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")
