"""The README: its commands, run as they stand, print what it says they print."""

import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

import cli
import gpt2

README = (ROOT / "README.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^\d\. (.*?)(?=^\d\. |^$)", README, re.M | re.S)


def run(words, folder=ROOT, **options):
    """What a command prints, stderr included."""
    words = [sys.executable, *words[1:]]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        words,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        **options,
    )
    return done.stdout


def test_it_is_short():
    """The README has under 100 lines, and none is too wide to read in a terminal."""
    lines = README.splitlines()
    assert len(lines) < 100
    assert max(len(line) for line in lines if not line.startswith("|")) <= 110


def test_the_first_command_prints_what_is_shown():
    """The block after the command that runs the bundled model is its output."""
    command, shown = re.search(
        r"^    (python gpt2\.py .*--model_size tiny.*)\n\nThis prints:\n\n((    .*\n|\n)+)^\S",
        README,
        re.M,
    ).group(1, 2)
    lines = [line.removeprefix("    ") for line in shown.split("\n")]
    assert run(shlex.split(command)).strip("\n") == "\n".join(lines).strip("\n")


def test_the_lines_of_python_print_a_continuation():
    """The block for use from Python runs as it stands, and gives the text of the command line."""
    [block] = re.findall(r"(?m)^(    import gpt2.*\n(?:    .*\n)+)", README)
    lines = [line.removeprefix("    ") for line in block.splitlines()]
    assert len(lines) == 6
    text = run(["python", "gpt2.py", "JULIET:", "--model_size", "tiny"])
    assert run(["python", "-c", "\n".join(lines)]) == text


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step[:20])
def test_a_thing_to_try_does_what_is_said(step, tmp_path):
    """What is typed at the debugger, or changed in gpt2.py, gives the quoted texts and numbers."""
    action, effect = re.split("(?<=`):", step, maxsplit=1)
    typed = re.findall("`(.+?)`", action)
    command = shlex.split(re.search(r"^    (python -m pdb gpt2\.py .*)$", README, re.M)[1])
    if "→" in action:
        for path in ROOT.glob("*.py"):
            shutil.copy(path, tmp_path)
        shutil.copytree(ROOT / "huggingface", tmp_path / "huggingface")
        source = (ROOT / "gpt2.py").read_text(encoding="utf-8")
        old, new = typed
        assert source.count(old) == 1
        (tmp_path / "gpt2.py").write_text(source.replace(old, new), encoding="utf-8")
        python, _, _, *words = command
        printed = run([python, *words, "--models_dir", str(ROOT / "models")], tmp_path)
    else:
        if sys.version_info[:3] == (3, 13, 0):
            pytest.skip("pdb of Python 3.13.0 takes no options for the script")
        printed = run(command, input="\n".join([*typed, "q", ""]))
    for quoted in re.findall('"(.+?)"', effect, re.S):
        assert " ".join(quoted.split()) in " ".join(printed.split())


def test_there_are_things_to_try():
    """Otherwise the test above would run for nothing."""
    assert len(STEPS) >= 5


def test_help_tells_every_option_and_its_default():
    """The help takes the defaults from the signature of main."""
    for name, option in inspect.signature(gpt2.main).parameters.items():
        assert f"--{name}" in cli.HELP
        if option.default is not None:
            assert f"--{name} {{{name}}}" in cli.HELP


def test_the_options_it_names_exist():
    """Every --option in the README is one of gpt2.py's, except those of `hf download`."""
    known = set(inspect.signature(gpt2.main).parameters) | {"help"}
    ours = re.sub("`hf download .*?`", "", README)
    assert set(re.findall(r"--([a-z_]+)", ours)) <= known


def test_it_says_how_long_gpt2_is():
    """The README's number of lines is right to within ten."""
    [n_lines] = re.findall(r"its (\d+) lines", README)
    assert abs(len((ROOT / "gpt2.py").read_text(encoding="utf-8").splitlines()) - int(n_lines)) < 10


def test_the_table_names_every_file():
    """The table of what to read has each module at the top, each package, and nothing else."""
    rows = [line.split("|")[1] for line in README.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall("`(.+?)`", row)}
    packages = {f"{path.parent.name}/" for path in ROOT.glob("*/__init__.py")}
    assert named == {path.name for path in ROOT.glob("*.py")} | packages
