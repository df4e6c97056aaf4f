"""How every program here starts, writes and ends: gpt2.py, utils.py and walkthrough.py.

Each of them begins with `prepare()`, before it imports a package, and calls `run(...)` at its end.
Standard output gets the text that was asked for and nothing else. Notes and errors go to standard
error, one line each. The exit status is

    0    the work is done, or the reader of a pipe, such as `head -1`, has seen enough
    1    something failed: the message says what, and what to do
    2    the call is wrong: the message says what was given and what is allowed
    130  Ctrl-C; 143: `kill` (SIGTERM); 129: the terminal was closed (SIGHUP)

The file is written so that a Python which is too old for the others can still read it and say so.
"""

# _signal is what the module signal is made of. It is there at once, while `import signal` takes
# some milliseconds, in which Ctrl-C would still print a traceback.
import _signal as signal
import errno
import os
import sys

OLDEST_PYTHON = (3, 10)
FOLDER = os.path.dirname(os.path.abspath(__file__))
CONTROLS = [*range(0x20), *range(0x7F, 0xA0)]  # of the characters; two of them may be written
SHOWN = {i: "\\x{:02x}".format(i) for i in CONTROLS if chr(i) not in "\t\n"}


# ---- How a program starts ------------------------------------------------------------------


def prepare():
    """Makes sure that a program ends in one line, or in none, while it imports its modules.

    Ctrl-C may come, its Python may be too old, and a package may be missing.
    """
    if is_alone():
        handle_signals(end_at_once)
        sys.excepthook = end_early
    if sys.version_info < OLDEST_PYTHON:
        version = ".".join(map(str, sys.version_info[:3]))
        oldest = ".".join(map(str, OLDEST_PYTHON))
        say("needs Python {} or newer, this is {}: {}".format(oldest, version, sys.executable))
        sys.exit(1)


def is_alone():
    """Whether Python ends with the program: it is in no notebook, IDLE, `python -i` or debugger."""
    in_interactive = hasattr(sys, "ps1") or sys.flags.inspect or "idlelib" in sys.modules
    return not in_interactive and sys.gettrace() is None


def end_early(kind, error, traceback):
    """Ends the program because of an error that came before `run`."""
    status = report(error)
    if status is None:
        sys.__excepthook__(kind, error, traceback)
    else:
        sys.exit(status)


# ---- How it is interrupted -----------------------------------------------------------------


def handle_signals(handler):
    """Sets what Ctrl-C (SIGINT), `kill` (SIGTERM) and a closed terminal (SIGHUP) do.

    Returns the handlers that were there before, as a dict by the number of the signal. Others'
    handlers stay: those of a debugger, and that of nohup, which makes SIGHUP be ignored.
    """
    before = {}
    ours = (signal.SIG_DFL, signal.default_int_handler, end_at_once)
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        try:
            if number is not None and signal.getsignal(number) in ours:
                before[number] = signal.signal(number, handler)
        except ValueError:
            pass  # not in the main thread, to which signals come
    return before


def end_at_once(number, frame):
    """Ends the program while it has made nothing yet, or when all is written.

    An exception would not do: it might come inside an import that turns it into another one.
    """
    os._exit(128 + number)


