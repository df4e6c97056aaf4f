"""However a program starts or ends, its text is not lost, and an error is one plain line.

Most of these tests start a process, since the system has a part in what happens.
"""

import ast
import errno
import io
import os
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import GPT2_PY, ROOT, TINY, TWELVE, environment

import console
import model_names
import utils

PROGRAMS = ["gpt2.py", "utils.py", "walkthrough.py"]
POSIX_ONLY = pytest.mark.skipif(os.name != "posix", reason="needs signals and files of POSIX")


# ---- How a program starts ------------------------------------------------------------------


@pytest.mark.parametrize("name", [*PROGRAMS, "console.py", "checks.py"])
def test_an_old_python_can_compile_the_programs(name):
    """Python compiles a whole file before it runs the line that checks its version."""
    ast.parse((ROOT / name).read_text(encoding="utf-8"), feature_version=(3, 6))


def test_an_old_python_is_refused(monkeypatch, capsys):
    """One line says which Python is needed, which version this one has, and where it is."""
    monkeypatch.setattr(sys, "version_info", (3, 8, 18, "final", 0))
    monkeypatch.setattr(sys, "argv", [GPT2_PY])
    with pytest.raises(SystemExit, match="1"):
        console.prepare()
    expected = f"gpt2.py: needs Python 3.10 or newer, but this is 3.8.18: {sys.executable}\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_missing_package_is_named(process, name):
    """Even --help ends in one line. It names the package and the command that installs it."""
    status, out, err = process("--help", python=["-S"], script=str(ROOT / name))
    assert (status, out) == (1, "")
    assert err.startswith(f"{name}: the package numpy is missing") and err.count("\n") == 1
    assert f"`{sys.executable} -m pip install -r requirements.txt`" in err


def test_a_package_that_is_missing_later_is_named_too(call, monkeypatch):
    """Some packages are imported only where they are needed. The message is the same there."""
    monkeypatch.setitem(sys.modules, "fire", None)
    status, out, err = call("ROMEO:", *TWELVE)
    assert (status, out) == (1, "")
    assert "the package fire is missing" in err and err.count("\n") == 1


def test_a_package_that_is_broken_is_named(tmp_path, process):
    """One line names the broken module. (NumPy's own message for this has thirty lines.)"""
    (tmp_path / "numpy.py").write_text("raise ImportError('a\\nb', name='numpy.core')")
    status, out, err = process("ROMEO:", PYTHONPATH=str(tmp_path))
    assert (status, out) == (1, "")
    assert err == f"gpt2.py: {sys.executable} cannot import numpy.core: a b\n"


@POSIX_ONLY
def test_ctrl_c_while_modules_are_imported_prints_nothing(tmp_path):
    """The program ends with status 130, just as it does later."""
    slow = "import sys, time; print('importing', file=sys.stderr, flush=True); time.sleep(60)"
    (tmp_path / "numpy.py").write_text(slow)
    with subprocess.Popen(
        [sys.executable, GPT2_PY, "x"],
        stderr=subprocess.PIPE,
        env=environment(PYTHONPATH=str(tmp_path)),
    ) as process:
        assert process.stderr.readline() == b"importing\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b""
    assert process.returncode == 130


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_safe_path_of_python_is_no_obstacle(process, name):
    """With PYTHONSAFEPATH, Python does not look for modules beside the script.

    They are found anyway.
    """
    status, out, err = process("--help", script=str(ROOT / name), PYTHONSAFEPATH="1")
    assert (status, err) == (0, "")
    assert "--models_dir" in out


def test_options_of_python_change_nothing(process, call):
    """Without asserts, and with warnings as errors, the same is printed. No warning appears."""
    python = ["-O", "-W", "error", "-X", "dev"]
    assert process("ROMEO:", *TWELVE, python=python) == call("ROMEO:", *TWELVE)


def test_models_are_found_from_any_folder(process, call, tmp_path):
    """The models are beside gpt2.py, even if it is called by a symbolic link elsewhere."""
    link = tmp_path / "link.py"
    try:
        link.symlink_to(GPT2_PY)
    except OSError:
        pytest.skip("this system allows no symbolic links")
    usual = call("ROMEO:", *TWELVE)
    assert process("ROMEO:", *TWELVE, script=link) == usual
    assert process("ROMEO:", *TWELVE, script=link, PYTHONSAFEPATH="1") == usual


# ---- How it writes -------------------------------------------------------------------------


