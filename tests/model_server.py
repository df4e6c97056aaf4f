"""A server on 127.0.0.1 that has the small test model, and can misbehave in many ways.

The fixture `server` (in conftest.py) runs it. A test plans the faults for a file:

    server.faults["vocab.bpe"] = ["500", "reset", "none"]

The first request for that file is answered with status 500. The answer to the second request breaks
off. All later requests get the last of the planned answers, here one without a fault.
"""

import contextlib
import gzip
import http.server
import os
import socket
import struct
import threading
import time
from pathlib import Path

import checkpoint
import download
import openai_files
import utils

SMALL = Path(__file__).parent / "checkpoints" / "small"
DATA_FILE = f"model.ckpt{checkpoint.DATA}"
FILES = {name: (SMALL / name).read_bytes() for name in openai_files.FILES}
DATA = FILES[DATA_FILE]


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers a request for /<size>/<file> with the next of the faults planned for that file."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        name = self.path.split("/")[-1]
        asked_from = self.headers.get("Range")
        self.server.requests.append((name, asked_from))
        self.server.logins.append(self.headers.get("Authorization"))
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
        self.server.n_sent[self.path.split("/")[-1]] += len(content)
        self.wfile.write(content)

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

    def first_third(self, content):
        """Those bytes of a body that belong to the first third of the file."""
        return content[: max(0, len(self.content) // 3 - self.start)]

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
        self.send(self.first_third(self.begin_right()))
        self.wfile.flush()
        time.sleep(0.1)  # otherwise the reset overtakes what was sent
        linger_not = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_not)
        self.connection.close()

    def send_stall(self):
        self.send(self.first_third(self.begin_right()))
        self.server.go_on.wait(20)

    def send_silence(self):
        self.server.go_on.wait(20)

    def send_short(self):
        self.send(self.first_third(self.begin_right()))

    def send_little_at_a_time(self):
        self.send(self.begin_right()[:300])

    def send_head_alone(self):
        self.begin_right()
        self.server.go_on.wait(20)

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

    def send_huge_length(self):
        self.begin(200, Content_Length=10**17)
        self.send(self.content)

    def send_no_http(self):
        self.send(b"SSH-2.0-OpenSSH\r\n")

    def send_nothing(self):
        self.begin(204)

    def send_429(self):
        self.begin(429, Content_Length=0)

    def send_429_with_a_pause(self):
        self.begin(429, Content_Length=0, Retry_After=self.server.retry_after)

    def send_408(self):
        self.begin(408, Content_Length=0)

    def send_403_to_logins(self):
        if self.headers.get("Authorization"):
            self.begin(403, Content_Length=0)
        else:
            self.send_none()

    def send_redirect(self):
        self.begin(302, Content_Length=0, Connection="close", Location=self.server.location)

    def send_circle(self):
        self.begin(302, Content_Length=0, Connection="close", Location=self.path)

    def send_drops(self):
        for start in range(0, len(content := self.begin_right()), 10000):
            self.send(content[start : start + 10000])
            time.sleep(0.05)


@contextlib.contextmanager
def running(monkeypatch):
    """A running server. GPT2_BASE_URL leads to it, and downloads have little patience."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.files = dict(FILES)
        server.faults = {}  # name -> list of answers; the last one stays
        server.requests = []  # of (name, the header Range)
        server.logins = []  # the header Authorization of each request
        server.n_sent = dict.fromkeys(FILES, 0)
        server.go_on = threading.Event()
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("GPT2_BASE_URL", f"http://127.0.0.1:{server.server_port}/models/")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
        monkeypatch.setattr(download, "PAUSES", (0.01, 0.02, 0.03))
        monkeypatch.setattr(download, "READ_TIMEOUT", 0.2)
        monkeypatch.setattr(os, "fsync", lambda file: None)  # which would take most of the time
        yield server
        server.go_on.set()
        server.shutdown()


# ---- What the tests do with it -------------------------------------------------------------


def fetch(models_dir):
    """Downloads the model as `load` does, but with a faster check. Returns its folder."""

    def check(name, part):
        if Path(part).read_bytes() != FILES[name]:
            raise ValueError("other bytes than expected")

    download.fetch(
        str(models_dir / "774M"),
        FILES,
        FILES,
        expected_size=lambda name: len(DATA) if name == DATA_FILE else None,
        check=check,
        instead="The model tiny needs no download.",
    )
    return models_dir / "774M"


def load(models_dir, size="774M"):
    """Downloads the model and loads it, as a program does."""
    return utils.load_encoder_hparams_and_params(size, models_dir)


def right_files(folder):
    """The names of the model's files that have their real names. Each file must be right."""
    names = {path.name for path in folder.glob("*") if path.name in FILES}
    for name in names:
        assert (folder / name).read_bytes() == FILES[name], name
    return names


def is_whole(folder):
    """Whether all files of the model are there, and nothing else of a download."""
    names = {path.name for path in folder.iterdir()} - {utils.CHECKED_FILE}
    return right_files(folder) == names == set(FILES)
