"""What the benchmark measures: one function for each group of rows, and what they all need.

Each of these functions yields its rows one by one. A row is its name and what was measured, a dict
contestant -> number. The number is in seconds, or in GiB if the name begins with "memory". The
docstring of the function is the title of its table.
"""

import importlib.util
import pathlib
import pydoc_data.topics
import sys
import time
from functools import partial

import numpy as np
import picogpt
from made_models import SIZES_124M, SIZES_1558M, random_tensors, write_huggingface, write_openai
from measuring import medians, race, race_processes, run_process
from peers import (
    Limit,
    LlamaCpp,
    Ours,
    Transformers,
    installed,
    new_encoder,
    new_tiktoken,
    new_tokenizers,
)
from targets import OURS

import gpt2
import utils

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROMPT = "Alan Turing theorized that computers would one day become"  # 10 tokens
ENGLISH = "\n".join(pydoc_data.topics.topics.values())  # Python's manual, 465 KB, comes with Python


class Setup:
    """The models and the contestants. Most rows use most of them, so they are made once."""

    def __init__(self, folder, quick=False, before=None):
        """before: the folder of an older version of this project, or None.

        If it is given, this version is a contestant too.
        """
        self.folder = folder
        self.before = before
        self.rounds = 1 if quick else 7
        self.few_rounds = 1 if quick else 3  # for rows that take many seconds

        tensors = random_tensors(SIZES_124M)
        write_openai(folder / "openai", SIZES_124M, tensors)
        write_huggingface(folder / "huggingface", SIZES_124M, tensors)
        self.encoder, _, self.params = utils.load_encoder_hparams_and_params("openai", str(folder))
        self.ids = self.encoder.encode(ENGLISH)
        self.limit = Limit(self.params)

        self.ours = Ours(gpt2, self.params, SIZES_124M["n_head"])
        self.peers = {OURS: self.ours}
        if before is not None:
            module = import_file("gpt2_before", before / "gpt2.py")
            self.peers["before"] = Ours(module, self.params, SIZES_124M["n_head"])
        if installed("torch", "transformers"):
            self.peers["transformers"] = Transformers(folder / "huggingface")
        if installed("llama_cpp", "gguf"):
            self.peers["llama.cpp"] = LlamaCpp(tensors, folder / "model.gguf")
        self.check_logits()

    def check_logits(self):
        """Ends the benchmark if the contestants do not compute the same logits."""
        logits = {name: peer.forward([self.ids[:10]]) for name, peer in self.peers.items()}
        for name in self.peers:
            difference = np.abs(logits[name] - logits[OURS]).max()
            # llama.cpp differs most, because it looks up gelu in a table in half precision.
            if not difference < 0.02:
                sys.exit(f"{name} computes other logits: they differ by {difference}")

    def command(self, model, n_tokens, prompt=None, root=ROOT, options=""):
        """The words after `python` that run gpt2.py. If prompt is None, it reads a piped prompt."""
        words = [str(root / "gpt2.py"), "--model_size", model, "--models_dir", str(self.folder)]
        words += ["--n_tokens_to_generate", str(n_tokens), *options.split()]
        return words if prompt is None else [*words, f"--prompt={prompt}"]

    def roots(self):
        """The folders of gpt2.py and of the older one, if it is given: dict name -> path."""
        return {OURS: ROOT} if self.before is None else {OURS: ROOT, "before": self.before}