class Bare:
    """A stand-in for a stream, as in IDLE or a notebook: it can write and flush, no more."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass


@pytest.mark.parametrize("kind", [io.StringIO, Bare])
def test_streams_may_be_objects_that_only_take_text(call, monkeypatch, kind):
    """In a notebook or in IDLE, the standard streams are such objects."""
    expected = call("ROMEO:", *TWELVE).out
    monkeypatch.setattr(sys, "stdin", object())
    monkeypatch.setattr(sys, "stderr", err := kind())
    monkeypatch.setattr(sys, "stdout", out := kind())
    assert call("ROMEO:", *TWELVE, "--top_k", "5").status == 0
    assert call("--wrong").status == 2
    written = [getattr(stream, "text", None) or stream.getvalue() for stream in (out, err)]
    assert written[0] == expected
    assert "top_k" in written[1] and "--wrong" in written[1]


@pytest.mark.parametrize(
    "encoding, shown",
    [("ascii", rb"\xe9\U0001f917"), ("cp1252", b"\xe9\\U0001f917"), ("utf-8", "é🤗".encode())],
)
def test_console_that_lacks_a_character_gets_its_code(
    call, model_says, monkeypatch, encoding, shown
):
    """Whatever the encoding of the console, the whole text is printed."""
    model_says("é🤗".encode())
    monkeypatch.setattr(sys, "stdout", out := io.TextIOWrapper(io.BytesIO(), encoding))
    assert call("x", *TINY).status == 0
    assert out.buffer.getvalue().strip() == shown


def test_control_characters_are_shown_at_a_terminal(model_says, call, monkeypatch):
    """A terminal would obey them. A pipe gets every byte unchanged."""
    text = "a\tb\x1b[2J\x07\r\x7f\x9b\n"
    model_says(text.encode())
    assert call("x", *TINY).out == text + "\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert call("x", *TINY).out == "a\tb\\x1b[2J\\x07\\x0d\\x7f\\x9b\n\n"


def test_a_message_is_one_line(monkeypatch, capsys):
    """The name of a file may hold line ends.

    A program's own name comes first. A notebook has none.
    """
    monkeypatch.setattr(sys, "argv", [GPT2_PY])
    console.say("no such file: a\nb\x1b")
    assert capsys.readouterr().err == "gpt2.py: no such file: a b\\x1b\n"
    for name in ["", "-c", "/usr/lib/ipykernel_launcher.py"]:
        monkeypatch.setattr(sys, "argv", [name])
        console.say("note: x")
        assert capsys.readouterr().err == "note: x\n"


def test_a_reader_that_has_gone_is_no_error_on_windows(call, monkeypatch):
    """Windows then reports EINVAL, which ends the program in silence.

    Elsewhere, EINVAL is an error.
    """

    def write(text):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(sys, "stdout", out := io.StringIO())
    out.write = write
    assert call("--help").status == 1
    monkeypatch.setattr(console.os, "name", "nt")
    assert call("--help").status == 0


def test_streams_that_do_not_wait_are_made_to_wait(monkeypatch):
    """Another program that uses the same pipe may have set it not to wait.

    Half a text could be lost.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with open(reader), open(writer, "w") as stream:
        console.get_ready(stream)
        assert os.get_blocking(writer)


@pytest.mark.parametrize(
    "line, status, out, err",
    [
        ("$GPT2 ROMEO: {options} --nsamples 2 | head -1", 0, "SAMPLE 1", "same"),
        ("$GPT2 ROMEO: {options} >/dev/full", 1, "", "No space left"),
        ("$GPT2 --help >/dev/full", 1, "", "No space left"),
        ("$GPT2 ROMEO: {options} >&-", 1, "", "closed"),
        ("$GPT2 ROMEO: {options} --top_k 5 2>&-", 0, "{text}", ""),
        ("$GPT2 ROMEO: {options} --top_k 5 2>/dev/full", 0, "{text}", ""),
        ("$GPT2 ROMEO: --wrong 2>&-", 2, "", ""),
        ("$GPT2 ROMEO: --wrong 2>/dev/full", 2, "", ""),
        ("$GPT2 ROMEO: {options} <&-", 0, "{text}", ""),
        ("$GPT2 {options} <&-", 2, "", "no prompt"),
        ("$UTILS verify tiny >/dev/full", 1, "", "No space left"),
        ('$UTILS verify tiny | true; echo "${{PIPESTATUS-0}}"', 0, "0", ""),
    ],
)
def test_closed_and_full_streams_end_in_no_traceback(shell, call, line, status, out, err):
    """If the text cannot be printed, the run fails with one line.

    If only a note cannot be printed, the run goes on. A reader that has seen enough is no error.
    """
    if "/dev/full" in line and not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    line = line.replace("$UTILS", f'"$PYTHON" "{utils.__file__}"')
    result = shell(line.format(options=" ".join(TWELVE)))
    assert result.status == status
    assert out.format(text=call("ROMEO:", *TWELVE).out) in result.out
    assert (result.out == "") == (out == "")
    assert err in result.err and result.err.count("\n") == (err != "")


