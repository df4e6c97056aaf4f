"""How every program here starts, writes and ends: gpt2.py, utils.py and walkthrough.py.

Each of them begins with `prepare()`, before it imports a package, and calls `run(...)` at its end.
Standard output gets the text that was asked for and nothing else. Notes and errors go to standard
error, one line each. The exit status is

    0    the work is done, or the reader of a pipe, such as `head -1`, has seen enough
    1    something failed: the message says what, and what to do
    2    the call is wrong: the message says what was given and what is allowed
    130  Ctrl-C; 143: `kill` (SIGTERM); 129: the terminal was closed (SIGHUP)

Python 3.6 can still read this file, and so it can say that it is too old for the others.
"""

# _signal is what the module signal is made of. It is there at once, while `import signal` takes
# some milliseconds, in which Ctrl-C would still print a traceback.
import _signal as signal
import errno
import io
import os
import sys

OLDEST_PYTHON = (3, 10)
FOLDER = os.path.dirname(os.path.abspath(__file__))

# How control characters are shown. A terminal would obey them: ESC may begin a command to it.
CONTROLS = [*range(0x20), *range(0x7F, 0xA0)]
SHOWN = {i: "\\x{:02x}".format(i) for i in CONTROLS if chr(i) not in "\t\n"}


# ---- How a program starts ------------------------------------------------------------------


def prepare():
    """Makes a program end in one line, or in none, if something stops it before `run`.

    Python may be too old, a package may be missing, and Ctrl-C may come while modules are imported.
    """
    if is_alone():
        handle_signals(end_at_once)
        sys.excepthook = end_early
    if sys.version_info < OLDEST_PYTHON:
        version = ".".join(map(str, sys.version_info[:3]))
        oldest = ".".join(map(str, OLDEST_PYTHON))
        say("needs Python {} or newer, but this is {}: {}".format(oldest, version, sys.executable))
        sys.exit(1)


def is_alone():
    """Whether Python ends with the program: it is in no notebook, IDLE, `python -i` or debugger."""
    in_interactive = hasattr(sys, "ps1") or sys.flags.inspect or "idlelib" in sys.modules
    return not in_interactive and sys.gettrace() is None


def end_early(kind, error, traceback):
    """Reports an error that came before `run`, and ends the program with its exit status."""
    status = report(error)
    if status is None:
        sys.__excepthook__(kind, error, traceback)
    else:
        sys.exit(status)


# ---- How it is interrupted -----------------------------------------------------------------


def handle_signals(handler):
    """Sets what Ctrl-C (SIGINT), `kill` (SIGTERM) and a closed terminal (SIGHUP) do.

    Returns the handlers that were there before: a dict, by the number of the signal. A handler
    that somebody else has set stays, such as that of a debugger, or of nohup, which ignores SIGHUP.
    """
    before = {}
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        old = None if number is None else signal.getsignal(number)
        if old in (signal.SIG_DFL, signal.default_int_handler, end_at_once):
            before[number] = old
            set_handler(number, handler)
    return before


def set_handler(number, handler):
    """Sets what a signal does, where that can be set."""
    try:
        signal.signal(number, handler)
    except (OSError, ValueError):
        pass  # not in the main thread, to which all signals come; or the system forbids it


def end_at_once(number, frame):
    """Ends the program without further ado: it has made nothing yet, or all of it is written.

    An exception would not do, since a package that is being imported might catch it.
    """
    os._exit(128 + number)


