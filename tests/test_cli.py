"""The command line: what is refused, where a prompt comes from, what is printed, how it ends.

`call` runs the program in this process, which is quick; `process` and `shell` start it from
outside, where the system has a part in it. tests/test_terminal.py has what only a terminal shows.
"""

import inspect
import os
import shlex
import shutil
import signal
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

import cli
import encoder
import gpt2
import utils

GPT2_PY = gpt2.__file__
TINY = ["--model_size", "tiny"]
TWELVE = [*TINY, "--n_tokens_to_generate", "12"]
OPTIONS = inspect.signature(gpt2.main).parameters
POSIX_ONLY = pytest.mark.skipif(os.name != "posix", reason="takes a POSIX shell")


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """A function that runs `python gpt2.py WORDS`, in this process and in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["gpt2.py", *words])
        with pytest.raises(SystemExit) as exit:
            cli.run(gpt2.main)
        return Outcome(exit.value.code, *capsys.readouterr())

    return call


def environment(**variables):
    """Variables for a process that can reach no network."""
    dead = dict.fromkeys(["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"], "127.0.0.1:9")
    return {**os.environ, "PYTHONIOENCODING": "utf-8", **dead, **variables}


@pytest.fixture
def process(tmp_path):
    """A function that runs `python gpt2.py WORDS` as a process, in an empty folder."""

    def process(*words, stdin=b"", python=(), script=GPT2_PY, cwd=tmp_path, **variables):
        result = subprocess.run(
            [sys.executable, *python, script, *words],
            input=stdin,
            capture_output=True,
            cwd=cwd,
            env=environment(**variables),
            timeout=60,
        )
        out = result.stdout.decode().replace(os.linesep, "\n")
        return Outcome(result.returncode, out, result.stderr.decode())

    return process


@pytest.fixture
def shell(tmp_path):
    """A function that runs a line of shell, in which $GPT2 is `python gpt2.py`."""

    def shell(line, **variables):
        result = subprocess.run(
            ["sh", "-c", line.replace("$GPT2", '"$PYTHON" "$GPT2_PY"')],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=tmp_path,
            env=environment(PYTHON=sys.executable, GPT2_PY=GPT2_PY, **variables),
            timeout=60,
        )
        return Outcome(result.returncode, result.stdout.decode(), result.stderr.decode())

    return shell


@pytest.fixture
def encoded(monkeypatch):
    """The list of all texts that are given to the tokenizer."""
    texts = []
    monkeypatch.setattr(encoder.Encoder, "encode", lambda self, text: texts.append(text) or [0])
    return texts


@pytest.fixture
def model_says(monkeypatch):
    """A function that makes the model say given rows of bytes, a byte a token, then end each."""
    ids = encoder.get_encoder("tiny", utils.MODELS_DIR).ids

    def model_says(*rows):
        def scripted(inputs, wte, cache=None, **rest):
            n_said = cache or 0
            logits = np.zeros((len(inputs), len(wte)), dtype=np.float32)
            for row, said in zip(logits, rows):
                row[ids[said[n_said : n_said + 1]] if n_said < len(said) else -1] = 1
            return logits, n_said + 1

        monkeypatch.setattr(gpt2, "gpt2", scripted)

    return model_says


@pytest.fixture
def generated(monkeypatch):
    """The list of what generate yields, while the model never ends its text."""
    steps, original = [], gpt2.generate

    def generate(*arguments, **options):
        for ids in original(*arguments, **{**options, "stop_id": None}):
            steps.append(ids.tolist())
            yield ids

    monkeypatch.setattr(gpt2, "generate", generate)
    monkeypatch.setattr(cli, "end_of_text", lambda encoder: None)
    return steps


# ---- Wrong calls ---------------------------------------------------------------------------

# The words of a call, and what the answer must contain.
WRONG_CALLS = [
    # Flags that are none.
    (["Hi", "--n_tokens", "5"], ["--n_tokens'", "did you mean --n_tokens_to_generate?"]),
    (["Hi", "--temprature", "1"], ["--temprature", "did you mean --temperature?"]),
    (["Hi", "--temprature=1"], ["--temprature=1", "did you mean --temperature?"]),
    (["Hi", "--model", "tiny"], ["--model'", "did you mean --model_size?"]),
    (["Hi", "--length", "5"], ["--length", *(f"--{name}" for name in OPTIONS)]),
    (["Hi", "-n", "5"], ["'-n'", "did you mean --n_tokens_to_generate?"]),
    (["-help"], ["'-help'", "did you mean --help?"]),
    (["Hi", "-seed", "5"], ["'-seed'", "did you mean --seed?"]),
    (["Hi", "--noseed"], ["--noseed"]),
    (["Hi", "--trace"], ["--trace"]),
    (["Hi", "--", "--trace"], ["'--'"]),
    (["Hi", "--"], ["'--'"]),
    (["Hi", "-"], ["'-'"]),
    (["-"], ["'-'", '--prompt="-"']),
    # Prompts that look like a flag.
    (["-apple pie"], ['--prompt="-apple pie"']),
    (["--help me"], ['--prompt="--help me"']),
    (["--- title ---"], ['--prompt="--- title ---"']),
    (["--prompt", "-apple pie"], ["--prompt", "no value", '--prompt="-']),
    # Prompts without quotes.
    (["Alan", "Turing", "theorized"], ["'Turing'", "'Alan'", "quotes"]),
    (["Hi", "5"], ["'5'", "quotes"]),
    (["Hi", ""], ["''", "quotes"]),
    (["x" * 10000, "y" * 10000], ["xxx...", "yyy...", "quotes"]),
    # Flags without a value, or with two.
    (["--prompt"], ["--prompt", "no value"]),
    (["Hi", "--seed"], ["--seed", "no value"]),
    (["Hi", "--seed="], ["--seed", "no value"]),
    (["Hi", "--seed", "--top_k", "4"], ["--seed", "no value"]),
    (["Hi", "--models_dir", ""], ["--models_dir", "no value"]),
    (["Hi", "--seed", "1", "--seed", "1"], ["--seed", "twice"]),
    (["Hi", "--top-k", "1", "--top_k=2"], ["--top_k", "twice"]),
    (["Hi", "--prompt=Hi"], ["--prompt", "twice"]),
    (["--prompt=Hi", "Hi"], ["'Hi'", "quotes"]),
    # Whole numbers.
    *[
        (["Hi", f"--{name}", value], [f"--{name}", repr(value), "whole number"])
        for name in ["n_tokens_to_generate", "top_k", "nsamples", "batch_size", "seed"]
        for value in ["-1", "many", "True"]
    ],
    *[
        (["Hi", f"--n_tokens_to_generate={value}"], ["--n_tokens_to_generate", repr(value)])
        for value in ["40.0", "40.5", "1e2", "1_000", "0x10", "+5", " 5", "5\n", "４０", "²", "nan"]
    ],
    (["Hi", "--nsamples", "0"], ["--nsamples", "'0'", "1 or more"]),
    (["Hi", "--batch_size", "0"], ["--batch_size", "'0'", "1 or more"]),
    (["Hi", "--seed", "9" * 19], ["--seed", "9" * 19, "18"]),
    (["Hi", "--seed", "9" * 10000], ["--seed", "999...", "18"]),
    # Other numbers.
    *[
        (["Hi", f"--temperature={value}"], ["--temperature", repr(value), "0 or more"])
        for value in ["-1", "-0.5", "0,7", "nan", "inf", "-inf", "1e999", "True", "1_0", "٠.٧"]
    ],
    *[
        (["Hi", f"--top_p={value}"], ["--top_p", repr(value), "above 0 and at most 1"])
        for value in ["0", "0.0", "1.1", "90", "90%", "-0.1", "0,9", "nan", "inf", "True", "1e-999"]
    ],
    # Models.
    *[
        (["Hi", "--model_size", size], ["124M", "355M", "774M", "1558M"])
        for size in ["335M", "124", "124m", "../x", "..", ".", "/", "a/b", "a\nb", "gpt2-xl", "x\0"]
    ],
    (["Hi", "--model_size", "117M"], ["117M", "124M"]),
    (["Hi", "--model_size", "345M"], ["345M", "355M"]),
    # Texts that are none: the byte 0xE9, as Python passes on what is not UTF-8.
    (["caf\udce9"], ["UTF-8", r"caf\udce9"]),
]


@pytest.mark.parametrize(
    "words, message", [pytest.param(*case, id=" ".join(case[0])[:40]) for case in WRONG_CALLS]
)
def test_wrong_call_is_refused_in_one_line(call, tmp_path, monkeypatch, words, message):
    """A line on stderr, exit status 2, nothing else, before anything is loaded or fetched."""
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
    """The same from outside, where the network cannot be reached and no model is there."""
    status, out, err = process(*words, "--models_dir=absent")
    assert (status, out) == (2, "")
    assert message in err and err.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_prompt_that_is_too_long_is_refused_before_the_weights_are_touched(call, monkeypatch):
    """The message has both numbers, and no note of an option goes before it."""
    monkeypatch.setattr(utils, "load_params", lambda *_: pytest.fail("loads the weights"))
    status, out, err = call("~" * 5975, *TINY, "--top_k", "5")
    assert (status, out) == (2, "")
    assert "5975" in err and "256" in err and err.count("\n") == 1


def test_model_that_cannot_be_fetched_is_no_wrong_call(process):
    """What hinders a right call ends in one line too, but in exit status 1."""
    status, out, err = process("Hi", "--models_dir=absent", GPT2_BASE_URL="nowhere")
    assert (status, out) == (1, "")
    assert "124M" in err and "tiny" in err and err.count("\n") == 1


def test_model_is_refused_by_name_where_its_folder_is_not_whole(process, tmp_path):
    """A folder that is no model is named with what it lacks, in exit status 1."""
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
def test_help_wherever_it_is_asked_for(call, tmp_path, words):
    """-h or --help among the words is answered on stdout, whatever else is wrong."""
    status, out, err = call(*words)
    assert (status, err) == (0, "")
    assert out.startswith("usage: python gpt2.py ")
    assert os.listdir(tmp_path) == []


def test_help_needs_no_model(process, tmp_path):
    """Help comes without a model, a network, or anything left behind."""
    status, out, err = process("--help", "--models_dir=absent")
    assert (status, err) == (0, "")
    assert "examples:" in out
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", OPTIONS)
def test_help_tells_each_option_and_its_default(call, name):
    """Every parameter of main has its line, with the default that main's signature has."""
    default = OPTIONS[name].default
    value = "" if default is None else f" {default}\n"
    assert f"--{name}{value}" in call("--help").out


