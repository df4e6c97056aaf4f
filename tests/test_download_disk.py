"""A download does no harm to the disk, whatever fails, and says little at the terminal."""

import builtins
import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from model_server import DATA, DATA_FILE, FILES, fetch, is_whole, load, right_files
from test_download import Bar

import console
import download
import folder_lock
import openai_files
import utils

ROOT = Path(utils.__file__).parent


def download_process(tmp_path):
    command = [sys.executable, "utils.py", "download", "774M", "--models_dir", str(tmp_path)]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


# ---- A run that is ended -------------------------------------------------------------------


def test_a_killed_download_is_continued(server, tmp_path):
    """After kill -9 in the middle of a file, the next run downloads only the missing bytes."""
    server.faults[DATA_FILE] = ["stall", "none"]
    part = tmp_path / "774M" / f"{DATA_FILE}.part"
    process = download_process(tmp_path)
    wait_for(lambda: download.size_of(part) > 0)
    process.kill()
    process.communicate()
    n_bytes = download.size_of(part)
    assert 0 < n_bytes < len(DATA)
    assert DATA_FILE not in right_files(part.parent)
    assert (part.parent / folder_lock.LOCK_FILE).exists()  # it is in nobody's way

    server.n_sent[DATA_FILE] = 0
    fetch(tmp_path)
    assert server.n_sent[DATA_FILE] == len(DATA) - n_bytes
    assert is_whole(part.parent)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals for one process")
@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_keeps_the_part(number, status, server, tmp_path):
    """The program removes the lock and ends without another word."""
    server.faults[DATA_FILE] = ["stall", "none"]
    part = tmp_path / "774M" / f"{DATA_FILE}.part"
    process = download_process(tmp_path)
    wait_for(lambda: download.size_of(part) > 0)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == status
    assert errors.splitlines()[-1].startswith(f"utils.py: downloading {DATA_FILE}")
    assert 0 < download.size_of(part) < len(DATA)
    assert not (part.parent / folder_lock.LOCK_FILE).exists()


# ---- Two at a time -------------------------------------------------------------------------


def test_two_processes_at_once_download_one_right_model(server, tmp_path):
    """The second process waits for the first, so every byte is sent only once."""
    server.faults = {name: ["drops"] for name in FILES}
    processes = [download_process(tmp_path) for _ in range(2)]
    all_errors = ""
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        all_errors += errors
    assert server.n_sent == {name: len(content) for name, content in FILES.items()}
    assert is_whole(tmp_path / "774M")
    assert "waiting for another process" in all_errors


def test_a_folder_that_is_removed_after_a_long_wait_is_created_again(tmp_path, monkeypatch):
    """The process that we waited for removes the folder if its own download fails."""
    answers = [False] * 5
    monkeypatch.setattr(folder_lock, "lock", lambda file: not answers or answers.pop())
    monkeypatch.setattr(time, "sleep", lambda seconds: None)

    def open_in_a_folder_that_vanishes(path, mode):
        if len(answers) == 1 and vanishes.pop():
            shutil.rmtree(tmp_path / "774M")
        return open(path, mode)

    vanishes = [False, True]
    monkeypatch.setattr(folder_lock, "open", open_in_a_folder_that_vanishes, raising=False)
    with folder_lock.hold(str(tmp_path / "774M")):
        assert (tmp_path / "774M" / folder_lock.LOCK_FILE).exists()
    assert vanishes == []


@pytest.fixture
def no_locks(monkeypatch):
    """A file system without locks."""
    fcntl = pytest.importorskip("fcntl")

    def flock(file, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)


def test_without_locks_two_at_once_still_make_one_right_model(server, tmp_path, no_locks):
    """Both processes write the same bytes to the same places.

    The slower one finds the file there.
    """
    server.faults = {name: ["drops"] for name in FILES}
    errors = []

    def fetch_or_note():
        try:
            fetch(tmp_path)
        except (OSError, ValueError) as error:
            errors.append(error)

    threads = [threading.Thread(target=fetch_or_note) for _ in range(2)]
    for thread in threads:
        thread.start()
        time.sleep(0.03)
    for thread in threads:
        thread.join()
    assert errors == []
    assert is_whole(tmp_path / "774M")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root writes anywhere")
def test_a_lock_file_of_another_user_is_in_nobodys_way(server, tmp_path):
    """The file may have been left behind in a folder that several users write to."""
    (tmp_path / "774M").mkdir()
    (tmp_path / "774M" / folder_lock.LOCK_FILE).touch(mode=0o444)
    load(tmp_path)
    assert right_files(tmp_path / "774M") == set(FILES)


# ---- Space ---------------------------------------------------------------------------------


