"""Writes tests/goldens/transformers.npz: the logits of transformers for the test checkpoint.

    pip install -r requirements-dev.txt -r tests/live/requirements-torch.txt
    python tools/write_goldens.py
"""

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "live")]

from test_transformers import as_transformers, logits_of  # noqa: E402

import utils  # noqa: E402


def main():
    models_dir = ROOT / "tests" / "checkpoints"
    _, hparams, params = utils.load_encoder_hparams_and_params("small", models_dir)
    ids = np.random.default_rng(0).integers(0, hparams["n_vocab"], size=(2, 20))
    logits = logits_of(as_transformers(params, hparams["n_head"]), ids)
    path = ROOT / "tests" / "goldens" / "transformers.npz"
    np.savez_compressed(path, ids=ids, logits=logits)
    print(f"{path}: ids {ids.shape}, logits {logits.shape}")


if __name__ == "__main__":
    main()