def test_examples_of_help_are_calls_that_work(call, encoded, monkeypatch):
    """Each example, with fewer tokens and the small model, makes a text."""
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
        *["~" * 5975, "(" * 3000, "not " * 5975, "- " * 5975, "x" * 100_000],
        *["<|endoftext|>", "self", "upper", "$HOME", "%s", "\x01\x7f", "\u2028"],
    ],
    ids=lambda prompt: repr(prompt[:20]),
)
def test_prompt_is_what_was_typed(call, encoded, prompt):
    """Whatever a text means to Python or to fire, the tokenizer gets it as it is."""
    assert call(f"--prompt={prompt}", *TINY, "--n_tokens_to_generate=0") == (0, "\n", "")
    if not cli.looks_like_flag(prompt):
        call(prompt, *TINY, "--n_tokens_to_generate=0")
        call(*TINY, "--n_tokens_to_generate=0", "--prompt", prompt)
    assert set(encoded) == {prompt}


def test_options_are_what_was_typed(call, monkeypatch):
    """Names that look like numbers stay names, and hyphens may stand for underscores."""
    given = {}
    monkeypatch.setattr(cli, "check_model", lambda *model: given.update(model=model))
    monkeypatch.setattr(utils, "load_encoder_and_hparams", lambda *_: sys.exit("far enough"))
    assert call("Hi", "--models-dir=2024", "--model-size", "124").status == "far enough"
    assert given["model"] == ("124", "2024")


