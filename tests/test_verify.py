"""verify finds damage, damaged weights make no text, and names that are no models are refused."""

import errno
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import checkpoint
import files
import model_names
import openai_files
import utils
from checks import CallError
from tools.write_checkpoint import write_checkpoint

ROOT = Path(utils.__file__).parent
SMALL = Path(__file__).parent / "checkpoints" / "small"
DATA_FILE = f"model.ckpt{checkpoint.DATA}"
UNSURE = "(checkpoint, hparams.json, encoder.json and vocab.bpe have no checksum)"
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
    """A line has the name of the file, its bytes, and what was checked."""
    result, lines, total = verify(model, capsys)
    assert result is True
    assert [line.split()[0] for line in lines] == list(openai_files.FILES)
    assert all(re.search(r" [\d,]+ bytes  ok: \w", line) for line in lines)
    assert total == f"small: no damage found in 6 of 6 files {UNSURE}"


@pytest.mark.parametrize("name", TENSORS)
def test_a_flipped_bit_in_a_tensor_is_found(name, model, capsys):
    """This holds for every tensor, also for those that are no weights.

    The line names file and tensor.
    """
    position = TENSORS[name]["offset"] + TENSORS[name]["size"] // 2
    content = (model / DATA_FILE).read_bytes()
    overwrite(model / DATA_FILE, position, bytes([content[position] ^ 16]))
    result, lines, total = verify(model, capsys)
    assert result is False
    assert f"WRONG: {model / DATA_FILE} is damaged: {name} does not match its checksum" in lines[-1]
    assert total == f"small: 1 of 6 files did not pass: {DATA_FILE}; put good ones in their place"


def test_a_hole_of_zeros_is_found(model, capsys):
    """A download that first makes room for the whole file can leave such a hole."""
    overwrite(model / DATA_FILE, 50_000, bytes(10_000))
    result, lines, _ = verify(model, capsys)
    assert result is False
    assert "does not match its checksum" in lines[-1]


@pytest.mark.parametrize("name", openai_files.FILES)
def test_a_missing_file_is_found(name, model, capsys):
    """The line of the file says that it is missing, and verify fails."""
    (model / name).unlink()
    result, lines, _ = verify(model, capsys)
    assert result is False
    line = lines[openai_files.FILES.index(name)]
    assert line.split() == [name, "0", "bytes", "WRONG:", "missing"]


@pytest.mark.parametrize("name", openai_files.FILES)
@pytest.mark.parametrize("content", [b"", b"<html>Not Found</html>", b"\xff\xfe\x00"])
def test_a_foreign_file_is_found(name, content, model, capsys):
    """The file is empty, a web page, or bytes that are no text."""
    (model / name).write_bytes(content)
    result, lines, _ = verify(model, capsys)
    assert result is False
    assert "WRONG" in lines[openai_files.FILES.index(name)]


def test_a_changed_letter_in_the_vocabulary_is_found(model, capsys):
    """The two files of the vocabulary have to fit each other."""
    for name in ("encoder.json", "vocab.bpe"):
        content = (SMALL / name).read_bytes()
        (model / name).write_bytes(content.replace(b"in", b"im", 1))
        result, lines, _ = verify(model, capsys)
        assert result is False
        assert "WRONG" in lines[openai_files.FILES.index("vocab.bpe")]
        (model / name).write_bytes(content)


def test_openais_names_are_held_to_what_is_published(model, capsys):
    """A sound model is wrong under the name 124M if it is not OpenAI's 124M."""
    folder = model.rename(model.parent / "124M")
    result, lines, total = verify(folder, capsys)
    assert result is False
    assert "ok: names model.ckpt, published SHA-256" in lines[0]
    assert "WRONG" in lines[1] and "has 83 bytes, but the published file has 90" in lines[1]
    assert total.startswith("124M: 5 of 6 files did not pass: hparams.json, encoder.json, ")
    assert "; delete what is wrong; `python utils.py download 124M --models_dir=" in total


