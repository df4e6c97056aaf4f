"""The command line of walkthrough.py: what it writes, and what it refuses."""

import errno
import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT
from page_reader import text_of, write

import checks
import gpt2
import walkthrough

BASH = None if os.name == "nt" else shutil.which("bash")


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
        ({"layer": "0"}, "layer must be all, or numbers of layers, such as 1,6,12, not '0'"),
        ({"layer": "2,x"}, "numbers of layers, such as 1,6,12, not '2,x'"),
        ({"n_tokens_to_generate": 0}, "1 or more"),
        ({"n_tokens_to_generate": 33}, "can be at most 32 on a page, not 33"),
        ({"prompt": "x" * 90}, "the prompt has 90 tokens, but a page can show at most 64"),
        ({"prompt": "x" * 550}, "the prompt has 550 tokens, but a page can show at most 64"),
        ({"output": "no/such/page.html"}, "output: the folder 'no/such' does not exist"),
        ({"output": "no_such_folder/"}, "output: the folder 'no_such_folder' does not exist"),
        ({"output": "."}, "is a folder"),
        ({"output": "x" * 300}, "cannot create output 'xxx.*name too long"),
    ],
)
def test_a_wrong_call_is_refused(tmp_path, options, message):
    """These limits are the page's own. Nothing is written, and the message says what is allowed."""
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
    """This also holds at temperature 0, where some of these options would have no effect."""
    call = {"prompt": "a", "model_size": "tiny", "temperature": temperature, **options}
    with pytest.raises(checks.CallError) as refused:
        gpt2.main(**call)
    with pytest.raises(checks.CallError) as also_refused:
        walkthrough.main(output=str(tmp_path / "page.html"), **call)
    assert str(also_refused.value) == str(refused.value)


@pytest.mark.parametrize("temperature", ["1e-300", "1e300"])
@pytest.mark.filterwarnings("error")
def test_no_temperature_is_too_extreme(tmp_path, temperature):
    """Logits may be near the largest float64, or all but equal. There is no warning."""
    page = write(tmp_path, "a", temperature=temperature, n_tokens_to_generate=2)
    assert page.value("sample", "tempered", 0)


def test_a_page_replaces_the_old_one_only_when_it_is_whole(tmp_path, monkeypatch):
    """A disk that fills up leaves the old page, no part of a new one, and one plain sentence."""
    output = tmp_path / "page.html"
    output.write_text("old", encoding="utf-8")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match=r"cannot write .*page.html \(No space left on device\)"):
        walkthrough.main("a", output=str(output), n_tokens_to_generate=1)
    assert output.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [output]


def test_a_page_goes_where_a_shell_would_put_it(tmp_path, monkeypatch, capsys):
    """~ is the home folder. The page gets the access rights of the older page."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    page = tmp_path / "page.html"
    page.touch()
    page.chmod(0o600)
    before = page.stat().st_mode
    walkthrough.main("a", output="~/page.html", n_tokens_to_generate=1)
    assert page.stat().st_mode == before and page.stat().st_size > 10_000
    said = r"wrote .*page\.html \(0\.\d MB\): open it in a browser\n"
    out, err = capsys.readouterr()
    assert out == "" and re.fullmatch(said, err)


def test_options_without_effect_are_named(tmp_path, capsys):
    """gpt2.py does so too. Defaults, which nobody asked for, are not named."""
    call = {"n_tokens_to_generate": 1, "output": str(tmp_path / "page.html"), "temperature": "0"}
    walkthrough.main("a", **call)
    assert "no effect" not in capsys.readouterr().err
    walkthrough.main("a", seed="5", top_p="0.4", **call)
    err = capsys.readouterr().err
    assert err.count("note: seed has no effect without a temperature above 0") == 1
    assert err.count("note: top_p has no effect without a temperature above 0") == 1
    assert err.count("no effect") == 2


def run(folder, *words, **more):
    command = [sys.executable, str(ROOT / "walkthrough.py"), *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, **more)


def test_a_page_is_written_from_the_command_line(tmp_path):
    """A line says where it is. A misspelt flag ends the program with status 2."""
    done = run(tmp_path, "Hello, world ", "--n_tokens_to_generate", "2", input="unread")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.count("ends in a space") == done.stderr.count("is ignored") == 1
    assert done.stderr.count("\n") == 3 and "wrote walkthrough.html (" in done.stderr
    assert "Hello, world" in (tmp_path / "walkthrough.html").read_text(encoding="utf-8")
    wrong = run(tmp_path, "a", "--lair", "2")
    assert wrong.returncode == 2 and "--layer" in wrong.stderr


def test_help_tells_the_limits_and_the_defaults(tmp_path):
    help_text = run(tmp_path, "--help").stdout
    assert f"at most {walkthrough.MAX_TOKENS} tokens" in help_text
    assert f"at most {walkthrough.MAX_NEW_TOKENS}." in help_text
    assert f"up to {walkthrough.SHORT_TEXT} tokens" in help_text
    for name, option in inspect.signature(walkthrough.main).parameters.items():
        value = "" if option.default is None else f" {option.default}"
        assert f"--{name}{value}" in help_text


@pytest.mark.skipif(BASH is None, reason="there is no bash here")
@pytest.mark.parametrize(
    "line, status, size, message",
    [
        ("$PAGE --output /dev/stdout > page", 0, 9_999, ""),
        ("(echo first; $PAGE --output /dev/stdout; echo last) > page", 0, 9_999, ""),
        ("$PAGE --output >(cat > page; touch done); until [ -e done ]; do :; done", 0, 9_999, ""),
        ("$PAGE --output /dev/stdout | head -c 9 > page; exit ${PIPESTATUS[0]}", 0, 9, ""),
        ("$PAGE --output page >&-", 0, 9_999, "wrote page ("),
        ("$PAGE --output /dev/stdout >&-", 2, None, "output: /dev/stdout is closed"),
        ("(echo first; $PAGE --output /dev/fd/1; echo last) > page", 0, 9_999, ""),
        ("mkdir gone; cd gone; rmdir ../gone; $PAGE", 2, None, "cannot create output"),
    ],
)
def test_pipes_and_closed_streams_are_no_obstacle(tmp_path, line, status, size, message):
    """A pipe or standard output gets only the page. If it cannot be written, one line says so."""
    program = f"{shlex.quote(sys.executable)} {shlex.quote(str(ROOT / 'walkthrough.py'))}"
    script = line.replace("$PAGE", f"{program} a --n_tokens_to_generate 1")
    done = subprocess.run(
        [BASH, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (status, "")
    assert message in done.stderr and done.stderr.count("\n") == bool(message)
    written = tmp_path / "page"
    assert written.exists() == (size is not None)
    if size is not None:
        text = written.read_text(encoding="utf-8")
        text = text.removeprefix("first\n").removesuffix("last\n")
        assert len(text) >= size and text.startswith("<!DOCTYPE")
        assert len(text) == size or text.endswith("</html>\n")