def test_empty_prompt_starts_from_end_of_text(call, monkeypatch):
    """`""` is OpenAI's unconditional sample: the model is asked what follows <|endoftext|>."""
    seen = []
    monkeypatch.setattr(gpt2, "generate", lambda ids, *_, **__: seen.append(ids) or iter([]))
    for words in [[""], ["--prompt="], ["--prompt", ""]]:
        assert call(*words, *TINY).status == 0
    n_vocab = len(encoder.get_encoder("tiny", utils.MODELS_DIR).tokens)
    assert seen == [[n_vocab - 1]] * 3


# ---- A prompt from standard input ----------------------------------------------------------


@pytest.mark.parametrize(
    "data, prompt",
    [
        (b"ROMEO:", "ROMEO:"),
        (b"ROMEO:\n", "ROMEO:"),
        (b"ROMEO:\r\n", "ROMEO:"),
        (b"ROMEO:\n\n", "ROMEO:\n"),
        (b"a\r\nb\rc\n \n", "a\r\nb\rc\n "),
        (b" \n", " "),
        (b"a\0b\n", "a\0b"),
        ("\ufeffcafé 🤗\n".encode(), "\ufeffcafé 🤗"),
    ],
)
def test_piped_prompt_loses_one_line_end_at_most(encoded, call, monkeypatch, data, prompt):
    """All that is piped in is one prompt, without the line end that `echo` adds."""
    pipe_in(monkeypatch, data)
    assert call(*TINY, "--n_tokens_to_generate=0").status == 0
    assert encoded == [prompt]