def set_free_space(monkeypatch, n_bytes):
    usage = shutil.disk_usage(ROOT)._replace(free=n_bytes)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)


def test_a_full_disk_is_noticed_before_the_weights_are_downloaded(server, tmp_path, monkeypatch):
    """The message says how many bytes are needed and how many are free."""
    set_free_space(monkeypatch, 100_000)
    with pytest.raises(OSError, match=f"{len(DATA):,} bytes more.* only 100,000 free"):
        load(tmp_path)
    assert DATA_FILE not in [name for name, _ in server.requests]


def test_a_disk_that_reports_no_space_is_not_believed(server, tmp_path, monkeypatch, capsys):
    """Some network drives always report 0 free bytes.

    A note says that the download begins anyway.
    """
    set_free_space(monkeypatch, 0)
    load(tmp_path)
    assert is_whole(tmp_path / "774M")
    assert capsys.readouterr().err.count("the free space for") == 1


def test_a_disk_that_becomes_full_keeps_the_part(server, tmp_path, monkeypatch):
    """When there is room again, the next run continues the part."""
    _, hparams = utils.load_encoder_and_hparams("774M", tmp_path)

    class FullDisk:
        """A file to which 1,000 bytes can be written."""

        def __init__(self, *args):
            self.file = real_open(*args)

        def write(self, content):
            self.file.write(content[:1000])
            raise OSError(errno.ENOSPC, "No space left on device")

        def __getattr__(self, name):
            return getattr(self.file, name)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.file.close()

    real_open = open
    with monkeypatch.context() as patch:
        patch.setattr(download, "open", FullDisk, raising=False)
        with pytest.raises(OSError, match="cannot save .*No space left.*so far is kept"):
            utils.load_params("774M", tmp_path, hparams)
    assert (tmp_path / "774M" / f"{DATA_FILE}.part").read_bytes() == DATA[:1000]
    load(tmp_path)
    assert server.n_sent[DATA_FILE] < 2 * len(DATA)
    assert server.requests[-1] == (DATA_FILE, "bytes=1000-")


# ---- Every call that can fail --------------------------------------------------------------

CALLS = [
    (os, "makedirs"),
    (builtins, "open"),
    (os, "fsync"),
    (os, "replace"),
    (os, "remove"),
    (os, "rmdir"),
    (os.path, "getsize"),
    (shutil, "disk_usage"),
]


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES])
@pytest.mark.parametrize("module, name", CALLS, ids=lambda value: getattr(value, "__name__", value))
def test_a_call_to_the_system_that_fails_does_no_harm(
    module, name, number, server, tmp_path, monkeypatch
):
    """Each of the first nine calls in turn fails once. The model is right, or there is an OSError.

    In both cases the next run succeeds.
    """
    real = getattr(module, name)
    for n_before in range(9):
        models_dir, n_left = tmp_path / str(n_before), n_before

        def fail_once(*args, **options):
            nonlocal n_left
            is_ours = sys._getframe(1).f_globals["__name__"] in ("download", "folder_lock")
            n_left -= is_ours
            if is_ours and n_left == -1:
                raise OSError(number, os.strerror(number), *args[:1])
            return real(*args, **options)

        with monkeypatch.context() as patch:
            patch.setattr(module, name, fail_once)
            patch.setattr(time, "sleep", lambda seconds: None)
            with contextlib.suppress(OSError):
                fetch(models_dir)
                assert right_files(models_dir / "774M") == set(FILES)
        if n_left >= 0:
            return  # there is no call left to fail
        fetch(models_dir)
        # A `remove` that failed may leave an empty lock file.
        assert is_whole(models_dir / "774M") or name == "remove"


@pytest.mark.parametrize("where", ["models_dir", "774M", "774M/checkpoint.part"])
def test_what_is_in_the_way_is_named(where, server, tmp_path):
    """A file stands where a folder should be, or a folder where a file should be."""
    path = tmp_path / "models_dir" / where if where != "models_dir" else tmp_path / where
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir() if where.endswith(".part") else path.touch()
    with pytest.raises(OSError, match="models_dir") as error:
        fetch(tmp_path / "models_dir")
    assert "\n" not in str(error.value)
    assert str(tmp_path / "models_dir" / "774M") in str(error.value)


@pytest.mark.parametrize("name", ["x" * 300, f"{'x' * 99}/" * 50, "null\0"], ids=len)
def test_a_path_that_cannot_exist_is_refused_in_one_line(name, server, tmp_path):
    """It is too long, or has a null character. The server is not asked, and nothing is written."""
    with pytest.raises(OSError, match="cannot write into the folder .* choose another"):
        fetch(Path(f"{tmp_path}/{name}"))
    assert list(tmp_path.iterdir()) == []
    assert server.requests == []