@POSIX_ONLY
def test_a_disk_that_fills_up_in_the_middle_of_a_text_is_an_error(tmp_path):
    """With PYTHONUNBUFFERED, Python alone would lose the rest of the text without an error."""
    import resource

    path = tmp_path / "out"
    with open(path, "wb") as file:
        done = subprocess.run(
            [sys.executable, GPT2_PY, "JULIET:", "--model_size", "tiny", "--nsamples", "2"],
            stdout=file,
            stderr=subprocess.PIPE,
            env=environment(PYTHONUNBUFFERED="1"),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (350, 350)),
        )
    assert done.returncode == 1 and path.stat().st_size == 350
    assert b"cannot write to standard output: File too large" in done.stderr


def test_a_path_that_the_console_cannot_show_is_printed_as_codes(process, tmp_path):
    """Letters that the console lacks, in a folder's name, do not make `utils.py download` fail."""
    shutil.copytree(os.path.join(model_names.MODELS_DIR, "tiny"), tmp_path / "модели" / "tiny")
    words = ["download", "tiny", "--models_dir", str(tmp_path / "модели")]
    status, out, err = process(*words, script=utils.__file__, PYTHONIOENCODING="ascii")
    assert (status, err) == (0, "")
    assert r"\u043c\u043e\u0434" in out


# ---- How it ends ---------------------------------------------------------------------------

# gpt2.py with a model that says "é🤗" over and over. After six bytes it waits.
SCRIPTED = """
import os, sys
sys.path.insert(0, os.path.dirname(os.environ["GPT2_PY"]))
import console
console.prepare()
import numpy as np
import cli, encoder, gpt2, model_names
ids = encoder.get_encoder("tiny", model_names.MODELS_DIR).ids

def scripted(inputs, wte, cache=None, **rest):
    n_said = cache or 0
    if n_said == 6:
        print("said six", file=sys.stderr, flush=True)
        sys.stdin.read()
    said = "é🤗".encode()[n_said % 6]
    logits = np.zeros((len(inputs), len(wte)), dtype=np.float32)
    logits[:, ids[bytes([said])]] = 1
    return logits, n_said + 1

gpt2.gpt2 = scripted
cli.run(gpt2.main)
"""


@pytest.fixture
def start_scripted(tmp_path):
    """A function that starts the scripted model, and returns its process once the model waits."""
    path = tmp_path / "scripted.py"
    path.write_text(SCRIPTED, encoding="utf-8")

    def start(*words, **options):
        words = ["--prompt=x", *TINY, "--n_tokens_to_generate=12", *words]
        pipes = dict.fromkeys(["stdin", "stdout", "stderr"], subprocess.PIPE)
        environ = environment(GPT2_PY=GPT2_PY)
        process = subprocess.Popen([sys.executable, path, *words], env=environ, **pipes, **options)
        while process.stderr.readline() != b"said six\n":
            assert process.poll() is None
        return process

    return start


@POSIX_ONLY
@pytest.mark.parametrize("words", [[], ["--nsamples", "2"]], ids=["one sample", "a batch"])
@pytest.mark.parametrize("name, status", [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_loses_no_text(start_scripted, name, status, words):
    """What was made so far is printed, and there is no traceback."""
    process = start_scripted(*words)
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (status, b"")
    assert out.decode().count("é🤗\n") == (2 if words else 1)


@POSIX_ONLY
def test_a_killed_program_has_printed_every_token_so_far(start_scripted):
    """SIGKILL leaves no time to print, so each token has to be printed when it is made."""
    process = start_scripted()
    process.kill()
    out, _ = process.communicate(timeout=60)
    assert out.decode() == "é🤗"


@POSIX_ONLY
def test_ignored_signals_stay_ignored(start_scripted):
    """nohup starts a program with a signal ignored. So does a shell script, in the background."""

    def ignore():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    process = start_scripted(preexec_fn=ignore)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGHUP)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out.decode(), err) == (0, "é🤗é🤗\n", b"")


