"""The command line of gpt2.py and walkthrough.py: its words, its help, and its notes.

`run` looks at the words of the command line once and hands them to Fire, which calls main.
Fire alone would read every word as Python (the prompt `Hello, world` as a tuple, `1984` as a
number), and would find a misspelt flag only after the whole text was made.
"""

import difflib
import inspect
import re
import secrets
import sys

import console
import utils
from checks import CallError, fraction, integer, number, shown  # noqa: F401 - used by others
from prompts import encode_prompt, end_of_text, read_prompt  # noqa: F401 - used by others

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

# ---- The words of the command line ---------------------------------------------------------


def run(main, help_text=HELP):
    """Call main with what the command line says, and end the process with its exit status."""
    console.run(lambda: call(main, sys.argv[1:], help_text))


def call(main, words, help_text):
    """Call main, through Fire, with the options that the words of the command line give."""
    options = inspect.signature(main).parameters
    if "-h" in words or "--help" in words:
        defaults = {name: option.default for name, option in options.items()}
        console.write(help_text.format(**defaults))
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


# ---- What options mean together ------------------------------------------------------------


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
        console.say(f"note: {flag} has no effect without --temperature above 0")
    if nsamples > 1:
        console.say(f"note: all {nsamples} samples will be alike without --temperature above 0")


def choose_seed(seed, temperature):
    """seed, or a fresh one where it is None; told on stderr if the text depends on it."""
    if seed is None and temperature > 0:
        seed = secrets.randbelow(2**32)
        again = f"the same call with --seed {seed} makes the same text"
        console.say(f"note: the seed is {seed}; {again}")
    return seed
