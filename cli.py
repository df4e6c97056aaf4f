"""The command line around gpt2.py: what was typed, checked; what was made, printed.

`run` looks at the words of the command line once and hands them to Fire, which calls main.
Fire alone would read every word as Python (the prompt `Hello, world` as a tuple, `1984` as a
number), and would find a misspelt flag only after the whole text was made.

main calls the rest: checks of one option each, the places a prompt can come from, printing.
"""

import codecs
import difflib
import inspect
import itertools
import math
import os
import re
import secrets
import sys

import utils

HELP = """\
usage: python gpt2.py "PROMPT" [--OPTION VALUE ...]

Continues PROMPT with GPT-2 and prints the continuation.

  "PROMPT"  or  --prompt="PROMPT"
      The text to go on from, in quotes, taken exactly as typed. One that begins with "-" needs
      the second form. "" starts a new text. Without a prompt, the text piped in is the prompt;
      at a terminal, you are asked for one prompt after another, until Ctrl-D.
  --n_tokens_to_generate {n_tokens_to_generate}
      How many tokens (words, or pieces of words) to add. Fewer come when the model ends its
      text. More than fit the model's window (1,024 tokens, 256 for tiny) may be
      asked for: each time it is full, the text goes on from the last half of it.
  --model_size {model_size}
      124M, 355M, 774M or 1558M are fetched from OpenAI when first used (0.5, 1.4, 3.1 and
      6.2 GB; GPT2_BASE_URL in the environment names a mirror). tiny, a small model of
      Shakespeare, is there already. Or the name of a folder in models_dir.
  --models_dir DIR
      Where models lie. Default: the folder "models" beside gpt2.py.
  --temperature {temperature}
      How daring: 0 always takes the likeliest token, so the text is always the same; 1 draws by
      the model's own probabilities; in between likely tokens get likelier, above 1 the others.
  --top_k {top_k}
      Draw among the k likeliest tokens only, 40 for example; 0: among all.
  --top_p {top_p}
      Draw among the fewest tokens whose probabilities reach p, 0.9 for example; 1: among all.
  --nsamples {nsamples}
      How many continuations to make.
  --batch_size N
      How many of them at a time. Default: all, but at most 8. Changes speed and memory; the
      text only where float32 happens to round a close decision the other way.
  --seed N
      A whole number that makes the same text come again. Default: a fresh one, which is printed
      on standard error.
  -h, --help
      This text.

A single text is printed word by word at a terminal. Standard output gets the text and nothing
else; notes, errors and the progress bar go to standard error. Ctrl-C ends a text.

examples:
  python gpt2.py "Alan Turing theorized that computers would one day become"
  python gpt2.py "ROMEO:" --model_size tiny --temperature 0.7 --n_tokens_to_generate 100
  python gpt2.py --nsamples 3 --temperature 1 --top_k 40 --seed 7 < prompt.txt
"""


class CallError(ValueError):
    """The call is wrong: the message says what was given and what is allowed. Exit status 2."""


# ---- The words of the command line ---------------------------------------------------------


def run(main, help_text=HELP):
    """Call main with what the command line says, and end the process with its exit status.

    0: done. 2: the call is wrong. 130: Ctrl-C. 1: anything else that failed.
    """
    if sys.stderr is None:  # closed by the caller: what would be said is lost, the text is not
        sys.stderr = open(os.devnull, "w", encoding="utf-8")
    status = 0
    try:
        if sys.stdout is None:
            raise OSError("standard output is closed, so there is nowhere to print the text")
        # A console that cannot show a character gets its code, as in \u2019, not an error.
        sys.stdout.reconfigure(errors="backslashreplace")
        call(main, sys.argv[1:], help_text)
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:  # the reader, such as `head -1`, has seen enough
        drop(sys.stdout)
    except MemoryError:
        say("out of memory: try a smaller --batch_size or --model_size")
        status = 1
    except CallError as error:
        say(error)
        status = 2
    except (OSError, ValueError) as error:
        say(error)
        drop(sys.stdout)
        status = 1
    sys.exit(status)


def say(message):
    """Say on stderr, in one line, what went wrong or is worth knowing."""
    try:
        print(f"{os.path.basename(sys.argv[0])}: {message}", file=sys.stderr)
    except OSError:  # as on a full disk; the text on stdout is not to be lost with it
        drop(sys.stderr)


def drop(stream):
    """Discard what a stream still holds, since printing on it has failed."""
    if stream is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def call(main, words, help_text):
    """Call main, through Fire, with the options that the words of the command line give."""
    options = inspect.signature(main).parameters
    if "-h" in words or "--help" in words:
        defaults = {name: option.default for name, option in options.items()}
        print(help_text.format(**defaults), end="")
        return
    given = read_words(words, options)

    import fire

    fire.decorators.SetParseFns(**dict.fromkeys(options, str))(main)
    fire.Fire(main, command=[f"--{name}={value}" for name, value in given.items()])


