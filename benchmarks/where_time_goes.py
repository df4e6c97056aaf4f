"""Where the time goes: in a prompt, in one more token, and in the start of the program.

    python benchmarks/where_time_goes.py

It runs gpt2.py itself, with a timer around each of its functions: see timers.py. The timers
themselves take less than one percent. The model has random weights in the shapes of 124M, as in
bench.py. Times are medians, and percentages are shares of the sum at the foot of the column.
"""

# ruff: noqa: E402 - the imports need the folders that are put on sys.path first
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "tools")]

import measuring  # first, because it sets the number of threads that NumPy will use

ROUNDS = {"prompt": 7, "step": 50, "start": 9}

import inspect
import json
import subprocess
import tempfile
import time

import numpy as np
import timers
from made_models import SIZES_124M, random_tensors, write_openai
from rows import ENGLISH, PROMPT, ROOT

import gpt2
import utils

# The functions of gpt2.py that have a line of their own. The time of any other function counts for
# its caller.
LINES = {
    "linear": "matrix products",
    "attention": "rest of attention",
    "softmax": "softmax",
    "gelu": "gelu",
    "layer_norm": "layer norm",
    "sample": timers.SAMPLING,
}
MODEL_ORDER = [*LINES.values(), timers.REST]
START_ORDER = [timers.PYTHON, timers.NUMPY, timers.IMPORTS, timers.VOCABULARY, timers.WEIGHTS]
START_ORDER += [timers.FIRST_TOKEN]


def add_timers():
    """Puts a timer around every function of gpt2.py but `generate`, which calls the others."""
    functions = dict(inspect.getmembers(gpt2, inspect.isfunction))
    for name, function in functions.items():
        if not inspect.isgeneratorfunction(function):
            setattr(gpt2, name, timers.timed(function, LINES.get(name)))
    if LINES.keys() - functions.keys():
        sys.exit(f"gpt2.py has no function {', '.join(LINES.keys() - functions.keys())}")


def table_of_next(steps):
    """The table of the next token that `generate` makes: dict line -> seconds."""
    timers.count()
    timers.spent.clear()
    next(steps)
    timers.count()
    return dict(timers.spent)


def medians(tables):
    """The median of each line of many tables."""
    lines = {line for table in tables for line in table}
    return measuring.medians({line: [table.get(line, 0.0) for table in tables] for line in lines})


def measure_model(params, ids):
    """Three tables: for the first token after a prompt of 512, and for later ones at 10 and 900."""

    def generate(n):
        rngs = [np.random.default_rng(0)]
        sampling = {"temperature": 0.8, "top_k": 40, "top_p": 0.9}
        return gpt2.generate(ids[:n], params, SIZES_124M["n_head"], 100, rngs, **sampling)

    prompts = [table_of_next(generate(512)) for _ in range(ROUNDS["prompt"] + 1)]
    columns = {"prompt of 512": medians(prompts[1:])}
    for n in [10, 900]:
        steps = generate(n)
        next(steps)
        columns[f"step at {n}"] = medians([table_of_next(steps) for _ in range(ROUNDS["step"])])
    return columns


def measure_start(folder):
    """The table of a process that makes one token and ends."""
    words = [str(ROOT / "gpt2.py"), "--model_size", "openai", "--models_dir", str(folder)]
    words += ["--n_tokens_to_generate", "1", f"--prompt={PROMPT}"]
    tables = []
    for _ in range(ROUNDS["start"] + 1):
        start = time.perf_counter()
        command = [sys.executable, str(HERE / "timers.py"), *words]
        done = subprocess.run(command, capture_output=True, encoding="utf-8")
        seconds = time.perf_counter() - start
        if done.returncode != 0:
            sys.exit(f"gpt2.py failed: {done.stderr}")
        table = json.loads(done.stderr.splitlines()[-1])
        tables.append(table | {timers.PYTHON: seconds - sum(table.values())})
    return {"start": medians(tables[1:])}


def print_table(columns, order):
    """Prints a line for each part, with its milliseconds and its share of the column."""
    print(f"\n{'':32}" + "".join(f"{name:>20}" for name in columns))
    sums = {name: sum(table.values()) for name, table in columns.items()}
    for line in order:
        cells = ""
        for name, table in columns.items():
            seconds = table.get(line, 0.0)
            cells += f"{1000 * seconds:10.1f} ms{seconds / sums[name]:6.0%} "
        print(f"{line:32}{cells}")
    print(f"{'sum':32}" + "".join(f"{1000 * seconds:10.1f} ms       " for seconds in sums.values()))


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_openai(folder / "openai", SIZES_124M, random_tensors(SIZES_124M))
        encoder, _, params = utils.load_encoder_hparams_and_params("openai", str(folder))
        start = measure_start(folder)
        add_timers()
        model = measure_model(params, encoder.encode(ENGLISH))
    print(f"{measuring.THREADS} threads, NumPy {np.__version__}. The tokens are sampled.")
    print_table(model, MODEL_ORDER)
    print_table(start, START_ORDER)


if __name__ == "__main__":
    main()
