"""A download ends in the right file or in none, soon, and with one message that says what to do.

The server that misbehaves here is in model_server.py.
"""

import base64
import email.utils
import os
import socket
import time

import pytest
import requests
import urllib3
from model_server import DATA, DATA_FILE, FILES, fetch, is_whole, load, right_files

import download
import openai_files
import utils

# ---- The faults ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vocab.bpe", "model.ckpt.index", DATA_FILE])
@pytest.mark.parametrize(
    "faults",
    [
        ["none"],
        ["500", "none"],
        ["500", "500", "500", "none"],
        ["429", "none"],
        ["short", "408", "429", "none"],
        ["reset", "none"],
        ["reset", "reset", "500", "none"],
        ["stall", "none"],
        ["silence", "none"],
        ["head_alone", "none"],
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
    """After the fault, the rest of the file is downloaded, or the whole file once more."""
    server.faults[name] = [*faults]
    fetch(tmp_path)
    assert server.faults[name] == faults[-1:]  # all of them were played
    assert is_whole(tmp_path / "774M")


def test_what_was_downloaded_can_be_loaded(server, tmp_path):
    """After two faults in every file, the model passes the program's own checks and is loaded."""
    server.faults = {name: ["500", "short", "none"] for name in FILES}
    encoder, hparams, params = load(tmp_path)
    assert is_whole(tmp_path / "774M")
    assert params["wte"].shape == (hparams["n_vocab"], hparams["n_embd"])


LASTING = {
    "404": (OSError, "404"),
    "429": (OSError, "429 Too Many Requests"),
    "500": (OSError, "500"),
    "reset": (OSError, "bytes"),
    "stall": (OSError, "timed out"),
    "silence": (OSError, "timed out"),
    "head_alone": (OSError, "timed out after 0 of"),
    "short": (OSError, "bytes"),
    "nothing": (OSError, "204"),
    "circle": (OSError, "redirects"),
    "long": (ValueError, "not the right file"),
    "long_and_say_so": (ValueError, "not the right file"),
    "wrong_bytes": (ValueError, "not the right file"),
    "portal": (ValueError, "not the right file"),
    "portal_without_length": (ValueError, "not the right file: it is a web page"),
    "huge_length": ((OSError, ValueError), "100(,000){5} bytes"),
    "no_http": (OSError, "the answer is not HTTP: SSH-2.0"),
}


@pytest.mark.parametrize("name", ["hparams.json", "model.ckpt.index", DATA_FILE])
@pytest.mark.parametrize("fault", LASTING)
def test_a_fault_that_stays_ends_in_no_file(name, fault, server, tmp_path, monkeypatch):
    """One line names the address, what happened and what to do. The files before it are kept."""
    monkeypatch.setattr(download, "PAUSES", (0.01,))
    expected_error, what = LASTING[fault]
    server.faults[name] = [fault]
    with pytest.raises(expected_error, match=what) as error:
        fetch(tmp_path)
    message = str(error.value)
    assert message.endswith(" yourself. The model tiny needs no download.")
    for part in (f"/models/774M/{name}", "GPT2_BASE_URL", str(tmp_path / "774M")):
        assert part in message
    assert "\n" not in message
    names = openai_files.FILES
    assert right_files(tmp_path / "774M") == set(names[: names.index(name)])

    server.faults.clear()  # and when it has gone, the model is downloaded
    fetch(tmp_path)
    assert is_whole(tmp_path / "774M")


def test_a_short_body_without_a_length_is_noticed(server, tmp_path):
    """The index tells how long the data file is, so the missing bytes are downloaded."""
    server.faults[DATA_FILE] = ["short_without_length", "none"]
    load(tmp_path)
    assert [asked for name, asked in server.requests if name == DATA_FILE][0] is None
    assert server.n_sent[DATA_FILE] == len(DATA)
    assert is_whole(tmp_path / "774M")


def test_a_part_with_wrong_bytes_is_not_kept(server, tmp_path):
    """Otherwise every later run would continue the wrong part."""
    server.faults[DATA_FILE] = ["short", "bytes_of_another_range"]
    with pytest.raises(ValueError, match="does not match its checksum"):
        load(tmp_path)
    assert not list((tmp_path / "774M").glob("*.part"))


@pytest.mark.skipif(not hasattr(urllib3.HTTPResponse, "read1"), reason="urllib3 is before 2.2")
@pytest.mark.parametrize("fault", ["short", "reset", "stall"])
def test_a_message_says_how_many_bytes_came(fault, server, tmp_path):
    """All bytes that came before the fault are counted and kept."""
    server.files["checkpoint"] = bytes(1200)
    server.faults["checkpoint"] = [fault]
    with pytest.raises(OSError, match="after 400 of 1,200 bytes"):
        fetch(tmp_path)
    assert (tmp_path / "774M" / "checkpoint.part").read_bytes() == bytes(400)


# ---- Continuing ----------------------------------------------------------------------------


@pytest.mark.parametrize("n_bytes", [1, 1000, len(DATA) - 1])
def test_a_part_is_continued(n_bytes, server, tmp_path):
    """The server is asked only for the missing bytes, and sends only these."""
    fetch(tmp_path)
    folder = tmp_path / "774M"
    (folder / DATA_FILE).unlink()
    (folder / f"{DATA_FILE}.part").write_bytes(DATA[:n_bytes])
    server.requests.clear()
    server.n_sent[DATA_FILE] = 0
    fetch(tmp_path)
    assert server.requests == [(DATA_FILE, f"bytes={n_bytes}-")]
    assert server.n_sent[DATA_FILE] == len(DATA) - n_bytes
    assert is_whole(folder)


@pytest.mark.parametrize("name", ["vocab.bpe", DATA_FILE])
def test_a_part_that_is_whole_is_only_checked(name, server, tmp_path):
    """A run may be killed between the last byte and the check.

    The next run sees that no byte is missing, by the size in the index or because the server
    answers 416.
    """
    folder = tmp_path / "774M"
    folder.mkdir()
    (folder / f"{name}.part").write_bytes(FILES[name])
    fetch(tmp_path)
    assert server.n_sent[name] == 0
    assert is_whole(folder)


@pytest.mark.parametrize("part", [DATA + b"more", bytes(len(DATA)), b"<html>" * 99], ids=len)
def test_a_part_that_is_wrong_never_becomes_the_file(part, server, tmp_path):
    """The part is too long, all zeros or a web page. The file is then downloaded from its start."""
    folder = tmp_path / "774M"
    folder.mkdir()
    (folder / f"{DATA_FILE}.part").write_bytes(part)
    fetch(tmp_path)
    assert is_whole(folder)


@pytest.mark.parametrize("fault", ["portal_without_length", "short_without_length", "500"])
def test_a_part_outlives_an_answer_that_is_not_the_rest(fault, server, tmp_path):
    """Neither a login page, nor a server without ranges, nor an error costs the bytes we have."""
    part = tmp_path / "774M" / f"{DATA_FILE}.part"
    part.parent.mkdir()
    part.write_bytes(DATA[:1000])
    server.faults[DATA_FILE] = [fault]
    with pytest.raises((OSError, ValueError)):
        fetch(tmp_path)
    content = part.read_bytes()
    assert len(content) >= 1000 and DATA.startswith(content)


def test_a_connection_that_gives_little_at_a_time_is_enough(server, tmp_path):
    """The bytes that came before each break are kept, even if they are few."""
    name = "model.ckpt.index"
    server.faults[name] = ["little_at_a_time"]
    fetch(tmp_path)
    assert server.n_sent[name] == len(FILES[name])
    assert is_whole(tmp_path / "774M")


# ---- Order ---------------------------------------------------------------------------------


def test_the_weights_come_last(server, tmp_path):
    """All other files come before them, so a prompt can be refused in between."""
    _, hparams = utils.load_encoder_and_hparams("774M", tmp_path)
    assert [name for name, _ in server.requests] == list(openai_files.FILES[:-1])
    utils.load_params("774M", tmp_path, hparams)
    assert [name for name, _ in server.requests] == list(openai_files.FILES)


def test_only_what_is_missing_is_downloaded(server, tmp_path):
    """If one file is missing, only this file is asked for. If none is, the server is not asked."""
    load(tmp_path)
    server.requests.clear()
    load(tmp_path)
    assert server.requests == []
    (tmp_path / "774M" / "encoder.json").unlink()
    load(tmp_path)
    assert server.requests == [("encoder.json", None)]


# ---- Patience ------------------------------------------------------------------------------


class Clock:
    """A clock that moves only while the program waits."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "sleep", self.wait)

    def wait(self, seconds):
        self.now += seconds


def test_a_host_that_refuses_is_given_up_within_ten_seconds(tmp_path, monkeypatch):
    """The message is one line, with the address, what happened and what to do."""
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
    assert message.startswith(f"cannot download {address}/774M/checkpoint: ")
    assert f"put the files ({', '.join(openai_files.FILES)}) into {tmp_path / '774M'}" in message
    assert f"correct or unset GPT2_BASE_URL, which is {address}," in message
    assert message.endswith("The model tiny needs no download.")
    assert len(message) - 2 * len(address) - len(str(tmp_path)) < 340


ANSWER = requests.Response()  # stands for the head of an answer, after which no body comes


@pytest.mark.parametrize(
    "seconds, cause, patience",
    [
        (0, requests.ConnectionError("Name or service not known"), 10),
        (download.CONNECT_TIMEOUT, requests.ConnectTimeout("timed out"), 10),
        (download.READ_TIMEOUT, requests.ReadTimeout("no answer"), 25),
        (download.READ_TIMEOUT, requests.ConnectionError("no body", response=ANSWER), 25),
    ],
    ids=["name", "route", "answer", "body"],
)
def test_a_server_from_which_nothing_comes_is_given_up(
    seconds, cause, patience, tmp_path, monkeypatch
):
    """`patience` is the longest time for all tries together. Each try takes as long as it may."""
    clock = Clock(monkeypatch)

    def get(session, url, **options):
        clock.wait(seconds)
        raise cause

    monkeypatch.setattr(requests.Session, "get", get)
    with pytest.raises(OSError, match=str(cause)):
        fetch(tmp_path)
    assert 0 < clock.now <= patience


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

    def clear(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


def test_a_connection_that_breaks_often_but_brings_bytes_is_not_given_up(tmp_path, monkeypatch):
    """Whenever new bytes have come, all tries are available again."""
    part = tmp_path / "part"

    def receive(url, login, part, by_range, size, bar):
        assert by_range
        with open(part, "ab") as file:
            file.write(b"more")
        if download.size_of(part) <= 400:
            raise requests.ConnectionError("broke off")

    Clock(monkeypatch)
    monkeypatch.setattr(download, "receive", receive)
    download.complete("http://127.0.0.1", None, part, None, Bar(total=None, initial=0))
    assert download.size_of(part) == 404


@pytest.mark.parametrize(
    "retry_after, seconds",
    [("7", 7), ("0", 1), ("100000", 60), ("soon", 1), ("-5", 1), ("9" * 5000, 1)]
    + [("in half a minute", 30), ("Wed, 21 Oct 2015 07:28:00 GMT", 1)],
    ids=lambda value: str(value)[:30],
)
def test_a_busy_server_gets_the_pause_that_it_asks_for(
    retry_after, seconds, server, tmp_path, monkeypatch, capsys
):
    """The server asks with a number or a date, and gets a minute at most.

    Then the part is continued.
    """
    if retry_after == "in half a minute":
        retry_after = email.utils.formatdate(time.time() + 30, usegmt=True)
    clock = Clock(monkeypatch)
    monkeypatch.setattr(download, "PAUSES", (1, 1))
    server.retry_after = retry_after
    server.faults[DATA_FILE] = ["short", "429_with_a_pause", "none"]
    fetch(tmp_path)
    assert abs(clock.now - (1 + seconds)) <= 2  # a date is cut to whole seconds
    assert server.n_sent[DATA_FILE] == len(DATA)
    assert "429 Too Many Requests); trying again in" in capsys.readouterr().err


# ---- Mirrors, logins and proxies -----------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    ["nowhere", "127.0.0.1:1", "localhost:8000", "ftp://x", "http://", "http://[", "http://a..b"]
    + ["http://:80/", "http://x:port", "http://x:0", "http://" + "x" * 64, "http://x y/"]
    + ["http://x/?models", "http://x/#models", "file:///tmp", r"http:\\x", "http:/x", "https//x"],
)
def test_a_mirror_that_is_no_address_is_refused_before_anything(address, tmp_path, monkeypatch):
    """The error names GPT2_BASE_URL and its value, and nothing is written."""
    monkeypatch.setenv("GPT2_BASE_URL", address)
    with pytest.raises(ValueError, match="^GPT2_BASE_URL is '.*', not the address of a mirror"):
        fetch(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "address",
    ["http://me:secret@a..b", "http://me:secret@", "http://me:sec/secret@x:port", "me:secret@x"]
    + ["ftp://me:secret@x", "http://me:#secret@x", "http://me:a secret@x", "http://x/?key=secret"],
)
def test_the_password_of_a_malformed_address_is_not_shown(address, tmp_path, monkeypatch):
    """The error shows GPT2_BASE_URL without the password, however the address is malformed."""
    monkeypatch.setenv("GPT2_BASE_URL", address)
    with pytest.raises(ValueError, match="GPT2_BASE_URL") as error:
        fetch(tmp_path)
    assert "secret" not in str(error.value)


@pytest.fixture
def login_in_url(server, monkeypatch):
    """Puts a user and a password into GPT2_BASE_URL."""
    address = f"us%40er:p%C3%A4ss@127.0.0.1:{server.server_port}"
    monkeypatch.setenv("GPT2_BASE_URL", f"http://{address}/models")


def test_a_login_in_the_address_is_used(server, tmp_path, login_in_url):
    """The server gets user and password decoded: %40 in an address stands for @."""
    fetch(tmp_path)
    assert set(server.logins) == {f"Basic {base64.b64encode('us@er:päss'.encode()).decode()}"}


@pytest.mark.parametrize("fault", ["404", "silence", "short", "portal", "circle"])
def test_a_password_is_never_printed(fault, server, tmp_path, login_in_url, capsys):
    """Errors and notes show the address without user and password."""
    server.faults["checkpoint"] = [fault]
    with pytest.raises((OSError, ValueError)) as error:
        fetch(tmp_path)
    text = str(error.value) + "".join(capsys.readouterr())
    assert f"http://127.0.0.1:{server.server_port}/models/774M/checkpoint" in text
    for secret in ("p%C3%A4ss", "päss", "us%40er", "us@er"):
        assert secret not in text


@pytest.mark.parametrize(
    "text",
    ["Unable to use proxy http://me:secret@proxy:1/", "http://me:secret@a and //me:secret@b"],
)
def test_the_errors_of_packages_are_printed_without_passwords(text):
    """requests quotes the addresses of proxies and redirections, with the passwords in them."""
    try:
        try:
            raise OSError(text)
        except OSError as error:
            raise requests.ConnectionError("two\nlines") from error
    except requests.ConnectionError as error:
        assert "secret" not in download.root_cause(error)


@pytest.mark.parametrize("fault", ["none", "redirect"])
def test_netrc_is_not_used(fault, server, tmp_path, monkeypatch):
    """OpenAI's server refuses a request with a login.

    So netrc is not used, not even after a redirection.
    """
    (tmp_path / "netrc").write_text("default login a password b\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    server.faults = dict.fromkeys(FILES, ["403_to_logins"])
    server.location = f"http://localhost:{server.server_port}/models/774M/hparams.json"
    server.faults["hparams.json"] = [fault, "403_to_logins"]
    fetch(tmp_path)
    assert set(server.logins) == {None}


def test_a_proxy_is_used(server, tmp_path, monkeypatch):
    """The mirror here does not exist.

    Only the proxy that the environment names can have answered.
    """
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("GPT2_BASE_URL", "http://mirror.invalid/models")
    fetch(tmp_path)
    assert is_whole(tmp_path / "774M")


def test_missing_certificates_are_one_message(server, tmp_path, monkeypatch):
    """requests then raises a plain OSError.

    The message must not take it for an error of the disk.
    """
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", os.devnull + "/none")
    monkeypatch.setenv("GPT2_BASE_URL", f"https://127.0.0.1:{server.server_port}")
    with pytest.raises(OSError, match="cannot download https:.*certificate bundle"):
        fetch(tmp_path)
