"""The words of the command line: what is refused, what help says, what the options do.

More about values is in test_checks.py, about prompts in test_prompts.py, about what is printed in
test_printing.py, and about processes, signals and streams in test_console.py.
"""

import inspect
import os
import shlex
import sys

import numpy as np
import pytest
from conftest import TINY, TWELVE, pipe_in

import cli
import gpt2
import model_names
import utils

OPTIONS = inspect.signature(gpt2.main).parameters


# ---- Wrong calls ---------------------------------------------------------------------------

# The words of a call, and what the answer must contain.
WRONG_CALLS = [
    # Flags that do not exist.
    (["Hi", "--n_tokens", "5"], ["--n_tokens'", "did you mean --n_tokens_to_generate?"]),
    (["Hi", "--temprature", "1"], ["--temprature", "did you mean --temperature?"]),
    (["Hi", "--temprature=1"], ["--temprature=1", "did you mean --temperature?"]),
    (["Hi", "--model", "tiny"], ["--model'", "did you mean --model_size?"]),
    (["Hi", "--length", "5"], ["--length", *(f"--{name}" for name in OPTIONS)]),
    (["Hi", "---seed", "5"], ["'---seed'", "did you mean --seed?"]),
    (["Hi", "-n", "5"], ["'-n'", "did you mean --n_tokens_to_generate?"]),
    (["-help"], ["'-help'", "did you mean --help?"]),
    (["Hi", "-seed", "5"], ["'-seed'", "did you mean --seed?"]),
    (["Hi", "--noseed"], ["--noseed"]),
    (["Hi", "--trace"], ["--trace"]),
    (["Hi", "--", "--trace"], ["'--'"]),
    (["Hi", "--"], ["'--'"]),
    (["Hi", "-"], ["'-'", "quotes"]),
    # Dashes and quotes from a word processor, and single quotes, which the shell of Windows does
    # not take for quotes.
    (["Hi", "\u2014temperature", "0.7"], ["long dash", "did you mean --temperature?"]),
    (["\u2013seed", "5"], ["long dash", "did you mean --seed?"]),
    (["\u2212\u2212top_k=5"], ["long dash", "did you mean --top_k?"]),
    (["\u2014model_size=tiny"], ["long dash", "did you mean --model_size?"]),
    (["\u2014oui"], ["long dash", '--prompt="\u2014oui"']),
    (["\u201cAlan", "Turing\u201d"], ["\u201cAlan", "straight"]),
    (["\u00abAlan", "--seed", "1", "Mathison", "Turing\u00bb"], ["\u00abAlan", "straight"]),
    (["'Alan", "Turing'"], ["'Alan", "straight"]),
    # Prompts that look like a flag.
    (["-apple pie"], ['--prompt="-apple pie"']),
    (["--help me"], ['--prompt="--help me"']),
    (["--- title ---"], ['--prompt="--- title ---"']),
    (["--prompt", "-apple pie"], ["--prompt", "needs a value", '--prompt="-apple pie"']),
    # Prompts without quotes.
    (["Alan", "Turing", "theorized"], ["'Turing'", "'Alan'", "quotes"]),
    (["Hi", "5"], ["'5'", "quotes"]),
    (["Hi", ""], ["''", "quotes"]),
    (["x" * 10000, "y" * 10000], ["xxx...", "yyy...", "quotes"]),
    # Flags without a value, or with two.
    (["--prompt"], ["needs a value", '--prompt="..."']),
    (["--prompt", "--n_tokens_to_generate", "1"], ["needs a value", '--prompt="..."']),
    (["--prompt", "--top-k=4"], ["needs a value", '--prompt="..."']),
    (["Hi", "--seed"], ["--seed", "needs a value"]),
    (["Hi", "--seed="], ["--seed", "needs a value"]),
    (["Hi", "--seed", "--top_k", "4"], ["--seed", "needs a value"]),
    (["Hi", "--models_dir", ""], ["--models_dir", "needs a value"]),
    (["Hi", "--seed", "1", "--seed", "1"], ["--seed", "twice"]),
    (["Hi", "--top-k", "1", "--top_k=2"], ["--top_k", "twice"]),
    (["Hi", "--prompt=Hi"], ["the prompt", "twice"]),
    (["--prompt=Hi", "Hi"], ["'Hi'", "quotes"]),
    # Wrong values. tests/test_checks.py has many more.
    (["Hi", "--seed", "\u22125"], ["seed must be a whole number", "5'"]),
    (["Hi", "--top_p=90%"], ["top_p must be above 0", "'90%'"]),
    (["Hi", "--temperature", "1e-400"], ["temperature '1e-400' is too small"]),
    # Models.
    *[
        (["Hi", "--model_size", size], ["124M", "355M", "774M", "1558M"])
        for size in ["335M", "124", "124m", "../x", "..", ".", "/", "a\nb", "x\0"]
    ],
    (["Hi", "--model_size", "117M"], ["117M", "124M"]),
    (["Hi", "--model_size", "345M"], ["345M", "355M"]),
]