def read_words(words, options):
    """The text given for each option: dict name -> str. Raises CallError for any other words."""
    given = {}
    words = iter(words)
    for word in words:
        if looks_like_flag(word):
            name, equals, value = word[2:].partition("=")
            name = name.replace("-", "_")
            if not word.startswith("--") or name not in options:
                raise CallError(unknown_flag(word, options))
            if name in given:
                raise CallError(f"--{name} is given twice")
            if not equals:
                value = next(words, "--")
            if looks_like_flag(value) and not equals or value == "" and name != "prompt":
                remedy = as_prompt(value) if name == "prompt" else f'--{name}="..."'
                raise CallError(f"--{name} has no value: write {remedy}")
        else:
            name, value = "prompt", word
            if name in given:
                raise CallError(
                    f"{shown(word)} is a word too many after the prompt {shown(given[name])}: "
                    f"put the whole prompt in quotes"
                )
        given[name] = value
    return given


def looks_like_flag(word):
    """Whether a word is a flag or a lone dash, not a text such as "-5 degrees" or "- item"."""
    return word == "-" or re.match("--|-[A-Za-z]", word) is not None


def unknown_flag(word, options):
    """What to say of a word that looks like a flag and is none."""
    name = word.lstrip("-").partition("=")[0].replace("-", "_")
    flags = [*options, "help"]
    near = [flag for flag in flags if name and flag.startswith(name)]
    near += difflib.get_close_matches(name, flags, n=1)
    hint = f"did you mean --{near[0]}?" if near else f"the flags are --{', --'.join(flags)};"
    return f"there is no flag {shown(word)}: {hint} if it is the prompt, write {as_prompt(word)}"


def as_prompt(word):
    """How to give a text that begins with "-" as the prompt; "..." where quoting it takes care."""
    is_plain = re.fullmatch(r"-[\w .,:;?'-]{0,60}", word) and word != "--"
    return f'--prompt="{word if is_plain else "..."}"'