def test_a_file_is_on_the_disk_before_it_has_its_name(server, tmp_path, monkeypatch):
    """Otherwise a power cut could leave a file of zeros under the name of a right file."""
    steps = []
    replace = os.replace
    monkeypatch.setattr(os, "fsync", lambda file: steps.append("fsync"))
    monkeypatch.setattr(os, "replace", lambda *paths: steps.append("replace") or replace(*paths))
    fetch(tmp_path)
    assert steps == ["fsync", "replace"] * 6


# ---- What is left behind -------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["404", "500", "silence", "portal"])
def test_a_failed_first_download_leaves_nothing(fault, server, tmp_path):
    """It leaves no lock, no empty part, and none of the folders that it created."""
    server.faults["checkpoint"] = [fault]
    with pytest.raises((OSError, ValueError)):
        fetch(tmp_path / "new" / "models")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_download_keeps_what_has_come(server, tmp_path):
    """The part with these bytes, and its folder, are all that is left."""
    server.faults["checkpoint"] = ["short"]
    with pytest.raises(OSError):
        fetch(tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["774M", "checkpoint.part"]


def test_a_models_dir_that_does_not_exist_is_named(server, tmp_path, capsys):
    """Its name may be a typing error. A folder that exists is not mentioned."""
    fetch(tmp_path / "modles")
    assert f"{tmp_path / 'modles'} does not exist yet" in capsys.readouterr().err
    fetch(tmp_path)
    assert "exist" not in capsys.readouterr().err


# ---- What is said --------------------------------------------------------------------------


def test_where_stderr_is_no_terminal_there_is_a_line_before_and_after(server, tmp_path, capsys):
    """The lines say what is downloaded, how many bytes, and where to. There is no progress bar."""
    load(tmp_path)
    output = capsys.readouterr()
    assert output.out == "" and "\r" not in output.err
    before, after, before_weights, after_weights = output.err.splitlines()
    folder = tmp_path / "774M"
    names = ", ".join(openai_files.FILES[:-1])
    assert f"downloading {names} (size unknown) into {folder}" in before
    assert f"downloaded and checked {sum(map(len, FILES.values())) - len(DATA):,} bytes" in after
    assert f"downloading {DATA_FILE} ({len(DATA):,} bytes) into {folder}" in before_weights
    assert f"downloaded and checked {len(DATA):,} bytes" in after_weights

    load(tmp_path)
    assert capsys.readouterr().err == ""


def test_at_a_terminal_there_is_a_bar_instead(server, tmp_path, monkeypatch, capsys):
    """A note has a line of its own, not the end of the bar's line."""
    monkeypatch.setattr(console, "is_terminal", lambda stream: True)
    server.faults[DATA_FILE] = ["500", "none"]
    load(tmp_path)
    errors = capsys.readouterr().err
    assert f"\rdownloading {DATA_FILE}: " in errors and "into" not in errors
    host = f"127.0.0.1:{server.server_port}"
    reason = "the server answered 500 Internal Server Error"
    assert f"\rcannot download from {host} ({reason}); trying again in" in errors


@pytest.mark.parametrize(
    "faults", [["none"], ["short", "none"], ["short", "whole"], ["short", "416"]]
)
def test_the_bar_shows_the_bytes_of_the_model_that_are_here(faults, server, tmp_path, monkeypatch):
    """The bar begins where the last run stopped, never exceeds the total, and ends full."""
    monkeypatch.setattr(download, "tqdm", Bar)
    _, hparams = utils.load_encoder_and_hparams("774M", tmp_path)
    (tmp_path / "774M" / f"{DATA_FILE}.part").write_bytes(DATA[:1000])
    server.faults[DATA_FILE] = [*faults]
    utils.load_params("774M", tmp_path, hparams)
    bar = Bar.latest
    assert bar.total == sum(len(content) for content in FILES.values())
    assert bar.n == bar.highest == bar.total


# ---- The whole way -------------------------------------------------------------------------


def test_the_command_line_downloads_and_runs_a_model(server, tmp_path):
    """gpt2.py downloads the small checkpoint as 774M and writes a text.

    The second run downloads nothing and writes the same text.
    """
    command = [sys.executable, "gpt2.py", "the other", "--model_size=774M"]
    command += [f"--models_dir={tmp_path}", "--n_tokens_to_generate=8"]
    texts = []
    for _ in range(2):
        result = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=120)
        assert result.returncode == 0, result.stderr
        texts.append(result.stdout)
    assert is_whole(tmp_path / "774M")
    assert texts[0] == texts[1] != b"\n"
    assert len(server.requests) == 6
