"""The bundled model is small and complete, and as good as its card says."""

import re
import sys

import numpy as np
import pytest
from conftest import ROOT

import model_names
import openai_files
import utils
import weights

sys.path.append(str(ROOT / "tools"))
from score_tiny import losses  # noqa: E402

TINY = ROOT / "models" / "tiny"
CARD = (TINY / "README.md").read_text(encoding="utf-8")

# From The Taming of the Shrew, in the last tenth of the text, which the model never saw.
UNSEEN = """
PETRUCHIO:
Signior Baptista, my business asketh haste,
And every day I cannot come to woo.
You knew my father well, and in him me,
Left solely heir to all his lands and goods,
Which I have better'd rather than decreased:
Then tell me, if I get your daughter's love,
What dowry shall I have with her to wife?

BAPTISTA:
After my death the one half of my lands,
And in possession twenty thousand crowns.
"""


@pytest.fixture(scope="module")
def tiny():
    return utils.load_encoder_hparams_and_params("tiny", model_names.MODELS_DIR)


def test_its_files_are_right(capsys):
    """verify finds no damage, no other file is there, and all files together have under 5 MB."""
    assert utils.verify("tiny", model_names.MODELS_DIR)
    assert sum(path.stat().st_size for path in TINY.iterdir()) < 5_000_000
    names = {path.name for path in TINY.iterdir() if not path.name.startswith(utils.CHECKED_FILE)}
    assert names == {*openai_files.FILES, "README.md"}


def test_it_is_as_small_as_its_card_says(tiny):
    """The card's number of parameters is right. wte is stored once, so it is counted once."""
    _, _, params = tiny
    sizes = []
    weights.map_tree(lambda _, shape: sizes.append(np.prod(shape)), weights.shapes_of(tiny[1]))
    assert params["wte"].dtype == np.float32
    assert sum(sizes) == int(re.search(r"([\d,]+) parameters", CARD)[1].replace(",", ""))
    assert sum(sizes) <= 1_200_000


def test_its_vocabulary_is_built_like_openais(tiny):
    """256 bytes come first, then 767 merges, then <|endoftext|>.

    "!" has the id 0, as in OpenAI's models.
    """
    encoder, hparams, _ = tiny
    assert len(encoder.tokens) == hparams["n_vocab"] == 1024 == 256 + len(encoder.ranks) + 1
    assert encoder.tokens[-1] == b"<|endoftext|>"
    assert encoder.tokens[0] == b"!"
    merged = [left + right for left, right in encoder.ranks]
    assert encoder.tokens[256:-1] == merged


def test_it_predicts_lines_that_it_never_saw(tiny):
    """The passage is too short to give the card's score. So the limit is a little higher."""
    encoder, hparams, params = tiny
    ids = np.array([encoder.encode(UNSEEN)])
    nats = losses(ids[:, :-1], ids[:, 1:], params, hparams["n_head"])
    assert nats.sum() / len(UNSEEN) < 1.5
