"""Writes tests/huggingface/small: a small GPT-2 model, saved by transformers itself.

    pip install -r tests/live/requirements-torch.txt
    python tools/write_huggingface.py

The weights are random numbers. The tests read the folder without transformers and compare with
`small.npz` beside it: ids, logits and a greedy continuation, all made by transformers. The
tokenizer has two added tokens, and the embedding table has more rows than the tokenizer has tokens.

The tests write files of their own with `write_safetensors`, which needs neither transformers nor
safetensors. The format is explained in huggingface/tensors.py.
"""

import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from tools.write_test_checkpoint import MERGES, byte_alphabet  # noqa: E402

FOLDER = os.path.join(os.path.dirname(__file__), "..", "tests", "huggingface", "small")
TEXT = "The hen and the<|user|>ring <pad>thing, naïve\n \n日本<|endoftext|> 12 other<|us"


def write_safetensors(path, tensors, n_spaces=None):
    """Writes a file in the safetensors format.

    tensors: dict of name -> (dtype, array), such as ("F32", a float32 array). For BF16, the array
    is uint16. n_spaces: how many spaces end the header. Without it, there are as many as let the
    data begin at a multiple of 8 bytes.
    """
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, (dtype, array) in tensors.items():
        place = [end, end + array.nbytes]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": place}
        end += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8 if n_spaces is None else n_spaces)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, array in tensors.values():
            file.write(np.ascontiguousarray(array).tobytes())


def small_tokenizer():
    """GPT-2's tokenizer with few merges and two added tokens."""
    import transformers

    merged = [merge.replace(" ", "") for merge in MERGES]
    names = [*byte_alphabet(), *merged, "<|endoftext|>"]
    tokenizer = transformers.GPT2Tokenizer(
        vocab={name: id for id, name in enumerate(names)},
        merges=[tuple(merge.split(" ")) for merge in MERGES],
    )
    tokenizer.add_tokens(["<|user|>"])
    tokenizer.add_special_tokens({"pad_token": "<pad>"})
    return tokenizer


def random_model(n_vocab, end_of_text, seed=0, scale=0.5, **sizes):
    """A GPT-2 with random weights. They are large, so that the logits differ clearly."""
    import torch
    import transformers

    config = transformers.GPT2Config(
        vocab_size=n_vocab, bos_token_id=end_of_text, eos_token_id=end_of_text, **sizes
    )
    torch.manual_seed(seed)
    model = transformers.GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += scale * torch.randn_like(parameter)
    return model


def answers(model, tokenizer, text, n_greedy):
    """What transformers makes of a text: ids [T], logits [T, V], greedy ids [n_greedy]."""
    import torch

    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        logits = model(ids).logits[0].float().numpy()
    continued = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=n_greedy,
        do_sample=False,
        pad_token_id=0,
    )
    greedy = continued[0, ids.shape[1] :].numpy()
    return {"ids": ids[0].numpy(), "logits": logits, "greedy": greedy}


def main():
    tokenizer = small_tokenizer()
    model = random_model(
        288, tokenizer.eos_token_id, n_positions=128, n_embd=20, n_head=5, n_layer=3
    )
    model.save_pretrained(FOLDER)
    tokenizer.save_pretrained(FOLDER)
    found = answers(model, tokenizer, TEXT, 40)
    text = tokenizer.decode(found["greedy"])
    np.savez_compressed(f"{FOLDER}.npz", text=TEXT, greedy_text=text, **found)


if __name__ == "__main__":
    main()