@pytest.mark.parametrize(
    "words, message", [pytest.param(*case, id=" ".join(case[0])[:40]) for case in WRONG_CALLS]
)
def test_wrong_call_is_refused_in_one_line(call, tmp_path, monkeypatch, words, message):
    """stderr gets one line, and the exit status is 2.

    Nothing has been loaded or downloaded by then.
    """
    monkeypatch.setattr(utils, "load_encoder_and_hparams", lambda *_: pytest.fail("loads a model"))
    if not any(word.startswith("--models") for word in words):
        words = ["--models_dir", str(tmp_path / "absent"), *words]
    status, out, err = call(*words)
    assert status == 2
    assert out == ""
    assert err.startswith("gpt2.py: ") and err.count("\n") == 1 and err.endswith("\n")
    assert [part for part in message if part not in err] == []
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "words, message", [(["Alan", "Turing", "theorized"], "quotes"), (["Hi", "--top_p=90"], "90")]
)
def test_wrong_call_is_refused_in_a_process(process, tmp_path, words, message):
    """A real process does the same, without a network and without a model."""
    status, out, err = process(*words, "--models_dir=absent")
    assert (status, out) == (2, "")
    assert message in err and err.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_model_that_cannot_be_downloaded_is_no_wrong_call(process):
    """A right call that fails ends in one line too, but with exit status 1."""
    status, out, err = process("Hi", "--models_dir=absent", GPT2_BASE_URL="nowhere")
    assert (status, out) == (1, "")
    assert "nowhere" in err and err.count("\n") == 1


def test_incomplete_model_is_refused_with_what_it_lacks(process, tmp_path):
    """The message names the folder and the missing files, and the exit status is 1."""
    (tmp_path / "mine").mkdir()
    status, out, err = process("Hi", "--models_dir=.", "--model_size=mine")
    assert (status, out) == (1, "")
    assert "mine" in err and "encoder.json" in err and "Traceback" not in err


# ---- Help ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["-h"],
        ["Hi", "--help"],
        ["Hi", "--", "--help"],
        ["--nsense", "-h", "too", "many"],
        ["--model_size", "--help"],
    ],
)
def test_help_comes_wherever_it_is_asked_for(call, tmp_path, words):
    """-h or --help anywhere in a call prints the help on stdout, whatever else is in the call."""
    status, out, err = call(*words)
    assert (status, err) == (0, "")
    assert out.startswith("usage: python gpt2.py ")
    assert os.listdir(tmp_path) == []


def test_help_needs_no_model(process, tmp_path):
    """Help comes without a model and without a network, and leaves nothing behind."""
    status, out, err = process("--help", "--models_dir=absent")
    assert (status, err) == (0, "")
    assert "examples:" in out
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", OPTIONS)
def test_help_tells_each_option_and_its_default(call, name):
    """Every parameter of main is in the help, with the default from main's signature."""
    default = OPTIONS[name].default
    value = "" if default is None else f" {default}\n"
    assert f"--{name}{value}" in call("--help").out


def test_examples_of_help_are_calls_that_work(call, encoded, monkeypatch):
    """Each example ends without an error. Here it runs with the small model and makes 0 tokens."""
    pipe_in(monkeypatch, b"ROMEO:")
    examples = call("--help").out.partition("examples:\n")[2].splitlines()
    assert len(examples) == 3
    for example in examples:
        python, script, *words = shlex.split(example.partition("<")[0])
        assert (python, script) == ("python", "gpt2.py")
        given = {**cli.read_words(words, OPTIONS), "model_size": "tiny", "n_tokens_to_generate": 0}
        assert call(*(f"--{name}={value}" for name, value in given.items())).status == 0


# ---- The prompt is what was typed ----------------------------------------------------------


@pytest.mark.parametrize(
    "prompt",
    [
        *["Hello, world", "Paris, France", "1984", "3.14", "1_000", "0x10", "1e999", "1j", "..."],
        *["None", "True", "[BOS]", "{response}", "(1, 2)", "lambda x: x", 'b"x"', '"quoted"'],
        *["'it''s'", '"a" "b"', "hi#there", "Hello ", "  Hello", "\n", " ", "a\nb", "a\\nb", "\t"],
        *["\ufb01ne", "cafe\u0301", "🤗", "\ufeffhi", "a=b", "--a=b --c", "-5 degrees", "- item"],
        *["-> next", "-", "--", "-x", "-apple pie", "--help", "--help me", "--prompt=x", "=", "&"],
        *["\u2014 Oui.", "\u2014Non", "\u201cAlan\u201d", "'Alan'"],
        *["~" * 5975, "(" * 3000, "not " * 5975, "- " * 5975, "x" * 100_000],
        *["<|endoftext|>", "self", "upper", "$HOME", "%s", "\x01\x7f", "\u2028"],
    ],
    ids=lambda prompt: repr(prompt[:20]),
)
def test_prompt_is_what_was_typed(call, encoded, prompt):
    """The tokenizer gets the text unchanged, even if it looks like a Python value or a flag."""
    assert call(f"--prompt={prompt}", *TINY, "--n_tokens_to_generate=0") == (0, "\n", "")
    if prompt != "-" and not cli.looks_like_flag(prompt):
        call(prompt, *TINY, "--n_tokens_to_generate=0")
        call(*TINY, "--n_tokens_to_generate=0", "--prompt", prompt)
    assert set(encoded) == {prompt}