def end_in_order(number, frame):
    """Raises an exception that ends the program after it has written what it has made."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    set_handler(number, signal.SIG_IGN)  # a shell that closes may send SIGHUP twice
    sys.exit(128 + number)


# ---- How it writes -------------------------------------------------------------------------


def write(text):
    """Writes text to standard output at once. Raises OSError if that fails.

    A model can draw control characters. A terminal is shown their codes, such as \\x1b, while a
    pipe or a file gets the characters themselves.
    """
    try:
        sys.stdout.write(visible(text) if is_terminal(sys.stdout) else text)
        sys.stdout.flush()
    except OSError as error:
        # Windows says EINVAL where the reader of a pipe has gone.
        if isinstance(error, BrokenPipeError) or os.name == "nt" and error.errno == errno.EINVAL:
            raise BrokenPipeError from None
        reason = error.strerror or error
        raise OSError("cannot write to standard output: {}".format(reason)) from None


def is_terminal(stream):
    """Whether a stream is a terminal. What stands in for a stream in a notebook may not know."""
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
    """The name of the program, such as gpt2.py; "" in a notebook or an interactive Python."""
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
    """Makes a standard stream take every character, and wait instead of failing when it is busy."""
    # If the encoding of a console lacks a character, its code is written instead, as in \u2019.
    if hasattr(stream, "reconfigure") and stream is not sys.stdin:
        stream.reconfigure(errors="backslashreplace")
    try:
        # Another program that uses the same terminal or pipe may have told it not to wait.
        os.set_blocking(stream.fileno(), True)
    except (AttributeError, OSError, ValueError):
        pass  # no file is behind it, or this is Windows


def give_buffer_to_stdout():
    """Replaces standard output, if it has no buffer, by a stream that has one.

    It has none with `python -u` or PYTHONUNBUFFERED. Then Python makes one attempt to write a text,
    and what a full disk does not take is lost without an error. With a buffer, Python tries again.
    """
    old = sys.stdout
    if old is sys.__stdout__ and isinstance(getattr(old, "buffer", None), io.RawIOBase):
        sys.stdout = open(
            old.fileno(), "w", encoding=old.encoding, errors=old.errors, closefd=False
        )


def drop(stream):
    """Discards what a stream holds but cannot write, which Python would try again at its end."""
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
    give_buffer_to_stdout()
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        get_ready(stream)
    before = handle_signals(end_in_order)
    status = 0
    try:
        if sys.stdout is None:
            raise OSError("standard output is closed, so there is nowhere to print to")
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
            set_handler(number, handler)
    sys.exit(status)


def report(error):
    """Says what an error means to the user, and returns the exit status; None for a bug."""
    if isinstance(error, KeyboardInterrupt):
        return 130
    if isinstance(error, BrokenPipeError):
        drop(sys.stdout)
        return 0
    if isinstance(error, MemoryError):
        say("out of memory: close other programs, or try a smaller model or batch_size")
        return 1
    if isinstance(error, ImportError):
        say(missing(error))
        return 1
    if comes_from_import(error):
        cause = "{}: {}".format(type(error).__name__, error)
        say("{} cannot import a module: {}".format(sys.executable, cause[:300]))
        return 1
    if is_empty(getattr(error, "obj", None)):  # what an AttributeError is about
        cause = "its file is empty, or cannot be read"
        say("{} cannot import {}: {}".format(sys.executable, error.obj.__name__, cause))
        return 1
    if isinstance(error, (OSError, ValueError)):
        say(in_words(error))
        drop(sys.stdout)
        return getattr(error, "exit_status", 1)
    return None


def comes_from_import(error):
    """Whether an error came from a module of others, or from Python, while it was imported.

    Python and packages are not prepared for files of theirs that are damaged or hard to read.
    """
    import dis

    calls, step, command = [], error.__traceback__, None
    while step is not None:
        code = step.tb_frame.f_code
        calls.append((code.co_filename, code.co_name))
        command = dis.opname[code.co_code[step.tb_lasti]]
        step = step.tb_next
    if is_ours(calls[-1][0]):
        # If a file cannot be compiled, the traceback ends at the line that imports it. A mistake in
        # a file of ours is no such case: whoever edits one wants to see where it is.
        is_mistake = isinstance(error, SyntaxError) and is_ours(error.filename or "")
        return command == "IMPORT_NAME" and not is_mistake
    return any(
        path.startswith("<frozen importlib") or name == "<module>" and not is_ours(path)
        for path, name in calls
    )


def is_empty(module):
    """Whether this is a module in which nothing is defined.

    That is so if its file is empty, or if Python has seen the folder of a package but has not been
    able to see its __init__.py.
    """
    is_module = isinstance(module, type(sys))
    is_folder = hasattr(module, "__path__") and getattr(module, "__file__", None) is None
    return is_module and (is_folder or all(name.startswith("__") for name in vars(module)))


def is_ours(path):
    """Whether a file belongs to this program. (A virtual environment in FOLDER does not.)"""
    return path.startswith(FOLDER) and "site-packages" not in path


def in_words(error):
    """The message of an error, without the number that an error of the system has."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return error.strerror + (": {}".format(error.filename) if error.filename else "")


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
        cause = " ".join(str(error.__cause__ or error).split())  # NumPy's own message is long
        return "{} cannot import {}: {}".format(sys.executable, name, cause[:300])
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