@pytest.mark.parametrize(
    "data, message",
    [
        (b"", '""'),
        (b"\n", '""'),
        (b"\r\n", '""'),
        (b"caf\xe9\n", "UTF-8"),
        (b"\xff" * 999, "UTF-8"),
    ],
)
def test_piped_prompt_that_is_refused(call, monkeypatch, data, message):
    """Nothing but a line end is no prompt, and what is not UTF-8 is no text."""
    pipe_in(monkeypatch, data)
    status, out, err = call(*TINY)
    assert (status, out) == (2, "")
    assert message in err and err.count("\n") == 1


def pipe_in(monkeypatch, data):
    """Make data what the process reads on standard input."""
    reader, writer = os.pipe()
    os.write(writer, data)
    os.close(writer)
    monkeypatch.setattr(sys, "stdin", open(reader, encoding="utf-8"))


def test_prompt_of_the_call_goes_before_the_piped_one(process):
    """Standard input is not even read where a prompt is typed."""
    assert process("ROMEO:", *TWELVE, stdin=b"\xff") == process(*TWELVE, stdin=b"ROMEO:\n")


@POSIX_ONLY
def test_argument_that_is_not_utf_8_is_refused(shell):
    """Bytes of another encoding end in one line, not in another text."""
    status, out, err = shell("""$GPT2 "$(printf 'caf\\351')" --model_size tiny""")
    assert (status, out) == (2, "")
    assert "UTF-8" in err and err.count("\n") == 1


# ---- What is printed -----------------------------------------------------------------------


def test_sample_is_its_text_and_one_newline(call, model_says):
    """The prompt is not repeated, and line ends of the text survive."""
    model_says(b"a\n\nb\n")
    assert call("x", *TINY) == (0, "a\n\nb\n\n", "")


def test_samples_are_numbered_across_batches(call, model_says):
    """Each sample stands under its line, as OpenAI's script prints it."""
    model_says(b"a\nb", b"a\nc")
    line = "=" * 40
    texts = ["a\nb", "a\nc", "a\nb"]
    expected = [f"{line} SAMPLE {i} {line}\n{text}\n" for i, text in enumerate(texts, start=1)]
    result = call("x", *TINY, "--nsamples", "3", "--batch_size", "2", "--temperature", "1e-9")
    assert result.out == "".join(expected)


def test_text_ends_where_the_model_ends_it(call, model_says):
    """<|endoftext|> is not printed; in a batch, a row that has ended waits for the others."""
    model_says(b"ab", b"abcd", b"a")
    out = call("x", *TINY, "--nsamples", "3").out
    assert [line for line in out.splitlines() if "=" not in line] == ["ab", "abcd", "a"]


def test_end_of_text_in_the_prompt_ends_nothing(call, model_says):
    """Typed, <|endoftext|> is thirteen characters like any others."""
    model_says(b"ab")
    assert call("x <|endoftext|> y", *TINY).out == "ab\n"


def test_no_tokens_make_an_empty_text(call):
    """--n_tokens_to_generate 0 is a call like any other."""
    assert call("x", *TINY, "--n_tokens_to_generate", "0") == (0, "\n", "")