@pytest.mark.parametrize(
    "error, status, line",
    [
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(32, "Broken pipe"), 0, ""),
        (MemoryError(), 1, "out of memory"),
        (OSError(28, "No space left on device"), 1, ": No space left on device\n"),
        (FileNotFoundError(2, "No such file", "x/y"), 1, ": No such file: x/y\n"),
        (ValueError("a is damaged"), 1, "a is damaged"),
        (SystemExit(3), 3, ""),
    ],
    ids=repr,
)
def test_each_error_has_its_exit_status_and_its_line(monkeypatch, capsys, error, status, line):
    """Ctrl-C, SystemExit and a pipe without a reader need no words. Other errors have one line."""
    monkeypatch.setattr(sys, "argv", [GPT2_PY])

    def fail():
        raise error

    with pytest.raises(SystemExit) as exit:
        console.run(fail)
    assert exit.value.code == status
    err = capsys.readouterr().err
    assert line in err and err.count("\n") == (line != "")


@pytest.mark.parametrize("first", [KeyboardInterrupt(), SystemExit(129)], ids=repr)
def test_status_of_a_signal_stays_if_the_text_cannot_be_written(first):
    """A terminal that is closed sends SIGHUP and takes no text any more.

    The status tells of the signal.
    """

    def fail():
        try:
            raise first
        finally:
            raise OSError(5, "Input/output error")

    with pytest.raises(SystemExit) as exit:
        console.run(fail)
    assert exit.value.code == (130 if isinstance(first, KeyboardInterrupt) else 129)


def test_an_import_that_fails_in_another_way_is_one_line(tmp_path, process):
    """Where Python cannot read a module's file, it may raise an error that is no ImportError."""
    (tmp_path / "numpy.py").write_text("import json\njson.nothing")
    status, out, err = process("ROMEO:", PYTHONPATH=str(tmp_path))
    assert (status, out) == (1, "")
    said = "cannot import a module: AttributeError: module 'json' has no attribute"
    assert said in err and err.count("\n") == 1


@pytest.mark.parametrize("damaged", [b"\0" * 99, b"x = (", b"\xff"])
def test_a_package_that_cannot_be_compiled_is_one_line(damaged, tmp_path, process):
    """A power cut during the installation can leave such a file."""
    (tmp_path / "numpy.py").write_bytes(damaged)
    status, out, err = process("ROMEO:", PYTHONPATH=str(tmp_path))
    assert (status, out) == (1, "")
    assert "cannot import a module: SyntaxError: " in err and err.count("\n") == 1


def test_a_mistake_in_a_file_of_ours_keeps_its_traceback(tmp_path, process):
    """Whoever edits one of our files wants to see the line of the mistake."""
    for path in ROOT.glob("*.py"):
        shutil.copy(path, tmp_path)
    (tmp_path / "checks.py").write_text("x = (")
    status, out, err = process("ROMEO:", script=str(tmp_path / "gpt2.py"))
    assert (status, out) == (1, "")
    assert "checks.py" in err and "SyntaxError" in err and err.count("\n") > 1


def test_a_package_without_its_init_file_is_one_line(tmp_path, process):
    """To Python, a folder without __init__.py is a package with nothing in it."""
    for name in ("numpy", "fire"):
        (tmp_path / name).mkdir()
    status, out, err = process("ROMEO:", python=["-S"], PYTHONPATH=str(tmp_path))
    assert (status, out) == (1, "")
    assert "fire: its file is empty, or cannot be read" in err and err.count("\n") == 1


@pytest.mark.parametrize("name", ["numpy", "regex", "fire"])
def test_a_package_whose_file_is_empty_is_one_line(name, tmp_path, process):
    """Such a file is left behind if the disk was full while the package was installed."""
    (tmp_path / f"{name}.py").touch()
    status, out, err = process("ROMEO:", *TWELVE, PYTHONPATH=str(tmp_path))
    assert (status, out) == (1, "")
    assert f"cannot import {name}: its file is empty" in err and err.count("\n") == 1


def test_a_bug_keeps_its_traceback():
    """No user can have caused such an error, and whoever mends it needs the traceback."""
    with pytest.raises(ZeroDivisionError):
        console.run(lambda: 1 / 0)
