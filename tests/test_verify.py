"""`python utils.py verify`, its messages and exit status, and which names are models."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import checkpoint
import openai_files
import utils
from tools.write_checkpoint import write_checkpoint

ROOT = Path(utils.__file__).parent
SMALL = Path(__file__).parent / "checkpoints" / "small"
DATA_FILE = f"model.ckpt{checkpoint.DATA}"
TENSORS = checkpoint.read_index(SMALL / "model.ckpt.index")


@pytest.fixture
def model(tmp_path):
    """A copy of the small model, to be damaged: tmp_path/small."""
    shutil.copytree(SMALL, tmp_path / "small")
    return tmp_path / "small"


def verify(folder, capsys):
    """The result of `verify`, and what it printed: the lines of the files, and the total."""
    result = utils.verify(folder.name, folder.parent)
    *lines, total = capsys.readouterr().out.splitlines()
    return result, lines, total


def overwrite(path, position, content):
    with open(path, "r+b") as file:
        file.seek(position)
        file.write(content)


def run(*words, **options):
    command = [sys.executable, "utils.py", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, **options)


# ---- Every byte ----------------------------------------------------------------------------


def test_a_sound_model_has_a_line_for_each_file_and_a_total(model, capsys):
    """Name, bytes, what was checked."""
    result, lines, total = verify(model, capsys)
    assert result is True
    assert [line.split()[0] for line in lines] == list(openai_files.FILES)
    assert all(re.search(r" [\d,]+ bytes  ok: \w", line) for line in lines)
    assert total == "small: 6 of 6 files are right"


@pytest.mark.parametrize("name", TENSORS)
def test_a_flipped_bit_in_a_tensor_is_found(name, model, capsys):
    """In each of them, those that training left included; the line names file and tensor."""
    position = TENSORS[name]["offset"] + TENSORS[name]["size"] // 2
    content = (model / DATA_FILE).read_bytes()
    overwrite(model / DATA_FILE, position, bytes([content[position] ^ 16]))
    result, lines, total = verify(model, capsys)
    assert result is False
    assert f"WRONG: {model / DATA_FILE} is damaged: {name} does not match its checksum" in lines[-1]
    assert total == "small: 5 of 6 files are right"


def test_a_hole_of_zeros_is_found(model, capsys):
    """As a download leaves it that first makes room for the file."""
    overwrite(model / DATA_FILE, 50_000, bytes(10_000))
    result, lines, _ = verify(model, capsys)
    assert result is False
    assert "does not match its checksum" in lines[-1]


@pytest.mark.parametrize("name", openai_files.FILES)
def test_a_missing_file_is_found(name, model, capsys):
    """And so is what cannot be checked without it."""
    (model / name).unlink()
    result, lines, _ = verify(model, capsys)
    assert result is False
    line = lines[openai_files.FILES.index(name)]
    assert line.split() == [name, "0", "bytes", "WRONG:", "missing"]


@pytest.mark.parametrize("name", openai_files.FILES)
@pytest.mark.parametrize("content", [b"", b"<html>Not Found</html>", b"\xff\xfe\x00"])
def test_a_foreign_file_is_found(name, content, model, capsys):
    """Whatever it is."""
    (model / name).write_bytes(content)
    result, lines, _ = verify(model, capsys)
    assert result is False
    assert "WRONG" in lines[openai_files.FILES.index(name)]


def test_a_changed_letter_in_the_vocabulary_is_found(model, capsys):
    """The two files of the vocabulary vouch for each other."""
    for name in ("encoder.json", "vocab.bpe"):
        content = (SMALL / name).read_bytes()
        (model / name).write_bytes(content.replace(b"in", b"im", 1))
        result, lines, _ = verify(model, capsys)
        assert result is False
        assert "WRONG" in lines[openai_files.FILES.index("vocab.bpe")]
        (model / name).write_bytes(content)


def test_openais_names_are_held_to_what_is_published(model, capsys):
    """A right model that is not OpenAI's 124M is not 124M."""
    folder = model.rename(model.parent / "124M")
    result, lines, total = verify(folder, capsys)
    assert result is False
    assert "ok: names model.ckpt, published SHA-256" in lines[0]
    assert "WRONG" in lines[1] and "has 83 bytes; published are 90" in lines[1]
    assert total == "124M: 1 of 6 files are right"


# ---- Once before the first use -------------------------------------------------------------


def load(folder):
    return utils.load_encoder_hparams_and_params(folder.name, folder.parent)


@pytest.fixture
def n_checks(monkeypatch):
    """The list of all checks of a data file: it grows by one with each."""
    checks, original = [], checkpoint.check_data
    monkeypatch.setattr(checkpoint, "check_data", lambda *a: checks.append(a) or original(*a))
    return checks


def test_damaged_weights_make_no_text(model):
    """Zeros in the place of weights, and a NaN with a right checksum, are refused at the start."""
    overwrite(model / DATA_FILE, 50_000, bytes(10_000))
    with pytest.raises(ValueError, match="does not match its checksum.*utils.py verify small"):
        load(model)
    tensors = dict(np.load(SMALL.parent / "small.npz"))
    tensors["model/ln_f/b"][3] = np.nan
    write_checkpoint(model, openai_files.read_hparams(model / "hparams.json"), tensors)
    with pytest.raises(ValueError, match="model/ln_f/b has numbers that are .* not numbers"):
        load(model)


def test_weights_are_checked_once(model, n_checks):
    """And again when the file has changed, or the folder has another name."""
    load(model)
    load(model)
    assert len(n_checks) == 1
    os.utime(model / DATA_FILE, ns=(0, 0))
    load(model)
    assert len(n_checks) == 2
    moved = model.rename(model.parent / "moved")
    load(moved)
    load(moved)
    assert len(n_checks) == 3