@pytest.mark.parametrize(
    "said", ["hi 🤗 你", b"\xf0\x9f\xa4", b"\xff\xfe", b"\xe4\xbd\xe4\xbd\xa0\x80", b"\xf0\x9f\n"]
)
def test_streamed_text_is_the_text_at_the_end(call, model_says, monkeypatch, capsys, said):
    """Characters spread over tokens come whole, and bytes that are none come as U+FFFD."""
    model_says(said if isinstance(said, bytes) else said.encode())
    at_the_end = call("x", *TINY).out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert call("x", *TINY).out == at_the_end


# ---- The same text again -------------------------------------------------------------------


def test_seed_makes_the_same_text_again(call):
    """The same seed gives the same text, in one process too; another seed gives another."""
    words = ["ROMEO:", *TWELVE, "--temperature", "1"]
    zero = call(*words, "--seed", "0")
    assert zero == call(*words, "--seed", "0")
    assert zero.out != call(*words, "--seed", "1").out
    assert zero.err == ""


def test_fresh_seed_is_told(call):
    """Without --seed, the one that was drawn stands on stderr, and makes the text again."""
    words = ["ROMEO:", *TWELVE, "--temperature", "1"]
    first, second = call(*words), call(*words)
    assert first.err != second.err
    seed = first.err.split("--seed ")[1].split()[0]
    assert call(*words, "--seed", seed).out == first.out


@pytest.mark.parametrize("batch_size", ["1", "2", "5", "7"])
def test_samples_are_the_same_for_every_batch_size(call, batch_size):
    """batch_size need not divide nsamples, may exceed it, and changes no text."""
    words = ["ROMEO:", *TWELVE, "--temperature", "1", "--seed", "7", "--nsamples", "5"]
    default = call(*words)
    assert call(*words, "--batch_size", batch_size) == default
    texts = default.out.split("SAMPLE")
    assert len(set(texts)) == len(texts)  # no two samples are alike


def test_sample_does_not_depend_on_how_many_there_are(call):
    """The first sample of several is the one that a call for one makes."""
    words = ["ROMEO:", *TWELVE, "--temperature", "1", "--seed", "7"]
    alone = call(*words).out
    line = "=" * 40
    assert call(*words, "--nsamples", "2").out.startswith(f"{line} SAMPLE 1 {line}\n{alone}{line}")


@pytest.mark.parametrize(
    "words, notes",
    [
        ([], []),
        (["--top_k", "0", "--top_p", "1"], []),
        (["--top_k", "5"], ["--top_k"]),
        (["--top_p", ".5", "--seed", "0"], ["--top_p", "--seed"]),
        (["--nsamples", "2"], ["alike"]),
        (["--temperature", "1", "--top_k", "5", "--seed", "0", "--nsamples", "2"], []),
        (["--temperature", "1"], ["--seed"]),
    ],
)
def test_notes_tell_what_has_no_effect(call, words, notes):
    """At temperature 0 the options of chance do nothing, which stderr says, a line for each."""
    status, _, err = call("ROMEO:", *TINY, "--n_tokens_to_generate", "1", *words)
    lines = err.splitlines()
    assert status == 0
    assert len(lines) == len(notes)
    assert all(note in line for note, line in zip(notes, lines))


# ---- Longer than the window ----------------------------------------------------------------


def test_text_goes_on_past_the_window(call, generated):
    """Every id past 256 follows from the last half window alone, each time it is full."""
    assert call("~", *TINY, "--n_tokens_to_generate", "390").status == 0
    encoder, hparams, params = utils.load_encoder_hparams_and_params("tiny", utils.MODELS_DIR)
    n_ctx, n_head = hparams["n_ctx"], hparams["n_head"]
    assert (n_ctx, len(generated)) == (256, 390)
    ids = [*encoder.encode("~"), *(id for [id] in generated)]

    # ids[255] is the last one with a position in the first window; ids[256] would stand at 256,
    # so ids[129:257] become a new prompt, and ids[257] follows from them. That window is full
    # again when ids[385] would stand at 256.
    for i, start in [(1, 0), (256, 0), (257, 129), (385, 129), (386, 258), (390, 258)]:
        logits, _ = gpt2.gpt2(np.array([ids[start:i]]), **params, n_head=n_head)
        assert ids[i] == logits.argmax(), i


