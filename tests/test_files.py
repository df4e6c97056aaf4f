"""files.py: reading a file, also where the system does not give what it should."""

import io

import pytest
from conftest import ROOT

import files

NAMES = ["checkpoint", "hparams.json", "encoder.json", "vocab.bpe", "model.ckpt.index"]


class NoDataAtFirst(io.RawIOBase):
    """A file whose first read finds no data, as the system says with EAGAIN."""

    def readable(self):
        return True

    def readinto(self, buffer):
        return None


def test_a_text_is_read_as_open_reads_it(tmp_path):
    """Lines that end as on Windows, and bytes that are not UTF-8."""
    path = tmp_path / "text"
    path.write_bytes("é\r\nb\n".encode() + b"\xff")
    assert files.read_text(path, errors="replace") == "é\nb\n\ufffd"
    with pytest.raises(UnicodeDecodeError):
        files.read_text(path)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_gives_no_data_once(name, call, monkeypatch):
    """The text is right, or one line names the file; no file is called damaged."""
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