def test_the_hashes_of_the_bundled_model_are_in_the_program(capsys):
    """So verify compares all its files with them, as it does for 124M."""
    result, lines, total = verify(Path(model_names.MODELS_DIR, "tiny"), capsys)
    assert result is True
    assert all(line.endswith("published SHA-256") for line in lines)
    assert total == "tiny: 6 of 6 files are right"


@pytest.mark.parametrize(
    "name, old, new",
    [
        ("hparams.json", '"n_head": 4', '"n_head": 2'),
        ("encoder.json", '"!": 0, "\\"": 1', '"!": 1, "\\"": 0'),
    ],
)
def test_a_change_that_fits_the_other_files_is_found_in_the_bundled_model(
    name, old, new, tmp_path, capsys, monkeypatch
):
    """The published hash shows it. The last line says how to get the file back."""
    shutil.copytree(Path(model_names.MODELS_DIR, "tiny"), tmp_path / "tiny")
    monkeypatch.setattr(model_names, "MODELS_DIR", str(tmp_path))
    text = (tmp_path / "tiny" / name).read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "tiny" / name).write_text(text.replace(old, new), encoding="utf-8")
    result, lines, total = verify(tmp_path / "tiny", capsys)
    assert result is False
    assert "does not have the published SHA-256" in lines[openai_files.FILES.index(name)]
    assert total.endswith(f'; restore it with `git -C "{ROOT}" checkout models/tiny`')


@pytest.mark.parametrize("name", ["vocab.bpe", DATA_FILE])
def test_a_file_that_cannot_be_read_is_not_called_wrong(name, model, capsys, monkeypatch):
    """The line of the file gives the reason and says that it was not checked."""

    def forbid(path, *args):
        if str(path) == str(model / name):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return open(path, *args)

    monkeypatch.setattr(files, "open", forbid, raising=False)
    monkeypatch.setattr(checkpoint, "map_file", lambda path: forbid(path) and files.map_file(path))
    result, lines, total = verify(model, capsys)
    assert result is False
    line = lines[openai_files.FILES.index(name)]
    assert line.endswith(f"not checked: Permission denied: {model / name}")
    assert total.startswith(f"small: 1 of 6 files did not pass: {name}")
    with pytest.raises(OSError, match="^cannot read .*: Permission denied. Fix that"):
        load(model)


@pytest.mark.parametrize("models_dir", ["", "around"])
def test_a_folder_that_cannot_be_entered_is_named(models_dir, model, monkeypatch):
    """The files in it are not called missing."""
    closed = model / models_dir
    real = os.stat

    def stat(path, *args, **options):
        if isinstance(path, str) and closed in Path(path).parents:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real(path, *args, **options)

    monkeypatch.setattr(os, "stat", stat)
    place = (closed.name, closed.parent) if models_dir == "" else ("124M", closed)
    for function in (utils.verify, utils.load_encoder_and_hparams):
        with pytest.raises(OSError, match="^cannot look into the folder .*: Permission denied"):
            function(*place)


# ---- Once before the first use -------------------------------------------------------------


def load(folder):
    return utils.load_encoder_hparams_and_params(folder.name, folder.parent)


@pytest.fixture
def n_checks(monkeypatch):
    """A list that grows by one with each check of a data file."""
    checks, original = [], checkpoint.check_data
    monkeypatch.setattr(checkpoint, "check_data", lambda *a: checks.append(a) or original(*a))
    return checks


def test_damaged_weights_make_no_text(model):
    """Zeros in the place of weights are refused at the start. So is a NaN with a right checksum."""
    overwrite(model / DATA_FILE, 50_000, bytes(10_000))
    with pytest.raises(ValueError, match="does not match its checksum.*utils.py verify small"):
        load(model)
    tensors = dict(np.load(SMALL.parent / "small.npz"))
    tensors["model/ln_f/b"][3] = np.nan
    write_checkpoint(model, openai_files.read_hparams(model / "hparams.json"), tensors)
    with pytest.raises(ValueError, match="model/ln_f/b has numbers that are .* not numbers"):
        load(model)