def test_first_window_is_what_a_shorter_text_is(call, generated):
    """Asking for more changes nothing of what comes before the window is full."""
    call("ROMEO:", *TINY, "--n_tokens_to_generate", "200")
    shorter = list(generated)
    generated.clear()
    call("ROMEO:", *TINY, "--n_tokens_to_generate", "300")
    assert generated[:200] == shorter


def test_outgrown_window_is_told_after_ctrl_c_too(call, monkeypatch):
    """With the text that there is, in exit status 130."""

    def until_ctrl_c(*_, **__):
        yield from [np.array([64])] * 300
        raise KeyboardInterrupt

    monkeypatch.setattr(gpt2, "generate", until_ctrl_c)
    status, out, err = call("", *TINY, "--n_tokens_to_generate", "1000")
    assert (status, out) == (130, "a" * 300 + "\n")
    assert err == "gpt2.py: note: after 256 tokens the text went on from its last 128 alone\n"


@pytest.mark.parametrize("n_tokens, n_notes", [(256, 0), (257, 1), (600, 1)])
def test_outgrown_window_is_told_once(call, model_says, n_tokens, n_notes):
    """One line on stderr, however often it happened, and none where the text just fits."""
    model_says(b"a" * 1000)
    status, out, err = call("", *TINY, "--n_tokens_to_generate", str(n_tokens))
    assert (status, out) == (0, "a" * n_tokens + "\n")
    assert err.count("went on from its last 128") == err.count("\n") == n_notes


def test_prompt_may_fill_the_window(call):
    """A prompt of 256 tokens is accepted, one of 257 refused."""
    words = [*TINY, "--n_tokens_to_generate", "2"]
    ids = encoder.get_encoder("tiny", utils.MODELS_DIR).encode("~" * 256)
    assert len(ids) == 256
    assert call("~" * 256, *words).status == 0
    assert call("~" * 257, *words).status == 2


# ---- main from Python ----------------------------------------------------------------------


def test_main_takes_numbers_from_python(capsys):
    """Real numbers, NumPy's among them, do what their text does."""
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


@pytest.mark.parametrize(
    "option",
    [
        dict(seed=True),
        dict(seed=1.0),
        dict(seed=-1),
        dict(nsamples=0),
        dict(n_tokens_to_generate=None),
        dict(temperature=float("nan")),
        dict(temperature=float("inf")),
        dict(temperature=True),
        dict(temperature=10**400),
        dict(temperature=-1e-9),
        dict(top_p=0),
        dict(top_p=1.5),
        dict(top_k=2.5),
        dict(model_size="335M"),
    ],
    ids=lambda option: str(option)[:40],
)
def test_main_refuses_from_python_what_the_command_line_does(option):
    """A CallError, which is a ValueError, names the option."""
    with pytest.raises(cli.CallError, match="335M" if "model_size" in option else [*option][0]):
        gpt2.main("ROMEO:", **{"model_size": "tiny", **option})


# ---- Where it runs -------------------------------------------------------------------------


def test_options_of_python_change_nothing(process, call):
    """Without asserts and with every warning an error, the text is the same, and all that comes."""
    python = ["-O", "-W", "error", "-X", "dev"]
    assert process("ROMEO:", *TWELVE, python=python) == call("ROMEO:", *TWELVE)


def test_typed_text_survives_a_locale_that_knows_ascii_only(process):
    """In the C locale, where Python cannot read the argument, its bytes still arrive."""
    c_locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert process("café 🤗", *TWELVE, **c_locale) == process("café 🤗", *TWELVE)


def test_models_are_found_from_any_folder(process, tmp_path):
    """models_dir is beside gpt2.py, also where the script is called by a symbolic link."""
    link = tmp_path / "link.py"
    try:
        link.symlink_to(GPT2_PY)
    except OSError:
        pytest.skip("this system allows no symbolic links")
    assert process("ROMEO:", *TWELVE, script=link).out == process("ROMEO:", *TWELVE).out


def test_models_dir_may_be_read_only_and_begin_with_a_tilde(call, tmp_path, monkeypatch):
    """A model that is all there is only read."""
    folder = tmp_path / "m" / "tiny"
    shutil.copytree(os.path.join(utils.MODELS_DIR, "tiny"), folder)
    for path in (*folder.iterdir(), folder, folder.parent):
        path.chmod(0o555)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    try:
        assert call("ROMEO:", *TWELVE, "--models_dir=~/m") == call("ROMEO:", *TWELVE)
    finally:
        for path in (folder.parent, folder, *folder.iterdir()):
            path.chmod(0o755)


