"""files.py reads a text as `open` does, and notices if the system gives no data."""

import io

import pytest
from conftest import ROOT

import files

NAMES = ["checkpoint", "hparams.json", "encoder.json", "vocab.bpe", "model.ckpt.index"]


class NoDataAtFirst(io.RawIOBase):
    """A file whose first read finds no data. The system reports this with EAGAIN."""

    def readable(self):
        return True

    def readinto(self, buffer):
        return None


def test_a_text_is_read_as_open_reads_it(tmp_path):
    """Line ends of Windows are converted.

    Bytes that are not UTF-8 are replaced, or are an error.
    """
    path = tmp_path / "text"
    path.write_bytes("é\r\nb\n".encode() + b"\xff")
    assert files.read_text(path, errors="replace") == "é\nb\n\ufffd"
    with pytest.raises(UnicodeDecodeError):
        files.read_text(path)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_gives_no_data_once_is_not_called_damaged(name, call, monkeypatch):
    """Either the text is right, or one line says that the file cannot be read."""
    with_data = call("JULIET:", "--model_size", "tiny", "--n_tokens_to_generate", "3")
    n_left = 1

    def open_without_data(path, *args):
        nonlocal n_left
        if str(path) != str(ROOT / "models" / "tiny" / name) or n_left == 0:
            return open(path, *args)
        n_left -= 1
        return io.BufferedReader(NoDataAtFirst())

    monkeypatch.setattr(files, "open", open_without_data, raising=False)
    done = call("JULIET:", "--model_size", "tiny", "--n_tokens_to_generate", "3")
    assert n_left == 0
    if done.status == 0:
        assert done == with_data
    else:
        path = ROOT / "models" / "tiny" / name
        reason = "Resource temporarily unavailable"
        assert done.err.startswith(f"gpt2.py: cannot read {path}: {reason}. Fix that")