def test_weights_are_checked_once(model, n_checks):
    """Weights are checked again if the file has changed, or if the folder has another name."""
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


def test_weights_that_became_wrong_are_refused(model):
    """A check that has passed does not count for a file that was written to later."""
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
    """The note names the folder. If the result cannot be kept there, another note says so."""
    monkeypatch.setattr(utils, "LARGE", 1000)
    load(model)
    assert str(model) in capsys.readouterr().err
    load(model)
    assert capsys.readouterr().err == ""

    os.remove(model / utils.CHECKED_FILE)
    monkeypatch.setattr(os, "replace", lambda *paths: open("/", "w"))
    for _ in range(2):
        load(model)
        assert f"cannot write into {model}, so every start" in capsys.readouterr().err
    assert not list(model.glob("*.tmp"))


# ---- The command line ----------------------------------------------------------------------


def test_verify_as_a_command(model):
    """The exit status is 0 for a sound model and 1 for a damaged one. Everything goes to stdout."""
    good = run("verify", "small", "--models_dir", model.parent)
    assert (good.returncode, good.stderr) == (0, "")
    assert len(good.stdout.splitlines()) == 7

    overwrite(model / DATA_FILE, 50_000, b"\xff")
    bad = run("verify", "small", f"--models_dir={model.parent}")
    assert (bad.returncode, bad.stderr) == (1, "")


def test_download_of_a_complete_model_says_where_it_is(model):
    """No network is needed."""
    environment = os.environ | {"GPT2_BASE_URL": "http://127.0.0.1:9"}
    result = run("download", "small", "--models_dir", model.parent, env=environment)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"small is in {model}\n"


def test_what_a_damaged_file_leaves_unchecked_is_not_called_wrong(model):
    """Users are told to delete what is damaged, and would delete weights that may be right."""
    (model / "hparams.json").write_text("{}")
    lines = run("verify", "small", "--models_dir", model.parent).stdout.splitlines()
    states = {line.split()[0]: line.split("bytes")[1].strip() for line in lines[:-1]}
    assert [name for name in states if states[name].startswith("WRONG: ")] == ["hparams.json"]
    assert states[f"model.ckpt{checkpoint.DATA}"].startswith(
        "not checked, because hparams.json is wrong"
    )
    assert lines[-1].startswith("small: 5 of 6 files did not pass: hparams.json, encoder.json, ")


def test_a_model_of_ones_own_is_not_downloaded(model):
    """The missing file is named, and the exit status is 1."""
    (model / "vocab.bpe").unlink()
    result = run("download", "small", "--models_dir", model.parent)
    assert (result.returncode, result.stdout) == (1, "")
    message = f"utils.py: the model in {model} is incomplete: vocab.bpe is missing. Add it, or"
    assert result.stderr.startswith(message)


def test_the_exit_status_of_verify_does_not_depend_on_its_reader(model):
    """It is the answer, also for a reader such as `head -1`, which has gone before the end."""
    command = [sys.executable, "utils.py", "verify", "small", "--models_dir", str(model.parent)]
    for expected in (0, 1):
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
            process.stdout.close()
        assert process.returncode == expected
        (model / "vocab.bpe").unlink(missing_ok=True)


def test_download_compares_what_is_here_with_what_is_published(model):
    """Files that somebody has put there are not called right if they are not."""
    folder = model.rename(model.parent / "355M")
    result = run("download", "355M", "--models_dir", folder.parent)
    assert (result.returncode, result.stdout) == (1, "")
    assert "has 83 bytes, but the published file has 91" in result.stderr


def test_verify_before_the_download_says_so(tmp_path):
    """The message has the command that downloads the model, and names the files that were begun."""
    result = run("verify", "124M", "--models_dir", tmp_path)
    command = f'`python utils.py download 124M --models_dir="{tmp_path}"` downloads it'
    message = f"utils.py: 124M has not been downloaded yet: {command}\n"
    assert (result.returncode, result.stdout, result.stderr) == (1, "", message)

    (tmp_path / "124M").mkdir()
    (tmp_path / "124M" / "encoder.json.part").write_text("{")
    errors = run("verify", "124M", "--models_dir", tmp_path).stderr
    assert f"yet (only begun: {tmp_path / '124M'} has encoder.json.part): {command}" in errors


