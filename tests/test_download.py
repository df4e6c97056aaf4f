"""Fetching a model from a server that misbehaves: the right file or none, soon, and one message.

The server is in this file. It has the small test model under the names of OpenAI's sizes.
"""

import contextlib
import gzip
import hashlib
import http.server
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import requests
import tqdm

import utils
from tools.write_checkpoint import table

ROOT = Path(utils.__file__).parent
SMALL = Path(__file__).parent / "checkpoints" / "small"
DATA_FILE = f"model.ckpt{utils.DATA}"
FILES = {name: (SMALL / name).read_bytes() for name in utils.FILES}
DATA = FILES[DATA_FILE]


# ---- The server ----------------------------------------------------------------------------


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers a request for /<size>/<file> with the next of the faults planned for that file."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        name = self.path.split("/")[-1]
        asked_from = self.headers.get("Range")
        self.server.requests.append((name, asked_from))
        self.start = int(asked_from[len("bytes=") : -1]) if asked_from else 0
        self.content = self.server.files[name]
        planned = self.server.faults.get(name, [])
        fault = planned.pop(0) if len(planned) > 1 else (planned or ["none"])[0]
        self.close_connection = True
        with contextlib.suppress(OSError):
            getattr(self, f"send_{fault}")()

    def begin(self, status, **headers):
        self.send_response(status)
        for header, value in headers.items():
            self.send_header(header.replace("_", "-"), value)
        self.end_headers()

    def send(self, content):
        self.wfile.write(content)
        self.server.n_sent[self.path.split("/")[-1]] += len(content)

    def begin_right(self, n_announced=None):
        """The head of a right answer; returns what has to follow."""
        end = len(self.content)
        if self.start >= end:
            self.begin(416, Content_Range=f"bytes */{end}", Content_Length=0)
        elif self.start > 0:
            content_range = f"bytes {self.start}-{end - 1}/{end}"
            self.begin(206, Content_Range=content_range, Content_Length=end - self.start)
        else:
            self.begin(200, Content_Length=n_announced or end)
        return self.content[self.start :]

    # Each of these is a way to answer.

    def send_none(self):
        self.send(self.begin_right())

    def send_404(self):
        error_page = b"<?xml version='1.0'?><Error><Code>BlobNotFound</Code></Error>" * 3
        self.begin(404, Content_Length=len(error_page))
        self.send(error_page)

    def send_500(self):
        self.begin(500, Content_Length=0)

    def send_reset(self):
        content = self.begin_right()
        self.send(content[: len(content) // 3])
        self.wfile.flush()
        time.sleep(0.1)  # or the reset overtakes what was sent
        linger_not = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_not)
        self.connection.close()

    def send_stall(self):
        content = self.begin_right()
        self.send(content[: len(content) // 3])
        self.server.go_on.wait(20)

    def send_silence(self):
        self.server.go_on.wait(20)

    def send_short(self):
        content = self.begin_right()
        self.send(content[: len(content) // 3])

    def send_short_without_length(self):
        self.begin(200)
        self.send(self.content[: len(self.content) // 3])

    def send_long(self):
        self.begin(200)
        self.send(self.content + b"more than there should be")

    def send_long_and_say_so(self):
        self.begin(200, Content_Length=len(self.content) + 4)
        self.send(self.content + b"more")

    def send_wrong_bytes(self):
        middle = len(self.content) // 2
        wrong = bytes([self.content[middle] ^ 1])
        self.content = self.content[:middle] + wrong + self.content[middle + 1 :]
        self.send(self.begin_right())

    def send_gzip(self):
        packed = gzip.compress(self.content)
        self.begin(200, Content_Encoding="gzip", Content_Length=len(packed))
        self.send(packed)

    def send_no_length(self):
        self.begin(200)
        self.send(self.content)

    def send_whole(self):
        self.begin(200, Content_Length=len(self.content))
        self.send(self.content)

    def send_another_range(self):
        if self.start == 0:
            return self.send_none()
        end = len(self.content)
        first = self.start // 2
        content_range = f"bytes {first}-{end - 1}/{end}"
        self.begin(206, Content_Range=content_range, Content_Length=end - first)
        self.send(self.content[first:])

    def send_range_without_name(self):
        if self.start == 0:
            return self.send_none()
        self.begin(206, Content_Length=len(self.content) - self.start)
        self.send(self.content[self.start :])

    def send_bytes_of_another_range(self):
        if self.start == 0:
            return self.send_none()
        self.content = self.content[-self.start :] + self.content[: -self.start]
        self.send(self.begin_right())

    def send_416(self):
        if self.start == 0:
            return self.send_none()
        self.begin(416, Content_Range=f"bytes */{self.start // 2}", Content_Length=0)

    def send_portal(self):
        page = b"<html><body>Please log in to this network.</body></html>"
        self.begin(200, Content_Type="text/html", Content_Length=len(page))
        self.send(page)

    def send_portal_without_length(self):
        self.begin(200, Content_Type="text/html")
        self.send(b"<html><body>Please log in to this network.</body></html>")

    def send_nothing(self):
        self.begin(204)

    def send_drops(self):
        for start in range(0, len(content := self.begin_right()), 10000):
            self.send(content[start : start + 10000])
            time.sleep(0.05)


@pytest.fixture
def server(monkeypatch):
    """A running server; GPT2_BASE_URL leads to it, and patience is short."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.files = dict(FILES)
        server.faults = {}  # name -> list of faults; the last one stays
        server.requests = []
        server.n_sent = dict.fromkeys(FILES, 0)
        server.go_on = threading.Event()
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("GPT2_BASE_URL", f"http://127.0.0.1:{server.server_port}/models/")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setattr(utils, "PAUSES", (0.01, 0.02, 0.03))
        monkeypatch.setattr(utils, "READ_TIMEOUT", 0.25)
        monkeypatch.setattr(os, "fsync", lambda file: None)  # or it takes most of the time
        yield server
        server.go_on.set()
        server.shutdown()


def load(models_dir, size="774M"):
    return utils.load_encoder_hparams_and_params(size, models_dir)


def lies_in(folder):
    """The files of a model that have their own names; each has to be the right one."""
    names = {path.name for path in folder.glob("*") if path.suffix not in (".part", ".lock")}
    for name in names:
        assert (folder / name).read_bytes() == FILES[name], name
    return names


# ---- The faults ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vocab.bpe", "model.ckpt.index", DATA_FILE])
@pytest.mark.parametrize(
    "faults",
    [
        ["none"],
        ["500", "none"],
        ["500", "500", "500", "none"],
        ["reset", "none"],
        ["reset", "reset", "500", "none"],
        ["stall", "none"],
        ["silence", "none"],
        ["short", "none"],
        ["short", "whole"],
        ["short", "another_range", "none"],
        ["short", "range_without_name", "none"],
        ["short", "416", "none"],
        ["gzip"],
        ["no_length"],
        ["short", "gzip"],
        ["reset", "no_length"],
    ],
    ids="-".join,
)
def test_a_fault_that_passes_ends_in_the_right_file(name, faults, server, tmp_path):
    """The file is fetched again, or the rest of it, and the model loads."""
    server.faults[name] = [*faults]
    encoder, hparams, params = load(tmp_path)
    assert server.faults[name] == faults[-1:]  # all of them were played
    assert lies_in(tmp_path / "774M") == set(FILES)
    assert len(list((tmp_path / "774M").iterdir())) == 6
    assert params["wte"].shape == (hparams["n_vocab"], hparams["n_embd"])


LASTING = {
    "404": (OSError, "404"),
    "500": (OSError, "500"),
    "reset": (OSError, "bytes"),
    "stall": (OSError, "timed out"),
    "silence": (OSError, "timed out"),
    "short": (OSError, "bytes"),
    "nothing": (OSError, "204"),
    "long": (ValueError, "not the right file"),
    "long_and_say_so": (ValueError, "not the right file"),
    "wrong_bytes": (ValueError, "not the right file"),
    "portal": (ValueError, "not the right file"),
    "portal_without_length": ((OSError, ValueError), "bytes|not the right file"),
}


@pytest.mark.parametrize("name", ["hparams.json", "model.ckpt.index", DATA_FILE])
@pytest.mark.parametrize("fault", LASTING)
def test_a_fault_that_stays_ends_in_no_file(name, fault, server, tmp_path):
    """One line says which address, what happened and what to do; what was right is kept."""
    expected_error, what = LASTING[fault]
    server.faults[name] = [fault]
    with pytest.raises(expected_error, match=what) as error:
        load(tmp_path)
    message = str(error.value)
    for part in (f"/models/774M/{name}", "GPT2_BASE_URL", str(tmp_path / "774M"), "tiny"):
        assert part in message
    assert "\n" not in message
    assert lies_in(tmp_path / "774M") == set(utils.FILES[: utils.FILES.index(name)])

    server.faults.clear()  # and when it has gone, the model is fetched
    load(tmp_path)
    assert lies_in(tmp_path / "774M") == set(FILES)


def test_a_short_body_without_a_length_is_noticed(server, tmp_path):
    """By the index, which knows the size of the data file; the rest is fetched."""
    server.faults[DATA_FILE] = ["short_without_length", "none"]
    load(tmp_path)
    assert [asked for name, asked in server.requests if name == DATA_FILE][0] is None
    assert server.n_sent[DATA_FILE] == len(DATA)
    assert lies_in(tmp_path / "774M") == set(FILES)


def test_what_was_fetched_wrong_is_not_kept(server, tmp_path):
    """Or every later run would go on from there."""
    server.faults[DATA_FILE] = ["short", "bytes_of_another_range"]
    with pytest.raises(ValueError, match="does not have its checksum"):
        load(tmp_path)
    assert not list((tmp_path / "774M").glob("*.part"))


def test_a_short_body_says_how_much_came(server, tmp_path):
    """Both numbers are in the message."""
    server.faults[DATA_FILE] = ["short"]
    server.files[DATA_FILE] = DATA
    with pytest.raises(OSError, match=rf"after \d+ of {len(DATA)} bytes"):
        load(tmp_path)


def test_a_file_is_on_the_disk_before_it_has_its_name(server, tmp_path, monkeypatch):
    """So that a power cut leaves no file of zeros under the name of a right one."""
    steps = []
    replace = os.replace
    monkeypatch.setattr(os, "fsync", lambda file: steps.append("fsync"))
    monkeypatch.setattr(os, "replace", lambda *paths: steps.append("replace") or replace(*paths))
    load(tmp_path)
    assert steps == ["fsync", "replace"] * 6


# ---- Going on ------------------------------------------------------------------------------


@pytest.mark.parametrize("n_bytes", [1, 1000, len(DATA) - 1])
def test_a_part_is_gone_on_from(n_bytes, server, tmp_path):
    """Only the rest is asked for, and sent."""
    load(tmp_path)
    folder = tmp_path / "774M"
    (folder / DATA_FILE).unlink()
    (folder / f"{DATA_FILE}.part").write_bytes(DATA[:n_bytes])
    server.requests.clear()
    server.n_sent[DATA_FILE] = 0
    load(tmp_path)
    assert server.requests == [(DATA_FILE, f"bytes={n_bytes}-")]
    assert server.n_sent[DATA_FILE] == len(DATA) - n_bytes
    assert lies_in(folder) == set(FILES)


@pytest.mark.parametrize("name", ["vocab.bpe", DATA_FILE])
def test_a_part_that_is_whole_is_only_checked(name, server, tmp_path):
    """A run that was killed before the last step: by size, or because nothing follows (416)."""
    folder = tmp_path / "774M"
    folder.mkdir()
    (folder / f"{name}.part").write_bytes(FILES[name])
    load(tmp_path)
    assert server.n_sent[name] == 0
    assert lies_in(folder) == set(FILES)


@pytest.mark.parametrize("part", [DATA + b"more", bytes(len(DATA)), b"<html>" * 99], ids=len)
def test_a_part_that_is_wrong_never_becomes_the_file(part, server, tmp_path):
    """Too long, a hole of zeros, a page of HTML: the file is fetched again from its start."""
    folder = tmp_path / "774M"
    folder.mkdir()
    (folder / f"{DATA_FILE}.part").write_bytes(part)
    load(tmp_path)
    assert lies_in(folder) == set(FILES)


def download_process(tmp_path, **options):
    command = [sys.executable, "utils.py", "download", "774M", "--models_dir", str(tmp_path)]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, **options)


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_killed_download_is_gone_on_from(server, tmp_path):
    """kill -9 in mid-file leaves nothing in the way, and what has come is not fetched again."""
    server.faults[DATA_FILE] = ["stall", "none"]
    part = tmp_path / "774M" / f"{DATA_FILE}.part"
    process = download_process(tmp_path)
    wait_for(lambda: utils.size_of(part) > 0)
    process.kill()
    process.communicate()
    n_bytes = utils.size_of(part)
    assert 0 < n_bytes < len(DATA)
    assert DATA_FILE not in lies_in(part.parent)

    server.n_sent[DATA_FILE] = 0
    process = download_process(tmp_path)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert server.n_sent[DATA_FILE] == len(DATA) - n_bytes
    assert lies_in(part.parent) == set(FILES)
    assert len(list(part.parent.iterdir())) == 6


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_ctrl_c_keeps_the_part(server, tmp_path):
    """And ends with status 130, without a word."""
    server.faults[DATA_FILE] = ["stall", "none"]
    part = tmp_path / "774M" / f"{DATA_FILE}.part"
    process = download_process(tmp_path)
    wait_for(lambda: utils.size_of(part) > 0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == ""
    assert utils.size_of(part) > 0


def test_two_processes_at_once_fetch_one_right_model(server, tmp_path):
    """The second waits for the first, so that every byte is fetched once."""
    server.faults = {name: ["drops"] for name in FILES}
    processes = [download_process(tmp_path) for _ in range(2)]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    assert server.n_sent == {name: len(content) for name, content in FILES.items()}
    assert lies_in(tmp_path / "774M") == set(FILES)
    assert len(list((tmp_path / "774M").iterdir())) == 6


# ---- Order, space, patience ----------------------------------------------------------------


def test_the_weights_come_last(server, tmp_path):
    """Before them come the small files, in one call, so that a prompt can be refused in between."""
    _, hparams = utils.load_encoder_and_hparams("774M", tmp_path)
    assert [name for name, _ in server.requests] == list(utils.FILES[:-1])
    utils.load_params("774M", tmp_path, hparams)
    assert [name for name, _ in server.requests] == list(utils.FILES)


def test_nothing_is_asked_for_when_all_is_there(server, tmp_path):
    """Not even whether it is new."""
    load(tmp_path)
    server.requests.clear()
    load(tmp_path)
    assert server.requests == []


def test_only_what_is_missing_is_fetched(server, tmp_path):
    """File by file."""
    load(tmp_path)
    server.requests.clear()
    (tmp_path / "774M" / "encoder.json").unlink()
    load(tmp_path)
    assert server.requests == [("encoder.json", None)]


def test_a_full_disk_is_noticed_before_the_weights_are_fetched(server, tmp_path, monkeypatch):
    """With both numbers."""
    usage = utils.shutil.disk_usage(tmp_path)._replace(free=100_000)
    monkeypatch.setattr(utils.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(OSError, match=f"{len(DATA)} bytes more.* 100000"):
        load(tmp_path)
    assert DATA_FILE not in [name for name, _ in server.requests]


class Clock:
    """A clock for utils that goes on only while it waits."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(utils.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(utils.time, "sleep", self.wait)

    def wait(self, seconds):
        self.now += seconds


def test_a_host_that_refuses_is_given_up_within_ten_seconds(tmp_path, monkeypatch):
    """And the message, in one line, has the address, what happened and what to do."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
    monkeypatch.setenv("GPT2_BASE_URL", address)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    clock = Clock(monkeypatch)
    with pytest.raises(OSError, match=f"{address}/774M/checkpoint: .*refused") as error:
        load(tmp_path)
    assert 0 < clock.now <= 10
    message = str(error.value)
    assert "\n" not in message
    assert f"put {', '.join(utils.FILES)} into {tmp_path / '774M'} by hand" in message
    assert "GPT2_BASE_URL" in message and "--model_size tiny" in message


@pytest.mark.parametrize(
    "seconds, cause",
    [
        (0, requests.ConnectionError("Name or service not known")),
        (utils.CONNECT_TIMEOUT, requests.ConnectTimeout("timed out")),
    ],
    ids=["name", "route"],
)
def test_a_host_that_is_not_found_is_given_up_within_ten_seconds(
    seconds, cause, tmp_path, monkeypatch
):
    """All tries together, each of which takes as long as it may."""
    clock = Clock(monkeypatch)

    def get(url, **options):
        clock.wait(seconds)
        raise cause

    monkeypatch.setattr(requests, "get", get)
    with pytest.raises(OSError, match=str(cause)):
        load(tmp_path)
    assert 0 < clock.now <= 10


def test_a_line_that_breaks_again_and_again_but_goes_on_is_not_given_up(tmp_path, monkeypatch):
    """Tries are counted from where the part last grew."""
    part = tmp_path / "part"

    def receive(url, part, ask_from, size, bar):
        assert ask_from == utils.size_of(part)
        with open(part, "ab") as file:
            file.write(b"more")
        if ask_from < 400:
            raise requests.ConnectionError("broke off")

    Clock(monkeypatch)
    monkeypatch.setattr(utils, "receive", receive)
    utils.download("http://127.0.0.1", part, None, None)
    assert utils.size_of(part) == 404


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ftp://127.0.0.1", "http://", "http://[", "x"])
def test_an_address_that_is_none_is_one_message(address, tmp_path, monkeypatch):
    """At once, as waiting does not make it better."""
    monkeypatch.setenv("GPT2_BASE_URL", address)
    with pytest.raises(OSError, match="cannot fetch"):
        load(tmp_path)


class Bar:
    """A progress bar that only counts."""

    def __init__(self, **options):
        self.total, self.n = options["total"], options["initial"]
        self.highest = self.n
        type(self).latest = self

    def update(self, n):
        self.n += n
        self.highest = max(self.n, self.highest)

    def set_description(self, text):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


@pytest.mark.parametrize(
    "faults", [["none"], ["short", "none"], ["short", "whole"], ["short", "416"]]
)
def test_the_bar_shows_the_bytes_of_the_model_that_are_here(faults, server, tmp_path, monkeypatch):
    """It begins where the last run stopped, never shows more than there is, and ends full."""
    monkeypatch.setattr(tqdm, "tqdm", Bar)
    _, hparams = utils.load_encoder_and_hparams("774M", tmp_path)
    (tmp_path / "774M" / f"{DATA_FILE}.part").write_bytes(DATA[:1000])
    server.faults[DATA_FILE] = [*faults]
    utils.load_params("774M", tmp_path, hparams)
    bar = Bar.latest
    assert bar.total == sum(len(content) for content in FILES.values())
    assert bar.n == bar.highest == bar.total


# ---- What is published ---------------------------------------------------------------------


@pytest.fixture
def published(monkeypatch):
    """As if the small model's files had been published, as 124M with hashes, as 355M without."""
    sizes = {name: len(content) for name, content in FILES.items()}
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    monkeypatch.setattr(utils, "PUBLISHED_SIZES", {"124M": sizes, "355M": sizes})
    monkeypatch.setattr(utils, "PUBLISHED_SHA256", {"124M": hashes})


def test_the_published_files_are_accepted(server, tmp_path, published):
    """By hash and by size."""
    for size in ("124M", "355M"):
        load(tmp_path, size)
        assert lies_in(tmp_path / size) == set(FILES)


@pytest.mark.parametrize(
    "name", ["checkpoint", "hparams.json", "encoder.json", "vocab.bpe", DATA_FILE]
)
def test_another_file_than_the_published_one_is_refused(
    name, server, tmp_path, published, monkeypatch
):
    """Even one that is right in itself, from whatever address."""
    monkeypatch.setitem(utils.PUBLISHED_SHA256["124M"], name, "0" * 64)
    with pytest.raises(ValueError, match=f"{name}.* does not have the published SHA-256"):
        load(tmp_path, "124M")
    assert name not in lies_in(tmp_path / "124M")


@pytest.mark.parametrize("size", ["124M", "355M"])
@pytest.mark.parametrize("name", utils.FILES)
def test_another_size_than_the_published_one_is_refused(name, size, server, tmp_path, published):
    """Before the file is fetched, where the server announces it."""
    server.files[name] += b"\n"
    with pytest.raises(
        ValueError, match=f"has {len(FILES[name]) + 1} bytes, not {len(FILES[name])}"
    ):
        load(tmp_path, size)
    assert name not in lies_in(tmp_path / size)


def test_the_index_may_differ_from_its_hash(server, tmp_path, published, monkeypatch, capsys):
    """That has a single source. The data file, by its own hash, decides; and stderr says so."""
    monkeypatch.setitem(utils.PUBLISHED_SHA256["124M"], "model.ckpt.index", "0" * 64)
    load(tmp_path, "124M")
    assert lies_in(tmp_path / "124M") == set(FILES)
    output = capsys.readouterr()
    assert "model.ckpt.index" in output.err and "single source" in output.err
    assert output.out == ""

    (tmp_path / "124M" / DATA_FILE).unlink()
    monkeypatch.setitem(utils.PUBLISHED_SHA256["124M"], DATA_FILE, "0" * 64)
    with pytest.raises(ValueError, match="published SHA-256"):
        load(tmp_path, "124M")


def test_a_wrong_index_costs_no_data_file_of_known_hash(server, tmp_path, published, monkeypatch):
    """What is certain of the two is kept, and not fetched again and again."""
    entries = utils.read_table(FILES["model.ckpt.index"])
    crc32c = utils.read_index(SMALL / "model.ckpt.index")["model/wpe"]["crc32c"]
    right, wrong = crc32c.to_bytes(4, "little"), (crc32c ^ 1).to_bytes(4, "little")
    entries[b"model/wpe"] = entries[b"model/wpe"].replace(right, wrong)
    server.files["model.ckpt.index"] = table(sorted(entries.items()))
    monkeypatch.setitem(utils.PUBLISHED_SHA256["124M"], "model.ckpt.index", "0" * 64)

    load(tmp_path, "124M")
    assert (tmp_path / "124M" / DATA_FILE).read_bytes() == DATA
    assert [name for name, _ in server.requests].count(DATA_FILE) == 1
    assert not utils.verify("124M", tmp_path)


def test_the_real_124M_is_not_taken_from_a_server_that_has_another(server, tmp_path):
    """The published values are in the program, not in these tests."""
    with pytest.raises(
        ValueError, match="hparams.json is not the right file: it has 83 bytes, not 90"
    ):
        load(tmp_path, "124M")
    assert lies_in(tmp_path / "124M") == {"checkpoint"}


# ---- The whole way -------------------------------------------------------------------------


def test_the_command_line_fetches_checks_and_runs_a_model(server, tmp_path):
    """A real checkpoint, served as 774M, from the first request to the text."""
    command = [
        sys.executable,
        "gpt2.py",
        "the other",
        "--model_size=774M",
        f"--models_dir={tmp_path}",
    ]
    result = subprocess.run(
        [*command, "--n_tokens_to_generate=8"], cwd=ROOT, capture_output=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    assert lies_in(tmp_path / "774M") == set(FILES)
    again = subprocess.run(
        [*command, "--n_tokens_to_generate=8"], cwd=ROOT, capture_output=True, timeout=120
    )
    assert again.stdout == result.stdout != b"\n"
    assert len(server.requests) == 6
