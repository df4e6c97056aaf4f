"""Writes tests/checkpoints/small: a small GPT-2 model, saved by TensorFlow itself.

    pip install -r tools/requirements.txt
    python tools/write_test_checkpoint.py

The tests read the checkpoint without TensorFlow and compare it, bit for bit, with `small.npz`
beside the folder, which NumPy wrote from the same arrays. No two sizes of the model are equal, so
no axis can be mistaken for another. The checkpoint also holds what a training run leaves in it: a
step counter and an Adam slot.
"""

import json
import os

import numpy as np

FOLDER = os.path.join(os.path.dirname(__file__), "..", "tests", "checkpoints", "small")
HPARAMS = {"n_vocab": 269, "n_ctx": 64, "n_embd": 20, "n_head": 5, "n_layer": 3}
MERGES = ["Ġ t", "h e", "Ġ a", "Ġt he", "i n", "r e", "o n", "e r", "Ġa n", "Ġan d", "in g", "o r"]


def random_tensors(hparams, rng):
    """A dict of variable name -> float32 array, with every variable of a GPT-2 of this size."""
    n_vocab, n_ctx, n_embd = hparams["n_vocab"], hparams["n_ctx"], hparams["n_embd"]
    shapes = {"model/wte": [n_vocab, n_embd], "model/wpe": [n_ctx, n_embd]}
    norms = ["model/ln_f"]
    for layer in range(hparams["n_layer"]):
        block = f"model/h{layer}"
        norms += [f"{block}/ln_1", f"{block}/ln_2"]
        kernels = {
            f"{block}/attn/c_attn": (n_embd, 3 * n_embd),
            f"{block}/attn/c_proj": (n_embd, n_embd),
            f"{block}/mlp/c_fc": (n_embd, 4 * n_embd),
            f"{block}/mlp/c_proj": (4 * n_embd, n_embd),
        }
        for name, (n_in, n_out) in kernels.items():
            shapes[f"{name}/w"] = [1, n_in, n_out]
            shapes[f"{name}/b"] = [n_out]
    for name in norms:
        shapes[f"{name}/g"] = [n_embd]
        shapes[f"{name}/b"] = [n_embd]
    return {name: rng.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}


def save_with_tensorflow(folder, tensors):
    """Saves {variable name: array} as folder/model.ckpt, with the file `checkpoint` beside it."""
    import tensorflow.compat.v1 as tf

    with tf.Graph().as_default(), tf.Session() as session:
        variables = {
            name: tf.get_variable(name, shape=array.shape, dtype=array.dtype)
            for name, array in tensors.items()
        }
        for name, variable in variables.items():
            variable.load(tensors[name], session)
        saver = tf.train.Saver(variables, save_relative_paths=True)
        saver.save(session, os.path.join(folder, "model.ckpt"), write_meta_graph=False)


def byte_alphabet():
    """The 256 characters that stand for bytes, in the order of their token ids.

    The 188 printable bytes come first and stand for themselves. The others follow, as the
    characters from U+0100 on.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    n_others = 256 - len(printable)
    return [chr(code) for code in printable] + [chr(0x100 + i) for i in range(n_others)]


def write_vocabulary(folder, merges):
    """Writes encoder.json and vocab.bpe: 256 bytes, the merges, and <|endoftext|>."""
    tokens = byte_alphabet() + [merge.replace(" ", "") for merge in merges] + ["<|endoftext|>"]
    with open(os.path.join(folder, "encoder.json"), "w", encoding="utf-8", newline="\n") as file:
        json.dump({token: i for i, token in enumerate(tokens)}, file)
    with open(os.path.join(folder, "vocab.bpe"), "w", encoding="utf-8", newline="\n") as file:
        file.write("\n".join(["#version: 0.2", *merges, ""]))


def main():
    rng = np.random.default_rng(2)
    tensors = random_tensors(HPARAMS, rng)
    extras = {
        "global_step": np.array(1000, dtype=np.int64),
        "model/wte/Adam": rng.normal(size=tensors["model/wte"].shape).astype(np.float32),
    }
    os.makedirs(FOLDER, exist_ok=True)
    save_with_tensorflow(FOLDER, tensors | extras)
    write_vocabulary(FOLDER, MERGES)
    with open(os.path.join(FOLDER, "hparams.json"), "w", encoding="utf-8", newline="\n") as file:
        json.dump(HPARAMS, file, indent=2)
        file.write("\n")
    np.savez_compressed(f"{FOLDER}.npz", **tensors)


if __name__ == "__main__":
    main()