@pytest.mark.parametrize(
    "words, message",
    [
        ([], "write download or verify, and the name of a model, "),
        (["verify"], "verify which model"),
        (["check", "124M"], "there is no command 'check': write download or verify, and "),
        (["verify", "335M"], "there is no model '335M': did you mean 355M"),
        (["download", "../models"], "there is no model '../models': 124M, 355M"),
        (["verify", "124M", "355M"], "'355M' is a word too many: leave it out"),
        (["verify", "124M", "--fast"], "no flag '--fast': the flags are --command, --model_size"),
        (["verify", "124M", "--modelsdir", "x"], "'--modelsdir': did you mean --models_dir?"),
        (["verify", "124M", "--models", "x"], "'--models': did you mean --models_dir?"),
        (["verify", "124M", "-models_dir", "x"], "'-models_dir': did you mean --models_dir?"),
        (["verify", "124M", "--models_dir"], "--models_dir needs a value"),
        (["verify", "124M", "--models_dir="], "--models_dir needs a value"),
        (["verify", "--models_dir", "--model_size=tiny"], "--models_dir needs a value"),
        (["verify", "x", "--models-dir=a", "--models_dir", "b"], "--models_dir was given twice"),
        (["verify", "tiny", "--model_size=tiny"], "--model_size was given twice"),
    ],
    ids=" ".join,
)
def test_a_wrong_call_is_one_line_and_status_2(words, message):
    """The line goes to stderr, and stdout stays empty."""
    result = run(*words)
    assert (result.returncode, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert re.match(f"utils.py: .*{message}", result.stderr)


def test_options_are_those_of_gpt2(model):
    """Hyphens may stand for underscores, and the name of the model may have its flag."""
    result = run("verify", "--model_size", "small", f"--models-dir={model.parent}")
    assert (result.returncode, result.stderr) == (0, "")


def test_help_has_the_usage_and_an_example():
    """The help is printed wherever -h or --help stands in the call."""
    for words in (["--help"], ["-h"], ["verify", "--fast", "--help"]):
        result = run(*words)
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout.startswith("usage: python utils.py download MODEL ")
    assert "\n  python utils.py verify 124M\n" in result.stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize("words", [["--help"], ["verify", "tiny"]], ids=" ".join)
def test_a_full_disk_is_one_line(words):
    """The line says that standard output cannot be written to."""
    with open("/dev/full", "w") as full:
        command = [sys.executable, "utils.py", *words]
        result = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 1
    assert "cannot write to standard output: No space left" in result.stderr


# ---- Names ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*model_names.MODEL_SIZES, "small"])
def test_openais_sizes_and_existing_folders_are_accepted(name):
    """The files in the folders are not looked at yet."""
    model_names.check_model_size(name, SMALL.parent)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../small", "small/", "/", "./small", "a/../small", "..\\small", "C:small"]
    + ["335M", "124m ", "gpt3", "small\0", "small\n", "None", "--help"],
)
def test_any_other_name_is_refused_in_one_line(name):
    """The line lists the models that there are. Nothing is written."""
    before = sorted(os.listdir(SMALL.parent))
    with pytest.raises(ValueError) as error:
        model_names.check_model_size(name, SMALL.parent)
    message = str(error.value)
    assert "124M, 355M, 774M, 1558M" in message
    assert "there is small" in message
    assert "\n" not in message and "\0" not in message
    assert sorted(os.listdir(SMALL.parent)) == before


@pytest.mark.parametrize(
    "other, name",
    [("117M", "124M"), ("345M", "355M"), ("762M", "774M"), ("1542M", "1558M"), ("1.5B", "1558M")]
    + [("gpt2", "124M"), ("gpt2-medium", "355M"), ("gpt2-large", "774M"), ("gpt2-xl", "1558M")],
)
def test_other_names_of_openais_models_lead_to_these(other, name, tmp_path):
    """OpenAI's old names and the Hub's are known.

    A folder with such a name is a model of its own.
    """
    with pytest.raises(CallError, match=f"^the model {other} is .*called {name}.*: use this name$"):
        model_names.check_model_size(other, tmp_path)
    (tmp_path / other).mkdir()
    model_names.check_model_size(other, tmp_path)


