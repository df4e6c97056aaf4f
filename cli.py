"""The command line of gpt2.py, walkthrough.py and utils.py: its words, its help, and its notes.

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
from checks import CallError, shown

HELP = """\
usage: python gpt2.py "PROMPT" [--OPTION VALUE ...]

GPT-2 continues PROMPT, and the continuation is printed.

  "PROMPT"  or  --prompt="PROMPT"
      The text to continue, in quotes. It is taken exactly as typed. A text that begins with "-"
      needs the second form. "" starts a new text. Without a prompt, or with - in its place, the
      prompt is what is piped in. At a terminal you are asked for one prompt after another. There,
      end a line with \\ to go on in the next line, and press Ctrl-D to leave.
  --n_tokens_to_generate {n_tokens_to_generate}
      How many tokens to add. A token is a word or a part of one. The model may end its text
      earlier. The text may outgrow the model's window (1,024 tokens; 256 for tiny). Each time the
      window is full, the model keeps only its second half and goes on from there.
  --model_size {model_size}
      124M, 355M, 774M and 1558M are OpenAI's models. Each is downloaded when it is first used
      (0.5, 1.4, 3.1 or 6.2 GB). To download from somewhere else, set the environment variable
      GPT2_BASE_URL. tiny, a small model trained on Shakespeare, needs no download. Any other
      name must be that of a folder in models_dir.
  --models_dir DIR
      The folder that holds the models. Default: the folder "models" beside gpt2.py.
  --temperature {temperature}
      How much is left to chance. 0: nothing. The likeliest token is taken each time, so the text
      is always the same. 1: each token is drawn with the probability that the model gives it.
      Between 0 and 1, likely tokens become even likelier. Above 1, they become less likely.
  --top_k {top_k}
      Draw only from the k likeliest tokens, for example 40. 0: from all.
  --top_p {top_p}
      Draw only from the likeliest tokens, just enough for their probabilities to add up to p,
      for example 0.9. 1: from all.
  --nsamples {nsamples}
      How many continuations to make.
  --batch_size N
      How many of them to make side by side. Default: all, but at most 8. More is faster, and
      takes more memory. The texts stay the same, unless rounding decides a very close choice.
  --seed N
      A whole number that decides every draw. With the same seed and the same options, the text
      comes out the same. Default: a new seed each time, which is printed on standard error.
  -h, --help
      Print this text.

The values shown with the options are their defaults. A single text appears token by token, and
Ctrl-C stops it. Standard output gets only the text, or several texts with a heading above each.
Notes, errors and the progress bar go to standard error.

examples:
  python gpt2.py "Alan Turing theorized that computers would one day become"
  python gpt2.py "ROMEO:" --model_size tiny --temperature 0.7 --n_tokens_to_generate 100
  python gpt2.py --nsamples 3 --temperature 1 --top_k 40 --seed 7 < prompt.txt
