"""Writes walkthrough.html, a page that explains one run of gpt2.py with the run's own numbers.

    python walkthrough.py "The king sings"
    python walkthrough.py "The king sings" --model_size 124M --layer 1,6,12

This program runs gpt2.py itself, while a tracer notes what each of its lines makes. So there is no
second model here that could differ from the first. This file holds the command and the order of
the page. The folder `page` holds everything else:

    tracer.py               runs a function, and notes what each line of a file makes
    markup.py               builds HTML
    png.py, pictures.py     turn an array into a picture
    values.py               shows a value: its name, shape, type, range, and picture
    run.py                  one traced run of gpt2.main, and how to find a value in it
    chapter_*.py            the chapters of the page, one file each
    listing.py              the last chapter, gpt2.py line by line
    quoting.py              a command that can be pasted, and characters that a page can hold
    style.css, reading.js   the style sheet, and the script that shows the number in a cell
"""

if __name__ == "__main__":  # Every program here begins like this: console.py says why.
    import os
    import sys

    sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
    import console

    console.prepare()

import base64
import contextlib
import hashlib
import math
import os
import re
import shutil
import sys

import checks
import cli
import console
import model_names
import prompts
import utils
import weights
from page import (
    chapter_cache,
    chapter_choices,
    chapter_heads,
    chapter_text,
    chapter_vectors,
    listing,
)
from page.markup import Markup, prose, tag
from page.pictures import shared
from page.quoting import command, readable
from page.run import Run

MAX_TOKENS = 64  # of a prompt: the page shows each of them many times
SHORT_TEXT = 32  # tokens: all layers of a small model still fit on a page of 2 MB
MAX_NEW_TOKENS = 32
TOP_K, TOP_P, SEED = 40, 0.9, 1  # unless the call says otherwise
STREAMS = {f"{folder}/fd/{i}": i for folder in ("/dev", "/proc/self") for i in (1, 2)}
STREAMS |= {"/dev/stdout": 1, "/dev/stderr": 2}

HELP = """\
usage: python walkthrough.py "PROMPT" [--OPTION VALUE ...]

Runs gpt2.py on PROMPT and writes a web page about this run: how the text became tokens and
vectors, which token looked at which, why each new token was chosen, and what each line of the
program made.

  "PROMPT"  or  --prompt="PROMPT"
      The text to continue, in quotes: at most 64 tokens. A token is a word or a part of one.
      Without a prompt, or with - in its place, the prompt is what is piped in.
  --output {output}
      The page to write. It is a single file that any browser can open, without a network
      connection.
  --layer LAYERS
      The layers to show in full: 1,6,12 for example, or all. Default: all if the model has up to
      six layers and the text up to 32 tokens, else the first and the last.
  --model_size {model_size}
      tiny, which comes with the program; 124M, 355M, 774M or 1558M; or a folder in models_dir.
  --n_tokens_to_generate {n_tokens_to_generate}
      How many tokens to add, at most 32.
  --temperature {temperature}, --top_k {top_k}, --top_p {top_p}, --seed {seed}
  --models_dir DIR
      As in gpt2.py, whose --help explains them.
  -h, --help
      Print this text.

The values shown are the defaults.

examples:
  python walkthrough.py "The king sings"
  python walkthrough.py "The king sings" --model_size 124M --layer 1,6,12 --output king.html
  python walkthrough.py --temperature 0 < prompt.txt
"""

# ---- The page ------------------------------------------------------------------------------

CHAPTERS = (
    ("text", "From text to numbers", chapter_text),
    ("heads", "Who looks at whom", chapter_heads),
    ("layers", "The vectors, layer by layer", chapter_vectors),
    ("words", "Why this word and not that one", chapter_choices),
    ("cached", "What is kept for the next token", chapter_cache),
    ("program", "gpt2.py, line by line", listing),
)


def whole_page(run):
    """The whole page as text."""
    style, script = contents("style.css"), contents("reading.js")
    prompt = readable(run.options["prompt"])
    title = " ".join(prompt.split()) or "an empty prompt"
    title = title if len(title) <= 60 else title[:57] + "..."
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy(script)),
        tag("link", rel="icon", href="data:,"),
        tag("title", f"{title} – how GPT-2 goes on"),
        tag("style", Markup(style + layer_rules(run.layers))),
    )
    links = [tag("li", tag("a", title, href=f"#{id}")) for id, title, _ in CHAPTERS]
    header = tag(
        "header",
        tag("p", "One run of gpt2.py, explained with its own numbers", class_="kicker"),
        tag("h1", tag("bdi", prompt), tag("em", readable(run.text))),
        *introduction(run),
        tag("nav", tag("ol", *links), aria_label="Chapters"),
    )
    chapters = [
        tag("section", tag("h2", title), module.chapter(run), id=id, aria_label=title)
        for id, title, module in CHAPTERS
    ]
    body = tag("body", header, tag("main", *chapters), tag("script", Markup(script)))
    return "<!DOCTYPE html>\n" + shared(tag("html", head, body, lang="en")) + "\n"