def test_weights_that_became_wrong_are_refused_again(model):
    """A check that has passed does not stand for a file that was written to later."""
    load(model)
    overwrite(model / DATA_FILE, 50_000, bytes(10_000))
    with pytest.raises(ValueError, match="checksum"):
        load(model)


@pytest.mark.parametrize("note", [b"", b"[", b"[]", b'{"x": 1}', b"\xff", b"[" * 100_000])
def test_a_damaged_note_is_no_note(note, model, n_checks):
    """Whatever is in the file that notes the check, the weights are checked."""
    (model / utils.CHECKED_FILE).write_bytes(note)
    load(model)
    load(model)
    assert len(n_checks) == 1


def test_a_check_that_takes_long_is_announced(model, monkeypatch, capsys):
    """It says which folder is checked; where the note cannot be written, it says that too."""
    monkeypatch.setattr(utils, "LARGE", 1000)
    load(model)
    assert str(model) in capsys.readouterr().err
    load(model)
    assert capsys.readouterr().err == ""

    os.remove(model / utils.CHECKED_FILE)
    monkeypatch.setattr(os, "replace", lambda *paths: open("/", "w"))
    for _ in range(2):
        load(model)
        assert "read-only, so every start" in capsys.readouterr().err
    assert not list(model.glob("*.part"))


# ---- The command line ----------------------------------------------------------------------


def test_verify_as_a_command(model):
    """Exit status 0 or 1, all on stdout."""
    good = run("verify", "small", "--models_dir", model.parent)
    assert (good.returncode, good.stderr) == (0, "")
    assert len(good.stdout.splitlines()) == 7

    overwrite(model / DATA_FILE, 50_000, b"\xff")
    bad = run("verify", "small", f"--models_dir={model.parent}")
    assert (bad.returncode, bad.stderr) == (1, "")


def test_download_of_what_is_there_says_where(model):
    """Without a network."""
    environment = os.environ | {"GPT2_BASE_URL": "http://127.0.0.1:9"}
    result = run("download", "small", "--models_dir", model.parent, env=environment)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"small is in {model}\n"


def test_what_a_damaged_file_leaves_unchecked_is_not_called_wrong(model):
    """Or its advice, to delete what is wrong, would cost the weights."""
    (model / "hparams.json").write_text("{}")
    lines = run("verify", "small", "--models_dir", model.parent).stdout.splitlines()
    states = {line.split()[0]: line.split("bytes")[1].strip() for line in lines[:-1]}
    assert [name for name in states if states[name].startswith("WRONG: ")] == ["hparams.json"]
    assert states[f"model.ckpt{checkpoint.DATA}"].startswith("not checked: ")
    assert lines[-1] == "small: 1 of 6 files are right"


def test_a_model_of_ones_own_is_not_fetched(model):
    """What is missing is named, and the status is 1."""
    (model / "vocab.bpe").unlink()
    result = run("download", "small", "--models_dir", model.parent)
    assert (result.returncode, result.stdout) == (1, "")
    assert f"utils.py: {model} is not a whole model: it lacks vocab.bpe; put" in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["verify"],
        ["check", "124M"],
        ["verify", "335M"],
        ["download", "../models"],
        ["verify", "124M", "355M"],
        ["verify", "124M", "--fast"],
    ],
    ids=" ".join,
)
def test_a_wrong_call_is_one_line_and_status_2(words):
    """On stderr."""
    result = run(*words)
    assert (result.returncode, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1


# ---- Names ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*utils.MODEL_SIZES, "small"])
def test_openais_sizes_and_folders_are_models(name):
    """Of which none is looked into yet."""
    utils.check_model_size(name, SMALL.parent)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../small", "small/", "/", "./small", "a/../small", "..\\small", "C:small"]
    + ["335M", "124m ", "gpt3", "small\0", "small\n", str(SMALL), "None", "--help"],
)
def test_anything_else_is_refused_in_one_line(name):
    """With a list of what there is, and nothing is written."""
    before = sorted(os.listdir(SMALL.parent))
    with pytest.raises(ValueError) as error:
        utils.check_model_size(name, SMALL.parent)
    message = str(error.value)
    assert "124M, 355M, 774M, 1558M" in message
    assert "there is small" in message
    assert "\n" not in message and "\0" not in message
    assert sorted(os.listdir(SMALL.parent)) == before


@pytest.mark.parametrize("old, new", [("117M", "124M"), ("345M", "355M")])
def test_old_names_lead_to_the_new_ones(old, new):
    """OpenAI renamed two sizes after it had counted again."""
    with pytest.raises(ValueError, match=f"{old} is called {new}"):
        utils.check_model_size(old, SMALL.parent)


def test_the_bundled_model_lies_in_one_place(tmp_path):
    """Who looks for it elsewhere is told where."""
    with pytest.raises(ValueError, match="leave out --models_dir") as error:
        utils.check_model_size("tiny", tmp_path)
    assert utils.MODELS_DIR in str(error.value)


def test_a_home_folder_is_expanded(model, monkeypatch):
    """In every function that takes models_dir."""
    monkeypatch.setenv("HOME", str(model.parent.parent))
    monkeypatch.setenv("USERPROFILE", str(model.parent.parent))
    models_dir = f"~/{model.parent.name}"
    utils.check_model_size("small", models_dir)
    _, hparams, params = utils.load_encoder_hparams_and_params("small", models_dir)
    assert params["wpe"].shape == (hparams["n_ctx"], hparams["n_embd"])
    with pytest.raises(ValueError, match="there is small"):
        utils.check_model_size("other", models_dir)