def shown(value):
    """What was given, on one line and not too long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# ---- One option each -----------------------------------------------------------------------


def integer(name, value, lowest):
    """value, an int or plain digits, as an int from `lowest` up. Raises CallError."""
    if not re.fullmatch("[0-9]{1,18}", str(value)) or int(value) < lowest:
        raise CallError(
            f"--{name} is a whole number, {lowest} or more, in at most 18 plain digits, "
            f"not {shown(value)}"
        )
    return int(value)


def number(name, value):
    """value, a number or the text of one, as a finite float from 0 up. Raises CallError."""
    result = as_float(value)
    if not 0 <= result < math.inf:
        raise CallError(f"--{name} is a number, 0 or more, such as 0.7, not {shown(value)}")
    return result


def fraction(name, value):
    """value, a number or the text of one, as a float above 0 and up to 1. Raises CallError."""
    result = as_float(value)
    if not 0 < result <= 1:
        raise CallError(
            f"--{name} is a fraction, above 0 and at most 1, such as 0.9, not {shown(value)}"
        )
    return result


def as_float(value):
    """A number, or the text of one in plain decimal form, as a float; nan for anything else."""
    decimal = r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
    return float(str(value)) if re.fullmatch(decimal, str(value)) else math.nan


def check_model(model_size, models_dir):
    """Raises CallError, saying which models there are, unless model_size is one of them."""
    try:
        utils.check_model_size(model_size, models_dir)
    except ValueError as error:
        raise CallError(f"--model_size: {error}") from None


def note_no_effect(temperature, top_k, top_p, nsamples, seed):
    """Say which options do nothing because temperature 0 leaves nothing to chance."""
    if temperature > 0:
        return
    idle = {"--top_k": top_k != 0, "--top_p": top_p != 1, "--seed": seed is not None}
    for flag in [flag for flag, is_given in idle.items() if is_given]:
        say(f"note: {flag} has no effect without --temperature above 0")
    if nsamples > 1:
        say(f"note: all {nsamples} samples will be alike without --temperature above 0")


def choose_seed(seed, temperature):
    """seed, or a fresh one where it is None; told on stderr if the text depends on it."""
    if seed is None and temperature > 0:
        seed = secrets.randbelow(2**32)
        say(f"note: the seed is {seed}; the same call with --seed {seed} makes the same text")
    return seed


# ---- Where a prompt comes from -------------------------------------------------------------


def read_prompt(prompt):
    """The prompt as text: what was typed if anything was, else what is piped in.

    None where there is neither, but a terminal to ask at. Raises CallError where the text is not
    UTF-8, or where nothing is piped in.
    """
    if prompt is not None:
        return as_typed(prompt)
    if sys.stdin is not None and sys.stdin.isatty():
        return None
    return as_piped(sys.stdin.buffer.read() if sys.stdin is not None else b"")


def as_typed(prompt):
    """The prompt from the command line or the terminal. Raises CallError if it is not UTF-8."""
    # Bytes that Python could not decode are lone surrogates in a str; fsencode gets them back.
    if not any("\ud800" <= character <= "\udfff" for character in prompt):
        return prompt
    try:
        return os.fsencode(prompt).decode("utf-8")
    except UnicodeError:
        raise CallError(f"the prompt {shown(prompt)} is not UTF-8 text") from None


def as_piped(data):
    """The prompt in the bytes of standard input: all but one line end, which is `echo`'s."""
    try:
        text = re.sub(r"\r?\n\Z", "", data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise CallError(f"the prompt on standard input is not UTF-8 text: {error}") from None
    if text == "":
        raise CallError('there is no prompt: give one in quotes, or "" to start a new text')
    return text


def encode_prompt(prompt, encoder, n_ctx):
    """The ids of a prompt; that of <|endoftext|> for "". Raises CallError above n_ctx of them."""
    ids = encoder.encode(prompt) or [end_of_text(encoder)]
    if len(ids) > n_ctx:
        raise CallError(
            f"the prompt is {len(ids)} tokens long, the model reads at most {n_ctx}: shorten it"
        )
    return ids


def end_of_text(encoder):
    """The id of <|endoftext|>, which stood between the texts of the training: the last id."""
    return len(encoder.tokens) - 1


def session(answer, encoder, n_ctx):
    """Ask for prompts at the terminal and answer each, until Ctrl-D.

    answer: called with the ids of each prompt. Ctrl-C ends an answer and asks again; at the
    prompt it is the caller's KeyboardInterrupt.
    """
    try:
        import readline  # noqa: F401 - gives input() line editing and a history
    except ImportError:
        pass  # on Windows, where the console itself has both

    while True:
        try:
            prompt = as_typed(ask("Model prompt >>> "))
            if prompt == "":
                continue
            ids = encode_prompt(prompt, encoder, n_ctx)
        except EOFError:
            print(file=sys.stderr)  # what comes next begins a line
            return
        except KeyboardInterrupt:
            print(file=sys.stderr)
            raise
        except (CallError, UnicodeDecodeError) as error:
            say(error)
            continue
        try:
            answer(ids)
        except KeyboardInterrupt:
            pass  # what there is of the text has been printed


def ask(question):
    """A line typed at the terminal. The question stays out of a redirected standard output."""
    if sys.stdout.isatty():
        return input(question)
    print(question, end="", file=sys.stderr, flush=True)
    return input()


# ---- Printing ------------------------------------------------------------------------------


def print_samples(steps, n_tokens, n_rows, first, nsamples, encoder, n_prompt, n_ctx):
    """Print the texts that gpt2.generate makes for one batch.

    steps: yields int [B], B = n_rows, n_tokens times at most. The batch holds the samples number
    first + 1 to first + n_rows of nsamples, after a prompt of n_prompt ids. Whatever stops the
    steps, what there is gets printed.
    """
    if nsamples == 1 and sys.stdout.isatty():
        print_as_it_comes(steps, encoder, n_prompt, n_ctx)
        return

    made = []
    try:
        for next_ids in with_bar(steps, n_tokens):
            made.append(next_ids)
    finally:
        for row in range(n_rows):
            ids = [next_ids[row] for next_ids in made]
            text = encoder.decode(itertools.takewhile(lambda id: id != end_of_text(encoder), ids))
            if nsamples > 1:
                print("=" * 40, f"SAMPLE {first + row + 1}", "=" * 40)
            print(text, flush=True)
        if first == 0:  # once is enough
            note_window(n_prompt + len(made), n_ctx)


def print_as_it_comes(steps, encoder, n_prompt, n_ctx):
    """Print one text token by token."""
    # A character can end in a later token than it begins: its bytes are held back until then.
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    n_steps = 0
    try:
        for [id] in steps:
            n_steps += 1
            if id != end_of_text(encoder):
                print(decoder.decode(encoder.decode_bytes([id])), end="", flush=True)
    finally:
        print(decoder.decode(b"", final=True), flush=True)
        note_window(n_prompt + n_steps, n_ctx)


def with_bar(steps, n_tokens):
    """The same steps, with a progress bar on stderr if that is a terminal."""
    if not sys.stderr.isatty():
        return steps
    from tqdm import tqdm

    return tqdm(steps, total=n_tokens, unit="token", leave=False)


def note_window(n_tokens, n_ctx):
    """Say whether a text of n_tokens, prompt included, had to go on from half a window."""
    # The token at position n_ctx is still drawn from a full window; the one after it is not.
    if n_tokens > n_ctx + 1:
        say(f"note: after {n_ctx} tokens the text went on from its last {n_ctx // 2} alone")
