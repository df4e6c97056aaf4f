"""What is downloaded under the names of OpenAI's models is what OpenAI has published.

The small test model stands in for the published files: as 124M with sizes and hashes, as 355M with
sizes alone.
"""

import hashlib

import pytest
from model_server import DATA, DATA_FILE, FILES, SMALL, is_whole, load, right_files

import checkpoint
import openai_files
import utils
from tools.write_checkpoint import table


@pytest.fixture
def published(monkeypatch):
    """The small model's files count as published: as 124M with hashes, as 355M with sizes alone."""
    sizes = {name: len(content) for name, content in FILES.items()}
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    monkeypatch.setattr(openai_files, "PUBLISHED_SIZES", {"124M": sizes, "355M": sizes})
    monkeypatch.setattr(openai_files, "PUBLISHED_SHA256", {"124M": hashes})


def test_the_published_files_are_accepted(server, tmp_path, published):
    """124M is accepted by its hashes, and 355M by its sizes."""
    for size in ("124M", "355M"):
        load(tmp_path, size)
        assert is_whole(tmp_path / size)


@pytest.mark.parametrize(
    "name", ["checkpoint", "hparams.json", "encoder.json", "vocab.bpe", DATA_FILE]
)
def test_another_file_than_the_published_one_is_refused(
    name, server, tmp_path, published, monkeypatch
):
    """The file is refused even if it is right in itself."""
    monkeypatch.setitem(openai_files.PUBLISHED_SHA256["124M"], name, "0" * 64)
    with pytest.raises(ValueError, match=f"{name}.* does not have the published SHA-256"):
        load(tmp_path, "124M")
    assert name not in right_files(tmp_path / "124M")


@pytest.mark.parametrize("size", ["124M", "355M"])
@pytest.mark.parametrize("name", openai_files.FILES)
def test_another_size_than_the_published_one_is_refused(name, size, server, tmp_path, published):
    """The server announces the size, so the file need not be downloaded first."""
    server.files[name] += b"\n"
    n_bytes = len(FILES[name])
    with pytest.raises(ValueError, match=f"has {n_bytes + 1:,} bytes, not {n_bytes:,}"):
        load(tmp_path, size)
    assert not (tmp_path / size / name).exists()


def test_the_index_may_differ_from_its_hash(server, tmp_path, published, monkeypatch, capsys):
    """A single source gives this hash, so the index is used, and a note on stderr says so.

    The data file still needs the right hash.
    """
    monkeypatch.setitem(openai_files.PUBLISHED_SHA256["124M"], "model.ckpt.index", "0" * 64)
    load(tmp_path, "124M")
    assert is_whole(tmp_path / "124M")
    output = capsys.readouterr()
    assert "model.ckpt.index" in output.err and "single source" in output.err
    assert output.out == ""

    (tmp_path / "124M" / DATA_FILE).unlink()
    monkeypatch.setitem(openai_files.PUBLISHED_SHA256["124M"], DATA_FILE, "0" * 64)
    with pytest.raises(ValueError, match="published SHA-256"):
        load(tmp_path, "124M")


def test_a_wrong_index_costs_no_data_file_of_known_hash(server, tmp_path, published, monkeypatch):
    """The hash makes the data file certain, so it is not downloaded again and again."""
    entries = checkpoint.read_table(FILES["model.ckpt.index"])
    crc32c = checkpoint.read_index(SMALL / "model.ckpt.index")["model/wpe"]["crc32c"]
    right, wrong = crc32c.to_bytes(4, "little"), (crc32c ^ 1).to_bytes(4, "little")
    entries[b"model/wpe"] = entries[b"model/wpe"].replace(right, wrong)
    server.files["model.ckpt.index"] = table(sorted(entries.items()))
    monkeypatch.setitem(openai_files.PUBLISHED_SHA256["124M"], "model.ckpt.index", "0" * 64)

    load(tmp_path, "124M")
    assert (tmp_path / "124M" / DATA_FILE).read_bytes() == DATA
    assert [name for name, _ in server.requests].count(DATA_FILE) == 1
    assert not utils.verify("124M", tmp_path)


def test_the_real_124M_is_not_taken_from_a_server_that_has_another(server, tmp_path):
    """The published values are in the program, not in these tests."""
    with pytest.raises(
        ValueError, match="hparams.json is not the right file: it has 83 bytes, not 90"
    ):
        load(tmp_path, "124M")
    assert right_files(tmp_path / "124M") == {"checkpoint"}
