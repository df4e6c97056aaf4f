"""Measures the time and the memory of gpt2.py, and of other programs that run the same model.

    python -m pip install -r requirements.txt -r benchmarks/requirements.txt
    python benchmarks/bench.py                    all rows; takes about ten minutes
    python benchmarks/bench.py --quick            each row only once, to see that everything works
    python benchmarks/bench.py --rows step batch  some groups of rows
    python benchmarks/bench.py --before FOLDER    an older version of this project takes part
    OMP_NUM_THREADS=4 python benchmarks/bench.py  with 4 threads; without this, at most 2 are used

Most rows use random weights in the shapes of 124M, the same for all contestants. All use the same
number of threads, and all but "picoGPT's way" compute in float32. Times are medians. Trust the
ratios within a row more than the times: the speed of a machine changes from minute to minute, so
the contestants of a row take turns.

README.md says how to read the tables, and what is in the other files.
"""

# ruff: noqa: E402 - the imports need the folders that are put on sys.path first
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "tools")]

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import re
import tempfile

from measuring import THREADS  # before rows, which imports NumPy
from rows import GROUPS, Setup
from targets import OURS, print_targets
from tqdm import tqdm


def facts():
    """What to know about a run: the date, the processor, the number of threads, the versions."""
    cpu = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        found = re.search("model name\\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
        cpu = found[1] if found else cpu
    versions = {"python": platform.python_version()}
    for name in ["numpy", "torch", "transformers", "llama-cpp-python", "tiktoken", "tokenizers"]:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    date = datetime.date.today().isoformat()
    return {"date": date, "cpu": cpu, "threads": THREADS, "versions": versions}


def print_rows(title, rows):
    """Prints one table: a line for each row, a column for each contestant."""
    names = list(dict.fromkeys(name for values in rows.values() for name in values))
    print(f"\n{title}\n{'':20}" + "".join(f"{name:>20}" for name in names))
    for row, values in rows.items():
        line = f"{row:20}"
        for name in names:
            cell = ""
            if name in values:
                value = values[name]
                cell = f"{value:.2f} GiB" if row.startswith("memory") else f"{1000 * value:,.1f} ms"
                cell += "" if name == OURS else f"{value / values[OURS]:7.2f}"
            line += f"{cell:>20}"
        print(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="measure once instead of 3 to 7 times")
    parser.add_argument("--json", metavar="FILE", help="write the numbers to FILE, in s and GiB")
    parser.add_argument("--rows", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument(
        "--before",
        metavar="FOLDER",
        type=pathlib.Path,
        help="the folder of an older version of this project, which then takes part",
    )
    args = parser.parse_args()
    if args.before is not None and not (args.before / "gpt2.py").is_file():
        parser.error(f"--before: there is no gpt2.py in {args.before}")

    measured = {group: {} for group in args.rows}
    with tempfile.TemporaryDirectory() as folder:
        setup = Setup(pathlib.Path(folder), args.quick, args.before)
        for group in tqdm(args.rows, unit="group", disable=None):
            for row, values in GROUPS[group](setup):
                measured[group][row] = values

    about, rows = facts(), {}
    print(f"{about['date']}, {about['cpu']}, {THREADS} threads")
    print(", ".join(f"{name} {version}" for name, version in about["versions"].items()))
    print("Behind each time: how many times gpt2.py's time it is. Behind the limit: the share of")
    print("gpt2.py's time that the matrix products alone would take.")
    for group in args.rows:
        print_rows(GROUPS[group].__doc__, measured[group])
        rows |= measured[group]
    print_targets([rows])
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(about | {"rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