def introduction(run):
    """What the page is, and the command that makes the same text."""
    if run.options["prompt"]:
        given = "The model was given the beginning of this text, and added what is in colour."
    else:
        given = "The model was given an empty prompt, and wrote this text."
    start, *flags = command(run.options)
    shell = " in bash, zsh or ksh" if start.startswith(("python gpt2.py $'", "printf")) else ""
    return [
        prose(
            f"{given} This page shows how, with the numbers of this very run. Five chapters "
            "explain the ideas. The last chapter shows the program, and what each of its lines "
            "computed."
        ),
        prose(
            f"The model is called {run.options['model_size']}. It is a GPT-2: it is built like the "
            "language models that OpenAI released under this name in 2019. It has "
            f"{run.hparams['n_layer']} layers and {n_weights(run):,} weights, the numbers that it "
            "has learned."
        ),
        tag("p", "In the pictures below, each number is a coloured cell. Above each kind of "
            "picture, it is said what the rows, the columns and the colours mean. To read the "
            "number of a cell, point at it or tap it. With a keyboard, go to the picture with Tab "
            "and move with the arrow keys.", class_="prose",
            hidden="hidden"),  # until the script runs: without it, the pictures show no numbers
        prose(f"To make the same text with gpt2.py alone{shell}:"),
        tag("pre", tag("code", start, *(part for flag in flags for part in
            (" ", tag("span", flag, class_="flag")))), class_="command"),
    ]


def n_weights(run):
    """How many numbers the model has learned."""
    sizes = []
    shapes = weights.shapes_of(run.hparams)
    weights.map_tree(lambda name, shape: sizes.append(math.prod(shape)), shapes)
    return sum(sizes)


