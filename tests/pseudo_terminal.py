"""A pseudo-terminal to start gpt2.py in, to type into and to read from.

The fixtures `start_terminal`, `start` and `model` (in conftest.py) use it.
"""

import fcntl
import functools
import os
import pty
import select
import socket
import struct
import subprocess
import sys
import termios

import pytest
from conftest import GPT2_PY, ROOT, TINY

QUESTION = "Model prompt >>> "
CTRL_C, CTRL_D = "\x03", "\x04"

# Makes standard input the terminal of the process, so that Ctrl-C reaches it; then starts it.
LAUNCH = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""

# gpt2.py with a model that writes one text over and over, one byte per token. Before each token, it
# sends "?" to the test and waits for an answer. So the test knows how far the model has come.
SCRIPTED = """
import socket, sys
folder, line, text = sys.argv[1], socket.socket(fileno=int(sys.argv[2])), sys.argv[3].encode()
del sys.argv[1:4]
sys.path.insert(0, folder)
import console
console.prepare()
import numpy as np
import cli, encoder, gpt2, model_names
byte_ids = encoder.get_encoder("tiny", model_names.MODELS_DIR).ids

def scripted(inputs, wte, cache=None, **rest):
    line.send(b"?")
    line.recv(1)
    n_said = cache or 0
    logits = np.zeros((len(inputs), len(wte)), dtype=np.float32)
    logits[:, byte_ids[text[n_said % len(text)].to_bytes(1, "big")]] = 1
    return logits, n_said + 1

gpt2.gpt2 = scripted
cli.run(gpt2.main)
"""


class Terminal:
    """A process whose standard streams are a pseudo-terminal, or a pipe where one is given."""

    def __init__(self, arguments, stdout=None, stderr=None, pass_fds=(), **variables):
        self.master, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, sys.executable, *arguments],
            stdin=terminal,
            stdout=stdout or terminal,
            stderr=stderr or terminal,
            env={**os.environ, "TERM": "dumb", "PYTHONIOENCODING": "utf-8", **variables},
            start_new_session=True,
            pass_fds=pass_fds,
        )
        os.close(terminal)
        self.unread = b""

    def type(self, text):
        """Types a text. "\\n" is the Enter key."""
        os.write(self.master, text.encode("utf-8", "surrogateescape"))

    def read(self, seconds=60):
        """Adds what is printed next to self.unread. Returns False at the end."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            pytest.fail(f"nothing more came after {self.unread!r}")
        try:
            data = os.read(self.master, 65536)
        except OSError:  # on Linux, this means that the other side was closed
            data = b""
        self.unread += data
        return data != b""

    def read_until(self, text):
        """What is printed up to the end of `text`. Fails if `text` does not come."""
        wanted = text.replace("\n", "\r\n").encode()
        while wanted not in self.unread:
            if not self.read():
                pytest.fail(f"{text!r} did not come, but {self.unread!r}")
        end = self.unread.index(wanted) + len(wanted)
        printed, self.unread = self.unread[:end], self.unread[end:]
        return as_text(printed)

    def read_to_end(self):
        """The rest of what is printed, and the exit status."""
        while self.read():
            pass
        return as_text(self.unread), self.process.wait(60)


def as_text(printed):
    """Bytes that a terminal got, as the text that was printed: it makes \\r\\n of \\n."""
    return printed.decode("utf-8", "replace").replace("\r\n", "\n")


class ScriptedModel:
    """Starts gpt2.py with the model of SCRIPTED, and tells it when to go on."""

    def __init__(self, start_terminal):
        self.start_terminal = start_terminal
        self.line, self.far_end = socket.socketpair()
        self.line.settimeout(60)

    def start(self, text, *words, **streams):
        """A terminal in which the model writes `text` over and over."""
        fd = self.far_end.fileno()
        arguments = ["-c", SCRIPTED, str(ROOT), str(fd), text, *words, *TINY]
        return self.start_terminal(arguments, pass_fds=[fd], **streams)

    def let_say(self, n):
        """Waits until the model asks to write a token, and allows it, n times."""
        for _ in range(n):
            self.wait_until_it_asks()
            self.line.send(b"!")

    def wait_until_it_asks(self):
        assert self.line.recv(1) == b"?"


@functools.cache
def piped(*words):
    """What gpt2.py prints for these words if there is no terminal: (stdout, stderr)."""
    command = [sys.executable, GPT2_PY, *words]
    result = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    return result.stdout.decode(), result.stderr.decode()