def test_options_are_what_was_typed(call, monkeypatch):
    """A name that looks like a number stays a name. Hyphens may stand for underscores in flags."""
    given = {}
    monkeypatch.setattr(model_names, "check_model_size", lambda *model: given.update(model=model))
    monkeypatch.setattr(utils, "load_encoder_and_hparams", lambda *_: sys.exit("far enough"))
    assert call("Hi", "--models-dir=2024", "--model-size", "124").status == "far enough"
    assert given["model"] == ("124", "2024")


# ---- The same text again -------------------------------------------------------------------


def test_seed_makes_the_same_text_again(call):
    """The same seed gives the same text, another seed another text.

    With --seed, there is no note.
    """
    words = ["ROMEO:", *TWELVE, "--temperature", "1"]
    zero = call(*words, "--seed", "0")
    assert zero == call(*words, "--seed", "0")
    assert zero.out != call(*words, "--seed", "1").out
    assert zero.err == ""


def test_fresh_seed_is_printed(call):
    """Without --seed, a new seed is drawn each time.

    A note on stderr has it, and with it the text comes again.
    """
    words = ["ROMEO:", *TWELVE, "--temperature", "1"]
    first, second = call(*words), call(*words)
    assert first.err != second.err
    seed = first.err.split("--seed ")[1].split()[0]
    assert call(*words, "--seed", seed).out == first.out


@pytest.mark.parametrize("batch_size", ["1", "2", "5", "7"])
def test_samples_are_the_same_for_every_batch_size(call, batch_size):
    """batch_size changes no text, even if it does not divide nsamples or exceeds it."""
    words = ["ROMEO:", *TWELVE, "--temperature", "1", "--seed", "7", "--nsamples", "5"]
    default = call(*words)
    assert call(*words, "--batch_size", batch_size) == default
    texts = default.out.split("SAMPLE")
    assert len(set(texts)) == len(texts)  # no two samples are alike


def test_sample_does_not_depend_on_the_number_of_samples(call):
    """The first of several samples is the text that a call for a single sample makes."""
    words = ["ROMEO:", *TWELVE, "--temperature", "1", "--seed", "7"]
    alone = call(*words).out
    line = "=" * 40
    assert call(*words, "--nsamples", "2").out.startswith(f"{line} SAMPLE 1 {line}\n{alone}{line}")


@pytest.mark.parametrize(
    "words, notes",
    [
        ([], []),
        (["--top_k", "0", "--top_p", "1"], []),
        (["--top_k", "5"], ["top_k"]),
        (["--top_p", ".5", "--seed", "0"], ["top_p", "seed"]),
        (["--nsamples", "2"], ["same"]),
        (["--temperature", "1", "--top_k", "5", "--seed", "0", "--nsamples", "2"], []),
        (["--temperature", "1"], ["--seed"]),
    ],
)
def test_notes_tell_what_has_no_effect(call, words, notes):
    """At temperature 0 nothing is drawn, so some options do nothing.

    A line on stderr names each of them.
    """
    status, _, err = call("ROMEO:", *TINY, "--n_tokens_to_generate", "1", *words)
    lines = err.splitlines()
    assert status == 0
    assert len(lines) == len(notes)
    assert all(note in line for note, line in zip(notes, lines))


# ---- main from Python ----------------------------------------------------------------------


def test_main_takes_numbers_from_python(capsys):
    """Numbers, also those of NumPy, do the same as the text of these numbers."""
    options = dict(model_size="tiny", n_tokens_to_generate=5, temperature=0.5, top_k=9, top_p=0.75)
    gpt2.main("ROMEO:", **options, seed=3, nsamples=2, batch_size=1)
    from_numbers = capsys.readouterr()
    numpy_options = {
        name: value if isinstance(value, str) else np.array(value)[()]
        for name, value in options.items()
    }
    gpt2.main("ROMEO:", **numpy_options, seed=np.int64(3), nsamples=np.uint8(2), batch_size=1)
    assert capsys.readouterr() == from_numbers
    text_options = {name: str(value) for name, value in options.items()}
    gpt2.main("ROMEO:", **text_options, seed="3", nsamples="2", batch_size="1")
    assert capsys.readouterr() == from_numbers
