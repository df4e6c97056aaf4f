"""OpenAI's weights give the texts and ids that others have published for them.

All of this is skipped unless models/124M is there.
"""

from pathlib import Path

import numpy as np
import pytest

import gpt2
import model_names
import utils

DATA = Path(model_names.MODELS_DIR, "124M", "model.ckpt.data-00000-of-00001")
pytestmark = pytest.mark.skipif(
    not DATA.exists(), reason="models/124M is not there: python utils.py download 124M"
)

# From picoGPT's README; from transformers' tests/models/gpt2/test_modeling_gpt2.py (two); from
# certik/fastGPT's tests (two); from transformers issue 2493, long enough to show a wrong position.
GREEDY = {
    "Alan Turing theorized that computers would one day become": (
        " the most powerful machines on the planet.\n\nThe computer is a machine that can perform"
        " complex calculations, and it can perform these calculations in a way that is very"
        " similar to the human brain.\n",
        40,
    ),
    "The dog": (
        " was found in a field near the intersection of West and West Streets.\n\nThe dog",
        18,
    ),
    "Hello, my dog is a little": (" bit of a mess. I'm not sure if he's going", 13),
    "Alan Turing theorized that computers would one day become very powerful, but even he could "
    "not imagine": (
        ' how they would be able to do so.\n\n"I think that the most important thing is',
        20,
    ),
    "Ondřej Čertík was born in": (" 1885 in the village of Šemtár,", 13),
    "This apple is": (
        " a very good apple." + " It's a very good apple." * 13 + " It's a very",
        100,
    ),
}


@pytest.fixture(scope="module")
def model():
    return utils.load_encoder_hparams_and_params("124M", model_names.MODELS_DIR)


@pytest.mark.parametrize("prompt", GREEDY)
def test_greedy_text_is_the_published_one(model, prompt):
    """The likeliest token is taken each time, as in the published texts."""
    encoder, hparams, params = model
    text, n_tokens = GREEDY[prompt]
    rngs = [np.random.default_rng(0)]
    steps = gpt2.generate(encoder.encode(prompt), params, hparams["n_head"], n_tokens, rngs)
    assert encoder.decode([int(id) for [id] in steps]) == text


def test_the_likeliest_id_after_each_token_is_the_published_one(model):
    """The prompt is picoGPT's. The last of the ids is the first generated token."""
    encoder, hparams, params = model
    ids = encoder.encode("Alan Turing theorized that computers would one day become")
    likeliest, cache = [], None
    for id in ids:
        logits, cache = gpt2.gpt2(np.array([[id]]), **params, n_head=hparams["n_head"], cache=cache)
        likeliest.append(int(logits.argmax()))
    assert likeliest == [11, 11, 1143, 326, 262, 714, 307, 1110, 307, 262]