"""

# ---- The words of the command line ---------------------------------------------------------

# Word processors turn "-" into these dashes, and straight quotes into these curly ones. To a shell
# they are letters like others. To the shell of Windows, so are single quotes.
DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
QUOTES = "'\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb"


def run(main, help_text=HELP, positional=("prompt",)):
    """Calls main with what the command line says, and ends the process with its exit status.

    positional: the options whose values may be given without a flag, in this order.
    """
    console.run(lambda: call(main, sys.argv[1:], help_text, positional))


def call(main, words, help_text, positional):
    """Calls main, through Fire, with the options that the words of the command line give."""
    options = inspect.signature(main).parameters
    if "-h" in words or "--help" in words:
        defaults = {name: option.default for name, option in options.items()}
        console.write(help_text.format(**defaults))
        return
    given = read_words(words, options, positional)

    import fire

    fire.decorators.SetParseFns(**dict.fromkeys(options, str))(main)
    fire.Fire(main, command=[f"--{name}={value}" for name, value in given.items()])
    if "prompt" in given and console.is_terminal(sys.stdout):
        note_length(given, options)


def read_words(words, options, positional=("prompt",)):
    """The text given for each option: dict name -> str. Raises CallError for any other words."""
    given = {}
    remaining = iter(words)
    for word in remaining:
        if looks_like_flag(word):
            name = read_name(word)
            _, equals, value = word.partition("=")
            if not re.match("--[^-]", word) or name not in options:
                raise CallError(unknown_flag(word, options))
            if name in given:
                what = "the prompt" if name == "prompt" else f"--{name}"
                raise CallError(f"{what} was given twice: leave one out")
            if not equals:
                value = next(remaining, "--")
                check_is_value(name, value, options)
            elif value == "" and name != "prompt":
                raise CallError(f'--{name} needs a value: write --{name}="..."')
        else:
            free = [name for name in positional if name not in given]
            if not free:
                raise CallError(too_many(words, given.get("prompt"), word))
            name, value = free[0], word
        given[name] = value
    if given.get("prompt") == "-" and "--prompt=-" not in words:
        del given["prompt"]  # a hyphen alone stands for standard input
    return given


def looks_like_flag(word):
    """Whether a word is meant as a flag. Texts such as "-5 degrees" and "- item" are not.

    "\u2014seed" is meant as one too: a word processor has made one dash of two hyphens.
    """
    return re.match(f"--|-[A-Za-z]|[{DASHES}]+[a-z_-]+(=|$)", word) is not None


def check_is_value(name, value, options):
    """Raises CallError if the word after --name is not its value but, say, the next flag."""
    if looks_like_flag(value) or value == "" and name != "prompt":
        is_flag = value.startswith("--") and read_name(value) in (*options, "help", "")
        remedy = f'--{name}="..."' if is_flag or name != "prompt" else as_prompt(value)
        raise CallError(f"--{name} needs a value: write {remedy}")


def read_name(flag):
    """The name in a flag such as --top-k=40, with underscores: top_k."""
    return flag.lstrip("-" + DASHES).partition("=")[0].replace("-", "_")


def unknown_flag(word, options):
    """What is wrong with a word that looks like a flag, and what was probably meant."""
    name = read_name(word)
    flags = [*options, "help"]
    near = [flag for flag in flags if name and flag.startswith(name)]
    near += difflib.get_close_matches(name, flags, n=1)
    if word[0] in DASHES:
        typed = f"{shown(word)} begins with a long dash, not with hyphens"
    else:
        typed = f"there is no flag {shown(word)}"
    if near and " " not in word:
        return f"{typed}: did you mean --{near[0]}?"
    remedy = f"; if you meant it as the prompt, write {as_prompt(word)}" * ("prompt" in options)
    return f"{typed}: the flags are --{', --'.join(flags)}{remedy}"


def as_prompt(word):
    """How to give a text that begins with "-" as the prompt. "..." if it is hard to quote."""
    is_plain = re.fullmatch(rf"[-{DASHES}][\w .,:;?'-]{{0,60}}", word) and word != "--"
    return f'--prompt="{word if is_plain else "..."}"'


def too_many(words, prompt, word):
    """What is wrong with a word that belongs to no flag, and is not the prompt either."""
    if prompt is None:
        return f"{shown(word)} is a word too many: leave it out"
    if prompt[:1] in (*QUOTES,) and any(other[-1:] in (*QUOTES,) for other in words):
        return (
            f"{shown(prompt)} begins with a quotation mark that this shell does not know: "
            f'use straight double quotes, as in "Alan Turing"'
        )
    return (
        f"there is a word {shown(word)} after the prompt {shown(prompt)}: "
        f"put the whole prompt in quotes"
    )


# ---- What options mean ---------------------------------------------------------------------


def note_length(given, options):
    """Says how long a text gets, if the call does not, so that its end is no surprise."""
    option = "n_tokens_to_generate"
    if option not in given:
        n_tokens = options[option].default
        console.say(f"note: a text gets at most {n_tokens} tokens; to change this, use --{option}")


def note_no_effect(temperature, top_k, top_p, nsamples, seed):
    """Says which options do nothing because temperature 0 leaves nothing to chance."""
    if temperature > 0:
        return
    idle = {"top_k": top_k != 0, "top_p": top_p != 1, "seed": seed is not None}
    for name in [name for name, is_given in idle.items() if is_given]:
        console.say(f"note: {name} has no effect without a temperature above 0")
    if nsamples > 1:
        console.say(f"note: all {nsamples} samples are the same without a temperature above 0")


def choose_seed(seed, temperature):
    """The seed, or a new one if it is None. A new one is printed if the text depends on it."""
    if seed is None and temperature > 0:
        seed = secrets.randbelow(2**32)
        console.say(f"note: to get this text again, use the same options and --seed {seed}")
    return seed