def end_in_order(number, frame):
    """Ends the program, but lets it write what it has made."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    signal.signal(number, signal.SIG_IGN)  # a shell that closes may send SIGHUP twice
    sys.exit(128 + number)


# ---- How it writes -------------------------------------------------------------------------


def write(text):
    """Writes text to standard output at once. Raises OSError if that fails.

    At a terminal a control character is shown as its code, such as \\x1b. The model may have drawn
    it, and the terminal would obey it. A pipe or a file gets every character as it is.
    """
    try:
        sys.stdout.write(visible(text) if is_terminal(sys.stdout) else text)
        sys.stdout.flush()
    except OSError as error:
        # Windows says EINVAL where the reader of a pipe has gone.
        if isinstance(error, BrokenPipeError) or os.name == "nt" and error.errno == errno.EINVAL:
            raise BrokenPipeError from None
        reason = error.strerror or error
        raise OSError("the text cannot be written to standard output: {}".format(reason)) from None


def is_terminal(stream):
    """Whether a stream is a terminal. Some stand-ins for one cannot even be asked."""
    try:
        return stream.isatty()
    except (AttributeError, OSError, ValueError):
        return False


def visible(text):
    """The text with its control characters, but for newline and tab, shown as in \\x1b."""
    return text.translate(SHOWN)


def say(message):
    """Says on standard error, in one line, what went wrong or is worth knowing."""
    line = " ".join(str(message).splitlines())
    name = program_name()
    write_to_stderr("{}: {}\n".format(name, line) if name else line + "\n")


def program_name():
    """The name of the program that the user has started; "" in a notebook or in Python itself."""
    try:
        path = os.path.realpath(sys.argv[0])
        is_ours = os.path.isfile(path) and os.path.dirname(path) == FOLDER
    except (IndexError, OSError, ValueError):
        return ""
    return os.path.basename(path) if is_ours else ""


def write_to_stderr(text):
    """Writes text to standard error. If that fails, nothing else does: the text is lost."""
    try:
        sys.stderr.write(visible(text))
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):  # closed, or on a full disk
        drop(sys.stderr)


def get_ready(stream):
    """Makes a standard stream take every character, and wait until it can read or write."""
    # A character that the encoding of a console does not have is written as its code, as in \u2019.
    if hasattr(stream, "reconfigure") and stream is not sys.stdin:
        stream.reconfigure(errors="backslashreplace")
    try:
        # A program that shares the stream may have told it not to wait.
        os.set_blocking(stream.fileno(), True)
    except (AttributeError, OSError, ValueError):
        pass  # no file is behind it, or this is Windows


def drop(stream):
    """Discards what a stream holds and cannot write, or Python would try again when it ends."""
    try:
        stream.flush()
    except (AttributeError, OSError, ValueError):
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        except (AttributeError, OSError, ValueError):
            pass  # no file is behind it


# ---- How it ends ---------------------------------------------------------------------------


def run(function):
    """Calls function, and ends the program with the exit status that fits what happened."""
    if sys.stderr is None:  # closed by the caller: what would be said there is lost
        sys.stderr = open(os.devnull, "w", encoding="utf-8")
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        get_ready(stream)
    before = handle_signals(end_in_order)
    status = 0
    try:
        if sys.stdout is None:
            raise OSError("standard output is closed, so there is nowhere to print the text")
        try:
            function()
        except SystemExit as exit:
            status = exit.code
        sys.stdout.flush()
    except BaseException as error:
        status = report(error)
        if status is None:
            raise
        status = interrupted(error) or status
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    sys.exit(status)


def report(error):
    """Says what an error means to the user, and returns the exit status; None for a bug."""
    if isinstance(error, KeyboardInterrupt):
        return 130
    if isinstance(error, BrokenPipeError):
        drop(sys.stdout)
        return 0
    if isinstance(error, MemoryError):
        say("out of memory: a smaller model, or fewer samples at a time, need less")
        return 1
    if isinstance(error, ImportError):
        say(missing(error))
        return 1
    if isinstance(error, (OSError, ValueError)):
        say(error)
        drop(sys.stdout)
        return getattr(error, "exit_status", 1)
    return None


def interrupted(error):
    """The exit status of the signal that came before an error; None if none did.

    When a terminal is closed, SIGHUP comes, and the text made so far cannot be written either.
    """
    while error is not None:
        if isinstance(error, SystemExit):
            return error.code
        if isinstance(error, KeyboardInterrupt):
            return 130
        error = error.__context__
    return None


def missing(error):
    """What to say of a package that could not be imported."""
    name = error.name or "a module"
    requirements = requirements_with(name)
    if requirements is None:  # a part of a package that is damaged, or of Python
        return "{} cannot import {}: {}".format(sys.executable, name, str(error)[:300])
    return "the package {} is missing: in {}, run `{} -m pip install -r {}`".format(
        name, FOLDER, sys.executable, requirements
    )


def requirements_with(package):
    """The name of the requirements file that lists a package, or None."""
    for name in sorted(os.listdir(FOLDER), key=len):  # requirements.txt is the shortest
        if name.startswith("requirements") and name.endswith(".txt"):
            with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
                if any(line.startswith((package + ">", package + "=")) for line in file):
                    return name
    return None
