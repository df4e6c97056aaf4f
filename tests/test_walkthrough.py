"""The command line of walkthrough.py: what it writes, and what it refuses."""

import subprocess
import sys

import pytest
from conftest import ROOT
from page_reader import text_of, write

import cli
import walkthrough


def test_only_chosen_layers_are_shown(tmp_path):
    page = write(tmp_path, "a", layer="2,4", n_tokens_to_generate=1)
    titles = [text_of(title) for title in page.chapter("heads").findall(".//h3")]
    assert titles == ["Layer 2", "Layer 4"]
    assert "No second step" in text_of(page.chapter("cached"))
    radios = [e.get("id") for e in page.root.iter("input")]
    assert radios == ["layer-2", "layer-4"]
    assert page.all("div", "layer-2") and not page.all("div", "layer-1")


@pytest.mark.parametrize(
    "options, message",
    [
        ({"layer": "0"}, "--layer names layers from 1 to 5"),
        ({"layer": "2,x"}, "--layer names layers"),
        ({"n_tokens_to_generate": 0}, "--n_tokens_to_generate"),
        ({"n_tokens_to_generate": 33}, "at most 32"),
        ({"prompt": "x" * 90}, "at most 64"),
        ({"top_p": 2}, "--top_p"),
    ],
)
def test_a_wrong_call_is_refused(tmp_path, options, message):
    output = tmp_path / "page.html"
    with pytest.raises(cli.CallError, match=message):
        walkthrough.main(**{"prompt": "a", "output": str(output), **options})
    assert not output.exists()


def test_from_the_command_line(tmp_path):
    """A page is written and told of; a misspelt flag ends with status 2 and one line."""

    def run(*words):
        command = [sys.executable, str(ROOT / "walkthrough.py"), *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    done = run("Hello, world", "--n_tokens_to_generate", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert "walkthrough.html" in done.stdout
    assert "Hello, world" in (tmp_path / "walkthrough.html").read_text(encoding="utf-8")
    wrong = run("a", "--lair", "2")
    assert wrong.returncode == 2 and "--layer" in wrong.stderr
    assert "--layer LAYERS" in run("--help").stdout


