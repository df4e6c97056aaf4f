"""Prints how well a model predicts a text, and how many of the words that it makes are real.

    python tools/score_tiny.py input.txt

gpt2.py itself runs the model. The text is the last tenth of the file's characters, on which
train_tiny.py never trains. Its ids are cut into blocks of n_ctx, without overlap. In each block the
model reads ids[i : i + n_ctx], and is scored on ids[i + 1 : i + n_ctx + 1]. Every position counts,
also the first ones, where the model has read little.

    score = mean of -ln p(id) over all ids scored  *  number of ids  /  number of characters

p(id) is the probability that the model gave to the id that came next. The mean stands for all ids
of the text. Two kinds of ids are not scored themselves: the first id, which has none before it, and
the ids at the end that do not fill a block. The score is per character, not per token, so that
models with different tokenizers can be compared. Its unit is the nat, as ln is the natural
logarithm. Lower is better.

The words are those of 8 samples of 1,000 tokens after "ROMEO:", at temperature 0.7. A word is real
if it occurs in the file.
"""

import argparse
import os
import re
import sys

import numpy as np
from tqdm import tqdm

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from gpt2 import generate, gpt2
from model_names import MODELS_DIR
from utils import load_encoder_hparams_and_params

BATCH = 32  # blocks that go through the model together


def losses(inputs, targets, params, n_head):
    """-ln p of every target: [B, T], like the inputs.

    gpt2 returns the logits of the last position only. So the blocks go in one column at a time, and
    the cache stands for the columns before.
    """
    cache = None
    columns = []
    for position in range(inputs.shape[1]):
        column = inputs[:, position : position + 1]  # [B, 1]
        logits, cache = gpt2(column, **params, n_head=n_head, cache=cache)  # [B, V]
        logits = logits - logits.max(axis=-1, keepdims=True)
        chosen = np.take_along_axis(logits, targets[:, position : position + 1], axis=-1)[:, 0]
        columns.append(np.log(np.exp(logits).sum(axis=-1)) - chosen)  # [B]
    return np.stack(columns, axis=1)


def words(text):
    """The words of a text, in lower case."""
    return re.findall("[a-z]+(?:'[a-z]+)*", text.lower())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", help="the text file, in UTF-8")
    parser.add_argument("--model_size", default="tiny", help="a folder in models_dir")
    parser.add_argument("--models_dir", default=MODELS_DIR)
    args = parser.parse_args()

    encoder, hparams, params = load_encoder_hparams_and_params(args.model_size, args.models_dir)
    try:
        with open(args.text, encoding="utf-8", newline="") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        parser.error(f"{error}; tools/README.md tells where the text is from")
    tail = text[len(text) * 9 // 10 :]
    ids = np.array(encoder.encode(tail))

    n_ctx = hparams["n_ctx"]
    n_blocks = (len(ids) - 1) // n_ctx
    inputs = ids[: n_blocks * n_ctx].reshape(n_blocks, n_ctx)
    targets = ids[1 : n_blocks * n_ctx + 1].reshape(n_blocks, n_ctx)
    total = 0.0
    for i in tqdm(range(0, n_blocks, BATCH), desc="scoring"):
        batch = slice(i, i + BATCH)
        nats = losses(inputs[batch], targets[batch], params, hparams["n_head"])
        total += nats.sum(dtype=np.float64)
    score = total / targets.size * len(ids) / len(tail)
    print(f"{score:.4f} nats per character: {len(ids):,} ids, {len(tail):,} characters")

    rngs = [np.random.default_rng(seed) for seed in range(8)]
    prompt = encoder.encode("ROMEO:")
    steps = list(generate(prompt, params, hparams["n_head"], 1000, rngs, temperature=0.7))
    made = [word for row in zip(*steps) for word in words(encoder.decode(row))]
    known = set(words(text))
    share = sum(word in known for word in made) / len(made)
    print(f"{100 * share:.1f} % of {len(made):,} words made at temperature 0.7 are in the text")


if __name__ == "__main__":
    main()