def test_a_path_is_no_name():
    """The message says which name and which models_dir lead to the model at this path."""
    words = f'by its name: choose the model small, with --models_dir="{SMALL.parent}"'
    with pytest.raises(CallError, match=re.escape(words)):
        model_names.check_model_size(str(SMALL), "models")
    with pytest.raises(CallError, match="'models/124M' is a path.*choose the model 124M"):
        model_names.check_model_size(f"models{os.sep}124M", "models")


@pytest.mark.parametrize("typed, meant", [("124m", "124M"), ("Small", "small"), ("samll", "small")])
def test_a_misspelt_name_is_guessed(typed, meant):
    """Capital letters make no difference."""
    with pytest.raises(CallError, match=f"no model '{typed}': did you mean {meant}"):
        model_names.check_model_size(typed, SMALL.parent)


def test_the_bundled_model_lies_in_one_place(tmp_path, monkeypatch):
    """The message differs for another folder, a missing folder, and a model that was removed."""
    elsewhere = f"the model tiny is in {model_names.MODELS_DIR}, not in {tmp_path}: leave out"
    with pytest.raises(CallError, match=re.escape(elsewhere)):
        model_names.check_model_size("tiny", tmp_path)
    with pytest.raises(CallError, match="^the folder .*no does not exist"):
        model_names.check_model_size("tiny", tmp_path / "no")
    monkeypatch.setattr(model_names, "MODELS_DIR", str(tmp_path))
    for models_dir in (tmp_path, tmp_path / "no"):
        with pytest.raises(CallError, match="missing there: restore it with `git -C"):
            model_names.check_model_size("tiny", models_dir)
    (tmp_path / "tiny").mkdir()
    with pytest.raises(ValueError, match="vocab.bpe.* are missing. Restore it with `git -C"):
        utils.load_encoder_and_hparams("tiny", tmp_path)


@pytest.mark.parametrize("name", ["small", "124M", "other"])
def test_models_dir_is_not_the_folder_of_the_model(name, model):
    """The message says what to write instead. But a model can be downloaded into any folder."""
    model = model.rename(model.parent / ("124M" if name == "124M" else "small"))
    remedy = f'write --models_dir="{model.parent}", and choose the model {model.name}'
    with pytest.raises(CallError, match=f"is itself the folder of a model.*{re.escape(remedy)}"):
        model_names.check_model_size(name, model)
    model_names.check_model_size("355M", model)


@pytest.mark.parametrize("name", ["124M", "tiny", "mine"])
def test_a_file_is_no_models_dir(name, tmp_path):
    """A file cannot be a folder around models_dir either, or the folder of a model."""
    (tmp_path / "file").touch()
    (tmp_path / name).touch()
    for models_dir in (tmp_path / "file", tmp_path / "file" / "models", tmp_path):
        path = tmp_path / (name if models_dir == tmp_path else "file")
        with pytest.raises(CallError, match=re.escape(f"{path} is a file, but ")):
            model_names.check_model_size(name, models_dir)


def test_a_home_folder_is_expanded(model, monkeypatch):
    """models_dir may begin with ~ when names are checked and when a model is loaded."""
    monkeypatch.setenv("HOME", str(model.parent.parent))
    monkeypatch.setenv("USERPROFILE", str(model.parent.parent))
    models_dir = f"~/{model.parent.name}"
    model_names.check_model_size("small", models_dir)
    _, hparams, params = utils.load_encoder_hparams_and_params("small", models_dir)
    assert params["wpe"].shape == (hparams["n_ctx"], hparams["n_embd"])
    with pytest.raises(ValueError, match="there is small"):
        model_names.check_model_size("other", models_dir)
