"""The command line of walkthrough.py: what it writes, and what it refuses."""

import errno
import os
import subprocess
import sys

import pytest
from conftest import ROOT
from page_reader import text_of, write

import checks
import gpt2
import walkthrough


def test_only_chosen_layers_are_shown(tmp_path):
    page = write(tmp_path, "a", layer="2,4", n_tokens_to_generate=1)
    titles = [text_of(title) for title in page.chapter("heads").iter("h4")]
    assert titles == ["Layer 2", "Layer 4"]
    assert "no second step" in text_of(page.chapter("cached"))
    radios = [e.get("id") for e in page.root.iter("input")]
    assert radios == ["layer-2", "layer-4"]
    assert page.all("div", "layer-2") and not page.all("div", "layer-1")


@pytest.mark.parametrize(
    "options, message",
    [
        ({"layer": "0"}, "layer names layers from 1 to 5"),
        ({"layer": "2,x"}, "layer names layers"),
        ({"n_tokens_to_generate": 0}, "1 or more"),
        ({"n_tokens_to_generate": 33}, "at most 32"),
        ({"prompt": "x" * 90}, "at most 64"),
        ({"output": "no/such/folder.html"}, "in no folder that exists"),
        ({"output": "."}, "is a folder"),
    ],
)
def test_a_wrong_call_is_refused(tmp_path, options, message):
    """What is special to the page: nothing is written, and the message says what is allowed."""
    output = tmp_path / "page.html"
    with pytest.raises(checks.CallError, match=message):
        walkthrough.main(**{"prompt": "a", "output": str(output), **options})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("temperature", ["0", "0.7"])
@pytest.mark.parametrize(
    "options",
    [
        {"temperature": "-1"},
        {"temperature": "nan"},
        {"top_k": "abc"},
        {"top_p": "90"},
        {"top_p": "0"},
        {"seed": "abc"},
        {"model_size": "huge"},
        {"prompt": "\udcff"},
    ],
    ids=str,
)
def test_what_gpt2_refuses_is_refused_in_the_same_words(tmp_path, options, temperature):
    """At temperature 0 too, where some of these options would have no effect."""
    call = {"prompt": "a", "model_size": "tiny", "temperature": temperature, **options}
    with pytest.raises(checks.CallError) as refused:
        gpt2.main(**call)
    with pytest.raises(checks.CallError) as also_refused:
        walkthrough.main(output=str(tmp_path / "page.html"), **call)
    assert str(also_refused.value) == str(refused.value)


@pytest.mark.parametrize("temperature", ["1e-300", "1e300"])
@pytest.mark.filterwarnings("error")
def test_no_temperature_is_too_extreme(tmp_path, temperature):
    """Logits near the largest float64, or all but equal, are drawn without a warning."""
    page = write(tmp_path, "a", temperature=temperature, n_tokens_to_generate=2)
    assert page.value("sample", "tempered", 0)


def test_a_page_replaces_the_old_one_only_when_it_is_whole(tmp_path, monkeypatch):
    """A disk that fills up leaves the old page, no part of a new one, and one plain sentence."""
    output = tmp_path / "page.html"
    output.write_text("old", encoding="utf-8")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match=r"page.html cannot be written \(No space left on device\)"):
        walkthrough.main("a", output=str(output), n_tokens_to_generate=1)
    assert output.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [output]


def test_from_the_command_line(tmp_path):
    """A page is written and told of; a misspelt flag ends with status 2 and one line."""

    def run(*words):
        command = [sys.executable, str(ROOT / "walkthrough.py"), *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    done = run("Hello, world ", "--n_tokens_to_generate", "2")
    assert done.returncode == 0
    assert done.stderr.count("\n") == done.stderr.count("ends in a space") == 1
    assert "walkthrough.html" in done.stdout
    assert "Hello, world" in (tmp_path / "walkthrough.html").read_text(encoding="utf-8")
    wrong = run("a", "--lair", "2")
    assert wrong.returncode == 2 and "--layer" in wrong.stderr
    assert "--layer LAYERS" in run("--help").stdout


