"""How the benchmark measures: functions that take turns, and whole processes.

Import this module before NumPy, PyTorch or llama.cpp. They read the number of threads from the
environment, and they do so once, when they are imported.
"""

import os
import statistics
import subprocess
import sys
import time

THREADS = int(os.environ.get("OMP_NUM_THREADS", min(2, os.cpu_count())))
for library in ["OMP", "OPENBLAS", "MKL"]:
    os.environ[f"{library}_NUM_THREADS"] = str(THREADS)
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"


def medians(measured):
    return {name: statistics.median(values) for name, values in measured.items()}


def race(contestants, rounds, calls=1, warm_up=True):
    """The median time of one call of each contestant, in seconds: a dict name -> seconds.

    contestants: dict name -> (prepare, run). prepare may be None.
    The contestants take turns, because the speed of a machine changes from minute to minute. A
    turn is: call prepare(), call run() once without counting it (if warm_up), then time `calls`
    calls of run(). Every contestant has `rounds` turns.
    """
    seconds = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, (prepare, run) in contestants.items():
            time.sleep(0.1)  # the threads of the previous contestant keep a core busy for a while
            if prepare is not None:
                prepare()
            if warm_up:
                run()
            for _ in range(calls):
                start = time.perf_counter()
                run()
                seconds[name].append(time.perf_counter() - start)
    return medians(seconds)


# For a moment, a new process shares the memory of its parent, and Linux counts this memory towards
# the peak of the new process. The benchmark itself uses much memory. So it starts a small process
# first, and this small process starts the one that is measured.
MEASURE = """
import os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen([sys.executable, *sys.argv[1:]])
_, status, usage = os.wait4(process.pid, 0)
seconds = time.perf_counter() - start
gib = usage.ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)
print(f"{seconds} {gib}")
sys.exit(os.waitstatus_to_exitcode(status))
"""


def run_process(words, expected=None, piped="", status=0):
    """Runs `python words...` to its end. Returns (seconds, peak resident memory in GiB).

    piped: the text for its standard input.
    The benchmark stops if the process ends with another exit status than `status`, or prints
    something else than `expected`, because then it has not done the work that should be measured.
    (If `expected` is None, the process may print anything.)
    """
    command = [sys.executable, "-c", MEASURE, *words]
    done = subprocess.run(command, input=piped, capture_output=True, encoding="utf-8")
    *lines, report = done.stdout.splitlines(keepends=True)
    printed = "".join(lines)
    if done.returncode != status:
        sys.exit(f"{words[0]} ended with status {done.returncode}: {done.stderr}")
    if expected is not None and printed != expected:
        sys.exit(f"{words[0]} printed {printed!r} instead of {expected!r}")
    seconds, gib = map(float, report.split())
    return seconds, gib


def race_processes(processes, rounds):
    """The median seconds and the median GiB of each process: two dicts name -> number.

    processes: dict name -> a function without arguments that calls `run_process`.
    """
    seconds = {name: [] for name in processes}
    memory = {name: [] for name in processes}
    for _ in range(rounds):
        for name, run in processes.items():
            spent, gib = run()
            seconds[name].append(spent)
            memory[name].append(gib)
    return medians(seconds), medians(memory)
