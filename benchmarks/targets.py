"""The speed and memory that the project asks of itself, and whether the benchmark reached them.

    python benchmarks/bench.py --json 1.json      and the same again for 2.json and 3.json
    python benchmarks/targets.py 1.json 2.json 3.json

The second command prints, for each target, the median of what the runs reached.
"""

import json
import pathlib
import statistics
import sys

OURS = "gpt2.py"  # the name of its column in the tables

# For each target: the row, what it is compared with, the least that is asked, and the aim. A row is
# compared with
#   another column:  the number is that column's value divided by gpt2.py's, so more is better;
#   another row:     the number is gpt2.py's value in this row divided by its value in that row;
#   nothing (""):    the number is gpt2.py's own seconds or GiB.
TARGETS = [
    ("process, 1 token", "before", ">= 1.11", ">= 1.25"),  # 0.9 and 0.8 of the older version's time
    ("memory, 40 tokens", "", "<= 0.65 GiB", "<= 0.6 GiB"),
    ("1 MB refused", "", "<= 0.3 s", ""),
    ("safetensors, start", "checkpoint", ">= 0.91", ""),  # at most 10 % slower
    ("memory, safetensors", "checkpoint", ">= 0.99", ""),  # the same memory; runs differ by 1 %
    ("prefill 128", "transformers", ">= 1.1", ">= 1.2"),
    ("prefill 512", "transformers", ">= 0.97", ">= 1.05"),
    ("prefill 1000", "transformers", ">= 0.95", ">= 1"),
    ("step at 10", "transformers", ">= 1.2", ">= 1.4"),
    ("step at 10", "llama.cpp", ">= 0.92", ">= 1"),
    ("step at 10", "limit", ">= 0.75", ">= 0.9"),
    ("step at 900", "step at 10", "<= 1.2", "<= 1.1"),
    ("step at 900", "transformers", ">= 1.1", ">= 1.3"),
    ("sampled step", "greedy step", "<= 1.06", "<= 1.03"),
    ("step of 2 rows", "transformers", ">= 0.6", ">= 0.85"),
    ("step of 4 rows", "transformers", ">= 0.6", ">= 0.85"),
    ("step of 8 rows", "transformers", ">= 0.6", ">= 0.85"),
    ("step of 16 rows", "transformers", ">= 0.6", ">= 0.85"),
    ("8 samples", "transformers", ">= 2.8", ">= 3.5"),
    ("encode, warm", "tiktoken", ">= 0.33", ">= 0.67"),  # 3 and 1.5 times tiktoken's time
    ("picoGPT's job", "picoGPT's way", ">= 20", ">= 30"),
    ("1558M, load", "", "<= 0.2 s", ""),
    ("1558M, step at 10", "limit", ">= 0.7", ""),
    ("memory, 1558M", "", "<= 6.5 GiB", ""),
]


def reached(rows, row, beside):
    """The number that a target is about, or None if it was not measured."""
    values = rows.get(row, {})
    if beside == "":
        return values.get(OURS)
    if beside in rows:
        return values[OURS] / rows[beside][OURS] if values else None
    return values[beside] / values[OURS] if beside in values else None


def meets(value, target):
    """Whether a value satisfies a target such as ">= 1.2" or "<= 0.3 s"."""
    sign, number = target.split()[:2]
    return value >= float(number) if sign == ">=" else value <= float(number)


def print_targets(runs):
    """Prints a line for each target: what was reached, what is asked, and the verdict.

    runs: a list with the rows of each run, as a dict. The median of the runs counts.
    """
    print(f"\n{'':20}{'beside':>16}{'reached':>10}{'asked':>14}{'aim':>12}")
    for row, beside, asked, aim in TARGETS:
        values = [reached(rows, row, beside) for rows in runs]
        values = [value for value in values if value is not None]
        if not values:
            continue
        value = statistics.median(values)
        verdict = "reached" if meets(value, asked) else "missed"
        verdict = "aim reached" if aim and meets(value, aim) else verdict
        print(f"{row:20}{beside:>16}{value:10.2f}{asked:>14}{aim:>12}  {verdict}")


if __name__ == "__main__":
    print_targets([json.loads(pathlib.Path(path).read_text())["rows"] for path in sys.argv[1:]])
