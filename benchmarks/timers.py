"""Timers around functions, for a table of how many seconds each of them took.

    python benchmarks/timers.py gpt2.py ARGUMENTS...

This runs a program with timers around its imports and around the two functions that load a model.
The last line on standard error is the table in JSON, {line: seconds}.

The clock runs for one line at a time: when a timed function calls another timed function, only the
inner one is counted. So the lines of a table add up to the whole time.

This file imports only what Python has loaded anyway. Otherwise it would hide the time that the
program takes to import the same modules.
"""

import builtins
import sys
import time

PYTHON, NUMPY, IMPORTS = "Python's own start and end", "import of NumPy", "other imports"
VOCABULARY, WEIGHTS = "reading the vocabulary", "mapping the weights"
FIRST_TOKEN = "first token, and the rest"
SAMPLING, REST = "sampling", "everything else"
WHOLE = {NUMPY, SAMPLING}  # these lines include the timed functions that are called inside them

spent = {}  # line -> seconds
running = [REST]  # the lines of the timed functions that have not returned; the last has the clock
since = time.perf_counter()  # until this moment, all time is counted in `spent`


def count():
    """Adds the time since the last call of `count` to the line that is running."""
    global since
    now = time.perf_counter()
    spent[running[-1]] = spent.get(running[-1], 0.0) + now - since
    since = now


def timed(function, line):
    """The same function with a timer. If line is None, its time counts for its caller."""

    def call(*args, **kwargs):
        count()
        running.append(running[-1] if line is None or running[-1] in WHOLE else line)
        try:
            return function(*args, **kwargs)
        finally:
            count()
            running.pop()

    return call


def run(path):
    """Runs a program as `python path` would, and writes its table to standard error."""
    with open(path, encoding="utf-8") as file:
        code = compile(file.read(), path, "exec")
    plain_import, wrapped = builtins.__import__, []

    def timed_import(name, *args, **kwargs):
        line = NUMPY if name.partition(".")[0] == "numpy" else IMPORTS
        module = timed(plain_import, line)(name, *args, **kwargs)
        if name == "utils" and not wrapped:
            wrapped.append(name)
            module.load_encoder_and_hparams = timed(module.load_encoder_and_hparams, VOCABULARY)
            module.load_params = timed(module.load_params, WEIGHTS)
        return module

    builtins.__import__ = timed_import
    sys.path.insert(0, path.rpartition("/")[0])
    try:
        count()
        spent.clear()
        running[0] = FIRST_TOKEN
        exec(code, {"__name__": "__main__", "__file__": path})
    finally:
        count()
        builtins.__import__ = plain_import
        import json

        print(json.dumps(spent), file=sys.stderr)


if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    run(sys.argv[0])