# ---- Nothing is lost -----------------------------------------------------------------------

# gpt2.py with a model that says "é🤗" over and over; {wait} stands for what it does at each step.
SCRIPTED = """
import os, sys
sys.path.insert(0, os.path.dirname(os.environ["GPT2_PY"]))
import numpy as np
import cli, encoder, gpt2, utils
ids = encoder.get_encoder("tiny", utils.MODELS_DIR).ids

def scripted(inputs, wte, cache=None, **rest):
    n_said = cache or 0
    if n_said == 6 and sys.argv[-1] == "--seed=6":
        print("said six", file=sys.stderr, flush=True)
        sys.stdin.read()
    said = "é🤗".encode()[n_said % 6]
    logits = np.zeros((len(inputs), len(wte)), dtype=np.float32)
    logits[:, ids[bytes([said])]] = 1
    return logits, n_said + 1

gpt2.gpt2 = scripted
cli.run(gpt2.main)
"""


@pytest.fixture
def scripted_py(tmp_path):
    """The path of a script that is gpt2.py with a model that says "é🤗" over and over."""
    path = tmp_path / "scripted.py"
    path.write_text(SCRIPTED, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "encoding, shown",
    [
        ("ascii", r"\xe9\U0001f917"),
        ("cp1252:strict", r"é\U0001f917"),
        ("utf-8:strict", "é🤗"),
    ],
)
def test_console_that_lacks_a_character_gets_its_code(tmp_path, scripted_py, encoding, shown):
    """Whatever the encoding of the console, the whole text is printed."""
    result = subprocess.run(
        [sys.executable, scripted_py, "x", *TINY, "--n_tokens_to_generate=6"],
        capture_output=True,
        env=environment(PYTHONIOENCODING=encoding, GPT2_PY=GPT2_PY),
        timeout=60,
    )
    assert result.stdout.decode(encoding.partition(":")[0]).rstrip("\r\n") == shown
    assert (result.returncode, result.stderr) == (0, b"")


@POSIX_ONLY
@pytest.mark.parametrize("words", [[], ["--nsamples", "2"]], ids=["one sample", "a batch"])
def test_ctrl_c_prints_what_there_is(scripted_py, words):
    """An interrupted run prints its text so far and ends in 130, with no traceback."""
    command = [sys.executable, scripted_py, "x", *TINY, *words, "--temperature=1e-9", "--seed=6"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(GPT2_PY=GPT2_PY),
    ) as process:
        assert process.stderr.readline() == b"said six\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == b""
    assert out.decode().count("é🤗\n") == (2 if words else 1)


@POSIX_ONLY
@pytest.mark.parametrize(
    "line, status, out, err",
    [
        ("$GPT2 ROMEO: {options} --nsamples 2 | head -1", 0, "SAMPLE 1", "alike"),
        ("$GPT2 ROMEO: {options} >/dev/full", 1, "", "No space left"),
        ("$GPT2 --help >/dev/full", 1, "", "No space left"),
        ("$GPT2 ROMEO: {options} >&-", 1, "", "closed"),
        ("$GPT2 ROMEO: {options} --top_k 5 2>&-", 0, "{text}", ""),
        ("$GPT2 ROMEO: {options} --top_k 5 2>/dev/full", 0, "{text}", ""),
        ("$GPT2 ROMEO: --wrong 2>&-", 2, "", ""),
        ("$GPT2 ROMEO: --wrong 2>/dev/full", 2, "", ""),
        ("$GPT2 ROMEO: {options} <&-", 0, "{text}", ""),
        ("$GPT2 {options} <&-", 2, "", "no prompt"),
    ],
)
def test_closed_and_full_streams(shell, call, line, status, out, err):
    """What cannot be printed ends the run, what cannot be said does not; no traceback."""
    if "/dev/full" in line and not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full here")
    result = shell(line.format(options=" ".join(TWELVE)))
    assert result.status == status
    assert out.format(text=call("ROMEO:", *TWELVE).out) in result.out
    assert (result.out == "") == (out == "")
    assert err in result.err and result.err.count("\n") == (err != "")