def import_file(name, path):
    """Imports a file as a module with this name, and returns the module."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- Processes -----------------------------------------------------------------------------


def process_rows(setup):
    """Whole processes, from start to end, with their output going into a pipe."""
    ids = setup.encoder.encode(PROMPT)
    for row, n, which in [("process, 1 token", 1, 0), ("memory, 40 tokens", 40, 1)]:
        text = setup.encoder.decode(setup.ours.generate(ids, n)) + "\n"
        processes = {}
        for name, peer in setup.peers.items():
            if name in setup.roots():
                words = setup.command("openai", n, PROMPT, setup.roots()[name])
                processes[name] = partial(run_process, words, text)
            else:
                words = peer.command(PROMPT, n)
                processes[name] = partial(run_process, words)
        yield row, race_processes(processes, setup.few_rounds)[which]


def refused_rows(setup):
    """A whole process that gets a prompt of 1 MB, which is far too long, and refuses it."""
    text = (3 * ENGLISH)[: 10**6]
    processes = {}
    for name, root in setup.roots().items():
        words = setup.command("openai", 1, root=root)
        processes[name] = partial(run_process, words, "", text, status=2)
    yield "1 MB refused", race_processes(processes, setup.few_rounds)[0]


def safetensors_rows(setup):
    """gpt2.py with a safetensors file, and with the same weights in a TensorFlow checkpoint."""
    # The first use checks the weights, which should not be measured.
    utils.load_encoder_hparams_and_params("huggingface", str(setup.folder))
    ids = setup.encoder.encode(PROMPT)
    for row, n, which in [("safetensors, start", 1, 0), ("memory, safetensors", 40, 1)]:
        text = setup.encoder.decode(setup.ours.generate(ids, n)) + "\n"
        processes = {}
        for name, model in [(OURS, "huggingface"), ("checkpoint", "openai")]:
            words = setup.command(model, n, PROMPT)
            processes[name] = partial(run_process, words, text)
        yield row, race_processes(processes, setup.rounds)[which]


def sample_rows(setup):
    """8 samples of 16 tokens after 428. gpt2.py: the whole process. transformers: only generate."""
    ids = setup.ids[:428]
    rngs = [np.random.default_rng(seed) for seed in np.random.SeedSequence(0).spawn(8)]
    sampling = {"temperature": 1.0, "top_k": 40}
    steps = gpt2.generate(ids, setup.params, setup.ours.n_head, 16, rngs, **sampling)
    texts = [setup.encoder.decode(row) for row in zip(*steps)]
    ruler = "=" * 40
    expected = "".join(f"{ruler} SAMPLE {i + 1} {ruler}\n{text}\n" for i, text in enumerate(texts))

    contestants = {}
    prompt, options = setup.encoder.decode(ids), "--nsamples 8 --temperature 1 --top_k 40 --seed 0"
    for name, root in setup.roots().items():
        words = setup.command("openai", 16, prompt, root, options)
        printed = expected if name == OURS else None  # an older version may draw other tokens
        contestants[name] = None, partial(run_process, words, printed)
    if "transformers" in setup.peers:
        samples = setup.peers["transformers"].samples
        contestants["transformers"] = None, partial(samples, ids, 8, 16)
    yield "8 samples", race(contestants, setup.few_rounds, warm_up=False)


# ---- The model -----------------------------------------------------------------------------


def prefill_rows(setup):
    """Reading a prompt of 16, 128, 512 or 1000 tokens."""
    for n in [16, 128, 512, 1000]:
        contestants = {name: peer.prefill(setup.ids[:n]) for name, peer in setup.peers.items()}
        yield f"prefill {n}", race(contestants | setup.limit.prefill(n), setup.rounds)


def race_steps(setup, peers, cases):
    """Yields a row for each case. All cases are in one race, so that rows can be compared.

    peers: the names of the programs that take part. cases: dict name of a row -> (ids, B).
    """
    contestants = {}
    for row, (ids, B) in cases.items():
        steps = {name: setup.peers[name].step(ids, B) for name in peers} | setup.limit.step(B)
        contestants |= {(row, name): step for name, step in steps.items()}
    times = race(contestants, setup.rounds, calls=7)
    for row in cases:
        values = {name: times[row, name] for name in peers}
        yield row, values | {"limit": min(times[row, "one by one"], times[row, "at once"])}


def step_rows(setup):
    """One more token after 10, 250 or 900 tokens."""
    cases = {f"step at {n}": (setup.ids[:n], 1) for n in [10, 250, 900]}
    yield from race_steps(setup, list(setup.peers), cases)


def batch_rows(setup):
    """One more token in each of 1, 2, 4, 8 or 16 samples, after 10 tokens."""
    peers = [name for name in setup.peers if name != "llama.cpp"]
    cases = {f"step of {B} rows": (setup.ids[:10], B) for B in [1, 2, 4, 8, 16]}
    yield from race_steps(setup, peers, cases)


def sampling_rows(setup):
    """One more token after 10, the likeliest or drawn: temperature 0.8, top_k 40, top_p 0.9."""
    rows = {
        "greedy step": {"temperature": 0.0},
        "sampled step": {"temperature": 0.8, "top_k": 40, "top_p": 0.9},
    }
    contestants = {
        (row, name): setup.peers[name].step_and_choose(setup.ids[:10], **sampling)
        for row, sampling in rows.items()
        for name in setup.roots()
    }
    times = race(contestants, setup.rounds, calls=20)
    for row in rows:
        yield row, {name: times[row, name] for name in setup.roots()}


def growth_rows(setup):
    """20, 40 or 80 tokens after 10, with the cache, or with the whole text computed each time."""
    ids = setup.ids[:10]
    for n in [20, 40, 80]:
        contestants = {
            OURS: (None, lambda: setup.ours.generate(ids, n)),
            "no cache": (None, lambda: setup.ours.generate_without_cache(ids, n)),
        }
        yield f"{n} tokens", race(contestants, setup.few_rounds, warm_up=False)


def picogpt_rows(setup):
    """40 tokens after 10, by gpt2.py, and as picoGPT makes them: without a cache, in float64."""
    ids, ours = setup.ids[:10], setup.ours
    texts = {}

    def run_ours():
        texts["ours"] = ours.generate(ids, 40)

    def run_picogpt():
        texts["picoGPT"] = picogpt.generate(ids, ours.params, ours.n_head, 40)

    contestants = {OURS: (None, run_ours), "picoGPT's way": (None, run_picogpt)}
    yield "picoGPT's job", race(contestants, setup.few_rounds, warm_up=False)
    assert texts["picoGPT"] == texts["ours"]


def largest_rows(setup):
    """A model in the shapes of 1558M, 6.2 GB. All weights are 0, so the disk holds none of them."""
    write_openai(setup.folder / "largest", SIZES_1558M)

    def load():
        return utils.load_params("largest", str(setup.folder), SIZES_1558M)

    yield "1558M, load", race({OURS: (None, load)}, setup.rounds)

    params = load()
    ours = Ours(gpt2, params, SIZES_1558M["n_head"]).step(setup.ids[:10], 1)
    limit = Limit(params).step(1)["at once"]
    yield "1558M, step at 10", race({OURS: ours, "limit": limit}, setup.few_rounds, calls=3)

    # All logits are equal, so the likeliest token is the first one of the vocabulary, "!".
    words = setup.command("largest", 2, PROMPT)
    yield "memory, 1558M", {OURS: run_process(words, "!!\n")[1]}


# ---- The tokenizer -------------------------------------------------------------------------


def text_rows(setup):
    """465 KB of English to ids and back. Cold: with a tokenizer that has just been made."""
    makers = {OURS: new_encoder}
    if installed("tiktoken"):
        makers["tiktoken"] = new_tiktoken
    if installed("tokenizers"):
        makers["tokenizers"] = new_tokenizers

    rows = ["encode, cold", "decode, cold", "encode, warm", "decode, warm"]
    measured = {row: {name: [] for name in makers} for row in rows}
    for _ in range(setup.rounds):
        for name, make in makers.items():
            encode, decode = make(setup.folder / "openai")
            for row in rows:
                start = time.perf_counter()
                result = encode(ENGLISH) if row.startswith("encode") else decode(setup.ids)
                measured[row][name].append(time.perf_counter() - start)
                assert result == (setup.ids if row.startswith("encode") else ENGLISH)
    for row in rows:
        yield row, medians(measured[row])


GROUPS = {
    "process": process_rows,
    "refused": refused_rows,
    "safetensors": safetensors_rows,
    "prefill": prefill_rows,
    "step": step_rows,
    "batch": batch_rows,
    "sampling": sampling_rows,
    "samples": sample_rows,
    "text": text_rows,
    "growth": growth_rows,
    "picogpt": picogpt_rows,
    "largest": largest_rows,
}