def policy(script):
    """What a browser may do on this page: use no network at all, and run no script but this one."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
            f"script-src 'sha256-{digest}'")


def contents(name):
    """The text of a file in the folder `page`."""
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "page", name), encoding="utf-8") as file:
        return file.read()


def layer_rules(layers):
    """The part of the style sheet that shows the values of the chosen layer only."""
    shown = [
        f"body:has(#layer-{i + 1}:checked) .layer-{i + 1} {{ display: block }}" for i in layers
    ]
    return "@supports selector(:has(a)) { .layer { display: none } " + " ".join(shown) + " }"


# ---- The command line ----------------------------------------------------------------------


def check_layer(layer):
    """Raises checks.CallError if this names no layers, whatever model it is."""
    number = "[1-9][0-9]{0,3}"
    if layer is not None and not re.fullmatch(f"all|{number}(,{number})*", str(layer)):
        raise checks.CallError(
            f"layer must be all, or numbers of layers, such as 1,6,12, not {checks.shown(layer)}"
        )


def chosen_layers(layer, n_layer, n_tokens):
    """The layers to show in full, as a list of numbers from 0. Raises checks.CallError.

    layer: what was asked for; it has passed `check_layer`. n_tokens: the length of the text, with
    the tokens to be added.
    """
    if layer is None:
        is_small = n_layer <= 6 and n_tokens <= SHORT_TEXT
        return list(range(n_layer)) if is_small else [0, n_layer - 1]
    if str(layer) == "all":
        return list(range(n_layer))
    numbers = {int(word) for word in str(layer).split(",")}
    if max(numbers) > n_layer:
        raise checks.CallError(
            f"layer must be all, or numbers from 1 to {n_layer}, such as 1,{n_layer}, "
            f"not {checks.shown(layer)}"
        )
    return sorted(number - 1 for number in numbers)


def main(
    prompt=None,
    n_tokens_to_generate=4,
    model_size="tiny",
    models_dir=None,
    temperature=0.7,
    top_k=TOP_K,
    top_p=TOP_P,
    seed=SEED,
    layer=None,
    output="walkthrough.html",
):
    """Writes the page. `python walkthrough.py --help` says what the options mean.

    Raises checks.CallError where the call is wrong, OSError where the page cannot be written, and
    what gpt2.main raises.
    """
    n_tokens = checks.integer("n_tokens_to_generate", n_tokens_to_generate, lowest=1)
    if n_tokens > MAX_NEW_TOKENS:
        raise checks.CallError(
            f"n_tokens_to_generate can be at most {MAX_NEW_TOKENS} on a page, not {n_tokens}"
        )
    check_layer(layer)
    given_temperature, given_k, given_p = checks.sampling_options(temperature, top_k, top_p)
    given_seed = checks.integer("seed", seed, lowest=0)
    where = model_names.MODELS_DIR if models_dir is None else models_dir
    model_names.check_model_size(model_size, where)
    output = os.path.expanduser(output)
    check_output(output)
    prompt = prompts.read_prompt(prompt)
    if prompt is None:
        raise checks.CallError("there is no prompt: give one in quotes, or pipe one in")

    encoder, hparams = utils.load_encoder_and_hparams(model_size, where)
    n_ids = len(encoder.encode(prompt))
    if n_ids > MAX_TOKENS:
        raise checks.CallError(
            f"the prompt has {n_ids} tokens, but a page can show at most {MAX_TOKENS}: shorten it"
        )
    n_ids = len(prompts.encode_prompt(prompt, encoder, hparams["n_ctx"]))
    if given_temperature == 0:
        # These have no effect, but only those that were asked for are worth a note.
        asked_k = 0 if given_k == TOP_K else given_k
        asked_p = 1 if given_p == TOP_P else given_p
        cli.note_no_effect(0, asked_k, asked_p, 1, None if given_seed == SEED else given_seed)
        top_k, top_p, seed = 0, 1.0, None
    layers = chosen_layers(layer, hparams["n_layer"], n_ids + n_tokens)
    options = {
        "prompt": prompt,
        "n_tokens_to_generate": n_tokens,
        "model_size": model_size,
        "models_dir": models_dir,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
    }
    params = utils.load_params(model_size, where, hparams)
    text = whole_page(Run(options, encoder, hparams, params, layers))
    write_whole(output, text)
    if not is_device(output):
        size = len(text.encode()) / 1e6
        console.write_to_stderr(f"wrote {output} ({size:.1f} MB): open it in a browser\n")


def check_output(path):
    """Raises CallError where no file can be written, before anything slow starts."""
    folder = os.path.dirname(path) or "."
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise checks.CallError(f"output: {checks.shown(folder)} is a file, not a folder")
    if not os.path.isdir(folder):
        raise checks.CallError(
            f"output: the folder {checks.shown(folder)} does not exist: create it, or choose "
            "another file with --output"
        )
    if os.path.isdir(path):
        raise checks.CallError(f"output {checks.shown(path)} is a folder: name a file in it")
    if path in STREAMS:
        try:
            os.fstat(STREAMS[path])
        except OSError:
            raise checks.CallError(f"output: {path} is closed") from None
    if is_device(path):
        return
    try:  # this finds out what goes wrong, from missing rights to too long a name
        part = part_of(path)
        with open(part, "w"):
            pass
        os.remove(part)
    except OSError as error:
        raise checks.CallError(
            f"cannot create output {checks.shown(path)} ({error.strerror}): choose another file "
            "with --output"
        ) from None


def is_device(path):
    """Whether `path` is a pipe, a terminal or the like, which no new file can replace.

    A standard stream counts as one even where it leads to a file: that file may hold more than the
    page.
    """
    return path in STREAMS or os.path.exists(path) and not os.path.isfile(path)


def part_of(path):
    """The name of a file while it is not complete: it is in the folder where `path` will be."""
    target = os.path.realpath(path)  # where `path` is a link, the file that it points to
    return f"{target}.{os.getpid()}.part"


def write_whole(path, text):
    """Writes a file that is never seen half written: it takes its name once it is complete."""
    is_file = not is_device(path)
    part = part_of(path) if is_file else path
    try:
        where = os.dup(STREAMS[path]) if path in STREAMS else part
        with open(where, "w", encoding="utf-8") as file:
            if is_file:
                with contextlib.suppress(OSError):  # there is no older page, or no such right
                    shutil.copymode(path, part)
            file.write(text)
        if is_file:
            os.replace(part, os.path.realpath(path))
    except BrokenPipeError:
        raise  # the reader of a pipe, such as `head -1`, has seen enough
    except OSError as error:
        with contextlib.suppress(OSError):
            if is_file:
                os.remove(part)
        message = f"cannot write {path} ({error.strerror}): choose another file with --output"
        raise OSError(message) from None


if __name__ == "__main__":
    # Standard output may be closed, since the page goes into a file.
    sys.stdout = sys.stdout or sys.stderr or open(os.devnull, "w", encoding="utf-8")
    cli.run(main, HELP)
